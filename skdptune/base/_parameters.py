"""The estimators inside an estimator, their parameters by name, and their seeds."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from skdptune._formatting import shown
from skdptune.base.protocol import Fittable, Parametrized

# Parameters that are a search's own to set, or those of whoever answers for the data.
RESERVED_PARAMETERS: tuple[str, ...] = ("random_state", "n_public", "ledger")

# Models that hand all records on to one model, and change targets or predictions one by one.
AROUND = {FixedThresholdClassifier: "estimator", TransformedTargetRegressor: "regressor"}


def model_inside(estimator: Any) -> Any:
    """Return the model that is handed an estimator's records: itself, unless it is around one."""
    name = AROUND.get(type(estimator))
    return estimator if name is None else getattr(estimator, name)


def nested_estimators(estimator: Parametrized) -> Iterator[tuple[str, Parametrized]]:
    """Iterate over an estimator and those inside it, with the prefixes of their parameters.

    Frozen ones are left out, with what they hold: no parameter of them can be set, and no fit
    reads data for them.
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
    """Return a member of an estimator itself, None if it has none or only what it has frozen."""
    # A frozen estimator passes every question on to the one that it holds.
    return None if isinstance(estimator, FrozenEstimator) else getattr(estimator, name, None)


def own_parameters(estimator: Parametrized) -> dict[str, Any]:
    """Return the parameters of an estimator itself, without those of estimators inside it."""
    return estimator.get_params(deep=False)


def declared_labels(estimator: Parametrized) -> list[Any] | None:
    """Return the labels that the parameter ``classes`` of some estimator names, if any does."""
    for _, part in nested_estimators(estimator):
        declared = own_parameters(part).get("classes")
        if declared is not None:
            return list(declared)
    return None


def change_parameters(estimator: Parametrized, changes: Mapping[str, Any]) -> Any:
    """Set parameters of an estimator by name and return it; without any it is not asked to."""
    # An estimator's own set_params may take for granted that the one it searches is there.
    return estimator.set_params(**changes) if changes else estimator


def disable_caching(estimator: Parametrized) -> None:
    """Set ``memory=None`` in pipelines: runs would share noise, and losers would stay on disk."""
    for prefix, part in list(nested_estimators(estimator)):
        if isinstance(part, Pipeline) and part.memory is not None:
            estimator.set_params(**{f"{prefix}memory": None})


def check_fit_parameters(estimator: Fittable, names: Iterable[str]) -> None:
    """Raise unless the estimator's ``fit`` takes the named arguments.

    Without this check every run would fail silently and score the worst value.
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
            # It hands on what metadata routing routes, and nothing else.
            part = None
        known = {} if part is None else inspect.signature(part.fit).parameters
        # Estimators of this package collect what they take no such argument for, to say why.
        takes_all = any(
            one.kind is one.VAR_KEYWORD and one.name != "refused" for one in known.values()
        )
        if not (takes_all or last in known):
            raise TypeError(
                f"fit must be given what {type(estimator).__name__}.fit takes; got {shown(name)}."
            )


# Parameters that the cost depends on ---------------------------------------------------------


def cost_parameters(estimator: Parametrized, names: Iterable[str]) -> set[str]:
    """Return those of the named parameters on which the cost may depend.

    An estimator's own ``cost_parameters`` are taken at their word; of an estimator without them,
    all parameters count.

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
    """Iterate over parameters and the ``cost_parameters`` of their owners, None without any."""
    parts = dict(nested_estimators(estimator))
    for name in names:
        prefix = name.rpartition("__")[0]
        owner = parts.get(f"{prefix}__" if prefix else "")
        yield name, getattr(owner, "cost_parameters", None)


# Seeds of fits: lent to an estimator for its fit, and taken back from what is published ------

Seeds = dict[str, Any]
_NAME = "random_state"
_GENERATORS = (
    np.random.Generator,
    np.random.RandomState,
    np.random.SeedSequence,
    np.random.BitGenerator,
)


def legacy_generator(random_state: Any) -> np.random.RandomState:
    """Return the generator that an integer, a RandomState or NumPy's own one stands for."""
    try:
        return check_random_state(random_state)
    except (TypeError, ValueError):
        # The message of scikit-learn or NumPy would show a table that landed here.
        raise ValueError(
            "random_state must be None, an integer in [0, 2**32 - 1] or a generator; got "
            f"{shown(random_state)}."
        ) from None


def own_seeds(estimator: Parametrized) -> Seeds:
    """Return the ``random_state`` of an estimator and of those inside it, by parameter name."""
    return {
        f"{prefix}{_NAME}": own_parameters(part)[_NAME]
        for prefix, part in nested_estimators(estimator)
        if _NAME in own_parameters(part)
    }


def set_seeds(estimator: Parametrized, seeds: np.random.SeedSequence | None) -> None:
    """Set an independent ``random_state`` in every estimator; None for the system's entropy."""
    names = list(own_seeds(estimator))
    values: Sequence[int | None] = [None] * len(names)
    if seeds is not None:
        values = [int(word) for word in seeds.generate_state(len(names)) >> 1]
    change_parameters(estimator, dict(zip(names, values, strict=True)))


def forget_seeds(fitted: Any, own: Seeds) -> Any:
    """Take the seeds of a fit out of what it made, and return it.

    Parameters
    ----------
    fitted : estimator
        Changed in place: estimators among its parameters get back the ``random_state`` that they
        had before `set_seeds`, and so do their fitted copies; others that it made get None.
        Generators are never given back, since their state can be run backwards, and those among
        fitted attributes are replaced by fresh ones.
    own : dict
        `own_seeds` before `set_seeds`.

    Notes
    -----
    Theorem F9.
    """
    parts = dict(nested_estimators(fitted))
    returned = {id(part): own.get(f"{prefix}{_NAME}") for prefix, part in parts.items()}
    # A composition that fits copies gave them the seeds of its parameters.
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
    """Iterate over all estimators that can be reached from an object."""
    seen: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | str | bytes):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, FrozenEstimator):
            # What it holds was fitted before, and had no seed of this fit.
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
    """Replace generators among the fitted attributes of an estimator by fresh ones."""
    for name, value in list(getattr(part, "__dict__", {}).items()):
        if name in parameters:
            continue
        if isinstance(value, np.random.Generator):
            setattr(part, name, np.random.default_rng())
        elif isinstance(value, np.random.RandomState):
            setattr(part, name, np.random.RandomState())
        elif isinstance(value, np.random.SeedSequence | np.random.BitGenerator):
            setattr(part, name, type(value)())
