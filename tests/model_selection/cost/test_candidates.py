"""What a search may try."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.pipeline import Pipeline, make_pipeline

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


@pytest.mark.parametrize("values", [[1.0], uniform()], ids=["list", "distribution"])
@pytest.mark.parametrize("name", ["quality", "scriptd__quality", "scripted__qualty"])
def test_the_parameter_that_was_meant_is_named(name: str, values: object) -> None:
    # scikit-learn's own message shows the whole pipeline, and no parameter of its steps.
    with pytest.raises(ValueError, match="must name parameters of Pipeline") as refusal:
        drawn({name: values}).check_names(make_pipeline(Scripted()))
    assert str(refusal.value).endswith("Did you mean 'scripted__quality'?")


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


SUGGESTION = {"a": [None, 1, 2], "b": ["own"], "c": [0.5, 0.25]}
DEFAULT = {"a": None, "b": "own", "c": 0.5}


def test_a_suggestion_is_tried_one_parameter_at_a_time() -> None:
    found = Candidates.suggested(SUGGESTION, name="param_grid", drawn=False)
    assert found.default == DEFAULT
    assert list(found.grid()) == [
        DEFAULT,
        {**DEFAULT, "a": 1},
        {**DEFAULT, "a": 2},
        {**DEFAULT, "c": 0.25},
    ]
    assert grid({"a": [1]}).default is None


def test_suggested_draws_are_independent_and_a_third_is_the_default() -> None:
    """Theorem F12."""
    candidates = Candidates.suggested(SUGGESTION, name="param_distributions", drawn=True)
    seeds = np.random.SeedSequence(0).spawn(3000)
    found = candidates.draw_each(seeds)
    listed = list(candidates.grid())
    shares = [found.count(one) / len(found) for one in listed]
    assert sum(shares) == 1.0
    np.testing.assert_allclose(shares, [1 / 3, 2 / 9, 2 / 9, 2 / 9], atol=0.03)
    # A draw follows from its own seed alone.
    assert candidates.draw_each(seeds[100:103]) == found[100:103]
    # Of pairs, as many as if they were independent.
    pairs = sum(x == y == DEFAULT for x, y in zip(found[::2], found[1::2], strict=True))
    assert abs(pairs / 1500 - 1 / 9) < 0.03


def test_a_suggestion_of_present_values_alone_is_always_the_default() -> None:
    candidates = Candidates.suggested({"a": [3]}, name="param_distributions", drawn=True)
    assert candidates.draw_each(np.random.SeedSequence(0).spawn(5)) == [{"a": 3}] * 5


class Lenient:
    """Takes any parameter, and names one."""

    def __init__(self, named: float = 0.0) -> None:
        self.named = named

    def get_params(self, deep: bool = True) -> dict[str, float]:
        return {"named": self.named}

    def set_params(self, **params: float) -> Lenient:
        if any(name.startswith("bad") for name in params):
            raise ValueError("bad")
        vars(self).update(params)
        return self


def test_names_are_those_that_set_params_takes() -> None:
    grid({"other": [1.0]}).check_names(Lenient())
    drawn({"other": uniform()}).check_names(Lenient())
    with pytest.raises(ValueError, match="param_distributions must name .* got 'bad'"):
        drawn({"bad": uniform()}).check_names(Lenient())
    with pytest.raises(ValueError, match="bad"):
        grid({"bad": [1.0]}).check_names(Lenient())


def test_steps_that_are_searched_over() -> None:
    own, first, second = Scripted(0.1), Scripted(0.2), Scripted(0.3)
    pipeline = Pipeline([("before", None), ("last", own)])

    def found(space: object) -> list[tuple[object, float]]:
        made = grid(space).with_steps(pipeline)
        return [(each["before"], each["last"].quality) for each in made]

    assert found({"last__quality": [0.5]}) == [(None, 0.1)]
    assert found({"last": [first, second], "last__quality": [0.5]}) == [(None, 0.2), (None, 0.3)]
    both = {"before": ["passthrough", None], "last": [first, second]}
    assert {place for place, _ in found(both)} == {"passthrough", None}
    assert {quality for _, quality in found(both)} == {0.2, 0.3}
    assert found([{"last": [second]}, {"last__quality": [0.5]}]) == [(None, 0.3), (None, 0.1)]
    assert own.quality == 0.1 and pipeline["last"] is own
