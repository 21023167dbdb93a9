"""The doubling threshold search: its inputs, its cost, and sessions."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import optimize
from scipy.stats import binom, uniform
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from skdptune.accounting import sparse_vector_split
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import doubling_threshold_release
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DPGridSearchCV,
    ThresholdRounds,
)
from tests.accounting import oracles_profile
from tests.flat import flat
from tests.model_selection.learners import Scripted, cloudpickle
from tests.model_selection.threshold_searches import DELTA, GRID, LOUD, Expensive, X, Y, search

# Workers cannot import this module by its name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


# What is found ---------------------------------------------------------------------------------


def test_the_rounds_are_those_of_the_utilities() -> None:
    found = search(**LOUD, diagnostics=True).fit(X, Y)
    exact = found.diagnostics_["utilities"]
    _, trace = doubling_threshold_release(exact, sensitivity=0.25, granularity=0.05, noise=None)
    assert found.trace_ == trace
    assert found.diagnostics_["candidates"] == [{"quality": q} for q in GRID["quality"]]
    level = min(0.05 * sum(one.step for one in trace if one.hit), 1.0)
    # Theorem D4: below the level by what noise may have added.
    assert level - 0.3 < found.best_score_ < level
    assert found.granularity_ == 0.05


def test_no_hit_returns_the_first_candidate() -> None:
    """It is the first of the grid, the worst, and not that of highest utility."""
    # Theorem D3: candidates may be proposed by any optimiser.
    values = {"quality": [0.05, 0.3, 0.2]}
    found = search(values, initial_utility=0.9, **LOUD).fit(X, Y)
    assert [one.hit for one in found.trace_] == [False]
    assert found.best_params_ == {"quality": 0.05}
    assert found.best_score_ == 0.0


@pytest.mark.parametrize("noise", ["sparse", "per-round"])
def test_the_score_shown_is_rarely_above_the_one_measured(noise: str) -> None:
    """Theorem D4: nor is the winner often further below the best than the plan says."""
    settings = {"selection_epsilon": 8.0, "n_partitions": 30, "diagnostics": True}
    made, too_high, too_low, count = search(noise=noise, **settings), 0, 0, 12
    words = made.plan(*X.shape, compare=False).keeps
    below = float(words.split("may score ")[1].split(" %")[0]) / 100.0
    assert 0.05 < below < 0.6
    for seed in range(count):
        found = made.set_params(random_state=seed).fit(X, Y)
        kept = found.diagnostics_
        utilities = dict(zip(map(str, kept["candidates"]), kept["utilities"], strict=True))
        winner = utilities[str(found.best_params_)]
        too_high += found.best_score_ > winner
        too_low += winner < kept["utilities"].max() - below
    # Above it once in a thousand times, if the chance is 5 %.
    assert max(too_high, too_low) <= binom(count, 0.05).ppf(0.999)


def test_noise_that_hides_all_differences_is_announced() -> None:
    made = search(epsilon=1.0)
    with pytest.warns(UserWarning, match="hardly be distinguished from a candidate chosen at"):
        made.fit(X, Y)
    assert "hardly be distinguished" in str(made.plan(*X.shape, compare=False))
    clear = search(selection_epsilon=400.0, n_partitions=100)
    assert "hardly" not in str(clear.plan(*X.shape, compare=False))


@pytest.mark.parametrize(("most_rounds", "most_hits"), [(4, 3), (6, 3), (3, 9), (9, 1), (8, 4)])
def test_a_plan_with_both_limits_names_the_most_fits_of_any_search(
    most_rounds: int, most_hits: int
) -> None:
    """All outcomes of rounds, enumerated: steps double after a hit and are halved after a miss."""

    def longest(step: int, hits: int, rounds: int) -> int:
        if step == 0 or hits == most_hits or rounds == most_rounds:
            return rounds
        after_hit = longest(2 * step, hits + 1, rounds + 1)
        return max(after_hit, longest(step // 2, hits, rounds + 1))

    limits = {"max_rounds": most_rounds, "max_hits": most_hits, "batch_size": 3}
    made = search(
        param_distributions={"quality": uniform()}, granularity=1e-3, epsilon=2.0, **limits
    )
    row = made.plan(*X.shape, compare=False).row
    assert row.expected_fits == row.worst_fits == 3 * longest(1, 0, 0)


# Data that fail --------------------------------------------------------------------------------


class FailsOnFewClasses(Scripted):
    """Cannot be fitted to records of one class, nor score a record of the mark."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FailsOnFewClasses:
        if np.unique(y).size < 2:
            raise ValueError("one class")
        return super().fit(X, y)

    def predict(self, X: Any) -> np.ndarray:
        if (np.asarray(X)[:, 2] == 7.0).any():
            raise ValueError("a record of the mark")
        return super().predict(X)


def test_parts_of_one_class_score_the_worst_and_raise_nothing() -> None:
    """All of one class but two records: every part but those of the odd ones fails."""
    y = np.zeros(len(Y), dtype=int)
    y[:2] = 1
    estimator = FailsOnFewClasses(epsilon=1.0, delta=DELTA)
    found = search(estimator=estimator, diagnostics=True, **{**LOUD, "n_partitions": 30})
    found.fit(X, y)
    # At most two partitions of thirty could be fitted, and the scores of the others are 0.
    assert np.all(found.diagnostics_["utilities"] <= 2.0 / 30.0)


def test_parts_too_small_to_train_on_raise_nothing() -> None:
    found = search(**{**LOUD, "n_partitions": 70}).fit(X[:100], Y[:100])
    assert len(found.trace_) > 0


@pytest.mark.parametrize("kind", [DoublingThresholdSearchCV, DPGridSearchCV])
def test_a_record_that_cannot_be_scored_counts_for_itself_alone(kind: Any) -> None:
    """Else one validation record could bring all utilities to 0, whatever the sensitivity."""
    # Theorem D2: a record that cannot be scored affects only its own score.
    estimator = FailsOnFewClasses(epsilon=1.0, delta=DELTA)
    odd = X.copy()

    def utilities(records: np.ndarray) -> Any:
        one = flat(
            kind,
            estimator,
            GRID,
            delta=DELTA,
            n_partitions=4,
            random_state=0,
            diagnostics=True,
        ).fit(records, Y)
        return one.diagnostics_["utilities"]

    before = utilities(X)
    # One record after the other, until one was kept for validation: each moves little.
    largest = 0.0
    for place in range(8):
        odd = X.copy()
        odd[place, 2] = 7.0
        moved = np.abs(utilities(odd) - before).max()
        # A training record makes one part of four fail; the others score one record less.
        assert moved <= 0.25 + 1e-9
        largest = max(largest, moved if moved < 0.1 else 0.0)
    assert 0.0 < largest <= 1.0 / 240 + 1e-9


# The price -------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["sparse", "per-round"])
def test_cost_does_not_depend_on_the_number_of_candidates(noise: str) -> None:
    # Theorem D3: candidates may be proposed by any optimiser.
    plans = []
    for count in (10, 10_000):
        values = {"quality": np.linspace(0.0, 1.0, count)}
        found = search(values, epsilon=2.0, noise=noise)
        plans.append(clone(found).set_params(delta=1.1e-5).plan(1200, 3, compare=False))
    assert plans[0].row.epsilon == plans[1].row.epsilon <= 2.0
    assert plans[0].row.fit_epsilon == plans[1].row.fit_epsilon
    assert plans[1].row.expected_fits == 10_000


def test_cost_does_not_depend_on_what_happens() -> None:
    # Theorem D0: a doubling threshold search is charged beforehand.
    rounds, fit_costs = set(), set()
    for seed in range(3):
        for quality in (0.05, 0.99):
            values = {"quality": [quality]}
            found = search(values, random_state=seed, selection_epsilon=20.0).fit(X, Y)
            rounds.add(len(found.trace_))
            fit_costs.add(found.privacy_.epsilon_spent)
            assert found.privacy_.profile == found.privacy_profile(len(X), 3)
    assert len(rounds) > 2
    assert len(fit_costs) == 1


