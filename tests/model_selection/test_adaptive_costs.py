"""What an adaptive search may spend: all courses of small ones, its allowance and its races."""

from __future__ import annotations

import copy
import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skdptune.accounting import BudgetExceededError, PrivacyProfile, search_on_split, with_failure
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPAdaptiveSearchCV
from skdptune.model_selection._adaptive import (
    MOST_TIMES,
    RUNGS,
    STARTS,
    WHOLE,
    Allowance,
    Bracket,
    Race,
    Races,
    largest_bracket,
)
from skdptune.model_selection._cost import CostModel, FitSize
from skdptune.model_selection._strategies._adaptive_session import with_share
from skdptune.model_selection._strategies._adaptive_trials import _within
from tests.flat import flat
from tests.model_selection.learners import Scripted

EPSILONS = (0.0, 0.2, 0.5, 1.0, 2.0, 3.0)
Cells = list[tuple[float, float]]


@functools.cache
def shown(shift: float, failure: float, edges: tuple[float, ...]) -> Cells:
    """Return the masses of a Gaussian release that shows a cell alone, and may tell all."""
    ends = np.array([-np.inf, *edges, np.inf])
    pair = [np.diff(stats.norm.cdf(ends, loc=mean)) * (1.0 - failure) for mean in (shift, 0.0)]
    cells = list(zip(*(side.tolist() for side in pair), strict=True))
    return [*cells, (failure, 0.0), (0.0, failure)] if failure > 0.0 else cells


class Search:
    """All courses of an adaptive search, with their masses on both data sets.

    A course is a list of what fits and scores have shown. `choose(history)` returns the edges of
    the next fit's cells and of its score's, whether a trial ends after it, and whether the process
    is killed before it. The record is in training or in validation, drawn anew by each process;
    with two folds it is in one fit and in one score of each trial.
    The search ends after so many fits, which only lowers its cost.
    """

    def __init__(
        self,
        allowance: Allowance,
        choose: Callable[..., Any],
        shifts: tuple[float, float, float],
        most: int = 3,
        has_folds: bool = False,
    ) -> None:
        self.has_folds = has_folds
        self.choose, self.shifts, self.most = choose, shifts, most
        self.ends: list[tuple[Any, float]] = []
        # In training or not, in the first process and after a kill.
        self.places = list(itertools.product((True, False), repeat=2))
        self._go(allowance, 0, 0, (), np.ones(4), 1.0)

    def _go(
        self, allowance: Allowance, rung: int, kills: int, history: Any, p: Any, q: float
    ) -> None:
        if rung == 0:
            if allowance.n_left < 1 or len(history) >= self.most:
                self.ends.append((p, q))
                return
            allowance = copy.copy(allowance)
            allowance.ask()
        fit_edges, score_edges, ends, is_killed = self.choose(history, rung)
        after, share = copy.copy(allowance), allowance.rungs[rung]
        after.begin(rung)
        if is_killed and kills == 0:
            # What was begun is spent, and shows nothing.
            after.close(rung + 1)
            self._go(after, 0, 1, (*history, "killed"), p, q)
            return
        mu, nu, failure = self.shifts
        root = math.sqrt(share)
        fit = shown(mu * root, failure * float(share), fit_edges)
        score = shown(nu * root, 0.0, score_edges)
        trains = np.array([place[kills] for place in self.places])
        is_end = ends or rung == len(after.rungs) - 1
        if is_end:
            after.close(rung + 1)
        for (i, (a, b)), (j, (c, d)) in itertools.product(enumerate(fit), enumerate(score)):
            masses = p * (a * c if self.has_folds else np.where(trains, a * d, b * c))
            there = 0 if is_end else rung + 1
            if masses.sum() > 0.0 and q * b * d > 0.0:
                self._go(after, there, kills, (*history, (i, j)), masses, q * b * d)
            elif masses.sum() + q * b * d > 0.0:
                # All is told: what follows changes nothing.
                self.ends.append((masses, q * b * d))

    def delta(self, epsilon: float, weights: Any, *, mirrored: bool) -> float:
        """Return the hockey-stick divergence, given the chances of the four places."""
        p = np.array([masses @ weights for masses, _ in self.ends])
        q = np.array([mass for _, mass in self.ends])
        assert math.fsum(p) == pytest.approx(1.0) and math.fsum(q) == pytest.approx(1.0)
        one, other = (q, p) if mirrored else (p, q)
        return math.fsum(np.maximum(one - math.exp(epsilon) * other, 0.0))


