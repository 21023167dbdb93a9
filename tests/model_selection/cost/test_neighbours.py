"""Which neighbours a search's guarantee is about."""

from __future__ import annotations

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.base import _costs as costs
from skdptune.model_selection._cost._candidates import Candidates
from skdptune.model_selection._cost._fit_costs import neighbours_replace
from tests.model_selection.learners import Scripted


def replaces(estimator: object, values: object) -> bool:
    candidates = Candidates(values, name="param_grid", drawn=False)
    return neighbours_replace(estimator, candidates, 100, 3)


def test_adding_a_record_is_the_rule() -> None:
    assert not replaces(make_pipeline(Normalizer(), Scripted()), {"scripted__quality": [0.1]})


def test_replacing_is_found_in_steps_and_among_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_REPLACING", frozenset({"elsewhere"}))
    other = type("Replacing", (Scripted,), {"__module__": "elsewhere"})()
    assert replaces(make_pipeline(Normalizer(), other), {})
    with pytest.raises(TypeError, match="private steps of one kind"):
        replaces(make_pipeline(Normalizer(), Scripted()), {"scripted": [other]})
