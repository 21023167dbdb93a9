"""Values released with Gaussian or Laplace noise, and their privacy cost."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, sparse

from skdptune._secure_random import secure_generator
from skdptune._validation import check_private_numbers, check_real
from skdptune.accounting import PrivacyProfile, calibrate
from skdptune.accounting._shared import LARGEST_LOSS, gaussian_delta
from skdptune.mechanisms._exact_noise import add_gaussian, add_laplace
from skdptune.mechanisms._randomness import RandomState, as_generator

# For larger shifts, the accounting treats every loss as infinite.
_LARGEST_SHIFT = 30.0
_LEAST_SHIFT = 1e-6
# Ensures that a quotient, and its product with a sensitivity, are not rounded below the need.
_ROUNDED_UP = 1.0 + 2.0**-50


def gaussian_release(
    value: ArrayLike, sensitivity: float, scale: float, random_state: RandomState = None
) -> Any:
    """Return a value plus independent Gaussian noise on each of its numbers.

    Parameters
    ----------
    value : float or array-like
        Finite numbers.
    sensitivity : float
        Largest change of the value in Euclidean norm, when one record is added or removed. It
        determines the cost, see `gaussian_profile`, but not the noise.
    scale : float
        Standard deviation of the noise; 0 adds none, which is only free if the sensitivity is 0.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None uses a cryptographic source with a key from the operating system. A seed makes the
        noise reproducible, and anyone who knows the seed can subtract it.

    Returns
    -------
    float or ndarray of the value's shape
        Multiples of a power of two, which depends only on the scale and is about a millionth of
        it. They are the sum of the value and of real noise, rounded exactly.

    Notes
    -----
    Theorem E1.

    Examples
    --------
    >>> from skdptune.mechanisms import gaussian_release
    >>> round(gaussian_release(10.0, sensitivity=1.0, scale=2.0, random_state=0), 3)
    10.106
    """
    return _released(value, sensitivity, scale, random_state, add_gaussian)


def laplace_release(
    value: ArrayLike, sensitivity: float, scale: float, random_state: RandomState = None
) -> Any:
    """Return a value plus independent Laplace noise on each of its numbers.

    Parameters
    ----------
    value : float or array-like
        Finite numbers.
    sensitivity : float
        Largest change of the value in L1 norm, when one record is added or removed. It determines
        the cost, see `laplace_profile`, but not the noise.
    scale : float
        Parameter ``b`` of the density ``exp(-abs(x) / b) / (2 b)``; 0 adds no noise.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        See `gaussian_release`.

    Returns
    -------
    float or ndarray of the value's shape
        On a grid like that of `gaussian_release`.

    Notes
    -----
    Theorem E1.

    Examples
    --------
    >>> from skdptune.mechanisms import laplace_release
    >>> laplace_release([1.0, 2.0], sensitivity=1.0, scale=0.5, random_state=0).round(3)
    array([2.597, 4.051])
    """
    return _released(value, sensitivity, scale, random_state, add_laplace)


def gaussian_profile(sensitivity: float, scale: float) -> PrivacyProfile:
    """Return the cost of `gaussian_release`, for neighbours by one record, added or removed.

    Parameters
    ----------
    sensitivity, scale : float
        See `gaussian_release`.

    Examples
    --------
    >>> from skdptune.mechanisms import gaussian_profile
    >>> round(gaussian_profile(sensitivity=1.0, scale=4.0).epsilon(1e-6), 2)
    1.06
    """
    ratio = _ratio(sensitivity, scale)
    return PrivacyProfile.gaussian(ratio) if ratio <= _LARGEST_SHIFT else nonprivate_profile()


def laplace_profile(sensitivity: float, scale: float) -> PrivacyProfile:
    """Return the cost of `laplace_release`, for neighbours by one record, added or removed.

    Parameters
    ----------
    sensitivity, scale : float
        See `laplace_release`.

    Notes
    -----
    It is pure, with ``sensitivity / scale`` (Dwork and Roth 2014, Theorem 3.6), for any number of
    values.

    Examples
    --------
    >>> from skdptune.mechanisms import laplace_profile
    >>> laplace_profile(sensitivity=1.0, scale=4.0).epsilon(0)
    0.25
    """
    return pure_profile(_ratio(sensitivity, scale))


def noise_for_budget(epsilon: float, delta: float) -> tuple[float, PrivacyProfile]:
    """Return the smallest noise for a budget, in units of the sensitivity, and its cost.

    Parameters
    ----------
    epsilon : float
        Greater than 0; infinite for no noise.
    delta : float
        In [0, 1): 0 for Laplace noise, positive for Gaussian noise.

    Returns
    -------
    scale, profile : float, PrivacyProfile
        Multiply `scale` by the sensitivity to get the scale of the noise.

    Examples
    --------
    >>> from skdptune.mechanisms import noise_for_budget
    >>> round(noise_for_budget(0.5, delta=0.0)[0], 9)
    2.0
    >>> round(noise_for_budget(1.0, delta=1e-5)[0], 2)
    3.73
    """
    budget = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True)
    failure = check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
    if math.isinf(budget):
        return 0.0, nonprivate_profile()
    if failure == 0.0:
        return _ROUNDED_UP / budget, pure_profile(budget)
    return _calibrated_gaussian(budget, failure)


@functools.lru_cache(maxsize=256)
def _calibrated_gaussian(epsilon: float, delta: float) -> tuple[float, PrivacyProfile]:
    shift = gaussian_shift(epsilon, delta, tolerance=1e-9)
    found = calibrate(
        lambda ratio: PrivacyProfile.gaussian(1.0 / ratio),
        epsilon,
        delta,
        lower=1.0 / _LARGEST_SHIFT,
        # Slightly above the smallest noise.
        guess=1.0 if shift is None else min((1.0 + 5e-5) / shift, 1e6),
    )
    return found.value, found.profile


def gaussian_shift(epsilon: float, delta: float, tolerance: float = 1e-12) -> float | None:
    """Return the shift of Gaussian noise whose cost is a given budget, by Theorem P6.

    None if it is outside of a wide range, as for a delta of 0.
    """
    if delta == 0.0:
        return None
    at = np.asarray(epsilon)

    def excess(log_shift: float) -> float:
        found = float(gaussian_delta(math.exp(log_shift), at))
        return math.log(max(found, 1e-300) / delta)

    ends = math.log(_LEAST_SHIFT), math.log(_LARGEST_SHIFT)
    if excess(ends[0]) >= 0.0 or excess(ends[1]) <= 0.0:
        return None
    return math.exp(optimize.brentq(excess, *ends, xtol=tolerance))


def pure_profile(epsilon: float) -> PrivacyProfile:
    """Return a pure profile, or one of no privacy above the accounting's largest epsilon."""
    return PrivacyProfile.pure(epsilon) if epsilon <= LARGEST_LOSS else nonprivate_profile()


