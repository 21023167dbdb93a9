"""Private searches: tuned, trained and paid for with one (epsilon, delta)."""

from skdptune.model_selection._adaptive import AdaptiveTrial
from skdptune.model_selection._adaptive_search import DPAdaptiveSearchCV
from skdptune.model_selection._cost import PlanRow, SearchPlan
from skdptune.model_selection._doubling_threshold_search import DoublingThresholdSearchCV
from skdptune.model_selection._dpareto_search import DParetoSearchCV, ParetoFront
from skdptune.model_selection._grid_search import DPGridSearchCV
from skdptune.model_selection._hold_out import HoldOut
from skdptune.model_selection._pareto import ParetoResult
from skdptune.model_selection._pareto_search import pareto_search
from skdptune.model_selection._random_search import DPRandomSearchCV
from skdptune.model_selection._strategies import (
    AdaptiveSearchSession,
    AdaptiveTrials,
    Composition,
    DoublingThresholdSession,
    FullTable,
    LeastEpsilon,
    NoisyMaximum,
    RandomRuns,
    ThresholdRounds,
)

__all__ = [
    "AdaptiveSearchSession",
    "AdaptiveTrial",
    "AdaptiveTrials",
    "Composition",
    "DPAdaptiveSearchCV",
    "DPGridSearchCV",
    "DPRandomSearchCV",
    "DParetoSearchCV",
    "DoublingThresholdSearchCV",
    "DoublingThresholdSession",
    "FullTable",
    "HoldOut",
    "LeastEpsilon",
    "NoisyMaximum",
    "ParetoFront",
    "ParetoResult",
    "PlanRow",
    "RandomRuns",
    "SearchPlan",
    "ThresholdRounds",
    "pareto_search",
]
