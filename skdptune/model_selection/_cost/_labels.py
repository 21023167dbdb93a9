"""Whether a cost may depend on the label set, so that this must be known first."""

from __future__ import annotations

from typing import Any

from skdptune.base import cost_parameters, nested_estimators, own_parameters
from skdptune.model_selection._cost._candidates import Candidates, holds_step, is_finite


def labels_set_the_cost(estimator: Any, candidates: Candidates) -> bool:
    """Return whether the cost may depend on a label set that nobody has declared yet."""
    undeclared = [
        step
        for _, step in nested_estimators(estimator)
        if own_parameters(step).get("classes", ()) is None
    ]
    if any("classes" in getattr(step, "cost_parameters", ("classes",)) for step in undeclared):
        return True
    # Other values of what sets the cost may make it depend on the labels, too.
    varied = any(cost_parameters(estimator, list(space)) for space in candidates)
    return varied and (bool(undeclared) or _searches_steps(estimator, candidates))


def _searches_steps(estimator: Any, candidates: Candidates) -> bool:
    own = estimator.get_params(deep=True)
    return any(
        hasattr(own.get(name), "get_params")
        or (is_finite(values) and holds_step(list(values), words=False))
        for space in candidates
        for name, values in space.items()
    )
