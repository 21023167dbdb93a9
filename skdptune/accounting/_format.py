"""Conversion of profiles to plain values, and back."""

from __future__ import annotations

import base64
import binascii
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skdptune._formatting import shown
from skdptune._validation import FloatArray, check_real, check_vector
from skdptune.accounting._curves import MOST_POINTS, Sides
from skdptune.accounting._loss_distribution import LARGEST_LOSS, LossDistribution
from skdptune.accounting._renyi import ORDERS, RenyiCurve, RenyiTable

FORMAT = 4
# Largest number of orders of a Rényi curve, and the relative error that chords may add.
_MOST_ORDERS = 128
_RENYI_TOLERANCE = 2e-3
# Profiles have no losses at larger grid numbers, and no larger mass at one of them.
_LARGEST_PLACE, _LARGEST_MASS = 2**20, 2.0
# Limits on columns, and on texts with two columns: larger ones are refused before unpacking.
_MOST_ROWS = 2**12
_LONGEST_TEXT = 2**17
# Total variations with a larger difference do not belong to one pair.
_SAME = 1e-9

IntArray = npt.NDArray[np.int64]


def packed(
    remove: LossDistribution,
    add: LossDistribution,
    renyi: RenyiCurve,
    deltas: Sequence[float] = (),
) -> dict[str, Any]:
    """Return a profile's parts as plain values; the add direction only if it differs.

    The curves are written by their knots, or by fewer knots of an upper bound, which keeps epsilon
    at `deltas`. A profile that was read from knots is fully described by them, so writing it again
    loses nothing more.

    Notes
    -----
    Theorem P11.
    """
    knots = few_knots((remove, add), deltas)
    written = [
        {
            "infinity": each.infinity,
            "masses": _encoded(np.diff(each.places, n=2, prepend=[0, 0]), each.masses),
        }
        for each in knots
    ]
    content = {
        "format": FORMAT,
        "step": remove.step,
        "total_variation": knots[0].total_variation(remove.step),
        "remove": written[0],
        "add": None if written[0] == written[1] else written[1],
        "rdp": _encoded(*_tabulated(renyi)),
    }
    return content | {"checksum": _checksum(content)}


def unpacked(
    content: Mapping[str, Any],
) -> tuple[LossDistribution, LossDistribution, RenyiCurve | None]:
    """Return the parts written by `packed`, after validation.

    Notes
    -----
    Theorem P11.
    """
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise ValueError(
            f"content must be a dict written by to_dict of this version of skdptune (format "
            f"{FORMAT}); got another {type(content).__name__}."
        )
    try:
        step = check_real(
            content["step"], name="step", lower=0.0, lower_open=True, upper=LARGEST_LOSS
        )
        add = content["remove"] if content["add"] is None else content["add"]
        sides = _from_knots(step, content["remove"], add)
        written = check_real(content["total_variation"], name="total_variation")
        for side in sides:
            found = knots_of(side).total_variation(step)
            # A direction that lost masses would claim a smaller cost.
            if not abs(found - written) <= _SAME * max(found, written):
                raise ValueError(
                    f"total_variation must be {found}, that of the masses; got {written}."
                )
        renyi = _from_table(content["rdp"])
        if content["checksum"] != _checksum(content):
            raise ValueError("checksum must be that of the other values; got another.")
        return *sides, renyi
    except (KeyError, TypeError, binascii.Error, zlib.error) as error:
        # The error itself might show the content of a table that was passed by mistake.
        raise ValueError(
            f"content must be a dict written by to_dict; got one that is broken ({shown(error)})."
        ) from None


def _checksum(content: Mapping[str, Any]) -> int:
    """Return a number that detects damage of single values, however small the change is."""
    numbers = [float(content[name]) for name in ("step", "total_variation")]
    sides = [
        None if side is None else [float(side["infinity"]), side["masses"]]
        for side in (content["remove"], content["add"])
    ]
    return zlib.crc32(json.dumps([numbers, sides, content["rdp"]]).encode())


