"""The columns of a table, found by their names or places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from skdptune.preprocessing._table._columns import CategoryColumn, DroppedColumn, NumberColumn
from skdptune.preprocessing._table._frames import cells_of, check_form, has_names, sample_cells

COLUMNS = [NumberColumn("a", 0.0, 1.0), DroppedColumn("b"), CategoryColumn("c", ("x", "y", "z"))]
FRAME = pd.DataFrame({"a": [1, 2], "b": [3, 4], "c": ["x", "y"]})


def listed(X: Any) -> list[list[Any]]:
    check_form(X, COLUMNS)
    return [cells.tolist() for cells in cells_of(X, COLUMNS)]


@pytest.mark.parametrize(
    "table",
    [
        FRAME,
        FRAME[["c", "b", "a"]],
        FRAME[["c", "a"]],
        FRAME.set_axis([0, 1, 2], axis=1),
        FRAME.to_numpy(),
        FRAME.to_numpy().tolist(),
        tuple(map(tuple, FRAME.to_numpy().tolist())),
        list(FRAME.to_numpy()),
        FRAME.convert_dtypes(),
    ],
    ids=range(9),
)
def test_columns_are_found(table) -> None:
    assert listed(table) == [[1, 2], ["x", "y"]]


def test_a_cell_may_be_a_list() -> None:
    # Theorem R7: it does not change the table's shape.
    assert listed([[1, 2, [3]], [[1, 2, 3], None, "x"]]) == [[1, [1, 2, 3]], [[3], "x"]]


def test_words_are_names_and_numbers_are_not() -> None:
    assert has_names(FRAME)
    assert not has_names(FRAME.set_axis(["a", "b", 2], axis=1))
    assert not has_names(FRAME.to_numpy())
    assert not has_names([[1]])


@pytest.mark.parametrize("kind", ["complex128", "timedelta64[ns]", "period[D]"])
def test_columns_of_any_type_have_cells(kind) -> None:
    column = pd.Series([1, 2]).astype("int64").to_numpy()
    table = pd.DataFrame(
        {
            "a": pd.Series(column.astype("datetime64[D]"))
            if "period" in kind
            else column.astype(kind),
            "c": ["x", "y"],
        }
    )
    if "period" in kind:
        table["a"] = table["a"].dt.to_period("D")
    check_form(table, COLUMNS)
    first, _ = cells_of(table, COLUMNS)
    assert np.isnan(COLUMNS[0].encoded(first, None)).sum() == 0


def test_form_is_looked_at_without_cells() -> None:
    class Names:
        columns = ["c", "a"]

    check_form(Names(), COLUMNS)


def test_sample_has_all_columns() -> None:
    assert list(sample_cells(FRAME)) == ["a", "b", "c"]


def test_times_of_other_libraries_are_not_integers() -> None:
    class Column:
        """As polars does it."""

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            times = np.array(["1970-01-02", "1970-01-03"], "datetime64[ns]")
            return times if dtype is None else times.astype(dtype)

    class Frame:
        columns = ["t"]

        def __getitem__(self, name: str) -> Column:
            return Column()

    (cells,) = cells_of(Frame(), [NumberColumn("t", 0.0, 2.0, is_date=True)])
    assert cells.dtype.kind == "M"
