"""The order in a list of candidates: which parameters vary, and whether they form a grid."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Letters of a value that fit below an axis.
_LONGEST = 16
# From the least to the largest value of a logarithmic axis, at least.
_LOG_RANGE = 20.0


class _Absent:
    """Stands for the value of a parameter that a candidate does not have."""

    def __repr__(self) -> str:
        return "not set"


ABSENT = _Absent()


@dataclass(frozen=True)
class ScoreTable:
    """Candidates by their varying parameters.

    Attributes
    ----------
    candidates : tuple of dict
    values : dict of str to list
        The values of each varying parameter, numbers by size and before all else.
    outside : int or None
        The one candidate that is not of the grid that all others form, as a search's first one
        may be: the estimator's own values.
    is_grid : bool
        Whether each combination of values is there once, but for what is outside.
    """

    candidates: tuple[Mapping[str, Any], ...]
    values: dict[str, list[Any]]
    outside: int | None
    is_grid: bool

    @classmethod
    def of(cls, candidates: Sequence[Mapping[str, Any]]) -> ScoreTable:
        """Return the order in a list of candidates."""
        listed = tuple(candidates)
        whole = _values(listed)
        if len(listed) > 2 and (not _is_product(listed, whole) or _is_odd(listed, whole)):
            inner = _values(listed[1:])
            if inner and _is_product(listed[1:], inner):
                return cls(listed, inner, 0, True)
        return cls(listed, whole, None, bool(whole) and _is_product(listed, whole))

    @property
    def names(self) -> list[str]:
        """The varying parameters, those with the most values first."""
        return sorted(self.values, key=lambda name: (-len(self.values[name]), name))

    def place(self, candidate: int, name: str) -> int | None:
        """Return the place of a candidate's value among those of a parameter."""
        found = key_of(self.candidates[candidate].get(name, ABSENT))
        keys = [key_of(value) for value in self.values[name]]
        return keys.index(found) if found in keys else None

    def beside(self, candidate: int, names: Sequence[str]) -> list[int]:
        """Return the candidates of the grid that differ from one in some parameters at most."""
        fixed = [name for name in self.values if name not in names]
        return [
            other
            for other in range(len(self.candidates))
            if other != self.outside
            and all(self.place(other, name) == self.place(candidate, name) for name in fixed)
        ]


def key_of(value: Any) -> tuple[str, Any]:
    """Return what is equal for equal values, of any kind."""
    if _is_number(value):
        return "number", float(value)
    return type(value).__name__, repr(value)


def shown_value(value: Any) -> str:
    """Return a value as it stands below an axis."""
    if _is_number(value):
        return f"{float(value):.4g}" if not isinstance(value, numbers.Integral) else str(value)
    text = type(value).__name__ if hasattr(value, "get_params") else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def shown_candidate(candidate: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return some parameters of a candidate, by name."""
    return ", ".join(f"{name} = {shown_value(candidate.get(name, ABSENT))}" for name in names)


def as_numbers(values: Sequence[Any]) -> list[float] | None:
    """Return values as numbers, or None where one of them is not."""
    return [float(value) for value in values] if all(map(_is_number, values)) else None


def wants_log(values: Sequence[float]) -> bool:
    """Return whether numbers are best shown on a logarithmic axis."""
    return min(values) > 0.0 and max(values) >= _LOG_RANGE * min(values)


def _is_number(value: Any) -> bool:
    # True and False are categories.
    is_real = isinstance(value, numbers.Real) and type(value).__name__ not in ("bool", "bool_")
    return is_real and math.isfinite(value)


def _values(candidates: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of parameters that vary, each once."""
    names = dict.fromkeys(name for each in candidates for name in each)
    found = {}
    for name in names:
        values = {key_of(value): value for value in (c.get(name, ABSENT) for c in candidates)}
        if len(values) > 1:
            real = sorted(key for key in values if key[0] == "number")
            other = [key for key in values if key[0] != "number"]
            found[name] = [values[key] for key in [*real, *other]]
    return found


def _is_product(candidates: Sequence[Mapping[str, Any]], values: dict[str, list[Any]]) -> bool:
    combinations = {
        tuple(key_of(each.get(name, ABSENT)) for name in values) for each in candidates
    }
    size = math.prod(len(found) for found in values.values())
    return len(combinations) == len(candidates) == size


def _is_odd(candidates: Sequence[Mapping[str, Any]], values: dict[str, list[Any]]) -> bool:
    """Return whether of a single parameter's values the first alone is no number."""
    if len(values) != 1:
        return False
    ((name, _),) = values.items()
    first, *others = (each.get(name, ABSENT) for each in candidates)
    return not _is_number(first) and all(map(_is_number, others))
