"""Common properties of transformers that learn nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler

from skdptune.accounting import PrivacyProfile
from skdptune.preprocessing import BoundedScaler, RowNormClipper
from tests.base.nasty_records import FORMS, nasty_rows
from tests.preprocessing import conventions

EVERY = [RowNormClipper(), BoundedScaler((-3, 3))]


@pytest.mark.parametrize("transformer", EVERY, ids=str)
def test_nothing_is_spent(transformer) -> None:
    assert transformer.privacy_profile(10) == PrivacyProfile.pure(0.0)
    report = transformer.fit(np.eye(3)).privacy_
    assert (report.epsilon, report.delta) == (0.0, 0.0)
    assert report.profile == PrivacyProfile.pure(0.0)
    assert report.name == type(transformer).__name__
    assert transformer.cost_parameters == frozenset()
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1; got 0"):
        transformer.privacy_profile(0)


@pytest.mark.parametrize("transformer", EVERY, ids=str)
def test_each_record_is_treated_by_itself(transformer) -> None:
    rows = 3.0 * np.random.default_rng(1).normal(size=(10, 3))
    together = transformer.fit(rows).transform(rows)
    alone = np.vstack([transformer.fit(row[None]).transform(row[None]) for row in rows])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("transformer", EVERY, ids=str)
def test_transform_needs_no_fit(transformer) -> None:
    assert type(transformer)(**transformer.get_params()).transform(np.eye(3)).shape == (3, 3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("transformer", EVERY, ids=str)
def test_fit_looks_at_no_entry(transformer, form) -> None:
    # Theorem R5: in the worst case a record becomes a constant row.
    for row in nasty_rows(form, 3):
        fitted = clone(transformer).fit(FORMS[form]([[1.0, 2.0, 3.0], row]))
        assert fitted.n_features_in_ == 3
        assert fitted.privacy_.epsilon == 0.0


# Bounds and ranges: what is taken, and what is refused with a reason -------------------------


@pytest.mark.parametrize(
    "bounds",
    [(0, 2), ([0, 0], [2, 2]), (0, [2, 2]), np.array([[0.0, 0.0], [2.0, 2.0]])],
    ids=["numbers", "lists", "both", "array"],
)
def test_bounds_reach_every_feature(bounds) -> None:
    scaled = BoundedScaler(bounds).fit_transform([[-1.0, 1.0], [1.5, 9.0]])
    assert scaled.tolist() == [[0.0, 0.5], [0.75, 1.0]]


@pytest.mark.parametrize(
    ("bounds", "complaint"),
    [
        (None, "got None. Bounds must be known without looking at the data, such as"),
        (3, "got 3"),
        ((0, 1, 2), r"got \(0, 1, 2\)"),
        (("a", 1), "got"),
        ((1, 1), "lower below upper"),
        ((0, np.inf), "must be finite"),
        ((np.nan, 1), "must be finite"),
        (([0, 0], [1, 1, 1]), r"shapes \(2,\) and \(3,\)"),
        (([[0]], [[1]]), "shapes"),
        (([0, 5], [1, 4]), "lower below upper"),
        (([0, 0], [1, 1]), "of 3 features; got 2 numbers"),
    ],
)
def test_bad_bounds_are_refused(bounds, complaint) -> None:
    with pytest.raises(ValueError, match=complaint):
        BoundedScaler(bounds).fit(np.eye(3))


@pytest.mark.parametrize("given", [None, (1, 1), (2, 1), (0, np.inf), (0, 1, 2), "ab"])
def test_bad_feature_range_is_refused(given) -> None:
    with pytest.raises(ValueError, match="feature_range must be a pair of finite numbers"):
        BoundedScaler((0, 1), given).fit(object())


# Features scaled by known bounds -------------------------------------------------------------


@pytest.mark.parametrize("transformer", [BoundedScaler((-20, 20)), RowNormClipper()], ids=str)
def test_scikit_learn_checks(transformer) -> None:
    conventions.check_scikit_learn(transformer, at_least=44)


@pytest.mark.parametrize("check", conventions.ALL)
def test_convention(check) -> None:
    check(BoundedScaler(([-1, -2, -3], 3), feature_range=(-1, 2)))
    check(RowNormClipper(0.7))


@pytest.mark.parametrize("feature_range", [(0, 1), (-1, 1), (5, 7)])
def test_equals_min_max_scaler_fitted_to_the_bounds(feature_range) -> None:
    low, high = np.array([-2.0, 0.0]), np.array([2.0, 9.0])
    oracle = MinMaxScaler(feature_range=feature_range, clip=True).fit([low, high])
    rows = 5.0 * np.random.default_rng(0).normal(size=(100, 2))
    result = BoundedScaler((low, high), feature_range).fit_transform(rows)
    np.testing.assert_allclose(result, oracle.transform(rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_range_is_never_left(dtype) -> None:
    rows = np.random.default_rng(1).uniform(-0.4, 0.4, size=(1000, 3)).astype(dtype)
    result = BoundedScaler((-0.1, 0.3), (0.1, 0.7)).fit_transform(rows)
    assert result.dtype == dtype
    assert result.min() == dtype(0.1)
    assert result.max() == dtype(0.7)


def test_inverse_returns_what_was_clipped() -> None:
    scaler = BoundedScaler((0, 10), (-1, 1)).fit([[0.0]])
    result = scaler.inverse_transform(scaler.transform([[2.5], [-4.0], [11.0]]))
    np.testing.assert_allclose(result, [[2.5], [0.0], [10.0]], atol=1e-14)


# Rows clipped to a norm: dense, sparse, single precision, extremes ---------------------------


def exact_squared_norm(row: np.ndarray) -> Fraction:
    return sum((Fraction(float(value)) ** 2 for value in row), Fraction(0))


@pytest.mark.parametrize(
    ("dtype", "norm", "as_given"),
    [
        (np.float64, 1e-3, np.asarray),
        (np.float64, 1.0, sparse.csr_matrix),
        (np.float64, 0.1, sparse.csr_array),
        (np.float32, 1e6, np.asarray),
        (np.float32, 0.1, sparse.csr_matrix),
        (np.float32, 1e-3, sparse.csr_array),
    ],
)
def test_no_row_is_longer_than_the_norm_to_the_last_bit(dtype, norm, as_given) -> None:
    rng = np.random.default_rng(2)
    rows = (norm * rng.normal(size=(300, 7)) * rng.choice([0.0, 0.3, 5.0], (300, 1))).astype(dtype)
    result = RowNormClipper(norm).fit_transform(as_given(rows))
    dense = result.toarray() if sparse.issparse(result) else result
    assert dense.dtype == dtype
    assert max(map(exact_squared_norm, dense)) <= Fraction(norm) ** 2
    lengths = np.linalg.norm(rows.astype(float), axis=1)
    short = lengths < 0.99 * norm
    assert 20 < short.sum() < 280
    np.testing.assert_array_equal(dense[short], rows[short])
    wanted = rows[~short] * (np.minimum(1.0, norm / lengths[~short]))[:, None]
    np.testing.assert_allclose(dense[~short], wanted, rtol=3e-6 if dtype == np.float32 else 1e-13)


def test_sparse_stays_sparse_and_agrees_with_dense() -> None:
    rows = sparse.random(50, 20, density=0.2, format="csr", random_state=3) * 4.0
    result = RowNormClipper(1.0).fit_transform(rows)
    assert result.format == "csr"
    assert result.nnz == rows.nnz
    dense = RowNormClipper(1.0).fit_transform(rows.toarray())
    np.testing.assert_allclose(result.toarray(), dense, rtol=1e-13)


def test_duplicate_entries_of_a_sparse_row_count_as_their_sum() -> None:
    rows = sparse.csr_matrix((np.array([2.0, 2.0]), np.array([0, 0]), np.array([0, 2])), (1, 2))
    result = RowNormClipper(3.0).fit_transform(rows)
    assert result.toarray()[0, 0] == pytest.approx(3.0)
    assert result.toarray()[0, 0] <= 3.0
    assert rows.nnz == 2


@pytest.mark.parametrize("value", [1e-320, 1e-200, 1e200, 1.7e308])
def test_extreme_rows_neither_overflow_nor_divide_by_zero(value) -> None:
    rows = np.array([[value, value, 0.0]])
    for given in (rows, sparse.csr_matrix(rows)):
        result = RowNormClipper(1.0).fit_transform(given)
        dense = result.toarray() if sparse.issparse(result) else result
        wanted = min(value, np.sqrt(0.5))
        np.testing.assert_allclose(dense, [[wanted, wanted, 0.0]], rtol=1e-12)


@pytest.mark.parametrize(("norm", "kind"), [(0.0, ValueError), (-1, ValueError), ("a", TypeError)])
def test_bad_norm_is_refused_before_the_data_is_read(norm, kind) -> None:
    with pytest.raises(kind, match="norm must be a number in"):
        RowNormClipper(norm).fit(object())
