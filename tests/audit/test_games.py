"""Fits of an audit: their seeds and failures, the numbers read from them, and directions."""

from __future__ import annotations

import math
import random
import threading
from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdptune.accounting import BudgetExceededError
from skdptune.audit._games import (
    Direction,
    Game,
    Outcome,
    Players,
    Trials,
    as_seed,
    learnt_direction,
    margins,
    numbers_of,
    play,
    read_numbers,
    response,
)
from tests.audit.released import RECORD, RECORDS, NoisySum, sum_of

X = np.random.default_rng(0).normal(size=(40, 2))
ROW = np.array([2.0, -1.0])


def test_a_margin_is_the_score_of_a_class_over_the_mean_of_the_others():
    np.testing.assert_array_equal(margins(np.array([1.0, -2.0]), np.array([1, 0])), [1.0, 2.0])
    scores = np.array([[1.0, 4.0, 2.0], [5.0, 1.0, 3.0]])
    np.testing.assert_array_equal(margins(scores, np.array([1, 2])), [2.5, 0.0])
    np.testing.assert_array_equal(margins(scores[:, :1], np.array([0, 1])), [-1.0, 5.0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_responses_grow_with_what_is_said_of_the_label(n_classes):
    y = np.arange(40) % n_classes
    for model in (LogisticRegression(), GaussianNB()):
        fitted = model.fit(X, y)
        chances = np.log(fitted.predict_proba(X))
        own = chances[np.arange(40), y]
        expected = own - (chances.sum(axis=1) - own) / (n_classes - 1)
        found = response(fitted, X, y)
        assert np.corrcoef(found, expected)[0, 1] > 0.99
    regression = LinearRegression().fit(X, y)
    np.testing.assert_array_equal(response(regression, X, y), regression.predict(X))


def test_a_chance_of_nothing_is_finite():
    fitted = DummyClassifier(strategy="constant", constant=0).fit(X, np.arange(40) % 2)
    assert np.isfinite(response(fitted, X, np.ones(40))).all()


def test_all_steps_and_scores_are_looked_at():
    y = np.arange(40) % 2
    pipeline = make_pipeline(FunctionTransformer(), StandardScaler(), LogisticRegression())
    fitted = pipeline.fit(X, y)
    found = numbers_of(fitted, ROW, 1)
    scaler = fitted[1]
    learnt = [scaler.mean_.sum(), scaler.var_.sum(), scaler.scale_.sum()]
    np.testing.assert_allclose(found, [*learnt, fitted.decision_function(ROW[None])[0]])
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=2).fit(X, y)
    found = numbers_of(search, ROW, 1)
    assert found.size == 6
    assert found[0] == pytest.approx(search.cv_results_["mean_test_score"].sum())
    assert found[1] == pytest.approx(search.best_score_)


def test_what_says_nothing_is_refused():
    with pytest.raises(TypeError, match="statistic"):
        numbers_of(FunctionTransformer().fit(X), ROW, None)


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


SEED = np.random.SeedSequence(0)


def game(**settings: float) -> Game:
    sides = (np.vstack([RECORDS, RECORD]),), (RECORDS,)
    return Game(NoisySum(**settings), sides, sum_of)  # type: ignore[arg-type]


def test_fits_are_of_copies_and_repeat_themselves() -> None:
    given = game()
    one, other = given.fitted(True, SEED), given.fitted(True, SEED)
    assert one.sum_ == other.sum_
    assert given.fitted(False, SEED).sum_ == pytest.approx(one.sum_ - 1.0)
    assert not hasattr(given.estimator, "sum_")


def test_global_generators_come_back() -> None:
    before = np.random.get_state()[1].copy(), random.getstate()
    game().fitted(True, SEED)
    assert np.array_equal(np.random.get_state()[1], before[0])
    assert random.getstate() == before[1]


def test_threads_leave_global_generators_alone() -> None:
    # Two of them, seeded and given back in turns, would draw the same noise.
    states = []

    def fit() -> None:
        game().fitted(True, SEED)
        states.append(np.random.get_state()[1].copy())

    before = np.random.get_state()[1].copy()
    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    assert np.array_equal(states[0], before)


def test_failing_is_an_outcome() -> None:
    failing = game(fails_beyond=0.5)
    assert play(failing, True, SEED).has_failed
    assert not play(failing, False, SEED).has_failed
    trials = Trials(1)
    for present in (True, False):
        trials.add(present, play(failing, present, SEED))
    together, without = trials.projected(None, 0, 1)
    assert together.tolist() == [-math.inf] and np.isfinite(without).all()
    assert (trials.n_failed, len(trials)) == (1, 1)


def test_what_a_ledger_refuses_is_no_outcome() -> None:
    class Refused(NoisySum):
        def fit(self, X, y=None):
            raise BudgetExceededError("nothing is left")

    with pytest.raises(BudgetExceededError, match="nothing is left"):
        play(replace(game(), estimator=Refused()), True, SEED)


def test_several_numbers_are_projected_with_whether_the_fit_failed() -> None:
    trials = Trials(2)
    rng = np.random.default_rng(0)
    for place in range(20):
        trials.add(True, Outcome(place % 2 == 0, rng.normal(size=2)))
        trials.add(False, Outcome(False, rng.normal(size=2)))
    assert trials.between(0, 20)[0].shape == (20, 3)
    together, _ = trials.projected(trials.direction(0, 20), 0, 20)
    assert np.isfinite(together).all()
    assert abs(together[::2].mean() - together[1::2].mean()) > 1.0


def test_fits_of_other_lengths_are_cut_or_filled() -> None:
    trials = Trials(2)
    trials.add(True, Outcome(False, np.arange(5.0)))
    trials.add(False, Outcome(False, np.arange(1.0)))
    together, without = trials.between(0, 1)
    assert together.tolist() == [[0.0, 0.0, 1.0]]
    assert np.isnan(without[0, 2])


def test_seeds_are_given_out_once() -> None:
    players = Players("NoisySum", 0, None, 4, False)
    words = [seed.generate_state(4).tolist() for _ in range(3) for seed in players.seeds(2)]
    assert len({tuple(word) for word in words}) == 6


def test_seeds_are_numbers_or_generators() -> None:
    assert [as_seed(given) for given in (None, 7, np.int64(7))] == [None, 7, 7]
    for make in (np.random.default_rng, np.random.RandomState):
        assert as_seed(make(0)) == as_seed(make(0))
    for bad in (-1, "seed", True, 0.5):
        with pytest.raises(ValueError, match="random_state must be None, an integer"):
            as_seed(bad)


@pytest.mark.parametrize("bad", ["no", object(), [], {}], ids=["word", "object", "list", "dict"])
def test_what_is_no_number_is_refused(bad: object) -> None:
    with pytest.raises(TypeError, match="statistic must return a number"):
        read_numbers(bad)
