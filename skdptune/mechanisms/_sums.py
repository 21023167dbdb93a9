"""Sums whose sensitivity is what it says, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# 2^27 records of units 2^-26 still sum below 2^53, where integers are exact as doubles.
UNIT = 2.0**-26
_LARGEST = 2**53
_ROWS = 1 << 16


def unit_sum(units: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the sum over records of numbers in [-1, 1], cut to multiples of 2^-26 first.

    Parameters
    ----------
    units : ndarray of shape (n_samples,) or (n_samples, n_values)
        Numbers beyond [-1, 1] are clipped; NaN counts as -1.

    Returns
    -------
    ndarray of shape () or (n_values,)

    Notes
    -----
    Theorem R1.

    A float sum is rounded at every addition, and one record more can change the roundings of all
    others: its influence exceeds the largest summand (Casacuberta, Shoemate, Vadhan and
    Wagaman 2022). Rounding each record's numbers by themselves, and adding integers, has no
    such effect. They are rounded towards 0, so that no norm of a record's numbers grows: one
    record changes the result by its own numbers at most, however many records there are: a sum
    that more than 2^27 of them may have is cut to [-2^27, 2^27], where doubles tell all multiples
    apart. Cutting brings two sums no farther apart.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.mechanisms import unit_sum
    >>> float(unit_sum(np.array([1.0, 0.25, -2.0])))
    0.25
    """
    if not isinstance(units, np.ndarray) or units.dtype.kind not in "iuf" or units.ndim == 0:
        raise TypeError("units must be an array of numbers, one row per record; got another.")
    total = np.zeros(units.shape[1:], dtype=np.int64)
    for start in range(0, units.shape[0], _ROWS):
        block = np.asarray(units[start : start + _ROWS], dtype=np.float64)
        block = np.clip(np.where(np.isnan(block), -1.0, block), -1.0, 1.0)
        total += np.trunc(block / UNIT).astype(np.int64).sum(axis=0)
    return np.asarray(np.clip(total, -_LARGEST, _LARGEST) * UNIT, dtype=np.float64)
