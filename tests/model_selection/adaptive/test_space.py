"""Spaces in the words of optuna and of the costs of fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from skdptune.model_selection._space import AdaptiveSpace

distributions = pytest.importorskip("optuna").distributions

WORDS: dict[str, Any] = {"kind": ["a", "b", None], "flag": [True, False]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((0.1, 10.0), distributions.FloatDistribution(0.1, 10.0)),
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
    ],
)
def test_forms_of_a_parameter(given: Any, expected: Any) -> None:
    space = AdaptiveSpace({"a": given})
    assert space.distributions() == {"a": expected}
    drawn = space.costed()["a"]
    rng = np.random.RandomState(0)
    for _ in range(5):
        value = drawn.rvs(rng) if hasattr(drawn, "rvs") else drawn[rng.randint(len(drawn))]
        known = space.from_optuna(space.to_optuna({"a": value}))["a"]
        assert type(known) is type(value)
        assert known == (pytest.approx(value) if isinstance(value, float) else value)
        assert space.holds({"a": value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("kind", "c"), ("flag", 1), ("rate", 2.0), ("rate", "x"), ("n", 2.5), ("n", 9)],
)
def test_what_is_outside_is_refused(name: str, value: Any) -> None:
    space = AdaptiveSpace({**WORDS, "rate": (0.1, 1.0), "n": (1, 8)})
    with pytest.raises(ValueError, match=rf"params\['{name}'\] must be in param_space"):
        space.to_optuna({name: value})
    assert not space.holds({"kind": "a", "flag": True, "rate": 0.5, "n": 2, name: value})
    assert space.holds({"kind": None, "flag": True, "rate": 0.5, "n": 2})
    assert not space.holds({"kind": "a"})


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"which has \['flag', 'kind'\]; got 'other'"):
        AdaptiveSpace(WORDS).to_optuna({"other": 1})


@pytest.mark.parametrize("given", [{}, {"a": []}, {"a": (2.0, 1.0)}, {"a": "x"}, {3: [1]}])
def test_bad_spaces_are_refused(given: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="param_space"):
        AdaptiveSpace(given)
    with pytest.raises(TypeError, match="param_space must be a dict"):
        AdaptiveSpace([WORDS])  # type: ignore[arg-type]
