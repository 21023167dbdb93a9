"""Base class of the private linear regressions: parameters, cost, sums, predictions.

[epsilon]
epsilon : float, default=1.0
    Privacy budget of a fit; infinite for no noise.

[delta]
delta : float, default=1e-5
    Delta of the budget; positive, and far below 1 over the number of records.

[bounds_and_intercept]
data_norm : float, optional
    Bound on the Euclidean norm of a row; longer rows are shortened to it. None means
    ``sqrt(n_features)``, about the norm of a row of standardised features.
target_bound : float or tuple (lower, upper)
    Bound on the absolute value of a target, or its public range; values beyond it are clipped. It
    must be given, and known without looking at the data. With an intercept, targets are measured
    from the middle of the range, so that the noise depends on the length of the range and not on
    its distance from 0. Without an intercept targets are not shifted, and the end farther from 0
    is the bound.
fit_intercept : bool, default=True
    Whether rows end with a constant, half of `data_norm`, whose weight is regularised like the
    others.

[failure_probability]
failure_probability : float, optional
    Probability with which each released bound may fail to hold; twice that (and a little) is
    added to delta. The default is ``delta / 1000``: a search pays it once for every expected
    run.

[randomness_and_size]
{randomness}
{size_and_ledger}

[shared_attributes]
coef_ : ndarray of shape (n_features,), or (n_targets, n_features) of several targets
    The private weights.
intercept_ : float, or ndarray of shape (n_targets,)
    The private intercept; 0.0 if there is none.
privacy_ : PrivacyReport
    The privacy cost of the fit.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, if the columns of `X` had any.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import validated_rows
from skdptune._validation import check_flag, check_integer, check_kind, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin
from skdptune.base._shared import (
    PARTS,
    PUBLIC_SIZE,
    Persons,
    PrivateRows,
    Records,
    check_has_records,
    check_ranges,
    persons_of,
    table_shape,
    target_range,
    target_ranges,
    validate_records,
)
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model._regression._sufficient_statistics import (
    CONSTANT,
    Blocks,
    RidgeProblem,
    SufficientStatistics,
    check_bound,
    squared_radius,
    sums_of_chunk,
)
from skdptune.linear_model._solvers import largest_subset_size, noise_generator, row_norm

# Shared by all regressions.
REGRESSOR_TEXT = __doc__


# Bounds on alpha within which nothing overflows.
_LEAST_ALPHA, _LARGEST_ALPHA = 1e-9, 1e15
# Values of alpha to search in addition to the current one, as multiples of it.
_FACTORS = (0.1, 0.3, 3.0, 10.0)


class PrivateLinearRegressor(PrivateEstimatorMixin, RegressorMixin, BaseEstimator):
    """Base class of the private linear regressions.

    A subclass implements `_plan`, which returns the noise and the cost of a fit, and `_weights`,
    which makes the fit.
    """

    # Whether delta may be 0, and whether a record may have several targets.
    _can_be_pure: ClassVar[bool] = False
    _takes_several_targets: ClassVar[bool] = False
    # Whether Theorem P14 covers the class: not where a record must change a matrix of rank one.
    _holds_for_persons: ClassVar[bool] = False
    # If it does, a person's rows may lie in any parts (Theorem R10).
    _takes_persons_in_parts: ClassVar[bool] = True
    # Names of the parameters on which `privacy_profile` depends.
    cost_parameters: ClassVar[frozenset[str]] = frozenset({"epsilon", "delta"})
    _least_alpha: ClassVar[float] = _LEAST_ALPHA

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        *,
        alpha: float | None = None,
        data_norm: float | None = None,
        target_bound: Any = None,
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
        """Return the cost of a fit, from the parameters and public sizes only.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Number of features; needed if the cost depends on ``data_norm`` and that is not given.

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
        """Return ``alpha`` for rows of norm 1; None if it is chosen by rule."""
        if self.alpha is None:
            return None
        return float(self.alpha) / row_norm(self.data_norm, n_features) ** 2

    def _check_parameters(self) -> None:
        """Validate the parameters, before any data are read."""
        self._checked_budget()
        if self.delta == 0.0 and not self._can_be_pure:
            raise ValueError(
                "delta must be positive, since normal noise is never purely private; got 0. Use "
                "OutputPerturbationLinearRegression for delta=0."
            )
        if self.alpha is not None:
            check_real(self.alpha, name="alpha", lower=self._least_alpha, upper=_LARGEST_ALPHA)
        if self.data_norm is not None:
            check_bound(self.data_norm, name="data_norm")
        if self.target_bound is None:
            raise ValueError(
                "target_bound must be given; got None. It limits the influence of a record: give "
                "the largest absolute value that a target is known to have, or its range as a "
                "pair (lower, upper)."
            )
        self._target_range()
        check_flag(self.fit_intercept, name="fit_intercept")
        self._size_bound(1)

    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        """Return parameters with which a fit on fewer records resembles the final fit.

        Parameters
        ----------
        n_tune, n_final : int
            Numbers of records, or their public expectations.

        Returns
        -------
        dict
            The regularization per record is kept. The noise does not depend on the number of
            records. On fewer records it is therefore larger relative to the signal, and no
            parameter changes that.
        """
        n_tune = check_integer(n_tune, name="n_tune", lower=1)
        n_final = check_integer(n_final, name="n_final", lower=1)
        if self.alpha is None:
            return {}
        alpha = self.alpha * (n_tune / n_final)
        return {"alpha": min(max(alpha, self._least_alpha), _LARGEST_ALPHA)}

    def noise_level(self, n_samples: int, n_features: int | None = None) -> float:
        """Return the noise of a fit, in units of a record's influence.

        Parameters
        ----------
        n_samples, n_features : int
            See `privacy_profile`.

        Returns
        -------
        float
        """
        return float(self._plan_before_data(n_samples, n_features).noise_multiplier)

    def suggested_space(
        self, n_samples: int, n_features: int | None = None
    ) -> dict[str, list[Any]]:
        """Return values of `alpha` that are worth searching in addition to the current one.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Number of features; without it, nothing is suggested if `alpha` follows a rule.

        Returns
        -------
        dict of lists
            The first value is the current one, None if that follows a rule. The others are a tenth
            to ten times of it, or of the effect of the noise on the eigenvalues of ``X'X``.

        Examples
        --------
        >>> from skdptune.linear_model import DPRidge
        >>> model = DPRidge(alpha=2.0, data_norm=1.0, target_bound=1.0)
        >>> model.suggested_space(n_samples=1000)
        {'alpha': [2.0, 0.2, 0.6, 6.0, 20.0]}
        """
        check_integer(n_samples, name="n_samples", lower=1)
        if n_features is not None:
            check_integer(n_features, name="n_features", lower=1)
        if self.alpha is None and n_features is None:
            return {}
        plan = self._plan_before_data(n_samples, n_features)
        centre = self.alpha
        if centre is None:
            centre = self._alpha_by_rule(plan, n_features)
        if centre == 0.0:
            # Without noise the rule gives no regularization.
            return {"alpha": [self.alpha]}
        values = [min(max(centre * f, self._least_alpha), _LARGEST_ALPHA) for f in _FACTORS]
        return {"alpha": [self.alpha, *values]}

    def _alpha_by_rule(self, plan: Any, n_features: Any) -> float:
        """Return approximately the value for None, in units of the rows."""
        ridge = getattr(plan, "ridge", None)
        if ridge is None:
            width = n_features + int(self.fit_intercept)
            noise = math.sqrt(width) * plan.noise_multiplier
            ridge = noise * squared_radius(self.fit_intercept)
        return float(ridge) * row_norm(self.data_norm, n_features) ** 2

    # Fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), PrivateRows or iterator
            Rows longer than ``data_norm`` are shortened to it. Rows may lie in parts: see
            `PrivateRows`. Memory-mapped and dask arrays are read part by part; an iterator gives
            chunks, as pairs ``(X_chunk, y_chunk)``. A record with entries that are not finite
            numbers counts as a row of zeros with the target 0: it cannot make the fit fail.
        y : array-like of shape (n_samples,)
            Targets; those beyond ``target_bound`` are clipped to it. None with an iterator or
            `PrivateRows`.
            `DPRidge` accepts several, of shape (n_samples, n_targets).
        groups : array-like of shape (n_samples,), optional
            The id of the person of each row: text or whole numbers. The guarantee is then about
            adding or removing one person with all of their rows (Theorem P14), and all numbers of
            records are numbers of persons. Each row counts by one over the number of its person's
            rows. A row without a proper id is left out. With `PrivateRows`, `groups` has the ids
            of all rows in the order of the parts, and is in memory: a person's rows may lie in
            any parts. Not for `PTRLinearRegression`, `OPSLinearRegression` and
            `AdaOPSLinearRegression`.

        Returns
        -------
        self
        """
        self._check_parameters()
        self.__dict__.pop("privacy_", None)
        persons = persons_of(groups, X, may_be_empty=self.n_public is not None)
        return self._fit_checked(*self._statistics_of(X, y, persons))

    def _input_refusal(self, form: str) -> str | None:
        if form == PARTS or self._holds_for_persons:
            return None
        return (
            "The proof of its posterior sample needs one row per person. Use DPRidge, "
            "AdaSSPLinearRegression or OutputPerturbationLinearRegression."
        )

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
        groups: Any = None,
        return_exceptions: bool = False,
    ) -> list[Any]:
        """Fit many regressions in one pass over the data.

        Each fit is the same as a separate one with the same seed. Their joint cost is the
        composition of their costs, unless only a selection among them is shown.

        Parameters
        ----------
        estimators : sequence of private linear regressions
            Regressions of any class of this family.
        X, y, groups
            As for `fit`.
        return_exceptions : bool, default=False
            Whether the exception of a failing fit is put in the result instead of raised.

        Returns
        -------
        list
            The estimators, fitted in place.
        """
        models = check_models(estimators, PrivateLinearRegressor, "a private linear regression")
        return _fit_in_one_pass(models, (X, y, groups), return_exceptions)

    def _fit_checked(
        self,
        statistics: SufficientStatistics,
        n_samples: int,
        blocks: Blocks | None = None,
        persons: Persons | None = None,
    ) -> Any:
        """Fit to sums and, if these can be read again, to the records."""
        features = statistics.n_features_in_
        if statistics.gram_and_moment[1].ndim == 2 and not self._takes_several_targets:
            raise ValueError(
                f"statistics must be of one target for {type(self).__name__}; got several. "
                "DPRidge takes them."
            )
        size = self._size_bound(n_samples)
        self._warn_of_large_delta(self._public_size(n_samples))
        plan = self._plan(size, features)
        gram, moment = statistics.gram_and_moment
        values, vectors = statistics.spectrum
        alpha = self._scaled_alpha(features) or 0.0
        radius2 = squared_radius(self.fit_intercept)
        problem = RidgeProblem(values, vectors, moment, gram, radius2, alpha, size, blocks)
        # A warning of overflow would reveal something about the data.
        with np.errstate(all="ignore"):
            weights = self._weights(plan, problem, noise_generator(self.random_state))
        self._set_weights(weights, statistics)
        assumptions = self.privacy_assumptions(size, features)
        self.privacy_ = self._make_report(plan.profile, assumptions, persons)
        return self

    def _weights(self, plan: Any, problem: RidgeProblem, rng: np.random.Generator) -> np.ndarray:
        """Return private weights, in units of the bounds."""
        raise NotImplementedError

    def _bounds(self, n_features: int | None) -> tuple[float, Any, bool]:
        """Return what determines the sums: bounds of rows and targets, and the intercept."""
        return row_norm(self.data_norm, n_features), self._target_range(), self.fit_intercept

    def _check_fit(self, given: Mapping[str, Any]) -> None:
        """Refuse ranges of another number of targets, before the fit is paid for."""
        shape = getattr(given.get("y"), "shape", None)
        if shape is not None and self._takes_several_targets:
            check_ranges(self._target_range(), shape)

    def _target_range(self) -> Any:
        """Return the public range of targets; one per target, if given and allowed."""
        found = target_ranges if self._takes_several_targets else target_range
        return found(self.target_bound)

    def _statistics_of(
        self, X: Any, y: Any, persons: Persons | None
    ) -> tuple[SufficientStatistics, int, Blocks | None, Persons | None]:
        """Return the sums, the number of records, what can be read again, and its persons."""
        if isinstance(X, PrivateRows):
            return self._statistics_of_parts(X, persons)
        records = self._validated(X, y)
        bounds = self._bounds(records.X.shape[1])
        sums = SufficientStatistics(*bounds)
        if persons is None:
            return sums.update(*records), records.X.shape[0], Blocks(records, bounds), None
        # Rows of one weight are next to each other, since every step reads them again.
        order = persons.order_of_weights
        records = Records(*(np.take(persons.select(each), order, axis=0) for each in records))
        persons = persons.take(order)
        sums._add_by_weight(*records, persons.by_weight())
        return sums, persons.size, Blocks(records, bounds, persons), persons

    def _validated(self, X: Any, y: Any) -> Records:
        return validate_records(
            self,
            X,
            y,
            n_outputs=None if self._takes_several_targets else 1,
            # An error must not reveal that a random subset is empty.
            min_samples=1 if self.n_public is None else 0,
        )

    def _statistics_of_parts(
        self, rows: PrivateRows, persons: Persons | None
    ) -> tuple[SufficientStatistics, int, Blocks | None, Persons | None]:
        # Theorem R10: the sums of parts are merged, so that they are those of one pass.
        rows.check_columns(self)
        bounds = self._bounds(self.n_features_in_)
        if persons is not None:
            rows = rows.by_persons(persons)
        statistics = rows.total(functools.partial(sums_of_chunk, bounds))
        size = statistics.n_samples if persons is None else persons.size
        check_has_records(size, 1 if self.n_public is None else 0)
        return statistics, size, None if rows.is_read_once else Blocks(rows, bounds), persons

    def _set_weights(self, weights: np.ndarray, statistics: SufficientStatistics) -> None:
        # Noise that overflowed gives a bad model, not an error: errors would leak the data.
        bounded = np.nan_to_num(weights, nan=0.0, posinf=0.0, neginf=0.0)
        d = statistics.n_features_in_
        centre, half = statistics.centre_and_half
        constant = CONSTANT * bounded[d] if self.fit_intercept else 0.0 * bounded[0]
        intercept = centre + constant * half
        # With several targets, a row and an intercept for each.
        self.coef_ = np.ascontiguousarray((bounded[:d] * (half / statistics.data_norm)).T)
        self.intercept_ = intercept if bounded.ndim == 2 else float(intercept)

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return the assumptions that a fit's report will state, from parameters and public sizes.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Number of columns; needed if `data_norm` is not given.

        Returns
        -------
        tuple of str
        """
        # Theorem F11: the report carries the assumptions of its parts.
        data_norm, ranges, _ = self._bounds(n_features)
        domains = [
            f"absolute value {high:.4g}" if low == -high else f"[{low:.4g}, {high:.4g}]"
            for low, high in np.reshape(ranges, (-1, 2)).tolist()
        ]
        return (
            PUBLIC_SIZE,
            f"rows are clipped to Euclidean norm {data_norm:.4g}",
            f"targets are clipped to {', '.join(domains)}",
        )

    # Using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self)
        X = validated_rows(self, X, dtype=[np.float64, np.float32], reset=False)
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has ended without an error."""
        return hasattr(self, "privacy_")

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a noisy linear regression, for scikit-learn."""
        tags = super().__sklearn_tags__()
        # In the tests' few dozen records, noise dominates any private model.
        tags.regressor_tags.poor_score = True
        tags.target_tags.multi_output = self._takes_several_targets
        tags.non_deterministic = self.random_state is None
        return tags


