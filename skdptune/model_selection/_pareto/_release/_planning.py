"""Planning of a released search: scores, fits and their number within the total cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from skdptune._formatting import shown
from skdptune.accounting import (
    GaussianFilter,
    PrivacyProfile,
    RenyiFilter,
    UnreachableBudgetError,
    suitable_order,
)
from skdptune.mechanisms import noise_for_budget
from skdptune.model_selection._cost import Layout
from skdptune.model_selection._pareto._release._plan import (
    NOTHING,
    ReleaseBudget,
    ReleasePlan,
    chance_of_empty_fit,
)

# With folds, the scores' share of the cost of all evaluations.
_SCORE_SHARE = 0.1
# Shares of delta for what evaluations have above Gaussian curves: where all that are known of are
# Gaussian, and elsewhere.
_GAUSSIAN_FAILURE_SHARES = 0.001, 0.1
# The same where divergences are not known, for estimators that may reveal everything with a small
# probability.
_RENYI_FAILURE_SHARE = 0.5
# Shares of epsilon set aside for rounding: the first that is enough is used.
_SLACKS = (1e-6, 5e-4, 2e-3, 1e-2)
# Orders of which at least one has a known divergence if any has.
_PROBED_ORDERS = (2.0, 8.0, 32.0)

_Filter: TypeAlias = GaussianFilter | RenyiFilter


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
        The most evaluations that are wanted.
    n_repeats : int
        Fits per evaluation and fold.
    fits : sequence of PrivacyProfile
        Costs of fits at points of the space, which do not depend on the data.
    n_initial : int
        Evaluations that should at least be made, if there are points cheap enough.
    is_equal : bool
        Whether all fits cost the same.
    follows_scores : bool
        Whether proposals depend on scores.
    final : float, optional
        Epsilon of the final fit, for which half of delta is kept.

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
        # Rounding to a grid can make sums and mixtures of curves a little larger.
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
    """Return the plan with the cost that all fits may have together."""
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
    """Return the largest number up to a limit, and at least 1, of evaluations that are paid."""
    low, high = 1, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_paid(middle) else (low, middle)
    return low


def _with_scores(plan: ReleasePlan) -> ReleasePlan:
    """Return the plan with the Gaussian release that all scores are together."""
    if plan.layout.public:
        return plan
    scale, profile = noise_for_budget(plan.epsilon, plan.usable_delta)
    if not plan.layout.folds:
        return replace(plan, shift=1.0 / scale, scores=profile)
    return _with_shift(plan, math.sqrt(_SCORE_SHARE) / scale)


def _with_shift(plan: ReleasePlan, shift: float) -> ReleasePlan:
    return replace(plan, shift=shift, scores=PrivacyProfile.gaussian(shift))


def _with_folds(plan: ReleasePlan, fits: PrivacyProfile) -> PrivacyProfile:
    """Return the cost of fits for a record that is trained on; with folds it is scored on too."""
    return fits + plan.scores if plan.layout.folds else fits


def _equal(plan: ReleasePlan, fit: PrivacyProfile) -> ReleasePlan:
    """Return the plan of as many evaluations of equal cost as can be paid."""
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
            f"release must pay for one evaluation at least; got {shown(plan.epsilon)} at "
            f"delta={plan.delta:g}. Where estimators state a guarantee at one delta alone, give "
            "them one that is far smaller than the delta of the search.",
            math.inf,
        )
    return plan


def _best_filter(plan: ReleasePlan, fits: Sequence[PrivacyProfile]) -> _Filter:
    """Return the filter of which evaluations take the least share, on the average."""
    evaluations = [fit * plan.n_fits for fit in fits]
    gaussian = _gaussian_filter(plan, evaluations)
    try:
        renyi = _renyi_filter(plan, fits)
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


def _renyi_filter(plan: ReleasePlan, fits: Sequence[PrivacyProfile]) -> RenyiFilter:
    is_known = all(math.isfinite(min(fit.rdp(_PROBED_ORDERS))) for fit in fits)
    failure = 0.0 if is_known else _RENYI_FAILURE_SHARE * plan.usable_delta
    order = suitable_order(plan.epsilon, plan.usable_delta, fits, failure=failure)
    return RenyiFilter(plan.epsilon, plan.usable_delta, order, failure=failure)


def _mean_share(total: _Filter, evaluations: Sequence[PrivacyProfile]) -> float:
    """Return which share of a filter's total an evaluation takes, 1 if it does not fit."""
    shares = []
    for evaluation in evaluations:
        twin = _after(total, evaluation)
        # A failure of zero is never used.
        used = max(twin.spent / twin.budget, twin.spent_failure / (twin.failure or 1.0))
        shares.append(used if twin.n_parts else 1.0)
    return sum(shares) / len(shares)


def _after(total: _Filter, evaluation: PrivacyProfile) -> _Filter:
    """Return a filter of the same total in which an evaluation is recorded, if it fits."""
    twin = total.emptied()
    if twin.fits(evaluation):
        twin.record(evaluation)
    return twin


def _squares(total: _Filter) -> float:
    """Return what the squared shifts of Gaussian releases may sum to."""
    return 2.0 * total.budget / total.order if isinstance(total, RenyiFilter) else total.budget


def _unreachable(
    evaluations: Sequence[PrivacyProfile], plan: ReleasePlan
) -> UnreachableBudgetError:
    least = min(evaluation.epsilon(plan.usable_delta) for evaluation in evaluations)
    return UnreachableBudgetError(
        f"release must be above {least:.3g} at delta={plan.delta:g} to pay for one evaluation; "
        f"got {shown(plan.epsilon)}. It pays for the fits of all evaluations together.",
        least,
    )
