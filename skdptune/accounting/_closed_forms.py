"""Closed forms of releases and of their curves, computed so that small tails are accurate."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import special

from skdptune._validation import FloatArray
from skdptune.accounting._convolution import TAIL, convolved_in_stages, convolved_with_rare
from skdptune.accounting._curves import (
    MOST_POINTS,
    Halves,
    Sides,
    connected,
    everything_lost,
    largest_loss,
    step_at_most,
)
from skdptune.accounting._loss_distribution import (
    LARGEST_LOSS,
    LEAST_RATE,
    LossDistribution,
    place_above,
)

# Bound on the relative rounding error of a closed form, several times the observed error.
ROUNDING = 1e-12
# A few units of rounding.
_UNITS = 4.0 * float(np.finfo(np.float64).eps)
# Losses up to here are small: log 2.
_SMALL = math.log(2.0)
# From these shifts on, Mills ratios can be subtracted accurately, and overflow.
_SMALL_SHIFT, _LARGE_SHIFT = 0.1, 30.0
# Gauss-Legendre nodes on (-1, 1), and their weights.
_FOUR_POINTS = np.polynomial.legendre.leggauss(4)


def randomised_response(epsilon: float, delta: float, count: int = 1) -> LossDistribution:
    """Return the losses of randomised responses that reveal everything with probability delta.

    Notes
    -----
    Theorem P5.

    Each of ``count`` responses is a lie, with loss ``-epsilon``, with probability ``1 / (1 +
    exp(epsilon))``. So the number of lies is binomial.
    """
    if count > 1:
        infinity = -math.expm1(count * math.log1p(-delta)) if delta < 1.0 else 1.0
    else:
        infinity = delta
    if epsilon == 0.0:
        return LossDistribution(1e-4, 0, np.array([1.0 - infinity]), infinity)
    masses = np.zeros(2 * count + 1)
    masses[::2] = _lies(epsilon, count)[::-1] * (1.0 - infinity)
    return LossDistribution(epsilon, -count, masses, infinity)


def _lies(epsilon: float, count: int) -> FloatArray:
    """Return the distribution of the number of lies among `count` responses, rounded up."""
    if count == 1:
        truth = float(special.expit(epsilon))
        return np.array([truth, 1.0 - truth])
    mode = math.floor((count + 1) * special.expit(-epsilon))
    numbers = np.arange(count, dtype=np.float64)
    ratios = (count - numbers) / (numbers + 1.0) * math.exp(-epsilon)
    masses = np.ones(count + 1)
    masses[mode + 1 :] = np.cumprod(ratios[mode:])
    masses[:mode] = np.cumprod(1.0 / ratios[:mode][::-1])[::-1]
    # Each is a product of fewer than count ratios, with three roundings each.
    masses *= (1.0 + 8.0 * count * np.finfo(np.float64).eps) / masses.sum()
    # Every loss is kept, however improbable.
    return np.maximum(masses, np.finfo(np.float64).tiny)


def laplace_halves(mu: float, step: float) -> Halves:
    """Return the curve of Laplace noise, with a sensitivity of ``mu`` times its scale."""
    epsilons = step * np.arange(place_above(min(mu, LARGEST_LOSS), step) + 1)
    half = np.expm1(np.maximum(0.5 * (mu - epsilons), 0.0))
    half *= np.exp(np.minimum(0.5 * (epsilons - mu), 0.0)) * (1.0 + ROUNDING)
    half = np.minimum(half, 1.0)
    return Halves(step, half, half)


def gaussian_delta(mu: float, epsilons: FloatArray) -> FloatArray:
    """Return the curve of a Gaussian release with a sensitivity of ``mu`` standard deviations.

    Balle and Wang (2018): ``F(mu/2 - e/mu) - exp(e) F(-mu/2 - e/mu)``. It is computed as a
    difference of Mills ratios times a density, which avoids cancellation. The relative error is
    below 2e-13.

    Notes
    -----
    Theorem P6.
    """
    upper = epsilons / mu - mu / 2.0
    density = np.exp(-0.5 * upper * upper) / math.sqrt(2.0 * math.pi)
    if mu < _SMALL_SHIFT:
        return np.minimum(density * _small_mills_difference(upper, mu), 1.0)
    if mu < _LARGE_SHIFT:
        return np.minimum(density * (_mills(upper) - _mills(upper + mu)), 1.0)
    # Far below the mean, the Mills ratio overflows, but digits do not cancel.
    far = upper < -5.0
    near = _mills(np.where(far, 0.0, upper)) - _mills(upper + mu)
    result: FloatArray = np.where(
        far, special.ndtr(-upper) - density * _mills(upper + mu), density * near
    )
    return np.minimum(result, 1.0)


def _mills(x: FloatArray) -> FloatArray:
    """Return the ratio of the normal upper tail to the density."""
    ratio: FloatArray = math.sqrt(math.pi / 2.0) * special.erfcx(x / math.sqrt(2.0))
    return ratio


def _small_mills_difference(x: FloatArray, width: float) -> FloatArray:
    """Return ``_mills(x) - _mills(x + width)`` as an integral, to avoid cancellation.

    The derivative of the ratio is ``x _mills(x) - 1``, which is so smooth that four points
    suffice.
    """
    total = np.zeros_like(x)
    for node, weight in zip(*_FOUR_POINTS, strict=True):
        at = x + 0.5 * width * (1.0 + node)
        total += weight * (1.0 - at * _mills(at))
    return 0.5 * width * total


def subsampled_halves(sides: Sides, fraction: float) -> Halves:
    """Return the curves of a release on a Poisson sample, with ``fraction`` in (0, 1)."""
    remove, add = sides
    # Largest losses of the sampled pair: when removing a record, and when adding one.
    largest = min(largest_loss(sides), LARGEST_LOSS)
    end = max(math.log1p(fraction * math.expm1(largest)), -math.log1p(-fraction))
    step = step_at_most(max(min(remove.step, end / 2**14), end / MOST_POINTS))
    # One more point, since curves are read slightly before it: no finite loss remains at the last.
    grid = step * np.arange(math.ceil(end / step) + 2)
    return Halves(
        step,
        subsampled_remove(remove.delta, grid, fraction),
        subsampled_add(add.delta, grid, fraction),
    )


def subsampled_remove(
    curve: Callable[[FloatArray], FloatArray], epsilons: FloatArray, rate: float
) -> FloatArray:
    """Return the curve of removing a record on a Poisson sample, at epsilons >= 0, rounded up.

    Parameters
    ----------
    curve : callable
        The release's own curve in this direction.
    epsilons : ndarray
    rate : float
        In (0, 1).
    """
    # Theorem P7: the curve of a release on a Poisson sample.
    inner = loss_before_sampling(epsilons, rate)
    # Read the curve a few units of rounding earlier, where it is not lower.
    inner = np.maximum(inner - _UNITS * inner, 0.0)
    return np.minimum(rate * (1.0 + ROUNDING) * curve(inner), 1.0)


def subsampled_add(
    curve: Callable[[FloatArray], FloatArray], epsilons: FloatArray, rate: float
) -> FloatArray:
    """Return the curve of adding a record on a Poisson sample, at epsilons >= 0, rounded up.

    The parameters are those of `subsampled_remove`.
    """
    # Theorem P7: the curve of a release on a Poisson sample. Near the largest loss, a unit of
    # rounding in epsilon is a notable share of the rest. Therefore the curve is read a few units
    # earlier.
    end = -math.log1p(-rate)
    before = epsilons - _UNITS * (epsilons + end)
    # 1 - (1 - rate) exp(epsilon), and log(rate exp(epsilon)) minus the logarithm of it.
    kept = -np.expm1(np.minimum(before - end, 0.0))
    some = kept > 0.0
    kept, before = kept[some], before[some]
    gone = np.minimum(-np.expm1(-before) / rate, 1.0)
    near = -np.log1p(-np.minimum(gone, 0.5))
    far = math.log(rate) + before - np.log(kept)
    inner = np.maximum(np.where(gone < 0.5, near, far), 0.0)
    result = np.zeros_like(epsilons)
    result[some] = kept * curve(inner) * (1.0 + ROUNDING)
    return np.minimum(result, 1.0)


def loss_before_sampling(losses: FloatArray, rate: float) -> FloatArray:
    """Return ``log(1 + (e^loss - 1) / rate)``, and ``-inf`` at and below ``log(1 - rate)``."""
    is_small = np.abs(losses) < _SMALL
    small = np.where(is_small, losses, 0.0)
    # Far from 0, this would overflow, or lose all digits of 1 - rate for rates near 1.
    large = np.where(is_small, _SMALL, losses)
    with np.errstate(divide="ignore", over="ignore"):
        small = np.log1p(np.maximum(np.expm1(small) / rate, -1.0))
        logs = np.log1p(np.maximum(-(1.0 - rate) * np.exp(-large), -1.0))
        return np.where(is_small, small, large - math.log(rate) + logs)


# Forms that compositions preserve ---------------------------------------------------------


class Form(abc.ABC):
    """A release, or a composition of equal ones, described by a few numbers."""

    @abc.abstractmethod
    def sides(self, step: float | None = None) -> Sides:
        """Return both directions, on a given or a suitable grid."""

    @abc.abstractmethod
    def composed(self, other: Form) -> Form | None:
        """Return the form of the composition with another form, or None."""

    @abc.abstractmethod
    def repeated(self, count: int) -> Form | None:
        """Return the form of the composition of `count` copies, or None."""

    def subsampled(self, fraction: float) -> Form | None:
        """Return the form on a Poisson sample, or None."""
        return None

    @property
    def shift(self) -> float:
        """Shift of a Gaussian release that costs at least as much; infinite if none is known."""
        return math.inf

    def covers(self, other: Form) -> bool:
        """Return whether this is of the same kind and no number is smaller, which costs more."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return type(self) is type(other) and all(mine >= theirs for mine, theirs in pairs)


