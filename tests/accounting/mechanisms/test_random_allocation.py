"""Random allocation: against integrals, simulation and finer grids."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from skdptune.accounting import PrivacyProfile, random_allocation
from skdptune.accounting._random_allocation import GridVariable, added
from tests.accounting.cases import few


def call(strikes, shift):
    """Return ``E[(l - strike)_+]`` of one likelihood ratio ``l``, for strikes of any sign."""
    inside = np.maximum(strikes, 1e-300)
    upper = np.log(inside) / shift
    value = special.ndtr(shift / 2 - upper) - inside * special.ndtr(-shift / 2 - upper)
    return np.where(strikes > 0.0, value, 1.0 - strikes)


def put(strikes, shift):
    """Return ``E[(strike - l)_+]``; 0 where the strike is not positive."""
    inside = np.maximum(strikes, 1e-300)
    upper = np.log(inside) / shift
    value = inside * special.ndtr(upper + shift / 2) - special.ndtr(upper - shift / 2)
    return np.where(strikes > 0.0, value, 0.0)


def ratios(scores, shift):
    return np.exp(shift * scores - 0.5 * shift**2)


def quadrature(epsilon, shift, n_batches):
    """Integrate the last ratio in closed form and the others, two at most, on a grid."""
    scores = np.linspace(-9.0, 9.0 + shift, 40_001 if n_batches == 2 else 801)
    weights = np.exp(-0.5 * scores**2) / math.sqrt(2.0 * math.pi) * (scores[1] - scores[0])
    others = ratios(scores, shift)
    if n_batches == 3:
        others = (others[:, None] + others).ravel()
        weights = (weights[:, None] * weights).ravel()
    remove = weights @ call(n_batches * math.exp(epsilon) - others, shift) / n_batches
    add = weights @ put(n_batches * math.exp(-epsilon) - others, shift) / n_batches
    return remove, math.exp(epsilon) * add


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0, 7.0])
def test_one_batch_is_the_gaussian_mechanism(noise):
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    assert random_allocation(noise, 1) == PrivacyProfile.gaussian(1.0 / noise)


@pytest.mark.parametrize(("n_batches", "noise"), [(2, 0.4), (2, 3.0), (3, 1.0)])
def test_profile_of_few_batches_is_the_integral(n_batches, noise):
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    profile = random_allocation(noise, n_batches)
    for epsilon in (0.0, 0.3, 1.0, 4.0):
        exact = quadrature(epsilon, 1.0 / noise, n_batches)
        for direction, value in zip(("remove", "add"), exact, strict=True):
            claimed = profile.delta(epsilon, direction)
            assert claimed >= value * (1.0 - 1e-9) - 1e-15
            if value > 1e-9:
                assert claimed <= value * (1.02 if value > 1e-5 else 1.06)


def transformed(epsilons, shift, n_batches, size=2**20):
    """Return both directions' deltas by one Fourier transform over ratios on an even grid."""
    cell = min(2e-4 * n_batches, 0.02)
    edges = cell * np.arange(size + 1)
    values = call(edges, shift)
    # Second differences of calls are masses that keep the mean; the spread is a cell's.
    masses = np.diff(values, 2, prepend=values[0] + cell) / cell
    total = np.fft.irfft(np.fft.rfft(masses[:size]) ** n_batches, size)
    means = edges[:size] / n_batches
    remove = [total @ np.maximum(means - math.exp(e), 0.0) for e in epsilons]
    add = [total @ np.maximum(1.0 - math.exp(e) * means, 0.0) for e in epsilons]
    return remove, add


@pytest.mark.parametrize(("noise", "n_batches"), [(2.0, 10), (1.0, 1000)])
def test_profile_agrees_with_a_transform_on_an_even_grid(noise, n_batches):
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    profile = random_allocation(noise, n_batches)
    deviation = math.sqrt(math.expm1(noise**-2) / n_batches)
    epsilons = deviation * np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0])
    for direction, curve in zip(
        ("remove", "add"), transformed(epsilons, 1.0 / noise, n_batches), strict=True
    ):
        claimed = profile.delta(epsilons, direction)
        # The transform is off by some 1e-13, its grid adds some 1e-4 to the variance.
        assert (claimed >= np.array(curve) * (1.0 - 1e-3) - 1e-11).all()
        assert (claimed <= np.array(curve) * 1.02 + 1e-11).all()
        assert claimed[0] == pytest.approx(curve[0], rel=1e-3)


