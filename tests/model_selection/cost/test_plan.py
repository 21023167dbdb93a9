"""Plans are kept by the content of what they follow from."""

from __future__ import annotations

from skdptune.model_selection._cost._plan import PlanCache, named_in


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
    assert named_in([Named]) == [id(Named)]
    assert named_in([1, "a"]) == []
    assert id(make) in named_in({"f": make})
