"""Closed forms, what composition keeps of them, and events that have them."""

from __future__ import annotations

import math
from dataclasses import astuple

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from skdptune.accounting._losses import (
    GaussianForm,
    ResponseForm,
    _closed_forms,
)
from skdptune.accounting._losses._dp_accounting import from_pld
from skdptune.accounting._losses._forms import (
    SampledGaussian,
    SampledGaussianForm,
    sampled_gaussian_sides,
)
from tests.accounting.cases import few
from tests.accounting.oracles_profile import (
    approximate_composition,
    gaussian_delta,
    sampled_gaussian_epsilons,
)

FORMS = [
    GaussianForm(0.7),
    ResponseForm(0.3, 0.0),
    ResponseForm(0.3, 1e-6, 4),
    SampledGaussianForm(0.7, 0.1, 5),
]


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_equal_forms_compose_to_two_copies(form):
    # Theorem P4.
    for together, copies in (
        (form.composed(form), 2),
        (form.repeated(3).composed(form), 4),
        (form, 1),
    ):
        wanted = form.repeated(copies)
        assert type(together) is type(wanted)
        assert astuple(together) == pytest.approx(astuple(wanted), rel=1e-15)


def test_different_forms_have_none_together():
    for index, one in enumerate(FORMS):
        for other in FORMS[:index]:
            assert one.composed(other) is None and other.composed(one) is None
    assert SampledGaussianForm(0.7, 0.1).composed(SampledGaussianForm(0.7, 0.2)) is None
    assert ResponseForm(0.3, 0.0).composed(ResponseForm(0.4, 0.0)) is None
    # Too many numbers to be written out.
    assert ResponseForm(0.3, 0.0).repeated(10**7) is None


@pytest.mark.parametrize(
    ("more", "less"),
    [
        (GaussianForm(1.0), GaussianForm(0.9)),
        (ResponseForm(0.3, 1e-6, 4), ResponseForm(0.2, 1e-7, 4)),
        (ResponseForm(0.3, 1e-6, 4), ResponseForm(0.3, 1e-6, 1)),
        (SampledGaussianForm(0.7, 0.1, 5), SampledGaussianForm(0.5, 0.05, 4)),
    ],
)
def test_what_covers_costs_no_less_anywhere(more, less):
    # Theorem P8.
    assert more.covers(less) and more.covers(more) and not less.covers(more)
    for one, other in zip(more.sides(), less.sides(), strict=True):
        points = np.linspace(0.0, one.highest * one.step, 300)
        assert np.all(one.delta(points) >= other.delta(points) * (1.0 - 1e-9) - 1e-16)


def test_what_is_larger_in_one_respect_and_smaller_in_another_covers_nothing():
    assert not GaussianForm(9.0).covers(ResponseForm(0.1, 0.0))
    assert not ResponseForm(0.3, 0.0).covers(ResponseForm(0.2, 1e-9))
    assert not SampledGaussianForm(0.7, 0.1, 5).covers(SampledGaussianForm(0.5, 0.2, 5))


@pytest.mark.parametrize(
    ("epsilon", "failure", "count"),
    [(0.1, 0.0, 1), (0.05, 0.0, 2000), (1.0, 0.0, 77), (0.2, 1e-8, 400), (0.0, 1e-5, 30)],
)
def test_responses_are_binomial_and_never_below(epsilon, failure, count):
    # Theorem P5.
    losses, other = ResponseForm(epsilon, failure, count).sides()
    assert other is losses
    top = min(0.999 * count * epsilon, 12.0 * epsilon * math.sqrt(count))
    points = np.linspace(0.0, top, 25)
    for point, value in zip(points, losses.delta(points), strict=True):
        exact = approximate_composition(epsilon, failure, count, point)
        assert exact * (1.0 - 1e-14) <= value <= exact * (1.0 + 1e-9) + 1e-300


def test_no_number_of_lies_is_impossible():
    for count in (1100, 10**5):
        losses, _ = ResponseForm(1.0, 0.0, count).sides()
        assert losses.infinity == 0.0 and losses.highest == count
        assert losses.masses[::2].min() > 0.0 and losses.masses[1::2].max() == 0.0


@pytest.mark.parametrize("mu", [1e-6, 1.0, 40.0, 300.0])
def test_gaussian_dots_are_the_closed_form_and_never_below(mu):
    # Theorem P6.
    losses, other = GaussianForm(mu).sides()
    assert other is losses
    for place in np.linspace(0, min(losses.highest, 600.0 / losses.step), 12).astype(int):
        exact = gaussian_delta(mu, place * losses.step)
        value = float(losses.delta(np.array([place * losses.step]))[0])
        assert exact <= value <= exact * (1.0 + 1e-9) + 1e-20


# Many Gaussian releases on Poisson samples -----------------------------------------------

SETTINGS = [
    (1e-6, 2.0),
    (1e-6, 1e-3),
    (1e-3, 0.01),
    (0.2, 0.06),
    (0.01, 0.5),
    (0.3, 1.0),
    (0.999, 4.0),
    (1e-4, 3.3),
]


def exact_curves(rate, mu, epsilon):
    """Both directions in 60 digits: integrals of the mixture above and below its crossing."""
    with mpmath.workdps(60):
        q, m, e = mpmath.mpf(rate), mpmath.mpf(mu), mpmath.mpf(epsilon)
        alpha = mpmath.exp(e)
        # The outcome at which the loss of removing is e: (1 - q) + q exp(m z - m^2 / 2) = alpha.
        cross = mpmath.log((alpha - 1 + q) / q) / m + m / 2
        remove = (1 - q - alpha) * mpmath.ncdf(-cross) + q * mpmath.ncdf(m - cross)
        kept = (1 / alpha - 1 + q) / q
        add = mpmath.mpf(0)
        if kept > 0:
            cross = mpmath.log(kept) / m + m / 2
            add = (1 - alpha * (1 - q)) * mpmath.ncdf(cross) - alpha * q * mpmath.ncdf(cross - m)
        return float(remove), float(add)


@pytest.mark.parametrize(("rate", "count"), [(1e-21, 1000), (1e-200, 10**9), (5e-324, 1)])
def test_rarest_samples_cost_what_less_rare_ones_do(rate, count):
    # Theorem P7: a smaller rate costs no more.
    rarest, least = (sampled_gaussian_sides(0.2, each, count) for each in (rate, 1e-20))
    for side, other in zip(rarest, least, strict=True):
        assert side.masses.size < 10**6
        assert side.delta(np.zeros(1)) == other.delta(np.zeros(1)) < 1e-6


@pytest.mark.parametrize(("rate", "mu"), SETTINGS)
def test_curves_keep_their_digits_and_are_rounded_up(rate, mu):
    # Theorem P7.
    release = SampledGaussian(mu, rate)
    top = release.loss_beyond(1e-30)
    points = np.concatenate([[0.0], np.geomspace(1e-3 * rate * mu, top, 25)])
    # Up to the largest loss of adding, where its curve is steepest.
    points = np.append(points, -math.log1p(-rate) * (1.0 - np.geomspace(1e-13, 0.5, 20)))
    for epsilon, *found in zip(points, release.remove(points), release.add(points), strict=True):
        for value, exact in zip(found, exact_curves(rate, mu, epsilon), strict=True):
            if exact > 1e-45 * rate:
                assert exact <= value
                # Before the end of the curve of adding by a few roundings of epsilon.
                near = -math.log1p(-rate) - epsilon
                slack = 2e-14 * (1.0 + epsilon / near) if near > 0.0 else 0.0
                assert value <= exact * (1.0 + 3e-11 + 30.0 * slack)


@pytest.mark.parametrize(
    ("deviation", "rate"), few(6, [0.15, 0.5, 1.0, 8.0], [1e-6, 2e-4, 0.01, 0.3, 0.999])
)
def test_losses_are_those_of_dp_accounting(deviation, rate):
    # Theorem P7.
    # Their time grows with the number of losses, and those of little noise reach far.
    step = 1e-3 if deviation >= 0.5 else 1e-2
    known = from_pld(
        pld.from_gaussian_mechanism(
            deviation, value_discretization_interval=step, sampling_prob=rate
        )
    )
    found = sampled_gaussian_sides(1.0 / deviation, rate, 1, step)
    for one, other in zip(known, found, strict=True):
        assert one.step == other.step
        size = min(one.highest, other.highest)
        np.testing.assert_allclose(
            other.positive_masses[:size], one.positive_masses[:size], rtol=1e-6, atol=2e-11
        )
        points = step * np.arange(size)
        np.testing.assert_allclose(other.delta(points), one.delta(points), rtol=1e-6, atol=1e-12)


