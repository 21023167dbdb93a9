"""Private linear classifiers: one class for the losses to share, two that users see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from skdptune.accounting import PrivacyProfile
from skdptune.accounting._checks import check_integer, check_option, check_real
from skdptune.base import PrivateEstimatorMixin
from skdptune.base._mixin import PUBLIC_SIZE
from skdptune.linear_model._clipped_gradients import margin_residuals, softmax_residuals
from skdptune.linear_model._design import Design
from skdptune.linear_model._margin_losses import LOGISTIC, MarginLoss, huber_hinge
from skdptune.linear_model._noisy_gradient import fit_noisy_gradient
from skdptune.linear_model._noisy_gradient_plan import SAMPLINGS, plan_noisy_gradient
from skdptune.linear_model._objective import fit_objective, plan_objective
from skdptune.linear_model._output import fit_output, plan_output
from skdptune.linear_model._permutation import ASSUMPTION as PERMUTATION_ASSUMPTION
from skdptune.linear_model._permutation import fit_permutation, plan_permutation

_PERTURBATIONS = {
    "objective": (plan_objective, fit_objective),
    "output": (plan_output, fit_output),
    "psgd": (plan_permutation, fit_permutation),
}
_LEARNING_RATES = {"sgd": 2.0, "adam": 0.1}
SOLVERS = (*_PERTURBATIONS, *_LEARNING_RATES)
_REFUSED_WEIGHTS = (
    "sample_weight is not supported: a weight multiplies a record's influence, and the guarantee "
    "bounds that influence at weight 1. Repeat or drop records before the fit only by a rule "
    "that looks at one record at a time."
)


class _PrivateLinearClassifier(PrivateEstimatorMixin, ClassifierMixin, BaseEstimator):
    """What DPLogisticRegression and DPLinearSVC share."""

    _loss: ClassVar[MarginLoss]

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        *,
        solver: str = "objective",
        C: float = 1.0,
        data_norm: float | None = None,
        classes: Sequence[Any] | None = None,
        fit_intercept: bool = True,
        epochs: float = 20,
        batch_size: int | float = 256,
        sampling: str = "poisson",
        learning_rate: float | None = None,
        max_grad_norm: float = 1.0,
        noise_multiplier: float | None = None,
        tol: float = 1e-12,
        max_iter: int = 300,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.C = C
        self.data_norm = data_norm
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.epochs = epochs
        self.batch_size = batch_size
        self.sampling = sampling
        self.learning_rate = learning_rate
        self.max_grad_norm = max_grad_norm
        self.noise_multiplier = noise_multiplier
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    # The price, before data ---------------------------------------------------------------

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return what a fit costs, from the parameters and public sizes alone.

        Parameters
        ----------
        n_samples : int
            Number of records; public.
        n_features : int, optional
            Number of features; needed by "objective" where ``data_norm`` is not given.

        Returns
        -------
        PrivacyProfile
        """
        self._check_parameters()
        n_samples = check_integer(n_samples, name="n_samples", lower=1)
        n_classes = 2 if self.classes is None else len(self.classes)
        return self._plan(n_samples, n_features, n_classes).profile

    def _plan(self, n_samples: int, n_features: int | None, n_classes: int) -> Any:
        """Return the solver's plan: its noise, its constants and their price."""
        budget = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise_multiplier": self.noise_multiplier,
        }
        if self.solver in _LEARNING_RATES:
            return plan_noisy_gradient(
                n_samples,
                epochs=self.epochs,
                batch_size=self._batch(n_samples),
                sampling=self.sampling,
                **budget,
            )
        plan, _ = _PERTURBATIONS[self.solver]
        return plan(
            self._loss,
            math.hypot(self._norm(n_features), float(self.fit_intercept)),
            1.0 / self.C,
            (1 if n_features is None else n_features) + int(self.fit_intercept),
            n_samples,
            n_problems=1 if n_classes <= 2 else n_classes,
            **budget,
            **self._accuracy(n_samples),
        )

    def _accuracy(self, n_samples: int) -> dict[str, Any]:
        """Return what a perturbation's plan is told of how to minimise."""
        if self.solver == "psgd":
            return {
                "n_passes": max(1, round(self.epochs)),
                "batch_size": self._batch(n_samples),
                "step_size": self.learning_rate,
            }
        return {"tolerance": self.tol, "max_iter": self.max_iter}

    def _norm(self, n_features: int | None) -> float:
        """Return the bound on a row's norm: given, or that of standardised features."""
        if self.data_norm is not None:
            return float(self.data_norm)
        if n_features is None:
            raise ValueError(
                "data_norm must be given where n_features is not; got None. Its default is "
                "sqrt(n_features), about the norm of a row of standardised features."
            )
        return math.sqrt(n_features)

    def _batch(self, n_samples: int) -> int:
        """Return the expected batch size; a float is a share of the records."""
        if isinstance(self.batch_size, float):
            return max(1, round(self.batch_size * n_samples))
        return min(self.batch_size, n_samples)

    def _check_parameters(self) -> None:
        """Refuse bad parameters, before any data are read."""
        check_option(self.solver, name="solver", options=SOLVERS)
        check_option(self.sampling, name="sampling", options=SAMPLINGS)
        if self.noise_multiplier is None:
            self._checked_budget()
        else:
            self._checked_delta()
            check_real(self.noise_multiplier, name="noise_multiplier", lower=0.0, lower_open=True)
        check_real(self.C, name="C", lower=1e-15, upper=1e15)
        if self.data_norm is not None:
            check_real(self.data_norm, name="data_norm", lower=0.0, lower_open=True, upper=1e7)
        check_real(self.max_grad_norm, name="max_grad_norm", lower=0.0, lower_open=True)
        check_real(self.epochs, name="epochs", lower=0.0, lower_open=True, upper=1e9)
        check_real(self.tol, name="tol", lower=0.0, upper=1e-2)
        check_integer(
            self.max_iter,
            name="max_iter",
            lower=100,
            hint="The guarantee needs the minimum, so the iteration is never cut short.",
        )
        if self.learning_rate is not None:
            check_real(self.learning_rate, name="learning_rate", lower=0.0, lower_open=True)
        if isinstance(self.batch_size, float):
            check_real(self.batch_size, name="batch_size", lower=0.0, lower_open=True, upper=1.0)
        else:
            check_integer(self.batch_size, name="batch_size", lower=1)
        if self.classes is not None and len(set(self.classes)) < max(len(self.classes), 2):
            raise ValueError(
                f"classes must be at least two different labels; got {list(self.classes)!r}."
            )

    # Fitting --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, **refused: Any) -> _PrivateLinearClassifier:
        """Fit the model privately.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows longer than ``data_norm`` are shortened to it.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self
        """
        if refused:
            raise TypeError(
                _REFUSED_WEIGHTS
                if "sample_weight" in refused
                else f"fit must be given X and y alone; got {sorted(refused)} as well."
            )
        self._check_parameters()
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            accept_large_sparse=False,
        )
        codes = self._encode(y)
        self._warn_of_large_delta(X.shape[0])
        plan = self._plan(X.shape[0], X.shape[1], len(self.classes_))
        design = Design.clipped(X, self._row_bound(X.shape[1]), self.fit_intercept)
        weights = self._solve(plan, design, codes, _generator(self.random_state))
        self._set_weights(np.atleast_2d(weights.T))
        self.plan_ = plan
        self.privacy_ = self._make_report(plan.profile, self._assumptions(X.shape[1]))
        return self

    def _row_bound(self, n_features: int) -> float:
        # Clipped gradients need no bound on rows.
        if self.solver in _LEARNING_RATES and self.data_norm is None:
            return math.inf
        return self._norm(n_features)

    def _encode(self, y: np.ndarray) -> np.ndarray:
        """Set ``classes_`` and return labels as numbers 0, 1, ..."""
        check_classification_targets(y)
        self.classes_ = np.unique(y if self.classes is None else np.asarray(self.classes))
        if self.classes_.size < 2:
            raise ValueError(
                "y must have at least two classes, or classes= must name them; got one class."
            )
        if self.classes is None and self.classes_.size > 2 and self._is_binary_only():
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}. Name the labels in classes=, so that the price is known "
                "before the fit, or use solver='sgd'."
            )
        codes = np.searchsorted(self.classes_, y)
        codes = np.minimum(codes, self.classes_.size - 1)
        if not np.array_equal(self.classes_[codes], y):
            raise ValueError("y must hold only labels named in classes; got others.")
        return codes

    def _is_binary_only(self) -> bool:
        return self.classes is None and self.solver not in _LEARNING_RATES

    def _solve(
        self, plan: Any, design: Design, codes: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        if self.solver in _LEARNING_RATES:
            return self._descend(plan, design, codes, rng)
        _, fit = _PERTURBATIONS[self.solver]
        positives = [1] if self.classes_.size == 2 else range(self.classes_.size)
        columns = [fit(plan, design, np.where(codes == k, 1.0, -1.0), rng) for k in positives]
        return np.stack(columns, axis=1)

    def _descend(
        self, plan: Any, design: Design, codes: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        outputs = 1 if self.classes_.size == 2 else self.classes_.size
        residuals, targets = self._residuals(codes, outputs)
        rate = self.learning_rate
        return fit_noisy_gradient(
            plan,
            design,
            residuals,
            targets,
            outputs,
            optimizer=self.solver,
            learning_rate=_LEARNING_RATES[self.solver] if rate is None else rate,
            max_grad_norm=self.max_grad_norm,
            regularization=1.0 / self.C,
            rng=rng,
        )

    def _residuals(self, codes: np.ndarray, outputs: int) -> tuple[Any, np.ndarray]:
        """Return the derivative of a record's loss by its outputs, and what it compares to."""
        positive = codes == 1 if outputs == 1 else codes[:, None] == np.arange(outputs)
        return margin_residuals(self._loss.derivative), np.where(positive, 1.0, -1.0)

    def _set_weights(self, weights: np.ndarray) -> None:
        # A descent that diverged is a bad model, not an error: errors would tell of the data.
        weights = np.nan_to_num(weights, nan=0.0, posinf=0.0, neginf=0.0)
        features = weights[:, :-1] if self.fit_intercept else weights
        self.coef_ = np.ascontiguousarray(features, dtype=np.float64)
        self.intercept_ = (
            weights[:, -1].astype(np.float64) if self.fit_intercept else np.zeros(len(weights))
        )

    def _assumptions(self, n_features: int) -> tuple[str, ...]:
        bound = self._row_bound(n_features)
        sentences = [PUBLIC_SIZE]
        if self.classes is None:
            sentences.append("the label set is public")
        if math.isfinite(bound):
            sentences.append(f"rows are clipped to Euclidean norm {bound:.4g}")
        if self.solver == "psgd":
            sentences.append(PERMUTATION_ASSUMPTION)
        return tuple(sentences)

    # Using ----------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the linear scores: (n_samples,) for two classes, (n_samples, n_classes) else.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        check_is_fitted(self)
        X = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of the highest score.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0.0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what to expect of a noisy linear classifier."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = not self._is_binary_only()
        # Noise: with a few dozen records of a test a private model has nothing to say.
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags


def _generator(random_state: Any) -> np.random.Generator:
    """Return a generator: seeded by the operating system, a number, or a RandomState."""
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    legacy = check_random_state(random_state)
    return np.random.default_rng(legacy.randint(0, 2**31 - 1, size=8))


class DPLogisticRegression(_PrivateLinearClassifier):
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
        Step; by default 2 for "sgd", 0.1 for "adam", the longest safe one for "psgd".
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

    def _residuals(self, codes: np.ndarray, outputs: int) -> tuple[Any, np.ndarray]:
        if outputs == 1:
            return super()._residuals(codes, outputs)
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
        if self.solver in _LEARNING_RATES:
            return special.softmax(scores, axis=1)
        # One model against the rest for each class.
        chances = special.expit(scores)
        return chances / chances.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))


class DPLinearSVC(_PrivateLinearClassifier):
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
        Step; by default 2 for "sgd", 0.1 for "adam", the longest safe one for "psgd".
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
