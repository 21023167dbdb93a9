"""The one door of a search: the only place where records are read and converted.

**Guarantee.** The output for one record depends on that record only, whatever it holds and
whatever container it came in. Splits, folds, fits and scores see only this output (Theorem R5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from skdptune._compat import number_of_samples, safe_indexing
from skdptune.base._shared import (
    Persons,
    PrivateRows,
    as_table,
    finite_rows,
    kind_of_targets,
    named_like,
    paid_for,
    persons_of,
    read_targets,
    reads_numbers,
    target_array,
    zeroed,
)
from skdptune.model_selection._running._made_up import made_up_like
from skdptune.model_selection._running._record_by_record import (
    fit_record_by_record,
    last_step,
    records_before_last,
)

Records = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Door:
    """How a search reads records; it follows from public facts that no record decides.

    Attributes
    ----------
    reads_numbers : bool
        Whether rows become an array or a CSR matrix of numbers. Otherwise the first step of the
        estimator gets the records unchanged.
    targets : {"labels", "numbers", "any"}
        Kind of targets.
    labels : sequence or None
        The public label set.
    keeps_columns : bool
        Whether targets in a single column stay two-dimensional.
    form : array-like
        A made-up record in the user's own container, with its column names and types.
    """

    reads_numbers: bool = False
    targets: str = "any"
    labels: Sequence[Any] | None = None
    keeps_columns: bool = False
    form: Any = None

    @classmethod
    def of(
        cls, estimators: Sequence[Any], X: Any, labels: Sequence[Any] | None, *, varies: bool
    ) -> Door:
        """Return the door for estimators, and for records of the same form as given ones.

        Parameters
        ----------
        estimators : sequence of estimator
        X : array-like
            Only its form is used.
        labels : sequence or None
            The public label set.
        varies : bool
            Whether the steps of candidates may differ from those of the estimators. Rows then stay
            unchanged.
        """
        kinds = {kind_of_targets(estimator) for estimator in estimators}
        return cls(
            not varies and all(map(reads_numbers, estimators)),
            "labels" if "labels" in kinds else "any" if "any" in kinds else "numbers",
            labels,
            any(get_tags(estimator).target_tags.multi_output for estimator in estimators),
            made_up_like(X, 1),
        )

    def open(
        self,
        X: Any,
        y: Any,
        arguments: dict[str, Any] | None = None,
        rule: Callable[[Any], NDArray[np.bool_]] | None = None,
    ) -> Data:
        """Return the records; each one is read independently of the others.

        Parameters
        ----------
        X, y : array-like
            `y` may be None.
        arguments : dict, optional
            Arguments of ``fit``; those with one entry per record are divided with the records.
        rule : callable, optional
            Returns which records are held out for validation, each independently of the others.

        Notes
        -----
        Theorem R5, Theorem T9.
        """
        n_samples = number_of_samples(X)
        held_out = None if rule is None else rule(X)
        rows, improper = X, np.zeros(n_samples, dtype=bool)
        if self.reads_numbers:
            rows, improper = finite_rows(X)
        else:
            rows = as_table(X)
        targets = None
        if y is not None:
            targets, improper = read_targets(
                y, self.targets, self.labels, improper, keeps_column=self.keeps_columns
            )
            if self.targets == "any":
                # Text targets are labels that a transformer does not know; no row is lost because
                # of them.
                targets, _ = finite_rows(targets)
        if self.reads_numbers:
            rows = named_like(X, zeroed(rows, improper))
        per_record = {
            name: _entries(value)
            for name, value in (arguments or {}).items()
            if hasattr(value, "__len__") and not isinstance(value, str) and len(value) == n_samples
        }
        others = {name: v for name, v in (arguments or {}).items() if name not in per_record}
        return Data(rows, targets, per_record, others, improper, self, held_out)


def rows_of_persons(X: Any, y: Any, persons: Persons | None) -> tuple[Any, Any, Persons | None]:
    """Return the rows, the targets and the persons without rows that belong to nobody."""
    if persons is None or persons.kept is None:
        return X, y, persons
    # Theorem P14: a row without a proper id is left out, whatever it holds.
    kept = np.flatnonzero(persons.kept)
    y = None if y is None else safe_indexing(y, kept)
    return safe_indexing(X, kept), y, replace(persons, kept=None)


def _entries(values: Any) -> NDArray[Any]:
    """Return an argument of `fit` with one entry per record; an improper weight counts as 0."""
    entries = target_array(values, None)
    if entries.dtype.kind not in "fiubO":
        return entries
    numbers, wrong = finite_rows(entries)
    # If most entries are text, they are groups.
    return entries if 2 * np.count_nonzero(wrong) > wrong.size else numbers


@dataclass(frozen=True)
class Data:
    """Records and targets as a `Door` returns them, and the further arguments of `fit`.

    Attributes
    ----------
    X, y : array-like
        `X` may be `PrivateRows`, which bring their targets; `y` is then None.
    per_record : dict
        Arguments of `fit` with one entry per record.
    constant : dict
        Other arguments of `fit`.
    improper : ndarray of bool or None
        Which records are known to be improper; None means none.
    door : Door
        The door through which they were read.
    held_out : ndarray of bool or None
        The records of all data that a public rule holds out for validation; None for a part.
    persons : Persons or None
        The persons of the rows. A record is then a person with all rows (Theorem P14). `X`, `y`,
        `per_record` and `improper` hold rows.
    """

    X: Any
    y: Any
    per_record: dict[str, Any] = field(default_factory=dict)
    constant: dict[str, Any] = field(default_factory=dict)
    improper: NDArray[np.bool_] | None = None
    door: Door = Door()
    held_out: NDArray[np.bool_] | None = None
    persons: Persons | None = None

    @property
    def n_samples(self) -> int:
        """Number of records; secret for a random part of the data."""
        if self.is_in_parts:
            return int(self.X.counted())
        return number_of_samples(self.X) if self.persons is None else self.persons.size

    @property
    def is_in_parts(self) -> bool:
        """Whether the rows lie in parts."""
        return isinstance(self.X, PrivateRows)

    def total(self, function: Callable[[Data], Any]) -> Any:
        """Return the sum of an exact function of records over all parts; a table is one part.

        Notes
        -----
        Theorem R11. The rows of a chunk pass the same door as those of a table.
        """
        if self.is_in_parts:
            return self.X.total(partial(_of_chunk, self.door, function))
        return function(self)

    def by_persons(self, persons: Persons | None) -> Data:
        """Return the data whose records are persons, to whom the rows belong; None for rows."""
        held_out = self.held_out
        if persons is not None and held_out is not None:
            # Theorem T9: a person is in one part, by a public rule that only uses their rows.
            held_out = np.bincount(persons.codes[held_out], minlength=persons.size) > 0
        return replace(self, persons=persons, held_out=held_out)

    def held_out_by(self, rule: Callable[[Any], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Return which rows in parts a public rule holds out, in the order of the parts.

        Notes
        -----
        Theorem R11, Theorem T9. The rule decides within the parts, for each row separately.
        """
        numbers = np.arange(self.X.counted())
        (held_out,) = self.X.gathered(numbers, partial(_held_out_of, rule))
        return np.asarray(held_out)

    def without_records(self) -> Data:
        """Return data of this form that have no records; read nothing."""
        if not self.is_in_parts:
            return self.take(np.arange(0))
        return replace(self, X=PrivateRows.from_chunks(partial(iter, [self.X.form])))

    def take(self, records: Records | None) -> Data:
        """Return the given records; all of them for None."""
        if records is None:
            return self
        if self.is_in_parts:
            return replace(self, X=self.X.take(records))
        rows: Any = records
        persons = None
        if self.persons is not None:
            rows, persons = (
                self.persons.rows_of(records.astype(np.intp)),
                self.persons.part(records),
            )
        chosen = {name: safe_indexing(value, rows) for name, value in self.per_record.items()}
        y = None if self.y is None else self.y[rows]
        improper = None if self.improper is None else self.improper[rows]
        X = safe_indexing(self.X, rows)
        return Data(X, y, chosen, self.constant, improper, self.door, persons=persons)

    def fit(self, estimator: Any, **more: Any) -> Any:
        """Fit an estimator to the records; no record can make the fit fail (Theorem R6)."""
        arguments = {**self.per_record, **self.constant, **more}
        if self.is_in_parts:
            # Each step that takes parts reads improper records by itself (Theorem R5).
            with paid_for(estimator):
                return estimator.fit(self.X, **arguments)
        return fit_record_by_record(
            estimator, self.X, self.y, self.improper, self.persons, **arguments
        )

    def for_last_steps(self, estimators: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...]]:
        """Return the last steps of estimators of one company, and their arguments of a fit.

        Notes
        -----
        Theorem R6. Steps before the last are equal in all Pipelines, and are fitted here.
        """
        last, X, y = list(estimators), self.X, self.y
        if last_step(last[0]) is not last[0]:
            last = [last_step(estimator) for estimator in estimators]
            if self.is_in_parts:
                X = estimators[0][:-1].fit_transform(X)
            else:
                X, y = records_before_last(estimators[0], X, y, self.improper)
            for estimator in estimators[1:]:
                estimator.steps = [*deepcopy(estimators[0].steps[:-1]), estimator.steps[-1]]
        return last, (X,) if y is None else (X, y)

    def made_up(self, n_samples: int, *, with_words: bool, has_gap: bool = False) -> Data | None:
        """Return made-up records in the user's container; None if its form is not known.

        Parameters
        ----------
        n_samples : int
        with_words : bool
            Whether a column whose type allows anything holds text instead of numbers.
        has_gap : bool, default=False
            Whether the last record is improper, as far as the types allow.

        Notes
        -----
        Theorem R6. The made-up records follow from the number of columns, their names and types.
        """
        form, given = self.door.form, self.y
        if self.is_in_parts:
            given = self.X.form[1]
        form = made_up_like(self.X, 1) if form is None else form
        rows = made_up_like(form, n_samples, with_words=with_words, has_gap=has_gap)
        if rows is None:
            return None
        columns = () if given is None else given.shape[1:]
        labels = np.resize(np.asarray(self.door.labels or [0.0, 1.0]), n_samples)
        targets = np.broadcast_to(labels.reshape(-1, *[1] * len(columns)), (n_samples, *columns))
        if has_gap and self.door.targets != "any" and not columns:
            targets = np.array([*labels.tolist()[:-1], None], dtype=object)
        made = self.door.open(rows, targets.copy())
        return (
            made if self.persons is None else made.by_persons(persons_of(range(n_samples), rows))
        )


