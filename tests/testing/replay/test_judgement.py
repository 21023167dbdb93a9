"""Differences are classified, and judged by the claim."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skdptune.accounting import PrivacyProfile
from skdptune.testing._judgement import (
    ADDED,
    REPLACED,
    Claim,
    Replays,
    agreement_chance,
    allowed_shift,
    is_replayed,
    judged,
    judged_sizes,
    least_shift,
    size_power,
)
from skdptune.testing._published import Whole


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 4.0, 10.0])
def test_shift_of_pure_claims_has_a_closed_form(epsilon) -> None:
    # Theorem V1: how far one record may move the mean of anything published.
    found = allowed_shift(PrivacyProfile.pure(epsilon))
    assert found == pytest.approx(2.0 * math.sinh(epsilon / 2.0), rel=1e-3)
    assert found >= 2.0 * math.sinh(epsilon / 2.0) * (1.0 - 1e-12)


@pytest.mark.parametrize("mu", [0.05, 0.27, 0.7])
def test_shift_of_gaussian_claims_has_a_closed_form(mu) -> None:
    # Theorem V1: how far one record may move the mean of anything published.
    found = allowed_shift(PrivacyProfile.gaussian(mu))
    assert found == pytest.approx(math.sqrt(math.expm1(mu**2)), rel=0.02)
    assert found > mu


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_no_statistic_moves_farther(mu) -> None:
    """Theorem V1: the truncated ratio, which moves farthest, moves no farther."""
    points = np.linspace(-12.0, 12.0 + mu, 20001)
    with_record, without = stats.norm.pdf(points - mu), stats.norm.pdf(points)
    with_record, without = with_record / with_record.sum(), without / without.sum()
    profile = PrivacyProfile.gaussian(mu)
    largest = math.exp(profile.epsilon(1e-4))
    kept = np.minimum(with_record, largest * without)
    kept /= kept.sum()
    ratio = kept / without
    allowed = allowed_shift(profile)
    rng = np.random.default_rng(0)
    for statistic in (ratio, points, points**2, points > mu, rng.normal(size=points.size)):
        mean = without @ statistic
        width = math.sqrt(without @ (statistic - mean) ** 2)
        moved = abs(kept @ statistic - mean) / width
        assert moved <= allowed
        if statistic is ratio:
            assert moved == pytest.approx(allowed, rel=0.05)


def test_claims_of_nothing_and_of_everything() -> None:
    assert allowed_shift(PrivacyProfile.pure(0.0)) == 0.0
    assert allowed_shift(PrivacyProfile.approximate(0.0, 1.0)) == math.inf
    rare = allowed_shift(PrivacyProfile.approximate(1.0, 1e-6))
    assert rare == pytest.approx(2.0 * math.sinh(0.5), rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("n_repeats", [2, 5])
def test_chance_of_agreement_covers_the_worst_coupling(epsilon, n_repeats) -> None:
    """Theorem V2: of randomised response, with any dependence between the two sides."""
    truth = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    bound = agreement_chance(PrivacyProfile.pure(epsilon), n_repeats, 1)
    # Probability of (0, 1); of the other three pairs what the two sides then leave.
    for both in np.linspace(0.0, truth, 101):
        pairs = {(0, 1): both, (0, 0): truth - both, (1, 1): truth - both}
        pairs[1, 0] = 1.0 - sum(pairs.values())
        if min(pairs.values()) < 0.0:
            continue
        chance = 0.0
        for outcome in itertools.product(pairs, repeat=n_repeats):
            one, other = ({pair[side] for pair in outcome} for side in (0, 1))
            if len(one) == len(other) == 1 and one != other:
                chance += math.prod(pairs[pair] for pair in outcome)
        assert chance <= bound * (1.0 + 1e-12)
    assert bound == pytest.approx(truth ** (n_repeats - 1))


def test_chance_of_two_steps_is_larger_and_at_most_one() -> None:
    profile = PrivacyProfile.gaussian(0.5)
    assert agreement_chance(profile, 10, 1) < agreement_chance(profile, 10, 2) < 1.0
    assert agreement_chance(PrivacyProfile.approximate(0.0, 1.0), 10, 2) == 1.0


RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shift", [0.3, 1.0, 25.0])
def test_shift_of_replayed_noise_is_bounded_from_below(shift) -> None:
    # Theorem V1: how far one record may move the mean of anything published.
    noise = RNG.normal(size=(40, 5)) * [1.0, 1e-3, 1e5, 1.0, 1.0]
    moves = np.array([3.0, 4.0e-3, 0.0, 0.0, 0.0]) / 5.0 * shift
    found = least_shift(noise, noise + moves)
    assert 0.5 * shift < found <= shift


def test_right_noise_is_never_blamed() -> None:
    # Theorem V1: how far one record may move the mean of anything published.
    # At the limit of what is claimed, with noise that is replayed and noise that is not.
    rng = np.random.default_rng(1)
    excess = [0, 0, 0]
    for _ in range(400):
        one, fresh = rng.normal(size=(2, 12, 3))
        # Among many numbers some direction always looks like one.
        excess[2] += least_shift(*rng.normal(size=(2, 12, 100))) > 1.0
        excess[0] += least_shift(one, one + [1.0, 0.0, 0.0]) > 1.0
        excess[1] += least_shift(one, fresh + [1.0, 0.0, 0.0]) > 1.0
    assert max(excess) <= 2


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0, 5.0])
def test_right_choices_are_blamed_no_more_often_than_stated(epsilon) -> None:
    """One side may choose the second of two candidates much more often.

    Theorem V2 says how often all seeds agree in that, which looks like a shift.
    """
    allowed = 2.0 * np.sinh(epsilon / 2.0)
    rng = np.random.default_rng(5)
    excess = 0
    for _ in range(300):
        largest = np.exp(epsilon) / (1.0 + np.exp(epsilon))
        with_record = largest * rng.uniform()
        without = max(with_record * np.exp(-epsilon), 1.0 - np.exp(epsilon) * (1.0 - with_record))
        same = rng.uniform(size=(20, 1))
        values = rng.normal(size=(20, 1))
        one, other = (values + 100.0 * (same < chance) for chance in (without, with_record))
        excess += least_shift(one, other) > allowed
    chance = agreement_chance(PrivacyProfile.pure(epsilon), 20, 1)
    assert excess <= 1 + 300 * chance


def test_rounding_is_no_shift() -> None:
    rng = np.random.default_rng(4)
    signs = rng.choice([-1.0, 0.0, 1.0], size=(2, 12, 3))
    one, other = 1.0 + signs[0] * 2.0**-52, 1.0 + (signs[1] + 2.0) * 2.0**-52
    assert least_shift(one, other) == 0.0
    tiny = signs * 1e-310
    assert np.isfinite(least_shift(*tiny)) and is_replayed(*tiny) in (True, False)


@pytest.mark.parametrize("power", [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
def test_factors_by_the_number_of_records_are_recognised(power) -> None:
    total = RNG.normal(10.0, 3.0, size=(5, 3))
    one, other = total / 127.0**power, (total + 1.0) / 128.0**power
    assert size_power(one, other, 127) == power


CLAIM = Claim(
    shift=1.0,
    chances={ADDED: 1e-3, REPLACED: 1e-2},
    adds=True,
    replacing=2,
    size_is_public=False,
    compares_sizes=True,
    n_samples=50,
)
NOISE = np.random.default_rng(0).normal(size=(20, 2))


def replays(without, added, replaced, constant=None):
    """Return replays of one value, each side a function of the noise of a seed, or a constant."""

    def side(made):
        leaves = [made(noise) if callable(made) else made for noise in NOISE]
        return [{"value": leaf if isinstance(leaf, Whole) else np.array(leaf)} for leaf in leaves]

    other = None if constant is None else {"value": np.array(constant)}
    return Replays(side(without), side(added), side(replaced), other)


def row(*sides, claim=CLAIM, constant=None):
    (found,) = judged(replays(*sides, constant=constant), claim)
    return found


def noisy(shift, factor=1.0):
    return lambda noise: factor * (noise + shift)


@pytest.mark.parametrize(
    ("sides", "neighbours"),
    [
        (([1.0], [2.0], [3.0]), ADDED),
        (([1.0], [1.0], [3.0]), REPLACED),
        ((Whole("a"), Whole("b"), Whole("c")), ADDED),
        ((Whole("a"), np.ones(1), Whole("c")), ADDED),
    ],
)
def test_values_without_noise_may_not_differ(sides, neighbours) -> None:
    # Theorem V2: how likely values without noise differ between the two sides.
    found = row(*sides)
    assert (found.result, found.neighbours) == ("differs without noise", neighbours)
    assert f"probability at most {CLAIM.chances[neighbours]:.1g}" in found.message


def test_what_follows_from_the_size_alone_is_told_from_the_rest() -> None:
    assert row([1.0], [2.0], [2.0]).result == "follows from the private size"
    assert row([1.0], [2.0], [2.0], constant=[2.0]).result == "follows from the private size"
    # Quite other records of the same number have another value.
    assert row([1.0], [2.0], [2.0], constant=[5.0]).result == "differs without noise"
    public = replace(CLAIM, size_is_public=True)
    assert row([1.0], [2.0], [2.0], claim=public).result == "follows from the public size"
    assert row([1.0], [2.0], [3.0], claim=public).result == "differs without noise"


def test_noisy_values_may_move_by_as_much_as_is_claimed() -> None:
    # Theorem V1: how far one record may move the mean of anything published.
    assert row(noisy(0.0), noisy(0.5), noisy(0.2)).result == "covered by noise"
    far = row(noisy(0.0), noisy([5.0, 0.0]), noisy(0.0))
    assert (far.result, far.neighbours) == ("moves too far", ADDED)
    assert 2.0 < far.moved < 5.0 and far.allowed == 1.0 and far.replayed
    assert far.message.endswith("the claim allows 1")
    likely = replace(CLAIM, chances={ADDED: 0.3, REPLACED: 0.5})
    again = row(noisy(0.0), noisy([5.0, 0.0]), noisy(0.0), claim=likely)
    assert (
        "a choice between few values would look like this with probability at most 0.3"
        in again.message
    )
    # Replacing is two steps.
    both = row(noisy(0.0), noisy([3.0, 0.0]), noisy([0.0, 0.0]), claim=replace(CLAIM, shift=2.9))
    assert both.result == "covered by noise" and both.allowed in (2.9, 5.8)
    alone = replace(CLAIM, compares_sizes=False)
    assert row(noisy(0.0), noisy(50.0), noisy(50.0), claim=alone).result == "identical"


def test_noise_that_is_scaled_by_the_size_is_found() -> None:
    sides = noisy(1.0), noisy(1.0, 50.0 / 51.0), noisy(1.0, 50.0 / 51.0)
    found = row(*sides)
    assert found.result == "follows from the private size"
    assert "n ** -1" in found.message
    public = replace(CLAIM, size_is_public=True, compares_sizes=False)
    assert row(*sides, claim=public).result == "identical"
    (again,) = judged_sizes(replays(*sides), CLAIM, ())
    assert again.result == "follows from the private size"
