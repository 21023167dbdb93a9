"""What an adaptive search costs: closed forms, and all courses of small searches."""

from __future__ import annotations

import copy
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from skdptune.accounting import PrivacyProfile, search_on_split, with_failure
from skdptune.model_selection import AdaptiveTrials, DPAdaptiveSearchCV
from skdptune.model_selection._adaptive._allowance import RUNGS, WHOLE, Allowance
from skdptune.model_selection._cost import CostModel
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

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("rungs", [WHOLE, RUNGS])
    def test_records_that_train_pay_for_all_fits(self, seed: int, rungs: Any) -> None:
        mu, failure, n = 0.8, 0.01, 2
        choose = no_scores(policy(seed))
        found = Search(Allowance(n, rungs), choose, (mu, 1.0, failure), most=6)
        claim = _within(n * mu**2, n * failure)
        for epsilon, mirrored in itertools.product(EPSILONS, (False, True)):
            exact = found.delta(epsilon, np.array([1.0, 0.0, 0.0, 0.0]), mirrored=mirrored)
            assert exact <= claim.delta(epsilon) * (1.0 + 1e-9)

    @pytest.mark.parametrize("seed", range(3))
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

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("rungs", [WHOLE, RUNGS])
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

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("rungs", [WHOLE, RUNGS])
    def test_with_folds_a_record_trains_and_scores(self, seed: int, rungs: Any) -> None:
        mu, nu, failure, n = 0.7, 0.9, 0.01, 2
        shifts = (mu, nu, failure)
        found = Search(Allowance(n, rungs), policy(seed, kills=True), shifts, has_folds=True)
        claim = _within(n * (mu**2 + nu**2), n * failure)
        for epsilon, mirrored in itertools.product(EPSILONS, (False, True)):
            exact = found.delta(epsilon, np.full(4, 0.25), mirrored=mirrored)
            assert exact <= claim.delta(epsilon) * (1.0 + 1e-9)
            assert exact > 0.0 or epsilon > 2.0

    def test_a_second_split_is_not_in_the_price_of_one(self) -> None:
        """Whoever is killed and splits anew has a record that trains and scores."""
        nu = mu = 3.0

        def choose(history: Any, rung: int) -> tuple[Any, Any, bool, bool]:
            return (1.5,), (1.5,), True, history == ((1, 0),)

        one_split = _within(2 * mu**2, 0.0)
        found = Search(Allowance(2, WHOLE), choose, (mu, nu, 0.0))
        assert found.delta(1.0, np.array([1.0, 0, 0, 0]), mirrored=False) <= one_split.delta(1.0)

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


@pytest.mark.parametrize("cv", [0.2, 3])
@pytest.mark.parametrize("storage", [None, "unused"])
@pytest.mark.parametrize("pruner", [None, "halving"])
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


def test_public_scores_are_free() -> None:
    search = DPAdaptiveSearchCV(
        Scripted(),
        {"quality": [0.1, 0.9]},
        epsilon=1.0,
        delta=1e-5,
        n_trials=4,
        strategy=AdaptiveTrials(pruner="halving"),
    )
    cost = search._make_plan(5000, 3, is_public=True).cost
    curve = cost.run_setting.curve
    fits = _within(4 * curve.shift**2, 4 * curve.failure)
    assert cost.score_noise.kind == "none"
    assert cost.total.epsilon(1e-5) == pytest.approx((fits + cost.final).epsilon(1e-5), rel=1e-4)


def test_rungs_share_the_curve() -> None:
    model, cost = planned(pruner="halving")
    whole = cost.run_setting.curve
    rungs = model.solved
    parts = [rungs.setting(model, cost.run_setting, share).curve for share in rungs.shares]
    assert sum(one.shift**2 for one in parts) == pytest.approx(whole.shift**2)
    assert sum(one.failure for one in parts) == pytest.approx(whole.failure)
    assert [one.shift**2 / parts[0].shift ** 2 for one in parts] == pytest.approx([1, 3, 9])


@pytest.mark.parametrize("more", [{"epsilon": None}, {"delta": 0.0}])
def test_a_pruner_needs_a_total(more: Any) -> None:
    with pytest.raises(ValueError, match="pruner must be None without an epsilon and a delta"):
        planned(pruner="halving", **more)


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
