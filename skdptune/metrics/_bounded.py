"""Scorers that average bounded values, one per record, and their sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdptune._formatting import shown
from skdptune._validation import check_flag, check_integer, check_kind, check_option, check_real
from skdptune.base._shared import kind_of_targets, read_targets
from skdptune.mechanisms import unit_sum

RESPONSES = ("predict", "predict_proba", "decision_function")


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

    def score(self, values: ArrayLike, n_public: int, *, clip: bool = True) -> float:
        """Return the score of given values, for a public number of records.

        Parameters
        ----------
        values : array-like
            One value per record, as returned by `per_record`.
        n_public : int
            The public constant used as the number of records.
        clip : bool, default=True
            Whether a score beyond the bounds, of more records than expected, is clipped to them.
        """
        size = check_integer(n_public, name="n_public", lower=1)
        half = (self.upper - self.lower) / 2.0
        middle = self.lower + half
        centre, unit = (middle, half) if self.centred else (self.lower, 2.0 * half)
        bounded = self._bounded(np.asarray(values, dtype=np.float64).ravel())
        total = float(unit_sum((bounded - centre) / unit))
        found = centre + unit * total / size
        return min(max(found, self.lower), self.upper) if clip else found

    def uncentred(self) -> BoundedScorer:
        """Return a copy whose values are measured from `lower`, so that it is monotone."""
        return replace(self, centred=False)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the mean over the given records; larger is better."""
        values = self.per_record(estimator, X, y)
        return self.score(values, max(values.size, 1))

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
