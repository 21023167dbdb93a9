"""What a guarantee is about: neighbours that differ by adding a record, or by replacing one."""

from __future__ import annotations

from typing import Any

from skdptune.base import cost_of, has_cost, nested_estimators, replaces_records
from skdptune.model_selection._cost._candidates import Candidates, is_finite
from skdptune.model_selection._cost._fit_costs import COMPOSITIONS
from skdptune.model_selection._running import is_search


def neighbours_replace(
    estimator: Any, candidates: Candidates, n_samples: int, n_features: int | None
) -> bool:
    """Return whether neighbours differ by replacing a record; refuse a mixture of relations."""
    # Theorem F8.
    searched = [
        step
        for space in candidates
        for values in space.values()
        if is_finite(values)
        for step in values
        if hasattr(step, "get_params")
    ]
    steps = [step for one in (estimator, *searched) for _, step in nested_estimators(one)]
    if not any(replaces_records(step) for step in steps):
        return False
    # What costs nothing is of either kind, and compositions are what they hold.
    if any(_adds_records(step, n_samples, n_features) for step in steps):
        raise TypeError(
            "estimator must hold private steps of one kind; got some whose guarantee is about "
            "adding or removing a record, and some about replacing one."
        )
    return True


def _adds_records(step: Any, n_samples: int, n_features: int | None) -> bool:
    """Return whether a step has a cost that is about adding or removing a record."""
    if replaces_records(step) or not has_cost(step) or isinstance(step, COMPOSITIONS):
        return False
    if is_search(step):
        return False
    try:
        return bool(cost_of(step, n_samples, n_features).epsilon(0.0) > 0.0)
    except (TypeError, ValueError):
        # Its parameters may be what is searched.
        return True
