"""What one fit costs, whichever candidate it is: the worst over all that a search may try."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from skdptune._compat import remove_callbacks
from skdptune.accounting import PrivacyProfile, UnreachableBudgetError
from skdptune.base import (
    budget_owners,
    change_parameters,
    check_secret_size,
    cost_of,
    cost_parameters,
    declared_cost_parameters,
    disable_caching,
    has_cost,
    nested_estimators,
    own_parameters,
    scale_to_tuning,
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
from skdptune.model_selection._cost._fit_setting import (
    BudgetSetting,
    CurveSetting,
    FitSetting,
    noise_parameter,
)

# With more combinations than these, each candidate is held to its budget alone.
_MOST_COMBINATIONS = 64
_FEW_COMBINATIONS = 4
_SLACK = 1.0 + 1e-9
COMPOSITIONS = (Pipeline, FeatureUnion, ColumnTransformer)

Combination = dict[str, Any]


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
    rate_factor : float, default=1.0
        By which learning rates are multiplied, in fits with more noise than the final one.
    """

    n_samples: int
    n_final: int
    n_features: int | None
    is_secret: bool
    rate_factor: float = 1.0


# For what does not depend on sizes.
_ANY_SIZE = FitSize(1, 1, None, False)


@dataclass(frozen=True)
class FitCosts:
    """Costs of the fits of a search's candidates.

    Parameters
    ----------
    estimator : estimator
        The one whose parameters are searched.
    candidates : Candidates
        What is searched.
    extrapolate : "auto", None or callable
        How a candidate is scaled to fewer records.
    classes : sequence or None
        The public label set, for estimators that have a parameter for it.
    is_pure : bool, default=False
        Whether the search sets a budget with a delta of 0, whatever delta the estimator has. What
        sets a cost, and by what noise, can be another matter then.

    Notes
    -----
    Theorem F2. Candidates that differ in parameters without influence on the cost cost the same.
    Of the others, each combination of listed values is costed, and the pointwise maximum taken.
    Where a search sets the noise, candidates that differ in cost are calibrated to one curve
    (Theorem T4) or, where that cannot be, to one (epsilon, delta).
    """

    estimator: Any
    candidates: Candidates
    extrapolate: Any
    classes: Any = None
    is_pure: bool = False
    _combinations: list[list[Combination] | None] = field(default_factory=list, repr=False)

    def configured(
        self, candidate: dict[str, Any], setting: FitSetting | None, size: FitSize
    ) -> Any:
        """Return the estimator for one fit of a candidate; seeds are left to the run."""
        made = self.changed(copied(candidate))
        disable_caching(made)
        for prefix, step in list(nested_estimators(made)):
            remove_callbacks(step)
            if self.classes is not None and own_parameters(step).get("classes", 0) is None:
                made.set_params(**{f"{prefix}classes": self.classes})
        if setting is not None:
            setting.apply(made)
        sizes = size.n_samples, size.n_final
        scale_to_tuning(made, *sizes, self.extrapolate, size.rate_factor)
        if size.is_secret:
            set_public_size(made, size.n_samples)
        if isinstance(setting, CurveSetting):
            setting.calibrate(made, size.n_samples, size.n_features)
        return made

    def changed(self, candidate: dict[str, Any]) -> Any:
        """Return a copy of the estimator with a candidate's parameters, and no budget yet."""
        made = change_parameters(clone(self.estimator), candidate)
        return make_pure(made) if self.is_pure else made

    # Costs ----------------------------------------------------------------------------------

    def profile(self, setting: FitSetting | None, size: FitSize) -> PrivacyProfile:
        """Return a profile that holds for the fit of every candidate."""
        # Theorem F2.
        first, *others = dict(self._costs(setting, size))
        for cost in others:
            first = first | cost
        return first

    def composed(self, setting: FitSetting | None, size: FitSize) -> PrivacyProfile:
        """Return the profile of one fit of every candidate of a grid, all released."""
        counts: dict[PrivacyProfile, int] = {}
        for cost, count in self._costs(setting, size):
            counts[cost] = counts.get(cost, 0) + count
        total = PrivacyProfile.pure(0.0)
        for cost, count in counts.items():
            total = total + cost * count
        return total

    def _costs(
        self, setting: FitSetting | None, size: FitSize
    ) -> Iterator[tuple[PrivacyProfile, int]]:
        """Iterate over costs of fits, with the number of listed candidates that each is of."""
        for space, combinations in self.spaces():
            listed = math.prod(len(values) for values in space.values() if is_finite(values))
            if isinstance(setting, CurveSetting):
                yield setting.curve.profile, listed
                continue
            if combinations is None:
                yield self._worst_within(space, setting, size), listed
                continue
            for combination in combinations:
                made = self.configured(combination, setting, size)
                cost = cost_of(made, size.n_samples, size.n_features)
                yield cost, listed // len(combinations)

    def _worst_within(
        self, space: Space, setting: FitSetting | None, size: FitSize
    ) -> PrivacyProfile:
        """Return the worst cost of candidates that are held to one budget."""
        if not isinstance(setting, BudgetSetting):
            raise ValueError(
                f"{self.candidates.name} must list few values of parameters that set the cost, "
                "or epsilon must be given, so that every candidate is held to one budget; got "
                f"epsilon=None with {sorted(space)}."
            )
        worst: PrivacyProfile | None = None
        for structure in self._structures(space):
            # What has no cost, or bad parameters, is reported by the first evaluation.
            made = self.configured(structure, setting, size)
            cost = worst_cost_of_budget(made, setting.budget)
            worst = cost if worst is None else worst | cost
        if worst is None:
            raise ValueError(f"{self.candidates.name} must not be empty; got no structure.")
        return worst

    def noise_parameter(self, size: FitSize) -> tuple[str, str] | None:
        """Return prefix and name of the one parameter that sets all candidates' noise, if any.

        All candidates must share one combination of what else sets their cost, so that one noise
        costs the same for each.
        """
        shared: list[Combination] = []
        for _, combinations in self.spaces():
            if combinations is None or len(combinations) != 1:
                return None
            if combinations[0] not in shared:
                shared += combinations
        if len(shared) != 1:
            return None
        return noise_parameter(self.configured(shared[0], None, size))

    def can_share_a_curve(self, setting: CurveSetting, size: FitSize) -> bool:
        """Return whether candidates differ in cost, and noise brings the first below a curve."""
        firsts = self._first_combinations()
        owners = [budget_owners(self.configured(first, None, size)) for first in firsts]
        if not all(owners):
            return False
        distinct = len({repr(sorted(first.items())) for first in firsts})
        # Several private steps lose some by sharing a curve; few candidates are costed exactly.
        few = 1 if max(map(len, owners)) == 1 else _FEW_COMBINATIONS
        if not self.is_held_to_budget and distinct <= few:
            return False
        try:
            return setting.curve.covers(self.first_profile(setting, size))
        except UnreachableBudgetError:
            return False

    def first_profile(self, setting: FitSetting | None, size: FitSize) -> PrivacyProfile:
        """Return what the fit of the first candidate costs by itself."""
        first = self._first_combinations()[0]
        return cost_of(self.configured(first, setting, size), size.n_samples, size.n_features)

    def variants(self) -> list[Any]:
        """Return the estimator with each combination of listed values that sets its cost."""
        return [self.configured(first, None, _ANY_SIZE) for first in self._first_combinations()]

    def _first_combinations(self) -> list[Combination]:
        """Return the listed combinations that set the cost, or the structures of long spaces."""
        firsts: list[Combination] = []
        for space, combinations in self.spaces():
            firsts += self._structures(space) if combinations is None else combinations
        return firsts

    # Which combinations there are ---------------------------------------------------------------

    def spaces(self) -> Iterator[tuple[Space, list[Combination] | None]]:
        """Iterate over the spaces, each with the combinations that set the cost, None for many."""
        # Filled once: it follows from the parameters alone.
        if not self._combinations:
            self._combinations.extend(self._combinations_of(space) for space in self.candidates)
        yield from zip(self.candidates, self._combinations, strict=True)

    @property
    def is_held_to_budget(self) -> bool:
        """Whether too many candidates differ in cost to cost each of them."""
        return any(combinations is None for _, combinations in self.spaces())

    def _combinations_of(self, space: Space) -> list[Combination] | None:
        """Return combinations of values that cover every cost in a space, or None."""
        names: list[str] = []
        combinations: list[Combination] | None = [{}]
        while combinations is not None:
            costly: set[str] = set()
            for combination in combinations:
                made = self.changed(combination)
                costly |= cost_parameters(made, list(space))
            # Which parameters matter may itself depend on the values of others.
            if costly <= set(names):
                return combinations
            names = sorted(costly | set(names))
            combinations = self.candidates.combinations(space, names, _MOST_COMBINATIONS)
        return None

    def _structures(self, space: Space) -> list[Combination]:
        """Return combinations of values that are steps, or words for steps."""
        names = self._structural_names(space)
        structures = self.candidates.combinations(space, names, _MOST_COMBINATIONS)
        if structures is None:
            raise ValueError(
                f"{self.candidates.name} must list at most {_MOST_COMBINATIONS} combinations of "
                "estimators; got more."
            )
        return structures

    def _structural_names(self, space: Space) -> list[str]:
        own = self.estimator.get_params(deep=True)
        return [
            name
            for name, values in space.items()
            if holds_step(own.get(name), words=False)
            or (is_finite(values) and any(holds_step(value) for value in values))
        ]

    def _undeclared(self, space: Space) -> list[tuple[str, Any]]:
        """Return listed values of parameters whose owners do not declare what sets their cost."""
        structural = self._structural_names(space)
        return [
            (name, space[name])
            for name, declared in declared_cost_parameters(self.estimator, list(space))
            if declared is None and is_finite(space[name]) and name not in structural
        ]

    # Checks of a solved setting -----------------------------------------------------------------

    def check_spaces(self, setting: FitSetting | None, size: FitSize) -> None:
        """Raise unless the fits of all candidates can be costed at a setting, once it is solved.

        Theorem F3: no cost may depend on a size that is secret.
        """
        for space, combinations in self.spaces():
            if combinations is not None:
                for combination in combinations:
                    self._check_one(combination, setting, size)
                continue
            structures = self._structures(space)
            for structure in structures:
                self._check_held(structure, setting, size)
            for name, values in self._undeclared(space):
                # One at a time: what is wrong with a value mostly is so beside any others.
                for value in values:
                    self._check_held({**structures[0], name: value}, setting, size)

    def check(
        self, candidates: Sequence[dict[str, Any]], setting: FitSetting | None, size: FitSize
    ) -> None:
        """Raise unless candidates that were not costed one by one keep to the budget.

        What a distribution draws, and combinations of values, are first seen here.
        """
        held = [set(space) for space, combinations in self.spaces() if combinations is None]
        if setting is None or not held:
            return
        for candidate in candidates:
            if any(set(candidate) <= names for names in held):
                self._check_held(candidate, setting, size)

    def check_below(
        self, candidates: Sequence[dict[str, Any]], setting: CurveSetting, size: FitSize
    ) -> None:
        """Raise unless each candidate's fit lies below the curve, listed or not."""
        for candidate in candidates:
            self._check_below(candidate, setting, size)

    def _check_one(
        self, candidate: dict[str, Any], setting: FitSetting | None, size: FitSize
    ) -> None:
        """Raise unless one listed candidate has a cost that depends on public sizes alone."""
        if isinstance(setting, CurveSetting):
            return self._check_below(candidate, setting, size)
        self._check_size(self.configured(candidate, setting, size), size)
        return None

    def _check_below(
        self, candidate: dict[str, Any], setting: CurveSetting, size: FitSize
    ) -> None:
        """Raise unless a candidate's fit lies below the curve (Theorem T4)."""
        bare = self.configured(candidate, None, size)
        # Reports what has no cost, or bad parameters.
        cost_of(bare, size.n_samples, size.n_features)
        if not budget_owners(bare):
            raise self._refusal("not every candidate has a step with an epsilon to hold it to")
        try:
            made = self.configured(candidate, setting, size)
        except UnreachableBudgetError:
            made = bare
        if not setting.curve.covers(cost_of(made, size.n_samples, size.n_features)):
            raise self._refusal(
                f"no noise brings {type(bare).__name__} with {candidate!r:.80} below the curve "
                "that all candidates share"
            )
        self._check_size(made, size)

    def _check_size(self, made: Any, size: FitSize) -> None:
        if size.is_secret:
            check_secret_size(made, size.n_samples, size.n_features)

    def _check_held(
        self, candidate: dict[str, Any], setting: FitSetting | None, size: FitSize
    ) -> None:
        """Raise unless each step of a candidate that costs anything is held to a budget."""
        if isinstance(setting, CurveSetting):
            return self._check_below(candidate, setting, size)
        made = self.configured(candidate, setting, size)
        # Reports what has no cost, or bad parameters.
        cost_of(made, size.n_samples, size.n_features)
        self._check_size(made, size)
        owners = {owner.prefix: owner for owner in budget_owners(made)}
        for prefix, step in nested_estimators(made):
            inside = any(prefix.startswith(outer) and prefix != outer for outer in owners)
            if isinstance(step, COMPOSITIONS) or inside or not has_cost(step):
                continue
            cost = cost_of(step, size.n_samples, size.n_features)
            owner = owners.get(prefix)
            if owner is None and cost.epsilon(0.0) > 0.0:
                raise self._refusal(f"{type(step).__name__} has no epsilon to hold it to")
            delta = 0.0 if owner is None else owner.delta or 0.0
            limit = math.inf if owner is None else own_parameters(step)["epsilon"] * _SLACK
            if not cost.epsilon(delta) <= limit:
                raise self._refusal(
                    f"{type(step).__name__} costs more than its own epsilon at delta={delta:g}"
                )
        return None

    def _refusal(self, why: str) -> ValueError:
        return ValueError(
            f"{self.candidates.name} must list few values of parameters that set the cost; got "
            f"many, and {why}."
        )


def make_pure(estimator: Any) -> Any:
    """Give the steps that a search sets the budget of a delta of 0, and return the estimator."""
    for owner in budget_owners(estimator):
        if owner.delta is not None:
            estimator.set_params(**{f"{owner.prefix}delta": 0.0})
    return estimator