# Directions --------------------------------------------------------------------------------


def _from_knots(step: float, *directions: Mapping[str, Any]) -> Sides:
    """Return both directions from their knots; the curves must meet at ``epsilon = 0``."""
    knots = [Knots(*_side_decoded(content)) for content in directions]
    if any(each.places.size and each.places[0] < 1 for each in knots):
        raise ValueError("knots must be at positive losses; got others.")
    variations = [each.total_variation(step) for each in knots]
    if not abs(variations[0] - variations[1]) <= _SAME * max(variations):
        raise ValueError(f"directions must have one total variation; got {variations}.")
    return sides_through(step, *knots)


def _side_decoded(content: Mapping[str, Any]) -> tuple[IntArray, FloatArray, float]:
    """Return grid numbers, masses and the mass at infinity of a direction, after validation."""
    bends, masses = _decoded(content["masses"], name="masses")
    infinity = check_real(content["infinity"], name="infinity", lower=0.0, upper=1.0)
    if not np.all(np.abs(bends) <= 4.0 * _LARGEST_PLACE):
        raise ValueError("losses must be increasing grid numbers; got others.")
    places = np.cumsum(np.cumsum(bends))
    is_integer = np.array_equal(places, np.round(places))
    if not is_integer or np.any(np.diff(places) <= 0.0) or np.any(abs(places) > _LARGEST_PLACE):
        raise ValueError("losses must be increasing grid numbers; got others.")
    if not np.all((masses >= 0.0) & (masses <= _LARGEST_MASS)):
        raise ValueError("masses must be probabilities; got others.")
    return places.astype(np.int64), masses, infinity


# Rényi curves ------------------------------------------------------------------------------


def _tabulated(renyi: RenyiCurve) -> tuple[FloatArray, FloatArray]:
    """Return orders and divergences whose chords are within the tolerance.

    Notes
    -----
    Theorem P9.
    """
    if isinstance(renyi, RenyiTable) and len(renyi.orders) <= _MOST_ORDERS:
        return np.array(renyi.orders), np.array(renyi.values)
    values = renyi.at(ORDERS)
    known = np.isfinite(values)
    orders, values = ORDERS[known], values[known]
    tolerance, chosen = _RENYI_TOLERANCE, np.arange(orders.size)
    while chosen.size > _MOST_ORDERS or tolerance == _RENYI_TOLERANCE:
        chosen = _few_orders(orders, values, tolerance)
        tolerance *= 2.0
    return orders[chosen], values[chosen]


def _few_orders(orders: FloatArray, values: FloatArray, tolerance: float) -> IntArray:
    """Return a few indices, including first and last, between which chords are close enough."""
    scaled = (orders - 1.0) * values
    highest = (1.0 + tolerance) * scaled
    chosen = [0] if orders.size else []
    while chosen and chosen[-1] < orders.size - 1:
        start = end = chosen[-1]
        while end < orders.size - 1:
            between = slice(start, end + 2)
            line = orders[[start, end + 1]], scaled[[start, end + 1]]
            if end > start and np.any(np.interp(orders[between], *line) > highest[between]):
                break
            end += 1
        chosen.append(end)
    return np.array(chosen, dtype=np.int64)


def _from_table(content: Any) -> RenyiCurve | None:
    """Return the curve that was written as a table; None if no bound was known."""
    columns = _decoded(content, name="rdp")
    orders = check_vector(columns[0], name="orders", lower=1.0, lower_open=True)
    values = check_vector(columns[1], name="values", lower=0.0)
    if np.any(np.diff(orders) <= 0.0):
        raise ValueError("orders must be increasing; got others.")
    return RenyiTable(tuple(orders.tolist()), tuple(values.tolist())) if orders.size else None


# Columns -----------------------------------------------------------------------------------


