"""Each kind of difference gets its row, by what the claim allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skdptune.testing._judgement import (
    ADDED,
    REPLACED,
    Claim,
    Replays,
    judged,
    judged_sizes,
    noiseless,
)
from skdptune.testing._published import Whole

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
    # Theorem V2.
    found = row(*sides)
    assert (found.result, found.neighbours) == ("differs without noise", neighbours)
    assert f"chance at most {CLAIM.chances[neighbours]:.1g}" in found.message


def test_what_follows_from_the_size_alone_is_told_from_the_rest() -> None:
    assert row([1.0], [2.0], [2.0]).result == "follows from the private size"
    assert row([1.0], [2.0], [2.0], constant=[2.0]).result == "follows from the private size"
    # Quite other records of the same number have another value.
    assert row([1.0], [2.0], [2.0], constant=[5.0]).result == "differs without noise"
    public = replace(CLAIM, size_is_public=True)
    assert row([1.0], [2.0], [2.0], claim=public).result == "follows from the public size"
    assert row([1.0], [2.0], [3.0], claim=public).result == "differs without noise"


def test_noisy_values_may_move_by_as_much_as_is_claimed() -> None:
    # Theorem V1.
    assert row(noisy(0.0), noisy(0.5), noisy(0.2)).result == "covered by noise"
    far = row(noisy(0.0), noisy([5.0, 0.0]), noisy(0.0))
    assert (far.result, far.neighbours) == ("moves too far", ADDED)
    assert 2.0 < far.moved < 5.0 and far.allowed == 1.0 and far.replayed
    assert far.message.endswith("the claim allows 1")
    likely = replace(CLAIM, chances={ADDED: 0.3, REPLACED: 0.5})
    again = row(noisy(0.0), noisy([5.0, 0.0]), noisy(0.0), claim=likely)
    assert "a choice between few values would look so with chance at most 0.3" in again.message
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


def test_values_that_vary_and_are_no_numbers_are_not_compared() -> None:
    def word(noise):
        return Whole(f"{noise[0]}")

    def other(noise):
        return Whole(f"{noise[1]}")

    assert row(word, other, other).result == "not compared"


def test_sizes_are_judged_where_seeds_change_nothing() -> None:
    fixed = replays([1.0], [2.0], [2.0])
    assert noiseless(fixed) == ["value"]
    assert noiseless(replays(noisy(0.0), noisy(0.0), noisy(0.0))) == []
    assert [each.result for each in judged_sizes(fixed, CLAIM, ["value"])] == [
        "follows from the private size"
    ]
    assert judged_sizes(fixed, CLAIM, []) == []
    assert judged_sizes(replays([1.0], [1.0], [1.0]), CLAIM, ["value"]) == []
