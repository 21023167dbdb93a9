"""What the private linear regressions share: parameters, cost, sums, predictions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import validated_rows
from skdptune._validation import check_flag, check_integer, check_kind, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.base import (
    PUBLIC_SIZE,
    PrivateEstimatorMixin,
    Records,
    table_shape,
    target_range,
    validate_records,
)
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model._regression._chunks import chunks_of, is_streamed
from skdptune.linear_model._regression._fit_many import fit_in_one_pass
from skdptune.linear_model._regression._optional_protocol import (
    LARGEST_ALPHA,
    OptionalProtocolMixin,
)
from skdptune.linear_model._regression._ridge_problem import RidgeProblem
from skdptune.linear_model._regression._sufficient_statistics import (
    CONSTANT,
    SufficientStatistics,
    check_bound,
    squared_radius,
)
from skdptune.linear_model._solvers import largest_subset_size, noise_generator, row_norm


class PrivateLinearRegressor(
    OptionalProtocolMixin, PrivateEstimatorMixin, RegressorMixin, BaseEstimator
):
    """What the private linear regressions share.

    A subclass implements `_plan`, which returns the noise and the cost of a fit, and `_weights`,
    which makes one.
    """

    # Whether delta may be 0.
    _can_be_pure: ClassVar[bool] = False

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        *,
        alpha: float | None = None,
        data_norm: float | None = None,
        target_bound: float | tuple[float, float] | None = None,
        fit_intercept: bool = True,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.data_norm = data_norm
        self.target_bound = target_bound
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_public = n_public
        self.ledger = ledger

    # The cost, before data ------------------------------------------------------------------

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return what a fit costs, from the parameters and public sizes alone.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it where it is given.
        n_features : int, optional
            Number of features; needed where the cost depends on ``data_norm`` and that is not
            given.

        Returns
        -------
        PrivacyProfile
        """
        return self._plan_before_data(n_samples, n_features).profile

    def _plan_before_data(self, n_samples: int, n_features: int | None) -> Any:
        self._check_parameters()
        check_integer(n_samples, name="n_samples", lower=1)
        return self._plan(self._size_bound(n_samples), n_features)

    def _plan(self, n_public: int, n_features: int | None) -> Any:
        """Return the plan of a fit, with its ``profile`` and ``noise_multiplier``."""
        raise NotImplementedError

    def _size_bound(self, n_samples: int) -> int:
        """Return a public number of records that bounds the real one."""
        if self.n_public is None:
            return n_samples
        return largest_subset_size(check_integer(self.n_public, name="n_public", lower=1))

    def _scaled_alpha(self, n_features: int | None) -> float | None:
        """Return ``alpha`` for rows of norm 1; None where it is chosen by rule."""
        if self.alpha is None:
            return None
        return float(self.alpha) / row_norm(self.data_norm, n_features) ** 2

    def _check_parameters(self) -> None:
        """Refuse bad parameters, before any data are read."""
        self._checked_budget()
        if self.delta == 0.0 and not self._can_be_pure:
            raise ValueError(
                "delta must be positive, since normal noise is never purely private; got 0. Use "
                "OutputPerturbationLinearRegression for delta=0."
            )
        if self.alpha is not None:
            check_real(self.alpha, name="alpha", lower=self._least_alpha, upper=LARGEST_ALPHA)
        if self.data_norm is not None:
            check_bound(self.data_norm, name="data_norm")
        if self.target_bound is None:
            raise ValueError(
                "target_bound must be given; got None. It limits the influence of a record: give "
                "the largest absolute value that a target is known to have, or its range as a "
                "pair (lower, upper)."
            )
        target_range(self.target_bound)
        check_flag(self.fit_intercept, name="fit_intercept")
        self._size_bound(1)

    # Fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or iterator
            Rows longer than ``data_norm`` are shortened to it. Memory-mapped and dask arrays are
            read piece by piece; an iterator gives chunks, as pairs ``(X_chunk, y_chunk)``. A
            record that holds anything but finite numbers counts as a row of zeros with the
            target 0: it cannot make the fit fail.
        y : array-like of shape (n_samples,)
            Targets; those beyond ``target_bound`` are clipped to it. None with an iterator.

        Returns
        -------
        self
        """
        self._check_parameters()
        self.__dict__.pop("privacy_", None)
        return self._fit_checked(*self._statistics_of(X, y))

    def fit_statistics(self, statistics: SufficientStatistics) -> Self:
        """Fit the model privately to sums that were computed before.

        Parameters
        ----------
        statistics : SufficientStatistics
            Made with this model's ``data_norm``, ``target_bound`` and ``fit_intercept``.

        Returns
        -------
        self
        """
        self._check_parameters()
        self.__dict__.pop("privacy_", None)
        check_kind(
            statistics,
            name="statistics",
            kind=SufficientStatistics,
            domain="SufficientStatistics",
        )
        if not hasattr(statistics, "n_features_in_"):
            raise ValueError("statistics must hold at least one chunk; got none.")
        wanted = self._bounds(statistics.n_features_in_)
        given = (statistics.data_norm, statistics.target_range, statistics.fit_intercept)
        if given != wanted:
            raise ValueError(
                "statistics must be made with the model's data_norm, target_bound and "
                f"fit_intercept, {wanted}; got {given}."
            )
        self.n_features_in_ = statistics.n_features_in_
        return self._fit_checked(statistics, statistics.n_samples)

    @classmethod
    def fit_many(
        cls,
        estimators: Sequence[PrivateLinearRegressor],
        X: Any,
        y: Any = None,
        *,
        return_exceptions: bool = False,
    ) -> list[Any]:
        """Fit many regressions in one pass over the data.

        Each is fitted as by itself, with the same seed. Together they cost the composition of
        what each costs, unless a selection among them is all that is shown.

        Parameters
        ----------
        estimators : sequence of private linear regressions
            Of any class of this family.
        X, y
            As for `fit`.
        return_exceptions : bool, default=False
            Whether the exception of a fit that fails is put in the result instead of raised.

        Returns
        -------
        list
            The estimators, fitted in place.
        """
        models = list(estimators)
        for model in models:
            check_kind(
                model,
                name="each of estimators",
                kind=PrivateLinearRegressor,
                domain="a private linear regression",
            )
            model._check_parameters()
        return fit_in_one_pass(models, X, y, return_exceptions)

    def _fit_checked(
        self, statistics: SufficientStatistics, n_samples: int, records: Records | None = None
    ) -> Any:
        """Fit to sums and, if they can be read again, to the records of which they are."""
        features = statistics.n_features_in_
        size = self._size_bound(n_samples)
        self._warn_of_large_delta(self._public_size(n_samples))
        plan = self._plan(size, features)
        gram, moment = statistics.gram_and_moment
        values, vectors = statistics.spectrum
        alpha = self._scaled_alpha(features) or 0.0
        radius2 = squared_radius(self.fit_intercept)
        blocks = functools.partial(statistics.blocks, *records) if records else None
        problem = RidgeProblem(values, vectors, moment, gram, radius2, alpha, size, blocks)
        # A warning of overflow would tell of the data.
        with np.errstate(all="ignore"):
            weights = self._weights(plan, problem, noise_generator(self.random_state))
        self._set_weights(weights, statistics)
        self.privacy_ = self._make_report(plan.profile, self._assumptions(features))
        return self

    def _weights(self, plan: Any, problem: RidgeProblem, rng: np.random.Generator) -> np.ndarray:
        """Return private weights, in units of the bounds."""
        raise NotImplementedError

    def _bounds(self, n_features: int | None) -> tuple[float, tuple[float, float], bool]:
        """Return what decides the sums: bounds of rows and targets, and the intercept."""
        ends = target_range(self.target_bound)
        return row_norm(self.data_norm, n_features), ends, self.fit_intercept

    def _statistics_of(self, X: Any, y: Any) -> tuple[SufficientStatistics, int, Records | None]:
        """Return the sums over the data, the number of records, and these if in memory."""
        if is_streamed(X):
            return self._statistics_of_chunks(X, y)
        records = validate_records(
            self,
            X,
            y,
            # An error must not reveal that a random subset is empty.
            min_samples=1 if self.n_public is None else 0,
        )
        size, n_features = records.X.shape
        return SufficientStatistics(*self._bounds(n_features)).update(*records), size, records

    def _statistics_of_chunks(self, X: Any, y: Any) -> tuple[SufficientStatistics, int, None]:
        statistics = None
        for rows, targets in chunks_of(X, y):
            if statistics is None:
                shape = table_shape(rows)
                if len(shape) != 2:
                    raise ValueError(f"each chunk must have two dimensions; got {len(shape)}.")
                statistics = SufficientStatistics(*self._bounds(shape[1]))
            statistics.update(rows, targets)
        if statistics is None:
            raise ValueError("X must hold at least one chunk; got none.")
        self.n_features_in_ = statistics.n_features_in_
        return statistics, statistics.n_samples, None

    def _set_weights(self, weights: np.ndarray, statistics: SufficientStatistics) -> None:
        # Noise that overflowed is a bad model, not an error: errors would leak the data.
        bounded = np.nan_to_num(weights, nan=0.0, posinf=0.0, neginf=0.0)
        d = statistics.n_features_in_
        centre, half = statistics.centre_and_half
        self.coef_ = bounded[:d] * (half / statistics.data_norm)
        constant = CONSTANT * float(bounded[d]) if self.fit_intercept else 0.0
        self.intercept_ = centre + constant * half

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return what a fit's report will assume, from parameters and public sizes alone.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Number of columns; needed where `data_norm` is not given.

        Returns
        -------
        tuple of str
        """
        # Theorem F11.
        return self._assumptions(n_features)

    def _assumptions(self, n_features: int | None) -> tuple[str, ...]:
        data_norm, (low, high), _ = self._bounds(n_features)
        is_even = low == -high
        domain = f"absolute value {high:.4g}" if is_even else f"[{low:.4g}, {high:.4g}]"
        return (
            PUBLIC_SIZE,
            f"rows are clipped to Euclidean norm {data_norm:.4g}",
            f"targets are clipped to {domain}",
        )

    # Using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = validated_rows(self, X, dtype=[np.float64, np.float32], reset=False)
        return np.asarray(X @ self.coef_) + self.intercept_

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has ended without an error."""
        return hasattr(self, "privacy_")

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a noisy linear regression, for scikit-learn."""
        tags = super().__sklearn_tags__()
        # With the few dozen records of a check, noise is all that a private model shows.
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags
