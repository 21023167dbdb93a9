"""The plan of a search that returns one tuned model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.model_selection._cost._candidates import Candidates
from skdptune.model_selection._cost._cost_model import Cost, CostModel
from skdptune.model_selection._cost._fit_setting import CurveSetting, NoiseSetting
from skdptune.model_selection._cost._layout import Layout


@dataclass(frozen=True)
class Plan:
    """All that is decided before the data are read.

    Attributes
    ----------
    candidates : Candidates
    model : CostModel
    cost : Cost
        The cost of everything, at the setting that meets the budget.
    components : tuple of PrivacyReport
        Of the report's tree.
    asked : float or None
        The total epsilon that the user gave.
    advice : str
        Why a search of a suggested space cannot be expected to help; empty if it can.
    declined : Plan or None
        The search that is not made, where the estimator is fitted once, as it is, instead.
    """

    candidates: Candidates
    model: CostModel
    cost: Cost
    components: tuple[PrivacyReport, ...]
    asked: float | None
    advice: str = ""
    declined: Plan | None = None

    @property
    def layout(self) -> Layout:
        """How the records are divided."""
        return self.model.layout

    @property
    def delta(self) -> float:
        """At which the total is stated."""
        return self.model.delta

    @property
    def total(self) -> PrivacyProfile:
        """What everything costs that the fitted search shows."""
        return self.cost.total

    def with_classes(self, classes: Any) -> Plan:
        """Return the same plan with estimators that are given the label set."""
        fit_costs = replace(self.model.fit_costs, classes=classes)
        return replace(self, model=replace(self.model, fit_costs=fit_costs))

    @cached_property
    def calibration_in_words(self) -> str:
        """How the noise of the fits was found, and what that loses; empty if it is given.

        Whether candidates differ in what sets their cost decides.
        """
        setting = self.cost.setting
        if isinstance(setting, NoiseSetting):
            return "One noise for all candidates, from the exact cost of the search."
        if isinstance(setting, CurveSetting):
            return (
                "Each candidate's own noise, so that its cost stays below one curve for all; this "
                f"uses {max(self.model.loss(self.cost), 0.0):.1%} of ε."
            )
        if setting is None:
            return ""
        if self.model.fit_costs.is_held_to_budget:
            return (
                "Each candidate's own noise for the ε of a fit; where their costs differ, the "
                "worst cost of such a fit is assumed."
            )
        return "Each candidate's own noise for the ε of a fit, from the exact cost of the search."

    def noise_of_final(self) -> float | None:
        """Return the noise of the returned model's fit, if the estimator has a `noise_level`."""
        model = self.model
        size = model.final_size if self.layout.final else model.train_size
        made = model.fit_costs.configured({}, self.cost.setting, size)
        level = getattr(made, "noise_level", None)
        return None if level is None else float(level(size.n_samples, size.n_features))
