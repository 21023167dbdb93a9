"""Public samples: what they say about columns, and whether a schema fits them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdptune.preprocessing._table._cells import (
    SPANS,
    TIMES,
    Cells,
    days_of,
    key_of,
    listed,
    number_of,
    numbers_of,
)
from skdptune.preprocessing._table._columns import (
    CLIPPED,
    MISSING,
    UNMATCHED,
    Column,
    NumberColumn,
    Outcomes,
)
from skdptune.preprocessing._table._parsing import Problems

_FEW = 20
_MOST_READ = 1000
_MOST_QUOTED = 3
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


def compare(column: Column, cells: Cells, outcomes: Outcomes, problems: Problems) -> None:
    """Add what of a public sample's cells a column cannot read, or changes.

    Parameters
    ----------
    column : Column
    cells : ndarray
        Of a public sample: they are quoted.
    outcomes : ndarray
        What becomes of them.
    problems : Problems
    """
    unread = "in no category, and without 'other'"
    if isinstance(column, NumberColumn):
        unread = "no dates" if column.is_date else "no numbers"
    _quote(column, cells, outcomes, UNMATCHED, unread, problems)
    _quote(column, cells, outcomes, CLIPPED, "beyond the range, and clipped", problems)
    _quote(column, cells, outcomes, MISSING, "missing, and without 'missing'", problems)


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
        problems.say(name, f"the sample has a single value, which is no range; {_ANSWER}")
        return None
    has_gaps = bool(np.isnan(values).any())
    ends = float(known.min()), float(known.max())
    return NumberColumn(name, *ends, is_date=is_date, has_gaps=has_gaps).to_dict()


def _is_boolean(cell: Any) -> bool:
    return isinstance(cell, bool | np.bool_) or str(cell).strip().lower() in ("true", "false")
