"""Rényi differential privacy in addition to profiles, for the bounds of the literature.

A loss distribution with cut ends has mass at infinity, so its Rényi divergences are infinite.
Therefore a profile stores how to compute its Rényi curve, which is evaluated only when needed. A
curve bounds both directions.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from dp_accounting import dp_event
from scipy import special

from skdptune._validation import FloatArray
from skdptune.accounting._dp_accounting import renyi_divergences

INTEGER_ORDERS: FloatArray = np.arange(2.0, 129.0)
ORDERS: FloatArray = np.unique(
    np.concatenate([1.0 + np.arange(1, 100) / 10.0, INTEGER_ORDERS, [192.0, 256.0, 512.0, 1024.0]])
)


# Number of terms of a moment that are summed at once, and the relative rounding error of each.
_MOST_TERMS = 4096
_ROUNDING = 1e-11


class RenyiCurve(abc.ABC):
    """An upper bound on the Rényi divergence of each order above 1."""

    @abc.abstractmethod
    def at(self, orders: FloatArray) -> FloatArray:
        """Return the bound at each order; infinite if none is known."""

    def delta(self, epsilons: FloatArray, orders: FloatArray = ORDERS) -> FloatArray:
        """Return the smallest delta that the orders prove at each epsilon >= 0.

        Notes
        -----
        Theorem P9.

        This uses Proposition 12 of Canonne, Kamath and Steinke (2020), and at any epsilon the
        total variation bound of Bretagnolle and Huber, sqrt(1 - exp(-divergence)).
        """
        divergences = self.at(orders)
        finite = np.isfinite(divergences)
        least = float(np.min(divergences, initial=math.inf))
        epsilons = np.asarray(epsilons, dtype=np.float64)
        result = np.full_like(epsilons, math.sqrt(-math.expm1(-least)))
        for order, divergence in zip(orders[finite], divergences[finite], strict=True):
            log_delta = (order - 1.0) * (divergence - epsilons + math.log1p(-1.0 / order))
            result = np.minimum(result, np.exp(np.minimum(log_delta - math.log(order), 0.0)))
        return result


@dataclass(frozen=True, eq=False)
class RenyiOfEvent(RenyiCurve):
    """Divergences of an event by dp_accounting's RDP accountant, or by a faster formula.

    Notes
    -----
    Theorem P9.
    """

    event: dp_event.DpEvent

    def at(self, orders: FloatArray) -> FloatArray:
        """Return the accountant's divergences."""
        return self._cached(tuple(orders.tolist())).copy()

    # Fractional orders take tenths of a second, and callers repeatedly request the same ones.
    @functools.lru_cache(maxsize=64)  # noqa: B019
    def _cached(self, orders: tuple[float, ...]) -> FloatArray:
        sampled = _sampled_gaussian(self.event)
        values = np.array(orders)
        is_whole = (values == np.floor(values)) & (values >= 2.0) & (values <= _MOST_TERMS)
        if sampled is None or not is_whole.any():
            return renyi_divergences(self.event, orders)
        result = np.empty(values.size)
        result[is_whole] = [_renyi_of_sampled_gaussian(*sampled, n) for n in values[is_whole]]
        if not is_whole.all():
            others = tuple(values[~is_whole].tolist())
            result[~is_whole] = renyi_divergences(self.event, others)
        return result


def _sampled_gaussian(event: dp_event.DpEvent) -> tuple[float, float, int] | None:
    """Return rate, noise and number of Gaussian releases on Poisson samples, or None."""
    count = 1
    if isinstance(event, dp_event.SelfComposedDpEvent):
        count, event = event.count, event.event
    if not isinstance(event, dp_event.PoissonSampledDpEvent):
        return None
    rate, inner = event.sampling_probability, event.event
    if not isinstance(inner, dp_event.GaussianDpEvent) or not 0.0 < rate < 1.0:
        return None
    # The squares of other noise multipliers overflow or underflow.
    return (
        (rate, inner.noise_multiplier, count) if 1e-100 < inner.noise_multiplier < 1e100 else None
    )


def _renyi_of_sampled_gaussian(rate: float, noise: float, count: int, order: float) -> float:
    """Return the divergence of an integer order, rounded up: Mironov, Talwar and Zhang (2019)."""
    # The moment minus 1, as a sum of positive terms, since the weights sum to 1.
    powers = np.arange(2.0, order + 1.0)
    growth = powers * (powers - 1.0) / (2.0 * noise**2)
    weights = log_binomial(order, powers) + powers * math.log(rate)
    weights = weights + (order - powers) * math.log1p(-rate)
    small = np.minimum(growth, 1.0)
    logarithms = np.where(
        growth < 1.0, np.log(np.expm1(small)), growth + np.log1p(-np.exp(-growth))
    )
    moment = float(special.logsumexp(weights + logarithms))
    excess = moment if moment > 40.0 else math.log1p(math.exp(moment))
    return count * excess * (1.0 + _ROUNDING) / (order - 1.0)


