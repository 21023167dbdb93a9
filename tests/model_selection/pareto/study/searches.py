"""Searches for tests of studies."""

from __future__ import annotations

import sys
from typing import Any

import cloudpickle
import numpy as np

from skdptune.model_selection._pareto._optimizer import Evaluation, ParetoOptimizer
from skdptune.model_selection._space import SearchSpace

# Another package may be named tests where workers look for it.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SPACE = SearchSpace({"noise": (0.1, 10.0, "log"), "kind": ["a", "b"]})


def evaluate(params: dict[str, Any], number: int, seed: np.random.SeedSequence) -> Evaluation:
    coin = np.random.default_rng(seed).random()
    utility = 1.0 / (1.0 + params["noise"]) * (1.0 if params["kind"] == "a" else 0.8)
    return Evaluation(3.0 / params["noise"], (utility, utility * coin))


def optimizer(function: Any = evaluate, **given: Any) -> ParetoOptimizer:
    chosen = {"n_initial": 5, "n_iter": 10, "random_state": 0, **given}
    return ParetoOptimizer(function, SPACE, **chosen)


def ran(function: Any = evaluate, **given: Any) -> ParetoOptimizer:
    made = optimizer(function, **given)
    made.run()
    return made


def results(made: ParetoOptimizer) -> list[tuple[Any, ...]]:
    return [
        (record.number, record.params, record.evaluation.epsilon, record.evaluation.utilities)
        for record in made.records()
    ]
