"""The private linear classifiers, one for each loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from skdptune._docstrings import with_shared_text
from skdptune.linear_model._defaults import CLIPPING_SOLVERS
from skdptune.linear_model._docstrings import CLASSIFIER_TEXT
from skdptune.linear_model._private_classifier import PrivateLinearClassifier
from skdptune.linear_model._solvers import LOGISTIC, huber_hinge, softmax_residuals


@with_shared_text(CLASSIFIER_TEXT)
class DPLogisticRegression(PrivateLinearClassifier):
    """Logistic regression classifier with differential privacy.

    Everything but the budget may be left out: solver, steps, learning rate, clipping norm and
    regularization follow from public numbers, by rules that ``docs/defaults.md`` states with what
    they were measured on.

    Parameters
    ----------
    {shared_parameters}

    Attributes
    ----------
    {shared_attributes}

    Notes
    -----
    Neighbours differ by adding or removing one record. With more than two classes there is one
    model against the rest for each, and one softmax model with "preconditioned", "sgd" and "adam".

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate (2011); Kifer, Smith and Thakurta (2012); Redberg, Koskela
    and Wang (2023) for "objective"; Wu et al. (2017) for "psgd"; Abadi et al. (2016) for "sgd".

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(epsilon=4.0, random_state=0).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.9
    True
    >>> model.privacy_.epsilon
    4.0
    """

    _loss = LOGISTIC

    def _residuals_and_targets(self, codes: np.ndarray, outputs: int) -> tuple[Any, np.ndarray]:
        if outputs == 1:
            return super()._residuals_and_targets(codes, outputs)
        return softmax_residuals, codes

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            positive = special.expit(scores)
            return np.stack([1.0 - positive, positive], axis=1)
        if self.solver_ in CLIPPING_SOLVERS:
            return special.softmax(scores, axis=1)
        # One model against the rest for each class.
        chances = special.expit(scores)
        return chances / chances.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))


@with_shared_text(CLASSIFIER_TEXT)
class DPLinearSVC(PrivateLinearClassifier):
    """Linear support vector classifier with differential privacy, with a smoothed hinge loss.

    Where probabilities are needed, use `DPLogisticRegression`. Everything but the budget may be
    left out: solver, steps, learning rate, clipping norm and regularization follow from public
    numbers, by rules that ``docs/defaults.md`` states with what they were measured on.

    Parameters
    ----------
    {shared_parameters}

    Attributes
    ----------
    {shared_attributes}

    Notes
    -----
    Neighbours differ by adding or removing one record. With more than two classes there is one
    model against the rest for each; "preconditioned" starts their intercepts at -2. The corner of
    the hinge is rounded on a width of 0.5 to each side (Chaudhuri et al. 2011), since the
    guarantees need a smooth loss.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLinearSVC(epsilon=4.0, random_state=0).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.9
    True
    """

    _loss = huber_hinge(0.5)
    # Where all records lie on the right side for all classes but their own: gradients then say
    # nothing but which class that is.
    _first_intercept = -2.0
