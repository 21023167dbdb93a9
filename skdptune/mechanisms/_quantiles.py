"""Private quantiles by the exponential mechanism."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdptune._formatting import shown
from skdptune._validation import check_integer, check_private_numbers, check_real
from skdptune.accounting import PrivacyProfile, exponential_mechanism
from skdptune.accounting._shared import LARGEST_LOSS
from skdptune.mechanisms._noise import WHOLE, nonprivate_profile
from skdptune.mechanisms._randomness import RandomState, as_generator, open_uniforms, random_below

# The range is divided into this many steps unless fewer are asked for; a quantile is one of their
# end points.
STEPS = 2**20
# Amount that rounding adds to the sensitivity of a computed rank, for up to 2^27 values
# (Theorem R1).
ROUNDING = 2.0**-24


def private_quantile(
    values: ArrayLike,
    quantile: float,
    lower: float,
    upper: float,
    epsilon: float,
    random_state: RandomState = None,
    *,
    steps: int | None = None,
    weights: NDArray[np.int64] | None = None,
) -> float:
    """Return a private quantile of values in a known range.

    Parameters
    ----------
    values : array-like of shape (n_samples,)
        One value per record. Values outside of the range are clipped; NaN counts as `lower`.
    quantile : float
        In [0, 1]; 0.5 is the median. At 0, any point below all values is correct, at 1 any point
        above.
    lower, upper : float
        The range, which must be known without looking at the values.
    epsilon : float
        Budget, greater than 0; infinite for no privacy.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None uses the operating system's entropy; a seed makes the result reproducible.
    steps : int, optional
        Public number of steps into which the range is divided, 2^20 by default and at most. With
        fewer points, a rank that is far off is less likely, and the answer is coarser.
    weights : ndarray of int64, optional
        Weight of each value; the values of a record must have at most 2^30 in all. Each has that
        by default.

    Returns
    -------
    float
        One of ``steps + 1`` equidistant points of the range.

    See Also
    --------
    quantile_profile : Returns the privacy cost.

    Notes
    -----
    Theorem R1.

    This is the exponential mechanism of Smith (2011), on a public grid instead of the continuum.
    So it reveals no low bits of the values, and handles ties. Values are rounded to the grid one
    by one. Let ``a`` of the ``n`` values be below a point, and ``b`` at or below it. The utility
    of the point is ``-max(a - q n, q n - b, 0)``: the number of ranks by which it misses the
    ``q``-quantile.

    A record changes the utility of a point by at most ``D = max(q, 1 - q)``, and may change those
    of two points in opposite directions. So points are drawn with probability proportional to
    ``exp(epsilon * utility / (2 D))``. At the median, where ``D = 1/2``, this is twice as sharp as
    the bound ``D <= 1`` would allow.

    Runs of points with equal utility are drawn as one: the logarithm of their number is added to
    the exponent, together with Gumbel noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.mechanisms import private_quantile
    >>> ages = np.random.default_rng(0).normal(40, 10, 10000)
    >>> round(private_quantile(ages, 0.5, 0, 120, epsilon=0.5, random_state=0))
    40
    """
    size = STEPS if steps is None else check_integer(steps, name="steps", lower=1, upper=STEPS)
    low, high = _checked_range(lower, upper)
    points = on_grid(values, low, high, size)
    counts = counts_of_points(points, weights)
    return quantile_of_counts(counts, quantile, low, high, epsilon, random_state, steps=size)


class PointCounts(NamedTuple):
    """Numbers of values on the points of a grid.

    Attributes
    ----------
    present : ndarray of int64
        The points that have values, in order.
    counts : ndarray of int64
        How many values each of them has, or the sum of their weights.
    total : float
        Number of values, or of records.
    is_weighted : bool
        Whether 2^30 stands for a record.
    """

    present: NDArray[np.int64]
    counts: NDArray[np.int64]
    total: float
    is_weighted: bool = False


def counts_of_points(
    points: NDArray[np.int64], weights: NDArray[np.int64] | None = None
) -> PointCounts:
    """Return the numbers of values on the points of a grid, exactly."""
    present, places, counts = np.unique(points, return_inverse=True, return_counts=True)
    if weights is None:
        return PointCounts(present, counts, points.size)
    sums = np.zeros(present.size, dtype=np.int64)
    np.add.at(sums, places.ravel(), weights)
    return PointCounts(present, sums, int(sums.sum()) / WHOLE, is_weighted=True)


def counts_of_grid(counts: NDArray[np.int64]) -> PointCounts:
    """Return the same from the numbers of values on all points of a grid."""
    present = np.flatnonzero(counts)
    return PointCounts(present, counts[present], int(counts.sum()))


def quantile_of_counts(
    counts: PointCounts,
    quantile: float,
    lower: float,
    upper: float,
    epsilon: float,
    random_state: RandomState = None,
    *,
    steps: int = STEPS,
) -> float:
    """Return `private_quantile` from the numbers of values on a grid.

    Notes
    -----
    Theorem R1, Theorem R10.
    """
    share = check_real(quantile, name="quantile", lower=0.0, upper=1.0)
    budget = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True)
    generator = as_generator(random_state)
    starts, utilities = ranked_runs(counts, share, steps)
    lengths = np.diff(starts, append=steps + 1)
    sensitivity = max(share, 1.0 - share) + ROUNDING
    run = _drawn(utilities, lengths, budget / (2.0 * sensitivity), generator)
    point = int(starts[run]) + random_below(int(lengths[run]), generator)
    place = point / steps
    return float(lower * (1.0 - place) + upper * place)


def quantile_profile(epsilon: float) -> PrivacyProfile:
    """Return the cost of `private_quantile`, for neighbours by one record, added or removed.

    Parameters
    ----------
    epsilon : float
        See `private_quantile`.

    Examples
    --------
    >>> from skdptune.mechanisms import quantile_profile
    >>> round(quantile_profile(0.5).epsilon(0), 6)
    0.5
    """
    budget = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True)
    return exponential_mechanism(budget) if budget <= LARGEST_LOSS else nonprivate_profile()


def ranked_runs(
    values: PointCounts, share: float, steps: int = STEPS
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return where runs of grid points with equal utility start, and their utilities.

    Notes
    -----
    Theorem R1, Theorem P14. Weights are summed as integers. Reading the sums as floats adds less
    to the sensitivity than `ROUNDING` allows for, with up to 2^27 records.
    """
    present, counts, total, is_weighted = values
    # A value changes the ranks at its own point and directly after it.
    starts = np.unique(np.concatenate([[0], present, present + 1]))
    starts = starts[starts <= steps]
    at_most = np.concatenate([[0], np.cumsum(counts)])
    below = at_most[np.searchsorted(present, starts, side="left")]
    up_to = at_most[np.searchsorted(present, starts, side="right")]
    if is_weighted:
        below, up_to = below / WHOLE, up_to / WHOLE
    target = share * total
    return starts, -np.maximum(np.maximum(below - target, target - up_to), 0.0)


