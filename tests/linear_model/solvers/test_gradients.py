"""Clipped rows, sums of clipped gradients, and descents along them: against naive loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import expit

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._solvers import _noisy_gradient
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._noisy_gradient import (
    ClippedGradients,
    Coordinates,
    default_learning_rate,
    fit_noisy_gradient,
    margin_residuals,
    softmax_residuals,
)
from skdptune.mechanisms._shared import grid_of, plan_noisy_gradient

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
    monkeypatch.setattr(_noisy_gradient, "_LEAST_ROWS", 7)
    monkeypatch.setattr(_noisy_gradient, "_BUFFER_BYTES", 1)
    chunked = ClippedGradients(design, targets, logistic, LIMIT)
    for batch in (np.arange(0, 50, 2), np.arange(7), slice(None)):
        np.testing.assert_allclose(chunked(weights, batch), whole(weights, batch), atol=1e-13)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_no_single_record_moves_the_sum_by_more_than_the_limit(kind):
    # Theorem M5: noisy clipped gradients on Poisson batches or batches of fixed size.
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


def coordinates_of(name, form="dense", norm=1.5):
    design = Design.clipped(FORMS[form](ROWS), norm, intercept=True)
    return design, Coordinates(BASES[name], 4)


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
    np.testing.assert_allclose(coordinates.squared_norms(design), expected, rtol=1e-6)
    if form == "dense":
        assert np.all(coordinates.squared_norms(design) >= expected)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BASES)
def test_no_record_moves_a_clipped_sum_by_more_than_the_limit(name, form, n_outputs):
    """Theorem M5, Theorem M7."""
    design, coordinates = coordinates_of(name, form)
    targets = np.where(ROWS[:, 0] > 0, 1.0, -1.0) if n_outputs == 1 else np.arange(40) % 3
    residuals = logistic if n_outputs == 1 else softmax_residuals
    sums = ClippedGradients(design, targets, residuals, 0.3, coordinates.squared_norms(design))
    longest = 0.0
    for scale in (0.0, 1.0, 50.0):
        weights = coordinates.weights(scale * RNG.normal(size=(4, n_outputs)))
        for index in range(40):
            moved = coordinates.gradient(sums(weights, np.array([index])))
            longest = max(longest, float(np.linalg.norm(moved)))
    assert 0.29 < longest <= 0.3 * (1.0 + (1e-6 if form == "float32" else 0.0))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_sparse_rows_less_a_row_are_those_of_a_dense_table(n_outputs):
    """Theorem M7: also rows that are next to that row, or very long."""
    rows, centre = ROWS + 10.0, ROWS[0] + 10.0
    rows[1:4] = centre * np.array([[1.0 + 1e-12], [1.0 + 1e-6], [1e60]])
    designs = [Design.clipped(kind(rows), np.inf, True) for kind in (np.asarray, FORMS["sparse"])]
    targets = np.where(ROWS[:, 0] > 0, 1.0, -1.0) if n_outputs == 1 else np.arange(40) % 3
    residuals = logistic if n_outputs == 1 else softmax_residuals
    coordinates = Coordinates(BASES["diagonal"], 4)
    weights = coordinates.weights(RNG.normal(size=(4, n_outputs)))
    moved = []
    for design in (each.centred(centre) for each in designs):
        norms = coordinates.squared_norms(design)
        # Without these norms, bounds on the rows' own are used.
        for given in (norms, None)[: 1 + (design is not designs[0])]:
            sums = ClippedGradients(design, targets, residuals, 0.3, given)
            parts = [sums(weights, np.array([index])) for index in range(40)]
            lengths = [np.linalg.norm(coordinates.gradient(part)) for part in parts]
            assert given is None or max(lengths) <= 0.3 * (1.0 + 1e-12)
            assert given is not None or max(map(np.linalg.norm, parts)) <= 0.3 * (1.0 + 1e-12)
        moved.append(
            ClippedGradients(design, targets, residuals, 0.3, norms)(weights, slice(None))
        )
    np.testing.assert_allclose(moved[1], moved[0], rtol=1e-3, atol=1e-3)


def test_rows_whose_norm_overflows_move_nothing():
    rows = np.array([[1e99, -1e99, 0.0], [1.0, 0.0, 0.0]])
    design = Design.clipped(rows, np.inf, intercept=True)
    coordinates = Coordinates(1e80 * BASES["full"], 4)
    norms = coordinates.squared_norms(design)
    assert norms[0] > 1e300
    sums = ClippedGradients(design, np.ones(2), logistic, 0.3, norms)
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
    # Theorem M0: what bounds a record's influence on a linear classifier.
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
    # Theorem M0: what bounds a record's influence on a linear classifier.
    X = np.array([[1e308, -1e308], [1.7e308, 1.7e308], [1e150, 0.0]])
    design = Design.clipped(X, norm, True)
    assert np.isfinite(design.squared_norms).all()
    assert np.isfinite(design.decision(np.full(3, 1e50))).all()
    np.testing.assert_array_less(design.scale, 1.0 + 1e-15)
    lengths = np.hypot(*(design.rows * design.scale[:, None]).T / min(norm, 1e100))
    np.testing.assert_allclose(lengths, 1.0)
    assert (lengths <= 1.0).all()


def test_clipping_looks_at_one_row_at_a_time():
    # Theorem M0: what bounds a record's influence on a linear classifier.
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
    # Theorem M0: what bounds a record's influence on a linear classifier.
    with pytest.raises(ValueError, match=r"^weights must be 9 numbers in \[0, 1\]"):
        Design.clipped(data(), 4.0, True).weighted(np.array(weights))


# Descents ------------------------------------------------------------------------------------


def residual_is_target(decision, targets):
    return targets[:, None]


def make_plan(n_samples, batch_size, steps, noise, sampling="poisson"):
    rate = batch_size / n_samples
    if sampling == "allocation":
        rate = 1.0 / round(1.0 / rate)
    plan = plan_noisy_gradient(
        n_samples,
        epochs=steps * rate,
        batch_size=batch_size,
        noise_multiplier=noise,
        sampling=sampling,
    )
    assert plan.steps == steps
    return plan


def labelled(n_samples=60, dtype=np.float64):
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(n_samples, 4)).astype(dtype)
    return rows, np.where(rows[:, 0] > 0, 1.0, -1.0)


def on(residuals_of):
    """Return a problem whose labels are its targets."""
    return lambda labels, n_outputs: (residuals_of, labels)


def fit(plan, rows, targets, *, residuals_of=logistic, n_outputs=1, seed=0, **options):
    design = Design.clipped(rows, norm=2.0, intercept=True)
    options = {"learning_rate": 0.5, "max_grad_norm": 0.8} | options
    return fit_noisy_gradient(
        plan,
        design,
        on(residuals_of),
        targets,
        n_outputs,
        rng=np.random.default_rng(seed),
        **options,
    )


def clipped_gradient(rows, signs, weights, limit):
    """Return the sum of clipped logistic gradients, record by record."""
    total = np.zeros_like(weights)
    for row, sign in zip(rows, signs, strict=True):
        row = np.append(row * min(1.0, 2.0 / np.linalg.norm(row)), 1.0)
        gradient = -sign * expit(-sign * (row @ weights)) * row
        total += gradient * min(1.0, limit / np.linalg.norm(gradient))
    return total


def test_without_noise_and_sampling_it_is_gradient_descent():
    rows, signs = labelled()
    weights = fit(make_plan(60, 60, 5, 0.0), rows, signs, regularization=3.0)
    expected = np.zeros(5)
    for _ in range(5):
        expected -= 0.5 * clipped_gradient(rows, signs, expected, 0.8) / 60
        expected /= 1.0 + 0.5 * 3.0 / 60
    np.testing.assert_allclose(weights.ravel(), expected, rtol=1e-12)


def test_no_penalty_is_too_strong_for_the_length_of_steps():
    rows, signs = labelled()
    long, longer = (
        np.linalg.norm(fit(make_plan(60, 60, 40, 0.0), rows, signs, regularization=each))
        for each in (600.0, 60_000.0)
    )
    assert 50.0 < long / longer < 120.0


def test_adam_equals_the_textbook():
    rows, signs = labelled()
    weights = fit(make_plan(60, 60, 5, 0.0), rows, signs, regularization=3.0, optimizer="adam")
    expected, first, second = np.zeros(5), np.zeros(5), np.zeros(5)
    for count in range(1, 6):
        gradient = clipped_gradient(rows, signs, expected, 0.8) / 60 + 3.0 / 60 * expected
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        unbiased = first / (1 - 0.9**count), second / (1 - 0.999**count)
        expected = expected - 0.5 * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
    np.testing.assert_allclose(weights.ravel(), expected, rtol=1e-10)


@pytest.mark.parametrize("sampling", ["poisson", "fixed", "allocation"])
def test_noise_has_the_stated_deviation(sampling):
    # Rows of zeros and no intercept leave nothing but noise.
    design = Design.clipped(np.zeros((20, 5000)), norm=1.0, intercept=False)
    weights = fit_noisy_gradient(
        make_plan(20, 4, 3, 1.7, sampling),
        design,
        on(logistic),
        np.ones(20),
        1,
        learning_rate=2.0,
        max_grad_norm=0.3,
        rng=np.random.default_rng(0),
    )
    # Three independent draws, each of deviation 1.7 * 0.3, times 2.0 / 4.
    normalised = weights.ravel() / (1.7 * 0.3 * 2.0 / 4 * np.sqrt(3))
    assert stats.kstest(normalised, "norm").pvalue > 1e-3
    assert abs(normalised.std() - 1) < 4 / np.sqrt(2 * 5000)


def test_noise_is_fresh_in_every_step_and_block():
    # 7 x 10,000 numbers to a step: one step to a block.
    design = Design.clipped(np.zeros((2, 10_000)), norm=1.0, intercept=False)
    weights = fit_noisy_gradient(
        make_plan(2, 2, 4, 1.0),
        design,
        on(lambda decision, targets: np.zeros_like(decision)),
        np.ones(2),
        7,
        learning_rate=1.0,
        max_grad_norm=1.0,
        rng=np.random.default_rng(0),
    )
    assert abs(weights.std() - 1.0) < 0.02


def test_every_record_is_used_once_in_an_epoch_of_an_allocation():
    # Theorem M6. Every record pulls by 1, and the divisor is the expected size of four batches.
    plan = make_plan(50, 13, 20, 0.0, "allocation")
    assert (plan.rate, plan.batch_size) == (0.25, 12)
    design = Design.clipped(np.ones((50, 1)), norm=1.0, intercept=False)
    weights = fit_noisy_gradient(
        plan,
        design,
        on(residual_is_target),
        -np.ones(50),
        1,
        learning_rate=1.0,
        max_grad_norm=1.0,
        rng=np.random.default_rng(0),
    )
    assert weights.item() == pytest.approx(5 * 50 / 12)


def step_of(rows, noise, seed):
    """Return the weight after one full-batch step in one dimension."""
    plan = make_plan(3, 3, 1, noise)
    design = Design.clipped(np.ones((len(rows), 1)), norm=1.0, intercept=False)
    return fit_noisy_gradient(
        plan,
        design,
        on(residual_is_target),
        np.array(rows),
        1,
        learning_rate=1.0,
        max_grad_norm=1.0,
        rng=np.random.default_rng(seed),
    ).item()


def test_one_step_has_the_distribution_that_the_profile_is_of():
    noise = 1.3
    larger = stats.norm(-(0.5 - 0.2 + 1.0) / 3, noise / 3)
    smaller = stats.norm(-(0.5 - 0.2) / 3, noise / 3)
    for rows, distribution in (([0.5, -0.2, 9.0], larger), ([0.5, -0.2], smaller)):
        drawn = [step_of(rows, noise, seed) for seed in range(800)]
        assert stats.kstest(drawn, distribution.cdf).pvalue > 1e-3
    profile = make_plan(3, 3, 1, noise).profile
    grid = np.linspace(-6, 6, 200_001)
    for epsilon in (0.0, 0.5, 1.5):
        for pair in ((larger, smaller), (smaller, larger)):
            gap = pair[0].pdf(grid) - np.exp(epsilon) * pair[1].pdf(grid)
            exact = np.maximum(gap, 0.0).sum() * (grid[1] - grid[0])
            assert profile.delta(epsilon) == pytest.approx(exact, abs=1e-5)


def audit(plan, noise_factor, n_fits):
    """Return upper confidence bounds on both errors of an attack on a canary's presence.

    All other records' gradients vanish or, where batches are of fixed size, oppose the
    canary's; it has the largest gradient that clipping admits. The attack compares
    the final weight with the middle of both distributions.
    """
    run = replace(plan, noise_multiplier=plan.noise_multiplier * noise_factor)
    others = np.full(plan.n_samples - 1, 1.0 if plan.sampling == "fixed" else 0.0)
    finals = []
    for offset, targets in enumerate((np.append(others, -100.0), others)):
        design = Design.clipped(np.ones((len(targets), 1)), norm=1.0, intercept=False)
        finals.append(
            [
                fit_noisy_gradient(
                    run,
                    design,
                    on(residual_is_target),
                    targets,
                    1,
                    learning_rate=1.0,
                    max_grad_norm=1.0,
                    rng=np.random.default_rng([offset, seed]),
                ).item()
                for seed in range(n_fits)
            ]
        )
    with_canary, without = np.array(finals)
    half = n_fits // 2
    threshold = (with_canary[:half].mean() + without[:half].mean()) / 2
    errors = (without[half:] > threshold).sum(), (with_canary[half:] <= threshold).sum()
    tests = n_fits - half
    return [stats.beta.ppf(0.9995, count + 1, tests - count) for count in errors]


def is_refuted(profile: PrivacyProfile, errors):
    """Return whether both errors are surely smaller than the profile permits."""
    return errors[1] < profile.tradeoff(errors[0])


def epsilon_lower_bound(errors, delta):
    return max(np.log(max(1 - errors[i] - delta, 1e-300) / errors[1 - i]) for i in (0, 1))


AUDITED = {
    "full batch": (20, 20, 4, 0.8, "poisson"),
    "poisson": (4, 2, 10, 0.8, "poisson"),
    "fixed": (4, 2, 10, 1.6, "fixed"),
    "allocation": (4, 2, 10, 0.8, "allocation"),
}


def test_audit_cannot_refute_the_profile():
    # Theorem M5: noisy clipped gradients on Poisson batches or batches of fixed size.
    plan = make_plan(*AUDITED["poisson"])
    errors = audit(plan, 1.0, 400)
    assert not is_refuted(plan.profile, errors)
    assert epsilon_lower_bound(errors, 1e-5) <= plan.profile.epsilon(1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", AUDITED)
def test_thorough_audit(name):
    # Theorem M5, Theorem M6.
    plan = make_plan(*AUDITED[name])
    errors = audit(plan, 1.0, 6000)
    assert not is_refuted(plan.profile, errors)
    assert epsilon_lower_bound(errors, 1e-5) <= plan.profile.epsilon(1e-5)
    assert is_refuted(plan.profile, audit(plan, 0.7, 6000))


def test_fixed_size_plan_for_more_records_is_refused():
    rows, signs = labelled(58)
    with pytest.raises(ValueError, match="design must be of at least the plan's 60 rows; got 58"):
        fit(make_plan(60, 10, 1, 1.0, "fixed"), rows, signs)


def test_default_step_of_adam_falls_with_the_root_of_their_number():
    rates = [default_learning_rate("adam", steps) for steps in (1, 4, 900)]
    assert rates == pytest.approx([0.3, 0.15, 0.01])
    assert default_learning_rate("sgd", 1) == default_learning_rate("sgd", 900) == 2.0


def test_low_bits_do_not_show_which_weights_are_zero():
    # Theorem E1: after one step of a learning rate of a power of two, weights are noisy sums.
    width = 2**12
    plan = make_plan(n_samples=4, batch_size=4, steps=1, noise=1.7)
    found = []
    for rows in (np.zeros((4, width)), np.ones((4, width)), np.eye(4, width)):
        design = Design.clipped(rows, 1.0, False)
        weights = fit_noisy_gradient(
            plan,
            design,
            on(margin_residuals(lambda margins: np.full(margins.shape, -0.3))),
            np.ones(4),
            1,
            learning_rate=0.5,
            max_grad_norm=1.0,
            rng=np.random.default_rng(len(found)),
        )
        steps = weights.ravel() * 4 / 0.5 / grid_of(1.7)
        np.testing.assert_array_equal(steps, np.rint(steps))
        found.append(int(np.sum(steps % 2)))
    # As many of them are odd, whatever the data are.
    assert all(abs(odd - width / 2) < 5 * np.sqrt(width) / 2 for odd in found)


@pytest.mark.parametrize("name", BASES)
def test_shrinking_solves_the_implicit_step(name):
    _, coordinates = coordinates_of(name)
    point = RNG.normal(size=(4, 2))
    shrunk = coordinates.shrinker(0.7)(point)
    np.testing.assert_allclose(
        shrunk + 0.7 * coordinates.gradient(coordinates.weights(shrunk)), point
    )
