"""How hyperparameters meant for the final fit are scaled to a fit on fewer records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from skdptune._formatting import shown
from skdptune.base._cost_parameters import cost_parameters
from skdptune.base._nested_parameters import change_parameters, nested_estimators
from skdptune.base.protocol import Parametrized

ExtrapolationRule = Callable[[dict[str, Any], int, int], Mapping[str, Any]]

# As estimators and nets name it.
LEARNING_RATES = frozenset({"learning_rate", "lr", "optimizer__lr"})


def scale_to_tuning(
    estimator: Parametrized,
    n_tune: int,
    n_final: int,
    extrapolate: str | ExtrapolationRule | None,
    rate_factor: float = 1.0,
) -> None:
    """Change a candidate for the final fit into one that behaves alike on fewer records.

    Each estimator's own rule applies, ``tuning_parameters`` of the protocol. A user's rule is
    applied last, to parameters that do not change the cost. Learning rates that a rule names are
    multiplied by `rate_factor`, for fits that have more noise.
    """
    if extrapolate is None or (n_tune == n_final and rate_factor == 1.0):
        return
    for prefix, part in list(nested_estimators(estimator)):
        rule = getattr(part, "tuning_parameters", None)
        if rule is not None:
            found = dict(rule(n_tune, n_final))
            if extrapolate != "linear":
                # Where noise dominates, the best step grows with the records; where curvature
                # does, it stays. Which of them does is not known beforehand: this is half the way.
                for name in LEARNING_RATES & set(found):
                    found[name] *= math.sqrt(n_final / n_tune) * rate_factor
            change_parameters(
                estimator, {f"{prefix}{name}": value for name, value in found.items()}
            )
    if callable(extrapolate) and n_tune != n_final:
        _apply(extrapolate, estimator, n_tune, n_final)


def _apply(rule: ExtrapolationRule, estimator: Parametrized, n_tune: int, n_final: int) -> None:
    changes = dict(rule(estimator.get_params(deep=True), n_tune, n_final))
    costly = sorted(set(changes) & cost_parameters(estimator, list(changes)))
    if costly:
        raise ValueError(
            f"extrapolate must not change parameters that set the cost; got {shown(costly[0])}."
        )
    change_parameters(estimator, changes)
