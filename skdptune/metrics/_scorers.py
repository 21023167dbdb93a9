"""The usual scores as means of bounded values, scorers by name, and why others are refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from skdptune._formatting import shown, shown_names
from skdptune._validation import check_kind, check_real
from skdptune.base._shared import checked_class_weight
from skdptune.metrics._bounded import BoundedScorer, make_bounded_scorer

# Public weights of classes.
Weights = Mapping[Any, float] | None


def accuracy(class_weight: Weights = None) -> BoundedScorer:
    """Return the share of records that are predicted correctly, in [0, 1].

    Parameters
    ----------
    class_weight : mapping of class to float, optional
        Cost of a wrong prediction for each class: a mistake costs the weight of the record's class
        divided by the largest weight. The weights are public, and every class is named.

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
    """Return the accuracy with equal weight for every class, by public class frequencies.

    Parameters
    ----------
    class_frequencies : mapping of class to float
        The share of each class. The shares must be public; shares counted in the data are not.
        They are positive and sum to 1.

    Notes
    -----
    With ``k`` classes of frequencies ``f``, a correct prediction of class ``j`` is worth
    ``1 / (k f_j)``, and a wrong one 0. The mean is the balanced accuracy if the frequencies are
    correct. The bound is ``1 / (k min(f))``, which is large for a rare class. Records of other
    classes are worth 0.

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
    """Return the negative half squared distance of probabilities from the labels, in [-1, 0].

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
    """Return the negative log loss, where the loss of each record is clipped at a bound.

    Parameters
    ----------
    bound : float
        Value at which a record's loss is clipped; an even guess among k classes loses ``log(k)``.
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
    """Return the negative squared error, where the error of each record is clipped at a bound.

    Parameters
    ----------
    bound : float
        Value at which a record's squared error is clipped, in the squared unit of the target: for
        errors of up to 100 dollars that is 10,000. Worse predictions than this have the same
        score, and the noise grows with the bound. Therefore use the squared error of a poor
        prediction, not the largest one.

    Examples
    --------
    >>> from skdptune.metrics import neg_squared_error
    >>> neg_squared_error(bound=25.0).lower
    -25.0
    """
    return make_bounded_scorer(_squared_error, 0.0, _checked(bound), name="neg_squared_error")


def neg_absolute_error(bound: float) -> BoundedScorer:
    """Return the negative absolute error, where the error of each record is clipped at a bound.

    Parameters
    ----------
    bound : float
        Value at which a record's absolute error is clipped, in the unit of the target. Worse
        predictions than this have the same score, and the noise grows with the bound. Therefore
        use the error of a poor prediction, not the largest one.

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
    """Return a row of 0 and 1 per record; all 0 for a class that the model does not know."""
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
    """A loss multiplied by the weight of a record's class; unlike a closure it can be pickled."""

    loss: Callable[..., np.ndarray]
    weights: tuple[tuple[Any, float], ...]

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes that have a weight."""
        return tuple(label for label, _ in self.weights)

    def __call__(self, y: np.ndarray, *response: Any) -> np.ndarray:
        # Nothing is known about classes that are not named.
        weight = np.ones(y.shape[0])
        for label, relative in self.weights:
            weight[np.asarray(y == label)] = relative
        return weight * self.loss(y, *response)


@dataclass(frozen=True)
class _Clipped:
    """A loss that is clipped at a bound."""

    loss: Callable[..., np.ndarray]
    bound: float

    def __call__(self, *arguments: Any) -> np.ndarray:
        values = self.loss(*arguments)
        return np.where(np.isnan(values), self.bound, np.minimum(values, self.bound))


@dataclass(frozen=True)
class _Complement:
    """1 minus a weighted loss."""

    loss: _Weighted

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes that have a weight."""
        return self.loss.labels

    def __call__(self, *arguments: Any) -> np.ndarray:
        return 1.0 - self.loss(*arguments)


