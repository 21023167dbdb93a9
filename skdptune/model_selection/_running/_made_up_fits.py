"""Fit estimators to made-up data: as a fallback model, and as a trial before data are read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune.base._shared import by_halves, nested_estimators
from skdptune.model_selection._running._data import Data
from skdptune.model_selection._running._engine import is_failure
from skdptune.model_selection._running._made_up import made_up_sizes
from skdptune.model_selection._running._quiet import Quiet

# Largest number of a search's estimators that are tried; one must suit the form of the data.
N_TRIED = 16
_PER_LABEL = 3


def data_independent_model(estimator: Any, data: Data, n_samples: int) -> Any:
    """Return a data-independent model, fitted to made-up data with the form of the given data.

    Parameters
    ----------
    estimator : estimator
    data : Data
        Only its form is used: columns, names and types.
    n_samples : int
        Public number of records.

    Returns
    -------
    estimator
        A fitted copy; it is not fitted if no made-up data can be fitted.

    Notes
    -----
    Theorem R6.
    """
    try:
        return _fitted_to_made_up(estimator, data, n_samples)
    except BaseException as problem:
        if not is_failure(problem):
            raise
        return clone(estimator)


def check_fits(estimators: Iterable[Any], data: Data, n_samples: int, response: str) -> None:
    """Raise if no estimator can be fitted to made-up data and then predict.

    In that case the final fit would fail as well, whatever the real data hold, and be paid for.

    Parameters
    ----------
    estimators : iterable of estimators
        They are tried in turn, until one can be fitted.
    data : Data
        Only its form is used: columns, names and types.
    n_samples : int
        Public number of records.
    response : str
        Method whose output the scores need.

    Notes
    -----
    Theorem R6: the exception is about made-up data.
    """
    first: BaseException | None = None
    # Further arguments of `fit` cannot be made up.
    if data.per_record or data.constant:
        return
    for estimator in estimators:
        try:
            _fitted_to_made_up(estimator, data, n_samples, response)
            return
        except BaseException as problem:
            if not is_failure(problem):
                raise
            first = first or problem
    if first is not None:
        raise ValueError(
            "estimator must be one that can be fitted to data of this form; on made-up data it "
            f"raised {type(first).__name__}: {first}"
        ) from first


def check_fits_of_nothing(estimators: Iterable[Any], data: Data, *, varies: bool) -> None:
    """Raise if estimators of some kind cannot be fitted without any record.

    A public rule may hold out all records, and noise does not hide a failure.

    Parameters
    ----------
    estimators : iterable of estimators
        Of the estimators whose steps have the same classes, one must be fitted.
    data : Data
        Only its form is used.
    varies : bool
        Whether the steps of estimators may have different classes.

    Notes
    -----
    Theorem T9.
    """
    nothing = data.take(np.arange(0))
    problems: dict[Any, BaseException | None] = {}
    for estimator in estimators:
        kind = tuple(type(step) for _, step in nested_estimators(estimator))
        if problems.get(kind, "untried") is None:
            continue
        try:
            with Quiet(), np.errstate(all="ignore"):
                nothing.fit(clone(estimator))
            problems[kind] = None
            if not varies:
                return
        except BaseException as problem:
            if not is_failure(problem):
                raise
            problems.setdefault(kind, problem)
    for failure in filter(None, problems.values()):
        raise ValueError(
            "cv must be a fraction for this estimator; got HoldOut. A rule may hold out all "
            f"records, and a fit of none must not fail; it raised {type(failure).__name__}: "
            f"{failure}"
        ) from failure


def _fitted_to_made_up(
    estimator: Any, data: Data, n_samples: int, response: str | None = None
) -> Any:
    """Return a copy that is fitted to few made-up records, or to more if that fails."""
    n_labels = len(data.door.labels or [0.0, 1.0])
    sizes = made_up_sizes(data.X, _PER_LABEL * n_labels, n_samples)
    *others, last = ((size, with_words) for size in sizes for with_words in (True, False))
    for size, with_words in others:
        try:
            return _fitted_to(estimator, data, size, with_words, response)
        except BaseException as problem:
            if not is_failure(problem):
                raise
    return _fitted_to(estimator, data, *last, response)


def _fitted_to(
    estimator: Any, data: Data, size: int, with_words: bool, response: str | None
) -> Any:
    # The estimator must tolerate an improper record, as the user's data may hold one.
    made = clone(estimator)
    blank = data.made_up(size, with_words=with_words, has_gap=response is not None)
    if blank is None:
        return made
    with Quiet(), np.errstate(all="ignore"):
        blank.fit(made)
        if response is not None:
            _check_response(getattr(made, response), blank.X)
    return made


def _check_response(method: Any, X: Any) -> None:
    """Raise if a model cannot predict any record; single failing records get the worst score."""
    parts = by_halves(method, X, lambda record: None)
    if all(result is None for _, result in parts):
        method(X)
