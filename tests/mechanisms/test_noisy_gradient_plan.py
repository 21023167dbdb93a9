import math
from itertools import combinations

import numpy as np
import pytest
from dp_accounting import dp_event
from scipy import integrate, stats

from skdptune.accounting import PrivacyProfile
from skdptune.mechanisms._noisy_gradient_plan import _calibrated, plan_noisy_gradient


@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
@pytest.mark.parametrize(
    ("n_samples", "batch_size", "epochs", "epsilon"),
    [(1000, 100, 5, 1.0), (1000, 1000, 3, 0.1), (200, 20, 2, 30.0), (2000, 20, 1, 0.5)],
)
def test_plan_spends_the_budget_and_no_more(n_samples, batch_size, epochs, epsilon, sampling):
    plan = plan_noisy_gradient(
        n_samples,
        epochs=epochs,
        batch_size=batch_size,
        epsilon=epsilon,
        delta=1e-5,
        sampling=sampling,
    )
    assert 0.99 * epsilon <= plan.profile.epsilon(1e-5) <= epsilon
    noise = plan.noise_multiplier / (2.0 if sampling == "fixed" else 1.0)
    step = dp_event.PoissonSampledDpEvent(plan.rate, dp_event.GaussianDpEvent(noise))
    event = dp_event.SelfComposedDpEvent(step, plan.steps)
    fine = PrivacyProfile.from_event(event).epsilon(1e-5)
    # The grid of the plan is coarse where that costs nothing.
    assert fine <= plan.profile.epsilon(1e-5) * (1 + 1e-6)
    assert plan.profile.epsilon(1e-5) <= fine * 1.002


def test_same_numbers_are_not_computed_again():
    options = {"epochs": 2, "batch_size": 50, "epsilon": 1.5, "delta": 1e-6}
    first = plan_noisy_gradient(500, **options)
    misses = _calibrated.cache_info().misses
    assert plan_noisy_gradient(500, **options).profile is first.profile
    assert _calibrated.cache_info().misses == misses


@pytest.mark.parametrize(
    ("n_samples", "batch_size", "epochs", "steps"),
    [(100, 10, 2, 20), (100, 30, 1, 4), (40_000, 256, 20, 3125), (30, 3, 0.1, 1), (7, 7, 0.01, 1)],
)
def test_steps_are_epochs_over_rate_rounded_up(n_samples, batch_size, epochs, steps):
    plan = plan_noisy_gradient(
        n_samples, epochs=epochs, batch_size=batch_size, noise_multiplier=0.0
    )
    assert plan.steps == steps
    assert plan.rate == batch_size / n_samples


def test_infinite_budget_means_no_noise_and_no_privacy():
    plan = plan_noisy_gradient(100, epochs=1, batch_size=10, epsilon=math.inf, delta=1e-5)
    assert plan.noise_multiplier == 0.0
    assert plan.profile.epsilon(1e-5) == math.inf


def test_absurd_budget_is_spent_in_part():
    plan = plan_noisy_gradient(10, epochs=1, batch_size=10, epsilon=1e5, delta=1e-5)
    assert 490 < plan.profile.epsilon(1e-5) <= 500


def test_given_noise_has_a_cost():
    plan = plan_noisy_gradient(100, epochs=4, batch_size=100, noise_multiplier=3.0)
    expected = PrivacyProfile.gaussian(2.0 / 3.0).epsilon(1e-5)
    assert plan.profile.epsilon(1e-5) == pytest.approx(expected, rel=1e-3)


def test_poisson_profile_is_that_of_the_sampled_gaussian():
    # Theorem M5.
    plan = plan_noisy_gradient(10, epochs=0.3, batch_size=3, noise_multiplier=1.2)
    upper = stats.norm(1.0, 1.2)
    lower = stats.norm(0.0, 1.2)
    for epsilon in (0.0, 0.3, 1.0):
        exact = hockey_stick(lambda x: 0.3 * upper.pdf(x) + 0.7 * lower.pdf(x), lower.pdf, epsilon)
        assert plan.profile.delta(epsilon, "remove") == pytest.approx(exact, abs=2e-6)


def hockey_stick(p, q, epsilon):
    grid = np.linspace(-25.0, 25.0, 400_001)
    return integrate.trapezoid(np.maximum(p(grid) - math.exp(epsilon) * q(grid), 0.0), grid)


def batch_density(gradients, batch_size, noise):
    """Return the density of one step's noisy sum, by enumeration of the batches."""
    size = min(batch_size, len(gradients))
    sums = [sum(chosen) for chosen in combinations(gradients, size)]
    return lambda x: np.mean([stats.norm.pdf(x, total, noise) for total in sums], axis=0)


WORST = ([-1.0, -1.0], 1.0)
OTHERS = [([1.0, 1.0], -1.0), ([-1.0, 0.5], 1.0), ([0.0, 0.0], 1.0), ([0.3, -0.2], -0.7)]


@pytest.mark.parametrize("batch_size", [1, 2])
@pytest.mark.parametrize(("others", "extra"), [WORST, *OTHERS])
def test_fixed_size_profile_bounds_an_enumeration(batch_size, others, extra):
    # Theorem M5.
    noise = 1.5
    plan = plan_noisy_gradient(
        3,
        epochs=batch_size / 3,
        batch_size=batch_size,
        noise_multiplier=noise,
        sampling="fixed",
    )
    assert plan.steps == 1
    larger = batch_density([*others, extra], batch_size, noise)
    smaller = batch_density(others, batch_size, noise)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 1.5):
        for direction, pair in (("remove", (larger, smaller)), ("add", (smaller, larger))):
            exact = hockey_stick(*pair, epsilon)
            claimed = plan.profile.delta(epsilon, direction)
            assert exact <= claimed + 1e-7
            if (others, extra) == WORST:
                # Nothing smaller would do.
                assert exact == pytest.approx(claimed, abs=2e-6)


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_fixed_size_profile_covers_a_record_more(batch_size):
    plan = plan_noisy_gradient(
        3, epochs=batch_size / 3, batch_size=batch_size, noise_multiplier=1.5, sampling="fixed"
    )
    larger = batch_density([-1.0, -1.0, -1.0, 1.0], batch_size, 1.5)
    smaller = batch_density([-1.0, -1.0, -1.0], batch_size, 1.5)
    for epsilon in (0.0, 0.5, 1.0):
        assert hockey_stick(larger, smaller, epsilon) <= plan.profile.delta(epsilon, "remove")
        assert hockey_stick(smaller, larger, epsilon) <= plan.profile.delta(epsilon, "add")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"batch_size": 101}, ValueError, "batch_size must be at most"),
        ({"batch_size": 0}, ValueError, "batch_size must be an integer of at least 1"),
        ({"batch_size": 1.5}, TypeError, "batch_size must be an integer"),
        ({"epochs": 0}, ValueError, "epochs must be"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be"),
        ({"epsilon": None}, TypeError, "epsilon must be a number.*noise_multiplier"),
        ({"delta": 0.0}, ValueError, "delta must be"),
        ({"delta": 1.0}, ValueError, "delta must be"),
        ({"sampling": "shuffle"}, ValueError, "sampling must be one of 'poisson', 'fixed'"),
        ({"noise_multiplier": -1.0}, ValueError, "noise_multiplier must be"),
    ],
)
def test_bad_parameters_are_refused(change, error, words):
    options = {"epochs": 1, "batch_size": 10, "epsilon": 1.0, "delta": 1e-5} | change
    with pytest.raises(error, match=words):
        plan_noisy_gradient(100, **options)
