"""Columns of a table as arrays of cells, found only by their names or positions.

Theorem R7: errors depend only on names, shapes and types of columns. This module also reads public
samples and describes their columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import time
from difflib import get_close_matches
from typing import Any

import numpy as np
from scipy import sparse

from skdptune._formatting import shown
from skdptune.base._shared import table_of, table_shape
from skdptune.preprocessing._table._columns import (
    CLIPPED,
    FITS,
    LENGTHS,
    MISSING,
    MOMENTS,
    NUMBERS,
    NUMERIC,
    SPANS,
    TIMES,
    UNMATCHED,
    CategoryColumn,
    Cells,
    Column,
    DroppedColumn,
    NumberColumn,
    Outcomes,
    as_cells,
    days_of,
    key_of,
    listed,
    number_of,
    numbers_of,
)
from skdptune.preprocessing._table._parsing import Problems

# The content of a column, by the class of cells that its type implies; the first match counts.
_WHAT: Mapping[str, tuple[type, ...]] = {
    "durations": LENGTHS,
    "dates": MOMENTS,
    "times of day": (time,),
    "numbers": NUMERIC,
    "words": (str, bytes),
    "lists": (list, tuple, np.ndarray),
    "structs": (dict,),
}
_NAMED = {"Period": "periods", "Interval": "intervals"}
_READ_AS = {"a number": ("numbers", "words"), "a date": ("dates", "words")}
_READ_AS["a category"] = _READ_AS["a number"]
_DATES = "describe dates by a range of dates, such as ('1990-01-01', '2030-01-01')"
_TO_WORDS = "for categories convert it to text with .astype(str)"
_OTHERWISE = "set it to 'drop', or convert it to numbers or text"
# Advice, by the content of a column and what the schema expects.
_HINTS = {
    ("durations", "a number"): "convert it to numbers with .dt.total_seconds()",
    ("dates", "a number"): _DATES,
    ("dates", "a category"): f"{_DATES}; {_TO_WORDS}",
    ("periods", "a number"): f"convert it to dates with .dt.to_timestamp(), and {_DATES}",
    ("periods", "a date"): "convert it to dates with .dt.to_timestamp()",
    ("periods", "a category"): _TO_WORDS,
    ("intervals", "a category"): _TO_WORDS,
    ("numbers", "a number"): "give the range in the units of the column",
    ("numbers", "a date"): "convert it to dates with pandas.to_datetime(column, unit=...)",
    ("numbers", "a category"): (
        "declare the numbers, such as {'categories': [0, 1]}, or map them to the categories of "
        "the schema. If the column is empty, use .astype(object)"
    ),
    ("categories", "a number"): "convert them to numbers, or declare them as categories",
    ("categories", "a date"): "convert them to dates with pandas.to_datetime(column)",
    ("categories", "a category"): "compare them with the schema: spelling, capitals, language",
}


def has_names(X: Any) -> bool:
    """Return whether all columns of a table have strings as names."""
    return hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns)


def check_form(X: Any, columns: Sequence[Column], target: str | None = None) -> None:
    """Raise unless a table has the columns of a schema; no cell is read.

    Parameters
    ----------
    X : DataFrame, ndarray or list of rows
        Columns without names are in the order of the schema.
    columns : sequence of Column
    target : str, optional
        Name of the target, which must not be among the columns.

    Notes
    -----
    Theorem R7.
    """
    if hasattr(X, "collect_schema") and not hasattr(X, "__len__"):
        raise TypeError(
            f"X must be a DataFrame, or rows of cells; got {type(X).__name__}. Give X.collect()."
        )
    if has_names(X):
        _check_names(list(X.columns), columns, target)
        return
    if sparse.issparse(X) or not (isinstance(X, list | tuple) or hasattr(X, "shape")):
        kind = "a sparse matrix" if sparse.issparse(X) else type(X).__name__
        raise TypeError(f"X must be a DataFrame, or rows of cells; got {kind}.")
    try:
        shape = table_shape(X)
    except ValueError:
        # A list whose entries are not rows.
        shape = (len(X),)
    if len(shape) != 2 or shape[1] != len(columns):
        raise ValueError(
            f"X must have the {len(columns)} columns of the schema, in their order, or names; got "
            f"shape {shape}."
        )


def check_types(X: Any, columns: Sequence[Column]) -> None:
    """Raise if a column's type rules out that any of its cells fits; no cell is read.

    Parameters
    ----------
    X : DataFrame, ndarray or list of rows
        A table of the right form. Columns of objects, strings and complex numbers are accepted:
        one record can turn a column of numbers into one of these, and its other cells are then
        read as before.
    columns : sequence of Column

    Notes
    -----
    Theorem R7.
    """
    problems = Problems()
    for column, dtype in _types_of(X, columns):
        what = misfit(column, dtype)
        if what is not None:
            wanted = _wanted_in(column)
            hint = _HINTS.get((what, wanted), _OTHERWISE)
            shown = type(dtype).__name__ if what == "categories" else f"type {dtype}"
            problems.say(
                column.name, f"holds {what} ({shown}), none of which can be {wanted}: {hint}"
            )
    problems.check("X must have columns whose types fit the schema")


def _types_of(X: Any, columns: Sequence[Column]) -> Iterator[tuple[Column, Any]]:
    """Yield the used columns with their types, as far as the table has types."""
    types = list(getattr(X, "dtypes", ()))
    if has_names(X):
        by_name = dict(zip(X.columns, types, strict=bool(types)))
        found = [by_name.get(column.name, object) for column in columns]
    else:
        found = types or [getattr(X, "dtype", object)] * len(columns)
    for column, dtype in zip(columns, found, strict=True):
        if not isinstance(column, DroppedColumn):
            yield column, dtype


def _wanted_in(column: Column) -> str:
    if isinstance(column, NumberColumn):
        return "a date" if column.is_date else "a number"
    return "a category"


def misfit(column: Column, dtype: Any) -> str | None:
    """Return the content that a column's type implies, or None if it may fit or is unknown."""
    categories: Any = getattr(dtype, "categories", None)
    if hasattr(categories, "__len__"):
        outcomes = column.outcomes(as_cells(list(categories)))
        is_gap = outcomes == MISSING
        return None if is_gap.all() or (outcomes == FITS).any() else "categories"
    kind = dtype.to_python() if hasattr(dtype, "to_python") else getattr(dtype, "type", object)
    if not isinstance(kind, type):
        return None
    what = next((name for name, kinds in _WHAT.items() if issubclass(kind, kinds)), None)
    what = what or _NAMED.get(kind.__name__)
    if what is None or what == "words":
        return None
    if what in _READ_AS[_wanted_in(column)] and (what != "numbers" or _has_number(column, kind)):
        return None
    return what


