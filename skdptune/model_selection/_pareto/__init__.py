"""Pareto searches: the trade-off between privacy and utility, computed in optuna studies."""

from skdptune.model_selection._pareto._families import (
    Families,
    ThirdObjective,
    check_pareto_parameters,
    check_picklable,
    check_target,
    check_third_objective,
    third_objective_of,
    warn_of_failures,
    warn_of_few,
    warn_of_one_cost,
)
from skdptune.model_selection._pareto._optimizer import Evaluation, ParetoOptimizer
from skdptune.model_selection._pareto._result import ParetoResult
from skdptune.model_selection._pareto._run import ParetoPlan, ParetoRun, make_pareto_plan
