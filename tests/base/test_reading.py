"""Tables of any form read as numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from skdptune.base import by_halves, finite_rows
from skdptune.base._reading import check_column_types, is_of_words


def test_numbers_that_overflow_in_single_precision_are_improper() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows, improper = finite_rows(np.array([[1e200, 1.0], [2.0, 3.0]]), np.float32)
    assert_array_equal(rows, np.array([[0, 0], [2, 3]], dtype=np.float32))
    assert_array_equal(improper, [True, False])
    assert finite_rows(np.ones((2, 2), dtype=np.float32), np.float64)[0].dtype == np.float32


def test_one_word_makes_words_of_all_numbers_but_changes_none() -> None:
    rows, _ = finite_rows(np.array([[1.5, 2.0], [3.0, "word"]]), float)
    assert_array_equal(rows, [[1.5, 2.0], [0.0, 0.0]])


def test_typed_columns_with_gaps() -> None:
    frame = pd.DataFrame(
        {"a": pd.array([1, None, 3], dtype="Int64"), "b": [True, False, True], "c": [0.5, 1, 2]}
    )
    rows, improper = finite_rows(frame, float)
    assert_array_equal(rows, [[1, 1, 0.5], [0, 0, 0], [3, 1, 2]])
    assert_array_equal(improper, [False, True, False])


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_rows(make: Any) -> None:
    table = np.array([[1.0, 0, 2], [0, np.inf, 3], [0, 0, 0], [np.nan, 0, 1], [0, 4, 0]])
    given = make(table)
    rows, improper = finite_rows(given, float)
    expected, wrong = finite_rows(table, float)
    assert_array_equal(rows.toarray(), expected)
    assert_array_equal(improper, wrong)
    assert_array_equal(given.toarray(), table)


def test_repeated_entries_of_sparse_rows_are_added_up() -> None:
    # A row's length is read from its entries, which must not be parts of one number.
    table = sparse.csr_matrix((np.ones(4), [0, 0, 0, 0], [0, 4]), shape=(1, 2))
    rows, _ = finite_rows(table, float)
    assert_array_equal(rows.data, [4.0])
    assert table.nnz == 4
    huge = sparse.csr_matrix(([1.7e308, 1.7e308], [0, 0], [0, 2]), shape=(1, 2))
    rows, improper = finite_rows(huge, float)
    assert_array_equal(improper, [True])
    assert not rows.toarray().any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_proper_numbers_are_not_copied(dtype: type) -> None:
    table = np.ones((3, 2), dtype=dtype)
    assert np.shares_memory(finite_rows(table, float)[0], table)
    broken = np.array([[np.nan, 1.0], [1.0, 2.0]], dtype=dtype)
    given = broken.copy()
    assert_array_equal(finite_rows(broken, float)[0], [[0, 0], [1, 2]])
    assert_array_equal(broken, given)


def test_finite_numbers_whose_sum_overflows_are_proper() -> None:
    table = np.full((4, 3), 1.7e308)
    assert_array_equal(finite_rows(table, float)[0], table)


@pytest.mark.parametrize("shape", [(0, 3), (0, 2, 2)])
def test_no_records(shape: tuple[int, ...]) -> None:
    rows, improper = finite_rows(np.ones(shape), np.float32)
    assert rows.shape == shape
    assert improper.shape == (0,)


def test_by_halves_calls_the_fallback_for_failing_records_alone() -> None:
    def function(part: np.ndarray) -> np.ndarray:
        if (part < 0).any():
            raise ValueError
        return np.sqrt(part)

    values = np.array([1.0, -4.0, 9.0, 16.0, -1.0])
    found = by_halves(function, values, lambda part: np.zeros(1))
    assert_array_equal(np.concatenate([result for _, result in found]), [1, 0, 3, 4, 0])
    assert_array_equal(np.concatenate([part for part, _ in found]), values)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["Leeds", "York", "Leeds"], "type str"),
        (["2020-01-01"] * 3, "type str"),
    ],
)
def test_columns_of_words_are_refused_by_their_type(words: list[str], shown: str) -> None:
    """Theorem R5: types are public, and no record could be proper."""
    table = pd.DataFrame({"age": [1.0, 2.0, 3.0], "city": words}).astype({"city": "str"})
    if not is_of_words(table["city"].dtype):
        pytest.skip("this pandas has no type for words")
    with pytest.raises(TypeError, match=rf"column 'city' has {shown}.* wants a Schema"):
        check_column_types(table)
    with pytest.raises(TypeError, match="column 'city' has type category"):
        check_column_types(table.astype({"city": "category"}))
    with pytest.raises(TypeError, match="column 'city' has type datetime64"):
        check_column_types(table.assign(city=pd.Timestamp("2020-01-01")))


def test_columns_that_one_record_can_make_pass() -> None:
    """Theorem R5: a word among numbers makes objects of all, and is a matter of one record."""
    mixed = pd.DataFrame({"age": pd.Series([1.0, "old", 3.0], dtype=object)})
    levels = pd.DataFrame({"level": pd.Categorical([1, 2, 1])})
    for table in (mixed, levels, pd.DataFrame({"age": [1, 2]}, dtype="Int64")):
        check_column_types(table)
