"""Privacy profiles: against closed forms, exact sums, integrals, and dp_accounting."""

import copy
import itertools
import math
import pickle
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from skdptune.accounting import Geometric, Poisson, PrivacyProfile
from skdptune.accounting._format import _checksum
from tests.accounting.cases import few, steps, without_form
from tests.accounting.oracles_profile import (
    DIRECTIONS,
    approximate_composition,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_tradeoff,
    hockey_stick,
    least_pair_curve,
    losses_of_pair,
    neyman_pearson,
    one_way,
    renyi_of_response,
    sampled_gaussian_epsilons,
)

pure, approximate = PrivacyProfile.pure, PrivacyProfile.approximate
gaussian, from_event = PrivacyProfile.gaussian, PrivacyProfile.from_event
from_curve = PrivacyProfile.from_curve
# Relative rounding that a bound may be off by.
SLACK = 1e-9


def close(value, rel):
    """Equal to a relative error, however small the value."""
    return pytest.approx(value, rel=rel, abs=0.0)


def assert_bounds(profile, exact, epsilons, *, above, floor=1e-13, direction=None):
    """Never below the exact curve, and within ``above`` where it is at least ``floor``.

    ``above`` is a pair: relative, and absolute for what transforms add.
    """
    relative, absolute = above
    claimed = profile.delta(np.array(epsilons), direction)
    for epsilon, value in zip(epsilons, claimed, strict=True):
        wanted = exact(epsilon)
        assert value >= wanted * (1.0 - SLACK) - 1e-17
        if wanted >= floor:
            assert value <= wanted * (1.0 + relative) + absolute


# Closed forms ----------------------------------------------------------------------------

PARTS = {
    "gaussian": gaussian(1.0),
    "pure": pure(1 / 3),
    "approximate": approximate(0.25, 1e-7),
    "sampled": gaussian(0.3).subsampled(0.1),
    "points": from_curve([0.5, 1.0], [1e-3, 1e-6], deltas_add=[1e-4, 0.0]),
}

SHIFTS = [1e-3, 0.1, 1.0, 6.0, 14.0]


@pytest.mark.parametrize("mu", SHIFTS)
def test_gaussian_delta_is_the_closed_form(mu):
    # Theorem P6: the curve of Gaussian noise.
    epsilons = np.linspace(0.0, mu * mu / 2.0 + 8.0 * mu, 33)
    profile = gaussian(mu)
    for direction in (None, *DIRECTIONS):
        assert_bounds(
            profile,
            lambda e: gaussian_delta(mu, e),
            epsilons,
            above=(1e-5, 0.0),
            floor=1e-16,
            direction=direction,
        )


@pytest.mark.parametrize(
    ("epsilon", "delta"), few(8, [0.0, 1e-6, 1e-3, 0.5, 10.0, 600.0], [0.0, 1e-15, 1e-6, 0.1, 1.0])
)
def test_approximate_is_the_dominating_pair(epsilon, delta):
    # Theorem P5: randomised response dominates every (ε, δ)-private release.
    profile = approximate(epsilon, delta)
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    p = [delta, (1.0 - delta) * truth, (1.0 - delta) * (1.0 - truth), 0.0]
    q = [0.0, (1.0 - delta) * (1.0 - truth), (1.0 - delta) * truth, delta]
    for at in (-3.0, -0.1, 0.0, 1e-4, 0.2, 0.5, 5.0, 20.0):
        exact = hockey_stick(p, q, at)
        assert profile.delta(at) == pytest.approx(exact, rel=1e-9, abs=3e-16)
    assert profile.epsilon(delta) == pytest.approx(epsilon if delta < 1.0 else 0.0, abs=1e-9)
    if delta > 0.0:
        assert profile.epsilon(0.999 * delta) == math.inf


# Composition -----------------------------------------------------------------------------


@pytest.mark.parametrize(("mu", "count"), [(1e-3, 30), (0.30560331424650333, 307), (3.0, 5)])
def test_gaussians_compose_to_one_of_the_root_of_their_number(mu, count):
    # Theorem P4: losses of composed releases add up.
    together = mu * math.sqrt(count)
    epsilons = np.linspace(0.0, together**2 / 2.0 + 7.5 * together, 21)
    # In closed form, and by transforms.
    for profile in (count * gaussian(mu), count * without_form(gaussian(mu))):
        assert_bounds(
            profile, lambda e: gaussian_delta(together, e), epsilons, above=(1e-5, 3e-14)
        )
        # The noise of the transforms never makes a small delta too small.
        for delta in (1e-6, 1e-9, 1e-11, 1e-12, 1e-13):
            exact = gaussian_epsilon(together, delta)
            assert exact * (1.0 - SLACK) <= profile.epsilon(delta) <= exact * (1.0 + 1e-4)


@pytest.mark.parametrize(("epsilon", "count"), [(0.05, 2000), (0.2, 500)])
def test_small_deltas_of_long_compositions_are_never_understated(epsilon, count):
    # Theorem P4: losses of composed releases add up.
    for delta in (1e-9, 1e-11, 1e-13):
        claimed = (count * pure(epsilon)).epsilon(delta)
        assert approximate_composition(epsilon, 0.0, count, claimed) <= delta * (1.0 + SLACK)


# Closed forms that compositions keep ------------------------------------------------------


def test_gaussians_compose_to_the_very_gaussian():
    # Theorem P6: the curve of Gaussian noise.
    assert gaussian(3.0) + gaussian(4.0) == gaussian(5.0)
    assert 16 * gaussian(0.5) == gaussian(2.0) == 4 * (4 * gaussian(0.5))
    assert from_event(dp_event.GaussianDpEvent(0.5)) == gaussian(2.0)
    # However large they become.
    assert (10**6 * gaussian(1.0)).epsilon(0.5) == math.inf


