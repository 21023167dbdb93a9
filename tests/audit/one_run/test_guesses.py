"""Guesses of which canaries were included."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.audit._one_run_bounds import Guesses, guessed, numbers_of_guesses


def test_the_highest_scores_are_guessed_to_be_in_and_the_lowest_not():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    is_in = np.array([True, False, True, True, False, True])
    found = guessed(scores, is_in, [(2, 2), (3, 3), (6, 0), (0, 1), (1, 0)])
    assert [each.n_right for each in found] == [2, 3, 4, 0, 1]
    assert [each.n_guesses for each in found] == [4, 6, 6, 1, 1]
    assert [each.share_of_slots for each in found] == [1.0, 1.0, 0.5, 0.5, 0.5]
    shuffled = np.array([3, 1, 5, 0, 2, 4])
    assert guessed(scores[shuffled], is_in[shuffled], [(2, 2)]) == found[:1]


def test_equal_scores_stay_in_their_order():
    is_in = np.array([True, True, False, False])
    assert guessed(np.zeros(4), is_in, [(2, 2)]) == [Guesses(2, 2, 4)]
    assert guessed(np.full(4, np.nan), ~is_in, [(2, 2)]) == [Guesses(2, 2, 0)]


def test_what_is_tried_follows_from_the_number_of_canaries():
    # Theorem A6.
    sizes = [468, 375, 250, 125, 62, 31]
    assert numbers_of_guesses(1000) == [(size, size) for size in sizes]
    assert numbers_of_guesses(30) == [(11, 11), (9, 9), (7, 7)]
    assert numbers_of_guesses(4) == [(2, 2)]
    for size in range(2, 60):
        assert all(0 < 2 * n_in <= size for n_in, _ in numbers_of_guesses(size))
    assert numbers_of_guesses(10, 5) == [(3, 2)]
    assert numbers_of_guesses(10, (4, 0)) == [(4, 0)]


@pytest.mark.parametrize("given", [0, 11, (0, 0), (6, 5), (1, 2, 3), (-1, 2), 2.5, "all"])
def test_impossible_numbers_are_refused(given):
    with pytest.raises((ValueError, TypeError), match="n_guesses"):
        numbers_of_guesses(10, given)
