"""A filter by Rényi divergences for adaptively chosen releases."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skdptune._formatting import shown
from skdptune._validation import FloatArray, check_kind, check_real
from skdptune.accounting._budget_filter import SLACK, SummingFilter, check_total
from skdptune.accounting._calibration import Calibration, UnreachableBudgetError, calibrate
from skdptune.accounting._curves import halves_of_bound
from skdptune.accounting._loss_distribution import LossDistribution
from skdptune.accounting._profile import Numbers, PrivacyProfile, with_failure
from skdptune.accounting._renyi import ORDERS, RenyiTable

_TOLERANCE = 1e-6
# Each term of a moment is a difference of two numbers with this relative rounding error.
_ROUNDING = 2.0**-50


class RenyiFilter(SummingFilter):
    r"""Keeps adaptively chosen releases within a total (epsilon, delta), by Rényi divergences.

    Check `fits` and call `record` before each release. The choice of the next release, its cost
    and the time to stop may depend on everything that was released before. For all
    choices, the total cost is at most `profile`, which is known beforehand.

    Parameters
    ----------
    epsilon, delta : float
        The total for everything that is released. Delta must be greater than 0.
    order : float
        Order of the Rényi divergences that are added up; greater than 1, and chosen without
        looking at the data. `suitable_order` finds a good one.
    failure : float, default=0.0
        Part of `delta` that is set aside for releases that reveal everything with a small
        probability, as releases with a guarantee at a single (epsilon, delta) may.

    Attributes
    ----------
    order, failure : float
        The given values.
    budget : float
        Limit on the sum of divergences of order `order`.
    profile : PrivacyProfile
        The cost of all releases together.
    spent, spent_failure : float
        Parts of `budget` and `failure` used by the releases so far. They depend on the choices
        made, and are not a guarantee; `profile` is.
    n_parts : int
        Number of releases so far.

    Raises
    ------
    BudgetExceededError
        By `record`, for a release that does not fit. The filter is not changed.
    UnreachableBudgetError
        If the order cannot prove such a total, however little is spent.

    See Also
    --------
    GaussianFilter : Does the same by curves instead of divergences. It admits more releases that
        are Gaussian or similar, such as noisy gradient descent. A Rényi filter admits more pure
        releases, and needs no failure if divergences are known.
    BudgetFilter : Does the same for rounds of threshold comparisons, with a pure budget.

    Notes
    -----
    Theorem G1.

    Feldman and Zrnic (2021, Theorem 3.1) and Lécuyer (2021). Let the divergences of order ``a`` of
    the releases sum to at most ``B``, and the probabilities that they leave out to at most ``D``,
    for **every** course of the interaction. Then in each direction, for all ``e >= 0``,

        delta(e) <= D + exp((a - 1) (B - e)) (1 - 1/a)^(a - 1) / a,

    and so for each smaller order, with the same ``B``.

    *Why one order, and not the exact curves.* The stop is decided by the sum at this order. At
    another order, or in the exact composition of the releases that happened to be chosen, the sum
    at the stop is a random number, which may be large exactly where the losses are. Adding these
    up and reporting the result is only a guarantee if the costs are fixed beforehand.

    *The moment of a release* is `PrivacyProfile.rdp` if that is known, and then ``d_t = 0``.
    Otherwise it is computed from the two loss distributions (Theorem G2), and ``d_t`` is the
    probability of an infinite loss.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, RenyiFilter
    >>> total = RenyiFilter(epsilon=2.0, delta=1e-6, order=16.0)
    >>> part = PrivacyProfile.gaussian(0.1)
    >>> while total.fits(part):
    ...     total.record(part)
    >>> total.n_parts
    16
    >>> round(total.profile.epsilon(1e-6), 3)
    2.0
    """

    __slots__ = ("_epsilon", "_order")

    _unit = "divergence"

    def __init__(
        self, epsilon: float, delta: float, order: float, *, failure: float = 0.0
    ) -> None:
        self._epsilon, delta, failure = check_total(epsilon, delta, failure)
        # For larger orders, the grid of the profile grows without limit, without any benefit.
        self._order = check_real(order, name="order", lower=1.0, lower_open=True, upper=1e6)
        found = self._solved(delta, failure)
        super().__init__(found.value, failure, found.profile)

    def _solved(self, delta: float, failure: float) -> Calibration:
        """Return the largest budget that the total allows, and its profile."""
        guess = _largest_budget(self._epsilon, delta - failure, self._order)
        if guess <= 0.0:
            raise UnreachableBudgetError(
                f"epsilon must be at least {self._epsilon - guess:.6g} at delta={delta:g} for "
                f"order {self._order:g}; got {shown(self._epsilon)}. A larger order needs less.",
                self._epsilon - guess,
            )
        return calibrate(
            lambda budget: self._of_budget(budget, failure),
            self._epsilon,
            delta,
            parameter="budget",
            lower=guess * 1e-3,
            upper=guess * 2.0,
            guess=guess * (1.0 - _TOLERANCE),
            tolerance=_TOLERANCE,
        )

    def _of_budget(self, budget: float, failure: float) -> PrivacyProfile:
        """Return the cost of releases whose divergences sum to `budget`, plus a rounding error."""
        budget = budget * (1.0 + 2.0 * SLACK)
        profile = PrivacyProfile._of(_of_budget, budget, self._order)
        return with_failure(profile, failure * (1.0 + 2.0 * SLACK))

    @property
    def order(self) -> float:
        """Order of the divergences."""
        return self._order

    def _charge(self, part: PrivacyProfile) -> tuple[float, float]:
        divergences, failures = divergences_of(part, np.array([self._order]))
        return float(divergences[0]), float(failures[0])

    def __repr__(self) -> str:
        """Return the parameters and the state as text."""
        return self._shown(f"order={self._order:g}, ")


def suitable_order(
    epsilon: float, delta: float, parts: Sequence[PrivacyProfile], *, failure: float = 0.0
) -> float:
    """Return the order at which a `RenyiFilter` admits most releases like the given ones.

    Parameters
    ----------
    epsilon, delta : float
        The total for everything that is released.
    parts : sequence of PrivacyProfile
        Releases like those that will be made, chosen without looking at the data.
    failure : float, default=0.0
        See `RenyiFilter`.

    Returns
    -------
    float
        The order. If the total is too small for any order, UnreachableBudgetError is raised.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, suitable_order
    >>> suitable_order(2.0, 1e-6, [PrivacyProfile.gaussian(0.1)])
    12.0
    """
    epsilon, delta, failure = check_total(epsilon, delta, failure)
    check_kind(parts, name="parts", kind=Sequence, domain="a sequence of profiles")
    if not parts:
        raise ValueError("parts must hold a profile at least; got none.")
    charges = [divergences_of(part, ORDERS) for part in parts]
    # Infinite if the failure does not suffice.
    limited = [np.where(left <= failure, cost, math.inf) for cost, left in charges]
    costs = np.mean(limited, axis=0)
    budgets = np.array([_largest_budget(epsilon, delta - failure, order) for order in ORDERS])
    if budgets.max() <= 0.0:
        raise UnreachableBudgetError(
            f"epsilon must be at least {epsilon - budgets.max():.6g} at delta={delta:g} for any "
            f"order; got {shown(epsilon)}.",
            float(epsilon - budgets.max()),
        )
    if not np.isfinite(costs).any():
        raise UnreachableBudgetError(
            "failure must be at least the probability with which some of parts reveal everything; "
            f"got {shown(failure)}.",
            math.inf,
        )
    # Releases that cost nothing fit at every order, and infinite ones at none.
    many = np.where(budgets > 0.0, budgets / np.maximum(costs, np.finfo(float).tiny), -1.0)
    return float(ORDERS[int(np.argmax(many))])


def divergences_of(profile: PrivacyProfile, orders: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds on a release's divergences, and the probabilities that they leave out.

    Returns
    -------
    divergences : ndarray
        In the worse direction.
    failures : ndarray
        Probability of an infinite loss, which the divergence leaves out; 0 if the divergence is
        known exactly.

    Notes
    -----
    Theorem G2.
    """
    check_kind(profile, name="part", kind=PrivacyProfile, domain="a PrivacyProfile")
    known = np.asarray(profile.rdp(orders))
    is_known = np.isfinite(known)
    if is_known.all():
        return known, np.zeros_like(known)
    remove, add = profile._finite_sides
    sides = [_moments(remove, add, orders), _moments(add, remove, orders)]
    read = np.log1p(np.max(sides, axis=0)) / (orders - 1.0)
    left_out = max(remove.infinity, add.infinity)
    return np.where(is_known, known, read), np.where(is_known, 0.0, left_out)


