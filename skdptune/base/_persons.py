"""Persons: which rows belong together, and by how much each row counts.

**Guarantee.** A row belongs to the person whose id it has, and no other row decides which person
that is. Every person counts by the mean of their rows. So one person with all of their rows moves
a sum of bounded contributions by no more than one bounded contribution (Theorem P14).
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from skdptune._compat import number_of_samples, routing_is_enabled
from skdptune._formatting import shown
from skdptune.base._parameters import nested_estimators
from skdptune.base._reading import LARGEST_INTEGER, Mask, Table, is_of_words, unmasked
from skdptune.ledger._shared import BY_PERSON
from skdptune.mechanisms._shared import UNIT, WHOLE, in_units

# Assumptions stated in reports, from Assumption P0.
PUBLIC_SIZE = "the number of records is public"
PUBLIC_PERSONS = "the number of persons is public, and the number of their rows is secret"
MEAN_OF_ROWS = (
    "each person counts by the mean of their rows, and a row without a proper id is left out"
)


@dataclass(frozen=True, eq=False, repr=False)
class Persons:
    """The person of each row. Nothing of it is published except the number of persons.

    Attributes
    ----------
    codes : ndarray of int
        For each row with a proper id, the number of its person: 0, 1, ... in the order of their
        first rows, so that ids can be renamed without an effect.
    counts : ndarray of int
        Number of rows of each person, improper rows included.
    kept : ndarray of bool or None
        Which of the given rows have a proper id; None means all.

    Notes
    -----
    Theorem P14.
    """

    codes: NDArray[np.intp]
    counts: NDArray[np.int64]
    kept: Mask | None = None

    @property
    def size(self) -> int:
        """Number of persons."""
        return self.counts.size

    @property
    def n_rows(self) -> int:
        """Number of rows, those without a proper id included; secret."""
        return self.codes.size if self.kept is None else self.kept.size

    def check_length(self, n_rows: int) -> None:
        """Raise unless there is an id for each row; their numbers are not shown."""
        if self.n_rows != n_rows:
            raise ValueError(
                "groups must be as long as X, with the id of a person for each row: inconsistent "
                "numbers of samples."
            )

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """Integer weight of each row: 2^30 over the number of its person's rows, cut down.

        The weights of a person's rows sum to at most 2^30; floats 1 / k could sum to more.
        """
        return (WHOLE // self.counts)[self.codes]

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Weight of each row in units of 2^30; those of a person sum to at most 1."""
        return self.weights / WHOLE

    @property
    def shares_of_all(self) -> NDArray[np.float64]:
        """Return by how much each given row counts: those of a person sum to at most 1.

        Notes
        -----
        Theorem Q1, Theorem R8, Theorem P14. Shares are cut to multiples of 2^-26, so that sums
        over up to 2^27 persons are exact in any order. A row without a proper id has the share 0.
        """
        return shares_of(self.weights_of_all)

    @property
    def weights_of_all(self) -> NDArray[np.int64]:
        """Integer weight of each given row; 0 without a proper id."""
        weights = np.zeros(self.n_rows, dtype=np.int64)
        weights[slice(None) if self.kept is None else self.kept] = self.weights
        return weights

    def select(self, values: Table) -> Table:
        """Return those of the given rows that have a proper id."""
        return values if self.kept is None else values[self.kept]

    def rows_of(self, persons: NDArray[np.intp] | slice) -> NDArray[np.intp] | slice:
        """Return the places of the rows of some persons, person by person."""
        if isinstance(persons, slice) or self.size == self.codes.size:
            return persons
        order, starts = self._places
        lengths = self.counts[persons]
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if ends.size else 0
        offsets = np.repeat(starts[persons] - (ends - lengths), lengths)
        return np.asarray(order[offsets + np.arange(total)])

    @cached_property
    def _places(self) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """The rows in the order of their persons, and where each person starts."""
        starts = np.cumsum(self.counts) - self.counts
        # Counting, which is faster than sorting.
        ones, places = np.ones(self.codes.size, dtype=np.int8), np.arange(self.codes.size)
        shape = self.size, self.codes.size
        order = sparse.csr_array((ones, (self.codes, places)), shape=shape).indices
        return order.astype(np.intp), starts

    def by_weight(self) -> Iterator[tuple[int, NDArray[np.intp] | slice]]:
        """Iterate over the different weights, and the places of the rows that have them."""
        return iter(self._by_weight)

    @cached_property
    def _by_weight(self) -> list[tuple[int, NDArray[np.intp] | slice]]:
        # Each pass over the rows needs them.
        if self.codes.size == 0:
            return [(WHOLE, slice(None))]
        is_sorted = (np.diff(self.weights) <= 0).all()
        order = np.arange(self.codes.size) if is_sorted else self.order_of_weights
        found = self.weights[order]
        ends = np.flatnonzero(np.diff(found, append=-1)) + 1
        return [
            (int(found[start]), slice(start, end) if is_sorted else order[start:end])
            for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
        ]

    @property
    def order_of_weights(self) -> NDArray[np.intp]:
        """The places of the rows by decreasing weight; rows of equal weight keep their order."""
        largest = int(self.counts.max(initial=0))
        # Short integers are sorted faster.
        counts = self.counts.astype(np.uint16) if largest < 2**16 else self.counts
        return np.argsort(counts[self.codes], kind="stable")

    def part(self, persons: NDArray[np.integer[Any]]) -> Persons:
        """Return some of the persons, for their rows in the order of `rows_of`."""
        counts = self.counts[persons]
        return Persons(np.repeat(np.arange(counts.size), counts), counts)

    def take(self, order: NDArray[np.intp]) -> Persons:
        """Return the same persons for the rows in another order."""
        return Persons(self.codes[order], self.counts)

    def means(self, units: Any) -> Any:
        """Return the mean of each person's numbers in [-1, 1], cut towards 0.

        Parameters
        ----------
        units : ndarray of shape (n_rows,) or (n_rows, n_values), or CSR array
            See `unit_sum`, which sums the result exactly.

        Notes
        -----
        Theorem P14, Theorem R1. Numbers are cut to multiples of 2^-26. Their sum over a person's
        rows is an integer in these units, and it is divided once. So no order of rows matters.
        """
        whole = in_units(units)
        if self.size == self.codes.size:
            return whole * UNIT
        order, starts = self._places
        parts = np.ones(order.size), order, np.append(starts, order.size)
        total = sparse.csr_array(parts, shape=(self.size, order.size)) @ whole
        # Integers, as are their quotients: rounded divisions cut as exact ones do.
        if sparse.issparse(total):
            total.data = np.trunc(total.data / np.repeat(self.counts, np.diff(total.indptr)))
        else:
            total = np.trunc((total.T / self.counts).T)
        return total * UNIT


