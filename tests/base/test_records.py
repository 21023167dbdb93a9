"""One record changes its own row alone, whatever it holds (Theorem R5)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator

from skdptune.base._records import (
    by_halves,
    finite_rows,
    sorted_labels,
    target_array,
    validate_records,
    validate_rows,
)
from tests.base.nasty_records import (
    IMPROPER,
    PROPER,
    Stubborn,
    as_frame,
    as_list,
    as_objects,
)

LABELS = ["no", "yes"]


def records(rng: np.random.Generator, n_improper: int) -> list[list[Any]]:
    found = [[PROPER[k] for k in rng.integers(len(PROPER), size=3)] for _ in range(9)]
    for row in rng.choice(9, size=n_improper, replace=False):
        found[row][rng.integers(3)] = IMPROPER[rng.integers(len(IMPROPER))]
    return found


FORMS = {"array": as_objects, "frame": as_frame, "list": as_list}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(60))
def test_each_row_is_what_it_is_alone(form: str, seed: int) -> None:
    # Theorem R5.
    rng = np.random.default_rng(seed)
    n_improper = int(rng.integers(9))
    table = records(rng, n_improper)
    rows, improper = finite_rows(FORMS[form](table), float)
    assert np.isfinite(rows).all()
    assert int(improper.sum()) == n_improper
    assert not rows[improper].any()
    for place, record in enumerate(table):
        alone, wrong = finite_rows(FORMS[form]([record]), float)
        assert_array_equal(alone[0], rows[place])
        assert wrong[0] == improper[place]


@pytest.mark.parametrize("value", IMPROPER, ids=lambda value: type(value).__name__)
def test_a_record_more_leaves_the_others(value: Any) -> None:
    # Theorem R5.
    table = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    rows, _ = finite_rows(as_objects([*table, [0.0, value, 1.0]]), float)
    assert_array_equal(rows, [*table, [0.0, 0.0, 0.0]])


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


# Targets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["maybe", None, np.nan, 3, Stubborn(), b"yes", ("yes",)])
def test_a_label_that_nobody_declared_makes_its_record_constant(label: Any) -> None:
    # Theorem R5.
    y = np.empty(3, dtype=object)
    y[:] = ["no", "yes", "no"]
    y[1] = label
    X, codes = validate_records(
        BaseEstimator(), np.ones((3, 2)), y, labels=LABELS, is_classifier=True
    )
    assert_array_equal(codes, ["no", "no", "no"])
    assert_array_equal(X, [[1, 1], [0, 0], [1, 1]])


@pytest.mark.parametrize("y", [[0, 1, "word"], np.array([0, 1, "word"]), [0.0, 1.0, np.nan]])
def test_a_word_among_numbers_leaves_their_labels(y: Any) -> None:
    X, found = validate_records(
        BaseEstimator(), np.ones((3, 1)), y, labels=[0, 1], is_classifier=True
    )
    assert_array_equal(found, [0, 1, 0])
    assert found.dtype.kind == "i"
    assert_array_equal(X[:, 0], [1, 1, 0])


def test_without_declared_labels_gaps_are_improper() -> None:
    X, y = validate_records(
        BaseEstimator(), np.ones((3, 1)), np.array([2.0, np.nan, 1.0]), is_classifier=True
    )
    assert_array_equal(y, [2, 1, 1])
    assert_array_equal(X[:, 0], [1, 0, 1])


@pytest.mark.parametrize("target", IMPROPER, ids=lambda value: type(value).__name__)
def test_a_target_that_is_no_number_makes_its_record_constant(target: Any) -> None:
    y = np.empty(3, dtype=object)
    y[:] = [1.0, 2.0, 3.0]
    y[1] = target
    X, found = validate_records(BaseEstimator(), np.ones((3, 2)), y)
    assert_array_equal(found, [1, 0, 3])
    assert_array_equal(X, [[1, 1], [0, 0], [1, 1]])


def test_improper_rows_lose_their_targets() -> None:
    X, y = validate_records(BaseEstimator(), [[1.0], [np.nan]], [5.0, 6.0])
    assert_array_equal(X[:, 0], [1, 0])
    assert_array_equal(y, [5, 0])


@pytest.mark.parametrize("target", IMPROPER, ids=lambda value: type(value).__name__)
def test_lists_of_targets(target: Any) -> None:
    # Theorem R5.
    assert_array_equal(finite_rows(target_array([1, 2.0, target]), float)[0], [1, 2, 0])


@pytest.mark.parametrize("labels", [[b"a", b"b"], [0.5, 1.5], [False, True], ["a", "b"]])
def test_declared_labels_of_any_type(labels: list[Any]) -> None:
    X, y = validate_records(
        BaseEstimator(), np.ones((2, 1)), labels, labels=labels, is_classifier=True
    )
    assert_array_equal(y, labels)
    assert_array_equal(X[:, 0], [1, 1])


def test_labels_without_an_order_are_refused_unquoted() -> None:
    y = np.array(["secret", 3], dtype=object)
    with pytest.raises(TypeError, match="y must hold labels of one type") as caught:
        sorted_labels(y)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_several_targets() -> None:
    _, y = validate_records(
        BaseEstimator(), np.ones((2, 1)), [[1.0, 2.0], [np.inf, 0.0]], n_outputs=None
    )
    assert_array_equal(y, [[1, 2], [0, 0]])


# What raises follows from forms --------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "Reshape your data"),
        (np.ones((3, 2, 2)), "Expected 2D array"),
        (np.ones((0, 2)), r"0 sample\(s\)"),
        (np.ones((3, 0)), r"0 feature\(s\)"),
        (np.ones((3, 2), dtype=complex), "Complex data not supported"),
        ([[1.0, 2.0], [3.0]], "one length"),
        (np.array(3.0), "two-dimensional"),
    ],
)
def test_what_is_no_table_is_refused(X: Any, message: str) -> None:
    # Theorem R5.
    with pytest.raises(ValueError, match=message):
        validate_rows(BaseEstimator(), X)


@pytest.mark.parametrize(
    "X", [sparse.csr_array(np.eye(2)), np.array([["2020"]], dtype="datetime64[D]")]
)
def test_tables_of_other_types_are_refused(X: Any) -> None:
    with pytest.raises(TypeError, match="X must"):
        validate_rows(BaseEstimator(), X)


def test_columns_of_times_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="column 'when'"):
        validate_rows(BaseEstimator(), pd.DataFrame({"when": pd.to_datetime(["2020"])}))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        (np.ones((2, 2)), "1d array"),
        (np.ones(3), "as long as X"),
        (np.ones(2, dtype=complex), "Complex data"),
    ],
)
def test_wrong_targets_are_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        validate_records(BaseEstimator(), np.ones((2, 2)), y)


def test_names_of_columns_are_kept_and_compared() -> None:
    class Named(BaseEstimator):
        pass

    estimator = Named()
    frame = pd.DataFrame({"a": [1.0], "b": ["x"]})
    validate_rows(estimator, frame)
    assert estimator.n_features_in_ == 2
    assert list(estimator.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        validate_rows(estimator, frame.rename(columns={"a": "c"}), reset=False)


def test_by_halves_calls_the_fallback_for_failing_records_alone() -> None:
    def function(part: np.ndarray) -> np.ndarray:
        if (part < 0).any():
            raise ValueError
        return np.sqrt(part)

    values = np.array([1.0, -4.0, 9.0, 16.0, -1.0])
    found = by_halves(function, values, lambda part: np.zeros(1))
    assert_array_equal(np.concatenate([result for _, result in found]), [1, 0, 3, 4, 0])
    assert_array_equal(np.concatenate([part for part, _ in found]), values)