def _has_number(column: Column, kind: type) -> bool:
    """Return whether any number of a class fits a column."""
    low, high, is_whole = -math.inf, math.inf, issubclass(kind, int | np.integer | np.bool_)
    if issubclass(kind, bool | np.bool_):
        low, high = 0.0, 1.0
    elif issubclass(kind, np.integer):
        low, high = float(np.iinfo(kind).min), float(np.iinfo(kind).max)
    if isinstance(column, NumberColumn):
        least, most = max(column.low, low), min(column.high, high)
        return (math.ceil(least) if is_whole else least) <= most
    categories = column.categories if isinstance(column, CategoryColumn) else ()
    keys = [key_of(each) for each in categories]
    return any(
        isinstance(key, float) and low <= key <= high and not (is_whole and key % 1.0)
        for key in keys
    )


def cells_of(X: Any, columns: Sequence[Column]) -> list[Cells]:
    """Return the cells of each used column of a table of the right form.

    Notes
    -----
    Theorem R7.
    """
    wanted = [column for column in columns if not isinstance(column, DroppedColumn)]
    if has_names(X):
        return [cells_of_column(X[column.name]) for column in wanted]
    places = [columns.index(column) for column in wanted]
    if hasattr(X, "iloc"):
        return [cells_of_column(X.iloc[:, place]) for place in places]
    table = np.asarray(X) if hasattr(X, "shape") else table_of(X, (len(columns),))
    return [_cells_of_array(table[:, place]) for place in places]


def sample_cells(X: Any) -> Mapping[str, Cells]:
    """Return the cells of all columns of a table with column names."""
    return {name: cells_of_column(X[name]) for name in X.columns}


