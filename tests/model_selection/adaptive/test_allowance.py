"""Shares of fits are admitted up to what is paid for, and no further."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.accounting import BudgetExceededError
from skdptune.model_selection._adaptive._allowance import MOST_TIMES, RUNGS, WHOLE, Allowance


def test_a_climb_is_one_trial() -> None:
    assert RUNGS == (Fraction(1, 13), Fraction(3, 13), Fraction(9, 13))
    assert Allowance(3, RUNGS).climb == Allowance(3, WHOLE).climb == 1


def test_without_rungs_each_trial_takes_one() -> None:
    allowance = Allowance(3, WHOLE)
    for left in (2, 1, 0):
        allowance.ask()
        assert allowance.n_left == left
        allowance.begin(0)
        allowance.close(1)
        assert allowance.n_left == left
    with pytest.raises(BudgetExceededError, match="got a call after 3 trials. Give more n_trials"):
        allowance.ask()
    assert allowance.spent == 3


@given(n_trials=st.integers(1, 5), climbs=st.lists(st.integers(1, 3), max_size=60))
def test_shares_never_sum_to_more_than_is_paid(n_trials: int, climbs: list[int]) -> None:
    # Theorem G6.
    allowance, made = Allowance(n_trials, RUNGS), Fraction(0)
    for number, climb in enumerate(climbs):
        if allowance.n_left < 1:
            with pytest.raises(BudgetExceededError):
                allowance.ask()
            break
        allowance.ask()
        for place in range(climb):
            allowance.begin(place)
            made += RUNGS[place]
        allowance.close(climb)
        assert made == allowance.spent <= n_trials
        assert allowance.reserved == 0
        # Those that all climb to the end are always paid for.
        assert number + 1 + allowance.n_left >= min(n_trials, number + 1)
    assert allowance.n_asked <= MOST_TIMES * n_trials


def test_what_is_asked_is_set_aside() -> None:
    allowance = Allowance(2, RUNGS)
    allowance.ask()
    allowance.ask()
    assert allowance.n_left == 0
    allowance.begin(0)
    allowance.close(1)
    # A whole climb is not left as long as the other may climb.
    assert allowance.n_left == 0
    allowance.begin(0)
    allowance.close(1)
    assert allowance.n_left == 1


def test_what_was_begun_before_counts() -> None:
    allowance = Allowance(2, RUNGS)
    allowance.count(RUNGS[1:])
    allowance.count(RUNGS)
    assert (allowance.n_left, allowance.n_asked) == (0, 2)
    allowance.begin(0)
    with pytest.raises(BudgetExceededError, match="fits must be paid for"):
        allowance.begin(0)