def test_equal_responses_compose_in_any_order():
    # Theorem P5: randomised response dominates every (ε, δ)-private release.
    part = approximate(0.2, 1e-7)
    for together in (7 * part, 3 * part + 4 * part, part + 2 * (part + 2 * part)):
        assert together == 7 * part
    for at in (0.0, 0.7, 1.3):
        exact = approximate_composition(0.2, 1e-7, 7, at)
        assert exact <= (7 * part).delta(at) <= exact * (1.0 + 1e-9)


@pytest.mark.parametrize("count", [1, 5, 400])
def test_samples_of_a_gaussian_compose_as_what_they_are(count):
    # Theorem P7: the curve of a release on a Poisson sample.
    part = gaussian(0.5).subsampled(0.1)
    assert count * part == from_event(steps(0.1, 2.0, count))
    assert gaussian(0.5).subsampled(0.5).subsampled(0.2) == part
    # Two different rates have no common closed form: the total is between those for either rate.
    other = gaussian(0.5).subsampled(0.2)
    costs = [each.epsilon(1e-6) for each in (2 * part, part + other, 2 * other)]
    assert costs == sorted(costs) and len(set(costs)) == 3
    # A sample from which several releases are made is another matter.
    both, apart = (9 * part).subsampled(0.5), 9 * gaussian(0.5).subsampled(0.05)
    assert both.epsilon(1e-6) > 1.1 * apart.epsilon(1e-6)


Sampled, Repeated = dp_event.PoissonSampledDpEvent, dp_event.SelfComposedDpEvent
# A rate of single precision is the double that it is.
ALMOST = np.float32(1.0 - 1e-6)
TWICE = [Repeated(Sampled(0.1, dp_event.GaussianDpEvent(2.0)), 2), dp_event.NoOpDpEvent()]
FORMS = [
    (Repeated(dp_event.GaussianDpEvent(2.0), 4), gaussian(1.0)),
    (Sampled(1.0, dp_event.GaussianDpEvent(0.25)), gaussian(4.0)),
    (Repeated(dp_event.ComposedDpEvent(TWICE), 3), 6 * gaussian(0.5).subsampled(0.1)),
    (dp_event.GaussianDpEvent(math.inf), pure(0.0)),
    (
        dp_event.ComposedDpEvent(
            [dp_event.GaussianDpEvent(1 / 3), dp_event.GaussianDpEvent(0.25)]
        ),
        gaussian(5.0),
    ),
    (Sampled(ALMOST, dp_event.GaussianDpEvent(2.0)), gaussian(0.5).subsampled(float(ALMOST))),
]


@pytest.mark.parametrize(("event", "profile"), FORMS)
def test_events_have_the_closed_form_of_what_they_do(event, profile):
    assert from_event(event) == profile


@pytest.mark.parametrize(
    ("part", "count"),
    [(gaussian(0.3), 50), (pure(0.1), 60), (approximate(0.1, 1e-8), 60)]
    + [(gaussian(0.5).subsampled(0.1), 40)],
    ids=repr,
)
def test_closed_forms_cost_what_their_numbers_do(part, count):
    # Theorem P4: losses of composed releases add up.
    known, numeric = count * part, count * without_form(part)
    for delta in (1e-2, 1e-5, 1e-9, 1e-12):
        assert known.epsilon(delta) == close(numeric.epsilon(delta), 3e-3)
    assert known.rdp([2.0, 9.0]).tolist() == numeric.rdp([2.0, 9.0]).tolist()


def test_the_larger_of_two_of_one_kind_is_the_worst():
    # Theorem P8: the pointwise maximum bounds either of two.
    assert (gaussian(0.9) | gaussian(1.0)) == gaussian(1.0) == (gaussian(1.0) | gaussian(0.9))
    assert (pure(0.3) | approximate(0.5, 1e-9)) == approximate(0.5, 1e-9)
    less, more = (gaussian(mu).subsampled(q) for mu, q in ((0.5, 0.1), (0.5, 0.2)))
    assert (less | more) == more
    assert (3 * less | more) != more
    assert all((part | part) == part for part in PARTS.values())


def test_what_adds_nothing_leaves_the_other_one_alone():
    for part in PARTS.values():
        for nothing in (pure(0.0), 0 * part, gaussian(0.0), from_event(dp_event.NoOpDpEvent())):
            assert part + nothing is part and nothing + part is part
            np.testing.assert_allclose(
                (part | nothing).delta([-2.0, -0.5, 0.0, 0.5, 2.0]),
                part.delta([-2.0, -0.5, 0.0, 0.5, 2.0]),
                rtol=1e-4,
                atol=1e-12,
            )
    # Failing is not nothing.
    assert (pure(0.5) + approximate(0.0, 1e-6)).epsilon(0.0) == math.inf


# Small deltas of long compositions --------------------------------------------------------


def test_small_deltas_of_long_trainings_are_finite():
    """One of rate 1e-3 and 10^5 steps at 1e-12, one of rate 1e-6 and 10^6 steps at 1e-9.

    The references are those of longer floats, and the curve of the one step that matters.
    """
    # Theorem P12: allowances for the rounding of Fourier transforms.
    long = from_event(steps(1e-3, 1.0, 10**5))
    assert 2.8939 <= long.epsilon(1e-12) <= 2.8939 * 1.01
    rare = from_event(steps(1e-6, 0.5, 10**6))
    assert 0.5626 <= rare.epsilon(1e-9) <= 0.5626 * 1.01


# Ever smaller samples, and points of the oracle to the spread of one loss; the last ones have
# losses that are rare and large.
LONG = [
    *((0.2, 4.0, 100, 60), (1e-4, 0.5, 10, 12), (0.05, 0.25, 3, 400)),
    *(
        pytest.param(*each, marks=pytest.mark.slow)
        for each in [(0.01, 50.0, 10**6, 8), (1e-3, 1.0, 10**5, 20), (1e-3, 0.72, 70_000, 20)]
    ),
]


