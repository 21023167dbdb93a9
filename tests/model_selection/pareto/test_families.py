"""Estimators and their spaces, seen as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.model_selection._pareto._families import FAMILY, Families
from tests.model_selection.learners import Centroids, Scripted

TWO = [("first", Scripted(mark="kept")), ("second", Centroids())]
SPACES = {"first": {"quality": (0.1, 0.9)}, "second": {"shrink": [0.0, 0.5], "epsilon": (1.0, 2)}}


def test_one_estimator_keeps_its_names() -> None:
    families = Families(Scripted(), {"quality": (0.1, 0.9)})
    assert families.space.names == ("quality",)
    params = {"quality": 0.5}
    assert families.split(params) == ("", params)
    assert families.shown(params) == params
    assert families.made(params).quality == 0.5
    table = {"params": [params]}
    assert families.tidied(table) is table


def test_several_families_are_a_category_and_prefixed_parameters() -> None:
    families = Families(TWO, SPACES)
    names = (FAMILY, "first__quality", "second__shrink", "second__epsilon")
    assert families.space.names == names
    params = dict(zip(names, ["second", 0.3, 0.5, 1.5], strict=True))
    assert families.split(params) == ("second", {"shrink": 0.5, "epsilon": 1.5})
    made = families.made(params)
    assert isinstance(made, Centroids) and (made.shrink, made.epsilon) == (0.5, 1.5)
    shown = {FAMILY: "second", "second__shrink": 0.5, "second__epsilon": 1.5}
    assert families.shown(params) == shown
    other = families.made({**params, FAMILY: "first"})
    assert isinstance(other, Scripted) and other.mark == "kept" and other is not TWO[0][1]
    assert families.lead is TWO[0][1]
    drawn = {families.space.sample(np.random.default_rng(seed))[FAMILY] for seed in range(20)}
    assert drawn == {"first", "second"}


@pytest.mark.parametrize("is_frame", [True, False])
def test_tables_are_tidied(is_frame: bool) -> None:
    families = Families(TWO, SPACES)
    rows = [families.space.sample(np.random.default_rng(seed)) for seed in range(6)]
    columns: dict[str, Any] = {f"param_{n}": [r[n] for r in rows] for n in families.space.names}
    table: Any = {**columns, "params": rows}
    tidied = families.tidied(pd.DataFrame(table) if is_frame else table)
    for place, row in enumerate(rows):
        assert tidied["params"][place] == families.shown(row)
        chosen = row[FAMILY] == "first"
        assert (tidied["param_first__quality"][place] is None) != chosen
        assert (tidied["param_second__shrink"][place] is None) == chosen
    # What was given stays as it was.
    assert table["params"][0].keys() == rows[0].keys() == set(families.space.names)


@pytest.mark.parametrize(
    ("estimator", "space", "expected"),
    [
        (Scripted(), {"quality": (0.1, 0.9)}, False),
        (Scripted(), {"quality": (0.1, 0.9), "epsilon": [1.0, 2.0]}, True),
        # An estimator that does not say what sets its price.
        (Centroids(), {"shrink": [0.1, 0.2]}, False),
        (TWO, SPACES, True),
        ([("only", Scripted())], {"only": {"quality": [0.1]}}, False),
        (make_pipeline(Normalizer(), Scripted()), {"normalizer": [Normalizer()]}, True),
        (make_pipeline(Normalizer(), Scripted()), {"scripted__quality": [0.1]}, False),
    ],
)
def test_what_sets_the_price(estimator: Any, space: Any, expected: bool) -> None:
    assert Families(estimator, space).set_the_cost is expected


def test_steps_may_be_categories() -> None:
    pipeline = make_pipeline(Normalizer(), Scripted())
    families = Families(
        pipeline, {"scripted": [Scripted(), Centroids()], "scripted__epsilon": [2]}
    )
    made = families.made({"scripted": Centroids(), "scripted__epsilon": 2})
    assert isinstance(made[-1], Centroids) and made[-1].epsilon == 2


def test_values_are_copied() -> None:
    inner = Scripted(mark="inner")
    families = Families(make_pipeline(Normalizer(), Scripted()), {"scripted": [inner]})
    assert families.made({"scripted": inner})[-1] is not inner


@pytest.mark.parametrize(
    ("estimator", "space", "error", "message"),
    [
        (Scripted, {}, TypeError, "estimator must be an estimator with fit, or a list"),
        (3, {}, TypeError, "estimator must be an estimator with fit"),
        ([], {}, TypeError, r"estimator must be a list of \(name, estimator\)"),
        ([Scripted()], {}, TypeError, r"estimator must be a list of \(name, estimator\)"),
        ([("a", 3)], {"a": {}}, TypeError, r"estimator\['a'\] must be an estimator with fit"),
        ([("a__b", Scripted())], {}, ValueError, "different names without '__'"),
        ([("a", Scripted()), ("a", Scripted())], {}, ValueError, "different names"),
        ([("a", Scripted())], [1], TypeError, "param_space must map the families' names"),
        ([("a", Scripted())], {"b": {}}, ValueError, r"families' names, \['a'\]; got \['b'\]"),
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
    assert families.made({FAMILY: "first", "second__shrink": 0.1}).mark == "kept"
