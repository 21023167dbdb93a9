"""The rows of a linear model: clipped, with an intercept, dense or sparse, without a copy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from skdptune._secure_random import secure_generator
from skdptune._validation import check_real
from skdptune.accounting import PrivacyProfile, calibrate
from skdptune.accounting._shared import LARGEST_LOSS
from skdptune.base._shared import KeptParts, Persons, PrivateRows, squared_norms
from skdptune.mechanisms._shared import (
    Batch,
    add_gaussian,
    add_spherical,
    check_seed,
    grid_of,
    spherical_spread,
)

# Slightly less than 1, so that no rounding breaks the guarantee's premise.
_SHRINKAGE = 1.0 - 16.0 * float(np.finfo(np.float64).eps)
# The products of longer rows may overflow, and then fail for all records.
_LONGEST = 1e100


@dataclass(frozen=True)
class Design:
    """Rows ``(scale_i * x_i, 1)``, or without the 1, as a linear operator.

    Attributes
    ----------
    rows : ndarray or CSR matrix of shape (n_samples, n_features)
        The given data, except that rows longer than 1e100 are clipped here already.
    scale : ndarray of shape (n_samples,)
        Factor in (0, 1] that brings a row's norm down to the bound.
    squared_norms : ndarray of shape (n_samples,)
        Squared norm of each clipped row, the intercept's 1 included.
    intercept : bool
        Whether a constant 1 follows the features.
    weights : ndarray of shape (n_samples,) or None
        Factor in [0, 1] of each record's loss, or of its gradient after clipping; None means ones.
    persons : Persons or None
        The persons to whom the rows belong, if a record is a person with several rows. The
        weights of a person's rows then sum to at most 1.
    centre : ndarray of shape (n_features,) or None
        A row that `ClippedGradients` subtracts from scaled rows, if these are sparse.
    """

    rows: Any
    scale: np.ndarray
    squared_norms: np.ndarray
    intercept: bool
    weights: np.ndarray | None = None
    persons: Persons | None = None
    centre: np.ndarray | None = None

    @classmethod
    def clipped(cls, rows: Any, norm: float, intercept: bool) -> Design:
        """Return the design of rows clipped to a norm; each row is clipped independently."""
        # Theorem M0: rows are shortened to a public norm, one at a time.
        with np.errstate(over="ignore"):
            lengths = np.sqrt(_squared_norms(rows))
        huge = np.flatnonzero(~(lengths <= _LONGEST))
        if huge.size:
            rows = _with_short_rows(rows, huge, min(norm, _LONGEST) * _SHRINKAGE)
            lengths = np.sqrt(_squared_norms(rows))
        tiny = np.finfo(np.float64).tiny
        scale = np.minimum(1.0, norm * _SHRINKAGE / np.maximum(lengths, tiny))
        return cls(rows, scale, (lengths * scale) ** 2 + float(intercept), intercept)

    def weighted(self, weights: np.ndarray | None) -> Design:
        """Return the design with a weight in [0, 1] for each record, independent of the others."""
        # Theorem M0: the bound on a record's influence does not grow.
        if weights is None:
            return self
        if weights.shape != (self.n_samples,) or not ((weights >= 0) & (weights <= 1)).all():
            raise ValueError(f"weights must be {self.n_samples} numbers in [0, 1]; got others.")
        return replace(self, weights=weights)

    def by_persons(self, persons: Persons | None) -> Design:
        """Return the design in which each person counts by the mean of their rows."""
        # Theorem P14: weights multiply after the last clip of a row.
        if persons is None:
            return self
        return replace(self, weights=self.times_weights(persons.shares), persons=persons)

    def centred(self, centre: np.ndarray) -> Design:
        """Return the design of the rows less one row, of shape (n_features,), which is no secret.

        It is a copy; sparse rows stay so, in double precision.
        """
        if sparse.issparse(self.rows):
            # Upper bounds; the coordinates of a descent measure its rows. Sums over rows and over
            # centres nearly cancel out, hence the precision.
            lengths = np.sqrt(np.maximum(self.squared_norms - float(self.intercept), 0.0))
            squares = (lengths + np.linalg.norm(centre)) ** 2 + float(self.intercept)
            rows = self.rows.astype(np.float64)
            return replace(self, rows=rows, squared_norms=squares, centre=centre)
        rows = np.multiply(self.rows, self.scale[:, None], dtype=np.result_type(self.rows, 1.0))
        rows -= centre
        squares = squared_norms(rows) + float(self.intercept)
        return replace(self, rows=rows, scale=np.ones_like(self.scale), squared_norms=squares)

    def rows_of(self, records: np.ndarray | slice) -> np.ndarray | slice:
        """Return the places of the rows of some records."""
        return records if self.persons is None else self.persons.rows_of(records)

    @property
    def n_records(self) -> int:
        """Number of records: of persons if there are any, and else of rows."""
        return self.n_samples if self.persons is None else self.persons.size

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    @property
    def width(self) -> int:
        """Number of coefficients of one linear function, the intercept included."""
        return int(self.rows.shape[1]) + int(self.intercept)

    def take(self, index: np.ndarray | slice) -> Design:
        """Return the design of some of the rows."""
        weights = None if self.weights is None else self.weights[index]
        return Design(
            self.rows[index],
            self.scale[index],
            self.squared_norms[index],
            self.intercept,
            weights,
            centre=self.centre,
        )

    def total(self, function: Callable[[Design, Any], Any]) -> Any:
        """Return the exact sum of a function of rows and labels; labels are None here."""
        return function(self, None)

    def times_weights(self, values: np.ndarray) -> np.ndarray:
        """Return values (n_samples,) or (n_samples, k) times the weight of each record."""
        if self.weights is None:
            return values
        return values * (self.weights if values.ndim == 1 else self.weights[:, None])

    def decision(self, weights: np.ndarray) -> np.ndarray:
        """Return the rows times weights of shape (width,) or (width, n_outputs)."""
        features = weights[:-1] if self.intercept else weights
        product = np.asarray(self.rows @ features)
        product = product * (self.scale if product.ndim == 1 else self.scale[:, None])
        return product + weights[-1] if self.intercept else product

    def gradient(self, residuals: np.ndarray) -> np.ndarray:
        """Return the sum of residual times row, for residuals (n_samples,) or (n_samples, k)."""
        scale = self.scale if residuals.ndim == 1 else self.scale[:, None]
        product = np.asarray(self.rows.T @ (residuals * scale))
        if not self.intercept:
            return product
        last = np.reshape(residuals.sum(axis=0), (1, *residuals.shape[1:]))
        return np.concatenate([product, last])


@dataclass(frozen=True)
class DesignInParts:
    """Rows that lie in parts, as `Design` sees those of each part.

    Attributes
    ----------
    rows : PrivateRows
    read : callable
        From rows and targets of a chunk to a `Design`, and labels as numbers 0, 1, ...; it goes to
        the workers, so it holds no seed.
    width : int
        Number of coefficients of one linear function, the intercept included.
    intercept : bool
        Whether a constant 1 follows the features.
    """

    rows: PrivateRows
    read: Callable[[Any, Any], tuple[Design, np.ndarray]]
    width: int
    intercept: bool

    @property
    def n_records(self) -> int:
        """Number of rows."""
        return self.rows.counted()

    def total(self, function: Callable[[Design, np.ndarray], Any]) -> Any:
        """Return the exact sum of a function of rows and labels over all parts."""
        if self._kept is None:
            return self.rows.total(functools.partial(_of_chunk, self.read, function))
        return self._kept.total(functools.partial(_of_pair, function))

    @functools.cached_property
    def _kept(self) -> KeptParts | None:
        """What `read` returns for each chunk, where the chunk lies; None for many rows.

        Notes
        -----
        Theorem R10.
        """
        if not self.rows.is_small:
            return None
        return self.rows.kept(functools.partial(_of_chunk, self.read, _pair))

    def centred(self, centre: np.ndarray) -> DesignInParts:
        """Return the design of the rows less one row, which is no secret."""
        return replace(self, read=functools.partial(_read_centred, self.read, centre))

    def gathered(self, batches: list[Batch]) -> tuple[Design, np.ndarray, list[Batch]]:
        """Return the rows of some batches, their labels, and the places of each batch."""
        read = functools.partial(_of_chunk, self.read, _cells)
        (rows, scale, squares, weights, codes), places = self.rows.of_batches(batches, read)
        return Design(rows, scale, squares, self.intercept, weights), codes, places


def _cells(design: Design, codes: np.ndarray) -> tuple[Any, ...]:
    return design.rows, design.scale, design.squared_norms, design.weights, codes


def _read_centred(read: Any, centre: np.ndarray, X: Any, y: Any) -> tuple[Design, np.ndarray]:
    design, codes = read(X, y)
    return design.centred(centre), codes


def _of_chunk(read: Any, function: Any, X: Any, y: Any) -> Any:
    # A warning of overflow would reveal something about the data.
    with np.errstate(all="ignore"):
        return function(*read(X, y))


def _of_pair(function: Any, pair: tuple[Design, np.ndarray]) -> Any:
    with np.errstate(all="ignore"):
        return function(*pair)


def _pair(design: Design, codes: np.ndarray) -> tuple[Design, np.ndarray]:
    return design, codes


def row_norm(data_norm: float | None, n_features: int | None) -> float:
    """Return the bound on a row's norm: the given one, or about that of standardised features."""
    if data_norm is not None:
        return float(data_norm)
    if n_features is None:
        raise ValueError(
            "data_norm must be given if n_features is not; got None. Its default is "
            "sqrt(n_features), about the norm of a row of standardised features."
        )
    return math.sqrt(n_features)


