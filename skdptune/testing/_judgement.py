"""Statistics of how values differ between fits on neighbouring data, and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import trapezoid

from skdptune.accounting import PrivacyProfile
from skdptune.testing._published import MISSING, Leaf, Leaves, Whole, same
from skdptune.testing._replay_result import (
    COVERED,
    IDENTICAL,
    NO_NOISE,
    NOT_COMPARED,
    PRIVATE_SIZE,
    PUBLIC_SIZE,
    TOO_FAR,
    Row,
)

# V1 is evaluated for these failure probabilities of a fit; a failed fit may publish anything.
_FAILURES = (0.0, 1e-6, 1e-5, 1e-4)
_POINTS = 4001
# Beyond this epsilon, the weight e^(-2 epsilon) is negligible.
_FARTHEST = 20.0
_LARGEST = 300.0


def allowed_shift(profile: PrivacyProfile) -> float:
    """Return how far the mean of any published number may move, in standard deviations.

    Parameters
    ----------
    profile : PrivacyProfile
        The claim for one step between neighbours.

    Returns
    -------
    float
        Infinite if the claim allows arbitrary values.

    Notes
    -----
    Theorem V1. This is ``2 sinh(epsilon / 2)`` for pure epsilon. For Gaussian noise whose mean
    moves by ``mu`` standard deviations, it is ``sqrt(exp(mu**2) - 1)``, or about ``mu``.
    """
    return min(_shift(profile, failure) for failure in _FAILURES)


def agreement_chance(profile: PrivacyProfile, n_repeats: int, steps: int) -> float:
    """Bound the chance that all fits agree on one value, and neighbouring fits on another.

    Parameters
    ----------
    profile : PrivacyProfile
        The claim for one step between neighbours.
    n_repeats : int
        Number of fits to each data set.
    steps : int
        Number of steps between the two data sets.

    Notes
    -----
    Theorem V2.
    """
    distance = min(1.0, steps * float(profile.delta(0.0)))
    return float((0.5 * (1.0 + distance)) ** (n_repeats - 1))


def _shift(profile: PrivacyProfile, failure: float) -> float:
    """Return the bound if each fit may fail with the given probability."""
    # Theorem V1: how far the mean of any published number may move.
    last = profile.epsilon(failure)
    if not last <= _LARGEST:
        return math.inf
    near = np.linspace(0.0, last, _POINTS)
    far = np.union1d(near[near < _FARTHEST], np.linspace(0.0, _FARTHEST, _POINTS))
    ratios, tail = np.exp(near), np.exp(far)
    # Both integrands are convex in the ratio, so the trapezoidal rule overestimates them.
    above = trapezoid(profile.delta(near), ratios)
    below = trapezoid(profile.delta(far) / tail**3, tail)
    rest = float(profile.delta(_FARTHEST)) * math.exp(-2.0 * _FARTHEST) / 2.0
    second_moment = (1.0 + 2.0 * (above + below + rest)) / (1.0 - 2.0 * failure) ** 2
    return math.sqrt(max(float(second_moment) - 1.0, 0.0))


Table = NDArray[np.float64]
Mask = NDArray[np.bool_]

# A shift is considered equal for all seeds if it varies by less than this share of the noise.
_EXACT = 1e-3
# Probability that the noise is underestimated: from all fits, and from each of two halves.
_RISK, _RISK_OF_HALF = 1e-3, 1e-2
# Noise is considered the same if differences vary less than half as much as independent noise.
_REPLAYED = 0.5
_INSTEAD_OF_INFINITY = 1e12
# Rounding error of sums of doubles, relative to the largest term.
_ROUNDING = 2.0**-46
# Powers of n / (n + 1) that are recognised, and with which tolerance.
_POWERS = (0.5, 1.0, 2.0)
_TOLERANCE = 0.05


class Difference(NamedTuple):
    """The difference of a value between two data sets.

    Attributes
    ----------
    free : ndarray of bool
        Mask of its numbers that differ although they do not depend on the seed.
    is_comparable : bool
        False if the value depends on the seed and is not a number.
    replayed : bool or None
        Whether its noise is the same on both sides; None if it has no noise.
    one, other : ndarray of shape (n_seeds, n_numbers)
        Its numbers that depend on the seed, on both sides.
    """

    free: Mask
    is_comparable: bool = True
    replayed: bool | None = None
    one: Table = np.empty((0, 0))
    other: Table = np.empty((0, 0))

    @property
    def is_noisy(self) -> bool:
        """Whether some of its numbers depend on the seed."""
        return self.one.size > 0


def difference(first: Sequence[Leaf], second: Sequence[Leaf]) -> Difference:
    """Compare a value between fits to two data sets, with one pair of fits per seed."""
    if all(map(same, first, second)):
        return Difference(np.zeros(1, bool))
    if any(isinstance(leaf, Whole) for leaf in (*first, *second)):
        is_fixed = all(same(one, side[0]) for side in (first, second) for one in side)
        return Difference(np.array([is_fixed]), is_fixed)
    one, other = _tables(first, second)
    fixed = (one == one[0]).all(axis=0) & (other == other[0]).all(axis=0)
    free, noisy = fixed & (one[0] != other[0]), (one[:, ~fixed], other[:, ~fixed])
    return Difference(free, True, is_replayed(*noisy), *noisy)


def _tables(*sides: Sequence[Leaf]) -> tuple[Table, ...]:
    """Return the numbers of fits as tables, with one row per seed and only common columns."""
    arrays = [[np.asarray(leaf) for leaf in side] for side in sides]
    width = min(array.size for side in arrays for array in side)
    return tuple(
        np.nan_to_num(
            np.stack([array[:width] for array in side]),
            posinf=_INSTEAD_OF_INFINITY,
            neginf=-_INSTEAD_OF_INFINITY,
        )
        for side in arrays
    )


def is_replayed(one: Table, other: Table) -> bool | None:
    """Return whether the noise is the same on both sides, or None without noise."""
    if one.shape[1] == 0:
        return None
    fresh = math.sqrt(2.0) * _noise_of(one, other)
    return bool(np.median((other - one).std(axis=0, ddof=1) - _REPLAYED * fresh) <= 0.0)


def least_shift(one: Table, other: Table) -> float:
    """Return how far noisy numbers move on average, in standard deviations of their noise.

    This is a lower bound with high confidence if averages are approximately normal. It is measured
    along the direction in which the numbers move. Every column must depend on the seed.

    Notes
    -----
    Theorem V1.
    """
    noise = _noise_of(one, other)
    varies = np.isfinite(noise) & (noise > 0.0)
    if not varies.any():
        return 0.0
    # In units of the noise, relative to the mean of one side.
    centre, width = one[:, varies].mean(axis=0), noise[varies]
    largest = np.abs(np.vstack([one, other])[:, varies]).max(axis=0)
    pair = _Pair(
        (one[:, varies] - centre) / width,
        (other[:, varies] - centre) / width,
        _ROUNDING * largest / width,
    )
    whole = pair.along(pair.moves.mean(axis=0))
    if whole.mean != 0.0 and whole.spread <= _EXACT * whole.noise:
        # The shift is the same for all seeds: only the width of the noise is estimated.
        return abs(whole.mean) / (whole.noise * _largest_error(len(one), _RISK))
    # Otherwise, find the direction on one half of the seeds, and the shift on the other half.
    halves = np.arange(len(one)) % 2 == 0
    found = [
        _lower(pair.of(~half).along(pair.moves[half].mean(axis=0))) for half in (halves, ~halves)
    ]
    return max(0.0, min(found))


def size_power(one: Table, other: Table, n_samples: int) -> float | None:
    """Return p if noisy numbers are proportional to ``n ** -p``, or None.

    Parameters
    ----------
    one, other : ndarray
        Values from fits to `n_samples` records and to one more; every column depends on the seed.
    n_samples : int
    """
    if one.shape[1] == 0:
        return None
    first, second = one - one.mean(axis=0), other - other.mean(axis=0)
    energy = (first**2).sum(axis=0)
    if not (energy > 0.0).all():
        return None
    slopes = (first * second).sum(axis=0) / energy
    rests = np.sqrt(((second - slopes * first) ** 2).sum(axis=0) / energy)
    unit = math.log1p(1.0 / n_samples)
    if not (slopes > 0.0).all() or rests.max() > _TOLERANCE * unit:
        return None
    powers = -np.log(slopes) / unit
    for power in (sign * power for power in _POWERS for sign in (1.0, -1.0)):
        if np.abs(powers - power).max() <= _TOLERANCE:
            return power
    return None


@dataclass(frozen=True)
class _Projection:
    """Differences along one direction: their mean and spread, and the noise in that direction."""

    mean: float
    spread: float
    noise: float
    count: int


@dataclass(frozen=True)
class _Pair:
    """Noisy numbers of both sides, in units of their noise, and their rounding errors."""

    one: Table
    other: Table
    rounding: Table

    @property
    def moves(self) -> Table:
        return self.other - self.one

    def of(self, seeds: Mask) -> _Pair:
        """Return the pair for a subset of the seeds."""
        return _Pair(self.one[seeds], self.other[seeds], self.rounding)

    def along(self, weights: Table) -> _Projection:
        """Return the differences along a direction."""
        largest = np.abs(weights).max()
        direction = weights / largest if largest > 0.0 else weights
        first, second = self.one @ direction, self.other @ direction
        moves = second - first
        # A rare choice may occur on one side only, so the smaller deviation would be too small.
        noise = float(first.std(ddof=1) + second.std(ddof=1)) / 2.0
        # Numbers that vary may have a constant sum, up to rounding.
        known = float(np.abs(direction) @ self.rounding)
        mean = float(moves.mean()) if abs(moves.mean()) > known else 0.0
        return _Projection(mean, float(moves.std(ddof=1)), max(noise, known), len(moves))


def _lower(found: _Projection) -> float:
    """Return a lower bound of a shift that varies with the seed."""
    if found.mean <= 0.0:
        return 0.0
    quantile = stats.t.isf(_RISK_OF_HALF, found.count - 1)
    # The direction was chosen on other seeds, so only a shift in this direction counts.
    least = found.mean - quantile * found.spread / math.sqrt(found.count)
    return least / (found.noise * _largest_error(found.count, _RISK_OF_HALF))


def _largest_error(count: int, risk: float) -> float:
    """Return the factor by which normal noise may exceed its estimate."""
    return math.sqrt((count - 1) / stats.chi2.ppf(risk, count - 1))


def _noise_of(one: Table, other: Table) -> Table:
    return np.sqrt((one.var(axis=0, ddof=1) + other.var(axis=0, ddof=1)) / 2.0)


ADDED = "record added"
REPLACED = "record replaced"
# From this probability that all seeds agree by chance, messages state it.
_LARGEST_CHANCE = 0.01
_TOGETHER = "all numbers together"
_WHEN = {ADDED: "when a record is added", REPLACED: "when a record is replaced"}


@dataclass(frozen=True)
class Claim:
    """The differences that the claim allows.

    Attributes
    ----------
    shift : float
        Largest shift of a mean between neighbours, in standard deviations.
    chances : dict
        For each kind of neighbours, the probability with which values without noise may differ.
    adds : bool
        Whether data sets with and without a record are neighbours.
    replacing : int
        Number of neighbouring steps needed to replace a record.
    size_is_public : bool
        Whether values may depend on the number of records.
    compares_sizes : bool
        Whether noisy values are compared between different numbers of records.
    n_samples : int
        Number of records without the added one.
    """

    shift: float
    chances: dict[str, float]
    adds: bool
    replacing: int
    size_is_public: bool
    compares_sizes: bool
    n_samples: int

    @property
    def compared(self) -> tuple[str, ...]:
        """Kinds of neighbours between which noisy values are compared."""
        return (ADDED, REPLACED) if self.compares_sizes else (REPLACED,)

    def allowed(self, neighbours: str) -> float:
        """Return the largest allowed shift of a mean."""
        return self.shift * (self.replacing if neighbours == REPLACED else 1)


@dataclass(frozen=True)
class Replays:
    """Values published with the same seeds on each data set, and once on constant records."""

    without: Sequence[Leaves]
    added: Sequence[Leaves]
    replaced: Sequence[Leaves]
    constant: Leaves | None

    def values(self) -> list[_Value]:
        """Return all values, in the order of their places."""
        sides = self.without, self.added, self.replaced
        places = dict.fromkeys(place for side in sides for leaves in side for place in leaves)
        return [self._value(place) for place in places]

    def _value(self, place: str) -> _Value:
        sides = self.without, self.added, self.replaced
        without, added, replaced = ([each.get(place, MISSING) for each in side] for side in sides)
        constant = None if self.constant is None else self.constant.get(place, MISSING)
        return _Value(place, without, added, replaced, constant)


@dataclass(frozen=True)
class _Value:
    """A value on all data sets."""

    place: str
    without: Sequence[Leaf]
    added: Sequence[Leaf]
    replaced: Sequence[Leaf]
    constant: Leaf | None

    def difference(self, neighbours: str) -> Difference:
        """Return the difference between two data sets."""
        if neighbours == ADDED:
            return difference(self.without, self.added)
        return difference(self.added, self.replaced)


def judged(replays: Replays, claim: Claim) -> list[Row]:
    """Return one row per value, and one for all noisy numbers together."""
    values = replays.values()
    known = _known_names(values)
    rows = [_named(_row(value, claim), known) for value in values]
    together = _together(values, claim)
    return rows if together is None else [*rows, together]


def judged_sizes(replays: Replays, claim: Claim, fixed: Collection[str]) -> list[Row]:
    """Return rows for values that depend on the number of records or are scaled by it.

    Parameters
    ----------
    replays : Replays
        Results of few seeds.
    claim : Claim
    fixed : collection of str
        Places of values that did not change over many seeds.
    """
    values, rows = replays.values(), list[Row]()
    for value in values:
        row = _constant_row(value, claim) if value.place in fixed else None
        rows += [row] if row is not None else _scaled_rows(value, claim)
    known = _known_names(values)
    return [_named(row, known) for row in rows]


def noiseless(replays: Replays) -> list[str]:
    """Return the places of values that do not depend on the seed."""
    return [
        value.place
        for value in replays.values()
        if all(
            same(leaf, side[0])
            for side in (value.without, value.added, value.replaced)
            for leaf in side
        )
    ]


def _known_names(values: Sequence[_Value]) -> set[str]:
    """Return the places that all fits publish, and their prefixes that are places as well."""
    places = [
        value.place
        for value in values
        if not any(leaf is MISSING for leaf in (*value.without, *value.added, *value.replaced))
    ]
    return {place[:end] for place in places for end in (len(place), *_ends(place))}


def _ends(place: str) -> list[int]:
    return [end for end, character in enumerate(place) if character in ".[ "]


def _named(row: Row, known: set[str]) -> Row:
    """Remove names that do not occur in all fits from a row, since they may contain data."""
    if row.attribute in known:
        return row
    ends = [end for end in _ends(row.attribute) if row.attribute[:end] in known]
    way = row.attribute[: max(ends, default=0)]
    return replace(row, attribute=f"{way} (not in all fits)".strip())


def _row(value: _Value, claim: Claim) -> Row:
    found = _constant_row(value, claim)
    if found is not None and found.is_finding:
        return found
    compared = list(_noisy_rows(value, claim))
    findings = [row for row in compared if row.is_finding]
    if findings:
        return findings[0]
    if found is not None:
        return found
    if not compared:
        return Row(value.place, ADDED, IDENTICAL)
    # Choose the most informative pair: one with replayed noise, and the largest shift.
    return max(compared, key=lambda row: (row.replayed is True, (row.moved or 0.0)))


def _constant_row(value: _Value, claim: Claim) -> Row | None:
    """Return a row if numbers differ without noise, or None."""
    replaced, added = (value.difference(neighbours).free for neighbours in (REPLACED, ADDED))
    if replaced.any() or (added.any() and not _follows_from_size(value, added)):
        # One step between neighbours is stronger evidence than two.
        is_one_step = claim.adds and added.any()
        return _without_noise(value.place, ADDED if is_one_step else REPLACED, claim)
    if not added.any():
        return None
    if claim.size_is_public:
        return Row(value.place, ADDED, PUBLIC_SIZE)
    return Row(value.place, ADDED, PRIVATE_SIZE, message=_OF_SIZE)


_OF_SIZE = (
    "follows from the real number of records, and no assumption of the estimator states that "
    'it is public: use a public constant in its place, or state "the number of records is '
    'public"'
)


def _without_noise(place: str, neighbours: str, claim: Claim) -> Row:
    # Theorem V2: the chance that all seeds agree on two different values.
    message = (
        f"differs {_WHEN[neighbours]}, and is the same for all seeds: it carries no noise (with "
        "the claimed noise, such agreement of all seeds has probability at most "
        f"{claim.chances[neighbours]:.1g})"
    )
    return Row(place, neighbours, NO_NOISE, message=message)


def _follows_from_size(value: _Value, differs: Mask) -> bool:
    """Return whether numbers that depend on the number of records are equal for all data."""
    if value.constant is None:
        return True
    one, other = value.added[0], value.constant
    if isinstance(one, Whole) or isinstance(other, Whole):
        return same(one, other)
    if other.size < differs.size:
        return False
    return bool((one[: differs.size] == other[: differs.size])[differs].all())


def _noisy_rows(value: _Value, claim: Claim) -> Iterator[Row]:
    for neighbours in claim.compared:
        found = value.difference(neighbours)
        if not found.is_comparable:
            yield Row(value.place, neighbours, NOT_COMPARED)
        elif found.is_noisy:
            yield _shifted(value.place, neighbours, found.one, found.other, found.replayed, claim)
    yield from _scaled_rows(value, claim)


def _shifted(
    place: str,
    neighbours: str,
    one: np.ndarray,
    other: np.ndarray,
    replayed: bool | None,
    claim: Claim,
) -> Row:
    # Theorem V1: how far the mean of any published number may move.
    moved, allowed = least_shift(one, other), claim.allowed(neighbours)
    is_too_far = moved > allowed
    message = (
        f"moves by at least {moved:.3g} standard deviations of its noise {_WHEN[neighbours]}; the "
        f"claim allows {allowed:.3g}"
    )
    # Theorem V2: the chance that all seeds agree on two different values.
    if claim.chances[neighbours] > _LARGEST_CHANCE:
        message += (
            " (a choice between few values would look like this with probability at most "
            f"{claim.chances[neighbours]:.1g}; more seeds would decide)"
        )
    return Row(
        place,
        neighbours,
        TOO_FAR if is_too_far else COVERED,
        moved=moved,
        allowed=allowed,
        replayed=replayed,
        message=message if is_too_far else "",
    )


def _scaled_rows(value: _Value, claim: Claim) -> Iterator[Row]:
    """Yield a finding if noisy numbers are scaled by the private number of records."""
    found = value.difference(ADDED)
    if claim.size_is_public or not found.is_noisy:
        return
    power = size_power(found.one, found.other, claim.n_samples)
    if power is not None:
        message = f"is scaled with its noise by n ** {-power:g}, n the private number of records: "
        yield Row(value.place, ADDED, PRIVATE_SIZE, replayed=True, message=message + _OF_SCALE)


_OF_SCALE = "use a public constant in its place, or state that it is public"


def _together(values: Sequence[_Value], claim: Claim) -> Row | None:
    """Return the row for all noisy numbers in a fit, which one record may change together."""
    stored = [value for value in values if not value.place.endswith("(X)")]
    compared = []
    for neighbours in claim.compared:
        differences = [value.difference(neighbours) for value in stored]
        noisy = [found for found in differences if found.is_noisy]
        if len(noisy) > 1:
            one = np.hstack([found.one for found in noisy])
            other = np.hstack([found.other for found in noisy])
            compared.append(_shifted(_TOGETHER, neighbours, one, other, None, claim))
    return max(compared, key=lambda row: (row.is_finding, row.moved or 0.0), default=None)