@pytest.mark.parametrize(("rate", "noise", "count", "points"), LONG)
def test_long_compositions_are_those_of_longer_floats(rate, noise, count, points):
    # Theorem P12: allowances for the rounding of Fourier transforms.
    deltas = (0.1 * rate, 1e-6, 1e-9, 1e-12)
    exact = sampled_gaussian_epsilons(rate, noise, count, deltas, points)
    profile = from_event(steps(rate, noise, count))
    for delta, known in zip(deltas, exact, strict=True):
        # The oracle itself is good to some four digits.
        assert known * (1.0 - 1e-4) <= profile.epsilon(delta) <= known * (1.0 + 1e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"),
    [(0.1, 1e-10, 500), (0.5, 0.01, 30), (0.0, 1e-5, 100), (0.02, 0.0, 800), (1 / 3, 0.0, 40)],
)
def test_approximate_guarantees_compose_optimally(epsilon, delta, count):
    # Theorem P5: randomised response dominates every (ε, δ)-private release.
    assert_bounds(
        count * approximate(epsilon, delta),
        lambda e: approximate_composition(epsilon, delta, count, e),
        np.linspace(0.0, min(count * epsilon, 12.0) + 0.1, 13),
        above=(1e-7, 1e-15 * count),
    )


@pytest.mark.parametrize(
    ("first", "second"),
    few(6, [0.1, 0.3, 1 / 3, 1e-4, 1.1, 0.1 + 0.2], [0.3, 0.25, 1e-3, 1.4, 1 / 7, 2.9]),
)
def test_pure_guarantees_of_any_two_sizes_add_up(first, second):
    """Grids that fit into each other only up to rounding are the same grid."""
    # Theorem P1, Theorem P4.
    profile = pure(first) + pure(second)
    total = first + second
    assert total * (1.0 - 1e-12) <= profile.epsilon(0.0) <= total + 1e-4
    # Two independent answers: three losses matter.
    a, b = (1.0 / (1.0 + math.exp(-epsilon)) for epsilon in (first, second))
    p = [a * b, a * (1.0 - b), (1.0 - a) * b, (1.0 - a) * (1.0 - b)]
    for epsilon in (0.0, 0.3 * total, 0.8 * total):
        exact = hockey_stick(p, p[::-1], epsilon)
        assert exact * (1.0 - 1e-9) <= profile.delta(epsilon) <= exact * (1.0 + 1e-3)


def test_multiples_are_written_either_way_and_sums_start_from_nothing():
    part = pure(0.3)
    assert 2 * part == part * 2 == np.int64(2) * part == part * np.int64(2)
    assert 1 * part == part == 0 + part
    assert sum([pure(0.1)] * 3).epsilon(0.0) == close(0.3, 1e-12)


@pytest.mark.parametrize("delta", [1e-7, 1e-6, 1e-5])
def test_pure_company_leaves_an_approximate_guarantee_its_delta(delta):
    """The composition of (0.5, delta) and (e, 0) is (0.5 + e, delta), at that very delta."""
    part = approximate(0.5, delta)
    for epsilon in (0.0, 0.1, 0.5):
        assert (part + pure(epsilon)).epsilon(delta) == close(0.5 + epsilon, 1e-6)
        assert (pure(epsilon) + part).epsilon(delta) == close(0.5 + epsilon, 1e-6)


def test_certain_disclosure_stays_certain():
    revealed = from_event(dp_event.NonPrivateDpEvent())
    for profile in (
        3 * revealed,
        3 * approximate(1.0, 1.0),
        revealed + gaussian(1.0),
        gaussian(1.0) + revealed,
        revealed | pure(0.1),
    ):
        assert profile.epsilon(0.999999) == math.inf
        assert profile.delta([-1.0, 0.0, 1.0, 100.0]) == pytest.approx(1.0, rel=1e-9)


def test_long_compositions_stay_small():
    """Memory must not grow with the number of copies times the grid."""
    part = from_curve([0.5, 1.0], [1e-3, 0.0])
    tracemalloc.start()
    try:
        profile = 60 * part
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 500e6
    assert part.epsilon(1e-6) < profile.epsilon(1e-6) < math.inf


def test_a_pure_guarantee_stays_pure_however_long():
    # Theorem P4: losses of composed releases add up.
    laplace, sampled = from_event(dp_event.LaplaceDpEvent(0.3)), pure(0.1).subsampled(0.3)
    parts = [(pure(1e-3), 1000), (pure(0.1) + pure(0.25), 100), (pure(1.0), 700)]
    parts += [(without_form(pure(0.1)), 31), (sampled, 100), (laplace, 40)]
    for part, count in parts:
        profile = count * part
        total = count * part.epsilon(0.0)
        assert total * (1.0 - 1e-9) <= profile.epsilon(0.0) <= total * 1.001
        assert profile.delta(math.inf) == profile.delta(total * (1.0 + 2e-3)) == 0.0


# The worst of two -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (gaussian(1.0), gaussian(1.3)),
        (gaussian(1.0), pure(1.0)),
        (gaussian(2.0).subsampled(0.1), gaussian(0.5)),
        (from_curve([0.5, 1.0], [1e-3, 1e-6]), gaussian(0.2)),
        (approximate(0.1, 1e-3), pure(1.5)),
        (pure(1 / 3), pure(0.25)),
    ],
)
def test_the_worst_of_two_is_the_pointwise_maximum(first, second):
    # Theorem P8: the pointwise maximum bounds either of two.
    both, mirrored = first | second, second | first
    points = np.linspace(-4.0, 8.0, 601)
    for direction in DIRECTIONS:
        worst = np.maximum(first.delta(points, direction), second.delta(points, direction))
        claimed = both.delta(points, direction)
        assert np.all(claimed >= worst * (1.0 - 1e-9) - 1e-16)
        assert np.all(claimed <= worst * (1.0 + 1e-3) + 1e-12)
        np.testing.assert_allclose(mirrored.delta(points, direction), claimed, rtol=1e-12)
    for delta in (1.01e-3, 1.01e-6, 1e-9):
        worst = max(first.epsilon(delta), second.epsilon(delta))
        assert worst * (1.0 - 1e-9) <= both.epsilon(delta) <= worst * (1.0 + 1e-3)
    wanted = np.maximum(first.rdp([2.0, 9.0]), second.rdp([2.0, 9.0]))
    assert both.rdp([2.0, 9.0]).tolist() == wanted.tolist()


