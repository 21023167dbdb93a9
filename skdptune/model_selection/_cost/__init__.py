""" """

from skdptune.model_selection._cost._candidates import Candidates, copied, is_finite
from skdptune.model_selection._cost._cost_model import (
    NO_NOISE,
    Cost,
    CostModel,
    ScoreNoise,
    own_delta,
)
from skdptune.model_selection._cost._costed_candidates import CostedCandidates
from skdptune.model_selection._cost._fit_costs import COMPOSITIONS, FitCosts, FitSize
from skdptune.model_selection._cost._layout import Layout, make_layout
from skdptune.model_selection._cost._noisy_choice import (
    check_pick_parameters,
    check_surrogate_estimator,
    make_pick_model,
    utilities_on_parts,
)
from skdptune.model_selection._cost._plan import (
    Choice,
    Plan,
    named_in,
    plan_cache,
    split_for,
)
from skdptune.model_selection._cost._run_counts_by_name import (
    candidate_distributions,
    runs_at_most,
)
from skdptune.model_selection._cost._search_plan import PlanRow, SearchPlan

__all__ = [
    "COMPOSITIONS",
    "Candidates",
    "Choice",
    "Cost",
    "CostModel",
    "FitCosts",
    "FitSize",
    "Layout",
    "NO_NOISE",
    "PlanRow",
    "Plan",
    "CostedCandidates",
    "ScoreNoise",
    "SearchPlan",
    "candidate_distributions",
    "check_pick_parameters",
    "check_surrogate_estimator",
    "copied",
    "split_for",
    "is_finite",
    "make_layout",
    "make_pick_model",
    "named_in",
    "own_delta",
    "plan_cache",
    "runs_at_most",
    "utilities_on_parts",
]
