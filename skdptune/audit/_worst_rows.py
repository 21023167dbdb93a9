"""The extreme record of a family of estimators, from parameters and the form of the data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from skdptune.base import declared_labels, middle_and_half, own_parameters, target_range

# Gradients at rows so many clipping norms long are clipped, and the row's own margin stays
# small for many steps: a longer row is learnt, and pulls no more.
_IN_CLIPPING_NORMS = {"sgd": 3.0, "adam": 3.0}
# Of nets, in whose first weights the slope is smaller; and of a target that no prediction meets.
_OF_NETS, _FAR_TARGET = 10.0, 100.0
_BOUNDS = ("bounds", "bounds_X")
_AT_BOUNDS = "a row at the upper ends of "
# Solvers that shorten no row, and clip gradients instead.
_NOT_CLIPPING = frozenset({"objective", "output", "psgd"})


@dataclass(frozen=True, eq=False)
class Extremes:
    """An extreme record, and what stands beside it.

    Attributes
    ----------
    row, opposite : ndarray
        The record, and the one farthest from it.
    others : ndarray of shape (n, ...)
        Other records, in turn.
    target : object
        The record's label or target; None where there is none.
    other_targets : tuple
        Targets of other records, in turn; empty where there are none.
    reason : str
    is_at_bounds : bool
        Whether `row` is at the upper ends of bounds, and `opposite` at the lower ones.
    """

    row: np.ndarray
    opposite: np.ndarray
    others: np.ndarray
    target: Any
    other_targets: tuple[Any, ...]
    reason: str
    is_at_bounds: bool = False

    def at_corners(self) -> Iterator[Extremes]:
        """Iterate over the same record beside others that are all at one corner of the bounds."""
        for corner, where in ((self.opposite, "lower"), (self.row, "upper")):
            beside = f", beside others at all {where} ends"
            yield replace(self, others=corner[None], reason=f"{self.reason}{beside}")
        # The record at the lower ends, whose opposite is at the upper ones.
        swapped = replace(self, row=self.opposite, opposite=self.row)
        yield replace(swapped, reason=self.reason.replace("upper ends", "lower ends", 1))

    def background(self, size: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return so many other records and their targets."""
        rows = self.others[np.arange(size) % len(self.others)]
        known = self.other_targets
        return rows, np.resize(np.asarray(known), size) if known else None


def last_step(estimator: Any) -> Any:
    """Return what learns from targets: the last step of a pipeline, what a search tunes."""
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
        return last_step(steps[-1]) if steps else estimator
    inner = own_parameters(estimator).get("estimator")
    return estimator if inner is None else last_step(inner)


def known_extremes(
    estimator: Any, shape: tuple[int, ...], y: Any, others: Any = None
) -> Extremes | None:
    """Return the extreme record of an estimator's family; None where it is of none.

    Parameters
    ----------
    estimator : estimator
    shape : tuple of int
        Of the data.
    y : array-like or None
        Labels, where `estimator` declares none.
    others : array-like, optional
        The other records, of which the record is to differ in direction.
    """
    rows = next(filter(None, (_rows_of(part, shape, others) for part in _parts(estimator))), None)
    if rows is None:
        return None
    row, opposite, beside, why = rows
    target, other_targets, and_why = _targets_of(estimator, y)
    is_at_bounds = why.startswith(_AT_BOUNDS)
    return Extremes(row, opposite, beside, target, other_targets, f"{why}{and_why}", is_at_bounds)


def generic_extremes(estimator: Any, X: Any, y: Any, factor: float) -> Extremes:
    """Return a far-away record with a contradicting target, for any estimator.

    Parameters
    ----------
    estimator : estimator
    X, y : array-like
        Data of the right form.
    factor : float
        Length of the row, in units of the longest one of `X`.
    """
    table = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    lengths = np.linalg.norm(table.reshape(len(table), -1), axis=1)
    length = float(np.max(lengths, initial=0.0)) or 1.0
    row = factor * length * _quiet_direction(table.shape, table)
    target, other_targets, why = _targets_of(estimator, y)
    reason = f"a row {factor:g} times as long as the longest one, where others vary least"
    return Extremes(row, -row, np.zeros_like(row)[None], target, other_targets, reason + why)


def orthogonal_rows(
    estimator: Any, shape: tuple[int, ...], size: int, others: Any = None
) -> tuple[np.ndarray, np.ndarray, str] | None:
    """Return many extreme rows that pull in different directions, their opposites, and why.

    Parameters
    ----------
    estimator : estimator
    shape : tuple of int
        Of the data.
    size : int
        Where there are fewer columns, rows share them.
    others : array-like, optional
        Other records; directions in which they vary less are taken first.
    """
    for part in _parts(estimator):
        given = own_parameters(part)
        bounds = next((given[name] for name in _BOUNDS if given.get(name) is not None), None)
        if bounds is not None and not isinstance(bounds, dict):
            low, high = (np.broadcast_to(np.asarray(b, dtype=float), shape[1:]) for b in bounds)
            signs = np.random.default_rng(0).integers(0, 2, (size, *shape[1:])) == 1
            return np.where(signs, high, low), np.where(signs, low, high), "corners of the bounds"
        length, _ = _length(given, shape)
        if length is not None:
            rows = length * _axes(shape, size, others)
            return rows, -rows, "rows along axes of their own, as long as clipping lets through"
    return None