def test_equal_curves_with_unequal_renyi_curves_keep_the_larger_one():
    known = PrivacyProfile.from_dict(pure(0.5).to_dict())
    content = known.to_dict() | {"rdp": approximate(0.5, 1e-5).to_dict()["rdp"]}
    unknown = PrivacyProfile.from_dict(content | {"checksum": _checksum(content)})
    assert known == unknown
    assert (known | unknown).rdp(2.0) == (unknown | known).rdp(2.0) == math.inf


# Sampling --------------------------------------------------------------------------------


@pytest.mark.parametrize(("mu", "fraction"), few(5, [0.3, 1.0, 2.0], [0.9, 0.5, 0.1, 0.01, 1e-3]))
def test_sampled_gaussian_is_the_formula_at_every_epsilon(mu, fraction):
    """Remove: ``q H(1 + (alpha - 1) / q)``; add: from the mixture's lower side."""
    # Theorem P7: the curve of a release on a Poisson sample.
    profile = gaussian(mu).subsampled(fraction)
    for share in (0.0, 0.1, 0.5, 0.9, 2.0, 5.0):
        epsilon = share * fraction
        inner = math.log1p(math.expm1(epsilon) / fraction)
        exact = fraction * gaussian_delta(mu, inner)
        claimed = profile.delta(epsilon, "remove")
        assert exact * (1.0 - SLACK) <= claimed <= exact * (1.0 + 5e-3) + 1e-18
        kept = fraction * math.exp(epsilon) - math.expm1(epsilon)
        if kept > 0.0:
            exact = kept * gaussian_delta(mu, math.log(fraction / kept) + epsilon)
            claimed = profile.delta(epsilon, "add")
            assert exact * (1.0 - SLACK) <= claimed <= exact * 1.001 + 0.05 * fraction


PAIRS = {
    "symmetric": ([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]),
    "infinity in p": ([0.05, 0.45, 0.3, 0.2], [0.0, 0.25, 0.25, 0.5]),
    "infinity in q": ([0.0, 0.25, 0.25, 0.5], [0.01, 0.49, 0.3, 0.2]),
    "infinity in both": ([0.02, 0.58, 0.4, 0.0], [0.0, 0.4, 0.55, 0.05]),
    "disjoint": ([1.0, 0.0], [0.0, 1.0]),
    "partly revealed": ([0.3, 0.7, 0.0], [0.0, 0.7, 0.3]),
}


def profile_of(pair):
    """The profile of a small pair, from its curve at all its kinks and many other points."""
    p, q = pair
    kinks = [abs(loss) for loss, _ in losses_of_pair(p, q)[0]]
    points = np.concatenate([np.linspace(0.0, max([*kinks, 0.1]), 400), kinks])
    points = np.unique(np.round(points, 12))
    curves = [[hockey_stick(*one_way(pair, d), e) for e in points] for d in DIRECTIONS]
    return from_curve(points, curves[0], deltas_add=curves[1], discretization=1e-4)


@pytest.mark.parametrize(("fraction", "epsilon"), [(1e-21, 1.0), (1e-100, 0.0), (5e-324, 50.0)])
def test_rarest_samples_have_a_cost(fraction, epsilon):
    # Theorem P7: a smaller rate costs no more.
    profile = PrivacyProfile.pure(epsilon).subsampled(fraction)
    assert 0.0 <= profile.delta(0.0) <= 2e-17 + 1e-12


@pytest.mark.parametrize(
    ("fraction", "pair"), few(6, [0.999, 0.7, 0.3, 0.05, 1e-3], PAIRS.values())
)
def test_sampling_moves_the_atoms(pair, fraction):
    # Theorem P7: the curve of a release on a Poisson sample.
    profile = profile_of(pair).subsampled(fraction)
    mixture = [(1.0 - fraction) * b + fraction * a for a, b in zip(*pair, strict=True)]
    for direction in DIRECTIONS:
        mixed = (mixture, pair[1]) if direction == "remove" else (pair[1], mixture)
        for share in (-2.0, -0.5, 0.0, 0.1, 0.4, 0.8, 0.99, 1.5, 4.0):
            epsilon = share * fraction
            exact = hockey_stick(*mixed, epsilon)
            claimed = profile.delta(epsilon, direction)
            assert claimed >= exact * (1.0 - 1e-9) - 1e-15
            assert claimed <= exact + 1e-3 * fraction


def test_a_sample_of_everything_changes_nothing():
    for part in PARTS.values():
        assert part.subsampled(1.0) == part
        assert part.subsampled(1) == part


# Events ----------------------------------------------------------------------------------

EVENTS = {
    "gaussian": dp_event.GaussianDpEvent(1.0),
    "strong gaussian": dp_event.GaussianDpEvent(0.2),
    "laplace": dp_event.LaplaceDpEvent(1.3),
    "discrete laplace": dp_event.DiscreteLaplaceDpEvent(0.7, 2),
    "training": steps(0.01, 2.0, 1000),
    "sampled laplace": dp_event.PoissonSampledDpEvent(0.1, dp_event.LaplaceDpEvent(1.0)),
    "sampled surely": dp_event.PoissonSampledDpEvent(1.0, dp_event.LaplaceDpEvent(2.0)),
    "many laplace": dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(4.0), 5),
    "composed": dp_event.ComposedDpEvent(
        [dp_event.GaussianDpEvent(1.5), dp_event.LaplaceDpEvent(2.0), steps(0.1, 1.0, 5)]
    ),
    "nested": dp_event.SelfComposedDpEvent(
        dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(5.0), dp_event.NoOpDpEvent()]), 7
    ),
}


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS.keys())
def test_events_agree_with_the_accountant(event):
    profile = from_event(event, discretization=1e-3)
    accountant = PLDAccountant(value_discretization_interval=1e-3).compose(event)
    for delta in (0.1, 1e-3, 1e-5, 1e-8):
        theirs = accountant.get_epsilon(delta)
        # A rounding in each step's delta, of either sign, is some 1e-14 after 1,000 steps.
        assert theirs - 1e-9 - 1e-14 / delta <= profile.epsilon(delta) <= theirs + 1e-6
    for epsilon in (0.1, 0.5, 2.0):
        theirs = accountant.get_delta(epsilon)
        assert profile.delta(epsilon) == pytest.approx(theirs, rel=1e-5, abs=1e-13)


