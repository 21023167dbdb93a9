"""Repeated fits with and without a record, and the numbers by which they are compared."""

from __future__ import annotations

import functools
import math
import numbers
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdptune._compat import Parallel, delayed
from skdptune._formatting import shown
from skdptune._progress import Progress
from skdptune.accounting import BudgetExceededError
from skdptune.base._shared import expected_refits, set_seeds
from skdptune.ledger import LedgerError
from skdptune.testing._shared import Data, global_generators

# Statistics learned by scalers, summed over features: a record at the bounds changes all of them.
_LEARNT = ("mean_", "var_", "data_min_", "data_max_", "center_", "scale_")
# Smaller probabilities are rounded up to this.
_LEAST_CHANCE = 1e-300


def numbers_of(fitted: Any, row: np.ndarray, target: Any) -> np.ndarray:
    """Return the numbers of a fit that an extreme record changes, as a vector.

    Parameters
    ----------
    fitted : estimator
        After its fit. A pipeline includes the numbers of all steps, a search also its scores.
    row : ndarray
        The record.
    target : object
        Its label or target; not used if the estimator has none.

    Returns
    -------
    ndarray
        Not empty; numbers that are not finite are replaced by 0.
    """
    found = np.array(list(_numbers(fitted, row[None], target)), dtype=np.float64)
    if found.size == 0:
        raise TypeError(
            "estimator must have coef_, a response or what a scaler learns after its fit; got "
            f"{type(fitted).__name__}. Pass a statistic to the audit."
        )
    return np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)


def _numbers(fitted: Any, rows: Any, target: Any) -> Iterator[float]:
    if isinstance(fitted, Pipeline):
        yield from _of_steps(fitted, rows, target)
        return
    for name, values in (getattr(fitted, "cv_results_", None) or {}).items():
        if name.startswith("mean_test_"):
            yield float(np.sum(values))
    best = getattr(fitted, "best_score_", None)
    if best is not None:
        yield float(best)
    if hasattr(fitted, "best_estimator_"):
        yield from _numbers(fitted.best_estimator_, rows, target)
    elif not hasattr(fitted, "predict"):
        for name in _LEARNT:
            if getattr(fitted, name, None) is not None:
                yield float(np.sum(getattr(fitted, name)))
    else:
        yield response(fitted, rows, [target])[0]


def _of_steps(fitted: Pipeline, rows: Any, target: Any) -> Iterator[float]:
    for _, step in fitted.steps:
        if step in (None, "passthrough"):
            continue
        yield from _numbers(step, rows, target)
        if hasattr(step, "transform"):
            rows = step.transform(rows)


def response(fitted: Any, rows: Any, targets: Any) -> np.ndarray:
    """Return how strongly a model predicts each record's target: larger if it knows the record.

    Parameters
    ----------
    fitted : estimator
    rows : array-like
    targets : sequence
        Labels of a classifier. For a regression, the prediction is used unchanged.

    Returns
    -------
    ndarray of shape (n_rows,)
        For classifiers, the margin: the score of the label minus the mean score of the other
        labels. Scores are decision functions, outputs of a net or log-probabilities. For other
        models, the prediction.
    """
    classes = getattr(fitted, "classes_", None)
    if classes is None:
        return np.ravel(np.asarray(fitted.predict(rows), dtype=np.float64))
    places = np.searchsorted(np.asarray(classes), np.asarray(targets))
    if hasattr(fitted, "decision_function"):
        return margins(np.asarray(fitted.decision_function(rows), dtype=np.float64), places)
    chances = np.asarray(fitted.predict_proba(rows), dtype=np.float64)
    with np.errstate(divide="ignore"):
        return margins(np.log(np.maximum(chances, _LEAST_CHANCE)), places)


