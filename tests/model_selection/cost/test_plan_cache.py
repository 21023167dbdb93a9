"""Plans are cached by the content of what they follow from."""

from __future__ import annotations

from skdptune.model_selection._cost._fit_costs import PlanCache, _named_in, plan_key


def test_the_last_few_are_kept() -> None:
    cache = PlanCache()
    for number in range(40):
        cache.put(str(number), number)  # type: ignore[arg-type]
    assert cache.get("39") == 39
    assert cache.get("0") is None


def test_what_has_no_key_is_not_kept() -> None:
    cache = PlanCache()
    cache.put(None, 1)  # type: ignore[arg-type]
    assert cache.get(None) is None


def make(value: int) -> object:
    def function() -> int:
        return value

    return function


class Named:
    """Pickled by name."""


def test_named_things_are_noted_by_identity() -> None:
    assert _named_in([Named]) == [id(Named)]
    assert _named_in([1, "a"]) == []
    assert id(make) in _named_in({"f": make})


def test_keys_are_of_content_and_of_identity_where_names_can_be_taken_anew() -> None:
    assert plan_key(1, "a") == plan_key(1, "a") != plan_key(1, "b")
    assert plan_key(lambda: 1) is None
