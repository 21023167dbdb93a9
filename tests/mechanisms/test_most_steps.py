"""Theorem C1: the largest number of steps is within the budget, and one more is not."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.accounting import PrivacyProfile, UnreachableBudgetError, gaussian_delta
from skdptune.mechanisms._noisy_gradient_plan import LARGEST_COUNT, gaussian_shift, most_steps


def solved(profile_of, epsilon, delta=0.0, guess=1.0):
    """Return the number of steps and how many profiles it took."""
    asked = []

    def counted(steps):
        asked.append(steps)
        return profile_of(steps)

    steps, profile = most_steps(counted, epsilon, delta, guess)
    assert steps in asked and profile == profile_of(steps)
    assert len(set(asked)) == len(asked)
    return steps, len(asked)


@given(st.integers(1, 10_000), st.floats(0.01, 0.99), st.floats(0.1, 1e6))
def test_any_number_is_found_from_any_guess(wanted, share, guess):
    """Theorem C1."""
    one = 2.0**-10
    found, _ = solved(
        lambda steps: PrivacyProfile.pure(min(one * steps, 500.0)),
        one * (wanted + share),
        0.0,
        guess,
    )
    assert found == wanted


@pytest.mark.parametrize("mu", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("epsilon", [2.5, 6.0])
def test_gaussian_steps_agree_with_the_closed_form(mu, epsilon):
    """Theorem C1, Theorem P6."""
    found, asked = solved(
        lambda steps: PrivacyProfile.gaussian(min(mu * math.sqrt(steps), 30.0)),
        epsilon,
        1e-5,
        100.0,
    )
    costs = [gaussian_delta(mu * math.sqrt(steps), epsilon) for steps in (found, found + 1)]
    if found < 10_000:
        # What the grid of the profile adds is less than a step.
        assert costs[0] <= 1e-5 < costs[1] * 1.001
    assert costs[0] == pytest.approx(1e-5, rel=max(10.0 / found, 1e-2) * 5.0)
    assert asked <= 6


def test_a_good_guess_takes_two_profiles():
    def profile_of(steps):
        return PrivacyProfile.gaussian(0.1 * math.sqrt(steps))

    wanted, _ = solved(profile_of, 1.0, 1e-5)
    assert solved(profile_of, 1.0, 1e-5, guess=wanted + 0.5) == (wanted, 2)


def test_many_steps_are_found_to_four_digits():
    one = 1e-6
    found, asked = solved(lambda steps: PrivacyProfile.pure(min(one * steps, 500.0)), 1.0)
    assert 0.9999e6 <= found <= 1e6 and asked < 40


def test_steps_that_cost_everything_beyond_a_number():
    """Costs that no Gaussian has leave bisection."""
    everything = PrivacyProfile.approximate(0.0, 1.0)
    for wanted in (1, 37, 9999):
        found, asked = solved(
            lambda steps, most=wanted: PrivacyProfile.pure(0.5) if steps <= most else everything,
            1.0,
            1e-5,
            100.0,
        )
        assert found == wanted and asked < 60


def test_free_steps_end_at_a_billion():
    found, _ = solved(lambda steps: PrivacyProfile.pure(0.0), 1.0, 1e-5)
    assert 0.9998 * LARGEST_COUNT <= found <= LARGEST_COUNT


@pytest.mark.parametrize("guess", [0.01, 1.0, 1e7, 1e12])
def test_no_step_at_all_is_an_error_that_names_the_least(guess):
    with pytest.raises(UnreachableBudgetError, match="cost of a single step; got 0.5") as raised:
        solved(lambda steps: PrivacyProfile.pure(min(1.0 * steps, 500.0)), 0.5, 1e-6, guess)
    assert raised.value.least_epsilon == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.1, 1e-9), (50.0, 1e-3)])
def test_gaussian_shift_is_the_inverse_of_its_cost(epsilon, delta):
    """Theorem P6."""
    assert float(gaussian_delta(gaussian_shift(epsilon, delta), epsilon)) == pytest.approx(delta)


def test_gaussian_shift_has_a_range():
    assert gaussian_shift(1e-12, 1e-300) is None
    assert gaussian_shift(5000.0, 1e-5) is None
