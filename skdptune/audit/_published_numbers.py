"""All numbers that a fitted object holds and answers, in one order for all fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune.testing import published

FloatArray = NDArray[np.float64]

_MOST = 4096
# Clocks are no part of any claim (Assumption F6).
_CLOCKS = ("time", "seconds", "history", "dur_")


class PublishedNumbers:
    """The numbers of a fit that an audit looks at: named ones first, then all it publishes.

    Parameters
    ----------
    first : callable or None
        From a fitted estimator to some numbers.
    row : array-like
        What the fitted object is asked about.
    examples : list of estimator
        Fitted; places that all of them have, with as many numbers, are looked at.

    Attributes
    ----------
    n_first : int
        How many numbers `first` gives.
    """

    def __init__(self, first: Callable[[Any], Any] | None, row: Any, examples: list[Any]) -> None:
        self._first, self._row = first, row
        self.n_first = 0 if first is None else int(np.size(first(examples[0])))
        found = [self._places(fitted) for fitted in examples]
        self._sizes = {
            place: numbers.size
            for place, numbers in found[0].items()
            if all(place in other and other[place].size == numbers.size for other in found)
        }
        total = sum(self._sizes.values())
        self._kept = np.unique(np.linspace(0, total - 1, min(total, _MOST)).round().astype(int))

    def __call__(self, fitted: Any) -> FloatArray:
        """Return the numbers of a fit; those that it lacks are NaN."""
        places = self._places(fitted)
        rest = [np.empty(0)]
        for place, size in self._sizes.items():
            found = places.get(place)
            rest.append(found if found is not None and found.size == size else _missing(size))
        first = [] if self._first is None else [np.ravel(self._first(fitted))]
        return np.concatenate([*first, np.concatenate(rest)[self._kept]])

    def _places(self, fitted: Any) -> dict[str, FloatArray]:
        clocks = _clocked_columns(fitted)
        return {
            place: leaf
            for place, leaf in published(fitted, self._row).items()
            if isinstance(leaf, np.ndarray)
            and not place.startswith(clocks)
            and not any(clock in place for clock in _CLOCKS)
        }


def _missing(size: int) -> FloatArray:
    return np.full(size, np.nan)


def _clocked_columns(fitted: Any) -> tuple[str, ...]:
    """Return the places of a search's columns of times, which are numbered."""
    results = getattr(fitted, "cv_results_", None)
    if not isinstance(results, Mapping):
        return ()
    places = [place for place, name in enumerate(results) if "time" in str(name)]
    return tuple(f"cv_results_[{place}]" for place in places)
