"""Sums over clipped records: exact, equal for any chunks, and of bounded sensitivity."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.linear_model import PTRLinearRegression, SufficientStatistics

rng = np.random.default_rng(0)
# Of the longest row with its constant, in units of the bound, and what rounding adds.
RADIUS2 = 1.25 * (1.0 + 1e-5)
ROWS = rng.normal(size=(9000, 4)) * rng.choice([0.1, 1.0, 30.0], size=(9000, 1))
TARGETS = rng.normal(size=9000) * 3.0


def plain(X, y, norm, bound, intercept):
    """Return the sums in floats, in units of the bounds."""
    Z = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), norm)
    if intercept:
        Z = np.column_stack([Z, np.full(len(Z), 0.5)])
    return Z.T @ Z, Z.T @ (np.clip(y, -bound, bound) / bound)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("norm", "bound"), [(1.0, 1.0), (3.7, 0.31), (200.0, 1e6)])
def test_sums_are_those_of_clipped_records(norm, bound, intercept):
    # Theorem L0: what bounds a record's influence on a linear regression.
    sums = SufficientStatistics(norm, bound, intercept).update(ROWS, TARGETS)
    wanted = plain(ROWS, TARGETS, norm, bound, intercept)
    gram, moment = sums.gram_and_moment
    np.testing.assert_allclose(gram, wanted[0], rtol=1e-5, atol=9000 * 4e-6)
    np.testing.assert_allclose(moment, wanted[1], rtol=1e-5, atol=9000 * 4e-6)
    assert sums.width == 4 + intercept
    assert sums.n_samples == 9000


@settings(max_examples=25)
@given(st.lists(st.integers(0, 9000), max_size=6), st.integers(0, 2**32 - 1))
def test_chunks_and_order_make_no_difference(cuts, seed):
    # Theorem L9: sums that one record changes only by its own products.
    whole = SufficientStatistics(1.0, 2.0).update(ROWS, TARGETS)
    order = np.random.default_rng(seed).permutation(9000)
    parts = SufficientStatistics(1.0, 2.0)
    for index in np.split(order, sorted(cuts)):
        parts.update(ROWS[index], TARGETS[index])
    for one, other in zip(whole.gram_and_moment, parts.gram_and_moment, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6, 1e200])
def test_one_record_moves_the_sums_by_its_own_norm_at_most(scale):
    # Theorem L9: sums that one record changes only by its own products.
    base = SufficientStatistics(1.0, 1.0).update(ROWS, TARGETS)
    gram, moment = base.gram_and_moment
    for seed in range(20):
        generator = np.random.default_rng(seed)
        row = scale * generator.normal(size=(1, 4))
        more = SufficientStatistics(1.0, 1.0).update(ROWS, TARGETS).update(row, [9.0])
        change = more.gram_and_moment[0] - gram
        assert np.linalg.norm(change) <= RADIUS2
        assert np.linalg.norm(change) >= 0.2
        radius = RADIUS2**0.5
        assert np.linalg.norm(more.gram_and_moment[1] - moment) <= radius
        before, after = base.spectrum[0][0], more.spectrum[0][0]
        assert 0.0 <= after - before + 1e-9 <= RADIUS2


def test_long_rows_are_as_long_as_allowed_and_no_longer():
    # Theorem L0: what bounds a record's influence on a linear regression.
    for row in (ROWS[:1] * 1e5, np.full((1, 4), 1e300), np.array([[1e-3, 0, 0, 1e308]])):
        gram = SufficientStatistics(2.0, 1.0, False).update(row, [0.0]).gram_and_moment[0]
        assert 1.0 - 1e-4 <= np.trace(gram) <= 1.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_records_that_are_not_finite_count_as_zeros(bad):
    # Theorem R5: in the worst case a record becomes a constant row.
    X, y = ROWS[:5].copy(), TARGETS[:5].copy()
    X[2, 1] = bad
    y[3] = bad
    sums = SufficientStatistics(1.0, 1.0).update(X, y)
    X[2:4], y[2:4] = 0.0, 0.0
    expected = SufficientStatistics(1.0, 1.0).update(X, y)
    for found, wanted in zip(sums.gram_and_moment, expected.gram_and_moment, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert sums.n_samples == 5


@pytest.mark.parametrize("bound", [1e-100, 1e-30, 1.0, 1e100])
def test_zeros_in_single_precision_are_zeros(bound):
    sums = SufficientStatistics(bound, 1.0).update(np.zeros((3, 2), np.float32), np.ones(3))
    np.testing.assert_array_equal(sums.gram_and_moment[0][:2, :2], np.zeros((2, 2)))


def test_bad_chunks_are_refused():
    sums = SufficientStatistics(1.0, 1.0).update(ROWS[:5], TARGETS[:5])
    with pytest.raises(ValueError, match="each chunk must have 4 columns; got 3"):
        sums.update(ROWS[:5, :3], TARGETS[:5])
    with pytest.raises(ValueError, match="each chunk must be of shapes"):
        sums.update(ROWS[:5], TARGETS[:4])
    with pytest.raises(TypeError, match="X must be real numbers"):
        sums.update(ROWS[:5].astype(complex), TARGETS[:5])
    with pytest.raises(ValueError, match="data_norm must be"):
        SufficientStatistics(0.0, 1.0)
    with pytest.raises(ValueError, match="target_bound must be"):
        SufficientStatistics(1.0, np.inf)
    with pytest.raises(TypeError, match="fit_intercept must be"):
        SufficientStatistics(1.0, 1.0, "yes")


@pytest.mark.parametrize("ends", [(100.0, 140.0), (-7.0, 1.0), [-2.0, 2.0]], ids=str)
def test_targets_count_from_the_middle_of_their_range(ends):
    # Theorem L0: what bounds a record's influence on a linear regression.
    far = TARGETS * 20.0 + 118.0
    sums = SufficientStatistics(1.0, ends).update(ROWS, far)
    middle, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    by_hand = SufficientStatistics(1.0, half).update(ROWS, np.clip(far, *ends) - middle)
    for one, other in zip(sums.gram_and_moment, by_hand.gram_and_moment, strict=True):
        np.testing.assert_array_equal(one, other)
    assert sums.centre_and_half == (middle, half)
    # Without an intercept nothing is taken from them.
    sums = SufficientStatistics(1.0, ends, fit_intercept=False).update(ROWS, far)
    bound = max(abs(ends[0]), abs(ends[1]))
    by_hand = SufficientStatistics(1.0, bound, fit_intercept=False)
    by_hand.update(ROWS, np.clip(far, *ends))
    np.testing.assert_array_equal(sums.gram_and_moment[1], by_hand.gram_and_moment[1])
    assert sums.centre_and_half == (0.0, bound)


@pytest.mark.parametrize("ends", [(1e9, 1e9 + 1e-3), (-1e100, 1e100), (99.9, 100.1)], ids=str)
def test_no_far_target_moves_the_sums_by_more_than_its_row(ends):
    # Theorem L0: whatever rounding does to a difference of numbers that are far away.
    targets = np.array([ends[0], ends[1], 0.0, -1e300, 1e300, np.nan, np.mean(ends)])
    for target in targets:
        sums = SufficientStatistics(1.0, ends).update(np.array([[1.0, 0.0]]), np.array([target]))
        assert np.abs(sums.gram_and_moment[1]).max() <= 1.0


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


def test_memory_mapped_rows(tmp_path):
    # More rows than are read at once.
    rows, targets = np.tile(X, (24, 1)), np.tile(Y, 24)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    whole = model().fit(rows, targets)
    same(model().fit(mapped, targets), whole)
    same(model().fit(mapped, targets[:, None]), whole)


@pytest.mark.parametrize("blocks", [(1000, 3), (700, 2), (3000, 1)])
def test_dask_arrays(whole, blocks):
    da = pytest.importorskip("dask.array")
    rows, targets = da.from_array(X, chunks=blocks), da.from_array(Y, chunks=900)
    same(model().fit(rows, targets), whole)
    same(model().fit(rows, Y), whole)


@pytest.mark.parametrize(
    ("rows", "targets", "error", "message"),
    [
        (lambda: iter([]), None, ValueError, "at least one chunk"),
        (lambda: pairs(100), Y, ValueError, "y must be None"),
        (lambda: iter([X]), None, TypeError, "must yield pairs"),
        (lambda: iter([(X, Y), (X[:, :2], Y)]), None, ValueError, "must have 3 columns"),
        (lambda: iter([(X[0], Y)]), None, ValueError, "two-dimensional"),
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


def test_reading_follows_later_chunks_and_copies_agree():
    sums = SufficientStatistics(1.0, 1.0).update(ROWS[:10], TARGETS[:10])
    assert sums.spectrum[0].shape == (5,)
    copy = pickle.loads(pickle.dumps(sums))
    for each in (sums, copy):
        each.update(ROWS[10:], TARGETS[10:])
    whole = SufficientStatistics(1.0, 1.0).update(ROWS, TARGETS)
    for each in (sums, copy):
        np.testing.assert_array_equal(each.gram_and_moment[0], whole.gram_and_moment[0])
        np.testing.assert_array_equal(each.spectrum[0], whole.spectrum[0])
