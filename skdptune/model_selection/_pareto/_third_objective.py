"""The third objective of a Pareto search beside epsilon and error: the time, or a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TIME = "time"
# Names of other columns of the results.
_RESERVED = frozenset(
    {"", "epsilon", "error", "params", "number", "study_epsilon", TIME}
    | {"spread", "utilities", "seconds", "failure"}
)


@dataclass(frozen=True)
class ThirdObjective:
    """A third objective, to be minimised.

    Attributes
    ----------
    name : str
        Its column in the results.
    function : callable or None
        None is the time of an evaluation.
    """

    name: str
    function: Callable[..., Any] | None


def check_third_objective(given: Any, arguments: str) -> ThirdObjective | None:
    """Return a third objective, None for None, or raise.

    Parameters
    ----------
    given : None, "time" or (str, callable)
    arguments : str
        Of the function, for messages.
    """
    if given is None:
        return None
    if isinstance(given, str) and given == TIME:
        return ThirdObjective(TIME, None)
    is_pair = isinstance(given, tuple) and len(given) == 2
    if not (is_pair and isinstance(given[0], str) and callable(given[1])):
        raise TypeError(
            "third_objective must be None, 'time' or a tuple of a name and a function of "
            f"{arguments}; got {given!r:.60}."
        )
    if given[0] in _RESERVED:
        raise ValueError(
            "third_objective must have a name that no other column of the results has; got "
            f"{given[0]!r}."
        )
    return ThirdObjective(*given)
