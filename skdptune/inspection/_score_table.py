"""Structure of a list of candidates: which parameters vary, and whether they form a grid."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skdptune._formatting import shown, shown_names
from skdptune._validation import check_kind

# Characters of a value that fit below an axis.
_LONGEST = 16
# Smallest ratio of the largest to the smallest value for a logarithmic axis.
_LOG_RANGE = 20.0
# Largest number of lines that are distinguishable in one plot.
_MOST_LINES = 7


class _Absent:
    """Placeholder for the value of a parameter that a candidate does not have."""

    def __repr__(self) -> str:
        return "not set"


ABSENT = _Absent()


@dataclass(frozen=True)
class ScoreTable:
    """Candidates, arranged by their varying parameters.

    Attributes
    ----------
    candidates : tuple of dict
    values : dict of str to list
        The values of each varying parameter: first numbers in increasing order, then others.
    outside : int or None
        Index of the candidate outside of the grid that all others form, if there is one. A
        search's first candidate may be: it has the estimator's own values.
    is_grid : bool
        Whether each combination of values occurs once, not counting the candidate in `outside`.
    """

    candidates: tuple[Mapping[str, Any], ...]
    values: dict[str, list[Any]]
    outside: int | None
    is_grid: bool

    @classmethod
    def of(cls, candidates: Sequence[Mapping[str, Any]]) -> ScoreTable:
        """Create the table from a list of candidates."""
        listed = tuple(candidates)
        whole = _values(listed)
        if len(listed) > 2 and (not _is_product(listed, whole) or _is_odd(listed, whole)):
            inner = _values(listed[1:])
            if inner and _is_product(listed[1:], inner):
                return cls(listed, inner, 0, True)
        return cls(listed, whole, None, bool(whole) and _is_product(listed, whole))

    @property
    def names(self) -> list[str]:
        """The varying parameters, sorted by decreasing number of values."""
        return sorted(self.values, key=lambda name: (-len(self.values[name]), name))

    def place(self, candidate: int, name: str) -> int | None:
        """Return the index of a candidate's value among the values of a parameter, or None."""
        found = key_of(self.candidates[candidate].get(name, ABSENT))
        keys = [key_of(value) for value in self.values[name]]
        return keys.index(found) if found in keys else None

    def beside(self, candidate: int, names: Sequence[str]) -> list[int]:
        """Return candidates of the grid that agree with one except in the given parameters."""
        fixed = [name for name in self.values if name not in names]
        return [
            other
            for other in range(len(self.candidates))
            if other != self.outside
            and all(self.place(other, name) == self.place(candidate, name) for name in fixed)
        ]


def key_of(value: Any) -> tuple[str, Any]:
    """Return a key that is equal for equal values of any type."""
    if _is_number(value):
        return "number", float(value)
    return type(value).__name__, repr(value)


def shown_value(value: Any) -> str:
    """Return a value as text for an axis."""
    if _is_number(value):
        return f"{float(value):.4g}" if not isinstance(value, numbers.Integral) else str(value)
    text = type(value).__name__ if hasattr(value, "get_params") else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def shown_candidate(candidate: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return some parameters of a candidate as text."""
    return ", ".join(f"{name} = {shown_value(candidate.get(name, ABSENT))}" for name in names)


def as_numbers(values: Sequence[Any]) -> list[float] | None:
    """Return values as floats, or None if any is not a number."""
    return [float(value) for value in values] if all(map(_is_number, values)) else None


def wants_log(values: Sequence[float]) -> bool:
    """Return whether numbers are best shown on a logarithmic axis."""
    return min(values) > 0.0 and max(values) >= _LOG_RANGE * min(values)


def checked_params(params: Any, table: ScoreTable) -> list[str]:
    """Return the parameters to draw as a list, empty if none are given, or raise."""
    if params is None:
        return []
    check_kind(params, name="params", kind=(str, list, tuple), domain="a name or a list of names")
    given = [params] if isinstance(params, str) else list(params)
    for place, name in enumerate(given):
        if name not in table.values:
            varying = shown_names(table.values) or "none"
            got = shown(params) if isinstance(params, str) else f"another in place {place}"
            raise ValueError(f"params must be among those that vary, {varying}; got {got}.")
    if not 1 <= len(given) <= 2 or len(set(given)) < len(given):
        raise ValueError(f"params must be one or two different parameters; got {shown(given)}.")
    return given


def kind_of(table: ScoreTable, names: Sequence[str]) -> str:
    """Return the kind of plot that suits a table, for given or for all parameters."""
    if table.is_grid:
        return "heatmap" if len(names or table.values) == 2 else "slices"
    wanted = names or [name for name in table.names if _is_range(table, name)]
    return "slices" if len(wanted) == 1 else "candidates"


def _is_range(table: ScoreTable, name: str) -> bool:
    """Return whether more than half of the candidates have different numbers for a parameter."""
    values = table.values[name]
    real = [value for value in values if as_numbers([value]) is not None]
    return len(real) > len(table.candidates) / 2 and len(values) - len(real) <= 1


def shown_params(kind: str, names: list[str], table: ScoreTable) -> list[str]:
    """Return the parameters shown by a kind of plot, or raise if they do not suit it."""
    if kind == "candidates":
        return names
    if kind == "heatmap":
        names = names or table.names[:2]
        if len(names) != 2 or not table.is_grid:
            raise ValueError(
                "kind must be 'slices' or 'candidates' if the candidates are not a grid of two "
                "or more parameters; got 'heatmap'."
            )
        return names
    if not table.values:
        raise ValueError("kind must be 'candidates' if no parameter varies; got 'slices'.")
    if names:
        return names
    fitting = [n for n in table.names[1:] if len(table.values[n]) <= _MOST_LINES]
    return [table.names[0], *(fitting[:1] if table.is_grid else [])]


def _is_number(value: Any) -> bool:
    # True and False are categories.
    is_real = isinstance(value, numbers.Real) and type(value).__name__ not in ("bool", "bool_")
    return is_real and math.isfinite(value)


def _values(candidates: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the distinct values of all parameters that vary."""
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
    """Return whether there is one varying parameter, and only its first value is not a number."""
    if len(values) != 1:
        return False
    ((name, _),) = values.items()
    first, *others = (each.get(name, ABSENT) for each in candidates)
    return not _is_number(first) and all(map(_is_number, others))
