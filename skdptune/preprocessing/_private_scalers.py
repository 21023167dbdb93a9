"""Scalers that learn from the records: by private moments, or by private quantiles.

[randomness_and_size]
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

[shared_attributes]
privacy_ : PrivacyReport
    The privacy cost of the fit.
n_features_in_ : int
    Number of features seen during ``fit``.
feature_names_in_ : ndarray of str
    Names of the features, if they have names.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown
from skdptune._validation import check_flag, check_integer
from skdptune.accounting import PrivacyProfile
from skdptune.base import PrivateEstimatorMixin
from skdptune.base._shared import (
    PUBLIC_SIZE,
    Persons,
    PrivateRows,
    arguments_of,
    middle_and_half,
    persons_of,
    read_rows,
    rows_with_gaps,
    validate_rows,
)
from skdptune.ledger import PrivacyLedger
from skdptune.mechanisms import (
    as_generator,
    gaussian_release,
    laplace_release,
    noise_for_budget,
    unit_sum,
)
from skdptune.mechanisms._shared import (
    STEPS,
    PointCounts,
    check_seed,
    counts_of_grid,
    counts_of_points,
    of_unit_total,
    on_grid,
    pure_profile,
    quantile_of_counts,
    unit_total,
)
from skdptune.preprocessing._stateless import (
    FLOATS,
    bounds_per_feature,
    check_bounds,
    check_feature_range,
)

# Constants subtracted from the square of a feature in [-1, 1], so that a larger first moment
# implies a smaller second one: see the Notes of DPStandardScaler.
_CENTRE = {"gaussian": 1.0, "laplace": 0.875}
_LEAST_VARIANCE = 1e-12
_TINY, _LARGEST = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)


def unit_map(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle of bounds and half of their distance, which is above 0."""
    middle, half = middle_and_half(low, high)
    # For adjacent floats as bounds, half of their distance may be 0.
    return middle, np.maximum(half, _TINY)


