"""What is public about a minimisation problem, and the tolerance that follows from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from skdptune._validation import check_integer, check_kind, check_real
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._margin_losses import MarginLoss

# Units of rounding that the tolerance of a gradient allows per unit of its summands; rounding
# errors of sums grow as the root of their length, so this is ample.
_ROUNDINGS = 8.0


@dataclass(frozen=True)
class PublicProblem:
    """What is public about one or several regularised linear problems on the same records.

    Attributes
    ----------
    loss : MarginLoss
        Loss of each record's margin.
    radius : float
        Bound on the norm of a clipped row, the intercept's 1 included.
    regularization : float
        ``lam`` in ``sum of losses + lam / 2 * norm(weights)**2``. The intercept's weight is
        regularised like the others: without that the minimum need not be strongly convex.
    width : int
        Number of weights, the intercept included.
    n_samples : int
        Public number of records, or a bound on it: it enters the tolerance of a minimisation.
    n_problems : int
        Number of such problems (one-vs-rest).

    Notes
    -----
    Theorem M0.
    """

    loss: MarginLoss
    radius: float
    regularization: float
    width: int
    n_samples: int
    n_problems: int = 1

    def __post_init__(self) -> None:
        """Refuse sizes that make no problem."""
        check_kind(self.loss, name="loss", kind=MarginLoss, domain="a MarginLoss")
        for name in ("radius", "regularization"):
            value = getattr(self, name)
            check_real(value, name=name, lower=1e-15, upper=1e15)
        for name in ("width", "n_samples", "n_problems"):
            check_integer(getattr(self, name), name=name, lower=1)

    @property
    def gradient_bound(self) -> float:
        """Largest norm of one record's gradient."""
        return self.loss.slope_bound * self.radius

    @property
    def curvature_bound(self) -> float:
        """Largest second derivative of one record's loss in any direction."""
        return self.loss.curvature_bound * self.radius**2

    def regularised_at_least(self, floor: float) -> PublicProblem:
        """Return the problem with the regularization raised to a floor."""
        return replace(self, regularization=max(self.regularization, floor))

    def gradient_gap(self, noise_norm: float = 0.0, tol: float = 0.0) -> float:
        """Return the norm of the gradient at which a minimisation stops.

        Parameters
        ----------
        noise_norm : float
            Usual norm of a linear term in the objective.
        tol : float
            Norm asked for, in units of the largest sum of gradients that there can be; never
            less is returned than rounding allows.

        Notes
        -----
        Many times what rounding does to a gradient of these sizes, so that a minimiser in
        floating point gets there; half of it is left for the error of computing the norm. The
        weights' norm W follows from ``F(minimum) <= F(0)``:
        ``W <= 2 norm(b) / lam + sqrt(2 n loss(0) / lam)``; margins of size ``R W`` are
        rounded, and the slopes with them.
        """
        largest = self.n_samples * float(self.loss.value(np.zeros(1))[0])
        weights = 2.0 * noise_norm / self.regularization
        weights += math.sqrt(2.0 * largest / self.regularization)
        summands = self.n_samples * (self.gradient_bound + self.curvature_bound * weights)
        summands += self.regularization * weights + noise_norm
        rounding = _ROUNDINGS * float(np.finfo(np.float64).eps) * summands
        return max(rounding, tol * self.n_samples * self.gradient_bound)

    def check_fits(self, design: Design, signs: np.ndarray) -> None:
        """Refuse data of another shape than the problem's."""
        if design.width != self.width:
            raise ValueError(f"design must be of width {self.width}; got {design.width}.")
        if np.shape(signs) != (design.n_samples,):
            raise ValueError(
                f"signs must be of shape ({design.n_samples},); got {np.shape(signs)}."
            )


def largest_subset_size(n_public: int) -> int:
    """Return a size that a random subset of the data, expected to be `n_public`, never exceeds.

    Where the number of records is secret, this public bound stands for it. It sets the tolerance
    of a minimisation, since what rounding does to a sum grows with its length, and bounds how
    far a ridge solution reaches.

    Parameters
    ----------
    n_public : int
        Expected size of the subset, of which each record is a member independently.

    Notes
    -----
    Theorem F3.

    With ``m = n_public`` and ``t = 10 sqrt(m) + 100``, Bernstein's inequality gives
    ``P(size >= m + t) <= exp(-t**2 / (2 m + 2 t / 3))``. Since ``t**2 = 100 m + 2000 sqrt(m) +
    10**4`` is more than 50 times that denominator, ``2 m + 6.7 sqrt(m) + 66.7``, this is below
    ``exp(-50) < 1e-20``, whatever m is.

    Examples
    --------
    >>> largest_subset_size(10_000)
    11100
    """
    return n_public + math.ceil(10.0 * math.sqrt(n_public)) + 100
