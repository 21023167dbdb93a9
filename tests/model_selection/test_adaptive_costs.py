"""What an adaptive search may spend: all courses of small ones, and its total by hand."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from skdptune.accounting import PrivacyProfile, search_on_split, with_failure
from skdptune.model_selection import DPAdaptiveSearchCV
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
    the next fit's cells and of its score's, and whether the process is killed before it. The
    record is in training or in validation, drawn anew by each process; with two folds it is in one
    fit and in one score of each trial. The search makes so many trials.
    """

    def __init__(
        self,
        n_trials: int,
        choose: Callable[..., Any],
        shifts: tuple[float, float, float],
        has_folds: bool = False,
    ) -> None:
        self.has_folds = has_folds
        self.choose, self.shifts = choose, shifts
        self.ends: list[tuple[Any, float]] = []
        # In training or not, in the first process and after a kill.
        self.places = list(itertools.product((True, False), repeat=2))
        self._go(n_trials, 0, (), np.ones(4), 1.0)

    def _go(self, n_left: int, kills: int, history: Any, p: Any, q: float) -> None:
        if n_left == 0:
            self.ends.append((p, q))
            return
        fit_edges, score_edges, is_killed = self.choose(history)
        if is_killed and kills == 0:
            # What was begun is spent, and shows nothing.
            self._go(n_left - 1, 1, (*history, "killed"), p, q)
            return
        mu, nu, failure = self.shifts
        fit, score = shown(mu, failure, fit_edges), shown(nu, 0.0, score_edges)
        trains = np.array([place[kills] for place in self.places])
        for (i, (a, b)), (j, (c, d)) in itertools.product(enumerate(fit), enumerate(score)):
            masses = p * (a * c if self.has_folds else np.where(trains, a * d, b * c))
            if masses.sum() > 0.0 and q * b * d > 0.0:
                self._go(n_left - 1, kills, (*history, (i, j)), masses, q * b * d)
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


def policy(seed: int, *, kills: bool = False) -> Callable[..., Any]:
    """Return choices at random that follow from what was shown."""

    def choose(history: Any) -> tuple[Any, Any, bool]:
        rng = np.random.default_rng(list(str((seed, history)).encode()))
        edges = (float(rng.normal(0.5)),), (float(rng.normal(0.3)),)
        return *edges, kills and bool(rng.random() < 0.3)

    return choose


def no_scores(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same choices, of a search whose scores show nothing."""

    def changed(history: Any) -> tuple[Any, Any, bool]:
        fit, _, is_killed = choose(history)
        return fit, (), is_killed

    return changed


MU, NU, FAILURE, SHARE = 0.7, 0.9, 0.01, 0.3
FIT = with_failure(PrivacyProfile.gaussian(MU), FAILURE)
SCORE = PrivacyProfile.gaussian(NU)


def assert_below(found: Search, claim: PrivacyProfile, weights: Any) -> None:
    for epsilon, mirrored in itertools.product(EPSILONS, (False, True)):
        exact = found.delta(epsilon, np.asarray(weights), mirrored=mirrored)
        assert exact <= claim.delta(epsilon) * (1.0 + 1e-9)


class TestEnumeratedSearches:
    """Theorem G6."""

    @pytest.mark.parametrize(("seed", "n"), [(0, 2), (1, 3), (2, 4)])
    def test_records_that_train_pay_for_all_fits(self, seed: int, n: int) -> None:
        found = Search(n, no_scores(policy(seed)), (MU, 1.0, FAILURE))
        assert_below(found, FIT * n, [1.0, 0.0, 0.0, 0.0])

    @pytest.mark.parametrize(("seed", "n"), [(0, 2), (1, 3)])
    def test_one_split_is_a_mixture(self, seed: int, n: int) -> None:
        found = Search(n, policy(seed), (MU, NU, FAILURE))
        claim = search_on_split(FIT * n, SCORE * n, None, validation_fraction=SHARE)
        assert_below(found, claim, [1.0 - SHARE, 0.0, 0.0, SHARE])

    @pytest.mark.parametrize(("seed", "n"), [(0, 2), (1, 3), (2, 3)])
    def test_killed_searches_split_anew_and_pay_for_both(self, seed: int, n: int) -> None:
        found = Search(n, policy(seed, kills=True), (MU, NU, FAILURE))
        drawn = np.outer([1.0 - SHARE, SHARE], [1.0 - SHARE, SHARE]).ravel()
        for weights in (drawn, *np.eye(4)):
            assert_below(found, (FIT + SCORE) * n, weights)

    @pytest.mark.parametrize(("seed", "n"), [(0, 2), (1, 3)])
    def test_with_folds_a_record_trains_and_scores(self, seed: int, n: int) -> None:
        found = Search(n, policy(seed, kills=True), (MU, NU, FAILURE), has_folds=True)
        assert_below(found, (FIT + SCORE) * n, np.full(4, 0.25))
        assert found.delta(1.0, np.full(4, 0.25), mirrored=False) > 0.0

    def test_one_trial_more_breaks_the_bound(self) -> None:
        always = no_scores(lambda history: ((0.5,), (), False))
        found = Search(3, always, (1.0, 1.0, 0.0))
        fit = PrivacyProfile.gaussian(1.0)
        exact = found.delta(0.5, np.array([1.0, 0.0, 0.0, 0.0]), mirrored=False)
        assert fit.delta(0.5) < exact <= (fit * 3).delta(0.5)


def planned(**more: Any) -> Any:
    """Return the cost of a planned search."""
    search = flat(
        DPAdaptiveSearchCV,
        Scripted(epsilon=1.0, delta=1e-6),
        {"quality": (0.1, 0.9)},
        **{"epsilon": 1.0, "delta": 1e-5, "n_trials": 7, **more},
    )
    return search._make_plan(5000, 3).cost


@pytest.mark.parametrize(("cv", "storage"), [(0.2, None), (0.2, "unused"), (3, "unused")])
def test_total_by_hand(cv: Any, storage: Any) -> None:
    # Theorem G6: candidates chosen by noisy scores, and a search that is resumed.
    cost = planned(cv=cv, storage=storage)
    fits = cost.fit * (7 * (1 if cv == 0.2 else 2))
    scores = PrivacyProfile.gaussian(1.0 / cost.score_noise.ratio) * 7
    if cv == 0.2 and storage is None:
        total = search_on_split(fits, scores, cost.final, validation_fraction=0.2)
    else:
        total = fits + scores + cost.final
    for delta in (1e-4, 1e-5):
        assert cost.total.epsilon(delta) == pytest.approx(total.epsilon(delta), rel=2e-4)
    assert 0.99 < cost.total.epsilon(1e-5) <= 1.0


def test_splits_of_no_record_are_paid_for_each() -> None:
    # Theorem F7: the probability that a fit has no records is paid for.
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
