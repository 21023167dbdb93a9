"""Privacy costs of releases: privacy profiles, private selection, tuning on a part of the data.

All guarantees here are about neighbouring data sets that differ by one record, added or removed.
All computations are conservative: a profile is an upper bound at every epsilon.
"""

from skdptune.accounting._budget_filter import BudgetExceededError, BudgetFilter
from skdptune.accounting._calibration import (
    Calibration,
    SharedCurve,
    UnreachableBudgetError,
    calibrate,
    calibrate_to_curve,
)
from skdptune.accounting._comparison import BoundComparison, compare_bounds, selection_lower_bound
from skdptune.accounting._distributions import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    TruncatedNegativeBinomial,
)
from skdptune.accounting._gaussian_filter import GaussianFilter
from skdptune.accounting._noisy_max import (
    exponential_mechanism,
    permute_and_flip,
    report_noisy_max,
)
from skdptune.accounting._posterior_sample import (
    largest_squared_residual,
    posterior_sample,
    printed_posterior_epsilon,
)
from skdptune.accounting._profile import PrivacyProfile, with_failure
from skdptune.accounting._random_allocation import random_allocation
from skdptune.accounting._renyi_filter import RenyiFilter, suitable_order
from skdptune.accounting._report import PrivacyReport
from skdptune.accounting._run_counts import RunCountDistribution
from skdptune.accounting._selection_bounds import BoundNotApplicableError
from skdptune.accounting._splitting import mixture, search_on_split
from skdptune.accounting._statement import PrivacyStatement
from skdptune.accounting._thresholds import (
    above_threshold,
    doubling_threshold,
    sparse_vector,
    sparse_vector_split,
)
from skdptune.accounting._tune_then_fit import tune_then_fit

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
