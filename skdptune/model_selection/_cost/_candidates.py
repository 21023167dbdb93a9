"""The candidates of a search: a finite grid, or values drawn independently with replacement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from skdptune._formatting import nearest_name, shown, shown_names
from skdptune.base._shared import RESERVED_PARAMETERS, change_parameters, is_set_by_budget

Space = Mapping[str, Any]
# Strings that replace a step of a pipeline.
STEPS = ("passthrough", "drop")
# Share of the draws from a suggested space that are the unchanged estimator.
DEFAULT_SHARE = 1.0 / 3.0


class Candidates:
    """The candidates that a search may try.

    Parameters
    ----------
    spaces : mapping or sequence of mappings
        From parameter names to values: lists, or (if `drawn`) also distributions.
    name : str
        The argument's name, for messages.
    drawn : bool
        Whether candidates are drawn at random; otherwise they are a grid.

    Attributes
    ----------
    suggestion : mapping or None
        From parameter names to lists, if the space was suggested by the estimator.
    """

    def __init__(self, spaces: Any, *, name: str, drawn: bool) -> None:
        self.name = name
        self.drawn = drawn
        self.suggestion: Mapping[str, Sequence[Any]] | None = None
        listed = [spaces] if isinstance(spaces, Mapping) else spaces
        if not isinstance(listed, Sequence) or isinstance(listed, str) or not len(listed):
            raise TypeError(
                f"{name} must be a dict from parameter names to values, or a list of such; got "
                f"{shown(spaces)}."
            )
        self.spaces = tuple(self._checked(space) for space in listed)

    @classmethod
    def suggested(
        cls, suggestion: Mapping[str, Sequence[Any]], *, name: str, drawn: bool
    ) -> Candidates:
        """Return the unchanged estimator, and each parameter's other values one at a time.

        Parameters
        ----------
        suggestion : mapping
            From parameter names to lists, whose first value is the estimator's own.
        name, drawn
            As for the class. A third of the draws are the unchanged estimator; all draws are
            independent, as Theorem S1 requires.

        Notes
        -----
        Theorem F12.
        """
        default = {key: [values[0]] for key, values in suggestion.items()}
        others = [
            {**default, key: list(values[1:])}
            for key, values in sorted(suggestion.items())
            if len(values) > 1
        ]
        made = cls([default, *others], name=name, drawn=drawn)
        made.suggestion = suggestion
        return made

    def beside(self, own: Mapping[str, Any]) -> Candidates:
        """Return the candidates, preceded by a given one."""
        space = {name: [value] for name, value in own.items()}
        return Candidates([space, *self.spaces], name=self.name, drawn=self.drawn)

    @property
    def default(self) -> dict[str, Any] | None:
        """The estimator's own values of suggested parameters; None if the user gave the space."""
        return None if self.suggestion is None else dict(self.grid()[0])

    def _checked(self, space: Any) -> Space:
        if not isinstance(space, Mapping):
            raise TypeError(f"{self.name} must hold dicts; got {type(space).__name__} in it.")
        for parameter, values in space.items():
            if not isinstance(parameter, str):
                raise TypeError(f"the keys of {self.name} must be names; got {shown(parameter)}.")
            if not is_finite(values):
                self._check_distribution(parameter, values)
            elif len(values) == 0:
                raise ValueError(
                    f"{self.name}[{shown(parameter)}] must not be empty; got {shown(values)}."
                )
        return {key: space[key] for key in sorted(space)}

    def _check_distribution(self, parameter: str, values: Any) -> None:
        if self.drawn and hasattr(values, "rvs"):
            return
        kinds = "a list or a distribution with rvs" if self.drawn else "a list"
        hint = (
            ""
            if self.drawn or not hasattr(values, "rvs")
            else (" DPRandomSearchCV draws from distributions.")
        )
        raise TypeError(
            f"{self.name}[{shown(parameter)}] must be {kinds}; got {type(values).__name__}.{hint}"
        )

    def check_names(self, estimator: Any) -> None:
        """Raise unless the estimator has the parameters that are searched."""
        for space in self.spaces:
            first = {key: values[0] for key, values in space.items() if is_finite(values)}
            made = self._changed(estimator, first)
            known = made.get_params(deep=True)
            # A name that set_params accepts is a parameter, even if get_params lacks it.
            for name in sorted(set(space) - set(known) - set(first)):
                self._check_name(name, space[name], made, sorted(known))

    def _changed(self, estimator: Any, first: Mapping[str, Any]) -> Any:
        """Return a copy with the first values; raise for an unknown name."""
        try:
            return change_parameters(clone(estimator), first)
        except (AttributeError, TypeError, ValueError):
            known = clone(estimator).get_params(deep=True)
            unknown = sorted(set(first) - set(known))
            if not unknown:
                raise
            # scikit-learn's own message shows the whole pipeline, but only its top-level names.
            raise self._no_parameter(unknown[0], estimator, sorted(known)) from None

    def _no_parameter(self, name: str, estimator: Any, known: list[str]) -> ValueError:
        last = name.rpartition("__")[2]
        meant = [each for each in known if each.rpartition("__")[2] == last]
        near = shown(meant[0]) if meant else nearest_name(name, known)
        hint = f"Did you mean {near}?" if near else f"It has {shown_names(known)}."
        return ValueError(
            f"{self.name} must name parameters of {type(estimator).__name__}; got {shown(name)}. "
            f"{hint}"
        )

    def _check_name(self, name: str, values: Any, estimator: Any, known: list[str]) -> None:
        """Raise unless the estimator's set_params accepts a parameter that get_params lacks."""
        value = self._drawn(name, values, np.random.RandomState(0))
        try:
            estimator.set_params(**{name: value})
        except (AttributeError, TypeError, ValueError):
            raise self._no_parameter(name, estimator, known) from None

    def with_steps(self, estimator: Any) -> list[Any]:
        """Return the estimator with each of the searched steps, or unchanged."""
        made = []
        for space in self.spaces:
            steps = {
                name: values
                for name, values in space.items()
                if is_finite(values) and holds_step(list(values))
            }
            first = {name: values[0] for name, values in steps.items()}
            changes = [{**first, name: value} for name in steps for value in steps[name]]
            made += [change_parameters(clone(estimator), copied(each)) for each in changes or [{}]]
        return made

    def grid(self) -> ParameterGrid:
        """Return the candidates of a grid, in a fixed public order."""
        return ParameterGrid([dict(space) for space in self.spaces])

    def draw(self, random: np.random.RandomState) -> dict[str, Any]:
        """Return one candidate, independent of all others; lists are sampled with replacement."""
        if self.suggestion is not None:
            listed = self.grid()
            is_default = len(listed) == 1 or random.random_sample() < DEFAULT_SHARE
            return dict(listed[0 if is_default else 1 + random.randint(len(listed) - 1)])
        space = self.spaces[random.randint(len(self.spaces))]
        return {
            key: values[random.randint(len(values))]
            if is_finite(values)
            else self._drawn(key, values, random)
            for key, values in space.items()
        }

    def draw_each(self, seeds: Sequence[Any]) -> list[dict[str, Any]]:
        """Return one candidate for each seed; None uses the system's entropy."""
        return [self.draw(np.random.RandomState(np.random.MT19937(seed))) for seed in seeds]

    def some(self, most: int) -> list[dict[str, Any]]:
        """Return some candidates, independently of the search's seed: all of a short grid."""
        if not self.drawn and len(self.grid()) <= most:
            return list(self.grid())
        return [self.draw(np.random.RandomState(seed)) for seed in range(most)]

    def _drawn(self, parameter: str, values: Any, random: np.random.RandomState) -> Any:
        value = values.rvs(random_state=random)
        # The cost of every draw must be known: estimators have to be listed.
        if holds_step(value):
            raise TypeError(
                f"{self.name}[{shown(parameter)}] must draw plain values; got an estimator, "
                f"{shown(value)}. Give a list of estimators instead."
            )
        return value

    def combinations(
        self, space: Space, names: Sequence[str], most: int
    ) -> list[dict[str, Any]] | None:
        """Return all values of the named parameters; None if they are too many or not finite."""
        lists = [space[name] for name in names]
        if not all(is_finite(values) for values in lists):
            return None
        if np.prod([float(len(values)) for values in lists]) > most:
            return None
        return [dict(zip(names, values, strict=True)) for values in product(*lists)]

    def __iter__(self) -> Iterator[Space]:
        """Iterate over the spaces."""
        return iter(self.spaces)


def check_left_to_search(name: str, estimator: Any, *, sets_budget: bool, where: str) -> None:
    """Raise for a parameter that candidates must not set: seeds, sizes and budgets."""
    is_reserved = name.rpartition("__")[2] in RESERVED_PARAMETERS
    if is_reserved or (sets_budget and is_set_by_budget(estimator, name)):
        raise ValueError(f"{where} must leave {shown(name)} to the search; got values for it.")


def holds_step(value: Any, *, words: bool = True) -> bool:
    """Return whether a value is a step, a string for a step (if `words`), or contains one."""
    is_array = isinstance(value, np.ndarray) and value.dtype == object
    if is_array or isinstance(value, list | tuple):
        return any(holds_step(part, words=words) for part in value)
    if isinstance(value, str):
        return words and value in STEPS
    return hasattr(value, "get_params")


def copied(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a candidate: changes must not affect the values that were costed."""
    return {name: clone(value, safe=False) for name, value in candidate.items()}


def distinct(candidates: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return candidates without repetitions."""
    return list({repr(sorted(each.items())): each for each in candidates}.values())


def is_finite(values: Any) -> bool:
    """Return whether values are listed, rather than drawn from a distribution."""
    if isinstance(values, np.ndarray):
        return values.ndim == 1
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)
