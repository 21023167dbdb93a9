"""Rows that lie in parts: in chunks, in files, or on the workers of dask, ray or Spark.

**Guarantee.** A sum over rows counts every part exactly once, whatever fails, is computed twice
or ends first (Theorem R10). Estimators pass functions whose results are exact, so that the sum
does not depend on the parts in which the rows lie, either.
"""

from __future__ import annotations

import copy
import functools
import importlib
import itertools
import math
import os
import pickle
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import get_tags

from skdptune._compat import safe_indexing, validated_rows
from skdptune._formatting import nearest_name, shown, shown_path
from skdptune._validation import NamedArguments, check_integer, installed
from skdptune.base._persons import ADVICE, OWN_USE, PARTS, Persons, names_persons, refusal_of
from skdptune.base._reading import NUMBERS, as_table, table_shape
from skdptune.base._records import (
    check_has_records,
    check_rows_form,
    check_target_type,
    read_targets,
    validate_rows,
)

# Rows, and targets or None.
Chunk = tuple[Any, Any]
Part = Callable[[], Iterable[Chunk]]

# Rows of one chunk of an array or a file, which are in memory at the same time.
_ROWS = 2**16
# Cells of rows that many passes keep in memory: 64 MiB in double precision.
_LITTLE = 2**23
_READ_AGAIN = (
    "X must be readable again, since this fit makes several passes; got an iterator. Use "
    "PrivateRows.from_chunks with a function that makes it."
)
_CHANGED = "X must be the same in every pass; got another number of rows."
_REORDERED = (
    "X must have its rows in the same order in every pass if groups are given, or a search "
    "divides the rows, since a row is known by its place; got another order, or other rows."
)
_NO_ORDER = (
    "{} with rows of Spark, which may compute a partition again with its rows in another order; "
    "got {}. Write the rows to files, and use PrivateRows.from_parquet."
)
# Set on errors that no record decides.
_OF_PARTS = "_is_about_parts"
# Types of cells whose content is compared in each pass. Timestamps of pandas are dates.
_WRITTEN = (str, bytes, float, complex, date, time, timedelta, Decimal, np.number, np.datetime64)
# Number of results that one task of a cluster adds up.
_BRANCHES = 8


class Tally(NamedTuple):
    """A sum over some parts.

    Attributes
    ----------
    value : object
        None without rows. Anything with an exact ``+``.
    sizes : dict
        Number of rows of each of these parts, by the number of the part.
    failure : Exception or None
        The reason why the sum is missing.
    orders : dict
        If rows have weights or are chosen, a digest of all rows of each part, in their order.
    """

    value: Any
    sizes: Mapping[int, int]
    failure: Exception | None = None
    orders: Mapping[int, bytes] = {}

    def __repr__(self) -> str:
        """Return the name of the class only, since logs of workers quote arguments of tasks."""
        return "Tally(...)"


def merged(*tallies: Tally) -> Tally:
    """Add up sums over different parts; raise if a part occurs twice.

    Notes
    -----
    Theorem R10.
    """
    value: Any = None
    sizes: dict[int, int] = {}
    orders: dict[int, bytes] = {}
    for tally in tallies:
        if tally.failure is not None:
            return tally
        if sizes.keys() & tally.sizes.keys():
            return Tally(None, {}, RuntimeError("a part of X was counted twice."))
        sizes |= tally.sizes
        orders |= tally.orders
        value = _sum(value, tally.value)
    return Tally(value, sizes, None, orders)


