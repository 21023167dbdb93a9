"""What one fit costs, whichever candidate it is: the worst over all that a search may try."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from skdptune._compat import remove_callbacks
from skdptune.accounting import PrivacyProfile
from skdptune.base import (
    Budget,
    budget_owners,
    check_secret_size,
    cost_of,
    cost_parameters,
    declared_cost_parameters,
    disable_caching,
    has_cost,
    nested_estimators,
    own_parameters,
    scale_to_tuning,
    set_budget,
    set_public_size,
    worst_cost_of_budget,
)
from skdptune.model_selection._cost._candidates import (
    Candidates,
    Space,
    copied,
    holds_step,
    is_finite,
)

# With more settings than these, each candidate is priced by its budget alone.
_MOST_SETTINGS = 64
_SLACK = 1.0 + 1e-9
COMPOSITIONS = (Pipeline, FeatureUnion, ColumnTransformer)


@dataclass(frozen=True)
class FitSize:
    """The records of a fit, in public numbers.

    Attributes
    ----------
    n_samples : int
        Expected number of records.
    n_final : int
        Expected number of records of the fit that a candidate's parameters are meant for.
    n_features : int or None
        Number of columns, if known.
    is_secret : bool
        Whether the real number is secret.
    """

    n_samples: int
    n_final: int
    n_features: int | None
    is_secret: bool


@dataclass(frozen=True)
class FitCosts:
    """Prices of the fits of a search's candidates.

    Parameters
    ----------
    estimator : estimator
        The one whose parameters are searched.
    candidates : Candidates
        What is searched.
    extrapolate : "auto", None or callable
        How a candidate is scaled to fewer records.
    classes : sequence or None
        The public label set, for estimators that want to be told.
    """

    estimator: Any
    candidates: Candidates
    extrapolate: Any
    classes: Any = None
    _settings: list[Any] = field(default_factory=list, repr=False)

    def configured(self, candidate: dict[str, Any], budget: Budget | None, size: FitSize) -> Any:
        """Return the estimator for one fit of a candidate; seeds are left to the run."""
        made = clone(self.estimator)
        made.set_params(**copied(candidate))
        disable_caching(made)
        for prefix, part in list(nested_estimators(made)):
            remove_callbacks(part)
            if self.classes is not None and own_parameters(part).get("classes", 0) is None:
                made.set_params(**{f"{prefix}classes": self.classes})
        if budget is not None:
            set_budget(made, budget)
        scale_to_tuning(made, size.n_samples, size.n_final, self.extrapolate)
        if size.is_secret:
            set_public_size(made, size.n_samples)
        return made

    def _cost_of(self, made: Any, size: FitSize) -> PrivacyProfile:
        if size.is_secret:
            check_secret_size(made, size.n_samples, size.n_features)
        return cost_of(made, size.n_samples, size.n_features)

    def profile(self, budget: Budget | None, size: FitSize) -> PrivacyProfile:
        """Return a profile that holds for the fit of every candidate.

        Notes
        -----
        Candidates that differ in parameters with no influence on the price cost the same. Of the
        others, each combination of listed values is priced, and the pointwise maximum
        taken. Where these are too many, or drawn from a distribution, what remains is that each
        candidate is calibrated to one (epsilon, delta).
        """
        return _worst(list(dict.fromkeys(p for p, _, _ in self._costed(budget, size))))

    def composed(self, budget: Budget | None, size: FitSize) -> PrivacyProfile:
        """Return the profile of one fit of every candidate of a grid, all released."""
        counts: dict[PrivacyProfile, int] = {}
        for profile, space, sharers in self._costed(budget, size):
            number = math.prod(len(values) for values in space.values()) // sharers
            counts[profile] = counts.get(profile, 0) + number
        total = PrivacyProfile.pure(0.0)
        for profile, count in counts.items():
            total = total + profile * count
        return total

    def _costed(
        self, budget: Budget | None, size: FitSize
    ) -> Iterator[tuple[PrivacyProfile, Space, int]]:
        """Iterate over prices, with the space that each is of and how many share that space."""
        for space, settings in zip(self.candidates, self._all_settings(), strict=True):
            if settings is None:
                yield self._by_budget(space, budget, size), space, 1
                continue
            for setting in settings:
                made = self.configured(setting, budget, size)
                yield self._cost_of(made, size), space, len(settings)

    def _all_settings(self) -> list[Any]:
        # Filled once: it follows from the parameters alone.
        if not self._settings:
            self._settings.extend(self._settings_of(space) for space in self.candidates)
        return self._settings

    def _settings_of(self, space: Space) -> list[dict[str, Any]] | None:
        """Return combinations of values that cover every price in a space, or None."""
        names: list[str] = []
        settings: list[dict[str, Any]] | None = [{}]
        while settings is not None:
            costly: set[str] = set()
            for setting in settings:
                made = clone(self.estimator).set_params(**setting)
                costly |= cost_parameters(made, list(space))
            # Which parameters matter may itself depend on the values of others.
            if costly <= set(names):
                return settings
            names = sorted(costly | set(names))
            settings = self.candidates.combinations(space, names, _MOST_SETTINGS)
        return None

    def _by_budget(self, space: Space, budget: Budget | None, size: FitSize) -> PrivacyProfile:
        if budget is None:
            raise ValueError(
                f"{self.candidates.name} must list few values of parameters that set the price, "
                "or epsilon must be given, so that every candidate is held to one budget; got "
                f"epsilon=None with {sorted(space)}."
            )
        structures = self.candidates.combinations(space, self._structural(space), _MOST_SETTINGS)
        if structures is None:
            raise ValueError(
                f"{self.candidates.name} must list at most {_MOST_SETTINGS} combinations of "
                "estimators; got more."
            )
        for name, values in self._unsaid(space):
            # One at a time: what is wrong with a value mostly is so beside any others.
            for value in values:
                self._held({**structures[0], name: value}, budget, size)
        return _worst([self._held(structure, budget, size) for structure in structures])

    def check(
        self, candidates: list[dict[str, Any]], budget: Budget | None, size: FitSize
    ) -> None:
        """Raise unless candidates that were not priced one by one keep to the budget.

        What a distribution draws, and combinations of values, are first seen here.
        """
        spaces = zip(self.candidates, self._all_settings(), strict=True)
        held = [set(space) for space, settings in spaces if settings is None]
        if budget is None or not held:
            return
        for candidate in candidates:
            if any(set(candidate) <= names for names in held):
                made = self.configured(candidate, budget, size)
                cost_of(made, size.n_samples, size.n_features)
                self._check_covered(made, size)

    def _structural(self, space: Space) -> list[str]:
        """Return the names whose values are estimators or stand for them: steps that change."""
        own = self.estimator.get_params(deep=True)
        return [
            name
            for name, values in space.items()
            if holds_step(own.get(name), words=False)
            or (is_finite(values) and any(holds_step(value) for value in values))
        ]

    def _unsaid(self, space: Space) -> list[tuple[str, Any]]:
        """Return listed values of parameters whose owners do not say what sets their price."""
        structural = self._structural(space)
        return [
            (name, space[name])
            for name, declared in declared_cost_parameters(self.estimator, space)
            if declared is None and is_finite(space[name]) and name not in structural
        ]

    def _held(self, structure: dict[str, Any], budget: Budget, size: FitSize) -> PrivacyProfile:
        """Return the profile of any fit of one structure of steps, held to a budget."""
        made = self.configured(structure, budget, size)
        # Reports what has no price, or bad parameters.
        self._cost_of(made, size)
        self._check_covered(made, size)
        return worst_cost_of_budget(made, budget)

    def _check_covered(self, made: Any, size: FitSize) -> None:
        """Raise unless each step that costs anything is held to a budget of its own."""
        owners = {owner.prefix: owner for owner in budget_owners(made)}
        for prefix, part in nested_estimators(made):
            inside = any(prefix.startswith(outer) and prefix != outer for outer in owners)
            if isinstance(part, COMPOSITIONS) or inside or not has_cost(part):
                continue
            cost = cost_of(part, size.n_samples, size.n_features)
            owner = owners.get(prefix)
            if owner is None and cost.epsilon(0.0) > 0.0:
                raise ValueError(
                    f"{self.candidates.name} must list few values of parameters that set the "
                    f"price; got many, and {type(part).__name__} has no epsilon to hold it to."
                )
            if owner is not None and not cost.epsilon(owner.delta or 0.0) <= part.epsilon * _SLACK:
                raise ValueError(
                    f"{self.candidates.name} must list few values of parameters that set the "
                    f"price; got many, and {type(part).__name__} costs more than its own epsilon "
                    f"at delta={owner.delta or 0.0:g}."
                )


def _worst(profiles: list[PrivacyProfile]) -> PrivacyProfile:
    worst = profiles[0]
    for profile in profiles[1:]:
        worst = worst | profile
    return worst