class _CountedForm(Form):
    """A number of equal releases, which a composition adds up."""

    count: int
    _most: ClassVar[float] = math.inf

    def composed(self, other: Form) -> Form | None:
        """Return the form of the composition with equal releases, or None if they differ."""
        if not isinstance(other, type(self)) or other._of(self.count) != self:
            return None
        return self._of(self.count + other.count)

    def repeated(self, count: int) -> Form | None:
        """Return the form of the composition of `count` copies, or None if there are too many."""
        return self._of(self.count * count)

    def _of(self, count: int) -> Form | None:
        return replace(self, count=count) if count <= self._most else None  # type: ignore[type-var]


@dataclass(frozen=True)
class ResponseForm(_CountedForm):
    """Randomised responses, each of which reveals everything with some probability.

    Notes
    -----
    Theorem P5.
    """

    epsilon: float
    failure: float
    count: int = 1
    # More responses are composed by transforms: their closed form needs equally many numbers.
    _most = 10**6

    def sides(self, step: float | None = None) -> Sides:
        """Return both directions, on a given grid or that of the losses."""
        losses = randomised_response(self.epsilon, self.failure, self.count)
        if step is not None:
            losses = losses.on_grid(step)
        return losses, losses


@dataclass(frozen=True)
class GaussianForm(Form):
    """Gaussian noise, with a sensitivity of ``mu`` standard deviations.

    Notes
    -----
    Theorem P6.
    """

    mu: float

    @property
    def shift(self) -> float:
        """Shift of this release."""
        return self.mu

    def sides(self, step: float | None = None) -> Sides:
        """Return both directions, on a given or a suitable grid."""
        mu = self.mu
        if step is None:
            # Chords of 1/2000 of the losses' spread are within 1e-5 of the curve, at any scale.
            step = step_at_most(min(mu / 2000.0, LARGEST_LOSS / 2**10))
        top = min(mu * mu / 2.0 + 9.5 * mu, LARGEST_LOSS)
        half = gaussian_delta(mu, step * np.arange(math.ceil(top / step) + 1)) * (1.0 + ROUNDING)
        half = np.minimum(half, 1.0)
        return connected(step, half, half)

    def composed(self, other: Form) -> Form | None:
        """Return the form of both; their squared shifts are added."""
        if not isinstance(other, GaussianForm):
            return None
        return GaussianForm(math.hypot(self.mu, other.mu))

    def repeated(self, count: int) -> Form | None:
        """Return the form of the composition of `count` copies."""
        return GaussianForm(self.mu * math.sqrt(count))

    def subsampled(self, fraction: float) -> Form | None:
        """Return the form on a Poisson sample."""
        return SampledGaussianForm(self.mu, fraction)


