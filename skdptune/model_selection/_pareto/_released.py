"""The cost of a released search: planned before the data are read, and enforced by a budget.

All evaluations share one random split of the records. Which evaluations are made may depend on the
noisy scores of earlier ones, and so may their costs.

* If all cost the same, their number is fixed in advance and their exact curves are composed.
* Where proposals do not depend on scores (random or grid), all evaluations are fixed before the
  data are seen, and their exact curves are composed as well.
* Otherwise a `GaussianFilter` or a `RenyiFilter`, whichever admits more, decides which further
  evaluations may be made.

The scores of all evaluations cost what one Gaussian release would: each of N scores has the noise
of that release times the root of N. With a validation part, shared by all evaluations, a record
pays for the scores or for the fits: the mixture over where it went (see
`skdptune.accounting.search_on_split`). With folds it pays for both.

Theorem G3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from skdptune._formatting import shown
from skdptune.accounting import (
    GaussianFilter,
    PrivacyProfile,
    PrivacyReport,
    RenyiFilter,
    UnreachableBudgetError,
    search_on_split,
    suitable_order,
    with_failure,
)
from skdptune.mechanisms import noise_for_budget
from skdptune.model_selection._cost import NO_NOISE, Layout, ScoreNoise

NOTHING = PrivacyProfile.pure(0.0)
_Filter: TypeAlias = GaussianFilter | RenyiFilter
_ROUNDING = 1e-6
# Smaller probabilities are rounding errors.
_NEGLIGIBLE = 1e-16


@dataclass(frozen=True)
class ReleasePlan:
    """The number and the cost of a released search's evaluations, fixed before the data.

    Attributes
    ----------
    layout : Layout
    epsilon, delta : float
        For everything that the search shows, except for the final fit.
    final : PrivacyProfile
        Largest cost of the final fit; nothing without one.
    n_evaluations : int
        Largest number of evaluations.
    n_fits : int
        Number of fits of an evaluation that see the same record.
    trained : PrivacyProfile
        Cost for a training record: of all fits, and with folds of all scores.
    scores : PrivacyProfile
        Cost of all scores.
    shift : float
        Shift of the Gaussian release that all scores form together.
    kind : {"equal", "known", "filter"}
        How costs of fits are composed.
    empty_filter : GaussianFilter, RenyiFilter or None
        The filter, before anything is recorded.
    fit : PrivacyProfile or None
        Cost of each fit, if all cost the same.
    n_guaranteed : int
        Number of first evaluations, each of which gets an equal share of the remaining budget.

    Notes
    -----
    Theorem G3.
    """

    layout: Layout
    epsilon: float
    delta: float
    final: PrivacyProfile
    n_evaluations: int
    n_fits: int
    trained: PrivacyProfile
    scores: PrivacyProfile
    shift: float
    kind: str
    empty_filter: _Filter | None = None
    fit: PrivacyProfile | None = None
    n_guaranteed: int = 1

    @property
    def total(self) -> PrivacyProfile:
        """Cost of everything that the search shows."""
        share, chance = self.layout.validation, chance_of_empty_fit(self.layout)
        scored = self.scores if share > 0.0 else None
        total = search_on_split(
            self.trained, scored, validation_fraction=share, by_rule=self.layout.by_rule
        )
        return (with_failure(total, chance) if chance > 0.0 else total) + self.final

    @property
    def usable_delta(self) -> float:
        """Delta minus the probability that some fit has no record."""
        # Slightly less, so that rounding does not make sums of curves too large that use it up.
        return (self.delta - chance_of_empty_fit(self.layout)) * (1.0 - _ROUNDING)

    def allows(self, trained: PrivacyProfile) -> bool:
        """Return whether a training record is charged no more than the total.

        A scoring record is charged for the scores instead, whose noise was chosen for the total.
        """
        return trained.epsilon(self.usable_delta) <= self.epsilon

    @property
    def noise(self) -> ScoreNoise:
        """Noise of one score."""
        if self.layout.public:
            return NO_NOISE
        ratio = math.sqrt(self.n_evaluations) / self.shift
        return ScoreNoise(ratio, "gaussian", PrivacyProfile.gaussian(1.0 / ratio))

    def filter(self) -> _Filter | None:
        """Return a filter that records only the scores that a training record pays for."""
        total = None if self.empty_filter is None else self.empty_filter.emptied()
        if total is not None and self.layout.folds:
            # Together the scores are one Gaussian release, wherever they come between fits.
            total.record(self.scores)
        return total

    @property
    def parts(self) -> tuple[PrivacyReport, ...]:
        """The parts of the report's tree."""
        name, total = "Gaussian filter", self.empty_filter
        if isinstance(total, RenyiFilter):
            name = f"Rényi filter of order {total.order:g}"
        note = {
            "equal": f"{self.n_evaluations} evaluations of equal cost",
            "known": "evaluations that do not depend on scores",
            "filter": f"evaluations chosen by scores, {name}",
        }[self.kind]
        fits = PrivacyReport(self.trained, self.delta, name="evaluations", note=note)
        if self.layout.public:
            return (fits,)
        whose = (
            ""
            if self.layout.folds
            else "; for a record that is used for scores and not for training"
        )
        note = f"at most {self.n_evaluations}, with noise{whose}"
        scores = PrivacyReport(self.scores, self.delta, name="scores", note=note)
        return fits, scores


