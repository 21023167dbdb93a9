"""Starting weights of a descent, from the shapes that scikit-learn gives to coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np


def initial_weights(
    coef: Any, intercept: Any, *, n_outputs: int, n_features: int, fit_intercept: bool
) -> np.ndarray | None:
    """Return starting weights of shape (width, n_outputs), or None where nothing was given.

    Parameters
    ----------
    coef : array-like of shape (n_outputs, n_features) or None
        With one output also of shape (n_features,).
    intercept : array-like of shape (n_outputs,) or None
        With one output also a number.
    n_outputs, n_features : int
        Number of linear functions and of their coefficients.
    fit_intercept : bool
        Whether the intercepts are the last row of the weights; without it they must be 0.

    Returns
    -------
    ndarray of float64 or None

    Examples
    --------
    >>> initial_weights([1.0, 2.0], 3.0, n_outputs=1, n_features=2, fit_intercept=True).tolist()
    [[1.0], [2.0], [3.0]]
    """
    if coef is None and intercept is None:
        return None
    weights = np.zeros((n_features + int(fit_intercept), n_outputs))
    if coef is not None:
        weights[:n_features] = _checked(coef, "coef_init", (n_outputs, n_features)).T
    if intercept is None:
        return weights
    last = _checked(intercept, "intercept_init", (n_outputs,))
    if fit_intercept:
        weights[n_features] = last
    elif last.any():
        raise ValueError("intercept_init must be 0 or None where fit_intercept is False.")
    return weights


def _checked(value: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} must be finite throughout.") from None
    if shape[0] == 1 and array.shape == shape[1:]:
        array = array.reshape(shape)
    if array.shape != shape:
        raise ValueError(f"{name} must be of shape {shape}; got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite throughout.")
    return array
