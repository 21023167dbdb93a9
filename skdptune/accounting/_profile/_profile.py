"""Privacy profiles: what a release costs, as a curve in both directions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from numpy.typing import ArrayLike
from scipy import special

from skdptune._formatting import shown_number
from skdptune._validation import (
    FloatArray,
    check_integer,
    check_kind,
    check_option,
    check_real,
    check_vector,
)
from skdptune.accounting._losses import (
    LARGEST_LOSS,
    LossDistribution,
    RenyiCurve,
    RenyiMaximum,
    RenyiMultiple,
    RenyiOfEvent,
    RenyiOfPure,
    RenyiSubsampled,
    RenyiSum,
    RenyiUnknown,
)
from skdptune.accounting._losses import closed_forms as _closed_forms
from skdptune.accounting._losses import curves as _curves
from skdptune.accounting._losses import dp_accounting as _dp_accounting
from skdptune.accounting._losses import events as _events
from skdptune.accounting._profile import _format as _profile_format

if TYPE_CHECKING:
    from skdptune.accounting._run_counts import RunCountDistribution

DIRECTIONS = ("remove", "add")


class PrivacyProfile:
    r"""What a release costs: its hockey-stick curve, for removing and for adding a record.

    For output laws ``P`` and ``Q`` on two data sets that differ in one record,
    ``delta(epsilon) = max over sets S of P(S) - exp(epsilon) Q(S)``. In the *remove* direction
    ``P`` is the law with the record, in the *add* direction the law without. A release is
    (epsilon, delta)-differentially private if the worse direction's curve there is at most delta.

    A profile is an upper bound at every epsilon, in each direction. It is immutable, and made by
    `from_event`, `pure`, `approximate`, `gaussian` or `from_curve`. ``a + b`` is the (adaptive)
    composition, ``3 * a`` the composition of three, ``a | b`` the worst of the two.

    See Also
    --------
    calibrate : Find the noise that meets a budget.
    compare_bounds : What a selection costs under each bound.

    Notes
    -----
    Assumption P0.

    The numeric core is dp_accounting's pessimistic privacy loss distribution, one per direction
    (`pld`). At negative epsilon a direction is read from the other one, by
    ``delta(epsilon; P, Q) = 1 - e^epsilon + e^epsilon delta(-epsilon; Q, P)``: the masses at
    large negative losses carry rounding noise that this identity avoids.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile
    >>> one_release = PrivacyProfile.pure(0.5)
    >>> both = one_release + PrivacyProfile.pure(0.25)
    >>> both.epsilon(delta=0)
    0.75
    >>> round((100 * PrivacyProfile.pure(0.1)).epsilon(delta=1e-6), 2)
    4.77
    """

    __slots__ = ("_add", "_remove", "_renyi")

    _remove: LossDistribution
    _add: LossDistribution
    _renyi: RenyiCurve

    def __init__(self) -> None:
        raise TypeError(
            "PrivacyProfile must be made by one of from_event, pure, approximate, gaussian and "
            "from_curve; got a direct call."
        )

    # Making ------------------------------------------------------------------------------

    @classmethod
    def _make(
        cls,
        remove: LossDistribution,
        add: LossDistribution,
        renyi: RenyiCurve | None = None,
    ) -> PrivacyProfile:
        """Build a profile from loss distributions on one grid."""
        profile = object.__new__(cls)
        step = max(remove.step, add.step)
        longest = max(side.masses.size for side in (remove, add))
        if longest > 2 * _curves.MOST_POINTS:
            step = _curves.step_at_most(step * longest / _curves.MOST_POINTS)
            remove, add = _curves.regridded(remove, add, step)
        for side in (remove, add):
            side.masses.flags.writeable = False
        object.__setattr__(profile, "_remove", remove)
        object.__setattr__(profile, "_add", add)
        object.__setattr__(profile, "_renyi", renyi or RenyiUnknown())
        return profile

    @classmethod
    def _from_halves(
        cls,
        step: float,
        remove: FloatArray,
        add: FloatArray,
        renyi: RenyiCurve | None = None,
    ) -> PrivacyProfile:
        """Build a profile from bounds on ``delta(0), delta(step), ...`` of each direction."""
        return cls._make(*_curves.connect_dots(step, remove, add), renyi)

    @classmethod
    def from_event(
        cls, event: dp_event.DpEvent, discretization: float | None = None
    ) -> PrivacyProfile:
        """Return the profile of a dp_accounting event.

        Parameters
        ----------
        event : dp_accounting.DpEvent
            What is done to the data. Events that the PLD accountant cannot price
            are bounded through Rényi differential privacy where that accountant can.
        discretization : float, optional
            Grid of the losses. The default is 1e-4, and finer for events of little noise-free
            influence.

        Returns
        -------
        PrivacyProfile

        Examples
        --------
        >>> from dp_accounting import dp_event
        >>> step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(2.0))
        >>> training = PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(step, 5000))
        >>> round(training.epsilon(1e-5), 3)
        1.477
        """
        check_kind(event, name="event", kind=dp_event.DpEvent, domain="a dp_accounting.DpEvent")
        if discretization is None:
            discretization = _events.suitable_step(event)
        step = check_real(
            discretization, name="discretization", lower=0.0, lower_open=True, upper=1.0
        )
        losses = _dp_accounting.losses_of_event(event, step)
        renyi: RenyiCurve | None = None
        reveals_all = losses is not None and losses[0].infinity >= 1.0
        if not reveals_all and _dp_accounting.is_renyi_supported(event):
            renyi = RenyiOfEvent(event)
        if losses is not None:
            return cls._make(*losses, renyi)
        if renyi is None:
            raise ValueError(
                "event must be one that an accountant of dp_accounting supports; "
                f"got {event}. Give its curve to from_curve if you know it."
            )
        return cls._from_renyi(renyi)

    @classmethod
    def pure(cls, epsilon: float) -> PrivacyProfile:
        """Return the profile of any epsilon-differentially private release."""
        return cls.approximate(epsilon, 0.0)

    @classmethod
    def approximate(cls, epsilon: float, delta: float) -> PrivacyProfile:
        """Return the profile of any (epsilon, delta)-differentially private release.

        Notes
        -----
        Theorem P5.

        Kairouz, Oh and Viswanath (2015): randomised response that with probability delta gives
        everything away dominates every such release.
        """
        bound = check_real(epsilon, name="epsilon", lower=0.0, upper=LARGEST_LOSS)
        infinity = check_real(delta, name="delta", lower=0.0, upper=1.0)
        upper = special.expit(bound) * (1.0 - infinity)
        masses = np.array([1.0 - infinity - upper, 0.0, upper])
        losses = LossDistribution(bound, -1, masses, infinity)
        if bound == 0.0:
            losses = LossDistribution(1e-4, 0, np.array([1.0 - infinity]), infinity)
        return cls._make(losses, losses, RenyiOfPure(bound) if infinity == 0.0 else None)

    @classmethod
    def gaussian(cls, mu: float) -> PrivacyProfile:
        """Return the profile of Gaussian noise, of a sensitivity of ``mu`` standard deviations.

        Notes
        -----
        Theorem P6.

        Balle and Wang (2018): ``delta(e) = F(mu/2 - e/mu) - exp(e) F(-mu/2 - e/mu)`` with the
        normal distribution function F.
        """
        mu = check_real(mu, name="mu", lower=0.0, upper=30.0)
        if mu == 0.0:
            return cls.pure(0.0)
        # Chords of 1/2000 of the losses' spread are within 1e-5 of the curve, at any scale.
        step = _curves.step_at_most(mu / 2000.0)
        top = min(mu * mu / 2.0 + 9.0 * mu, LARGEST_LOSS)
        half = _closed_forms.gaussian_delta(mu, step * np.arange(math.ceil(top / step) + 1))
        event = dp_event.GaussianDpEvent(1.0 / mu)
        return cls._from_halves(step, half, half, RenyiOfEvent(event))

    @classmethod
    def from_curve(
        cls,
        epsilons: ArrayLike,
        deltas: ArrayLike,
        *,
        deltas_add: ArrayLike | None = None,
        discretization: float | None = None,
    ) -> PrivacyProfile:
        """Return the least profile that the points of a curve prove.

        Parameters
        ----------
        epsilons : array-like
            Increasing, not negative.
        deltas : array-like
            Upper bounds on delta at these epsilons; in both directions, unless
            `deltas_add` is given. They need not fall or be convex: what convexity proves is used.
        deltas_add : array-like, optional
            The bounds in the add direction.
        discretization : float, optional
            Grid of the losses.

        Notes
        -----
        The true curve is convex in ``exp(epsilon)`` and starts from 1 at
        ``exp(epsilon) = 0``, so it lies below every chord of the points.

        Examples
        --------
        >>> profile = PrivacyProfile.from_curve([0.5, 1.0], [1e-3, 1e-6])
        >>> profile.epsilon(1e-6)
        1.0
        """
        points = check_vector(epsilons, name="epsilons", lower=0.0, upper=LARGEST_LOSS)
        remove = check_vector(deltas, name="deltas", lower=0.0, upper=1.0)
        add = remove
        if deltas_add is not None:
            add = check_vector(deltas_add, name="deltas_add", lower=0.0, upper=1.0)
        if not points.size or np.any(np.diff(points) <= 0.0):
            raise ValueError(f"epsilons must be increasing and not empty; got {points.tolist()}.")
        if not points.size == remove.size == add.size:
            raise ValueError(
                f"deltas must be as many as epsilons; got {remove.size} and {add.size} for "
                f"{points.size}."
            )
        if discretization is None:
            discretization = max(points[-1], 1e-6) / 2**14
        step = check_real(
            discretization, name="discretization", lower=0.0, lower_open=True, upper=1.0
        )
        if step < points[-1] / 2**21:
            step = float(points[-1]) / 2**21
        step = _curves.step_at_most(step)
        halves = [_curves.chords(points, values, step) for values in (remove, add)]
        return cls._from_halves(step, halves[0], halves[1])

    @classmethod
    def _from_renyi(cls, renyi: RenyiCurve) -> PrivacyProfile:
        """Return the profile that a Rényi curve proves, in both directions."""
        return cls._from_function(lambda points: renyi.delta(points), renyi)

    @classmethod
    def _from_function(
        cls,
        delta: Callable[[FloatArray], FloatArray],
        renyi: RenyiCurve | None = None,
    ) -> PrivacyProfile:
        """Return the profile of a symmetric bound that can be evaluated anywhere."""
        top = 1e-3
        while top < LARGEST_LOSS and float(delta(np.array([top]))[0]) > 1e-16:
            top *= 2.0
        step = _curves.step_at_most(top / 2**14)
        half = delta(step * np.arange(math.ceil(min(top, LARGEST_LOSS) / step) + 1))
        return cls._from_halves(step, half, half, renyi)

    # Combining ---------------------------------------------------------------------------

    def __add__(self, other: PrivacyProfile) -> PrivacyProfile:
        """Return the composition of two releases, the second of which may depend on the first."""
        # Theorem P4.
        if not isinstance(other, PrivacyProfile):
            return NotImplemented
        mine, theirs = _curves.on_common_grid(self._both, other._both)
        remove, add = (_dp_accounting.composed(a, b) for a, b in zip(mine, theirs, strict=True))
        return self._make(remove, add, RenyiSum((self._renyi, other._renyi)))

    def __radd__(self, other: object) -> PrivacyProfile:
        """Let ``sum`` start from 0."""
        if other == 0 and isinstance(other, int):
            return self
        return NotImplemented

    def __mul__(self, count: int) -> PrivacyProfile:
        """Return the composition of ``count`` such releases."""
        if not isinstance(count, int | np.integer) or isinstance(count, bool):
            return NotImplemented
        count = check_integer(count, name="count", lower=0)
        if count == 0:
            return PrivacyProfile.pure(0.0)
        if count == 1:
            return self
        return self._repeated(count, RenyiMultiple(count, self._renyi))

    def _repeated(self, count: int, renyi: RenyiCurve) -> PrivacyProfile:
        """Compose copies, by halves where one transform would be too large."""
        if all(_dp_accounting.is_small_enough(side, count) for side in self._both):
            remove, add = (_dp_accounting.self_composed(side, count) for side in self._both)
            return self._make(remove, add, renyi)
        half = self._repeated(count // 2, renyi)
        doubled = half._repeated(2, renyi)
        if count % 2:
            doubled = doubled + self
        return self._make(doubled._remove, doubled._add, renyi)

    __rmul__ = __mul__

    def __or__(self, other: PrivacyProfile) -> PrivacyProfile:
        """Return the worst of two releases at every epsilon.

        It prices parts on disjoint data, and a candidate that may be either.

        Notes
        -----
        Theorem P8.
        """
        if not isinstance(other, PrivacyProfile):
            return NotImplemented
        renyi = RenyiMaximum((self._renyi, other._renyi))
        if self == other:
            return self._make(self._remove, self._add, renyi)
        mine, theirs = _curves.on_common_grid(self._both, other._both)
        # The curves may cross anywhere, so that few and far points would lose much.
        fine = _curves.step_at_most(max(self._end, other._end, 1e-6) / 2**14)
        step = min(mine[0].step, max(fine, 1e-9))
        halves = [
            _curves.pointwise_maximum(_curves.sampled(a, step), _curves.sampled(b, step))
            for a, b in zip(mine, theirs, strict=True)
        ]
        return self._from_halves(step, halves[0], halves[1], renyi)

    def subsampled(self, fraction: float) -> PrivacyProfile:
        """Return the profile of the release on a Poisson sample of the data.

        Parameters
        ----------
        fraction : float
            Probability, in (0, 1], with which each record enters the sample,
            independently of the others. The sample's size and members stay secret.

        Notes
        -----
        Theorem P7.

        With the sampled pair ``((1-q) Q + q P, Q)``, *remove*:
        ``delta'(e) = q delta(log(1 + (exp(e) - 1)/q))``; *add*:
        ``delta'(e) = c delta(log(q exp(e)/c))`` with ``c = 1 - (1-q) exp(e)``, and 0 once
        ``c <= 0`` (Zhu, Dong and Wang 2022, Theorem 11).
        """
        fraction = check_real(fraction, name="fraction", lower=0.0, upper=1.0, lower_open=True)
        if fraction == 1.0:
            return self
        # Largest losses of the sampled pair: of the mixture, and of what the mixture hides.
        end = max(_closed_forms.subsampled_loss(self._end, fraction), -math.log1p(-fraction))
        end = min(end, LARGEST_LOSS)
        step = max(min(self._remove.step, end / 2**14), end / _curves.MOST_POINTS)
        step = _curves.step_at_most(step)
        grid = step * np.arange(math.ceil(end / step) + 1)
        remove = _closed_forms.subsampled_remove(self._remove, grid, fraction)
        add = _closed_forms.subsampled_add(self._add, grid, fraction)
        renyi = RenyiSubsampled(self._renyi, fraction)
        return self._from_halves(step, remove, add, renyi)

    def selected(
        self, distribution: RunCountDistribution, bound: str = "envelope"
    ) -> PrivacyProfile:
        """Return the profile of a private selection: the best of a random number of such runs.

        Parameters
        ----------
        law : RunCountDistribution
            Law of the number of runs.
        bound : {"envelope", "profile", "rdp", "best"}, default="envelope"
            Bound by which to price the selection; see `compare_bounds`.

        Notes
        -----
        Assumption S0.

        Examples
        --------
        >>> from skdptune.accounting import Geometric
        >>> run = PrivacyProfile.gaussian(0.5)
        >>> round(run.selected(Geometric(0.1)).epsilon(1e-6), 2)
        3.26
        """
        # The bounds are built on profiles; importing them here keeps the modules' order.
        from skdptune.accounting._selection import selected_profile

        return selected_profile(self, distribution, bound)

    # Reading -----------------------------------------------------------------------------

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon >= 0 at which the release is (epsilon, delta)-private."""
        delta = check_real(delta, name="delta", lower=0.0, upper=1.0)
        return max(self._remove.epsilon(delta), self._add.epsilon(delta))

    def delta(self, epsilon: ArrayLike, direction: str | None = None) -> Any:
        """Return delta at each epsilon, which may be negative.

        Parameters
        ----------
        epsilon : float or array-like
        direction : {"remove", "add"}, optional
            One direction instead of the worse of the two.

        Returns
        -------
        float or ndarray

        Notes
        -----
        Theorem P2.
        """
        points = check_vector(np.atleast_1d(epsilon), name="epsilon")
        if direction is not None:
            check_option(direction, name="direction", options=DIRECTIONS)
        sides = DIRECTIONS if direction is None else (direction,)
        values = np.max([self._one_way(side, points) for side in sides], axis=0)
        return float(values[0]) if np.ndim(epsilon) == 0 else values

    def _one_way(self, direction: str, epsilons: FloatArray) -> FloatArray:
        own, other = self._sides(direction)
        result = own.delta(np.maximum(epsilons, 0.0))
        below = epsilons < 0.0
        if below.any():
            mirrored = other.delta(-epsilons[below])
            result[below] = -np.expm1(epsilons[below]) + np.exp(epsilons[below]) * mirrored
        return result

    @property
    def _both(self) -> _curves.Sides:
        return self._remove, self._add

    @property
    def _end(self) -> float:
        """Return the largest finite loss of both directions."""
        return max(side.highest * side.step for side in (self._remove, self._add))

    def _sides(self, direction: str) -> tuple[LossDistribution, LossDistribution]:
        """Return the direction's own distribution and its mirror image's."""
        if direction == "remove":
            return self._remove, self._add
        return self._add, self._remove

    def tradeoff(self, alpha: ArrayLike) -> Any:
        """Return the least type II error of a test at type I error `alpha`.

        An adversary who tells two neighbouring data sets apart errs at least that often, whichever
        of the two is the hypothesis.

        Parameters
        ----------
        alpha : float or array-like
            Type I errors in [0, 1].
        """
        points = check_vector(np.atleast_1d(alpha), name="alpha", lower=0.0, upper=1.0)
        sides = [self._sides(direction) for direction in DIRECTIONS]
        values = np.min([_curves.least_errors(*pair, points) for pair in sides], axis=0)
        return float(values[0]) if np.ndim(alpha) == 0 else values

    def rdp(self, orders: ArrayLike) -> Any:
        """Return a bound on the Rényi divergence of each order, in both directions.

        Parameters
        ----------
        orders : float or array-like
            Greater than 1.

        Returns
        -------
        float or ndarray
            Infinite where no bound is known: a curve of (epsilon, delta) points proves none.
        """
        points = check_vector(np.atleast_1d(orders), name="orders", lower=1.0, lower_open=True)
        values = self._renyi.at(points)
        return float(values[0]) if np.ndim(orders) == 0 else values

    @property
    def pld(self) -> PrivacyLossDistribution:
        """The numeric core as dp_accounting's object."""
        return _dp_accounting.to_pld(self._remove, self._add)

    # Being an object ----------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: profiles are immutable."""
        raise AttributeError(f"PrivacyProfile is immutable; cannot set {name!r}.")

    def __delattr__(self, name: str) -> None:
        """Refuse: profiles are immutable."""
        raise AttributeError(f"PrivacyProfile is immutable; cannot delete {name!r}.")

    def __eq__(self, other: object) -> bool:
        """Compare the numeric cores."""
        if not isinstance(other, PrivacyProfile):
            return NotImplemented
        return self._remove.equals(other._remove) and self._add.equals(other._add)

    def __hash__(self) -> int:
        """Hash the numeric core."""
        side = self._remove
        return hash((side.step, side.lowest, side.infinity, side.masses.tobytes()))

    def __repr__(self) -> str:
        """Show epsilon at two usual deltas."""
        shown = ", ".join(
            f"{shown_number(self.epsilon(delta))} at δ={delta:g}" for delta in (1e-5, 1e-8)
        )
        return f"PrivacyProfile(ε={shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by content."""
        return _rebuilt, (self._remove, self._add, self._renyi)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `from_dict` makes an equal profile (fit for JSON)."""
        return _profile_format.packed(self._remove, self._add, self._renyi)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> PrivacyProfile:
        """Return the profile that `to_dict` described."""
        remove, add, renyi = _profile_format.unpacked(content)
        return cls._make(remove, add, renyi)


def _rebuilt(*parts: Any) -> PrivacyProfile:
    return PrivacyProfile._make(*parts)