def nonprivate_profile() -> PrivacyProfile:
    """Return the profile of a release without privacy."""
    return PrivacyProfile.approximate(0.0, 1.0)


def _ratio(sensitivity: float, scale: float) -> float:
    influence, spread = _checked(sensitivity, scale)
    if influence == 0.0:
        return 0.0
    return influence / spread if spread > 0.0 else math.inf


def _checked(sensitivity: float, scale: float) -> tuple[float, float]:
    influence = check_real(
        sensitivity, name="sensitivity", lower=0.0, upper=math.inf, upper_open=True
    )
    return influence, check_real(scale, name="scale", lower=0.0, upper=math.inf, upper_open=True)


def _released(
    value: ArrayLike,
    sensitivity: float,
    scale: float,
    random: RandomState,
    add: Callable[[NDArray[Any], float, np.random.Generator], NDArray[Any]],
) -> Any:
    _, spread = _checked(sensitivity, scale)
    array = check_private_numbers(value, name="value")
    if not np.isfinite(array).all():
        # An infinite value would be released exactly, even with noise; the message shows no value.
        raise ValueError("value must be finite; got infinities or NaN. Clip what goes into it.")
    if spread == 0.0:
        noisy = array.copy()
    else:
        noisy = add(array, spread, as_generator(random) or secure_generator())
    return float(noisy) if array.ndim == 0 else noisy


# Sums whose sensitivity is exact to the last bit -----------------------------------------

# Sums of 2^27 records in units of 2^-26 are below 2^53, where integers are exact as doubles.
UNIT = 2.0**-26
# Integer weight of a record; it is divided among the rows of a person.
WHOLE = 2**30
_LARGEST = 2**53
_ROWS = 1 << 16


def unit_sum(units: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the sum of numbers in [-1, 1] over records, after truncation to multiples of 2^-26.

    Parameters
    ----------
    units : ndarray of shape (n_samples,) or (n_samples, n_values)
        Numbers outside of [-1, 1] are clipped; NaN counts as -1.

    Returns
    -------
    ndarray of shape () or (n_values,)

    Notes
    -----
    Theorem R1.

    A float sum is rounded at every addition, and adding a record can change the roundings of all
    others. Its influence may then exceed the largest summand (Casacuberta, Shoemate, Vadhan and
    Wagaman 2022). Rounding each record's numbers separately, and adding integers, avoids this
    effect. The numbers are rounded towards 0, so that no norm of a record's numbers grows.
    Therefore one record changes the result by at most its own numbers, for any number of records.
    A larger sum, which is possible for more than 2^27 records, is clipped to [-2^27, 2^27], where
    all multiples are exact as doubles. Clipping does not move two sums further apart.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.mechanisms import unit_sum
    >>> float(unit_sum(np.array([1.0, 0.25, -2.0])))
    0.25
    """
    return of_unit_total(unit_total(units))


def of_unit_total(total: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the result of `unit_sum`, from the total of all records."""
    return np.asarray(np.clip(total, -_LARGEST, _LARGEST) * UNIT, dtype=np.float64)


def unit_total(units: Any) -> NDArray[np.int64]:
    """Return the sum of `unit_sum` as integers, in units of 2^-26: totals of parts add up to it.

    Rows may be sparse here.

    Notes
    -----
    Theorem R1, Theorem R10.
    """
    is_array = isinstance(units, np.ndarray) or sparse.issparse(units)
    if not is_array or units.dtype.kind not in "iuf" or units.ndim == 0:
        raise TypeError("units must be an array of numbers, one row per record; got another.")
    total = np.zeros(units.shape[1:], dtype=np.int64)
    for start in range(0, units.shape[0], _ROWS):
        total += in_units(units[start : start + _ROWS]).astype(np.int64).sum(axis=0)
    return total


def in_units(values: Any) -> Any:
    """Return numbers in [-1, 1] as whole multiples of 2^-26, cut towards 0; NaN counts as -1."""
    if sparse.issparse(values):
        entries = in_units(values.data), values.indices, values.indptr
        return sparse.csr_array(entries, shape=values.shape)
    whole = np.fmax(values, -1.0, dtype=np.float64)
    np.fmin(whole, 1.0, out=whole)
    whole *= 1.0 / UNIT
    return np.trunc(whole, out=whole)
