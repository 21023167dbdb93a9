"""Cost of one fit of any candidate: the worst over all candidates that a search may try."""

from __future__ import annotations

import contextlib
import io
import math
import pickle
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FunctionType
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from skdptune._compat import remove_callbacks
from skdptune._formatting import shown, shown_names, shown_params
from skdptune.accounting import (
    Calibration,
    PrivacyProfile,
    SharedCurve,
    UnreachableBudgetError,
    calibrate_to_curve,
)
from skdptune.base._shared import (
    HOLDERS,
    Budget,
    BudgetOwner,
    budget_owners,
    change_parameters,
    check_secret_size,
    cost_of,
    cost_parameters,
    declared_cost_parameters,
    disable_caching,
    has_cost,
    is_same,
    nested_estimators,
    own_parameters,
    replaces_records,
    scale_to_tuning,
    set_budget,
    set_public_size,
    worst_cost_of_budget,
)
from skdptune.model_selection._cost._candidates import (
    Candidates,
    Space,
    check_left_to_search,
    copied,
    distinct,
    holds_step,
    is_finite,
)
from skdptune.model_selection._running import is_search


def labels_set_the_cost(estimator: Any, candidates: Candidates) -> bool:
    """Return whether the cost may depend on a label set that is not declared yet."""
    undeclared = [
        step
        for _, step in nested_estimators(estimator)
        if own_parameters(step).get("classes", ()) is None
    ]
    if any("classes" in getattr(step, "cost_parameters", ("classes",)) for step in undeclared):
        return True
    # Other values of parameters that set the cost may make it depend on the labels, too.
    if not any(cost_parameters(estimator, list(space)) for space in candidates):
        return False
    return bool(undeclared) or any(_structural_names(estimator, space) for space in candidates)


def _structural_names(estimator: Any, space: Space) -> list[str]:
    """Return the parameters in a space whose values are steps, or strings for steps."""
    own = estimator.get_params(deep=True)
    return [
        name
        for name, values in space.items()
        if holds_step(own.get(name), words=False)
        or (is_finite(values) and any(holds_step(value) for value in values))
    ]


def plan_key(*content: Any) -> str | None:
    """Return a key of everything that determines a plan; None if it cannot be pickled."""
    try:
        names = _Names()
        names.dump(content)
        return str(joblib.hash((names.found, content)))
    except Exception:
        # Plans of objects that cannot be pickled are solved anew each time.
        return None


class PlanCache:
    """Cache of the last few plans; safe to use from several threads.

    Parameters
    ----------
    size : int
        Largest number of plans that are kept.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._plans: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str | None) -> Any:
        """Return the plan of a key; None if there is none."""
        with self._lock:
            return None if key is None else self._plans.get(key)

    def keep(self, key: str | None, plan: Any) -> None:
        """Keep a plan, and drop the oldest if there are many."""
        if key is not None:
            with self._lock:
                self._plans[key] = plan
                while len(self._plans) > self._size:
                    self._plans.popitem(last=False)


# Profiles of a plan use some ten megabytes.
plan_cache = PlanCache(4)


class _Names(pickle.Pickler):
    """Record the classes and functions that are pickled by name.

    A class that is defined again, as in a notebook, has the same name but is a different one.
    """

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.found: list[int] = []

    def reducer_override(self, obj: Any) -> Any:
        """Record an object's identity; it is pickled as usual."""
        if isinstance(obj, type | FunctionType):
            self.found.append(id(obj))
        return NotImplemented


_LEAST_NOISE, _USUAL_NOISE, _LARGEST_NOISE = 0.05, 2.0, 1e6
_LARGEST_EPSILON = 500.0
_USUAL_DELTA = 1e-6
# Number of draws among which a curve for a space of many costs is chosen.
_DRAWS = 12


@dataclass(frozen=True)
class BudgetSetting:
    """Each fit may cost an epsilon and a delta, shared by its private steps.

    Each estimator solves for its own noise. If several steps or several settings of one step must
    meet one total, their noises differ, and no single one can be solved for.
    """

    epsilon: float
    delta: float

    @property
    def budget(self) -> Budget:
        """The budget to be shared."""
        return Budget(self.epsilon, self.delta)

    def apply(self, estimator: Any) -> None:
        """Divide the budget among the estimator's private steps."""
        set_budget(estimator, self.budget)

    def noisier(self, factor: float, n_fits: int) -> BudgetSetting:
        """Return the setting with epsilon divided by `factor`: about `factor` times the noise."""
        return replace(self, epsilon=self.epsilon / factor)