@dataclass(frozen=True)
class RenyiOfPure(RenyiCurve):
    """Randomised response, the worst pair for a pure guarantee."""

    epsilon: float

    def at(self, orders: FloatArray) -> FloatArray:
        """Return the exact divergences of the pair."""
        finite = np.where(np.isinf(orders), 2.0, orders)
        half, lifted = 0.5 * self.epsilon, (finite - 1.0) * 0.5 * self.epsilon
        # log(cosh((a - 1/2) e) / cosh(e / 2)), without cancellation for small arguments.
        small = np.minimum(lifted, 20.0)
        ratio = 2.0 * np.sinh(small + half) * np.sinh(small) / math.cosh(half)
        near = np.log1p(ratio)
        far = np.logaddexp(finite * self.epsilon, (1.0 - finite) * self.epsilon)
        far = far - np.logaddexp(0.0, self.epsilon)
        total = np.where(lifted < 20.0, near, far)
        return np.where(np.isinf(orders), self.epsilon, total / (finite - 1.0))


@dataclass(frozen=True)
class RenyiOfParts(RenyiCurve):
    """Several curves, combined at each order.

    Attributes
    ----------
    combine : callable
        ``np.sum`` for a composition, ``np.max`` for the worst of several releases, ``np.min`` for
        the smallest of several bounds on one release.
    parts : tuple of RenyiCurve

    Notes
    -----
    Theorem P9.
    """

    combine: Callable[..., FloatArray]
    parts: tuple[RenyiCurve, ...]

    def at(self, orders: FloatArray) -> FloatArray:
        """Return the combined divergences."""
        return np.asarray(self.combine([part.at(orders) for part in self.parts], axis=0))


@dataclass(frozen=True)
class RenyiMultiple(RenyiCurve):
    """The composition of ``count`` equal parts."""

    count: int
    part: RenyiCurve

    def at(self, orders: FloatArray) -> FloatArray:
        """Return the part's divergences times ``count``."""
        return self.count * self.part.at(orders)


@dataclass(frozen=True)
class RenyiTable(RenyiCurve):
    """Known values, with convexity between them; infinite at every order if none is known.

    ``(order - 1) * divergence`` is convex in the order. So the chord between two known orders is
    an upper bound.

    Notes
    -----
    Theorem P9.
    """

    orders: tuple[float, ...]
    values: tuple[float, ...]

    def at(self, orders: FloatArray) -> FloatArray:
        """Return the bound that follows from convexity and monotonicity."""
        known, values = np.array(self.orders), np.array(self.values)
        finite = np.isfinite(values)
        known, values = known[finite], values[finite]
        if known.size == 0:
            return np.full(orders.shape, math.inf)
        chords = np.interp(orders, known, (known - 1.0) * values) / (orders - 1.0)
        # At a known order, use the value itself: multiplying and dividing would round it.
        nearest = np.minimum(np.searchsorted(known, orders), known.size - 1)
        exact = np.where(known[nearest] == orders, values[nearest], chords)
        bounded = np.where(orders < known[0], values[0], exact)
        return np.where(orders > known[-1], math.inf, bounded)


class RenyiAtIntegers(RenyiCurve):
    """A curve that a theorem bounds at integer orders; between them, chords are used."""

    @abc.abstractmethod
    def at_integers(self, integers: FloatArray) -> FloatArray:
        """Return the theorem's bound at orders 2, 3, 4 and so on."""

    def at(self, orders: FloatArray) -> FloatArray:
        """Return the bound, interpolated between integer orders (`RenyiTable`)."""
        return _table_of_integer_orders(self).at(orders)


# Not cached in the curves, since reports publish these.
@functools.lru_cache(maxsize=64)
def _table_of_integer_orders(curve: RenyiAtIntegers) -> RenyiTable:
    values = curve.at_integers(INTEGER_ORDERS)
    return RenyiTable(tuple(INTEGER_ORDERS.tolist()), tuple(values.tolist()))


@dataclass(frozen=True)
class RenyiSubsampled(RenyiAtIntegers):
    """Poisson subsampling of any mechanism: Zhu and Wang (2019), Theorem 5.

    Notes
    -----
    Theorem P10.
    """

    part: RenyiCurve
    fraction: float

    def at_integers(self, integers: FloatArray) -> FloatArray:
        """Return the theorem's bound at orders 2, 3, 4 and so on."""
        log_q, log_rest = math.log(self.fraction), math.log1p(-self.fraction)
        largest = int(integers[-1])
        steps = np.arange(2.0, largest + 1.0)
        moments = (steps - 1.0) * self.part.at(steps)
        bounds = []
        for order in integers:
            j = steps[: int(order) - 1]
            terms = log_binomial(order, j) + j * log_q + (order - j) * log_rest
            terms = terms + moments[: j.size] + np.where(j > 2.0, math.log(3.0), 0.0)
            first = (order - 1.0) * log_rest + math.log1p((order - 1.0) * self.fraction)
            bounds.append(self._logarithm(first, special.logsumexp(terms), order) / (order - 1.0))
        return np.array(bounds)

    def _logarithm(self, first: float, rest: float, order: float) -> float:
        """Return the logarithm of ``exp(first) + exp(rest)``, at least 0 and rounded up."""
        # `first` is about 0, and the result may be much smaller than the rounding error of 1.
        if rest < 0.0:
            result = math.log1p(math.expm1(first) + math.exp(rest))
        else:
            result = float(np.logaddexp(first, rest))
        error = 4.0 * float(np.finfo(np.float64).eps) * order * self.fraction
        return max(result, 0.0) * (1.0 + 1e-12) + error


def log_binomial(n: float | FloatArray, k: float | FloatArray) -> FloatArray:
    """Return the logarithm of the binomial coefficient."""
    result: FloatArray = -np.log1p(n) - special.betaln(n - k + 1.0, np.asarray(k) + 1.0)
    return result
