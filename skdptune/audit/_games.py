"""The game of an audit: fits with and without a record, each with noise of its own."""

from __future__ import annotations

import math
import numbers
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdptune._compat import Parallel, delayed
from skdptune._formatting import shown
from skdptune._progress import Progress
from skdptune.accounting import BudgetExceededError
from skdptune.audit._directions import Direction, learnt_direction
from skdptune.base import expected_refits, set_seeds
from skdptune.ledger import LedgerError
from skdptune.testing import global_generators

FloatArray = NDArray[np.float64]

_FAILED = -math.inf
_REFUSALS = (BudgetExceededError, LedgerError, MemoryError)


@dataclass(frozen=True, eq=False)
class Game:
    """An estimator, two neighbouring data sets, and what is read from each fit.

    Attributes
    ----------
    estimator : estimator
        Copied for each fit.
    sides : tuple
        Arguments of ``fit`` with the record, and without it.
    statistic : callable
        From a fitted estimator to a number or an array of numbers.
    """

    estimator: Any
    sides: tuple[tuple[Any, ...], tuple[Any, ...]]
    statistic: Callable[[Any], Any]

    @expected_refits()
    def fitted(self, present: bool, seed: np.random.SeedSequence) -> Any:
        """Return a copy, fitted with or without the record; all noise comes from the seed."""
        made = clone(self.estimator)
        set_seeds(made, seed)
        # A fit may change what it is given.
        arguments = [_copied(each) for each in self.sides[0 if present else 1]]
        if threading.current_thread() is not threading.main_thread():
            # Other threads use the global generators, too: seeded, fits might share their noise.
            return made.fit(*arguments)
        with global_generators(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return made.fit(*arguments)


class Outcome(NamedTuple):
    """Whether a fit raised an error, and what was read from it."""

    has_failed: bool
    numbers: FloatArray


def play(game: Game, present: bool, seed: np.random.SeedSequence) -> Outcome:
    """Return what one fit shows; that it fails is shown, too."""
    try:
        fitted = game.fitted(present, seed)
    except _REFUSALS:
        # Of this machine or of a ledger, not of the estimator.
        raise
    except Exception:
        return Outcome(True, np.empty(0))
    return Outcome(False, read_numbers(game.statistic(fitted)))


def read_numbers(value: Any) -> FloatArray:
    """Return what a statistic has given as a vector, or raise if it is no numbers."""
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
        How many numbers the statistic has.
    n_first : int, optional
        How many of them, the first, are likely to tell most.

    Attributes
    ----------
    n_failed : int
        Fits that raised an error.
    """

    def __init__(self, width: int, n_first: int | None = None) -> None:
        self.width, self._n_first = width, n_first
        self._rows: tuple[list[FloatArray], list[FloatArray]] = ([], [])
        self.n_failed = 0

    def __len__(self) -> int:
        """Return the number of fits with the record, and of those without it."""
        return min(map(len, self._rows))

    def add(self, present: bool, outcome: Outcome) -> None:
        """Take in one fit."""
        self.n_failed += outcome.has_failed
        row = np.full(self.width + 1, np.nan)
        row[0] = float(outcome.has_failed)
        kept = outcome.numbers[: self.width]
        row[1 : 1 + kept.size] = kept
        self._rows[0 if present else 1].append(row)

    def between(self, first: int, last: int) -> tuple[FloatArray, FloatArray]:
        """Return rows of both sides; the first column holds whether the fit failed."""
        together, without = (np.array(side[first:last]) for side in self._rows)
        return together, without

    def direction(self, first: int, last: int) -> Direction | None:
        """Return the direction that some fits suggest, None where there is one number."""
        if self.width == 1:
            return None
        # Whether the fit failed is the first column.
        n_first = None if self._n_first is None else self._n_first + 1
        return learnt_direction(*self.between(first, last), n_first)

    def projected(
        self, direction: Direction | None, first: int, last: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return one number for each of some fits, of both sides."""
        sides = self.between(first, last)
        if direction is not None:
            return direction.of(sides[0]), direction.of(sides[1])
        return _only_number(sides[0]), _only_number(sides[1])


def _only_number(rows: FloatArray) -> FloatArray:
    return np.where((rows[:, 0] > 0.0) | np.isnan(rows[:, 1]), _FAILED, rows[:, 1])


class Players:
    """Fits in parallel, counted for whoever watches.

    Parameters
    ----------
    name : str
        Of the estimator.
    random_state : int or None
        No two fits have the same seed, on whichever sides.
    n_jobs : int or None
        Workers, as for joblib.
    n_fits : int
        Most fits.
    verbose : int or None
        As for `skdptune._progress.Progress`.
    """

    def __init__(
        self,
        name: str,
        random_state: int | None,
        n_jobs: int | None,
        n_fits: int,
        verbose: int | None,
    ) -> None:
        self._n_jobs = n_jobs
        self._seeds = np.random.SeedSequence(random_state)
        self._done, self._total = 0, n_fits
        self._progress = Progress(f"audit of {name}", verbose)

    def __enter__(self) -> Players:
        """Show the progress."""
        self._progress.__enter__()
        self._progress.count(0, self._total, "fits")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self._progress.__exit__(kind, error, trace)

    def seeds(self, number: int) -> list[np.random.SeedSequence]:
        """Return seeds that were not given out before."""
        return self._seeds.spawn(number)

    def add_to(self, trials: Trials, game: Game, n_pairs: int) -> None:
        """Add as many fits to each side."""
        tasks = [(place % 2 == 0, seed) for place, seed in enumerate(self.seeds(2 * n_pairs))]
        # No copies of records on the disk.
        parallel = Parallel(n_jobs=self._n_jobs, return_as="generator", max_nbytes=None)
        outcomes = parallel(delayed(play)(game, present, seed) for present, seed in tasks)
        for (present, _), outcome in zip(tasks, outcomes, strict=True):
            trials.add(present, outcome)
            self._done += 1
            self._progress.count(self._done, self._total, "fits")


def _copied(data: Any) -> Any:
    return data.copy() if hasattr(data, "copy") else data


def as_seed(random_state: Any) -> int | None:
    """Return a seed for all fits: an integer, or one that a generator draws; None as it is."""
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
