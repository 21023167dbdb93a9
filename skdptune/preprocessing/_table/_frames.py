"""The columns of a table, as arrays of cells, found by their names or places alone.

Theorem R7: what raises follows from names and shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from scipy import sparse

from skdptune.preprocessing._table._cells import NUMBERS, SPANS, TIMES, Cells
from skdptune.preprocessing._table._columns import Column, DroppedColumn
from skdptune.preprocessing._table._parsing import Problems


def has_names(X: Any) -> bool:
    """Return whether a table's columns have words for names."""
    return hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns)


def check_form(X: Any, columns: Sequence[Column], target: str | None = None) -> None:
    """Raise unless a table has the columns of a schema; no cell is looked at.

    Parameters
    ----------
    X : DataFrame, ndarray or list of rows
        A table without names has the columns of the schema in their order.
    columns : sequence of Column
    target : str, optional
        Name of the target, which must not be among the columns.

    Notes
    -----
    Theorem R7.
    """
    if has_names(X):
        _check_names(list(X.columns), columns, target)
        return
    if sparse.issparse(X) or not (isinstance(X, list | tuple) or hasattr(X, "shape")):
        kind = "a sparse matrix" if sparse.issparse(X) else type(X).__name__
        raise TypeError(f"X must be a DataFrame, or rows of cells; got {kind}.")
    shape = tuple(X.shape) if hasattr(X, "shape") else _shape_of_rows(X)
    if len(shape) != 2 or shape[1] != len(columns):
        raise ValueError(
            f"X must have the {len(columns)} columns of the schema, in their order, or names; got "
            f"shape {shape}."
        )


def cells_of(X: Any, columns: Sequence[Column]) -> list[Cells]:
    """Return the cells of each column that is not dropped, of a table of the right form.

    Notes
    -----
    Theorem R7.
    """
    wanted = [column for column in columns if not isinstance(column, DroppedColumn)]
    if has_names(X):
        return [_cells_of_column(X[column.name]) for column in wanted]
    places = [columns.index(column) for column in wanted]
    if hasattr(X, "iloc"):
        return [_cells_of_column(X.iloc[:, place]) for place in places]
    table = np.asarray(X) if hasattr(X, "shape") else _array_of_rows(X, len(columns))
    return [_cells_of_array(table[:, place]) for place in places]


def sample_cells(X: Any) -> Mapping[str, Cells]:
    """Return the cells of all columns of a table with names."""
    return {name: _cells_of_column(X[name]) for name in X.columns}


def _check_names(names: list[str], columns: Sequence[Column], target: str | None) -> None:
    known = {column.name for column in columns}
    wanted = [column.name for column in columns if not isinstance(column, DroppedColumn)]
    absent = [name for name in wanted if name not in names]
    problems = Problems(f"{name!r} is missing" for name in absent)
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        problems.append(f"{name!r} is there {names.count(name)} times")
    for name in names:
        if name == target:
            problems.append(f"{name!r} is the target, which X must not hold")
        elif name not in known:
            close = get_close_matches(name, absent, n=1)
            meant = f"did you mean {close[0]!r}? Else describe" if close else "describe"
            problems.append(f"{name!r} is not in the schema: {meant} it, or set it to 'drop'")
    problems.check("X must have the columns of the schema")


def _shape_of_rows(rows: Sequence[Any]) -> tuple[int, ...]:
    lengths = {len(row) if isinstance(row, list | tuple | np.ndarray) else 0 for row in rows}
    if len(lengths) > 1:
        raise ValueError("X must have rows that are all of one length; got others.")
    return (len(rows), *lengths)


def _array_of_rows(rows: Sequence[Any], width: int) -> Cells:
    """Return rows as an array, in which a cell may be a list itself."""
    cells = np.empty((len(rows), width), dtype=object)
    for at, row in enumerate(rows):
        for place, cell in enumerate(row):
            cells[at, place] = cell
    return cells


def _cells_of_column(column: Any) -> Cells:
    """Return the cells of a column of a DataFrame."""
    # Asked for objects, some libraries return times as integers.
    return _cells_of_array(np.asarray(column))


def _cells_of_array(cells: Any) -> Cells:
    return cells if cells.dtype.kind in (*NUMBERS, TIMES, SPANS) else cells.astype(object)
