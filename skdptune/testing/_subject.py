"""The estimator under check, with made-up data that suit it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from skdptune.accounting import PrivacyProfile
from skdptune.base import profile_of
from skdptune.base._shared import BudgetOwner, budget_owners, own_parameters

# Odd, so that a fitted number that equals it is not a coincidence.
N_SAMPLES = 127
N_FEATURES = 3
# Methods whose results are compared.
_RESPONSES = ("decision_function", "predict_proba", "predict", "transform")


class CheckFailed(AssertionError):
    """The estimator breaks the contract."""


class CheckDoesNotApply(Exception):
    """The estimator does not offer what a check is about."""


def require(condition: object, message: str) -> None:
    """Raise `CheckFailed` unless the condition holds."""
    if not condition:
        raise CheckFailed(message)


@dataclass(frozen=True)
class Subject:
    """An unfitted estimator and data to fit it to.

    Attributes
    ----------
    estimator : estimator
        Never fitted itself; `fresh` returns copies.
    X, y : array-like
        Records, and targets or None.
    """

    estimator: Any
    X: Any
    y: Any

    @property
    def name(self) -> str:
        """Name of the estimator's class."""
        return type(self.estimator).__name__

    @property
    def n_samples(self) -> int:
        """Number of records."""
        return len(self.X)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(np.shape(self.X)[1])

    @property
    def parameters(self) -> dict[str, Any]:
        """Constructor parameters of the estimator itself."""
        return own_parameters(self.estimator)

    @property
    def budget(self) -> BudgetOwner | None:
        """The estimator as the owner of a finite budget, None where it has none."""
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
        """Return the announced profile of an estimator, by default of the one under check."""
        made = self.estimator if estimator is None else estimator
        return profile_of(made, n_samples or self.n_samples, self.n_features)

    def fitted(self, estimator: Any = None, X: Any = None, y: Any = None) -> Any:
        """Return an estimator after its fit, by default to the data of the check."""
        made = self.fresh() if estimator is None else estimator
        rows, targets = (self.X, self.y) if X is None else (X, y)
        return made.fit(rows) if targets is None else made.fit(rows, targets)

    def needs(self, *names: str) -> None:
        """Raise `CheckDoesNotApply` unless the estimator has the named parameters."""
        for name in names:
            if name not in self.parameters:
                raise CheckDoesNotApply(f"has no parameter {name}")

    def needs_member(self, name: str) -> Any:
        """Return a member of the estimator, or raise `CheckDoesNotApply`."""
        found = getattr(self.estimator, name, None)
        if found is None:
            raise CheckDoesNotApply(f"has no {name}")
        return found

    def responses(self, fitted: Any) -> list[np.ndarray]:
        """Return what a fitted estimator makes of the records."""
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
    """Return data of the same form with quite other values, and the same labels elsewhere."""
    rng = np.random.default_rng(1)
    X = 5.0 * rng.normal(size=np.shape(subject.X)).astype(np.asarray(subject.X).dtype)
    y = None if subject.y is None else np.asarray(subject.y)[rng.permutation(subject.n_samples)]
    return X, y


def same_profile(one: PrivacyProfile, other: PrivacyProfile) -> bool:
    """Return whether two profiles agree, up to rounding."""
    if one == other:
        return True
    deltas = (0.0, 1e-9, 1e-6, 1e-3)
    return all(
        math.isclose(one.epsilon(delta), other.epsilon(delta), rel_tol=1e-6) for delta in deltas
    )
