"""Data in pieces: memory-mapped files, iterators, dask arrays."""

import numpy as np
import pytest

from skdptune.linear_model import PTRLinearRegression
from skdptune.linear_model._regression._sufficient_statistics import chunks_of, is_streamed

X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(3000, 3))
Y = np.clip(X @ [0.5, -0.5, 0.2], -1.0, 1.0)


def model():
    return PTRLinearRegression(1.0, 1e-5, target_bound=1.0, random_state=0)


@pytest.fixture(scope="module")
def whole():
    return model().fit(X, Y)


def same(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.intercept_ == other.intercept_
    assert one.n_features_in_ == other.n_features_in_
    assert one.privacy_.profile == other.privacy_.profile


def pairs(size):
    return ((X[k : k + size], Y[k : k + size]) for k in range(0, len(X), size))


@pytest.mark.parametrize("size", [1, 700, 3000])
def test_iterators_of_chunks(whole, size):
    same(model().fit(pairs(size)), whole)


def test_memory_mapped_rows(whole, tmp_path, monkeypatch):
    monkeypatch.setattr("skdptune.linear_model._regression._sufficient_statistics._ROWS", 500)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert is_streamed(mapped)
    assert len(list(chunks_of(mapped, Y))) == 6
    same(model().fit(mapped, Y), whole)
    same(model().fit(mapped, Y[:, None]), whole)


@pytest.mark.parametrize("blocks", [(1000, 3), (700, 2), (3000, 1)])
def test_dask_arrays(whole, blocks):
    da = pytest.importorskip("dask.array")
    rows, targets = da.from_array(X, chunks=blocks), da.from_array(Y, chunks=900)
    assert is_streamed(rows)
    same(model().fit(rows, targets), whole)
    same(model().fit(rows, Y), whole)


def test_dask_arrays_of_unknown_length(whole):
    da = pytest.importorskip("dask.array")
    rows, targets = da.from_array(X, chunks=(1000, 3)), da.from_array(Y, chunks=1000)
    keep = da.from_array(np.ones(3000, dtype=bool), chunks=1000)
    same(model().fit(rows[keep], targets[keep]), whole)
    with pytest.raises(ValueError, match="each chunk must be of shapes"):
        model().fit(rows[keep], da.from_array(Y, chunks=900)[keep])


def test_ordinary_rows_are_not_streamed():
    assert not is_streamed(X)
    assert not is_streamed(X.tolist())


@pytest.mark.parametrize(
    ("rows", "targets", "error", "message"),
    [
        (lambda: iter([]), None, ValueError, "at least one chunk"),
        (lambda: pairs(100), Y, ValueError, "y must be None"),
        (lambda: iter([X]), None, TypeError, "must give pairs"),
        (lambda: iter([(X, Y), (X[:, :2], Y)]), None, ValueError, "must have 3 columns"),
        (lambda: iter([(X[0], Y)]), None, ValueError, "two dimensions"),
    ],
)
def test_bad_iterators_are_refused(rows, targets, error, message):
    with pytest.raises(error, match=message):
        model().fit(rows(), targets)


def test_bad_arrays_are_refused(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    with pytest.raises(ValueError, match="y must be given"):
        model().fit(mapped)
    with pytest.raises(ValueError, match="X and y must be of shapes"):
        model().fit(mapped, Y[:-1])
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="y must be of shape"):
        model().fit(da.from_array(X), Y[:-1])
    with pytest.raises(ValueError, match="X must be two-dimensional"):
        model().fit(da.from_array(Y), Y)
