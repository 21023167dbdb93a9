r"""The envelope bound on private selection: what the best of a random number of runs costs.

**Guarantee.** Let the output of a run, score included, be dominated in one direction by the pair
``(P, Q)`` with likelihood ratio ``l = dP/dQ`` and trade-off curve
``beta(a) = inf {Q(T) : P(T) >= a}``, and let the number of runs have the probability generating
function ``phi``. The search that returns the run of highest score satisfies, in that direction and
for every epsilon >= 0,

.. math::

    \delta(\varepsilon) \le E_Q[G(l)] + \phi'(1) P(l = \infty), \qquad
    G(l) = \max\bigl(0, \sup_a \phi'(a) l - e^\varepsilon \phi'(\beta(a))\bigr).

*Proof.* Break ties by an independent uniform mark. A run of score ``s`` is returned with density
``phi'(F_P(s)) dP``; ``a = F_P(s)`` implies ``F_Q(s) >= beta(a)``; ``phi'`` does not fall.

**Computation.** With ``t = l exp(-epsilon)``, ``G = exp(epsilon) g(t)`` where ``g`` is the upper
envelope of the lines ``phi'(a) t - phi'(beta(a))``: the convex conjugate of the points
``(phi'(a), phi'(beta(a)))``. Their lower convex hull is found once per direction. If the hull's
edges have slopes ``t_k`` and widths ``w_k``, then ``G`` bends at ``exp(epsilon) t_k`` by
``w_k``, and the bound is

    delta(epsilon) = sum_k w_k H(exp(epsilon) t_k),

``H`` being the run's own hockey-stick curve: one weighted look-up, shifted by epsilon. Every term
is positive, so small deltas keep their relative accuracy, and only hockey-stick values of the two
upper halves enter, so the rounding noise at large negative losses cannot.

On a cell of the trade-off curve, ``beta`` is linear, and ``phi'(beta(a))`` is a convex or a
concave function of ``phi'(a)`` on the whole cell, for every distribution here (``phi'''/phi''`` is
the reciprocal of a linear function). Concave: the ends of the cell support the hull. Convex: the
crossing of the two end tangents lies below the curve. Both are safe, and the error falls with the
square of the cell.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize

from skdptune._validation import FloatArray
from skdptune.accounting._losses import LossDistribution, cells_below, hockey_stick
from skdptune.accounting._run_counts import RunCountDistribution
from skdptune.accounting._selection._positions import Positions
from skdptune.accounting._selection._tradeoff import end_slopes, refined, tradeoff_cells

_TINY_LOG = -745.0
_SPECK = 1e-18
# Bends on a grid so far apart are not correlated with the curve: it is read at each by itself.
_MOST_BENDS = 2**16


class Envelope:
    """The envelope bound of one direction, to be read at any epsilon >= 0.

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
        # Bends of no weight at all, far below, would only stretch the range: there H counts as 1.
        # A pure guarantee keeps them: its delta must reach zero.
        speck = (np.cumsum(widths) <= _SPECK) & (own.infinity > 0.0)
        self._flat = float(widths[speck].sum())
        self._widths = widths[~speck]
        self._log_slopes = np.log(np.maximum(slopes[~speck], math.exp(_TINY_LOG)))

    @property
    def top(self) -> float:
        """Epsilon from which on only the mass at infinity counts."""
        own = self._own
        if not self._log_slopes.size:
            return 0.0
        return max(own.highest * own.step - float(self._log_slopes[0]), 0.0)

    def delta(self, epsilons: FloatArray) -> FloatArray:
        """Return the bound at each epsilon, hull edge by hull edge."""
        return np.array(
            [float(self._widths @ self._height(e + self._log_slopes)) for e in epsilons]
        )

    def positions(self) -> Positions:
        """Return the bounds in which every position is used only once."""
        return Positions(self._own, self._other, self._distribution, self._cells, *self._edges)

    def half(self, step: float, size: int, stride: int = 4) -> FloatArray:
        """Return the bound at ``0, step, ..., (size - 1) * step``, in one correlation.

        Each bend of ``G`` is moved to the two neighbouring points of a grid of ``stride * step``,
        with weights that keep its mean. ``H`` is convex, so the sum can only rise.

        Notes
        -----
        Theorem S2.
        """
        coarse = step * stride
        # So far down, H is 1 to the last digit on the whole grid.
        floor = -(step * size + 40.0)
        flat = self._log_slopes < floor
        widths = self._widths[~flat]
        slopes = np.minimum(self._log_slopes[~flat], self._own.highest * self._own.step + coarse)
        if not slopes.size:
            return np.full(size, self._flat + float(self._widths.sum()))
        cell = cells_below(slopes, coarse)
        if float(cell.max() - cell.min()) > _MOST_BENDS:
            return self.delta(step * np.arange(size))
        # Slopes that are equal up to rounding may stand in any order.
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
        """Return ``H(alpha)`` of a run, from whichever direction is sound there."""
        return hockey_stick(self._own, self._other, log_alpha)


def _support_points(
    cells: FloatArray, distribution: RunCountDistribution
) -> tuple[FloatArray, FloatArray]:
    """Return points ``(phi'(a), phi'(b))`` whose lower hull lies below all that beta allows."""
    # Theorem S2.
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
    # Theorem S2.
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    first = np.concatenate([[True], np.diff(x) > 0.0])
    x, y = x[first], y[first]
    widths = np.diff(x)
    # Slopes of the greatest convex minorant are the isotonic regression of the slopes.
    fit = optimize.isotonic_regression(np.diff(y) / widths, weights=widths)
    corners_x, corners_y = x[fit.blocks], y[fit.blocks]
    edges = np.diff(corners_x)
    return np.maximum(np.diff(corners_y) / edges, 0.0), edges
