"""Races are paid for before they begin, and go on by nothing but noisy scores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdptune.accounting import BudgetExceededError
from skdptune.model_selection._adaptive._allowance import RUNGS, Allowance
from skdptune.model_selection._adaptive._races import (
    STARTS,
    Bracket,
    Race,
    Races,
    largest_bracket,
    n_going_on,
)


@dataclass
class Runner:
    """A trial, in so far as a race needs it."""

    number: int
    scores: tuple[float, ...] = ()
    _is_own: bool = False


def test_a_bracket_costs_the_sum_of_its_shares() -> None:
    assert Bracket(0, (9, 3, 1)).cost(RUNGS) == Fraction(27, 13)
    assert Bracket(1, (5, 1)).cost(RUNGS) == Fraction(24, 13)
    assert Bracket(2, (3,)).cost(RUNGS) == Fraction(27, 13)


@given(count=st.integers(1, 200), has_own=st.booleans())
def test_some_go_on_and_never_more_than_there_are(count: int, has_own: bool) -> None:
    going = n_going_on(count, has_own=has_own)
    assert 1 <= going <= count
    assert going == count // 3 or going <= 2


@given(
    left=st.fractions(0, 12, max_denominator=13),
    start=st.integers(0, 2),
    most=st.integers(1, 40),
    has_own=st.booleans(),
)
def test_the_largest_bracket_is_affordable_and_no_larger_one_is(
    left: Fraction, start: int, most: int, has_own: bool
) -> None:
    found = largest_bracket(left, start, most, RUNGS, has_own=has_own)
    count = 0 if found is None else found.counts[0]
    if found is not None:
        assert found.cost(RUNGS) <= left
    if count < most:
        larger = largest_bracket(Fraction(10**6), start, count + 1, RUNGS, has_own=has_own)
        assert larger is not None and larger.cost(RUNGS) > left


@pytest.mark.parametrize("kind", STARTS)
@given(
    n_trials=st.integers(1, 7),
    scores=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40),
    has_own=st.booleans(),
    abandoned=st.sets(st.integers(0, 30), max_size=5),
    asked_at_once=st.integers(1, 12),
)
def test_races_never_spend_more_than_is_paid(
    kind: str,
    n_trials: int,
    scores: list[float],
    has_own: bool,
    abandoned: set[int],
    asked_at_once: int,
) -> None:
    # Theorem G6: some trials are never told, and the rest are told in any order.
    allowance = Allowance(n_trials, RUNGS)
    races, spent, number = Races(kind, allowance, has_own=has_own), Fraction(0), 0

    def arrive(race: Race, trial: Runner, place: int) -> None:
        nonlocal spent
        races.begin(race, place)
        spent += RUNGS[place]
        trial.scores += (scores[(trial.number + place) % len(scores)],)
        race.arrive(trial, None)

    def go_on(race: Race) -> None:
        while race.is_complete:
            place = race.place
            going, ending = race.divide(len(RUNGS))
            own = [trial for trial in going if trial._is_own]
            if place < 2:
                assert own or not any(trial._is_own for trial, _ in ending)
            worst = min((t.scores[-1] for t in going if not t._is_own), default=1.0)
            assert all(trial.scores[-1] <= worst for trial, _ in ending) or place == 2
            for trial in going:
                arrive(race, trial, place + 1)
            if not going:
                races.end(race)

    while races.n_left > 0:
        left, entered = races.n_left, []
        for _ in range(min(asked_at_once, left)):
            entered.append((races.enter(), Runner(number, (), has_own and number == 0)))
            number += 1
        for race, trial in reversed(entered):
            if trial.number not in abandoned:
                arrive(race, trial, race.bracket.start)
            go_on(race)
        assert races.n_left < left or left > asked_at_once
        assert spent == allowance.spent <= n_trials
        assert allowance.spent + allowance.reserved <= n_trials
    for race in races.closed():
        go_on(race)
    assert allowance.reserved == 0
    assert spent == allowance.spent <= n_trials
    if not abandoned and kind == "halving":
        # Less than one trial's budget is left.
        assert n_trials - spent < 1
    if races.n_left == 0:
        with pytest.raises(BudgetExceededError, match="got a call after"):
            races.enter()


def test_ties_are_broken_by_numbers() -> None:
    # Theorem F4: by nothing that depends on the data.
    race = Race(Bracket(0, (3, 1, 1)))
    runners = [Runner(number, (0.5,)) for number in (2, 0, 1)]
    for runner in runners:
        race.arrive(runner, "result")
    going, ending = race.divide(3)
    assert [runner.number for runner in going] == [0]
    assert [(runner.number, result) for runner, result in ending] == [(1, "result"), (2, "result")]


def test_own_values_go_on_whatever_their_score() -> None:
    race = Race(Bracket(0, (6, 2, 2)))
    runners: list[Any] = [Runner(n, (0.1 * n,), n == 0) for n in range(6)]
    for runner in runners:
        race.arrive(runner, None)
    going, _ = race.divide(3)
    assert [runner.number for runner in going] == [0, 5]
