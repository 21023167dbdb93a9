"""Columns cut into cells that no data choose, and cells joined to bins by noisy counts.

**Guarantee.** The cell of a record follows from that record and public parameters alone: the grid
of a range, or the known categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdptune.mechanisms._shared import add_gaussian
from skdptune.preprocessing._shared import CategoryColumn, NumberColumn, bounds_per_feature

Places = NDArray[np.intp]


@dataclass(frozen=True)
class NumberTerm:
    """A column of numbers, whose cells are as wide as each other, one more for gaps if there are.

    Attributes
    ----------
    column : NumberColumn
    n_grid : int
        Number of cells of the range.
    """

    column: NumberColumn
    n_grid: int
    is_ordered = True

    @property
    def n_cells(self) -> int:
        """Number of cells; the last is that of gaps, where the column may have any."""
        return self.n_grid + int(self.column.has_gaps)

    @property
    def order(self) -> Places:
        """Cells as they lie side by side; gaps are below all numbers."""
        return np.roll(np.arange(self.n_cells), int(self.column.has_gaps))

    def value_at(self, end: int) -> float:
        """Return the least number of a cell of the range."""
        return self.column.value_at(end / self.n_grid)

    def cells(self, values: Any) -> Places:
        """Return the cells of values.

        Notes
        -----
        Theorem B1.
        """
        numbers, gaps = self.column.read(values)
        shares = self.column.shares(np.where(gaps, self.column.low, numbers))
        places = np.minimum((shares * self.n_grid).astype(np.intp), self.n_grid - 1)
        # Gaps that nobody announced are in the middle.
        places[gaps] = self.n_grid if self.column.has_gaps else self.n_grid // 2
        return places


@dataclass(frozen=True)
class CategoryTerm:
    """A column of known categories, of which each is a cell, as are others and gaps.

    Attributes
    ----------
    column : CategoryColumn
    """

    column: CategoryColumn
    is_ordered = False

    @property
    def n_cells(self) -> int:
        """Number of cells: the categories, then what is none, then gaps."""
        return len(self.column.categories) + 2

    @property
    def order(self) -> Places:
        """Cells, in an order that means nothing."""
        return np.arange(self.n_cells)

    def cells(self, values: Any) -> Places:
        """Return the cells of values.

        Notes
        -----
        Theorem B1.
        """
        return self.column.places(values)


Term = NumberTerm | CategoryTerm


def terms_of_schema(schema: Any, n_grid: int) -> list[Term]:
    """Return a term for each column that a schema does not drop."""
    return [
        CategoryTerm(column) if isinstance(column, CategoryColumn) else NumberTerm(column, n_grid)
        for column in schema.used
    ]


def terms_of_bounds(bounds: Any, names: Sequence[str], n_grid: int) -> list[Term]:
    """Return a term for each column of numbers within known bounds."""
    ends = zip(names, *bounds_per_feature(bounds, len(names)), strict=True)
    return [NumberTerm(NumberColumn(name, float(a), float(b)), n_grid) for name, a, b in ends]


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