def _axes(shape: tuple[int, ...], size: int, others: Any) -> np.ndarray:
    width = math.prod(shape[1:])
    axes = np.eye(width)
    if others is not None:
        table = np.asarray(others, dtype=np.float64).reshape(-1, width)
        axes = np.linalg.eigh(table.T @ table)[1].T
    elif len(shape) > 2:
        # A net for images looks at few of their places at once.
        axes = np.linalg.qr(np.random.default_rng(0).normal(size=(width, width)))[0]
    return axes[np.arange(size) % width].reshape(size, *shape[1:])


def labels_of(estimator: Any, y: Any) -> np.ndarray | None:
    """Return the labels of a classifier in order, declared or found; None for others.

    Parameters
    ----------
    estimator : estimator
    y : array-like or None
    """
    if not is_classifier(last_step(estimator)):
        return None
    labels = declared_labels(estimator)
    if labels is None and y is not None:
        labels = np.unique(np.asarray(y)).tolist()
    if not labels or len(labels) < 2:
        raise ValueError("y must hold two labels where estimator declares none in classes.")
    return np.unique(np.asarray(labels))


def _parts(estimator: Any) -> Iterator[Any]:
    """Iterate over what rows meet, in order."""
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps:
            if step not in (None, "passthrough"):
                yield from _parts(step)
        return
    inner = own_parameters(estimator).get("estimator")
    if inner is None:
        yield estimator
    else:
        yield from _parts(inner)


_Rows = tuple[np.ndarray, np.ndarray, np.ndarray, str]


def _rows_of(part: Any, shape: tuple[int, ...], others: Any) -> _Rows | None:
    """Return the extreme row, the opposite one, those of other records, and why."""
    given = own_parameters(part)
    for name in _BOUNDS:
        bounds = given.get(name)
        if bounds is not None and not isinstance(bounds, dict):
            return _at_bounds(bounds, shape, name, "quantile_range" in given)
    length, why = _length(given, shape)
    if length is None:
        return None
    row = length * _quiet_direction(shape, others)
    return row, -row, np.zeros_like(row)[None], why


def _at_bounds(bounds: Any, shape: tuple[int, ...], name: str, takes_ranks: bool) -> _Rows:
    low, high = (np.broadcast_to(np.asarray(side, dtype=float), shape[1:]) for side in bounds)
    middle = low / 2 + high / 2
    if takes_ranks:
        # A record at an end has all values on one side of it, and favours none.
        return middle, high.copy(), np.stack([low, high]), f"a row between others at both {name}"
    return high.copy(), low.copy(), middle[None], f"{_AT_BOUNDS}{name}"


def _length(given: dict[str, Any], shape: tuple[int, ...]) -> tuple[float | None, str]:
    """Return how long the row is to be, from an estimator's own parameters."""
    width = math.prod(shape[1:])
    if "module" in given and "max_grad_norm" in given:
        return _OF_NETS * float(given["max_grad_norm"]), "a row whose gradient is clipped"
    if "norm" in given and "estimator" not in given and len(given) <= 2:
        return float(given["norm"]), "a row as long as norm lets through"
    if "data_norm" not in given:
        return None, ""
    if "solver" in given and given["solver"] not in _NOT_CLIPPING and given.get("delta") != 0.0:
        norm = given.get("max_grad_norm") or 1.0
        factor = _IN_CLIPPING_NORMS.get(given["solver"], 1.0)
        return factor * float(norm), "a row whose gradient is clipped"
    norm = given["data_norm"]
    length = math.sqrt(width) if norm is None else float(norm)
    return length, "a row as long as data_norm lets through"


def _quiet_direction(shape: tuple[int, ...], others: Any) -> np.ndarray:
    """Return a unit row along which other records vary least: the first column if there are none.

    Images are lit evenly instead, since a net may look at any place of them.
    """
    if len(shape) > 2:
        return np.full(shape[1:], 1.0 / math.sqrt(math.prod(shape[1:])))
    row = np.zeros(shape[1])
    row[0] = 1.0
    if others is None or sparse.issparse(others):
        return row
    squares = np.asarray(others, dtype=np.float64)
    squares = squares.T @ squares
    return row if not np.isfinite(squares).all() else np.linalg.eigh(squares)[1][:, 0]


def _targets_of(estimator: Any, y: Any) -> tuple[Any, tuple[Any, ...], str]:
    """Return the record's target, those of the others, and why."""
    model = last_step(estimator)
    given = own_parameters(model)
    labels = labels_of(estimator, y)
    if labels is not None:
        known = labels.tolist()
        return known[-1], (known[0], known[-1]), ", with a label that contradicts others"
    bound = given.get("target_bound", given.get("bounds_y"))
    if bound is not None:
        low, high = target_range(bound)
        middle = middle_and_half(low, high)[0]
        return high, (middle,), ", and the largest target"
    if y is None and "criterion" not in given:
        return None, (), ""
    return _FAR_TARGET, (0.0,), ", and a target that no prediction meets"
