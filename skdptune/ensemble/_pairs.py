"""Interactions of two columns: random grids of both, on noisy sums of residuals and noisy counts.

**Guarantee.** In each grid a record is in one cell. It changes one count by 1 and one sum per
output by its residuals, whose norm is at most `norm`. Noise of ``sqrt(norm**2 + w**2) * M`` on
sums, and of 1/w times that on counts, costs one Gaussian release of shift ``1 / M`` (Theorem B2).

Everything else follows from these noisy grids, from the columns' released scores and bins, and
from public numbers: which pairs are learnt, how often, and how far each cell moves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdptune.ensemble._boosting import (
    FARTHEST,
    BinnedColumn,
    Course,
    Piece,
    Places,
    Records,
    Residuals,
    Scores,
    counted,
    random_leaves,
    sums_at,
)
from skdptune.mechanisms._shared import UNIT, add_gaussian

# Number of columns whose pairs are considered: those with the largest scores.
_MOST_COLUMNS = 8
# Largest number of bins of a column in a pair.
_MOST_BINS = 64
# Weight of counts relative to residuals.
_COUNT_WEIGHT = 0.35
# Cells of a grid, for each record that one standard deviation of noise can hide.
_CELLS, _FEWEST, _MOST = 0.1, 8, 4096
# Standard deviations by which one pair, and each pair, must exceed all additive fits.
_CLEAR, _LEAST = 6.0, 1.0
# Share of its mean residual by which a cell moves, before it is shrunk.
_RATE = 0.5


class Axis(NamedTuple):
    """A column, in the form that its pairs use.

    Attributes
    ----------
    of_bins : ndarray of shape (n_bins,)
        The position of each bin: bins in their order, categories in the order of their scores.
    weights : ndarray of shape (n_positions,)
        Noisy numbers of records.
    """

    of_bins: Places
    weights: NDArray[np.float64]


def axis_of(column: BinnedColumn, scores: Scores) -> Axis:
    """Return a column's positions; categories are ordered by the scores of the first output."""
    weights = column.bins.weights
    order = np.argsort(scores[0], kind="stable")
    if column.is_ordered:
        order = np.arange(weights.size)
    joined = equal_parts(weights[order], _MOST_BINS)
    positions = np.empty_like(joined)
    positions[order] = joined
    joined_weights = np.bincount(positions, weights=weights).astype(np.float64)
    return Axis(positions, joined_weights)


def equal_parts(weights: NDArray[np.float64], n_parts: int) -> Places:
    """Return the part of each bin; neighbours are joined to parts of about equal weight."""
    if n_parts >= weights.size:
        return np.arange(weights.size)
    middles = np.cumsum(weights) - 0.5 * weights
    parts = np.floor(middles / weights.sum() * n_parts)
    return np.unique(parts, return_inverse=True)[1].astype(np.intp)


class Pair:
    """Two columns, and their learned scores.

    Parameters
    ----------
    columns : tuple of int
        The places of both columns.
    axes : sequence of Axis
        The positions of all columns.
    n_outputs : int

    Attributes
    ----------
    shape : tuple of int
        Numbers of positions of both columns.
    counts : ndarray of shape (n_positions,)
        Exact numbers of records, or of persons, in the flat table of both; never published without
        noise.
    scores : ndarray of shape (n_outputs, n_positions)
    variances : ndarray of shape (n_outputs, n_positions)
        Variances of the noise in `scores`.
    """

    def __init__(
        self,
        columns: tuple[int, int],
        axes: Sequence[Axis],
        n_outputs: int,
    ) -> None:
        self.columns = columns
        self.axes = self.first, self.second = axes[columns[0]], axes[columns[1]]
        self.shape = self.first.weights.size, self.second.weights.size
        self.counts = np.zeros(math.prod(self.shape))
        self.scores = np.zeros((n_outputs, self.counts.size))
        self.variances = np.zeros_like(self.scores)

    @property
    def layout(self) -> Layout:
        """Where the records of a piece are in the flat table of both columns."""
        first, second = (axis.of_bins.astype(np.uint16) for axis in self.axes)
        return Layout(self.columns, first * np.uint16(self.shape[1]), second, self.counts.size)

    def sizes(self, n_cells: float) -> tuple[int, int]:
        """Return the numbers of parts of both columns in a grid of at most `n_cells` cells."""
        rows, columns = self.shape
        rows = min(rows, max(int(math.sqrt(n_cells)), int(n_cells / columns)))
        return rows, max(min(columns, int(n_cells / rows)), 1)

    def leaves(self, rows: Places, columns: Places) -> Places:
        """Return the cell of each position in a grid of parts."""
        return (rows[:, None] * (int(columns.max()) + 1) + columns).reshape(-1)

    def expected(self, leaves: Places) -> NDArray[np.float64]:
        """Return the counts of a grid's cells if both columns were independent."""
        one, other = self.first.weights, self.second.weights
        return np.bincount(leaves, weights=np.outer(one, other).reshape(-1)) / one.sum()


