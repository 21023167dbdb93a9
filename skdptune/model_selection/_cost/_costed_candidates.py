"""Whether a candidate from outside is among those that a search's cost covers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import joblib
import numpy as np

from skdptune.base import (
    RESERVED_PARAMETERS,
    cost_parameters,
    is_set_by_budget,
)
from skdptune.model_selection._cost._candidates import Space
from skdptune.model_selection._cost._fit_costs import Combination, FitCosts


class CostedCandidates:
    """Candidates that cost no more than the plan of a search allows.

    Parameters
    ----------
    fit_costs : FitCosts
        Costs of the search's candidates.
    sets_budget : bool
        Whether the search sets the estimators' budgets.
    tuning_estimator : estimator or None
        What is trained in their place, if something else is.

    Notes
    -----
    Theorem D3.

    The cost of a fit follows from the parameters that set it. Where the plan covers every
    combination of their values, a candidate must agree with one of these, if only by the
    estimator's own values. Where it holds every candidate to one budget instead, plain values of
    the searched parameters may be any.
    """

    def __init__(self, fit_costs: FitCosts, sets_budget: bool, tuning_estimator: Any) -> None:
        self._fit_costs = fit_costs
        self._sets_budget = sets_budget
        self._own = fit_costs.estimator.get_params(deep=True)
        self._tuned = (
            None if tuning_estimator is None else set(tuning_estimator.get_params(deep=True))
        )

    def check(self, candidates: Iterable[dict[str, Any]]) -> None:
        """Raise unless all candidates are among those that the cost covers."""
        for candidate in candidates:
            self._check_names(candidate)
            self._check_cost(candidate)

    def _check_names(self, candidate: dict[str, Any]) -> None:
        for name in candidate:
            if not isinstance(name, str):
                raise TypeError(f"candidates must have names as keys; got {name!r}.")
            is_reserved = name.rpartition("__")[2] in RESERVED_PARAMETERS
            is_set = self._sets_budget and is_set_by_budget(self._fit_costs.estimator, name)
            if is_reserved or is_set:
                raise ValueError(
                    f"candidates must leave {name!r} to the search; got a value for it."
                )
            if self._tuned is not None and name not in self._tuned:
                raise ValueError(
                    f"candidates must name parameters of tuning_estimator, too; got {name!r}."
                )

    def _check_cost(self, candidate: dict[str, Any]) -> None:
        estimator = self._fit_costs.estimator
        try:
            made = self._fit_costs.changed(candidate)
        except (ValueError, AttributeError) as error:
            raise ValueError(
                f"candidates must name parameters of {type(estimator).__name__}; got "
                f"{sorted(candidate)}."
            ) from error
        costly = cost_parameters(made, list(candidate))
        if not any(
            self._has_known_cost(candidate, costly, space, combinations)
            for space, combinations in self._fit_costs.spaces()
        ):
            raise ValueError(
                f"candidates must have values of {sorted(costly)} that the plan of the "
                "search covers, as these set the cost; got others. List them in param_grid or "
                "param_distributions."
            )

    def _has_known_cost(
        self,
        candidate: dict[str, Any],
        costly: set[str],
        space: Space,
        combinations: list[Combination] | None,
    ) -> bool:
        if combinations is None:
            return all(
                (name in space and not hasattr(candidate[name], "get_params"))
                or _same(candidate[name], self._own.get(name, _same))
                for name in costly
            )
        return any(
            all(
                _same(self._value(candidate, name), self._value(combination, name))
                for name in costly | set(combination)
            )
            for combination in combinations
        )

    def _value(self, values: dict[str, Any], name: str) -> Any:
        return values[name] if name in values else self._own.get(name, _same)


def _same(one: Any, other: Any) -> bool:
    """Return whether two values of a parameter are the same."""
    if one is other:
        return True
    plain = (str, bytes, int, float, np.generic, type(None))
    if isinstance(one, plain) and isinstance(other, plain):
        return bool(one == other)
    try:
        return bool(joblib.hash(one) == joblib.hash(other))
    except Exception:
        # What cannot be compared is taken to be different, which only refuses.
        return False
