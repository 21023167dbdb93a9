"""Bounds on features, which the user must know, and ranges to map them to."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdptune._formatting import shown

_DOMAIN = "a pair (lower, upper) of numbers, or of arrays with one number per feature"
_WHY = (
    "Bounds must be known without looking at the data, such as (0, 120) for an age: what is read "
    "off the data reveals its extreme records. Values beyond them are clipped."
)


def check_bounds(bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds as arrays of no or one dimension, or raise."""
    if bounds is None:
        raise ValueError(f"bounds must be {_DOMAIN}; got None. {_WHY}")
    try:
        low, high = (np.asarray(side, dtype=np.float64) for side in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be {_DOMAIN}; got {shown(bounds)}. {_WHY}") from None
    if low.ndim > 1 or high.ndim > 1 or (low.ndim and high.ndim and low.size != high.size):
        raise ValueError(
            f"bounds must be {_DOMAIN}; got arrays of shapes {low.shape} and {high.shape}. {_WHY}"
        )
    if not (np.isfinite(low).all() and np.isfinite(high).all() and np.all(low < high)):
        raise ValueError(f"bounds must be finite, lower below upper; got {shown(bounds)}. {_WHY}")
    return low, high


def bounds_per_feature(bounds: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds with one number for each feature, or raise if they are not as many."""
    low, high = check_bounds(bounds)
    for side in (low, high):
        if side.ndim and side.size != n_features:
            raise ValueError(
                f"bounds must be one number, or one per feature, of {n_features} features; got "
                f"{side.size} numbers."
            )
    shape = (n_features,)
    return np.broadcast_to(low, shape).copy(), np.broadcast_to(high, shape).copy()


def check_feature_range(feature_range: Any) -> tuple[float, float]:
    """Return the range that features are mapped to, or raise."""
    try:
        low, high = (float(end) for end in feature_range)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not (low < high and np.isfinite(low) and np.isfinite(high)):
        raise ValueError(
            f"feature_range must be a pair of finite numbers, the first smaller; "
            f"got {shown(feature_range)}."
        )
    return low, high
