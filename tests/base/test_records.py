"""One record only changes its own row, for any content (Theorem R5)."""

from __future__ import annotations

import datetime
import math
import warnings
from collections import UserDict
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator

from skdptune.base._reading import check_column_types, is_of_words
from skdptune.base._records import sorted_labels
from skdptune.base._shared import (
    check_class_weight,
    check_classes,
    check_rows_form,
    check_target_type,
    finite_rows,
    label_set,
    read_targets,
    validate_records,
    validate_rows,
    weights_of_classes,
)
from tests.base.nasty_records import IMPROPER, PROPER, Stubborn, as_frame, as_list, as_objects

LABELS = ["no", "yes"]


def records(rng: np.random.Generator, n_improper: int) -> list[list[Any]]:
    found = [[PROPER[k] for k in rng.integers(len(PROPER), size=3)] for _ in range(9)]
    for row in rng.choice(9, size=n_improper, replace=False):
        found[row][rng.integers(3)] = IMPROPER[rng.integers(len(IMPROPER))]
    return found


FORMS = {"array": as_objects, "frame": as_frame, "list": as_list}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(4))
def test_each_row_is_what_it_is_alone(form: str, seed: int) -> None:
    # Theorem R5: in the worst case a record becomes a constant row.
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
    # Theorem R5: in the worst case a record becomes a constant row.
    table = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    rows, _ = finite_rows(as_objects([*table, [0.0, value, 1.0]]), float)
    assert_array_equal(rows, [*table, [0.0, 0.0, 0.0]])


# Targets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["maybe", None, np.nan, 3, Stubborn(), b"yes", ("yes",)])
def test_a_label_that_nobody_declared_makes_its_record_constant(label: Any) -> None:
    # Theorem R5: in the worst case a record becomes a constant row.
    y = np.empty(3, dtype=object)
    y[:] = ["no", "yes", "no"]
    y[1] = label
    X, codes = validate_records(
        BaseEstimator(), np.ones((3, 2)), y, labels=LABELS, is_classifier=True
    )
    assert_array_equal(codes, ["no", "no", "no"])
    assert_array_equal(X, [[1, 1], [0, 0], [1, 1]])


@pytest.mark.parametrize(
    "y",
    [
        [2, 1, None],
        [2, 1, 1],
        np.array([2, 1, None], dtype=object),
        pd.Series([2, 1, None], dtype="Int64"),
        pd.Series([2, 1, 1], dtype="Int64"),
    ],
)
def test_a_gap_leaves_the_type_of_the_other_labels(y: Any) -> None:
    # Theorem R5: in the worst case a record becomes a constant row.
    _, found = validate_records(BaseEstimator(), np.ones((3, 1)), y, is_classifier=True)
    assert_array_equal(found, [2, 1, 1])
    assert found.dtype.kind == "i"


def test_labels_without_an_order_are_refused_unquoted() -> None:
    y = np.array(["secret", 3], dtype=object)
    with pytest.raises(TypeError, match="y must hold labels of one type") as caught:
        sorted_labels(y)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