@dataclass(frozen=True)
class SampledGaussianForm(_CountedForm):
    """Gaussian noise on Poisson samples, repeated.

    Notes
    -----
    Theorem P7.
    """

    mu: float
    rate: float
    count: int = 1

    @property
    def shift(self) -> float:
        """Shift of all releases on all records; a larger rate costs at least as much."""
        return self.mu * math.sqrt(self.count) * (1.0 + ROUNDING)

    def sides(self, step: float | None = None) -> Sides:
        """Return both directions, on a given or a suitable grid.

        Notes
        -----
        Theorem P4, Theorem P7, Theorem P12.
        """
        # A larger rate never costs less (Theorem P7). For smaller rates, doubles are not precise
        # enough.
        one = replace(self, rate=max(self.rate, LEAST_RATE), count=1)
        plan = _planned(one, self.count, step)
        if plan.spread > LARGEST_LOSS:
            # Such sums are almost never finite.
            return everything_lost(plan.coarse)
        sides = _common_losses(one, plan)
        if self.count == 1:
            return sides
        lowered = _raised(sides[1], -_FAR * plan.spread)
        add = convolved_in_stages(lowered, self.count, TAIL)
        if plan.is_split:
            first = round(plan.end / plan.coarse) + 1
            # All losses, including rare ones, on the coarse grid.
            halves = [_heights(each, plan.coarse, plan.top) for each in (one.remove, one.add)]
            losses = connected(plan.coarse, halves[0], halves[1])[0]
            remove = convolved_with_rare(sides[0], losses, first, self.count, TAIL)
        else:
            remove = convolved_in_stages(sides[0], self.count, TAIL)
        if step is None:
            remove, add = (side.on_grid(plan.coarse) for side in (remove, add))
        return remove, add

    def subsampled(self, fraction: float) -> Form | None:
        """Return the form on a sample of a sample, for a single release."""
        return replace(self, rate=self.rate * fraction) if self.count == 1 else None

    # One of the releases -----------------------------------------------------------------

    def remove(self, epsilons: FloatArray) -> FloatArray:
        """Return the curve of removing a record at each epsilon >= 0, rounded up."""
        return subsampled_remove(self._unsampled, epsilons, self.rate)

    def add(self, epsilons: FloatArray) -> FloatArray:
        """Return the curve of adding a record at each epsilon >= 0, rounded up."""
        return subsampled_add(self._unsampled, epsilons, self.rate)

    def _unsampled(self, epsilons: FloatArray) -> FloatArray:
        return gaussian_delta(self.mu, epsilons)

    def loss(self, outcome: FloatArray) -> FloatArray:
        """Return the loss of removing a record, where noise without it is standard normal."""
        whole = np.minimum(self.mu * outcome - self.mu**2 / 2.0, LARGEST_LOSS)
        sampled: FloatArray = np.log1p(self.rate * np.expm1(whole))
        return sampled

    def loss_beyond(self, probability: float) -> float:
        """Return a loss of removing a record that is exceeded with about this probability."""
        low, high = -10.0, 60.0 + self.mu
        for _ in range(50):
            middle = 0.5 * (low + high)
            upper = (1.0 - self.rate) * special.ndtr(-middle)
            upper += self.rate * special.ndtr(self.mu - middle)
            low, high = (middle, high) if upper > probability else (low, middle)
        return min(max(float(self.loss(np.array(high))), 0.0), LARGEST_LOSS)

    def deviation(self, largest: float) -> float:
        """Return the approximate spread of the losses of removing, up to a largest one."""
        outcomes = np.linspace(-10.0, 10.0 + self.mu, 2001)
        losses = self.loss(outcomes)
        weights = (1.0 - self.rate) * np.exp(-0.5 * outcomes**2)
        weights += self.rate * np.exp(-0.5 * (outcomes - self.mu) ** 2)
        weights[losses > largest] = 0.0
        weights /= weights.sum()
        return math.sqrt(float(weights @ (losses - weights @ losses) ** 2))


