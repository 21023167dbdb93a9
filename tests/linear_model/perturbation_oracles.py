"""Slow exact results about perturbed minima, for the tests of the solvers."""

from collections import Counter

import numpy as np
from scipy import stats


def gradient(loss, rows, lam, weights):
    """Return the derivative of ``sum loss(c_i w) + lam w^2 / 2``; `rows` holds sign times row."""
    slopes = [n * c * loss.derivative(c * weights) for c, n in Counter(rows).items()]
    return lam * weights + sum(slopes)


def curvature(loss, rows, lam, weights):
    """Return the second derivative of the same."""
    counts = Counter(rows).items()
    return lam + sum(n * c * c * loss.second_derivative(c * weights) for c, n in counts)


def exact_curves(loss, others, record, lam, sigma, epsilons):
    """Return the remove and the add direction of one-dimensional objective perturbation.

    The minimum falls as the linear term b grows, so P(minimum <= w) = P(b >= -gradient(w)). The
    curves are those of the interval that contains the minimum. They are below the true curves, but
    only slightly for thousands of intervals between quantiles of either distribution.
    """
    data = [others, [*others, record]]
    span = (len(others) + 1.0 + 12.0 * sigma) / lam
    coarse = np.linspace(-span, span, 40_001)
    levels = sigma * np.linspace(-9.0, 9.0, 4001)
    ends = np.unique([np.interp(levels, gradient(loss, d, lam, coarse), coarse) for d in data])
    without, together = (
        np.diff(stats.norm.cdf(gradient(loss, d, lam, ends) / sigma), prepend=0.0, append=1.0)
        for d in data
    )
    return hockey_stick(together, without, epsilons), hockey_stick(without, together, epsilons)


def hockey_stick(first, second, epsilons):
    """Return the curve of two discrete distributions."""
    return np.array([np.maximum(first - np.exp(e) * second, 0.0).sum() for e in epsilons])
