"""Prediction intervals for private regressors, and prediction sets for private classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.utils.validation import check_is_fitted

from skdptune._docstrings import with_shared_text
from skdptune.base._shared import (
    PUBLIC_LABELS,
    PUBLIC_SIZE,
    arguments_of,
    check_classes,
    declared_labels,
    labels_in,
    nested_estimators,
    own_parameters,
    read_targets,
    target_range,
)
from skdptune.calibration._private_conformal import TEXT, ConformalPlan, PrivateConformal
from skdptune.calibration._release import if_model_has
from skdptune.ledger import PrivacyLedger
from skdptune.preprocessing._shared import range_of_targets

# Half widths of intervals are powers of 2, from the targets' range down to 2^-10 of it.
_OCTAVES = 10.0


@with_shared_text(TEXT)
class PrivateConformalRegressor(RegressorMixin, PrivateConformal):
    """Prediction intervals of a private regressor, with a stated coverage.

    A random part of the records is held out, and the regressor is fitted to the others. A private
    quantile of the absolute residuals of the held-out records is half the width of all intervals.
    The fit and the quantile together cost `epsilon` and `delta`: the only price of the intervals
    is the smaller number of records in the fit.

    Parameters
    ----------
    estimator : estimator
        A private regressor, or a pipeline that `make_private_pipeline` makes; it is copied. The
        budget given here replaces its own budget.
    {budget}
    target_bound : float or tuple (lower, upper), optional
        Bound on the absolute value of a target, or its public range. None uses that of the
        estimator or of its schema. Intervals cover targets that are clipped to it.
    {randomness_and_size}

    Attributes
    ----------
    half_width_ : float
        Half the width of intervals, before they are clipped to the range of targets.
    {shared_attributes}

    See Also
    --------
    PrivateConformalClassifier : Sets of labels.

    Notes
    -----
    {notes}

    Half widths are powers of 2 on a fine grid, down to 1/1024 of the range of targets.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.calibration import PrivateConformalRegressor
    >>> from skdptune.linear_model import AdaSSPLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(10_000, 2))
    >>> y = X @ [1.0, -0.5] + rng.normal(scale=0.2, size=10_000)
    >>> ridge = AdaSSPLinearRegression(target_bound=2.0)
    >>> model = PrivateConformalRegressor(ridge, epsilon=1.0, coverage=0.9, random_state=0)
    >>> low, high = model.fit(X, y).predict_interval(X).T
    >>> bool(0.88 < np.mean((low <= y) & (y <= high)) < 0.94)
    True
    """

    _kind, _response, _scored = "regressor", "predict", "residuals held out"
    target_bound: float | tuple[float, float] | None

    def __init__(
        self,
        estimator: Any,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        coverage: float = 0.9,
        calibration_fraction: float | None = None,
        target_bound: float | tuple[float, float] | None = None,
        random_state: int | None = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    def predict_interval(self, X: Any) -> NDArray[np.float64]:
        """Return the lower and upper ends of the intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Clipped to the range of targets.
        """
        low, high = self._target_range()
        centre = np.clip(np.asarray(self.predict(X), dtype=np.float64).ravel(), low, high)
        ends = np.column_stack([centre - self.half_width_, centre + self.half_width_])
        return np.clip(ends, low, high)

    def _target_range(self) -> tuple[float, float]:
        """Return the public range of targets, or raise."""
        if self.target_bound is not None:
            return target_range(self.target_bound)
        found = range_of_targets(self.estimator)
        if found is None:
            raise ValueError(
                "target_bound must be given; got None, and the estimator has no range of "
                "targets. Give the largest absolute value that a target is known to have, or its "
                "range as a pair (lower, upper)."
            )
        return target_range(found)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._target_range()

    def _told(self, inner: Any, labels: list[Any] | None) -> Any:
        parts = list(nested_estimators(inner))
        if self.target_bound is None or _transforms_targets(inner):
            return inner
        for _, part in parts:
            if own_parameters(part).get("target_bound", 0) is None:
                part.set_params(target_bound=self.target_bound)
        return inner

    def _assumptions(self) -> tuple[str, ...]:
        low, high = self._target_range()
        return (PUBLIC_SIZE, f"intervals cover targets clipped to [{low:.4g}, {high:.4g}]")

    def _score(self, model: Any, rows: Any, targets: Any) -> NDArray[Any]:
        """Return absolute residuals on a log scale, from 2^-10 of the range to the range."""
        low, high = self._target_range()
        predicted = np.asarray(model.predict(rows), dtype=np.float64).reshape(targets.shape)
        residuals = np.abs(np.clip(targets, low, high) - np.clip(predicted, low, high))
        return np.clip(1.0 + np.log2(residuals / (high - low)) / _OCTAVES, 0.0, 1.0)

    def _publish(
        self, model: Any, plan: ConformalPlan, quantile: float, *others: Any, **named: Any
    ) -> None:
        low, high = self._target_range()
        self.half_width_ = (high - low) * 2.0 ** (_OCTAVES * (quantile - 1.0))
        super()._publish(model, plan, quantile, *others, **named)


def _transforms_targets(estimator: Any) -> bool:
    kinds = (type(part) for _, part in nested_estimators(estimator))
    return any(issubclass(kind, TransformedTargetRegressor) for kind in kinds)


@with_shared_text(TEXT)
class PrivateConformalClassifier(ClassifierMixin, PrivateConformal):
    """Prediction sets of a private classifier, with a stated coverage.

    A random part of the records is held out, and the classifier is fitted to the others. For each
    held-out record, 1 minus the probability of the correct label is computed, and a private
    quantile of these numbers is released. A set holds all labels whose probability is large enough
    for this quantile. The fit and the quantile together cost `epsilon` and `delta`: the only price
    of the sets is the smaller number of records in the fit.

    Parameters
    ----------
    estimator : estimator
        A private classifier with ``predict_proba``, or a pipeline that `make_private_pipeline`
        makes; it is copied. The budget given here replaces its own budget.
    {budget}
    classes : list, optional
        The public label set. None uses that of the estimator, or the labels in the data.
    {randomness_and_size}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in the order of the columns of sets.
    {shared_attributes}

    See Also
    --------
    PrivateConformalRegressor : Intervals.

    Notes
    -----
    {notes}

    A set may be empty: then no label is as probable as most correct labels of held-out records
    were.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.calibration import PrivateConformalClassifier
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(10_000, 2))
    >>> y = X[:, 0] + rng.normal(scale=0.3, size=10_000) > 0
    >>> logistic = DPLogisticRegression(solver="adam")
    >>> model = PrivateConformalClassifier(logistic, epsilon=1.0, coverage=0.9, random_state=0)
    >>> sets = model.fit(X, y).predict_set(X)
    >>> bool(0.88 < np.mean(sets[np.arange(10_000), y.astype(int)]) < 0.94)
    True
    """

    _kind, _response, _scored = "classifier", "predict_proba", "scores held out"
    classes: Sequence[Any] | None

    def __init__(
        self,
        estimator: Any,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        coverage: float = 0.9,
        calibration_fraction: float | None = None,
        classes: Sequence[Any] | None = None,
        random_state: int | None = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    @property
    def cost_parameters(self) -> frozenset[str]:
        """Names of the parameters on which `privacy_profile` depends."""
        return super().cost_parameters | {"classes"}

    def predict_set(self, X: Any) -> NDArray[np.bool_]:
        """Return which labels the sets hold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return np.asarray(1.0 - self.predict_proba(X) <= self.quantile_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the model's probabilities of labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    @if_model_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Return the model's scores of labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.estimator_.decision_function(X)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_classes(self.classes)

    def _labels(self, y: Any) -> list[Any] | None:
        declared = declared_labels(self)
        if declared is not None:
            return declared
        found = labels_in(read_targets(y, "any", None)[0])
        if found.size < 2:
            raise ValueError("y must have at least two classes; got one class.")
        return list(found.tolist())

    def _told(self, inner: Any, labels: list[Any] | None) -> Any:
        labels = declared_labels(self) if labels is None else labels
        for _, part in list(nested_estimators(inner)):
            if labels is not None and own_parameters(part).get("classes", 0) is None:
                part.set_params(classes=labels)
        return inner

    def _assumptions(self) -> tuple[str, ...]:
        return (PUBLIC_SIZE, PUBLIC_LABELS)

    def _score(self, model: Any, rows: Any, targets: Any) -> NDArray[Any]:
        """Return 1 minus the probability of each record's label; 1 for an unknown label."""
        probabilities = np.asarray(model.predict_proba(rows), dtype=np.float64)
        is_label = targets[:, None] == np.asarray(model.classes_)[None, :]
        return np.asarray(np.where(is_label, 1.0 - probabilities, np.inf).min(axis=1)).clip(0, 1)

    def _publish(
        self, model: Any, plan: ConformalPlan, quantile: float, *others: Any, **named: Any
    ) -> None:
        self.classes_ = np.asarray(model.classes_)
        super()._publish(model, plan, quantile, *others, **named)
