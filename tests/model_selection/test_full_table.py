"""Full tables: their cost, their output, and the choice from it (Theorem T8)."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skdptune.accounting import BudgetExceededError, PrivacyProfile, search_on_split
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV, FullTable
from tests.flat import flat
from tests.model_selection.learners import Scripted, table

DELTA = 1e-5
X, Y = table(600)
GRID = {"quality": [0.1, 0.5, 0.9]}


def search(values: Any = None, **more: Any) -> DPGridSearchCV:
    values = values or {"quality": [0.1, 0.5, 0.9]}
    usual = {"random_state": 0, "epsilon": 50.0, "delta": DELTA, "strategy": "table"}
    return flat(DPGridSearchCV, Scripted(), values, **{**usual, "try_own_values": False, **more})


def test_one_row_for_each_candidate_as_in_scikit_learn() -> None:
    found = search(choose_by="max").fit(X, Y).cv_results_
    assert set(found) == {
        "params", "param_quality", "split0_test_score", "mean_test_score", "std_test_score",
        "rank_test_score",
    }  # fmt: skip
    np.testing.assert_allclose(found["mean_test_score"], [0.1, 0.5, 0.9], atol=0.15)
    assert found["rank_test_score"].tolist() == [3, 2, 1]
    assert found["param_quality"].dtype == np.float64
    # One split: the deviation is that of the noise, and known.
    assert len(set(found["std_test_score"])) == 1


def test_choice_looks_at_the_published_table_alone() -> None:
    seen: list[dict[str, Any]] = []

    def second(table: dict[str, Any]) -> int:
        seen.append(table)
        return int(np.flatnonzero(table["rank_test_score"] == 2)[0])

    found = search(refit=second).fit(X, Y)
    assert found.best_params_ == {"quality": 0.5}
    assert found.best_estimator_.quality == 0.5
    assert not hasattr(found, "best_score_")
    for name, column in found.cv_results_.items():
        np.testing.assert_array_equal(seen[0][name], column)


def test_bad_parameters() -> None:
    for name, values in {
        "noise_limit": [1.0, "much"],
        "tuning_fraction": [1.0, "half"],
        "choose_by": ["min"],
    }.items():
        for value in values:
            with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
                search(**{name: value}).privacy_profile(600, 3)


def test_a_clear_winner_is_chosen_with_its_posterior() -> None:
    found = search().fit(X, Y)
    assert found.best_params_ == {"quality": 0.9}
    assert found.best_score_ == pytest.approx(0.9, abs=0.1)
    assert 0.0 < found.best_score_std_ < 0.1
    plain = search(choose_by="max").fit(X, Y)
    assert plain.best_score_ == plain.cv_results_["mean_test_score"].max()
    assert not hasattr(plain, "best_score_std_")


def test_no_deviation_exceeds_half_of_the_range_of_a_score() -> None:
    """A score is clipped to its range, so Popoviciu's inequality holds for what is published."""
    tiny = DPGridSearchCV(DPLogisticRegression(classes=[0, 1]), {"C": [0.1]}, epsilon=1e-4, cv=2)
    tiny.set_params(random_state=0, delta=1e-9, strategy="table").fit(X, Y)
    assert tiny.best_score_std_ == 0.5
    assert set(tiny.cv_results_["std_test_score"]) == {0.5}
    plan = tiny.plan(600, 3, compare=False)
    assert plan.score_noise == 0.5 and "noise of a score: 0.5" in str(plan)


def test_a_table_of_noise_keeps_the_estimator_as_it_is() -> None:
    """Theorem N5: the choice is of the published table; with nothing in it, nothing is changed."""
    model = Scripted(quality=0.5)
    for seed in range(5):
        values = {"quality": [0.51, 0.5, 0.52]}
        settings = {"epsilon": 0.05, "delta": DELTA, "strategy": "table", "random_state": seed}
        found = flat(DPGridSearchCV, model, values, **settings).fit(X, Y)
        assert found.best_params_ == {"quality": 0.5}


def test_own_values_are_tried_first_where_the_grid_lacks_them() -> None:
    found = search({"quality": [0.1, 0.2]}, try_own_values=True).fit(X, Y)
    own = Scripted().quality
    assert [row["quality"] for row in found.cv_results_["params"]] == [own, 0.1, 0.2]
    listed = search({"quality": [0.1, own]}, try_own_values=True).fit(X, Y)
    assert [row["quality"] for row in listed.cv_results_["params"]] == [0.1, own]


class Twice(FullTable):
    """Fits all candidates twice, and pays for the stated cost."""

    def __init__(self, times: int = 1) -> None:
        super().__init__(try_own_values=False)
        self.times = times

    def n_runs(self, request: Any) -> int:
        return self.times * super().n_runs(request)

    def choose(self, run: Any) -> Any:
        candidates = list(run.plan.candidates.grid())
        run.fit_and_score(candidates)
        return self.chosen(run, candidates, run.fit_and_score(candidates))


