"""Seeds of fits: lent to an estimator for its fit, and taken back from what is published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state

from skdptune._formatting import shown
from skdptune.base._nested_parameters import (
    change_parameters,
    nested_estimators,
    own_parameters,
)
from skdptune.base.protocol import Parametrized

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
