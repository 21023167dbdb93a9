r"""The envelope bound on private selection: the cost of the best of a random number of runs.

**Guarantee.** Let the output of a run, including its score, be dominated in one direction by the
pair ``(P, Q)`` with likelihood ratio ``l = dP/dQ`` and trade-off curve ``beta(a) = inf {Q(T) :
P(T) >= a}``. Let the number of runs have the probability generating function ``phi``. The search
that returns the run with the highest score satisfies, in this direction and for every epsilon >=
0,

.. math::

    \delta(\varepsilon) \le E_Q[G(l)] + \phi'(1) P(l = \infty), \qquad
    G(l) = \max\bigl(0, \sup_a \phi'(a) l - e^\varepsilon \phi'(\beta(a))\bigr).

*Proof.* Break ties by an independent uniform mark. A run with score ``s`` is returned with density
``phi'(F_P(s)) dP``. ``a = F_P(s)`` implies ``F_Q(s) >= beta(a)``, and ``phi'`` does not decrease.

**Computation.** With ``t = l exp(-epsilon)``, ``G = exp(epsilon) g(t)``, where ``g`` is the upper
envelope of the lines ``phi'(a) t - phi'(beta(a))``. It is the convex conjugate of the points
``(phi'(a), phi'(beta(a)))``. Their lower convex hull is computed once per direction. If the hull's
edges have slopes ``t_k`` and widths ``w_k``, then ``G`` bends at ``exp(epsilon) t_k`` by ``w_k``,
and the bound is

    delta(epsilon) = sum_k w_k H(exp(epsilon) t_k),

where ``H`` is the run's own hockey-stick curve: one weighted look-up, shifted by epsilon. Every
term is positive, so small deltas keep their relative accuracy. Only hockey-stick values of the two
upper halves are used, so rounding errors at large negative losses have no influence.

On a cell of the trade-off curve, ``beta`` is linear. ``phi'(beta(a))`` is a convex or a concave
function of ``phi'(a)`` on the whole cell, for every distribution of this package (``phi'''/phi''``
is the reciprocal of a linear function). If it is concave, the ends of the cell support the hull.
If it is convex, the crossing of the two end tangents lies below the curve. Both are safe, and the
error decreases with the square of the cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from skdptune._validation import FloatArray
from skdptune.accounting._curves import hockey_stick
from skdptune.accounting._loss_distribution import LossDistribution, cells_below
from skdptune.accounting._run_counts import RunCountDistribution
from skdptune.accounting._tradeoff import IntArray, cut, end_slopes, refined, tradeoff_cells

_TINY_LOG = -745.0
_SPECK = 1e-18
# Bends on a grid with larger distances are not correlated with the curve; it is read at each.
_MOST_BENDS = 2**16


class Envelope:
    """The envelope bound in one direction, as a function of epsilon >= 0.

    Parameters
    ----------
    own, other : LossDistribution
        The run in this direction and in the other one.
    distribution : RunCountDistribution
        Distribution of the number of runs.

    Notes
    -----
    Theorem S1.
    """

    def __init__(
        self, own: LossDistribution, other: LossDistribution, distribution: RunCountDistribution
    ) -> None:
        self._own, self._other, self._distribution = own, other, distribution
        self._cells = tradeoff_cells(own, other)
        slopes, widths = _lower_hull(*_support_points(self._cells, distribution))
        self._edges = slopes, widths
        # Bends of negligible weight, far below, would only extend the range; H counts as 1 there.
        # For a pure guarantee they are kept, since its delta must reach zero.
        speck = (np.cumsum(widths) <= _SPECK) & (own.infinity > 0.0)
        self._flat = float(widths[speck].sum())
        self._widths = widths[~speck]
        self._log_slopes = np.log(np.maximum(slopes[~speck], math.exp(_TINY_LOG)))

    @property
    def top(self) -> float:
        """Epsilon above which only the mass at infinity counts."""
        own = self._own
        if not self._log_slopes.size:
            return 0.0
        return max(own.highest * own.step - float(self._log_slopes[0]), 0.0)

    def delta(self, epsilons: FloatArray) -> FloatArray:
        """Return the bound at each epsilon, one hull edge after another."""
        return np.array(
            [float(self._widths @ self._height(e + self._log_slopes)) for e in epsilons]
        )

    def positions(self) -> Positions:
        """Return the bounds in which every position is used only once."""
        return Positions(self._own, self._other, self._distribution, self._cells, *self._edges)

    def half(self, step: float, size: int, stride: int = 4) -> FloatArray:
        """Return the bound at ``0, step, ..., (size - 1) * step``, in one correlation.

        Each bend of ``G`` is moved to the two neighbouring points of a grid of ``stride * step``,
        with weights that preserve its mean. ``H`` is convex, so the sum can only increase.

        Notes
        -----
        Theorem S2.
        """
        coarse = step * stride
        # This far down, H is 1 to the last digit on the whole grid.
        floor = -(step * size + 40.0)
        flat = self._log_slopes < floor
        widths = self._widths[~flat]
        slopes = np.minimum(self._log_slopes[~flat], self._own.highest * self._own.step + coarse)
        if not slopes.size:
            return np.full(size, self._flat + float(self._widths.sum()))
        cell = cells_below(slopes, coarse)
        if float(cell.max() - cell.min()) > _MOST_BENDS:
            return self.delta(step * np.arange(size))
        # Slopes that are equal up to rounding may be in any order.
        first = int(cell.min())
        share = np.expm1(np.maximum(slopes - cell * coarse, 0.0)) / math.expm1(coarse)
        index = cell.astype(np.int64) - first
        bends = np.bincount(index, widths * (1.0 - share), minlength=int(index.max()) + 2)
        bends += np.bincount(index + 1, widths * share, minlength=bends.size)
        span = size + stride * (bends.size - 1)
        heights = self._height(step * np.arange(span) + first * coarse)
        result = np.empty(size)
        for offset in range(stride):
            wanted = result[offset::stride].size
            lane = heights[offset::stride][: wanted + bends.size - 1]
            result[offset::stride] = np.correlate(lane, bends, mode="valid")
        return result + self._flat + float(self._widths[flat].sum())

    def _height(self, log_alpha: FloatArray) -> FloatArray:
        """Return ``H(alpha)`` of a run, from the direction that is accurate there."""
        return hockey_stick(self._own, self._other, log_alpha)


def _support_points(
    cells: FloatArray, distribution: RunCountDistribution
) -> tuple[FloatArray, FloatArray]:
    """Return points ``(phi'(a), phi'(b))`` whose lower hull is below all that beta allows."""
    # Theorem S2: on each cell, a chord or the crossing of two tangents lies below.
    cells = refined(cells, distribution)
    a0, a1, b0, b1 = cells
    x0, x1, y0, y1 = (distribution.pgf_derivative(values) for values in (a0, a1, b0, b1))
    width, rise = x1 - x0, y1 - y0
    with np.errstate(divide="ignore", invalid="ignore"):
        start, end = end_slopes(cells, distribution)
        offset = (end * width - rise) / (end - start)
        crossing = np.clip(np.where(np.isfinite(offset), offset, 0.0), 0.0, width)
        dip = np.minimum(y0 + start * crossing, y1 - end * (width - crossing))
    bent = (width > 0.0) & (end > start) & np.isfinite(dip)
    x = np.concatenate([[0.0], x0, x1, (x0 + crossing)[bent]])
    y = np.concatenate([[0.0], y0, y1, np.maximum(dip[bent], y0[bent])])
    return x, y


def _lower_hull(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return slopes and widths of the lower convex hull's edges, from left to right."""
    # Theorem S2: the bound is a sum of positive terms over the edges of one hull.
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    first = np.concatenate([[True], np.diff(x) > 0.0])
    x, y = x[first], y[first]
    widths = np.diff(x)
    # The slopes of the greatest convex minorant are the isotonic regression of the slopes.
    fit = optimize.isotonic_regression(np.diff(y) / widths, weights=widths)
    corners_x, corners_y = x[fit.blocks], y[fit.blocks]
    edges = np.diff(corners_x)
    return np.maximum(np.diff(corners_y) / edges, 0.0), edges


