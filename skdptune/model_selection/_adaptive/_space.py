"""The space of an adaptive search, as optuna and as the costs of fits need it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from skdptune.model_selection._cost import is_finite
from skdptune.model_selection._pareto import SearchSpace

_PLAIN = (str, bool, int, float, type(None))
# scipy's names of distributions that optuna has, too.
_INTERVALS = {"uniform": (), "loguniform": ("log",), "reciprocal": ("log",), "randint": ()}


class Drawn:
    """Values of one parameter, drawn at random.

    Parameters
    ----------
    space : SearchSpace
        Of this parameter alone.
    """

    def __init__(self, space: SearchSpace) -> None:
        self._space = space

    def rvs(self, random_state: np.random.RandomState) -> Any:
        """Return one value."""
        (value,) = self._space.from_unit([random_state.random_sample()]).values()
        return value


class AdaptiveSpace:
    """The parameters that an adaptive search may choose.

    Parameters
    ----------
    param_space : mapping of str
        For each parameter a list or array, a tuple ``(low, high)`` or ``(low, high, "log")``, a
        frozen scipy distribution, or an optuna distribution.
    """

    def __init__(self, param_space: Mapping[str, Any]) -> None:
        if not isinstance(param_space, Mapping):
            raise TypeError(
                "param_space must be a dict from parameter names to values; got "
                f"{param_space!r:.60}."
            )
        for name, given in param_space.items():
            if is_finite(given) and len(given) == 0:
                raise ValueError(f"param_space[{name!r}] must not be empty; got {given!r}.")
        param_space = {name: _translated(given) for name, given in param_space.items()}
        self._space = SearchSpace(param_space)
        self._each = {name: SearchSpace({name: given}) for name, given in param_space.items()}
        self._listed = {
            name: given.tolist() if isinstance(given, np.ndarray) else list(given)
            for name, given in param_space.items()
            if is_finite(given) and not isinstance(given, tuple)
        }
        # Others are kept by their index: storages hold no objects, and take 1 for True.
        self._words = {name for name, values in self._listed.items() if _are_distinct(values)}

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names."""
        return self._space.names

    def costed(self) -> dict[str, Any]:
        """Return lists and what draws at random, by which the costs of fits are found."""
        return {name: self._listed.get(name, Drawn(one)) for name, one in self._each.items()}

    def distributions(self) -> dict[str, Any]:
        """Return the optuna distributions of the parameters."""
        from optuna.distributions import CategoricalDistribution

        found = self._space.distributions()
        return {
            name: CategoricalDistribution(self._listed[name]) if name in self._words else one
            for name, one in found.items()
        }

    def from_optuna(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that optuna represents."""
        return {name: self._from_optuna(name, value) for name, value in params.items()}

    def _from_optuna(self, name: str, value: Any) -> Any:
        return value if name in self._words else self._each[name].from_optuna({name: value})[name]

    def to_optuna(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return optuna's representation of some of the parameters, or raise."""
        return {name: self._to_optuna(name, value) for name, value in params.items()}

    def _to_optuna(self, name: str, value: Any) -> Any:
        if name not in self._each:
            raise ValueError(
                f"params must be of param_space, which has {sorted(self._each)}; got {name!r}."
            )
        try:
            found = self._each[name].to_optuna({name: value})[name]
            if isinstance(found, np.generic):
                found = found.item()
            inside = self._each[name].contains(name, found)
            if inside and name not in self._listed:
                # What the space would not draw, such as 2.5 where it has integers, is outside.
                inside = math.isclose(
                    float(self._from_optuna(name, found)), float(value), rel_tol=1e-6
                )
        except (StopIteration, TypeError, ValueError):
            inside = False
        if not inside:
            raise ValueError(
                f"params[{name!r}] must be in param_space[{name!r}]; got {value!r:.60}."
            )
        return self._listed[name][int(found)] if name in self._words else found

    def holds(self, params: Mapping[str, Any]) -> bool:
        """Return whether all parameters have values that the space holds."""
        try:
            return set(self.to_optuna(params)) == set(self.names)
        except ValueError:
            return False

    def describe(self) -> str:
        """Return a description that is the same in every process."""
        return self._space.describe()


def _translated(given: Any) -> Any:
    """Return what a distribution is as a tuple or a list, where it is one."""
    if type(given).__module__ == "optuna.distributions":
        return _of_optuna(given)
    name = getattr(getattr(given, "dist", None), "name", None)
    if name not in _INTERVALS or (_INTERVALS[name] and (len(given.args) != 2 or given.kwds)):
        return given
    low, high = (float(end) for end in given.support())
    if name == "randint":
        low, high = int(low), int(high)
    is_interval = np.isfinite([low, high]).all() and low < high
    return (low, high, *_INTERVALS[name]) if is_interval else given


def _of_optuna(given: Any) -> Any:
    if hasattr(given, "choices"):
        return list(given.choices)
    low, high, step = given.low, given.high, given.step
    if step not in (None, 1) or low == high:
        count = 1 if low == high else int(round((high - low) / step)) + 1
        return [low + place * step if place else low for place in range(count)]
    return (low, high, "log") if given.log else (low, high)


def _are_distinct(values: list[Any]) -> bool:
    """Return whether values are plain, and none equals another."""
    if not all(type(value) in _PLAIN for value in values):
        return False
    return len(set(values)) == len(values) and not any(value != value for value in values)
