"""Checks of single parameters; those of all of them are in test_dpareto_search.py."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.pipeline import Pipeline

from skdptune.metrics import neg_brier_score
from skdptune.model_selection import DParetoSearchCV
from skdptune.model_selection._pareto import _families
from skdptune.model_selection._pareto._families import check_target
from tests.model_selection.learners import Scripted

SPACE = {"quality": (0.1, 0.9)}


def check(estimator: Any = None, space: Any = None, **more: Any) -> None:
    search = DParetoSearchCV(estimator or Scripted(), space or SPACE, **more)
    search._check_parameters()


def test_defaults_are_allowed() -> None:
    check()
    check(release=3.0, refit=1)
    check(delta=0.0)


@pytest.mark.parametrize("sampler", ["auto", "hvpoi", "random", "grid"])
def test_samplers_by_name(sampler: str) -> None:
    check(sampler=sampler)


def test_third_objective_has_a_reference() -> None:
    with pytest.raises(ValueError, match="reference_point must be 3 numbers"):
        check(third_objective=("size", len))
    check(third_objective=("size", len), reference_point=(10.0, 1.0, 3.0))


def test_grid_is_for_one_family() -> None:
    families = [("a", Scripted()), ("b", Scripted())]
    with pytest.raises(ValueError, match="sampler must be another than 'grid'"):
        check(families, {"a": SPACE, "b": SPACE}, sampler="grid")
    check(families[:1], {"a": SPACE})


def test_scorer_must_suit_every_family() -> None:
    class Certain(Scripted):
        def predict_proba(self, X: Any) -> Any:
            return X

    families = [("a", Certain()), ("b", Scripted())]
    with pytest.raises(TypeError, match="asks for predict_proba, and Scripted has none"):
        check(families, {"a": SPACE, "b": SPACE}, scoring=neg_brier_score())
    check(Certain(), scoring=neg_brier_score())


def test_replacing_guarantees_cannot_be_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scripted, "__module__", "diffprivlib.models")
    monkeypatch.setattr(
        "skdptune.model_selection._pareto._families.replaces_records",
        lambda part: type(part).__module__.startswith("diffprivlib"),
    )
    check()
    with pytest.raises(TypeError, match="about adding or removing a record with release"):
        check(release=1.0)


def test_target_that_is_needed() -> None:
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        check_target(Scripted(), None)
    check_target(Scripted(), [1])


def test_replacing_guarantees_among_the_values_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Replacing(Scripted):
        pass

    replaces = _families.replaces_records
    monkeypatch.setattr(
        _families,
        "replaces_records",
        lambda part: isinstance(part, Replacing) or replaces(part),
    )
    pipeline = Pipeline([("clf", Scripted())])
    with pytest.raises(TypeError, match="got one about replacing"):
        check(pipeline, {"clf": [Scripted(), Replacing()]}, scoring="accuracy", release=9.0)
    check(pipeline, {"clf": [Scripted()]}, scoring="accuracy", release=9.0)


def test_a_sampler_of_the_user_must_not_see_times_of_a_release() -> None:
    optuna = pytest.importorskip("optuna")
    check(sampler=optuna.samplers.RandomSampler())
    with pytest.raises(TypeError, match="sampler must be a name with release"):
        check(sampler=optuna.samplers.RandomSampler(), release=9.0)