# Every position among the scores is used only once ---------------------------------------

# **Guarantee.** For every epsilon >= 0 and every function ``nu >= 0`` on [0, 1] that is fixed
# beforehand, a private selection satisfies, in the notation of the envelope,
#
# .. math::
#
#     \delta(\varepsilon) \le \int_0^1 \nu + E_Q[G_\nu(l)]
#     + \sup_a (\phi'(a) - \nu(a))_+ P(l = \infty), \\
#     G_\nu(l) = \max\bigl(0, \sup_a (\phi'(a) - \nu(a)) l - e^\varepsilon \phi'(\beta(a))\bigr).
#
# *Proof.* With tie marks, ``F_P(s)`` is uniform under ``P``, so ``E_P[nu(F_P)]`` is the integral
# of ``nu``. In the envelope's integrand, split ``phi'(F_P) dP`` into ``(phi' - nu) dP + nu dP``
# and use ``(x + y)_+ <= x_+ + y`` for ``y >= 0``.
#
# The envelope, ``nu = 0``, allows every outcome the position that suits it best, as if there were
# room for all. ``nu(a)`` is a price for position ``a``, where outcomes crowd.
#
# **Computation.** Any convex, increasing, piecewise linear ``gamma`` with ``gamma(0) = 0`` and
# slopes ``t_k`` on intervals of width ``w_k`` represents the prices ``nu = (phi' -
# kappa(phi'(beta)))_+``, where ``kappa`` is the inverse of ``gamma``. Then ``(phi' - nu) t -
# phi'(beta) <= gamma*(t)``, so that
#
#     delta(epsilon) <= integral of nu + sum_k w_k H(exp(epsilon) t_k).
#
# The envelope's lower hull is the one with ``nu = 0``. For each of a few epsilons, a good
# ``gamma`` is found by computing, on a grid, which outcomes should have which positions. Outcomes
# with a larger loss gain more from higher positions, so the best assignment is monotone and can be
# found by dynamic programming. However rough this solution is, the bound holds, at all epsilons.