def test_no_strategy_makes_more_fits_than_it_pays_for() -> None:
    # Theorem T8: full tables of noisy scores, and one fit after them.
    total = {"epsilon": 5.0, "delta": DELTA, "random_state": 0}
    with pytest.raises(BudgetExceededError, match="at most the 3 candidates that are paid for"):
        DPGridSearchCV(Scripted(), GRID, strategy=Twice(), **total).fit(X, Y)
    found = DPGridSearchCV(Scripted(), GRID, strategy=Twice(2), **total)
    cost = found.fit(X, Y)._make_plan(*X.shape).cost
    parts = cost.fit * 6, cost.score_noise.profile * 6, cost.final
    by_hand = search_on_split(*parts, validation_fraction=0.2)
    assert cost.total.epsilon(DELTA) == pytest.approx(by_hand.epsilon(DELTA), rel=1e-9)
    once = DPGridSearchCV(Scripted(), GRID, strategy=FullTable(try_own_values=False), **total)
    assert cost.fit.epsilon(DELTA) < 0.8 * once._make_plan(*X.shape).cost.fit.epsilon(DELTA)


class Watched(Scripted):
    """Notes the records that it was fitted to."""

    seen: Any = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        Watched.seen.append(frozenset(X[:, 1].tolist()))
        return super().fit(X, y)


def test_all_calls_of_a_strategy_share_one_split_into_folds() -> None:
    # Theorem F7: that a fit has no record is paid for once.
    total = {"epsilon": 5.0, "delta": DELTA, "cv": 3}
    Watched.seen = []
    DPGridSearchCV(Watched(), GRID, strategy=Twice(2), **total).fit(X, Y)
    of_folds = [records for records in Watched.seen if 100 < len(records) < len(X)]
    assert len(of_folds) == 2 * 3 * 3
    assert len(set(of_folds)) == 3


def test_what_is_planned_is_what_is_run_whatever_becomes_of_a_strategy() -> None:
    # Theorem F0: a search's cost follows from public numbers.
    strategy = FullTable(try_own_values=False)
    one = DPGridSearchCV(Scripted(), GRID, strategy=strategy, epsilon=5.0, delta=DELTA)
    plan, data, public = one._opened(X, Y, None, None, {}, None)
    strategy.set_params(try_own_values=True, score_epsilon=4.0, diagnostics=True)
    running = one._running(plan, data, public)
    assert running.strategy.score_epsilon is None
    assert not running.strategy.try_own_values
    # Parameters that do not change the cost keep the user's values.
    assert running.strategy.diagnostics

    class Own(FullTable):
        neutral = (*FullTable.neutral, "score_epsilon")

    kinds, parameters = zip(Own(score_epsilon=1.0).of_plan(), FullTable().of_plan(), strict=True)
    assert kinds == (Own, FullTable)
    assert parameters[0].keys() - parameters[1].keys() == set(FullTable.neutral)
    assert parameters[0]["score_epsilon"] == 1.0


# Costs -------------------------------------------------------------------------------------------


def response(epsilon: float, delta: float, is_swapped: bool) -> tuple[list[float], list[float]]:
    """Return the probabilities of four outcomes with and without the record."""
    truth = (1.0 - delta) / (1.0 + math.exp(-epsilon))
    with_it, without = [delta, truth, 1.0 - delta - truth, 0.0], [0.0, 1.0 - delta - truth, truth]
    without.append(delta)
    return (without, with_it) if is_swapped else (with_it, without)


