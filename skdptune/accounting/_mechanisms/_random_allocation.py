r"""What a round of random allocation costs: each record in one of ``k`` noisy sums, at random.

**The pair.** Without the extra record the ``k`` sums are dominated by ``Q = N(0, s^2 I)`` in ``k``
dimensions, with it by ``P``, the average of ``N(e_i, s^2 I)`` over the unit vectors ``e_i``; the
proof is in docs/theorems.md. Under ``Q`` the likelihood ratio ``dP/dQ`` is the mean ``S`` of ``k``
independent ``l_i = exp(x_i / s^2 - 1 / (2 s^2))``, which are lognormal of mean 1, so that

    remove: delta(e) = E[(S - exp(e))_+]        add: delta(e) = E[(1 - exp(e) S)_+].

**The bound.** Both are means of convex functions of ``S``, which spreads on a grid only raise:
``l_i / k`` is put on a geometric grid and added up by doubling. The grid of ``S`` becomes that of
the losses, so that nothing more is lost in making a profile.

Theorem M6.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import special

from skdptune._validation import FloatArray, check_integer, check_real
from skdptune.accounting._losses import Halves, LossDistribution, step_at_most
from skdptune.accounting._mechanisms._grid_variables import (
    LOCATION_ROUNDING,
    GridVariable,
    added,
)
from skdptune.accounting._profile import PrivacyProfile, profile_from_halves

# Below, hiding the batch takes less than a tenth from epsilon, and the bound of one batch will do.
_LEAST_NOISE = 0.05
# What spreads add to the variance of S, relative to it: half of it is added to the noise.
_SPREAD = 1e-3
# Mass and mean that each doubling may cut off.
_TAIL = 1e-18
# Deviations from either mean beyond which one ratio's mass is cut off: below 1e-27.
_REACH = 11.0
# Integrate cells, of a seventh of a deviation at most, to the last digit.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_UNIT = float(np.finfo(np.float64).eps)
# Allows for masses too small for a float, at the largest loss.
_UNDERFLOW = 1e-40


def random_allocation(
    noise_multiplier: float,
    n_batches: int,
    n_steps: int | None = None,
    *,
    spread: float = _SPREAD,
) -> PrivacyProfile:
    """Return the profile of noisy sums over batches, each record in one batch at random.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the Gaussian noise on each sum, over the largest norm that a record
        adds to a sum; at least 1/30, below which nothing is promised.
    n_batches : int
        Number of batches of a round; public. In each round every record is in exactly one of
        them, drawn uniformly and independently of all else. What is added up may depend on the
        sums before.
    n_steps : int, optional
        Number of sums in all. By default there is one round of `n_batches`. A last round that is
        cut short costs less than a whole one.
    spread : float, default=0.001
        Precision: how much the bound may add to the variance of the likelihood ratio, relative
        to it. A larger one is safe, and faster; half of it is added to the noise of a budget.

    Returns
    -------
    PrivacyProfile

    Notes
    -----
    Theorem M6.

    The relation is adding or removing one record, so the batches' sizes must not be used. Feldman
    and Shenfeld (2026, arXiv:2602.17284) bound the same pair on grids of losses; here every step
    is a spread that keeps the mean, which needs no bound on its error.

    Examples
    --------
    >>> from skdptune.accounting import random_allocation
    >>> ten_rounds = random_allocation(noise_multiplier=1.0, n_batches=100, n_steps=1000)
    >>> round(ten_rounds.epsilon(1e-5), 2)
    1.7
    """
    noise = check_real(noise_multiplier, name="noise_multiplier", lower=1.0 / 30.0, upper=1e9)
    n_batches = check_integer(n_batches, name="n_batches", lower=1)
    if n_steps is None:
        n_steps = n_batches
    n_steps = check_integer(n_steps, name="n_steps", lower=1)
    spread = check_real(spread, name="spread", lower=1e-5, upper=0.01)
    rounds, rest = divmod(n_steps, n_batches)
    if not rest:
        return rounds * _round(noise, n_batches, spread)
    last = _round(noise, rest, spread).subsampled(rest / n_batches)
    return rounds * _round(noise, n_batches, spread) + last if rounds else last


@functools.lru_cache(maxsize=32)
def _round(noise: float, n_batches: int, spread: float) -> PrivacyProfile:
    """Return the profile of one round."""
    if n_batches == 1 or noise < _LEAST_NOISE:
        return PrivacyProfile.gaussian(1.0 / noise)
    return profile_from_halves(_halves(mean_ratio(1.0 / noise, n_batches, spread), n_batches))


def mean_ratio(shift: float, n_batches: int, spread: float) -> GridVariable:
    """Return a bound on the mean of `n_batches` independent likelihood ratios.

    Parameters
    ----------
    shift : float
        Sensitivity of a sum over the deviation of its noise.
    n_batches : int
    spread : float
        As for `random_allocation`.
    """
    # Theorem M6.
    total = _Sum(shift, n_batches, spread)
    block, size = total.of_one(), 1
    result, count = None, 0
    while result is None or count < n_batches:
        if n_batches & size:
            count += size
            result = block if result is None else total.sum(result, block, count)
        size *= 2
        if count < n_batches:
            block = total.sum(block, block, size)
    return result


class _Sum:
    """Adds up likelihood ratios over their number, on grids that suit their spread."""

    def __init__(self, shift: float, n_batches: int, spread: float) -> None:
        self._shift, self._n_batches = shift, n_batches
        deviation = math.sqrt(math.log1p(math.expm1(shift**2) / n_batches))
        # Of all sums that are made, at most two for each binary digit of their number, each adds
        # to the variance about a 16th of the squared spacing, which is that of two scores.
        self._spacing = math.sqrt(16.0 * spread / (2.0 * n_batches.bit_length() - 1.0))
        self._finest = step_at_most(0.2 * self._spacing * deviation)

    def sum(self, first: GridVariable, second: GridVariable, count: int) -> GridVariable:
        """Return the sum of two sums that have so many terms together."""
        step = self._step(count)
        one = first.on_step(step).thinned(self._spacing)
        other = one if first is second else second.on_step(step).thinned(self._spacing)
        return self._cut(added(one, other), count)

    def _step(self, count: int) -> float:
        """Return the step of the sum of so many terms: the fewer, the coarser may it be."""
        halvings = math.floor(0.5 * math.log2(self._n_batches / count) + 1e-9)
        # The far tail stays that of a single ratio.
        widest = math.floor(math.log2(0.5 * self._spacing * self._shift / self._finest))
        return math.ldexp(self._finest, max(min(halvings, widest), 0))

    def _cut(self, variable: GridVariable, count: int) -> GridVariable:
        """Return the sum of so many terms without ends that hardly count."""
        return variable.trimmed(_TAIL * count / self._n_batches)

    def of_one(self) -> GridVariable:
        """Return one likelihood ratio over their number."""
        shift, step = self._shift, self._step(1)
        # log(l / k) = shift * z - offset with z normal, of mean 0 without the record. Counting
        # from the point next to z = 0 makes an error in `offset` one of all points alike.
        offset = shift**2 / 2.0 + math.log(self._n_batches)
        origin = round(-offset / step)
        low, high = math.floor(-_REACH * shift / step), math.ceil((_REACH + shift) * shift / step)
        edges = (step * np.arange(low, high + 1) + (step * origin + offset)) / shift
        lower, upper = _split_cells(edges[:-1], step, shift)
        masses = np.append(lower, 0.0)
        masses[1:] += upper
        # Below the grid: split between 0 and the first point. Above: lowered to the last one.
        below, above = special.ndtr(edges[0]), special.ndtr(-edges[-1])
        means = special.ndtr([edges[0] - shift, shift - edges[-1]]) / self._n_batches
        masses[0] += means[0] / math.exp((low + origin) * step)
        masses[-1] += above
        numbers = origin + np.arange(low, high + 1)
        rounding = _UNIT * (4.0 * float(np.abs(edges).max()) ** 2 + 500.0)
        return self._cut(GridVariable(step, numbers, masses, below, means[1], rounding), 1)


def _split_cells(edges: FloatArray, step: float, shift: float) -> tuple[FloatArray, FloatArray]:
    """Return the masses that a lognormal's cells give to their lower and to their upper ends.

    The shares of a value are linear in it, and sum to 1. Integrals of positive terms, so that no
    digits cancel.
    """
    width = step / shift
    inside = 0.5 * width * (_NODES + 1.0)
    density = np.exp(-0.5 * np.square(edges[:, None] + inside)) / math.sqrt(2.0 * math.pi)
    density *= 0.5 * width * _WEIGHTS
    rise = shift * inside
    upper = np.expm1(rise) / math.expm1(step)
    lower = np.exp(rise) * np.expm1(step - rise) / math.expm1(step)
    return density @ lower, density @ upper


def _halves(ratio: GridVariable, n_batches: int) -> Halves:
    """Return the curves of both directions on the grid of the ratio's logarithms."""
    # Theorem M6.
    step, lowest = ratio.step, int(ratio.numbers[0])
    size = int(ratio.numbers[-1]) - lowest + 1
    masses = np.zeros(size)
    masses[ratio.numbers - lowest] = ratio.masses
    points = np.exp(step * (lowest + np.arange(size)))
    # Masses with the record, and without it, where the losses are of the opposite sign.
    remove = LossDistribution(step, lowest, masses * points, ratio.excess)
    add = LossDistribution(step, 1 - lowest - size, masses[::-1], ratio.zero)
    largest = abs(step * lowest) + step * size + math.log(n_batches)
    # Each of at most two sums for a binary digit spreads both of its terms and itself.
    location = LOCATION_ROUNDING * 6.0 * n_batches.bit_length() * (1.0 + largest)
    rounding = min(ratio.rounding + location + 4.0 * _UNIT * size, 100.0)
    return Halves(step, *(_paid(side, location, rounding) for side in (remove, add)))


def _paid(side: LossDistribution, location: float, rounding: float) -> FloatArray:
    """Return a curve plus what rounding of losses and masses may have taken from it."""
    # Losses that are larger by `location` raise the curve at a point by at most that times the
    # mass from the point on, counted as 1 more at 0.
    masses = np.concatenate([[side.infinity], side.positive_masses[::-1], [1.0]])
    tails = np.cumsum(masses)[::-1][: side.curve.size]
    return math.exp(rounding) * (side.curve + location * tails) + _UNDERFLOW
