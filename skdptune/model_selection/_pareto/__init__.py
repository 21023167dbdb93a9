"""Pareto searches: the trade-off between privacy and utility, as optuna studies."""

from skdptune.model_selection._pareto._checks import (
    check_can_be_sent,
    check_pareto_parameters,
    check_target,
    third_name,
)
from skdptune.model_selection._pareto._families import Families
from skdptune.model_selection._pareto._plan import Study, settle_pareto, study_report
from skdptune.model_selection._pareto._result import ParetoResult
from skdptune.model_selection._pareto._run import ParetoRun, warn_of_few, warn_of_one_cost
from skdptune.model_selection._pareto._sampling import SearchSpace
from skdptune.model_selection._pareto._study import Evaluation, ParetoOptimizer, Record

__all__ = [
    "Evaluation",
    "Families",
    "ParetoOptimizer",
    "ParetoResult",
    "ParetoRun",
    "Record",
    "SearchSpace",
    "Study",
    "check_can_be_sent",
    "check_pareto_parameters",
    "check_target",
    "settle_pareto",
    "study_report",
    "third_name",
    "warn_of_few",
    "warn_of_one_cost",
]