def rows_by_weight(weights: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Iterate over the different weights above 0, and the places of the rows that have them."""
    order = np.argsort(weights, kind="stable")
    values, starts = np.unique(weights[order], return_index=True)
    for weight, places in zip(values.tolist(), np.split(order, starts[1:]), strict=False):
        if weight > 0:
            yield weight, places


def persons_of(groups: Any, X: Any, *, may_be_empty: bool = False) -> Persons | None:
    """Return the persons of rows, or None without ids.

    Parameters
    ----------
    groups : array-like of shape (n_rows,), Persons or None
        An id for each row: text, or a number below 2^53. The number 1, the float 1.0 and the text
        "1" are one id. A row whose id is missing or of another kind belongs to nobody, and is
        left out.
    X : array-like
        The rows; only their number is used.
    may_be_empty : bool, default=False
        Whether the number of persons may be zero, as in a random part of the data.

    Notes
    -----
    Theorem P14. The id of a row depends only on this row. Errors depend only on types and shapes.
    """
    if groups is None:
        return None
    persons = groups if isinstance(groups, Persons) else _read(groups)
    try:
        # Rows in parts may be counted later.
        n_rows = X.n_samples if hasattr(X, "counted") else number_of_samples(X)
    except TypeError:
        raise TypeError(
            "X must be a table in memory if groups are given, since the rows of a person may be "
            f"in different chunks; got {type(X).__name__}."
        ) from None
    if n_rows is not None:
        persons.check_length(n_rows)
    if persons.size == 0 and not may_be_empty:
        raise ValueError(
            "groups must hold the id of at least one person; got none. Ids are text, or whole "
            "numbers below 2^53: write longer ones as text. Rows with other ids are left out."
        )
    return persons


def _read(groups: Any) -> Persons:
    """Return the persons of an array-like of ids."""
    ids = _column_of(groups)
    if ids.dtype.kind in "iuf":
        # Also of integers: another row's missing id turns a column of integers into floats.
        proper = (ids > -LARGEST_INTEGER) & (ids < LARGEST_INTEGER)
        codes = _numbered(ids if proper.all() else ids[proper])
    else:
        keys = ids.tolist()
        if not all(type(key) is str for key in keys):
            keys = [_canonical(key) for key in keys]
        known = (key for key in dict.fromkeys(keys) if key is not None)
        numbers = {None: -1} | {key: place for place, key in enumerate(known)}
        places = np.fromiter(map(numbers.__getitem__, keys), np.intp, len(keys))
        proper = places >= 0
        codes = places if proper.all() else places[proper]
    return Persons(codes, np.bincount(codes), None if proper.all() else proper)


def _numbered(ids: NDArray[Any]) -> NDArray[np.intp]:
    """Return the number of each id, in the order in which ids occur first."""
    size = ids.size
    if ids.dtype.kind in "iu" and size:
        low, high = int(ids.min()), int(ids.max())
        if high - low < 8 * size:
            # Without sorting: the place where each id occurs first.
            wide = ids.astype(np.uint64 if ids.dtype.kind == "u" else np.int64, copy=False)
            shifted = (wide - wide.dtype.type(low)).astype(np.intp)
            first = np.empty(high - low + 1, dtype=np.intp)
            first[shifted[::-1]] = np.arange(size)[::-1]
            firsts = first[shifted]
            return (np.cumsum(firsts == np.arange(size)) - 1)[firsts]
    _, first, codes = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    found = np.empty(size and order.size, dtype=np.intp)
    found[order] = np.arange(order.size)
    return np.asarray(found[codes.ravel()])


def _column_of(groups: Any) -> NDArray[Any]:
    """Return ids as an array of numbers, text or objects; or raise if types rule out ids."""
    domain = "groups must hold the id of a person for each row"
    if isinstance(groups, str | bytes) or not (
        hasattr(groups, "dtype") or hasattr(groups, "__len__")
    ):
        raise TypeError(
            f"{domain}; got {shown(groups)}. If a column of the table holds the ids, name it in "
            "the schema: Schema(..., person='patient_id')."
        )
    shape = getattr(groups, "shape", None)
    if (shape is not None and len(shape) != 1) or hasattr(groups, "columns"):
        raise ValueError(f"{domain}, in one dimension; got {len(shape or ())} dimensions.")
    dtype = getattr(groups, "dtype", None)
    kind = getattr(dtype, "kind", "O")
    inexact = kind == "f" and getattr(dtype, "itemsize", 8) != 8
    if kind in tuple("bcmMV") or inexact:
        raise TypeError(
            f"{domain}, as text or whole numbers; got {dtype}. Numbers must have at least 64 bits."
        )
    if isinstance(groups, np.ma.MaskedArray):
        groups = unmasked(groups)
        kind = groups.dtype.kind
    if isinstance(dtype, np.dtype) and kind in "iufU":
        return np.asarray(groups)
    if is_of_words(dtype):
        # Also categories, whose text is read faster as a list.
        return _objects(list(groups))
    # One entry of a list must not change the type of the others.
    return _objects(np.asarray(groups, dtype=object) if hasattr(groups, "dtype") else groups)


def _objects(values: Any) -> NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def _canonical(entry: Any) -> str | None:
    """Return an id as text, the same for 1, 1.0 and "1"; None for other entries."""
    if isinstance(entry, str):
        return str.__str__(entry)
    if isinstance(entry, bytes):
        return bytes.decode(entry, "latin-1")
    if isinstance(entry, bool | np.bool_):
        return None
    if isinstance(entry, int | np.integer):
        number = int.__int__(entry) if isinstance(entry, int) else int(entry)
        return str(number) if -LARGEST_INTEGER < number < LARGEST_INTEGER else None
    if isinstance(entry, float):
        value = float.__float__(entry)
        if not math.fabs(value) < LARGEST_INTEGER:
            return None
        return str(int(value)) if value == int(value) else str(value)
    if type(entry) is Decimal:
        is_proper = entry.is_finite() and abs(entry) < LARGEST_INTEGER and entry == int(entry)
        return str(int(entry)) if is_proper else None
    return str(entry) if type(entry) is uuid.UUID else None


def shares_of(weights: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return integer weights of rows as shares of a person, cut to multiples of 2^-26."""
    return np.asarray(np.floor(weights / (WHOLE * UNIT)) * UNIT)


# Arguments of a fit in addition to a table of records -------------------------------------------

GROUPS, PARTS = "groups", "parts"
# The answer of a class without a statement about groups: it may use them in its own way.
OWN_USE = "own use"
DECLARE_LABELS = "Declare the labels as classes=[...], since no pass reads them."
_PAGES = "https://skdptune.readthedocs.io/en/latest"
ADVICE = {
    GROUPS: "DPLogisticRegression, DPRidge, DPExplainableBoostingClassifier, "
    "DPNeuralNetClassifier, similar estimators and searches over them protect persons: "
    f"{_PAGES}/persons.html#what-takes-groups lists them, and names alternatives for others.",
    PARTS: "DPRidge and others fit rows in parts: "
    f"{_PAGES}/clusters.html#data-larger-than-memory lists them.",
}


def refusal_of(estimator: Any, form: str) -> str | None:
    """Return None if a fit takes a form of records, or else what to use instead.

    Parameters
    ----------
    estimator : estimator
        Its method ``_input_refusal`` answers, if it has one.
    form : {"groups", "parts"}
        Rows with ids of persons, or `PrivateRows`.

    Returns
    -------
    str or None
        `OWN_USE` if the estimator does not say.
    """
    own = getattr(estimator, "_input_refusal", None)
    words: str | None = own(form) if callable(own) else OWN_USE
    return words


# Fits by persons ------------------------------------------------------------------------------

# Where the cost of a fit is computed from that of single records.
OTHER_SOLVER = "Fits by persons have another cost there. Use solver='output', or a delta above 0."


def names_persons(arguments: Mapping[str, Any]) -> bool:
    """Return whether named arguments of a fit hold groups, for itself or for one of its steps."""
    return any(
        value is not None and name.rpartition("__")[2] == "groups"
        for name, value in arguments.items()
    )


def groups_of_steps(steps: Mapping[str, Any], groups: Any) -> dict[str, Any]:
    """Return the arguments with which a pipeline's fit passes groups to some of its steps."""
    if not routing_is_enabled():
        return {f"{name}__groups": groups for name in steps}
    for step in steps.values():
        step.set_fit_request(groups=True)
    return {"groups": groups}


def private_steps(estimator: Pipeline) -> dict[str, Any]:
    """Return the steps of a pipeline that get the persons of a fit."""
    steps = estimator.steps
    return {name: step for name, step in steps if hasattr(step, "_input_refusal")}


def hold_persons(estimators: Iterable[Any]) -> bool:
    """Return whether a pipeline among estimators, or inside of them, names persons itself."""
    return _names_persons_itself(estimators) is not None


def names_persons_inside(estimator: Any) -> Any:
    """Return the estimator, or a pipeline inside of it, that names persons itself; else None."""
    if getattr(estimator, "_person_column", None):
        return estimator
    return _names_persons_itself([getattr(estimator, "estimator", None)])


def _names_persons_itself(estimators: Iterable[Any]) -> Any:
    """Return the first pipeline that names persons, among estimators or inside of them."""
    parts = (
        part
        for estimator in estimators
        if hasattr(estimator, "get_params")
        for _, part in nested_estimators(estimator)
    )
    return next((part for part in parts if getattr(part, "_person_column", None)), None)


def persons_for(
    estimator: Any,
    name: str,
    accepted: Collection[str],
    arguments: Mapping[str, Any],
    X: Any,
    y: Any,
) -> Persons | Any:
    """Return the persons of a fit for its argument ``groups``, before anything is read or spent.

    Parameters
    ----------
    estimator : estimator
    name : str
        Name of its method that was called.
    accepted : collection of str
        Names of that method's arguments.
    arguments : mapping
        Named arguments of the call.
    X, y : array-like

    Returns
    -------
    Persons, or the given groups if a class of a user has its own use for them

    Raises
    ------
    TypeError
        If the estimator has no guarantee for persons: groups are never ignored.
    """
    groups, words = arguments.get("groups"), refusal_of(estimator, GROUPS)
    takes_groups = "groups" in accepted and words in (None, OWN_USE)
    inside = names_persons_inside(estimator)
    # A search has read the ids for its fits.
    if takes_groups and inside is not None and not isinstance(groups, Persons):
        groups = inside.ids_of(X, arguments)
    if inside is not None and words not in (None, OWN_USE):
        raise TypeError(
            f"{type(estimator).__name__} must protect persons, since the schema of its pipeline "
            f"names their column; it protects single records here. {words}"
        )
    if groups is None or not takes_groups:
        raise TypeError(refused_groups(f"{type(estimator).__name__}.{name}", words))
    return groups if words == OWN_USE else checked_persons(estimator, groups, X, y)


def checked_persons(estimator: Any, groups: Any, X: Any, y: Any) -> Persons | None:
    """Return the persons of a fit's rows, whose forms suit each other; None without ids."""
    is_open = getattr(estimator, "n_public", None) is not None
    found = persons_of(groups, X, may_be_empty=is_open)
    _check_form(X, y)
    return found


def _check_form(X: Any, y: Any) -> None:
    """Raise for shapes that fits refuse, without the number of rows, which is secret."""
    shape = tuple(getattr(X, "shape", ())) or (0, 1)
    # More dimensions, as of images, are refused in the same words for any number of rows.
    if len(shape) < 2 or shape[1] == 0:
        raise ValueError(
            "X must be two-dimensional and have columns: Expected 2D array, got "
            f"{len(shape)} dimension(s) and {math.prod(shape[1:2])} feature(s)."
        )
    if y is not None and hasattr(y, "__len__") and number_of_samples(y) != number_of_samples(X):
        raise ValueError(
            "y must be as long as X, with a target for each row: inconsistent numbers of samples."
        )


def about_persons(relation: str, assumptions: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Return the relation and the assumptions of a guarantee about records, for persons.

    Notes
    -----
    Theorem P14.
    """
    others = (sentence for sentence in assumptions if sentence != PUBLIC_SIZE)
    return BY_PERSON[relation], (PUBLIC_PERSONS, MEAN_OF_ROWS, *others)


def about_unit(text: str, relation: str) -> str:
    """Return a text about records, as one about persons if the relation is about persons."""
    words = {"record": "person", "records": "persons"}
    if relation not in BY_PERSON.values():
        return text
    return re.sub(r"\brecords?\b", lambda match: words[match[0]], text)


def by_persons(estimator: Any) -> Any:
    """Return an estimator that states the cost of fits by persons, if this cost differs.

    Notes
    -----
    By Theorem P14 the cost is usually the same. Theorem M8 is an exception.
    """
    own = getattr(estimator, "_by_persons", None)
    return own() if callable(own) else estimator


def refused_groups(name: str, words: str | None = None) -> str:
    """Return the message of a method that cannot protect persons."""
    return (
        f"groups must be None for {name}, which protects single records; got ids of persons. "
        f"{ADVICE[GROUPS] if words in (None, OWN_USE) else words}"
    )
