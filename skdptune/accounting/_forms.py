"""Closed forms that are preserved by composition, which a profile may have."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import special

from skdptune._validation import FloatArray
from skdptune.accounting._closed_forms import (
    ROUNDING,
    gaussian_delta,
    gaussian_halves,
    randomised_response,
    subsampled_add,
    subsampled_remove,
)
from skdptune.accounting._convolution import TAIL, convolved_in_stages, convolved_with_rare
from skdptune.accounting._curves import Sides, connected, everything_lost, step_at_most
from skdptune.accounting._loss_distribution import LARGEST_LOSS, LEAST_RATE, LossDistribution


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

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is released."""
        return self.epsilon == 0.0 and self.failure == 0.0

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
        return connected(*gaussian_halves(self.mu, step))

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
        """Return both directions, on a given or a suitable grid."""
        return sampled_gaussian_sides(self.mu, self.rate, self.count, step)

    def subsampled(self, fraction: float) -> Form | None:
        """Return the form on a sample of a sample, for a single release."""
        return replace(self, rate=self.rate * fraction) if self.count == 1 else None


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
class SampledGaussian:
    """A Gaussian release with shift ``mu`` on a Poisson sample with a rate in (0, 1).

    Notes
    -----
    Theorem P7.
    """

    mu: float
    rate: float

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


def sampled_gaussian_sides(mu: float, rate: float, count: int, step: float | None = None) -> Sides:
    """Return both directions of ``count`` Gaussian releases, each on a Poisson sample.

    Parameters
    ----------
    mu : float
        Shift of one release, in standard deviations of its noise.
    rate : float
        Probability in (0, 1) that a record is in a sample.
    count : int
        Number of releases.
    step : float, optional
        Grid of the losses; by default, one that suits their spread.

    Notes
    -----
    Theorem P4, Theorem P7, Theorem P12.
    """
    # A larger rate never costs less (Theorem P7). For smaller rates, doubles are not precise
    # enough.
    release = SampledGaussian(mu, max(rate, LEAST_RATE))
    plan = _planned(release, count, step)
    if plan.spread > LARGEST_LOSS:
        # Such sums are almost never finite.
        return everything_lost(plan.coarse)
    sides = _common_losses(release, plan)
    if count == 1:
        return sides
    add = convolved_in_stages(_raised(sides[1], -_FAR * plan.spread), count, TAIL)
    if plan.is_split:
        first = round(plan.end / plan.coarse) + 1
        all_losses = _all_losses(release, plan)
        remove = convolved_with_rare(sides[0], all_losses, first, count, TAIL)
    else:
        remove = convolved_in_stages(sides[0], count, TAIL)
    if step is None:
        remove, add = (side.on_grid(plan.coarse) for side in (remove, add))
    return remove, add


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


def _planned(release: SampledGaussian, count: int, step: float | None) -> _Plan:
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


def _common_losses(release: SampledGaussian, plan: _Plan) -> Sides:
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


def _all_losses(release: SampledGaussian, plan: _Plan) -> LossDistribution:
    """Return the losses of removing a record, including rare ones, on the coarse grid."""
    remove, add = (_heights(each, plan.coarse, plan.top) for each in (release.remove, release.add))
    return connected(plan.coarse, remove, add)[0]


def _heights(curve: Callable[[FloatArray], FloatArray], step: float, end: float) -> FloatArray:
    return curve(step * np.arange(round(end / step) + 1))
