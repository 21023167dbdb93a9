"""The price of a Pareto search whose front is to be released, and the budget it keeps to.

All evaluations share one deal of the records. Which evaluations are made may follow from the
noisy scores of those before, and so may what they cost.

* Where all cost the same, their number is settled beforehand and their exact curves compose.
* Where proposals do not follow the scores (random or grid), what is done is settled before the
  data are seen, and the exact curves compose as well.
* Otherwise a `RenyiFilter` decides what may still be done.

Where costs differ, no evaluation may take what others need: each of the first ones at most an
equal share of what is left for them, a later one half of it.

The scores of a whole study cost what one Gaussian release would: each of N scores has the
noise of that release times the root of N. With a validation part, shared by all evaluations, a
record pays for the scores or for the fits: the mixture over where it went (see
`skdptune.accounting.search_on_split`). With folds it pays for both.

Theorem G3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from skdptune.accounting import (
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

FloatArray = NDArray[np.float64]

# With folds, the scores' share of what all evaluations may cost together.
_SCORE_SHARE = 0.1
# Of delta, for estimators that with a small probability may give everything away.
_FAILURE_SHARE = 0.5
_NEVER = 1e-16
# An evaluation after the first must leave room for another like it.
_LATER = 2
_ROUNDING = 1e-6
# Of epsilon, set aside for rounding: the first that is enough.
_SLACKS = (1e-6, 5e-4, 2e-3, 1e-2)
# Orders of which one at least is known where any is.
_PROBES = (2.0, 8.0, 32.0)
# Whole orders, which cost little.
_QUICK = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0)
_NOTHING = PrivacyProfile.pure(0.0)


@dataclass(frozen=True)
class ReleasePlan:
    """What a released study may cost and do, settled before data.

    Attributes
    ----------
    layout : Layout
    epsilon, delta : float
        For everything that the study shows, but for a last fit.
    final : PrivacyProfile
        What a last fit may cost; nothing where there is none.
    n_evaluations : int
        Most evaluations.
    n_fits : int
        Fits of an evaluation that see one record.
    trained : PrivacyProfile
        What all fits cost together, with folds also all scores.
    scores : PrivacyProfile
        What all scores cost together.
    kind : {"equal", "known", "filter"}
        How the fits' costs are added up.
    order, failure : float
        Of the filter.
    fit : PrivacyProfile or None
        What each fit costs, where all cost the same.
    n_sure : int
        Evaluations that share what is left equally, if the dearest admitted are proposed.
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
    order: float = 0.0
    failure: float = 0.0
    fit: PrivacyProfile | None = None
    n_sure: int = 1

    @property
    def total(self) -> PrivacyProfile:
        """What everything that the study shows costs."""
        share, chance = self.layout.validation, _chance_of_nothing(self.layout)
        scored = self.scores if share > 0.0 else None
        total = search_on_split(self.trained, scored, validation_fraction=share)
        return (with_failure(total, chance) if chance > 0.0 else total) + self.final

    @property
    def left(self) -> float:
        """The part of delta that is left beside the chance that some fit has no record."""
        # A little less, so that sums of curves that use it up are not undone by rounding.
        return (self.delta - _chance_of_nothing(self.layout)) * (1.0 - _ROUNDING)

    def meets(self, trained: PrivacyProfile) -> bool:
        """Say whether a record that is trained on is charged no more than the total.

        One that is scored on pays for the scores instead, which meet it by their making.
        """
        return trained.epsilon(self.left) <= self.epsilon

    @property
    def noise(self) -> ScoreNoise:
        """The noise of one score."""
        if self.layout.public:
            return NO_NOISE
        ratio = math.sqrt(self.n_evaluations) / self.shift
        return ScoreNoise(ratio, "gaussian", PrivacyProfile.gaussian(1.0 / ratio))

    def filter(self) -> RenyiFilter:
        """Return a filter that has passed nothing but the scores a record pays for, too."""
        total = RenyiFilter(self.epsilon, self.left, self.order, failure=self.failure)
        if self.layout.folds:
            # Together the scores are one Gaussian release, however they fall among the fits.
            total.record(self.scores)
        return total

    def budget(self) -> StudyBudget:
        """Return a budget of which nothing is spent."""
        return StudyBudget(self)

    @property
    def parts(self) -> tuple[PrivacyReport, ...]:
        """The parts of the report's tree."""
        note = {
            "equal": f"{self.n_evaluations} evaluations of one price",
            "known": "evaluations that follow from public numbers",
            "filter": f"evaluations chosen by scores, Rényi filter of order {self.order:g}",
        }[self.kind]
        fits = PrivacyReport(self.trained, self.delta, name="evaluations", note=note)
        if self.layout.public:
            return (fits,)
        also = "" if self.layout.folds else "; for a record that is scored on and not trained on"
        note = f"at most {self.n_evaluations}, with noise{also}"
        scores = PrivacyReport(self.scores, self.delta, name="scores", note=note)
        return fits, scores


