"""All that a fitted object shows, taken apart into numbers and other values with their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdptune.accounting import PrivacyProfile

_NUMBERS = "biuf"
_LARGEST_INTEGER = 2**53
_DEEPEST = 24
# Their own state says nothing about data, or cannot be read.
_NAMED = (type, ModuleType, FunctionType, BuiltinFunctionType)
_RESPONSES = ("decision_function", "predict_proba", "predict", "transform", "score_samples")


class Whole:
    """A value that is equal to another one or not, and is never shown."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        """Return whether the values are of one type and equal."""
        if not isinstance(other, Whole) or type(self.value) is not type(other.value):
            return False
        try:
            return self.value is other.value or bool(self.value == other.value)
        except Exception:
            # Values that refuse to be compared count as different.
            return False

    __hash__ = None  # type: ignore[assignment]


# Numbers are arrays of doubles; all else is compared as a whole.
Leaf = NDArray[np.float64] | Whole
Leaves = dict[str, Leaf]

MISSING = Whole("missing")


def same(one: Leaf, other: Leaf) -> bool:
    """Return whether two leaves are equal, entries that are no numbers included."""
    if isinstance(one, Whole) or isinstance(other, Whole):
        return isinstance(one, Whole) and one == other
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=True)


def published(fitted: Any, rows: Any) -> Leaves:
    """Return everything that a fitted object holds, and what it makes of some rows, by its place.

    All of it is in a pickle of the object, private names included. The place is the way from the
    object to the value, such as ``"best_estimator_.coef_"``; entries of lists and dictionaries are
    numbered, since the keys of a dictionary may be somebody's data.
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
        # A failure is an answer, too, which one record may decide on.
        return f"raises {type(problem).__name__}"


class _Walk:
    """A walk through objects, that meets each of them once."""

    def __init__(self) -> None:
        self.leaves: Leaves = {}
        # Objects made on the way are kept, so that no other gets the identity of one of them.
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
    """Iterate over what an object consists of, with names that tell nothing about data."""
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
    """Iterate over entries by their places; numbers alone make one array."""
    entries = list(things)
    if len(entries) > 1 and all(type(entry) in (int, float) for entry in entries):
        if all(abs(entry) <= _LARGEST_INTEGER for entry in entries):
            yield "", np.array(entries, dtype=np.float64)
            return
    for place, entry in enumerate(entries):
        yield f"[{place}]", entry


def _state(thing: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the attributes of an object, or over what a pickle of it would hold."""
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
        # What rebuilds the object, its arguments, state and entries.
        yield from ((f"[{place}]", _list_of(part)) for place, part in enumerate(reduced[1:]))


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the attributes that an object holds itself."""
    held = getattr(thing, "__dict__", None)
    if isinstance(held, dict):
        yield from ((str(name), value) for name, value in held.items())
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
                yield name, getattr(thing, name)


def _list_of(part: Any) -> Any:
    """Return an iterator as a list, and all else as it is."""
    return list(part) if isinstance(part, Iterator) else part
