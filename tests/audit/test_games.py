"""Fits of an audit: seeds that are never shared, failures that are outcomes."""

from __future__ import annotations

import math
import random
import threading
from dataclasses import replace

import numpy as np
import pytest

from skdptune.accounting import BudgetExceededError
from skdptune.audit._games import Game, Outcome, Players, Trials, as_seed, play, read_numbers
from tests.audit.released import RECORD, RECORDS, NoisySum, sum_of

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
