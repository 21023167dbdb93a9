"""The expected improvement of a front's hypervolume, for two objectives.

The first objective is log-normal under its surrogate and the second logit-normal. In each strip
of the plane (see ``_hvpoi``) the improvement is a width times a height, which are independent.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from skdptune.model_selection._pareto._sampling._fronts import LEAST_SHARE
from skdptune.model_selection._pareto._sampling._hvpoi import improvement, strips
from skdptune.model_selection._pareto._sampling._surrogates import Scales

FloatArray = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# At least so many candidates pass the screening.
_N_SCREENED = 32


def expected_improvement(
    means: FloatArray, deviations: FloatArray, points: FloatArray, scales: Scales
) -> FloatArray:
    """Return by how much an evaluation is expected to raise the hypervolume.

    Parameters
    ----------
    means, deviations : arrays of shape (n, 2)
        Of the surrogates' normal distributions on their scales, independent between objectives.
    points : array of shape (k, 2)
        Objectives of earlier evaluations.
    scales : Scales
    """
    ends, ceilings = strips(scales.axes(points), scales.corner())
    is_log = scales.epsilon_scale == "log"
    # To the left of it nothing is gained.
    ends[0] = math.log(LEAST_SHARE * scales.reference[0]) if is_log else 0.0
    shortfall = normal_shortfall if is_log else lognormal_shortfall
    reach = shortfall(means[:, :1], deviations[:, :1], ends)
    height = logit_normal_shortfall(means[:, 1:], deviations[:, 1:], ceilings)
    expected: FloatArray = (np.diff(reach, axis=1) * height).sum(axis=1)
    return expected


def screened_expected_improvement(
    means: FloatArray,
    deviations: FloatArray,
    points: FloatArray,
    scales: Scales,
    success: FloatArray | float = 1.0,
) -> FloatArray:
    """Return the expected improvement of the most promising candidates, 0 for the others.

    The parameters are those of :func:`expected_improvement`, and the probabilities that an
    evaluation succeeds. Promising is what improves most one deviation below the mean: the
    expectation takes far longer to compute.
    """
    candidates = scales.axes(scales.backward(means - deviations))
    optimistic = improvement(candidates, scales.axes(points), scales.corner())
    best = np.argsort(-success * optimistic, kind="stable")[: max(_N_SCREENED, len(means) // 6)]
    expected = np.zeros(len(means))
    expected[best] = expected_improvement(means[best], deviations[best], points, scales)
    return expected * success


def normal_shortfall(means: FloatArray, deviations: FloatArray, ends: FloatArray) -> FloatArray:
    """Return the expectation of ``max(end - normal, 0)``."""
    standard = (ends - means) / deviations
    density = np.exp(-(standard**2) / 2) / math.sqrt(2 * math.pi)
    shortfall: FloatArray = deviations * (standard * special.ndtr(standard) + density)
    return np.maximum(shortfall, 0.0)


def lognormal_shortfall(means: FloatArray, deviations: FloatArray, ends: FloatArray) -> FloatArray:
    """Return the expectation of ``max(end - exp(normal), 0)``."""
    with np.errstate(divide="ignore"):
        standard = (np.log(ends) - means) / deviations
    growth = np.exp(np.minimum(means + deviations**2 / 2, 700.0))
    below = ends * special.ndtr(standard)
    shortfall: FloatArray = np.maximum(below - growth * special.ndtr(standard - deviations), 0.0)
    return shortfall


def logit_normal_shortfall(
    means: FloatArray, deviations: FloatArray, ceilings: FloatArray
) -> FloatArray:
    """Return the expectation of ``max(ceiling - expit(normal), 0)``, rows by columns.

    By Gauss-Hermite quadrature. The kink of the integrand slows its convergence, but the error
    stays below a hundredth of the deviation.
    """
    total = np.zeros((len(means), len(ceilings)))
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * np.maximum(ceilings - special.expit(means + node * deviations), 0.0)
    return total