def test_laplace_is_its_closed_form():
    profile = from_event(dp_event.LaplaceDpEvent(2.0))
    for epsilon in (0.0, 0.1, 0.3, 0.49):
        exact = -math.expm1((epsilon - 0.5) / 2.0)
        assert exact * (1.0 - SLACK) <= profile.delta(epsilon) <= exact * 1.001
    assert profile.epsilon(1e-12) == pytest.approx(0.5, abs=1e-4)
    # Grids suit the losses of other events, too.
    rare = from_event(dp_event.PoissonSampledDpEvent(1e-3, dp_event.LaplaceDpEvent(2.0)))
    assert rare.delta(0.0) == close(1e-3 * profile.delta(0.0), 1e-2)
    discrete = from_event(dp_event.DiscreteLaplaceDpEvent(0.5, 1))
    assert discrete.epsilon(0.0) == close(0.5, 1e-3)


@pytest.mark.parametrize("discretization", [1e-4, 0.5])
def test_a_coarse_grid_is_worse_and_never_too_good(discretization):
    profile = from_event(dp_event.GaussianDpEvent(1.0), discretization=discretization)
    for epsilon in np.linspace(0.0, 6.0, 13):
        exact = gaussian_delta(1.0, epsilon)
        assert profile.delta(epsilon) >= exact * (1.0 - 1e-7)
    assert profile.epsilon(1e-5) <= 4.3772 + discretization


NOT_PRIVATE = [
    dp_event.NonPrivateDpEvent(),
    dp_event.GaussianDpEvent(0.0),
    dp_event.LaplaceDpEvent(0.0),
    dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(1.0), dp_event.NonPrivateDpEvent()]),
    dp_event.SelfComposedDpEvent(dp_event.NonPrivateDpEvent(), 3),
    dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(0.0)),
]


@pytest.mark.parametrize("event", NOT_PRIVATE, ids=repr)
def test_events_that_reveal_everything_have_no_epsilon(event):
    profile = from_event(event)
    assert profile.epsilon(0.9) == math.inf and profile.epsilon(1.0) == 0.0
    assert profile.delta([-1.0, 0.0, 5.0, 1e3]).tolist() == [1.0] * 4
    assert profile.tradeoff([0.0, 0.5, 1.0]).tolist() == [0.0] * 3
    assert np.all(profile.rdp([1.5, 2.0, 10.0]) == math.inf)


@pytest.mark.parametrize(
    "event",
    [
        dp_event.NoOpDpEvent(),
        dp_event.ComposedDpEvent([]),
        dp_event.PoissonSampledDpEvent(0.0, dp_event.GaussianDpEvent(1.0)),
    ],
    ids=repr,
)
def test_events_that_do_nothing_cost_nothing(event):
    profile = from_event(event)
    assert profile.epsilon(0.0) == from_event(event, discretization=0.01).epsilon(0.0) == 0.0
    assert profile.delta([0.0, 1.0]).tolist() == [0.0, 0.0]
    assert profile.rdp([2.0, 10.0]).tolist() == [0.0, 0.0]


RENYI_ONLY = {
    "zero-concentrated": dp_event.ZCDpEvent(0.1, 0.0),
    "selection": dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(2.0), 10.0, 1.0),
    "sampled composition": dp_event.PoissonSampledDpEvent(
        0.1, dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(2.0), 4)
    ),
}


@pytest.mark.parametrize("event", RENYI_ONLY.values(), ids=RENYI_ONLY.keys())
def test_events_of_the_renyi_accountant_get_an_upper_bound(event):
    profile = from_event(event)
    accountant = RdpAccountant().compose(event)
    for delta in (1e-3, 1e-5, 1e-8):
        theirs = accountant.get_epsilon(delta)
        # Their orders are fewer than ours; the profile is at most a chord above the bound.
        assert profile.epsilon(delta) <= theirs * 1.001 + 1e-6
        assert profile.epsilon(delta) >= 0.8 * theirs
    finite = np.isfinite(profile.rdp([2.0, 8.0]))
    assert finite.all()


@pytest.mark.parametrize(
    "event",
    [
        dp_event.UnsupportedDpEvent(),
        dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(1.0), dp_event.UnsupportedDpEvent()]),
        # These are about replacing a record, not about adding or removing one.
        dp_event.SampledWithoutReplacementDpEvent(100, 10, dp_event.GaussianDpEvent(1.0)),
        dp_event.RandomizedResponseDpEvent(0.5, 2),
        dp_event.SingleEpochTreeAggregationDpEvent(1.0, 8),
        dp_event.PoissonSampledDpEvent(0.1, dp_event.NonPrivateDpEvent()),
    ],
    ids=lambda event: type(event).__name__,
)
def test_events_that_no_accountant_knows_are_refused_by_name(event):
    with pytest.raises(
        ValueError, match="^event must be .* supports; got " + type(event).__name__
    ):
        from_event(event)


# Curves ----------------------------------------------------------------------------------

CURVES = {
    "convex": ([0.5, 1.0], [1e-3, 1e-6]),
    "one point": ([1.0], [1e-5]),
    "delta zero": ([0.7], [0.0]),
    "delta one": ([1.0], [1.0]),
    "epsilon zero": ([0.0], [0.3]),
    "nothing": ([0.0], [0.0]),
    "rising": ([0.25, 0.5, 1.0], [1e-3, 0.5, 1e-5]),
    "not convex": ([0.0, 0.5, 1.0, 2.0], [0.5, 0.45, 0.01, 0.0]),
    "flat": ([0.0, 0.5, 1.0], [0.1, 0.1, 0.1]),
    "too good at first": ([0.0, 1.0], [0.0, 0.5]),
    "far": ([1.0, 50.0], [0.1, 1e-9]),
    "near": ([1e-6, 2e-6], [1e-8, 1e-12]),
    "odd numbers": ([1 / 3, math.pi], [1e-3, 1e-9]),
    "gaussian": (
        list(np.linspace(0.0, 5.0, 21)),
        [gaussian_delta(1.0, e) for e in np.linspace(0.0, 5.0, 21)],
    ),
}


