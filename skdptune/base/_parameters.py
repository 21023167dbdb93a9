"""Estimators nested in an estimator, their parameters by name, and their seeds."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import joblib
import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skdptune._formatting import shown
from skdptune.base.protocol import Fittable, Parametrized

# Parameters set only by a search, or by whoever is responsible for the data.
RESERVED_PARAMETERS: tuple[str, ...] = ("random_state", "n_public", "ledger")

# Wrappers that pass all records to one model, and change each target or prediction separately.
AROUND = {FixedThresholdClassifier: "estimator", TransformedTargetRegressor: "regressor"}


def model_inside(estimator: Any) -> Any:
    """Return the model that receives the records: the wrapped model of a wrapper, or itself."""
    name = AROUND.get(type(estimator))
    return estimator if name is None else getattr(estimator, name)


def nested_estimators(estimator: Parametrized) -> Iterator[tuple[str, Parametrized]]:
    """Iterate over an estimator and its nested estimators, with their parameters' prefixes.

    Frozen estimators and everything in them are left out: their parameters cannot be set, and they
    read no data in a fit.
    """
    yield "", estimator
    frozen = ["estimator"] if isinstance(estimator, FrozenEstimator) else []
    for name, value in sorted(estimator.get_params(deep=True).items()):
        if isinstance(value, FrozenEstimator):
            frozen.append(name)
        elif any(name == one or name.startswith(f"{one}__") for one in frozen):
            continue
        elif hasattr(value, "get_params") and not isinstance(value, type):
            yield f"{name}__", value


def own_member(estimator: object, name: str) -> Any:
    """Return an attribute of the estimator itself, or None; a frozen estimator has none."""
    # A frozen estimator forwards attribute access to the estimator that it holds.
    return None if isinstance(estimator, FrozenEstimator) else getattr(estimator, name, None)


def own_parameters(estimator: Parametrized) -> dict[str, Any]:
    """Return the estimator's own parameters, without those of nested estimators."""
    return estimator.get_params(deep=False)


_REFUSED_WEIGHTS = (
    "sample_weight is not supported: a weight multiplies a record's influence, and the guarantee "
    "bounds that influence at weight 1. Use class_weight of a classifier for public weights of "
    "classes; repeat or drop records before the fit only by a rule that looks at one record at a "
    "time."
)


def is_fitted(estimator: Any) -> bool:
    """Return whether scikit-learn regards an estimator as fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def is_same(one: Any, other: Any) -> bool:
    """Return whether values are the same, or estimators have the same parameters."""
    if one is other:
        return True
    if isinstance(one, bool | np.bool_) != isinstance(other, bool | np.bool_):
        return False
    plain = (str, bytes, int, float, np.generic, type(None))
    if isinstance(one, plain) and isinstance(other, plain):
        return bool(one == other)
    if type(one) is not type(other) or isinstance(one, type):
        return False
    if hasattr(one, "get_params"):
        one, other = (dict(each.get_params(deep=False)) for each in (one, other))
        return one.keys() == other.keys() and all(is_same(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    try:
        return bool(joblib.hash(one) == joblib.hash(other))
    except Exception:
        # Values that cannot be compared count as different, which only refuses more.
        return False


def arguments_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a constructor by name, from the ``locals()`` at its start."""
    components = given.get("components", {})
    left_out = ("self", "__class__", "components")
    return {name: value for name, value in given.items() if name not in left_out} | components


def declared_labels(estimator: Parametrized) -> list[Any] | None:
    """Return the labels declared by the parameter ``classes`` of a nested estimator, or None."""
    for _, part in nested_estimators(estimator):
        declared = own_parameters(part).get("classes")
        if declared is not None:
            return list(declared)
    return None


def change_parameters(estimator: Parametrized, changes: Mapping[str, Any]) -> Any:
    """Set parameters by name, if there are any, and return the estimator."""
    # A search's own set_params may require that its estimator is set.
    return estimator.set_params(**changes) if changes else estimator


def disable_caching(estimator: Parametrized) -> None:
    """Disable caching in pipelines: runs would share noise, and losers would stay on disk."""
    for prefix, part in list(nested_estimators(estimator)):
        if isinstance(part, Pipeline) and part.memory is not None:
            estimator.set_params(**{f"{prefix}memory": None})


def check_fit_parameters(estimator: Fittable, names: Iterable[str]) -> None:
    """Raise unless the estimator's ``fit`` accepts the named arguments.

    Without this check, every run would fail silently and get the worst score.
    """
    for name in names:
        part: Fittable | None = estimator
        last = name
        while isinstance(part, Pipeline):
            step, _, last = last.partition("__")
            part = part.named_steps.get(step) if last else None
        if isinstance(part, TransformedTargetRegressor):
            part = part.regressor
        if isinstance(part, FixedThresholdClassifier):
            # This wrapper passes on only arguments that metadata routing routes.
            part = None
        known = {} if part is None else inspect.signature(part.fit).parameters
        # In this package, fit methods collect unsupported arguments as `refused`, to explain the
        # error.
        takes_all = any(
            one.kind is one.VAR_KEYWORD and one.name != "refused" for one in known.values()
        )
        if not (takes_all or last in known):
            raise TypeError(
                f"fit() got an argument that {type(estimator).__name__}.fit does not support: "
                f"{shown(name)}."
            )


