"""Columns as described by a public schema, and their cells, each read separately.

**Guarantee.** The result for a cell depends only on its own value. It does not depend on other
cells, or on the type of the column, which one record may change. The number 1 is the same as
``1.0``, ``True``, ``1+0j``, ``"1"`` or ``" 1 "``. For any content of a cell, no error is raised
and no warning is given (Theorem R7).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune._validation import FloatArray
from skdptune.base._shared import by_halves

# A column: an array of numbers, times or objects.
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


# Single cells ---------------------------------------------------------------------------------


def number_of(cell: Any) -> float:
    """Return the number in a cell, or NaN if it contains none."""
    try:
        if _is_numeric(cell):
            return _as_float(cell)
        return _number_of_word(_word_of(cell))
    except Exception:
        return _GAP


def day_of(cell: Any) -> float:
    """Return the time in a cell, in days since 1970 UTC, or NaN if it contains none."""
    try:
        return float(_days(np.array([_moment_of(cell)]))[0])
    except Exception:
        return _GAP


def key_of(cell: Any) -> Key | None:
    """Return the key by which a cell is compared with categories, or None if it has none.

    The key of a number, or of a string that is a number, is the number. The key of another string
    is the string itself.
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
    """Return whether a cell is a missing value: None, NaN, NaT, NA or a string that means this."""
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
    # NumPy's timedelta64 is a subclass of its integers, but its unit is unknown.
    return isinstance(cell, NUMERIC) and not isinstance(cell, np.timedelta64)


def _as_float(cell: Any) -> float:
    if isinstance(cell, complex | np.complexfloating):
        # One complex cell makes a whole column of real numbers complex.
        if cell.imag != 0.0:
            raise TypeError("no real number")
        return float(cell.real)
    try:
        return float(cell)
    except OverflowError:
        # A string with the same number is also read as infinity.
        return math.inf if cell > 0 else -math.inf


def _word_of(cell: Any) -> str:
    # Call the base class's methods, since a subclass may override them arbitrarily.
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
    # pandas has such objects for times and for missing times.
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
    """Return arbitrary values as a column of objects."""
    made = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        made[place] = value
    return made


def listed(cells: Cells) -> list[Any]:
    """Return a column's cells as a list; times and time spans of NumPy become `...`.

    NumPy would list them as integers. `...` is read as neither a number nor a string, as a time
    should be.
    """
    if cells.dtype.kind in TIMES + SPANS:
        return [None if is_gap else ... for is_gap in np.isnat(cells).tolist()]
    return cells.tolist()


def numbers_of(cells: Cells) -> FloatArray:
    """Return the numbers of a column, with NaN for cells that contain none."""
    if cells.dtype.kind in NUMBERS:
        # Rounded in the same way as by `float`.
        return cells.astype(np.float64)
    return np.array([number_of(cell) for cell in listed(cells)], dtype=np.float64)


def days_of(cells: Cells) -> FloatArray:
    """Return the times of a column in days since 1970, with NaN for cells that contain none."""
    if cells.dtype.kind == TIMES:
        return np.concatenate([np.empty(0), *(days for _, days in by_halves(_days, cells, _gap))])
    return np.array([day_of(cell) for cell in listed(cells)], dtype=np.float64)


def places_of(cells: Cells, places: Mapping[Key, int], other: int, gap: int) -> NDArray[np.intp]:
    """Return the positions of a column's cells among its categories.

    Parameters
    ----------
    cells : ndarray
    places : mapping
        Maps the keys of categories, and of values that stand for missing ones, to positions.
    other : int
        Position of cells in no category.
    gap : int
        Position of missing cells.
    """

    def place_of(cell: Any) -> int:
        key = key_of(cell)
        if key is None:
            return gap if is_missing(cell) else other
        # Values that stand for missing ones have a position, too.
        return places.get(key, other)

    if cells.dtype.kind in NUMBERS:
        values, which = np.unique(cells, return_inverse=True)
        return np.array([place_of(value) for value in values], dtype=np.intp)[which]
    # Cache strings only: other objects may define comparison in any way.
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


# Columns -------------------------------------------------------------------------------------

