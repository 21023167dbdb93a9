"""The run of a Pareto search on the data: the choice of the final fit, and the fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.metrics import accuracy
from skdptune.model_selection._pareto._optimizer import Evaluation, Record
from skdptune.model_selection._pareto._run import ParetoRun
from skdptune.model_selection._running import Data, Streams
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


class Costs:
    """Costs that are ten times the quality."""

    final_size = 200

    def of_final_fit(self, params: dict[str, Any]) -> PrivacyProfile:
        return PrivacyProfile.pure(10.0 * params["quality"])

    def configured(self, params: dict[str, Any], size: int) -> Scripted:
        assert size == 200
        return Scripted(**params)


def run(refit: Any, release: Any = None) -> ParetoRun:
    settings: Any = SimpleNamespace(refit=refit)
    plan: Any = SimpleNamespace(
        release=release, costs=Costs(), layout=SimpleNamespace(n_samples=len(X))
    )
    return ParetoRun(settings, plan, accuracy(), Streams.of(0))


@pytest.mark.parametrize(
    ("refit", "index"), [(False, None), (True, 3), (4.0, 3), (3.9, 1), (1.5, 2), (0.5, 0)]
)
def test_the_best_is_the_most_useful_that_may_be_fitted(refit: Any, index: int | None) -> None:
    assert run(refit).best_index(records()) == index


def test_cost_of_the_final_fit_of_a_release_is_at_its_half_of_delta() -> None:
    # By the evaluated epsilons the last would do; its fit would cost 9.5.
    release = SimpleNamespace(delta=1e-6)
    assert run(8.5, release).best_index(records()) == 2
    assert run(9.5, release).best_index(records()) == 3


def test_no_model_where_none_may_be_fitted() -> None:
    with pytest.warns(UserWarning, match="refit must be at least the smallest epsilon"):
        assert run(0.4).best_index(records()) is None


def test_failure_of_the_final_fit_is_shown_without_a_release_alone() -> None:
    class Failing(Scripted):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            raise ValueError("a record's text")

    record, data = records()[0], Data(X, Y)
    assert isinstance(run(True).fit_final(record, data), Scripted)
    for release in (None, SimpleNamespace(delta=1e-6)):
        failing = run(True, release)
        failing.plan.costs.configured = lambda params, size: Failing(**params)
        if release is None:
            with pytest.raises(ValueError, match="a record's text"):
                failing.fit_final(record, data)
        else:
            assert isinstance(failing.fit_final(record, data), Failing)