# What raises follows from forms --------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones(3), ValueError, "Reshape your data"),
        (np.ones((3, 2, 2)), ValueError, "Expected 2D array"),
        (np.ones((0, 2)), ValueError, r"0 sample\(s\)"),
        (np.ones((3, 0)), ValueError, r"0 feature\(s\)"),
        (np.ones((3, 2), dtype=complex), ValueError, "Complex data not supported"),
        (np.array(3.0), ValueError, "two-dimensional"),
        (sparse.csr_array(np.eye(2)), TypeError, "X must be dense"),
        (np.array([["2020"]], dtype="datetime64[D]"), TypeError, "X must hold numbers"),
        (pd.DataFrame({"when": pd.to_datetime(["2020"])}), TypeError, "column 'when'"),
    ],
)
def test_what_is_no_table_is_refused(X: Any, error: Any, message: str) -> None:
    # Theorem R5: in the worst case a record becomes a constant row.
    with pytest.raises(error, match=message):
        validate_rows(BaseEstimator(), X)


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
    frame = pd.DataFrame({"a": [1.0], "b": pd.Series(["x"], dtype=object)})
    validate_rows(estimator, frame)
    assert estimator.n_features_in_ == 2
    assert list(estimator.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        validate_rows(estimator, frame.rename(columns={"a": "c"}), reset=False)


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        *((one, ValueError, "; got") for one in (["a"], ["a", "a"], [1, "1"], [], np.array([0]))),
        (np.array([1.0, np.nan]), ValueError, ", none of them missing; got "),
        (np.array(["a", None], dtype=object), ValueError, ", none of them missing; got "),
        # A word would be one label, whose model cannot predict, or as many as it has letters.
        *((one, TypeError, ", in a") for one in ("worst", b"ab", 2, np.array(2), iter([0, 1]))),
    ],
)
def test_classes_are_a_list_of_two_different_labels_at_least(
    classes: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=f"^classes must be at least two different labels{message}"):
        check_classes(classes)


@pytest.mark.parametrize("large", [2**53, -(2**53), 2**64, 2.0**53, Decimal(2**60)], ids=str)
def test_labels_that_a_missing_label_would_round_are_refused(large: Any) -> None:
    # Theorem R5: beside a missing label, 2^53 + 1 would be read as 2^53, which is another label.
    y = np.array([2**53, 2**53 + 1])
    alone = read_targets(y, "labels", [5, 2**53])[1]
    beside = read_targets(np.array([*y, np.nan]), "labels", [5, 2**53])[1]
    assert (alone.tolist(), beside.tolist()) == ([False, True], [False, False, True])
    for classes in ([5, large], np.array([5, large]), np.array([5, large], dtype=object)):
        with pytest.raises(ValueError, match=r"classes must hold numbers below 2\^53 or text"):
            check_classes(classes)
        with pytest.raises(ValueError, match=r"y must hold numbers below 2\^53 or text"):
            label_set(np.asarray(classes), None)
    check_classes([5, 2**53 - 1])
    with pytest.raises(ValueError, match="all text or all numbers"):
        check_classes(["a", 1])
    check_classes(["5", str(large)])
    check_classes(np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[ns]"))


@pytest.mark.parametrize("kind", ["float64", "int64", "bool"])
def test_numbers_are_no_labels_that_are_words(kind: str) -> None:
    """Theorem R5: by their type, which is public, all records would be improper."""
    y = np.zeros(3, dtype=kind)
    with pytest.raises(TypeError, match=r"y must hold the labels 'ill', 'well'; got numbers"):
        check_target_type(y, ["ill", "well"], is_classifier=True)
    # A number is not equal to its text: a fit would find no label.
    for labels in (
        ["0", "1"],
        ["ill", "1"],
        ["ill", 1],
        [0.5, 1.5] if kind != "float64" else ["0"],
    ):
        with pytest.raises(TypeError, match="y must hold the labels .*; got numbers"):
            check_target_type(y, labels, is_classifier=True)
        assert read_targets(y, "labels", labels)[1].all()
    for labels in ([0, 1], [0, 2], None):
        check_target_type(y, labels, is_classifier=True)
    for passed in (y.astype(object), y.tolist(), y[:0]):
        check_target_type(passed, ["ill", "well"], is_classifier=True)


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        (pd.Series(["Ill"], dtype="category"), ["ill", "well"]),
        (pd.Series([0, 1], dtype="category"), ["ill", "well"]),
        (pd.Series([0], dtype="Int64"), ["ill", "well"]),
        (pd.Series(["2020"], dtype="datetime64[ns]"), ["ill", "well"]),
        (pd.Series(["2020"], dtype="datetime64[ns, UTC]"), [0, 1]),
        (pd.to_timedelta([0], unit="s"), [0, 1]),
    ],
    ids=str,
)
def test_types_that_hold_no_label_are_refused(y: Any, labels: list[Any]) -> None:
    """Theorem R5: categories of a type may be those of records, and are not shown."""
    with pytest.raises(TypeError, match="y must hold the labels") as refusal:
        check_target_type(y, labels, is_classifier=True)
    assert "Ill" not in str(refusal.value)
    check_target_type(y.astype(object), labels, is_classifier=True)
    check_target_type(y, None, is_classifier=True)