def total_by_hand(selection: Any, budget: float, share: float) -> float:
    """Return the epsilon of the rounds and a final fit, for records that train or score."""
    # The mixture over the place of a record has two equal terms, whatever its weights.
    assert 0.0 < share < 1.0
    sigma = 1.0 / optimize.brentq(
        lambda mu: oracles_profile.gaussian_epsilon(mu, DELTA) - budget, 1e-3, 10.0
    )
    fit = pld.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4)
    return selection.compose(fit).get_epsilon_for_delta(DELTA)


def test_total_of_sparse_rounds_by_hand() -> None:
    # Theorem D0: a doubling threshold search is charged beforehand.
    found = search(epsilon=2.0, selection_epsilon=0.6, max_hits=5).fit(X, Y)
    pure = pld.from_privacy_parameters(_pure(0.6), value_discretization_interval=1e-4)
    fit = found.best_estimator_.epsilon
    assert found.privacy_.epsilon_spent == pytest.approx(total_by_hand(pure, fit, 0.2), rel=5e-3)
    assert sum(sparse_vector_split(0.6, 5)) == pytest.approx(0.6)


def test_total_of_rounds_with_noise_each_by_hand() -> None:
    """Without a delta, rounds cost their budget, which limits their number."""
    found = search(epsilon=3.0, selection_epsilon=1.0, noise="per-round", max_rounds=7).fit(X, Y)
    plan = found._make_plan(len(X), 3)
    rounds = found._strategy().rounds(plan.model.solved, plan.delta)
    each = 2.0 * 0.25 / rounds.threshold_scale
    # Either stop's price: rounds composed as if all were hits, or the budget of the filter.
    filtered = each * (2 + math.ceil(3 * 6 / 2)) / 2
    composed = pld.from_privacy_parameters(_pure(each), value_discretization_interval=1e-4)
    composed = composed.self_compose(7)
    by_cap = total_by_hand(composed, found.best_estimator_.epsilon, 0.2)
    pure = pld.from_privacy_parameters(_pure(filtered), value_discretization_interval=1e-4)
    by_filter = total_by_hand(pure, found.best_estimator_.epsilon, 0.2)
    spent = found.privacy_.epsilon_spent
    assert spent <= min(by_cap, by_filter) * 1.005
    # The curve of the smaller at each epsilon cannot be far below either.
    assert spent >= 0.9 * min(by_cap, by_filter)
    assert rounds.candidate_scale == pytest.approx(4.0 * 0.25 / each)


def _pure(epsilon: float) -> Any:
    return common.DifferentialPrivacyParameters(epsilon, 0.0)


def test_noise_covers_validation_records_too() -> None:
    """With few of them, one moves a mean of scores by more than 1 / k."""
    # Theorem D1: how far one record moves a utility.
    few = search(cv=0.02, n_partitions=100, selection_epsilon=0.25)
    rounds, public = (
        few._strategy().rounds(plan.model.solved, plan.delta)
        for plan in (few._make_plan(1200, 3), few._make_plan(1200, 3, is_public=True))
    )
    threshold, queries = sparse_vector_split(0.25, rounds.max_hits)
    assert rounds.threshold_scale == pytest.approx(1.0 / 24 / threshold)
    assert rounds.candidate_scale == pytest.approx(2 * rounds.max_hits / 24 / queries)
    assert public.threshold_scale == pytest.approx(0.01 / threshold)


# Running ---------------------------------------------------------------------------------------


def test_both_kinds_of_candidates_or_none_are_refused() -> None:
    with pytest.raises(ValueError, match="got both"):
        search(GRID).set_params(param_distributions=GRID).fit(X, Y)
    with pytest.raises(ValueError, match="got neither"):
        search(GRID).set_params(param_grid=None).fit(X, Y)


def test_bad_parameters_raise_before_data_are_read() -> None:
    for name, values in {
        "noise": ["loud", None],
        "batch_size": [0],
        "granularity": [0.0],
        "initial_utility": [1.0],
        "n_partitions": [1],
        "selection_epsilon": [0.0],
        "max_rounds": [0],
        "max_hits": [0],
        "cv": [5],
    }.items():
        for value in values:
            with pytest.raises((ValueError, TypeError), match=f"^{name} must be"):
                search(**{name: value}).plan(1200, 3)


