"""Rows clipped to a norm: dense, sparse, single precision, extremes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from skdptune.preprocessing import RowNormClipper
from tests.preprocessing import conventions


def exact_squared_norm(row: np.ndarray) -> Fraction:
    return sum((Fraction(float(value)) ** 2 for value in row), Fraction(0))


def test_scikit_learn_checks() -> None:
    conventions.check_scikit_learn(RowNormClipper(), at_least=44)


@pytest.mark.parametrize("check", conventions.ALL)
def test_convention(check) -> None:
    check(RowNormClipper(0.7))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("norm", [1e-3, 1.0, 0.1, 1e6])
@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_matrix, sparse.csr_array])
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


def test_empty_and_zero_rows_stay() -> None:
    for rows in (np.zeros((2, 3)), sparse.csr_matrix((2, 3))):
        result = RowNormClipper(1.0).fit_transform(rows)
        assert np.abs(result).sum() == 0.0


@pytest.mark.parametrize(("norm", "kind"), [(0.0, ValueError), (-1, ValueError), ("a", TypeError)])
def test_bad_norm_is_refused_before_the_data_is_read(norm, kind) -> None:
    with pytest.raises(kind, match="norm must be a number in"):
        RowNormClipper(norm).fit(object())
