"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.accounting._closed_forms import gaussian_delta
from skdptune.accounting._gaussian_filter import charge_of
from skdptune.accounting._loss_distribution import LARGEST_LOSS
from skdptune.accounting._persons_minimum import persons_minimum_curves
from skdptune.accounting._posterior_sample import covered_squared_residual
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
from skdptune.accounting._selection_bounds import BOUNDS
from skdptune.accounting._statement import ReleaseFacts, includes_tuning
from skdptune.accounting._tune_then_fit import VARIANTS