def _encoded(first: npt.ArrayLike, second: npt.ArrayLike) -> str:
    """Return two columns of numbers as text: little-endian doubles, compressed.

    Bytes with the same place value are stored together, since equal bytes compress well.
    """
    columns = np.array([first, second], dtype="<f8")
    raw = columns.view(np.uint8).reshape(-1, 8).T.tobytes()
    return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")


def _decoded(text: Any, *, name: str) -> tuple[FloatArray, FloatArray]:
    """Return the two columns written by `_encoded`, with a limited number of rows."""
    if not isinstance(text, str) or not text.isascii() or len(text) > _LONGEST_TEXT:
        raise ValueError(f"{name} must be a text that to_dict wrote; got another.")
    stream = zlib.decompressobj()
    raw = stream.decompress(base64.b64decode(text, validate=True), 16 * _MOST_ROWS)
    if len(raw) % 16 or not stream.eof or stream.unused_data:
        raise ValueError(f"{name} must be two columns of up to {_MOST_ROWS} doubles; got others.")
    ordered = np.frombuffer(raw, dtype=np.uint8).reshape(8, -1).T.tobytes()
    first, second = np.frombuffer(ordered, dtype="<f8").astype(np.float64).reshape(2, -1)
    return first, second


# A profile through few of its points -----------------------------------------------------

# A direction's curve is convex and piecewise linear in ``exp(epsilon)``; its knots are the
# positive losses with a mass. Leaving a knot out replaces two pieces by the chord above them. This
# moves the mass of that loss to the neighbouring knots.
#
# Using `from_curve` with 128 points at even steps of log(delta) would need less code. But these
# points add up to 13 % to epsilon if samples are rare, and need up to 6 kB. A pure guarantee that
# is read from them is no longer pure.

# Largest total number of knots that are written; most profiles need half of it.
MOST_KNOTS = 340
# Largest number of deltas at which epsilon is kept: each needs two knots per direction.
_MOST_DELTAS = 16
# Relative increase of epsilon by chords: a thousandth, minus the error between grid points.
_TOLERANCE = 9e-4
# Range of deltas for which this holds. Below the range, ten times the tolerance is allowed, and
# below a hundred-thousandth of its lower end, any error.
_LEAST_DELTA, _LARGEST_DELTA = 1e-11, 2e-2
# Largest factor of the tolerance above the range, if there are too many knots.
_MOST_ABOVE = 64.0
# Deltas this close to the mass at infinity, relative to it, count as below the range.
_RESOLUTION = 1e-6
# Allows for rounding of weights and sums when a mass is moved.
_ROUNDING = 1.0 + 2.0**-42
# Largest relative difference of the two total variations that is caused by rounding.
_ROUNDED = 1e-14


@dataclass(frozen=True, eq=False)
class Knots:
    """The knots that fully describe a direction's curve at ``epsilon >= 0``.

    Attributes
    ----------
    places : ndarray of int
        Positive and increasing grid numbers of the losses that have a mass.
    masses : ndarray
        Masses at these losses.
    infinity : float
        Mass at infinity.
    """

    places: IntArray
    masses: FloatArray
    infinity: float

    def total_variation(self, step: float) -> float:
        """Return the curve at ``epsilon = 0``."""
        return self.infinity - float(np.sum(self.masses * np.expm1(-step * self.places)))


def knots_of(side: LossDistribution) -> Knots:
    """Return all knots of a direction."""
    places = np.flatnonzero(side.positive_masses)
    return Knots(places + 1, side.positive_masses[places], side.infinity)


