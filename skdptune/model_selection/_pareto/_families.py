"""The estimators of a Pareto search and their spaces: one estimator, or several families."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdptune._formatting import shown, shown_names
from skdptune.base import RESERVED_PARAMETERS, cost_parameters
from skdptune.model_selection._pareto._sampling import SearchSpace

# Name of the parameter that selects the family.
FAMILY = "estimator"


class Families:
    """Estimators with their spaces, as one search space.

    The parameters of a single estimator keep their names. Of several families the parameter
    ``"estimator"`` selects one, and the names of parameters have their family's as a prefix.

    Parameters
    ----------
    estimator : estimator or list of (str, estimator)
    param_space : dict
        The space of the estimator, or a dict from the families' names to their spaces.
    """

    def __init__(self, estimator: Any, param_space: Any) -> None:
        self.is_single = not isinstance(estimator, list)
        if self.is_single:
            self.members = {"": _checked(estimator, "estimator")}
            spaces = {"": param_space}
        else:
            self.members, spaces = _named(estimator, param_space)
        self._spaces = spaces
        flat: dict[str, Any] = {} if self.is_single else {FAMILY: list(self.members)}
        self._names: dict[str, tuple[str, ...]] = {}
        for name, member in self.members.items():
            _check_names(name, member, spaces[name])
            self._names[name] = tuple(spaces[name])
            flat |= {self._flat(name, key): values for key, values in spaces[name].items()}
        self.space = SearchSpace(flat)

    def _flat(self, family: str, key: str) -> str:
        return key if self.is_single else f"{family}__{key}"

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the estimators."""
        return iter(self.members.values())

    @property
    def steps(self) -> Iterator[Any]:
        """The estimators that are values of parameters."""
        for dimension in self._spaces.values():
            for values in dimension.values():
                if isinstance(values, list | tuple):
                    yield from (value for value in values if hasattr(value, "get_params"))

    @property
    def variants(self) -> Iterator[Any]:
        """The estimators, and each with one listed value of one parameter at a time."""
        for name, member in self.members.items():
            yield member
            for key, values in self._spaces[name].items():
                # A tuple is a range, of numbers that name no other kind of guarantee.
                for value in values if isinstance(values, list) else ():
                    yield clone(member).set_params(**{key: value})

    def split(self, params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the selected family's name, and the parameters of its estimator."""
        family = "" if self.is_single else params[FAMILY]
        return family, {key: params[self._flat(family, key)] for key in self._names[family]}

    def selected(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters without those of families that were not selected."""
        if self.is_single:
            return dict(params)
        family, own = self.split(params)
        return {FAMILY: family, **{self._flat(family, key): own[key] for key in own}}

    def without_unselected(self, table: Any) -> Any:
        """Return a table of evaluations without parameters of families that were not selected."""
        if self.is_single:
            return table
        rows = [self.selected(params) for params in table["params"]]
        changed = table.copy()
        changed["params"] = _objects(rows)
        for name in self.space.names:
            changed[f"param_{name}"] = _objects([row.get(name) for row in rows])
        return changed

    @property
    def costs_differ(self) -> bool:
        """Whether fits of different parameters may cost differently."""
        if len(self.members) > 1:
            return True
        ((family, estimator),) = self.members.items()
        names = list(self._names[family])
        return bool(cost_parameters(estimator, names)) or _has_steps(estimator, names)


def _objects(values: list[Any]) -> NDArray[np.object_]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _has_steps(estimator: Any, names: list[str]) -> bool:
    """Return whether some of the parameters are estimators themselves."""
    own = estimator.get_params(deep=True)
    return any(hasattr(own[name], "get_params") for name in names)


def _checked(estimator: Any, name: str) -> Any:
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise TypeError(
            f"{name} must be an estimator with fit, or a list of (name, estimator); got "
            f"{shown(estimator)}."
        )
    return estimator


def _named(families: list[Any], param_space: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return estimators and spaces by their families' names, or raise."""
    pairs = [pair for pair in families if isinstance(pair, tuple) and len(pair) == 2]
    names = [name for name, _ in pairs]
    if not families or len(pairs) != len(families) or not all(isinstance(n, str) for n in names):
        raise TypeError(f"estimator must be a list of (name, estimator); got {shown(families)}.")
    if len(set(names)) != len(names) or any("__" in name or not name for name in names):
        raise ValueError(
            "estimator must give its families different names without '__'; got "
            f"{shown(families)} with others."
        )
    members = {
        name: _checked(member, f"estimator[{place}]") for place, (name, member) in enumerate(pairs)
    }
    if not isinstance(param_space, Mapping):
        kind = type(param_space).__name__
        raise TypeError(f"param_space must map the families' names to spaces; got {kind}.")
    if set(param_space) != set(names):
        raise ValueError(
            f"param_space must have the families' names, {shown_names(names)}; got "
            f"{shown_names(param_space)}."
        )
    return members, {name: param_space[name] for name in names}


def _check_names(family: str, estimator: Any, space: Any) -> None:
    """Raise unless the estimator has the parameters, and the search may set them."""
    name = f"param_space[{shown(family)}]" if family else "param_space"
    if not isinstance(space, Mapping):
        kind = type(space).__name__
        raise TypeError(f"{name} must be a mapping from names to dimensions; got {kind}.")
    if not space:
        # A family without parameters is one point.
        if family:
            return
        raise ValueError("param_space must hold at least one parameter; got none.")
    point = SearchSpace(space).from_unit([0.5] * len(space))
    first = {key: value for key, value in point.items() if hasattr(value, "get_params")}
    known = clone(estimator).set_params(**first).get_params(deep=True)
    unknown = sorted(set(space) - set(known))
    if unknown:
        raise ValueError(
            f"{name} must name parameters of {type(estimator).__name__}; got "
            f"{shown(unknown[0])}. It has {sorted(known)}."
        )
    for key in space:
        if key.rpartition("__")[2] in RESERVED_PARAMETERS:
            raise ValueError(f"{name} must leave {shown(key)} to the search; got values for it.")
