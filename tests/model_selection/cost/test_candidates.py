"""What a search may try."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import uniform

from skdptune.model_selection._cost._candidates import Candidates, is_finite
from tests.model_selection.learners import Scripted


def drawn(spaces: object) -> Candidates:
    return Candidates(spaces, name="param_distributions", drawn=True)


def grid(spaces: object) -> Candidates:
    return Candidates(spaces, name="param_grid", drawn=False)


@pytest.mark.parametrize(
    ("spaces", "kind", "words"),
    [
        ([], TypeError, "param_grid must be a dict from parameter names"),
        (3, TypeError, "param_grid must be a dict from parameter names"),
        ("quality", TypeError, "param_grid must be a dict from parameter names"),
        ([3], TypeError, "param_grid must hold dicts; got int"),
        ({3: [1]}, TypeError, "param_grid must have names as keys; got 3"),
        ({"quality": []}, ValueError, r"param_grid\['quality'\] must not be empty"),
        ({"quality": 0.5}, TypeError, r"param_grid\['quality'\] must be a list; got float"),
        ({"quality": "abc"}, TypeError, r"param_grid\['quality'\] must be a list; got str"),
        ({"quality": np.ones((2, 2))}, TypeError, "must be a list; got ndarray"),
        ({"quality": uniform()}, TypeError, "DPRandomSearchCV draws from distributions"),
    ],
)
def test_bad_spaces_are_named(spaces: object, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        grid(spaces)


def test_distribution_without_rvs_is_refused() -> None:
    with pytest.raises(TypeError, match="a list or a distribution with rvs; got object"):
        drawn({"quality": object()})


def test_unknown_names_are_listed() -> None:
    with pytest.raises(ValueError, match="qualty"):
        grid({"qualty": [1]}).check_names(Scripted())
    with pytest.raises(ValueError, match="param_distributions must name .* got 'qualty'"):
        drawn({"qualty": uniform()}).check_names(Scripted())


def test_grid_is_the_product_of_its_lists() -> None:
    found = list(grid([{"a": [1, 2], "b": [3]}, {"c": [4]}]).grid())
    assert found == [{"a": 1, "b": 3}, {"a": 2, "b": 3}, {"c": 4}]


def test_draws_are_with_replacement_and_uniform() -> None:
    random = np.random.RandomState(0)
    found = [drawn({"a": ["x", "y"]}).draw(random)["a"] for _ in range(400)]
    assert 150 < found.count("x") < 250


def test_draws_choose_among_the_spaces() -> None:
    random = np.random.RandomState(0)
    found = [frozenset(drawn([{"a": [1]}, {"b": uniform()}]).draw(random)) for _ in range(50)]
    assert set(found) == {frozenset("a"), frozenset("b")}


def test_combinations_up_to_a_number() -> None:
    space = {"a": [1, 2], "b": [3, 4], "c": uniform()}
    candidates = drawn(space)
    assert candidates.combinations(space, ["a", "b"], 4) == [
        {"a": 1, "b": 3},
        {"a": 1, "b": 4},
        {"a": 2, "b": 3},
        {"a": 2, "b": 4},
    ]
    assert candidates.combinations(space, ["a", "b"], 3) is None
    assert candidates.combinations(space, ["c"], 99) is None
    assert candidates.combinations(space, [], 1) == [{}]


def test_what_is_listed() -> None:
    assert is_finite([1]) and is_finite((1,)) and is_finite(np.ones(2)) and is_finite(range(3))
    assert not is_finite("ab") and not is_finite(uniform()) and not is_finite(np.ones((1, 1)))