@pytest.mark.parametrize(("epsilons", "deltas"), CURVES.values(), ids=CURVES.keys())
def test_points_are_tightened_by_convexity_and_nothing_else(epsilons, deltas):
    # Theorem P3: a curve lies below the convex hull of its bounds.
    profile = from_curve(epsilons, deltas)
    top = epsilons[-1]
    for epsilon in [*epsilons, *np.linspace(0.0, 1.2 * top, 13), top + 1.0]:
        proven = least_pair_curve(epsilons, deltas, deltas, epsilon, "remove")
        claimed = profile.delta(epsilon)
        assert claimed >= proven * (1.0 - 1e-9) - 1e-16
        # The grid has some 16000 points, and a curve falls by at most exp(epsilon) each.
        assert claimed <= proven * 1.001 + 2e-4 * top


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_dots_of_a_pair_bound_it_everywhere(seed):
    """Between the dots, below zero and beyond the last dot, the best bound of either side."""
    # Theorem P1: the pair that joins a curve's dots dominates the release.
    rng, step = np.random.default_rng(seed), 0.2048
    p, q = rng.dirichlet(np.ones(5), size=2) * (rng.random((2, 5)) > 0.2) + 1e-9
    pair = p / p.sum(), q / q.sum()
    dots = step * np.arange(25)
    curves = [[hockey_stick(*one_way(pair, d), e) for e in dots] for d in DIRECTIONS]
    profile = from_curve(dots, curves[0], deltas_add=curves[1], discretization=step)
    points = rng.uniform(-6.0, 6.0, 30)
    for direction, curve in zip(DIRECTIONS, curves, strict=True):
        exact = np.array([hockey_stick(*one_way(pair, direction), e) for e in points])
        assert np.all(profile.delta(points, direction) >= exact * (1.0 - 1e-9) - 1e-12)
        np.testing.assert_allclose(profile.delta(dots, direction), curve, rtol=1e-6, atol=1e-9)


def test_directions_are_kept_apart():
    # Theorem P1: the pair that joins a curve's dots dominates the release.
    pair = PAIRS["infinity in p"]
    profile = profile_of(pair)
    for direction in DIRECTIONS:
        for epsilon in (-1.0, -0.2, 0.0, 0.1, 0.3, 0.58, 2.0):
            exact = hockey_stick(*one_way(pair, direction), epsilon)
            claimed = profile.delta(epsilon, direction)
            assert exact - 1e-12 <= claimed <= exact + 1e-4
    assert profile.delta(3.0) == pytest.approx(0.05)
    assert profile.delta(3.0, "add") == pytest.approx(0.0, abs=1e-12)
    assert profile.delta(0.5) == max(profile.delta(0.5, d) for d in DIRECTIONS)


# Reading ---------------------------------------------------------------------------------

READ = {
    **PARTS,
    "nothing": pure(0.0),
    "everything": approximate(1.0, 1.0),
    "strong": gaussian(14.0),
    "selected": gaussian(0.3).selected(Geometric(0.1)),
    "tiny": pure(1e-6),
    "event": from_event(dp_event.GaussianDpEvent(0.1), discretization=0.01),
    "repeated": 50 * pure(0.2),
}
every_profile = pytest.mark.parametrize("profile", READ.values(), ids=READ.keys())


@every_profile
def test_delta_is_a_falling_convex_probability_in_each_direction(profile):
    alphas = np.exp(np.linspace(-30.0, 30.0, 1201))
    for direction in DIRECTIONS:
        values = profile.delta(np.log(alphas), direction)
        assert np.all((values >= 0.0) & (values <= 1.0))
        assert np.all(np.diff(values) <= 1e-12)
        assert np.all(values >= 1.0 - alphas - 1e-12)
        share = (alphas[1:-1] - alphas[:-2]) / (alphas[2:] - alphas[:-2])
        chords = (1.0 - share) * values[:-2] + share * values[2:]
        assert np.all(values[1:-1] <= chords * (1.0 + 1e-7) + 1e-12)


@every_profile
def test_negative_epsilon_is_the_other_direction(profile):
    # Theorem P2: a direction below α = 1 is the other direction above it.
    for own, other in (DIRECTIONS, DIRECTIONS[::-1]):
        for epsilon in (-40.0, -3.0, -0.1, -1e-7):
            mirrored = -math.expm1(epsilon) + math.exp(epsilon) * profile.delta(-epsilon, other)
            assert profile.delta(epsilon, own) == close(mirrored, 1e-12)


@every_profile
def test_epsilon_and_delta_are_inverse(profile):
    for delta in (0.5, 1e-2, 1e-4, 1e-7, 1e-11):
        epsilon = profile.epsilon(delta)
        if math.isinf(epsilon):
            assert profile.delta(1e6) > delta
            continue
        assert profile.delta(epsilon) <= delta * (1.0 + 1e-8)
        if epsilon > 0.0:
            assert profile.delta(epsilon * (1.0 - 1e-5)) > delta


@every_profile
def test_nothing_read_is_ever_not_a_number(profile):
    points = np.array(
        [-math.inf, -1e300, -601.0, -1.0, -0.0, 0.0, 1e-300, 1.0, 601.0, 1e300, math.inf]
    )
    for direction in (None, *DIRECTIONS):
        values = profile.delta(points, direction)
        assert np.all((values >= 0.0) & (values <= 1.0))
    assert not any(math.isnan(profile.epsilon(d)) for d in (0.0, 1e-300, 1e-20, 0.5, 1.0))
    errors = profile.tradeoff([0.0, 1e-300, 1e-12, 0.5, 1.0 - 1e-12, 1.0])
    assert np.all((errors >= 0.0) & (errors <= 1.0))
    divergences = profile.rdp([1.0 + 1e-9, 1.5, 2.0, 1e3])
    assert np.all(divergences >= 0.0)


