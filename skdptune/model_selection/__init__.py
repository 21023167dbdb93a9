"""Private searches: tuned, trained and paid for with one (epsilon, delta)."""

from skdptune.model_selection._adaptive import AdaptiveSearchSession, AdaptiveTrial
from skdptune.model_selection._adaptive_search import DPAdaptiveSearchCV
from skdptune.model_selection._cost import PlanRow, SearchPlan
from skdptune.model_selection._doubling import DoublingThresholdSession
from skdptune.model_selection._doubling_threshold_search import DoublingThresholdSearchCV
from skdptune.model_selection._dpareto_search import DParetoSearchCV
from skdptune.model_selection._grid_search import DPGridSearchCV
from skdptune.model_selection._pareto import ParetoResult
from skdptune.model_selection._pareto_search import pareto_search
from skdptune.model_selection._random_search import DPRandomSearchCV

__all__ = [
    "AdaptiveSearchSession",
    "AdaptiveTrial",
    "DPAdaptiveSearchCV",
    "DPGridSearchCV",
    "DPRandomSearchCV",
    "DParetoSearchCV",
    "DoublingThresholdSearchCV",
    "DoublingThresholdSession",
    "ParetoResult",
    "PlanRow",
    "SearchPlan",
    "pareto_search",
]