def simulated(epsilons, shift, n_batches, draws, seed):
    """Return means and standard errors of both directions' deltas, from random ratios.

    The largest ratio is integrated in closed form, given the others (Asmussen and Kroese 2006):
    by symmetry, the whole is the number of ratios times the part where the last one is the
    largest.
    """
    rng = np.random.default_rng(seed)
    samples = []
    for _ in range(0, draws, 1000):
        others = ratios(rng.standard_normal((1000, n_batches - 1)), shift)
        largest, total = others.max(axis=1), others.sum(axis=1)
        tail = special.ndtr(shift / 2 - np.log(largest) / shift)
        mean = special.ndtr(-shift / 2 - np.log(largest) / shift)
        rows = []
        for epsilon in epsilons:
            strike = n_batches * math.exp(epsilon) - total
            least = np.maximum(strike, largest)
            # E[(l - strike)_+; l > largest], where P-tail and Q-tail are taken at the larger.
            upper = special.ndtr(shift / 2 - np.log(least) / shift)
            lower = special.ndtr(-shift / 2 - np.log(least) / shift)
            remove = upper - strike * lower
            bound = n_batches * math.exp(-epsilon) - total
            end = np.maximum(bound, largest)
            end_tail = special.ndtr(shift / 2 - np.log(end) / shift)
            end_mean = special.ndtr(-shift / 2 - np.log(end) / shift)
            add = bound * (mean - end_mean) - (tail - end_tail)
            rows.append((remove, math.exp(epsilon) * add))
        samples.append(np.moveaxis(np.array(rows), 2, 0))
    values = np.concatenate(samples)
    return values.mean(axis=0), values.std(axis=0) / math.sqrt(len(values))


CASES = {
    "few, quiet": (0.5, 10, [0.5, 1.0, 3.0, 6.0], 40_000),
    "hundred, quiet": (0.6, 100, [0.1, 1.0, 2.5], 40_000),
    "thousand, quiet": (0.6, 1000, [0.1, 0.5, 1.0], 10_000),
}


@pytest.mark.parametrize("name", CASES)
def test_profile_of_many_batches_agrees_with_simulation(name):
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    noise, n_batches, epsilons, draws = CASES[name]
    profile = random_allocation(noise, n_batches)
    means, errors = simulated(epsilons, 1.0 / noise, n_batches, draws, seed=1)
    informative = 0
    for epsilon, mean, error in zip(epsilons, means, errors, strict=True):
        for side, direction in enumerate(("remove", "add")):
            claimed = profile.delta(epsilon, direction)
            assert claimed >= mean[side] - 4.5 * error[side]
            if error[side] < 0.02 * mean[side]:
                informative += 1
                assert claimed <= 1.02 * mean[side] + 4.5 * error[side]
    assert informative >= 1


def test_rounds_compose_and_a_part_of_a_round_is_sampled():
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    one = random_allocation(1.3, 6)
    assert random_allocation(1.3, 6, 18) == 3 * one
    # One sum of six holds a record with probability 1/6.
    sampled = PrivacyProfile.gaussian(1.0 / 1.3).subsampled(1.0 / 6.0)
    assert random_allocation(1.3, 6, 1) == sampled
    costs = [random_allocation(1.3, 6, steps).epsilon(1e-5) for steps in range(1, 14)]
    assert (np.diff(costs) > 0.0).all()
    both = random_allocation(1.3, 6, 10)
    assert both.epsilon(1e-5) == pytest.approx(
        (one + random_allocation(1.3, 6, 4)).epsilon(1e-5), rel=1e-9
    )


def test_a_part_of_a_round_is_the_integral():
    # Theorem M6. Two of three batches: dP/dQ is (1 + l_1 + l_2) / 3.
    profile = random_allocation(1.0, 3, 2)
    scores = np.linspace(-9.0, 10.0, 40_001)
    weights = np.exp(-0.5 * scores**2) / math.sqrt(2.0 * math.pi) * (scores[1] - scores[0])
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        strikes = 3.0 * np.exp([epsilon, -epsilon])[:, None] - 1.0 - ratios(scores, 1.0)
        remove = weights @ call(strikes[0], 1.0) / 3.0
        add = math.exp(epsilon) * (weights @ put(strikes[1], 1.0)) / 3.0
        for direction, value in (("remove", remove), ("add", add)):
            claimed = profile.delta(epsilon, direction)
            assert value * (1.0 - 1e-9) <= claimed <= value * 1.02 + 1e-6


def two_steps(record, noise, points):
    """Return the density of an adaptive mechanism's two outputs, on a grid of both.

    Others move the second sum by the first output, which also decides how much of its gradient
    the record adds to the second.
    """
    first, second = points[:, None], points[None, :]

    def density(x, mean):
        return np.exp(-0.5 * ((x - mean) / noise) ** 2) / noise / math.sqrt(2.0 * math.pi)

    others, gradient = np.sin(2.0 * first), np.cos(first)
    before = density(first, 0.0) * density(second, others)
    if not record:
        return before
    in_first = density(first, 1.0) * density(second, others)
    in_second = density(first, 0.0) * density(second, others + gradient)
    return 0.5 * (in_first + in_second)