@dataclass(frozen=True)
class NoiseSetting:
    """Noise of the one private step of every candidate, for which the search solves.

    Attributes
    ----------
    prefix : str
        Prefix of the step's parameters, such as ``"clf__"``.
    parameter : str
        The parameter that sets the step's noise, see `skdptune.base.protocol`.
    noise : float
    epsilon, delta : float
        Cost of the noise; it is also set on the step, so that the step shows it.

    Notes
    -----
    Theorem F2.
    """

    prefix: str
    parameter: str
    noise: float
    epsilon: float
    delta: float

    def apply(self, estimator: Any) -> None:
        """Set the noise, and also its cost."""
        settings = {"epsilon": self.epsilon, "delta": self.delta, self.parameter: self.noise}
        estimator.set_params(**{f"{self.prefix}{name}": value for name, value in settings.items()})

    def noisier(self, factor: float, n_fits: int) -> NoiseSetting:
        """Return the setting with `factor` times the noise, at about its cost."""
        return replace(self, noise=self.noise * factor, epsilon=self.epsilon / factor)


@dataclass(frozen=True)
class CurveSetting:
    """Each fit lies below one curve, to which every candidate is calibrated separately.

    Attributes
    ----------
    curve : SharedCurve
    delta : float
        Delta of the search, at which budgets are stated.
    shape : NoiseSetting, optional
        The setting of the candidate whose own cost is the shape of the curve.
    is_least : bool, default=True
        Whether fits have the least noise; False for any that is large enough.

    Notes
    -----
    Theorem F2.
    """

    curve: SharedCurve
    delta: float
    shape: NoiseSetting | None = None
    is_least: bool = True

    @property
    def epsilon(self) -> float:
        """Epsilon of one fit at the search's delta."""
        return self.curve.profile.epsilon(self.delta)

    def apply(self, estimator: Any) -> None:
        """Set nothing yet: a calibration needs all other parameters, see `calibrate`."""

    def noisier(self, factor: float, n_fits: int) -> CurveSetting:
        """Return the setting for a Gaussian curve with the shift divided by `factor`.

        The total failure probability of `n_fits` fits is that of one fit before.
        """
        curve = SharedCurve(self.curve.shift / factor, self.curve.failure / n_fits)
        return replace(self, curve=curve)

    def calibrate(self, estimator: Any, n_samples: int, n_features: int | None) -> None:
        """Set noise with which the estimator's whole fit lies below the curve.

        Raises
        ------
        UnreachableBudgetError
            If no noise is large enough.
        """
        # The result of a check is reused.
        key = plan_key(estimator, self, n_samples, n_features) if self.is_least else None
        found = _calibrated.get(key)
        if found is None:
            found = self._settings(estimator, (n_samples, n_features))
            _calibrated.keep(key, found)
        change_parameters(estimator, found)

    def _settings(self, estimator: Any, size: tuple[int, int | None]) -> dict[str, Any]:
        """Return the parameters, by name, with which the estimator meets the curve."""
        owners = budget_owners(estimator)
        if len(owners) == 1:
            # Other parts of the estimator have a cost as well.
            return self._settings_of(owners[0], estimator, estimator, self.curve, size)
        steps = dict(nested_estimators(estimator))
        squares = sum(owner.share**2 for owner in owners)
        # With other noise, steps that cost something besides could fit below the curve.
        least = replace(self, is_least=True)
        found: dict[str, Any] = {}
        for owner in owners:
            curve = self.curve.divided(owner.share**2 / squares, len(owners))
            step = steps[owner.prefix]
            found |= least._settings_of(owner, estimator, step, curve, size)
        return found

    def _settings_of(
        self,
        owner: BudgetOwner,
        estimator: Any,
        costed: Any,
        curve: SharedCurve,
        size: tuple[int, int | None],
    ) -> dict[str, Any]:
        """Return the parameters of one private step with which `costed` lies below a curve."""
        step = dict(nested_estimators(estimator))[owner.prefix]
        delta = {} if owner.delta is None else {"delta": self.delta if owner.delta > 0.0 else 0.0}
        change_parameters(estimator, _prefixed(owner, delta))
        by_itself = getattr(step, "calibrate_to_curve", None)
        if by_itself is not None:
            return _prefixed(owner, {**delta, **by_itself(curve, *size)})
        noise = _noise_parameter_of(step, owner)
        usual = _USUAL_NOISE if self.shape is None else self.shape.noise
        # If any noise will do, one that is probably large enough.
        start = curve.profile.epsilon(self.delta) if noise is None else usual
        start *= 1.0 if self.is_least else 0.5 if noise is None else 2.0

        def profile(value: float) -> PrivacyProfile:
            estimator.set_params(**_prefixed(owner, {noise or "epsilon": value}))
            return cost_of(costed, *size)

        found: Calibration = calibrate_to_curve(
            profile,
            curve,
            parameter="budget" if noise is None else "noise",
            lower=1e-4 if noise is None else _LEAST_NOISE,
            upper=_LARGEST_EPSILON if noise is None else _LARGEST_NOISE,
            guess=start,
            **({} if self.is_least else {"tolerance": math.inf}),
        )
        settings = {**delta, noise or "epsilon": found.value}
        if noise is not None and self.is_least:
            # Set the cost in addition to the noise, so that the estimator shows it.
            settings["epsilon"] = found.profile.epsilon(self.delta)
        return _prefixed(owner, settings)