def _moments(own: LossDistribution, other: LossDistribution, orders: FloatArray) -> FloatArray:
    """Return ``E_Q[l^a; l < inf] - 1`` at each order a."""
    result = (orders - 1.0) * other.infinity
    x = own.step * np.arange(1, own.positive_masses.size + 1)
    y = other.step * np.arange(1, other.positive_masses.size + 1)
    with np.errstate(over="ignore"):
        for place, order in enumerate(orders):
            # Small losses cancel; the possible effect of rounding is added (Theorem G2).
            above = np.expm1((order - 1.0) * x) * (1.0 + _ROUNDING * (2.0 + order * x))
            above += (order - 1.0) * np.expm1(-x) * (1.0 - _ROUNDING)
            below = np.expm1(-order * y) * (1.0 - _ROUNDING)
            below -= order * np.expm1(-y) * (1.0 + _ROUNDING)
            # Leave out zero masses, whose product with infinity would be NaN.
            kept = own.positive_masses > 0.0
            result[place] += own.positive_masses[kept] @ above[kept] if kept.any() else 0.0
            result[place] += other.positive_masses @ below
    return result


def _largest_budget(epsilon: float, delta: float, order: float) -> float:
    """Return the divergence from which the conversion of one order proves (epsilon, delta)."""
    factor = math.log(delta) + math.log(order)
    return epsilon - math.log1p(-1.0 / order) + factor / (order - 1.0)


def _of_budget(budget: float, order: float) -> Numbers:
    """Return the cost of releases whose divergences of this order sum to `budget`."""
    # Divergences increase with the order, so the budget is valid for smaller orders, too.
    orders = np.append(ORDERS[ORDERS < order], order)
    slopes, offsets = orders - 1.0, (orders - 1.0) * np.log1p(-1.0 / orders) - np.log(orders)

    def delta(points: FloatArray) -> FloatArray:
        exponents = slopes * (budget - points[:, np.newaxis]) + offsets
        least: FloatArray = np.exp(np.minimum(exponents.min(axis=1), 0.0))
        return least

    curve = RenyiTable((order,), (budget,))
    return halves_of_bound(delta), curve
