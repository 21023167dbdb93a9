"""Principal components of private second moments."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from skdptune._docstrings import with_shared_text
from skdptune._validation import check_flag, check_integer
from skdptune.base._shared import Persons, PrivateRows, arguments_of, rows_with_gaps
from skdptune.ledger import PrivacyLedger
from skdptune.mechanisms import as_generator, gaussian_release
from skdptune.mechanisms._shared import check_seed
from skdptune.preprocessing._private_scalers import (
    TEXT,
    LowHigh,
    PrivateTransformer,
    in_units,
    unit_map,
    unit_sums,
)

# Weight of a row relative to that of its products. The mean then has four times their noise. This
# matters little, since the mean enters the covariance squared.
_MEAN_WEIGHT = 0.25
# Covers all rounding errors of a row's numbers, which are below 2^-30 for up to a million columns.
_SLACK = 1.0 + 2.0**-20


@with_shared_text(TEXT)
class DPPCA(ClassNamePrefixFeaturesOutMixin, PrivateTransformer):
    """Principal components, from one noisy release of the mean and the second moments.

    Features are clipped to `bounds`, and mapped to [-1, 1]. The guarantee is (`epsilon`,
    `delta`)-differential privacy for data sets that differ by one record, added or removed, with
    the number of records public.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components; None means all.
    epsilon : float, default=1.0
        Budget; infinite for no privacy.
    delta : float, default=1e-5
        Failure probability of the budget, greater than 0.
    bounds : tuple (lower, upper)
        Lower and upper bounds: numbers, or arrays with one number per feature. Required, and must
        be known without looking at the data.
    whiten : bool, default=False
        Whether to divide each component by its standard deviation.
    {randomness_and_size}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Directions of largest variance, for features mapped to [-1, 1].
    explained_variance_ : ndarray of shape (n_components,)
        Variance of each component, at least 0. Noise makes the first ones too large.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Shares of the sum of all variances.
    mean_ : ndarray of shape (n_features,)
        Private mean of the mapped features.
    n_components_ : int
        Number of components.
    noise_scale_ : float
        Standard deviation of the noise on an entry of the covariance of mapped features. A public
        number.
    n_samples_seen_ : int
        Number of records, or `n_public`.
    {shared_attributes}

    See Also
    --------
    DPStandardScaler : Private means and deviations of each feature.

    Notes
    -----
    Theorem R9, Theorem R5.

    With few records for the noise, the components are those of the noise. A random projection
    (`sklearn.random_projection.GaussianRandomProjection`) costs nothing, and is better then.
    Compare `noise_scale_` times the root of the number of features with `explained_variance_`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.preprocessing import DPPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 1)) * [4.0, 2.0, 1.0] + rng.normal(size=(5000, 3))
    >>> pca = DPPCA(n_components=1, epsilon=1.0, bounds=(-10, 10), random_state=0).fit(X)
    >>> pca.components_.round(1)
    array([[0.9, 0.5, 0.2]])
    >>> pca.transform(X).shape
    (5000, 1)
    """

    n_components: int | None
    whiten: bool

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        bounds: Any = None,
        whiten: bool = False,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    def transform(self, X: Any) -> Any:
        """Return the components of records, whose features are clipped to the bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or PrivateRows
            A record with any entry that is not a finite number becomes a row of NaN.

        Returns
        -------
        ndarray of shape (n_samples, n_components), or PrivateRows
        """
        check_is_fitted(self)
        if isinstance(X, PrivateRows):
            return X.transformed(self, len(self.components_))
        rows = rows_with_gaps(self, X)
        units = in_units(rows, *self._low_high) - self.mean_
        # Theorem R10: added up in the order of the columns, so that the components of a row do not
        # depend on its place, as in a product of matrices.
        found = np.zeros((len(units), len(self.components_)))
        for column, weights in zip(units.T, self.components_.T, strict=True):
            found += column[:, None] * weights
        if self.whiten:
            found /= self._deviations()
        return found.astype(rows.dtype, copy=False)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the records that have these components, with all other components at the mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        found = np.asarray(X, dtype=np.float64)
        if self.whiten:
            found = found * self._deviations()
        middle, half = unit_map(*self._low_high)
        return middle + half * (found @ self.components_ + self.mean_)

    @property
    def n_features_out(self) -> int | None:
        """Number of components; None if that is the number of features."""
        return self.n_components

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _check_parameters(self) -> None:
        if self._checked_budget()[1] == 0.0:
            raise ValueError("delta must be greater than 0, since the noise is Gaussian; got 0.")
        super()._check_parameters()
        check_flag(self.whiten, name="whiten")
        if self.n_components is not None:
            check_integer(
                self.n_components,
                name="n_components",
                lower=1,
                hint="Shares of the variance are not supported, since they follow from the data.",
            )

    def _check_width(self, n_features: int) -> None:
        if (self.n_components or 1) > n_features:
            raise ValueError(
                f"n_components must be at most the number of features, {n_features}; got "
                f"{self.n_components}."
            )

    def _deviations(self) -> np.ndarray:
        # Variances below the noise level are unknown.
        return np.sqrt(np.maximum(self.explained_variance_, max(self.noise_scale_, 1e-12)))

    def _release(
        self, rows: Any, low_high: LowHigh, persons: Persons | None, ratio: float
    ) -> None:
        """Release the mean and the second moments of mapped features, and keep components."""
        self._low_high = low_high
        width = self.n_features_in_
        self.n_components_ = width if self.n_components is None else self.n_components
        # All noise comes from one release, to which a record contributes at most this length.
        sensitivity = math.sqrt(1.0 + _MEAN_WEIGHT**2) * _SLACK
        sums = unit_sums(rows, functools.partial(_contributions, low_high), persons)
        generator = as_generator(check_seed(self.random_state))
        noisy = gaussian_release(sums, sensitivity, sensitivity * ratio, generator) / (
            self.n_samples_seen_ / width
        )
        self.noise_scale_ = sensitivity * ratio / self.n_samples_seen_ * width
        mean = np.clip(noisy[:width] / (_MEAN_WEIGHT * math.sqrt(width)), -1.0, 1.0)
        second = np.zeros((width, width))
        upper = np.triu_indices(width)
        second[upper] = np.where(upper[0] == upper[1], 1.0, math.sqrt(0.5)) * noisy[width:]
        self._keep_components(mean, second + np.triu(second, 1).T)

    def _keep_components(self, mean: np.ndarray, second: np.ndarray) -> None:
        variances, vectors = np.linalg.eigh(second - np.outer(mean, mean))
        variances, vectors = np.maximum(variances[::-1], 0.0), vectors.T[::-1]
        # The largest entry is positive, as in scikit-learn.
        largest = np.abs(vectors).argmax(axis=1)[:, None]
        vectors = vectors * np.sign(np.take_along_axis(vectors, largest, axis=1))
        count = self.n_components_
        total = float(variances.sum())
        self.mean_ = mean
        self.components_ = vectors[:count]
        self.explained_variance_ = variances[:count]
        self.explained_variance_ratio_ = self.explained_variance_ / max(total, 1e-300)


def _contributions(low_high: LowHigh, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Iterate over the numbers of each row in the release: the row, then products.

    Rows of length at most 1 have products of length at most 1, if those of two different
    features, which occur once, are multiplied by the root of 2.
    """
    units = in_units(rows, *low_high) / math.sqrt(rows.shape[1])
    yield _MEAN_WEIGHT * units
    for place in range(units.shape[1]):
        products = units[:, place:] * units[:, place : place + 1]
        products[:, 1:] *= math.sqrt(2.0)
        yield products