def test_types_that_hold_some_label_pass() -> None:
    """Theorem R5."""
    for y, labels in (
        (pd.Series(["ill", "x"], dtype="category"), ["ill", "well"]),
        (pd.Series([None], dtype="category"), ["ill", "well"]),
        (pd.Series([0, 1], dtype="category"), [0, 1]),
        (pd.Series(["0"], dtype="string"), [0, 1]),
        (np.array(["0"]), [0, 1]),
        (np.array([True]), [0, 1]),
        (np.array([2**60, 2**60 + 1]), [2**60, 2**60 + 1]),
        (np.array([0, 1]), [0, math.inf]),
        (np.array(["2020"], dtype="M8[D]"), [datetime.date(2020, 1, 1), "none"]),
    ):
        check_target_type(y, labels, is_classifier=True)


def test_types_of_polars_that_hold_no_label_are_refused() -> None:
    """Theorem R5."""
    polars = pytest.importorskip("polars")
    for dtype in (polars.Int64, polars.Boolean, polars.Enum(["Ill"]), polars.Date):
        y = polars.Series([None], dtype=dtype)
        with pytest.raises(TypeError, match="y must hold the labels"):
            check_target_type(y, ["ill", "well"], is_classifier=True)
    for dtype in (polars.String, polars.Categorical, polars.Enum(["ill"]), polars.Object):
        y = polars.Series([None], dtype=dtype)
        check_target_type(y, ["ill", "well"], is_classifier=True)


def test_words_are_no_targets_of_a_regression() -> None:
    """Theorem R5."""
    words = np.array(["ill", "well"])
    for y in (
        words,
        pd.Series(words, dtype="string"),
        pd.Series(["2020"], dtype="datetime64[ns]"),
    ):
        with pytest.raises(TypeError, match="y must hold numbers; got .* use a classifier"):
            check_target_type(y, None, is_classifier=False)
    for y in (words.astype(object), words.tolist(), np.ones(2), None):
        check_target_type(y, None, is_classifier=False)


# Tables of any form read as numbers ----------------------------------------------------------


def test_numbers_that_overflow_in_single_precision_are_improper() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows, improper = finite_rows(np.array([[1e200, 1.0], [2.0, 3.0]]), np.float32)
    assert_array_equal(rows, np.array([[0, 0], [2, 3]], dtype=np.float32))
    assert_array_equal(improper, [True, False])
    assert finite_rows(np.ones((2, 2), dtype=np.float32), np.float64)[0].dtype == np.float32


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


@pytest.mark.parametrize(
    ("words", "shown"),
    [(["Leeds", "York", "Leeds"], "type str"), (["2020-01-01"] * 3, "type str")],
)
def test_columns_of_words_are_refused_by_their_type(words: list[str], shown: str) -> None:
    """Theorem R5: types are public, and no record could be proper."""
    table = pd.DataFrame({"age": [1.0, 2.0, 3.0], "city": words}).astype({"city": "str"})
    if not is_of_words(table["city"].dtype):
        pytest.skip("this pandas has no type for words")
    with pytest.raises(TypeError, match=rf"column 'city' has {shown}.* needs a Schema"):
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


# Public weights of classes: what counts as such, and how much a record then weighs -----------