class Layout(NamedTuple):
    """What a piece of the records needs to know of a pair.

    Attributes
    ----------
    columns : tuple of int
    first, second : ndarray of shape (n_bins,)
        For each bin of both columns, what it adds to the position of a record.
    n_positions : int
    """

    columns: tuple[int, int]
    first: NDArray[np.uint16]
    second: NDArray[np.uint16]
    n_positions: int

    def places(self, piece: Piece) -> NDArray[np.uint16]:
        """Return the position of each record in the flat table of both columns."""
        one, other = (piece.places[column] for column in self.columns)
        return self.first[one] + self.second[other]


class PairCourse(Course):
    """A course on which the state of a record is its scores, to which steps of pairs are added."""

    def start(self, piece: Piece) -> Scores:
        """Return the scores of records before the first move."""
        scores = np.zeros((piece.residuals.n_outputs, piece.size))
        for table, places in zip(self.tables, piece.places, strict=True):
            scores += table[:, places]
        return scores

    def move(self, piece: Piece, state: Scores, column: Layout, update: Scores) -> None:
        """Add the steps of a pair to the scores of records."""
        state += update[:, column.places(piece)]


def _counts_of_pairs(layouts: Sequence[Layout], piece: Piece) -> NDArray[np.float64]:
    """Return the numbers of records at the positions of some pairs, one after the other."""
    return np.concatenate(
        [counted(each.places(piece), each.n_positions, piece.shares) for each in layouts]
    )


def _sums_of_pairs(layouts: Sequence[Layout], course: PairCourse, piece: Piece) -> Scores:
    """Return sums of residuals, in whole units, at the positions of some pairs."""
    units = piece.residuals.units(piece.after(course))
    sums = [sums_at(each.places(piece), units, each.n_positions) for each in layouts]
    return np.concatenate(sums, axis=1)


class Grid(NamedTuple):
    """A noisy grid.

    Attributes
    ----------
    sums : ndarray of shape (n_outputs, n_cells)
        Noisy sums of residuals.
    counts : ndarray of shape (n_cells,)
        Estimates of the number of records in each cell, positive.
    scale : float
        Standard deviation of the noise of each sum.
    """

    sums: Scores
    counts: NDArray[np.float64]
    scale: float


def released_grid(
    pair: Pair,
    leaves: Places,
    units: Scores,
    norm: float,
    noise: float,
    generator: np.random.Generator,
) -> Grid:
    """Release the sums of residuals and the counts of a grid's cells.

    Parameters
    ----------
    pair : Pair
    leaves : ndarray of shape (n_positions,)
        The cell of each position.
    units : ndarray of shape (n_outputs, n_positions)
        Sums of residuals at each position, in units of 2^-26.
    norm : float
        Bound on the norm of a record's residuals.
    noise : float
        Standard deviations of the noise for a sensitivity of 1; 0 adds none.
    generator : numpy.random.Generator

    Notes
    -----
    Theorem B2. Counts are shrunk to those of independent columns, as far as their noise explains
    the difference.
    """
    expected = pair.expected(leaves)
    scale = grid_scale(norm, noise)
    sums = sums_at(leaves, units, expected.size) * UNIT
    counts = np.bincount(leaves, weights=pair.counts, minlength=expected.size).astype(np.float64)
    if scale > 0.0:
        sums = add_gaussian(sums, scale, generator)
        counts = add_gaussian(counts, scale / _COUNT_WEIGHT, generator)
        variance = (scale / _COUNT_WEIGHT) ** 2
        excess = max(float(np.mean((counts - expected) ** 2)) - variance, 0.0)
        counts = expected + excess / (excess + variance) * (counts - expected)
    return Grid(sums, np.maximum(counts, max(0.25 * scale, 1.0)), scale)


