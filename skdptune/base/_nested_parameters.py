"""The estimators inside an estimator, and their parameters by name."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import Pipeline

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
