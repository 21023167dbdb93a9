"""The trade-off curve of a run, cell by cell: the least ``Q(T)`` of a test with ``P(T) = a``.

A curve with many cells is first replaced by that of a coarser pair of distributions that dominates
the run. Every mass is moved to the two neighbouring losses of a coarser grid, in shares that
preserve both of its masses. This connects fewer dots of the hockey-stick curve, which only raises
it, and a larger hockey-stick curve has a lower trade-off curve.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skdptune._validation import FloatArray
from skdptune.accounting._loss_distribution import LossDistribution
from skdptune.accounting._run_counts import RunCountDistribution

IntArray = NDArray[np.int64]
# The error of a coarser grid decreases with the square of its step: this many losses suffice.
_MOST_LOSSES = 2**10
_HEAVY = 1e-2
_FEW_CELLS = 2**10
_MORE_CELLS = 2**11
_LARGEST_BEND = 20.0
_TINY = 1e-150
# Below, the derivatives of the pgf have few or no correct digits.
_LEAST_DERIVATIVE = 1e-290
_NEGLIGIBLE = 1e-30


def tradeoff_cells(own: LossDistribution, other: LossDistribution) -> FloatArray:
    """Return cells ``(a0, a1, b0, b1)`` that cover [0, 1], with beta linear in each.

    The masses are cumulated from the largest loss down to zero in this direction, and from the
    other direction's largest loss down to zero, where its rounding errors are small. In between, a
    slope of 1 is used, which no test can exceed. Each cell is a valid lower bound on beta.

    Notes
    -----
    Theorem P2, Theorem S2.
    """
    (own_p, own_q), (other_q, other_p) = _masses_above(own), _masses_above(other)
    powers = np.append([0.0], own.infinity + _cumulated(own_p))
    errors = np.append([0.0], _cumulated(own_q))
    missed = 1.0 - _cumulated(other_p)[::-1]
    left_out = 1.0 - other.infinity - _cumulated(other_q)[::-1]
    upper = np.stack([powers[:-1], powers[1:], errors[:-1], errors[1:]])
    lower = np.stack([missed[:-1], missed[1:], left_out[:-1], left_out[1:]])
    gap = missed[0] - powers[-1]
    middle = np.array([[powers[-1]], [missed[0]], [errors[-1]], [errors[-1] + gap]])
    # Randomisation is not allowed beyond the last loss: a power of 1 is always reached.
    cells = np.concatenate([upper, middle[:, : int(gap > 0.0)], lower], axis=1)
    cells = np.clip(cells, 0.0, 1.0)
    return _subdivided(cells[:, cells[1] > cells[0]])


def _cumulated(masses: FloatArray) -> FloatArray:
    """Return 0 and the cumulated sums from the last mass down."""
    return np.concatenate([[0.0], np.cumsum(masses[::-1])])


def _masses_above(side: LossDistribution) -> tuple[FloatArray, FloatArray]:
    """Return masses of positive losses, smallest first, under both distributions of the pair.

    If there are too many losses, the mass of each is split between neighbours on a coarser grid
    that ends at the largest loss.

    Notes
    -----
    Theorem S2.
    """
    masses = side.positive_masses
    places = np.arange(1, masses.size + 1)
    factor = -(-masses.size // _MOST_LOSSES)
    if factor > 1:
        # Outcomes with a large mass are few, and are not moved.
        heavy = np.flatnonzero(masses > _HEAVY)
        light = masses.copy()
        light[heavy] = 0.0
        rest = masses.size % factor
        ends = np.concatenate([places[:rest], places[rest + factor - 1 :: factor], places[heavy]])
        split = np.concatenate([_split(light, rest, factor, side.step), masses[heavy]])
        order = np.argsort(ends, kind="stable")
        places, masses = ends[order], split[order]
    return masses, masses * np.exp(-side.step * places)


def _split(masses: FloatArray, rest: int, factor: int, step: float) -> FloatArray:
    """Return the masses after those above the first ``rest`` were moved to the cells' ends."""
    blocks = masses[rest:].reshape(-1, factor)
    inside = step * np.arange(1, factor + 1)
    shares = np.expm1(inside) / math.expm1(inside[-1])
    up, down = (np.exp(inside[-1] - inside) * shares, np.exp(-inside) * (1.0 - shares))
    below = np.append(blocks @ down, 0.0)
    coarse = blocks @ up + below[1:]
    # Masses that move down to loss zero count there, with all that is not above.
    lowest = masses[:rest].copy()
    if rest:
        lowest[-1] += below[0]
    return np.concatenate([lowest, coarse])


def _subdivided(cells: FloatArray) -> FloatArray:
    """Cut a few large cells into many, finer towards their right ends, where phi' is steep."""
    pieces = _FEW_CELLS // max(cells.shape[1], 1)
    if pieces < 2:
        return cells
    even = np.linspace(0.0, 1.0, pieces + 1)
    shares = np.unique(np.concatenate([even, 1.0 - np.geomspace(1e-12, 1.0, pieces + 1)]))
    knots = [low + (high - low) * shares[:, None] for low, high in (cells[:2], cells[2:])]
    return np.stack([half.T.ravel() for knot in knots for half in (knot[:-1], knot[1:])])


def refined(cells: FloatArray, distribution: RunCountDistribution) -> FloatArray:
    """Cut the cells on which ``phi'(beta)`` bends most, as a function of ``phi'(a)``.

    Tangents at the ends of such a cell, which an outcome with a large mass can cause, cross far
    below.
    """
    slopes = np.clip(end_slopes(cells, distribution), _TINY, 1.0 / _TINY)
    bends = np.minimum(np.nan_to_num(np.abs(np.log(slopes[1] / slopes[0]))), _LARGEST_BEND)
    # If phi' itself is almost zero, nothing is lost.
    bends[distribution.pgf_derivative(cells[1]) < _NEGLIGIBLE * distribution.mean] = 0.0
    total = float(bends.sum())
    if total == 0.0:
        return cells
    pieces = np.ceil(bends * (_MORE_CELLS / total)).astype(np.int64)
    return cut(cells, np.maximum(pieces, 1))


def cut(cells: FloatArray, pieces: IntArray) -> FloatArray:
    """Return the cells, each cut into a number of equal pieces."""
    index = np.repeat(np.arange(pieces.size), pieces)
    count = np.arange(index.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    a0, a1, b0, b1 = cells[:, index]
    shares = [(count + end) / pieces[index] for end in (0, 1)]
    return np.stack(
        [low + (high - low) * share for low, high in ((a0, a1), (b0, b1)) for share in shares]
    )


def end_slopes(cells: FloatArray, distribution: RunCountDistribution) -> FloatArray:
    """Return slopes that support ``phi'(beta)``, as a function of ``phi'(a)``, at cells' ends.

    If ``phi''(a)`` underflows at the left end, the slope there is replaced by 0, since
    ``phi'(beta)`` does not decrease. The result is NaN if both derivatives are zero at the right
    end, or at the origin.

    Notes
    -----
    Theorem S2.
    """
    a0, a1, b0, b1 = cells
    second = distribution.pgf_second_derivative
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (b1 - b0) / (a1 - a0)
        start, end = ratio * np.stack([second(b0) / second(a0), second(b1) / second(a1)])
    # In a cell at the origin, beta(a) <= a, so phi'(beta) is not convex: its ends support it.
    start[(second(a0) < _LEAST_DERIVATIVE) & (a0 > 0.0)] = 0.0
    return np.stack([start, end])
