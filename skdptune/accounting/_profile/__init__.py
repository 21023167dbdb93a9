"""The privacy profile of a release, and the search for the noise that meets a budget."""

from skdptune.accounting._profile._calibration import (
    Calibration,
    UnreachableBudgetError,
    calibrate,
)
from skdptune.accounting._profile._profile import (
    PrivacyProfile,
    profile_from_bound,
    profile_from_halves,
    profile_from_renyi,
    renyi_of,
    sides_of,
    with_failure,
)
from skdptune.accounting._profile._shared_curve import SharedCurve, calibrate_to_curve
