"""What releases cost: privacy profiles, private selection, tuning on a part of the data.

Everything here is about neighbouring data sets that differ by one record, added or
removed, and errs on the safe side: a profile is an upper bound at every epsilon.
"""

from skdptune.accounting._budget_filter import BudgetExceededError, BudgetFilter
from skdptune.accounting._calibration import Calibration, UnreachableBudgetError, calibrate
from skdptune.accounting._comparison import BoundComparison, compare_bounds
from skdptune.accounting._failure import with_failure
from skdptune.accounting._filters import RenyiFilter, suitable_order
from skdptune.accounting._laws import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    RunLaw,
    TruncatedNegativeBinomial,
)
from skdptune.accounting._lower_bound import selection_lower_bound
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
from skdptune.accounting._profile import PrivacyProfile
from skdptune.accounting._report import PrivacyReport
from skdptune.accounting._selection import BoundNotApplicableError
from skdptune.accounting._splitting import mixture, search_on_split
from skdptune.accounting._thresholds import (
    above_threshold,
    doubling_walk,
    sparse_vector,
    sparse_vector_split,
)
from skdptune.accounting._tuning import tune_then_fit

__all__ = [
    "Binomial",
    "BoundComparison",
    "BoundNotApplicableError",
    "BudgetExceededError",
    "BudgetFilter",
    "Calibration",
    "Geometric",
    "Logarithmic",
    "Poisson",
    "PrivacyProfile",
    "PrivacyReport",
    "RenyiFilter",
    "RunLaw",
    "TruncatedNegativeBinomial",
    "UnreachableBudgetError",
    "above_threshold",
    "calibrate",
    "compare_bounds",
    "doubling_walk",
    "exponential_mechanism",
    "largest_squared_residual",
    "mixture",
    "permute_and_flip",
    "posterior_sample",
    "printed_posterior_epsilon",
    "report_noisy_max",
    "search_on_split",
    "selection_lower_bound",
    "sparse_vector",
    "sparse_vector_split",
    "suitable_order",
    "tune_then_fit",
    "with_failure",
]
