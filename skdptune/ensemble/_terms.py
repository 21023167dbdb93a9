"""Columns cut into cells that no data choose: the grid of a range, or the known categories.

**Guarantee.** The cell of a record follows from that record and public parameters alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune.preprocessing import CategoryColumn, NumberColumn, bounds_per_feature

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
