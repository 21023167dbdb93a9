"""Shifts, noise and factors are found for what they are."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.testing._judgement import (
    agreement_chance,
    difference,
    is_replayed,
    least_shift,
    size_power,
    tables,
)
from skdptune.testing._published import Whole

RNG = np.random.default_rng(0)


def leaves(table):
    return list(np.asarray(table, dtype=float))


def test_equal_values_are_identical_whatever_the_seed() -> None:
    noise = leaves(RNG.normal(size=(8, 3)))
    found = difference(noise, [each.copy() for each in noise])
    assert found.is_identical and found.replayed is None
    words = [Whole("a"), Whole("b")]
    assert difference(words, [Whole("a"), Whole("b")]).is_identical


def test_numbers_without_noise_are_told_from_noisy_ones() -> None:
    noise = RNG.normal(size=(8, 2))
    one = leaves(np.column_stack([np.full(8, 3.0), noise, np.full(8, 1.0)]))
    other = leaves(np.column_stack([np.full(8, 4.0), noise + 0.1, np.full(8, 1.0)]))
    found = difference(one, other)
    assert found.free.tolist() == [True, False, False, False]
    assert found.noisy.tolist() == [False, True, True, False]
    assert found.replayed is True


def test_values_that_are_no_numbers_are_compared_as_a_whole() -> None:
    assert difference([Whole("a")] * 4, [Whole("b")] * 4).free.all()
    mixed = difference([Whole("a"), Whole("b")], [Whole("b"), Whole("b")])
    assert not mixed.is_comparable and not mixed.free.any()
    assert difference([Whole("a")] * 4, [np.ones(1)] * 4).free.all()


def test_tables_are_as_wide_as_all_have_numbers() -> None:
    one, other = tables([np.ones(3), np.ones(2)], [np.array([np.nan, np.inf, 0.0])] * 2)
    assert one.shape == other.shape == (2, 2)
    assert np.isfinite(other).all() and other[0, 0] == 0.0


@pytest.mark.parametrize("shift", [0.3, 1.0, 25.0])
def test_shift_of_replayed_noise_is_bounded_from_below(shift) -> None:
    # Theorem V1.
    noise = RNG.normal(size=(40, 5)) * [1.0, 1e-3, 1e5, 1.0, 1.0]
    moves = np.array([3.0, 4.0e-3, 0.0, 0.0, 0.0]) / 5.0 * shift
    found = least_shift(noise, noise + moves)
    assert 0.5 * shift < found <= shift


def test_shift_under_fresh_noise_is_seen_only_if_it_is_large() -> None:
    one, other = RNG.normal(size=(2, 20, 4))
    assert is_replayed(one, other) is False
    assert least_shift(one, other) < 0.3
    assert 5.0 < least_shift(one, other + 30.0) < 60.0


def test_right_noise_is_never_blamed() -> None:
    # Theorem V1.
    # At the limit of what is claimed, with noise that is replayed and noise that is not.
    rng = np.random.default_rng(1)
    excess = [0, 0]
    for _ in range(400):
        one, fresh = rng.normal(size=(2, 12, 3))
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


def test_a_sum_that_no_seed_changes_is_far_away() -> None:
    counts = RNG.integers(0, 100, size=10).astype(float)
    one = np.column_stack([counts, 100.0 - counts])
    assert least_shift(one, one + 0.5) > 1e9
    assert least_shift(one, one) == 0.0


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


@pytest.mark.parametrize(
    "change", [lambda x: x + 1.0, lambda x: 1.01 * x, np.exp, np.sort, lambda x: -x]
)
def test_other_changes_are_no_such_factors(change) -> None:
    total = np.random.default_rng(2).normal(size=(5, 3))
    assert size_power(total, change(total), 127) is None
    assert size_power(total[:, :0], total[:, :0], 127) is None