def enumerated(
    rounds: list[tuple[float, float]], unseen: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of all transcripts of releases, each turned by those before it.

    The first `unseen` releases do not see the record in either case.
    """
    p, q = [], []
    for outcomes in itertools.product(range(4), repeat=len(rounds)):
        masses = [1.0, 1.0]
        for place, (epsilon, delta) in enumerate(rounds):
            # Which mechanism comes next is a function of what was published.
            turned = sum(outcomes[:place]) % 2 == 1
            seen, absent = response(epsilon, delta, turned)
            pair = (absent if place < unseen else seen, absent)
            masses = [m * side[outcomes[place]] for m, side in zip(masses, pair, strict=True)]
        p.append(masses[0])
        q.append(masses[1])
    return np.array(p), np.array(q)


@pytest.mark.parametrize(
    ("fit", "score", "final", "part", "n_metrics"),
    [
        ((0.3, 0.0), (0.2, 0.0), (1.0, 0.0), None, 2),
        ((0.1, 1e-3), (0.4, 0.0), (0.5, 1e-2), None, 1),
        ((0.1, 1e-3), (0.4, 0.0), (0.5, 1e-2), 0.3, 2),
        ((1.0, 0.0), (0.05, 1e-4), (0.2, 0.0), 0.3, 1),
    ],
)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_an_enumerated_adaptive_table_lies_below_the_total(
    fit: tuple[float, float],
    score: tuple[float, float],
    final: tuple[float, float],
    part: float | None,
    n_metrics: int,
    direction: str,
) -> None:
    """Theorem T8: two candidates, the second chosen from the first's scores, and a last fit."""
    validation = 0.25
    claim = search_on_split(
        PrivacyProfile.approximate(*fit) * 2,
        PrivacyProfile.approximate(*score) * (2 * n_metrics),
        PrivacyProfile.approximate(*final),
        validation_fraction=validation,
        tuning_fraction=part,
        variant=2,
    )
    trained, absent = enumerated([fit, fit, final])
    scored, without = enumerated([score] * (2 * n_metrics) + [final])
    # A record outside validation trains with this probability; nobody learns whether it does.
    share = 1.0 if part is None else part / (1.0 - validation)
    unseen, same = enumerated([fit, fit, final], unseen=2)
    np.testing.assert_allclose(same, absent)
    others = share * trained + (1.0 - share) * unseen
    for epsilon in (-1.0, -0.2, 0.0, 0.1, 0.5, 1.0, 1.4):
        truth = 0.0
        for weight, p, q in ((validation, scored, without), (1.0 - validation, others, absent)):
            first, second = (p, q) if direction == "remove" else (q, p)
            truth += weight * np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
        assert truth <= claim.delta(epsilon, direction) + 1e-12


def costed(**more: Any) -> Any:
    """Return the plan of a table within an epsilon of 1, with its costs."""
    return search(**{"epsilon": 1.0, **more})._make_plan(1000, 3)


def test_total_is_that_of_its_parts() -> None:
    """Theorem T8."""
    cost = costed().cost
    assert cost.scored is not None
    assert cost.final is not None
    fits, scores = cost.fit * 3, cost.score_noise.profile * 3
    total = search_on_split(fits, scores, cost.final, validation_fraction=0.2)
    assert cost.total.epsilon(DELTA) == pytest.approx(total.epsilon(DELTA), rel=1e-6)
    both = (fits + scores + cost.final).epsilon(DELTA)
    assert cost.final.epsilon(DELTA) < cost.total.epsilon(DELTA) <= min(1.0, both)


def test_folds_pay_for_all_fits_of_a_candidate() -> None:
    """Theorem T8."""
    cost = costed(cv=4).cost
    assert cost.scored is None
    assert cost.final is not None
    whole = cost.fit * 9 + cost.score_noise.profile * 3 + cost.final
    assert cost.total.epsilon(DELTA) == pytest.approx(whole.epsilon(DELTA), rel=1e-6)


def test_a_noisy_score_that_all_folds_share_keeps_its_noise() -> None:
    """Theorem N6: only the noises of several splits average out."""
    for strategy, n_noises in (("table", 4), ("compose", 1)):
        more = {} if strategy == "table" else {"refit": True}
        found = DPGridSearchCV(
            Scripted(), GRID, epsilon=1.0, delta=DELTA, cv=4, strategy=strategy, **more
        )
        made, plan = found._strategy(), found._make_plan(1000, 3)
        assert made.outlook(plan).score_noise * math.sqrt(n_noises) == made.deviation(plan)


@pytest.mark.parametrize(
    ("epsilon", "solver"),
    [(4.0, "preconditioned"), pytest.param(0.5, "sgd", marks=pytest.mark.slow)],
)
def test_the_final_fit_has_the_noise_that_was_allowed_and_all_is_spent(
    epsilon: float, solver: str
) -> None:
    """Theorem T8: by the fits' own profiles, whatever they are."""
    more = {} if solver == "preconditioned" else {"batch_size": 0.05, "epochs": 10}
    search = DPGridSearchCV(
        DPLogisticRegression(solver=solver, **more),
        {"learning_rate": [0.5, 1.0, 2.0]},
        epsilon=epsilon,
        delta=DELTA,
        strategy=FullTable(noise_limit=1.1),
    )
    plan = search.plan(20_000, 5, compare=True)
    ratio = plan.row.effective_noise / plan.alternatives[0].effective_noise
    assert ratio == pytest.approx(1.1, rel=0.01)
    assert 0.99 * epsilon < plan.epsilon <= epsilon
    made = search._make_plan(20_000, 5)
    # Less noise in either would cost more than the total.
    for changes in ({"fit_noise": 0.9 * made.model.fit_noise}, {"score_noise": 0.5}):
        assert replace(made.model, **changes).at(made.cost.setting).total.epsilon(DELTA) > epsilon