@pytest.mark.parametrize("method", ["delta", "tradeoff", "rdp"])
def test_scalars_give_floats_and_sequences_arrays(method):
    read = getattr(gaussian(1.0), method)
    at = 2.0 if method == "rdp" else 0.5
    for scalar in (at, np.float64(at), np.float32(at), np.array(at)):
        assert type(read(scalar)) is float
    for sequence in ([at, at], (at, at), np.array([at, at])):
        values = read(sequence)
        assert isinstance(values, np.ndarray) and values.shape == (2,)
        assert values.tolist() == [read(at)] * 2
    assert read([]).shape == (0,)
    assert all(profile.rdp([]).shape == (0,) for profile in PARTS.values())
    assert type(gaussian(1.0).epsilon(np.float64(1e-5))) is float


@pytest.mark.parametrize("method", ["delta", "tradeoff", "rdp"])
def test_what_is_no_number_is_refused_everywhere(method):
    read = getattr(gaussian(1.0), method)
    at = 2.0 if method == "rdp" else 0.5
    for value in (math.nan, [at, math.nan], np.array(math.nan), [[at]]):
        with pytest.raises(ValueError, match=" must be "):
            read(value)
    for value in (str(at), None, [str(at), "x"], object()):
        with pytest.raises(TypeError, match=" must be "):
            read(value)


def test_operands_of_other_kinds_are_refused():
    part = pure(0.5)
    for operation in (
        lambda: part + 1,
        lambda: 1 + part,
        lambda: part + 0.5,
        lambda: part | 1,
        lambda: part * 1.5,
        lambda: 2.0 * part,
        lambda: part * True,
        lambda: part * part,
        lambda: part - part,
    ):
        with pytest.raises(TypeError):
            operation()
    with pytest.raises(ValueError, match="^count must be an integer of at least 0; got -1"):
        -1 * part
    with pytest.raises(TypeError, match="must be made by one of"):
        PrivacyProfile()


# Trade-offs ------------------------------------------------------------------------------

ALPHAS = np.array([0.0, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999999, 1.0])


@pytest.mark.parametrize("mu", [1e-3, 1.0, 6.0])
def test_gaussian_tradeoff_is_the_closed_form(mu):
    claimed, exact = gaussian(mu).tradeoff(ALPHAS), gaussian_tradeoff(mu, ALPHAS)
    assert np.all(claimed <= exact + 1e-9)
    assert np.all(claimed >= exact - 1e-6)
    assert (claimed[0], claimed[-1]) == (pytest.approx(1.0, abs=1e-9), 0.0)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_tradeoff_is_that_of_the_worse_direction(pair):
    p, q = pair
    profile = profile_of(pair)
    for alpha in ALPHAS:
        exact = min(neyman_pearson(p, q, alpha), neyman_pearson(q, p, alpha))
        claimed = profile.tradeoff(alpha)
        assert exact - 1e-3 <= claimed <= exact + 1e-9


# Rényi -----------------------------------------------------------------------------------


def test_renyi_divergences_are_exact_where_they_are_known():
    orders = np.array([1.1, 2.0, 5.5, 100.0, 1e4])
    np.testing.assert_allclose(gaussian(0.7).rdp(orders), orders * 0.245, rtol=1e-12)
    exact = [renyi_of_response(0.4, order) for order in orders]
    np.testing.assert_allclose(pure(0.4).rdp(orders), exact, rtol=1e-9)
    event = steps(0.1, 1.0, 20)
    accountant = RdpAccountant([2.0, 16.0]).compose(event)
    found = from_event(event, discretization=0.01).rdp([2.0, 16.0])
    np.testing.assert_allclose(found, accountant._rdp, rtol=1e-9)


def test_renyi_divergences_of_compositions_add():
    orders = [1.5, 2.0, 30.0]
    a, b = gaussian(0.7), pure(0.4)
    np.testing.assert_allclose((a + b).rdp(orders), a.rdp(orders) + b.rdp(orders), rtol=1e-12)
    np.testing.assert_allclose((7 * b).rdp(orders), 7 * b.rdp(orders), rtol=1e-12)
    assert (0 * a).rdp(orders).tolist() == [0.0, 0.0, 0.0]


def test_renyi_divergences_of_points_are_unknown():
    unknown = [from_curve([1.0], [0.0]), approximate(1.0, 1e-6)]
    for profile in (*unknown, unknown[0] + gaussian(1.0), unknown[0].subsampled(0.1)):
        assert profile.rdp([2.0, 5.0]).tolist() == [math.inf, math.inf]


def test_the_largest_order_is_the_largest_loss():
    assert pure(0.4).rdp(math.inf) == close(0.4, 1e-12)
    assert pure(0.0).rdp(math.inf) == 0.0
    assert gaussian(1.0).rdp(math.inf) == math.inf
    assert gaussian(1.0).subsampled(0.1).rdp(math.inf) == math.inf


# Being an object --------------------------------------------------------------------------


@every_profile
def test_copies_and_pickles_are_equal(profile):
    orders = np.array([2.0, 5.0, 64.0])
    for again in (pickle.loads(pickle.dumps(profile)), copy.copy(profile), copy.deepcopy(profile)):
        assert again == profile and hash(again) == hash(profile)
        assert again.epsilon(1e-5) == profile.epsilon(1e-5)
        assert np.array_equal(again.rdp(orders), profile.rdp(orders))


def test_profiles_cannot_be_changed():
    profile = gaussian(1.0)
    before = profile.epsilon(1e-5)
    for name in ("note", "epsilon"):
        with pytest.raises(AttributeError):
            setattr(profile, name, None)
        with pytest.raises(AttributeError):
            delattr(profile, name)
    # Nor can what it returns, or the object of another library that it is shown as.
    shown, foreign = profile.delta(np.array([0.5, 1.0])), profile.pld
    shown[:] = -1.0
    foreign.self_compose(3)
    assert profile.epsilon(1e-5) == before
    assert profile.pld.get_epsilon_for_delta(1e-5) == close(before, 1e-6)