def in_units(rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return features that are clipped to bounds, which are mapped to [-1, 1]."""
    middle, half = unit_map(low, high)
    return np.asarray(np.clip((np.clip(rows, low, high) - middle) / half, -1.0, 1.0))


TEXT = __doc__
LowHigh = tuple[np.ndarray, np.ndarray]
Contributions = Callable[[np.ndarray], Iterable[np.ndarray]]


def unit_sums(rows: Any, contributions: Contributions, persons: Persons | None) -> np.ndarray:
    """Return exact sums over records of their contributions, which are numbers in [-1, 1].

    Parameters
    ----------
    rows : ndarray or PrivateRows
    contributions : callable
        From rows to arrays with numbers of each row, which depend on this row only.
    persons : Persons or None
        The persons to whom the rows belong. A person's contribution is the mean over their rows.

    Notes
    -----
    Theorem R1, Theorem P14, Theorem R10.
    """
    if isinstance(rows, PrivateRows):
        return of_unit_total(rows.total(functools.partial(_unit_totals, contributions)))
    return np.concatenate(
        [
            unit_sum(values if persons is None else persons.means(values))
            for values in contributions(rows)
        ]
    )


def _unit_totals(contributions: Contributions, X: Any, y: Any) -> np.ndarray:
    return np.concatenate([unit_total(values) for values in contributions(read_rows(X))])


class PrivateTransformer(TransformerMixin, PrivateEstimatorMixin, BaseEstimator):
    """Base class of transformers that learn from the records, with noise."""

    # Names of the parameters on which `privacy_profile` depends.
    cost_parameters: ClassVar[frozenset[str]] = frozenset({"epsilon", "delta"})
    bounds: Any

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
        return self._costed()[1]

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Release noisy statistics of the features, from which the transformation follows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or PrivateRows
            A record with any entry that is not a finite number is treated as a row of zeros.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), optional
            The id of the person of each row: text or whole numbers. The guarantee is then about
            adding or removing one person with all of their rows (Theorem P14), and all numbers of
            records are numbers of persons. A person counts by the mean of what their rows
            contribute; for quantiles, each row counts by its share. A row without a proper id is
            left out.

        Returns
        -------
        self
        """
        self._check_parameters()
        self.__dict__.pop("privacy_", None)
        ratio, profile = self._costed()
        rows, persons = self._validated(X, groups)
        low_high = bounds_per_feature(self.bounds, self.n_features_in_)
        self._check_width(self.n_features_in_)
        self.n_samples_seen_ = self._n_records(rows, persons)
        self._warn_of_large_delta(self.n_samples_seen_)
        self._release(rows, low_high, persons, ratio)
        self.privacy_ = self._make_report(profile, (PUBLIC_SIZE,), persons)
        return self

    def _check_parameters(self) -> None:
        self._checked_budget()
        self._public_size(1)
        check_bounds(self.bounds)

    def _costed(self) -> tuple[float, PrivacyProfile]:
        """Return the noise in units of the sensitivity, and its privacy cost."""
        return noise_for_budget(*self._checked_budget())

    def _check_width(self, n_features: int) -> None:
        """Raise if the parameters do not match the number of features."""

    def _release(
        self, rows: Any, low_high: LowHigh, persons: Persons | None, ratio: float
    ) -> None:
        """Release statistics of the rows, and set the attributes that follow from them."""
        raise NotImplementedError

    def _input_refusal(self, form: str) -> str | None:
        return None

    def _validated(self, X: Any, groups: Any) -> tuple[Any, Persons | None]:
        """Return the rows that a fit reads, and the persons of these if there are any."""
        is_open = self.n_public is not None
        if isinstance(X, PrivateRows):
            X.check_columns(self)
            return X, None
        persons = persons_of(groups, X, may_be_empty=is_open)
        rows, _ = validate_rows(self, X, min_samples=0 if is_open else 1)
        return (rows, None) if persons is None else (persons.select(rows), persons)

    def _n_records(self, rows: Any, persons: Persons | None) -> int:
        """Return the public number of records."""
        if self.n_public is not None:
            return self._public_size(1)
        if isinstance(rows, PrivateRows):
            return rows.size_of_fit(None)
        return rows.shape[0] if persons is None else persons.size

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has finished without an error."""
        return hasattr(self, "privacy_")

    def __sklearn_tags__(self) -> Any:
        """Declare that data types are preserved, and whether results are random."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        tags.transformer_tags.preserves_dtype = list(FLOATS)
        return tags


@with_shared_text(TEXT)
class DPStandardScaler(OneToOneFeatureMixin, PrivateTransformer):
    """Standardise features by private means and standard deviations.

    Features are clipped to `bounds`. The sums of their values and squares are released with noise:
    Gaussian if `delta` is positive, Laplace if it is 0. The guarantee is (`epsilon`,
    `delta`)-differential privacy for data sets that differ by one record, added or removed, with
    the number of records public.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget for all features together; infinite for no privacy.
    delta : float, default=1e-5
        Failure probability of the budget. A positive value means Gaussian noise, which grows with
        the square root of the number of features. 0 means Laplace noise and a pure guarantee.
        Laplace noise is proportional to the number of features: it is the smaller of the two up to
        about five features, at ``epsilon=1`` and ``delta=1e-5``.
    bounds : tuple (lower, upper)
        Lower and upper bounds: numbers, or arrays with one number per feature. Required, and must
        be known without looking at the data. The noise grows with their distance.
    with_mean : bool, default=True
        Whether to subtract the mean.
    with_std : bool or sequence of bool, default=True
        Whether to divide by the standard deviation; for all features, or one value per feature.
    {randomness_and_size}

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,) or None
        Private means; None if both `with_mean` and `with_std` are False.
    var_, scale_ : ndarray of shape (n_features,) or None
        Private variances and their square roots, as used: 1 for a feature without `with_std`; None
        if no feature has it.
    noise_scale_ : float
        Standard deviation (Gaussian) or parameter b (Laplace) of the noise on the sums of
        features mapped to [-1, 1]. A public number.
    n_samples_seen_ : int
        Number of records, or `n_public`.
    {shared_attributes}

    See Also
    --------
    BoundedScaler : Maps known bounds to a range, at no privacy cost.

    Notes
    -----
    Theorem R1, Theorem R5.

    The bounds are mapped to [-1, 1], and ``u`` is the mapped value of a record. With `with_std`,
    the release is the sum of ``(u, u^2 - c)`` over records, one pair per feature, plus noise.

    *Gaussian*, ``c = 1``: a pair has a length of at most 1, so ``d`` features have sensitivity
    ``sqrt(d)``. The second moment therefore costs nothing in addition to the first.

    *Laplace*, ``c = 7/8``: ``|u| + |u^2 - c|`` is at most 9/8, which is the minimum over ``c``. So
    the sensitivity is ``9 d / 8``; without `with_std` it is ``d``.

    Dividing by the number of records, undoing ``c``, and all later steps are post-processing. A
    variance is limited to a range from its own noise level to the largest value that the bounds
    allow. At the noise level, the noise of the mean is at most one standard deviation. So
    features are never divided by nearly zero.

    The cost does not depend on the number of features, but the noise does.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.preprocessing import DPStandardScaler
    >>> X = np.random.default_rng(0).normal([170, 70], [10, 12], size=(5000, 2))
    >>> scaler = DPStandardScaler(epsilon=1.0, bounds=([100, 20], [230, 150]), random_state=0)
    >>> scaler.fit(X).mean_.round(1)
    array([170.1,  70.3])
    >>> print(scaler.privacy_.epsilon)
    1.0
    """

    cost_parameters: ClassVar[frozenset[str]] = frozenset(
        {"epsilon", "delta", "with_mean", "with_std"}
    )
    with_mean: bool
    with_std: bool | Sequence[bool]

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = None,
        with_mean: bool = True,
        with_std: bool | Sequence[bool] = True,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    def transform(self, X: Any) -> Any:
        """Return the features minus their means, divided by their standard deviations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or PrivateRows
            A record with any entry that is not a finite number becomes a row of NaN.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or PrivateRows
        """
        check_is_fitted(self)
        if isinstance(X, PrivateRows):
            return X.transformed(self, self.n_features_in_)
        rows = rows_with_gaps(self, X)
        # In double precision, since a small deviation may be 0 in single precision.
        result = rows.astype(np.float64)
        if self.with_mean:
            result -= self.mean_
        if self.scale_ is not None:
            result /= self.scale_
        return result.astype(rows.dtype, copy=False)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Undo the standardisation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        rows = rows_with_gaps(self, X)
        result = rows.astype(np.float64)
        if self.scale_ is not None:
            result *= self.scale_
        if self.with_mean:
            result += self.mean_
        return result.astype(rows.dtype, copy=False)

    @property
    def _noise(self) -> str:
        return "gaussian" if self.delta > 0.0 else "laplace"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag(self.with_mean, name="with_mean")
        if not all(isinstance(each, bool | np.bool_) for each in self._divided()):
            raise TypeError(
                f"with_std must be True or False; got {shown(self.with_std)}. A list has one of "
                "these for each feature."
            )

    def _check_width(self, n_features: int) -> None:
        count = len(self._divided())
        if count not in (1, n_features):
            raise ValueError(
                f"with_std must be True, False, or one of these per feature, of {n_features} "
                f"features; got {count} values."
            )

    def _divided(self) -> list[Any]:
        """Return which features are divided: one value for each of them, or for all."""
        given: Any = self.with_std
        return list(given) if isinstance(given, list | tuple | np.ndarray) else [given]

    def _costed(self) -> tuple[float, PrivacyProfile]:
        if not (self.with_mean or any(self._divided())):
            return 0.0, PrivacyProfile.pure(0.0)
        return super()._costed()

    def _sensitivity(self, n_features: int) -> float:
        """Return the sensitivity of all sums, in the norm that fits the noise; see the Notes."""
        if self._noise == "gaussian":
            return math.sqrt(n_features)
        return n_features * (1.125 if any(self._divided()) else 1.0)

    def _release(
        self, rows: Any, low_high: LowHigh, persons: Persons | None, ratio: float
    ) -> None:
        self.noise_scale_ = self._sensitivity(self.n_features_in_) * ratio
        self.mean_ = self.var_ = self.scale_ = None
        is_divided = np.array(self._divided(), dtype=bool)
        if not (self.with_mean or is_divided.any()):
            return
        middle, half = unit_map(*low_high)
        centre = _CENTRE[self._noise]
        contributions = functools.partial(
            _moments, low_high=low_high, centre=centre if is_divided.any() else None
        )
        # Theorem P14: the mean of bounded pairs is within the same bounds.
        first, second = self._noisy_moments(unit_sums(rows, contributions, persons), centre)
        self.mean_ = middle + half * first
        if is_divided.any():
            doubt = math.sqrt(2.0) * self.noise_scale_ / self.n_samples_seen_
            least = min(max(doubt, _LEAST_VARIANCE), 1.0)
            share = np.clip(second - first**2, least, 1.0)
            self.scale_ = np.where(is_divided, half * np.sqrt(share), 1.0)
            with np.errstate(over="ignore"):
                self.var_ = np.minimum(self.scale_**2, _LARGEST)

    def _noisy_moments(self, sums: np.ndarray, centre: float) -> tuple[np.ndarray, np.ndarray]:
        """Return private first and second moments of features in [-1, 1], from exact sums."""
        release = gaussian_release if self._noise == "gaussian" else laplace_release
        width = self.n_features_in_
        seed = check_seed(self.random_state)
        noisy = release(sums, self._sensitivity(width), self.noise_scale_, seed)
        moments = noisy / self.n_samples_seen_
        first = np.clip(moments[:width], -1.0, 1.0)
        second = np.clip(moments[width:] + centre, 0.0, 1.0)
        return first, second


def _moments(rows: np.ndarray, low_high: LowHigh, centre: float | None) -> Iterator[np.ndarray]:
    """Return each row's features in [-1, 1] and, with a constant, their squares minus it."""
    units = in_units(rows, *low_high)
    yield units if centre is None else np.hstack([units, units**2 - centre])


# Columns that are counted in one pass over rows in parts: 8 MB each.
_COLUMNS = 4
# Quantiles closer together than this share of the bounds' distance are treated as equal.
_LEAST_SHARE = 2.0**-16
_WIDEST = np.finfo(np.float64).max / 4.0


@with_shared_text(TEXT)
class DPMinMaxScaler(OneToOneFeatureMixin, PrivateTransformer):
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
    {randomness_and_size}

    Attributes
    ----------
    data_min_, data_max_, data_range_ : ndarray of shape (n_features,)
        The private quantiles and their distance, as used in the transformation.
    scale_, min_ : ndarray of shape (n_features,)
        The transformation is ``X * scale_ + min_``.
    n_samples_seen_ : int
        Number of records, or `n_public`.
    {shared_attributes}

    See Also
    --------
    BoundedScaler : Maps known bounds to a range, at no privacy cost.

    Notes
    -----
    Theorem R1, Theorem R5.

    Two quantiles per feature are released as by `skdptune.mechanisms.private_quantile`, each at
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

    cost_parameters: ClassVar[frozenset[str]] = frozenset({"epsilon"})
    quantile_range: tuple[float, float]
    feature_range: tuple[float, float]
    clip: bool
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
        self.__dict__.update(arguments_of(locals()))

    def transform(self, X: Any) -> Any:
        """Return the scaled features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or PrivateRows
            A record with any entry that is not a finite number becomes a row of NaN.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or PrivateRows
        """
        check_is_fitted(self)
        if isinstance(X, PrivateRows):
            return X.transformed(self, self.n_features_in_)
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

    def _costed(self) -> tuple[float, PrivacyProfile]:
        # Quantiles are drawn, and not shifted by noise.
        return 0.0, pure_profile(self._checked_budget()[0])

    def _release(
        self, rows: Any, low_high: LowHigh, persons: Persons | None, ratio: float
    ) -> None:
        """Release private lower and upper quantiles of all features."""
        low, high = low_high
        share = self._checked_budget()[0] / (2 * low.size)
        # One generator for all features, so that a seed gives each feature different noise.
        generator = as_generator(check_seed(self.random_state))
        levels = [percentage / 100.0 for percentage in _check_quantile_range(self.quantile_range)]
        ends = list(zip(low.tolist(), high.tolist(), strict=True))
        quantiles = [
            [quantile_of_counts(counts, level, *own, share, generator) for level in levels]
            for counts, own in zip(_counts_of_columns(rows, ends, persons), ends, strict=True)
        ]
        found = np.sort(np.array(quantiles), axis=1).T
        narrow = found[1] - found[0] < _LEAST_SHARE * (high - low)
        self.data_min_, self.data_max_ = np.where(narrow, [low, high], found)
        self.data_range_ = self.data_max_ - self.data_min_
        start, end = check_feature_range(self.feature_range)
        self.scale_ = (end - start) / self.data_range_
        self.min_ = start - self.data_min_ * self.scale_

    def _check_parameters(self) -> None:
        super()._check_parameters()
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


def _counts_of_columns(
    rows: Any, ends: list[tuple[float, float]], persons: Persons | None
) -> Iterator[PointCounts]:
    """Yield the numbers of values on the grid of each column."""
    if not isinstance(rows, PrivateRows):
        weights = None if persons is None else persons.weights
        for column, own in zip(rows.T, ends, strict=True):
            yield counts_of_points(on_grid(column, *own), weights)
        return
    for start in range(0, len(ends), _COLUMNS):
        part = slice(start, start + _COLUMNS)
        for counts in rows.total(functools.partial(_counts_of_chunk, part, ends)):
            yield counts_of_grid(counts)


def _counts_of_chunk(part: slice, ends: list[tuple[float, float]], X: Any, y: Any) -> np.ndarray:
    columns = zip(read_rows(X).T[part], ends[part], strict=True)
    grids = [on_grid(column, *own) for column, own in columns]
    return np.array([np.bincount(points, minlength=STEPS + 1) for points in grids])


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
