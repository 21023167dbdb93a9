"""The explainable boosting machine for classification, with differential privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import ClassifierMixin

from skdptune._docstrings import with_shared_text
from skdptune.base._shared import (
    PUBLIC_LABELS,
    PUBLIC_WEIGHTS,
    arguments_of,
    check_class_weight,
    check_classes,
    label_set,
    weights_of_classes,
)
from skdptune.ensemble._boosting import BinaryResiduals, RateRule, Residuals, SoftmaxResiduals
from skdptune.ensemble._private_boosting import TEXT, Interactions, PrivateExplainableBoosting
from skdptune.ledger import PrivacyLedger
from skdptune.preprocessing._shared import as_schema


@with_shared_text(TEXT)
class DPExplainableBoostingClassifier(ClassifierMixin, PrivateExplainableBoosting):
    """Classifier of small trees with differential privacy: a curve for every column, and pairs.

    {summary}

    Parameters
    ----------
    {budget}
    {columns}
    classes : sequence, optional
        The labels. By default they are those of the schema's target, or else taken from `y`; the
        report then states that the label set is public.
    class_weight : mapping of class to float, optional
        Weights of classes, by which the residuals of their records are multiplied; classes that
        are not named have weight 1. They must be public numbers, not counted in the data. They are
        divided by the largest weight, so that no record's influence grows and the cost stays the
        same. For a rare class use `PrivateThreshold` instead.
    {boosting}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    {shared_attributes}

    Notes
    -----
    {notes}

    Residuals of two classes are at most 1. With more classes, each of which has a score, residuals
    have norm sqrt(2) at most. With `class_weight`, those of the other classes are shorter. Bins
    count every record as one, so that the noise of a score is the one that the learning rate's
    rule expects.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.ensemble import DPExplainableBoostingClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, size=(5000, 2))
    >>> y = np.abs(X[:, 0] - 0.5) < 0.25
    >>> model = DPExplainableBoostingClassifier(bounds=(0, 1), random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    >>> model.privacy_.epsilon
    1.0
    """

    # Noise of a logit: a logistic curve is about 4 wide. Labels tolerate more noise than
    # probabilities.
    _rate_rule = RateRule(noise=0.4, largest=1.0, growth=1.0 / 3.0)
    classes: Sequence[Any] | None
    class_weight: Mapping[Any, float] | None

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = None,
        schema: Any = None,
        classes: Sequence[Any] | None = None,
        class_weight: Mapping[Any, float] | None = None,
        max_bins: int = 32,
        max_rounds: int = 100,
        max_leaves: int = 3,
        learning_rate: float | None = None,
        bin_share: float = 0.1,
        interactions: Interactions = "auto",
        monotonic_cst: Any = None,
        noise_multiplier: float | None = None,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return the assumptions that a fit's report will state, from parameters and public sizes.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Number of columns.

        Returns
        -------
        tuple of str
        """
        labels = () if self._labels() is not None else (PUBLIC_LABELS,)
        weights = () if self.class_weight is None else (PUBLIC_WEIGHTS,)
        return super().privacy_assumptions(n_samples, n_features) + labels + weights

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_classes(self._labels())
        check_class_weight(self.class_weight, self._labels())
        self._check_constraints(len(self._labels() or ()))

    def _check_constraints(self, n_classes: int) -> None:
        if n_classes > 2 and self.monotonic_cst is not None:
            raise ValueError(
                f"monotonic_cst must be None with more than two classes; got {n_classes} classes."
            )

    def _labels(self) -> Sequence[Any] | None:
        """Return the declared labels, given here or in the schema."""
        if self.classes is not None or self.schema is None:
            return self.classes
        return as_schema(self.schema).target_labels

    def _residuals(self, targets: NDArray[Any], shares: NDArray[np.float64] | None) -> Residuals:
        labels = self._labels()
        found = label_set(targets, labels)
        if labels is None:
            self._check_constraints(found.size)
        self.classes_ = found
        codes = np.searchsorted(self.classes_, targets) if targets.size else np.zeros(0, np.intp)
        by_class = weights_of_classes(self.class_weight, self.classes_)
        weights = None if by_class is None else by_class[codes]
        if shares is not None:
            # Theorem P14: the product is at most the share, however it is rounded.
            weights = shares if weights is None else weights * shares
        if self.classes_.size == 2:
            return BinaryResiduals(codes, weights)
        return SoftmaxResiduals(codes, self.classes_.size, weights)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the sums of scores: (n_samples,) for two classes, (n_samples, n_classes) else.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        return self._scores(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of the highest score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._scores(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0.0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self._scores(X)
        if scores.ndim == 1:
            positive = special.expit(scores)
            return np.stack([1.0 - positive, positive], axis=1)
        return special.softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a noisy classifier, for scikit-learn."""
        tags = super().__sklearn_tags__()
        # In the tests' few dozen records, noise dominates any private model.
        tags.classifier_tags.poor_score = True
        return tags
