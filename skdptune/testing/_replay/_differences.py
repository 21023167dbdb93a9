"""How one published value differs between fits to neighbouring data with the same noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from skdptune.testing._replay._published import Leaf, Whole, same

Table = NDArray[np.float64]
Mask = NDArray[np.bool_]

# A shift is the same for all seeds where it varies by less than that share of the noise.
_EXACT = 1e-3
# Chances that the estimated noise is too small: of all fits, and in each of two halves of them.
_RISK, _RISK_OF_HALF = 1e-3, 1e-2
# Noise is the same where differences have less than half the spread of independent noise.
_REPLAYED = 0.5
_INSTEAD_OF_INFINITY = 1e12
# What sums of doubles may be wrong by, relative to the largest of them.
_ROUNDING = 2.0**-46
# Powers of n / (n + 1) that are told apart from others, and how exactly.
_POWERS = (0.5, 1.0, 2.0)
_TOLERANCE = 0.05


@dataclass(frozen=True)
class Difference:
    """How a value differs.

    Attributes
    ----------
    free : ndarray of bool
        Which of its numbers differ though no seed changes them.
    is_comparable : bool
        False where it varies with the seed and is no number.
    noisy : ndarray of bool
        Which of its numbers vary with the seed.
    replayed : bool or None
        Whether its noise is the same on both sides; None without noise.
    """

    free: Mask
    is_comparable: bool
    noisy: Mask
    replayed: bool | None

    @property
    def is_identical(self) -> bool:
        """Whether nothing differs for any seed."""
        return self.is_comparable and not self.free.any() and not self.noisy.any()


def difference(first: Sequence[Leaf], second: Sequence[Leaf]) -> Difference:
    """Compare a value of fits to two data sets, one pair per seed."""
    if all(map(same, first, second)):
        return Difference(np.zeros(1, bool), True, np.zeros(1, bool), None)
    if any(isinstance(leaf, Whole) for leaf in (*first, *second)):
        is_fixed = all(same(one, side[0]) for side in (first, second) for one in side)
        return Difference(np.array([is_fixed]), is_fixed, np.zeros(1, bool), None)
    one, other = tables(first, second)
    fixed = (one == one[0]).all(axis=0) & (other == other[0]).all(axis=0)
    free = fixed & (one[0] != other[0])
    return Difference(free, True, ~fixed, is_replayed(one[:, ~fixed], other[:, ~fixed]))


def tables(*sides: Sequence[Leaf]) -> tuple[Table, ...]:
    """Return numbers of fits as tables with one row per seed, as many columns as all have."""
    arrays = [[np.asarray(leaf) for leaf in side] for side in sides]
    width = min(array.size for side in arrays for array in side)
    return tuple(
        np.nan_to_num(
            np.stack([array[:width] for array in side]),
            posinf=_INSTEAD_OF_INFINITY,
            neginf=-_INSTEAD_OF_INFINITY,
        )
        for side in arrays
    )


def is_replayed(one: Table, other: Table) -> bool | None:
    """Return whether noise is the same on both sides, None where there is none."""
    if one.shape[1] == 0:
        return None
    fresh = math.sqrt(2.0) * _noise_of(one, other)
    return bool(np.median((other - one).std(axis=0, ddof=1) - _REPLAYED * fresh) <= 0.0)


def least_shift(one: Table, other: Table) -> float:
    """Return how far noisy numbers move on average, in standard deviations of their noise.

    That is a lower bound at high confidence for approximately normal averages, along the direction
    in which they move. Every column must vary with the seed.

    Notes
    -----
    Theorem V1.
    """
    noise = _noise_of(one, other)
    varies = np.isfinite(noise) & (noise > 0.0)
    if not varies.any():
        return 0.0
    # In units of the noise, from where one side is on average.
    centre, width = one[:, varies].mean(axis=0), noise[varies]
    largest = np.abs(np.vstack([one, other])[:, varies]).max(axis=0)
    pair = _Pair(
        (one[:, varies] - centre) / width,
        (other[:, varies] - centre) / width,
        _ROUNDING * largest / width,
    )
    whole = pair.along(pair.moves.mean(axis=0))
    if whole.mean != 0.0 and whole.spread <= _EXACT * whole.noise:
        # The same shift for all seeds: nothing about it is left to chance but the noise's width.
        return abs(whole.mean) / (whole.noise * _largest_error(len(one), _RISK))
    # Otherwise the direction is found on one half of the seeds, and the shift on the other.
    halves = np.arange(len(one)) % 2 == 0
    found = [
        _lower(pair.of(~half).along(pair.moves[half].mean(axis=0))) for half in (halves, ~halves)
    ]
    return max(0.0, min(found))


def size_power(one: Table, other: Table, n_samples: int) -> float | None:
    """Return p if noisy numbers are scaled by ``n ** -p``, None if they are not.

    Parameters
    ----------
    one, other : ndarray
        Of fits to `n_samples` records and to one more; every column varies with the seed.
    n_samples : int
    """
    if one.shape[1] == 0:
        return None
    first, second = one - one.mean(axis=0), other - other.mean(axis=0)
    energy = (first**2).sum(axis=0)
    if not (energy > 0.0).all():
        return None
    slopes = (first * second).sum(axis=0) / energy
    rests = np.sqrt(((second - slopes * first) ** 2).sum(axis=0) / energy)
    unit = math.log1p(1.0 / n_samples)
    if not (slopes > 0.0).all() or rests.max() > _TOLERANCE * unit:
        return None
    powers = -np.log(slopes) / unit
    for power in (sign * power for power in _POWERS for sign in (1.0, -1.0)):
        if np.abs(powers - power).max() <= _TOLERANCE:
            return power
    return None


@dataclass(frozen=True)
class _Projection:
    """Moves along one direction: their mean and spread, and the noise there."""

    mean: float
    spread: float
    noise: float
    count: int


@dataclass(frozen=True)
class _Pair:
    """Noisy numbers of both sides, in units of their noise, and how exactly they are known."""

    one: Table
    other: Table
    rounding: Table

    @property
    def moves(self) -> Table:
        return self.other - self.one

    def of(self, seeds: Mask) -> _Pair:
        """Return the pair for some of the seeds."""
        return _Pair(self.one[seeds], self.other[seeds], self.rounding)

    def along(self, weights: Table) -> _Projection:
        """Return the moves along a direction."""
        largest = np.abs(weights).max()
        direction = weights / largest if largest > 0.0 else weights
        first, second = self.one @ direction, self.other @ direction
        moves = second - first
        # A rare choice may show on one side alone, so that the lesser one would be too small.
        noise = float(first.std(ddof=1) + second.std(ddof=1)) / 2.0
        # Numbers that vary may have a sum that does not, up to rounding.
        known = float(np.abs(direction) @ self.rounding)
        mean = float(moves.mean()) if abs(moves.mean()) > known else 0.0
        return _Projection(mean, float(moves.std(ddof=1)), max(noise, known), len(moves))


def _lower(found: _Projection) -> float:
    """Return the lower bound of a shift that varies with the seed."""
    if found.mean <= 0.0:
        return 0.0
    quantile = stats.t.isf(_RISK_OF_HALF, found.count - 1)
    # Along a direction chosen on other seeds, only a shift that way is one.
    least = found.mean - quantile * found.spread / math.sqrt(found.count)
    return least / (found.noise * _largest_error(found.count, _RISK_OF_HALF))


def _largest_error(count: int, risk: float) -> float:
    """Return how many times the true noise may exceed the estimated one, if it is normal."""
    return math.sqrt((count - 1) / stats.chi2.ppf(risk, count - 1))


def _noise_of(one: Table, other: Table) -> Table:
    return np.sqrt((one.var(axis=0, ddof=1) + other.var(axis=0, ddof=1)) / 2.0)
