""" """

from skdptune.accounting._profile._calibration import (
    Calibration,
    UnreachableBudgetError,
    calibrate,
)
from skdptune.accounting._profile._failure import with_failure
from skdptune.accounting._profile._profile import DIRECTIONS, PrivacyProfile

__all__ = [
    "Calibration",
    "DIRECTIONS",
    "PrivacyProfile",
    "UnreachableBudgetError",
    "calibrate",
    "with_failure",
]
