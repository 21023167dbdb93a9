"""Descent along noisy sums of clipped gradients, and where it starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._solvers._clipped_gradients import margin_residuals
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._noisy_gradient import (
    default_learning_rate,
    fit_noisy_gradient,
)
from skdptune.mechanisms._shared import grid_of, plan_noisy_gradient

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
