"""Features scaled by known bounds, which costs nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdptune.preprocessing._bounds import bounds_per_feature, check_bounds, check_feature_range
from skdptune.preprocessing._stateless import StatelessTransformer


class BoundedScaler(StatelessTransformer):
    """Clip each feature to known bounds and map these to a range.

    What MinMaxScaler reads off the data is given here, so nothing is learnt and the cost is zero.

    Parameters
    ----------
    bounds : tuple (lower, upper)
        Numbers, or arrays with one number per feature. Required; they must be known without
        looking at the data.
    feature_range : tuple (low, high), default=(0, 1)
        What the bounds are mapped to.

    Attributes
    ----------
    privacy_ : PrivacyReport
        States a cost of zero.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, where they had names.

    Examples
    --------
    >>> from skdptune.preprocessing import BoundedScaler
    >>> scaler = BoundedScaler(bounds=([0, 0], [120, 1000]))
    >>> scaler.fit_transform([[30, 250], [150, -1]])
    array([[0.25, 0.25],
           [1.  , 0.  ]])
    """

    def __init__(self, bounds: Any = None, feature_range: tuple[float, float] = (0, 1)) -> None:
        self.bounds = bounds
        self.feature_range = feature_range

    def transform(self, X: Any) -> np.ndarray:
        """Return the features, clipped and mapped to `feature_range`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A record that holds anything but finite numbers comes out as a row of NaN.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        self._check_parameters()
        rows = self._rows(X)
        low, high = bounds_per_feature(self.bounds, rows.shape[1])
        return _mapped(rows, (low, high), check_feature_range(self.feature_range))

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Map the range back to the bounds; what was clipped stays so.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        self._check_parameters()
        rows = self._rows(X)
        low, high = bounds_per_feature(self.bounds, rows.shape[1])
        return _mapped(rows, check_feature_range(self.feature_range), (low, high))

    def _check_parameters(self) -> None:
        check_bounds(self.bounds)
        check_feature_range(self.feature_range)

    def _check_width(self, n_features: int) -> None:
        bounds_per_feature(self.bounds, n_features)


def _mapped(rows: np.ndarray, source: tuple[Any, Any], target: tuple[Any, Any]) -> np.ndarray:
    # Halves of the ends, since the difference of two finite numbers may overflow.
    share = (np.clip(rows, *source) / 2 - source[0] / 2) / (source[1] / 2 - source[0] / 2)
    mapped = (target[0] * (1 - share) + target[1] * share).astype(rows.dtype)
    return np.clip(mapped, *target).astype(rows.dtype, copy=False)
