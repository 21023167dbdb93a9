"""The least epsilon at which a model reaches a target: two guarantees, levels, stops, refusals."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin

from skdptune import PrivacyLedger, config_context
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import gaussian_profile
from skdptune.metrics import make_bounded_scorer
from skdptune.model_selection import DPGridSearchCV, HoldOut, LeastEpsilon
from tests.model_selection.learners import Loud, QuickParameters, Scripted, Unread, table

DELTA = 1e-5
X, Y = table(2000)
VALUES = {"quality": [0.55, 0.95]}


def search_for(
    target: float, values: Any = VALUES, estimator: Any = None, **more: Any
) -> DPGridSearchCV:
    names = ("epsilons", "confidence", "storage", "diagnostics")
    own = {name: more.pop(name) for name in names if name in more}
    settings = {"epsilon": 2.0, "delta": DELTA, "random_state": 0} | more
    strategy = LeastEpsilon(target_score=target, **own)
    return DPGridSearchCV(estimator or Scripted(), values, strategy=strategy, **settings)


# Theorem F15, by enumeration: no code of the package enters --------------------------------


def laws(seed: int, n_levels: int, n_outcomes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each level the laws of its outcome under neighbouring data."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n_levels):
        p, q = rng.dirichlet(np.ones(n_outcomes), size=2)
        weight = rng.choice([0.3, 0.7, 1.0])
        made.append((p, (1.0 - weight) * p + weight * q))
    return made


def first_levels(levels: Any, count: int) -> list[tuple[tuple[int, ...], float, float]]:
    """Return the outcomes of the first levels, with their probabilities under both data sets."""
    found = []
    for outcome in itertools.product(*(range(p.size) for p, _ in levels[:count])):
        pairs = [levels[place] for place in range(count)]
        p, q = (
            math.prod(pair[side][seen] for pair, seen in zip(pairs, outcome, strict=True))
            for side in (0, 1)
        )
        found.append((outcome, p, q))
    return found


def curve(levels: Any, count: int, epsilon: float) -> float:
    """Return the curve of the first levels, in the worse direction."""
    ratio = math.exp(epsilon)
    outcomes = first_levels(levels, count)
    return max(
        sum(max(p - ratio * q, 0.0) for _, p, q in outcomes),
        sum(max(q - ratio * p, 0.0) for _, p, q in outcomes),
    )


def epsilon_within(levels: Any, count: int, delta: float) -> float:
    low, high = 0.0, 60.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if curve(levels, count, middle) <= delta else (middle, high)
    return high


def excess(levels: Any, stops: Any, epsilons: Any, mirrored: bool) -> float:
    """Return the largest P(S) - sum of e^(epsilon at the stop) Q(S), over all sets S."""
    total = 0.0
    for count, epsilon in enumerate(epsilons, start=1):
        for outcome, p, q in first_levels(levels, count):
            prefixes = [outcome[:k] for k in range(1, count)]
            if any(stops[prefix] for prefix in prefixes):
                continue
            if count == len(epsilons) or stops[outcome]:
                p, q = (q, p) if mirrored else (p, q)
                total += max(p - math.exp(epsilon) * q, 0.0)
    return total


def all_rules(n_levels: int, n_outcomes: int) -> Any:
    """Iterate over all rules that stop or continue by what was seen."""
    prefixes = [
        prefix
        for count in range(1, n_levels)
        for prefix in itertools.product(range(n_outcomes), repeat=count)
    ]
    for answers in itertools.product([False, True], repeat=len(prefixes)):
        yield dict(zip(prefixes, answers, strict=True))


def worst_rule(levels: Any, epsilons: Any) -> float:
    n_levels, n_outcomes = len(levels), levels[0][0].size
    return max(
        excess(levels, rule, epsilons, mirrored)
        for rule in all_rules(n_levels, n_outcomes)
        for mirrored in (False, True)
    )


class TestEveryRule:
    """Theorem F15: each rule that stops by what it saw, with small mechanisms, enumerated."""

    @pytest.mark.parametrize(
        ("seeds", "n_levels", "n_outcomes"),
        [
            (range(6), 3, 2),
            (range(20), 2, 3),
            pytest.param(range(100, 160), 3, 2, marks=pytest.mark.slow),
            pytest.param(range(100, 112), 3, 3, marks=pytest.mark.slow),
        ],
    )
    def test_claims_hold_for_all_rules_of_stopping(
        self, seeds: Any, n_levels: int, n_outcomes: int
    ) -> None:
        tightness = []
        for seed in seeds:
            levels = laws(seed, n_levels, n_outcomes)
            deltas = np.random.default_rng(seed).dirichlet(np.ones(n_levels)) * 0.1
            epsilons = [
                epsilon_within(levels, count, delta) for count, delta in enumerate(deltas, start=1)
            ]
            worst = worst_rule(levels, epsilons)
            assert worst <= math.fsum(deltas) + 1e-12
            tightness.append(worst / math.fsum(deltas))
            # The guarantee before the outcome is known is that of all levels together.
            before = epsilon_within(levels, n_levels, 0.1)
            assert worst_rule(levels, [before] * n_levels) <= 0.1 + 1e-12
        assert max(tightness) > 0.7

    def test_the_claims_are_not_idle(self) -> None:
        levels = laws(0, 3, 2)
        deltas = [0.01, 0.01, 0.03]
        epsilons = [epsilon_within(levels, k, delta) for k, delta in enumerate(deltas, start=1)]
        assert worst_rule(levels, epsilons) <= 0.05
        assert worst_rule(levels, [0.7 * epsilon for epsilon in epsilons]) > 0.05

    def test_levels_before_the_last_must_count(self) -> None:
        # A search that counts the last level alone claims too little.
        p, q = np.array([0.7, 0.3]), np.array([0.3, 0.7])
        levels = [(p, q)] * 3
        alone = [math.log(0.7 / 0.3)] * 3
        assert worst_rule(levels[:1], alone[:1]) == pytest.approx(0.0)
        assert worst_rule(levels, alone) > 0.2

    def test_the_loss_exceeds_the_claim_as_rarely_as_stated(self) -> None:
        # One outcome in delta / (1 - e^-t) has a loss of epsilon + t: the factor is attained.
        epsilon, t, delta = 1.0, 0.5, 0.01
        mass = delta / (1.0 - math.exp(-t))
        p = np.array([mass, 1.0 - mass])
        q = np.array([mass * math.exp(-epsilon - t), 1.0 - mass * math.exp(-epsilon - t)])
        assert curve([(p, q)], 1, epsilon) == pytest.approx(delta)
        assert mass > 2.5 * delta


# What the levels cost ----------------------------------------------------------------------


class NoisySum(QuickParameters, ClassifierMixin, BaseEstimator):
    """Releases a sum of values in [0, 1] with Gaussian noise; always says 1."""

    cost_parameters = frozenset({"epsilon", "delta", "noise"})

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = DELTA,
        noise: float | None = None,
        n_public: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.n_public = n_public
        self.random_state = random_state

    @property
    def _scale(self) -> float:
        return _noise_for(self.epsilon, self.delta)

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
        return gaussian_profile(1.0, self._scale)

    def fit(self, X: Any, y: Any) -> NoisySum:
        rng = np.random.default_rng(self.random_state)
        self.sum_ = float(np.clip(X[:, 0], 0.0, 1.0).sum()) + rng.normal(scale=self._scale)
        self.scale_ = self._scale
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.ones(len(X), dtype=int)


@functools.cache
def _noise_for(epsilon: float, delta: float) -> float:
    """Return the noise of a sum, by bisection over the curve of Gaussian noise."""
    low, high = 1e-3, 1e4
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (
            (middle, high) if gaussian_delta(1.0 / middle, epsilon) > delta else (low, middle)
        )
    return high


def gaussian_delta(shift: float, epsilon: float) -> float:
    """Return the curve of Gaussian noise, in closed form."""
    first = norm.cdf(shift / 2.0 - epsilon / shift)
    return float(first - math.exp(epsilon) * norm.cdf(-shift / 2.0 - epsilon / shift))


N_ROWS = 20_000
RULE = HoldOut(1, ">=", 0.5, share=0.5)


class TestClosedForm:
    """Theorem F15: squared shifts of Gaussian noise add up, level by level."""

    @pytest.mark.parametrize(("epsilon", "below"), [(3.0, None), (2.0, [0.3, 0.4, 1.9])])
    def test_each_level_uses_what_its_epsilon_leaves(self, epsilon: float, below: Any) -> None:
        search = search_for(0.9, {}, NoisySum(), epsilon=epsilon, epsilons=below, cv=RULE)
        levels = [*(below or [epsilon / 8, epsilon / 4, epsilon / 2]), epsilon]
        shares = [*[0.1 / (len(levels) - 1)] * (len(levels) - 1), 0.9]
        fits, scores = 0.0, 0.0
        for place, share in enumerate(shares):
            # The fit and the score of a level, from what a search that stops there publishes.
            fit, score = made_at(search, place)
            fits += fit**2
            scores += score**2
            spent = [gaussian_delta(math.sqrt(one), levels[place]) for one in (fits, scores)]
            assert max(spent) <= share * DELTA * (1.0 + 1e-9)
            # No level leaves more than a hundredth of its epsilon.
            assert gaussian_delta(math.sqrt(fits), 0.99 * levels[place]) > share * DELTA

    def test_pure_levels_add_up(self) -> None:
        estimator = DPLogisticRegression(delta=0.0)
        search = search_for(0.9, {}, estimator, delta=0.0, epsilon=4.0, cv=RULE)
        plan = search.plan(2000, 3, compare=False)
        alone = [part.profile.epsilon(0.0) for part in plan.report.parts[0].parts]
        assert np.cumsum(alone) == pytest.approx([0.5, 1.0, 2.0, 4.0], rel=0.01)
        assert math.fsum(alone) <= 4.0

    @pytest.mark.parametrize("delta", [1e-5, 1e-9])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
    def test_the_released_fit_has_more_than_half_of_a_doubled_level(
        self, epsilon: float, delta: float
    ) -> None:
        shift, before = (1.0 / _noise_for(each, delta) for each in (epsilon, epsilon / 2.0))
        last = math.sqrt(shift**2 - before**2)
        assert gaussian_delta(last, 0.79 * epsilon) > delta


def made_at(search: Any, place: int) -> tuple[float, float]:
    """Return the shifts of the fit and the score of a level, from what is published."""
    # All records that are scored are wrong, so that all levels are made.
    rows = np.column_stack([np.zeros(N_ROWS), np.arange(N_ROWS) % 2])
    with config_context(ledger=False):
        scores = search.fit(rows, 1 - np.arange(N_ROWS) % 2).cv_results_["std_test_score"]
    solved = search._make_plan(N_ROWS, 2).model.solved
    fit = 1.0 / _noise_for(solved[place].setting.epsilon, solved[place].setting.delta)
    # One of a public number of records moves a score by half of its range over that number.
    return fit, 0.5 / (N_ROWS / 2 * float(scores[place]))


# Stops ------------------------------------------------------------------------------------


class TestStops:
    def test_the_first_level_that_reaches_the_target_is_the_last(self) -> None:
        found = search_for(0.8).fit(X, Y)
        assert (found.epsilon_, found.reached_) == (0.25, True)
        assert found.best_params_ == {"quality": 0.95}
        assert found.cv_results_["epsilon"].tolist() == [0.25, 0.25]
        assert found.privacy_.epsilon == 2.0
        assert "at most ε = 0.250 about any record" in found.ex_post_
        assert "level 1 of 4, which reached the target" in found.ex_post_
        assert "the guarantee was ε = 2.000" in found.ex_post_

    def test_noisier_levels_have_to_reach_more(self) -> None:
        # A good score that the noise of the first levels could explain.
        found = search_for(0.9, {"quality": [1.0]}, epsilon=0.5).fit(X, Y)
        assert 0.0625 < found.epsilon_
        assert found.reached_
        scores = found.cv_results_["mean_test_score"]
        assert scores[-1] >= 0.9
        assert scores.size == found.cv_results_["epsilon"].size > 1

    def test_without_a_stop_the_last_level_is_returned(self) -> None:
        found = search_for(0.99).fit(X, Y)
        assert (found.epsilon_, found.reached_) == (2.0, False)
        assert "level 4 of 4, which did not reach the target" in found.ex_post_
        assert (
            found.cv_results_["epsilon"].tolist() == [0.25] * 2 + [0.5] * 2 + [1.0] * 2 + [2.0] * 2
        )
        assert found.best_index_ in (6, 7)
        assert found.predict(X[:3]).shape == (3,)

    def test_a_claim_to_have_reached_the_target_is_rarely_wrong(self) -> None:
        # The score without noise is just below the target, and each level could claim it.
        data = table(400, seed=1)
        wrong = 0
        for seed in range(60):
            search = search_for(0.5, {}, Scripted(quality=0.45), cv=0.5)
            search.set_params(random_state=seed, strategy__confidence=0.5)
            with config_context(ledger=False):
                wrong += search.fit(*data).reached_
        # 0.5, plus four standard deviations.
        assert wrong <= 60 * (0.5 + 4.0 * 0.5 / math.sqrt(60))

    @pytest.mark.parametrize("value", [pytest.param(0.9, marks=pytest.mark.slow), 0.1])
    def test_the_secret_number_of_held_out_records_is_allowed_for(self, value: float) -> None:
        # Each record has the same value, just below the target, and noise is small.
        def constant(y: Any, prediction: Any) -> np.ndarray:
            return np.full(len(y), value)

        scoring = make_bounded_scorer(constant, 0.0, 1.0, greater_is_better=True)
        data, wrong = table(2000, seed=1), 0
        for seed in range(60):
            search = search_for(value + 1e-6, {}, Scripted(), cv=0.2, scoring=scoring)
            search.set_params(epsilon=80.0, random_state=seed, strategy__confidence=0.8)
            search.set_params(strategy__epsilons=[20.0, 40.0])
            with config_context(ledger=False):
                wrong += search.fit(*data).reached_
        # 0.2, plus four standard deviations. Margins for the noise alone: about a half.
        assert wrong <= 60 * (0.2 + 4.0 * 0.4 / math.sqrt(60))

    def test_failing_fits_reach_nothing_and_show_nothing(self) -> None:
        search = search_for(0.5, {"quality": [0.1]}, Loud(mark="secret"))
        found = search.fit(X, Y)
        assert (found.epsilon_, found.reached_) == (2.0, False)
        assert found.best_score_ < 0.4

    def test_scores_on_public_data_have_no_margin(self) -> None:
        found = search_for(0.9).fit(X, Y, X_val=X, y_val=Y)
        assert (found.epsilon_, found.reached_) == (0.25, True)
        plan = search_for(0.9).plan(2000, 3, public_validation=True, compare=False)
        assert "noisy score 0.9)" in plan.keeps

    def test_runs_that_are_stored_are_those_of_all_levels(self, tmp_path: Any) -> None:
        # Theorem F13: a random or grid search that was killed resumes, at no cost.
        alone = search_for(0.99).fit(X, Y)
        with config_context(ledger=False):
            other = search_for(0.99, storage=tmp_path / "runs").fit(X, Y)
        scores = [one.cv_results_["mean_test_score"] for one in (alone, other)]
        np.testing.assert_array_equal(*scores)
        assert other.best_params_ == alone.best_params_

    def test_persons_and_tables(self) -> None:
        frame = pd.DataFrame(X, columns=["sign", "chance", "rest"])
        model = DPLogisticRegression(classes=[0, 1], data_norm=2.0)
        search = search_for(0.8, {}, model, epsilon=50.0, epsilons=[25.0])
        found = search.fit(frame, Y, groups=np.arange(2000) // 2)
        assert f"ε = {found.epsilon_:.3f} about any person" in found.ex_post_
        assert "one person" in found.privacy_.neighbouring

    def test_a_ledger_counts_what_holds_beforehand(self, tmp_path: Any) -> None:
        ledger = PrivacyLedger.create(tmp_path / "ledger", "table", epsilon=8.0, delta=1e-4)
        search = search_for(0.8)
        with ledger:
            search.fit(X, Y)
        assert search.epsilon_ == 0.25
        assert ledger.spent(DELTA) == pytest.approx(search.privacy_.epsilon_spent)


# An audit of the claim after the fact -------------------------------------------------------


def half_or_whole(y: Any, prediction: Any) -> Any:
    """Score a record by its own label alone."""
    return np.asarray(y, dtype=float)


LABEL = make_bounded_scorer(half_or_whole, 0.0, 1.0, greater_is_better=True)
N_PUBLIC = 640
# Nobody is above the rule's bound but the one record that is added.
EVERYONE = np.zeros((N_PUBLIC, 2)), np.zeros(N_PUBLIC, dtype=int)


def excess_after_the_fact(search: Any, trials: int) -> np.ndarray:
    """Return what adds up to P(S) - sum of e^epsilon_ Q(S), for the worst S, of each search.

    One record that is scored tells all levels apart from data without it. The loss of a search
    follows from the noisy scores that it publishes. In the second row, the noise that was added is
    assumed to be half of what is claimed.
    """
    rows = np.vstack([EVERYONE[0], [[0.0, 1.0]]])
    labels = np.append(EVERYONE[1], 1)
    found = np.empty((2, trials))
    for trial in range(trials):
        search.set_params(random_state=trial)
        results = search.fit(rows, labels).cv_results_
        shift = 0.5 / N_SCORED
        for place, kept_share in enumerate((1.0, 0.5)):
            noise = (results["mean_test_score"] - 0.5 - shift) * kept_share
            kept = results["std_test_score"] * kept_share
            loss = math.fsum(noise * shift / kept**2 + 0.5 * (shift / kept) ** 2)
            found[place, trial] = max(1.0 - math.exp(search.epsilon_ - loss), 0.0)
    return found


N_SCORED = 320


class TestAudit:
    """Theorem F15: the realized loss of whole searches, at a large delta."""

    @pytest.mark.parametrize("trials", [150, pytest.param(6000, marks=pytest.mark.slow)])
    def test_searches_reveal_no_more_than_is_said_after_the_fact(self, trials: int) -> None:
        delta = 0.2
        search = search_for(
            0.5, {}, NoisySum(delta=delta), epsilon=1.0, delta=delta, cv=RULE, scoring=LABEL,
            confidence=0.8, n_public=N_PUBLIC,
        )  # fmt: skip
        with config_context(ledger=False), pytest.warns(match="delta"):
            sound, broken = excess_after_the_fact(search, trials)
        # Hoeffding's bound, at a confidence of 0.9999.
        error = math.sqrt(math.log(1e4) / (2.0 * trials))
        assert sound.mean() - error <= delta
        assert broken.mean() - error > delta


# Refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("epsilon", [None], "must be given for LeastEpsilon"),
        ("cv", [3], "must be a fraction or a HoldOut"),
        ("refit", [True, lambda table: 0], "must be 'winner' or False"),
        ("scoring", [["accuracy", "neg_brier_score"]], "must be one metric"),
        ("target_score", [None], "must be given"),
        ("target_score", [1.5, math.nan, "high"], r"must be .*\[0, 1\]"),
        ("epsilons", [[1.0, 0.5], [0.5, 2.0], []], "must increase"),
        ("epsilons", [[0.0], 0.5, "0.5"], ".* must be"),
        ("confidence", [1.0], r"must be .*\[0.5, 1\)"),
    ],
)
def test_bad_input_is_refused_before_anything_is_read(
    name: str, values: list[Any], message: str
) -> None:
    unread: Any = np.zeros((2000, 3)).view(Unread), np.arange(2000) % 2
    for value in values:
        search = search_for(0.8)
        (search if name in search.get_params(deep=False) else search.strategy).set_params(
            **{name: value}
        )
        for act in (lambda search=search: search.fit(*unread), lambda s=search: s.plan(2000, 3)):
            with pytest.raises((TypeError, ValueError), match=f"{name} ?{message}"):
                act()
        assert not hasattr(search, "privacy_")
