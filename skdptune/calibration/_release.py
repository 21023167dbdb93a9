"""What private estimators around a model share: attributes, fits by persons, values of records."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from skdptune._compat import (
    number_of_samples,
    safe_indexing,
)
from skdptune.base._shared import (
    ADVICE,
    GROUPS,
    OTHER_SOLVER,
    OWN_USE,
    Budget,
    as_table,
    by_halves,
    by_persons,
    finite_rows,
    named_like,
    private_steps,
    reads_numbers,
    refusal_of,
    set_budget,
)

# Predictions with and without other records differ by rounding, which is less than this.
_ROUNDING = 1e-3


class AnswersForFitted:
    """Columns and readiness of an estimator that answers for the model fitted inside it."""

    _inside: ClassVar[str] = "estimator_"

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return int(self._fitted("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns, if they had any."""
        names: NDArray[Any] = self._fitted("feature_names_in_")
        return names

    def _fitted(self, name: str) -> Any:
        if self._inside not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no {name} before its fit.")
        return getattr(getattr(self, self._inside), name)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has ended without an error."""
        return "privacy_" in vars(self)


def if_model_has(name: str) -> Any:
    """Return a decorator for a method that exists if the model inside has it."""

    def check(self: Any) -> bool:
        return hasattr(getattr(self, "estimator_", self.estimator), name)

    return available_if(check)


# Fits by persons ---------------------------------------------------------------------------


def refusal_by_persons(estimator: Any, budget: Callable[[], tuple[float, float]]) -> str | None:
    """Return None if an estimator fits by persons at the cost of single records, or a message.

    The cost is that with the budget which the estimator is given: a delta of 0 may choose another
    solver. An estimator whose fits by persons have another cost is refused (Theorem M8).
    """
    inner = clone(estimator)
    parts = [inner]
    if isinstance(inner, Pipeline):
        parts = [*private_steps(inner).values(), inner.steps[-1][1]]

    def refused() -> str | None:
        answers = (refusal_of(part, GROUPS) for part in parts)
        words = next((words for words in answers if words is not None), None)
        # No class inside gets the groups for its own use.
        return ADVICE[GROUPS] if words == OWN_USE else words

    words = refused()
    if words is not None:
        return words
    given = Budget(*budget())
    if math.isfinite(given.epsilon):
        set_budget(inner, given)
    return OTHER_SOLVER if any(by_persons(part) is not part for part in parts) else refused()


# The path of one record to its cell --------------------------------------------------------


def values_of_records(
    model: Any, X: Any, value_of: Callable[[Any], NDArray[np.float64]]
) -> tuple[NDArray[np.float64], Callable[[int], float]]:
    """Return a number for each record, and a function that computes it without the other records.

    Parameters
    ----------
    model : estimator
        Fitted; its predictions depend on other records by rounding only.
    X : array-like
    value_of : callable
        Returns the numbers of records. A record for which it fails has NaN.

    Notes
    -----
    Theorem Q1, Theorem R5.
    """
    X = as_table(X)
    validate_data(model, X, reset=False, skip_check_array=True)
    size = number_of_samples(X)
    improper = np.zeros(size, dtype=bool)
    rows = X
    held = model.estimator if isinstance(model, FrozenEstimator) else model
    if reads_numbers(getattr(held, "best_estimator_", held)):
        numbers, improper = finite_rows(X)
        rows = named_like(X, numbers)
    if not size:
        return np.zeros(0), lambda place: math.nan
    # Warnings would reveal something about the data.
    with np.errstate(all="ignore"):
        parts = by_halves(value_of, rows, lambda record: np.array([math.nan]))
    values = np.concatenate([found for _, found in parts])
    values[improper] = math.nan

    def alone(place: int) -> float:
        with np.errstate(all="ignore"):
            record = safe_indexing(rows, np.array([place]))
            return float(by_halves(value_of, record, lambda one: np.array([math.nan]))[0][1][0])

    return values, alone


def cells_of(
    values: NDArray[np.float64], alone: Callable[[int], float], edges: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Return the place of each number among inner edges, -1 for NaN.

    A number near an edge is computed again without the other records, so that their influence by
    rounding cannot change a cell.

    Notes
    -----
    Theorem Q1.
    """
    values = values.copy()
    above = np.clip(np.searchsorted(edges, values), 1, edges.size - 1)
    distance = np.minimum(np.abs(values - edges[above - 1]), np.abs(values - edges[above]))
    for place in np.flatnonzero(distance < _ROUNDING):
        values[place] = alone(int(place))
    cells = np.searchsorted(edges, values, side="right").astype(np.intp)
    return np.where(np.isnan(values), -1, cells)
