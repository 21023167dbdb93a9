"""Sessions of the doubling threshold search: who may drive them, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skdptune.model_selection._strategies._threshold_rounds import _key, batches_of
from tests.model_selection.learners import Scripted
from tests.model_selection.threshold_searches import DELTA, GRID, LOUD, X, Y, search


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
    # Theorem D3.
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


def test_session_trains_a_candidate_once() -> None:
    Counted.fits = 0
    session = search(estimator=Counted(epsilon=1.0, delta=DELTA), **LOUD).start(X, Y)
    for _ in range(3):
        session.propose([{"quality": 0.9}, {"quality": 0.95}])
    assert Counted.fits == 2 * 4
    session.propose([{"quality": 0.95}, {"quality": 0.96}])
    assert Counted.fits == 3 * 4


@pytest.mark.parametrize("seed", [None, 0])
def test_parts_are_disjoint_and_the_same_in_all_rounds(seed: int | None) -> None:
    """Else a record could influence several parts of a utility, or more from round to round."""
    # Theorem D1.
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


class Counted(Scripted):
    """Counts its fits in this process."""

    fits = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Counted:
        Counted.fits += 1
        return super().fit(X, y)


@pytest.mark.parametrize("candidates", [None, {"quality": 1.0}, [0.5], "quality"])
def test_candidates_of_a_wrong_kind_are_refused(candidates: Any) -> None:
    session = search(**LOUD).start(X, Y)
    with pytest.raises(TypeError, match="candidates must be a list of dicts"):
        session.propose(candidates)
    with pytest.raises(ValueError, match="not be empty"):
        session.propose([])


def test_session_shows_the_walk_alone() -> None:
    # Theorem D4.
    session = search(**LOUD).start(X, Y)
    session.propose([{"quality": 0.9}])
    shown = "DoublingThresholdSession(rounds=1, utility=0.05, step=2, finished=False)"
    assert repr(session) == shown


def test_a_round_over_a_known_grid_makes_no_fit() -> None:
    Counted.fits = 0
    values = {"quality": np.linspace(0.0, 1.0, 3000)}
    session = search(values, estimator=Counted(epsilon=1.0, delta=DELTA), **LOUD).start(X, Y)
    grid = next(batches_of(session._running.plan.candidates, 1, None))
    session._known = {_key(one): (one, one["quality"]) for one in grid}
    while not session.finished:
        session.propose(grid)
    assert session.best_params["quality"] > 0.9
    assert Counted.fits == 0