@dataclass
class StudyBudget:
    """What is left for evaluations; public numbers decide.

    Parameters
    ----------
    plan : ReleasePlan
    """

    plan: ReleasePlan
    n_charged: int = 0
    _spent: PrivacyProfile = field(default=_NOTHING, repr=False)
    _refused: FloatArray | None = field(default=None, repr=False)
    _pending: list[PrivacyProfile] = field(default_factory=list, repr=False)
    _filter: RenyiFilter | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Set aside what the scores cost a record that is trained on, too."""
        plan = self.plan
        if plan.kind == "filter":
            self._filter = plan.filter()
        elif plan.layout.folds:
            self._spent = plan.scores

    def charge(self, fit: PrivacyProfile) -> bool:
        """Charge an evaluation of fits that cost so much; say whether it may be made."""
        plan = self.plan
        if self.n_charged >= plan.n_evaluations:
            return False
        # An estimator may be wrong about what sets its price.
        is_admitted = fit == plan.fit if plan.kind == "equal" else self._is_admitted(fit)
        if not is_admitted:
            return False
        self.n_charged += 1
        return True

    def _is_admitted(self, fit: PrivacyProfile) -> bool:
        evaluation = fit * self.plan.n_fits
        if self._is_like_refused(evaluation):
            return False
        if not self.pays(evaluation, self._n_sharing()):
            self._refused = _divergences(evaluation)
            return False
        self._record(evaluation)
        self._refused = None
        return True

    def _is_like_refused(self, evaluation: PrivacyProfile) -> bool:
        """Say whether no order tells the evaluation from a dearer one than was refused last."""
        # A filter answers at once; exact curves need not be added again to say no.
        if self._filter is not None or self._refused is None:
            return False
        divergences = _divergences(evaluation)
        return bool(np.isfinite(divergences).all() and (divergences >= self._refused).all())

    def _n_sharing(self) -> int:
        """Return how many evaluations like the next must fit into what is left."""
        n_sure = self.plan.n_sure
        return n_sure - self.n_charged if self.n_charged < n_sure else min(n_sure, _LATER)

    def pays(self, evaluation: PrivacyProfile, count: int) -> bool:
        """Say whether so many more evaluations of one cost fit into what is left."""
        if self._filter is not None:
            return self._filter.fits(evaluation, count)
        parts = [self._spent, *self._pending]
        divergences = np.sum([_divergences(part) for part in parts], axis=0)
        if _renyi_meets(self.plan, divergences + count * _divergences(evaluation)):
            return True
        # Exact curves are added only where the quick bound does not suffice.
        self._spent = sum(self._pending, self._spent)
        self._pending = []
        return self.plan.meets(self._spent + evaluation * count)

    def _record(self, evaluation: PrivacyProfile) -> None:
        if self._filter is not None:
            self._filter.record(evaluation)
        else:
            self._pending.append(evaluation)


def _divergences(part: PrivacyProfile) -> FloatArray:
    return part.rdp(np.array(_QUICK))


def _renyi_meets(plan: ReleasePlan, divergences: FloatArray) -> bool:
    """Say whether sums of Rényi divergences already prove that the total is kept."""
    orders = np.array(_QUICK)
    # The conversion of `RenyiFilter`.
    offsets = (math.log(plan.left) + np.log(orders)) / (orders - 1.0)
    return bool(np.min(divergences + np.log1p(-1.0 / orders) - offsets) <= plan.epsilon)


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
    """Return the plan of a study within a total.

    Parameters
    ----------
    layout : Layout
    epsilon, delta : float
        The total, but for the epsilon of a last fit.
    n_evaluations : int
        Most evaluations that are wanted.
    n_repeats : int
        Fits per evaluation and fold.
    fits : sequence of PrivacyProfile
        What fits cost at points of the space that are public.
    n_initial : int
        Evaluations that are to be made at least, if there are points cheap enough.
    is_equal : bool
        Whether all fits cost the same.
    follows_scores : bool
        Whether proposals follow from scores.
    final : float, optional
        Epsilon of a last fit, for which half of delta is kept.
    """
    n_fits = n_repeats * max(layout.folds - 1, 1)
    last, share = _NOTHING, delta
    if final is not None:
        share = delta / 2.0
        last = PrivacyProfile.approximate(final, share)
    chance = _chance_of_nothing(layout)
    if share <= chance:
        raise UnreachableBudgetError(
            f"delta must be above {chance * delta / share:.3g}, for the chance that some fit has "
            f"no record; got {delta!r}.",
            math.inf,
        )
    for slack in _SLACKS:
        inner = epsilon * (1.0 - slack)
        plan = ReleasePlan(
            layout, inner, share, last, n_evaluations, n_fits, _NOTHING, _NOTHING, 0.0, "known"
        )
        plan = _filled(_with_scores(plan), fits, n_initial, is_equal, follows_scores)
        # Curves are added and mixed on a grid, which can cost a little.
        if plan.total.epsilon(delta) <= epsilon + (final or 0.0):
            return plan
    raise UnreachableBudgetError(
        f"release must be larger for curves to be added; got {epsilon!r}.", math.inf
    )


def _filled(
    plan: ReleasePlan,
    fits: Sequence[PrivacyProfile],
    n_initial: int,
    is_equal: bool,
    follows_scores: bool,
) -> ReleasePlan:
    """Return the plan with what the fits may cost together."""
    if is_equal:
        return _equal(plan, fits[0])
    evaluations = [fit * plan.n_fits for fit in fits]
    affordable = [
        fit
        for fit, evaluation in zip(fits, evaluations, strict=True)
        if plan.meets(_with_folds(plan, evaluation))
    ]
    if not affordable:
        raise _unreachable(evaluations, plan)
    if follows_scores:
        plan = _filtered(plan, affordable)
    else:
        plan = replace(plan, trained=PrivacyProfile.approximate(plan.epsilon, plan.left))
    cheapest = min(affordable, key=lambda fit: fit.epsilon(plan.left)) * plan.n_fits
    budget, wanted = plan.budget(), min(n_initial, plan.n_evaluations)
    return replace(plan, n_sure=_most(wanted, lambda count: budget.pays(cheapest, count)))


def _most(limit: int, is_paid: Callable[[int], bool]) -> int:
    """Return how many equal evaluations can be paid, one at least and at most so many."""
    low, high = 1, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_paid(middle) else (low, middle)
    return low


def _with_scores(plan: ReleasePlan) -> ReleasePlan:
    """Return the plan with the one Gaussian release that all scores make."""
    if plan.layout.public:
        return plan
    scale, profile = noise_for_budget(plan.epsilon, plan.left)
    if not plan.layout.folds:
        return replace(plan, shift=1.0 / scale, scores=profile)
    return _with_shift(plan, math.sqrt(_SCORE_SHARE) / scale)


def _with_shift(plan: ReleasePlan, shift: float) -> ReleasePlan:
    return replace(plan, shift=shift, scores=PrivacyProfile.gaussian(shift))


def _with_folds(plan: ReleasePlan, fits: PrivacyProfile) -> PrivacyProfile:
    """Return what a record that is trained on pays: with folds, for the scores as well."""
    return fits + plan.scores if plan.layout.folds else fits


def _equal(plan: ReleasePlan, fit: PrivacyProfile) -> ReleasePlan:
    """Return the plan of as many equal evaluations as can be paid."""
    evaluation = fit * plan.n_fits

    def trained(count: int) -> PrivacyProfile:
        return _with_folds(plan, evaluation * count)

    if not plan.meets(trained(1)):
        raise _unreachable([evaluation], plan)
    count = _most(plan.n_evaluations, lambda count: plan.meets(trained(count)))
    return replace(plan, n_evaluations=count, trained=trained(count), kind="equal", fit=fit)


def _filtered(plan: ReleasePlan, fits: Sequence[PrivacyProfile]) -> ReleasePlan:
    """Return the plan of a study that a filter watches."""
    is_known = all(math.isfinite(min(fit.rdp(_PROBES))) for fit in fits)
    failure = 0.0 if is_known else _FAILURE_SHARE * plan.left
    order = suitable_order(plan.epsilon, plan.left, fits, failure=failure)
    plan = replace(plan, kind="filter", order=order, failure=failure)
    total = replace(plan, scores=_NOTHING).filter()
    plan = replace(plan, trained=total.profile)
    if plan.layout.folds:
        plan = _with_shift(plan, math.sqrt(2.0 * _SCORE_SHARE * total.budget / order))
    if not any(plan.budget().charge(fit) for fit in fits):
        raise UnreachableBudgetError(
            f"release must pay for one evaluation at least; got {plan.epsilon!r} at "
            f"delta={plan.delta:g}. Where estimators state a guarantee at one delta alone, give "
            "them one that is far smaller than that of the study.",
            math.inf,
        )
    return plan


def _chance_of_nothing(layout: Layout) -> float:
    """Return the chance that some fit has no record, which no noise hides."""
    chance = min(layout.chance_of_nothing, 1.0)
    return chance if chance > _NEVER else 0.0


def _unreachable(
    evaluations: Sequence[PrivacyProfile], plan: ReleasePlan
) -> UnreachableBudgetError:
    least = min(evaluation.epsilon(plan.left) for evaluation in evaluations)
    return UnreachableBudgetError(
        f"release must be above {least:.3g} at delta={plan.delta:g} to pay for one evaluation; "
        f"got {plan.epsilon!r}. It pays for the fits of all evaluations together.",
        least,
    )
