"""Privacy costs of the parameters of a Pareto search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdptune.accounting import PrivacyProfile
from skdptune.base import check_secret_size, cost_of, nested_estimators, replaces_records
from skdptune.model_selection._cost import Candidates, FitCosts, FitSize, Layout
from skdptune.model_selection._pareto._families import Families

# Parameters are proposed one by one.
_NO_CANDIDATES = Candidates([{}], name="param_space", drawn=False)
# Orders of the moments accountant: integers, in its paper and in the paper on Pareto fronts.
_MOMENTS = np.arange(2.0, 257.0)


@dataclass(frozen=True)
class ParameterCosts:
    """Privacy costs of parameters: of a fit on all records, and of the fits of an evaluation.

    Parameters
    ----------
    families : Families
    layout : Layout
        Sizes of the fits; public.
    delta : float
    privacy : {"profile", "moments"}
        The bound that is the objective of the search.
    classes : sequence or None
        The public label set.
    is_released : bool, default=True
        Whether anything is released. Exact evaluations may use the real size of a random part.
    """

    families: Families
    layout: Layout
    delta: float
    privacy: str = "profile"
    classes: Any = None
    is_released: bool = True

    def epsilon(self, params: dict[str, Any]) -> float:
        """Return the epsilon of a fit on all records, which the search minimises."""
        profile = self.of_final_fit(params)
        if self.privacy == "moments":
            return moments_epsilon(profile, self.delta)
        return profile.epsilon(self.delta)

    def of_final_fit(self, params: dict[str, Any]) -> PrivacyProfile:
        """Return the cost of a fit on all records."""
        size = self.final_size
        return cost_of(self.configured(params, size), size.n_samples, size.n_features)

    def of_evaluation(self, params: dict[str, Any]) -> PrivacyProfile:
        """Return the cost of one fit of an evaluation; raise if it depends on a secret size."""
        size = self.train_size
        made = self.configured(params, size)
        check_relation(made)
        if size.is_secret:
            check_secret_size(made, size.n_samples, size.n_features)
        return cost_of(made, size.n_samples, size.n_features)

    def configured(self, params: dict[str, Any], size: FitSize) -> Any:
        """Return the estimator for one fit, without its seed."""
        family, own = self.families.split(params)
        fit_costs = FitCosts(self.families.members[family], _NO_CANDIDATES, "auto", self.classes)
        return fit_costs.configured(own, None, size)

    @property
    def train_size(self) -> FitSize:
        """Size of one fit of an evaluation."""
        layout = self.layout
        is_secret = layout.train_is_random and (self.is_released or layout.is_random)
        return FitSize(layout.n_train, layout.n_final, layout.n_features, is_secret)

    @property
    def final_size(self) -> FitSize:
        """Size of a fit on all records."""
        layout = self.layout
        return FitSize(layout.n_final, layout.n_final, layout.n_features, layout.final_is_random)


def check_relation(estimator: Any) -> None:
    """Raise for a guarantee about replacing records: a release is about adding or removing one."""
    if any(replaces_records(part) for _, part in nested_estimators(estimator)):
        raise TypeError(
            "estimator must have a guarantee about adding or removing a record with release; "
            "got one about replacing."
        )


def moments_epsilon(profile: PrivacyProfile, delta: float) -> float:
    """Return the epsilon of the moments accountant, for comparison.

    Notes
    -----
    Abadi et al. (2016), Theorem 2: the minimum of ``divergence(order) + log(1/delta) / (order -
    1)`` over integer orders.
    """
    divergences = profile.rdp(_MOMENTS)
    if not np.isfinite(divergences).any():
        raise ValueError(
            "privacy must be 'profile' for an estimator whose Rényi divergences are not known; "
            "got 'moments'."
        )
    if delta == 0.0:
        return math.inf
    return float(np.min(divergences - math.log(delta) / (_MOMENTS - 1.0)))