def _with_short_rows(rows: Any, chosen: np.ndarray, norm: float) -> Any:
    """Return a copy in which each of the chosen long rows has the given norm."""
    rows = rows.copy()
    for index in chosen:
        own = slice(rows.indptr[index], rows.indptr[index + 1]) if sparse.issparse(rows) else index
        entries = rows.data if sparse.issparse(rows) else rows
        row = entries[own] / np.abs(entries[own]).max()
        entries[own] = row * (norm / float(np.linalg.norm(row)))
    return rows


def _squared_norms(rows: Any) -> np.ndarray:
    if sparse.issparse(rows):
        squares = rows.astype(np.float64)
        squares.data **= 2
        return np.asarray(squares.sum(axis=1)).ravel()
    return squared_norms(rows)


# Noise of perturbed problems: its size for a budget, its cost, and draws of it ------------------

# With less noise than this, a privacy figure would mean nothing.
LEAST_NOISE_MULTIPLIER = 0.05
LARGEST_NOISE_MULTIPLIER = 1e9
# Steps per unit of the noise in an objective. Further noise hides what this rounding changes, so
# fewer steps would need more of that noise; with more steps, doubles would often be too coarse to
# round.
_FINE_BITS = 33


def check_budget(
    epsilon: float | None, delta: float, noise_multiplier: float | None, n_problems: int
) -> tuple[float, float]:
    """Return epsilon and delta as floats, or raise.

    Epsilon is NaN if the noise is given instead, so that any use of it by mistake would fail. A
    larger epsilon than a profile can express is lowered to that.
    """
    delta = check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
    if noise_multiplier is None:
        epsilon = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True)
        return min(epsilon, LARGEST_LOSS), delta
    least = LEAST_NOISE_MULTIPLIER * math.sqrt(n_problems)
    check_real(
        noise_multiplier, name="noise_multiplier", lower=least, upper=LARGEST_NOISE_MULTIPLIER
    )
    return math.nan, delta


