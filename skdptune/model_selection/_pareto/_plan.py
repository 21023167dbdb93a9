"""The plan of a Pareto search: its cost, fixed before the data are read, and the cost's report."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skdptune.accounting import PrivacyProfile
from skdptune.base._shared import check_secret_size, cost_of
from skdptune.model_selection._cost import Candidates, FitCosts, FitSize, Layout
from skdptune.model_selection._pareto._families import Families, check_relation
from skdptune.model_selection._pareto._released import ReleaseBudget, ReleasePlan, plan_release
from skdptune.model_selection._running import Quiet

if TYPE_CHECKING:
    from skdptune.model_selection._dpareto_search import DParetoSearchCV
    from skdptune.model_selection._strategies import ParetoFront


# Parameters are proposed one by one.
_NO_CANDIDATES = Candidates([{}], name="param_space", drawn=False)
# Orders of the moments accountant: the integers of its paper and of the Pareto front paper.
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
        The bound that the search minimises.
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


# Number of points of the space whose costs are computed to plan a release.
_N_SAMPLED = 16
_UNPROTECTED = PrivacyProfile.approximate(0.0, 1.0)


@dataclass(frozen=True)
class ParetoPlan:
    """Everything that a Pareto search decides before it reads the data.

    Attributes
    ----------
    strategy : ParetoFront
        The strategy as it was when the plan was made.
    costs : ParameterCosts
    release : ReleasePlan or None
        None if nothing is released.
    """

    strategy: ParetoFront
    costs: ParameterCosts
    release: ReleasePlan | None

    @property
    def families(self) -> Families:
        """Estimators and their spaces."""
        return self.costs.families

    @property
    def layout(self) -> Layout:
        """How the records are divided."""
        return self.costs.layout

    @property
    def delta(self) -> float:
        """Delta at which the total is stated."""
        return self.costs.delta

    @property
    def total(self) -> PrivacyProfile:
        """Cost of everything that the fitted search shows."""
        return _UNPROTECTED if self.release is None else self.release.total


def make_pareto_plan(
    search: DParetoSearchCV,
    strategy: ParetoFront,
    families: Families,
    layout: Layout,
    classes: Any,
) -> ParetoPlan:
    """Return the plan of a search, or raise if costs are unknown or above the budget."""
    costs = ParameterCosts(
        families,
        layout,
        float(search.delta),
        strategy.privacy,
        classes,
        is_released=search.release is not None,
    )
    if search.release is None:
        with Quiet():
            _sampled_costs(families, costs.of_final_fit, 1)
        return ParetoPlan(strategy, costs, None)
    n_sampled = _N_SAMPLED if families.costs_differ else 1
    # dp_accounting logs every fractional order.
    with Quiet():
        release = plan_release(
            layout,
            float(search.release),
            float(search.delta),
            strategy.n_initial + search.n_iter,
            strategy.n_repeats,
            _sampled_costs(families, costs.of_evaluation, n_sampled),
            n_initial=strategy.n_initial,
            is_equal=not families.costs_differ,
            follows_scores=strategy.sampler not in ("random", "grid"),
            final=None if search.refit is False else float(search.refit),
        )
    return ParetoPlan(strategy, costs, release)


def _sampled_costs(
    families: Families, cost_of: Callable[[dict[str, Any]], PrivacyProfile], wanted: int
) -> list[PrivacyProfile]:
    """Return costs of fits at some points of the space, always the same points."""
    found, problems = [], []
    rng = np.random.default_rng(0)
    for _ in range(_N_SAMPLED):
        try:
            found.append(cost_of(families.space.sample(rng)))
        except Exception as problem:
            problems.append(problem)
        if len(found) == wanted:
            break
    if not found:
        raise problems[0]
    return found


class ProposalFilter:
    """Charge proposals to the budget of a release, and refuse those that it cannot pay for.

    Parameters
    ----------
    plan : ParetoPlan
    """

    def __init__(self, plan: ParetoPlan) -> None:
        if plan.release is None:
            raise ValueError("plan must be of a release; got one without.")
        self._costs, self.budget = plan.costs, ReleaseBudget(plan.release)

    def __call__(self, params: dict[str, Any]) -> bool:
        """Return whether parameters may be evaluated, and charge them if so."""
        with Quiet():
            try:
                self._costs.epsilon(params)
                fit = self._costs.of_evaluation(params)
            except Exception:
                # Costs do not depend on the data, and neither do errors in computing them.
                return False
            return self.budget.charge(fit)
