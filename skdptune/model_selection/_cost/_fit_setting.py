"""How a search sets the privacy of each candidate's fit: by a budget, or by the noise itself.

A search solves for one number; a setting is what that number means for an estimator. This is the
place for further settings, such as a curve that all candidates are calibrated to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from skdptune.base import (
    Budget,
    budget_owners,
    nested_estimators,
    own_parameters,
    set_budget,
)


class FitSetting(Protocol):
    """What every fit of a search is set to."""

    @property
    def epsilon(self) -> float:
        """What one fit costs at the search's delta."""

    def apply(self, estimator: Any) -> None:
        """Set the estimator's parameters."""


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


def as_budget(setting: FitSetting | None) -> FitSetting | None:
    """Return the budget that a noise was solved for, any other setting as it is."""
    if isinstance(setting, NoiseSetting):
        return BudgetSetting(setting.epsilon, setting.delta)
    return setting


def noise_parameter(estimator: Any) -> tuple[str, str] | None:
    """Return prefix and name of the parameter that sets all noise of an estimator's fit.

    None where a search cannot solve for the noise itself: several steps have a budget, or the one
    that has does not name its ``noise_parameter``.
    """
    owners = budget_owners(estimator)
    if len(owners) != 1 or not owners[0].delta:
        return None
    prefix = owners[0].prefix
    step = dict(nested_estimators(estimator))[prefix]
    name = getattr(step, "noise_parameter", None)
    return (prefix, name) if name in own_parameters(step) else None
