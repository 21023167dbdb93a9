"""Solving for the parameter that meets a budget."""

import math
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import Calibration, PrivacyProfile, UnreachableBudgetError, calibrate
from tests.accounting.oracles_profile import gaussian_delta


def gaussian(noise):
    return PrivacyProfile.gaussian(min(1.0 / noise, 30.0))


class Counted:
    """A function that records its arguments."""

    def __init__(self, function):
        self.function, self.arguments = function, []

    def __call__(self, parameter):
        self.arguments.append(parameter)
        return self.function(parameter)


def spent(found, epsilon, delta):
    return found.profile.epsilon(delta) / epsilon


BUDGETS = [(1e-3, 1e-5), (0.01, 1e-9), (1.0, 0.3), (1.0, 1e-12), (20.0, 1e-5), (300.0, 1e-5)]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_budget_is_spent_and_never_exceeded(epsilon, delta):
    # Theorem C1: the results of calibrate meet their budget.
    make = Counted(gaussian)
    found = calibrate(make, epsilon, delta)
    assert 0.9998 <= spent(found, epsilon, delta) <= 1.0
    assert len(make.arguments) <= 15
    # By the closed form: the noise suffices, and a little less would not.
    assert gaussian_delta(1.0 / found.value, epsilon) <= delta * (1.0 + 1e-9)
    assert gaussian_delta(1.0 / (0.9995 * found.value), epsilon) > delta


def test_the_profile_is_that_of_the_value():
    found = calibrate(gaussian, 1.0, 1e-5)
    assert isinstance(found, Calibration)
    assert float(found) == found.value
    assert found.profile == gaussian(found.value)


def test_pure_guarantees_are_solved_at_delta_zero():
    found = calibrate(lambda x: PrivacyProfile.pure(min(x, 500.0)), 0.7, 0.0, parameter="budget")
    assert 0.7 * 0.9998 <= found.value <= 0.7
    found = calibrate(
        lambda x: 20 * PrivacyProfile.pure(min(x, 20.0)), 1.0, 0.0, parameter="budget"
    )
    assert 0.05 * 0.9998 <= found.value <= 0.05


@pytest.mark.parametrize(("guess", "tolerance"), [(1e-6, 0.1), (3.731, 1e-6), (1e6, 1e-4)])
def test_any_guess_leads_to_the_same_noise_up_to_the_tolerance(guess, tolerance):
    found = calibrate(gaussian, 1.0, 1e-5, guess=guess, tolerance=tolerance)
    assert found.value == pytest.approx(3.7306, rel=max(3e-4, 1.2 * tolerance))
    assert 1.0 - 1.01 * tolerance <= spent(found, 1.0, 1e-5) <= 1.0


@given(st.floats(0.05, 20.0), st.floats(-12.0, -1.0), st.sampled_from(["noise", "budget"]))
@settings(max_examples=20)
def test_any_budget_is_spent_and_never_exceeded(epsilon, exponent, parameter):
    # Theorem C1: the results of calibrate meet their budget.
    delta = 10.0**exponent

    def make(value):
        return gaussian(value if parameter == "noise" else 1.0 / value)

    found = calibrate(make, epsilon, delta, parameter=parameter)
    share = spent(found, epsilon, delta)
    # At large deltas epsilon falls to 0 at a finite noise, steeply.
    assert share <= 1.0
    assert share >= 0.9998 or make(found.value * 0.999).epsilon(delta) > epsilon


def test_steps_are_left_unspent_on_the_safe_side():
    """Cost falls in steps: what fits is the first value of the affordable step."""

    def make(noise):
        return PrivacyProfile.pure(1.0 / math.ceil(noise))

    found = calibrate(make, 0.3, 0.0, lower=1.0)
    assert found.profile.epsilon(0.0) == 0.25
    assert 3.0 < found.value <= 3.001
    count = calibrate(
        lambda n: max(int(n), 1) * PrivacyProfile.pure(0.1),
        0.35,
        0.0,
        parameter="budget",
        lower=1.0,
    )
    assert int(count.value) == 3


def test_a_cliff_is_found():
    def make(noise):
        return PrivacyProfile.pure(0.01 if noise > math.pi else 10.0)

    found = calibrate(make, 1.0, 0.0)
    assert math.pi < found.value < math.pi * 1.001
    assert found.profile.epsilon(0.0) == 0.01


def test_a_floor_just_below_the_budget_is_no_trap():
    def make(noise):
        return PrivacyProfile.pure(min(0.9995 + 1e-3 / noise, 400.0))

    found = calibrate(make, 1.0, 0.0)
    assert 0.9998 <= spent(found, 1.0, 0.0) <= 1.0


def test_infinite_costs_are_stepped_over():
    def make(noise):
        return PrivacyProfile.approximate(1.0 / noise, 1e-3 if noise < 2.0 else 0.0)

    found = calibrate(make, 0.8, 1e-6, guess=0.5, lower=0.1)
    assert 2.0 <= found.value < 2.001


def test_where_everything_fits_the_riskiest_end_is_taken():
    found = calibrate(gaussian, 1e5, 1e-5, lower=2.0, upper=9.0)
    assert found.value == pytest.approx(2.0, rel=1e-12)
    found = calibrate(
        lambda mu: PrivacyProfile.gaussian(min(mu, 25.0)),
        1e5,
        1e-5,
        parameter="budget",
        lower=0.2,
        upper=25.0,
    )
    assert found.value == pytest.approx(25.0, rel=1e-12)
    assert calibrate(lambda x: PrivacyProfile.pure(0.0), 1.0, 0.0).value == pytest.approx(1e-6)


@pytest.mark.parametrize("parameter", ["noise", "budget"])
@pytest.mark.parametrize("limits", [(0.1, 0.3), (10.0, 10.0), (0.7, 30.0)])
def test_the_function_is_never_called_outside_the_range(parameter, limits):
    lower, upper = limits
    for epsilon in (1e-4, 1.0, 1e5):
        make = Counted(
            lambda x: PrivacyProfile.pure(min(x if parameter == "budget" else 1 / x, 500.0))
        )
        try:
            found = calibrate(make, epsilon, 0.0, parameter=parameter, lower=lower, upper=upper)
        except UnreachableBudgetError:
            pass
        else:
            assert lower <= found.value <= upper
        assert all(lower <= value <= upper for value in make.arguments)


@pytest.mark.parametrize("guess", [None, 0.2, 10.0])
def test_an_unreachable_budget_is_refused_with_the_least_that_can_be_had(guess):
    with pytest.raises(UnreachableBudgetError) as caught:
        calibrate(gaussian, 1e-3, 1e-9, lower=0.1, upper=10.0, guess=guess)
    assert caught.value.least_epsilon == pytest.approx(gaussian(10.0).epsilon(1e-9), rel=1e-9)
    assert str(caught.value).startswith("epsilon must be at least 0.5351 at delta=1e-09")
    assert str(caught.value).endswith("got 0.001.")


def test_a_delta_that_no_noise_reaches_is_named():
    with pytest.raises(UnreachableBudgetError, match="delta must be larger; got 1e-300, at which"):
        calibrate(gaussian, 1.0, 1e-300)


def test_no_noise_makes_a_gaussian_pure():
    with pytest.raises(UnreachableBudgetError) as caught:
        calibrate(gaussian, 1.0, 0.0)
    assert caught.value.least_epsilon == math.inf
    # Another process can raise it.
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is UnreachableBudgetError
    assert (str(again), again.least_epsilon) == (str(caught.value), math.inf)
