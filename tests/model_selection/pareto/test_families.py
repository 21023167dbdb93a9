"""Estimators and their spaces, seen as one, and checks of what a search is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.metrics import neg_brier_score
from skdptune.model_selection import DParetoSearchCV
from skdptune.model_selection._pareto import _families
from skdptune.model_selection._pareto._families import (
    FAMILY,
    Families,
    ThirdObjective,
    check_target,
    check_third_objective,
)
from tests.flat import flat
from tests.model_selection.learners import Centroids, Scripted

SPACE = {"quality": (0.1, 0.9)}
TWO = [("first", Scripted(mark="kept")), ("second", Centroids())]
SPACES = {"first": {"quality": (0.1, 0.9)}, "second": {"shrink": [0.0, 0.5], "epsilon": (1.0, 2)}}


def test_one_estimator_keeps_its_names() -> None:
    families = Families(Scripted(), {"quality": (0.1, 0.9)})
    assert families.space.names == ("quality",)
    params = {"quality": 0.5}
    assert families.split(params) == ("", params)
    assert families.selected(params) == params
    table = {"params": [params]}
    assert families.without_unselected(table) is table


def test_several_families_are_a_category_and_prefixed_parameters() -> None:
    families = Families(TWO, SPACES)
    names = (FAMILY, "first__quality", "second__shrink", "second__epsilon")
    assert families.space.names == names
    params = dict(zip(names, ["second", 0.3, 0.5, 1.5], strict=True))
    assert families.split(params) == ("second", {"shrink": 0.5, "epsilon": 1.5})
    selected = {FAMILY: "second", "second__shrink": 0.5, "second__epsilon": 1.5}
    assert families.selected(params) == selected
    drawn = {families.space.sample(np.random.default_rng(seed))[FAMILY] for seed in range(20)}
    assert drawn == {"first", "second"}


@pytest.mark.parametrize("is_frame", [True, False])
def test_tables_show_parameters_of_selected_families(is_frame: bool) -> None:
    families = Families(TWO, SPACES)
    rows = [families.space.sample(np.random.default_rng(seed)) for seed in range(6)]
    columns: dict[str, Any] = {f"param_{n}": [r[n] for r in rows] for n in families.space.names}
    table: Any = {**columns, "params": rows}
    changed = families.without_unselected(pd.DataFrame(table) if is_frame else table)
    for place, row in enumerate(rows):
        assert changed["params"][place] == families.selected(row)
        chosen = row[FAMILY] == "first"
        assert (changed["param_first__quality"][place] is None) != chosen
        assert (changed["param_second__shrink"][place] is None) == chosen
    # What was given stays as it was.
    assert table["params"][0].keys() == rows[0].keys() == set(families.space.names)


@pytest.mark.parametrize(
    ("estimator", "space", "expected"),
    [
        (Scripted(), {"quality": (0.1, 0.9)}, False),
        (Scripted(), {"quality": (0.1, 0.9), "epsilon": [1.0, 2.0]}, True),
        # An estimator that does not declare which parameters set its cost.
        (Centroids(), {"shrink": [0.1, 0.2]}, False),
        (TWO, SPACES, True),
        ([("only", Scripted())], {"only": {"quality": [0.1]}}, False),
        (make_pipeline(Normalizer(), Scripted()), {"normalizer": [Normalizer()]}, True),
        (make_pipeline(Normalizer(), Scripted()), {"scripted__quality": [0.1]}, False),
    ],
)
def test_whether_costs_differ(estimator: Any, space: Any, expected: bool) -> None:
    assert Families(estimator, space).costs_differ is expected


@pytest.mark.parametrize(
    ("estimator", "space", "error", "message"),
    [
        (Scripted, {}, TypeError, "estimator must be an estimator with fit, or a list"),
        (3, {}, TypeError, "estimator must be an estimator with fit"),
        ([], {}, TypeError, r"estimator must be a list of \(name, estimator\)"),
        ([Scripted()], {}, TypeError, r"estimator must be a list of \(name, estimator\)"),
        ([("a", 3)], {"a": {}}, TypeError, r"estimator\[0\] must be an estimator with fit"),
        ([("a__b", Scripted())], {}, ValueError, "different names without '__'"),
        ([("a", Scripted()), ("a", Scripted())], {}, ValueError, "different names"),
        ([("a", Scripted())], [1], TypeError, "param_space must map the families' names"),
        ([("a", Scripted())], {"b": {}}, ValueError, "families' names, 'a'; got 'b'"),
        ([("a", Scripted())], {"a": 3}, TypeError, r"param_space\['a'\] must be a mapping"),
        ([("a", Scripted())], {"a": {"b": [1]}}, ValueError, r"param_space\['a'\] must name"),
        (Scripted(), {}, ValueError, "param_space must hold at least one parameter"),
        (Scripted(), {"random_state": [1]}, ValueError, "must leave 'random_state' to the"),
        (Scripted(), {"quality": 3}, TypeError, r"param_space\['quality'\] must be a list"),
    ],
)
def test_refusals(estimator: Any, space: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Families(estimator, space)


def test_family_without_parameters_is_one_point() -> None:
    families = Families(TWO, {"first": {}, "second": {"shrink": [0.0, 0.1]}})
    assert families.split({FAMILY: "first", "second__shrink": 0.1}) == ("first", {})


def check(estimator: Any = None, space: Any = None, **more: Any) -> None:
    search = flat(DParetoSearchCV, estimator or Scripted(), space or SPACE, **more)
    search._check_parameters()


def test_grid_is_for_one_family() -> None:
    families = [("a", Scripted()), ("b", Scripted())]
    with pytest.raises(ValueError, match="sampler must not be 'grid'"):
        check(families, {"a": SPACE, "b": SPACE}, sampler="grid")
    check(families[:1], {"a": SPACE})


def test_scorer_must_suit_every_family() -> None:
    class Certain(Scripted):
        def predict_proba(self, X: Any) -> Any:
            return X

    families = [("a", Certain()), ("b", Scripted())]
    with pytest.raises(TypeError, match="needs predict_proba, but Scripted has none"):
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


def test_third_objective_is_the_time_or_a_named_function() -> None:
    assert check_third_objective(None, "") is None
    assert check_third_objective("time", "") == ThirdObjective("time", None)
    assert check_third_objective(("size", len), "") == ThirdObjective("size", len)


@pytest.mark.parametrize("given", ["size", ("size",), (len, "size"), ("a", 3)])
def test_other_kinds_are_refused(given: Any) -> None:
    words = r"third_objective must be None, 'time' or a tuple .* function of \(x, y\); got"
    with pytest.raises(TypeError, match=words):
        check_third_objective(given, "(x, y)")


@pytest.mark.parametrize("name", ["", "epsilon", "failure"])
def test_names_of_other_columns_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"must have a name that no other.*got '{name}'"):
        check_third_objective((name, len), "(x, y)")