def few_knots(sides: Sides, deltas: Sequence[float] = ()) -> tuple[Knots, Knots]:
    """Return knots of curves that are never below a profile's own, and only slightly above.

    Parameters
    ----------
    sides : tuple of LossDistribution
        The remove and the add direction.
    deltas : sequence of float, default=()
        Where epsilon must not grow at all; the first sixteen count.

    Returns
    -------
    remove, add : Knots
        At most `MOST_KNOTS` in total, with two equal directions counted once. Largest losses and
        masses at infinity are those of `sides`. At any delta from 1e-10 to 1e-2 that is at least a
        millionth above the mass at infinity, epsilon is at most 0.1 % larger. The increase is
        larger only if this is necessary for so few knots.

    Notes
    -----
    Theorem P11.
    """
    remove, add = sides
    is_same = remove.equals(add)
    knots = knots_of(remove), knots_of(add)
    tolerances = _tolerances()
    exact = tuple(dict.fromkeys(deltas))[:_MOST_DELTAS]
    while knots[0].places.size + (0 if is_same else knots[1].places.size) > MOST_KNOTS:
        share, above = next(tolerances)
        first = _moved(remove, _chosen(remove, share, above, exact))
        second = first if is_same else _moved(add, _chosen(add, share, above, exact))
        knots = first, second
    return _with_one_total_variation(remove.step, *knots)


def sides_through(step: float, remove: Knots, add: Knots) -> Sides:
    """Return the loss distributions whose curves have these knots.

    Notes
    -----
    Theorem P11.
    """
    return _side_through(step, remove, add), _side_through(step, add, remove)


# Choosing knots ----------------------------------------------------------------------------


def _tolerances() -> Iterator[tuple[float, float]]:
    """Yield larger and larger relative increases of epsilon, and their factor above the range.

    The range itself is relaxed last.
    """
    share, above = _TOLERANCE, 1.0
    while above < _MOST_ABOVE:
        yield share, above
        above *= 4.0
    while True:
        yield share, above
        share *= 2.0


def _chosen(
    side: LossDistribution, share: float, above: float, deltas: Sequence[float]
) -> IntArray:
    """Return the grid numbers of a few knots, including 0 and the largest loss."""
    known = np.flatnonzero(side.positive_masses)
    if not known.size:
        return np.zeros(1, dtype=np.int64)
    last = int(known[-1]) + 1
    corners = {last}
    for delta in deltas:
        # The cell in which epsilon is read.
        right = int(np.searchsorted(-side.curve, -delta, side="left"))
        corners |= {place for place in (right - 1, right) if 0 < place < last}
    # The curve minus the mass at infinity, which would hide small differences.
    excess = np.append(np.cumsum(side.weighted_tails[::-1])[::-1] * math.expm1(side.step), 0.0)
    latest = _latest(side, excess, share, above)
    chosen = [0]
    for corner in sorted(corners):
        while chosen[-1] < corner:
            chosen.append(_farthest(excess, latest, side.step, chosen[-1], corner))
    return np.array(chosen)


def _latest(side: LossDistribution, excess: FloatArray, share: float, above: float) -> FloatArray:
    """Return for each point of the curve the epsilon up to which chords must be as low."""
    least = max(_LEAST_DELTA - side.infinity, _RESOLUTION * side.infinity)
    shares = np.full(excess.size, share)
    shares[excess < least] *= 10.0
    shares[excess + side.infinity > _LARGEST_DELTA] *= above
    latest = side.step * np.arange(excess.size) * (1.0 + shares)
    latest[excess < 1e-5 * least] = math.inf
    # Where the tolerance decreases, keep the order; an earlier epsilon is stricter.
    return np.minimum.accumulate(latest[::-1])[::-1]


def _farthest(excess: FloatArray, latest: FloatArray, step: float, start: int, stop: int) -> int:
    """Return the last grid number, up to ``stop``, to which a chord is low enough.

    A chord to a nearer point is lower. So the first one that is too high ends the search, and
    choosing the farthest point at each knot gives the fewest knots.
    """
    width = 64
    while True:
        ends = np.arange(start + 1, min(start + width, stop) + 1)
        # Number of points of the curve that the chord to each end must not exceed.
        passed = np.searchsorted(latest, step * ends, side="right") - 1 - start
        inside = np.arange(start + 1, start + max(int(passed[-1]), 0) + 1)
        slopes = (excess[ends] - excess[start]) / _width(step * (ends - start))
        bounds = (excess[inside] - excess[start]) / _width(latest[inside] - step * start)
        lowest = np.minimum.accumulate(np.append(math.inf, bounds))
        is_too_high = slopes > lowest[np.maximum(passed, 0)]
        if is_too_high.any():
            return int(ends[np.argmax(is_too_high)]) - 1
        if ends[-1] == stop:
            return stop
        width *= 2


