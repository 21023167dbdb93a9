"""What one fit of a Pareto search does once all is settled: the last fit, and what it warns of."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.model_selection._pareto._run import ParetoRun, warn_of_few, warn_of_one_cost
from skdptune.model_selection._pareto._study import Evaluation, Record
from skdptune.model_selection._running._runs import Data
from skdptune.model_selection._running._streams import Streams
from tests.model_selection.learners import Scripted, table

# Epsilon, utilities.
POINTS = [(0.5, (0.7,)), (2.0, (0.9, 0.8)), (1.0, (0.8, 0.8)), (4.0, (0.95,))]
X, Y = table(200)


def records(points: Any = POINTS) -> list[Record]:
    found = [
        Record(place, {"quality": utilities[0]}, Evaluation(epsilon, utilities))
        for place, (epsilon, utilities) in enumerate(points)
    ]
    return [*found, Record(len(found), {}, Evaluation(0.1, (1.0,), failure="ValueError: no"))]


class EvaluationCosts:
    """Prices and configures as told."""

    final_size = 200

    def final(self, params: dict[str, Any]) -> PrivacyProfile:
        return PrivacyProfile.pure(10.0 * params["quality"])

    def configured(self, params: dict[str, Any], size: int) -> Scripted:
        assert size == 200
        return Scripted(**params)


def run(refit: Any, plan: Any = None) -> ParetoRun:
    study: Any = SimpleNamespace(plan=plan, costs=EvaluationCosts())
    return ParetoRun(SimpleNamespace(refit=refit), study, Streams.of(0))


@pytest.mark.parametrize(
    ("refit", "place"), [(False, None), (True, 3), (4.0, 3), (3.9, 1), (1.5, 2), (0.5, 0)]
)
def test_the_best_is_the_most_useful_that_may_be_fitted(refit: Any, place: int | None) -> None:
    assert run(refit).best(records()) == place


def test_the_best_of_a_release_is_priced_at_its_half_of_delta() -> None:
    # By the curator's epsilons the last would do; a fit of it would cost 9.5.
    plan = SimpleNamespace(delta=1e-6)
    assert run(8.5, plan).best(records()) == 2
    assert run(9.5, plan).best(records()) == 3


def test_no_model_where_none_may_be_fitted() -> None:
    with pytest.warns(UserWarning, match="refit must be at least the least epsilon"):
        assert run(0.4).best(records()) is None


def test_last_fit_that_fails_is_told_to_the_curator_alone() -> None:
    class Failing(Scripted):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            raise ValueError("a record's text")

    record, data = records()[0], Data(X, Y, {}, {})
    assert isinstance(run(True).final(record, data), Scripted)
    for plan in (None, SimpleNamespace(delta=1e-6)):
        failing = run(True, plan)
        failing.study.costs.configured = lambda params, size: Failing(**params)
        if plan is None:
            with pytest.raises(ValueError, match="a record's text"):
                failing.final(record, data)
        else:
            assert isinstance(failing.final(record, data), Failing)


def test_what_a_front_lacks_is_said() -> None:
    with pytest.warns(UserWarning, match="release paid for 3 evaluations of 8"):
        warn_of_few(3, 8)
    same = [(2.0, (0.9,)), (2.0, (0.8,))]
    with pytest.warns(UserWarning, match="^All evaluations cost epsilon=2, so .* a single point"):
        warn_of_one_cost(records(same))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_few(8, 8)
        warn_of_one_cost(records())
        warn_of_one_cost(records(same[:1]))
