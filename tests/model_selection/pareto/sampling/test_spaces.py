"""Spaces of parameters as unit cubes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skdptune.model_selection._space import SearchSpace

SPACE = {
    "rate": (0.1, 10.0),
    "penalty": (1e-4, 1e2, "log"),
    "depth": (1, 7),
    "lot": (8, 512, "log"),
    "kind": ["sgd", None, True, 1, [2]],
    "shift": stats.norm(3.0, 2.0),
    "count": stats.randint(2, 9),
}


@given(st.lists(st.floats(0.0, 1.0), min_size=len(SPACE), max_size=len(SPACE)))
def test_values_lie_in_their_domains_and_come_back(units: list[float]) -> None:
    space = SearchSpace(SPACE)
    params = space.from_unit(units)
    assert tuple(params) == space.names == tuple(SPACE)
    assert 0.1 <= params["rate"] <= 10.0
    assert 1e-4 <= params["penalty"] <= 1e2
    assert type(params["depth"]) is int and 1 <= params["depth"] <= 7
    assert type(params["lot"]) is int and 8 <= params["lot"] <= 512
    assert type(params["count"]) is int and 2 <= params["count"] <= 8
    again = space.from_unit(space.to_unit(params))
    for name in ("depth", "lot", "kind", "count"):
        assert again[name] == params[name]
        assert type(again[name]) is type(params[name])
    for name in ("rate", "penalty", "shift"):
        assert again[name] == pytest.approx(params[name], rel=1e-6)


@pytest.mark.parametrize(
    ("name", "unit", "value"),
    [
        ("rate", 0.5, 5.05),
        ("penalty", 0.5, 0.1),
        ("depth", 0.0, 1),
        ("depth", 1.0, 7),
        ("depth", 0.5, 4),
        ("kind", 0.19, "sgd"),
        ("kind", 0.99, [2]),
        ("shift", 0.5, 3.0),
        ("count", 0.5 / 7, 2),
    ],
)
def test_unit_number_means_a_value(name: str, unit: float, value: object) -> None:
    found = SearchSpace({name: SPACE[name]}).from_unit([unit])[name]
    assert found == (pytest.approx(value) if isinstance(value, float) else value)


def test_every_integer_is_drawn_equally_often() -> None:
    space, rng = SearchSpace({"depth": (1, 4)}), np.random.default_rng(0)
    drawn = [space.sample(rng)["depth"] for _ in range(4000)]
    counts = np.bincount(drawn, minlength=5)[1:]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_draws_follow_the_given_distribution() -> None:
    distribution, rng = stats.expon(loc=0.1, scale=2.0), np.random.default_rng(0)
    space = SearchSpace({"noise": distribution})
    drawn = [space.sample(rng)["noise"] for _ in range(1000)]
    assert stats.kstest(drawn, distribution.cdf).pvalue > 1e-3


def test_features_do_not_tell_values_apart_that_are_the_same() -> None:
    space = SearchSpace({"depth": (1, 4), "count": stats.randint(0, 4), "kind": ["a", "b", "c"]})
    same = space.features(np.array([[0.01, 0.01, 0.01], [0.24, 0.24, 0.3]]))
    assert same[0] == pytest.approx(same[1])
    kinds = space.features(np.array([[0.1, 0.1, unit] for unit in (0.1, 0.5, 0.9)]))
    distances = [np.linalg.norm(kinds[i] - kinds[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert distances == pytest.approx([1.0, 1.0, 1.0])


def test_grid_holds_both_ends_and_every_category() -> None:
    space = SearchSpace({"rate": (0.5, 2.0), "depth": (1, 2), "kind": ["a", "b"]})
    points = space.grid(3)
    assert len(points) == space.grid_size(3) == 3 * 2 * 2
    assert {point["rate"] for point in points} == {0.5, 1.25, 2.0}
    assert {point["depth"] for point in points} == {1, 2}
    assert {point["kind"] for point in points} == {"a", "b"}


def test_ends_are_what_was_given() -> None:
    space = SearchSpace({"rate": (0.1, 0.7, "log"), "share": (0.1, 0.7)})
    assert space.from_unit([0.0, 0.0]) == {"rate": 0.1, "share": 0.1}
    assert space.from_unit([1.0, 1.0]) == {"rate": 0.7, "share": 0.7}
    assert [point["rate"] for point in space.grid(2)] == [0.1, 0.1, 0.7, 0.7]


def test_a_column_of_numbers_is_categories() -> None:
    space = SearchSpace({"C": np.logspace(-1, 1, 3)})
    values = [space.from_unit([unit])["C"] for unit in (0.0, 0.5, 1.0)]
    assert values == [0.1, 1.0, 10.0]
    assert {type(value) for value in values} == {float}


def test_categories_may_be_arrays() -> None:
    space = SearchSpace({"weights": [np.zeros(2), np.ones(2)]})
    assert space.to_unit({"weights": np.ones(2)}) == pytest.approx([0.75])


def test_description_tells_spaces_apart_but_not_objects_addresses() -> None:
    assert SearchSpace({"a": (0, 1)}).describe() != SearchSpace({"a": (0.0, 1.0)}).describe()
    first, second = (SearchSpace({"a": [object(), 1]}).describe() for _ in range(2))
    assert first == second
    assert "norm(3.0, 2.0)" in SearchSpace(SPACE).describe()


def test_optuna_gets_every_value_back() -> None:
    distributions = pytest.importorskip("optuna").distributions
    space = SearchSpace(SPACE)
    params = space.sample(np.random.default_rng(1))
    stored = space.to_optuna(params)
    for name, distribution in space.distributions().items():
        assert isinstance(distribution, distributions.BaseDistribution)
        assert distribution._contains(distribution.to_internal_repr(stored[name]))
    assert space.from_optuna(stored) == pytest.approx(params)


@pytest.mark.parametrize(
    ("given_space", "kind", "words"),
    [
        ([("a", (0, 1))], TypeError, "param_space must be a mapping"),
        ({}, ValueError, "at least one parameter"),
        ({1: (0, 1)}, TypeError, "names must be strings; got 1"),
        ({"a": []}, ValueError, r"param_space\['a'\] must hold at least one category"),
        ({"a": (1, 1)}, ValueError, r"low < high; got \(1, 1\)"),
        ({"a": (2, 1)}, ValueError, "low < high"),
        ({"a": (0.0, np.inf)}, ValueError, "finite"),
        ({"a": (0.0, np.nan)}, ValueError, "finite"),
        ({"a": (0, 1, "log")}, ValueError, "low above 0"),
        ({"a": (1, 2, "linear")}, ValueError, "'log'"),
        ({"a": (1, 2, 3)}, ValueError, "Categories go into a list"),
        ({"a": ("x", "y")}, TypeError, "of numbers.*Categories go into a list"),
        ({"a": (False, True)}, TypeError, "of numbers"),
        ({"a": stats.norm}, TypeError, "frozen scipy distribution"),
        ({"a": stats.norm(0, -1)}, ValueError, "valid arguments"),
        ({"a": 3.0}, TypeError, "got 3.0"),
    ],
)
def test_bad_space_is_named(given_space: object, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        SearchSpace(given_space)