def _held_out_of(rule: Callable[[Any], Any], X: Any, y: Any) -> tuple[Any]:
    return (rule(X),)


def _of_chunk(door: Door, function: Callable[[Data], Any], X: Any, y: Any) -> Any:
    return function(door.open(X, y))


# The random split ------------------------------------------------------------------------------
# No record's part depends on another record, so the parts of the others have the same distribution
# on neighbouring data sets, as the theorems on tuning require (Theorem T3). The number of records
# in a part is secret; code that needs a number uses `expected_size`.


@dataclass(frozen=True)
class RandomSplit:
    """Parts of the records.

    Attributes
    ----------
    tuning : ndarray of int
        Records on which the runs are trained.
    validation : ndarray of int
        Records on which the runs are scored.
    final : ndarray of int or None
        Records of the final fit; None for all.
    """

    tuning: Records
    validation: Records
    final: Records | None


def random_split(
    n_samples: int,
    validation_fraction: float,
    tuning_fraction: float | None,
    variant: int,
    rng: np.random.Generator,
    held_out: NDArray[np.bool_] | None = None,
) -> RandomSplit:
    """Return a random split: each record independently joins validation, tuning or neither.

    Parameters
    ----------
    n_samples : int
        Number of records.
    validation_fraction : float
        Probability of validation.
    tuning_fraction : float or None
        Probability of tuning; None for all that are not in validation.
    variant : {1, 2}
        Whether the final fit leaves out the records of tuning.
    rng : numpy.random.Generator
    held_out : ndarray of bool, optional
        The records in validation, if a public rule decides this; there is then no probability.
        Each of the others joins tuning with the probability that makes `tuning_fraction` of all,
        if their number is as expected.

    Notes
    -----
    Theorem T3, Theorem T9.
    """
    draws = rng.random(n_samples)
    in_validation = draws < validation_fraction if held_out is None else held_out
    if tuning_fraction is None:
        return RandomSplit(np.flatnonzero(~in_validation), np.flatnonzero(in_validation), None)
    if held_out is not None:
        tuning_fraction /= 1.0 - validation_fraction
    in_tuning = ~in_validation & (draws >= 1.0 - tuning_fraction)
    final = None if variant == 2 else np.flatnonzero(~in_tuning)
    return RandomSplit(np.flatnonzero(in_tuning), np.flatnonzero(in_validation), final)


def disjoint_partitions(
    records: Records, n_partitions: int, rng: np.random.Generator
) -> list[Records]:
    """Return disjoint partitions; each record joins one of them by its own uniform draw."""
    # Theorem D1, Theorem F5: each record draws its partition independently.
    places = rng.integers(n_partitions, size=records.size)
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(1, n_partitions))
    return np.split(records[order], bounds)


def disjoint_folds(
    n_samples: int, n_folds: int, rng: np.random.Generator
) -> list[tuple[Records, Records]]:
    """Return for each fold the records for training and scoring, among ``range(n_samples)``."""
    everyone = np.arange(n_samples)
    held = disjoint_partitions(everyone, n_folds, rng)
    return [(np.setdiff1d(everyone, fold), fold) for fold in held]


def expected_size(n_samples: int, fraction: float) -> int:
    """Return the public constant for the number of records of a random part."""
    return max(1, round(n_samples * fraction))
