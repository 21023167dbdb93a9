"""Candidates as points, so that those with close values are close."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Positive values that span more than this are spaced by their logarithms.
_LONGEST_LINEAR_SPAN = 10.0
# What a number and a category share of a squared distance: different categories are 1 apart.
_INDICATOR = math.sqrt(0.5)
_NUMBER, _LACKING = "a number", "lacking"


def encode(candidates: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return candidates as points, so that those with close values are close.

    Parameters
    ----------
    candidates : sequence of mappings
        From names of parameters to values of any kind; a candidate may lack some. Public.

    Returns
    -------
    ndarray of shape (n_candidates, n_columns)
        A parameter's numbers are an axis from 0 to 1, by logarithms where they are positive (or
        0) and span more than a factor of 10. Everything else, a lacking parameter included, is a
        category, and two different ones are 1 apart; where a parameter has both, being a number
        is a category as well. A parameter that all candidates share has no column.

    Examples
    --------
    >>> from skdptune.model_selection._choosing import encode
    >>> encode([{"C": 0.01}, {"C": 1.0}, {"C": 100.0}]).ravel()
    array([0. , 0.5, 1. ])
    >>> encode([{"loss": "hinge"}, {"loss": "log"}, {"loss": "hinge"}]).round(1)
    array([[0.7, 0. ],
           [0. , 0.7],
           [0.7, 0. ]])
    """
    names = sorted({name for candidate in candidates for name in candidate})
    columns = [column for name in names for column in _columns_of(candidates, name)]
    return np.array(columns).reshape(len(columns), len(candidates)).T.copy()


def _columns_of(candidates: Sequence[Mapping[str, Any]], name: str) -> list[np.ndarray]:
    """Return the axis of a parameter's numbers, and the indicators of its categories."""
    found = [
        _number_or_key(candidate[name]) if name in candidate else _LACKING
        for candidate in candidates
    ]
    given = np.array([isinstance(value, float) for value in found], dtype=bool)
    kinds = [_NUMBER if isinstance(value, float) else value for value in found]
    values = np.array([value if isinstance(value, float) else math.nan for value in found])
    columns = []
    if np.unique(values[given]).size > 1:
        # Of what is no number, the middle is no closer to one end than to the other.
        column = np.full(len(candidates), 0.5)
        column[given] = _axis(values[given])
        columns.append(column)
    categories = sorted(set(kinds))
    if len(categories) > 1:
        columns += [
            _INDICATOR * np.array([kind == category for kind in kinds], dtype=float)
            for category in categories
        ]
    return columns


def _axis(values: np.ndarray) -> np.ndarray:
    """Return different numbers on an axis from 0 to 1."""
    positive = values[values > 0.0]
    if (values >= 0.0).all() and positive.max() / _LONGEST_LINEAR_SPAN > positive.min():
        values = _logarithms(values)
    # Halved, since the difference of two doubles may be no double.
    halves = values / 2.0
    low, high = halves.min(), halves.max()
    return (halves - low) / (high - low)


def _logarithms(values: np.ndarray) -> np.ndarray:
    """Return logarithms; 0 is as far below the least positive value as those are apart."""
    positive = np.unique(values[values > 0.0])
    step = (math.log(positive[-1]) - math.log(positive[0])) / (positive.size - 1)
    logarithms = np.log(np.where(values > 0.0, values, 1.0))
    return np.where(values > 0.0, logarithms, math.log(positive[0]) - step)


def _number_or_key(value: Any) -> float | str:
    """Return a finite number as such, and a text that is the same for equal values of others."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    return _key(value)


def _key(value: Any) -> str:
    """Return a text that is the same for equal values: a representation, but of arrays all."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"array {value.shape} {value.dtype} {value.tobytes().hex()}"
    if isinstance(value, np.ndarray | list | tuple):
        return f"{type(value).__name__} [{', '.join(map(_key, value))}]"
    if isinstance(value, np.generic):
        value = value.item()
    return f"{type(value).__name__} {value!r}"
