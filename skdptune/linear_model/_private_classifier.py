"""What the private linear classifiers share: parameters, cost, fit and decisions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import validated_rows
from skdptune._formatting import shown
from skdptune._validation import check_integer
from skdptune.accounting import PrivacyProfile
from skdptune.base import (
    ADD_OR_REMOVE,
    PUBLIC_LABELS,
    PUBLIC_SIZE,
    PUBLIC_WEIGHTS,
    ZERO_OUT,
    PrivateEstimatorMixin,
    Records,
    sorted_labels,
    validate_records,
    weights_of_classes,
)
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model._defaults import CLIPPING_SOLVERS, solver_of
from skdptune.linear_model._optional_protocol import OptionalProtocolMixin
from skdptune.linear_model._parameters import check_parameters
from skdptune.linear_model._solver_choice import active_solver
from skdptune.linear_model._solvers import (
    PERMUTATION_ASSUMPTION,
    Design,
    MarginLoss,
    initial_weights,
    margin_residuals,
    noise_generator,
    row_norm,
)

_REFUSED_WEIGHTS = (
    "sample_weight is not supported: a weight multiplies a record's influence, and the guarantee "
    "bounds that influence at weight 1. Use class_weight for public weights of classes; repeat or "
    "drop records before the fit only by a rule that looks at one record at a time."
)


class PrivateLinearClassifier(
    OptionalProtocolMixin, PrivateEstimatorMixin, ClassifierMixin, BaseEstimator
):
    """What the private linear classifiers share; a subclass brings the loss."""

    _loss: ClassVar[MarginLoss]
    # Where "preconditioned" starts the intercepts of more than two classes.
    _first_intercept: ClassVar[float] = 0.0

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        *,
        solver: str = "auto",
        C: float | None = None,
        data_norm: float | None = None,
        classes: Sequence[Any] | None = None,
        class_weight: Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
        epochs: float | Literal["max"] | None = None,
        batch_size: int | float | None = None,
        sampling: str = "poisson",
        learning_rate: float | None = None,
        max_grad_norm: float | None = None,
        noise_multiplier: float | None = None,
        tol: float = 1e-12,
        max_iter: int = 300,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.C = C
        self.data_norm = data_norm
        self.classes = classes
        self.class_weight = class_weight
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
        self.n_public = n_public
        self.ledger = ledger

    # The cost, before data ----------------------------------------------------------------

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return what a fit costs, from the parameters and public sizes alone.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it where it is given.
        n_features : int, optional
            Number of features; needed by "objective" where ``data_norm`` is not given.

        Returns
        -------
        PrivacyProfile
        """
        return self._plan_before_data(n_samples, n_features).profile

    def _plan_before_data(self, n_samples: int, n_features: int | None) -> Any:
        self._check_parameters()
        n_samples = self._public_size(check_integer(n_samples, name="n_samples", lower=1))
        n_classes = 2 if self.classes is None else len(self.classes)
        return self._plan(n_samples, n_features, n_classes)

    def _plan(self, n_samples: int, n_features: int | None, n_classes: int) -> Any:
        """Return the solver's plan: its noise, its constants and their cost."""
        return active_solver(self).plan(self, n_samples, n_features, n_classes)

    def _check_parameters(self) -> None:
        """Refuse bad parameters, before any data are read."""
        check_parameters(self)

    # Fitting --------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, **refused: Any
    ) -> Self:
        """Fit the model privately.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows longer than ``data_norm`` are shortened to it. A record that holds anything but
            finite numbers, or whose label is missing or none of ``classes``, counts as a row of
            zeros with the first label: it cannot make the fit fail.
        y : array-like of shape (n_samples,)
            Labels.
        coef_init : array-like of the shape of ``coef_``, optional
            Where "preconditioned", "sgd" and "adam" start; zeros by default. It must not depend
            on the data, except through a release that is charged for itself, such as an earlier
            private fit.
        intercept_init : array-like of the shape of ``intercept_``, optional
            As `coef_init`.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._check_arguments(coef_init, intercept_init, refused)
        # An interrupted fit leaves no model, and none of before.
        self.__dict__.pop("privacy_", None)
        X, y = self._validated(X, y)
        codes = self._encode(y)
        class_weights = weights_of_classes(self.class_weight, self.classes_)
        n_samples = self._public_size(X.shape[0])
        self._warn_of_large_delta(n_samples)
        plan = self._plan(n_samples, X.shape[1], len(self.classes_))
        start = self._initial_weights(coef_init, intercept_init, X.shape[1])
        rng = noise_generator(self.random_state)
        # A warning of overflow would tell of the data.
        with np.errstate(all="ignore"):
            design = Design.clipped(X, self._row_bound(X.shape[1]), self.fit_intercept)
            design = design.weighted(None if class_weights is None else class_weights[codes])
            weights = active_solver(self).weights(self, plan, design, codes, rng, start)
        self._set_weights(weights.T)
        self.plan_ = plan
        self.solver_ = solver_of(self)
        self.privacy_ = self._make_report(plan.profile, self._assumptions(X.shape[1]))
        return self

    def _check_arguments(
        self, coef_init: Any, intercept_init: Any, refused: dict[str, Any]
    ) -> None:
        """Refuse what `fit` cannot use, before any data are read."""
        if refused:
            raise TypeError(
                _REFUSED_WEIGHTS
                if "sample_weight" in refused
                else "fit must be given X, y, coef_init and intercept_init alone; got "
                f"{sorted(refused)} as well."
            )
        solver = solver_of(self)
        if solver in CLIPPING_SOLVERS:
            return
        for name, value in (("coef_init", coef_init), ("intercept_init", intercept_init)):
            if value is not None:
                raise ValueError(
                    f"{name} must be None with solver={shown(solver)}, which has no starting "
                    "point; got weights. Use solver='sgd' or 'adam'."
                )

    def _initial_weights(
        self, coef_init: Any, intercept_init: Any, n_features: int
    ) -> np.ndarray | None:
        outputs = 1 if self.classes_.size == 2 else self.classes_.size
        return initial_weights(
            coef_init,
            intercept_init,
            n_outputs=outputs,
            n_features=n_features,
            fit_intercept=self.fit_intercept,
        )

    def _validated(self, X: Any, y: Any) -> Records:
        # Theorem R5.
        return validate_records(
            self,
            X,
            y,
            labels=self.classes,
            is_classifier=True,
            accept_sparse=True,
            # An error must not reveal that a random subset is empty.
            min_samples=1 if self.n_public is None else 0,
        )

    def _row_bound(self, n_features: int | None) -> float:
        # Clipped gradients need no bound on rows.
        if solver_of(self) in CLIPPING_SOLVERS and self.data_norm is None:
            return math.inf
        return row_norm(self.data_norm, n_features)

    def _encode(self, y: np.ndarray) -> np.ndarray:
        """Set ``classes_`` and return labels as numbers 0, 1, ..."""
        if self.classes is not None:
            self.classes_ = np.unique(np.asarray(self.classes))
            return self._codes(y)
        labels = sorted_labels(y)
        # Its warnings depend on the labels present, so declared labels do without it.
        check_classification_targets(y)
        self.classes_ = labels
        if self.classes_.size < 2:
            raise ValueError(
                "y must have at least two classes, or classes= must name them; got one class."
            )
        if self.classes_.size > 2 and self._is_binary_only():
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}. Name the labels in classes=, so that the cost is known "
                "before the fit, or use delta > 0 and solver='auto'."
            )
        return self._codes(y)

    def _codes(self, y: np.ndarray) -> np.ndarray:
        if y.size == 0:
            return np.zeros(0, dtype=np.intp)
        return np.searchsorted(self.classes_, y)

    def _is_binary_only(self) -> bool:
        return self.classes is None and solver_of(self) not in CLIPPING_SOLVERS

    def _residuals_and_targets(self, codes: np.ndarray, outputs: int) -> tuple[Any, np.ndarray]:
        """Return how a record's loss depends on its outputs: the derivative, and its targets."""
        positive = codes == 1 if outputs == 1 else codes[:, None] == np.arange(outputs)
        return margin_residuals(self._loss.derivative), np.where(positive, 1.0, -1.0)

    def _set_weights(self, weights: np.ndarray) -> None:
        # A descent that diverged is a bad model, not an error: errors would leak the data.
        weights = np.nan_to_num(weights, nan=0.0, posinf=0.0, neginf=0.0)
        features = weights[:, :-1] if self.fit_intercept else weights
        self.coef_ = np.ascontiguousarray(features, dtype=np.float64)
        self.intercept_ = (
            weights[:, -1].astype(np.float64) if self.fit_intercept else np.zeros(len(weights))
        )

    @property
    def neighbouring(self) -> str:  # type: ignore[override]
        """How neighbouring data sets differ, in the words of reports."""
        return ZERO_OUT if self.solver == "psgd" else ADD_OR_REMOVE

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return what a fit's report will assume, from parameters and public sizes alone.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Number of columns; without it a bound on rows may be missing.

        Returns
        -------
        tuple of str
        """
        # Theorem F11.
        return self._assumptions(n_features)

    def _assumptions(self, n_features: int | None) -> tuple[str, ...]:
        is_known = n_features is not None or self.data_norm is not None
        bound = self._row_bound(n_features) if is_known else math.inf
        sentences = [PUBLIC_SIZE]
        if self.classes is None:
            sentences.append(PUBLIC_LABELS)
        if self.class_weight is not None:
            sentences.append(PUBLIC_WEIGHTS)
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
        X = validated_rows(
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

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has ended without an error."""
        return hasattr(self, "privacy_")

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a noisy linear classifier, for scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = not self._is_binary_only()
        # With the few dozen records of a check, noise is all that a private model shows.
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags
