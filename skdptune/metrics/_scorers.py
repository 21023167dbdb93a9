"""The usual scores as means of bounded values, scorers by name, and why others are refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from skdptune._formatting import shown, shown_names
from skdptune._validation import check_flag, check_integer, check_kind, check_option, check_real
from skdptune.base._shared import (
    check_given,
    checked_class_weight,
    kind_of_targets,
    read_targets,
)
from skdptune.mechanisms._shared import of_unit_total, unit_total

# Scorers that average bounded values, one per record, and their sensitivity ---------------------

RESPONSES = ("predict", "predict_proba", "decision_function")


@dataclass(frozen=True)
class ScoreSum:
    """The exact sum of values of records; sums of parts add up to that of all, in any order.

    Attributes
    ----------
    total : int
        The sum, in units of 2^-26 of half of the range of values.
    size : int
        Number of records.

    Notes
    -----
    Theorem R10.
    """

    total: int
    size: int

    def __add__(self, other: ScoreSum) -> ScoreSum:
        """Return the sum over the records of both."""
        return ScoreSum(self.total + other.total, self.size + other.size)


@dataclass(frozen=True)
class BoundedScorer:
    """A scorer that averages bounded values, one per record, and has a known sensitivity.

    It is called like scikit-learn's scorers and returns a score for which larger is better. Create
    it by `make_bounded_scorer` or by the other functions of this package.

    Parameters
    ----------
    loss : callable
        ``loss(y, prediction)``, or ``loss(y, response, classes)`` for a response method other than
        "predict". It returns one number per record, which depends only on this record.
    lower, upper : float
        Bounds on the averaged values, for which larger is better.
    name : str
        Name of the score.
    sign : {1, -1}, default=-1
        -1 if a smaller `loss` is better: the averaged values are ``sign * loss``.
    response_method : {"predict", "predict_proba", "decision_function"}, default="predict"
        Method of the estimator whose result is scored.
    centred : bool, default=True
        Whether values are measured from the middle of the bounds, which halves the sensitivity, or
        from `lower`, which makes the score monotone: adding a record never lowers it.

    Notes
    -----
    Theorem R2.

    Let ``n`` be a public constant. The score is ``c + sum(value - c) / n``, clipped to the bounds.
    Adding a record changes the sum by ``value - c``. At ``c = lower``, this is between 0 and
    ``upper - lower``; in the middle, it is at most half of that in either direction. If ``n`` is
    the number of records, the score is their mean for any ``c``. Values that are NaN count as
    `lower`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from skdptune.metrics import accuracy
    >>> X, y = np.zeros((4, 1)), np.array([1, 1, 1, 0])
    >>> scorer = accuracy()
    >>> scorer(DummyClassifier().fit(X, y), X, y)
    0.75
    >>> scorer.sensitivity(n_public=1000)
    0.0005
    """

    loss: Callable[..., ArrayLike]
    lower: float
    upper: float
    name: str
    sign: int = -1
    response_method: str = "predict"
    centred: bool = True

    def __post_init__(self) -> None:
        """Validate the parameters."""
        if not callable(self.loss):
            raise TypeError(f"loss must be callable; got {type(self.loss).__name__}.")
        check_kind(self.name, name="name", kind=str, domain="a str")
        check_option(self.sign, name="sign", options=(1, -1))
        check_option(self.response_method, name="response_method", options=RESPONSES)
        check_flag(self.centred, name="centred")
        _check_interval(self.lower, self.upper)

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The classes named by the loss through public class weights, or None."""
        labels = getattr(self.loss, "labels", None)
        return labels if isinstance(labels, tuple) else None

    @property
    def is_monotone(self) -> bool:
        """Whether adding a record moves the scores of all candidates in the same direction."""
        return not self.centred

    def sensitivity(self, n_public: int) -> float:
        """Return the largest change of the score when one record is added or removed.

        Parameters
        ----------
        n_public : int
            The public constant used as the number of records.
        """
        size = check_integer(n_public, name="n_public", lower=1)
        return (self.upper - self.lower) / (2.0 * size if self.centred else size)

    def per_record(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        """Return one value per record, within the bounds.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator.
        X, y : array-like
            Records and their targets.
        """
        classes = getattr(estimator, "classes_", None)
        kind = kind_of_targets(estimator) if hasattr(estimator, "__sklearn_tags__") else "any"
        # Theorem R5: targets are read here in the same way as in a fit.
        targets, improper = read_targets(y, kind, classes)
        response = self._response(estimator, X, targets.shape)
        more = () if self.response_method == "predict" else (classes,)
        # Overflows are clipped like any other value; a warning would reveal them.
        with np.errstate(all="ignore"):
            values = self.sign * np.asarray(self.loss(targets, response, *more), dtype=np.float64)
        if values.shape != targets.shape[:1]:
            raise ValueError(
                f"loss must return one number per record; got shape {values.shape} from "
                f"{shown(self.name)}. It must not average over the records."
            )
        return self._bounded(np.where(improper, self.lower, values))

    def sum_of(self, values: ArrayLike) -> ScoreSum:
        """Return the exact sum of given values, one per record."""
        # Theorem R11: a search of rows in parts divides and scores them as those of a table.
        centre, unit = self._centre_and_unit()
        bounded = self._bounded(np.asarray(values, dtype=np.float64).ravel())
        return ScoreSum(int(unit_total((bounded - centre) / unit)), bounded.size)

    def score(self, values: ArrayLike | ScoreSum, n_public: int, *, clip: bool = True) -> float:
        """Return the score of given values, for a public number of records.

        Parameters
        ----------
        values : array-like or ScoreSum
            One value per record, as returned by `per_record`, or their sum.
        n_public : int
            The public constant used as the number of records.
        clip : bool, default=True
            Whether a score beyond the bounds, of more records than expected, is clipped to them.
        """
        size = check_integer(n_public, name="n_public", lower=1)
        centre, unit = self._centre_and_unit()
        found = values if isinstance(values, ScoreSum) else self.sum_of(values)
        score = centre + unit * float(of_unit_total(np.asarray(found.total))) / size
        return min(max(score, self.lower), self.upper) if clip else score

    def uncentred(self) -> BoundedScorer:
        """Return a copy whose values are measured from `lower`, so that it is monotone."""
        return replace(self, centred=False)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the mean over the given records; larger is better."""
        check_given(y, estimator)
        values = self.per_record(estimator, X, y)
        return self.score(values, max(values.size, 1))

    def _centre_and_unit(self) -> tuple[float, float]:
        half = (self.upper - self.lower) / 2.0
        return (self.lower + half, half) if self.centred else (self.lower, 2.0 * half)

    def _bounded(self, values: np.ndarray) -> np.ndarray:
        return np.clip(np.where(np.isnan(values), self.lower, values), self.lower, self.upper)

    def _response(self, estimator: Any, X: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Return the estimator's response, with one entry per record.

        A column of predictions and a row of targets would broadcast to all pairs, and every
        record's value would depend on all others.
        """
        method = getattr(estimator, self.response_method, None)
        if method is None:
            raise TypeError(
                f"estimator must have {self.response_method}, which {shown(self.name)} needs; got "
                f"{type(estimator).__name__}."
            )
        response = np.asarray(method(X))
        if self.response_method == "predict" and response.size == math.prod(shape):
            return response.reshape(shape)
        if self.response_method == "predict" or response.shape[:1] != shape[:1]:
            raise ValueError(
                f"estimator must return one {self.response_method} per record, of shape {shape}; "
                f"got shape {response.shape}."
            )
        return response


def make_bounded_scorer(
    loss: Callable[..., ArrayLike],
    lower: float,
    upper: float,
    *,
    name: str | None = None,
    greater_is_better: bool = False,
    response_method: str = "predict",
    centred: bool = True,
) -> BoundedScorer:
    """Create a scorer from a function that returns a number for each record.

    Parameters
    ----------
    loss : callable
        ``loss(y, prediction)``, or ``loss(y, response, classes)`` for a response method other than
        "predict", with the classes in the order of the response's columns. It returns one number
        per record. The guarantee assumes that it treats each record separately.
    lower, upper : float
        Bounds on the values of `loss`, known without looking at the data; values outside of them
        are clipped.
    name : str, optional
        Name of the score; by default, the name of the function.
    greater_is_better : bool, default=False
        Whether a larger value of `loss` is better.
    response_method : {"predict", "predict_proba", "decision_function"}, default="predict"
    centred : bool, default=True
        See `BoundedScorer`.

    Returns
    -------
    BoundedScorer

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.metrics import make_bounded_scorer
    >>> def miss(y, prediction):
    ...     return np.abs(y - prediction) > 5
    >>> make_bounded_scorer(miss, 0, 1).sensitivity(n_public=100)
    0.005
    """
    check_flag(greater_is_better, name="greater_is_better")
    low, high = _check_interval(lower, upper)
    ends = (low, high) if greater_is_better else (-high, -low)
    return BoundedScorer(
        loss,
        ends[0] + 0.0,
        ends[1] + 0.0,
        getattr(loss, "__name__", type(loss).__name__) if name is None else name,
        1 if greater_is_better else -1,
        response_method,
        centred,
    )


def _check_interval(lower: Any, upper: Any) -> tuple[float, float]:
    hint = "Clip the values: an unbounded one lets a single record decide the score."
    low = check_real(lower, name="lower", hint=hint)
    high = check_real(upper, name="upper", lower=low, lower_open=True, hint=hint)
    if not math.isfinite(high - low):
        raise ValueError(f"upper - lower must be finite; got {shown((low, high))}. {hint}")
    return low, high


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
        _Weighted(_is_right, tuple(worth.items()), rest=0.0),
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
        See `accuracy`: a record's loss is multiplied by its weight over the largest.

    Examples
    --------
    >>> from skdptune.metrics import neg_brier_score
    >>> neg_brier_score().lower
    -1.0
    """
    return _probability_score(_brier, 1.0, "neg_brier_score", class_weight)


def neg_log_loss(bound: float = 4.0, class_weight: Weights = None) -> BoundedScorer:
    """Return the negative log loss, where the loss of each record is clipped at a bound.

    Parameters
    ----------
    bound : float, default=4.0
        Value at which a record's loss is clipped: 4 is the loss of a label that was given a
        probability of 1.8 %. An even guess among k classes loses ``log(k)``.
    class_weight : mapping of class to float, optional
        See `accuracy`: a record's loss is multiplied by its weight over the largest.

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
        prediction, not the largest one. By default, searches clip an error at a quarter of the
        range of targets.

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
    """A loss multiplied by the weight of a record's class; unlike a closure it can be pickled.

    Attributes
    ----------
    loss : callable
    weights : tuple of pairs
        Classes and their weights.
    rest : float
        Weight of the classes that are not named.
    """

    loss: Callable[..., np.ndarray]
    weights: tuple[tuple[Any, float], ...]
    rest: float = 1.0

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes that have a weight."""
        return tuple(label for label, _ in self.weights)

    def __call__(self, y: np.ndarray, *response: Any) -> np.ndarray:
        weight = np.full(y.shape[0], self.rest)
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


# Scorers by name -----------------------------------------------------------------------------

_NAMED: dict[str, Callable[[], BoundedScorer]] = {
    "accuracy": accuracy,
    "neg_brier_score": neg_brier_score,
    "neg_log_loss": neg_log_loss,
}
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
_BY_PROBABILITIES = "Use 'neg_brier_score' or 'neg_log_loss'."
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
    scoring : {"accuracy", "neg_brier_score", "neg_log_loss"} or BoundedScorer

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