@pytest.mark.parametrize(
    ("given", "classes", "wanted"),
    [
        ({0: 1.0, 1: 4.0}, [0, 1], [0.25, 1.0]),
        ({1: 4}, [0, 1, 2], [0.25, 1.0, 0.25]),
        ({1: 0.25}, [0, 1], [1.0, 0.25]),
        ({"ill": 10.0}, ["ill", "well"], [1.0, 0.1]),
        ({True: 2.0}, [False, True], [0.5, 1.0]),
        ({1.0: 2.0}, [0, 1], [0.5, 1.0]),
        ({0: 1e-300, 1: 1e9}, [0, 1], [0.0, 1.0]),
        (UserDict({0: np.float64(3.0)}), [0, 1], [1.0, 1.0 / 3.0]),
    ],
    ids=["all", "missing", "less", "words", "truth", "float", "extreme", "mapping"],
)
def test_weights_are_relative_to_the_largest(
    given: Any, classes: list[Any], wanted: list[float]
) -> None:
    # Theorem M0: none is above 1.
    check_class_weight(given, classes)
    found = weights_of_classes(given, np.unique(np.asarray(classes)))
    assert found is not None
    assert found.max() == 1.0
    assert found == pytest.approx(np.array(wanted))


def test_labels_are_named_if_a_weight_is_for_none_of_them() -> None:
    with pytest.raises(ValueError, match="got 'sick', which is not one of 'ill', 'well'"):
        check_class_weight({"sick": 2.0}, ["ill", "well"])


@pytest.mark.parametrize("given", [None, {0: 3.0, 1: 3.0}, {0: 1.0}], ids=["none", "same", "one"])
def test_equal_weights_are_none(given: Any) -> None:
    assert weights_of_classes(given, np.array([0, 1])) is None


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ("balanced", TypeError, "would count private labels. Give weights by public shares"),
        ("other", TypeError, "class_weight must be a mapping"),
        ({}, TypeError, "got an empty one"),
        ([1.0, 2.0], TypeError, "class_weight must be a mapping"),
        ({0: 0.0}, ValueError, r"class_weight\[0\] must be a number in \(0"),
        ({0: -1.0}, ValueError, r"class_weight\[0\]"),
        ({0: float("inf")}, ValueError, r"class_weight\[0\]"),
        ({0: float("nan")}, ValueError, r"class_weight\[0\]"),
        ({0: "1"}, TypeError, r"class_weight\[0\]"),
        ({2: 1.0}, ValueError, "got 2, which is not one of"),
        ({"0": 1.0}, ValueError, "got '0', which is not one of"),
    ],
    ids=["balanced", "word", "empty", "list", "zero", "minus", "inf", "nan", "text", "2", "'0'"],
)
def test_other_weights_are_refused(given: Any, kind: type[Exception], words: str) -> None:
    for refuse in (
        lambda: check_class_weight(given, [0, 1]),
        lambda: weights_of_classes(given, np.array([0, 1])),
    ):
        with pytest.raises(kind, match=words):
            refuse()


# Ranges of targets: what stands for one, and what does not -----------------------------------


@pytest.mark.parametrize("X", [None, 3, object()], ids=["nothing", "number", "object"])
def test_what_is_no_table_is_named(X: Any) -> None:
    with pytest.raises(TypeError, match="^X must be a table of rows and columns; got "):
        check_rows_form(X, accept_sparse=False, allow_nd=False)


def test_classes_that_are_not_known_yet_are_looked_at_later() -> None:
    check_class_weight({2: 1.0}, None)
    with pytest.raises(ValueError, match="not one of"):
        weights_of_classes({2: 1.0}, np.array([0, 1]))


def test_a_masked_text_is_missing_and_not_a_question_mark() -> None:
    y = np.ma.MaskedArray(["?", "no", "?"], mask=[False, True, False])
    found = validate_records(
        BaseEstimator(), np.ones((3, 1)), y, labels=["?", "no"], is_classifier=True
    )
    assert found.X.ravel().tolist() == [1.0, 0.0, 1.0]
