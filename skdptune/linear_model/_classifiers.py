"""The private linear classifiers, one for each loss.

[shared_parameters]
epsilon : float or None, default=1.0
    Privacy budget of a fit; infinite for no noise. Not used if `noise_multiplier` is given, unless
    `epochs` is "max".
delta : float, default=1e-5
    Delta of the budget, far below 1 over the number of records. 0 requests pure differential
    privacy, which "auto", "objective", "output" and "psgd" support.
solver : {"auto", "preconditioned", "objective", "output", "psgd", "sgd", "adam"}, default="auto"
    "auto" means "preconditioned"; it means "sgd" if `batch_size`, another `sampling` or "max"
    epochs are given, and "objective" if `delta` is 0. "preconditioned" releases second moments of
    the rows with noise. It then descends along noisy sums of all records' clipped gradients, in
    coordinates in which those moments are about equal. "objective" adds a random linear term to
    the objective and minimises it. "output" adds noise to the minimum. "psgd" adds noise to the
    result of a few passes over the records in random order. "sgd" and "adam" descend along noisy
    sums of clipped gradients of batches.
C : float, optional
    Inverse of the regularization strength, as in scikit-learn; the intercept is regularised like
    the other weights. None means 1 with "psgd", "sgd" and "adam". It means no regularization with
    "preconditioned", whose noise and number of steps regularise; where that noise is small, it
    means 3 for two classes of `DPLogisticRegression`. With "objective" and "output", it means a
    strength at which the effect of the noise on margins is constant. "objective" lowers C if it
    would use up the budget; ``plan_`` holds the regularization that was used.
data_norm : float, optional
    Bound on the Euclidean norm of a row; longer rows are shortened to it. None means
    ``sqrt(n_features)``, about the norm of a row of standardised features. With "preconditioned",
    "sgd" and "adam" it means no bound: they clip gradients instead ("preconditioned" shortens rows
    only for the release of second moments).
classes : sequence, optional
    The labels. By default they are taken from `y`, and the report states that the label set is
    public; "objective", "output" and "psgd" then accept only two labels.
class_weight : mapping of class to float, optional
    Weights of classes, by which the losses of their records are multiplied; classes that are not
    named have weight 1. For a rare class use `PrivateThreshold` instead.
    Weights must be public numbers, not counted in the data. Unlike in scikit-learn, they are
    divided by the largest weight, so that no record's influence grows and the cost stays the same.
    For the model of scikit-learn, multiply `C` by the largest weight. "preconditioned", "sgd" and
    "adam" multiply clipped gradients.
fit_intercept : bool, default=True
    Whether there is an intercept.
epochs : float or "max", optional
    Passes over the data; each is one step of "preconditioned". None means 100 steps for it (30
    steps with less noise, at the same cost, if noise would dominate the moments), and 20 passes
    for "psgd", "sgd" and "adam". With "max", "sgd" and "adam" take all steps of noise
    `noise_multiplier` that `epsilon` and `delta` pay for.
batch_size : int or float, optional
    Expected number of records in a batch of "psgd", "sgd" and "adam"; a float is their share of
    all records. None means 256.
sampling : {"poisson", "fixed", "allocation"}, default="poisson"
    How "sgd" and "adam" draw batches. "poisson" draws each record for each batch independently.
    "fixed" draws batches of fixed size, which needs about twice the noise. "allocation" puts each
    record into one batch of an epoch, at random: use it to have every record once in an epoch,
    with slightly less noise.
learning_rate : float, optional
    Length of a step. None means 2 with "sgd", 0.3 divided by the root of the number of steps with
    "adam", and the largest allowed one with "psgd". With "preconditioned" it is a factor of the
    rate that its rule finds, and None means 1.
max_grad_norm : float, optional
    Norm to which the gradient of each record is clipped; None means 1 with "sgd" and "adam". With
    "preconditioned" it is in units of the usual norm of a row in its coordinates, and None means
    0.15, or up to 1 if there is little noise.
noise_multiplier : float, optional
    Noise in units of a record's influence. If given, it replaces `epsilon`; with "max" epochs both
    are needed.
tol : float, default=1e-12
    Stopping criterion of "objective" and "output": norm of the gradient, in units of the largest
    possible one. Noise hides the remaining error, at a cost that is included.
max_iter : int, default=300
    Largest number of Newton steps of "objective" and "output"; at least 100, since the
    guarantee needs the minimum.
{randomness}
n_public : int, optional
    Public constant in place of the number of records. A search sets it if it fits on a random
    subset of the data, whose size must stay secret. Not for "psgd" and for `sampling` "fixed",
    whose guarantees need the number itself.
{ledger}

[shared_attributes]
coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    The private weights.
intercept_ : ndarray of shape (1,) or (n_classes,)
    The private intercepts; zeros if there are none.
classes_ : ndarray of shape (n_classes,)
    The labels.
solver_ : str
    The solver that was used.
privacy_ : PrivacyReport
    The privacy cost of the fit.
plan_ : object
    Noise and constants of the solver.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, if the columns of `X` had any.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from skdptune._docstrings import with_shared_text
from skdptune.linear_model._private_classifier import PrivateLinearClassifier
from skdptune.linear_model._solver_choice import CLIPPING_SOLVERS
from skdptune.linear_model._solvers import LOGISTIC, huber_hinge, softmax_residuals

# Shared by all classifiers.
CLASSIFIER_TEXT = __doc__


@with_shared_text(CLASSIFIER_TEXT)
class DPLogisticRegression(PrivateLinearClassifier):
    """Logistic regression classifier with differential privacy.

    Only the budget needs to be set: solver, steps, learning rate, clipping norm and regularization
    follow from public numbers. ``docs/defaults.md`` states these rules, and the data on which they
    were measured.

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

    @classmethod
    def _residuals_and_targets(cls, codes: np.ndarray, outputs: int) -> tuple[Any, np.ndarray]:
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

    If probabilities are needed, use `DPLogisticRegression`. Only the budget needs to be set:
    solver, steps, learning rate, clipping norm and regularization follow from public numbers.
    ``docs/defaults.md`` states these rules, and the data on which they were measured.

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
    # At these intercepts all records are on the correct side for all classes except their own, so
    # gradients only show the class.
    _first_intercept = -2.0