def test_rounds_of_batches_are_never_more_than_planned() -> None:
    for noise in ("sparse", "per-round"):
        found = search(
            param_distributions={"quality": [0.1, 0.7, 0.95]},
            batch_size=2,
            noise=noise,
            granularity=0.1,
        ).fit(X, Y)
        assert 2 * len(found.trace_) <= found.plan(len(X), 3, compare=False).row.worst_fits


# Sessions ----------------------------------------------------------------------------------------


def test_fit_is_a_session_over_the_grid() -> None:
    fitted = search(selection_epsilon=20.0).fit(X, Y)
    driven = search(selection_epsilon=20.0)
    session = driven.start(X, Y)
    assert session.privacy == fitted.privacy_
    while not session.finished:
        session.propose([{"quality": quality} for quality in GRID["quality"]])
    assert session.finish() is driven
    assert driven.trace_ == fitted.trace_ == session.trace
    assert driven.best_params_ == fitted.best_params_
    assert driven.privacy_ == fitted.privacy_
    np.testing.assert_array_equal(driven.predict(X), fitted.predict(X))


def test_an_outer_optimiser_climbs() -> None:
    # Theorem D3: candidates may be proposed by any optimiser.
    rng = np.random.default_rng(1)
    session = search({"quality": [0.2]}, **LOUD).start(X, Y)
    centre = 0.2
    while not session.finished:
        batch = [{"quality": float(np.clip(centre + rng.normal() / 5, 0, 1))} for _ in range(5)]
        winner = session.propose(batch)
        assert winner is None or winner in batch
        centre = winner["quality"] if winner else centre
        assert session.best_params == (None if session.utility == 0.0 else {"quality": centre})
    assert centre > 0.7
    assert session.finish().best_params_ == {"quality": centre}


def test_threads_take_turns() -> None:
    # Theorem D3: each round follows from all before it, whoever drives.
    from concurrent.futures import ThreadPoolExecutor

    session = search({"quality": [0.2]}, **LOUD).start(X, Y)
    offered = [{"quality": float(quality)} for quality in np.linspace(0.1, 0.9, 12)]

    def drive(params: dict[str, float]) -> bool:
        try:
            session.propose([params])
        except RuntimeError as problem:
            assert "propose must be called while finished is False" in str(problem)
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        made = sum(pool.map(drive, offered))
    assert made == len(session.trace)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(session.finish) for _ in range(4)]
    refused = [future.exception() for future in futures]
    assert sum(problem is None for problem in refused) == 1


def test_session_may_finish_early_and_once() -> None:
    session = search(**LOUD).start(X, Y)
    assert session.propose([{"quality": 0.9}]) == {"quality": 0.9}
    found = session.finish()
    assert found.best_params_ == {"quality": 0.9} and len(found.trace_) == 1
    for again in (session.finish, lambda: session.propose([{"quality": 0.5}])):
        with pytest.raises(RuntimeError, match="before finish"):
            again()


def test_session_without_a_hit_falls_back_on_what_was_offered_first() -> None:
    settings = {**LOUD, "initial_utility": 0.9}
    session = search(**settings).start(X, Y)
    assert session.propose([{"quality": 0.25}, {"quality": 0.5}]) is None
    assert session.best_params is None and session.finished
    with pytest.raises(RuntimeError, match="while finished is False"):
        session.propose([{"quality": 1.0}])
    assert session.finish().best_params_ == {"quality": 0.25}
    # Nothing offered: the first of the grid.
    assert search(**settings).start(X, Y).finish().best_params_ == {"quality": 0.15}


