"""Gaussian releases on Poisson samples: against many digits, dp_accounting, and longer floats."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from skdptune.accounting._losses import _convolution, _forms
from skdptune.accounting._losses._dp_accounting import from_pld
from skdptune.accounting._losses._forms import SampledGaussian, sampled_gaussian_sides
from tests.accounting.oracles_profile import sampled_gaussian_epsilons

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
    (0.01, 2.0, 5000, 40),
    (0.01, 50.0, 10**6, 8),
    (1e-3, 1.0, 10**5, 20),
    (1e-4, 0.7, 1000, 10),
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
