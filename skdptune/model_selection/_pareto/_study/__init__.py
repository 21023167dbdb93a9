"""Filling an optuna study: evaluations by workers, kept in a storage, resumed after crashes."""

from skdptune.model_selection._pareto._study._loop import Evaluation, Record
from skdptune.model_selection._pareto._study._optimizer import (
    ParetoOptimizer,
    check_epsilon_scale,
    check_reference_point,
)
from skdptune.model_selection._pareto._study._storage import (
    StorageParameter,
    open_storage,
    optuna,
    quiet_optuna,
)

__all__ = [
    "Evaluation",
    "ParetoOptimizer",
    "Record",
    "StorageParameter",
    "check_epsilon_scale",
    "check_reference_point",
    "open_storage",
    "optuna",
    "quiet_optuna",
]
