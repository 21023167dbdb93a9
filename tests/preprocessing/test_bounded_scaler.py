"""Features scaled by known bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import MinMaxScaler

from skdptune.preprocessing import BoundedScaler
from tests.preprocessing import conventions


def test_scikit_learn_checks() -> None:
    conventions.check_scikit_learn(BoundedScaler((-20, 20)), at_least=44)


@pytest.mark.parametrize("check", conventions.ALL)
def test_convention(check) -> None:
    check(BoundedScaler(([-1, -2, -3], 3), feature_range=(-1, 2)))


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


def test_widest_bounds_do_not_overflow() -> None:
    scaler = BoundedScaler((-1.7e308, 1.7e308))
    np.testing.assert_allclose(scaler.fit_transform([[0.0], [1.7e308]]), [[0.5], [1.0]])


def test_bad_parameters_are_refused_before_the_data_is_read() -> None:
    with pytest.raises(ValueError, match="bounds must be a pair .* got None"):
        BoundedScaler().fit(object())
    with pytest.raises(ValueError, match="feature_range"):
        BoundedScaler((0, 1), (1, 0)).fit(object())
    with pytest.raises(ValueError, match="of 3 features; got 2 numbers"):
        BoundedScaler(([0, 0], [1, 1])).fit(np.eye(3))


def test_sparse_rows_are_refused() -> None:
    with pytest.raises(TypeError, match="[Ss]parse"):
        BoundedScaler((0, 1)).fit(sparse.eye(3).tocsr())
