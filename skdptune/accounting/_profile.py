"""Privacy profiles: the privacy cost of a release, as a curve in both directions."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from numpy.typing import ArrayLike

from skdptune._formatting import shown, shown_number
from skdptune._validation import (
    FloatArray,
    check_integer,
    check_kind,
    check_option,
    check_real,
    check_vector,
)
from skdptune.accounting._closed_forms import Form, GaussianForm, ResponseForm, subsampled_halves
from skdptune.accounting._composition import composed_sides, self_composed_sides
from skdptune.accounting._curves import (
    Halves,
    Sides,
    complete,
    connect_dots,
    half_through_points,
    halves_of_bound,
    hockey_stick,
    least_errors,
    step_at_most,
    upper_half,
    with_bounded_size,
    worst_of,
)
from skdptune.accounting._dp_accounting import (
    form_of_event,
    is_renyi_supported,
    losses_of_event,
    to_pld,
)
from skdptune.accounting._format import packed, unpacked
from skdptune.accounting._loss_distribution import LARGEST_LOSS, LEAST_RATE
from skdptune.accounting._renyi import (
    RenyiCurve,
    RenyiMultiple,
    RenyiOfEvent,
    RenyiOfParts,
    RenyiOfPure,
    RenyiSubsampled,
    RenyiTable,
)
from skdptune.accounting._run_counts import RunCountDistribution, check_distribution
from skdptune.accounting._selection_bounds import BOUNDS, RenyiSelected, selected_halves

_DIRECTIONS = ("remove", "add")
# Finest grid of an event's losses: a finer one would need too much memory.
_FINEST = 1e-5
# Both directions or bounds on their curves, and the Rényi divergences.
Numbers = tuple[Halves | Sides, RenyiCurve | None]
_Known = tuple[Sides, RenyiCurve | None]
# A call of a function of this package that makes the numbers of a profile. Profiles among the
# arguments are replaced by their recipes.
Recipe = functools.partial[Numbers]
# Longer recipes are forgotten: pickles then contain the numbers.
_LONGEST_RECIPE = 64


class PrivacyProfile:
    r"""Privacy cost of a release: its curves for removing and for adding a record.

    Let ``P`` and ``Q`` be the output distributions on two data sets that differ in one record.
    Then ``delta(epsilon) = max over sets S of P(S) - exp(epsilon) Q(S)``. In the *remove*
    direction, ``P`` is the one with the record; in the *add* direction, the one without it. A
    release is (epsilon, delta)-differentially private if the curve of the worse direction is at
    most delta at this epsilon.

    A profile is an upper bound at every epsilon, in each direction. It is immutable. Create it by
    `from_event`, `pure`, `approximate`, `gaussian` or `from_curve`. ``a + b`` is the (adaptive)
    composition, ``3 * a`` the composition of three, ``a | b`` the worst of the two.

    See Also
    --------
    calibrate : Finds the noise that meets a budget.
    compare_bounds : Returns the cost of a selection under each bound.

    Notes
    -----
    Assumption P0, Theorem P13.

    A guarantee of (epsilon, delta) for one record implies one of ``(k epsilon, d)`` for a person
    with at most ``k`` records, where ``d`` is the sum of ``exp(j epsilon) delta`` for ``j < k``.

    The numeric core is dp_accounting's pessimistic privacy loss distribution, one per direction
    (`pld`). At negative epsilon, a direction is computed from the other one, by ``delta(epsilon;
    P, Q) = 1 - e^epsilon + e^epsilon delta(-epsilon; Q, P)``. This identity avoids the rounding
    errors of the masses at large negative losses.

    A pickle contains the calls that made the profile, and not its numbers, which are computed when
    they are first read. They are the same ones, up to rounding if numpy or the machine is another
    one, and the bounds of the version that reads them. Only a profile made by more than 64 calls,
    or from one that was read from a dict, is pickled with its numbers.

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

    __slots__ = ("_known", "_recipe")

    # Makes the numbers, which are often never read.
    _recipe: Recipe
    # The numbers, as soon as they are made.
    _known: _Known | None

    def __init__(self) -> None:
        raise TypeError(
            "PrivacyProfile must be made by one of from_event, pure, approximate, gaussian and "
            "from_curve; got a direct call."
        )

    # Creation ----------------------------------------------------------------------------

    @classmethod
    def _of(cls, make: Callable[..., Numbers], *arguments: Any) -> PrivacyProfile:
        """Return the profile of the numbers that a function makes of its arguments.

        The function is found by its name, and must make the same numbers each time. Arguments
        other than profiles must not change later.
        """
        recipes = (getattr(each, "_recipe", each) for each in arguments)
        profile = cls._by_recipe(functools.partial(make, *recipes))
        known = _completed(*make(*arguments))
        object.__setattr__(profile, "_known", known)
        if _calls_of(profile._recipe) > _LONGEST_RECIPE:
            object.__setattr__(profile, "_recipe", functools.partial(as_given, *known))
        return profile

    @classmethod
    def _by_recipe(cls, recipe: Recipe) -> PrivacyProfile:
        """Return a profile whose numbers are made when they are first read."""
        profile = object.__new__(cls)
        object.__setattr__(profile, "_recipe", recipe)
        object.__setattr__(profile, "_known", None)
        return profile

    @classmethod
    def _of_form(cls, form: Form, renyi: RenyiCurve | None) -> PrivacyProfile:
        return cls._by_recipe(functools.partial(_of_form, form, renyi))

    @classmethod
    def from_event(
        cls, event: dp_event.DpEvent, discretization: float | None = None
    ) -> PrivacyProfile:
        """Create the profile of a dp_accounting event.

        Parameters
        ----------
        event : dp_accounting.DpEvent
            The event that happens to the data. Events without a privacy loss distribution in
            dp_accounting are bounded by Rényi differential privacy, if dp_accounting supports
            that.
        discretization : float, optional
            Grid of the losses, between 1e-5 and 1. The default suits their spread and that of
            their sum.

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
        if discretization is not None:
            discretization = check_real(
                discretization,
                name="discretization",
                lower=_FINEST,
                upper=1.0,
                hint="A finer grid of the largest losses does not fit into memory.",
            )
        try:
            return _profile_of_event(event, discretization)
        except TypeError:
            # An event that contains a list cannot be cached, and can change.
            return _profile_of_event.__wrapped__(copy.deepcopy(event), discretization)

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

        Kairouz, Oh and Viswanath (2015): randomised response that reveals everything with
        probability delta dominates every such release.
        """
        bound = check_real(epsilon, name="epsilon", lower=0.0, upper=LARGEST_LOSS)
        infinity = check_real(delta, name="delta", lower=0.0, upper=1.0)
        renyi = RenyiOfPure(bound) if infinity == 0.0 else None
        return cls._of_form(ResponseForm(bound, infinity), renyi)

    @classmethod
    def gaussian(cls, mu: float) -> PrivacyProfile:
        """Return the profile of Gaussian noise, with a sensitivity of ``mu`` standard deviations.

        Notes
        -----
        Theorem P6.

        Balle and Wang (2018): ``delta(e) = F(mu/2 - e/mu) - exp(e) F(-mu/2 - e/mu)`` with the
        normal distribution function F.
        """
        mu = check_real(mu, name="mu", lower=0.0, upper=30.0)
        if mu == 0.0:
            return cls.pure(0.0)
        event = dp_event.GaussianDpEvent(1.0 / mu)
        return cls._of_form(GaussianForm(mu), RenyiOfEvent(event))

    @classmethod
    def from_curve(
        cls,
        epsilons: ArrayLike,
        deltas: ArrayLike,
        *,
        deltas_add: ArrayLike | None = None,
        discretization: float | None = None,
    ) -> PrivacyProfile:
        """Return the smallest profile that the points of a curve prove.

        Parameters
        ----------
        epsilons : array-like
            Increasing and not negative.
        deltas : array-like
            Upper bounds on delta at these epsilons; in both directions, unless `deltas_add` is
            given. They need not be decreasing or convex, since convexity is applied to them.
        deltas_add : array-like, optional
            The bounds in the add direction.
        discretization : float, optional
            Grid of the losses.

        Notes
        -----
        The true curve is convex in ``exp(epsilon)`` and starts at 1 for ``exp(epsilon) = 0``. So
        it lies below every chord of the points.

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
            raise ValueError(f"epsilons must be increasing and not empty; got {shown(epsilons)}.")
        if not points.size == remove.size == add.size:
            raise ValueError(
                f"deltas must have as many entries as epsilons; got {remove.size} and "
                f"{add.size} for {points.size}."
            )
        if discretization is None:
            discretization = max(points[-1], 1e-6) / 2**14
        step = check_real(
            discretization, name="discretization", lower=0.0, lower_open=True, upper=1.0
        )
        if step < points[-1] / 2**21:
            step = float(points[-1]) / 2**21
        step = step_at_most(step)
        return cls._of(_through_points, points.copy(), remove.copy(), add.copy(), step)

    # Combination -------------------------------------------------------------------------

    def __add__(self, other: PrivacyProfile) -> PrivacyProfile:
        """Return the composition of two releases; the second may depend on the first."""
        # Theorem P4: losses of composed releases add up.
        if not isinstance(other, PrivacyProfile):
            return NotImplemented
        if self._is_nothing or other._is_nothing:
            return other if self._is_nothing else self
        form = self._form.composed(other._form) if self._form and other._form else None
        if form is None:
            return self._of(_sum, self, other)
        return self._of_form(form, RenyiOfParts(np.sum, (self._renyi, other._renyi)))

    def __radd__(self, other: object) -> PrivacyProfile:
        """Allow ``sum`` to start with 0."""
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
        form = self._form.repeated(count) if self._form else None
        if form is None:
            return self._of(_multiple, self, count)
        return self._of_form(form, RenyiMultiple(count, self._renyi))

    __rmul__ = __mul__

    def __or__(self, other: PrivacyProfile) -> PrivacyProfile:
        """Return the worst of two releases at every epsilon.

        This is the cost of parts on disjoint data, and of a candidate that may be either.

        Notes
        -----
        Theorem P8.
        """
        if not isinstance(other, PrivacyProfile):
            return NotImplemented
        for one, two in ((self, other), (other, self)):
            if one._form and two._form and one._form.covers(two._form):
                renyi = RenyiOfParts(np.max, (self._renyi, other._renyi))
                return self._of_form(one._form, renyi)
        return self._of(_worst, self, other)

    def subsampled(self, fraction: float) -> PrivacyProfile:
        """Return the profile of the release on a Poisson sample of the data.

        Parameters
        ----------
        fraction : float
            Probability, in (0, 1], that each record is in the sample, independently of the others.
            Size and members of the sample stay secret.

        Notes
        -----
        Theorem P7.

        With the sampled pair ``((1-q) Q + q P, Q)``, *remove*: ``delta'(e) = q delta(log(1 +
        (exp(e) - 1)/q))``; *add*: ``delta'(e) = c delta(log(q exp(e)/c))`` with ``c = 1 - (1-q)
        exp(e)``, and 0 if ``c <= 0`` (Zhu, Dong and Wang 2022, Theorem 11).
        """
        fraction = check_real(fraction, name="fraction", lower=0.0, upper=1.0, lower_open=True)
        if fraction == 1.0:
            return self
        # A larger fraction never costs less.
        fraction = max(fraction, LEAST_RATE)
        form = self._form.subsampled(fraction) if self._form else None
        if form is None:
            return self._of(_subsampled, self, fraction)
        return self._of_form(form, RenyiSubsampled(self._renyi, fraction))

    def selected(
        self, distribution: RunCountDistribution, bound: str = "envelope"
    ) -> PrivacyProfile:
        """Return the profile of a private selection: the best of a random number of such runs.

        Parameters
        ----------
        distribution : RunCountDistribution
            Distribution of the number of runs.
        bound : {"envelope", "profile", "rdp", "best"}, default="envelope"
            Bound on the cost of the selection; see `compare_bounds`.

        Raises
        ------
        BoundNotApplicableError
            If the theorem of `bound` does not cover the run or the distribution. The envelope
            covers all.

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
        # A later change of a user's own distribution changes no pickle.
        distribution = check_distribution(distribution)
        check_option(bound, name="bound", options=BOUNDS)
        return self._of(_selected, self, distribution, bound)

    # Evaluation --------------------------------------------------------------------------

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 for which the release is (epsilon, delta)-private."""
        delta = check_real(delta, name="delta", lower=0.0, upper=1.0)
        return max(side.epsilon(delta) for side in self._sides)

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
            check_option(direction, name="direction", options=_DIRECTIONS)
        pairs = self._pairs if direction is None else (self._pairs[direction == "add"],)
        values = np.max([hockey_stick(*pair, points) for pair in pairs], axis=0)
        return float(values[0]) if np.ndim(epsilon) == 0 else values

    @property
    def _is_nothing(self) -> bool:
        form = self._form
        return isinstance(form, ResponseForm) and form.epsilon == form.failure == 0.0

    @property
    def _shift(self) -> float:
        """Shift of a Gaussian release that costs at least as much, if a closed form states one."""
        return math.inf if self._form is None else self._form.shift

    @property
    def _form(self) -> Form | None:
        """The closed form, of which compositions stay exact; None if there is none."""
        return self._recipe.args[0] if self._recipe.func is _of_form else None

    @property
    def _numbers(self) -> _Known:
        """Both directions and the divergences, made when they are first read."""
        if self._known is None:
            object.__setattr__(self, "_known", _made(self._recipe))
        return self._known  # type: ignore[return-value]

    @property
    def _sides(self) -> Sides:
        """The remove and the add direction, with all their losses."""
        return self._numbers[0]

    @property
    def _renyi(self) -> RenyiCurve:
        found: RenyiCurve | None = self._recipe.args[1] if self._form else self._numbers[1]
        return found or RenyiTable((), ())

    @property
    def _finite_sides(self) -> Sides:
        """Both directions with the largest losses at infinity, so that exponentials are finite."""
        remove, add = self._sides
        finite = remove.within_doubles()
        return finite, finite if add is remove else add.within_doubles()

    @property
    def _pairs(self) -> tuple[Sides, Sides]:
        """Return the distribution of each direction together with that of the other one."""
        return self._sides, self._sides[::-1]

    def tradeoff(self, alpha: ArrayLike) -> Any:
        """Return the smallest type II error of a test at type I error `alpha`.

        An adversary who distinguishes two neighbouring data sets has at least this error,
        whichever of the two is the hypothesis.

        Parameters
        ----------
        alpha : float or array-like
            Type I errors in [0, 1].
        """
        points = check_vector(np.atleast_1d(alpha), name="alpha", lower=0.0, upper=1.0)
        values = np.min([least_errors(*pair, points) for pair in self._pairs], axis=0)
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
            Infinite if no bound is known: a curve of (epsilon, delta) points does not prove one.
        """
        points = check_vector(np.atleast_1d(orders), name="orders", lower=1.0, lower_open=True)
        values = self._renyi.at(points)
        return float(values[0]) if np.ndim(orders) == 0 else values

    @property
    def pld(self) -> PrivacyLossDistribution:
        """The numeric core as an object of dp_accounting."""
        return to_pld(*self._sides)

    # Object protocol -----------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        """Raise: profiles are immutable."""
        raise AttributeError(f"PrivacyProfile is immutable; cannot set {name!r}.")

    def __delattr__(self, name: str) -> None:
        """Raise: profiles are immutable."""
        raise AttributeError(f"PrivacyProfile is immutable; cannot delete {name!r}.")

    def __eq__(self, other: object) -> bool:
        """Return whether the numeric cores are equal."""
        if not isinstance(other, PrivacyProfile):
            return NotImplemented
        if self is other or (self._form is not None and self._form == other._form):
            return True
        pairs = zip(self._sides, other._sides, strict=True)
        return all(mine.equals(theirs) for mine, theirs in pairs)

    def __hash__(self) -> int:
        """Return a hash of the numeric core."""
        side = self._sides[0]
        return hash((side.step, side.lowest, side.infinity, side.masses.tobytes()))

    def __repr__(self) -> str:
        """Return a text with epsilon at two usual deltas."""
        shown = ", ".join(
            f"{shown_number(self.epsilon(delta))} at δ={delta:g}" for delta in (1e-5, 1e-8)
        )
        return f"PrivacyProfile(ε={shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle how the numbers are made, or the numbers."""
        return self._by_recipe, (self._recipe,)

    def __copy__(self) -> PrivacyProfile:
        """Return the profile, which is immutable."""
        return self

    def __deepcopy__(self, memo: object) -> PrivacyProfile:
        """Return the profile, which is immutable."""
        return self

    def to_dict(self, deltas: Sequence[float] = ()) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` restores an upper bound.

        Parameters
        ----------
        deltas : sequence of float, default=()
            Deltas at which epsilon is kept up to rounding; the first sixteen count.

        Returns
        -------
        dict
            Less than 5 kB as JSON. The restored profile is never below this one. It has at most
            0.1 % more epsilon at any delta from 1e-10 to 1e-2. It has the same largest loss and
            mass at infinity, so a pure guarantee stays exactly the same. Curves with few losses
            are stored exactly, and so are restored profiles: storing them again loses nothing.
            Rényi divergences grow by at most 0.2 %. Pickles are exact (see Notes of
            `PrivacyProfile`).

        Notes
        -----
        Theorem P11.
        """
        exact = [
            check_real(delta, name="deltas", lower=0.0, upper=1.0, is_entry=True)
            for delta in deltas
        ]
        return packed(*self._sides, self._renyi, exact)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> PrivacyProfile:
        """Restore a profile from the result of `to_dict`."""
        remove, add, renyi = unpacked(content)
        return cls._of(as_given, (remove, add), renyi)


# Numbers ---------------------------------------------------------------------------------


def _completed(curves: Halves | Sides, renyi: RenyiCurve | None) -> _Known:
    """Return loss distributions on one grid, which can no longer change, and the divergences.

    Mass that a direction lacks is moved to infinity; all of it if any mass is NaN.
    """
    sides = connect_dots(*curves) if isinstance(curves, Halves) else curves
    sides = with_bounded_size(*complete(*sides))
    for side in sides:
        side.masses.flags.writeable = False
    return sides, renyi


def _calls_of(recipe: Recipe) -> float:
    """Return the number of calls of a recipe; infinite if it contains numbers."""
    if recipe.func is as_given:
        return math.inf
    return 1 + sum(_calls_of(each) for each in recipe.args if isinstance(each, functools.partial))


# Cached, since the profiles of a report are often made from one another.
@functools.lru_cache(maxsize=16)
def _made(recipe: Recipe) -> _Known:
    """Return the numbers of a recipe."""
    by_recipe, partial = PrivacyProfile._by_recipe, functools.partial
    arguments = (by_recipe(each) if isinstance(each, partial) else each for each in recipe.args)
    return _completed(*recipe.func(*arguments))


def as_given(sides: Sides, renyi: RenyiCurve | None) -> Numbers:
    return sides, renyi


def _of_form(form: Form, renyi: RenyiCurve | None) -> Numbers:
    return form.sides(), renyi


def _sum(one: PrivacyProfile, other: PrivacyProfile) -> Numbers:
    renyi = RenyiOfParts(np.sum, (one._renyi, other._renyi))
    return composed_sides(one._sides, other._sides), renyi


def _multiple(one: PrivacyProfile, count: int) -> Numbers:
    return self_composed_sides(one._sides, count), RenyiMultiple(count, one._renyi)


def _worst(one: PrivacyProfile, other: PrivacyProfile) -> Numbers:
    renyi = RenyiOfParts(np.max, (one._renyi, other._renyi))
    if one == other:
        return one._sides, renyi
    return worst_of(one._finite_sides, other._finite_sides), renyi


def _subsampled(one: PrivacyProfile, fraction: float) -> Numbers:
    halves = subsampled_halves(one._finite_sides, fraction)
    return halves, RenyiSubsampled(one._renyi, fraction)


def _selected(run: PrivacyProfile, distribution: RunCountDistribution, bound: str) -> Numbers:
    halves = selected_halves(run._finite_sides, run._renyi, distribution, bound)
    return halves, RenyiSelected(run._renyi, distribution)


@functools.lru_cache(maxsize=32)
def _profile_of_event(event: dp_event.DpEvent, step: float | None) -> PrivacyProfile:
    """Return the profile of an event; cached, since searches request it again and again."""
    form = form_of_event(event) if step is None else None
    if form is None:
        return PrivacyProfile._of(_of_event, event, step)
    renyi = RenyiOfEvent(event) if is_renyi_supported(event) else None
    return PrivacyProfile._of_form(form, renyi)


def _of_event(event: dp_event.DpEvent, step: float | None) -> Numbers:
    losses = losses_of_event(event, step)
    renyi: RenyiCurve | None = None
    reveals_all = losses is not None and losses[0].infinity >= 1.0
    if not reveals_all and is_renyi_supported(event):
        renyi = RenyiOfEvent(event)
    if losses is not None:
        return losses, renyi
    if renyi is None:
        raise ValueError(
            "event must be one that an accountant of dp_accounting supports; "
            f"got {shown(event)}. Give its curve to from_curve if you know it."
        )
    return halves_of_bound(renyi.delta), renyi


def _through_points(
    points: FloatArray, remove: FloatArray, add: FloatArray, step: float
) -> Numbers:
    halves = (half_through_points(points, values, step) for values in (remove, add))
    return Halves(step, *halves), None


# Guarantees with a premise that holds with high probability ------------------------------


def with_failure(profile: PrivacyProfile, probability: float) -> PrivacyProfile:
    """Return the profile of a release whose guarantee holds except with some probability.

    Parameters
    ----------
    profile : PrivacyProfile
        The cost of the release if the premise holds.
    probability : float
        Bound on the probability that it does not, on every data set.

    Returns
    -------
    PrivacyProfile
        The profile with the probability added to delta at every epsilon, in each direction.

    Notes
    -----
    Theorem L3.

    Split P into its part G where the premise holds and the rest, with a mass of at most
    `probability`. For every set S, ``P(S) - alpha Q(S) <= (G(S) - alpha Q(S)) + probability``, and
    the premise bounds the first term. It suffices that the premise holds under P, the first
    distribution of each direction. It may be a statement about the pair of data sets and about
    earlier releases.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, with_failure
    >>> round(with_failure(PrivacyProfile.pure(1.0), 1e-6).delta(1.0), 12)
    1e-06
    """
    check_kind(profile, name="profile", kind=PrivacyProfile, domain="a PrivacyProfile")
    probability = check_real(probability, name="probability", lower=0.0, upper=1.0)
    if probability == 0.0:
        return profile
    return PrivacyProfile._of(_failing, profile, probability)


def _failing(profile: PrivacyProfile, probability: float) -> Numbers:
    sides = profile._finite_sides
    step = sides[0].step
    # A premise that fails does so at epsilon = 0, too, where both directions meet.
    halves = (np.minimum(upper_half(side, step) + probability, 1.0) for side in sides)
    return Halves(step, *halves), None