def policy(seed: int, *, kills: bool = False, prunes: bool = True) -> Callable[..., Any]:
    """Return choices at random that follow from what was shown."""

    def choose(history: Any, rung: int) -> tuple[Any, Any, bool, bool]:
        words = str((seed, rung, history)).encode()
        rng = np.random.default_rng(list(words))
        edges = (float(rng.normal(0.5)),), (float(rng.normal(0.3)),)
        ends = prunes and bool(rng.random() < 0.5)
        return *edges, ends, kills and bool(rng.random() < 0.3)

    return choose


def no_scores(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same choices, of a search whose scores show nothing."""

    def changed(history: Any, rung: int) -> tuple[Any, Any, bool, bool]:
        fit, _, ends, is_killed = choose(history, rung)
        return fit, (), ends, is_killed

    return changed


def test_more_than_any_curve_costs_everything() -> None:
    # Theorem G4: where a Gaussian curve has no digits, nothing is claimed.
    assert math.isinf(_within(1e4, 0.0).epsilon(1e-5))
    assert _within(25.0, 0.0).epsilon(1e-5) < math.inf


class TestEnumeratedSearches:
    """Theorem G6."""

    @pytest.mark.parametrize("seed", range(2))
    @pytest.mark.parametrize("rungs", [WHOLE, RUNGS])
    def test_records_that_train_pay_for_all_fits(self, seed: int, rungs: Any) -> None:
        mu, failure, n = 0.8, 0.01, 2
        choose = no_scores(policy(seed))
        found = Search(Allowance(n, rungs), choose, (mu, 1.0, failure), most=6)
        claim = _within(n * mu**2, n * failure)
        for epsilon, mirrored in itertools.product(EPSILONS, (False, True)):
            exact = found.delta(epsilon, np.array([1.0, 0.0, 0.0, 0.0]), mirrored=mirrored)
            assert exact <= claim.delta(epsilon) * (1.0 + 1e-9)

    @pytest.mark.parametrize("seed", range(2))
    def test_one_split_is_a_mixture(self, seed: int) -> None:
        mu, nu, failure, n, share = 0.7, 0.9, 0.01, 2, 0.3
        found = Search(Allowance(n, RUNGS), policy(seed), (mu, nu, failure))
        claim = search_on_split(
            _within(n * mu**2, n * failure),
            _within(n * nu**2, 0.0),
            None,
            validation_fraction=share,
        )
        weights = np.array([1.0 - share, 0.0, 0.0, share])
        for epsilon, mirrored in itertools.product(EPSILONS, (False, True)):
            exact = found.delta(epsilon, weights, mirrored=mirrored)
            assert exact <= claim.delta(epsilon) * (1.0 + 1e-9)

    @pytest.mark.parametrize(("seed", "rungs"), [(0, WHOLE), (1, RUNGS), (2, RUNGS)])
    def test_killed_searches_split_anew_and_pay_for_both(self, seed: int, rungs: Any) -> None:
        mu, nu, failure, n, share = 0.7, 0.9, 0.01, 2, 0.3
        found = Search(Allowance(n, rungs), policy(seed, kills=True), (mu, nu, failure))
        claim = _within(n * (mu**2 + nu**2), n * failure)
        for weights in (
            np.outer([1.0 - share, share], [1.0 - share, share]).ravel(),
            *np.eye(4),
        ):
            for epsilon, mirrored in itertools.product(EPSILONS, (False, True)):
                exact = found.delta(epsilon, weights, mirrored=mirrored)
                assert exact <= claim.delta(epsilon) * (1.0 + 1e-9)

    @pytest.mark.parametrize(("seed", "rungs"), [(0, WHOLE), (1, RUNGS)])
    def test_with_folds_a_record_trains_and_scores(self, seed: int, rungs: Any) -> None:
        mu, nu, failure, n = 0.7, 0.9, 0.01, 2
        shifts = (mu, nu, failure)
        found = Search(Allowance(n, rungs), policy(seed, kills=True), shifts, has_folds=True)
        claim = _within(n * (mu**2 + nu**2), n * failure)
        for epsilon, mirrored in itertools.product(EPSILONS, (False, True)):
            exact = found.delta(epsilon, np.full(4, 0.25), mirrored=mirrored)
            assert exact <= claim.delta(epsilon) * (1.0 + 1e-9)
            assert exact > 0.0 or epsilon > 2.0

    @pytest.mark.parametrize("rungs", [WHOLE, RUNGS])
    def test_a_larger_allowance_breaks_the_bound(self, rungs: Any) -> None:
        mu = 1.0
        always = no_scores(lambda history, rung: ((0.5,), (), False, False))
        found = Search(Allowance(3, rungs), always, (mu, 1.0, 0.0), most=9)
        exact = found.delta(0.5, np.array([1.0, 0.0, 0.0, 0.0]), mirrored=False)
        assert exact > _within(mu**2, 0.0).delta(0.5)
        assert exact <= _within(3 * mu**2, 0.0).delta(0.5)


def planned(**more: Any) -> tuple[CostModel, Any]:
    search = flat(
        DPAdaptiveSearchCV,
        Scripted(epsilon=1.0, delta=1e-6),
        {"quality": (0.1, 0.9)},
        **{"epsilon": 1.0, "delta": 1e-5, "n_trials": 7, **more},
    )
    plan = search._make_plan(5000, 3)
    return plan.model, plan.cost


@pytest.mark.parametrize(
    ("cv", "storage", "pruner"),
    [(0.2, None, None), (0.2, None, "halving"), (0.2, "unused", "halving"), (3, "unused", None)]
    + [pytest.param(3, None, "halving", marks=pytest.mark.slow)],
)
def test_total_by_hand(cv: Any, storage: Any, pruner: Any) -> None:
    # Theorem G6.
    model, cost = planned(cv=cv, storage=storage, pruner=pruner)
    nu, n_fits = 1.0 / cost.score_noise.ratio, 7 * (1 if cv == 0.2 else 2)
    score = PrivacyProfile.gaussian(nu)
    if pruner is None:
        fits = cost.fit * n_fits
        both = fits + score * 7
    else:
        curve = cost.run_setting.curve
        assert cost.fit.epsilon(1e-6) == pytest.approx(curve.profile.epsilon(1e-6))
        fits = with_failure(
            PrivacyProfile.gaussian(curve.shift * math.sqrt(n_fits)), n_fits * curve.failure
        )
        shift = math.hypot(curve.shift * math.sqrt(n_fits), nu * math.sqrt(7))
        both = with_failure(PrivacyProfile.gaussian(shift), n_fits * curve.failure)
    if cv == 0.2 and storage is None:
        total = search_on_split(fits, score * 7, cost.final, validation_fraction=0.2)
    else:
        total = both + cost.final
    for delta in (1e-4, 1e-5):
        assert cost.total.epsilon(delta) == pytest.approx(total.epsilon(delta), rel=2e-4)
    assert 0.99 < cost.total.epsilon(1e-5) <= 1.0
    assert sum(model.solved.shares) == 1


def test_rungs_share_the_curve() -> None:
    model, cost = planned(pruner="halving")
    whole = cost.run_setting.curve
    rungs = model.solved
    parts = [rungs.setting(model, cost.run_setting, share).curve for share in rungs.shares]
    assert sum(one.shift**2 for one in parts) == pytest.approx(whole.shift**2)
    assert sum(one.failure for one in parts) == pytest.approx(whole.failure)
    assert [one.shift**2 / parts[0].shift ** 2 for one in parts] == pytest.approx([1, 3, 9])


def test_splits_of_no_record_are_paid_for_each() -> None:
    # Theorem F7.
    def chance(**more: Any) -> float:
        search = flat(
            DPAdaptiveSearchCV,
            Scripted(epsilon=1.0, delta=1e-6),
            {"quality": [0.5]},
            n_trials=5,
            cv=0.5,
            **more,
        )
        return float(search._make_plan(12, 3).cost.total.delta(40.0))

    once = 0.5**11
    assert chance() == pytest.approx(once, rel=0.05)
    assert chance(storage="unused") == pytest.approx(6 * once, rel=0.05)


# The allowance -----------------------------------------------------------------------------------


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


def test_what_was_begun_before_counts() -> None:
    allowance = Allowance(2, RUNGS)
    allowance.count(RUNGS[1:])
    allowance.count(RUNGS)
    assert (allowance.n_left, allowance.n_asked) == (0, 2)
    allowance.begin(0)
    with pytest.raises(BudgetExceededError, match="fits must be paid for"):
        allowance.begin(0)


# Races -------------------------------------------------------------------------------------------


@dataclass
class Runner:
    """A trial, in so far as a race needs it."""

    number: int
    scores: tuple[float, ...] = ()
    _is_own: bool = False


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


# Fits of a rung ----------------------------------------------------------------------------------


NINTH, SIZE = Fraction(1, 9), FitSize(1000, 1000, 3, False)


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [(18, 2), (4.5, 0.5), (3, 1), ("max", "max"), (None, None)],
)
def test_epochs_of_a_regression(epochs: Any, expected: Any) -> None:
    model = DPLogisticRegression(solver="sgd", epochs=epochs)
    found = with_share(model, {"learning_rate": 0.1}, NINTH, SIZE)
    assert found.get("epochs", epochs) == expected
    assert found["learning_rate"] == 0.1
