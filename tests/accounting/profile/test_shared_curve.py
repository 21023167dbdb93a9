"""Theorem T4: a release below a shared curve costs no more than the curve in any bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import (
    Geometric,
    PrivacyProfile,
    SharedCurve,
    UnreachableBudgetError,
    calibrate_to_curve,
    tune_then_fit,
)
from tests.accounting.cases import trained, without_form

DELTA = 1e-5


def descent(noise: float, rate: float = 0.05, steps: int = 400) -> PrivacyProfile:
    return trained(rate, noise, steps, 1e-3)


@pytest.mark.parametrize("noise", [1.0, 3.0])
def test_coverage_holds_between_the_dots_and_beyond(noise: float) -> None:
    # Theorem T4: candidates that differ in cost, each calibrated to one curve.
    found = SharedCurve(0.4, 1e-7).least_shift(descent(noise))
    curve = SharedCurve(found * 1.001, 1e-7)
    assert curve.covers(descent(noise))
    points = np.random.default_rng(0).uniform(0.0, 30.0, 20_000)
    for direction in ("remove", "add"):
        below = descent(noise).delta(points, direction)
        assert np.all(below <= curve.profile.delta(points, direction) * (1 + 1e-12))
    # Below zero each direction follows from the other one.
    points = -points[points < 5.0]
    for direction in ("remove", "add"):
        below = descent(noise).delta(points, direction)
        assert np.all(below <= curve.profile.delta(points, direction) + 1e-12)


def test_a_curve_that_is_too_low_anywhere_does_not_cover() -> None:
    # Theorem T4: candidates that differ in cost, each calibrated to one curve.
    # Randomised response has more than the failure left only at large epsilon.
    assert not SharedCurve(3.0, 1e-7).covers(PrivacyProfile.approximate(0.0, 2e-7))
    assert SharedCurve(3.0, 1e-7).covers(PrivacyProfile.approximate(0.0, 0.9e-7))
    assert not SharedCurve(0.5, 0.0).covers(PrivacyProfile.pure(1.0))
    assert math.isinf(SharedCurve(3.0, 1e-7).least_shift(PrivacyProfile.approximate(0.0, 2e-7)))


@pytest.mark.parametrize(("rate", "steps"), [(0.05, 400), (0.02, 250), (0.2, 100)])
def test_noise_is_the_least_that_is_covered(rate: float, steps: int) -> None:
    # Theorem C1: the results of calibrate meet their budget.
    curve = SharedCurve(0.3, 1e-7)
    found = calibrate_to_curve(lambda noise: descent(noise, rate, steps), curve, guess=2.0)
    assert curve.covers(found.profile)
    assert not curve.covers(descent(0.99 * found.value, rate, steps))


@settings(max_examples=10)
@given(
    noise=st.floats(2.0, 60.0),
    rate=st.floats(0.01, 1.0),
    steps=st.integers(1, 300),
    failure=st.sampled_from([1e-9, 1e-6]),
)
def test_closed_forms_cover_what_the_numbers_cover(
    noise: float, rate: float, steps: int, failure: float
) -> None:
    # Theorem T4, Theorem P7: a larger rate costs more, up to all records in each step.
    step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    profile = PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(step, steps))
    curve = SharedCurve.of(descent(1.9, 0.1, 40), failure)
    assert (
        curve.covers(profile)
        == curve.covers(without_form(profile))
        == (curve.excess(profile) <= 0.0)
    )


@pytest.mark.parametrize(
    ("rate", "steps", "guess"), [(0.02, 100, 0.7), (0.1, 20, 2.0), (0.1, 50, 0.7)]
)
def test_few_profiles_lead_to_the_curve(rate: float, steps: int, guess: float) -> None:
    # Theorem C1. Regula falsi took ten to thirteen of them.
    curve, tried = SharedCurve.of(descent(1.9, 0.1, 40), 1e-7), []

    def profile(noise: float) -> PrivacyProfile:
        tried.append(descent(noise, rate, steps))
        return tried[-1]

    found = calibrate_to_curve(profile, curve, guess=guess)
    assert len(tried) <= 9
    assert curve.covers(found.profile) and curve.excess(found.profile) >= -2e-3
    # A check whether any noise is large enough stops at the first one.
    tried.clear()
    assert curve.covers(calibrate_to_curve(profile, curve, guess=6.0, tolerance=math.inf).profile)
    assert len(tried) == 1


@pytest.mark.parametrize(("rate", "steps"), [(0.02, 250), (0.2, 100)])
def test_a_curve_of_another_shape_is_nearly_used_up(rate: float, steps: int) -> None:
    # Theorem T4, Theorem C1.
    curve = SharedCurve.of(descent(1.0), 1e-7)
    assert curve.covers(descent(1.0))
    assert not curve.covers(descent(0.99))
    found = calibrate_to_curve(lambda noise: descent(noise, rate, steps), curve, guess=2.0)
    assert curve.covers(found.profile)
    assert not curve.covers(descent(0.99 * found.value, rate, steps))
    points = np.random.default_rng(0).uniform(0.0, 30.0, 20_000)
    for direction in ("remove", "add"):
        below = found.profile.delta(points, direction)
        assert np.all(below <= curve.profile.delta(points, direction) * (1 + 1e-12))


@settings(max_examples=10)
@given(epsilon=st.floats(0.01, 5.0), delta=st.floats(0.0, 0.1), more=st.floats(1.001, 1.5))
def test_shapes_of_closed_form_cover_smaller_ones(
    epsilon: float, delta: float, more: float
) -> None:
    # Theorem T4. The slow oracle: the largest difference of both curves on a fine grid.
    curve = SharedCurve.of(PrivacyProfile.approximate(epsilon, delta), 1e-9)
    points = np.linspace(0.0, 8.0, 4001)
    for other in (
        PrivacyProfile.approximate(epsilon / more, delta),
        PrivacyProfile.approximate(epsilon * more, delta),
        PrivacyProfile.approximate(epsilon, min(more * delta + 1e-8, 1.0)),
        PrivacyProfile.gaussian(curve.shift),
    ):
        is_below = bool(np.all(other.delta(points) <= curve.profile.delta(points)))
        if curve.covers(other):
            assert is_below
            assert curve.excess(other) <= 0.0
        elif not is_below:
            assert curve.excess(other) > 0.0


def test_components_of_another_shape_compose_to_no_more_than_it() -> None:
    # Theorem T4: candidates that differ in cost, each calibrated to one curve.
    curve = SharedCurve.of(descent(1.0), 1e-7)
    parts = [curve.divided(share, 2) for share in (0.3, 0.7)]
    assert curve.covers(parts[0].profile + parts[1].profile)


def test_budget_is_the_largest_that_is_covered() -> None:
    curve = SharedCurve(0.3, 0.0)
    found = calibrate_to_curve(
        lambda shift: PrivacyProfile.gaussian(shift), curve, parameter="budget", guess=3.0
    )
    assert 0.297 <= found.value <= 0.3


def test_what_no_noise_brings_below_is_refused() -> None:
    with pytest.raises(UnreachableBudgetError, match="cost does not fall far enough"):
        calibrate_to_curve(lambda _: PrivacyProfile.approximate(0.1, 1e-4), SharedCurve(0.3, 1e-7))


def test_components_compose_to_the_whole() -> None:
    # Theorem T4: candidates that differ in cost, each calibrated to one curve.
    curve = SharedCurve(0.8, 1e-7)
    one, two = curve.divided(0.3, 2), curve.divided(0.7, 2)
    assert math.hypot(one.shift, two.shift) == pytest.approx(0.8)
    total = one.profile + two.profile
    for delta in (1e-4, 1e-5, 1e-6):
        assert total.epsilon(delta) <= curve.profile.epsilon(delta) * (1 + 1e-3)


@pytest.mark.parametrize("noise", [3.7, 6.0])
def test_bounds_on_a_candidate_are_below_those_on_the_curve(noise: float) -> None:
    """Selection and tuning on a part: the curve's cost covers each candidate's own."""
    # Theorem T4: candidates that differ in cost, each calibrated to one curve.
    run = descent(noise)
    curve = SharedCurve(SharedCurve(0.4, 1e-7).least_shift(run) * 1.001, 1e-7)
    assert curve.covers(run)
    law = Geometric.from_mean(20)
    for cost in (
        lambda profile: profile.selected(law),
        lambda profile: tune_then_fit(profile.selected(law), profile, 0.05),
        lambda profile: 3 * profile,
    ):
        for delta in (1e-4, 1e-5):
            own, shared = cost(run).epsilon(delta), cost(curve.profile).epsilon(delta)
            assert own <= shared * (1 + 1e-6)


def test_no_curve_is_larger_than_a_profile_can_be() -> None:
    assert SharedCurve(30.0, 1e-9).profile.epsilon(DELTA) < math.inf
