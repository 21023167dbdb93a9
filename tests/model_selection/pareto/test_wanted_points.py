"""Parameters for a wanted point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("moocore")
pytest.importorskip("optuna")

from skdptune.model_selection._pareto._optimizer import Evaluation, Record  # noqa: E402
from skdptune.model_selection._pareto._result import WantedPoint  # noqa: E402
from skdptune.model_selection._space import SearchSpace  # noqa: E402

SPACE = SearchSpace({"noise": (0.1, 10.0, "log"), "rate": (0.0, 1.0)})
REFERENCE = (10.0, 1.0)


def privacy(params: dict[str, Any]) -> float:
    return 2.0 / params["noise"]


def utility(params: dict[str, Any]) -> tuple[float, ...]:
    return (math.exp(-params["noise"] / 4 - 4 * (params["rate"] - 0.3) ** 2),)


def records(number: int = 60, seed: int = 0) -> list[Record]:
    rng = np.random.default_rng(seed)
    drawn = [SPACE.sample(rng) for _ in range(number)]
    return [Record(n, p, Evaluation(privacy(p), utility(p))) for n, p in enumerate(drawn)]


def search(
    epsilon: float | None = None,
    error: float | None = None,
    known: list[Record] | None = None,
    exact: Any = privacy,
    measure: Any = None,
) -> dict[str, Any]:
    known = records() if known is None else known
    return WantedPoint.of(epsilon, error).search(known, SPACE, REFERENCE, exact, measure)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_best_params_for_an_epsilon_are_near_the_best(epsilon: float) -> None:
    params = search(epsilon)
    assert privacy(params) <= epsilon
    assert privacy(params) == pytest.approx(epsilon, rel=0.05)
    best = math.exp(-2.0 / epsilon / 4)
    assert utility(params)[0] > best - 0.02
    seen = [e for r in records() if (e := r.evaluation).epsilon <= epsilon]
    assert utility(params)[0] >= max(e.utilities[0] for e in seen)


@pytest.mark.parametrize("error", [0.3, 0.6])
def test_best_params_for_an_error_have_the_least_epsilon(error: float) -> None:
    params = search(error=error, measure=utility)
    assert 1.0 - utility(params)[0] <= error
    least = 2.0 / (-4 * math.log(1 - error))
    assert least <= privacy(params) < 1.1 * least


def test_both_bounds_hold_or_nothing_is_returned() -> None:
    params = search(2.0, 0.5, measure=utility)
    assert privacy(params) <= 2.0 and 1.0 - utility(params)[0] <= 0.5
    with pytest.raises(ValueError, match="search can meet; got epsilon <= 0.5 and error <= 0.2"):
        search(0.5, 0.2)


def test_epsilon_is_obeyed_however_the_surrogates_err() -> None:
    """The oracle is ten times what the search saw, and fails in places."""
    asked = []

    def jagged(params: dict[str, Any]) -> float:
        asked.append(params)
        if len(asked) % 3 == 0:
            raise RuntimeError("no")
        return math.nan if len(asked) % 3 == 1 else 10.0 * privacy(params)

    params = search(1.0, exact=jagged)
    assert asked
    matching = [record for record in records() if record.params == params]
    assert matching and matching[0].evaluation.epsilon <= 1.0


def test_without_an_oracle_the_evaluations_are_what_there_is() -> None:
    params = search(1.0, exact=None)
    assert params in [record.params for record in records()]
    assert privacy(params) <= 1.0


def test_lucky_evaluation_is_not_chosen() -> None:
    """A poor point whose measured utility is far above those of its neighbours."""
    rng, known = np.random.default_rng(3), []
    for record in records(120):
        noisy = float(np.clip(utility(record.params)[0] + 0.1 * rng.normal(), 0.0, 1.0))
        known.append(
            Record(record.number, record.params, Evaluation(privacy(record.params), (noisy,)))
        )
    lucky = {"noise": 3.0, "rate": 0.6}
    known.append(Record(120, lucky, Evaluation(privacy(lucky), (0.8,))))
    assert max(r.evaluation.utilities[0] for r in known if privacy(r.params) <= 0.7) == 0.8
    assert search(0.7, known=known, exact=None) != lucky


def test_measured_candidates_that_fail_are_passed_over() -> None:
    calls = []

    def measure(params: dict[str, Any]) -> tuple[float, ...]:
        calls.append(params)
        if len(calls) == 1:
            raise RuntimeError("no")
        return utility(params)

    params = search(error=0.5, measure=measure)
    assert len(calls) > 1 and params != calls[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "epsilon or error must be given"),
        ({"epsilon": -1.0}, "epsilon must be a number"),
        ({"error": 1.5}, "error must be a number"),
        ({"epsilon": math.nan}, "epsilon must be"),
    ],
)
def test_bad_point_is_named(given: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        search(**given)


def test_search_without_success_is_named() -> None:
    with pytest.raises(ValueError, match="must have an evaluation that succeeded"):
        search(1.0, known=[])
