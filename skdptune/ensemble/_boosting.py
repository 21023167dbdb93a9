"""Cyclic boosting: small random trees of one column after another, on noisy sums of residuals.

**Guarantee.** The residuals of a record are multiples of 2^-26, follow from its target and its own
scores alone, and have a Euclidean norm of at most `norm` (Theorem B1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from skdptune._progress import Progress
from skdptune.ensemble._terms import Bins, Places
from skdptune.mechanisms._shared import UNIT, NormalNoise

Scores = NDArray[np.float64]


class Residuals(Protocol):
    """The residuals of records, with their targets inside."""

    norm: float
    n_outputs: int

    def units(self, scores: Scores) -> Scores:
        """Return residuals in units of 2^-26, one row per output; scores have the same shape."""
        ...


class BinaryResiduals:
    """Residuals of the logistic loss: a label of 0 or 1, less its probability.

    Those of a record are multiplied by its weight in [0, 1], where there are weights.
    """

    norm = 1.0
    n_outputs = 1

    def __init__(
        self, codes: NDArray[np.intp], weights: NDArray[np.float64] | None = None
    ) -> None:
        self._targets = codes.astype(np.float64)
        self._weights = weights

    def units(self, scores: Scores) -> Scores:
        """Return residuals in units of 2^-26.

        Notes
        -----
        Theorem B1.
        """
        # SciPy computes it number by number: NumPy may round an exponential by its place.
        return _in_units(self._targets - special.expit(scores), self._weights)


class SoftmaxResiduals:
    """Residuals of the multinomial loss: 1 for the label of a record, less all probabilities.

    Those of a record are multiplied by its weight in [0, 1], where there are weights.
    """

    # (1 - p)^2 of the label's, and less than that of all others; roundings are far below 1e-12.
    norm = math.sqrt(2.0) * (1.0 + 1e-12)

    def __init__(
        self,
        codes: NDArray[np.intp],
        n_classes: int,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        self.n_outputs = n_classes
        self._weights = weights
        self._targets = (codes == np.arange(n_classes)[:, None]).astype(np.float64)

    def units(self, scores: Scores) -> Scores:
        """Return residuals in units of 2^-26, one row per class.

        Notes
        -----
        Theorem B1.
        """
        powers = special.exp2((scores - scores.max(axis=0)) / math.log(2.0))
        total = powers[0].copy()
        for row in powers[1:]:
            total += row
        return _in_units(self._targets - powers / total, self._weights)


class BoundedResiduals:
    """Residuals of the squared loss, of targets in [-1, 1], clipped to [-1, 1]."""

    norm = 1.0
    n_outputs = 1

    def __init__(self, targets: NDArray[np.float64]) -> None:
        self._targets = targets

    def units(self, scores: Scores) -> Scores:
        """Return residuals in units of 2^-26.

        Notes
        -----
        Theorem B1.
        """
        return _in_units(self._targets - scores)


def _in_units(residuals: Scores, weights: NDArray[np.float64] | None = None) -> Scores:
    """Return numbers clipped to [-1, 1], times weights, cut towards 0 to whole units, as floats.

    A product with a number in [0, 1] is rounded to none that is farther from 0.
    """
    clipped = np.clip(residuals, -1.0, 1.0, out=residuals)
    if weights is not None:
        clipped *= weights
    clipped *= 1.0 / UNIT
    return np.trunc(clipped, out=clipped)


# No step is longer, so that scores stay finite whatever the noise is.
_FARTHEST = 1e100


class BinnedColumn(NamedTuple):
    """A column as boosting sees it.

    Attributes
    ----------
    places : ndarray of shape (n_samples,)
        The bin of each record.
    bins : Bins
    is_ordered : bool
        Whether a leaf holds neighbouring bins; otherwise any.
    """

    places: Places
    bins: Bins
    is_ordered: bool


def boosted_scores(
    columns: Sequence[BinnedColumn],
    residuals: Residuals,
    scale: float,
    generator: np.random.Generator,
    *,
    max_rounds: int,
    max_leaves: int,
    learning_rate: float,
) -> list[NDArray[np.float64]]:
    """Return the scores of every column's bins, each of shape (n_outputs, n_bins).

    Parameters
    ----------
    columns : sequence of BinnedColumn
    residuals : Residuals
    scale : float
        Standard deviation of the noise of each sum; 0 adds none.
    generator : numpy.random.Generator
        Source of the noise and of the trees.
    max_rounds, max_leaves, learning_rate
        As of the estimators.

    Notes
    -----
    Theorem B1. Trees are cut at random: no record is looked at to choose them.
    """
    noise = NormalNoise(scale, generator) if scale > 0.0 else None
    n_samples = columns[0].places.size
    scores = np.zeros((residuals.n_outputs, n_samples))
    found = [np.zeros((residuals.n_outputs, column.bins.weights.size)) for column in columns]
    with Progress("boosting") as progress:
        pairs = zip(columns, found, strict=True)
        for done, (column, learned) in product(range(max_rounds), pairs):
            progress.count(done, max_rounds, "rounds")
            leaves = random_leaves(
                column.bins.weights.size, max_leaves, column.is_ordered, generator
            )
            n_leaves = int(leaves.max()) + 1
            sums = _sums(column.places, residuals.units(scores), leaves, n_leaves)
            if noise is not None:
                sums = noise.added_to(sums)
            weights = np.bincount(leaves, weights=column.bins.weights, minlength=n_leaves)
            update = np.clip(learning_rate * sums / weights, -_FARTHEST, _FARTHEST)[:, leaves]
            learned += update
            scores += update[:, column.places]
    return found


def random_leaves(
    n_bins: int, max_leaves: int, is_ordered: bool, generator: np.random.Generator
) -> Places:
    """Return the leaf of each bin in a random tree; no leaf is empty."""
    n_leaves = min(max_leaves, n_bins)
    cuts = np.zeros(n_bins, dtype=np.intp)
    cuts[1 + generator.permutation(n_bins - 1)[: n_leaves - 1]] = 1
    leaves = np.cumsum(cuts)
    return leaves if is_ordered else leaves[generator.permutation(n_bins)]


def _sums(
    places: Places, units: NDArray[np.float64], leaves: Places, n_leaves: int
) -> NDArray[np.float64]:
    """Return the residuals' sums over the records of each leaf, of shape (n_outputs, n_leaves).

    Theorem B1: whole numbers of units, below 2^53 in all, are added without rounding.
    """
    sums = np.empty((units.shape[0], n_leaves))
    for output, row in enumerate(units):
        in_bins = np.bincount(places, weights=row, minlength=leaves.size)
        sums[output] = np.bincount(leaves, weights=in_bins, minlength=n_leaves)
    return sums * UNIT