def on_grid(values: ArrayLike, low: float, high: float, steps: int = STEPS) -> NDArray[np.int64]:
    """Return the points of a grid that are nearest to values."""
    array = check_private_numbers(values, name="values")
    if array.ndim != 1:
        raise ValueError(f"values must be one-dimensional; got {array.ndim} dimensions.")
    clipped = np.clip(np.where(np.isnan(array), low, array), low, high)
    return np.rint((clipped - low) / (high - low) * steps).astype(np.int64)


def _checked_range(lower: float, upper: float) -> tuple[float, float]:
    low = check_real(lower, name="lower")
    high = check_real(upper, name="upper")
    if not (low < high and math.isfinite(high - low)):
        raise ValueError(
            f"upper must be a finite number above lower={shown(low)}; got {shown(high)}. The "
            "range must be known without looking at the data."
        )
    return low, high


def _drawn(
    utilities: NDArray[np.float64],
    lengths: NDArray[np.int64],
    sharpness: float,
    generator: np.random.Generator | None,
) -> int:
    """Return the index of a run, drawn with probability ``length * exp(sharpness * utility)``."""
    gumbel = -np.log(-np.log(open_uniforms(utilities.size, generator)))
    if math.isinf(sharpness):
        exponents = np.where(utilities == utilities.max(), np.log(lengths), -np.inf)
    else:
        # Differences to the best keep their accuracy, whatever the number of records.
        exponents = sharpness * (utilities - utilities.max()) + np.log(lengths)
    return int(np.argmax(exponents + gumbel))