def test_equality_is_of_curves():
    assert gaussian(1.0) == gaussian(1.0) and gaussian(1.0) != gaussian(1.1)
    assert pure(1.0) != pure(1.0 + 1e-15) and pure(1.0) != approximate(1.0, 1e-300)
    assert pure(1.0) != 1.0 and pure(1.0) is not None
    asymmetric = from_curve([1.0], [0.1], deltas_add=[0.2])
    assert asymmetric != from_curve([1.0], [0.2], deltas_add=[0.1])
    assert len({pure(1.0), pure(1.0), pure(2.0), asymmetric}) == 3


def test_text_shows_epsilon_rounded_up():
    text = repr(gaussian(1.0))
    assert text.startswith("PrivacyProfile(ε=") and "δ=1e-05" in text and "δ=1e-08" in text
    shown = [float(part.split(" at ")[0]) for part in text[len("PrivacyProfile(ε=") :].split(", ")]
    for value, delta in zip(shown, (1e-5, 1e-8), strict=True):
        assert gaussian(1.0).epsilon(delta) <= value <= gaussian(1.0).epsilon(delta) + 1e-3
    assert "inf" in repr(approximate(1.0, 1.0))
    for profile in READ.values():
        assert repr(profile).startswith("PrivacyProfile(")


# Invariants -------------------------------------------------------------------------------


@given(
    st.lists(st.floats(0.0, 3.0), min_size=1, max_size=6, unique=True),
    st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6),
    st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6),
)
@settings(max_examples=40)
# The directions' own total variations differ by far: the smaller one counts for both.
@example([0.0, 0.6875], [0.025385667378348138] + 5 * [0.0], [1.0] + 5 * [0.0])
@example([0.0, 1.0], [1.0] + 5 * [0.0], [0.01] + 5 * [0.0])
def test_any_points_make_a_profile(epsilons, deltas, deltas_add):
    epsilons = np.sort(epsilons)
    assume(np.all(np.diff(epsilons) > 1e-6) and epsilons[-1] > 1e-6)
    size = epsilons.size
    profile = from_curve(epsilons, deltas[:size], deltas_add=deltas_add[:size])
    alphas = np.exp(np.linspace(-2.0, 4.0, 61))
    for direction, bounds in zip(DIRECTIONS, (deltas, deltas_add), strict=True):
        values = profile.delta(np.log(alphas), direction)
        assert np.all((values >= 0.0) & (values <= 1.0)) and np.all(np.diff(values) <= 1e-6)
        slopes = np.diff(values) / np.diff(alphas)
        assert np.all(np.diff(slopes) >= -1e-5)
        for epsilon, delta in zip(epsilons, bounds, strict=False):
            assert profile.delta(epsilon, direction) <= delta + 1e-3


@pytest.mark.parametrize(("count", "epsilon"), few(4, [1, 2, 3, 7], [0.0, 1 / 3, 1.0]))
def test_several_records_of_one_person_multiply_epsilon_and_more_than_delta(
    count: int, epsilon: float
) -> None:
    # Theorem P13: a chain of bits, where each pair of neighbours in the chain meets the guarantee.
    delta = 1e-6
    ones = [0.0]
    for _ in range(count):
        ones.append(math.exp(epsilon) * ones[-1] + delta)
    allowed = approximate(epsilon, delta).delta(epsilon) * (1.0 + 1e-6)
    for one, other in itertools.pairwise(ones):
        pair = [1.0 - one, one], [1.0 - other, other]
        assert binary_delta(*pair, epsilon) <= allowed
        assert binary_delta(*pair[::-1], epsilon) <= allowed
    bound = sum(math.exp(place * epsilon) for place in range(count)) * delta
    ends = [1.0 - ones[-1], ones[-1]], [1.0, 0.0]
    assert binary_delta(*ends, count * epsilon) == close(bound, 1e-9)
    # Nothing of the kind holds at the delta of one record.
    assert count == 1 or binary_delta(*ends, count * epsilon) > 1.9 * delta


def binary_delta(first, second, epsilon):
    return sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(first, second, strict=True))


@pytest.mark.parametrize(("count", "mu"), [(2, 0.1), (3, 1.0), (5, 0.5)])
def test_several_records_shift_a_gaussian_by_so_many_shifts(count: int, mu: float) -> None:
    # Theorem P13: the best test of one record, done with the errors of the test before it.
    several = gaussian(count * mu)
    for level in (1e-3, 0.1, 0.5):
        power = level
        for _ in range(count):
            power = 1.0 - gaussian_tradeoff(mu, power)
        assert 1.0 - gaussian_tradeoff(count * mu, level) == close(power, 1e-9)
        assert 1.0 - several.tradeoff(level) >= power * (1.0 - SLACK)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        shifted = gaussian_delta(count * mu, count * epsilon)
        assert several.delta(count * epsilon) >= shifted * (1.0 - SLACK)
        weights = sum(math.exp(place * epsilon) for place in range(count))
        assert shifted <= weights * gaussian(mu).delta(epsilon) * (1.0 + SLACK)


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it,
        lambda it: it + PrivacyProfile.gaussian(0.5),
        lambda it: it.selected(Poisson(30.0)),
    ],
    ids=["alone", "composed", "selected"],
)
@pytest.mark.parametrize("delta", [0.0, 1e-17])
def test_losses_on_a_grid_beyond_doubles_count_as_infinite(
    change: Callable[[PrivacyProfile], PrivacyProfile], delta: float
) -> None:
    profile = change(10**6 * PrivacyProfile.approximate(600.0, delta))
    assert profile.delta([0.0, 1.0, 700.0]) == pytest.approx([1.0, 1.0, 1.0])
    assert math.isinf(profile.epsilon(1e-5))