def additive_noise(
    epsilon: float, delta: float, noise_multiplier: float | None, n_releases: int
) -> tuple[float, PrivacyProfile]:
    """Return the noise of additive releases, in units of their sensitivity, and their cost.

    Parameters
    ----------
    epsilon, delta : float
        Budget of all releases together, as `check_budget` returns it. The noise is normal if
        delta > 0.
    noise_multiplier : float, optional
        The noise, if it is given.
    n_releases : int
        Number of releases about the same records.
    """
    if delta == 0.0:
        if noise_multiplier is None:
            least = n_releases / LARGEST_NOISE_MULTIPLIER
            if epsilon < least:
                raise ValueError(f"epsilon must be at least {least:g}; got {epsilon:g}.")
            return n_releases / epsilon, PrivacyProfile.pure(epsilon)
        return noise_multiplier, PrivacyProfile.pure(n_releases / noise_multiplier)
    # Normal releases compose to one of the root of their number times the sensitivity.
    root = math.sqrt(n_releases)
    if noise_multiplier is not None:
        return noise_multiplier, PrivacyProfile.gaussian(root / noise_multiplier)
    multiplier, profile = _calibrated_normal_noise(epsilon, delta)
    return root * multiplier, profile


@functools.lru_cache(maxsize=64)
def _calibrated_normal_noise(epsilon: float, delta: float) -> tuple[float, PrivacyProfile]:
    found = calibrate(
        lambda multiplier: PrivacyProfile.gaussian(1.0 / multiplier),
        epsilon,
        delta,
        lower=LEAST_NOISE_MULTIPLIER,
        upper=LARGEST_NOISE_MULTIPLIER,
        guess=normal_noise_guess(epsilon, delta),
    )
    return found.value, found.profile