def _fit_in_one_pass(
    models: list[PrivateLinearRegressor], given: tuple[Any, Any, Any], return_exceptions: bool
) -> list[Any]:
    """Return the regressions, fitted to sums; those with the same bounds share their sums.

    Parameters
    ----------
    models : list of PrivateLinearRegressor
        Regressions with valid parameters.
    given : tuple
        X, y and groups, as for `PrivateLinearRegressor.fit`.
    return_exceptions : bool
        Whether the exception of a failing fit is put in the result instead of raised.
    """
    X, y, groups = given
    persons = persons_of(groups, X, may_be_empty=True)
    is_read_once = isinstance(X, PrivateRows) and X.is_read_once
    if is_read_once and len({_bounds_of(model) for model in models}) > 1:
        raise ValueError(
            "estimators must agree on data_norm, target_bound and fit_intercept if X is an "
            "iterator, which can be read only once; got several."
        )
    shared: dict[tuple[Any, ...], tuple[Any, SufficientStatistics, int, Any, Any]] = {}
    known: dict[bool, tuple[Any, tuple[Any, Any, Any]]] = {}
    outcomes: list[Any] = []
    has_columns = y is not None and len(table_shape(y)) > 1
    for model in models:
        # Whether empty data are refused depends on n_public.
        is_strict = is_read_once or model.n_public is None
        key = (*_bounds_of(model), is_strict, has_columns and model._takes_several_targets)
        try:
            if key not in shared:
                # Data that were read from a list or a table are in memory once, not for each of
                # the bounds.
                first, data = known.get(is_strict, (model, (X, y, persons)))
                shared[key] = (first, *model._statistics_of(*data))
                *_, blocks, of_read = shared[key]
                if not has_columns and blocks and isinstance(blocks.records, Records):
                    data = (*blocks.records, of_read)
                known[is_strict] = (first, data)
            first, *found = shared[key]
            copy_features(first, model)
            outcomes.append(model._fit_checked(*found))
        except Exception as problem:
            if not return_exceptions:
                raise
            outcomes.append(problem)
    return outcomes


def _bounds_of(model: PrivateLinearRegressor) -> tuple[Any, ...]:
    """Return the parameters that determine the sums of a model."""
    return (model.data_norm, model._target_range(), model.fit_intercept)


def check_models(estimators: Sequence[Any], kind: type, domain: str) -> list[Any]:
    """Return the estimators of a `fit_many`, of one kind and with valid parameters, or raise."""
    models = list(estimators)
    for model in models:
        check_kind(model, name="each of estimators", kind=kind, domain=domain)
        model._check_parameters()
    return models


def copy_features(source: Any, model: Any) -> None:
    """Copy the information about columns that a fit learns."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(source, name):
            setattr(model, name, getattr(source, name))
        else:
            vars(model).pop(name, None)
