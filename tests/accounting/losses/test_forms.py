"""Closed forms, what composition keeps of them, and events that have them."""

from __future__ import annotations

import math
from dataclasses import astuple

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st

from skdptune.accounting._losses import (
    GaussianForm,
    LossDistribution,
    ResponseForm,
    _closed_forms,
    _convolution,
    _events,
    _forms,
    losses_of_event,
)
from skdptune.accounting._losses._dp_accounting import from_pld
from skdptune.accounting._losses._events import suitable_step
from skdptune.accounting._losses._forms import (
    SampledGaussian,
    SampledGaussianForm,
    sampled_gaussian_sides,
)
from tests.accounting.oracles_profile import (
    DIRECTIONS,
    approximate_composition,
    gaussian_delta,
    hockey_stick_of_losses,
    sampled_gaussian_epsilons,
    sampled_losses,
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


def test_squares_of_gaussian_shifts_add_up():
    # Theorem P6.
    assert GaussianForm(3.0).composed(GaussianForm(4.0)) == GaussianForm(5.0)
    assert GaussianForm(0.5).repeated(16) == GaussianForm(2.0)


def test_a_sample_of_a_sample_is_one():
    # Theorem P7.
    assert GaussianForm(0.5).subsampled(0.1) == SampledGaussianForm(0.5, 0.1)
    assert SampledGaussianForm(0.5, 0.1).subsampled(0.5) == SampledGaussianForm(0.5, 0.05)
    # A sample from which several releases are made is another matter.
    assert SampledGaussianForm(0.5, 0.1, 2).subsampled(0.5) is None
    assert ResponseForm(0.5, 0.0).subsampled(0.5) is None


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


@pytest.mark.parametrize("mu", [1e-6, 0.01, 1.0, 7.0, 40.0, 300.0])
def test_gaussian_dots_are_the_closed_form_and_never_below(mu):
    # Theorem P6.
    losses, other = GaussianForm(mu).sides()
    assert other is losses
    for place in np.linspace(0, min(losses.highest, 600.0 / losses.step), 12).astype(int):
        exact = gaussian_delta(mu, place * losses.step)
        value = float(losses.delta(np.array([place * losses.step]))[0])
        assert exact <= value <= exact * (1.0 + 1e-9) + 1e-20


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_a_given_grid_is_used_and_costs_no_less(form):
    for chosen, best in zip(form.sides(5e-3), form.sides(), strict=True):
        assert chosen.step == 5e-3
        points = np.linspace(0.0, best.highest * best.step, 99)
        assert np.all(chosen.delta(points) >= best.delta(points) * (1.0 - 1e-4) - 1e-13)


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


@pytest.mark.parametrize("rate", [1e-21, 1e-30, 1e-200, 5e-324])
@pytest.mark.parametrize("count", [1, 1000, 10**9])
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


@pytest.mark.parametrize(("rate", "mu"), SETTINGS)
def test_largest_losses_and_spread_are_those_of_the_mixture(rate, mu):
    release = SampledGaussian(mu, rate)
    for probability in (1e-3, 1e-12, 1e-25):
        loss = release.loss_beyond(probability)
        if loss > 0.0:
            outcome = (math.log1p(math.expm1(loss) / rate) + mu * mu / 2.0) / mu
            with mpmath.workdps(40):
                upper = (1 - rate) * mpmath.ncdf(-outcome) + rate * mpmath.ncdf(mu - outcome)
            assert float(upper) == pytest.approx(probability, rel=1e-3)
    if mu <= 1.0:
        second = rate**2 * math.expm1(mu * mu)
        assert release.deviation(600.0) == pytest.approx(math.sqrt(second), rel=0.2)


@pytest.mark.parametrize("deviation", [0.15, 0.5, 1.0, 8.0])
@pytest.mark.parametrize("rate", [1e-6, 2e-4, 0.01, 0.3, 0.999])
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


@pytest.mark.parametrize("delta", [1e-9, 1e-10, 1e-11, 1e-12])
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
    ("rate", "noise", "count"), [(1e-4, 0.3, 1000), (1e-4, 0.5, 10), (1e-6, 0.5, 10**6)]
)
def test_rare_losses_are_split_off_where_they_reach_far(rate, noise, count):
    def is_split(noise, rate, count):
        release = SampledGaussian(1.0 / noise, rate)
        return _forms._planned(release, count, None).is_split

    assert is_split(noise, rate, count)
    assert not is_split(noise, rate, 1)
    assert not is_split(2.0, 0.01, 5000)


@pytest.mark.parametrize("step", [1e-2, 2e-3])
def test_a_given_grid_is_used(step):
    for count in (1, 40):
        for side in sampled_gaussian_sides(0.5, 0.1, count, step):
            assert side.step == step


def test_odd_sizes_take_no_larger_transforms_than_others(monkeypatch):
    """A million records, batches of a hundred, a tenth of an epoch; and a million steps."""
    lengths = []
    original = _convolution._spectrum

    def counted(weights, start, length):
        lengths.append(length)
        return original(weights, start, length)

    monkeypatch.setattr(_convolution, "_spectrum", counted)
    for noise in (0.3, 0.45, 0.8, 2.0):
        lengths.clear()
        for side in sampled_gaussian_sides(1.0 / noise, 1e-4, 1000):
            assert side.masses.size <= 2**18
        assert sum(lengths) <= 2**21
    lengths.clear()
    for side in sampled_gaussian_sides(2.0, 1e-6, 10**6):
        assert side.masses.size <= 2**18
    assert sum(lengths) <= 2**23


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


@pytest.mark.parametrize("mu", [1e-3, 0.03, 0.5, 1.0, 3.0, 8.0, 14.0, 25.0])
def test_gaussian_curve_keeps_its_digits_however_small_the_tail(mu):
    # Theorem P6.
    epsilons = np.linspace(0.0, mu * mu / 2.0 + 30.0 * mu, 40)
    values = _closed_forms.gaussian_delta(mu, epsilons)
    for epsilon, value in zip(epsilons, values, strict=True):
        exact = gaussian_delta(mu, epsilon)
        if exact > 1e-190:
            assert value == pytest.approx(exact, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("mu", [1e-9, 1e-4, 0.02, 0.099, 0.1, 0.3, 2.0, 29.0, 31.0, 100.0])
def test_gaussian_curve_is_good_to_what_is_paid_for_it(mu):
    # Theorem P6.
    epsilons = np.linspace(0.0, mu * mu / 2.0 + 13.0 * mu, 40)
    values = _closed_forms.gaussian_delta(mu, epsilons)
    for epsilon, value in zip(epsilons, values, strict=True):
        exact = gaussian_delta(mu, epsilon)
        # The oracle's digits end at 1e-60 of 1.
        if exact > 1e-45:
            assert value == pytest.approx(exact, rel=0.25 * _closed_forms.ROUNDING, abs=0.0)


@pytest.mark.parametrize("mu", [0.01, 0.5, 3.0])
def test_laplace_curve_is_never_below_the_integral(mu):
    """``P(loss > e) - exp(e) Q(loss > e)`` of two shifted Laplace distributions."""
    step, remove, add = _closed_forms.laplace_halves(mu, mu / 64.0)
    assert remove is add and remove.size == 65 and remove[-1] == 0.0
    for place, value in enumerate(remove[:-1]):
        with mpmath.workdps(40):
            epsilon = step * mpmath.mpf(place)
            # Up to the outcome (mu - e) / 2 the loss is at least e.
            cut = (mpmath.mpf(mu) - epsilon) / 2
            mine = 1 - mpmath.exp(-cut) / 2
            theirs = mpmath.exp(cut - mpmath.mpf(mu)) / 2
            exact = float(mine - mpmath.exp(epsilon) * theirs)
        assert exact <= value <= exact * (1.0 + 1e-11)


@pytest.mark.parametrize("mu", [1e-3, 1.0, 14.0, 30.0, 75.0, 1e4])
def test_gaussian_curve_stays_finite_and_between_zero_and_one(mu):
    values = _closed_forms.gaussian_delta(mu, np.linspace(0.0, 600.0, 999))
    assert np.all((values >= 0.0) & (values <= 1.0))
    assert np.all(np.diff(values) <= 1e-12)


def finite_pair(infinity):
    """A direction's losses and their atoms."""
    masses = np.array([0.1, 0.25, 0.05, 0.3, 0.2, 0.1]) * (1.0 - infinity)
    losses = LossDistribution(0.3, -3, masses, infinity)
    atoms = [(0.3 * (i - 3), mass) for i, mass in enumerate(masses)]
    return losses, atoms


@pytest.mark.parametrize("infinity", [0.0, 0.02])
@pytest.mark.parametrize("fraction", [0.999, 0.5, 0.1, 1e-3, 1e-5])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_sampling_moves_every_atom(direction, fraction, infinity):
    # Theorem P7.
    losses, atoms = finite_pair(infinity)
    formula = getattr(_closed_forms, f"subsampled_{direction}")
    moved, beyond = sampled_losses(atoms, infinity, fraction, direction)
    largest = max(max(loss for loss, _ in moved), 1e-9)
    grid = np.linspace(0.0, 1.05 * largest, 60)
    values = formula(losses.delta, grid, fraction)
    for epsilon, value in zip(grid, values, strict=True):
        exact = hockey_stick_of_losses(moved, beyond, epsilon)
        # The atoms themselves lose digits where the fraction is small.
        assert value == pytest.approx(exact, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("fraction", [1e-6, 1e-9, 1e-12, 1e-15, 1e-300])
def test_small_fractions_cancel_nothing(fraction):
    """With 50 digits the add direction's ``1 - (1 - q) exp(epsilon)`` is known however small."""
    losses, _ = finite_pair(0.01)
    for share in (0.0, 0.3, 0.7, 0.99):
        epsilon = share * fraction
        value = _closed_forms.subsampled_add(losses.delta, np.array([epsilon]), fraction)[0]
        with mpmath.workdps(400):
            rest = 1 - mpmath.mpf(fraction)
            alpha = mpmath.exp(mpmath.mpf(epsilon))
            kept = 1 - rest * alpha
            inner = float(mpmath.log(mpmath.mpf(fraction) * alpha / kept))
            exact = float(kept) * float(losses.delta(np.array([max(inner, 0.0)]))[0])
        assert value == pytest.approx(exact, rel=1e-9, abs=0.0)


def test_nothing_is_left_beyond_what_the_sample_hides():
    losses, _ = finite_pair(0.02)
    beyond = -math.log1p(-0.3) + np.array([1e-9, 0.1, 5.0, 500.0])
    assert _closed_forms.subsampled_add(losses.delta, beyond, 0.3).tolist() == [0.0] * 4


@given(st.floats(1e-6, 1.0), st.floats(0.0, 600.0))
def test_remove_direction_is_finite_everywhere(fraction, epsilon):
    losses, _ = finite_pair(0.02)
    value = _closed_forms.subsampled_remove(losses.delta, np.array([epsilon]), fraction)[0]
    assert fraction * 0.02 * (1.0 - 1e-12) <= value <= fraction


@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.5, 0.999])
def test_the_loss_before_sampling_has_the_loss_after_it(rate):
    before = np.concatenate([-np.geomspace(1e-6, 30.0, 50), [0.0], np.geomspace(1e-6, 700.0, 50)])
    after = np.logaddexp(np.log1p(-rate), np.log(rate) + before)
    again = _closed_forms.loss_before_sampling(after, rate)
    # A loss after sampling of x says as much of the one before as its rounding leaves.
    error = 5e-14 * (1.0 + np.abs(after)) / (rate * np.exp(np.minimum(before - after, 0.0)))
    assert (np.abs(again - before) <= error + 1e-14 * np.abs(before)).all()


def test_losses_that_no_outcome_has_are_below_all():
    rate = 0.25
    least = np.log1p(-rate)
    found = _closed_forms.loss_before_sampling(np.array([least - 1.0, least - 1e-12, 0.0]), rate)
    assert found.tolist() == [-np.inf, -np.inf, 0.0]


@pytest.mark.parametrize("rest", [1e-6, 1e-12, 2.0**-53])
def test_a_rate_near_one_keeps_the_digits_of_what_is_left(rest):
    """Adding a record: the largest loss is -log(1 - rate), and is likely where noise is low."""
    with mpmath.workdps(50):
        for below in (1e-3, 0.1, 2.0):
            loss = float(np.log(rest)) + below
            found = float(_closed_forms.loss_before_sampling(np.array([loss]), 1.0 - rest)[0])
            exact = mpmath.log(1 + mpmath.expm1(mpmath.mpf(loss)) / mpmath.mpf(1.0 - rest))
            # The loss itself is rounded, to 4e-15 near 36.
            assert found == pytest.approx(float(exact), abs=2e-14 + 1e-14 / below)


# Events ----------------------------------------------------------------------------------

Gaussian, Laplace = dp_event.GaussianDpEvent, dp_event.LaplaceDpEvent
Composed, Repeated = dp_event.ComposedDpEvent, dp_event.SelfComposedDpEvent
Sampled = dp_event.PoissonSampledDpEvent


def sides_of(event, step=None):
    return losses_of_event(event, step)[0]


# Closed forms -----------------------------------------------------------------------------

FORMS_OF_EVENTS = [
    (Gaussian(2.0), GaussianForm(0.5)),
    (Repeated(Gaussian(2.0), 4), GaussianForm(1.0)),
    (Composed([Gaussian(1 / 3), Repeated(Gaussian(0.5), 4)]), GaussianForm(5.0)),
    (Sampled(1.0, Gaussian(0.25)), GaussianForm(4.0)),
    (Sampled(0.1, Gaussian(2.0)), SampledGaussianForm(0.5, 0.1)),
    (Repeated(Sampled(0.1, Gaussian(2.0)), 7), SampledGaussianForm(0.5, 0.1, 7)),
    (
        Repeated(Composed([Repeated(Sampled(0.1, Gaussian(2.0)), 2), dp_event.NoOpDpEvent()]), 3),
        SampledGaussianForm(0.5, 0.1, 6),
    ),
    (dp_event.NoOpDpEvent(), ResponseForm(0.0, 0.0)),
    (Sampled(0.0, Gaussian(1.0)), ResponseForm(0.0, 0.0)),
    (Composed([]), ResponseForm(0.0, 0.0)),
    (Gaussian(math.inf), ResponseForm(0.0, 0.0)),
    (Laplace(2.0), None),
    (Composed([Gaussian(1.0), Laplace(2.0)]), None),
    (Composed([Gaussian(1.0), Sampled(0.1, Gaussian(2.0))]), None),
    (Gaussian(0.0), None),
]


@pytest.mark.parametrize(("event", "form"), FORMS_OF_EVENTS, ids=lambda value: repr(value)[:60])
def test_events_have_the_closed_form_of_what_they_do(event, form):
    sides, found = losses_of_event(event)
    assert found == form
    for side in sides:
        assert side.masses.min() >= 0.0
        assert side.masses.sum() + side.infinity >= 1.0 - 1e-12


def test_directions_are_not_swapped():
    """Sampling makes removal cost more than adding at large epsilon."""
    remove, add = sides_of(Sampled(0.1, Gaussian(1.0)), 1e-3)
    at = np.array([1.0])
    assert float(remove.delta(at)[0]) > 1e-4
    assert float(add.delta(at)[0]) <= 1e-12


