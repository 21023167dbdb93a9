"""Cyclic boosting: small random trees of one column after another, on noisy sums of residuals.

**Guarantee.** The residuals of a record are multiples of 2^-26, follow only from its target and
its own scores, and have a Euclidean norm of at most `norm` (Theorem B1).

A `BoostingPlan` divides the noise of a fit between counts and steps, and states its cost.

Columns are cut into cells that do not depend on data, and noisy counts join cells to bins.

**Guarantee.** The cell of a record follows only from that record and public parameters: the grid
of a range, or the known categories.
"""

from __future__ import annotations

import functools
import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.isotonic import isotonic_regression

from skdptune._formatting import shown
from skdptune._progress import Progress
from skdptune.accounting import PrivacyProfile
from skdptune.base._shared import KeptParts
from skdptune.mechanisms import gaussian_profile, noise_for_budget
from skdptune.mechanisms._shared import UNIT, NormalNoise, add_gaussian, nonprivate_profile
from skdptune.preprocessing._shared import CategoryColumn, NumberColumn, bounds_per_feature

Scores = NDArray[np.float64]


# The classes of residuals hold the targets of the records, and share four methods. `units` returns
# residuals in units of 2^-26, one row per output, from scores of the same shape. The state of all
# records is 1 at the start: `moved` moves it by the update of their bins, and `units_of` returns
# `units` from it, which leaves the state as it is. `curvature` returns the second derivative of
# the loss by each output.


class BinaryResiduals:
    """Residuals of the logistic loss: the label, 0 or 1, minus its probability.

    The residuals of a row are multiplied by its weight in [0, 1], if there are weights.
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
        # SciPy computes number by number: NumPy may round an exponential depending on its
        # position.
        return _in_units(self._targets - special.expit(scores), self._weights)

    def moved(self, state: Scores, update: Scores, places: Places) -> None:
        """Multiply the inverse odds of all records."""
        _multiply(state, -update, places)

    def units_of(self, state: Scores) -> Scores:
        """Return `units` from inverse odds: products and quotients are faster than exponentials.

        Notes
        -----
        Theorem B1. Each is rounded correctly, whatever its position.
        """
        chances = np.add(state, 1.0)
        np.divide(1.0, chances, out=chances)
        return _in_units(np.subtract(self._targets, chances, out=chances), self._weights)

    def curvature(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variance of a label, but not less than that of a rare one."""
        return _variance(special.expit(scores))


