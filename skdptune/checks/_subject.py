"""The subject of a check: an estimator or a search, with its parts, their places and its cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from skdptune.base import NoProfileError
from skdptune.base._shared import (
    DEFAULT_DELTA,
    HOLDERS,
    Budget,
    Refusal,
    budget_owners,
    cost_of,
    has_cost,
    nested_estimators,
    own_parameters,
    set_budget,
)
from skdptune.preprocessing import Schema

# Used if public sizes are not given; most reasons for refusal do not depend on them.
ANY_SAMPLES, ANY_FEATURES = 1000, 10
_STEPS = {Pipeline: "steps", FeatureUnion: "transformer_list", ColumnTransformer: "transformers"}


@dataclass(frozen=True)
class Part:
    """An estimator inside the subject of a check.

    Attributes
    ----------
    place : str
        Its place, as the user would write it.
    estimator : estimator
    prefix : str
        Prefix of its parameters' names; empty for the whole.
    is_inside : bool
        Whether it belongs to an estimator whose cost includes that of this part.
    """

    place: str
    estimator: Any
    prefix: str = ""
    is_inside: bool = False

    @property
    def name(self) -> str:
        """Name of its class."""
        return type(self.estimator).__name__

    @cached_property
    def own(self) -> Mapping[str, Any]:
        """Its own parameters by name."""
        return own_parameters(self.estimator)

    @property
    def is_composition(self) -> bool:
        """Whether it only passes records from step to step, and costs what its steps cost."""
        return isinstance(self.estimator, HOLDERS)

    @property
    def is_private(self) -> bool:
        """Whether it is a private estimator, which has its own cost."""
        return not self.is_composition and has_cost(self.estimator)

    def at(self, parameter: str) -> str:
        """Return the place of one of its parameters."""
        return f"{self.place}.{parameter}"


@dataclass(frozen=True)
class Subject:
    """The subject of a check, described in public numbers.

    Attributes
    ----------
    root : estimator or search
    n_samples, n_features : int or None
        Public sizes; None if they are not given.
    schema : Schema or None
        Schema of the table to be fitted.
    epsilon, delta : float or None
        Total cost, and the delta at which it is stated; None if unknown.
    error : Exception or None
        The error that prevented planning a search.
    is_planned : bool
        Whether a plan has been made; then nothing is refused.
    has_public_validation : bool
        Whether public validation data will be given to the fit.
    place : str
        Its place in the whole; empty if it is the whole.
    """

    root: Any
    n_samples: int | None = None
    n_features: int | None = None
    schema: Schema | None = None
    epsilon: float | None = None
    delta: float | None = None
    error: Exception | None = None
    is_planned: bool = False
    has_public_validation: bool = False
    place: str = ""

    @property
    def name(self) -> str:
        """Its place, or the name of its class if it is the whole."""
        return self.place or type(self.root).__name__

    @property
    def is_search(self) -> bool:
        """Whether it is a private search of this package."""
        return is_search(self.root)

    @property
    def sets_budget(self) -> bool:
        """Whether it is a search that sets its estimator's epsilon and delta."""
        return self.is_search and own_parameters(self.root).get("epsilon") is not None

    @property
    def size(self) -> tuple[int, int]:
        """Number of records and columns, with substitutes for unknown ones."""
        return self.n_samples or ANY_SAMPLES, self.n_features or ANY_FEATURES

    # Parts ----------------------------------------------------------------------------------

    @cached_property
    def parts(self) -> Sequence[Part]:
        """All nested estimators, the whole first; for a search, those of its estimator."""
        return [
            part for place, estimator in self.estimators for part in _parts_of(estimator, place)
        ]

    @property
    def private_parts(self) -> list[Part]:
        """Private parts that are not inside another private part."""
        return [part for part in self.parts if part.is_private and not part.is_inside]

    @cached_property
    def whole(self) -> Part:
        """The estimator or search itself, as a part."""
        return Part(self.name, self.root)

    @property
    def estimators(self) -> Sequence[tuple[str, Any]]:
        """The estimator, or the estimators over which a search searches, with their places."""
        if not self.is_search:
            return [(self.name, self.root)]
        given = self.root.estimator
        if isinstance(given, list):
            pairs = [pair for pair in given if isinstance(pair, tuple) and len(pair) == 2]
            named = [(f'{self.name}.estimator["{name}"]', one) for name, one in pairs]
        else:
            named = [(f"{self.name}.estimator", given)]
        return [(place, one) for place, one in named if is_estimator(one)]

    @property
    def searched_steps(self) -> Iterator[tuple[str, Any]]:
        """Estimators that a search tries as steps, with their places."""
        for space_name, space in self.spaces:
            for key, values in space.items():
                for value in values if isinstance(values, list | tuple) else ():
                    if is_estimator(value):
                        yield f'{self.name}.{space_name}["{key}"]', value

    @property
    def spaces(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The spaces that the user gave a search, each with the name of its parameter."""
        for name in ("param_grid", "param_distributions", "param_space"):
            given = getattr(self.root, name, None) if self.is_search else None
            for space in given if isinstance(given, list | tuple) else [given]:
                if isinstance(space, Mapping):
                    yield name, space

    # Costs and refusals ------------------------------------------------------------------------

    @property
    def refusals(self) -> Sequence[tuple[str, Refusal]]:
        """Reasons why it has no cost, each with its place; empty if it is planned."""
        return self._problems[0]

    @property
    def errors(self) -> Sequence[tuple[str, Exception]]:
        """Errors of parameters, each with its place; empty if it is planned."""
        return self._problems[1]

    @cached_property
    def _problems(self) -> tuple[list[tuple[str, Refusal]], list[tuple[str, Exception]]]:
        if self.is_planned:
            return [], []
        refusals: list[tuple[str, Refusal]] = []
        errors: list[tuple[str, Exception]] = []
        for place, estimator in [*self.estimators, *self.searched_steps]:
            budgeted = self._with_budget(estimator)
            found, of_whole = _faults_of(budgeted, self.size)
            refusals += [(_place_of(estimator, place, one.steps), one) for one in found]
            of_parts = [
                (part.place, error)
                for part in _parts_of(budgeted, place)
                if part.is_private and not part.is_inside
                for error in _faults_of(part.estimator, self.size)[1]
            ]
            errors += of_parts or [(place, error) for error in of_whole]
        said = {str(error).removesuffix(".") for _, error in errors}
        errors += [
            (self.name, error)
            for error in _errors_in(self.error, is_explained=bool(refusals or errors))
            if str(error).removesuffix(".") not in said
        ]
        return refusals, errors

    def _with_budget(self, estimator: Any) -> Any:
        """Return an estimator with the budget that the search would set, if it sets one."""
        if not self.sets_budget:
            return estimator
        try:
            made = clone(estimator)
            delta = self.root.delta
            budget = Budget(float(self.root.epsilon), DEFAULT_DELTA if delta is None else delta)
            set_budget(made, budget)
        except Exception:
            # An invalid estimator or budget is reported unchanged.
            return estimator
        return made


def is_search(thing: Any) -> bool:
    """Return whether an object is a private search of this package."""
    return getattr(type(thing), "_is_private_search", False) is True


def is_estimator(thing: Any) -> bool:
    """Return whether an object is an estimator, with parameters and a fit."""
    return hasattr(thing, "fit") and hasattr(thing, "get_params") and not isinstance(thing, type)


def _parts_of(estimator: Any, place: str) -> list[Part]:
    """Return an estimator and those nested in it, with their places."""
    owners: list[str] = []
    found = []
    for prefix, part in nested_estimators(estimator):
        path = tuple(prefix.removesuffix("__").split("__")) if prefix else ()
        is_inside = any(prefix.startswith(owner) and prefix != owner for owner in owners)
        found.append(Part(_place_of(estimator, place, path), part, prefix, is_inside))
        if not isinstance(part, HOLDERS) and has_cost(part):
            owners.append(prefix)
    return found


def _place_of(estimator: Any, place: str, path: Sequence[str]) -> str:
    """Return the place of a step, from the names of the steps that lead to it."""
    for name in path:
        attribute = next((_STEPS[kind] for kind in _STEPS if isinstance(estimator, kind)), None)
        steps = {step[0]: step[1] for step in getattr(estimator, attribute)} if attribute else {}
        if name in steps:
            place, estimator = f'{place}.{attribute}["{name}"]', steps[name]
        else:
            place, estimator = f"{place}.{name}", getattr(estimator, name, None)
    return place


def _faults_of(estimator: Any, size: tuple[int, int]) -> tuple[list[Refusal], list[Exception]]:
    """Return why an estimator has no cost, or else the error of a parameter, if there is one."""
    try:
        cost_of(estimator, *size)
    except NoProfileError as error:
        # Invalid parameters of its parts are found in these parts.
        return [refusal for refusal in error.refusals if not refusal.is_of_parameter], []
    except Exception as error:
        return [], [error]
    return [], []


def _errors_in(error: Exception | None, *, is_explained: bool) -> list[Exception]:
    """Return the errors of a search that are not explained by its steps."""
    if not isinstance(error, NoProfileError):
        return [] if error is None or is_explained else [error]
    return [ValueError(f"{one.reason}.") for one in error.refusals if one.is_of_parameter]


def total_of(
    estimator: Any, size: tuple[int, int], delta: float | None
) -> tuple[float | None, float | None]:
    """Return the cost of a fit, and its delta; by default, the sum of its steps' deltas."""
    try:
        if delta is None:
            owners = [owner.delta or 0.0 for owner in budget_owners(estimator)]
            delta = min(math.fsum(owners), 1.0) if owners else DEFAULT_DELTA
        return cost_of(estimator, *size).epsilon(delta), delta
    except Exception:
        return None, delta
