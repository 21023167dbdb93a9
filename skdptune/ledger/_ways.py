"""The two ways in which a ledger adds costs up: shares of the budget, and Gaussian shifts."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from skdptune.accounting import (
    GaussianFilter,
    PrivacyProfile,
    UnreachableBudgetError,
    charge_of,
    gaussian_delta,
)

# Sums may exceed their limits by rounding: ten times 0.1 is 1.
SLACK = 1e-12
# What is charged where nothing is large enough: more than any budget, and no infinity to add.
BEYOND = 2.0**60
# Every double is a multiple of this, so that sums of them are exact.
_UNITS_PER_ONE = 1 << 1074
_LEAST_SHARE, _LARGEST_SHARE = 1e-18, 1e6
_LARGEST_SHIFT = 30.0


@dataclass(frozen=True)
class Charges:
    """What one release takes: a share of the budget, and a squared shift with its failure."""

    share: float
    squared_shift: float
    failure: float


@dataclass(frozen=True)
class Totals:
    """Exact sums of charges, in the smallest unit of a double, so that no charge is lost."""

    share: int = 0
    squared_shift: int = 0
    failure: int = 0

    def changed(self, charges: Charges, sign: int = 1) -> Totals:
        """Return the totals with charges added, or taken off where the sign is -1."""
        share, squared_shift, failure = _in_units(charges)
        return Totals(
            self.share + sign * share,
            self.squared_shift + sign * squared_shift,
            self.failure + sign * failure,
        )

    def as_floats(self) -> Charges:
        """Return the totals as doubles, rounded up."""
        return Charges(*map(_rounded_up, (self.share, self.squared_shift, self.failure)))


@dataclass(frozen=True)
class Ways:
    r"""How a budget is divided between two ways of adding costs up, either of which may pay.

    Parameters
    ----------
    epsilon : float
        Total epsilon.
    share_delta : float
        Delta of the first way: a release that is ``(x epsilon, x share_delta)``-private takes a
        share x, and shares sum to at most 1.
    squared_shift, failure : float
        Budgets of the second way, that of a `GaussianFilter`. None is used where
        `squared_shift` is 0.

    Notes
    -----
    Theorem H1 (shares), Theorem G4 (shifts) and Theorem H2 (either).
    """

    epsilon: float
    share_delta: float
    squared_shift: float
    failure: float

    @classmethod
    def shares_alone(cls, epsilon: float, delta: float) -> Ways:
        """Return the division that gives all of delta to shares."""
        return cls(epsilon, delta, 0.0, 0.0)

    @classmethod
    def both(cls, epsilon: float, delta: float) -> Ways:
        """Return the division of delta in halves, or shares alone where a half is too small."""
        half = delta / 2.0
        try:
            shifts = _shifts(epsilon, half)
        except (UnreachableBudgetError, ValueError):
            return cls.shares_alone(epsilon, delta)
        return cls(epsilon, half, shifts.budget, shifts.failure)

    @classmethod
    def settled(cls, epsilon: float, delta: float, first: PrivacyProfile) -> Ways:
        """Return the division that a ledger keeps from its first reservation on.

        Both ways, unless shares alone admit more releases like the first.

        Notes
        -----
        Theorem H2. Nothing was released before the first reservation, so that what it asks
        for depends on no data.
        """
        both, alone = cls.options(epsilon, delta)
        is_better = alone.copies(alone.charges_of(first)) > both.copies(both.charges_of(first))
        return alone if is_better else both

    @classmethod
    def options(cls, epsilon: float, delta: float) -> tuple[Ways, Ways]:
        """Return the divisions of which the first reservation settles one."""
        return cls.both(epsilon, delta), cls.shares_alone(epsilon, delta)

    def charges_of(self, profile: PrivacyProfile) -> Charges:
        """Return what a release takes in each way. It depends on public numbers alone."""
        return _charges(self, profile)

    def _charges_of(self, profile: PrivacyProfile) -> Charges:
        share = self._share_of(profile)
        if self.squared_shift == 0.0:
            return Charges(share, BEYOND, 1.0)
        shift, failure = charge_of(profile, self.failure, math.sqrt(self.squared_shift))
        return Charges(share, min(shift * shift, BEYOND), failure)

    def _share_of(self, profile: PrivacyProfile) -> float:
        """Return the least share x for which a release is (x epsilon, x delta)-private.

        Notes
        -----
        Theorem H1.
        """
        pure = min(profile.epsilon(0.0) / self.epsilon, BEYOND)
        if self.share_delta == 0.0 or pure == 0.0:
            return float(pure)

        def is_enough(share: float) -> bool:
            delta = min(share * self.share_delta, 1.0)
            return bool(profile.delta(share * self.epsilon) <= delta)

        low, high = _LEAST_SHARE, _LARGEST_SHARE
        if not is_enough(high):
            return float(pure)
        while high > low * (1.0 + 1e-15):
            middle = math.sqrt(low) * math.sqrt(high)
            if not low < middle < high:
                break
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return float(min(high, pure))

    def admits(self, totals: Totals) -> bool:
        """Return whether totals are within the budget, in one way or the other."""
        return self.shares_admit(totals) or self.shifts_admit(totals)

    def shares_admit(self, totals: Totals) -> bool:
        """Return whether the shares sum to at most 1."""
        return totals.share <= _units(1.0 + SLACK)

    def shifts_admit(self, totals: Totals) -> bool:
        """Return whether squared shifts and failures are within their budgets."""
        return (
            self.squared_shift > 0.0
            and totals.squared_shift <= _units(self.squared_shift * (1.0 + SLACK))
            and totals.failure <= _units(self.failure * (1.0 + SLACK))
        )

    def copies(self, charges: Charges) -> float:
        """Return how many releases of these charges fit."""
        one = Totals().changed(charges)
        found = [_quotient(_units(1.0 + SLACK), one.share)]
        if self.squared_shift > 0.0:
            limits = self.squared_shift * (1.0 + SLACK), self.failure * (1.0 + SLACK)
            parts = one.squared_shift, one.failure
            found.append(min(map(_quotient, map(_units, limits), parts)))
        return max(found)

    def used(self, totals: Totals) -> float:
        """Return the used part of the budget, in the way that has more left; at most 1."""
        floats = totals.as_floats()
        parts = [floats.share]
        if self.squared_shift > 0.0:
            shifts = floats.squared_shift / self.squared_shift
            parts.append(max(shifts, floats.failure / self.failure))
        return min(1.0, *parts)

    def largest_epsilon(self, totals: Totals, delta: float) -> float:
        """Return the largest epsilon at `delta` of a Gaussian release that still fits.

        With a `delta` of 0, of a pure release.
        """
        left = max(0.0, 1.0 - totals.as_floats().share) if self.shares_admit(totals) else 0.0
        if delta == 0.0:
            return max(left * self.epsilon, self._largest_pure(totals))
        shifts = [_largest(lambda shift: self._shares_pay(shift, left))] if left > 0.0 else [0.0]
        if self.shifts_admit(totals):
            squared = self.squared_shift - totals.as_floats().squared_shift
            shifts.append(min(math.sqrt(max(squared, 0.0)), _LARGEST_SHIFT))
        largest = max(shifts)
        if largest == 0.0:
            return 0.0
        # The epsilon of that release, rounded down: what is asked for by it must fit.
        return _largest(lambda epsilon: _delta_of(largest, epsilon) > delta, 1e-9, 1e4)

    def _shares_pay(self, shift: float, left: float) -> bool:
        # No Gaussian release is pure, though its curve falls below every double.
        is_approximate = self.share_delta > 0.0
        return is_approximate and _delta_of(shift, left * self.epsilon) <= left * self.share_delta

    def _largest_pure(self, totals: Totals) -> float:
        """Return the largest epsilon of a pure release that the second way admits."""

        def fits(epsilon: float) -> bool:
            charges = self.charges_of(PrivacyProfile.pure(epsilon))
            return self.shifts_admit(totals.changed(charges))

        return _largest(fits, 1e-6, 30.0, 1e-6) if self.shifts_admit(totals) else 0.0

    def composed_epsilon(self, totals: Totals, delta: float) -> float:
        """Return the epsilon of releases of fixed costs together, as far as totals tell."""
        floats = totals.as_floats()
        share, shift = floats.share, math.sqrt(floats.squared_shift)
        found = [share * self.epsilon if share * self.share_delta <= delta else math.inf]
        if self.squared_shift > 0.0 and shift <= _LARGEST_SHIFT and floats.failure < delta:
            shifts = PrivacyProfile.gaussian(shift)
            found.append(shifts.epsilon(delta - floats.failure))
        return min(found)


@functools.lru_cache(maxsize=64)
def _charges(ways: Ways, profile: PrivacyProfile) -> Charges:
    """Return charges, which a search asks for again with every fit."""
    return ways._charges_of(profile)


@functools.lru_cache(maxsize=16)
def _shifts(epsilon: float, delta: float) -> GaussianFilter:
    """Return the filter of a total, with a tenth of delta set aside for failures."""
    return GaussianFilter(epsilon, delta, failure=delta / 10.0)


def _delta_of(shift: float, epsilon: float) -> float:
    return float(gaussian_delta(shift, np.array([epsilon]))[0])


def _largest(
    holds: Callable[[float], bool],
    low: float = 1e-9,
    high: float = _LARGEST_SHIFT,
    tolerance: float = 1e-10,
) -> float:
    """Return about the largest number at which a condition holds, from below; 0 if none does."""
    if not holds(low):
        return 0.0
    while high > low * (1.0 + tolerance):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@functools.lru_cache(maxsize=1024)
def _in_units(charges: Charges) -> tuple[int, int, int]:
    return _units(charges.share), _units(charges.squared_shift), _units(charges.failure)


def _units(value: float) -> int:
    """Return a double exactly, in units."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * (_UNITS_PER_ONE // denominator)


def _rounded_up(units: int) -> float:
    exact = Fraction(units, _UNITS_PER_ONE)
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _quotient(limit: int, part: int) -> float:
    return float(min(limit // part, 10**15)) if part else math.inf
