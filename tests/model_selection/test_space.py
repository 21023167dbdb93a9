"""Spaces of parameters: as unit cubes, and in the forms of optuna and of the costs of fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skdptune.model_selection._space import AdaptiveSpace, SearchSpace

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
    for again in (
        space.from_unit(space.to_unit(params)),
        space.from_optuna(space.to_optuna(params)),
    ):
        for name in ("depth", "lot", "kind", "count"):
            assert again[name] == params[name]
            assert type(again[name]) is type(params[name])
        for name in ("rate", "penalty", "shift"):
            assert again[name] == pytest.approx(params[name], rel=1e-6)


def test_unit_numbers_mean_values() -> None:
    space = SearchSpace(SPACE)
    middle = space.from_unit([0.5, 0.5, 0.5, 0.5, 0.19, 0.5, 0.5 / 7])
    assert middle == pytest.approx(
        {"rate": 5.05, "penalty": 0.1, "depth": 4, "lot": 62, "kind": "sgd", "shift": 3.0}
        | {"count": 2}
    )
    # Ends are what was given, not its logarithm's exponential.
    ends = SearchSpace({"rate": (0.1, 0.7, "log"), "share": (0.1, 0.7), "depth": (1, 7)})
    assert ends.from_unit([0.0] * 3) == {"rate": 0.1, "share": 0.1, "depth": 1}
    assert ends.from_unit([1.0] * 3) == {"rate": 0.7, "share": 0.7, "depth": 7}


def test_description_tells_spaces_apart_but_not_objects_addresses() -> None:
    assert SearchSpace({"a": (0, 1)}).describe() != SearchSpace({"a": (0.0, 1.0)}).describe()
    first, second = (SearchSpace({"a": [object(), 1]}).describe() for _ in range(2))
    assert first == second
    assert "norm(3.0, 2.0)" in SearchSpace(SPACE).describe()


def test_bad_space_is_named() -> None:
    for given_space, words in (
        ([("a", (0, 1))], "param_space must be a mapping"),
        ({}, "at least one parameter"),
        ({1: (0, 1)}, "names must be strings; got 1"),
        ({"a": []}, r"param_space\['a'\] must hold at least one category"),
        ({"a": (1, 1)}, r"low < high; got \(1, 1\)"),
        ({"a": (0.0, np.nan)}, "finite"),
        ({"a": (0, 1, "log")}, "low above 0"),
        ({"a": (1, 2, 3)}, "'log'.*Categories go into a list"),
        ({"a": ("x", "y")}, "of numbers.*Categories go into a list"),
        ({"a": stats.norm}, "frozen scipy distribution"),
        ({"a": stats.norm(0, -1)}, "valid arguments"),
        ({"a": 3.0}, "got 3.0"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            SearchSpace(given_space)


class TestOptuna:
    """What optuna holds of a space, in a search of either kind."""

    def test_forms_of_a_parameter_of_an_adaptive_search(self) -> None:
        distributions = pytest.importorskip("optuna").distributions
        forms: list[tuple[Any, Any]] = [
            ((0.1, 10.0, "log"), distributions.FloatDistribution(0.1, 10.0, log=True)),
            ((1, 8), distributions.IntDistribution(1, 8)),
            (stats.uniform(1.0, 2.0), distributions.FloatDistribution(1.0, 3.0)),
            (stats.loguniform(0.1, 10.0), distributions.FloatDistribution(0.1, 10.0, log=True)),
            (stats.randint(1, 9), distributions.IntDistribution(1, 8)),
            (stats.norm(), distributions.FloatDistribution(0.0, 1.0)),
            (distributions.FloatDistribution(0.1, 1.0, log=True),) * 2,
            (distributions.IntDistribution(1, 8),) * 2,
            (
                distributions.IntDistribution(2, 8, step=3),
                distributions.CategoricalDistribution([2, 5, 8]),
            ),
            (["a", "b"], distributions.CategoricalDistribution(["a", "b"])),
            (np.array([0.1, 1.0]), distributions.CategoricalDistribution([0.1, 1.0])),
            # What a storage cannot hold, or tell apart, is kept by its index.
            ([1, True], distributions.CategoricalDistribution([0, 1])),
            ([(1,), (2,)], distributions.CategoricalDistribution([0, 1])),
        ]
        rng = np.random.RandomState(0)
        for given_form, expected in forms:
            space = AdaptiveSpace({"a": given_form})
            assert space.distributions() == {"a": expected}
            drawn = space.costed()[0]["a"]
            for _ in range(5):
                value = drawn.rvs(rng) if hasattr(drawn, "rvs") else drawn[rng.randint(len(drawn))]
                known = space.from_optuna(space.to_optuna({"a": value}))["a"]
                assert type(known) is type(value)
                assert known == (pytest.approx(value) if isinstance(value, float) else value)
                assert space.holds({"a": value})

    def test_what_is_outside_is_refused(self) -> None:
        space = AdaptiveSpace(
            {"kind": ["a", "b", None], "flag": [True, False], "rate": (0.1, 1.0), "n": (1, 8)}
        )
        inside = {"kind": None, "flag": True, "rate": 0.5, "n": 2}
        assert space.holds(inside) and not space.holds({"kind": "a"})
        for name, value in (
            *(("kind", "c"), ("flag", 1), ("rate", 2.0), ("rate", "x"), ("n", 2.5), ("n", 9)),
        ):
            with pytest.raises(ValueError, match=rf"params\['{name}'\] must be in param_space"):
                space.check({name: value})
            assert not space.holds({**inside, name: value})
        with pytest.raises(ValueError, match=r"which has \['flag', 'kind', 'n', 'rate'\]; got 'o"):
            space.check({"other": 1})

    @pytest.mark.parametrize("bad", [{}, {"a": []}, {"a": (2.0, 1.0)}, {"a": "x"}, {3: [1]}])
    def test_bad_spaces_are_refused(self, bad: Any) -> None:
        for space in (bad, [bad], [{"a": [1]}, bad]):
            with pytest.raises((TypeError, ValueError), match="param_space"):
                AdaptiveSpace(space)
        for space in ([], [[bad]], "a"):
            with pytest.raises(TypeError, match="param_space must be a dict"):
                AdaptiveSpace(space)

    def test_each_dict_of_a_list_has_its_own_parameters(self) -> None:
        listed = [{"kind": ["a"], "rate": (0.1, 1.0)}, {"kind": ["b"], "n": (1, 8)}]
        space = AdaptiveSpace(listed)
        optuna = pytest.importorskip("optuna")
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(n_startup_trials=5, seed=0))
        drawn = []
        for number in range(20):
            trial = study.ask()
            drawn.append(space.suggest(trial))
            assert space.holds(drawn[-1])
            assert space.from_optuna(trial.params) == drawn[-1]
            restored = space.from_optuna(space.to_optuna(drawn[-1]))
            assert restored == pytest.approx(drawn[-1])
            study.tell(trial, float(number))
        assert {tuple(params) for params in drawn} == {("kind", "rate"), ("kind", "n")}
        assert {tuple(params) for params in space.costed()} == {("kind", "rate"), ("kind", "n")}
        # Values of two dicts do not mix, and a part means the first dict that has it.
        assert not space.holds({"kind": "a", "n": 2})
        assert set(space.from_optuna(space.to_optuna({"n": 2}))) == {"n"}
        with pytest.raises(ValueError, match=r"params\['n'\] must be in param_space"):
            space.check({"kind": "b", "n": 9})
        known = {"kind": "b", "n": 3, "rate": 0.5}
        assert space.own(known) == {"kind": "b", "n": 3}
        assert space.own({**known, "kind": "c"}) is None
        assert space.describe() != AdaptiveSpace(listed[::-1]).describe()