def _check_names(names: list[str], columns: Sequence[Column], target: str | None) -> None:
    known = {column.name for column in columns}
    wanted = [column.name for column in columns if not isinstance(column, DroppedColumn)]
    absent = [name for name in wanted if name not in names]
    problems = Problems(f"{shown(name)} is missing" for name in absent)
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        problems.append(f"{shown(name)} occurs {names.count(name)} times")
    for name in names:
        if name == target:
            problems.append(f"{shown(name)} is the target, which X must not hold")
        elif name not in known:
            close = get_close_matches(name, absent, n=1)
            meant = f"did you mean {shown(close[0])}? Otherwise describe" if close else "describe"
            problems.append(f"{shown(name)} is not in the schema: {meant} it, or set it to 'drop'")
    problems.check("X must have the columns of the schema")


def cells_of_column(column: Any) -> Cells:
    """Return the cells of a column of a DataFrame."""
    # If asked for objects, some libraries return times as integers.
    return _cells_of_array(np.asarray(column))


def _cells_of_array(cells: Any) -> Cells:
    return cells if cells.dtype.kind in (*NUMBERS, TIMES, SPANS) else cells.astype(object)


# Public samples ------------------------------------------------------------------------------

_FEW = 20
_MOST_READ = 1000
_MOST_QUOTED = 3
_ANSWER = "give the column in columns=, or in drop="


def describe(name: str, cells: Cells, most: int, problems: Problems) -> Any:
    """Return the description that a user would write for a column, or None if it is unclear.

    Parameters
    ----------
    name : str
    cells : ndarray
        Cells of a public sample.
    most : int
        Largest allowed number of categories.
    problems : Problems
        Everything that is unclear is added to it.
    """
    days = days_of(cells)
    if cells.size and not np.isnan(days).all() and np.isnan(numbers_of(cells)).all():
        return _described_range(name, days, True, problems)
    present = [cell for cell in listed(cells) if key_of(cell) is not None]
    if not present:
        problems.say(name, f"the sample has no values; {_ANSWER}")
        return None
    gaps = {"missing": True} if len(present) < cells.size else {}
    if all(_is_boolean(cell) for cell in present):
        return {"type": "boolean", **gaps}
    if all(not math.isnan(number_of(cell)) for cell in present):
        return _described_range(name, numbers_of(cells), False, problems)
    found = dict.fromkeys(str(cell).strip() for cell in present)
    if len(found) > most or len(found) == len(present) > _FEW:
        problems.say(
            name,
            f"{len(found)} different words in {len(present)} rows look like free text or "
            f"identifiers; {_ANSWER}",
        )
        return None
    gaps = gaps or ({"other": True} if len(found) == 1 else {})
    return {"categories": sorted(found), **gaps}


def compare(column: Column, cells: Cells, outcomes: Outcomes, problems: Problems) -> None:
    """Report those cells of a public sample that a column cannot read, or changes.

    Parameters
    ----------
    column : Column
    cells : ndarray
        Cells of a public sample, since they are quoted.
    outcomes : ndarray
        The outcome of each cell.
    problems : Problems
    """
    unread = "in no category, but 'other' is not declared"
    if isinstance(column, NumberColumn):
        unread = "not dates" if column.is_date else "not numbers"
    _quote(column, cells, outcomes, UNMATCHED, unread, problems)
    _quote(column, cells, outcomes, CLIPPED, "outside of the range, and clipped", problems)
    _quote(column, cells, outcomes, MISSING, "missing, but 'missing' is not declared", problems)


def _quote(
    column: Column, cells: Cells, outcomes: Outcomes, outcome: int, what: str, problems: Problems
) -> None:
    chosen = cells[outcomes == outcome]
    if not chosen.size or column.announces(outcome):
        return
    # NumPy lists times as integers.
    first = chosen[:_MOST_READ].astype(str if chosen.dtype.kind in TIMES + SPANS else object)
    quoted = list(dict.fromkeys(map(repr, first.tolist())))
    shown = ", ".join(quoted[:_MOST_QUOTED]) + ", ..." * (len(quoted) > _MOST_QUOTED)
    problems.say(column.name, f"{chosen.size} of {cells.size} cells are {what}: {shown}")


def _described_range(name: str, values: Any, is_date: bool, problems: Problems) -> Any:
    known = values[np.isfinite(values)]
    if not known.size or known.min() == known.max():
        problems.say(name, f"the sample has a single value, which is not a range; {_ANSWER}")
        return None
    has_gaps = bool(np.isnan(values).any())
    ends = float(known.min()), float(known.max())
    return NumberColumn(name, *ends, is_date=is_date, has_gaps=has_gaps).to_dict()


def _is_boolean(cell: Any) -> bool:
    return isinstance(cell, bool | np.bool_) or str(cell).strip().lower() in ("true", "false")