def normal_noise_guess(epsilon: float, delta: float, n_releases: int = 1) -> float:
    """Return approximately the noise multiplier of normal releases that meet a budget."""
    guess = math.sqrt(2.0 * n_releases * math.log(1.25 / delta)) / epsilon
    return min(max(guess, LEAST_NOISE_MULTIPLIER), LARGEST_NOISE_MULTIPLIER)


def noise_generator(random_state: int | None) -> np.random.Generator:
    """Return the generator of a fit's noise.

    Parameters
    ----------
    random_state : int or None
        None uses a cryptographic source with a key of the operating system.

    Notes
    -----
    Assumption E0.
    """
    seed = check_seed(random_state)
    if seed is None:
        return secure_generator()
    legacy = np.random.RandomState(seed)
    return np.random.default_rng(legacy.randint(0, 2**31 - 1, size=8))


def add_noise(
    values: np.ndarray, scale: float, is_pure: bool, rng: np.random.Generator
) -> np.ndarray:
    """Return a vector plus normal noise, or (`is_pure`) noise of density ``exp(-norm / scale)``.

    Notes
    -----
    Theorem E1, Theorem E2. Shifting the second by a vector v changes its log density by at most
    ``norm(v) / scale``. All numbers are multiples of `noise_grid`.
    """
    add = add_spherical if is_pure else add_gaussian
    return add(values, scale, rng)


def noise_grid(scale: float, width: int, is_pure: bool) -> float:
    """Return the power of two of which all noisy numbers are multiples."""
    return grid_of(spherical_spread(scale, width) if is_pure else scale)


def draw_linear_term(
    width: int, scale: float, is_pure: bool, rng: np.random.Generator
) -> np.ndarray:
    """Return noise for an objective, within `linear_term_error` of noise in real numbers.

    Notes
    -----
    Theorem E1, Theorem M2.
    """
    add = add_spherical if is_pure else add_gaussian
    return add(np.zeros(width), scale, rng, _fine_grid(width, scale, is_pure))


def linear_term_error(width: int, scale: float, is_pure: bool) -> float:
    """Return a bound on the distance of a linear term from noise in real numbers.

    Notes
    -----
    Theorem M2. Each number is rounded to the nearest multiple of a grid.
    """
    return 0.5 * math.sqrt(width) * _fine_grid(width, scale, is_pure)


def _fine_grid(width: int, scale: float, is_pure: bool) -> float:
    return grid_of(spherical_spread(scale, width) if is_pure else scale, _FINE_BITS)
