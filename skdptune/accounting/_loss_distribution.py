"""The privacy loss distribution of one direction, on a uniform grid of losses.

For a pair of output distributions ``(P, Q)``, the privacy loss of an outcome is ``log(dP/dQ)``.
The distribution of the loss under ``P`` determines every figure of differential privacy. It is
stored as masses at the points ``k * step`` and a mass at infinity. It is always conservative: its
hockey-stick divergence is an upper bound.

Only the losses at and above zero are used here. The behaviour of a pair below zero is that of its
mirror image above zero. Each half is computed where it is numerically accurate: the weight
``exp(-loss)`` of a large negative loss would amplify rounding errors without limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy import signal

from skdptune._validation import FloatArray

# Losses above this count as infinite: exp(600) is still a float, and a guarantee with such an
# epsilon is meaningless.
LARGEST_LOSS = 600.0
# Smaller sampling rates are replaced by this one (Theorem P7).
LEAST_RATE = 1e-20
# Number of masses up to which a grid may be filled up with zeros.
_MOST_PADDING = 2**20
# Grid numbers with at most this relative distance to an integer differ because of rounding.
_NEAR = 2.0**-48


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """Masses at the losses ``(lowest + i) * step`` and at infinity, for one direction.

    Attributes
    ----------
    step : float
        Distance between neighbouring losses.
    lowest : int
        Grid number of the first mass.
    masses : ndarray
        Masses under ``P``; not negative.
    infinity : float
        Mass under ``P`` where ``Q`` has none.
    """

    step: float
    lowest: int
    masses: FloatArray
    infinity: float

    def __post_init__(self) -> None:
        """Treat invalid distributions as infinite losses: they must not look like a small cost.

        If a mass (including that at infinity) or the step is infinite or NaN, all mass is moved to
        infinity; so is the mass of positive losses if the step exceeds `LARGEST_LOSS`. Negative
        masses, which only come from rounding, become 0, which costs more.
        """
        is_number = math.isfinite(float(self.masses.sum())) and not math.isnan(self.infinity)
        if not is_number or not 0.0 < self.step < math.inf:
            object.__setattr__(self, "masses", np.zeros(1))
            object.__setattr__(self, "lowest", 0)
            object.__setattr__(self, "infinity", 1.0)
        elif self.masses.size and self.masses.min() < 0.0:
            object.__setattr__(self, "masses", np.maximum(self.masses, 0.0))
        if self.step > LARGEST_LOSS and self.highest > 0:
            # No positive loss has an exponential among doubles.
            kept = max(1 - self.lowest, 0)
            object.__setattr__(self, "infinity", self.infinity + float(self.masses[kept:].sum()))
            object.__setattr__(self, "masses", self.masses[:kept] if kept else np.zeros(1))
            object.__setattr__(self, "lowest", min(self.lowest, 0))
        object.__setattr__(self, "infinity", min(max(self.infinity, 0.0), 1.0))

    def __getstate__(self) -> dict[str, Any]:
        """Return the content for pickling, without what follows from it."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def highest(self) -> int:
        """Grid number of the last mass, but at least 0."""
        return max(self.lowest + self.masses.size - 1, 0)

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of the finite losses."""
        total = float(self.masses.sum())
        if total <= 0.0:
            return 0.0
        places = np.arange(self.masses.size)
        centre = float(self.masses @ places) / total
        return self.step * math.sqrt(float(self.masses @ (places - centre) ** 2) / total)

    @cached_property
    def positive_masses(self) -> FloatArray:
        """Masses at the losses ``1 * step, 2 * step, ...``."""
        start = 1 - self.lowest
        values = self.masses[max(start, 0) :]
        missing = min(max(-start, 0), self.highest)
        return np.pad(values, (missing, 0)) if missing else values

    @cached_property
    def curve(self) -> FloatArray:
        """Hockey-stick divergences ``delta(k * step)`` for ``k = 0 .. highest``.

        Between two of these points, the divergence is linear in ``exp(epsilon)``.

        Notes
        -----
        ``delta(k) - delta(k+1) = (exp(step) - 1) * c(k)``, where ``c(k) = sum_{i > k} mass(i)
        exp((k - i) step)`` satisfies ``c(k) = exp(-step) (c(k+1) + mass(k+1))``. These are sums of
        positive terms from the top down, without cancellation even for small tails.
        """
        drops = self.weighted_tails * self._growth
        tail = np.concatenate([[self.infinity], drops[::-1]])
        return np.minimum(np.cumsum(tail)[::-1], 1.0)

    @property
    def weighted_tails(self) -> FloatArray:
        """``sum_{i > k} mass(i) exp((k - i) step)`` for ``k = 0 .. highest - 1``."""
        ratio = math.exp(-self.step)
        tails: FloatArray = signal.lfilter([ratio], [1.0, -ratio], self.positive_masses[::-1])
        return tails[::-1]

    def delta(self, epsilon: FloatArray) -> FloatArray:
        """Return the hockey-stick divergence at each ``epsilon >= 0``."""
        position = np.minimum(epsilon, self.highest * self.step)
        cell = cells_below(position, self.step).astype(np.intp)
        # In place from here on, because searches spend most of their time here.
        into = np.subtract(position, cell * self.step, out=position)
        np.maximum(into, 0.0, out=into)
        share = np.expm1(into, out=into)
        share /= self._growth
        np.minimum(share, 1.0, out=share)
        share *= self._falls.take(cell)
        result: FloatArray = self.curve.take(cell)
        result -= share
        return result

    @property
    def _growth(self) -> float:
        """``exp(step) - 1``; with a larger step there are no positive losses."""
        return math.expm1(min(self.step, LARGEST_LOSS))

    @cached_property
    def _falls(self) -> FloatArray:
        """Decrease of the curve from each point to the next one, and 0 at the last."""
        return np.append(self.curve[:-1] - self.curve[1:], 0.0)

    def epsilon(self, delta: float) -> float:
        """Return the smallest ``epsilon >= 0`` whose divergence is at most ``delta``."""
        # On a plateau at delta, rounding errors must not decide.
        reached = delta * (1.0 + 1e-12)
        if self.infinity > reached:
            return math.inf
        # The curve decreases; the first point at or below delta is the end of the relevant cell.
        right = int(np.searchsorted(-self.curve, -reached, side="left"))
        if right == 0:
            return 0.0
        high, low = self.curve[right - 1], self.curve[right]
        share = min((high - delta) / (high - low), 1.0)
        found = (right - 1) * self.step + math.log1p(share * self._growth)
        # Rounded up, but not beyond the grid point, where a pure guarantee ends.
        return min(found * (1.0 + 2.0**-50), right * self.step)

    def within_doubles(self) -> LossDistribution:
        """Return an upper bound in which losses with an overflowing exponential are infinite."""
        size = math.floor(LARGEST_LOSS / self.step) - self.lowest + 1
        if size >= self.masses.size:
            return self
        kept = max(size, 0)
        infinity = self.infinity + float(self.masses[kept:].sum())
        if not kept:
            return LossDistribution(self.step, 0, np.zeros(1), infinity)
        return LossDistribution(self.step, self.lowest, self.masses[:kept], infinity)

    def on_finer_grid(self, factor: int, step: float) -> LossDistribution:
        """Return the same distribution on a grid ``factor`` times as fine, with the given step."""
        if factor == 1 and step == self.step:
            return self
        masses = np.zeros((self.masses.size - 1) * factor + 1)
        masses[::factor] = self.masses
        return LossDistribution(step, self.lowest * factor, masses, self.infinity)

    def on_grid(self, step: float) -> LossDistribution:
        """Return an upper bound on another grid: each mass is divided between its two neighbours.

        The shares keep both probabilities of the pair. So the curve stays the same at every point
        of the new grid, and becomes a chord between two points.

        Notes
        -----
        Theorem P1.
        """
        many = times_fitting(step, self.step)
        if many is None or many > max(_MOST_PADDING, 16 * self.masses.size):
            return self._spread(step)
        first = self.lowest // many
        padding = self.lowest - first * many
        masses = np.zeros(-(-(padding + self.masses.size) // many) * many)
        masses[padding : padding + self.masses.size] = self.masses
        rows = masses.reshape(-1, many)
        up = rows @ (np.expm1(-self.step * np.arange(many)) / np.expm1(-self.step * many))
        coarse = np.append(rows.sum(axis=1) - up, 0.0)
        coarse[1:] += up
        last = coarse.size if coarse[-1] > 0.0 else -1
        return LossDistribution(step, first, np.maximum(coarse[:last], 0.0), self.infinity)

    def _spread(self, step: float) -> LossDistribution:
        """Return the masses on a grid that is neither a refinement of this one nor the reverse."""
        losses = self.step * np.arange(self.lowest, self.lowest + self.masses.size)
        cells = cells_below(losses, step)
        into = np.maximum(losses - cells * step, 0.0)
        up = self.masses * np.minimum(np.expm1(-into) / math.expm1(-step), 1.0)
        places = (cells - cells[0]).astype(np.int64)
        coarse: FloatArray = np.zeros(int(places[-1]) + 2)
        coarse += np.bincount(places, self.masses - up, minlength=coarse.size)
        coarse += np.bincount(places + 1, up, minlength=coarse.size)
        return LossDistribution(step, int(cells[0]), coarse, self.infinity)

    def equals(self, other: LossDistribution) -> bool:
        """Return whether both contain the same numbers."""
        return (self.step, self.lowest, self.infinity) == (
            other.step,
            other.lowest,
            other.infinity,
        ) and np.array_equal(self.masses, other.masses)


def cells_below(values: FloatArray, step: float) -> FloatArray:
    """Return the grid numbers at or below values; a value just below one counts as on it."""
    places = values / step
    return np.floor(places + _NEAR * np.abs(places))


def place_above(value: float, step: float) -> int:
    """Return the grid number at or above a value; a value just above one counts as on it."""
    place = value / step
    return math.ceil(place - _NEAR * abs(place))


def times_fitting(coarse: float, fine: float, slack: float = _NEAR) -> int | None:
    """Return how many times a step fits into another one; None if it does not.

    The fine steps together may be longer by a relative ``slack``, but shorter only by rounding.
    """
    factor = coarse / fine
    many = round(factor) if factor < 2.0**53 else 0
    fits = many >= 1 and -_NEAR * factor <= many - factor <= slack * factor
    return many if fits else None


def normalised(step: float, lowest: int, masses: FloatArray, infinity: float) -> LossDistribution:
    """Return the distribution with its finite masses scaled up if their total is too small.

    Rounding can lose a relative mass of about 1e-12. A total that is too large is pessimistic and
    is kept.
    """
    total = float(masses.sum())
    wanted = 1.0 - infinity
    if 0.0 < total < wanted:
        masses = masses * (wanted / total)
    return LossDistribution(step, lowest, masses, infinity)
