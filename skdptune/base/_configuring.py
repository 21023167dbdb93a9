"""Setting up the estimators of a search: their budgets, public sizes, seeds and scaled parameters.

Everything here is about parameters; no data are seen.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdptune.accounting import PrivacyProfile
from skdptune.base._costs import cost_of, has_cost

# Parameters that a search sets itself, always and where it has a budget to set.
RESERVED = ("random_state", "n_public")
BUDGET_PARAMETERS = ("epsilon", "delta", "noise_multiplier")
_USUAL_DELTA = 1e-5
# As estimators and nets name it.
LEARNING_RATES = frozenset({"learning_rate", "lr", "optimizer__lr"})

ExtrapolationRule = Callable[[dict[str, Any], int, int], Mapping[str, Any]]


# Fits with so much hardly feel their noise.
_LARGE_EPSILON = 50.0


@dataclass(frozen=True)
class BudgetOwner:
    """A private step whose noise follows from its ``epsilon``.

    Attributes
    ----------
    prefix : str
        Of its parameters' names, such as ``"clf__"``.
    share : float
        Its part of the epsilon of all owners together.
    delta : float or None
        Its own delta; None if it has no such parameter.
    """

    prefix: str
    share: float
    delta: float | None


@dataclass(frozen=True)
class Budget:
    """What one fit of a candidate may spend: an epsilon to share out, and each owner's delta."""

    epsilon: float
    delta: float


