"""Strategies: how a search tries candidates, what that costs, and how the winner is chosen."""

from skdptune.model_selection._strategies._adaptive_trials import (
    AdaptiveSearchSession,
    AdaptiveTrials,
)
from skdptune.model_selection._strategies._full_table import Composition, FullTable
from skdptune.model_selection._strategies._least_epsilon import LeastEpsilon
from skdptune.model_selection._strategies._partitions import NoisyMaximum
from skdptune.model_selection._strategies._random_runs import RandomRuns
from skdptune.model_selection._strategies._running_search import RunningSearch, run_file
from skdptune.model_selection._strategies._strategy import (
    BaseStrategy,
    Choice,
    Plan,
    PlanRequest,
    Strategy,
    name_of,
)
from skdptune.model_selection._strategies._threshold_rounds import (
    DoublingThresholdSession,
    ThresholdRounds,
)
