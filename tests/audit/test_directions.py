"""Directions learnt from some fits, judged on others."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.audit._games import Direction, learnt_direction


def separation(direction: Direction, together: np.ndarray, without: np.ndarray) -> float:
    sides = direction.of(together), direction.of(without)
    return float((sides[0].mean() - sides[1].mean()) / sides[1].std())


def rows(shift: np.ndarray, size: int, seed: int, mixing: np.ndarray | None = None) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=(size, shift.size))
    return shift + (noise if mixing is None else noise @ mixing)


def judged(
    shift: np.ndarray, mixing: np.ndarray | None = None, n_first: int | None = None
) -> float:
    zero = np.zeros(shift.size)
    found = learnt_direction(rows(shift, 200, 0, mixing), rows(zero, 200, 1, mixing), n_first)
    return separation(found, rows(shift, 1000, 2, mixing), rows(zero, 1000, 3, mixing))


@pytest.mark.parametrize("place", [0, 7])
def test_one_number_among_many_is_found(place: int) -> None:
    assert judged(2.0 * (np.arange(100) == place)) > 1.6


def test_small_shifts_of_many_numbers_add_up() -> None:
    assert judged(np.full(64, 0.25)) > 1.4


def test_common_noise_is_subtracted() -> None:
    # Alone, the second number tells nothing; with it the noise of the first is known.
    mixing = np.array([[1.0, 1.0], [0.1, 0.0]])
    assert judged(np.array([1.0, 0.0]), mixing) > 8.0


def test_first_numbers_may_be_looked_at_alone() -> None:
    shift = 1.0 * (np.arange(400) == 0)
    assert judged(shift, n_first=1) > 0.9


def test_what_has_no_noise_outweighs_all_else() -> None:
    sides = [
        np.column_stack([np.full(40, value), rows(np.zeros(3), 40, 0)]) for value in (1.0, 2.0)
    ]
    direction = learnt_direction(*sides)
    assert direction.of(sides[0]).min() > direction.of(sides[1]).max() or (
        direction.of(sides[0]).max() < direction.of(sides[1]).min()
    )


def test_missing_and_infinite_numbers_count_as_the_middle_and_as_far() -> None:
    sides = [rows(np.full(3, mean), 50, seed) for mean, seed in ((1.0, 0), (0.0, 1))]
    sides[0][0] = [np.nan, np.inf, 0.0]
    assert np.isfinite(learnt_direction(*sides).of(sides[0])).all()


def test_equal_constants_weigh_nothing() -> None:
    direction = learnt_direction(np.ones((10, 2)), np.ones((10, 2)))
    assert direction.of(np.ones((1, 2))).tolist() == [0.0]


def either_way(size: int, seed: int, jump: float) -> np.ndarray:
    """Return rows whose fourth number jumps up or down, beside three of noise."""
    noise = rows(np.zeros(4), size, seed)
    noise[:, 3] = 0.5 + 0.001 * noise[:, 3]
    noise[:, 3] += jump * np.random.default_rng(seed).choice([-1.0, 1.0], size)
    return noise


@pytest.mark.parametrize("is_swapped", [False, True])
def test_what_moves_a_number_either_way_is_found(is_swapped: bool) -> None:
    # The means are the same.
    sides, others = (
        [either_way(100, seed, 0.01), either_way(100, seed + 1, 0.0)][:: -1 if is_swapped else 1]
        for seed in (0, 2)
    )
    found = learnt_direction(*sides)
    assert np.quantile(found.of(others[0]), 0.05) > np.quantile(found.of(others[1]), 0.95)


def test_a_constant_that_one_record_moves_either_way_is_found() -> None:
    jumps = np.random.default_rng(0).choice([0.4, 0.6], 60)
    sides = jumps[:, None], np.full((60, 1), 0.5)
    found = learnt_direction(*sides)
    assert found.of(sides[0]).min() > found.of(sides[1]).max()
