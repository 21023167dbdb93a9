"""The parameters that an estimator, and those inside it, suggest to search over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from skdptune.base._nested_parameters import own_member, own_parameters
from skdptune.base._widths import width_after

# What twice the noise costs in points of accuracy at most, as measured, times epsilon and the
# number of records: where it is much, no search is worth its noise.
LOSS_OF_DOUBLING = 1e4


def suggests_a_space(estimator: Any) -> bool:
    """Return whether an estimator, or one inside it, has a ``suggested_space``."""
    if callable(own_member(estimator, "suggested_space")):
        return True
    return any(suggests_a_space(part) for _, part, _ in _parts(estimator, None))


def suggested_space(
    estimator: Any, n_samples: int, n_features: int | None
) -> dict[str, list[Any]]:
    """Return values worth searching, by the full names of the parameters; empty if there are none.

    Parameters
    ----------
    estimator : estimator
        One with a ``suggested_space``, or a composition with such estimators inside.
    n_samples : int
        Number of records; public.
    n_features : int or None
        Number of columns, if known.

    Returns
    -------
    dict of lists
        The first value of each is the one that the estimator has, by the estimator's own word.
    """
    own = own_member(estimator, "suggested_space")
    if callable(own):
        return {name: list(values) for name, values in own(n_samples, n_features).items()}
    return {
        f"{prefix}__{name}": values
        for prefix, part, width in _parts(estimator, n_features)
        for name, values in suggested_space(part, n_samples, width).items()
    }


def _parts(estimator: Any, n_features: int | None) -> Iterator[tuple[str, Any, int | None]]:
    """Iterate over the names of estimators inside one, with the number of columns, if known."""
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps:
            yield name, step, n_features
            n_features = width_after(step, n_features)
    elif isinstance(estimator, FrozenEstimator):
        return
    elif hasattr(estimator, "get_params") and not isinstance(estimator, type):
        for name, part in sorted(own_parameters(estimator).items()):
            if hasattr(part, "get_params"):
                yield name, part, None