BoolArray = NDArray[np.bool_]
# Sizes of the grid on which outcomes are assigned to positions.
_OUTCOMES = 64
_POSITIONS = 128
# The grid ends where a run is returned less often by this many e-folds.
_REACH = 25.0
# Closer to 1 than this, positions are indistinguishable.
_LEAST_REACH = 1e-9
# Ranks and positions next to zero.
_SMALL = np.geomspace(1e-8, 0.5, 32)
# Number of epsilons for which this is done; positions for others are interpolated.
_ASSIGNMENTS = 24
# Number of cells over which prices are integrated.
_PIECES = 1024
_LEAST_RATIO = 1e-9
# A smaller saving is not worth the search.
_CLOSE = 0.95
_TINY = 1e-300
_FAR = 1e100
# Part of the integrated pgf by which rounding may reduce a price.
_ROUNDING = 1e-15


class _Edges(NamedTuple):
    """Corners of a convex, increasing, piecewise linear function that starts at the origin."""

    x: FloatArray
    y: FloatArray

    @classmethod
    def of_corners(cls, x: FloatArray, y: FloatArray) -> _Edges:
        """Return the function through corners that are convex up to rounding; never above them."""
        widths = np.diff(x)
        corners = optimize.isotonic_regression(np.diff(y) / widths, weights=widths).blocks
        return cls(x[corners], y[corners])

    def at(self, x: FloatArray) -> FloatArray:
        """Return the function's values."""
        return np.interp(x, self.x, self.y)

    def inverse(self, y: FloatArray) -> FloatArray:
        """Return the largest point of the range, up to ties, with a value of at most ``y``.

        If doubles are not precise enough, 0 is returned: a smaller value means a larger price.
        """
        found = np.interp(y, self.y, self.x)
        return np.where((found >= self.x[0]) & (found <= self.x[-1]), found, 0.0)


