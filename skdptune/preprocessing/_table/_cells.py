"""Cells of a table read as numbers, days or keys of categories, each by itself.

**Guarantee.** What comes out for a cell follows from its own value: neither from the other cells
nor from the type of its column, which one record may change. The number 1 is the same as ``1.0``,
``True``, ``1+0j``, ``"1"`` or ``" 1 "``. Whatever a cell holds, nothing raises and nothing warns
(Theorem R7).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune._validation import FloatArray
from skdptune.base import by_halves

# A column: an array of numbers, of times, or of objects.
Cells = NDArray[Any]
Key = float | str
NUMBERS = "fiub"
TIMES = "M"
SPANS = "m"
NUMERIC = (numbers.Real, Decimal, np.bool_, complex, np.complexfloating)
MOMENTS = (date, np.datetime64)
LENGTHS = (timedelta, np.timedelta64)
_TRUTHS = {"true": 1.0, "false": 0.0}
_MICROSECONDS_OF_A_DAY = 86_400e6
_GAP = float("nan")
_GAP_WORDS = ("", "nan")


# One cell -------------------------------------------------------------------------------------


def number_of(cell: Any) -> float:
    """Return the number that a cell holds, NaN where it holds none."""
    try:
        if _is_numeric(cell):
            return _as_float(cell)
        return _number_of_word(_word_of(cell))
    except Exception:
        return _GAP


def day_of(cell: Any) -> float:
    """Return the time that a cell holds, in days since 1970 UTC, NaN where it holds none."""
    try:
        return float(_days(np.array([_moment_of(cell)]))[0])
    except Exception:
        return _GAP


def key_of(cell: Any) -> Key | None:
    """Return what a cell is compared with categories by, None where it is no number or word.

    Numbers and words that are numbers have the number as their key, other words themselves.
    """
    try:
        if _is_numeric(cell):
            number = _as_float(cell)
            return number if number == number else None
        word = _word_of(cell)
        number = _number_of_word(word)
        if number == number:
            return number
        return None if word.lower() in _GAP_WORDS else word
    except Exception:
        return None


def is_missing(cell: Any) -> bool:
    """Return whether a cell says that its value is not known: None, NaN, NaT, NA or no word."""
    try:
        if cell is None or type(cell).__name__ == "NAType":
            return True
        if _is_numeric(cell):
            number = _as_float(cell)
            return number != number
        if isinstance(cell, MOMENTS + LENGTHS):
            return bool(cell != cell)
        return _word_of(cell).lower() in _GAP_WORDS
    except Exception:
        return False


def _is_numeric(cell: Any) -> bool:
    # A span of time counts as an integer of NumPy, but is a number of unknown units.
    return isinstance(cell, NUMERIC) and not isinstance(cell, np.timedelta64)


def _as_float(cell: Any) -> float:
    if isinstance(cell, complex | np.complexfloating):
        # One complex cell makes complex numbers of a whole column of real ones.
        if cell.imag != 0.0:
            raise TypeError("no real number")
        return float(cell.real)
    try:
        return float(cell)
    except OverflowError:
        # As the word of the same number is read.
        return math.inf if cell > 0 else -math.inf


def _word_of(cell: Any) -> str:
    # By their own methods, since a subclass may do as it likes.
    if isinstance(cell, bytes):
        return bytes.decode(cell, "utf-8", "replace").strip()
    if isinstance(cell, str):
        return str.strip(cell)
    raise TypeError("no word")


def _number_of_word(word: str) -> float:
    truth = _TRUTHS.get(word.lower())
    if truth is not None:
        return truth
    try:
        return float(word)
    except ValueError:
        return _GAP


def _moment_of(cell: Any) -> np.datetime64:
    if isinstance(cell, np.datetime64):
        return cell
    # What pandas holds for a time, or for a missing one.
    if hasattr(cell, "to_datetime64"):
        return cell.to_datetime64()
    if isinstance(cell, str | bytes):
        cell = datetime.fromisoformat(_word_of(cell))
    if isinstance(cell, datetime):
        if cell.tzinfo is not None:
            cell = cell.astimezone(UTC).replace(tzinfo=None)
        return np.datetime64(cell, "us")
    if isinstance(cell, date):
        return np.datetime64(cell, "us")
    raise TypeError("no time")


# Columns --------------------------------------------------------------------------------------


def as_cells(values: Sequence[Any]) -> Cells:
    """Return values of any kind as a column of objects."""
    made = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        made[place] = value
    return made


def listed(cells: Cells) -> list[Any]:
    """Return a column's cells; for times and spans of NumPy's, which it lists as integers, `...`.

    `...` is read as neither a number nor a word, as a time is.
    """
    if cells.dtype.kind in TIMES + SPANS:
        return [None if is_gap else ... for is_gap in np.isnat(cells).tolist()]
    return cells.tolist()


def numbers_of(cells: Cells) -> FloatArray:
    """Return the numbers of a column, NaN where a cell holds none."""
    if cells.dtype.kind in NUMBERS:
        # Rounded as `float` rounds.
        return cells.astype(np.float64)
    return np.array([number_of(cell) for cell in listed(cells)], dtype=np.float64)


def days_of(cells: Cells) -> FloatArray:
    """Return the times of a column in days since 1970, NaN where a cell holds none."""
    if cells.dtype.kind == TIMES:
        return np.concatenate([np.empty(0), *(days for _, days in by_halves(_days, cells, _gap))])
    return np.array([day_of(cell) for cell in listed(cells)], dtype=np.float64)


def places_of(cells: Cells, places: Mapping[Key, int], other: int, gap: int) -> NDArray[np.intp]:
    """Return the places of a column's categories.

    Parameters
    ----------
    cells : ndarray
    places : mapping
        From the keys of categories, and of what else has a place, to their places.
    other : int
        Place of what is no category.
    gap : int
        Place of what is missing.
    """

    def place_of(cell: Any) -> int:
        key = key_of(cell)
        if key is None:
            return gap if is_missing(cell) else other
        # What stands for a missing value has a place, too.
        return places.get(key, other)

    if cells.dtype.kind in NUMBERS:
        values, which = np.unique(cells, return_inverse=True)
        return np.array([place_of(value) for value in values], dtype=np.intp)[which]
    # Of words alone: what other cells answer when they are compared is their own business.
    known: dict[str, int] = {}
    found = np.empty(cells.size, dtype=np.intp)
    for at, cell in enumerate(listed(cells)):
        if type(cell) is not str:
            found[at] = place_of(cell)
            continue
        place = known.get(cell)
        if place is None:
            place = known[cell] = place_of(cell)
        found[at] = place
    return found


def _days(moments: NDArray[np.datetime64]) -> FloatArray:
    exact = moments.astype("datetime64[us]")
    days = exact.astype(np.int64).astype(np.float64) / _MICROSECONDS_OF_A_DAY
    days[np.isnat(exact)] = _GAP
    return days


def _gap(moment: Any) -> FloatArray:
    return np.array([_GAP])