# Many Gaussian releases on Poisson samples -----------------------------------------------

# The curve of a single release is a closed form. It is read on a grid that suits the spread of its
# losses and that of their sum. The pair that connects these dots is composed.

# Points per spread of one loss, of their sum, and of a sum with a long tail of rare losses.
_PER_LOSS, _PER_SUM, _PER_LONG_SUM = 30.0, 400.0, 100.0
_MOST_POINTS = 2**18
_MOST_POINTS_GIVEN = 2**22
_MOST_RARE_POINTS = 2**16
_MOST_SINGLE_POINTS = 2**15
# Mass that all copies may lose beyond the end of their grid, as a share of the rate.
_LOST = 1e-19
# For fewer copies, the spread of the sum is not meaningful.
_MANY = 2
# Losses are rare if all copies together meet them with this probability; the larger one is for
# common losses that would be far away.
_RARE, _LESS_RARE = 1e-4, 1e-3
# A largest loss is far away if it exceeds this many spreads of the sum.
_FAR = 10.0


@dataclass(frozen=True)
class _Plan:
    """The grids of a single release.

    Attributes
    ----------
    fine, coarse : float
        Steps for common losses, and for rare losses and the result.
    end : float
        Largest common loss, a multiple of both steps.
    top : float
        Largest finite loss.
    spread : float
        Approximate standard deviation of the sum of all copies.
    """

    fine: float
    coarse: float
    end: float
    top: float
    spread: float

    @property
    def is_split(self) -> bool:
        return self.end < self.top