def _width(distance: FloatArray) -> FloatArray:
    """Return ``exp(distance) - 1``, limited to finite floats."""
    return np.expm1(np.minimum(distance, LARGEST_LOSS))


# Moving masses -----------------------------------------------------------------------------


def _moved(side: LossDistribution, chosen: IntArray) -> Knots:
    """Return the knots at ``chosen``; masses between two of them are moved to both.

    The shares keep the mass under both distributions of the pair: under the first one, these are
    the masses, and under the second one, the masses times ``exp(-loss)``.
    """
    masses = side.positive_masses[: chosen[-1]]
    places = np.arange(1, chosen[-1] + 1)
    after = np.searchsorted(chosen, places)
    left, right = chosen[after - 1], chosen[after]
    rightward = np.expm1(-side.step * (places - left)) / np.expm1(-side.step * (right - left))
    leftward = np.exp(-side.step * (places - left)) * (
        np.expm1(-side.step * (right - places)) / np.expm1(-side.step * (right - left))
    )
    # Knot by knot, with pairwise sums, whose rounding errors the allowance covers.
    cuts = np.searchsorted(places, chosen[1:-1], side="right")
    gained = np.zeros(chosen.size)
    gained[1:] += [part.sum() for part in np.split(masses * rightward, cuts)]
    gained[:-1] += [part.sum() for part in np.split(masses * leftward, cuts)]
    kept = np.flatnonzero(gained[1:]) + 1
    return Knots(chosen[kept], gained[kept] * _ROUNDING, side.infinity)


def _with_one_total_variation(step: float, remove: Knots, add: Knots) -> tuple[Knots, Knots]:
    """Return both directions, with the lower one raised if they differ at ``epsilon = 0``.

    At this point, the two curves of a pair have the same value.

    Notes
    -----
    Theorem P11.
    """
    first, second = remove.total_variation(step), add.total_variation(step)
    if abs(first - second) <= _ROUNDED * max(first, second):
        return remove, add
    if first > second:
        return remove, _raised(step, add, first - second)
    return _raised(step, remove, second - first), add


def _raised(step: float, knots: Knots, gap: float) -> Knots:
    """Return knots with a curve higher by ``gap`` at 0, and unchanged from the first one on.

    It is raised up to a later one if the mass that is added at the first one exceeded 1.
    """
    places, masses = knots.places, knots.masses.copy()
    # Only an infinite loss would close a gap of 1 by a mass of 1.
    least = max(1, math.ceil(-math.log1p(-min(gap, 0.9999)) / step))
    at = int(np.searchsorted(places, least))
    if at == places.size:
        places, masses = np.append(places, least), np.append(masses, 0.0)
    masses[at] -= gap / math.expm1(-step * float(places[at]))
    return Knots(places, masses, knots.infinity)


def _side_through(step: float, own: Knots, other: Knots) -> LossDistribution:
    """Return one direction: its own masses, the other's at negative losses, the rest at 0."""
    above = int(own.places[-1]) if own.places.size else 0
    below = int(other.places[-1]) if other.places.size else 0
    # The number of losses is limited: the lowest losses are raised, which is conservative.
    below = min(below, max(2 * MOST_POINTS - 1 - above, 0))
    masses = np.zeros(below + 1 + above)
    mirrored = other.masses * np.exp(-step * other.places)
    np.add.at(masses, below - np.minimum(other.places, below), mirrored)
    masses[below + own.places] = own.masses
    rest = 1.0 - own.infinity - float(own.masses.sum()) - float(mirrored.sum())
    # A total mass above 1 is conservative.
    masses[below] += max(rest, 0.0)
    return LossDistribution(step, -below, masses, own.infinity)