def refuse_arguments(refused: Iterable[str], taken: str) -> None:
    """Raise if a fit got arguments that it collects as `refused`; say which ones it takes."""
    names = sorted(refused)
    if "sample_weight" in names:
        raise TypeError(_REFUSED_WEIGHTS)
    if names:
        raise TypeError(f"arguments of fit must be {taken}; got {names} as well.")


# Parameters that affect the cost -------------------------------------------------------------


def cost_parameters(estimator: Parametrized, names: Iterable[str]) -> set[str]:
    """Return those of the named parameters on which the cost may depend.

    If an estimator states ``cost_parameters``, these are trusted; if not, all parameters count.

    Notes
    -----
    Theorem F2.
    """
    return {
        name
        for name, declared in declared_cost_parameters(estimator, names)
        if declared is None or name.rpartition("__")[2] in declared
    }


def declared_cost_parameters(
    estimator: Parametrized, names: Iterable[str]
) -> Iterator[tuple[str, Collection[str] | None]]:
    """Iterate over names and the ``cost_parameters`` of their owners, None if missing."""
    parts = dict(nested_estimators(estimator))
    for name in names:
        prefix = name.rpartition("__")[0]
        owner = parts.get(f"{prefix}__" if prefix else "")
        yield name, getattr(owner, "cost_parameters", None)


# Seeds of fits: set for a fit, and removed from everything that is published -----------------

Seeds = dict[str, Any]
_NAME = "random_state"
_GENERATORS = (
    np.random.Generator,
    np.random.RandomState,
    np.random.SeedSequence,
    np.random.BitGenerator,
)


def legacy_generator(random_state: Any) -> np.random.RandomState:
    """Return a RandomState from an integer, a RandomState, or None for NumPy's global one."""
    try:
        return check_random_state(random_state)
    except (TypeError, ValueError):
        # scikit-learn's or NumPy's message would print a table that was passed by mistake.
        raise ValueError(
            "random_state must be None, an integer in [0, 2**32 - 1] or a generator; got "
            f"{shown(random_state)}."
        ) from None


def own_seeds(estimator: Parametrized) -> Seeds:
    """Return the ``random_state`` of all nested estimators, by parameter name."""
    return {
        f"{prefix}{_NAME}": own_parameters(part)[_NAME]
        for prefix, part in nested_estimators(estimator)
        if _NAME in own_parameters(part)
    }


def set_seeds(estimator: Parametrized, seeds: np.random.SeedSequence | None) -> None:
    """Set an independent ``random_state`` in every estimator; None uses the system's entropy."""
    names = list(own_seeds(estimator))
    values: Sequence[int | None] = [None] * len(names)
    if seeds is not None:
        values = [int(word) for word in seeds.generate_state(len(names)) >> 1]
    change_parameters(estimator, dict(zip(names, values, strict=True)))


def forget_seeds(fitted: Any, own: Seeds) -> Any:
    """Remove the seeds of a fit from the fitted estimator, and return it.

    Parameters
    ----------
    fitted : estimator
        Changed in place. Estimators among its parameters, and their fitted copies, get back the
        ``random_state`` that they had before `set_seeds`. Other estimators that the fit created
        get None. Generators are never restored, since their state can be run backwards. Generators
        among the fitted attributes are replaced by fresh ones.
    own : dict
        Result of `own_seeds` before `set_seeds`.

    Notes
    -----
    Theorem F9.
    """
    parts = dict(nested_estimators(fitted))
    returned = {id(part): own.get(f"{prefix}{_NAME}") for prefix, part in parts.items()}
    # A composition passes the seeds of its parameters to the copies that it fits.
    lent = {name: value for name, value in own_seeds(fitted).items() if type(value) is int}
    of_copies = {seed: own.get(name) for name, seed in lent.items()}
    for part in list(_estimators_in(fitted)):
        parameters = own_parameters(part)
        _replace_generators(part, parameters)
        if _NAME not in parameters:
            continue
        seed = parameters[_NAME]
        value = of_copies.get(seed) if type(seed) is int else None
        value = returned.get(id(part), value)
        part.set_params(**{_NAME: None if isinstance(value, _GENERATORS) else value})
    return fitted


def _estimators_in(root: Any) -> Iterator[Any]:
    """Iterate over all estimators that are reachable from an object."""
    seen: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | str | bytes):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, FrozenEstimator):
            # It holds an estimator that was fitted before, without a seed of this fit.
            continue
        if hasattr(type(thing), "get_params"):
            yield thing
        if isinstance(thing, dict):
            waiting += thing.values()
        elif isinstance(thing, list | tuple | set | frozenset):
            waiting += thing
        elif isinstance(thing, np.ndarray):
            waiting += thing.ravel().tolist() if thing.dtype == object else []
        elif not callable(thing) or hasattr(type(thing), "get_params"):
            waiting += getattr(thing, "__dict__", {}).values()


def _replace_generators(part: Any, parameters: dict[str, Any]) -> None:
    """Replace generators among an estimator's fitted attributes by fresh ones."""
    for name, value in list(getattr(part, "__dict__", {}).items()):
        if name in parameters:
            continue
        if isinstance(value, np.random.Generator):
            setattr(part, name, np.random.default_rng())
        elif isinstance(value, np.random.RandomState):
            setattr(part, name, np.random.RandomState())
        elif isinstance(value, np.random.SeedSequence | np.random.BitGenerator):
            setattr(part, name, type(value)())
