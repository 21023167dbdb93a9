"""The subject of checks, with made-up data, and checks of its profile before a fit."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags

from skdptune._formatting import shown
from skdptune.accounting import PrivacyProfile, SharedCurve
from skdptune.base import profile_of
from skdptune.base._shared import (
    BUDGET_PARAMETERS,
    RESERVED_PARAMETERS,
    BudgetOwner,
    budget_owners,
    by_persons,
    is_fitted,
    own_parameters,
    persons_of,
)

# Odd, so that a fitted number is unlikely to equal it by coincidence.
N_SAMPLES = 127
N_FEATURES = 3
# Methods whose results are compared.
_RESPONSES = ("decision_function", "predict_proba", "predict", "transform")


class CheckDoesNotApply(Exception):
    """Raised if the estimator does not have the checked feature."""


def require(condition: object, message: str) -> None:
    """Raise an error unless the condition holds."""
    if not condition:
        raise AssertionError(message)


@dataclass(frozen=True)
class Subject:
    """An unfitted estimator, and data for fits.

    Attributes
    ----------
    estimator : estimator
        Never fitted itself; use copies from `fresh`.
    X, y : array-like
        Records, and targets or None.
    groups : array-like or None
        The person of each row.
    """

    estimator: Any
    X: Any
    y: Any
    groups: Any = None

    @property
    def name(self) -> str:
        """Name of the estimator's class."""
        return type(self.estimator).__name__

    @property
    def n_samples(self) -> int:
        """Number of records, or of persons if there are any."""
        persons = persons_of(self.groups, self.X)
        return len(self.X) if persons is None else persons.size

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(np.shape(self.X)[1])

    @property
    def parameters(self) -> dict[str, Any]:
        """The estimator's own constructor parameters."""
        return own_parameters(self.estimator)

    @property
    def budget(self) -> BudgetOwner | None:
        """The estimator as the owner of a finite budget, or None."""
        owners = [owner for owner in budget_owners(self.estimator) if owner.prefix == ""]
        return owners[0] if owners and math.isfinite(self.parameters["epsilon"]) else None

    @property
    def delta(self) -> float:
        """The delta at which the estimator's cost is stated."""
        return (self.budget.delta or 0.0) if self.budget is not None else 1e-5

    def fresh(self, **params: Any) -> Any:
        """Return an unfitted copy with other parameters."""
        return clone(self.estimator).set_params(**params)

    def profile(self, estimator: Any = None, n_samples: int | None = None) -> PrivacyProfile:
        """Return the announced profile of an estimator, by default the subject."""
        made = self.estimator if estimator is None else estimator
        made = made if self.groups is None else by_persons(made)
        return profile_of(made, n_samples or self.n_samples, self.n_features)

    def fitted(self, estimator: Any = None, X: Any = None, y: Any = None) -> Any:
        """Fit an estimator and return it; by default, a copy of the subject on its own data."""
        made = self.fresh() if estimator is None else estimator
        rows, targets = (self.X, self.y) if X is None else (X, y)
        arguments = {} if self.groups is None else {"groups": self.groups}
        given = (rows,) if targets is None else (rows, targets)
        return made.fit(*given, **arguments)

    def needs(self, *names: str) -> None:
        """Raise `CheckDoesNotApply` unless the estimator has the named parameters."""
        for name in names:
            if name not in self.parameters:
                raise CheckDoesNotApply(f"has no parameter {name}")

    def needs_budget(self) -> None:
        """Raise `CheckDoesNotApply` unless a finite epsilon sets the noise."""
        if self.budget is None:
            raise CheckDoesNotApply("has no finite epsilon that sets its noise")

    def needs_member(self, name: str) -> Any:
        """Return an attribute of the estimator, or raise `CheckDoesNotApply`."""
        found = getattr(self.estimator, name, None)
        if found is None:
            raise CheckDoesNotApply(f"has no {name}")
        return found

    def responses(self, fitted: Any) -> list[np.ndarray]:
        """Return the results of a fitted estimator's methods on the records."""
        methods = (getattr(fitted, name, None) for name in _RESPONSES)
        return [np.asarray(method(self.X)) for method in methods if method is not None]