def _sum(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other


@dataclass(frozen=True, repr=False)
class Task:
    """The sum of a function over the rows of one part, with checks of their form.

    Attributes
    ----------
    function : callable
        From rows and targets to an exact number, or to another object with an exact ``+``.
    form : tuple
        Rows and targets as in the parts, but without any row.
    steps : tuple of callables
        Applied to rows one after the other, before the function.
    chosen : ndarray of bool or None
        Which rows of the part are summed over; None for all.
    weights : ndarray or None
        A weight for each of these rows, which the function gets, too; None for none.
    """

    function: Callable[..., Any]
    form: Chunk
    steps: tuple[Callable[[Any], Any], ...] = ()
    chosen: NDArray[np.bool_] | None = None
    weights: NDArray[np.int64] | None = None

    def __call__(self, number: int, part: Part) -> Tally:
        """Return the sum over a part. A failure is returned: logs quote those that are raised."""
        value, size, used = None, 0, 0
        is_ordered = self.weights is not None or self.chosen is not None
        digests = [blake2b(digest_size=16) for _ in self.form]
        try:
            for rows, targets in _chunks(part):
                _check_like(self.form, rows, targets)
                start, size = size, size + int(rows.shape[0])
                if is_ordered:
                    # Theorem R10: a weight, or a choice, belongs to a row by its place.
                    for digest, values in zip(digests, (rows, targets), strict=True):
                        digest.update(_bytes_of(values))
                rows, targets = self._chosen_of(slice(start, size), rows, targets)
                if n_rows := int(rows.shape[0]):
                    for step in self.steps:
                        rows = step(rows)
                    more = self._weights_of(used, n_rows)
                    value, used = _sum(value, self.function(rows, targets, *more)), used + n_rows
        except Exception as error:
            return Tally(None, {}, _in_words(number, error))
        order = b"".join(digest.digest() for digest in digests)
        return Tally(value, {number: size}, None, {number: order} if is_ordered else {})

    def _chosen_of(self, places: slice, rows: Any, targets: Any) -> Chunk:
        if self.chosen is None:
            return rows, targets
        if places.stop > self.chosen.size:
            raise ValueError(_CHANGED)
        kept = np.flatnonzero(self.chosen[places])
        if kept.size == places.stop - places.start:
            return rows, targets
        return safe_indexing(rows, kept), None if targets is None else targets[kept]

    def _weights_of(self, start: int, n_rows: int) -> tuple[NDArray[np.int64], ...]:
        if self.weights is None:
            return ()
        if start + n_rows > self.weights.size:
            raise ValueError(_CHANGED)
        return (self.weights[start : start + n_rows],)


def _bytes_of(values: Any) -> bytes:
    """Return the entries of rows or targets, in their order; never fail because of one."""
    cells = np.asarray(values)
    if cells.dtype != object:
        return cells.tobytes()
    return str([_word_of(cell) for cell in cells.ravel().tolist()]).encode()


def _word_of(cell: Any) -> Any:
    """Return what is written of a cell, which of an unknown object is the name of its type."""
    # Theorem R11: the words for an unknown object may contain its address, or have no end. Python
    # refuses to write long integers in decimal digits, but not in hexadecimal ones.
    if isinstance(cell, int):
        return hex(cell)
    return cell if cell is None or isinstance(cell, _WRITTEN) else type(cell).__name__


@dataclass(frozen=True, repr=False)
class KeptTask:
    """The sum of a function over the objects that were kept of one part.

    Attributes
    ----------
    function : callable
        From one of the objects to an object with an exact ``+``.
    """

    function: Callable[[Any], Any]

    def __call__(self, number: int, kept: Tally) -> Tally:
        """Return the sum over a part, or the reason why nothing was kept of it."""
        value = None
        try:
            for each in kept.value or ():
                value = _sum(value, self.function(each))
        except Exception as error:
            return Tally(None, {}, _in_words(number, error))
        return kept._replace(value=value)


# What a user or Python stops a pass with.
_STOPS = (KeyboardInterrupt, GeneratorExit)


class _UnreadError(Exception):
    """An error of the code that reads a part, which is the user's or another library's."""


class ChangedError(ValueError):
    """The content of a part has changed."""


def _in_words(number: int, error: Exception) -> Exception:
    """Return an error that names the part, and shows no value of its rows."""
    if isinstance(error, TypeError | ValueError):
        # Errors of this package show no values.
        kind = TypeError if isinstance(error, TypeError) else ValueError
        return kind(f"{error} This is part {number} of X.")
    cause = error.__cause__ if isinstance(error, _UnreadError) else error
    return RuntimeError(
        f"part {number} of X must be readable; got {type(cause).__name__}. Nothing was published. "
        "Read only this part to see the error."
    )


def _asked(ask: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a carrier answers; raise an error in words if its engine or a loader fails."""
    try:
        return ask(*arguments)
    except _STOPS:
        raise
    except BaseException as error:
        name = type(error).__name__
    # Theorem R10: raised here, the error does not refer to the other one, which may quote rows.
    raise RuntimeError(
        f"X must be readable; got {name}. Nothing was published. Read X without this package to "
        "see the error. Workers need this package, too; if they were lost, they may need more "
        "memory, or smaller parts."
    )


def _foreign(part: Part) -> Iterator[Any]:
    """Iterate over the chunks of a part; an error of its code may quote a row."""
    try:
        yield from part()
    except (ChangedError, *_STOPS):
        raise
    except BaseException as error:
        # A library may panic, and a loader may call exit: catch everything.
        raise _UnreadError from error


def _chunks(part: Part) -> Iterator[Chunk]:
    """Iterate over the chunks of a part, as tables and arrays of targets."""
    for chunk in _foreign(part):
        if not isinstance(chunk, tuple) or len(chunk) != 2:
            raise TypeError(
                "an iterator of chunks must yield pairs (X_chunk, y_chunk); got "
                f"{type(chunk).__name__}."
            )
        rows = as_table(chunk[0])
        shape = table_shape(rows)
        if len(shape) != 2:
            raise ValueError(f"each chunk must be two-dimensional; got {len(shape)} dimensions.")
        yield rows, _targets(chunk[1])


def _targets(y: Any) -> Any:
    """Return targets as an array, one-dimensional if there is one target per row."""
    return None if y is None else read_targets(y, "any", None)[0]


def _check_like(form: Chunk, rows: Any, targets: Any) -> None:
    """Raise if types, names or shapes of a chunk differ from those of the first chunk."""
    width = form[0].shape[1]
    if rows.shape[1] != width:
        raise ValueError(f"each chunk must have {width} columns; got {rows.shape[1]}.")
    if _names(rows) != _names(form[0]):
        raise ValueError(
            "each chunk must have the same columns as the first one; got other names."
        )
    if (targets is None) != (form[1] is None):
        raise ValueError("either all chunks or none must have targets; got both kinds.")
    if _kind(rows) != _kind(form[0]):
        raise TypeError("each chunk must have the same types as the first one; got others.")
    if targets is not None and targets.shape != (rows.shape[0], *form[1].shape[1:]):
        raise ValueError(
            "each chunk must have one target per row, of the shape of the first ones; got others."
        )


def _names(rows: Any) -> list[Any] | None:
    return list(rows.columns) if hasattr(rows, "columns") else None


def _kind(rows: Any) -> str:
    """Return a kind of number that all chunks must share; no record may decide it."""
    if hasattr(rows, "columns"):
        return "table"
    # Computations with rows in single precision stay in single precision.
    if rows.dtype == np.float32:
        return "single"
    return "numbers" if rows.dtype.kind in f"{NUMBERS}OUS" else str(rows.dtype.kind)


# Where parts lie -------------------------------------------------------------------------------


class InProcess:
    """Parts that are read one after the other in this process.

    Parameters
    ----------
    parts : sequence of callables
        Each returns the chunks of a part, as often as it is called.
    form : tuple, optional
        Rows and targets as in the parts, but without any row. The default is taken from the first
        chunk.
    sizes : mapping, optional
        Numbers of rows by the number of the part, if they are known.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        form: Chunk | None = None,
        sizes: Mapping[int, int] | None = None,
    ) -> None:
        self.parts = parts
        self.known_form = form
        self.sizes = dict(sizes or {})

    @property
    def is_read_once(self) -> bool:
        """Whether a second sum is impossible."""
        return any(isinstance(part, _Once) for part in self.parts)

    @cached_property
    def form(self) -> Chunk:
        """Rows and targets as in the parts, but without any row."""
        if self.known_form is not None:
            return self.known_form
        for number, part in enumerate(self.parts):
            try:
                for rows, targets in _chunks(part):
                    if isinstance(part, _Once):
                        part.ahead = [(rows, targets)]
                    return rows[:0], None if targets is None else targets[:0]
            except Exception as error:
                failure = _in_words(number, error)
                break
        else:
            failure = ValueError("X must hold at least one chunk; got none.")
        raise failure

    def total(self, task_of: Callable[[int], Any]) -> Tally:
        """Return the sum of the results of each part's task over all parts."""
        return merged(*self._results(task_of))

    def keep(self, task_of: Callable[[int], Any]) -> InProcess:
        """Return the results of each part's task, which are the parts of a `KeptTask`."""
        return InProcess(list(self._results(task_of)), None, self.sizes)

    def _results(self, task_of: Callable[[int], Any]) -> Iterator[Tally]:
        return (task_of(number)(number, part) for number, part in enumerate(self.parts))


class _Once:
    """A part that is an iterator of chunks; the first chunk may be inspected in advance."""

    def __init__(self, chunks: Iterator[Any]) -> None:
        self.ahead: list[Any] = []
        self._chunks = chunks

    def __call__(self) -> Iterator[Any]:
        """Return the chunks that were not read yet."""
        ahead, self.ahead = self.ahead, []
        return itertools.chain(ahead, self._chunks)


class Functions(NamedTuple):
    """What a cluster does: tasks for a part, for results, storage of results, and waiting."""

    of_part: Callable[..., Any]
    of_results: Callable[..., Any]
    keep: Callable[[list[Any]], list[Any]]
    result: Callable[[Any], Any]


class OnCluster:
    """Parts that a cluster computes, and adds up where they are.

    Parameters
    ----------
    functions : callable
        Returns the functions of the cluster.
    parts : sequence
        For each part, the objects from which the cluster computes rows and targets.
    form : tuple
        Rows and targets as in the parts, but without any row.
    sizes : mapping
        Numbers of rows by the number of the part, if they are known.
    source : object
        What the parts were taken from: a cluster forgets what nobody refers to.
    """

    is_read_once = False

    def __init__(
        self,
        functions: Callable[[], Functions],
        parts: Sequence[Any],
        form: Chunk,
        sizes: Mapping[int, int],
        source: Any = None,
    ) -> None:
        self.functions, self.parts, self.source = functions, parts, source
        self.form = self.known_form = form
        self.sizes = dict(sizes)

    def total(self, task_of: Callable[[int], Any]) -> Tally:
        """Return the sum of the results of each part's task, added up as a tree."""
        functions = self.functions()
        level = self._results(functions, task_of)
        while len(level) > 1:
            starts = range(0, len(level), _BRANCHES)
            level = [functions.of_results(*level[start : start + _BRANCHES]) for start in starts]
        return Tally(*functions.result(level[0]))

    def keep(self, task_of: Callable[[int], Any]) -> OnCluster:
        """Return the results of each part's task, which stay on the workers.

        The cluster computes lost ones again from the parts.
        """
        functions = self.functions()
        kept = functions.keep(self._results(functions, task_of))
        return OnCluster(self.functions, [(each,) for each in kept], self.form, self.sizes)

    def _results(self, functions: Functions, task_of: Callable[[int], Any]) -> list[Any]:
        return [
            functions.of_part(task_of(number), number, *part)
            for number, part in enumerate(self.parts)
        ]


class OnSpark:
    """The partitions of a Spark DataFrame: executors compute sums, and this process adds them up.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    target : str or None
        The column of targets.
    """

    is_read_once = False

    def __init__(self, frame: Any, target: str | None) -> None:
        self._frame, self._target = frame, target
        schema = _asked(frame.limit(0).toArrow).schema
        _check_target(schema, target)
        self.form = self.known_form = _arrow_form(schema, target)
        counted = _asked(self._total, Task(_nothing, self.form))
        if counted.failure is not None:
            raise counted.failure
        self.sizes = dict(counted.sizes)
        self.parts = range(len(self.sizes))

    def total(self, task_of: Callable[[int], Task]) -> Tally:
        """Return the sum of the results of a task, the same for all parts, over all parts."""
        found = self._total(task_of(0))
        if found.failure is None and found.sizes.keys() != self.sizes.keys():
            return Tally(None, {}, ValueError(_CHANGED))
        return found

    def keep(self, task_of: Callable[[int], Any]) -> KeptOnSpark:
        """Return the results of a task for each partition, which executors cache."""
        tallies = _tallies(self._frame, self._of_partition(task_of(0)))
        return KeptOnSpark(tallies, self.parts, self.sizes)

    def _total(self, task: Task) -> Tally:
        return _collected(_tallies(self._frame, self._of_partition(task)))

    def _of_partition(self, task: Task) -> Callable[[Iterator[Any]], Iterator[Any]]:
        return partial(_of_partition, task, self._target)


class KeptOnSpark:
    """Results of a task for each partition, cached by the executors until nobody needs them.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Tallies.
    parts : range
        Numbers of the partitions.
    sizes : mapping
        Numbers of rows by the number of the part.
    """

    def __init__(self, frame: Any, parts: range, sizes: Mapping[int, int]) -> None:
        self._frame, self.parts, self.sizes = frame.persist(), parts, dict(sizes)
        weakref.finalize(self, self._frame.unpersist)

    def total(self, task_of: Callable[[int], Any]) -> Tally:
        """Return the sum of the results of a task, the same for all parts, over all parts."""
        return _collected(_tallies(self._frame, partial(_of_kept_partition, task_of(0))))

    def keep(self, task_of: Callable[[int], Any]) -> KeptOnSpark:
        """Return the results of a task for each partition."""
        tallies = _tallies(self._frame, partial(_of_kept_partition, task_of(0)))
        return KeptOnSpark(tallies, self.parts, self.sizes)


def _tallies(frame: Any, of_partition: Callable[[Iterator[Any]], Iterator[Any]]) -> Any:
    return frame.mapInArrow(of_partition, "tally binary")


def _collected(tallies: Any) -> Tally:
    return merged(*(pickle.loads(row.tally) for row in tallies.collect()))


def _of_partition(task: Task, target: str | None, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the tally of a Spark partition, as a batch of one cell."""
    number = importlib.import_module("pyspark").TaskContext.get().partitionId()
    yield _as_batch(task(number, lambda: (arrow_chunk(batch, target) for batch in batches)))


def _of_kept_partition(task: KeptTask, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the tally of a task for the tally of each partition."""
    for batch in batches:
        for cell in batch.column(0).to_pylist():
            kept = pickle.loads(cell)
            yield _as_batch(task(min(kept.sizes, default=0), kept))


def _as_batch(tally: Tally) -> Any:
    arrow = importlib.import_module("pyarrow")
    return arrow.RecordBatch.from_pydict({"tally": [pickle.dumps(tally)]})


def _on_dask() -> Functions:
    """Return the functions of dask, for lazy rows and targets, or None, of each part."""
    dask = importlib.import_module("dask")
    of_block, of_results = (dask.delayed(each, pure=False) for each in (_of_block, merged))
    return Functions(
        of_block,
        of_results,
        lambda results: list(dask.persist(*results)),
        lambda last: dask.compute(last)[0],
    )


def _on_ray() -> Functions:
    """Return those of ray, for the column of targets and a reference to each part's table."""
    ray = importlib.import_module("ray")
    of_table, of_results = map(ray.remote, (_of_table, merged))
    return Functions(of_table.remote, of_results.remote, list, ray.get)


def _of_block(task: Any, number: int, rows: Any, *targets: Any) -> Tally:
    """Return the tally of rows and targets, or of a tally that was kept."""
    if not targets:
        return task(number, Tally(*rows))
    return task(number, partial(_chunk_of_block, rows, *targets))


def _chunk_of_block(rows: Any, targets: Any) -> list[Chunk]:
    return [_split_off(rows, targets) if isinstance(targets, str) else (rows, targets)]


def _split_off(frame: Any, target: str) -> Chunk:
    """Return the other columns of a DataFrame, and the targets in a column."""
    return frame.drop(columns=[target]), _targets(frame[target])


def _of_table(task: Any, number: int, target: Any, *tables: Any) -> Tally:
    """Return the tally of a table, or of a tally that was kept."""
    if not tables:
        return task(number, Tally(*target))
    (table,) = tables
    batches = table.to_batches(max_chunksize=_ROWS)
    return task(number, lambda: (arrow_chunk(batch, target) for batch in batches))


def _form_of_table(table: Any) -> tuple[Any, int]:
    return table.schema, table.num_rows


# The rows as estimators see them ---------------------------------------------------------------


class Step(NamedTuple):
    """A transformation of rows within each part.

    Attributes
    ----------
    transform : callable
        It must be able to travel to workers.
    width : int
        Number of columns of its results.
    """

    transform: Callable[[Any], Any]
    width: int


class PrivateRows(NamedArguments):
    """Rows and targets that lie in parts: in chunks, in files, or on workers of a cluster.

    Made by one of its class methods. It takes the place of `X` in ``fit``, and brings the targets.
    Parts are read one after the other, or on the workers. Only sums leave a part, and the rows of
    random batches.
    A fit with a seed gives the same model, to the last bit, for any division into parts.

    Dask arrays, dask DataFrames and memory-mapped arrays can be passed to ``fit`` as they are.

    Parameters
    ----------
    carrier : object
        Where the parts lie; set by the class methods.
    steps : tuple
        Transformations within the parts; set by pipelines.

    See Also
    --------
    skdptune.linear_model.SufficientStatistics : Sums of a regression, added up by hand.

    Notes
    -----
    Theorem R10.

    A sum counts each part exactly once. If a worker is lost, its parts are computed again, and the
    new result takes the place of the old one. The rows must be the same in every pass. The
    number of rows is public, as in any fit, unless the estimator has `n_public`. Errors name a
    part by its number, from 0, and show no value.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune import DPRidge, PrivateRows
    >>> def chunks():
    ...     for seed in range(4):
    ...         X = np.random.default_rng(seed).uniform(-1, 1, size=(5000, 2))
    ...         yield X, X @ [0.5, -0.5]
    >>> rows = PrivateRows.from_chunks(chunks)
    >>> model = DPRidge(1.0, data_norm=1.5, target_bound=1.0, random_state=0)
    >>> model.fit(rows).coef_.round(2)
    array([ 0.5, -0.5])
    """

    def __init__(
        self,
        carrier: InProcess | OnCluster | OnSpark,
        steps: tuple[Step, ...] = (),
    ) -> None:
        self._carrier = carrier
        self._steps = steps
        # Integer weights of rows, in the order of the parts, in fits by persons; and which rows
        # of the parts these are, in searches.
        self._weights: NDArray[np.int64] | None = None
        self._chosen: NDArray[np.bool_] | None = None
        # Digests of the parts in the first pass; of all copies, whatever they do with the rows.
        self._orders: dict[int, bytes] = {}

    def __repr__(self) -> str:
        """Return the name of the class only."""
        return "PrivateRows(...)"

    # Constructors ------------------------------------------------------------------------------

    @classmethod
    def from_chunks(cls, chunks: Any) -> PrivateRows:
        """Return the rows of chunks that a function makes, as often as they are needed.

        Parameters
        ----------
        chunks : callable, or list of callables
            Each returns an iterable of pairs ``(X_chunk, y_chunk)``; targets are None for
            transformers. Each call must give the same chunks. A list has one callable for each
            part. An iterator is accepted, too; it serves for one sum, as in a regression.

        Returns
        -------
        PrivateRows
        """
        if isinstance(chunks, Iterator):
            return cls(InProcess([_Once(chunks)]))
        parts = [chunks] if callable(chunks) else chunks
        if not isinstance(parts, list | tuple) or not all(callable(part) for part in parts):
            raise TypeError(
                "chunks must be a function that returns pairs (X_chunk, y_chunk), or a list of "
                f"such functions; got {shown(chunks)}."
            )
        if not parts:
            raise ValueError("chunks must hold at least one part; got none.")
        return cls(InProcess(list(parts)))

    @classmethod
    def from_arrays(cls, X: Any, y: Any = None, *, rows_per_part: int = _ROWS) -> PrivateRows:
        """Return the rows of an array, such as a memory-mapped one, or of a DataFrame.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        rows_per_part : int, default=65536
            Number of rows that are read at once.

        Returns
        -------
        PrivateRows
        """
        check_integer(rows_per_part, name="rows_per_part", lower=1)
        X, targets = as_table(X), _targets(y)
        shape = table_shape(X)
        if len(shape) != 2 or (targets is not None and targets.shape[:1] != shape[:1]):
            raise ValueError(
                "X and y must be of shapes (n_samples, n_features) and (n_samples,); got "
                f"{shape} and {getattr(targets, 'shape', None)}."
            )
        slices = [slice(k, k + rows_per_part) for k in range(0, shape[0], rows_per_part)]
        parts = [partial(_slice, X, targets, each) for each in slices]
        sizes = {place: len(range(shape[0])[each]) for place, each in enumerate(slices)}
        return cls(InProcess(parts, (X[:0], None if targets is None else targets[:0]), sizes))

    @classmethod
    def from_dask(cls, X: Any, y: Any = None) -> PrivateRows:
        """Return the rows of a dask array or DataFrame, which dask reads and adds up.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame
            Each block of rows, or partition, is a part. Persist it if it fits into the memory of
            the workers: `DPRidge` reads it six times.
        y : dask.array.Array, dask.dataframe.Series, str or array-like, optional
            Targets, or the name of their column. The blocks of a dask object match those of `X`.
            What both are computed from is computed once in a pass.

        Returns
        -------
        PrivateRows
        """
        if not is_dask(X) or not isinstance(getattr(X, "ndim", None), int):
            raise TypeError(f"X must be a dask array or DataFrame; got {type(X).__name__}.")
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional; got {X.ndim} dimensions.")
        if isinstance(y, str):
            if y not in list(getattr(X, "columns", ())):
                raise ValueError(f"y must be targets, or a column of X; got {shown(y)}.")
            # A worker takes both from one block, so that they belong to the same rows.
            form = _split_off(_empty(X), y)
            return cls(OnCluster(_on_dask, [(block, y) for block in _blocks(X)], form, {}, X))
        if hasattr(X, "chunks"):
            X = X.rechunk({1: -1})
        lengths = _lengths(X)
        blocks = _blocks(X, is_alone=not is_dask(y))
        targets, no_target = _dask_targets(y, lengths, len(blocks))
        pairs = list(zip(blocks, targets, strict=True))
        form, sizes = (_empty(X), no_target), dict(enumerate(lengths or ()))
        return cls(OnCluster(_on_dask, pairs, form, sizes, (X, y)))

    @classmethod
    def from_ray(cls, dataset: Any, target: str | None = None) -> PrivateRows:
        """Return the rows of a ray dataset, which ray's workers read and add up.

        Parameters
        ----------
        dataset : ray.data.Dataset
            It is computed once, and kept in ray's object store. Each of its blocks is a part.
        target : str, optional
            Name of the column of targets. The other columns are features, in their order.

        Returns
        -------
        PrivateRows

        Notes
        -----
        Numbers are read as by `from_parquet`.
        """
        if not callable(getattr(dataset, "to_arrow_refs", None)):
            raise TypeError(f"dataset must be a ray dataset; got {type(dataset).__name__}.")
        ray = importlib.import_module("ray")
        tables = _asked(dataset.to_arrow_refs)
        forms = _asked(ray.get, [ray.remote(_form_of_table).remote(table) for table in tables])
        # A block without rows may have no columns.
        found = [(table, *form) for table, form in zip(tables, forms, strict=True) if form[1]]
        if not found:
            raise ValueError("dataset must have records; got none.")
        schema = found[0][1]
        _check_target(schema, target)
        for number, (_, other, _) in enumerate(found):
            _check_schema(schema, other, f"part {number}")
        return cls(
            OnCluster(
                _on_ray,
                [(target, table) for table, _, _ in found],
                _arrow_form(schema, target),
                {number: size for number, (_, _, size) in enumerate(found)},
            )
        )

    @classmethod
    def from_spark(cls, frame: Any, target: str | None = None) -> PrivateRows:
        """Return the rows of a Spark DataFrame, whose executors read and add up its partitions.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
            Cache it, since each pass computes it again, and its rows must be the same and in the
            same partitions. They are counted at once.
        target : str, optional
            Name of the column of targets. The other columns are features, in their order.

        Returns
        -------
        PrivateRows

        Notes
        -----
        Numbers are read as by `from_parquet`. This package must be installed on the executors.
        """
        if not callable(getattr(frame, "mapInArrow", None)):
            raise TypeError(f"frame must be a Spark DataFrame; got {type(frame).__name__}.")
        return cls(OnSpark(frame, target))

    @classmethod
    def from_parquet(cls, paths: Any, target: str | None = None) -> PrivateRows:
        """Return the rows of parquet files, each row group of which is a part.

        Parameters
        ----------
        paths : str, Path, list of these, or pyarrow.dataset.Dataset
            Files, or a folder of files, all with the same columns. An Arrow dataset may have
            another format.
        target : str, optional
            Name of the column of targets. The other columns are features, in their order.

        Returns
        -------
        PrivateRows

        Notes
        -----
        Needs pyarrow. Numbers are read as float32 if all features are float32, and else as
        float64. Tables with other columns become pandas DataFrames, for a `TableEncoder`. This
        method reads only names, types and numbers of rows. A fit raises if a file changes before
        its last pass.
        """
        return cls(InProcess(*arrow_parts(paths, target)))

    # For estimators ----------------------------------------------------------------------------

    @property
    def n_samples(self) -> int | None:
        """Number of rows, if it is known without reading them."""
        if self._chosen is not None:
            return int(np.count_nonzero(self._chosen))
        sizes = self._carrier.sizes
        return sum(sizes.values()) if len(sizes) == len(self._carrier.parts) else None

    @property
    def n_features(self) -> int | None:
        """Number of columns, if it is known without reading rows."""
        if self._steps:
            return self._steps[-1].width
        known = self._carrier.known_form
        return None if known is None else int(known[0].shape[1])

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.form[0].shape[1])

    @property
    def known_rows(self) -> Any:
        """Rows as in the parts, but without any row; None if this is not known without reading."""
        known = self._carrier.known_form
        return None if known is None or self._steps else known[0]

    @property
    def made_up_target(self) -> NDArray[Any] | None:
        """A target that no record has, of the public type of all; None if no type is public."""
        known = self._carrier.known_form
        # The type of a column in a file is public; that of a chunk may follow from a record.
        if known is None or not hasattr(known[1], "dtype"):
            return None
        return np.zeros((1, *known[1].shape[1:]), known[1].dtype)

    @property
    def is_small(self) -> bool:
        """Whether the rows, as numbers, need little memory, by their number and the columns."""
        return self.n_samples is not None and self.n_samples * self.width <= _LITTLE

    @property
    def is_read_once(self) -> bool:
        """Whether only one sum is possible."""
        return self._carrier.is_read_once

    @property
    def form(self) -> Chunk:
        """Rows and targets as in the parts, but without any row."""
        form = self._carrier.form
        return (np.zeros((0, self._steps[-1].width)), form[1]) if self._steps else form

    def check_columns(self, estimator: Any) -> None:
        """Check names and types of the columns, and store them as a fit to a table does.

        Targets must be there if the estimator needs them.
        """
        rows, targets = self.form
        _check_given(estimator, targets)
        check_rows_form(rows, accept_sparse=False, allow_nd=False)
        validated_rows(estimator, rows, skip_check_array=True)

    def transformed(self, transformer: Any, width: int) -> PrivateRows:
        """Return the rows as a fitted transformer transforms them, within the parts."""
        bare = without_secrets(transformer)
        step = Step(partial(type(bare).transform, bare), width)
        return self._copy(_steps=(*self._steps, step))

    def _copy(self, **changes: Any) -> PrivateRows:
        made = copy.copy(self)
        vars(made).update(changes)
        return made

    def take(self, records: NDArray[np.integer[Any]]) -> PrivateRows:
        """Return some of the rows, by their different numbers in the order of the parts.

        Notes
        -----
        Theorem R11. As a weight, a choice belongs to a row by its place, so that rows must keep
        their order.
        """
        self.check_order()
        n_rows, records = self.counted(), np.sort(records)
        chosen = np.zeros(n_rows, dtype=bool)
        chosen[records] = True
        if self._chosen is not None:
            within, chosen = chosen, np.zeros_like(self._chosen)
            chosen[self._chosen] = within
        weights = None if self._weights is None else self._weights[records]
        return self._copy(_weights=weights, _chosen=chosen)

    def by_persons(self, persons: Persons) -> PrivateRows:
        """Return the rows with their weights, by which a person in any parts counts once.

        Notes
        -----
        Theorem P14, Theorem R10. A person's rows are counted over all parts. A weight belongs to a
        row by its place, so that rows must keep their order, too.
        """
        persons.check_length(self.counted())
        return self._copy(_weights=persons.weights_of_all)

    def check_readable_again(self) -> None:
        """Raise if only one sum is possible."""
        if self.is_read_once:
            raise ValueError(_READ_AGAIN)

    def check_order(self, rule: str = "groups must be None", given: str = "ids") -> None:
        """Raise if rows may come in another order in another pass, with what this forbids."""
        if isinstance(self._carrier, OnSpark):
            raise TypeError(_NO_ORDER.format(rule, given))

    @property
    def has_weights(self) -> bool:
        """Whether functions of `total` get weights of rows."""
        return self._weights is not None

    def _task_of(self, function: Callable[..., Any]) -> Callable[[int], Task]:
        """Return the task of each part, of which it gets the weights."""
        form, steps = self._carrier.form, tuple(step.transform for step in self._steps)
        n_parts = max(len(self._carrier.parts), 1)
        chosen: Sequence[Any] = [None] * n_parts
        weights: Sequence[Any] = [None] * n_parts
        # Spark's partitions have one task, without what belongs to a row by its place.
        sizes = [self._carrier.sizes.get(number, 0) for number in range(n_parts)]
        if self._chosen is not None:
            chosen = np.split(self._chosen, np.cumsum(sizes)[:-1])
            sizes = [int(np.count_nonzero(each)) for each in chosen]
        if self._weights is not None:
            weights = np.split(self._weights, np.cumsum(sizes)[:-1])
        return lambda number: Task(function, form, steps, chosen[number], weights[number])

    def total(self, function: Callable[..., Any]) -> Any:
        """Return the sum of a function over all rows, each of which counts exactly once.

        Parameters
        ----------
        function : callable
            From a chunk of rows and its targets, and their weights if there are any, to its sum,
            an object with an exact ``+``. It holds the public state that it needs, and must treat
            each row separately.

        Returns
        -------
        object

        Notes
        -----
        Theorem R10.
        """
        carrier = self._carrier
        if carrier.sizes:
            self.check_readable_again()
        with _about_parts():
            found = _checked_total(carrier, self._task_of(function), self._orders)
        nothing = () if self._weights is None else (self._weights[:0],)
        return function(*self.form, *nothing) if found is None else found

    def kept(self, function: Callable[..., Any]) -> KeptParts:
        """Return what a function makes of each chunk, kept where the chunk lies.

        Parameters
        ----------
        function : callable
            As in `total`, but it may return any object.

        Returns
        -------
        KeptParts
        """
        self.check_readable_again()
        empty = function(*self.form)
        task_of = self._task_of(partial(_listed, function))
        with _about_parts():
            return KeptParts(_asked(self._carrier.keep, task_of), empty, self._orders)

    def gathered(
        self, records: NDArray[np.int64], read: Callable[[Any, Any], tuple[Any, ...]]
    ) -> tuple[Any, ...]:
        """Return what a function makes of some rows and targets, in this process.

        Parameters
        ----------
        records : ndarray of int
            Different numbers of rows in the order of the parts, increasing.
        read : callable
            From a chunk of rows and its targets to arrays with an entry for each row, or None. It
            must treat each row separately.

        Returns
        -------
        tuple of arrays
            With an entry for each of the records, in their order.

        Notes
        -----
        Theorem R10. Each row brings its number, so the parts do not matter.
        """
        numbered = self.take(records)._copy(_weights=records)
        columns = zip(*numbered.total(partial(_numbered, read)), strict=True)
        places = [np.searchsorted(records, numbers) for numbers in next(columns)]
        return tuple(_in_places(records.size, places, found) for found in columns)

    def of_batches(
        self, batches: Sequence[Any], read: Callable[[Any, Any], tuple[Any, ...]]
    ) -> tuple[tuple[Any, ...], list[Any]]:
        """Return what a function makes of the rows of some batches, and the places of each batch.

        Parameters
        ----------
        batches : sequence of ndarray of int or slice
            Numbers of rows; a slice stands for all rows.
        read : callable
            As in `gathered`.

        Notes
        -----
        Theorem R10. One pass over the parts serves for all of these batches.
        """
        if any(isinstance(batch, slice) for batch in batches):
            return self.gathered(np.arange(self.counted()), read), list(batches)
        records, places = np.unique(np.concatenate(batches), return_inverse=True)
        ends = np.cumsum([batch.size for batch in batches])[:-1]
        return self.gathered(records, read), np.split(places, ends)

    def counted(self) -> int:
        """Return the number of rows; if it is unknown, a pass counts them."""
        if self.n_samples is None:
            self.total(_nothing)
        return self.n_samples or 0

    def size_of_fit(self, n_public: int | None) -> int:
        """Return the public number of records, which must not be 0 if it is that of the rows."""
        if n_public is not None:
            return n_public
        size = self.counted()
        check_has_records(size)
        return size


def without_secrets(estimator: Any) -> Any:
    """Return a copy for the workers, which holds neither seeds nor ledgers.

    Notes
    -----
    Theorem R10.
    """
    if type(estimator) in (list, tuple):
        return type(estimator)(map(without_secrets, estimator))
    if not isinstance(estimator, BaseEstimator):
        return estimator
    bare = copy.copy(estimator)
    for name, value in vars(bare).items():
        is_secret = name in ("random_state", "ledger", "privacy_")
        vars(bare)[name] = None if is_secret else without_secrets(value)
    return bare


class KeptParts:
    """Objects that were made of the chunks of rows in parts, and that stay where these lie.

    Parameters
    ----------
    carrier : object
        Where the objects lie.
    empty : object
        The object of a chunk without rows.
    orders : dict
        Digests of the parts, by their numbers.
    """

    def __init__(
        self, carrier: InProcess | OnCluster | KeptOnSpark, empty: Any, orders: dict[int, bytes]
    ) -> None:
        self._carrier, self._empty, self._orders = carrier, empty, orders

    def total(self, function: Callable[[Any], Any]) -> Any:
        """Return the sum of a function over all objects, each of which counts exactly once.

        Notes
        -----
        Theorem R10.
        """
        with _about_parts():
            found = _checked_total(self._carrier, lambda number: KeptTask(function), self._orders)
        return function(self._empty) if found is None else found

    def mapped(self, function: Callable[[Any], Any]) -> KeptParts:
        """Return what a function makes of each object, where the object lies."""
        task = KeptTask(partial(_listed, function))
        with _about_parts():
            kept = _asked(self._carrier.keep, lambda number: task)
        return KeptParts(kept, function(self._empty), self._orders)


def _checked_total(carrier: Any, task_of: Callable[[int], Any], orders: dict[int, bytes]) -> Any:
    """Return the sum of tasks over all parts; raise if a part is missing, or has changed.

    The first pass fills `orders`, with which later ones are compared.
    """
    found = _asked(carrier.total, task_of)
    if found.failure is not None:
        raise found.failure
    if found.sizes.keys() != set(range(len(carrier.parts))):
        raise RuntimeError("each part of X must be counted; got a sum without one of them.")
    for number, size in carrier.sizes.items():
        if found.sizes[number] != size:
            raise ValueError(f"{_CHANGED} This is part {number} of X.")
    for number, order in found.orders.items():
        if orders.setdefault(number, order) != order:
            raise ValueError(f"{_REORDERED} This is part {number} of X.")
    carrier.sizes = dict(found.sizes)
    return found.value


def _listed(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    return [function(*arguments)]


def _numbered(read: Any, rows: Any, targets: Any, numbers: NDArray[np.int64]) -> list[Any]:
    return [(numbers, *read(rows, targets))]


def _in_places(size: int, places: list[NDArray[np.intp]], chunks: tuple[Any, ...]) -> Any:
    """Return an array of the entries of chunks, each of which is put into its place."""
    if chunks[0] is None:
        return None
    dtype = functools.reduce(np.promote_types, (chunk.dtype for chunk in chunks))
    made = np.zeros((size, *chunks[0].shape[1:]), dtype)
    for place, chunk in zip(places, chunks, strict=True):
        made[place] = chunk
    return made


def _nothing(rows: Any, targets: Any) -> int:
    return 0


@contextmanager
def _about_parts() -> Iterator[None]:
    """Mark errors as being about parts."""
    try:
        yield
    except Exception as error:
        vars(error)[_OF_PARTS] = True
        raise


def is_about_parts(error: BaseException) -> bool:
    """Return whether an error is about rows in parts, so that no record decides it."""
    # Theorem R11: a search of rows in parts divides and scores them as those of a table.
    return getattr(error, _OF_PARTS, False)


def _slice(X: Any, y: Any, part: slice) -> list[Chunk]:
    return [(X[part], None if y is None else y[part])]


def is_dask(X: Any) -> bool:
    """Return whether an object is a lazy one of dask, which a user then has imported."""
    return "dask" in sys.modules and hasattr(X, "__dask_graph__")


def has_images(X: Any) -> bool:
    """Return whether the rows of an array have several axes, as only nets take them."""
    axes = getattr(X, "ndim", None)
    return isinstance(axes, int) and axes > 2


def _lengths(X: Any) -> tuple[int, ...] | None:
    """Return the lengths of the blocks of a dask array, or None if they are not known."""
    sizes = X.chunks[0] if hasattr(X, "chunks") else (math.nan,)
    return None if any(math.isnan(size) for size in sizes) else tuple(map(int, sizes))


def _blocks(X: Any, *, is_alone: bool = True) -> list[Any]:
    """Return the blocks of rows of a dask object, each of which is lazy."""
    # Theorem R10: in two graphs that are optimized separately, a common source has two names. Dask
    # would then compute it twice, perhaps in two orders.
    found = X.to_delayed(optimize_graph=is_alone)
    return list(np.asarray(found, dtype=object).reshape(-1))


def _empty(X: Any) -> Any:
    """Return an array or table without rows, of the type of a dask object."""
    return np.empty((0, *X.shape[1:]), X.dtype) if hasattr(X, "chunks") else X._meta[:0]


def _dask_targets(y: Any, lengths: tuple[int, ...] | None, n_blocks: int) -> tuple[list[Any], Any]:
    """Return the targets of each block, and targets without any entry."""
    if y is None:
        return [None] * n_blocks, None
    is_lazy = is_dask(y) and hasattr(y, "to_delayed")
    y = y if is_lazy else _targets(y)
    own = _lengths(y) if is_lazy else y.shape[:1]
    if lengths is not None and own is not None and sum(own) != sum(lengths):
        raise ValueError(f"y must be of shape {(sum(lengths),)}; got {np.shape(y)}.")
    if not is_lazy:
        if lengths is None:
            raise TypeError(
                "y must be a dask object, since the lengths of the blocks of X are not known; "
                f"got {shown(y)}."
            )
        return np.split(y, np.cumsum(lengths)[:-1]), y[:0]
    if lengths is not None and own is not None:
        y = y.rechunk({0: lengths})
    if hasattr(y, "chunks") and y.ndim == 2:
        y = y.rechunk({1: -1})
    found = _blocks(y, is_alone=False)
    if len(found) != n_blocks:
        raise ValueError(f"y must have the {n_blocks} blocks of X; got {len(found)}.")
    return found, _targets(_empty(y))


# Parquet and other files of Arrow --------------------------------------------------------------


def arrow_parts(paths: Any, target: str | None) -> tuple[list[Part], Chunk, dict[int, int]]:
    """Return the parts of files, tables without rows as they give them, and numbers of rows."""
    with installed("from_parquet needs", "parquet"):
        datasets = importlib.import_module("pyarrow.dataset")
    if not isinstance(paths, datasets.Dataset):
        files = _files(paths)
        paths = datasets.dataset([str(path) for path in files], format="parquet")
    schema = paths.schema
    _check_target(schema, target)
    parts: list[Part] = []
    sizes: dict[int, int] = {}
    for file in paths.get_fragments():
        _check_schema(schema, file.physical_schema, shown_path(file.path))
        is_parquet = hasattr(file, "split_by_row_group")
        for group in file.split_by_row_group() if is_parquet else [file]:
            # `count_rows` of a row group is that of its file.
            sizes[len(parts)] = (
                sum(each.num_rows for each in group.row_groups)
                if is_parquet
                else group.count_rows()
            )
            parts.append(partial(_chunks_of_group, group, schema, target, _stamp(file.path)))
    if not parts:
        raise ValueError("paths must name at least one file; got none.")
    return parts, _arrow_form(schema, target), sizes


def _arrow_form(schema: Any, target: str | None) -> Chunk:
    """Return rows and targets without any row, whose types follow from those of the columns."""
    batch = importlib.import_module("pyarrow").RecordBatch.from_pylist([], schema=schema)
    rows, targets = arrow_chunk(batch, target)
    is_text = target is not None and str(schema.field(target).type) in ("string", "large_string")
    return rows, targets.astype(str) if is_text else targets


def _check_target(schema: Any, target: str | None) -> None:
    if target is not None and target not in schema.names:
        near = nearest_name(target, schema.names)
        hint = f" Did you mean {near}?" if near else ""
        raise ValueError(f"target must be a column of the data; got {shown(target)}.{hint}")


def _files(paths: Any) -> list[Path]:
    """Return the files of paths, of which a folder means those inside; or raise."""
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(given, list | tuple):
        raise TypeError(f"paths must be names of files; got {shown(paths)}.")
    if not given:
        raise ValueError("paths must name at least one file; got none.")
    found: list[Path] = []
    for path in map(Path, given):
        found += sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    for place, path in enumerate(found):
        if not path.is_file():
            raise FileNotFoundError(
                f"paths must name files; got {shown_path(path)} as file {place}, which is missing."
            )
    if not found:
        raise ValueError("paths must name at least one file; got folders without *.parquet.")
    return found


def _check_schema(wanted: Any, found: Any, place: str) -> None:
    types = {field.name: field.type for field in found}
    if types != {field.name: field.type for field in wanted}:
        raise ValueError(
            f"each file must have the columns and types of the first one; got others in {place}."
        )


def _stamp(path: str) -> tuple[int, int] | None:
    """Return what shows that a file was changed; None if it is not on this machine."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _chunks_of_group(
    group: Any, schema: Any, target: str | None, stamp: tuple[int, int] | None
) -> Iterator[Chunk]:
    """Iterate over chunks of a row group of a file, or of another fragment of an Arrow dataset.

    Raise if the file was changed or removed since it had the stamp.
    """
    _check_unchanged(group, stamp)
    batches = group.to_batches(
        schema=schema, batch_size=_ROWS, batch_readahead=1, fragment_readahead=1
    )
    for batch in batches:
        yield arrow_chunk(batch, target)
    _check_unchanged(group, stamp)


def _check_unchanged(group: Any, stamp: tuple[int, int] | None) -> None:
    if stamp is not None and _stamp(group.path) != stamp:
        raise ChangedError("X must be the same in every pass; got a file that was changed.")


def arrow_chunk(batch: Any, target: str | None) -> Chunk:
    """Return the rows and targets of a batch of Arrow, as an array or a DataFrame."""
    targets = None
    if target is not None:
        targets = _targets(_column(batch.column(target)))
        batch = batch.drop_columns([target])
    kinds = {str(field.type) for field in batch.schema}
    if not kinds <= _ARROW_NUMBERS:
        return batch.to_pandas(), targets
    dtype = np.float32 if kinds == {"float"} else np.float64
    cells = np.empty((batch.num_columns, batch.num_rows), dtype=dtype)
    for place, column in enumerate(batch.columns):
        cells[place] = _column(column)
    return cells.T, targets


_ARROW_NUMBERS = {"float", "double", "halffloat"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def _column(column: Any) -> Any:
    """Return a column of Arrow as an array; missing numbers become NaN."""
    if str(column.type).startswith("dictionary"):
        column = column.dictionary_decode()
    return column.to_numpy(zero_copy_only=False)


# Fits that accept them
# ----------------------------------------------------------------------------


def with_parts(
    estimator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a fit, in which rows that lie in parts are `PrivateRows`.

    Raises
    ------
    TypeError
        If the estimator does not take them; before anything is read or spent.
    """
    X = args[0] if args else kwargs.get("X")
    if not (isinstance(X, PrivateRows | np.memmap | Iterator) or is_dask(X)) or has_images(X):
        return _computed(args, kwargs)
    if isinstance(X, np.memmap) and is_classifier(estimator):
        # It makes many passes, which are faster over one array than over its parts.
        return args, kwargs
    y = args[1] if len(args) > 1 else kwargs.get("y")
    has_groups = names_persons(kwargs)
    takes_groups = getattr(estimator, "_takes_persons_in_parts", False)
    check_in_memory(estimator, X)
    if isinstance(X, PrivateRows):
        check_alone(y, has_groups and not takes_groups)
    elif refusal_of(estimator, PARTS) is not None or (has_groups and not takes_groups):
        return _computed(args, kwargs)
    rows = rows_in_parts(X, y)
    if has_groups and rows.is_read_once:
        raise TypeError(
            "X must be a table in memory, or readable again, if groups are given; got an "
            "iterator. Use PrivateRows.from_chunks with a function that makes it."
        )
    if has_groups:
        rows.check_order()
    _check_form(estimator, rows)
    return (rows, *((None,) * len(args[1:2])), *args[2:]), {
        key: value for key, value in kwargs.items() if key not in ("X", "y")
    }


def _computed(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return tuple(map(computed, args)), {name: computed(value) for name, value in kwargs.items()}


def computed(value: Any) -> Any:
    """Return a lazy object of dask as one in memory, and other objects as they are."""
    return _asked(value.compute) if is_dask(value) else value


def rows_in_parts(X: Any, y: Any) -> Any:
    """Return rows that lie in parts as `PrivateRows`, and other rows as they are."""
    if isinstance(X, Iterator):
        if y is not None:
            raise ValueError(
                "y must be None with an iterator of chunks, which brings its targets."
            )
        return PrivateRows.from_chunks(X)
    if is_dask(X):
        return PrivateRows.from_dask(X, y)
    return PrivateRows.from_arrays(X, y) if isinstance(X, np.memmap) else X


def check_in_memory(estimator: Any, X: Any) -> None:
    """Raise if rows lie in parts, and an estimator takes only a table in memory."""
    words = refusal_of(estimator, PARTS)
    if isinstance(X, PrivateRows) and words is not None:
        raise TypeError(
            f"X must be a table in memory for {type(estimator).__name__}; got PrivateRows. "
            f"{ADVICE[PARTS] if words == OWN_USE else words}"
        )


def check_alone(y: Any, has_groups: bool) -> None:
    """Raise if a fit got targets or groups in addition to `PrivateRows`."""
    if y is not None:
        raise ValueError("y must be None with PrivateRows, which bring their targets.")
    if has_groups:
        raise TypeError(
            "groups must be None with PrivateRows, since the rows of a person may be in different "
            "parts; got ids. DPRidge, AdaSSPLinearRegression, OutputPerturbationLinearRegression "
            "and boosting take both; give others a table in memory."
        )


def _check_form(estimator: Any, rows: PrivateRows) -> None:
    """Raise if it shows before a row is read that an estimator cannot be fitted."""
    if is_classifier(estimator) or getattr(estimator, "_reads_again", False):
        rows.check_readable_again()
    known = rows._carrier.known_form
    if known is not None:
        _check_given(estimator, known[1])
        has_labels, labels = is_classifier(estimator), getattr(estimator, "classes", None)
        if has_labels or is_regressor(estimator):
            check_target_type(rows.made_up_target, labels, is_classifier=has_labels)


def _check_given(estimator: Any, targets: Any) -> None:
    if targets is None and get_tags(estimator).target_tags.required:
        raise ValueError(
            f"y must be given with rows in parts for {type(estimator).__name__}, which requires y "
            "to be passed; got None."
        )


def read_rows(rows: Any) -> Any:
    """Return the rows of a chunk as `validate_rows` does; names were compared before."""
    return validate_rows(BaseEstimator(), rows, min_samples=0)[0]
