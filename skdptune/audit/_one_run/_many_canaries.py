"""Canaries for one fit: many records, none of which hides another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdptune._compat import number_of_samples
from skdptune.audit._canaries import N_BESIDE
from skdptune.audit._worst_rows import known_extremes, labels_of, last_step, orthogonal_rows
from skdptune.base import ADD_OR_REMOVE, REPLACE

ORTHOGONAL, MISLABELLED = "orthogonal", "mislabelled"
KINDS = ("auto", ORTHOGONAL, MISLABELLED)


@dataclass(frozen=True, eq=False)
class Canaries:
    """Records to be included or not, what stands in their place, and the other records.

    Attributes
    ----------
    rows, targets : ndarray
        The canaries; `targets` is None where there are none.
    instead_rows, instead_targets : ndarray
        Of what takes the place of one that is not included, where the relation asks for it.
    others, other_targets : ndarray
        Records that are always there.
    reason : str
    has_opposites : bool
        Whether `instead_rows` are as likely as `rows`, for a model that has seen neither.
    """

    rows: Any
    targets: Any
    instead_rows: Any
    instead_targets: Any
    others: Any
    other_targets: Any
    reason: str
    has_opposites: bool

    def __len__(self) -> int:
        """Return the number of canaries."""
        return number_of_samples(self.rows)

    def data(self, is_in: np.ndarray, relation: str) -> tuple[Any, Any]:
        """Return the data with the included ones, in their order after the others.

        Parameters
        ----------
        is_in : ndarray of bool
        relation : str
            How neighbours differ: by a record that is there, by another one in its place, or by a
            row of zeros.

        Notes
        -----
        Theorem A6: data sets of coins that differ in one are neighbours.
        """
        rows, targets = self.rows, self.targets
        if relation == ADD_OR_REMOVE:
            rows = rows[is_in]
            targets = None if targets is None else targets[is_in]
        else:
            places = is_in.reshape(-1, *[1] * (rows.ndim - 1))
            rows = np.where(places, rows, self.instead_rows if relation == REPLACE else 0.0)
            if targets is not None and relation == REPLACE:
                targets = np.where(is_in, targets, self.instead_targets)
        X = np.concatenate([self.others, rows.astype(self.others.dtype, copy=False)])
        return X, None if targets is None else np.concatenate([self.other_targets, targets])


def orthogonal_canaries(
    estimator: Any,
    shape: tuple[int, ...],
    y: Any,
    size: int,
    data: tuple[Any, Any] | None,
    rng: np.random.Generator,
) -> Canaries:
    """Return canaries along axes of their own, as long as clipping lets through.

    Parameters
    ----------
    estimator : estimator
    shape : tuple of int
        Of the data.
    y : array-like or None
        Labels, where the estimator declares none.
    size : int
        More than there are axes share them.
    data : pair of arrays, or None
        The records that are always there; None for few rows in the middle of what is allowed.
    rng : Generator
        Draws labels.
    """
    found = orthogonal_rows(estimator, shape, size, None if data is None else data[0])
    extremes = known_extremes(estimator, shape, y)
    if found is None or extremes is None:
        raise TypeError(
            "estimator must be of a family whose clipping is known where canaries are chosen for "
            f"it; got {type(last_step(estimator)).__name__}. Give canaries as a pair (rows, "
            'targets), or use canaries="mislabelled".'
        )
    rows, opposite, why = found
    targets = _drawn_targets(estimator, y, extremes.target, size, rng)
    others, other_targets = extremes.background(N_BESIDE) if data is None else data
    return Canaries(rows, targets, opposite, targets, others, other_targets, f"{size} {why}", True)


def mislabelled_canaries(
    estimator: Any, X: np.ndarray, y: np.ndarray, size: int, rng: np.random.Generator
) -> Canaries:
    """Return some of the given records with a wrong label each; the others are always there.

    Parameters
    ----------
    estimator : estimator
    X, y : ndarray
    size : int
        At most the number of records.
    rng : Generator
        Draws which, and their labels.
    """
    labels = labels_of(estimator, y)
    if labels is None or size > len(X):
        raise ValueError(
            f"canaries must be {ORTHOGONAL!r} or given unless there are labels and as many "
            f"records as canaries; got {len(X)} records, {size} canaries and "
            f"{'labels' if labels is not None else 'targets that are none'}."
        )
    order = rng.permutation(len(X))
    chosen, rest = np.sort(order[:size]), np.sort(order[size:])
    places = np.searchsorted(labels, y[chosen])
    wrong = labels[(places + rng.integers(1, len(labels), size)) % len(labels)]
    reason = f"{size} of the given records, each with a wrong label"
    rows = X[chosen]
    return Canaries(rows, wrong, rows, y[chosen], X[rest], y[rest], reason, False)


def given_canaries(canaries: Any, X: np.ndarray, y: Any) -> Canaries:
    """Return canaries as the user has them, beside the given data.

    Parameters
    ----------
    canaries : pair (rows, targets)
        The targets may be None.
    X, y : array-like
    """
    if not isinstance(canaries, tuple) or len(canaries) != 2:
        raise ValueError(
            f"canaries must be one of {list(KINDS)} or a pair (rows, targets); got "
            f"{type(canaries).__name__}."
        )
    rows, targets = np.asarray(canaries[0]), canaries[1]
    targets = None if targets is None else np.asarray(targets)
    if rows.shape[1:] != X.shape[1:] or (targets is not None and len(targets) != len(rows)):
        raise ValueError(
            f"canaries must have rows of the shape {X.shape[1:]}, and as many targets; got shape "
            f"{rows.shape}."
        )
    if (targets is None) != (y is None):
        raise ValueError(
            "canaries must have targets if, and only if, y is given; got another pair."
        )
    return Canaries(
        rows, targets, np.zeros_like(rows), targets, X, y, f"{len(rows)} given records", False
    )


def _drawn_targets(
    estimator: Any, y: Any, target: Any, size: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Return targets by chance, so that they cancel in an intercept."""
    if target is None:
        return None
    model = last_step(estimator)
    if is_classifier(model):
        labels = labels_of(estimator, y)
        return None if labels is None else labels[rng.integers(0, len(labels), size)]
    return np.where(rng.integers(0, 2, size) == 1, float(target), -float(target))
