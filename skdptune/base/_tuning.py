"""What a search sets in an estimator: a budget, a public size, parameters for fewer records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from skdptune._formatting import shown
from skdptune.accounting import PrivacyProfile
from skdptune.base._costs import DEFAULT_DELTA, cost_of, has_cost
from skdptune.base._parameters import (
    change_parameters,
    cost_parameters,
    nested_estimators,
    own_member,
    own_parameters,
)
from skdptune.base._scikit_learn import width_after
from skdptune.base.protocol import Parametrized

# Budgets: how the private steps inside an estimator share one --------------------------------

# Parameters that a search with a budget sets.
BUDGET_PARAMETERS: tuple[str, ...] = ("epsilon", "delta", "noise_multiplier")
_EPOCHS = ("epochs", "max_epochs")
# At this epsilon, the noise is negligible.
_LARGE_EPSILON = 50.0


@dataclass(frozen=True)
class BudgetOwner:
    """A private step whose noise follows from its ``epsilon``.

    Attributes
    ----------
    prefix : str
        Prefix of its parameters' names, such as ``"clf__"``.
    share : float
        Its share of the total epsilon of all owners.
    delta : float or None
        Its own delta; None if it does not have this parameter.
    """

    prefix: str
    share: float
    delta: float | None


@dataclass(frozen=True)
class Budget:
    """The cost limit of a candidate's fit: an epsilon to be shared, and each owner's delta."""

    epsilon: float
    delta: float


def budget_owners(estimator: Parametrized) -> list[BudgetOwner]:
    """Return the private steps whose epsilon a search may set; nested ones follow their owner."""
    found: list[tuple[str, float, float | None]] = []
    for prefix, part in nested_estimators(estimator):
        parameters = own_parameters(part)
        if parameters.get("epsilon") is None or not has_cost(part):
            continue
        if parameters.get("noise_multiplier") is not None and not takes_most_steps(part):
            continue
        if any(prefix.startswith(outer) for outer, _, _ in found):
            continue
        epsilon = float(parameters["epsilon"])
        delta = parameters.get("delta")
        if delta is None and "delta" in parameters:
            delta = _inherited_delta(part)
        found.append((prefix, epsilon if math.isfinite(epsilon) else 1.0, delta))
    # Epsilons may be so small that their sum is zero.
    total = sum(epsilon for _, epsilon, _ in found) or 1.0
    return [BudgetOwner(prefix, epsilon / total, delta) for prefix, epsilon, delta in found]


def takes_most_steps(step: Parametrized) -> bool:
    """Return whether a step's number of steps is set by its budget, even with a given noise."""
    parameters = own_parameters(step)
    return any(
        isinstance(parameters.get(name), str) and parameters[name] == "max" for name in _EPOCHS
    )


def is_set_by_budget(estimator: Parametrized, name: str) -> bool:
    """Return whether a search with a budget sets a parameter, given by its full name."""
    prefix, separator, last = name.rpartition("__")
    if last != "noise_multiplier":
        return last in BUDGET_PARAMETERS
    step = dict(nested_estimators(estimator)).get(prefix + separator)
    return step is None or not takes_most_steps(step)


def _inherited_delta(owner: Parametrized) -> float:
    """Return the delta of an estimator that inherits it from nested ones, as searches do."""
    parts = [part for prefix, part in nested_estimators(owner) if prefix]
    inner = [own_parameters(part).get("delta") for part in parts]
    return max((delta for delta in inner if delta is not None), default=DEFAULT_DELTA)


def set_budget(estimator: Parametrized, budget: Budget) -> None:
    """Share a budget among the private steps, in proportion to their own epsilons.

    A step with ``delta=0`` keeps a delta of zero.
    """
    for owner in budget_owners(estimator):
        settings = {f"{owner.prefix}epsilon": owner.share * budget.epsilon}
        if owner.delta is not None:
            settings[f"{owner.prefix}delta"] = budget.delta if owner.delta > 0.0 else 0.0
        estimator.set_params(**settings)


def worst_cost_of_budget(estimator: Parametrized, budget: Budget) -> PrivacyProfile:
    """Return a profile that covers any fit within a budget, whatever its other parameters."""
    total = PrivacyProfile.pure(0.0)
    for owner in budget_owners(estimator):
        delta = budget.delta if owner.delta else 0.0
        total = total + PrivacyProfile.approximate(owner.share * budget.epsilon, delta)
    return total


def without_noise(estimator: Parametrized, size: int, n_features: int | None) -> Any:
    """Return a copy that adds no noise or very little, for fits that are charged elsewhere."""
    free = clone(estimator)
    steps: dict[str, Any] = dict(nested_estimators(free))
    for owner in budget_owners(estimator):
        name = f"{owner.prefix}epsilon"
        step = steps[owner.prefix]
        if takes_most_steps(step):
            # Without noise, "max" would mean infinitely many steps.
            step.set_params(**step.fixed_epochs(size, n_features), noise_multiplier=None)
        free.set_params(**{name: math.inf})
        try:
            # Test the step separately: composed with steps that still have noise, its cost takes
            # seconds.
            cost_of(step if has_cost(step) else free, size, n_features)
        except ValueError:
            # Some estimators do not accept an infinite epsilon.
            free.set_params(**{name: _LARGE_EPSILON})
    return free


