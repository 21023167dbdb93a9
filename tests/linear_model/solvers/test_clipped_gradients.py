"""Clipped rows, their coordinates, and sums of clipped gradients: against naive loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from skdptune.linear_model._solvers import _clipped_gradients
from skdptune.linear_model._solvers._clipped_gradients import (
    ClippedGradients,
    margin_residuals,
    softmax_residuals,
)
from skdptune.linear_model._solvers._coordinates import Coordinates
from skdptune.linear_model._solvers._design import Design

LIMIT = 0.7
logistic = margin_residuals(lambda margins: -expit(-margins))


def problem(n_outputs, kind="dense", dtype=np.float64, n_samples=50, intercept=True):
    rng = np.random.default_rng(n_outputs)
    rows = (3 * rng.normal(size=(n_samples, 6)) * (rng.random((n_samples, 6)) < 0.6)).astype(dtype)
    given = {"dense": rows, "csr": sparse.csr_array(rows), "fortran": np.asfortranarray(rows)}
    design = Design.clipped(given[kind], norm=2.0, intercept=intercept)
    signs = rng.choice([-1.0, 1.0], size=(n_samples, n_outputs))
    labels = rng.integers(n_outputs, size=n_samples)
    weights = rng.normal(size=(design.width, n_outputs))
    return rows, design, (labels if n_outputs == 2 else signs), weights


def residuals_for(n_outputs):
    return softmax_residuals if n_outputs == 2 else logistic


def naive_sum(rows, targets, weights, batch, residuals_of, intercept=True):
    total = np.zeros(weights.shape)
    for index in batch:
        row = rows[index].astype(np.float64)
        row = row * min(1.0, 2.0 / max(np.linalg.norm(row), 1e-12))
        row = np.append(row, 1.0) if intercept else row
        residual = residuals_of((row @ weights)[None], targets[index : index + 1])[0]
        gradient = np.outer(row, residual)
        total += gradient * min(1.0, LIMIT / max(np.linalg.norm(gradient), 1e-12))
    return total


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["dense", "csr", "fortran"])
@pytest.mark.parametrize("n_outputs", [1, 2, 4])
def test_sum_equals_a_loop_over_records(n_outputs, kind, intercept):
    rows, design, targets, weights = problem(n_outputs, kind, intercept=intercept)
    batch = np.array([0, 3, 4, 17, 30, 49])
    residuals_of = residuals_for(n_outputs)
    sums = ClippedGradients(design, targets, residuals_of, LIMIT)
    expected = naive_sum(rows, targets, weights, batch, residuals_of, intercept)
    np.testing.assert_allclose(sums(weights, batch), expected, rtol=1e-12, atol=1e-14)
    everyone = naive_sum(rows, targets, weights, range(50), residuals_of, intercept)
    np.testing.assert_allclose(sums(weights, slice(None)), everyone, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_chunks_add_up(monkeypatch, kind):
    rows, design, targets, weights = problem(4, kind)
    whole = ClippedGradients(design, targets, logistic, LIMIT)
    monkeypatch.setattr(_clipped_gradients, "_LEAST_ROWS", 7)
    monkeypatch.setattr(_clipped_gradients, "_BUFFER_BYTES", 1)
    chunked = ClippedGradients(design, targets, logistic, LIMIT)
    for batch in (np.arange(0, 50, 2), np.arange(7), slice(None)):
        np.testing.assert_allclose(chunked(weights, batch), whole(weights, batch), atol=1e-13)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_no_single_record_moves_the_sum_by_more_than_the_limit(kind):
    # Theorem M5.
    _, design, targets, weights = problem(4, kind)
    sums = ClippedGradients(design, targets, logistic, LIMIT)
    norms = [np.linalg.norm(sums(20 * weights, np.array([i]))) for i in range(50)]
    assert max(norms) <= LIMIT * (1 + 1e-12)
    # Else nothing was clipped.
    assert max(norms) > LIMIT * (1 - 1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_residuals_that_are_not_finite_stay_within_the_limit(n_outputs, value):
    _, design, _, weights = problem(n_outputs)
    broken = np.zeros((50, n_outputs))
    broken[5, 0] = value
    broken[6] = 1e-3
    sums = ClippedGradients(design, broken, lambda decision, target: target, LIMIT)
    with np.errstate(all="ignore"):
        one, both = sums(weights, np.array([5])), sums(weights, np.array([5, 6]))
    assert np.linalg.norm(one) <= LIMIT * (1 + 1e-12)
    np.testing.assert_allclose(both - one, sums(weights, np.array([6])), atol=1e-12)


def test_residuals_are_derivatives_of_the_losses():
    rng = np.random.default_rng(0)
    decision, step = rng.normal(size=(5, 3)), 1e-6
    labels, signs = np.array([0, 2, 1, 1, 0]), rng.choice([-1.0, 1.0], size=(5, 3))

    def softmax_loss(m):
        return np.log(np.exp(m).sum(axis=1)) - m[np.arange(5), labels]

    def margin_loss(m):
        return np.logaddexp(0, -signs * m).sum(axis=1)

    for loss, residuals in (
        (softmax_loss, softmax_residuals(decision, labels)),
        (margin_loss, logistic(decision, signs)),
    ):
        for k in range(3):
            shift = step * np.eye(3)[k]
            slope = (loss(decision + shift) - loss(decision - shift)) / (2 * step)
            np.testing.assert_allclose(residuals[:, k], slope, atol=1e-8)


def test_softmax_residuals_do_not_overflow():
    result = softmax_residuals(np.array([[1e5, 0.0], [-1e5, 0.0]]), np.array([1, 1]))
    assert result.tolist() == [[1.0, -1.0], [0.0, 0.0]]


@pytest.mark.parametrize("limit", [2.137e-7, 1e-5, 1.0])
@pytest.mark.parametrize("length", [3e38, 1e30, 1.0])
def test_no_rounding_of_a_small_residual_makes_a_gradient_too_long(limit, length):
    # The scale of a huge row leaves single precision a residual of one digit.
    rows = np.array([[length], [1.0]], dtype=np.float32)
    design = Design.clipped(rows, norm=1.0, intercept=False)
    for residual in (1.0, 1e-7, 0.3):
        sums = ClippedGradients(
            design, np.array([residual, 0.0]), lambda _, target: target[:, None], limit
        )
        assert np.abs(sums(np.zeros((1, 1)), slice(None))).max() <= limit * (1.0 + 1e-6)


@pytest.mark.parametrize("length", [0.0, 1e-40])
def test_endless_residuals_of_rows_near_zero_stay_numbers(length):
    rows = np.array([[length], [1.0]], dtype=np.float32)
    design = Design.clipped(rows, norm=1.0, intercept=False)
    targets = np.array([1e39, 0.5])
    sums = ClippedGradients(design, targets, lambda _, target: target[:, None], 1.0)
    total = sums(np.zeros((1, 1)), slice(None))
    assert 0.5 <= float(total[0, 0]) <= 1.5


def test_nothing_that_is_kept_changes_in_a_call():
    _, design, targets, weights = problem(1, dtype=np.float32)
    sums = ClippedGradients(design, targets, logistic, LIMIT)
    for batch in (slice(None), np.arange(50), slice(None)):
        first = sums(weights, batch)
        np.testing.assert_array_equal(sums(weights, batch), first)


@pytest.mark.parametrize("kind", ["dense", "csr", "fortran"])
@pytest.mark.parametrize("n_outputs", [1, 2, 4])
def test_weights_multiply_clipped_gradients(n_outputs, kind):
    # Theorem M0, Theorem M5.
    _, design, targets, weights = problem(n_outputs, kind)
    factors = np.random.default_rng(0).choice([0.0, 0.1, 1.0], 50)
    plain = ClippedGradients(design, targets, residuals_for(n_outputs), LIMIT)
    sums = ClippedGradients(design.weighted(factors), targets, residuals_for(n_outputs), LIMIT)
    alone = [plain(20 * weights, np.array([i])) for i in range(50)]
    for i in range(50):
        one = sums(20 * weights, np.array([i]))
        assert np.linalg.norm(one) <= factors[i] * LIMIT * (1 + 1e-12)
        np.testing.assert_allclose(one, factors[i] * alone[i], rtol=1e-12, atol=1e-15)
    expected = np.tensordot(factors, alone, axes=1)
    np.testing.assert_allclose(sums(20 * weights, slice(None)), expected, atol=1e-12)


RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(40, 3))
BASES = {
    "full": RNG.normal(size=(4, 4)) + 2.0 * np.eye(4),
    "diagonal": np.array([2.0, 0.1, 30.0, 0.5]),
}
FORMS = {
    "dense": lambda rows: rows,
    "float32": lambda rows: rows.astype(np.float32),
    "sparse": sparse.csr_matrix,
}


def coordinates_of(name, form="dense", norm=1.5, shrinkage=0.0):
    design = Design.clipped(FORMS[form](ROWS), norm, intercept=True)
    return design, Coordinates(BASES[name], design, np.full((4, 1), shrinkage))


def matrix(name):
    basis = BASES[name]
    return np.diag(basis) if basis.ndim == 1 else basis


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BASES)
def test_squared_norms_are_those_of_the_moved_rows(name, form):
    design, coordinates = coordinates_of(name, form)
    dense = design.rows.toarray() if sparse.issparse(design.rows) else design.rows
    rows = np.column_stack([dense * design.scale[:, None], np.ones(len(ROWS))])
    expected = ((rows @ matrix(name)) ** 2).sum(axis=1)
    np.testing.assert_allclose(coordinates.squared_norms, expected, rtol=1e-6)
    if form == "dense":
        assert np.all(coordinates.squared_norms >= expected)


@pytest.mark.parametrize("name", BASES)
def test_weights_and_coordinates_are_inverse_and_gradients_transposed(name):
    _, coordinates = coordinates_of(name)
    point = RNG.normal(size=(4, 2))
    weights = coordinates.weights(point)
    np.testing.assert_allclose(weights, matrix(name) @ point)
    np.testing.assert_allclose(coordinates.of(weights), point)
    np.testing.assert_allclose(coordinates.gradient(weights), matrix(name).T @ weights)


@pytest.mark.parametrize("name", BASES)
def test_shrinking_solves_the_implicit_step(name):
    _, coordinates = coordinates_of(name, shrinkage=0.7)
    point = RNG.normal(size=(4, 2))
    shrunk = coordinates.shrunk(point)
    np.testing.assert_allclose(
        shrunk + 0.7 * coordinates.gradient(coordinates.weights(shrunk)), point
    )


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BASES)
def test_no_record_moves_a_clipped_sum_by_more_than_the_limit(name, form, n_outputs):
    """Theorem M5, Theorem M7."""
    design, coordinates = coordinates_of(name, form)
    targets = np.where(ROWS[:, 0] > 0, 1.0, -1.0) if n_outputs == 1 else np.arange(40) % 3
    residuals = logistic if n_outputs == 1 else softmax_residuals
    sums = ClippedGradients(design, targets, residuals, 0.3, coordinates.squared_norms)
    longest = 0.0
    for scale in (0.0, 1.0, 50.0):
        weights = coordinates.weights(scale * RNG.normal(size=(4, n_outputs)))
        for index in range(40):
            moved = coordinates.gradient(sums(weights, np.array([index])))
            longest = max(longest, float(np.linalg.norm(moved)))
    assert 0.29 < longest <= 0.3 * (1.0 + (1e-6 if form == "float32" else 0.0))


def test_rows_whose_norm_overflows_move_nothing():
    rows = np.array([[1e99, -1e99, 0.0], [1.0, 0.0, 0.0]])
    design = Design.clipped(rows, np.inf, intercept=True)
    coordinates = Coordinates(1e80 * BASES["full"], design, np.zeros((4, 1)))
    assert coordinates.squared_norms[0] > 1e300
    sums = ClippedGradients(design, np.ones(2), logistic, 0.3, coordinates.squared_norms)
    assert np.abs(coordinates.gradient(sums(np.zeros((4, 1)), np.array([0])))).max() <= 0.3


def data(seed=0, n=9, d=4):
    return np.random.default_rng(seed).normal(size=(n, d)) * 3.0


def explicit(X, norm, intercept):
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    rows = X * np.minimum(1.0, norm / lengths)
    return np.hstack([rows, np.ones((len(X), 1))]) if intercept else rows


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("outputs", [(), (3,)])
def test_products_are_those_of_the_clipped_matrix(intercept, container, outputs):
    X, rng = data(), np.random.default_rng(1)
    matrix = explicit(X, 4.0, intercept)
    design = Design.clipped(container(X), 4.0, intercept)
    weights = rng.normal(size=(design.width, *outputs))
    residuals = rng.normal(size=(len(X), *outputs))
    np.testing.assert_allclose(design.decision(weights), matrix @ weights)
    np.testing.assert_allclose(design.gradient(residuals), matrix.T @ residuals)
    np.testing.assert_allclose(design.squared_norms, (matrix**2).sum(axis=1))
    some = np.array([5, 0, 5])
    np.testing.assert_allclose(design.take(some).decision(weights), matrix[some] @ weights)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_no_row_is_longer_than_the_norm_whatever_its_size(container):
    # Theorem M0.
    X = np.array([[1e200, -1e200], [1.7e308, 1.7e308], [1e-320, 0], [0, 0], [3, 4], [0, 1e120]])
    given = container(X)
    design = Design.clipped(given, 2.0, False)
    rows = design.rows.toarray() if sparse.issparse(given) else design.rows
    clipped = rows * design.scale[:, None]
    assert (given != container(X)).sum() == 0
    assert np.isfinite(design.squared_norms).all()
    assert (np.linalg.norm(clipped, axis=1) <= 2.0).all()
    np.testing.assert_allclose(np.linalg.norm(clipped, axis=1), [2, 2, 0, 0, 2, 2])


@pytest.mark.parametrize("norm", [1e-100, 1.0, 1e7, np.inf])
def test_no_product_overflows(norm):
    # Theorem M0.
    X = np.array([[1e308, -1e308], [1.7e308, 1.7e308], [1e150, 0.0]])
    design = Design.clipped(X, norm, True)
    assert np.isfinite(design.squared_norms).all()
    assert np.isfinite(design.decision(np.full(3, 1e50))).all()
    np.testing.assert_array_less(design.scale, 1.0 + 1e-15)
    lengths = np.hypot(*(design.rows * design.scale[:, None]).T / min(norm, 1e100))
    np.testing.assert_allclose(lengths, 1.0)
    assert (lengths <= 1.0).all()


def test_clipping_looks_at_one_row_at_a_time():
    # Theorem M0.
    X = data()
    whole = Design.clipped(X, 1.0, True)
    alone = Design.clipped(X[3:4], 1.0, True)
    assert whole.scale[3] == alone.scale[0]


def test_weights_go_with_their_rows():
    weights = np.linspace(0.0, 1.0, 9)
    design = Design.clipped(data(), 4.0, True).weighted(weights)
    some = np.array([5, 0, 5])
    np.testing.assert_array_equal(design.take(some).weights, weights[some])
    values = np.arange(18.0).reshape(9, 2)
    np.testing.assert_array_equal(design.times_weights(values), values * weights[:, None])
    np.testing.assert_array_equal(design.times_weights(values[:, 0]), values[:, 0] * weights)
    plain = Design.clipped(data(), 4.0, True)
    assert plain.weighted(None) is plain
    assert plain.times_weights(values) is values


@pytest.mark.parametrize("weights", [[1.0], [1.1] * 9, [-0.1] * 9, [np.nan] * 9], ids=str)
def test_no_weight_raises_an_influence(weights):
    # Theorem M0.
    with pytest.raises(ValueError, match=r"^weights must be 9 numbers in \[0, 1\]"):
        Design.clipped(data(), 4.0, True).weighted(np.array(weights))