@dataclass(frozen=True)
class PricedEnvelope:
    """The bound for one function of prices: a constant, and bends of ``G``."""

    epsilon: float
    constant: float
    log_slopes: FloatArray
    widths: FloatArray
    own: LossDistribution
    other: LossDistribution

    def delta(self, epsilons: FloatArray) -> FloatArray:
        """Return the bound at any epsilons >= 0; it is best near the one for which it was made."""
        points = epsilons[:, None] + self.log_slopes
        heights = hockey_stick(self.own, self.other, points.ravel()).reshape(points.shape)
        return self.constant + heights @ self.widths


class Positions:
    """Bounds in one direction in which every position is used only once.

    Parameters
    ----------
    own, other : LossDistribution
        The run in this direction and in the other one.
    distribution : RunCountDistribution
        Distribution of the number of runs.
    cells : ndarray
        Cells of the trade-off curve.
    slopes, widths : ndarray
        Edges of the envelope's lower hull.

    Notes
    -----
    Theorem S6.
    """

    def __init__(
        self,
        own: LossDistribution,
        other: LossDistribution,
        distribution: RunCountDistribution,
        cells: FloatArray,
        slopes: FloatArray,
        widths: FloatArray,
    ) -> None:
        self._own, self._other, self._distribution = own, other, distribution
        self._hull = _Edges(
            *(np.append(0.0, np.cumsum(part)) for part in (widths, widths * slopes))
        )
        self._knots = np.append(cells[0], 1.0), np.append(cells[2], cells[3, -1])
        steepness = distribution.pgf_second_derivative(1.0) / distribution.mean
        self._reach = min(1.0, _REACH / max(steepness, _REACH))
        # With at least a few runs: outcomes with a small mass may prefer to be below nearly all
        # others.
        self._has_low_positions = self._reach == 1.0 and distribution.pgf_derivative(0.0) == 0.0
        self._integrand = _Integrand(cells, distribution, 1.0 - 2.0 * self._reach)

    def priced(self, epsilons: FloatArray, deltas: FloatArray) -> list[PricedEnvelope]:
        """Return bounds that are good near each epsilon; fewer if they would save little.

        Parameters
        ----------
        epsilons : ndarray
            Increasing epsilons.
        deltas : ndarray
            The envelope's values there.

        Notes
        -----
        Theorem S6.
        """
        if self._reach < _LEAST_REACH:
            return []
        ends = self._ends()
        ratios = np.maximum.accumulate(np.diff(self._least_error(ends)) / np.diff(ends))
        ratios = np.maximum(ratios, _LEAST_RATIO)
        # The best assignments change slowly with epsilon.
        index = np.linspace(0, epsilons.size - 1, _ASSIGNMENTS).round().astype(np.int64)
        index = np.unique(index)
        chosen = epsilons[index]
        levels, worth = self._assignments(ends, ratios, chosen)
        saves = worth < _CLOSE * deltas[index]
        found = []
        for epsilon in epsilons.tolist():
            right = min(int(np.searchsorted(chosen, epsilon)), chosen.size - 1)
            left = max(right - 1, 0)
            if not (saves[left] or saves[right]):
                continue
            share = (epsilon - chosen[left]) / max(chosen[right] - chosen[left], _TINY)
            nearest, moves = (right if share > 0.5 else left), levels[right] - levels[left]
            between = levels[left] + share * moves
            is_close = np.abs(moves) <= 0.1 * np.minimum(self._reach, between)
            level = np.where(is_close, between, levels[nearest])
            ranks = 0.5 * (ends[1:] + ends[:-1])
            found.append(self._with_prices(epsilon, np.exp(epsilon) * ratios, level, ranks))
        return [each for each in found if each is not None]

    def _ends(self) -> FloatArray:
        """Return the ranks, from the largest loss on, between which outcomes are treated alike."""
        ends = self._reach * np.linspace(0.0, 1.0, _OUTCOMES + 1) ** 2
        return np.union1d(ends, _SMALL) if self._has_low_positions else ends

    def _least_error(self, powers: FloatArray) -> FloatArray:
        return np.interp(powers, *self._knots)

    def _assignments(
        self, ends: FloatArray, ratios: FloatArray, epsilons: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the best positions of outcomes for each epsilon, and the resulting delta.

        An outcome with a mass of ``s`` at larger losses is assigned to the position ``w - s``. No
        position is used twice if ``w`` does not increase. Returned are ``w`` of each outcome, and
        approximately the smallest delta that prices can prove.
        """
        ranks, masses = 0.5 * (ends[1:] + ends[:-1]), np.diff(ends)
        levels = 1.0 - self._reach * np.linspace(0.0, 1.0, _POSITIONS, endpoint=False)
        if self._has_low_positions:
            levels = np.union1d(levels, _SMALL)[::-1]
        positions = levels - ranks[:, None]
        inside = np.maximum(positions, 0.0)
        weights = masses[:, None] * (positions >= 0.0)
        gains = self._distribution.pgf_derivative(inside) * weights
        losses = self._distribution.pgf_derivative(self._least_error(inside))
        losses *= masses[:, None] * ratios[:, None]
        worth = -np.exp(epsilons)[:, None] * losses[:, None]
        worth += gains[:, None]
        np.maximum(worth, 0.0, out=worth)
        path = _best_path(worth)
        reached = np.take_along_axis(worth, path[:, :, None], axis=2)
        return levels[path.T], reached.sum(axis=(0, 2))

    def _with_prices(
        self, epsilon: float, ratios: FloatArray, levels: FloatArray, ranks: FloatArray
    ) -> PricedEnvelope | None:
        """Return the bound whose prices make each outcome prefer its assigned position."""
        end = float(self._hull.x[-1])
        x, y = self._followed(ratios, levels, ranks)
        grid = np.unique(np.concatenate([x[x <= end], self._hull.x]))
        crowded, free = np.interp(grid, x, y), self._hull.at(grid)
        higher = np.flatnonzero(crowded > free)
        if not higher.size:
            return None
        edges = _Edges.of_corners(grid, np.maximum(crowded, free))
        # From the next corner on, the function is that of the hull, and prices are zero.
        last = int(higher[-1])
        highest = float(free[last + 1]) if last + 1 < grid.size else np.inf
        constant = self._integrand.of(edges, highest)
        slopes = np.diff(edges.y) / np.diff(edges.x)
        log_slopes = np.log(np.maximum(slopes, _TINY))
        widths = np.diff(edges.x)
        return PricedEnvelope(epsilon, constant, log_slopes, widths, self._own, self._other)

    def _followed(
        self, ratios: FloatArray, levels: FloatArray, ranks: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return corners of a convex function with the outcomes' slopes at their places."""
        derivative = self._distribution.pgf_derivative
        places = np.maximum(levels - ranks, 0.0)
        gains, y = derivative(places), derivative(self._least_error(places))
        used = np.flatnonzero(gains > ratios * y)
        if not used.size:
            return np.array([0.0, self._hull.x[-1]]), np.zeros(2)
        ratios, levels, ranks, gains, y = (
            part[used] for part in (ratios, levels, ranks, gains, y)
        )
        jumps = (np.diff(levels) < -_TINY) | (np.diff(used) > 1)
        # Among outcomes at neighbouring positions, prices add up from the lowest one, which has
        # none. The lowest of all gains nothing.
        gains[-1] = min(gains[-1], ratios[-1] * y[-1])
        rises = np.where(jumps, 0.0, 0.5 * (ratios[:-1] + ratios[1:]) * (y[:-1] - y[1:]))
        risen = np.append(np.cumsum(rises[::-1])[::-1], 0.0)
        rows = np.where(np.append(jumps, True), np.arange(y.size), y.size)
        lowest = np.minimum.accumulate(rows[::-1])[::-1]
        x = risen - risen[lowest] + gains[lowest]
        # Outcomes do not crowd between two groups, or above all, once the last one's prices have
        # decreased. A group that would fit between two levels has no prices.
        finest = np.minimum(self._reach / _POSITIONS, levels)
        limited = ranks[lowest] - ranks >= 0.5 * finest
        below = np.maximum(y.size - np.searchsorted(y[::-1], self._hull.y), 0)
        gaps = np.append(True, jumps)[np.minimum(below, jumps.size)]
        free = gaps & (self._hull.y > y[-1])
        below, free_x, free_y = below[free], self._hull.x[free], self._hull.y[free]
        limits = x[below] + ratios[below] * (free_y - y[below])
        limits = np.where(limited[below], limits, np.inf)
        x = np.concatenate([[0.0], x, np.minimum(free_x, limits)])
        y, first = np.unique(np.concatenate([[0.0], y, free_y]), return_index=True)
        x = np.maximum.accumulate(x[first])
        heights = np.diff(y)
        slopes = np.diff(x) / heights
        fit = optimize.isotonic_regression(slopes, weights=heights, increasing=False)
        return x[fit.blocks], y[fit.blocks]


def _best_path(worth: FloatArray) -> IntArray:
    """Return for each column the most valuable choices that never decrease from row to row."""
    totals = np.empty_like(worth)
    best = np.zeros(worth.shape[1:])
    for row, each in enumerate(worth):
        totals[row] = each + best
        best = np.maximum.accumulate(totals[row], axis=1)
    choices = np.arange(worth.shape[2])
    path = np.empty(worth.shape[:2], dtype=np.int64)
    last = np.full(worth.shape[1], choices.size - 1)
    for row in range(worth.shape[0] - 1, -1, -1):
        allowed = choices <= last[:, None]
        last = np.where(allowed, totals[row], -1.0).argmax(axis=1)
        path[row] = last
    return path


class _Integrand:
    """Prices on cells of positions, and the values needed for an upper bound on their integral."""

    def __init__(
        self, cells: FloatArray, distribution: RunCountDistribution, start: float
    ) -> None:
        """Cut the cells above ``start``, and store the pgf's derivatives at their ends."""
        # Below, prices are at most phi'.
        self._below = distribution.pgf(max(start, 0.0)) - distribution.pgf(0.0)
        cells = cells[:, cells[1] > start]
        spans = cells[1] - cells[0]
        pieces = np.ceil(spans * (_PIECES / max(float(spans.sum()), _TINY))).astype(np.int64)
        a0, a1, b0, b1 = cut(cells, np.maximum(pieces, 1))
        middle = 0.5 * (b0 + b1)
        self._widths = a1 - a0
        self._x = [distribution.pgf_derivative(a) for a in (a0, a1)]
        self._y = [distribution.pgf_derivative(b) for b in (b0, b1)]
        self._middle = distribution.pgf_derivative(middle)
        self._rise = 0.5 * distribution.pgf_second_derivative(middle) * (b1 - b0)

    def of(self, edges: _Edges, highest: float) -> float:
        """Return an upper bound on the integral of the prices, which are zero from a value on.

        On a cell, ``phi'`` lies below its chord, ``kappa`` above its chord, and ``phi'(beta)``
        above its tangent. So the prices lie below the positive part of a line.

        Notes
        -----
        Theorem S6.
        """
        used = self._y[0] < highest
        (x0, x1), (y0, y1) = ((part[used] for part in ends) for ends in (self._x, self._y))
        start, end = edges.inverse(y0), edges.inverse(y1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slope = np.where(y1 > y0, (end - start) / (y1 - y0), 0.0)
            middle, rise = self._middle[used], self._rise[used]
            first = x0 - start - slope * (middle - rise - y0)
            last = x1 - start - slope * (middle + rise - y0)
        # If a line is too steep for doubles, a price is bounded by the values at the ends of its
        # cell.
        is_line = (np.abs(first) < _FAR) & (np.abs(last) < _FAR)
        first, last = np.where(is_line, first, x1 - start), np.where(is_line, last, x1 - start)
        high, low = np.maximum(first, last), np.minimum(first, last)
        # If the line crosses zero: half the square of the positive end, divided by the decrease.
        with np.errstate(over="ignore"):
            shares = np.clip(high / np.maximum(high - low, _TINY), 0.0, 1.0)
        means = np.where(low >= 0.0, 0.5 * (high + low), 0.5 * np.maximum(high, 0.0) * shares)
        widths = self._widths[used]
        return self._below + float((means + _ROUNDING * x1 * (high > 0.0)) @ widths)
