"""How alike the scores of two candidates are expected to be, by the distance of their points."""

from __future__ import annotations

import math

import numpy as np

# Part of what candidates differ by that close ones do not share: grids have cliffs.
_OWN_SHARE = 0.5


def distances(points: np.ndarray) -> np.ndarray:
    """Return the distances of all pairs of points, 0 where the points are equal.

    Examples
    --------
    >>> import numpy as np
    >>> distances(np.array([[0.0], [1.0]]))
    array([[0., 1.],
           [1., 0.]])
    """
    squares = np.zeros((len(points), len(points)))
    for column in points.T:
        squares += (column[:, None] - column[None, :]) ** 2
    return np.sqrt(squares)


def correlations(apart: np.ndarray, length_scale: float) -> np.ndarray:
    """Return the correlations of a process at points with these distances.

    Half of the variance is of a Matérn process that is twice differentiable, and half of white
    noise, which equal points share. For equal points the correlation is 1.

    Examples
    --------
    >>> import numpy as np
    >>> correlations(np.array([0.0, 0.3, 10.0]), 0.3).round(2)
    array([1.  , 0.26, 0.  ])
    """
    steps = math.sqrt(5.0) * apart / length_scale
    smooth = (1.0 + steps + steps**2 / 3.0) * np.exp(-steps)
    return np.where(apart > 0.0, (1.0 - _OWN_SHARE) * smooth, 1.0)