@pytest.mark.parametrize("noise", [0.5, 1.0])
def test_profile_bounds_steps_that_depend_on_earlier_ones(noise):
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    points = np.linspace(-3.0 - 7 * noise, 3.0 + 7 * noise, 1601)
    cell = (points[1] - points[0]) ** 2
    larger, smaller = (two_steps(record, noise, points) for record in (True, False))
    profile = random_allocation(noise, 2)
    for epsilon in (0.0, 0.2, 0.7, 1.5, 3.0):
        for direction, (p, q) in {"remove": (larger, smaller), "add": (smaller, larger)}.items():
            exact = np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * cell
            assert exact <= profile.delta(epsilon, direction) + 1e-6
    # The bound is not trivial: the record has an effect.
    assert 0.5 * np.abs(larger - smaller).sum() * cell > 0.5 * profile.delta(0.0)


@pytest.mark.parametrize(
    ("noise", "n_batches"), few(6, [1.0 / 30.0, 0.051, 1e3, 1e9], [2, 3, 1000, 10**6 + 1])
)
def test_extremes_have_a_profile(noise, n_batches):
    profile = random_allocation(noise, n_batches)
    single = PrivacyProfile.gaussian(1.0 / noise)
    for delta in (1e-5, 1e-10):
        assert 0.0 <= profile.epsilon(delta) <= single.epsilon(delta) * 1.001 + 1e-12
    assert (3 * profile).epsilon(1e-5) >= profile.epsilon(1e-5)


# Sums of positive random variables on a geometric grid -----------------------------------

STEP = 0.07


def variable(numbers, masses, step=STEP, zero=0.0, excess=0.0):
    return GridVariable(
        step, np.array(numbers), np.array(masses, dtype=np.float64), zero, excess, 0.0
    )


def call_of(of, strike):
    """Return the bound on ``E[(T - strike)_+]``."""
    return float(of.masses @ np.maximum(of.points - strike, 0.0)) + of.excess


def put_of(of, strike):
    """Return the bound on ``E[(strike - T)_+]``."""
    return float(of.masses @ np.maximum(strike - of.points, 0.0)) + of.zero * strike


def exact_sums(first, second):
    """Return the values and the masses of a sum, pair by pair, what is at 0 included."""
    values, masses = (
        (np.append(of.points, 0.0), np.append(of.masses, of.zero)) for of in (first, second)
    )
    pairs = itertools.product(zip(*values, strict=True), zip(*masses, strict=True))
    return np.array([(x + y, p * q) for (x, p), (y, q) in pairs]).T


weights = st.floats(1e-6, 1.0)


@st.composite
def variables(draw):
    numbers = draw(st.lists(st.integers(-30, 40), min_size=1, max_size=8, unique=True))
    masses = np.array(draw(st.lists(weights, min_size=len(numbers), max_size=len(numbers))))
    zero = draw(st.sampled_from([0.0, 1e-3]))
    return variable(sorted(numbers), masses / masses.sum() * (1.0 - zero), zero=zero)


@settings(deadline=None, max_examples=30)
@given(variables(), variables())
def test_sums_bound_every_call_and_put(first, second):
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    for one, other in ((first, second), (first, first)):
        values, masses = exact_sums(one, other)
        total = added(one, other)
        for strike in np.quantile(values, [0.0, 0.2, 0.5, 0.8, 1.0]):
            assert call_of(total, strike) >= masses @ np.maximum(values - strike, 0.0) - 1e-12
            assert put_of(total, strike) >= masses @ np.maximum(strike - values, 0.0) - 1e-12
        # The mean is preserved, except for the part that was lowered to 0 and counts as cut off.
        assert total.mean + total.excess == pytest.approx(masses @ values, rel=1e-12)


@pytest.mark.parametrize("tail", [1e-12, 1e-3, 0.3])
def test_ends_are_cut_off_safely(tail):
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    numbers = np.arange(-60, 61)
    masses = np.exp(-0.5 * (numbers * 0.1) ** 2)
    whole = variable(numbers, masses / masses.sum())
    cut = whole.trimmed(tail)
    assert cut.numbers.size < whole.numbers.size or tail == 1e-12
    assert cut.zero <= tail and cut.excess <= tail
    for strike in np.append(0.0, whole.points):
        assert call_of(cut, strike) >= call_of(whole, strike) * (1.0 - 1e-13)
        assert put_of(cut, strike) >= put_of(whole, strike) * (1.0 - 1e-13)


@settings(deadline=None, max_examples=30)
@given(variables(), st.floats(0.01, 30.0))
def test_fewer_points_bound_every_call_and_put(of, spacing):
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    thin = of.thinned(spacing)
    assert set(thin.numbers) <= set(of.numbers)
    assert thin.masses.sum() == pytest.approx(of.masses.sum(), rel=1e-13)
    assert thin.mean == pytest.approx(of.mean, rel=1e-13)
    for strike in of.points:
        assert call_of(thin, strike) >= call_of(of, strike) - 1e-13 * of.mean
        assert put_of(thin, strike) >= put_of(of, strike) - 1e-13 * strike