# Possible outcomes of reading a cell.
FITS, UNMATCHED, CLIPPED, MISSING = range(4)
Outcomes = NDArray[np.intp]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers or times in a known range.

    Attributes
    ----------
    name : str
    low, high : float
        Ends of the range, beyond which values are clipped. Times are days since 1970.
    is_log : bool
        Whether the scale is logarithmic.
    is_date : bool
    gaps : tuple
        Numbers that stand for missing values, as the user wrote them.
    has_gaps : bool
        Whether missing values have their own indicator feature.
    """

    name: str
    low: float
    high: float
    is_log: bool = False
    is_date: bool = False
    gaps: tuple[Any, ...] = ()
    has_gaps: bool = False

    def feature_names(self, n_knots: int | None) -> list[str]:
        """Return the names of the features: one per knot, or the name of the column."""
        names = [self.name]
        if n_knots is not None:
            shares = np.linspace(0.0, 1.0, n_knots).tolist()
            names = [f"{self.name}_{self._shown(self.value_at(share))}" for share in shares]
        return [*names, f"{self.name}_missing"] if self.has_gaps else names

    def encoded(self, cells: Cells, n_knots: int | None) -> FloatArray:
        """Return the numbers mapped to [-1, 1], or their weights on the nearest two knots."""
        # Theorem R7: a block of features depends only on its own cell, and its norm is public.
        values, gaps = self.read(cells)
        shares = self.shares(np.where(gaps, self.low, values))
        features = 2.0 * shares[:, None] - 1.0 if n_knots is None else _hats(shares, n_knots)
        features[gaps] = 0.0
        if self.has_gaps:
            features = np.column_stack([features, gaps])
        return features

    def read(self, cells: Cells) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the numbers in cells (NaN if there is none), and a mask of missing values."""
        read = days_of if self.is_date else numbers_of
        values = read(cells)
        gaps = np.isnan(values)
        if self.gaps:
            gaps |= np.isin(values, read(as_cells(self.gaps)))
        return values, gaps

    def outcomes(self, cells: Cells) -> Outcomes:
        """Return for each cell whether it fits, is clipped, is missing or cannot be read."""
        # Theorem R8: one record changes at most one count of each column.
        values, gaps = self.read(cells)
        found = np.where((values < self.low) | (values > self.high), CLIPPED, FITS)
        found[gaps] = MISSING
        unread = np.isnan(values)
        keys = [key for key in map(key_of, self.gaps) if key is not None]
        found[unread] = places_of(
            cells[unread], dict.fromkeys(keys, MISSING), other=UNMATCHED, gap=MISSING
        )
        return found

    def announces(self, outcome: int) -> bool:
        """Return whether the schema declares that cells may have this outcome."""
        return outcome == MISSING and self.has_gaps

    def to_dict(self) -> dict[str, Any]:
        """Return the column's description in the form that users write."""
        ends = [self._shown(end) if self.is_date else _short(end) for end in (self.low, self.high)]
        found: dict[str, Any] = {"range": ends}
        if self.is_log:
            found["scale"] = "log"
        if self.has_gaps:
            found["missing"] = _listed(self.gaps)
        return found

    def shares(self, values: FloatArray) -> FloatArray:
        """Return the positions of values in the range, from 0 to 1."""
        clipped = np.clip(values, self.low, self.high)
        if not self.is_log:
            # Subtract halves, since the difference of two finite numbers may overflow.
            shares = (clipped / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
            return np.clip(shares, 0.0, 1.0)
        # One by one: NumPy's rounding of a logarithm may depend on the position in the array.
        log, top = self._log, self._log(self.high)
        return np.clip([log(value) / top for value in clipped.tolist()], 0.0, 1.0)

    @property
    def _log(self) -> Callable[[float], float]:
        low = self.low
        if low > 0.0:
            return lambda value: math.log(value) - math.log(low)
        return math.log1p

    def value_at(self, share: float) -> float:
        """Return the value at a relative position in the range."""
        if not self.is_log:
            return self.low * (1.0 - share) + self.high * share
        if self.low > 0.0:
            return math.exp(math.log(self.low) + share * self._log(self.high))
        return math.expm1(share * math.log1p(self.high))

    def _shown(self, value: float) -> str:
        if not self.is_date:
            return f"{value:.6g}"
        moment = _EPOCH + timedelta(microseconds=round(value * 86_400e6))
        moment = moment.replace(tzinfo=None)
        is_day = value == round(value)
        return moment.date().isoformat() if is_day else moment.isoformat()


@dataclass(frozen=True)
class CategoryColumn:
    """A column of strings, or of numbers used as codes, from a known list of categories.

    Attributes
    ----------
    name : str
    categories : tuple
        The categories as the user wrote them.
    gaps : tuple
        Strings that stand for missing values.
    has_gaps, has_other : bool
        Whether missing values, or unknown categories, have their own indicator feature. If they do
        not, their features are zeros.
    is_boolean : bool
        Whether the categories are False and True.
    """

    name: str
    categories: tuple[Any, ...]
    gaps: tuple[Any, ...] = ()
    has_gaps: bool = False
    has_other: bool = False
    is_boolean: bool = False

    @property
    def _is_binary(self) -> bool:
        return len(self.categories) == 2

    def feature_names(self, n_knots: int | None) -> list[str]:
        """Return the names of the features: one for two categories, otherwise one per category."""
        last = self.categories[1:] if self._is_binary else self.categories
        names = [self.name] if self.is_boolean else [f"{self.name}_{each}" for each in last]
        names += [f"{self.name}_other"] * self.has_other
        return names + [f"{self.name}_missing"] * self.has_gaps

    def encoded(self, cells: Cells, n_knots: int | None) -> FloatArray:
        """Return indicators of categories, or -1 and 1 for the first and second of two."""
        # Theorem R7: a block of features depends only on its own cell, and its norm is public.
        size = len(self.categories)
        other, gap = size, size + 1
        # Row i is the encoding of position i.
        table = np.zeros((size + 2, len(self.feature_names(n_knots))))
        if self._is_binary:
            table[:2, 0] = -1.0, 1.0
        else:
            table[:size, :size] = np.eye(size)
        if self.has_gaps:
            table[gap, -1] = 1.0
        if self.has_other:
            table[other, -1 - int(self.has_gaps)] = 1.0
        return table[self.places(cells)]

    def places(self, cells: Cells) -> NDArray[np.intp]:
        """Return the cells' positions: categories come first, then others, then missing."""
        other, gap = len(self.categories), len(self.categories) + 1
        return places_of(cells, self._known(gap), other, gap)

    def outcomes(self, cells: Cells) -> Outcomes:
        """Return for each cell whether it is a category, unmatched or missing."""
        # Theorem R8: one record changes at most one count of each column.
        size = len(self.categories)
        table = np.full(size + 2, FITS)
        table[size:] = UNMATCHED, MISSING
        return table[self.places(cells)]

    def announces(self, outcome: int) -> bool:
        """Return whether the schema declares that cells may have this outcome."""
        return self.has_gaps if outcome == MISSING else outcome == UNMATCHED and self.has_other

    def _known(self, gap: int) -> Mapping[Key, int]:
        places = {}
        for place, category in enumerate(self.categories):
            key = key_of(category)
            if key is not None:
                places[key] = place
        for word in self.gaps:
            key = key_of(word)
            if key is not None:
                places[key] = gap
        return places

    def to_dict(self) -> dict[str, Any]:
        """Return the column's description in the form that users write."""
        found: dict[str, Any] = {"categories": list(self.categories)}
        if self.is_boolean:
            found = {"type": "boolean"}
        if self.has_gaps:
            found["missing"] = _listed(self.gaps)
        if self.has_other:
            found["other"] = True
        return found


@dataclass(frozen=True)
class DroppedColumn:
    """An unused column; a table may or may not contain it."""

    name: str

    def to_dict(self) -> str:
        """Return the description of an unused column."""
        return "drop"


def _hats(shares: FloatArray, n_knots: int) -> FloatArray:
    """Return weights on the nearest two of equidistant knots; they add up to 1."""
    places = shares * (n_knots - 1)
    left = np.minimum(places.astype(np.intp), n_knots - 2)
    right_weight = places - left
    features = np.zeros((shares.size, n_knots))
    rows = np.arange(shares.size)
    features[rows, left] = 1.0 - right_weight
    features[rows, left + 1] = right_weight
    return features


def _listed(gaps: tuple[Any, ...]) -> Any:
    return list(gaps) if gaps else True


def _short(number: float) -> float | int:
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


# The features of one column have a Euclidean norm of at most 1 for every cell (Theorem R7).
UsedColumn = NumberColumn | CategoryColumn
Column = UsedColumn | DroppedColumn
