"""Privacy costs of releases: privacy profiles, private selection, tuning on a part of the data.

All guarantees here are about neighbouring data sets that differ by one record, added or removed.
All computations are conservative: a profile is an upper bound at every epsilon.
"""

from skdptune.accounting._budgets import (
    BudgetExceededError,
    BudgetFilter,
    GaussianFilter,
    RenyiFilter,
    suitable_order,
)
from skdptune.accounting._mechanisms import (
    above_threshold,
    doubling_threshold,
    exponential_mechanism,
    largest_squared_residual,
    permute_and_flip,
    posterior_sample,
    printed_posterior_epsilon,
    random_allocation,
    report_noisy_max,
    sparse_vector,
    sparse_vector_split,
)
from skdptune.accounting._profile import (
    Calibration,
    PrivacyProfile,
    SharedCurve,
    UnreachableBudgetError,
    calibrate,
    calibrate_to_curve,
    with_failure,
)
from skdptune.accounting._report import PrivacyReport
from skdptune.accounting._run_counts import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    RunCountDistribution,
    TruncatedNegativeBinomial,
)
from skdptune.accounting._selection import BoundNotApplicableError
from skdptune.accounting._statement import PrivacyStatement
from skdptune.accounting._tuning import (
    BoundComparison,
    compare_bounds,
    mixture,
    search_on_split,
    selection_lower_bound,
    tune_then_fit,
)

__all__ = [
    "Binomial",
    "BoundComparison",
    "BoundNotApplicableError",
    "BudgetExceededError",
    "BudgetFilter",
    "Calibration",
    "GaussianFilter",
    "Geometric",
    "Logarithmic",
    "Poisson",
    "PrivacyProfile",
    "PrivacyReport",
    "PrivacyStatement",
    "RenyiFilter",
    "RunCountDistribution",
    "SharedCurve",
    "TruncatedNegativeBinomial",
    "UnreachableBudgetError",
    "above_threshold",
    "calibrate",
    "calibrate_to_curve",
    "compare_bounds",
    "doubling_threshold",
    "exponential_mechanism",
    "largest_squared_residual",
    "mixture",
    "permute_and_flip",
    "posterior_sample",
    "printed_posterior_epsilon",
    "random_allocation",
    "report_noisy_max",
    "search_on_split",
    "selection_lower_bound",
    "sparse_vector",
    "sparse_vector_split",
    "suitable_order",
    "tune_then_fit",
    "with_failure",
]
