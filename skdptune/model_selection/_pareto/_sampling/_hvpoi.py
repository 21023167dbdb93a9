"""Hypervolume-based probability of improvement (HVPoI) of candidates.

All objectives are minimised. For two objectives the sums are exact: the front cuts the plane into
vertical strips, in each of which a point improves the front if it lies below the strip's ceiling.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from skdptune.model_selection._pareto._sampling._fronts import Reference, front, hypervolume
from skdptune.model_selection._pareto._sampling._surrogates import Scales

FloatArray = NDArray[np.float64]

_N_DRAWS = 128


def hvpoi(
    means: FloatArray,
    deviations: FloatArray,
    points: FloatArray,
    scales: Scales,
    success: FloatArray | float = 1.0,
) -> FloatArray:
    """Return the improvement at the mean times the probability of an improvement.

    Parameters
    ----------
    means, deviations : arrays of shape (n, objectives)
        Of the surrogates' normal distributions on their scales.
    points : array of shape (k, objectives)
        Objectives of earlier evaluations.
    scales : Scales
        Probabilities are the same on all scales; hypervolumes are those of ``scales.axes``.
    success : array of shape (n,) or float
        The probabilities that an evaluation succeeds.

    Notes
    -----
    The acquisition function of Avent, Gonzalez, Diethe, Paleyes and Balle (PoPETs 2020), after
    Couckuyt, Deschrijver and Dhaene (2014).
    """
    probability = probability_of_improvement(
        means, deviations, scales.forward(points), scales.limit()
    )
    candidates = scales.axes(scales.backward(means))
    gain = improvement(candidates, scales.axes(points), scales.corner())
    # Where no mean improves, the probability decides; elsewhere the constant is negligible.
    return success * probability * (gain + 1e-9)


def strips(points: FloatArray, reference: Reference) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the strips from left to right, and their ceilings.

    The first strip lies left of all points, from minus infinity, with the reference's ceiling;
    the last one ends at the reference.
    """
    inside = points[(points < np.asarray(reference)).all(axis=1)]
    steps = front(inside) if len(inside) else np.empty((0, 2))
    ends = np.concatenate([[-np.inf], steps[:, 0], [reference[0]]])
    ceilings = np.concatenate([[reference[1]], steps[:, 1]])
    return ends, ceilings


def probability_of_improvement(
    means: FloatArray, deviations: FloatArray, points: FloatArray, reference: Reference
) -> FloatArray:
    """Return the probabilities that normal points are below the reference and not dominated.

    Parameters
    ----------
    means, deviations : arrays of shape (n, objectives)
        Of the normal distributions, independent between objectives.
    points : array of shape (k, objectives)
        Objectives of earlier evaluations, on the same scales.
    reference : sequence of float
        The worst point that counts, on the same scales.
    """
    if means.shape[1] != 2:
        return _probability_by_draws(means, deviations, points, reference)
    ends, ceilings = strips(points, reference)
    left = special.ndtr((ends - means[:, :1]) / deviations[:, :1])
    below = special.ndtr((ceilings - means[:, 1:]) / deviations[:, 1:])
    probability: FloatArray = (np.diff(left, axis=1) * below).sum(axis=1)
    return probability


def improvement(candidates: FloatArray, points: FloatArray, reference: Reference) -> FloatArray:
    """Return by how much each candidate, alone, would raise the hypervolume."""
    if candidates.shape[1] != 2:
        return _improvement_by_volumes(candidates, points, reference)
    ends, ceilings = strips(points, reference)
    width = np.maximum(ends[1:] - np.maximum(ends[:-1], candidates[:, :1]), 0.0)
    height = np.maximum(ceilings - candidates[:, 1:], 0.0)
    gain: FloatArray = (width * height).sum(axis=1)
    return gain


def _probability_by_draws(
    means: FloatArray, deviations: FloatArray, points: FloatArray, reference: Reference
) -> FloatArray:
    """Return the probabilities by quasi-random draws, the same ones for all points."""
    cube = stats.qmc.Sobol(means.shape[1], scramble=True, rng=0).random(_N_DRAWS)
    draws = means[:, np.newaxis] + deviations[:, np.newaxis] * special.ndtri(cube)
    improves = (draws < np.asarray(reference)).all(axis=2)
    for point in front(points) if len(points) else points:
        improves &= ~(point <= draws).all(axis=2)
    probability: FloatArray = improves.mean(axis=1)
    return probability


def _improvement_by_volumes(
    candidates: FloatArray, points: FloatArray, reference: Reference
) -> FloatArray:
    """Return the volume of each candidate's box that no point dominates."""
    gains = np.zeros(len(candidates))
    for number, candidate in enumerate(candidates):
        if (candidate < reference).all():
            box = float(np.prod(np.asarray(reference) - candidate))
            gains[number] = max(0.0, box - hypervolume(np.maximum(points, candidate), reference))
    return gains
