"""What a search gives back: fronts, tables, and parameters for a wanted point."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("moocore")
pytest.importorskip("optuna")

from skdptune.model_selection._pareto._optimizer import Evaluation, Record
from skdptune.model_selection._pareto._result import ParetoResult
from skdptune.model_selection._pareto._surrogates import hypervolume
from skdptune.model_selection._space import SearchSpace

SPACE = SearchSpace({"epsilon": (0.1, 10.0), "kind": ["a", [1, 2]]})
FOUND = [
    Evaluation(4.0, (0.5, 0.7), seconds=1.0),
    Evaluation(math.nan, failure="ValueError: no"),
    Evaluation(1.0, (0.3, 0.3), seconds=2.0),
    Evaluation(math.inf, (0.9, 0.9)),
    Evaluation(5.0, (0.4, 0.9)),
    Evaluation(2.0, (0.1, 0.5)),
]
RECORDS = [
    Record(number, {"epsilon": 1.0 + number, "kind": "a" if number % 2 else [1, 2]}, found)
    for number, found in enumerate(FOUND)
]


def result(records: list[Record] = RECORDS, **given: Any) -> ParetoResult:
    return ParetoResult(records, SPACE, **given)


def test_evaluations_are_all_there_in_order() -> None:
    table = result().evaluations_
    names = ["number", "epsilon", "error", "param_epsilon", "param_kind", "params"]
    assert list(table) == [*names, "spread", "utilities", "seconds", "failure"]
    assert list(table["number"]) == list(range(6))
    np.testing.assert_allclose(table["epsilon"], [4.0, math.nan, 1.0, math.inf, 5.0, 2.0])
    np.testing.assert_allclose(table["error"], [0.4, math.nan, 0.7, 0.1, 0.35, 0.7])
    np.testing.assert_allclose(table["spread"], [0.1, math.nan, 0.0, 0.0, 0.25, 0.2])
    assert list(table["param_epsilon"]) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert table["params"][2] == {"epsilon": 3.0, "kind": [1, 2]}
    assert [f for f in table["failure"] if isinstance(f, str)] == ["ValueError: no"]


def test_front_holds_what_nothing_beats_by_rising_epsilon() -> None:
    table = result().pareto_front_
    np.testing.assert_allclose(table["epsilon"], [1.0, 4.0, 5.0])
    np.testing.assert_allclose(table["error"], [0.7, 0.4, 0.35])
    assert [params["epsilon"] for params in table["params"]] == [3.0, 1.0, 5.0]


def test_hypervolume_can_be_measured_over_the_logarithm_of_epsilon() -> None:
    # (1, .7), (4, .4), (5, .35) below (10, 1).
    expected = 0.3 * np.log(4.0) + 0.6 * np.log(5.0 / 4.0) + 0.65 * np.log(2.0)
    assert result(epsilon_scale="log").hypervolume_ == pytest.approx(expected)
    with pytest.raises(ValueError, match="epsilon_scale must be one of 'linear', 'log'; got"):
        result(epsilon_scale="logit")


def test_hypervolume_grows_with_the_evaluations() -> None:
    history = result().hypervolume_history_
    assert history == pytest.approx([3.6, 3.6, 4.5, 4.5, 4.75, 4.75])
    front = result().pareto_front_
    points = np.column_stack([front["epsilon"], front["error"]])
    assert result().hypervolume_ == pytest.approx(hypervolume(points, (10.0, 1.0)))
    assert result(reference_point=(4.5, 0.5)).hypervolume_ == pytest.approx(0.05)


def test_fronts_of_the_best_and_worst_repeats() -> None:
    fronts = result().fronts_
    assert fronts["best"] == pytest.approx(np.array([[1, 0.7], [2, 0.5], [4, 0.3], [5, 0.1]]))
    assert fronts["mean"] == pytest.approx(np.array([[1.0, 0.7], [4.0, 0.4], [5.0, 0.35]]))
    assert fronts["worst"] == pytest.approx(np.array([[1.0, 0.7], [4.0, 0.5]]))


def test_third_objective_has_its_column_and_its_say() -> None:
    records = [
        Record(0, RECORDS[0].params, Evaluation(1.0, (0.5,), third=9.0)),
        Record(1, RECORDS[1].params, Evaluation(2.0, (0.5,), third=3.0)),
        Record(2, RECORDS[2].params, Evaluation(3.0, (0.5,), third=4.0)),
    ]
    found = result(records, third="cost", reference_point=(10.0, 1.0, 10.0))
    assert list(found.pareto_front_["cost"]) == [9.0, 3.0]
    assert found.hypervolume_ == pytest.approx(9 * 0.5 * 1 + 8 * 0.5 * 7 - 8 * 0.5 * 1)


def test_arrays_where_pandas_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    found = result()
    assert isinstance(found.pareto_front_, dict)
    assert found.pareto_front_["epsilon"].tolist() == [1.0, 4.0, 5.0]
    assert found.evaluations_["param_kind"].tolist() == [[1, 2], "a"] * 3


def test_nothing_found_is_an_empty_front() -> None:
    empty = result([])
    assert empty.hypervolume_ == 0.0 and len(empty.hypervolume_history_) == 0
    assert len(empty.pareto_front_["epsilon"]) == 0
    assert empty.fronts_["mean"].shape == (0, 2)


PLANE = SearchSpace({"noise": (0.1, 10.0, "log"), "rate": (0.0, 1.0)})


def privacy(params: dict[str, Any]) -> float:
    return 2.0 / params["noise"]


def utility(params: dict[str, Any]) -> tuple[float, ...]:
    return (math.exp(-params["noise"] / 4 - 4 * (params["rate"] - 0.3) ** 2),)


def evaluated(number: int = 60, seed: int = 0) -> list[Record]:
    rng = np.random.default_rng(seed)
    drawn = [PLANE.sample(rng) for _ in range(number)]
    return [Record(n, p, Evaluation(privacy(p), utility(p))) for n, p in enumerate(drawn)]


def best(
    epsilon: float | None = None,
    error: float | None = None,
    known: list[Record] | None = None,
    exact: Any = privacy,
    measure: Any = None,
) -> dict[str, Any]:
    known = evaluated() if known is None else known
    found = ParetoResult(known, PLANE, privacy=exact, utility=measure)
    return found.best_params_for(epsilon=epsilon, error=error, verify=measure is not None)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_best_params_for_an_epsilon_are_near_the_best(epsilon: float) -> None:
    params = best(epsilon)
    assert privacy(params) <= epsilon
    assert privacy(params) == pytest.approx(epsilon, rel=0.05)
    assert utility(params)[0] > math.exp(-2.0 / epsilon / 4) - 0.02
    seen = [e for r in evaluated() if (e := r.evaluation).epsilon <= epsilon]
    assert utility(params)[0] >= max(e.utilities[0] for e in seen)


@pytest.mark.parametrize("error", [0.3, 0.6])
def test_best_params_for_an_error_have_the_least_epsilon(error: float) -> None:
    params = best(error=error, measure=utility)
    assert 1.0 - utility(params)[0] <= error
    least = 2.0 / (-4 * math.log(1 - error))
    assert least <= privacy(params) < 1.1 * least


def test_both_bounds_hold_or_nothing_is_returned() -> None:
    params = best(2.0, 0.5, measure=utility)
    assert privacy(params) <= 2.0 and 1.0 - utility(params)[0] <= 0.5
    with pytest.raises(ValueError, match="search can meet; got epsilon <= 0.5 and error <= 0.2"):
        best(0.5, 0.2)


def test_epsilon_is_obeyed_however_the_surrogates_err() -> None:
    """The oracle is ten times what the search saw, and fails in places."""
    asked = []

    def jagged(params: dict[str, Any]) -> float:
        asked.append(params)
        if len(asked) % 3 == 0:
            raise RuntimeError("no")
        return math.nan if len(asked) % 3 == 1 else 10.0 * privacy(params)

    params = best(1.0, exact=jagged)
    assert asked
    matching = [record for record in evaluated() if record.params == params]
    assert matching and matching[0].evaluation.epsilon <= 1.0


def test_without_an_oracle_the_evaluations_are_what_there_is() -> None:
    params = best(1.0, exact=None)
    assert params in [record.params for record in evaluated()]
    assert privacy(params) <= 1.0


def test_lucky_evaluation_is_not_chosen() -> None:
    """A poor point whose measured utility is far above those of its neighbours."""
    rng, known = np.random.default_rng(3), []
    for record in evaluated(120):
        noisy = float(np.clip(utility(record.params)[0] + 0.1 * rng.normal(), 0.0, 1.0))
        known.append(
            Record(record.number, record.params, Evaluation(privacy(record.params), (noisy,)))
        )
    lucky = {"noise": 3.0, "rate": 0.6}
    known.append(Record(120, lucky, Evaluation(privacy(lucky), (0.8,))))
    assert max(r.evaluation.utilities[0] for r in known if privacy(r.params) <= 0.7) == 0.8
    assert best(0.7, known=known, exact=None) != lucky


def test_measured_candidates_that_fail_are_passed_over() -> None:
    calls = []

    def measure(params: dict[str, Any]) -> tuple[float, ...]:
        calls.append(params)
        if len(calls) == 1:
            raise RuntimeError("no")
        return utility(params)

    params = best(error=0.5, measure=measure)
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
        best(**given)


def test_search_without_success_is_named() -> None:
    with pytest.raises(ValueError, match="must have an evaluation that succeeded"):
        best(1.0, known=[])
