"""The usual scores, as means of bounded values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdptune._formatting import shown
from skdptune._validation import check_kind, check_real
from skdptune.base import checked_class_weight
from skdptune.metrics._bounded import BoundedScorer, make_bounded_scorer

# Public weights of classes.
Weights = Mapping[Any, float] | None


def accuracy(class_weight: Weights = None) -> BoundedScorer:
    """Return the share of records that are predicted right, in [0, 1].

    Parameters
    ----------
    class_weight : mapping of class to float, optional
        How much a wrong prediction of a record of each class matters: a mistake costs its class's
        weight over the largest. The weights are public, and every class is named.

    Examples
    --------
    >>> from skdptune.metrics import accuracy
    >>> accuracy().sensitivity(n_public=500)
    0.001
    >>> weighted = accuracy(class_weight={"ill": 10, "well": 1})
    >>> weighted.upper, weighted.sensitivity(n_public=500)
    (1.0, 0.001)
    """
    if class_weight is None:
        return make_bounded_scorer(_is_right, 0.0, 1.0, name="accuracy", greater_is_better=True)
    wrong = _Weighted(_is_wrong, relative_weights(class_weight))
    return make_bounded_scorer(
        _Complement(wrong), 0.0, 1.0, name="accuracy", greater_is_better=True
    )


def balanced_accuracy(class_frequencies: Mapping[Any, float]) -> BoundedScorer:
    """Return the accuracy in which every class weighs the same, by public class frequencies.

    Parameters
    ----------
    class_frequencies : mapping of class to float
        The share of each class, which must be public: shares counted in the data are not. They
        are positive and sum to 1.

    Notes
    -----
    Of ``k`` classes with frequencies ``f``, a right prediction of class ``j`` is worth
    ``1 / (k f_j)``, a wrong one 0; the mean is the balanced accuracy if the frequencies are right.
    The bound is ``1 / (k min(f))``, large for a rare class. Records of other classes are worth 0.

    Examples
    --------
    >>> from skdptune.metrics import balanced_accuracy
    >>> balanced_accuracy({"ill": 0.1, "well": 0.9}).upper
    5.0
    """
    check_kind(
        class_frequencies,
        name="class_frequencies",
        kind=Mapping,
        domain="a mapping of every class to its public frequency",
    )
    shares = {
        label: check_real(
            share,
            name=f"class_frequencies[{shown(label)}]",
            lower=0.0,
            upper=1.0,
            lower_open=True,
            is_entry=True,
        )
        for label, share in class_frequencies.items()
    }
    if not math.isclose(sum(shares.values()), 1.0, abs_tol=1e-6):
        raise ValueError(f"class_frequencies must sum to 1; got {sum(shares.values()):.6g}.")
    worth = {label: 1.0 / (len(shares) * share) for label, share in shares.items()}
    return make_bounded_scorer(
        _WeightedRight(tuple(worth.items())),
        0.0,
        max(worth.values()),
        name="balanced_accuracy",
        greater_is_better=True,
    )


def neg_brier_score(class_weight: Weights = None) -> BoundedScorer:
    """Return minus half the squared distance of probabilities from the truth, in [-1, 0].

    For two classes, it is scikit-learn's score of this name.

    Parameters
    ----------
    class_weight : mapping of class to float, optional
        As for `accuracy`: a record's loss is multiplied by its weight over the largest.

    Examples
    --------
    >>> from skdptune.metrics import neg_brier_score
    >>> neg_brier_score().lower
    -1.0
    """
    return _probability_score(_brier, 1.0, "neg_brier_score", class_weight)


def neg_log_loss(bound: float, class_weight: Weights = None) -> BoundedScorer:
    """Return minus the log loss, each record's at most a bound.

    Parameters
    ----------
    bound : float
        At which a record's loss is clipped; an even guess among k classes loses ``log(k)``.
    class_weight : mapping of class to float, optional
        As for `accuracy`: a record's loss is multiplied by its weight over the largest.

    Examples
    --------
    >>> from skdptune.metrics import neg_log_loss
    >>> neg_log_loss(bound=4.0).sensitivity(n_public=1000)
    0.002
    """
    return _probability_score(_log_loss, _checked(bound), "neg_log_loss", class_weight)


def _probability_score(
    loss: Callable[..., np.ndarray], bound: float, name: str, class_weight: Weights
) -> BoundedScorer:
    if class_weight is not None:
        loss = _Weighted(_Clipped(loss, bound), relative_weights(class_weight))
    return make_bounded_scorer(loss, 0.0, bound, name=name, response_method="predict_proba")


def relative_weights(class_weight: Weights) -> tuple[tuple[Any, float], ...]:
    """Return public class weights relative to the largest."""
    given = checked_class_weight(class_weight)
    largest = max(given.values())
    return tuple((label, weight / largest) for label, weight in given.items())


def neg_squared_error(bound: float) -> BoundedScorer:
    """Return minus the squared error, each record's at most a bound.

    Parameters
    ----------
    bound : float
        At which a record's squared error is clipped, in the squared unit of the target: for errors
        of up to 100 dollars that is 10,000. Above it, worse predictions score the same, and the
        noise grows with it, so take what a poor prediction would have, and not the largest.

    Examples
    --------
    >>> from skdptune.metrics import neg_squared_error
    >>> neg_squared_error(bound=25.0).lower
    -25.0
    """
    return make_bounded_scorer(_squared_error, 0.0, _checked(bound), name="neg_squared_error")


def neg_absolute_error(bound: float) -> BoundedScorer:
    """Return minus the absolute error, each record's at most a bound.

    Parameters
    ----------
    bound : float
        At which a record's absolute error is clipped, in the unit of the target. Above it, worse
        predictions score the same, and the noise grows with it, so take what a poor prediction
        would have, and not the largest.

    Examples
    --------
    >>> from skdptune.metrics import neg_absolute_error
    >>> neg_absolute_error(bound=5.0).upper
    0.0
    """
    return make_bounded_scorer(_absolute_error, 0.0, _checked(bound), name="neg_absolute_error")


def _checked(bound: Any) -> float:
    return check_real(
        bound,
        name="bound",
        lower=0.0,
        upper=math.inf,
        lower_open=True,
        upper_open=True,
        hint="It clips each record's loss, and must be known without looking at the data.",
    )


# Losses, one number per record ---------------------------------------------------------------


def _per_record(values: np.ndarray, combine: Callable[..., Any]) -> np.ndarray:
    """Combine several outputs of one record into one number."""
    return values if values.ndim == 1 else combine(values.reshape(values.shape[0], -1), axis=1)


def _is_right(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    return _per_record(np.asarray(y == prediction), np.all)


def _squared_error(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    return _per_record((y - prediction) ** 2, np.mean)


def _absolute_error(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    return _per_record(np.abs(y - prediction), np.mean)


def _truth(y: np.ndarray, classes: Any) -> np.ndarray:
    """Return a row of 0 and 1 per record; of a class that the model does not know, all 0."""
    return np.asarray(y[:, None] == np.asarray(classes)[None, :])


def _brier(y: np.ndarray, probabilities: np.ndarray, classes: Any) -> np.ndarray:
    truth = _truth(y, classes)
    half = 0.5 * np.sum((probabilities - truth) ** 2, axis=1)
    return np.where(truth.any(axis=1), half, 1.0)


def _log_loss(y: np.ndarray, probabilities: np.ndarray, classes: Any) -> np.ndarray:
    truth = _truth(y, classes)
    likelihood = np.where(truth, probabilities, 0.0).sum(axis=1)
    return np.asarray(-np.log(likelihood))


def _is_wrong(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    return 1.0 - _is_right(y, prediction)


@dataclass(frozen=True)
class _Weighted:
    """A loss, multiplied by the weight of a record's class; picklable, as a closure is not."""

    loss: Callable[..., np.ndarray]
    weights: tuple[tuple[Any, float], ...]

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes that have a weight."""
        return tuple(label for label, _ in self.weights)

    def __call__(self, y: np.ndarray, *response: Any) -> np.ndarray:
        # Of classes that are not named nothing is known.
        weight = np.ones(y.shape[0])
        for label, relative in self.weights:
            weight[np.asarray(y == label)] = relative
        return weight * self.loss(y, *response)


@dataclass(frozen=True)
class _Clipped:
    """A loss of at most a bound."""

    loss: Callable[..., np.ndarray]
    bound: float

    def __call__(self, *arguments: Any) -> np.ndarray:
        values = self.loss(*arguments)
        return np.where(np.isnan(values), self.bound, np.minimum(values, self.bound))


@dataclass(frozen=True)
class _Complement:
    """One less a weighted loss."""

    loss: _Weighted

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes that have a weight."""
        return self.loss.labels

    def __call__(self, *arguments: Any) -> np.ndarray:
        return 1.0 - self.loss(*arguments)


@dataclass(frozen=True)
class _WeightedRight:
    """What a right prediction is worth, by class; picklable, as a closure is not."""

    worth: tuple[tuple[Any, float], ...]

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes that are worth something."""
        return tuple(label for label, _ in self.worth)

    def __call__(self, y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        right = np.asarray(y == prediction)
        weight = np.zeros(y.shape[0])
        for label, worth in self.worth:
            weight[np.asarray(y == label)] = worth
        return np.where(right, weight, 0.0)
