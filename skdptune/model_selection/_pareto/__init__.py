"""Pareto searches: the trade-off between privacy and utility, computed in optuna studies."""

from skdptune.model_selection._pareto._families import (
    Families,
    ThirdObjective,
    check_picklable,
    check_relation,
    check_third_objective,
    warn_of_failures,
    warn_of_one_cost,
)
from skdptune.model_selection._pareto._optimizer import (
    Evaluation,
    ParetoOptimizer,
    check_settings,
)
from skdptune.model_selection._pareto._result import ParetoResult
from skdptune.model_selection._pareto._run import ParetoPlan, ParetoRun, make_pareto_plan
