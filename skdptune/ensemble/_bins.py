"""Cells joined to bins of about as many records each, as noisy counts show them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdptune.ensemble._terms import Places, Term
from skdptune.mechanisms import add_gaussian

# A bin holds at least so many standard deviations of the noise of a count: its own count divides.
_LEAST_DEVIATIONS = 4.0


class Bins(NamedTuple):
    """The bins of a term.

    Attributes
    ----------
    of_cells : ndarray of shape (n_cells,)
        The bin of each cell.
    weights : ndarray of shape (n_bins,)
        Noisy numbers of records, positive.
    """

    of_cells: Places
    weights: NDArray[np.float64]


def released_bins(
    term: Term, cells: Places, scale: float, least: float, generator: np.random.Generator
) -> Bins:
    """Count the records in the cells of a term, with noise, and join cells to bins.

    Parameters
    ----------
    term : Term
    cells : ndarray of shape (n_samples,)
    scale : float
        Standard deviation of the noise of each count; 0 adds none.
    least : float
        Number of records that a bin is to have; public.
    generator : numpy.random.Generator
        Source of the noise.

    Notes
    -----
    Theorem B1. All cells are counted, also those of categories that no record has.
    """
    counts = np.bincount(cells, minlength=term.n_cells).astype(np.float64)
    if scale > 0.0:
        counts = add_gaussian(counts, scale, generator)
    least = max(least, _LEAST_DEVIATIONS * scale, 1.0)
    if not term.is_ordered:
        return _join_rare(counts, least)
    order = term.order
    bins = _join_neighbours(counts[order], least)
    of_cells = np.empty_like(bins.of_cells)
    of_cells[order] = bins.of_cells
    return Bins(of_cells, bins.weights)


def _join_neighbours(counts: NDArray[np.float64], least: float) -> Bins:
    """Join cells from left to right until each bin has the least; the last takes the rest."""
    of_cells, current = np.zeros(counts.size, dtype=np.intp), 0.0
    weights: list[float] = []
    for place, count in enumerate(counts.tolist()):
        of_cells[place] = len(weights)
        current += count
        if current >= least:
            weights.append(current)
            current = 0.0
    if not weights:
        return Bins(np.zeros_like(of_cells), np.array([max(current, least)]))
    weights[-1] = max(weights[-1] + current, least)
    return Bins(np.minimum(of_cells, len(weights) - 1), np.array(weights))


def _join_rare(counts: NDArray[np.float64], least: float) -> Bins:
    """Join all cells with less than the least to one bin, the last."""
    common = counts >= least
    rest = float(counts[~common].sum())
    if common.any() and not common.all() and rest < least:
        smallest = int(np.argmin(np.where(common, counts, np.inf)))
        rest += float(counts[smallest])
        common[smallest] = False
    n_common = int(common.sum())
    of_cells = np.where(common, np.cumsum(common) - 1, n_common)
    weights = counts[common]
    if n_common < counts.size:
        weights = np.append(weights, max(rest, least))
    return Bins(of_cells.astype(np.intp), weights)