@dataclass(frozen=True)
class _WeightedRight:
    """Value of a correct prediction by class; unlike a closure it can be pickled."""

    worth: tuple[tuple[Any, float], ...]

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes whose predictions have a value."""
        return tuple(label for label, _ in self.worth)

    def __call__(self, y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        right = np.asarray(y == prediction)
        weight = np.zeros(y.shape[0])
        for label, worth in self.worth:
            weight[np.asarray(y == label)] = worth
        return np.where(right, weight, 0.0)


# Scorers by name -----------------------------------------------------------------------------

_NAMED = {"accuracy": accuracy, "neg_brier_score": neg_brier_score}
# Largest change of a score by one record, and why noise would then hide the score as well.
_OF_FEW = (
    "is a {} in [{}, 1], but not a mean of one value per record: if a class has few records, one "
    "of them can change it by {}. The number of records of a class is private, so the noise would "
    "have to hide such a change."
)
_RANKS = _OF_FEW.format("share of pairs of records", 0, "up to 1")
_AREA = _OF_FEW.format("mean of precisions", 0, "nearly 1")
_COUNTS = _OF_FEW.format("ratio of counts", 0, "up to 1")
_CORRELATION = _OF_FEW.format("ratio of counts", -1, "1 and more")
_UNBOUNDED = (
    "is made of unbounded values: one record with a distant target can change it by any "
    "amount, so no noise makes it private."
)
_MEDIAN = (
    "is a median: if errors are few or far apart, one record can change it from one error to the "
    "next, by any amount, so no noise makes it private."
)
_BY_PROBABILITIES = "Use 'neg_brier_score' or neg_log_loss(bound=...)."
_BY_CLASSES = (
    "Use accuracy(class_weight={...}), or balanced_accuracy(class_frequencies={...}), with public "
    "numbers."
)
_SQUARES = "Use neg_squared_error(bound=...)"
_ABSOLUTE = "Use neg_absolute_error(bound=...)."
_INSTEAD = {
    "balanced_accuracy": (
        "weighs records by class counts of the data: if a class has few records, one of them "
        "can change it by up to one over the number of classes. Use "
        "balanced_accuracy(class_frequencies={...}) with public frequencies."
    ),
    "neg_log_loss": (
        "is made of unbounded values: one record can change it by any amount if the model is "
        "sure of a wrong label, so no noise makes it private. Use neg_log_loss(bound=...)."
    ),
    "neg_mean_squared_error": f"{_UNBOUNDED} {_SQUARES}.",
    "neg_root_mean_squared_error": f"{_UNBOUNDED} {_SQUARES}, which ranks the same.",
    "neg_mean_absolute_error": f"{_UNBOUNDED} {_ABSOLUTE}",
    "neg_max_error": f"{_UNBOUNDED} {_ABSOLUTE}",
    "neg_median_absolute_error": f"{_MEDIAN} {_ABSOLUTE}",
    "r2": f"{_UNBOUNDED} {_SQUARES}, which ranks the same.",
    "explained_variance": f"{_UNBOUNDED} {_SQUARES}, which ranks the same.",
    "average_precision": f"{_AREA} {_BY_PROBABILITIES}",
    "matthews_corrcoef": f"{_CORRELATION} {_BY_CLASSES}",
    **{
        f"roc_auc{average}": f"{_RANKS} {_BY_PROBABILITIES}"
        for average in ("", "_ovr", "_ovo", "_ovr_weighted", "_ovo_weighted")
    },
    **{
        name + average: f"{_COUNTS} {_BY_CLASSES}"
        for name in ("f1", "precision", "recall", "jaccard")
        for average in ("", "_macro", "_weighted", "_samples")
    },
    **{
        f"{name}_micro": (
            "equals the accuracy, or ranks like it, if each record has one label: one record "
            "can change it by about one over the number of records. Use accuracy()."
        )
        for name in ("f1", "precision", "recall", "jaccard")
    },
}
_GENERAL = (
    "A private score must be a mean of bounded values, one per record; create one from such a "
    "function with make_bounded_scorer(loss, lower, upper)."
)


def get_bounded_scorer(scoring: Any) -> BoundedScorer:
    """Return the scorer with a given name, or the given scorer itself.

    Parameters
    ----------
    scoring : {"accuracy", "neg_brier_score"} or BoundedScorer

    Returns
    -------
    BoundedScorer

    Raises
    ------
    ValueError
        If one record may change the score too much. The message says by how much, and what to use
        instead.
    TypeError
        If it is neither a name nor a `BoundedScorer`.

    Examples
    --------
    >>> from skdptune.metrics import get_bounded_scorer
    >>> get_bounded_scorer("accuracy").upper
    1.0
    """
    if isinstance(scoring, BoundedScorer):
        return scoring
    if not isinstance(scoring, str):
        kind = "None" if scoring is None else type(scoring).__name__
        raise TypeError(f"scoring must be a name or a BoundedScorer; got {kind}. {_GENERAL}")
    if scoring not in _NAMED:
        _refuse(scoring)
    return _NAMED[scoring]()


def _refuse(name: str) -> NoReturn:
    reason = f"{shown(name)} {_INSTEAD[name]}" if name in _INSTEAD else _GENERAL
    raise ValueError(
        f"scoring must be one of {shown_names(_NAMED)}, or a BoundedScorer; got {shown(name)}. "
        f"{reason}"
    )
