"""Doubling threshold searches over scripted learners, for the tests of them."""

from __future__ import annotations

from typing import Any

from skdptune.model_selection import DoublingThresholdSearchCV
from tests.flat import flat
from tests.model_selection.learners import Scripted, table

DELTA = 1e-5
X, Y = table(1200)
GRID = {"quality": [0.15, 0.95, 0.55]}
# A budget so large that noise does not matter.
LOUD = {"selection_epsilon": 400.0, "n_partitions": 4, "granularity": 0.05}


def search(values: Any = None, **more: Any) -> DoublingThresholdSearchCV:
    settings = {"delta": DELTA, "random_state": 0, "n_partitions": 4, **more}
    estimator = settings.pop("estimator", Scripted(epsilon=1.0, delta=DELTA))
    if "param_distributions" in settings:
        return flat(DoublingThresholdSearchCV, estimator, **settings)
    return flat(
        DoublingThresholdSearchCV, estimator, GRID if values is None else values, **settings
    )


class Expensive(Scripted):
    """Says that its mark may set the cost."""

    cost_parameters = frozenset({"epsilon", "delta", "mark"})
