"""Plans of released searches, and exact costs of Gaussian releases."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from scipy import optimize, special

from skdptune.accounting import PrivacyProfile, RenyiFilter, suitable_order
from skdptune.model_selection._cost import Layout, make_layout
from skdptune.model_selection._pareto._released import ReleasePlan, plan_release

DELTA = 1e-5
LAYOUTS: dict[str, dict[str, Any]] = {
    "split": {"cv": 0.2, "public": False},
    "folds": {"cv": 4, "public": False},
    "public": {"cv": 0.2, "public": True},
}


def layout_of(name: str, n_samples: int = 600) -> Layout:
    return make_layout(
        n_samples,
        3,
        **LAYOUTS[name],
        tuning_fraction=None,
        variant=1,
        refit=True,
        is_random=False,
    )


def planned(name: str, epsilon: float = 10.0, mus: Any = (0.4,), **more: Any) -> ReleasePlan:
    fits = [PrivacyProfile.gaussian(mu) for mu in mus]
    settings = {"n_initial": 1, "is_equal": False, "follows_scores": True, **more}
    return plan_release(layout_of(name), epsilon, DELTA, 30, 2, fits, **settings)


def by_divergences(plan: ReleasePlan, *mus: float) -> ReleasePlan:
    """Return a plan with the other filter, by Rényi divergences of one order."""
    order = suitable_order(plan.epsilon, plan.usable_delta, [gaussian(mu) for mu in mus])
    total = RenyiFilter(plan.epsilon, plan.usable_delta, order)
    plan = replace(plan, empty_filter=total, trained=total.profile)
    if not plan.layout.folds:
        return plan
    shift = math.sqrt(0.1 * 2.0 * total.budget / order)
    return replace(plan, shift=shift, scores=gaussian(shift))


def gaussian(mu: float) -> PrivacyProfile:
    return PrivacyProfile.gaussian(float(mu))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return Balle and Wang's curve, computed only with scipy."""
    tail = special.ndtr
    return float(tail(mu / 2 - epsilon / mu) - math.exp(epsilon) * tail(-mu / 2 - epsilon / mu))


def gaussian_epsilon(mu: float, delta: float = DELTA) -> float:
    return _root(lambda epsilon: delta - gaussian_delta(mu, epsilon), 0.0, 500.0)


def largest_mu(epsilon: float, delta: float = DELTA) -> float:
    """Return the shift whose epsilon it is: the curve rises with the shift."""
    return _root(lambda mu: gaussian_delta(mu, epsilon) - delta, 1e-6, 25.0)


def _root(function: Any, low: float, high: float) -> float:
    return float(optimize.brentq(function, low, high, xtol=1e-13, rtol=1e-13, maxiter=500))