class SoftmaxResiduals:
    """Residuals of the multinomial loss: 1 for the label of a record, minus all probabilities.

    The residuals of a row are multiplied by its weight in [0, 1], if there are weights.
    """

    # (1 - p)^2 for the label, and less than that for all others; roundings are far below 1e-12.
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
        return _in_units(self._targets - powers / _total(powers), self._weights)

    def moved(self, state: Scores, update: Scores, places: Places) -> None:
        """Multiply the chances of all records, up to a factor."""
        _multiply(state, update, places)

    def units_of(self, state: Scores) -> Scores:
        """Return `units` from chances up to a factor.

        Notes
        -----
        Theorem B1. Products and quotients are rounded correctly, whatever their position.
        """
        chances = state / _total(state)
        return _in_units(np.subtract(self._targets, chances, out=chances), self._weights)

    def curvature(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variances of the labels, but not less than those of rare ones."""
        return _variance(special.softmax(scores))


class BoundedResiduals:
    """Residuals of the squared loss for targets in [-1, 1], clipped to [-1, 1].

    The residuals of a row are multiplied by its weight in [0, 1], if there are weights.
    """

    norm = 1.0
    n_outputs = 1

    def __init__(
        self, targets: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> None:
        self._targets = targets
        self._weights = weights
        self._ends = targets + 1.0

    def units(self, scores: Scores) -> Scores:
        """Return residuals in units of 2^-26.

        Notes
        -----
        Theorem B1.
        """
        return _in_units(self._targets - scores, self._weights)

    def moved(self, state: Scores, update: Scores, places: Places) -> None:
        """Add the update of their bins to one more than the scores of all records."""
        for row, values in zip(state, update, strict=True):
            row += values.take(places)

    def units_of(self, state: Scores) -> Scores:
        """Return `units` from one more than the scores.

        Notes
        -----
        Theorem B1.
        """
        return _in_units(np.subtract(self._ends, state), self._weights)

    def curvature(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ones."""
        return np.ones_like(scores)


Residuals = BinaryResiduals | SoftmaxResiduals | BoundedResiduals


def _variance(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(chances * (1.0 - chances), 0.02)


def _in_units(residuals: Scores, weights: NDArray[np.float64] | None = None) -> Scores:
    """Return numbers clipped to [-1, 1], times weights, cut towards 0 to whole units, as floats.

    A product with a number in [0, 1] is never rounded to a number farther from 0.
    """
    clipped = np.clip(residuals, -1.0, 1.0, out=residuals)
    if weights is not None:
        clipped *= weights
    clipped *= 1.0 / UNIT
    return np.trunc(clipped, out=clipped)


def counted(
    places: NDArray[Any], n_places: int, shares: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the number of records at each place; each person counts by the mean of their rows.

    Notes
    -----
    Theorem P14. Weights are cut to multiples of 2^-26, of which fewer than 2^27 persons have sums
    that are exact.
    """
    if shares is None:
        return np.bincount(places, minlength=n_places).astype(np.float64)
    units = np.trunc(shares / UNIT)
    return np.asarray(np.bincount(places, weights=units, minlength=n_places) * UNIT)


def _total(powers: Scores) -> NDArray[np.float64]:
    """Return the sum of the rows, added in order."""
    total = powers[0].copy()
    for row in powers[1:]:
        total += row
    return total


def _multiply(state: Scores, update: Scores, places: Places) -> None:
    """Multiply rows by the exponentials of an update, kept away from zero and infinity."""
    factors = np.exp(np.clip(update, -300.0, 300.0))
    for row, values in zip(state, factors, strict=True):
        row *= values.take(places)
        np.clip(row, 1e-150, 1e150, out=row)


# Largest step, so that scores stay finite whatever the noise is.
FARTHEST = 1e100


class BinnedColumn(NamedTuple):
    """A binned column, as the boosting uses it.

    Attributes
    ----------
    bins : Bins
    is_ordered : bool
        Whether a leaf holds neighbouring bins only; otherwise any bins.
    """

    bins: Bins
    is_ordered: bool


class Piece:
    """Records of one part of the data, as the boosting reads them.

    Parameters
    ----------
    places : sequence of ndarray of shape (n_records,)
        For each column, the cell or the bin of each record.
    residuals : Residuals
    shares : ndarray of shape (n_records,), optional
        How much each row counts, if a record is a person with several rows.
    """

    def __init__(
        self,
        places: Sequence[Places],
        residuals: Residuals,
        shares: NDArray[np.float64] | None = None,
    ) -> None:
        self.places, self.residuals, self.shares = places, residuals, shares
        self.size = int(places[0].size)

    def __getstate__(self) -> dict[str, Any]:
        """Return the records without the state that `after` remembers."""
        return {name: value for name, value in vars(self).items() if name != "_reached"}

    def after(self, course: Course) -> Scores:
        """Return the state of the records after a course.

        The state of the last call is remembered. From it or from the start, the state has the
        same bits, since the same operations follow each other (Theorem R10).
        """
        # Taken away at once: two attempts at a part may run at the same time.
        token, done, state = self.__dict__.pop("_reached", (None, 0, None))
        if token != course.token or done > len(course.moves):
            done, state = 0, course.start(self)
        for move in course.moves[done:]:
            course.move(self, state, *move)
        self._reached = course.token, len(course.moves), state
        return np.asarray(state)


class Course:
    """Public steps, from which the state of a record follows: products of all its factors.

    Parameters
    ----------
    tables : sequence of ndarray of shape (n_outputs, n_bins)
        Scores of the bins of each column, at the start.

    Attributes
    ----------
    moves : list of tuple
        Columns and updates of their bins, in the order of the steps so far.
    """

    def __init__(self, tables: Sequence[Scores]) -> None:
        self.token = uuid.uuid4().hex
        self.tables = [table.copy() for table in tables]
        self.moves: list[tuple[Any, Scores]] = []

    def start(self, piece: Piece) -> Scores:
        """Return the state of records before the first move."""
        state = np.ones((piece.residuals.n_outputs, piece.size))
        for column, table in enumerate(self.tables):
            self.move(piece, state, column, table)
        return state

    def move(self, piece: Piece, state: Scores, column: Any, update: Scores) -> None:
        """Change the state of records by an update."""
        piece.residuals.moved(state, update, piece.places[column])


class Table:
    """The records of a table in memory, as one piece; `KeptParts` has the same methods.

    Parameters
    ----------
    piece : Piece
    """

    def __init__(self, piece: Piece) -> None:
        self._piece = piece

    def total(self, function: Callable[[Piece], Any]) -> Any:
        """Return the exact sum of a function over all records."""
        return function(self._piece)

    def mapped(self, function: Callable[[Piece], Piece]) -> Table:
        """Return other records, made of these."""
        return Table(function(self._piece))


Records = Table | KeptParts


def counts_of_cells(n_cells: Sequence[int], piece: Piece) -> NDArray[np.float64]:
    """Return the numbers of records in the cells of all columns, one column after the other."""
    return np.concatenate(
        [
            counted(places, size, piece.shares)
            for places, size in zip(piece.places, n_cells, strict=True)
        ]
    )


def in_bins(of_cells: Sequence[Places], piece: Piece) -> Piece:
    """Return records with bins in place of cells, in the same type."""
    places = [
        one.astype(cells.dtype)[cells] for one, cells in zip(of_cells, piece.places, strict=True)
    ]
    return Piece(places, piece.residuals, piece.shares)


def _sums_in_bins(course: Course, column: int, n_bins: int, piece: Piece) -> Scores:
    """Return sums of residuals over the bins of a column, in whole units."""
    units = piece.residuals.units_of(piece.after(course))
    return sums_at(piece.places[column], units, n_bins)


def sums_at(places: NDArray[Any], units: Scores, n_places: int) -> Scores:
    """Return the sums of rows of numbers at each place: (n_outputs, n_places).

    Theorem B1: whole numbers of units, below 2^53 in all, are added without rounding.
    """
    return np.array([np.bincount(places, weights=row, minlength=n_places) for row in units])


# Rounds after which the state of a record is computed again from the scores of its bins: a lost
# state needs no more steps than this.
_ROUNDS_OF_A_COURSE = 10


def boosted_scores(
    columns: Sequence[BinnedColumn],
    records: Records,
    residuals: Residuals,
    scale: float,
    generator: np.random.Generator,
    *,
    max_rounds: int,
    max_leaves: int,
    learning_rate: float,
    size: int | None = None,
    start: Sequence[Scores] | None = None,
    variances: Sequence[Scores] | None = None,
) -> list[Scores]:
    """Return the scores of every column's bins, each of shape (n_outputs, n_bins).

    Parameters
    ----------
    columns : sequence of BinnedColumn
    records : Table or KeptParts
        Pieces of the records, by their bins.
    residuals : Residuals
        Of any records.
    scale : float
        Standard deviation of the noise of each sum; 0 adds none.
    generator : numpy.random.Generator
        Source of the noise and of the trees.
    max_rounds, max_leaves, learning_rate
        As in the estimators.
    size : int, optional
        Public number of records, if scores also follow the mean of the targets.
    start : sequence of ndarray, optional
        Scores of the bins, as returned, to go on from.
    variances : sequence of ndarray of shape (n_bins,), optional
        The variances of the noise in the scores are added to these.

    Notes
    -----
    Theorem B1, Theorem R10. Trees are cut at random: no record influences them.
    """
    noise = NormalNoise(scale, generator) if scale > 0.0 else None
    found = [np.zeros((residuals.n_outputs, column.bins.weights.size)) for column in columns]
    if start is not None:
        found = [one.copy() for one in start]
    course = Course(found)
    with Progress("boosting") as progress:
        for done, (place, column) in product(range(max_rounds), enumerate(columns)):
            progress.count(done, max_rounds, "rounds")
            if place == 0 and done % _ROUNDS_OF_A_COURSE == 0:
                course = Course(found)
            n_bins = column.bins.weights.size
            leaves = random_leaves(n_bins, max_leaves, column.is_ordered, generator)
            n_leaves = int(leaves.max()) + 1
            in_bins = records.total(functools.partial(_sums_in_bins, course, place, n_bins))
            sums = sums_at(leaves, in_bins, n_leaves) * UNIT
            if noise is not None:
                sums = noise.added_to(sums)
            weights = np.bincount(leaves, weights=column.bins.weights, minlength=n_leaves)
            moved = learning_rate * sums / weights
            if size is not None:
                step = done * len(columns) + place + 1
                share = _share_of_mean(step, scale * math.sqrt(n_leaves) / size) - learning_rate
                moved += max(share, 0.0) * sums.sum(axis=1, keepdims=True) / size
            update = np.clip(moved, -FARTHEST, FARTHEST)[:, leaves]
            found[place] += update
            if variances is not None:
                variances[place][:] += ((learning_rate * scale / weights) ** 2)[leaves]
            course.moves.append((place, update))
    return found


# Standard deviation of the mean of the targets, in units of half of their range. With a larger
# one, the mean of some hundred records at a small epsilon would be noise.
_PRIOR_OF_MEAN = 0.1


def _share_of_mean(step: int, noise: float) -> float:
    """Return the share of the mean residual by which the scores of all records move in a step.

    So scores reach the mean of the targets at any learning rate. The sums of a step show this mean
    with noise of the given standard deviation. The steps so far are averaged, the later ones with
    larger weights, and shrunk as if the mean had a prior standard deviation of `_PRIOR_OF_MEAN`.
    """
    ratio = noise / _PRIOR_OF_MEAN
    return 2.0 / (step + 1.0 + 2.0 * ratio * ratio)


def monotone(scores: Scores, bins: Bins, term: NumberTerm, *, increasing: bool) -> Scores:
    """Return the nearest scores that never fall, or never rise, along the range of a column.

    The bin of missing values keeps its scores if no numbers share it.
    """
    found, shown = scores.copy(), np.unique(bins.of_cells[: term.n_grid])
    found[:, shown] = [
        isotonic_regression(row[shown], sample_weight=bins.weights[shown], increasing=increasing)
        for row in scores
    ]
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


# With more noise than this there is little change, and the accounting counts losses as infinite.
_LARGEST_EPSILON = 100.0
# Noise of a prediction, at a rate of 1, from which on the prediction is dominated by noise.
_DROWNING = 8.0
# Roots and quotients of the scales are rounded: their relative errors are some 1e-16.
_ROUNDED = 1.0 + 1e-12


class RateRule(NamedTuple):
    """A rule for the learning rate, from public numbers.

    Attributes
    ----------
    noise : float
        Target standard deviation of the noise of a prediction.
    largest : float
        Largest rate, used if there is little noise.
    growth : float
        Power by which the noise may grow if noise would dominate at a rate of 1.
    """

    noise: float
    largest: float
    growth: float = 0.0


@dataclass(frozen=True)
class BoostingPlan:
    """The noise of a whole fit, and of its parts.

    Attributes
    ----------
    noise_multiplier : float
        A fit costs as much as one Gaussian release with this standard deviation at a sensitivity
        of 1.
    profile : PrivacyProfile
    """

    noise_multiplier: float
    profile: PrivacyProfile

    def count_scale(self, n_terms: int, bin_share: float) -> float:
        """Return the standard deviation of the noise of each count.

        Notes
        -----
        Theorem B1.
        """
        return self.noise_multiplier * math.sqrt(n_terms / bin_share) * _ROUNDED

    def step_scale(self, n_terms: int, n_rounds: int, bin_share: float) -> float:
        """Return the standard deviation of a step's noise, over the norm of a record's residuals.

        Notes
        -----
        Theorem B1.
        """
        n_steps = n_terms * n_rounds
        return self.noise_multiplier * math.sqrt(n_steps / (1.0 - bin_share)) * _ROUNDED

    def part(self, share: float) -> BoostingPlan:
        """Return the plan of a part of a fit, with a share of its squared shift.

        Notes
        -----
        Theorem B2.
        """
        noise = self.noise_multiplier / math.sqrt(share) * _ROUNDED
        return BoostingPlan(noise, self.profile)

    def learning_rate(
        self, n_samples: int, n_columns: int, n_rounds: int, n_leaves: int, rule: RateRule
    ) -> float:
        """Return the rate at which all noise moves a prediction by about the rule's target.

        A leaf has some ``n_samples / n_leaves`` records. The noise of a round moves a score by the
        rate times the noise of a step divided by this number. The noise of all rounds and columns
        together is larger by the root of their number.
        """
        size = float(min(n_samples, 2**53))
        influence = self.noise_multiplier * n_rounds * n_columns * n_leaves / size
        if influence == 0.0:
            return rule.largest
        noise = rule.noise * max(1.0, influence / _DROWNING) ** rule.growth
        return min(noise / influence, rule.largest)


def plan_of_noise(noise_multiplier: float) -> BoostingPlan:
    """Return the plan of a fit with a given noise."""
    return BoostingPlan(noise_multiplier, gaussian_profile(1.0, noise_multiplier))


@functools.lru_cache(maxsize=256)
def plan_of_budget(epsilon: float, delta: float) -> BoostingPlan:
    """Return the plan with the least noise for a budget; no noise for an infinite epsilon."""
    if math.isinf(epsilon):
        return BoostingPlan(0.0, nonprivate_profile())
    return BoostingPlan(*noise_for_budget(min(epsilon, _LARGEST_EPSILON), delta))


Places = NDArray[np.intp]


@dataclass(frozen=True)
class NumberTerm:
    """A column of numbers in cells of equal width, with one more cell for missing values if any.

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
        """Number of cells; the last is for missing values, if the column may have any."""
        return self.n_grid + int(self.column.has_gaps)

    @property
    def order(self) -> Places:
        """Neighbouring cells in order; missing values are below all numbers."""
        return np.roll(np.arange(self.n_cells), int(self.column.has_gaps))

    def value_at(self, end: int) -> float:
        """Return the lower end of a cell of the range."""
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
        # Undeclared missing values go to the middle cell.
        places[gaps] = self.n_grid if self.column.has_gaps else self.n_grid // 2
        return places


@dataclass(frozen=True)
class CategoryTerm:
    """A column of known categories: a cell for each, for other values, and for missing values.

    Attributes
    ----------
    column : CategoryColumn
    """

    column: CategoryColumn
    is_ordered = False

    @property
    def n_cells(self) -> int:
        """Number of cells: the categories, then other values, then missing values."""
        return len(self.column.categories) + 2

    @property
    def order(self) -> Places:
        """Cells, in an arbitrary order."""
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


def pairs_of(given: Any, terms: Sequence[Term]) -> list[tuple[int, int]]:
    """Return the places of listed pairs of columns, given by names or places; or raise."""
    names = [term.column.name for term in terms]
    found = []
    for pair in given:
        places = [
            names.index(one) if isinstance(one, str) and one in names else one
            for one in (pair if isinstance(pair, Sequence | np.ndarray) else ())
        ]
        whole = all(isinstance(one, int | np.integer) and 0 <= one < len(names) for one in places)
        if len(places) != 2 or not whole or places[0] == places[1]:
            raise ValueError(
                'interactions must be None, "auto", a whole number, or pairs of two different '
                f"columns by name or place; got {type(pair).__name__} as one of {len(given)}. "
                f"There are {len(names)} columns."
            )
        found.append((min(places), max(places)))
    return list(dict.fromkeys(found))


def signs_of(given: Any, terms: Sequence[Term]) -> list[int]:
    """Return the constraint of each column: 1, -1, or 0 for none; or raise."""
    if given is None:
        return [0] * len(terms)
    names = [term.column.name for term in terms]
    listed = given
    if isinstance(given, Mapping):
        listed = [given.get(name, 0) for name in names]
    is_list = isinstance(listed, Sequence | np.ndarray) and len(listed) == len(terms)
    if not is_list or (isinstance(given, Mapping) and set(given) - set(names)):
        raise ValueError(
            f"monotonic_cst must have one entry for each of the {len(names)} columns, or be a "
            f"mapping of their names; got {shown(given)}."
        )
    if any(sign not in (-1, 0, 1) for sign in listed):
        raise ValueError(f"each entry of monotonic_cst must be -1, 0 or 1; got {shown(given)}.")
    for term, sign in zip(terms, listed, strict=True):
        if sign and not term.is_ordered:
            raise ValueError(
                "monotonic_cst must not constrain a column of categories; got "
                f"{shown(term.column.name)}."
            )
    return [int(sign) for sign in listed]


# Minimum number of records in a bin, in standard deviations of the noise of a count, since sums
# are divided by the noisy count.
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
    term: Term,
    counts: NDArray[np.float64],
    scale: float,
    least: float,
    generator: np.random.Generator,
) -> Bins:
    """Add noise to the counts of the cells of a term, and join cells to bins.

    Parameters
    ----------
    term : Term
    counts : ndarray of shape (n_cells,)
        Exact numbers of records.
    scale : float
        Standard deviation of the noise of each count; 0 adds none.
    least : float
        Minimum number of records of a bin; public.
    generator : numpy.random.Generator
        Source of the noise.

    Notes
    -----
    Theorem B1. All cells are counted, including those of categories without a record.
    """
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
    """Join cells from left to right until each bin has the minimum; the last takes the rest."""
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
    """Join all cells below the minimum to one bin, the last."""
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