def _planned(release: SampledGaussianForm, count: int, step: float | None) -> _Plan:
    """Return grids that suit the spread of one loss and that of the sum."""
    rate = release.rate
    # The largest loss of adding a record.
    least = -math.log1p(-rate)
    top = max(release.loss_beyond(_LOST * rate / count), least)
    common = max(release.loss_beyond(_RARE / count), least)
    spread = release.deviation(common)
    total = spread * math.sqrt(count)
    is_split = count >= _MANY and top > _FAR * total and common < 0.5 * top
    if is_split and common > _FAR * total:
        common = max(release.loss_beyond(_LESS_RARE / count), least)
    largest = common if is_split else top
    if count == 1:
        fine = coarse = step or step_at_most(max(spread / _PER_SUM, top / _MOST_SINGLE_POINTS))
    elif step is None:
        enough = total / (_PER_LONG_SUM if is_split else _PER_SUM)
        coarse = step_at_most(max(enough, top / _MOST_RARE_POINTS))
        span = 20.0 * total + max(largest, coarse)
        fine = step_at_most(max(min(spread / _PER_LOSS, total / _PER_SUM), span / _MOST_POINTS))
        coarse = max(fine, coarse)
    else:
        fine = coarse = max(step, (20.0 * total + largest) / _MOST_POINTS_GIVEN)
    end = coarse * math.ceil(largest / coarse)
    return _Plan(fine, coarse, end, coarse * math.ceil(top / coarse), total)


def _common_losses(release: SampledGaussianForm, plan: _Plan) -> Sides:
    """Return one release without its rare losses, which count as the loss 0 when adding."""
    remove, add = (_heights(curve, plan.fine, plan.end) for curve in (release.remove, release.add))
    remove[0] = add[0] = min(remove[0], add[0])
    further, infinity = 0.0, float(remove[-1])
    if plan.is_split:
        after, infinity = release.remove(np.array([plan.end + plan.coarse, plan.top])).tolist()
        further = (float(remove[-1]) - after) / math.expm1(plan.coarse)
    own, other = connected(plan.fine, remove, add, further)
    own = LossDistribution(own.step, own.lowest, own.masses, infinity)
    other.masses[0] += further * math.exp(-plan.end)
    return own, other


def _raised(losses: LossDistribution, least: float) -> LossDistribution:
    """Return an upper bound without losses far below the spread of a sum, which are rare."""
    below = max(math.floor(least / losses.step) - losses.lowest, 0)
    masses = losses.masses[below:].copy()
    masses[0] += losses.masses[:below].sum()
    return LossDistribution(losses.step, losses.lowest + below, masses, losses.infinity)


def _heights(curve: Callable[[FloatArray], FloatArray], step: float, end: float) -> FloatArray:
    return curve(step * np.arange(round(end / step) + 1))
