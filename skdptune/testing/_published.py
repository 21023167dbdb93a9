"""Seeded fits to neighbouring data sets, and everything that they publish."""

from __future__ import annotations

import contextlib
import copy
import random
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from skdptune._compat import safe_indexing
from skdptune.accounting import PrivacyProfile
from skdptune.base._shared import (
    expected_refits,
    nested_estimators,
    own_parameters,
    persons_of,
    set_seeds,
    table_shape,
)
from skdptune.testing._replay_result import FIT

_NUMBERS = "biuf"
_LARGEST_INTEGER = 2**53
_DEEPEST = 24
# Their state either does not depend on data or cannot be read.
_NAMED = (type, ModuleType, FunctionType, BuiltinFunctionType)
_RESPONSES = ("decision_function", "predict_proba", "predict", "transform", "score_samples")


class Whole:
    """A value that can only be compared for equality, and is never shown."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        """Return whether the values have the same type and are equal."""
        if not isinstance(other, Whole) or type(self.value) is not type(other.value):
            return False
        try:
            return self.value is other.value or bool(self.value == other.value)
        except Exception:
            # Values that cannot be compared count as different.
            return False

    __hash__ = None  # type: ignore[assignment]


# Numbers become arrays of doubles; every other value is compared as a whole.
Leaf = NDArray[np.float64] | Whole
Leaves = dict[str, Leaf]

MISSING = Whole("missing")


def same(one: Leaf, other: Leaf) -> bool:
    """Return whether two leaves are equal; NaN equals NaN."""
    if isinstance(one, Whole) or isinstance(other, Whole):
        return isinstance(one, Whole) and one == other
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=True)


def published(fitted: Any, rows: Any) -> Leaves:
    """Return everything that a fitted object contains, and its responses to some rows.

    All of it is in a pickle of the object, including private attributes. Keys are places: the path
    from the object to the value, such as ``"best_estimator_.coef_"``. Entries of lists and
    dictionaries are numbered, because the keys of a dictionary may be data.
    """
    walk = _Walk()
    walk.visit(fitted, "")
    for name in _RESPONSES:
        if callable(method := getattr(fitted, name, None)):
            walk.visit(_answer(method, rows), f"{name}(X)")
    return walk.leaves


def _answer(method: Any, rows: Any) -> Any:
    try:
        return method(rows)
    except Exception as problem:
        # An error is a response, too, and one record may cause it.
        return f"raises {type(problem).__name__}"


class _Walk:
    """A traversal of nested objects that visits each object once."""

    def __init__(self) -> None:
        self.leaves: Leaves = {}
        # Keep temporary objects alive, so that no other object gets the same id.
        self._met: dict[int, Any] = {}

    def visit(self, thing: Any, place: str, depth: int = 0) -> None:
        """Add the leaves of an object."""
        if thing is None or isinstance(thing, str | bytes | bool | PrivacyProfile):
            self.leaves[place] = Whole(thing)
        elif isinstance(thing, int | float | complex | np.generic):
            self._add_number(thing, place)
        elif isinstance(thing, _NAMED):
            self.leaves[place] = Whole(getattr(thing, "__qualname__", thing.__name__))
        elif depth > _DEEPEST:
            self.leaves[place] = Whole(type(thing).__qualname__)
        elif id(thing) not in self._met:
            self._met[id(thing)] = thing
            for name, part in _parts(thing):
                self.visit(part, _joined(place, name), depth + 1)
            if isinstance(thing, np.ndarray) and thing.dtype.kind in _NUMBERS:
                self.leaves[place] = np.asarray(thing).astype(np.float64).ravel()

    def _add_number(self, number: Any, place: str) -> None:
        is_large = isinstance(number, int) and abs(number) > _LARGEST_INTEGER
        kind = np.asarray(number).dtype.kind
        if is_large or kind not in _NUMBERS:
            self.leaves[place] = Whole(number)
        else:
            self.leaves[place] = np.array([number], dtype=np.float64)


def _joined(place: str, name: str) -> str:
    if not place:
        return name.strip()
    is_attribute = name and not name.startswith(("[", " "))
    return f"{place}.{name}" if is_attribute else place + name


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the parts of an object, with names that reveal nothing about data."""
    if isinstance(thing, np.ndarray):
        yield from _parts_of_array(np.asarray(thing))
        yield from _attributes(thing)
    elif sparse.issparse(thing):
        yield " (shape)", thing.shape
        yield " (entries)", thing.tocsr().data
        yield " (columns)", thing.tocsr().indices
        yield " (rows)", thing.tocsr().indptr
    elif hasattr(thing, "detach") and hasattr(thing, "numpy"):
        yield "", thing.detach().cpu().numpy()
    elif hasattr(thing, "to_numpy") and hasattr(thing, "index"):
        yield " (names)", list(getattr(thing, "columns", ())) + list(thing.index)
        yield " (values)", thing.to_numpy()
    elif isinstance(thing, Mapping | set | frozenset | list | tuple):
        yield from _parts_of_container(thing)
        yield from _attributes(thing)
    else:
        yield from _state(thing)


