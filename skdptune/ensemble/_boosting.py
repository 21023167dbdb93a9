"""Cyclic boosting: small random trees of one column after another, on noisy sums of residuals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdptune._progress import Progress
from skdptune.ensemble._bins import Bins
from skdptune.ensemble._residuals import Residuals
from skdptune.ensemble._terms import Places
from skdptune.mechanisms import UNIT, NormalNoise

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