# The setting of every fit of a search.
FitSetting = BudgetSetting | NoiseSetting | CurveSetting


def _prefixed(owner: BudgetOwner, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{owner.prefix}{name}": value for name, value in settings.items()}


# Candidates are configured for planning, for checking and for each fit.
_calibrated = PlanCache(256)


def noise_parameter(estimator: Any) -> tuple[str, str] | None:
    """Return prefix and name of the parameter that sets all noise of an estimator's fit.

    None if a search cannot solve for the noise: several steps have a budget, or the only one does
    not name its ``noise_parameter``.
    """
    owners = budget_owners(estimator)
    if len(owners) != 1:
        return None
    step = dict(nested_estimators(estimator))[owners[0].prefix]
    name = _noise_parameter_of(step, owners[0])
    return None if name is None else (owners[0].prefix, name)


def _noise_parameter_of(step: Any, owner: BudgetOwner) -> str | None:
    """Return the parameter that sets all noise of a private step; None if it names none."""
    name = getattr(step, "noise_parameter", None) if owner.delta else None
    return name if name in own_parameters(step) else None


def neighbours_replace(
    estimator: Any, candidates: Candidates, n_samples: int, n_features: int | None
) -> bool:
    """Return whether neighbours differ by replacing a record; refuse a mixture of relations."""
    # Theorem F8: costs for replacing a record are not mixed with costs for adding one.
    searched = [
        step
        for space in candidates
        for values in space.values()
        if is_finite(values)
        for step in values
        if hasattr(step, "get_params")
    ]
    steps = [step for one in (estimator, *searched) for _, step in nested_estimators(one)]
    if not any(replaces_records(step) for step in steps):
        return False
    # A step without a cost fits either relation, and compositions have that of their parts.
    if any(_adds_records(step, n_samples, n_features) for step in steps):
        raise TypeError(
            "estimator must hold private steps of one kind; got some whose guarantee is about "
            "adding or removing a record, and some about replacing one."
        )
    return True


def _adds_records(step: Any, n_samples: int, n_features: int | None) -> bool:
    """Return whether a step's cost is for adding or removing a record."""
    if replaces_records(step) or not has_cost(step) or isinstance(step, HOLDERS):
        return False
    if is_search(step):
        return False
    try:
        return bool(cost_of(step, n_samples, n_features).epsilon(0.0) > 0.0)
    except (TypeError, ValueError):
        # The searched values may be its parameters.
        return True


# With more combinations than these, each candidate is only held to its budget.
_MOST_COMBINATIONS = 64
_FEW_COMBINATIONS = 4
_SLACK = 1.0 + 1e-9

Combination = dict[str, Any]


@dataclass(frozen=True)
class FitSize:
    """The numbers of records of a fit, all public.

    Attributes
    ----------
    n_samples : int
        Expected number of records.
    n_final : int
        Expected number of records of the fit for which a candidate's parameters are given.
    n_features : int or None
        Number of columns, if known.
    is_secret : bool
        Whether the true number is secret.
    rate_factor : float, default=1.0
        Factor for learning rates, in fits with more noise than the final one.
    """

    n_samples: int
    n_final: int
    n_features: int | None
    is_secret: bool
    rate_factor: float = 1.0


# For quantities that do not depend on sizes.
_ANY_SIZE = FitSize(1, 1, None, False)


@dataclass(frozen=True)
class FitCosts:
    """Costs of the fits of a search's candidates.

    Parameters
    ----------
    estimator : estimator
        The estimator whose parameters are searched.
    candidates : Candidates
        The candidates that are searched.
    extrapolate : "auto", None or callable
        How a candidate is scaled to fewer records.
    classes : sequence or None
        The public label set, for estimators that have a parameter for it.
    is_pure : bool, default=False
        Whether the search sets a budget with a delta of 0, whatever delta the estimator has. The
        parameters that set the cost, and the noise that does, may then be different ones.

    Notes
    -----
    Theorem F2. Candidates that differ only in parameters without influence on the cost have the
    same cost. For the others, each combination of listed values is costed, and the pointwise
    maximum is used. If a search sets the noise, candidates that differ in cost are calibrated to
    one curve (Theorem T4) or, if that is not possible, to one (epsilon, delta).
    """

    estimator: Any
    candidates: Candidates
    extrapolate: Any
    classes: Any = None
    is_pure: bool = False
    _costliest: list[tuple[Combination, str, str] | None] = field(default_factory=list, repr=False)

    def configured(
        self, candidate: dict[str, Any], setting: FitSetting | None, size: FitSize
    ) -> Any:
        """Return the estimator for one fit of a candidate; the run sets its seed."""
        made = self.changed(copied(candidate))
        disable_caching(made)
        for prefix, step in list(nested_estimators(made)):
            remove_callbacks(step)
            heard = f"{prefix}strategy__callbacks"
            if is_search(step) and heard in made.get_params(deep=True):
                # A listener to a search inside this one would learn the number of runs.
                made.set_params(**{heard: None})
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
        # Theorem F2: the worst cost of any candidate bounds each.
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
        """Iterate over costs of fits, each with the number of listed candidates that have it."""
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
            # The first evaluation reports estimators without a cost, and bad parameters.
            made = self.configured(structure, setting, size)
            cost = worst_cost_of_budget(made, setting.budget)
            worst = cost if worst is None else worst | cost
        if worst is None:
            raise ValueError(f"{self.candidates.name} must not be empty; got no structure.")
        return worst

    def noise_parameter(self, size: FitSize) -> tuple[str, str] | None:
        """Return prefix and name of the one parameter that sets all candidates' noise, if any.

        All candidates must share one combination of the other parameters that set their cost, so
        that the same noise has the same cost for each.
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

    def costliest(self, size: FitSize) -> tuple[Combination, str, str] | None:
        """Return the candidate that costs most at one noise, and the parameter that sets it.

        None if no candidate's noise is set by one parameter. Spaces with many costs are
        represented by a few draws, which are the same in every search.
        """
        if not self._costliest:
            found = self._first_combinations()
            if self.is_held_to_budget:
                seeds = np.random.SeedSequence(0).spawn(_DRAWS)
                found = [*found, *self.candidates.draw_each(seeds)]
            costs = [self._cost_at_usual_noise(candidate, size) for candidate in found]
            known = [cost for cost in costs if cost is not None]
            self._costliest.append(max(known, key=lambda cost: cost[0])[1:] if known else None)
        return self._costliest[0]

    def _cost_at_usual_noise(
        self, candidate: Combination, size: FitSize
    ) -> tuple[float, Combination, str, str] | None:
        parameter = noise_parameter(self.configured(candidate, None, size))
        if parameter is None:
            return None
        setting = NoiseSetting(*parameter, _USUAL_NOISE, 1.0, _USUAL_DELTA)
        cost = self.profile_of(candidate, setting, size).epsilon(_USUAL_DELTA)
        return cost, candidate, *parameter

    def can_share_a_curve(self, setting: CurveSetting, size: FitSize) -> bool:
        """Return whether candidates differ in cost and noise brings the first below a curve."""
        firsts = self._first_combinations()
        if not all(budget_owners(self.configured(first, None, size)) for first in firsts):
            return False
        if not self.is_held_to_budget and len(distinct(firsts)) == 1:
            return False
        setting = replace(setting, is_least=False)
        try:
            return setting.curve.covers(self.first_profile(setting, size))
        except UnreachableBudgetError:
            return False

    def few(self, size: FitSize) -> list[Combination]:
        """Return the combinations if they are so few that each can be costed exactly, or none.

        Of single steps, it must be known how to set their noise.
        """
        found = [] if self.is_held_to_budget else distinct(self._first_combinations())
        made = [self.configured(each, None, size) for each in found]
        is_known = all(len(budget_owners(one)) > 1 or noise_parameter(one) for one in made)
        return found if is_known and len(found) <= _FEW_COMBINATIONS else []

    def first_profile(self, setting: FitSetting | None, size: FitSize) -> PrivacyProfile:
        """Return the cost of a single fit, of the first candidate."""
        return self.profile_of(self._first_combinations()[0], setting, size)

    def profile_of(
        self, candidate: Combination, setting: FitSetting | None, size: FitSize
    ) -> PrivacyProfile:
        """Return the cost of a single fit of a candidate."""
        return cost_of(self.configured(candidate, setting, size), size.n_samples, size.n_features)

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
        """Iterate over spaces with the combinations that set the cost; None if too many."""
        return zip(self.candidates, self._combinations, strict=True)

    @cached_property
    def _combinations(self) -> list[list[Combination] | None]:
        return [self._combinations_of(space) for space in self.candidates]

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
            # Which parameters matter may depend on the values of others.
            if costly <= set(names):
                return combinations
            names = sorted(costly | set(names))
            combinations = self.candidates.combinations(space, names, _MOST_COMBINATIONS)
        return None

    def _structures(self, space: Space) -> list[Combination]:
        """Return combinations of values that are steps, or strings for steps."""
        names = _structural_names(self.estimator, space)
        structures = self.candidates.combinations(space, names, _MOST_COMBINATIONS)
        if structures is None:
            raise ValueError(
                f"{self.candidates.name} must list at most {_MOST_COMBINATIONS} combinations of "
                "estimators; got more."
            )
        return structures

    def _undeclared(self, space: Space) -> list[tuple[str, Any]]:
        """Return listed values of parameters whose owners do not declare what sets their cost."""
        structural = _structural_names(self.estimator, space)
        return [
            (name, space[name])
            for name, declared in declared_cost_parameters(self.estimator, list(space))
            if declared is None and is_finite(space[name]) and name not in structural
        ]

    # Checks of a solved setting -----------------------------------------------------------------

    def check_spaces(self, fits: Sequence[tuple[FitSetting | None, FitSize]]) -> None:
        """Raise unless the fits of all candidates can be costed at the solved settings.

        Theorem F3: no cost may depend on a size that is secret.
        """

        def check_fits(candidate: Combination, is_held: bool = False) -> None:
            # All sizes of one candidate, since they often have the same cost.
            for setting, size in fits:
                self._check_fit(candidate, setting, size, is_held)

        for space, combinations in self.spaces():
            if combinations is not None:
                for combination in combinations:
                    check_fits(combination)
                continue
            structures = self._structures(space)
            for structure in structures:
                check_fits(structure, True)
            for name, values in self._undeclared(space):
                # One at a time: a bad value is mostly bad whatever the other values are.
                for value in values:
                    check_fits({**structures[0], name: value}, True)

    def check(
        self, candidates: Sequence[dict[str, Any]], setting: FitSetting | None, size: FitSize
    ) -> None:
        """Raise unless candidates that were not costed separately stay within the budget.

        Draws from distributions, and combinations of values, are seen here for the first time.
        """
        held = [set(space) for space, combinations in self.spaces() if combinations is None]
        if setting is None or not held:
            return
        for candidate in candidates:
            if any(set(candidate) <= names for names in held):
                self._check_fit(candidate, setting, size, True)

    def _check_below(
        self, candidate: dict[str, Any], setting: CurveSetting, size: FitSize
    ) -> None:
        """Raise unless noise brings a candidate's fit below the curve (Theorem T4)."""
        made = self.configured(candidate, None, size)
        if not budget_owners(made):
            # Raises for steps without a cost.
            cost_of(made, size.n_samples, size.n_features)
            raise self._refusal("some candidate has no step with an epsilon that limits its cost")
        # The least noise is solved for when a fit is made, and checked there.
        with contextlib.suppress(UnreachableBudgetError):
            made = self.configured(candidate, replace(setting, is_least=False), size)
        if not setting.curve.covers(cost_of(made, size.n_samples, size.n_features)):
            raise self._refusal(
                f"no noise brings {type(made).__name__} with {shown_params(candidate)} below "
                "the curve shared by all candidates"
            )
        self._check_size(made, size)

    def _check_size(self, made: Any, size: FitSize) -> None:
        if size.is_secret:
            check_secret_size(made, size.n_samples, size.n_features)

    def _check_fit(
        self,
        candidate: dict[str, Any],
        setting: FitSetting | None,
        size: FitSize,
        is_held: bool = False,
    ) -> None:
        """Raise unless a candidate's cost depends only on public sizes and is known or limited."""
        if isinstance(setting, CurveSetting):
            return self._check_below(candidate, setting, size)
        made = self.configured(candidate, setting, size)
        if not is_held:
            return self._check_size(made, size)
        # Raises for steps without a cost, and for bad parameters.
        cost_of(made, size.n_samples, size.n_features)
        self._check_size(made, size)
        owners = {owner.prefix: owner for owner in budget_owners(made)}
        for prefix, step in nested_estimators(made):
            inside = any(prefix.startswith(outer) and prefix != outer for outer in owners)
            if isinstance(step, HOLDERS) or inside or not has_cost(step):
                continue
            cost = cost_of(step, size.n_samples, size.n_features)
            owner = owners.get(prefix)
            if owner is None and cost.epsilon(0.0) > 0.0:
                raise self._refusal(f"{type(step).__name__} has no epsilon that limits its cost")
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

    # Candidates that are proposed later ---------------------------------------------------------

    def check_proposed(
        self, candidates: Iterable[dict[str, Any]], *, sets_budget: bool, surrogate: Any
    ) -> None:
        """Raise unless all candidates are among those that the cost covers.

        Parameters
        ----------
        candidates : iterable of dict
        sets_budget : bool
            Whether the search sets the estimators' budgets.
        surrogate : estimator or None
            The estimator that is trained in their place, if there is one.

        Notes
        -----
        Theorem D3.

        The cost of a fit follows from the parameters that set it. If the plan covers every
        combination of their values, a candidate must agree with one of these; the estimator's own
        values count as one. If the plan holds every candidate to one budget instead, the searched
        parameters may have any plain values.
        """
        known = None if surrogate is None else set(surrogate.get_params(deep=True))
        for candidate in candidates:
            for name in candidate:
                if not isinstance(name, str):
                    raise TypeError(f"the keys of candidates must be names; got {shown(name)}.")
                check_left_to_search(
                    name, self.estimator, sets_budget=sets_budget, where="candidates"
                )
                if known is not None and name not in known:
                    raise ValueError(
                        "candidates must name parameters of tuning_estimator, too; got "
                        f"{shown(name)}."
                    )
            self._check_known(candidate)

    def _check_known(self, candidate: dict[str, Any]) -> None:
        """Raise unless the plan covers the values of a candidate that set its cost."""
        try:
            made = self.changed(candidate)
        except (ValueError, AttributeError):
            raise ValueError(
                f"candidates must name parameters of {type(self.estimator).__name__}; got "
                f"{shown_names(sorted(candidate))}."
            ) from None
        costly = cost_parameters(made, list(candidate))
        own = self.estimator.get_params(deep=True)

        def is_covered(space: Space, combinations: list[Combination] | None) -> bool:
            if combinations is None:
                return all(
                    (name in space and not hasattr(candidate[name], "get_params"))
                    or is_same(candidate[name], own.get(name, is_same))
                    for name in costly
                )
            given = {**own, **candidate}
            return any(
                all(
                    is_same(given.get(name, is_same), {**own, **listed}.get(name, is_same))
                    for name in costly | set(listed)
                )
                for listed in combinations
            )

        if not any(is_covered(space, combinations) for space, combinations in self.spaces()):
            raise ValueError(
                f"candidates must have values of {sorted(costly)} that the plan of the search "
                "covers, since they determine the cost; got others. List them in param_grid or "
                "param_distributions."
            )


def make_pure(estimator: Any) -> Any:
    """Set a delta of 0 on the steps whose budget a search sets, and return the estimator."""
    for owner in budget_owners(estimator):
        if owner.delta is not None:
            estimator.set_params(**{f"{owner.prefix}delta": 0.0})
    return estimator