def grid_scale(norm: float, noise: float) -> float:
    """Return the standard deviation of the noise of a grid's sums; counts have 1/w times it.

    Notes
    -----
    Theorem B2.
    """
    return math.hypot(norm, _COUNT_WEIGHT) * noise * (1.0 + 1e-12)


def most_cells(n_samples: int, noise: float) -> float:
    """Return the largest number of cells of a grid, from public numbers."""
    return min(max(_CELLS * n_samples / max(noise, 1e-9), _FEWEST), _MOST)


def energy(grid: Grid, rows: Places, columns: Places) -> tuple[float, float]:
    """Return a grid's energy beyond an additive fit, also in standard deviations of its noise."""
    one, other = int(rows.max()) + 1, int(columns.max()) + 1
    free = (one - 1) * (other - 1)
    if free == 0:
        return 0.0, 0.0
    places = np.arange(one * other)
    design = np.hstack([np.eye(one)[places // other], np.eye(other)[places % other]])
    design *= grid.counts[:, None]
    left = grid.sums.T - design @ np.linalg.lstsq(design, grid.sums.T)[0]
    excess = float(np.sum(left**2)) - grid.scale**2 * free * len(grid.sums)
    deviation = grid.scale**2 * math.sqrt(2.0 * free * len(grid.sums))
    return excess * places.size, excess / max(deviation, 1e-9)


def shrunken_steps(grid: Grid, curvature: NDArray[np.float64]) -> tuple[Scores, Scores]:
    """Return how far each cell moves, and the variance of the noise of this move.

    Notes
    -----
    This is the best linear estimate (Wiener) of effects. Their variance is estimated by that of
    the noisy grid minus that of its noise. A grid that contains only noise moves little or not.
    """
    weights, variance = curvature[:, None] * grid.counts, grid.scale**2
    excess = max(float(np.sum(grid.sums**2 - variance)), 0.0)
    spread = excess / float(np.sum(weights**2))
    factors = _RATE * spread * weights / np.maximum(spread * weights**2 + variance, 1e-300)
    return factors * grid.sums, factors**2 * variance


class PairLearner(NamedTuple):
    """The state of learning pairs: the columns, and the course of the records' scores so far.

    Attributes
    ----------
    axes : sequence of Axis
    effects : sequence of float
        Variances of the columns' scores over the records, by the noisy bins.
    residuals : Residuals
        Of any records.
    records : Table or KeptParts
    course : PairCourse
        From the columns' scores; `learn` adds moves.
    curvature : ndarray of shape (n_outputs,)
        Second derivatives of the loss.
    n_samples : int
        Public number of records.
    generator : numpy.random.Generator
    """

    axes: Sequence[Axis]
    effects: Sequence[float]
    residuals: Residuals
    records: Records
    course: PairCourse
    curvature: NDArray[np.float64]
    n_samples: int
    generator: np.random.Generator

    @classmethod
    def after(
        cls,
        columns: Sequence[BinnedColumn],
        scores: Sequence[Scores],
        records: Records,
        residuals: Residuals,
        n_samples: int,
        generator: np.random.Generator,
    ) -> PairLearner:
        """Return a learner that continues from the columns' released scores."""
        pairs = list(zip(columns, scores, strict=True))
        means = [np.average(one, axis=1, weights=each.bins.weights) for each, one in pairs]
        effects = [
            float(np.average((one - mean[:, None]) ** 2, axis=1, weights=each.bins.weights).sum())
            for (each, one), mean in zip(pairs, means, strict=True)
        ]
        curvature = residuals.curvature(np.sum(means, axis=0))
        axes = [axis_of(each, one) for each, one in pairs]
        course = PairCourse(scores)
        return cls(axes, effects, residuals, records, course, curvature, n_samples, generator)

    def candidates(self, allowed: Sequence[bool]) -> list[tuple[int, int]]:
        """Return the pairs of the allowed columns with the largest effects above 0."""
        order = np.argsort(-np.array(self.effects), kind="stable").tolist()
        able = [place for place in order if allowed[place] and self.effects[place] > 0.0]
        return list(combinations(sorted(able[:_MOST_COLUMNS]), 2))

    def choose(
        self, columns: Sequence[tuple[int, int]], noise: float, most: int | None
    ) -> dict[tuple[int, int], float]:
        """Return the pairs to learn, and the share of the rounds for each.

        Parameters
        ----------
        columns : sequence of tuple of int
            The pairs to consider.
        noise : float
            Standard deviations of each grid's noise for a sensitivity of 1; 0 adds none.
        most : int or None
            Number of pairs. None selects those that clearly exceed additive fits, if any.

        Notes
        -----
        Theorem B2. No score changes between the grids.
        """
        found = []
        pairs = self._counted(columns)
        for pair, units in zip(pairs, self._sums(pairs), strict=True):
            sizes = pair.sizes(0.5 * most_cells(self.n_samples, noise))
            parts = [
                equal_parts(axis.weights, size)
                for axis, size in zip((pair.first, pair.second), sizes, strict=True)
            ]
            found.append(energy(self._grid(pair, pair.leaves(*parts), units, noise), *parts))
        gains, clear = np.array(found).reshape(-1, 2).T
        places = np.argsort(-gains, kind="stable")[:most]
        if most is None:
            places = np.flatnonzero((clear >= _LEAST) & (clear.max(initial=0.0) >= _CLEAR))
        shares = np.sqrt(np.maximum(gains[places], 1e-12))
        chosen = [columns[place] for place in places.tolist()]
        return dict(zip(chosen, (shares / shares.sum()).tolist(), strict=True))

    def learn(
        self, chosen: Mapping[tuple[int, int], float], noise: float, n_rounds: int
    ) -> list[Pair]:
        """Return the pairs with their scores: each round is on one random grid of one pair.

        Parameters
        ----------
        chosen : mapping of pairs to shares
            The result of `choose`.
        noise : float
            Standard deviations of each round's noise for a sensitivity of 1; 0 adds none.
        n_rounds : int

        Notes
        -----
        Theorem B2.
        """
        pairs, n_cells = self._counted(chosen), most_cells(self.n_samples, noise)
        # By the inverse of cumulative shares: SecureGenerator.choice has no probabilities.
        ends = np.cumsum(list(chosen.values()))
        drawn = self.generator.random(n_rounds) * ends[-1]
        order = np.minimum(np.searchsorted(ends, drawn, side="right"), len(pairs) - 1)
        for place in order.tolist():
            pair = pairs[place]
            rows, columns = (
                random_leaves(size, parts, True, self.generator)
                for size, parts in zip(pair.shape, pair.sizes(n_cells), strict=True)
            )
            leaves = pair.leaves(rows, columns)
            (units,) = self._sums([pair])
            grid = self._grid(pair, leaves, units, noise)
            steps, variances = shrunken_steps(grid, self.curvature)
            steps = np.clip(steps, -FARTHEST, FARTHEST)[:, leaves]
            pair.scores += steps
            pair.variances += variances[:, leaves]
            self.course.moves.append((pair.layout, steps))
        return pairs

    def _counted(self, columns: Iterable[tuple[int, int]]) -> list[Pair]:
        """Return pairs with the exact counts of their positions."""
        pairs = [Pair(each, self.axes, self.residuals.n_outputs) for each in columns]
        layouts = [pair.layout for pair in pairs]
        counts = self.records.total(functools.partial(_counts_of_pairs, layouts))
        for pair, own in zip(pairs, np.split(counts, _ends(layouts)), strict=True):
            pair.counts = own
        return pairs

    def _sums(self, pairs: Sequence[Pair]) -> list[Scores]:
        """Return the exact sums of residuals at the positions of each pair, in whole units."""
        layouts = [pair.layout for pair in pairs]
        sums = self.records.total(functools.partial(_sums_of_pairs, layouts, self.course))
        return np.split(sums, _ends(layouts), axis=1)

    def _grid(self, pair: Pair, leaves: Places, units: Scores, noise: float) -> Grid:
        norm, generator = self.residuals.norm, self.generator
        return released_grid(pair, leaves, units, norm, noise, generator)


def _ends(layouts: Sequence[Layout]) -> Places:
    """Return where the positions of each pair but the first begin."""
    return np.cumsum([each.n_positions for each in layouts])[:-1]


def purified(pair: Pair) -> list[Scores]:
    """Take the means of rows and columns out of a pair's scores; return them by position.

    The remaining scores add up to 0 along each column, if both were independent. The overall mean
    becomes a part of the first column.
    """
    table = pair.scores.reshape(-1, *pair.shape)
    rows = np.average(table, axis=2, weights=pair.second.weights)
    table -= rows[:, :, None]
    columns = np.average(table, axis=1, weights=pair.first.weights)
    table -= columns[:, None, :]
    return [rows, columns]
