"""How a search sets the privacy of each candidate's fit: by a budget, a noise, or a curve.

A search solves for one number; a setting is what that number means for an estimator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from skdptune.accounting import Calibration, PrivacyProfile, SharedCurve, calibrate_to_curve
from skdptune.base import (
    Budget,
    BudgetOwner,
    budget_owners,
    change_parameters,
    cost_of,
    nested_estimators,
    own_parameters,
    set_budget,
)
from skdptune.model_selection._cost._plan_cache import PlanCache, plan_key

_LEAST_NOISE, _USUAL_NOISE, _LARGEST_NOISE = 0.05, 2.0, 1e6
_LARGEST_EPSILON = 500.0


class FitSetting(Protocol):
    """What every fit of a search is set to."""

    @property
    def epsilon(self) -> float:
        """What one fit costs at the search's delta."""

    def apply(self, estimator: Any) -> None:
        """Set the estimator's parameters."""

    def noisier(self, factor: float, n_fits: int) -> FitSetting:
        """Return the setting of each of so many fits with this many times the noise."""


@dataclass(frozen=True)
class BudgetSetting:
    """Each fit may cost an epsilon and a delta, which private steps share.

    Each estimator solves for its own noise. Where several steps or several settings of one step
    have to meet one figure, there is no single noise to solve for.
    """

    epsilon: float
    delta: float

    @property
    def budget(self) -> Budget:
        """The budget to be shared."""
        return Budget(self.epsilon, self.delta)

    def apply(self, estimator: Any) -> None:
        """Share the budget out among the estimator's private steps."""
        set_budget(estimator, self.budget)

    def noisier(self, factor: float, n_fits: int) -> BudgetSetting:
        """Return the setting with as much less epsilon, which is about as much more noise."""
        return replace(self, epsilon=self.epsilon / factor)


@dataclass(frozen=True)
class NoiseSetting:
    """The noise of the one private step of every candidate, which the search solves for itself.

    Attributes
    ----------
    prefix : str
        Of the step's parameters, such as ``"clf__"``.
    parameter : str
        Which sets its noise, see `skdptune.base.protocol`.
    noise : float
    epsilon, delta : float
        What the noise costs; the step is given these, too, so that it shows them.

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
        """Set the noise, and beside it what it costs."""
        settings = {"epsilon": self.epsilon, "delta": self.delta, self.parameter: self.noise}
        estimator.set_params(**{f"{self.prefix}{name}": value for name, value in settings.items()})

    def noisier(self, factor: float, n_fits: int) -> NoiseSetting:
        """Return the setting with this many times the noise, at about its cost."""
        return replace(self, noise=self.noise * factor, epsilon=self.epsilon / factor)


@dataclass(frozen=True)
class CurveSetting:
    """Each fit lies below one curve, to which every candidate is calibrated by itself.

    Attributes
    ----------
    curve : SharedCurve
    delta : float
        The search's, at which budgets are stated.

    Notes
    -----
    Theorem F2.
    """

    curve: SharedCurve
    delta: float

    @property
    def epsilon(self) -> float:
        """What one fit costs at the search's delta."""
        return self.curve.profile.epsilon(self.delta)

    def apply(self, estimator: Any) -> None:
        """Set nothing yet: a calibration needs all other parameters, see `calibrate`."""

    def noisier(self, factor: float, n_fits: int) -> CurveSetting:
        """Return the setting of a curve of as much less shift; all fail as rarely as one did."""
        curve = SharedCurve(self.curve.shift / factor, self.curve.failure / n_fits)
        return replace(self, curve=curve)

    def calibrate(self, estimator: Any, n_samples: int, n_features: int | None) -> None:
        """Give the estimator the least noise with which its whole fit lies below the curve.

        Raises
        ------
        UnreachableBudgetError
            If no noise does.
        """
        key = plan_key(estimator, self.curve, self.delta, n_samples, n_features)
        found = _calibrated.get(key)
        if found is None:
            found = self._settings(estimator, (n_samples, n_features))
            _calibrated.put(key, found)
        change_parameters(estimator, found)

    def _settings(self, estimator: Any, size: tuple[int, int | None]) -> dict[str, Any]:
        """Return the parameters, by their names, that make the estimator meet the curve."""
        owners = budget_owners(estimator)
        if len(owners) == 1:
            # What else the estimator does has its cost, too.
            return self._settings_of(owners[0], estimator, estimator, self.curve, size)
        steps = dict(nested_estimators(estimator))
        squares = sum(owner.share**2 for owner in owners)
        found: dict[str, Any] = {}
        for owner in owners:
            curve = self.curve.divided(owner.share**2 / squares, len(owners))
            step = steps[owner.prefix]
            found |= self._settings_of(owner, estimator, step, curve, size)
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

        def profile(value: float) -> PrivacyProfile:
            estimator.set_params(**_prefixed(owner, {noise or "epsilon": value}))
            return cost_of(costed, *size)

        found: Calibration = calibrate_to_curve(
            profile,
            curve,
            parameter="budget" if noise is None else "noise",
            lower=1e-4 if noise is None else _LEAST_NOISE,
            upper=_LARGEST_EPSILON if noise is None else _LARGEST_NOISE,
            guess=curve.profile.epsilon(self.delta) if noise is None else _USUAL_NOISE,
        )
        settings = {**delta, noise or "epsilon": found.value}
        if noise is not None:
            # Beside the noise, what it costs, so that the estimator shows it.
            settings["epsilon"] = found.profile.epsilon(self.delta)
        return _prefixed(owner, settings)


def _prefixed(owner: BudgetOwner, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{owner.prefix}{name}": value for name, value in settings.items()}


# Candidates are configured for planning, for checking and for each fit.
_calibrated = PlanCache(256)


def as_budget(setting: FitSetting | None) -> FitSetting | None:
    """Return the budget that a noise or a curve amounts to, any other setting as it is."""
    if isinstance(setting, NoiseSetting | CurveSetting):
        return BudgetSetting(setting.epsilon, setting.delta)
    return setting


def noise_parameter(estimator: Any) -> tuple[str, str] | None:
    """Return prefix and name of the parameter that sets all noise of an estimator's fit.

    None where a search cannot solve for the noise itself: several steps have a budget, or the one
    that has does not name its ``noise_parameter``.
    """
    owners = budget_owners(estimator)
    if len(owners) != 1:
        return None
    step = dict(nested_estimators(estimator))[owners[0].prefix]
    name = _noise_parameter_of(step, owners[0])
    return None if name is None else (owners[0].prefix, name)


def _noise_parameter_of(step: Any, owner: BudgetOwner) -> str | None:
    """Return the parameter that sets all noise of a private step, None if it names none."""
    name = getattr(step, "noise_parameter", None) if owner.delta else None
    return name if name in own_parameters(step) else None
