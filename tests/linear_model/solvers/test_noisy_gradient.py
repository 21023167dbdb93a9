"""Descent along noisy sums of clipped gradients, and where it starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import expit

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._solvers._clipped_gradients import margin_residuals, softmax_residuals
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._noisy_gradient import (
    default_learning_rate,
    fit_noisy_gradient,
    initial_weights,
)
from skdptune.mechanisms import grid_of, plan_noisy_gradient

logistic = margin_residuals(lambda margins: -expit(-margins))


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


def data(n_samples=60, dtype=np.float64):
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(n_samples, 4)).astype(dtype)
    return rows, np.where(rows[:, 0] > 0, 1.0, -1.0)


def fit(plan, rows, targets, *, residuals_of=logistic, n_outputs=1, seed=0, **options):
    design = Design.clipped(rows, norm=2.0, intercept=True)
    options = {"learning_rate": 0.5, "max_grad_norm": 0.8} | options
    return fit_noisy_gradient(
        plan,
        design,
        residuals_of,
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
    rows, signs = data()
    weights = fit(make_plan(60, 60, 5, 0.0), rows, signs, regularization=3.0)
    expected = np.zeros(5)
    for _ in range(5):
        gradient = clipped_gradient(rows, signs, expected, 0.8) / 60 + 3.0 / 60 * expected
        expected -= 0.5 * gradient
    np.testing.assert_allclose(weights.ravel(), expected, rtol=1e-12)


def test_adam_equals_the_textbook():
    rows, signs = data()
    weights = fit(make_plan(60, 60, 5, 0.0), rows, signs, regularization=3.0, optimizer="adam")
    expected, first, second = np.zeros(5), np.zeros(5), np.zeros(5)
    for count in range(1, 6):
        gradient = clipped_gradient(rows, signs, expected, 0.8) / 60 + 3.0 / 60 * expected
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        unbiased = first / (1 - 0.9**count), second / (1 - 0.999**count)
        expected = expected - 0.5 * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
    np.testing.assert_allclose(weights.ravel(), expected, rtol=1e-10)


def test_coefficients_can_be_regularised_one_by_one():
    plan = make_plan(10, 10, 1, 0.0)
    weights = fit(
        plan,
        np.zeros((10, 4)),
        np.zeros(10),
        residuals_of=residual_is_target,
        regularization=[1.0, 2.0, 0.0, 4.0, 0.0],
        initial=np.ones((5, 1)),
    )
    np.testing.assert_allclose(weights.ravel(), [0.95, 0.9, 1.0, 0.8, 1.0])


@pytest.mark.parametrize("sampling", ["poisson", "fixed", "allocation"])
def test_noise_has_the_stated_deviation(sampling):
    # Rows of zeros and no intercept leave nothing but noise.
    design = Design.clipped(np.zeros((20, 5000)), norm=1.0, intercept=False)
    weights = fit_noisy_gradient(
        make_plan(20, 4, 3, 1.7, sampling),
        design,
        logistic,
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
        lambda decision, targets: np.zeros_like(decision),
        np.ones(2),
        7,
        learning_rate=1.0,
        max_grad_norm=1.0,
        rng=np.random.default_rng(0),
    )
    assert abs(weights.std() - 1.0) < 0.02


def test_the_divisor_is_the_expected_batch_size():
    # Every record pulls by 1: without noise the weight counts the records drawn.
    plan = make_plan(50, 5, 2000, 0.0)
    design = Design.clipped(np.ones((50, 1)), norm=1.0, intercept=False)
    weights = fit_noisy_gradient(
        plan,
        design,
        residual_is_target,
        -np.ones(50),
        1,
        learning_rate=1.0,
        max_grad_norm=1.0,
        rng=np.random.default_rng(0),
    )
    drawn = weights.item() * 5
    assert drawn == pytest.approx(round(drawn))
    assert abs(drawn - 10_000) < 4 * np.sqrt(2000 * 50 * 0.1 * 0.9)
    assert drawn != 10_000


def test_every_record_is_used_once_in_an_epoch_of_an_allocation():
    # Theorem M6. Every record pulls by 1, and the divisor is the expected size of four batches.
    plan = make_plan(50, 13, 20, 0.0, "allocation")
    assert (plan.rate, plan.batch_size) == (0.25, 12)
    design = Design.clipped(np.ones((50, 1)), norm=1.0, intercept=False)
    weights = fit_noisy_gradient(
        plan,
        design,
        residual_is_target,
        -np.ones(50),
        1,
        learning_rate=1.0,
        max_grad_norm=1.0,
        rng=np.random.default_rng(0),
    )
    assert weights.item() == pytest.approx(5 * 50 / 12)


@pytest.mark.parametrize("sampling", ["poisson", "allocation"])
def test_no_data_still_makes_a_step_of_noise(sampling):
    plan = make_plan(1, 1, 2, 1.0, sampling)
    weights = fit(plan, np.zeros((0, 4)), np.zeros(0))
    assert np.isfinite(weights).all()
    assert (weights != 0.0).all()


@pytest.mark.parametrize("sampling", ["poisson", "fixed", "allocation"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_sparse_equals_dense(optimizer, sampling):
    rows, signs = data()
    rows[np.abs(rows) < 0.5] = 0.0
    plan = make_plan(60, 10, 30, 0.5, sampling)
    dense = fit(plan, rows, signs, optimizer=optimizer)
    as_csr = fit(plan, sparse.csr_array(rows), signs, optimizer=optimizer)
    np.testing.assert_allclose(as_csr, dense, rtol=1e-9, atol=1e-12)


def test_float32_is_close_to_float64():
    rows, signs = data(dtype=np.float32)
    plan = make_plan(60, 10, 30, 0.5)
    single, double = fit(plan, rows, signs), fit(plan, rows.astype(np.float64), signs)
    np.testing.assert_allclose(single, double, atol=1e-4)


def test_same_seed_same_result():
    rows, signs = data()
    plan = make_plan(60, 10, 30, 0.5)
    results = [fit(plan, rows, signs, seed=seed) for seed in (1, 1, 2)]
    assert np.array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])


def test_several_outputs_learn():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 4))
    labels = rows[:, :3].argmax(axis=1)
    plan = plan_noisy_gradient(2000, epochs=20, batch_size=200, epsilon=2.0, delta=1e-5)
    weights = fit(plan, rows, labels, residuals_of=softmax_residuals, n_outputs=3)
    accuracy = ((rows @ weights[:-1] + weights[-1]).argmax(axis=1) == labels).mean()
    assert accuracy > 0.85


def test_divergence_neither_raises_nor_warns():
    rows, signs = data()
    residuals_of = margin_residuals(lambda margins: margins)
    plan = make_plan(60, 60, 30, 0.0)
    weights = fit(
        plan, rows, signs, residuals_of=residuals_of, learning_rate=1e150, regularization=1e10
    )
    assert weights.shape == (5, 1)


def step_of(rows, noise, seed):
    """Return the weight after one full-batch step in one dimension."""
    plan = make_plan(3, 3, 1, noise)
    design = Design.clipped(np.ones((len(rows), 1)), norm=1.0, intercept=False)
    return fit_noisy_gradient(
        plan,
        design,
        residual_is_target,
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
        drawn = [step_of(rows, noise, seed) for seed in range(1500)]
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
                    residual_is_target,
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


@pytest.mark.parametrize("name", ["full batch", "poisson", "allocation"])
def test_audit_cannot_refute_the_profile(name):
    # Theorem M5, Theorem M6.
    plan = make_plan(*AUDITED[name])
    errors = audit(plan, 1.0, 400)
    assert not is_refuted(plan.profile, errors)
    assert epsilon_lower_bound(errors, 1e-5) <= plan.profile.epsilon(1e-5)


def test_audit_catches_noise_that_is_too_small():
    plan = make_plan(*AUDITED["full batch"])
    assert is_refuted(plan.profile, audit(plan, 0.7, 800))


@pytest.mark.slow
@pytest.mark.parametrize("name", AUDITED)
def test_thorough_audit(name):
    plan = make_plan(*AUDITED[name])
    errors = audit(plan, 1.0, 6000)
    assert not is_refuted(plan.profile, errors)
    assert epsilon_lower_bound(errors, 1e-5) <= plan.profile.epsilon(1e-5)
    assert is_refuted(plan.profile, audit(plan, 0.7, 6000))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"learning_rate": 0.0}, ValueError, "learning_rate must be"),
        ({"learning_rate": np.inf}, ValueError, "learning_rate must be"),
        ({"max_grad_norm": -1.0}, ValueError, "max_grad_norm must be"),
        ({"max_grad_norm": np.inf}, ValueError, "max_grad_norm must be"),
        ({"regularization": -1.0}, ValueError, "regularization must be"),
        ({"regularization": np.inf}, ValueError, "regularization must be"),
        ({"regularization": [1.0]}, ValueError, "regularization must be"),
        ({"optimizer": "lion"}, ValueError, "optimizer must be one of 'sgd', 'adam'"),
        ({"n_outputs": 0}, ValueError, "n_outputs must be"),
        ({"initial": np.zeros(5)}, ValueError, "initial must be of shape"),
        ({"targets": np.ones(3)}, ValueError, "targets must be as many as the rows"),
    ],
)
def test_bad_parameters_are_refused(change, error, words):
    rows, signs = data()
    options = {"targets": signs} | change
    with pytest.raises(error, match=words):
        fit(make_plan(60, 10, 1, 1.0), rows, **options)


def test_wrong_kinds_are_refused():
    rows, signs = data()
    plan = make_plan(60, 10, 1, 1.0)
    design = Design.clipped(rows, norm=1.0, intercept=True)
    options = {"learning_rate": 1.0, "max_grad_norm": 1.0}
    with pytest.raises(TypeError, match="rng must be a numpy Generator"):
        fit_noisy_gradient(plan, design, logistic, signs, 1, rng=3, **options)
    with pytest.raises(TypeError, match="plan must be a NoisyGradientPlan"):
        fit_noisy_gradient(
            1.0, design, logistic, signs, 1, rng=np.random.default_rng(0), **options
        )


def test_fixed_size_plan_for_more_records_is_refused():
    rows, signs = data(58)
    with pytest.raises(ValueError, match="design must be of at least the plan's 60 rows; got 58"):
        fit(make_plan(60, 10, 1, 1.0, "fixed"), rows, signs)


def test_default_step_of_adam_falls_with_the_root_of_their_number():
    rates = [default_learning_rate("adam", steps) for steps in (1, 4, 900)]
    assert rates == pytest.approx([0.3, 0.15, 0.01])
    assert default_learning_rate("sgd", 1) == default_learning_rate("sgd", 900) == 2.0
    with pytest.raises(ValueError, match="optimizer must be one of 'sgd', 'adam'"):
        default_learning_rate("psgd", 1)


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
            margin_residuals(lambda margins: np.full(margins.shape, -0.3)),
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


def made(coef, intercept, n_outputs=1, n_features=2, fit_intercept=True):
    return initial_weights(
        coef, intercept, n_outputs=n_outputs, n_features=n_features, fit_intercept=fit_intercept
    )


def test_nothing_given_is_nothing():
    assert made(None, None) is None


@pytest.mark.parametrize("coef", [[1.0, 2.0], [[1, 2]], np.array([[1.0, 2.0]], np.float32)])
@pytest.mark.parametrize("intercept", [3.0, [3], np.array([3.0])])
def test_one_output(coef, intercept):
    np.testing.assert_array_equal(made(coef, intercept), [[1.0], [2.0], [3.0]])


def test_many_outputs():
    coef = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(
        made(coef, [7.0, 8.0, 9.0], n_outputs=3), [[0, 2, 4], [1, 3, 5], [7, 8, 9]]
    )


def test_what_is_not_given_starts_at_zero():
    np.testing.assert_array_equal(made([1.0, 2.0], None), [[1.0], [2.0], [0.0]])
    np.testing.assert_array_equal(made(None, 3.0), [[0.0], [0.0], [3.0]])


def test_without_an_intercept_only_zeros_are_accepted_for_it():
    np.testing.assert_array_equal(made([1, 2], [0.0], fit_intercept=False), [[1.0], [2.0]])
    with pytest.raises(ValueError, match="intercept_init must be 0 or None"):
        made([1, 2], [0.5], fit_intercept=False)


@pytest.mark.parametrize(
    ("coef", "intercept", "n_outputs", "message"),
    [
        ([1.0], None, 1, r"coef_init must be of shape \(1, 2\); got shape \(1,\)"),
        ([1.0, 2.0], None, 2, r"coef_init must be of shape \(2, 2\)"),
        ([[1.0], [2.0]], None, 1, "coef_init must be of shape"),
        (None, [1.0, 2.0], 1, r"intercept_init must be of shape \(1,\)"),
        (None, 1.0, 3, r"intercept_init must be of shape \(3,\)"),
        ([1.0, np.nan], None, 1, "coef_init must be finite"),
        (None, np.inf, 1, "intercept_init must be finite"),
    ],
)
def test_bad_weights_are_refused(coef, intercept, n_outputs, message):
    with pytest.raises(ValueError, match=message):
        made(coef, intercept, n_outputs=n_outputs)


def test_integers_beyond_doubles_are_refused():
    with pytest.raises(ValueError, match="coef_init must be finite"):
        initial_weights([10**400], None, n_outputs=1, n_features=1, fit_intercept=True)


def test_given_arrays_are_not_changed():
    coef = np.array([[1.0, 2.0]])
    made(coef, None)[:] = 9.0
    np.testing.assert_array_equal(coef, [[1.0, 2.0]])