def margins(scores: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return each row's score of one class, minus the mean score of the other classes.

    It is linear in the scores, so that the distribution of noise on them is kept.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
        A single number per row is the score of the second of two classes minus that of the first.
    places : ndarray of int
        Index of the class of each row.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    if scores.ndim == 1 or scores.shape[1] == 1:
        return np.where(places == 1, 1.0, -1.0) * scores.reshape(len(scores))
    own = scores[np.arange(len(scores)), places]
    return np.asarray(own - (scores.sum(axis=1) - own) / (scores.shape[1] - 1))


FloatArray = NDArray[np.float64]
# Maps standardised rows of both sides to weights.
Kind = Callable[[FloatArray, FloatArray], FloatArray]

# With more numbers, the covariance would take too long.
_MOST_CORRELATED = 256
# In standard deviations; also used for numbers without noise.
_FARTHEST = 100.0
_LEAST_SPREAD = 1e-9
_FEWEST = 4


class Fold(NamedTuple):
    """Distances from the mean of the side that varies less, in its standard deviations.

    Attributes
    ----------
    centre, spread : ndarray of shape (n_numbers,)
    """

    centre: FloatArray
    spread: FloatArray

    def of(self, numbers: FloatArray) -> FloatArray:
        """Return the distance of each number; missing numbers stay missing."""
        with np.errstate(all="ignore"):
            return np.minimum(np.abs((numbers - self.centre) / self.spread), _FARTHEST)


class Direction(NamedTuple):
    """A weighted sum of standardised numbers, or of standardised distances.

    Attributes
    ----------
    centre, spread, weights : ndarray of shape (n_numbers,)
    fold : Fold or None
        Computes distances from numbers.
    """

    centre: FloatArray
    spread: FloatArray
    weights: FloatArray
    fold: Fold | None = None

    def of(self, numbers: FloatArray) -> FloatArray:
        """Return the sum for each row; missing numbers are replaced by the centre."""
        if self.fold is not None:
            numbers = self.fold.of(numbers)
        return _standardised(numbers, self.centre, self.spread) @ self.weights


def learnt_direction(
    together: FloatArray, without: FloatArray, n_first: int | None = None
) -> Direction:
    """Return the direction that separates two sides best, given rows of numbers for both.

    Four candidates are compared: the difference of all means, the clear differences only,
    differences weighted by the shrunk covariance of all or of the first numbers (Ledoit and Wolf
    2004), and the clear differences of distances. The best one separates one half of the rows when
    it is learned from the other half. Distances detect a record that moves a number up or down by
    chance, such as an exact score that counts it as right or as wrong.

    Parameters
    ----------
    together, without : ndarray of shape (n_fits, n_numbers)
    n_first : int, optional
        Number of leading numbers that are likely to be the most informative.
    """
    width = together.shape[1]
    rows = min(len(together), len(without)) // 2
    kinds: list[Kind] = [_difference, _clear_difference]
    if n_first is not None and n_first < width:
        kinds.insert(0, functools.partial(_of_first, n_first))
    if width <= _MOST_CORRELATED:
        kinds.append(_decorrelated)
    if rows < _FEWEST:
        return _learnt(kinds[0], together, without)
    ways = [functools.partial(_learnt, kind) for kind in kinds] + [_learnt_of_distances]

    def separation(learn: Callable[[FloatArray, FloatArray], Direction]) -> float:
        found = learn(together[:rows], without[:rows])
        sides = found.of(together[rows:]), found.of(without[rows:])
        spread = math.sqrt(sides[0].var() + sides[1].var())
        return float(sides[0].mean() - sides[1].mean()) / max(spread, _LEAST_SPREAD)

    return max(ways, key=separation)(together, without)


def _learnt(kind: Kind, together: FloatArray, without: FloatArray) -> Direction:
    sides = together, without
    means, squares = _moments(sides)
    difference = means[0] - means[1]
    centre = 0.5 * (means[0] + means[1])
    least = _LEAST_SPREAD * (np.abs(difference) + np.abs(centre))
    spread = np.maximum(np.sqrt(0.5 * (squares[0] + squares[1])), least)
    spread = np.where(spread > 0.0, spread, 1.0)
    weights = kind(*(_standardised(side, centre, spread) for side in sides))
    return Direction(centre, spread, weights)


def _learnt_of_distances(together: FloatArray, without: FloatArray) -> Direction:
    means, squares = _moments((together, without))
    is_first = squares[0] < squares[1]
    centre = np.where(is_first, means[0], means[1])
    usual, other = (np.sqrt(pick(squares[0], squares[1])) for pick in (np.minimum, np.maximum))
    spread = np.maximum(usual, _LEAST_SPREAD * (np.abs(centre) + other))
    fold = Fold(centre, np.where(spread > 0.0, spread, 1.0))
    found = _learnt(_clear_difference, fold.of(together), fold.of(without))
    return found._replace(fold=fold)


def _moments(
    sides: tuple[FloatArray, FloatArray],
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return means and variances of all numbers, for both sides."""
    with np.errstate(all="ignore"):
        means = [_column_means(side) for side in sides]
        squares = [_column_means((side - m) ** 2) for side, m in zip(sides, means, strict=True)]
    return means, squares


def _column_means(rows: FloatArray) -> FloatArray:
    """Return means over the numbers that are present; 0 if there are none."""
    known = np.isfinite(rows)
    return np.where(known, rows, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)


def _standardised(numbers: FloatArray, centre: FloatArray, spread: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        found = np.clip((numbers - centre) / spread, -_FARTHEST, _FARTHEST)
    return np.where(np.isnan(found), 0.0, found)


def _difference(together: FloatArray, without: FloatArray) -> FloatArray:
    return together.mean(axis=0) - without.mean(axis=0)


def _clear_difference(together: FloatArray, without: FloatArray) -> FloatArray:
    """Return the differences, with 0 for all that equally many without effect may reach."""
    difference = _difference(together, without)
    clear = math.sqrt(2.0 * math.log(2.0 * difference.size))
    error = math.sqrt(1.0 / len(together) + 1.0 / len(without))
    size = np.abs(difference)
    return np.where(size >= min(clear * error, size.max()), difference, 0.0)


def _of_first(number: int, together: FloatArray, without: FloatArray) -> FloatArray:
    weights = np.zeros(together.shape[1])
    weights[:number] = _decorrelated(together[:, :number], without[:, :number])
    return weights


def _decorrelated(together: FloatArray, without: FloatArray) -> FloatArray:
    from sklearn.covariance import ledoit_wolf

    residuals = [side - side.mean(axis=0) for side in (together, without)]
    covariance = ledoit_wolf(np.concatenate(residuals), assume_centered=True)[0]
    # Numbers without noise would make the matrix singular.
    covariance = covariance + 1e-9 * np.eye(len(covariance))
    return np.linalg.solve(covariance, _difference(together, without))


_FAILED = -math.inf
_REFUSALS = (BudgetExceededError, LedgerError, MemoryError)


@dataclass(frozen=True, eq=False)
class Game:
    """An estimator, two neighbouring data sets, and a function that reads numbers from fits.

    Attributes
    ----------
    estimator : estimator
        Copied for each fit.
    sides : tuple of Data
        The data of fits with the record, and without it.
    statistic : callable
        Function from a fitted estimator to a number or an array of numbers.
    """

    estimator: Any
    sides: tuple[Data, Data]
    statistic: Callable[[Any], Any]

    @expected_refits()
    def fitted(self, present: bool, seed: np.random.SeedSequence) -> Any:
        """Return a copy, fitted with or without the record; all noise comes from the seed."""
        made = clone(self.estimator)
        set_seeds(made, seed)
        data = self.sides[0 if present else 1]
        if threading.current_thread() is not threading.main_thread():
            # Other threads use the global generators, too. If these were seeded, fits might share
            # noise.
            return data.fit(made)
        with global_generators(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return data.fit(made)


class Outcome(NamedTuple):
    """Whether a fit raised an error, and the numbers read from it."""

    has_failed: bool
    numbers: FloatArray


def play(game: Game, present: bool, seed: np.random.SeedSequence) -> Outcome:
    """Return the outcome of one fit; failing is an outcome, too."""
    try:
        fitted = game.fitted(present, seed)
    except _REFUSALS:
        # A problem of this machine or of a ledger, not of the estimator.
        raise
    except Exception:
        return Outcome(True, np.empty(0))
    return Outcome(False, read_numbers(game.statistic(fitted)))


def read_numbers(value: Any) -> FloatArray:
    """Return the value of a statistic as a vector, or raise if it is not numeric."""
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        found = None
    if found is None or found.size == 0 or isinstance(value, str):
        raise TypeError(
            "statistic must return a number or an array of numbers for a fitted estimator; got "
            f"{type(value).__name__}."
        )
    return np.atleast_1d(found).ravel()


class Trials:
    """All fits so far: rows of numbers for both sides, in the order in which they were made.

    Parameters
    ----------
    width : int
        Number of numbers in the statistic.
    n_first : int, optional
        Number of leading ones that are likely to be the most informative.

    Attributes
    ----------
    n_failed : int
        Number of fits that raised an error.
    """

    def __init__(self, width: int, n_first: int | None = None) -> None:
        self.width, self._n_first = width, n_first
        self._rows: tuple[list[FloatArray], list[FloatArray]] = ([], [])
        self.n_failed = 0

    def __len__(self) -> int:
        """Return the number of complete pairs: fits with the record and fits without it."""
        return min(map(len, self._rows))

    def add(self, present: bool, outcome: Outcome) -> None:
        """Add the outcome of one fit."""
        self.n_failed += outcome.has_failed
        row = np.full(self.width + 1, np.nan)
        row[0] = float(outcome.has_failed)
        kept = outcome.numbers[: self.width]
        row[1 : 1 + kept.size] = kept
        self._rows[0 if present else 1].append(row)

    def between(self, first: int, last: int) -> tuple[FloatArray, FloatArray]:
        """Return rows of both sides; the first column states whether the fit failed."""
        together, without = (np.array(side[first:last]) for side in self._rows)
        return together, without

    def direction(self, first: int, last: int) -> Direction | None:
        """Return the direction learned from some fits, or None if there is only one number."""
        if self.width == 1:
            return None
        # The first column states whether the fit failed.
        n_first = None if self._n_first is None else self._n_first + 1
        return learnt_direction(*self.between(first, last), n_first)

    def projected(
        self, direction: Direction | None, first: int, last: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return one number for each of some fits, for both sides."""
        sides = self.between(first, last)
        if direction is not None:
            return direction.of(sides[0]), direction.of(sides[1])
        return _only_number(sides[0]), _only_number(sides[1])


def _only_number(rows: FloatArray) -> FloatArray:
    return np.where((rows[:, 0] > 0.0) | np.isnan(rows[:, 1]), _FAILED, rows[:, 1])


class Players:
    """Makes fits in parallel, and shows their number.

    Parameters
    ----------
    progress : Progress
        Shows the number of fits.
    random_state : int or None
        No two fits have the same seed, on either side.
    n_jobs : int or None
        Number of workers, as in joblib.
    n_fits : int
        Largest number of fits.
    """

    def __init__(
        self, progress: Progress, random_state: int | None, n_jobs: int | None, n_fits: int
    ) -> None:
        self._progress, self._n_jobs = progress, n_jobs
        self._seeds = np.random.SeedSequence(random_state)
        self._done, self._total = 0, n_fits
        progress.count(0, n_fits, "fits")

    def seeds(self, number: int) -> list[np.random.SeedSequence]:
        """Return seeds that were not used before."""
        return self._seeds.spawn(number)

    def add_to(self, trials: Trials, game: Game, n_pairs: int) -> None:
        """Add `n_pairs` fits to each side."""
        tasks = [(place % 2 == 0, seed) for place, seed in enumerate(self.seeds(2 * n_pairs))]
        # Do not write copies of records to disk.
        parallel = Parallel(n_jobs=self._n_jobs, return_as="generator", max_nbytes=None)
        outcomes = parallel(delayed(play)(game, present, seed) for present, seed in tasks)
        for (present, _), outcome in zip(tasks, outcomes, strict=True):
            trials.add(present, outcome)
            self._done += 1
            self._progress.count(self._done, self._total, "fits")


def as_seed(random_state: Any) -> int | None:
    """Return a seed for all fits: an integer, or one drawn from a generator; None stays None."""
    if random_state is None:
        return None
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if int(random_state) >= 0:
            return int(random_state)
    elif isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63 - 1))
    elif isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise ValueError(
        "random_state must be None, an integer of at least 0 or a generator of NumPy; got "
        f"{shown(random_state)}."
    )