# A public constant in place of the number of records, if that number is secret ---------------


def set_public_size(estimator: Parametrized, size: int) -> None:
    """Set ``n_public`` wherever it is a parameter, for fits on a random part of the records.

    Notes
    -----
    Theorem F3.
    """
    for prefix, part in nested_estimators(estimator):
        if "n_public" in own_parameters(part):
            estimator.set_params(**{f"{prefix}n_public": size})


def check_secret_size(estimator: Parametrized, size: int, n_features: int | None) -> None:
    """Raise if the cost of a fit depends on its number of records, which is secret.

    Raises
    ------
    TypeError
        The message says what to do about it.

    Notes
    -----
    Theorem F3.
    """
    if cost_of(estimator, size, n_features) != cost_of(estimator, 2 * size + 1, n_features):
        raise TypeError(
            "estimator must have a parameter n_public, or a cost that does not depend on the "
            f"number of records; got {type(estimator).__name__}. Random parts of the data have a "
            "secret size; public validation data (X_val, y_val) and tuning_fraction=None avoid "
            "them."
        )


# Parameters meant for the final fit, in a fit on fewer records -------------------------------

_ExtrapolationRule = Callable[[dict[str, Any], int, int], Mapping[str, Any]]

# The names of this parameter in estimators and nets.
LEARNING_RATES = frozenset({"learning_rate", "lr", "optimizer__lr"})


def scale_to_tuning(
    estimator: Parametrized,
    n_tune: int,
    n_final: int,
    extrapolate: str | _ExtrapolationRule | None,
    rate_factor: float = 1.0,
) -> None:
    """Change a candidate for the final fit so that it behaves similarly on fewer records.

    Each estimator's own rule applies: ``tuning_parameters`` of the protocol. A user's rule is
    applied last, to parameters that do not change the cost. Learning rates returned by an
    estimator's rule are multiplied by `rate_factor`, for fits with more noise.
    """
    if extrapolate is None or (n_tune == n_final and rate_factor == 1.0):
        return
    for prefix, part in list(nested_estimators(estimator)):
        rule = getattr(part, "tuning_parameters", None)
        if rule is not None:
            found = dict(rule(n_tune, n_final))
            if extrapolate != "linear":
                # If noise dominates, the best step size grows with the records; if curvature
                # dominates, it stays the same. Which one dominates is not known beforehand, so
                # this takes the geometric mean.
                for name in LEARNING_RATES & set(found):
                    found[name] *= math.sqrt(n_final / n_tune) * rate_factor
            change_parameters(
                estimator, {f"{prefix}{name}": value for name, value in found.items()}
            )
    if callable(extrapolate) and n_tune != n_final:
        _apply(extrapolate, estimator, n_tune, n_final)


def _apply(rule: _ExtrapolationRule, estimator: Parametrized, n_tune: int, n_final: int) -> None:
    changes = dict(rule(estimator.get_params(deep=True), n_tune, n_final))
    costly = sorted(set(changes) & cost_parameters(estimator, list(changes)))
    if costly:
        raise ValueError(
            f"extrapolate must not change parameters that set the cost; got {shown(costly[0])}."
        )
    change_parameters(estimator, changes)


# Search spaces suggested by an estimator -----------------------------------------------------

# Measured upper bound on the accuracy lost by doubling the noise, in points, times epsilon and the
# number of records. If this loss is large, a search is not worth its noise.
LOSS_OF_DOUBLING = 1e4


def suggests_a_space(estimator: Any) -> bool:
    """Return whether an estimator, or one nested in it, has a ``suggested_space``."""
    if callable(own_member(estimator, "suggested_space")):
        return True
    return any(suggests_a_space(part) for _, part, _ in _parts(estimator, None))


def suggested_space(
    estimator: Any, n_samples: int, n_features: int | None
) -> dict[str, list[Any]]:
    """Return suggested values of parameters, by their full names; empty if there are none.

    Parameters
    ----------
    estimator : estimator
        One with a ``suggested_space``, or a composition that contains such estimators.
    n_samples : int
        Number of records; public.
    n_features : int or None
        Number of columns, if known.

    Returns
    -------
    dict of lists
        The first value of each parameter is the estimator's current one, according to the
        estimator.
    """
    own = own_member(estimator, "suggested_space")
    if callable(own):
        return {name: list(values) for name, values in own(n_samples, n_features).items()}
    return {
        f"{prefix}__{name}": values
        for prefix, part, width in _parts(estimator, n_features)
        for name, values in suggested_space(part, n_samples, width).items()
    }


def _parts(estimator: Any, n_features: int | None) -> Iterator[tuple[str, Any, int | None]]:
    """Iterate over nested estimators, with their names and numbers of columns, if known."""
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps:
            yield name, step, n_features
            n_features = width_after(step, n_features)
    elif isinstance(estimator, FrozenEstimator):
        return
    elif hasattr(estimator, "get_params") and not isinstance(estimator, type):
        for name, part in sorted(own_parameters(estimator).items()):
            if hasattr(part, "get_params"):
                yield name, part, None