# Ever smaller samples, and points of the oracle to the spread of one loss; the last ones have
# losses that are rare and large.
LONG = [
    (0.2, 4.0, 100, 60),
    (0.01, 50.0, 10**6, 8),
    (1e-3, 1.0, 10**5, 20),
    (1e-4, 0.5, 10, 12),
    (1e-3, 0.72, 70_000, 20),
    (0.05, 0.25, 3, 400),
]


@pytest.mark.parametrize(("rate", "noise", "count", "points"), LONG)
def test_long_compositions_are_those_of_longer_floats(rate, noise, count, points):
    # Theorem P12.
    deltas = (0.1 * rate, 1e-6, 1e-9, 1e-12)
    exact = sampled_gaussian_epsilons(rate, noise, count, deltas, points)
    found = sampled_gaussian_sides(1.0 / noise, rate, count)
    for delta, known in zip(deltas, exact, strict=True):
        epsilon = max(side.epsilon(delta) for side in found)
        # The oracle itself is good to some four digits.
        assert known * (1.0 - 1e-4) <= epsilon <= known * (1.0 + 1e-3)


@pytest.mark.parametrize("delta", [1e-9, 1e-12])
def test_a_million_rare_jumps_keep_small_deltas(delta):
    """Rate 1e-6, noise .5: at small deltas a single large loss is all that counts.

    ``count`` times the curve of one is too small by what the other losses add to that one, which
    is less than a hundredth of it.
    """
    # Theorem P12.
    count, rate, mu = 10**6, 1e-6, 2.0
    remove, add = sampled_gaussian_sides(mu, rate, count)
    low, high = 0.1, 5.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        above = count * exact_curves(rate, mu, middle)[0] > delta
        low, high = (middle, high) if above else (low, middle)
    assert max(remove.epsilon(delta), add.epsilon(delta)) <= 1.01 * low
    assert remove.epsilon(delta) >= low


@pytest.mark.parametrize(
    ("rate", "mu", "count"),
    [(1e-300, 1.0, 3), (1.0 - 2**-53, 1.0, 2), (0.5, 30.0, 2), (0.5, 30.0, 10**6), (0.1, 1e4, 10)],
)
def test_extremes_are_still_distributions(rate, mu, count):
    for side in sampled_gaussian_sides(mu, rate, count):
        assert np.isfinite(side.masses).all() and side.masses.min() >= 0.0
        assert side.masses.sum() + side.infinity >= 1.0 - 1e-12


def test_sums_that_spread_over_more_than_there_are_losses_are_not_computed():
    for side in sampled_gaussian_sides(30.0, 0.5, 10**6):
        assert side.infinity == 1.0
        assert side.masses.size == 1


# Single releases -------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1e-3, 0.5, 3.0, 25.0])
def test_gaussian_curve_keeps_its_digits_however_small_the_tail(mu):
    # Theorem P6.
    epsilons = np.linspace(0.0, mu * mu / 2.0 + 30.0 * mu, 40)
    values = _closed_forms.gaussian_delta(mu, epsilons)
    for epsilon, value in zip(epsilons, values, strict=True):
        exact = gaussian_delta(mu, epsilon)
        if exact > 1e-190:
            assert value == pytest.approx(exact, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("mu", [1e-9, 0.02, 0.099, 0.1, 2.0, 29.0, 100.0])
def test_gaussian_curve_is_good_to_what_is_paid_for_it(mu):
    # Theorem P6.
    epsilons = np.linspace(0.0, mu * mu / 2.0 + 13.0 * mu, 40)
    values = _closed_forms.gaussian_delta(mu, epsilons)
    for epsilon, value in zip(epsilons, values, strict=True):
        exact = gaussian_delta(mu, epsilon)
        # The oracle's digits end at 1e-60 of 1.
        if exact > 1e-45:
            assert value == pytest.approx(exact, rel=0.25 * _closed_forms.ROUNDING, abs=0.0)
