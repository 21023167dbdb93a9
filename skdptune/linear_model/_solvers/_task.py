"""What perturbed minimisation problems have in common: sizes, budgets, tolerances, noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from skdptune._validation import check_integer, check_kind, check_real
from skdptune.accounting import PrivacyProfile, calibrate
from skdptune.accounting._losses import LARGEST_LOSS
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._margin_losses import MarginLoss

# Beyond this little noise a figure of privacy would say nothing.
LEAST_NOISE_MULTIPLIER = 0.05
# Units of rounding that the tolerance of a gradient allows per unit of its summands; rounding
# errors of sums grow as the root of their length, so this is ample.
_ROUNDINGS = 8.0


@dataclass(frozen=True)
class Task:
    """Regularised linear problems on public sizes.

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
        Number of such problems on the same records (one-vs-rest).
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
    def force(self) -> float:
        """Largest norm of one record's gradient."""
        return self.loss.slope_bound * self.radius

    @property
    def stiffness(self) -> float:
        """Largest second derivative of one record's loss in any direction."""
        return self.loss.curvature_bound * self.radius**2

    def regularised_at_least(self, floor: float) -> Task:
        """Return the task with the regularization raised to a floor."""
        return replace(self, regularization=max(self.regularization, floor))

    def gradient_gap(self, noise_norm: float = 0.0, tolerance: float = 0.0) -> float:
        """Return the norm of the gradient at which a minimisation stops.

        Parameters
        ----------
        noise_norm : float
            Usual norm of a linear term in the objective.
        tolerance : float
            Asked for, per record and largest gradient of a record.

        Notes
        -----
        Many times what rounding does to a gradient of these sizes, so that a minimiser in
        floating point gets there, and half of it is room for the error of computing the
        norm. The weights' norm W follows from ``F(minimum) <= F(0)``:
        ``W <= 2 norm(b) / lam + sqrt(2 n loss(0) / lam)``; margins of size ``R W`` are
        rounded, and the slopes with them.
        """
        largest = self.n_samples * float(self.loss.value(np.zeros(1))[0])
        weights = 2.0 * noise_norm / self.regularization
        weights += math.sqrt(2.0 * largest / self.regularization)
        summands = self.n_samples * (self.force + self.stiffness * weights)
        summands += self.regularization * weights + noise_norm
        rounding = _ROUNDINGS * float(np.finfo(np.float64).eps) * summands
        return max(rounding, tolerance * self.n_samples * self.force)

    def check_fits(self, design: Design, signs: np.ndarray) -> None:
        """Refuse data of another shape than the plan was made for."""
        if design.width != self.width:
            raise ValueError(f"design must be of width {self.width}; got {design.width}.")
        if np.shape(signs) != (design.n_samples,):
            raise ValueError(
                f"signs must be of shape ({design.n_samples},); got {np.shape(signs)}."
            )


def largest_part(n_public: int) -> int:
    """Return a size that a random part of the data of expected size `n_public` never exceeds.

    The number of records enters the tolerance of a minimisation alone, as a bound: what rounding
    does to a sum grows with its length. Where that number is secret, the bound is taken here.

    Parameters
    ----------
    n_public : int
        Expected size of the part, each record entering by its own coin.

    Notes
    -----
    With ``m = n_public`` and ``t = 10 sqrt(m) + 100``, Bernstein's inequality gives
    ``P(size >= m + t) <= exp(-t**2 / (2 m + 2 t / 3))``. Since ``t**2 = 100 m + 2000 sqrt(m) +
    10**4`` is more than 50 times that denominator, ``2 m + 6.7 sqrt(m) + 66.7``, this is below
    ``exp(-50) < 1e-20``, whatever m is.

    Examples
    --------
    >>> largest_part(10_000)
    11100
    """
    return n_public + math.ceil(10.0 * math.sqrt(n_public)) + 100


def check_budget(
    epsilon: float | None, delta: float, noise_multiplier: float | None, n_problems: int
) -> tuple[float | None, float]:
    """Return epsilon and delta as floats; epsilon is None if the noise is given.

    An epsilon beyond what a profile can express is lowered to that.
    """
    delta = check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
    if noise_multiplier is None:
        epsilon = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True)
        return min(epsilon, LARGEST_LOSS), delta
    least = LEAST_NOISE_MULTIPLIER * math.sqrt(n_problems)
    check_real(noise_multiplier, name="noise_multiplier", lower=least, upper=1e9)
    return None, delta


def draw_noise(rng: np.random.Generator, width: int, scale: float, is_pure: bool) -> np.ndarray:
    """Return a vector of normal noise, or (`is_pure`) of density ``exp(-norm / scale)``.

    Notes
    -----
    The second has a uniform direction and a norm of law Gamma(width, scale). Shifting it by
    a vector v changes its log density by at most ``norm(v) / scale``.
    """
    vector = rng.standard_normal(width)
    if not is_pure:
        return scale * vector
    return vector * (rng.gamma(width, scale) / np.linalg.norm(vector))


def additive_noise(
    epsilon: float | None, delta: float, noise_multiplier: float | None, n_releases: int
) -> tuple[float, PrivacyProfile]:
    """Return the noise of additive releases, in units of their sensitivity, and their cost.

    Parameters
    ----------
    epsilon, delta : float
        Budget of all releases together, as `check_budget` returns it.
    noise_multiplier : float, optional
        The noise, if it is given.
    n_releases : int
        Number of releases of the same records.
    """
    if delta == 0.0:
        if noise_multiplier is None:
            return n_releases / epsilon, PrivacyProfile.pure(epsilon)
        return noise_multiplier, PrivacyProfile.pure(n_releases / noise_multiplier)
    root = math.sqrt(n_releases)
    if noise_multiplier is not None:
        # Normal releases compose to one of the root of their number times the sensitivity.
        return noise_multiplier, PrivacyProfile.gaussian(root / noise_multiplier)
    guess = math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
    found = calibrate(
        lambda multiplier: PrivacyProfile.gaussian(1.0 / multiplier),
        epsilon,
        delta,
        lower=LEAST_NOISE_MULTIPLIER,
        upper=1e9,
        guess=min(max(guess, LEAST_NOISE_MULTIPLIER), 1e9),
    )
    return root * found.value, found.profile
