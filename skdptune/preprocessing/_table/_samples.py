"""Public samples: what they say about columns, and whether a schema fits them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdptune.preprocessing._table._cells import (
    Cells,
    days_of,
    key_of,
    listed,
    number_of,
    numbers_of,
    places_of,
)
from skdptune.preprocessing._table._columns import CategoryColumn, Column, NumberColumn
from skdptune.preprocessing._table._parsing import Problems

_FEW = 20
_MOST_READ = 1000
_MOST_QUOTED = 3
_SILENT = "missing, and without 'missing'"
_ANSWER = "give the column in columns=, or in drop="


def describe(name: str, cells: Cells, most: int, problems: Problems) -> Any:
    """Return what a user would write about a column with these cells, None if that is unclear.

    Parameters
    ----------
    name : str
    cells : ndarray
        Of a public sample.
    most : int
        Largest number of categories.
    problems : Problems
        What is unclear is added to it.
    """
    days = days_of(cells)
    if cells.size and not np.isnan(days).all() and np.isnan(numbers_of(cells)).all():
        return _described_range(name, days, True, problems)
    present = [cell for cell in listed(cells) if key_of(cell) is not None]
    if not present:
        problems.say(name, f"the sample has no value; {_ANSWER}")
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


def compare(column: Column, cells: Cells, problems: Problems) -> None:
    """Add what of a public sample's cells a column cannot read, or changes.

    Parameters
    ----------
    column : Column
    cells : ndarray
        Of a public sample: they are quoted.
    problems : Problems
    """
    if isinstance(column, NumberColumn):
        _compare_numbers(column, cells, problems)
    elif isinstance(column, CategoryColumn):
        _compare_categories(column, cells, problems)


def _compare_numbers(column: NumberColumn, cells: Cells, problems: Problems) -> None:
    values, is_gap = column.read(cells)
    is_word = np.array([key_of(cell) is not None for cell in listed(cells)], dtype=bool)
    is_announced = places_of(cells, dict.fromkeys(filter(None, map(key_of, column.gaps)), 1), 0, 0)
    unread = np.isnan(values) & is_word & (is_announced == 0)
    kind = "dates" if column.is_date else "numbers"
    _quote(column, cells, unread, f"no {kind}", problems)
    beyond = (values < column.low) | (values > column.high)
    _quote(column, cells, beyond & ~is_gap, "beyond the range, and clipped", problems)
    if not column.has_gaps:
        _quote(column, cells, np.isnan(values) & ~is_word, _SILENT, problems)


def _compare_categories(column: CategoryColumn, cells: Cells, problems: Problems) -> None:
    places = column.places(cells)
    size = len(column.categories)
    if not column.has_other:
        _quote(column, cells, places == size, "in no category, and without 'other'", problems)
    if not column.has_gaps:
        _quote(column, cells, places == size + 1, _SILENT, problems)


def _quote(column: Column, cells: Cells, chosen: Any, what: str, problems: Problems) -> None:
    if not chosen.any():
        return
    quoted = list(dict.fromkeys(repr(cell) for cell in cells[chosen][:_MOST_READ].tolist()))
    shown = ", ".join(quoted[:_MOST_QUOTED]) + ", ..." * (len(quoted) > _MOST_QUOTED)
    problems.say(column.name, f"{chosen.sum()} of {cells.size} cells are {what}: {shown}")


def _described_range(name: str, values: Any, is_date: bool, problems: Problems) -> Any:
    known = values[np.isfinite(values)]
    if not known.size or known.min() == known.max():
        problems.say(name, f"the sample has a single value, which is no range; {_ANSWER}")
        return None
    has_gaps = bool(np.isnan(values).any())
    ends = float(known.min()), float(known.max())
    return NumberColumn(name, *ends, is_date=is_date, has_gaps=has_gaps).to_dict()


def _is_boolean(cell: Any) -> bool:
    return isinstance(cell, bool | np.bool_) or str(cell).strip().lower() in ("true", "false")
