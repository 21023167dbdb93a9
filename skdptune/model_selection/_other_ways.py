"""Other ways to search the same candidates for the same total, for the table of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sklearn.base import clone

from skdptune.model_selection._cost import Candidates, Plan, PlanRow, is_finite

# From what is searched, the number of candidates and the parameters that all searches share to a
# search, or to None where it cannot search them; each search that can take the place of others
# registers itself here.
MakeSearch = Callable[[Any, Candidates, int, dict[str, Any]], Any]
WAYS: dict[str, MakeSearch] = {}
# Parameters that all searches share, and that mean the same in each.
_SHARED = ("epsilon", "delta", "scoring", "n_public")


def rows_of_other_ways(search: Any, plan: Plan, n_samples: int, count: int) -> Iterator[PlanRow]:
    """Iterate over rows of the other ways that can meet the total.

    Parameters
    ----------
    search : estimator
        The search whose plan this is.
    plan : Plan
    n_samples : int
    count : int
        Number of candidates, of a search that makes a random number of runs about the mean.
    """
    cv = search.cv if plan.layout.folds == 0 else 0.2
    shared = {**{name: getattr(search, name) for name in _SHARED}, "cv": cv}
    own = search._way_in_words(plan)
    for name, make in WAYS.items():
        if name == own:
            continue
        other = make(clone(search.estimator), plan.candidates, count, shared)
        if other is None:
            continue
        try:
            found = other._make_plan(
                n_samples, plan.layout.n_features, is_public=plan.layout.public
            )
        except (TypeError, ValueError):
            continue
        yield other._row(found.declined or found, name)


def one_space(estimator: Any, candidates: Candidates) -> dict[str, Any] | None:
    """Return the values of all parameters if any may go with any other, else None.

    What the estimator has itself, which searches add, counts as no other combination.
    """
    if candidates.suggestion is not None:
        return {name: list(values) for name, values in candidates.suggestion.items()}
    own = estimator.get_params(deep=True)
    others = [
        space
        for space in candidates
        if not all(
            is_finite(values) and len(values) == 1 and values[0] is own.get(name, values)
            for name, values in space.items()
        )
    ]
    return dict(others[0]) if len(others) == 1 else None


def listed(candidates: Candidates, count: int) -> list[dict[str, list[Any]]]:
    """Return about as many candidates as a grid of one value each: all of a grid."""
    is_grid = not candidates.drawn or candidates.suggestion is not None
    found = list(candidates.grid()) if is_grid else candidates.some(count)
    return [{name: [value] for name, value in each.items()} for each in found]
