"""The cost of a minimum under a random linear term, if one person has any number of rows.

A person's loss is a weighted sum of row losses, with weights of at least 0 that sum to at most 1.
The proof adds the rows one after another, each in small steps. A small step has a single
direction, so the bound of objective perturbation for one row (Theorem M1) applies to it. The power
of a test then changes continuously from "without the person" to "with the person". The speed of
this change has a bound that holds for every person.

Theorem M8.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from skdptune.accounting._closed_forms import gaussian_delta

FloatArray = NDArray[np.float64]

_DENSITY_AT_ZERO = 1.0 / math.sqrt(2.0 * math.pi)
# Range of normal quantiles: from -37, where the tail has a mass of 5e-300, to 6.
_LEFT, _RIGHT, _STEP = 37.0, 6.0, 1.0 / 256.0
# The supremum of a curve is searched in the best cell and in these neighbours of it.
_AROUND = np.arange(-4, 5)
# Allowance for rounding of normal tails, and of sums of several thousand positive terms.
_ROUNDING = 1e-12


def persons_minimum_curves(
    slopes: FloatArray, curvatures: FloatArray, shift: float, epsilons: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the curves of a minimum under a normal linear term, for persons.

    Parameters
    ----------
    slopes, curvatures : ndarray of shape (n_lines,)
        Lines whose maximum ``m(t) = max(curvatures + slopes * shift * t)`` is, for every t and
        for each share a in [0, 1] of the largest slope, at least
        ``k(a) R**2 / lam + a * shift * t``. Here k(a) bounds the curvature of a row's loss where
        its slope has this share. No entry is negative, and slopes are at most 1.
    shift : float
        Positive: ``L R / sigma``, a row's largest gradient in standard deviations of the noise.
    epsilons : ndarray
        Not negative.

    Returns
    -------
    remove, add : ndarray
        Upper bounds on delta for neighbours that differ by one person, with all of the rows.

    Notes
    -----
    Theorem M8. The speed is convex in the normal quantile, so its chords lie above it. The
    computed powers are therefore never below those of the theorem.
    """
    epsilons = np.asarray(epsilons, dtype=float)
    most = min(shift * _DENSITY_AT_ZERO, 1.0)
    places, speeds = _speeds(slopes, curvatures, shift)
    remove = _curve_of_flow(places, _after_one(places, speeds) - places, epsilons)
    return np.minimum(remove, most), np.minimum(_add_curve(shift, epsilons), most)


def _add_curve(shift: float, epsilons: FloatArray) -> FloatArray:
    """Return the curve of a flow with speed `shift` up to the median, and at most that later."""
    root = np.sqrt(2.0 * epsilons)
    near = 0.5 + (shift - root) * _DENSITY_AT_ZERO - np.exp(_losses(epsilons, -root))
    return np.where(root >= shift, gaussian_delta(shift, epsilons), near)


def _speeds(
    slopes: FloatArray, curvatures: FloatArray, shift: float
) -> tuple[FloatArray, FloatArray]:
    """Return normal quantiles x, and bounds on their growth rates, ``G(x) / density(x)``.

    Up to 0, ``G(x)`` is the integral of m, replaced by its chords, times the density over the
    upper tail with mass ``F(x)``. From 0 on, a growth of ``shift * density(x)`` is enough. The
    excess of G over this value at 0 is added to it, so that growth stays concave in powers.
    """
    knots = np.arange(0.0, _LEFT + _STEP, _STEP)
    heights = np.max(curvatures + shift * np.outer(knots, slopes), axis=1)
    rises = np.diff(heights) / _STEP
    tails, densities = special.ndtr(-knots), _density(knots)
    cells = (heights[:-1] - rises * knots[:-1]) * -np.diff(tails) - rises * np.diff(densities)
    beyond = np.max(curvatures) * tails[-1] + shift * densities[-1]
    upper = np.cumsum(np.append(cells, beyond)[::-1])
    right = np.arange(_STEP, _RIGHT + _STEP, _STEP)
    excess = max(upper[-1] - shift * _DENSITY_AT_ZERO, 0.0)
    mass = np.append(upper, excess + shift * _density(right))
    places = np.append(-knots[::-1], right)
    return places, (1.0 + _ROUNDING) * mass / _density(places)


def _after_one(places: FloatArray, speeds: FloatArray) -> FloatArray:
    """Return the position of each place after one unit of time; infinity beyond the last place."""
    rates = np.diff(speeds) / _STEP
    # A linear speed results in an exponential path, and a constant speed in a straight one.
    steep = np.maximum(rates, 1e-9 * speeds[:-1])
    times = np.append(0.0, np.cumsum(np.log1p(steep * _STEP / speeds[:-1]) / steep))
    cell = np.searchsorted(times, times + 1.0, side="right") - 1
    ends = cell < steep.size
    inside = cell[ends]
    left = times[ends] + 1.0 - times[inside]
    found = np.full(places.shape, np.inf)
    found[ends] = places[inside] + speeds[inside] * np.expm1(steep[inside] * left) / steep[inside]
    return found


def _curve_of_flow(places: FloatArray, moves: FloatArray, epsilons: FloatArray) -> FloatArray:
    """Return ``sup over x of F(x + move(x)) - exp(epsilon) F(x)``, F the normal distribution.

    Moves grow with x. So the move at the right end of a cell bounds all moves in the cell. The
    best x for a single move is known in closed form.
    """
    levels, powers = special.ndtr(places), special.ndtr(places + moves)
    # Powers are a concave function of levels, so the slopes of secants decrease.
    secants = np.diff(powers) / np.diff(levels)
    best = np.searchsorted(-secants, -np.exp(np.minimum(epsilons, 700.0)))
    cells = np.clip(best[:, np.newaxis] + _AROUND, 0, secants.size - 1)
    move, loss = moves[cells + 1], epsilons[:, np.newaxis]
    x = np.clip(-loss / move - move / 2.0, places[cells], places[cells + 1])
    reached = special.ndtr(x + move)
    found = reached - np.exp(_losses(loss, x)) + _ROUNDING * reached
    # To the left of all cells, the power is at most that of the first place; to the right, 1.
    right = np.maximum(-np.expm1(_losses(epsilons, places[-1])), 0.0)
    bounds: FloatArray = np.maximum(found.max(axis=1), right) + powers[0]
    return bounds


def _losses(epsilons: FloatArray, places: FloatArray) -> FloatArray:
    """Return ``epsilon + log F(x)``; in logarithms, large epsilons do not overflow."""
    losses: FloatArray = epsilons + special.log_ndtr(places)
    return losses


def _density(places: FloatArray) -> FloatArray:
    """Return the normal density."""
    return _DENSITY_AT_ZERO * np.exp(-0.5 * places**2)