@pytest.mark.parametrize("seed", [None, 0])
def test_parts_are_disjoint_and_the_same_in_all_rounds(seed: int | None) -> None:
    """Else a record could influence several parts of a utility, or more from round to round."""
    # Theorem D1: how far one record moves a utility.
    Remembering.seen.clear()
    estimator = Remembering(epsilon=1.0, delta=DELTA)
    session = search(estimator=estimator, random_state=seed, **LOUD).start(X, Y)
    session.propose([{"quality": 0.9}])
    session.propose([{"quality": 0.91}])
    first, second = Remembering.seen[:4], Remembering.seen[4:]
    assert first == second
    assert sum(map(len, first)) == len(frozenset().union(*first))
    # About a fifth is kept for validation.
    assert 0.7 * len(X) < sum(map(len, first)) < 0.9 * len(X)


class Remembering(Scripted):
    """Keeps the records that it was fitted to, told apart by their last column."""

    seen: list[frozenset[float]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Remembering:
        Remembering.seen.append(frozenset(X[:, 2].tolist()))
        return super().fit(X, y)


def test_candidates_of_a_wrong_kind_are_refused() -> None:
    session = search(**LOUD).start(X, Y)
    for candidates in (None, {"quality": 1.0}, [0.5], "quality"):
        with pytest.raises(TypeError, match="candidates must be a list of dicts"):
            session.propose(candidates)
    with pytest.raises(ValueError, match="not be empty"):
        session.propose([])


def test_session_shows_the_walk_alone() -> None:
    # Theorem D4: what a doubling threshold search shows.
    session = search(**LOUD).start(X, Y)
    session.propose([{"quality": 0.9}])
    shown = "DoublingThresholdSession(rounds=1, utility=0.05, step=2, finished=False)"
    assert repr(session) == shown


# Candidates that a driver may offer --------------------------------------------------------------


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        ({"epsilon": 50.0}, "leave 'epsilon'"),
        ({"random_state": 1}, "leave 'random_state'"),
        ({"colour": 1}, "must name parameters"),
        ({"mark": 4}, "covers"),
        ({"mark": 3}, "covers"),
        ({"quality": 0.5}, "covers"),
        ({}, "covers"),
    ],
)
def test_candidates_that_were_not_costed_are_refused(
    candidate: dict[str, Any], words: str
) -> None:
    """The estimator's own mark is none of those in the grid."""
    # Theorem D3: candidates may be proposed by any optimiser.
    estimator = Expensive(mark=3, epsilon=1.0, delta=DELTA)
    session = search({"mark": [1, 2]}, estimator=estimator, epsilon=4.0).start(X, Y)
    with pytest.raises(ValueError, match=words):
        session.propose([{"mark": 1}, candidate])
    assert session.trace == ()
    # What does not set the cost may have any value.
    session.propose([{"mark": 2, "quality": 0.123}])
    assert len(session.trace) == 1


def test_any_plain_value_is_costed_where_all_are_held_to_one_budget() -> None:
    session = DoublingThresholdSearchCV(
        DPLogisticRegression(1.0, DELTA, classes=[0, 1]),
        param_distributions={"C": uniform(0.1, 1.0)},
        epsilon=4.0,
        delta=DELTA,
        strategy=ThresholdRounds(n_partitions=2, tuning_estimator=LogisticRegression()),
    ).start(X, Y)
    session._check_costs([{"C": 17.0}])
    with pytest.raises(ValueError, match="covers"):
        session._check_costs([{"C": 1.0, "fit_intercept": False, "solver": "sgd"}])
    with pytest.raises(ValueError, match="tuning_estimator, too"):
        session._check_costs([{"C": 1.0, "data_norm": 2.0}])


def test_what_is_offered_cannot_be_changed_after_it_was_costed() -> None:
    offered = {"clf": Scripted(quality=1.0, epsilon=0.1, delta=DELTA)}
    values = {"clf": [Scripted(quality=1.0, epsilon=0.1, delta=DELTA)]}
    session = DoublingThresholdSearchCV(
        Pipeline([("clf", Scripted())]),
        values,
        random_state=0,
        strategy=ThresholdRounds(
            selection_epsilon=50.0, tuning_estimator=Pipeline([("clf", Scripted())])
        ),
    ).start(X, Y)
    won = session.propose([offered])
    assert won is not None
    for shown in (offered, won, session.best_params):
        shown["clf"].set_params(epsilon=50.0)
    assert session.finish().best_estimator_[-1].epsilon == 0.1
