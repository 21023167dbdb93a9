"""Theorem P11: a profile through few knots is never below it, and hardly above."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.accounting import LARGEST_LOSS, PrivacyProfile
from skdptune.accounting._losses import MOST_POINTS, LossDistribution
from skdptune.accounting._profile._format import (
    MOST_KNOTS,
    Knots,
    _chosen,
    _moved,
    _Tolerance,
    few_knots,
    knots_of,
    sides_through,
)


def smooth(mu=1.0):
    return PrivacyProfile.gaussian(mu)._both


def loss_distribution(masses, step=0.25, lowest=0, infinity=0.0):
    return LossDistribution(step, lowest, np.array(masses, dtype=np.float64), infinity)


@st.composite
def pairs(draw):
    """Return both directions of a pair of distributions on a small grid of losses."""
    step = draw(st.sampled_from([1e-4, 0.01, 0.5, 3.0]))
    sizes = draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
    weights = st.floats(0.0, 1.0)
    first, second = (draw(st.lists(weights, min_size=n, max_size=n)) for n in sizes)
    places = np.arange(-len(second), len(first) + 1)
    p = np.array([*second, draw(weights), *first]) + 1e-3
    q = p * np.exp(-step * places)
    # Each distribution has what the other lacks, at infinity.
    total = max(p.sum(), q.sum()) * (1.0 + draw(st.floats(0.0, 1.0)))
    p, q = p / total, q / total
    remove = LossDistribution(step, int(places[0]), p, 1.0 - p.sum())
    return remove, LossDistribution(step, -int(places[-1]), q[::-1].copy(), 1.0 - q.sum())


@given(pairs())
def test_all_knots_say_all_of_a_pair(pair):
    """Theorem P11."""
    again = sides_through(pair[0].step, *map(knots_of, pair))
    for before, after in zip(pair, again, strict=True):
        assert after.lowest == before.lowest and after.infinity == before.infinity
        np.testing.assert_allclose(after.masses, before.masses, rtol=1e-12, atol=1e-14)


@given(pairs(), st.data())
def test_masses_between_two_knots_make_a_chord(pair, data):
    """Theorem P11."""
    side = pair[0]
    inner = st.sets(st.integers(1, max(side.highest - 1, 1)))
    chosen = np.array(sorted({0, side.highest} | data.draw(inner)))
    moved = _moved(side, chosen)
    alphas = np.exp(side.step * np.arange(side.highest + 1))
    through = np.interp(alphas, alphas[chosen], side.curve[chosen])
    after, _ = sides_through(side.step, moved, knots_of(pair[1]))
    np.testing.assert_allclose(after.curve, through, rtol=1e-9, atol=1e-15)
    assert after.infinity == side.infinity and set(moved.places) <= set(chosen)


def test_shares_agree_with_many_digits():
    side = loss_distribution([0.3, 0.2, 1e-9, 0.1, 0.15, 0.25], step=2.0)
    moved = _moved(side, np.array([0, 2, 5]))
    with mpmath.workdps(60):
        gained = {2: mpmath.mpf(0), 5: mpmath.mpf(0)}
        for place, mass in enumerate(side.masses.tolist()):
            for left, right in ((0, 2), (2, 5)):
                if left < place <= right:
                    low, here, high = (mpmath.exp(-2 * i) for i in (right, place, left))
                    share = (high - here) / (high - low)
                    gained[right] += share * mass
                    if left:
                        gained[left] += (1 - share) * mass
        for place, mass in zip(moved.places.tolist(), moved.masses.tolist(), strict=True):
            # Never less than the exact sum.
            assert gained[place] <= mass <= gained[place] * (1 + mpmath.mpf(2) ** -41)


@pytest.mark.parametrize("mu", [1e-3, 0.3, 3.0])
def test_knots_are_the_farthest_that_the_tolerance_allows(mu):
    """So that no other points of the curve would be fewer."""
    side = smooth(mu)[0]
    chosen = _chosen(side, _Tolerance(), ())
    assert chosen[0] == 0 and chosen[-1] == side.highest
    epsilons = side.step * np.arange(side.highest + 1)

    def loses(start, end):
        """Return the largest share by which a chord from knot to knot raises epsilon."""
        inside = np.arange(start + 1, end)
        line = np.interp(np.exp(epsilons[inside]), np.exp(epsilons[[start, end]]),
                         side.curve[[start, end]])  # fmt: skip
        in_range = line > 1e-11
        found = [
            epsilon / side.epsilon(height) - 1.0
            for epsilon, height in zip(epsilons[inside][in_range], line[in_range], strict=True)
        ]
        return max(found, default=0.0)

    for start, end in zip(chosen[20:60], chosen[21:61], strict=True):
        assert loses(start, end) <= 9.1e-4
        assert side.curve[end + 1] < 1e-11 or loses(start, end + 1) > 8.9e-4


def test_few_knots_are_left_as_they_are():
    pair = loss_distribution([0.5, 0.0, 0.25, 0.25]), loss_distribution([0.5, 0.2])
    remove, add = few_knots((pair[0], pair[0]))
    assert remove.places.tolist() == [2, 3] and remove.masses.tolist() == [0.25, 0.25]
    assert add.masses.tolist() == remove.masses.tolist()


@pytest.mark.parametrize("mu", [1e-3, 1.0, 10.0, 25.0])
def test_knots_are_few_and_the_ends_are_kept(mu):
    sides = smooth(mu)
    for side, knots in zip(sides, few_knots(sides), strict=True):
        assert knots.places.size <= MOST_KNOTS < np.count_nonzero(side.positive_masses)
        assert knots.places[-1] == np.flatnonzero(side.positive_masses)[-1] + 1
        assert knots.infinity == side.infinity


def test_many_deltas_do_not_make_many_knots():
    deltas = np.geomspace(1e-9, 1e-2, 1000).tolist()
    sides = smooth()
    for knots in few_knots(sides, deltas):
        assert knots.places.size <= MOST_KNOTS
    # The first ones are kept.
    again, _ = sides_through(sides[0].step, *few_knots(sides, deltas))
    for delta in deltas[:16]:
        assert again.epsilon(delta) == pytest.approx(sides[0].epsilon(delta), rel=1e-12)


def test_directions_that_disagree_at_zero_are_raised_to_the_larger():
    """Theorem P11."""
    first = loss_distribution([0.5, 0.25, 0.25])
    second = loss_distribution([0.5, 0.25, 0.25 + 1e-6])
    for pair in ((first, second), (second, first)):
        remove, add = few_knots(pair)
        step = first.step
        assert remove.total_variation(step) == pytest.approx(add.total_variation(step), rel=1e-14)
        for before, after in zip(pair, sides_through(step, remove, add), strict=True):
            assert np.all(after.curve >= before.curve)
            # Only up to the first loss.
            assert after.curve[1:].tolist() == before.curve[1:].tolist()


def test_a_direction_without_losses_is_raised_too():
    nothing = loss_distribution([1.0])
    something = loss_distribution([1.0 - 1e-6, 1e-6])
    remove, add = few_knots((nothing, something))
    assert remove.total_variation(0.25) == pytest.approx(add.total_variation(0.25), rel=1e-12)
    assert few_knots((nothing, nothing))[0].places.size == 0


def test_more_losses_than_a_profile_has_are_raised_at_the_low_end():
    far = 2 * MOST_POINTS - 10
    own = Knots(np.array([1, far]), np.array([0.1, 1e-3]), 0.0)
    remove, add = sides_through(1e-3, own, own)
    assert remove.masses.size == add.masses.size == 2 * MOST_POINTS
    assert remove.masses.sum() == pytest.approx(1.0, abs=1e-15)
    assert remove.highest == far and remove.lowest == far - 2 * MOST_POINTS + 1


@pytest.mark.parametrize("epsilon", [50.0, 300.0])
def test_losses_beyond_what_exponentials_can_say(epsilon):
    profile = 400 * PrivacyProfile.pure(epsilon)
    assert profile.epsilon(0.0) > LARGEST_LOSS
    remove, add = few_knots(profile._both)
    assert np.isfinite(remove.masses).all() and np.isfinite(add.masses).all()
    again = sides_through(profile._remove.step, remove, add)[0]
    assert again.highest * again.step == profile.epsilon(0.0)


def test_masses_beyond_one_in_all_are_kept():
    """A total above 1 is pessimistic: nothing is taken from it."""
    own = Knots(np.array([1]), np.array([0.9]), 0.2)
    remove, _ = sides_through(1.0, own, own)
    assert remove.masses.sum() + remove.infinity >= 1.1
    assert remove.curve[0] == min(0.2 + 0.9 * -math.expm1(-1.0), 1.0)
