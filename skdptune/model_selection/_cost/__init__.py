""" """

from skdptune.model_selection._cost._candidates import Candidates, copied, is_finite
from skdptune.model_selection._cost._cost_model import (
    NO_NOISE,
    Cost,
    CostModel,
    ScoreNoise,
    own_delta,
)
from skdptune.model_selection._cost._costed_candidates import PricedCandidates
from skdptune.model_selection._cost._fit_costs import COMPOSITIONS, FitPrices, FitSize
from skdptune.model_selection._cost._layout import Layout, make_layout
from skdptune.model_selection._cost._noisy_choice import (
    check_pick_parameters,
    check_stand_in,
    make_pick_model,
    utilities_on_parts,
)
from skdptune.model_selection._cost._plan import (
    Choice,
    Prepared,
    dealt_for,
    named_in,
    prepared_cache,
)
from skdptune.model_selection._cost._run_counts_by_name import candidate_laws, runs_at_most
from skdptune.model_selection._cost._search_plan import PlanRow, SearchPlan

__all__ = [
    "COMPOSITIONS",
    "Candidates",
    "Choice",
    "Cost",
    "CostModel",
    "FitPrices",
    "FitSize",
    "Layout",
    "NO_NOISE",
    "PlanRow",
    "Prepared",
    "PricedCandidates",
    "ScoreNoise",
    "SearchPlan",
    "candidate_laws",
    "check_pick_parameters",
    "check_stand_in",
    "copied",
    "dealt_for",
    "is_finite",
    "make_layout",
    "make_pick_model",
    "named_in",
    "own_delta",
    "prepared_cache",
    "runs_at_most",
    "utilities_on_parts",
]
