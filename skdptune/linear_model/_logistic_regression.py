"""Private linear classifiers, as users see them: one for each loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from skdptune.linear_model._private_classifier import PrivateLinearClassifier
from skdptune.linear_model._solvers import LOGISTIC, OPTIMIZERS, huber_hinge, softmax_residuals


class DPLogisticRegression(PrivateLinearClassifier):
    """Differentially private logistic regression.

    Parameters
    ----------
    epsilon, delta : float, default=1.0 and 1e-5
        Budget of a fit. ``delta=0`` asks for pure differential privacy, which "objective",
        "output" and "psgd" can give.
    solver : {"objective", "output", "psgd", "sgd", "adam"}, default="objective"
        "objective" adds a random linear term to the objective and minimises it; "output" adds
        noise to the minimum; "psgd" adds noise to the result of a few passes over a random order;
        "sgd" and "adam" descend along noisy sums of clipped gradients.
    C : float, default=1.0
        Inverse regularization, as in scikit-learn; the intercept is regularised like the rest.
        "objective" lowers it where it would eat the budget (``plan_`` tells).
    data_norm : float, optional
        Rows longer than this are shortened to it. The default is ``sqrt(n_features)``, about
        right for standardised features; "sgd" and "adam" need none.
    classes : sequence, optional
        The labels. Without it they are taken from `y`, and the report says that the label set is
        public; the solvers other than "sgd" and "adam" then accept two labels only.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    epochs : float, default=20
        Passes over the data of "psgd", "sgd" and "adam".
    batch_size : int or float, default=256
        Expected records of a batch; a float is a share of the records, the sampling rate.
    sampling : {"poisson", "fixed"}, default="poisson"
        Whether batches of "sgd" and "adam" are drawn record by record, or have a fixed size,
        which costs about twice the noise.
    learning_rate : float, optional
        Step; by default 2 for "sgd", 0.3 over the root of the number of steps for "adam", the
        longest safe one for "psgd".
    max_grad_norm : float, default=1.0
        Norm to which "sgd" and "adam" clip each record's gradient.
    noise_multiplier : float, optional
        The noise in units of a record's influence. Given, it replaces `epsilon`.
    tol : float, default=1e-12
        Norm of the gradient at which "objective" and "output" stop, relative to its largest; what
        is left is hidden by noise and charged.
    max_iter : int, default=300
        Newton steps, at least 100: the guarantee needs the minimum.
    random_state : int, Generator, RandomState or None, default=None
        None draws from the operating system's entropy; a seed gives reproducible research runs.
    n_public : int, optional
        Public constant that stands for the number of records; the default is their number. A
        search sets it where it fits on a random part of the data, whose size must stay secret.
        Not for "psgd" and `sampling` "fixed", whose proofs need the number itself.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        The private model.
    classes_ : ndarray
        The labels.
    privacy_ : PrivacyReport
        What the fit cost.
    plan_ : object
        Noise and constants of the solver.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Neighbours differ by adding or removing one record. More than two classes: one model
    against the rest each (softmax for "sgd" and "adam").

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate (2011); Kifer, Smith and Thakurta (2012); Redberg, Koskela
    and Wang (2023) for "objective"; Wu et al. (2017) for "psgd"; Abadi et al. (2016) for "sgd".

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(epsilon=4.0, C=0.01, random_state=0).fit(scale(X), y)
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
        if self.solver in OPTIMIZERS:
            return special.softmax(scores, axis=1)
        # One model against the rest for each class.
        chances = special.expit(scores)
        return chances / chances.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))


class DPLinearSVC(PrivateLinearClassifier):
    """Differentially private linear support vector machine, with a Huberised hinge loss.

    Parameters
    ----------
    epsilon, delta : float, default=1.0 and 1e-5
        Budget of a fit. ``delta=0`` asks for pure differential privacy, which "objective",
        "output" and "psgd" can give.
    solver : {"objective", "output", "psgd", "sgd", "adam"}, default="objective"
        "objective" adds a random linear term to the objective and minimises it; "output" adds
        noise to the minimum; "psgd" adds noise to the result of a few passes over a random order;
        "sgd" and "adam" descend along noisy sums of clipped gradients.
    C : float, default=1.0
        Inverse regularization, as in scikit-learn; the intercept is regularised like the rest.
        "objective" lowers it where it would eat the budget (``plan_`` tells).
    data_norm : float, optional
        Rows longer than this are shortened to it. The default is ``sqrt(n_features)``, about
        right for standardised features; "sgd" and "adam" need none.
    classes : sequence, optional
        The labels. Without it they are taken from `y`, and the report says that the label set is
        public; the solvers other than "sgd" and "adam" then accept two labels only.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    epochs : float, default=20
        Passes over the data of "psgd", "sgd" and "adam".
    batch_size : int or float, default=256
        Expected records of a batch; a float is a share of the records, the sampling rate.
    sampling : {"poisson", "fixed"}, default="poisson"
        Whether batches of "sgd" and "adam" are drawn record by record, or have a fixed size,
        which costs about twice the noise.
    learning_rate : float, optional
        Step; by default 2 for "sgd", 0.3 over the root of the number of steps for "adam", the
        longest safe one for "psgd".
    max_grad_norm : float, default=1.0
        Norm to which "sgd" and "adam" clip each record's gradient.
    noise_multiplier : float, optional
        The noise in units of a record's influence. Given, it replaces `epsilon`.
    tol : float, default=1e-12
        Norm of the gradient at which "objective" and "output" stop, relative to its largest; what
        is left is hidden by noise and charged.
    max_iter : int, default=300
        Newton steps, at least 100: the guarantee needs the minimum.
    random_state : int, Generator, RandomState or None, default=None
        None draws from the operating system's entropy; a seed gives reproducible research runs.
    n_public : int, optional
        Public constant that stands for the number of records; the default is their number. A
        search sets it where it fits on a random part of the data, whose size must stay secret.
        Not for "psgd" and `sampling` "fixed", whose proofs need the number itself.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        The private model.
    classes_ : ndarray
        The labels.
    privacy_ : PrivacyReport
        What the fit cost.
    plan_ : object
        Noise and constants of the solver.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Neighbours differ by adding or removing one record. More than two classes: one model
    against the rest each. The hinge is rounded on a width of 0.5 to each side (Chaudhuri et al.
    2011), since the guarantees need a smooth loss.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLinearSVC(epsilon=4.0, C=0.01, random_state=0).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.9
    True
    """

    _loss = huber_hinge(0.5)