def chance_of_empty_fit(layout: Layout) -> float:
    """Return the probability that some fit has no record, which no noise hides.

    Notes
    -----
    Theorem F7.
    """
    chance = min(layout.chance_of_nothing, 1.0)
    return chance if chance > _NEGLIGIBLE else 0.0


FloatArray = NDArray[np.float64]

# An evaluation after the first ones must leave room for another of the same cost.
_LATER = 2
# Divergences of integer orders are the fastest to compute.
_QUICK_ORDERS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0)


@dataclass
class ReleaseBudget:
    """Decide which further evaluations of a released search may be made.

    The decision uses only public numbers: costs, and how many evaluations were made. If costs
    differ, each of the first evaluations may use at most an equal share of the remaining budget,
    and a later one half of it.

    Parameters
    ----------
    plan : ReleasePlan

    Notes
    -----
    Theorem G3.
    """

    plan: ReleasePlan
    n_charged: int = 0
    # Exact curves are added up only when needed: `_pending` counts the fits not yet added.
    _spent: PrivacyProfile = field(default=NOTHING, repr=False)
    _pending: list[PrivacyProfile] = field(default_factory=list, repr=False)
    _spent_divergences: FloatArray = field(init=False, repr=False)
    _refused: FloatArray | None = field(default=None, repr=False)
    _filter: _Filter | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Reserve the cost of the scores, if a training record pays for them."""
        plan = self.plan
        self._filter = plan.filter()
        if self._filter is None and plan.layout.folds:
            self._spent = plan.scores
        self._spent_divergences = _divergences(self._spent)

    def charge(self, fit: PrivacyProfile) -> bool:
        """Charge an evaluation whose fits have a cost; return whether it may be made."""
        plan = self.plan
        if self.n_charged >= plan.n_evaluations:
            return False
        # An estimator may be wrong about the parameters that set its cost.
        is_admitted = fit == plan.fit if plan.kind == "equal" else self._is_admitted(fit)
        self.n_charged += is_admitted
        return is_admitted

    def _is_admitted(self, fit: PrivacyProfile) -> bool:
        """Record the fits of an evaluation if the rest of the budget pays for its share."""
        if self._is_like_refused(fit):
            return False
        n_guaranteed = self.plan.n_guaranteed
        n_missing = n_guaranteed - self.n_charged
        # How many evaluations of this cost must fit into the rest.
        n_sharing = n_missing if n_missing > 0 else min(n_guaranteed, _LATER)
        if not self.pays(fit, n_sharing):
            self._refused = _divergences(fit)
            return False
        self._record(fit)
        self._refused = None
        return True

    def _is_like_refused(self, fit: PrivacyProfile) -> bool:
        """Return whether fits cost at least as much as the last refused ones, at all orders.

        Exact curves need not be added up then to refuse the fits. A filter needs no such shortcut.
        """
        if self._filter is not None or self._refused is None:
            return False
        divergences = _divergences(fit)
        return bool(np.isfinite(divergences).all() and (divergences >= self._refused).all())

    def pays(self, fit: PrivacyProfile, count: int) -> bool:
        """Return whether ``count`` more evaluations of equal fits fit into the rest."""
        n_fits = self.plan.n_fits * count
        if self._filter is not None:
            part, number = self._parts_of(fit)
            return self._filter.fits(part, number * count)
        if _renyi_allows(self.plan, self._spent_divergences + n_fits * _divergences(fit)):
            return True
        # Exact curves are smaller than the quick bound.
        self._spent = sum((one * self.plan.n_fits for one in self._pending), self._spent)
        self._pending = []
        return self.plan.allows(self._spent + fit * n_fits)

    def _record(self, fit: PrivacyProfile) -> None:
        n_fits = self.plan.n_fits
        if self._filter is None:
            self._pending.append(fit)
            self._spent_divergences = self._spent_divergences + n_fits * _divergences(fit)
            return
        part, number = self._parts_of(fit)
        for _ in range(number):
            self._filter.record(part)

    def _parts_of(self, fit: PrivacyProfile) -> tuple[PrivacyProfile, int]:
        """Return the parts that a filter is charged for an evaluation, and their number.

        Several fits together are closer to a Gaussian release than each of them; divergences are
        added up either way.
        """
        n_fits = self.plan.n_fits
        return (fit * n_fits, 1) if isinstance(self._filter, GaussianFilter) else (fit, n_fits)


def _divergences(part: PrivacyProfile) -> FloatArray:
    divergences: FloatArray = part.rdp(np.array(_QUICK_ORDERS))
    return divergences


def _renyi_allows(plan: ReleasePlan, divergences: FloatArray) -> bool:
    """Return whether sums of Rényi divergences prove that the plan allows the fits."""
    orders = np.array(_QUICK_ORDERS)
    # The conversion of `RenyiFilter`.
    offsets = (math.log(plan.usable_delta) + np.log(orders)) / (orders - 1.0)
    return bool(np.min(divergences + np.log1p(-1.0 / orders) - offsets) <= plan.epsilon)


# With folds, the scores' share of the cost of all evaluations.
_SCORE_SHARE = 0.1
# Shares of delta for the part of the evaluations' cost above Gaussian curves: if all known fits
# are Gaussian, and otherwise.
_GAUSSIAN_FAILURE_SHARES = 0.001, 0.1
# The corresponding shares if divergences are not known, for estimators that may reveal everything
# with a small probability.
_RENYI_FAILURE_SHARE = 0.5
# Shares of epsilon reserved for rounding: the first that is enough is used.
_SLACKS = (1e-6, 5e-4, 2e-3, 1e-2)
# Orders such that at least one has a known divergence if any order has.
_PROBED_ORDERS = (2.0, 8.0, 32.0)


def plan_release(
    layout: Layout,
    epsilon: float,
    delta: float,
    n_evaluations: int,
    n_repeats: int,
    fits: Sequence[PrivacyProfile],
    *,
    n_initial: int,
    is_equal: bool,
    follows_scores: bool,
    final: float | None = None,
) -> ReleasePlan:
    """Return the plan of a released search within a total cost.

    Parameters
    ----------
    layout : Layout
    epsilon, delta : float
        The total, except for the epsilon of the final fit.
    n_evaluations : int
        Largest number of evaluations that are wanted.
    n_repeats : int
        Fits per evaluation and fold.
    fits : sequence of PrivacyProfile
        Costs of fits at points of the space, which do not depend on the data.
    n_initial : int
        Number of evaluations that should be possible at least, if there are points cheap enough.
    is_equal : bool
        Whether all fits cost the same.
    follows_scores : bool
        Whether proposals depend on scores.
    final : float, optional
        Epsilon of the final fit, for which half of delta is reserved.

    Raises
    ------
    UnreachableBudgetError
        If the total does not pay for one evaluation.

    Notes
    -----
    Theorem G3.
    """
    n_fits = n_repeats * max(layout.folds - 1, 1)
    final_cost, share = NOTHING, delta
    if final is not None:
        share = delta / 2.0
        final_cost = PrivacyProfile.approximate(final, share)
    chance = chance_of_empty_fit(layout)
    if share <= chance:
        raise UnreachableBudgetError(
            f"delta must be above {chance * delta / share:.3g}, the probability that some fit has "
            f"no record; got {shown(delta)}.",
            math.inf,
        )
    for slack in _SLACKS:
        inner = epsilon * (1.0 - slack)
        plan = ReleasePlan(
            layout, inner, share, final_cost, n_evaluations, n_fits, NOTHING, NOTHING, 0.0, "known"
        )
        plan = _with_fits(_with_scores(plan), fits, n_initial, is_equal, follows_scores)
        # Rounding to a grid can make sums and mixtures of curves slightly larger.
        if plan.total.epsilon(delta) <= epsilon + (final or 0.0):
            return plan
    raise UnreachableBudgetError(
        f"release must be larger for curves to be composed; got {shown(epsilon)}.", math.inf
    )


def _with_fits(
    plan: ReleasePlan,
    fits: Sequence[PrivacyProfile],
    n_initial: int,
    is_equal: bool,
    follows_scores: bool,
) -> ReleasePlan:
    """Return the plan with the largest cost of all fits together."""
    if is_equal:
        return _equal(plan, fits[0])
    evaluations = [fit * plan.n_fits for fit in fits]
    within = [
        fit
        for fit, evaluation in zip(fits, evaluations, strict=True)
        if plan.allows(_with_folds(plan, evaluation))
    ]
    if not within:
        raise _unreachable(evaluations, plan)
    if follows_scores:
        plan = _filtered(plan, within)
    else:
        plan = replace(plan, trained=PrivacyProfile.approximate(plan.epsilon, plan.usable_delta))
    cheapest = min(within, key=lambda fit: fit.epsilon(plan.usable_delta))
    budget, wanted = ReleaseBudget(plan), min(n_initial, plan.n_evaluations)
    n_guaranteed = _most(wanted, lambda count: budget.pays(cheapest, count))
    return replace(plan, n_guaranteed=n_guaranteed)


def _most(limit: int, is_paid: Callable[[int], bool]) -> int:
    """Return the largest number of affordable evaluations up to a limit, and at least 1."""
    low, high = 1, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_paid(middle) else (low, middle)
    return low


def _with_scores(plan: ReleasePlan) -> ReleasePlan:
    """Return the plan with the Gaussian release that all scores form together."""
    if plan.layout.public:
        return plan
    scale, profile = noise_for_budget(plan.epsilon, plan.usable_delta)
    if not plan.layout.folds:
        return replace(plan, shift=1.0 / scale, scores=profile)
    return _with_shift(plan, math.sqrt(_SCORE_SHARE) / scale)


def _with_shift(plan: ReleasePlan, shift: float) -> ReleasePlan:
    return replace(plan, shift=shift, scores=PrivacyProfile.gaussian(shift))


def _with_folds(plan: ReleasePlan, fits: PrivacyProfile) -> PrivacyProfile:
    """Return the cost of fits for a training record, which with folds is also used for scoring."""
    return fits + plan.scores if plan.layout.folds else fits


def _equal(plan: ReleasePlan, fit: PrivacyProfile) -> ReleasePlan:
    """Return the plan of the largest affordable number of evaluations of equal cost."""
    evaluation = fit * plan.n_fits

    def trained(count: int) -> PrivacyProfile:
        return _with_folds(plan, evaluation * count)

    if not plan.allows(trained(1)):
        raise _unreachable([evaluation], plan)
    count = _most(plan.n_evaluations, lambda count: plan.allows(trained(count)))
    return replace(plan, n_evaluations=count, trained=trained(count), kind="equal", fit=fit)


def _filtered(plan: ReleasePlan, fits: Sequence[PrivacyProfile]) -> ReleasePlan:
    """Return the plan of a search whose evaluations a filter admits."""
    total = _best_filter(plan, fits)
    plan = replace(plan, kind="filter", empty_filter=total, trained=total.profile)
    if plan.layout.folds:
        plan = _with_shift(plan, math.sqrt(_SCORE_SHARE * _squares(total)))
    if not any(ReleaseBudget(plan).charge(fit) for fit in fits):
        raise UnreachableBudgetError(
            f"release must pay for at least one evaluation; got {shown(plan.epsilon)} at "
            f"delta={plan.delta:g}. If estimators state their guarantee only at one delta, give "
            "them one that is far smaller than the delta of the search.",
            math.inf,
        )
    return plan


def _best_filter(plan: ReleasePlan, fits: Sequence[PrivacyProfile]) -> _Filter:
    """Return the filter in which evaluations use the smallest share on average."""
    evaluations, delta = [fit * plan.n_fits for fit in fits], plan.usable_delta
    gaussian = _gaussian_filter(plan, evaluations)
    is_known = all(math.isfinite(min(fit.rdp(_PROBED_ORDERS))) for fit in fits)
    failure = 0.0 if is_known else _RENYI_FAILURE_SHARE * delta
    try:
        order = suitable_order(plan.epsilon, delta, fits, failure=failure)
        renyi = RenyiFilter(plan.epsilon, delta, order, failure=failure)
    except UnreachableBudgetError:
        # At small totals, divergences prove nothing.
        return gaussian
    if _mean_share(gaussian, evaluations) <= _mean_share(renyi, evaluations):
        return gaussian
    return renyi


def _gaussian_filter(plan: ReleasePlan, evaluations: Sequence[PrivacyProfile]) -> GaussianFilter:
    low, high = (share * plan.usable_delta for share in _GAUSSIAN_FAILURE_SHARES)
    total = GaussianFilter(plan.epsilon, plan.usable_delta, failure=low)
    twins = [_after(total, evaluation) for evaluation in evaluations]
    if all(twin.n_parts > 0 and twin.spent_failure == 0.0 for twin in twins):
        return total
    return GaussianFilter(plan.epsilon, plan.usable_delta, failure=high)


def _mean_share(total: _Filter, evaluations: Sequence[PrivacyProfile]) -> float:
    """Return the share of a filter's total that an evaluation uses; 1 if it does not fit."""
    shares = []
    for evaluation in evaluations:
        twin = _after(total, evaluation)
        # A failure of zero is never used.
        used = max(twin.spent / twin.budget, twin.spent_failure / (twin.failure or 1.0))
        shares.append(used if twin.n_parts else 1.0)
    return sum(shares) / len(shares)


def _after(total: _Filter, evaluation: PrivacyProfile) -> _Filter:
    """Return a filter of the same total with a recorded evaluation, if that fits."""
    twin = total.emptied()
    if twin.fits(evaluation):
        twin.record(evaluation)
    return twin


def _squares(total: _Filter) -> float:
    """Return the largest sum of the squared shifts of Gaussian releases."""
    return 2.0 * total.budget / total.order if isinstance(total, RenyiFilter) else total.budget


def _unreachable(
    evaluations: Sequence[PrivacyProfile], plan: ReleasePlan
) -> UnreachableBudgetError:
    least = min(evaluation.epsilon(plan.usable_delta) for evaluation in evaluations)
    if math.isinf(least):
        return UnreachableBudgetError(
            "release must be None for an estimator whose fits have no finite epsilon at "
            f"delta={plan.delta:g}; got {shown(plan.epsilon)}.",
            least,
        )
    return UnreachableBudgetError(
        f"release must be above {least:.3g} at delta={plan.delta:g} to pay for one evaluation; "
        f"got {shown(plan.epsilon)}. It pays for the fits of all evaluations together.",
        least,
    )
