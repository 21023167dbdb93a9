"""The third objective: the time, a named function, or an error."""

from __future__ import annotations

from typing import Any

import pytest

from skdptune.model_selection._pareto._families import ThirdObjective, check_third_objective


def test_third_objective_is_the_time_or_a_named_function() -> None:
    assert check_third_objective(None, "") is None
    assert check_third_objective("time", "") == ThirdObjective("time", None)
    assert check_third_objective(("size", len), "") == ThirdObjective("size", len)


@pytest.mark.parametrize("given", ["size", ("size",), (len, "size"), ["size", len], 3, ("a", 3)])
def test_other_kinds_are_refused(given: Any) -> None:
    words = r"third_objective must be None, 'time' or a tuple .* function of \(x, y\); got"
    with pytest.raises(TypeError, match=words):
        check_third_objective(given, "(x, y)")


@pytest.mark.parametrize("name", ["", "epsilon", "error", "time", "params", "failure"])
def test_names_of_other_columns_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"must have a name that no other.*got '{name}'"):
        check_third_objective((name, len), "(x, y)")
