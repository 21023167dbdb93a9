"""A scaler that maps a private range of quantiles of each feature to a given range."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdptune._formatting import shown
from skdptune._validation import check_flag, check_integer
from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin
from skdptune.base._shared import PUBLIC_SIZE, rows_with_gaps, validate_rows
from skdptune.ledger import PrivacyLedger
from skdptune.mechanisms import as_generator, private_quantile
from skdptune.mechanisms._shared import check_seed, pure_profile
from skdptune.preprocessing._stateless import (
    FLOATS,
    bounds_per_feature,
    check_bounds,
    check_feature_range,
)

# Quantiles closer together than this share of the bounds' distance are treated as equal.
_LEAST_SHARE = 2.0**-16
_WIDEST = np.finfo(np.float64).max / 4.0


class DPMinMaxScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimatorMixin, BaseEstimator):
    """Scale each feature so that a private range of quantiles is mapped to a given range.

    Use it for features whose known bounds are far too wide. The minimum and maximum cannot be
    released, because each is one person's value. The guarantee is `epsilon`-differential privacy
    for data sets that differ by one record, added or removed, with the number of records public.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget for all features together, shared equally; infinite for no privacy.
    bounds : tuple (lower, upper)
        Lower and upper bounds: numbers, or arrays with one number per feature. Required, and must
        be known without looking at the data. Bounds that are too wide cost little: the error grows
        with the logarithm of their distance.
    quantile_range : tuple (low, high), default=(5, 95)
        Percentages; values between these quantiles are mapped into `feature_range`. Quantiles
        closer to 0 and 100 need more records.
    feature_range : tuple (low, high), default=(0, 1)
    clip : bool, default=False
        Whether to clip values outside of the quantiles to `feature_range`.
    random_state : int or None, default=None
        None uses the operating system's entropy. A seed makes research runs reproducible, but
        gives no privacy against anyone who knows it. Fits with the same seed, such as clones on
        two folds, share their noise.
    n_public : int, optional
        Public constant used in place of the number of records; by default, the actual number. A
        search sets it when it fits on a random part of the data, whose size must stay secret.
    ledger : PrivacyLedger, optional
        Ledger in which a fit reserves its cost before it reads the data. None means the active
        ledger, if there is one: that of ``with ledger:`` or `skdptune.config_context`.

    Attributes
    ----------
    data_min_, data_max_, data_range_ : ndarray of shape (n_features,)
        The private quantiles and their distance, as used in the transformation.
    scale_, min_ : ndarray of shape (n_features,)
        The transformation is ``X * scale_ + min_``.
    n_samples_seen_ : int
        Number of records, or `n_public`.
    privacy_ : PrivacyReport
        The privacy cost of the fit.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if they have names.

    See Also
    --------
    BoundedScaler : Maps known bounds to a range, at no privacy cost.

    Notes
    -----
    Theorem R1, Theorem R5.

    Two quantiles per feature are released by `skdptune.mechanisms.private_quantile`, each at
    ``epsilon`` divided by twice the number of features. Together they compose to `epsilon`. If the
    two are in the wrong order, they are swapped. If they are almost equal, the bounds are used
    instead. Both decisions depend only on released values.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.preprocessing import DPMinMaxScaler
    >>> X = np.random.default_rng(0).uniform(20, 30, size=(2000, 1))
    >>> scaler = DPMinMaxScaler(epsilon=1.0, bounds=(0, 1000), random_state=0).fit(X)
    >>> scaler.data_min_.round(), scaler.data_max_.round()
    (array([20.]), array([30.]))
    """

    # Quantiles are released by pure mechanisms, and the report says so.
    delta = 0.0

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = None,
        quantile_range: tuple[float, float] = (5, 95),
        feature_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.quantile_range = quantile_range
        self.feature_range = feature_range
        self.clip = clip
        self.random_state = random_state
        self.n_public = n_public
        self.ledger = ledger

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return the privacy cost of a fit, which depends only on the parameters.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Number of columns.
        """
        check_integer(n_samples, name="n_samples", lower=1)
        self._check_parameters()
        return pure_profile(self._checked_budget()[0])

    @property
    def cost_parameters(self) -> frozenset[str]:
        """Names of the parameters on which `privacy_profile` depends."""
        return frozenset({"epsilon"})

    def fit(self, X: Any, y: Any = None) -> Self:
        """Release two private quantiles of each feature.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A record with any entry that is not a finite number is treated as a row of zeros.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        profile = self.privacy_profile(1)
        least = 1 if self.n_public is None else 0
        self.__dict__.pop("privacy_", None)
        rows, _ = validate_rows(self, X, min_samples=least)
        low, high = bounds_per_feature(self.bounds, rows.shape[1])
        self.n_samples_seen_ = self._public_size(rows.shape[0])
        found = self._quantiles(rows, low, high)
        narrow = found[1] - found[0] < _LEAST_SHARE * (high - low)
        self.data_min_, self.data_max_ = np.where(narrow, [low, high], found)
        self.data_range_ = self.data_max_ - self.data_min_
        start, end = check_feature_range(self.feature_range)
        self.scale_ = (end - start) / self.data_range_
        self.min_ = start - self.data_min_ * self.scale_
        self.privacy_ = self._make_report(profile, (PUBLIC_SIZE,))
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has finished without an error."""
        return hasattr(self, "privacy_")

    def transform(self, X: Any) -> np.ndarray:
        """Return the scaled features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A record with any entry that is not a finite number becomes a row of NaN.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        rows = rows_with_gaps(self, X)
        # In double precision, since a large scale may be infinite in single precision.
        result = rows * self.scale_ + self.min_
        if self.clip:
            result = np.clip(result, *check_feature_range(self.feature_range))
        return result.astype(rows.dtype, copy=False)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Undo the scaling; clipped values stay clipped.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        rows = rows_with_gaps(self, X)
        return ((rows - self.min_) / self.scale_).astype(rows.dtype, copy=False)

    def _quantiles(self, rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return private lower and upper quantiles of all features, in order."""
        share = self._checked_budget()[0] / (2 * rows.shape[1])
        # One generator for all features, so that a seed gives each feature different noise.
        generator = as_generator(check_seed(self.random_state))
        levels = [percentage / 100.0 for percentage in _check_quantile_range(self.quantile_range)]
        found = [
            [private_quantile(column, level, start, end, share, generator) for level in levels]
            for column, start, end in zip(rows.T, low.tolist(), high.tolist(), strict=True)
        ]
        return np.sort(np.array(found), axis=1).T

    def _check_parameters(self) -> None:
        self._checked_budget()
        self._public_size(1)
        low, high = check_bounds(self.bounds)
        if np.any(high / 4.0 - low / 4.0 >= _WIDEST):
            raise ValueError(f"bounds must be a finite distance apart; got {shown(self.bounds)}.")
        _check_quantile_range(self.quantile_range)
        self._check_scale(low, high)
        check_flag(self.clip, name="clip")

    def _check_scale(self, low: np.ndarray, high: np.ndarray) -> None:
        """Raise for ranges with which a scale or offset may not be a finite number."""
        start, end = check_feature_range(self.feature_range)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            width = np.float64(end) - start
            largest = width / (_LEAST_SHARE * (high - low))
            reach = largest * np.maximum(np.abs(low), np.abs(high)) + max(abs(start), abs(end))
        if not np.isfinite(reach).all() or np.any(width / (high - low) == 0.0):
            raise ValueError(
                "feature_range must give a finite scale above 0 together with bounds; got "
                f"{shown(self.feature_range)} with bounds {shown(self.bounds)}."
            )

    def __sklearn_tags__(self) -> Any:
        """Declare that data types are preserved, and whether results are random."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        tags.transformer_tags.preserves_dtype = list(FLOATS)
        return tags


def _check_quantile_range(quantile_range: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in quantile_range)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0.0 <= low < high <= 100.0:
        raise ValueError(
            "quantile_range must be a pair of percentages in [0, 100], the first smaller; "
            f"got {shown(quantile_range)}."
        )
    return low, high
