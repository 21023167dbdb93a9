"""Inputs of a Pareto search: estimators with their spaces, and checks of its parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning

from skdptune._compat import cloudpickle
from skdptune._formatting import shown, shown_names
from skdptune._validation import check_estimator
from skdptune.base._shared import (
    RESERVED_PARAMETERS,
    cost_parameters,
    nested_estimators,
    replaces_records,
)
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._pareto._optimizer import Record
from skdptune.model_selection._space import SearchSpace

# Name of the parameter that selects the family.
FAMILY = "estimator"
_OR_FAMILIES = ", or a list of (name, estimator)"


class Families:
    """Estimators with their spaces, as one search space.

    The parameters of a single estimator keep their names. With several families the parameter
    ``"estimator"`` selects one, and parameter names have their family's name as a prefix.

    Parameters
    ----------
    estimator : estimator or list of (str, estimator)
    param_space : dict
        The space of the estimator, or a dict from the families' names to their spaces.
    """

    def __init__(self, estimator: Any, param_space: Any) -> None:
        self.is_single = not isinstance(estimator, list)
        if self.is_single:
            self.members = {"": check_estimator(estimator, name="estimator", others=_OR_FAMILIES)}
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
    def variants(self) -> Iterator[Any]:
        """The estimators, and each of them with one listed value of one parameter at a time."""
        for name, member in self.members.items():
            yield member
            for key, values in self._spaces[name].items():
                # A tuple is a range of numbers, which cannot select another kind of guarantee.
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
        changed["params"] = objects(rows)
        for name in self.space.names:
            changed[f"param_{name}"] = objects([row.get(name) for row in rows])
        return changed

    @property
    def costs_differ(self) -> bool:
        """Whether fits with different parameters may have different costs."""
        if len(self.members) > 1:
            return True
        ((family, estimator),) = self.members.items()
        names = list(self._names[family])
        own = estimator.get_params(deep=True)
        has_steps = any(hasattr(own[name], "get_params") for name in names)
        return has_steps or bool(cost_parameters(estimator, names))


def objects(values: list[Any]) -> NDArray[np.object_]:
    """Return values as a column of objects."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


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
        name: check_estimator(member, name=f"estimator[{place}]")
        for place, (name, member) in enumerate(pairs)
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
    """Raise unless the estimator has the parameters and the search may set them."""
    name = f"param_space[{shown(family)}]" if family else "param_space"
    if not isinstance(space, Mapping):
        kind = type(space).__name__
        raise TypeError(f"{name} must be a mapping from names to dimensions; got {kind}.")
    if family and not space:
        # A family without parameters is a single point.
        return
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


def check_relation(estimator: Any) -> None:
    """Raise for a guarantee for replacing records: a release is for adding or removing one."""
    if any(replaces_records(part) for _, part in nested_estimators(estimator)):
        raise TypeError(
            "estimator must have a guarantee about adding or removing a record with release; "
            "got one about replacing."
        )


TIME = "time"
# Names of other columns of the results.
_RESERVED = frozenset(
    {"", "epsilon", "error", "params", "number", "study_epsilon", TIME}
    | {"spread", "utilities", "seconds", "failure"}
)


@dataclass(frozen=True)
class ThirdObjective:
    """A third objective to minimise.

    Attributes
    ----------
    name : str
        Name of its column in the results.
    function : callable or None
        None means the time of an evaluation.
    """

    name: str
    function: Callable[..., Any] | None


def check_third_objective(given: Any, arguments: str) -> ThirdObjective | None:
    """Return a third objective, or None for None; raise for other values.

    Parameters
    ----------
    given : None, "time" or (str, callable)
    arguments : str
        Arguments of the function, for messages.
    """
    if given is None:
        return None
    if isinstance(given, str) and given == TIME:
        return ThirdObjective(TIME, None)
    is_pair = isinstance(given, tuple) and len(given) == 2
    if not (is_pair and isinstance(given[0], str) and callable(given[1])):
        raise TypeError(
            "third_objective must be None, 'time' or a tuple of a name and a function of "
            f"{arguments}; got {shown(given)}."
        )
    if given[0] in _RESERVED:
        raise ValueError(
            "third_objective must have a name that no other column of the results has; got "
            f"{shown(given[0])}."
        )
    return ThirdObjective(*given)


def warn_of_failures(records: Sequence[Record], *, stacklevel: int) -> None:
    """Warn of evaluations that failed, with the reason of the first."""
    failed = [record for record in records if record.evaluation.failure is not None]
    if failed:
        warnings.warn(
            f"{len(failed)} of {len(records)} evaluations failed. The first: "
            f"{failed[0].evaluation.failure}. evaluations_ names them all.",
            FitFailedWarning,
            stacklevel=stacklevel,
        )


def warn_of_one_cost(records: Sequence[Record], *, stacklevel: int) -> None:
    """Warn if no parameter of the space changes epsilon."""
    found = [record.evaluation for record in records if record.evaluation.failure is None]
    if len(found) > 1 and len({evaluation.epsilon for evaluation in found}) == 1:
        warnings.warn(
            f"All evaluations cost epsilon={found[0].epsilon:.4g}, so that the front is a "
            "single point. Include a parameter that sets the noise in param_space, such as "
            "epsilon or noise_multiplier.",
            UserWarning,
            stacklevel=stacklevel,
        )


def check_picklable(scorer: BoundedScorer, families: Families, n_jobs: int | None) -> None:
    """Raise if work could not be sent to workers: every fit would count as failed."""
    backend, _ = joblib.parallel.get_active_backend()
    if n_jobs in (None, 1) or getattr(backend, "uses_threads", False):
        return
    try:
        cloudpickle.dumps((scorer, list(families), families.space))
    except Exception as problem:
        raise TypeError(
            "n_jobs must be 1 for an estimator, space or scoring that cannot be pickled; got "
            f"{shown(n_jobs)}. {type(problem).__name__}: {problem}"
        ) from problem