def _parts_of_container(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, Mapping):
        yield " (keys)", list(thing)
        yield from _numbered(thing.values())
    else:
        yield " (length)", len(thing)
        is_set = isinstance(thing, set | frozenset)
        yield from _numbered(sorted(thing, key=repr) if is_set else thing)


def _parts_of_array(array: NDArray[Any]) -> Iterator[tuple[str, Any]]:
    yield " (shape)", f"{array.dtype.kind} {array.shape}"
    if array.dtype.names is not None:
        for place, name in enumerate(array.dtype.names):
            yield f"[{place}]", np.ascontiguousarray(array[name])
    elif array.dtype.kind == "c":
        yield "", np.stack([array.real, array.imag])
    elif array.dtype.kind not in _NUMBERS:
        yield from _numbered(array.ravel().tolist())


def _numbered(things: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over entries by position; a collection of numbers becomes one array."""
    entries = list(things)
    if len(entries) > 1 and all(type(entry) in (int, float) for entry in entries):
        if all(abs(entry) <= _LARGEST_INTEGER for entry in entries):
            yield "", np.array(entries, dtype=np.float64)
            return
    for place, entry in enumerate(entries):
        yield f"[{place}]", entry


def _state(thing: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over an object's attributes, or over the content of its pickle."""
    yield " (type)", type(thing)
    attributes = list(_attributes(thing))
    if attributes:
        yield from attributes
        return
    try:
        reduced = thing.__reduce_ex__(4)
    except Exception:
        return
    if isinstance(reduced, tuple):
        # The arguments that rebuild the object, its state and its entries.
        yield from (
            (f"[{place}]", list(part) if isinstance(part, Iterator) else part)
            for place, part in enumerate(reduced[1:])
        )


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the attributes stored in the object itself."""
    held = getattr(thing, "__dict__", None)
    if isinstance(held, dict):
        yield from ((str(name), value) for name, value in held.items())
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
                yield name, getattr(thing, name)


_WARNINGS = "warnings"
_RETURNED = "returns"
# Number of rows of the data whose predictions are compared, in addition to the record.
_PROBES = 15


class Data(NamedTuple):
    """Records, with targets or None, and with the person of each row or None."""

    X: Any
    y: Any
    groups: Any = None

    def fit(self, estimator: Any) -> Any:
        """Fit an estimator to a copy of the data, because a fit may modify its arguments."""
        arguments = copy.deepcopy((self.X,) if self.y is None else (self.X, self.y))
        if self.groups is None:
            return estimator.fit(*arguments)
        return estimator.fit(*arguments, groups=self.groups.copy())


@dataclass(frozen=True)
class Neighbours:
    """Data sets that differ in one record, or in one person with all rows.

    Attributes
    ----------
    without, added, replaced : Data
        The given data; the data with one record added; the same with a copy of another record
        instead of the added one.
    constant : Data
        As many records as in `added`, all with the same row.
    rows : array-like
        Rows for which predictions are compared.
    n_samples, n_features : int
        Size of `without`: its number of records or persons, and of columns.
    """

    without: Data
    added: Data
    replaced: Data
    constant: Data
    rows: Any
    n_samples: int
    n_features: int


def neighbours(X: Any, y: Any, record: Any, groups: Any = None) -> Neighbours:
    """Create the data sets to compare.

    Parameters
    ----------
    X, y : array-like
        Records and targets; targets may be None.
    record : array-like, or pair of a row and a target
        The record to add: a pair if `y` is given. With `groups`, all rows and targets of a person.
    groups : array-like, optional
        The person of each row.
    """
    n_rows, n_features = _sizes(X)
    persons = persons_of(groups, X)
    if persons is None:
        given, targets = _checked_record(X, y, record)
    else:
        if persons.kept is not None:
            raise ValueError("groups must hold a proper id for each row; got rows without one.")
        given, targets = _checked_person(y, record, n_features)
    rows = with_rows(X, given)
    labels = None if y is None else with_rows(y, targets)
    other = 0 if labels is None else _unlike_last(labels)
    first, copied, size = list(range(n_rows)), [other], n_rows
    codes = added = replaced = None
    if persons is not None:
        codes, size = persons.codes, persons.size
        copied = np.flatnonzero(codes == codes[other]).tolist()
        added = np.append(codes, np.full(len(given), size))
        replaced = np.append(codes, np.full(len(copied), size))
    whole = Data(rows, labels, added)
    return Neighbours(
        _taken(whole, first, codes),
        whole,
        _taken(whole, [*first, *copied], replaced),
        Data(_take(rows, [other] * (n_rows + len(given))), labels, added),
        _take(rows, [*first[:_PROBES], n_rows]),
        size,
        n_features,
    )


def _checked_record(X: Any, y: Any, record: Any) -> tuple[list[Any], list[Any]]:
    """Return a record as a list of one row, and one of its target."""
    row, target = record, None
    if y is not None:
        if not isinstance(record, tuple) or len(record) != 2:
            raise ValueError(
                "record must be a pair (row, target), since y is given; got another kind."
            )
        row, target = record
    if not sparse.issparse(X) and np.shape(row) != tuple(table_shape(X)[1:]):
        raise ValueError(
            f"record must have the shape of a row of X, {tuple(table_shape(X)[1:])}; got shape "
            f"{np.shape(row)}."
        )
    return [row], [target]


def _checked_person(y: Any, person: Any, n_features: int) -> tuple[Any, Any]:
    """Return the rows and the targets of a person."""
    given, targets = person if y is not None and isinstance(person, tuple) else (person, None)
    shape = np.shape(given)
    if (targets is None) != (y is None) or len(shape) != 2 or shape[1] != n_features:
        raise ValueError(
            f"record must be a table of a person's rows, with {n_features} columns"
            f"{'' if y is None else ', and a list of their targets'}; got shape {shape}."
        )
    if targets is not None and len(targets) != shape[0]:
        raise ValueError("record must have as many targets as rows; got different numbers.")
    return given, targets


@expected_refits()
def fit(estimator: Any, data: Data, rows: Any, seed: np.random.SeedSequence) -> Leaves:
    """Fit a copy of an estimator with a seed, and return everything that it publishes.

    A failed fit publishes the type of its error. Messages are compared, but never shown.
    """
    made = clone(estimator)
    set_seeds(made, seed)
    with global_generators(seed), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = data.fit(made)
        except Exception as problem:
            return {FIT: Whole(type(problem).__qualname__)}
        told = sorted((each.category.__name__, str(each.message)) for each in caught)
        leaves = published(fitted, rows)
    return {FIT: Whole(_RETURNED), _WARNINGS: Whole(told), **leaves}


def has_returned(leaves: Leaves) -> bool:
    """Return whether a fit finished without an error."""
    return leaves[FIT] == Whole(_RETURNED)


def error_of(leaves: Leaves) -> str:
    """Return the type of the error that a fit raised."""
    end = leaves[FIT]
    return str(end.value) if isinstance(end, Whole) else ""


def with_public_size(estimator: Any, size: int | None) -> Any:
    """Return a copy with ``n_public`` set, wherever it is a parameter without a value."""
    made = clone(estimator)
    for prefix, part in list(nested_estimators(made)):
        if size is not None and own_parameters(part).get("n_public", 0) is None:
            made.set_params(**{f"{prefix}n_public": size})
    return made


@contextlib.contextmanager
def global_generators(seed: np.random.SeedSequence) -> Iterator[None]:
    """Temporarily seed the global generators that estimators may use without ``random_state``."""
    number = int(seed.generate_state(1)[0])
    torch = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state(), torch and torch.get_rng_state()
    random.seed(number)
    np.random.seed(number)
    if torch is not None:
        torch.manual_seed(number)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        if torch is not None:
            torch.set_rng_state(before[2])


def _sizes(X: Any) -> tuple[int, int]:
    shape = table_shape(X)
    if len(shape) < 2 or shape[0] < 2:
        raise ValueError(
            f"X must be a table of at least two records; got shape {tuple(shape)}. Some hundred "
            "are enough."
        )
    return int(shape[0]), int(shape[1])


def _unlike_last(targets: Any) -> int:
    """Return the position of a record whose target differs from the last one, or 0."""
    values = targets.tolist() if hasattr(targets, "tolist") else list(targets)
    return next((place for place, value in enumerate(values) if value != values[-1]), 0)


def _taken(data: Data, places: list[int], groups: Any) -> Data:
    y = None if data.y is None else _take(data.y, places)
    return Data(_take(data.X, places), y, groups)


def _take(rows: Any, places: list[int]) -> Any:
    taken = safe_indexing(rows, np.asarray(places))
    return taken.reset_index(drop=True) if hasattr(taken, "iloc") else taken


def with_rows(rows: Any, more: Any) -> Any:
    """Return a table or a column with more entries, in its own format."""
    if hasattr(rows, "columns"):
        longer = _take(rows, [*range(len(rows)), *[0] * len(more)])
        entries = more.to_numpy(dtype=object) if hasattr(more, "to_numpy") else more
        columns = zip(*map(list, entries), strict=True)
        for name, column in zip(rows.columns, columns, strict=True):
            longer[name] = with_rows(rows[name], column)
        return longer
    if hasattr(rows, "iloc"):
        return _longer_column(rows, more)
    if sparse.issparse(rows):
        return sparse.vstack([rows, *map(sparse.csr_matrix, more)]).tocsr()
    if not hasattr(rows, "shape"):
        return [*rows, *more]
    array, last = np.asarray(rows), np.asarray(more)
    if (array.dtype.kind in _NUMBERS) != (last.dtype.kind in _NUMBERS):
        array, last = array.astype(object), last.astype(object)
    elif array.dtype.kind == "f" or (last.astype(array.dtype) == last).all():
        last = last.astype(array.dtype)
    return np.concatenate([array, last])


def _longer_column(column: Any, entries: Any) -> Any:
    """Return a pandas column with more entries, with its own dtype if that can hold them."""
    longer = type(column)([*column, *entries], name=column.name)
    try:
        kept = longer.astype(column.dtype)
        return kept if (kept == longer).all() else longer
    except (TypeError, ValueError):
        return longer