def made_up_data(estimator: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return records in [-1, 1], with labels for a classifier and numbers for a regressor."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(N_SAMPLES, N_FEATURES)).astype(np.float64)
    if is_classifier(estimator):
        declared = own_parameters(estimator).get("classes")
        labels = np.asarray([0, 1] if declared is None else list(declared))
        return X, labels[np.arange(N_SAMPLES) % labels.size]
    return X, 0.5 * X[:, 0] if is_regressor(estimator) else None


def other_values(subject: Subject) -> tuple[np.ndarray, Any]:
    """Return data of the same form with very different values, and shuffled targets."""
    rng = np.random.default_rng(1)
    X = 5.0 * rng.normal(size=np.shape(subject.X)).astype(np.asarray(subject.X).dtype)
    y = None if subject.y is None else np.asarray(subject.y)[rng.permutation(len(subject.X))]
    return X, y


def same_profile(one: PrivacyProfile, other: PrivacyProfile) -> bool:
    """Return whether two profiles agree, up to rounding."""
    if one == other:
        return True
    deltas = (0.0, 1e-9, 1e-6, 1e-3)
    return all(
        math.isclose(one.epsilon(delta), other.epsilon(delta), rel_tol=1e-6) for delta in deltas
    )


_EPSILONS = (0.25, 0.5, 1.0, 2.0)
# Tolerance for rounding and for the unused part of a budget.
SLACK = 1.0 + 1e-6


def check_parameters(subject: Subject) -> None:
    """Check that clones and ``set_params`` keep the parameters as given."""
    before = subject.parameters
    copy = clone(subject.estimator)
    require(
        own_parameters(copy).keys() == before.keys(),
        "clone must have the same parameters; got others.",
    )
    copy.set_params(**before)
    after = own_parameters(copy)
    changed = [name for name in before if after[name] is not before[name]]
    require(not changed, f"set_params must store values as they are; it changed {changed}.")


def check_constructor(subject: Subject) -> None:
    """Check that the constructor sets no attributes that look like results of a fit."""
    estimator = subject.fresh()
    require(
        not hasattr(estimator, "privacy_"),
        "the constructor must leave privacy_ to fit; it is there before.",
    )
    if not get_tags(estimator).requires_fit:
        return
    require(
        not is_fitted(estimator),
        "scikit-learn must not regard the estimator as fitted before its fit; it does, with "
        f"{sorted(fitted_values(estimator))}.",
    )


def check_profile(subject: Subject) -> None:
    """Check that the profile depends only on parameters and public sizes, before any fit."""
    estimator = subject.fresh()
    parameters, names = own_parameters(estimator), fitted_values(estimator).keys()
    try:
        first = subject.profile(estimator)
    except AttributeError as problem:
        raise AssertionError(
            f"privacy_profile must work before fit; it raised AttributeError: {problem}"
        ) from problem
    require(
        same_profile(first, subject.profile(estimator)) and same_profile(first, subject.profile()),
        "privacy_profile must return the same profile in each call; it did not.",
    )
    require(
        fitted_values(estimator).keys() == names
        and _are_the_same(own_parameters(estimator), parameters),
        "privacy_profile must leave the estimator unchanged; it did not.",
    )
    try:
        found = profile_of(estimator, subject.n_samples)
    except ValueError:
        # Some profiles need the number of columns.
        return
    require(isinstance(found, PrivacyProfile), "privacy_profile must do without n_features.")


def check_profile_within_budget(subject: Subject) -> None:
    """Check that a fit costs at most ``epsilon`` at ``delta``."""
    subject.needs_budget()
    epsilon, cost = subject.parameters["epsilon"], subject.profile().epsilon(subject.delta)
    require(
        cost <= epsilon * SLACK,
        f"a fit must cost at most epsilon={epsilon:g} at delta={subject.delta:g}; it costs "
        f"{cost:.6g}.",
    )


def check_profile_monotone_in_epsilon(subject: Subject) -> None:
    """Check that every ``epsilon`` is respected, and that a larger one never costs less."""
    subject.needs_budget()
    costs: list[float] = []
    for epsilon in _EPSILONS:
        cost = subject.profile(subject.fresh(epsilon=epsilon)).epsilon(subject.delta)
        require(
            cost <= epsilon * SLACK,
            f"a fit must cost at most its epsilon; with epsilon={epsilon:g} it costs {cost:.6g}.",
        )
        require(
            not costs or cost >= costs[-1] / SLACK,
            f"a larger epsilon must not cost less; epsilon={epsilon:g} costs {cost:.6g} and a "
            f"smaller one {costs[-1] if costs else 0.0:.6g}.",
        )
        costs.append(cost)


def check_cost_parameters(subject: Subject) -> None:
    """Check that parameters not in ``cost_parameters`` do not change the profile."""
    declared = subject.needs_member("cost_parameters")
    require(
        isinstance(declared, Collection) and not isinstance(declared, str),
        "cost_parameters must be a collection of names.",
    )
    unknown = sorted(set(declared) - set(subject.parameters))
    require(not unknown, f"cost_parameters must name parameters; {unknown} are not.")
    usual = subject.profile()
    for name, value in subject.parameters.items():
        if name in declared:
            continue
        for other in _other_values(name, value):
            found = _profile_or_none(subject, {name: other})
            require(
                found is None or same_profile(found, usual),
                f"cost_parameters must name {shown(name)}: the profile changes with it.",
            )


def check_noise_level(subject: Subject) -> None:
    """Check that the noise is positive, does not grow with ``epsilon`` and can be set again."""
    subject.needs_member("noise_level")
    subject.needs_budget()
    sizes = subject.n_samples, subject.n_features
    levels = [subject.fresh(epsilon=e).noise_level(*sizes) for e in _EPSILONS]
    require(
        all(0.0 < level < math.inf for level in levels),
        f"noise_level must be positive and finite; got {levels}.",
    )
    require(
        all(b <= a * SLACK for a, b in zip(levels, levels[1:], strict=False)),
        f"noise_level must not grow with epsilon; got {levels} for epsilons {_EPSILONS}.",
    )
    if "noise_multiplier" not in subject.parameters:
        return
    level = subject.estimator.noise_level(*sizes)
    given = subject.fresh(epsilon=None, noise_multiplier=level)
    require(
        math.isclose(given.noise_level(*sizes), level, rel_tol=1e-6),
        f"noise_level must return a given noise_multiplier, {level:g}; it returns "
        f"{given.noise_level(*sizes):g}.",
    )


def check_noise_parameter(subject: Subject) -> None:
    """Check that the parameter named ``noise_parameter`` sets the noise for any ``epsilon``."""
    name = subject.needs_member("noise_parameter")
    require(
        name in subject.parameters, f"noise_parameter must name a parameter; got {shown(name)}."
    )
    costs = []
    for noise in (1.0, 2.0, 4.0):
        found = subject.profile(subject.fresh(**{name: noise}))
        without = subject.profile(subject.fresh(**{name: noise, "epsilon": 7.0}))
        require(
            same_profile(found, without),
            f"{name}, the noise_parameter, must determine the profile; epsilon changes it.",
        )
        costs.append(found.epsilon(max(subject.delta, 1e-9)))
    require(
        costs[0] > costs[1] > costs[2],
        f"more of {name}, the noise_parameter, must cost less; 1, 2 and 4 cost {costs}.",
    )
    level = getattr(subject.estimator, "noise_level", None)
    if level is not None and subject.budget is not None:
        noise = level(subject.n_samples, subject.n_features)
        require(
            same_profile(subject.profile(subject.fresh(**{name: noise})), subject.profile()),
            f"{name}={noise:g}, which follows from the budget, must have the cost of the budget.",
        )


def check_calibration_to_curve(subject: Subject) -> None:
    """Check that parameters from ``calibrate_to_curve`` cost at most what the curve allows."""
    calibrated = subject.needs_member("calibrate_to_curve")
    for shift in (0.1, 0.5, 1.0):
        curve = SharedCurve(shift, subject.delta / 100.0)
        values = calibrated(curve, subject.n_samples, subject.n_features)
        require(
            not set(values) - set(subject.parameters),
            f"calibrate_to_curve must return values of parameters; got {sorted(values)}.",
        )
        require(
            curve.covers(subject.profile(subject.fresh(**values))),
            f"calibrate_to_curve must return values whose cost the curve covers; those for a "
            f"shift of {shift:g} cost more.",
        )


def check_tuning_parameters(subject: Subject) -> None:
    """Check that scaling to fewer records changes neither budget, public size nor seed."""
    rule = subject.needs_member("tuning_parameters")
    n_tune, n_final = max(subject.n_samples // 4, 1), subject.n_samples
    before = subject.parameters
    found = dict(rule(n_tune, n_final))
    _check_names(subject, found, before, "tuning_parameters")
    cost = subject.profile(subject.fresh(**found), n_tune).epsilon(subject.delta)
    if subject.budget is not None:
        require(
            cost <= subject.parameters["epsilon"] * SLACK,
            f"tuning_parameters must keep the budget; a fit on fewer records costs {cost:.6g}.",
        )


def check_suggested_space(subject: Subject) -> None:
    """Check that suggested values are valid, and that the current value is always first."""
    suggest = subject.needs_member("suggested_space")
    present, before = subject.estimator.get_params(deep=True), subject.parameters
    for n_features in (None, subject.n_features):
        space = suggest(subject.n_samples, n_features)
        _check_names(subject, space, before, "suggested_space")
        for name, values in space.items():
            require(
                len(values) > 0 and (values[0] is present[name] or values[0] == present[name]),
                "suggested_space must list the present value first; it does not for "
                f"{shown(name)}.",
            )
            for value in values:
                # An invalid value raises an error.
                subject.profile(subject.fresh(**{name: value}))


def _check_names(subject: Subject, found: Any, before: dict[str, Any], rule: str) -> None:
    """Check that a rule names parameters that it may set, and leaves the estimator unchanged."""
    unknown = sorted(set(found) - set(subject.estimator.get_params(deep=True)))
    require(not unknown, f"{rule} must return parameters; {unknown} are not.")
    kept = sorted(set(found) & {*BUDGET_PARAMETERS, *RESERVED_PARAMETERS})
    require(not kept, f"{rule} must leave {kept} to the search; it returns them.")
    is_same = _are_the_same(subject.parameters, before)
    require(is_same, f"{rule} must leave the estimator unchanged; it did not.")


def _are_the_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether parameters are the very same objects."""
    return one.keys() == other.keys() and all(one[name] is other[name] for name in one)


def fitted_values(fitted: Any) -> dict[str, Any]:
    """Return the public attributes that look like results of a fit."""
    return {
        name: value
        for name, value in vars(fitted).items()
        if name.endswith("_") and not name.startswith("_")
    }


def _other_values(name: str, value: Any) -> list[Any]:
    """Return other values of a parameter that may be valid, given its current value."""
    if name == "random_state":
        return [0]
    if name == "n_public":
        return [1000]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 3 * value]
    if isinstance(value, float):
        return [0.5 * value, 3.0 * value]
    return []


def _profile_or_none(subject: Subject, params: dict[str, Any]) -> PrivacyProfile | None:
    """Return the profile with other parameters, or None if they are invalid."""
    try:
        return subject.profile(subject.fresh(**params))
    except (TypeError, ValueError):
        return None
