"""Losses of a margin: convex, decreasing, with bounded slope and curvature.

The margin is ``sign * (row . weights)``: positive where a record is on its side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import special

from skdptune._validation import check_real


@dataclass(frozen=True)
class MarginLoss(ABC):
    """A convex loss of the margin that never increases.

    Attributes
    ----------
    name : str
        What the loss is called.
    slope_bound : float
        Largest absolute first derivative.
    curvature_bound : float
        Largest second derivative.

    Notes
    -----
    Theorem M0.

    The first derivative is nowhere positive and the second nowhere negative: the proof of
    objective perturbation uses both signs.
    """

    name: str
    slope_bound: float
    curvature_bound: float

    @abstractmethod
    def value(self, margins: np.ndarray) -> np.ndarray:
        """Return the loss of each margin."""

    @abstractmethod
    def derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return the first derivative, in [-slope_bound, 0]."""

    @abstractmethod
    def second_derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return the second derivative, in [0, curvature_bound], almost everywhere."""

    @abstractmethod
    def curvature_at_slope(self, shares: np.ndarray) -> np.ndarray:
        """Return a bound on the second derivative where the slope is a share of its bound.

        Parameters
        ----------
        shares : ndarray
            Values of ``abs(derivative) / slope_bound``, in [0, 1].

        Returns
        -------
        ndarray
            ``k(share)``; k is concave, and ``k(share) / share**2`` does not increase.
        """

    def smoothed(self, factor: float) -> MarginLoss:
        """Return a loss whose corners are `factor` times as wide, for a minimiser's start."""
        return self


@dataclass(frozen=True)
class LogisticLoss(MarginLoss):
    """The loss ``log(1 + exp(-margin))`` of logistic regression.

    Examples
    --------
    >>> float(LogisticLoss().value(0.0).round(3))
    0.693
    """

    name: str = "logistic"
    slope_bound: float = 1.0
    curvature_bound: float = 0.25

    def value(self, margins: np.ndarray) -> np.ndarray:
        """Return the loss of each margin."""
        return np.logaddexp(0.0, -np.asarray(margins))

    def derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return the first derivative."""
        return -special.expit(-np.asarray(margins))

    def second_derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return the second derivative."""
        # The product of both tails keeps its relative accuracy where one of them is near 1.
        return special.expit(margins) * special.expit(-np.asarray(margins))

    def curvature_at_slope(self, shares: np.ndarray) -> np.ndarray:
        """Return ``share * (1 - share)``, which is exact."""
        return shares * (1.0 - shares)


@dataclass(frozen=True)
class HuberHingeLoss(MarginLoss):
    """The hinge of a support vector machine, its corner at 1 rounded by a parabola.

    Parameters
    ----------
    half_width : float
        The parabola reaches from ``1 - half_width`` to ``1 + half_width``.

    Notes
    -----
    Chaudhuri, Monteleoni and Sarwate (2011), section 3.4.2, with h for `half_width`:
    ``1 - m`` below ``1 - h``, ``(1 + h - m)**2 / (4 h)`` up to ``1 + h``, and 0 above.

    Examples
    --------
    >>> huber_hinge(0.5).value([0.0, 1.0, 2.0])
    array([1.   , 0.125, 0.   ])
    """

    name: str = "huber_hinge"
    slope_bound: float = 1.0
    curvature_bound: float = 1.0
    half_width: float = 0.5

    def value(self, margins: np.ndarray) -> np.ndarray:
        """Return the loss of each margin."""
        lack = 1.0 + self.half_width - np.asarray(margins)
        rounded = np.clip(lack, 0.0, 2.0 * self.half_width)
        # The parabola up to its end, and the line from there.
        return rounded**2 / (4.0 * self.half_width) + (np.maximum(lack, 0.0) - rounded)

    def derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return the first derivative."""
        lack = 1.0 + self.half_width - np.asarray(margins)
        return -np.clip(lack / (2.0 * self.half_width), 0.0, 1.0)

    def second_derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return the second derivative; at the two corners of the slope, that of the parabola."""
        inside = np.abs(1.0 - np.asarray(margins)) <= self.half_width
        return inside * self.curvature_bound

    def curvature_at_slope(self, shares: np.ndarray) -> np.ndarray:
        """Return the parabola's curvature: every slope occurs on it."""
        return np.full_like(shares, self.curvature_bound)

    def smoothed(self, factor: float) -> HuberHingeLoss:
        """Return the hinge rounded over `factor` times the width."""
        return huber_hinge(factor * self.half_width)


LOGISTIC = LogisticLoss()


def huber_hinge(width: float = 0.5) -> HuberHingeLoss:
    """Return the hinge rounded over ``1 - width`` to ``1 + width``.

    Parameters
    ----------
    width : float, default=0.5
        Positive. The slope is at most 1, the curvature ``1 / (2 * width)``.
    """
    width = check_real(width, name="width", lower=0.0, lower_open=True, upper=1e15)
    return HuberHingeLoss(curvature_bound=1.0 / (2.0 * width), half_width=width)
