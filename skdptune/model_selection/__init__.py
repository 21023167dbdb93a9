"""Private searches: tuned, trained and paid for with one (epsilon, delta)."""

from skdptune.model_selection._doubling import DoublingThresholdSearchCV
from skdptune.model_selection._doubling_session import DoublingThresholdSession
from skdptune.model_selection._grid import DPGridSearchCV
from skdptune.model_selection._pareto import DParetoSearchCV
from skdptune.model_selection._pareto_result import ParetoResult
from skdptune.model_selection._pareto_search import pareto_search
from skdptune.model_selection._plan import PlanRow, SearchPlan
from skdptune.model_selection._random import DPRandomSearchCV

__all__ = [
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
