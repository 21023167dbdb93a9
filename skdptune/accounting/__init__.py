"""What releases cost: privacy profiles, private selection, tuning on a sample of the data.

Everything here is about neighbouring data sets that differ by one record, added or
removed, and errs on the safe side: a profile is an upper bound at every epsilon.
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

# isort: split
# For the other folders of this package.
from skdptune.accounting._budgets import charge_of as charge_of
from skdptune.accounting._losses import LARGEST_LOSS as LARGEST_LOSS
from skdptune.accounting._losses import gaussian_delta as gaussian_delta
from skdptune.accounting._mechanisms import covered_squared_residual as covered_squared_residual
from skdptune.accounting._report import ReportView as ReportView
from skdptune.accounting._report import Row as Row
from skdptune.accounting._report import one_line as one_line
from skdptune.accounting._report import to_html as to_html
from skdptune.accounting._report import to_text as to_text
from skdptune.accounting._run_counts import check_distribution as check_distribution
from skdptune.accounting._selection import BOUNDS as BOUNDS
from skdptune.accounting._statement import ReleaseFacts as ReleaseFacts
from skdptune.accounting._statement import includes_tuning as includes_tuning
from skdptune.accounting._tuning import VARIANTS as VARIANTS

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