def nested(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over an estimator and those inside it, with the prefixes of their parameters."""
    yield "", estimator
    for name, value in sorted(estimator.get_params(deep=True).items()):
        if hasattr(value, "get_params") and not isinstance(value, type):
            yield f"{name}__", value


def own_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator itself."""
    return estimator.get_params(deep=False)


def budget_owners(estimator: Any) -> list[BudgetOwner]:
    """Return the private steps whose epsilon a search may set; nested ones follow their owner."""
    found: list[tuple[str, float, float | None]] = []
    for prefix, part in nested(estimator):
        parameters = own_parameters(part)
        if parameters.get("epsilon") is None or not has_cost(part):
            continue
        if parameters.get("noise_multiplier") is not None:
            continue
        if any(prefix.startswith(outer) for outer, _, _ in found):
            continue
        epsilon = float(parameters["epsilon"])
        delta = parameters.get("delta")
        if delta is None and "delta" in parameters:
            delta = _inherited_delta(part)
        found.append((prefix, epsilon if math.isfinite(epsilon) else 1.0, delta))
    total = sum(epsilon for _, epsilon, _ in found)
    return [BudgetOwner(prefix, epsilon / total, delta) for prefix, epsilon, delta in found]


def _inherited_delta(owner: Any) -> float:
    """Return the delta of an estimator that takes it from those inside it, as searches do."""
    inner = [own_parameters(part).get("delta") for prefix, part in nested(owner) if prefix]
    return max((delta for delta in inner if delta is not None), default=_USUAL_DELTA)


def set_budget(estimator: Any, budget: Budget) -> None:
    """Share a budget out among the private steps, in proportion to their own epsilons.

    A step with ``delta=0`` stays pure.
    """
    for owner in budget_owners(estimator):
        settings = {f"{owner.prefix}epsilon": owner.share * budget.epsilon}
        if owner.delta is not None:
            settings[f"{owner.prefix}delta"] = budget.delta if owner.delta > 0.0 else 0.0
        estimator.set_params(**settings)


def worst_of_budget(estimator: Any, budget: Budget) -> PrivacyProfile:
    """Return the profile of any fit within a budget, whatever the other parameters are."""
    total = PrivacyProfile.pure(0.0)
    for owner in budget_owners(estimator):
        delta = budget.delta if owner.delta else 0.0
        total = total + PrivacyProfile.approximate(owner.share * budget.epsilon, delta)
    return total


def without_noise(estimator: Any, size: int, n_features: int | None) -> Any:
    """Return a copy that adds no noise, or hardly any, for fits that are charged elsewhere."""
    free = clone(estimator)
    for owner in budget_owners(estimator):
        name = f"{owner.prefix}epsilon"
        free.set_params(**{name: math.inf})
        try:
            cost_of(free, size, n_features)
        except ValueError:
            # Not every estimator takes infinity for an answer.
            free.set_params(**{name: _LARGE_EPSILON})
    return free


def forget_memory(estimator: Any) -> None:
    """Take pipelines' caches away: runs would share noise, and losers would stay on disk."""
    for prefix, part in list(nested(estimator)):
        if isinstance(part, Pipeline) and part.memory is not None:
            estimator.set_params(**{f"{prefix}memory": None})


def check_fit_parameters(estimator: Any, names: Iterable[str]) -> None:
    """Raise unless the estimator's fit takes what is passed on to it.

    Left to the runs, each would fail and score the worst without a word.
    """
    for name in names:
        part, last = estimator, name
        while isinstance(part, Pipeline):
            step, _, last = last.partition("__")
            part = part.named_steps.get(step) if last else None
        known = {} if part is None else inspect.signature(part.fit).parameters
        takes_all = any(one.kind is one.VAR_KEYWORD for one in known.values())
        if not (takes_all or last in known):
            raise TypeError(
                f"fit must be given what {type(estimator).__name__}.fit takes; got {name!r}."
            )


def set_public_size(estimator: Any, size: int) -> None:
    """Make a fit on a random part of the data use a public number in place of its size."""
    for prefix, part in nested(estimator):
        if "n_public" in own_parameters(part):
            estimator.set_params(**{f"{prefix}n_public": size})


def check_secret_size(estimator: Any, size: int, n_features: int | None) -> None:
    """Raise if the price of some step depends on its number of records, which is secret.

    Raises
    ------
    TypeError
        With what to do about it.
    """
    if cost_of(estimator, size, n_features) != cost_of(estimator, 2 * size + 1, n_features):
        raise TypeError(
            "estimator must have a parameter n_public, or a price that does not depend on the "
            f"number of records; got {type(estimator).__name__}. Random parts of the data have a "
            "secret size; public validation data (X_val, y_val) and tuning_fraction=None avoid "
            "them."
        )


def set_seeds(estimator: Any, seeds: np.random.SeedSequence | None) -> None:
    """Give all steps fresh and independent randomness: of the system, or from a seed."""
    names = [
        f"{prefix}random_state"
        for prefix, part in nested(estimator)
        if "random_state" in own_parameters(part)
    ]
    values = [None] * len(names)
    if seeds is not None:
        values = [int(word) for word in seeds.generate_state(len(names)) >> 1]
    estimator.set_params(**dict(zip(names, values, strict=True)))


def scale_to_tuning(
    estimator: Any, n_tune: int, n_final: int, extrapolate: str | ExtrapolationRule | None
) -> None:
    """Change a candidate for the final fit into one that behaves alike on fewer records.

    Each estimator's own rule applies (`tuning_parameters` of the protocol); a user's rule
    then has the last word on parameters that do not change the price.
    """
    if extrapolate is None or n_tune == n_final:
        return
    for prefix, part in list(nested(estimator)):
        rule = getattr(part, "tuning_parameters", None)
        if rule is not None:
            found = dict(rule(n_tune, n_final))
            if extrapolate != "linear":
                # Where noise rules, the best step grows with the records, where curvature does, it
                # stays; which of them does is not known beforehand, and this is half the way.
                for name in LEARNING_RATES & set(found):
                    found[name] *= math.sqrt(n_final / n_tune)
            estimator.set_params(**{f"{prefix}{name}": value for name, value in found.items()})
    if callable(extrapolate):
        _apply(extrapolate, estimator, n_tune, n_final)


def _apply(rule: ExtrapolationRule, estimator: Any, n_tune: int, n_final: int) -> None:
    changes = dict(rule(estimator.get_params(deep=True), n_tune, n_final))
    costly = sorted(set(changes) & cost_parameters(estimator, list(changes)))
    if costly:
        raise ValueError(
            f"extrapolate must not change parameters that set the price; got {costly[0]!r}."
        )
    estimator.set_params(**changes)


def cost_parameters(estimator: Any, names: list[str]) -> set[str]:
    """Return those of the named parameters on which the price may depend.

    An estimator that names its ``cost_parameters`` is believed; of others, all count.
    """
    costly = set()
    for name, declared in declared_cost_parameters(estimator, names):
        if declared is None or name.rpartition("__")[2] in declared:
            costly.add(name)
    return costly


def declared_cost_parameters(estimator: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Iterate over parameters and what their owners say sets their price, None if they do not."""
    parts = dict(nested(estimator))
    for name in names:
        prefix = name.rpartition("__")[0]
        owner = parts.get(f"{prefix}__" if prefix else "")
        yield name, getattr(owner, "cost_parameters", None)


def declared_labels(estimator: Any) -> list[Any] | None:
    """Return the labels that an estimator was told of."""
    for _, part in nested(estimator):
        declared = own_parameters(part).get("classes")
        if declared is not None:
            return list(declared)
    return None