def test_rates_of_single_precision_cost_no_less():
    rate = np.float32(1.0 - 1e-6)
    exact = sides_of(Sampled(float(rate), Gaussian(0.5)), 1e-3)
    for found, known in zip(sides_of(Sampled(rate, Gaussian(0.5)), 1e-3), exact, strict=True):
        np.testing.assert_array_equal(found.masses, known.masses)


# Beside the accountant --------------------------------------------------------------------


def test_events_without_an_answer():
    assert losses_of_event(dp_event.UnsupportedDpEvent(), 1e-3) is None
    assert losses_of_event(Composed([Gaussian(1.0), dp_event.UnsupportedDpEvent()])) is None
    assert losses_of_event(Sampled(1.0, dp_event.NonPrivateDpEvent())) is None


@pytest.mark.parametrize("step", [None, 1e-2])
def test_an_event_that_reveals_everything_is_certain_disclosure(step):
    for event in (
        dp_event.NonPrivateDpEvent(),
        Gaussian(0.0),
        Laplace(0.0),
        Composed([Gaussian(1.0), dp_event.NonPrivateDpEvent()]),
        Repeated(Composed([Gaussian(1.0), Laplace(0.0)]), 3),
    ):
        for side in sides_of(event, step):
            assert side.infinity == 1.0


@pytest.mark.parametrize("noise", [0.3, 7.0])
def test_a_pure_event_stays_pure_in_any_number(noise):
    for count in (1, 9, 300):
        for side in sides_of(Repeated(Laplace(noise), count)):
            assert side.infinity == 0.0
            assert side.epsilon(0.0) == pytest.approx(count / noise, rel=1e-2)
            assert side.epsilon(0.0) >= count / noise * (1.0 - 1e-9)


# Grids -------------------------------------------------------------------------------------

GRIDS = [
    (Laplace(5000.0), 1 / 5000),
    (Laplace(0.0), 1.0),
    (Sampled(1e-3, Laplace(2.0)), 1e-3 / 2.0),
    (Sampled(0.0, Laplace(2.0)), 1.0),
    (dp_event.DiscreteLaplaceDpEvent(0.5, 1), 1.0),
]


@pytest.mark.parametrize(("event", "spread"), GRIDS, ids=lambda value: repr(value)[:60])
def test_step_is_fine_beside_the_losses_of_one_application(event, spread):
    step = suitable_step(event)
    assert 0.0 < step <= 2e-3
    assert step <= spread / 20.0
    # No finer than needed, and on the family of grids that fit into each other.
    assert step > min(spread / 40.0, 1e-4) * (1.0 - 1e-9)
    assert math.log2(step / 1e-4) == round(math.log2(step / 1e-4))


def test_grids_of_ever_weaker_events_stop_at_a_finest_one():
    assert suitable_step(Laplace(1e300)) == suitable_step(Laplace(1e12)) > 1e-8


def test_a_given_grid_is_that_of_all_parts():
    event = Composed([Gaussian(1.0), Laplace(2.0), Repeated(Sampled(0.1, Gaussian(2.0)), 5)])
    assert [side.step for side in sides_of(event, 2e-3)] == [2e-3, 2e-3]


def test_equal_releases_are_composed_once(monkeypatch):
    """Whatever the tree around them."""
    calls = []

    def counted(sides, count):
        calls.append(count)
        return sides

    monkeypatch.setattr(_events, "self_composed_sides", counted)
    training = Repeated(Sampled(0.1, Gaussian(2.0)), 50)
    assert losses_of_event(Composed([training, training, Gaussian(1.0)]))[1] is None
    assert calls == []
    losses_of_event(Repeated(Composed([training, Laplace(3.0)]), 4))
    assert calls == [4]
