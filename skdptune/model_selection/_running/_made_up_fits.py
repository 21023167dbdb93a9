"""Fits to made-up data: the fallback model, and a trial of estimators before any data are read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune.base import declared_labels, nested_estimators
from skdptune.model_selection._running._data import Data
from skdptune.model_selection._running._engine import is_failure
from skdptune.model_selection._running._made_up import made_up_like
from skdptune.model_selection._running._quiet import Quiet
from skdptune.model_selection._running._record_by_record import fit_record_by_record

# Estimators of a search, at most, of which one must be fit for the form of the data.
N_TRIED = 16
_PER_LABEL = 3
# Records with which a fit that fails on fewer is tried again, unless there are fewer.
_MORE = 1000
_MOST_NUMBERS = 10**7
# Whose estimators check their own parameters, and whose steps are checked by `check_steps`.
_CHECKED = ("skdptune.", "sklearn.")


def data_independent_model(estimator: Any, data: Data, n_samples: int) -> Any:
    """Return a data-independent model: fitted to nothing but the form of the data.

    Parameters
    ----------
    estimator : estimator
    data : Data
        Its form alone is used: columns, names and types.
    n_samples : int
        Public number of records.

    Returns
    -------
    estimator
        A fitted copy; one that is not fitted if no made-up data can be fitted.

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

    Whatever the real data hold, the final fit would fail as well, and be paid for.

    Parameters
    ----------
    estimators : iterable of estimators
        In turn, until one can be fitted; those of this package's own linear models check their
        parameters by themselves and are not tried.
    data : Data
        Its form alone is used: columns, names and types.
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
        if not _has_foreign_code(estimator):
            return
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


def _fitted_to_made_up(
    estimator: Any, data: Data, n_samples: int, response: str | None = None
) -> Any:
    """Return a copy that is fitted to made-up data: to few, or to more if that fails."""
    labels = np.asarray(declared_labels(estimator) or [0.0, 1.0])
    *others, last = _attempts(data.X, _PER_LABEL * labels.size, n_samples)
    for size, with_words in others:
        try:
            return _fitted_to(estimator, data, np.resize(labels, size), with_words, response)
        except BaseException as problem:
            if not is_failure(problem):
                raise
    size, with_words = last
    return _fitted_to(estimator, data, np.resize(labels, size), with_words, response)


def _attempts(X: Any, few: int, n_samples: int) -> list[tuple[int, bool]]:
    """Return numbers of made-up records, each with words and without in columns for anything."""
    width = int(np.prod(np.shape(X)[1:])) if hasattr(X, "shape") else 1
    sizes = [few, *sorted({min(n_samples, _MORE), n_samples} - {few})]
    return [
        (size, with_words)
        for size in sizes
        if size == few or size * width <= _MOST_NUMBERS
        for with_words in (True, False)
    ]


def _fitted_to(
    estimator: Any, data: Data, labels: Any, with_words: bool, response: str | None
) -> Any:
    made, blank = clone(estimator), made_up_like(data.X, labels.size, with_words=with_words)
    if blank is None:
        return made
    with Quiet(), np.errstate(all="ignore"):
        fit_record_by_record(made, blank, _targets_like(data.y, labels))
        if response is not None:
            getattr(made, response)(blank)
    return made


def _targets_like(y: Any, labels: Any) -> Any:
    """Return targets in as many columns as others have."""
    columns = np.shape(y)[1:] if hasattr(y, "shape") else ()
    return np.broadcast_to(labels.reshape(-1, *[1] * len(columns)), (labels.size, *columns)).copy()


def _has_foreign_code(estimator: Any) -> bool:
    """Return whether a fit runs code that is not of this package, by steps or by modules."""
    return any(
        not type(step).__module__.startswith(_CHECKED) or hasattr(step, "module")
        for _, step in nested_estimators(estimator)
    )
