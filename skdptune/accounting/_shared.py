"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.accounting._budgets import charge_of
from skdptune.accounting._losses import LARGEST_LOSS, gaussian_delta
from skdptune.accounting._mechanisms import covered_squared_residual, persons_minimum_curves
from skdptune.accounting._report import (
    ReportView,
    Row,
    added_epsilons,
    adds,
    figures_of_parts,
    one_line,
    to_html,
    to_text,
)
from skdptune.accounting._run_counts import check_distribution
from skdptune.accounting._selection import BOUNDS
from skdptune.accounting._statement import ReleaseFacts, includes_tuning
from skdptune.accounting._tuning import VARIANTS
