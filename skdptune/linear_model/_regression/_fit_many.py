"""Many regressions fitted in one pass over the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skdptune.base import Records, target_range
from skdptune.linear_model._regression._sufficient_statistics import SufficientStatistics

if TYPE_CHECKING:
    from skdptune.linear_model._regression._private_regressor import PrivateLinearRegressor


def fit_in_one_pass(
    models: list[PrivateLinearRegressor], X: Any, y: Any, return_exceptions: bool
) -> list[Any]:
    """Return the regressions, fitted to sums that those with the same bounds share.

    Parameters
    ----------
    models : list of PrivateLinearRegressor
        With valid parameters.
    X, y
        As for `PrivateLinearRegressor.fit`.
    return_exceptions : bool
        Whether the exception of a fit that fails is put in the result instead of raised.
    """
    is_read_once = isinstance(X, Iterator)
    if is_read_once and len({_bounds_of(model) for model in models}) > 1:
        raise ValueError(
            "estimators must agree on data_norm, target_bound and fit_intercept where X is an "
            "iterator, which can be read once; got several."
        )
    shared: dict[tuple[Any, ...], tuple[Any, SufficientStatistics, int, Records | None]] = {}
    known: dict[bool, tuple[Any, tuple[Any, Any]]] = {}
    outcomes: list[Any] = []
    for model in models:
        # Whether empty data are refused depends on n_public.
        is_strict = is_read_once or model.n_public is None
        key = (*_bounds_of(model), is_strict)
        try:
            if key not in shared:
                # What was read from a list or a table is in memory once, not for all bounds.
                first, data = known.get(is_strict, (model, (X, y)))
                shared[key] = (first, *model._statistics_of(*data))
                known[is_strict] = (first, shared[key][-1] or data)
            first, statistics, n_samples, records = shared[key]
            _copy_features(first, model)
            outcomes.append(model._fit_checked(statistics, n_samples, records))
        except Exception as problem:
            if not return_exceptions:
                raise
            outcomes.append(problem)
    return outcomes


def _bounds_of(model: PrivateLinearRegressor) -> tuple[Any, ...]:
    """Return what decides the sums that a model needs."""
    return (model.data_norm, target_range(model.target_bound), model.fit_intercept)


def _copy_features(source: Any, model: Any) -> None:
    """Copy what a fit learns about the columns."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(source, name):
            setattr(model, name, getattr(source, name))
        else:
            vars(model).pop(name, None)
