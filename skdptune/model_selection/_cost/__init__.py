"""What a search will cost: candidates, layout of the data, and noise that meets a budget."""

from skdptune.model_selection._cost._candidates import (
    DEFAULT_SHARE,
    Candidates,
    copied,
    holds_step,
    is_finite,
)
from skdptune.model_selection._cost._choice_cost import (
    ChoiceCost,
    ChoiceCostModel,
    default_choice_epsilon,
)
from skdptune.model_selection._cost._cost_model import (
    NO_NOISE,
    Cost,
    CostModel,
    ScoreNoise,
    own_delta,
    untuned_model,
)
from skdptune.model_selection._cost._costed_candidates import CostedCandidates
from skdptune.model_selection._cost._expected_gain import (
    FEW_COLUMNS,
    ExpectedGain,
    expected_loss,
)
from skdptune.model_selection._cost._fit_costs import FitCosts, FitSize, make_pure
from skdptune.model_selection._cost._fit_setting import CurveSetting, FitSetting, as_budget
from skdptune.model_selection._cost._labels import labels_set_the_cost
from skdptune.model_selection._cost._layout import Layout, make_layout, split_of
from skdptune.model_selection._cost._neighbours import neighbours_replace
from skdptune.model_selection._cost._plan import Plan
from skdptune.model_selection._cost._plan_cache import plan_cache, plan_key
from skdptune.model_selection._cost._run_counts_by_name import (
    candidate_distributions,
    runs_at_most,
)
from skdptune.model_selection._cost._search_plan import PlanRow, SearchPlan
from skdptune.model_selection._cost._table_cost import CompositionCostModel, TableCostModel
from skdptune.model_selection._cost._table_noise import (
    noise_limit,
    table_noise,
    tuning_fraction_of_table,
)

__all__ = [
    "CurveSetting",
    "DEFAULT_SHARE",
    "FEW_COLUMNS",
    "NO_NOISE",
    "Candidates",
    "ChoiceCost",
    "ChoiceCostModel",
    "CompositionCostModel",
    "Cost",
    "CostModel",
    "CostedCandidates",
    "ExpectedGain",
    "FitCosts",
    "FitSetting",
    "FitSize",
    "Layout",
    "Plan",
    "PlanRow",
    "ScoreNoise",
    "SearchPlan",
    "TableCostModel",
    "as_budget",
    "candidate_distributions",
    "copied",
    "default_choice_epsilon",
    "expected_loss",
    "holds_step",
    "is_finite",
    "labels_set_the_cost",
    "make_layout",
    "make_pure",
    "neighbours_replace",
    "noise_limit",
    "own_delta",
    "plan_cache",
    "plan_key",
    "runs_at_most",
    "split_of",
    "table_noise",
    "tuning_fraction_of_table",
    "untuned_model",
]
