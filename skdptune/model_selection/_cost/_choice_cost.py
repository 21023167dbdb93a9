"""The cost of searches that choose by scores on disjoint partitions, and train the winner."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from skdptune.accounting import PrivacyProfile, PrivacyReport, search_on_split
from skdptune.model_selection._cost._cost_model import NO_NOISE, Cost, CostModel, ProfileOfFit
from skdptune.model_selection._cost._fit_setting import FitSetting

# From epsilon, the number of partitions and of scored records (None if these are public) to the
# cost of a choice, for records that train and for records that score.
ChoiceCost = Callable[[float, int, int | None], tuple[PrivacyProfile, PrivacyProfile]]
# Share of a fit's epsilon that choosing its parameters may cost.
_CHOICE_SHARE = 0.25


def free_choice(
    epsilon: float, n_partitions: int, n_score: int | None
) -> tuple[PrivacyProfile, PrivacyProfile]:
    """Return the cost of a choice that looks at no data."""
    return PrivacyProfile.pure(0.0), PrivacyProfile.pure(0.0)


@dataclass(frozen=True)
class ChoiceCostModel(CostModel):
    """The cost of a choice by utilities on partitions, and of one fit on all records.

    Parameters
    ----------
    choice_epsilon : float
        What the choice may cost.
    choice : callable
        See `ChoiceCost`.
    n_partitions : int
        Number of disjoint partitions.
    """

    choice_epsilon: float = 0.0
    choice: ChoiceCost = free_choice
    n_partitions: int = 0

    def _of_fits(self, profile_of: ProfileOfFit, setting: FitSetting | None) -> Cost:
        layout = self.layout
        fit = profile_of(setting, self.final_size)
        trained, scored = self.choice(self.choice_epsilon, self.n_partitions, self.n_score)
        final = fit if layout.final else None
        total = search_on_split(trained, scored, final, validation_fraction=layout.validation)
        return Cost(total, fit, trained, scored, final, NO_NOISE, setting, setting)

    @property
    def n_score(self) -> int | None:
        """Public constant for the number of records that a score averages; None if public."""
        return None if self.layout.public else self.layout.n_score

    def check(self, cost: Cost) -> None:
        """Raise unless the final fit of every candidate can be costed."""
        self.fit_costs.check_spaces(cost.setting, self.final_size)

    def components(self, cost: Cost) -> tuple[PrivacyReport, ...]:
        """Return the components of the report's tree: the choice and the fit."""
        choice = PrivacyReport(
            self.selection(cost),
            self.delta,
            name="selection",
            note=f"{self.note}, {self.n_partitions} disjoint partitions",
        )
        if cost.final is None:
            return (choice,)
        final = PrivacyReport(cost.final, self.delta, name="final fit", note="on all records")
        return choice, final


def default_choice_epsilon(total: float | None, model: CostModel) -> float:
    """Return what a choice may cost by default: a share of the total, or of the fit."""
    if total is None:
        own = model.fit_costs.profile(None, model.final_size).epsilon(model.delta)
        total = own if 0.0 < own < math.inf else 1.0
    return _CHOICE_SHARE * total
