"""The cost of a search: candidates, layout of the data, and noise that meets a budget."""

from skdptune.model_selection._cost._candidates import (
    DEFAULT_SHARE,
    Candidates,
    check_left_to_search,
    copied,
    distinct,
    holds_step,
    is_finite,
)
from skdptune.model_selection._cost._cost import (
    NO_NOISE,
    Cost,
    CostModel,
    ScoreNoise,
    Selections,
    own_delta,
    untuned_model,
)
from skdptune.model_selection._cost._fit_costs import (
    BudgetSetting,
    CurveSetting,
    FitCosts,
    FitSetting,
    FitSize,
    NoiseSetting,
    labels_set_the_cost,
    make_pure,
    neighbours_replace,
    plan_cache,
    plan_key,
)
from skdptune.model_selection._cost._layout import Layout, make_layout, split_of
from skdptune.model_selection._cost._search_plan import PlanRow, SearchPlan
