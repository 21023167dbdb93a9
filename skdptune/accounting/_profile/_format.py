"""How a profile is written down as plain values, and read back."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skdptune._formatting import shown
from skdptune._validation import FloatArray, check_real, check_vector
from skdptune.accounting._losses import (
    LARGEST_LOSS,
    ORDERS,
    LossDistribution,
    RenyiCurve,
    RenyiTable,
    Sides,
)
from skdptune.accounting._profile._knots import (
    IntArray,
    Knots,
    few_knots,
    knots_of,
    sides_through,
)

FORMAT = 3
# Format 2, which ledgers may hold, is the same without a checksum.
_WITHOUT_CHECKSUM = 2
# Up to as many losses of either direction are written as they are.
_FEW_LOSSES = 64
# Most orders of a Rényi curve that are written, and the share by which chords may raise it.
_MOST_ORDERS = 128
_RENYI_TOLERANCE = 2e-3
# No profile has losses at larger grid numbers, or a larger mass at one of them.
_LARGEST_PLACE, _LARGEST_MASS = 2**20, 2.0
# No column is longer, and no text that holds two: what is larger is refused before it is unpacked.
_MOST_ROWS = 2**12
_LONGEST_TEXT = 2**17
# Total variations that differ by more are not that of one pair.
_SAME = 1e-9

# Grid numbers of losses, increasing, and their masses.
_Masses = tuple[IntArray, FloatArray]


def packed(
    remove: LossDistribution,
    add: LossDistribution,
    renyi: RenyiCurve,
    deltas: Sequence[float] = (),
) -> dict[str, Any]:
    """Return a profile's parts as plain values, the add direction only if it differs.

    Few losses are written as they are, more of them as the knots of an upper bound that leaves
    epsilon alone at `deltas`. Knots say all of a profile that was read from knots, so that no
    more is lost when it is written again.

    Notes
    -----
    Theorem P11.
    """
    sides = remove, add
    if _is_short(sides) and not _is_of_knots(sides):
        kind, masses = "losses", [_ends_and_masses(side) for side in sides]
        variation = knots_of(remove).total_variation(remove.step)
    else:
        kind, knots = "knots", few_knots(sides, deltas)
        masses = [(each.places, each.masses) for each in knots]
        variation = knots[0].total_variation(remove.step)
    written = [
        _side_encoded(*columns, side.infinity) for side, columns in zip(sides, masses, strict=True)
    ]
    content = {
        "format": FORMAT,
        "kind": kind,
        "step": remove.step,
        "total_variation": variation,
        "remove": written[0],
        "add": None if written[0] == written[1] else written[1],
        "rdp": _encoded(*_tabulated(renyi)),
    }
    return content | {"checksum": _checksum(content)}


def unpacked(
    content: Mapping[str, Any],
) -> tuple[LossDistribution, LossDistribution, RenyiCurve | None]:
    """Return the parts that `packed` wrote, after checking them.

    Notes
    -----
    Theorem P11.
    """
    formats = FORMAT, _WITHOUT_CHECKSUM
    if not isinstance(content, Mapping) or content.get("format") not in formats:
        raise ValueError(
            f"content must be a dict written by to_dict, format {FORMAT}; got another "
            f"{type(content).__name__}."
        )
    try:
        step = check_real(
            content["step"], name="step", lower=0.0, lower_open=True, upper=LARGEST_LOSS
        )
        read = {"losses": _from_losses, "knots": _from_knots}[content["kind"]]
        add = content["remove"] if content["add"] is None else content["add"]
        sides = read(step, content["remove"], add)
        variation = check_real(content["total_variation"], name="total_variation")
        for side in sides:
            _check_variation(side, variation)
        renyi = _from_table(content["rdp"])
        is_checked = content["format"] != _WITHOUT_CHECKSUM
        if is_checked and content["checksum"] != _checksum(content):
            raise ValueError("checksum must be that of the other values; got another.")
        return *sides, renyi
    except (KeyError, TypeError, binascii.Error, zlib.error) as error:
        # The error itself may show what is in a table that landed here.
        raise ValueError(
            f"content must be a dict written by to_dict; got one that is broken ({shown(error)})."
        ) from None


def _checksum(content: Mapping[str, Any]) -> int:
    """Return a number that finds out single values that were damaged, however small they are."""
    numbers = [float(content[name]) for name in ("step", "total_variation")]
    sides = [
        None if side is None else [float(side["infinity"]), side["masses"]]
        for side in (content["remove"], content["add"])
    ]
    return zlib.crc32(json.dumps([content["kind"], numbers, sides, content["rdp"]]).encode())


# Directions --------------------------------------------------------------------------------


def _is_short(sides: Sides) -> bool:
    return all(np.count_nonzero(side.masses) <= _FEW_LOSSES for side in sides)


def _is_of_knots(sides: Sides) -> bool:
    """Return whether a profile is what its knots alone say."""
    again = sides_through(sides[0].step, *map(knots_of, sides))
    return all(side.equals(other) for side, other in zip(sides, again, strict=True))


def _ends_and_masses(side: LossDistribution) -> _Masses:
    """Return all losses that have mass, and the first and last ones even if they have none."""
    places = np.union1d(np.flatnonzero(side.masses), [0, side.masses.size - 1])
    return places + side.lowest, side.masses[places]


def _from_losses(step: float, remove: Mapping[str, Any], add: Mapping[str, Any]) -> Sides:
    return _all_losses(step, remove), _all_losses(step, add)


def _all_losses(step: float, content: Mapping[str, Any]) -> LossDistribution:
    """Return a direction whose losses were all written."""
    places, masses, infinity = _side_decoded(content)
    if not places.size:
        raise ValueError("masses must be at least one; got none.")
    # Less mass than one would claim a smaller cost than any release has.
    total = float(masses.sum()) + infinity
    if not total >= 1.0 - 1e-9:
        raise ValueError(f"masses must sum to at least 1 with infinity's; got {total}.")
    dense = np.zeros(int(places[-1] - places[0]) + 1)
    dense[places - places[0]] = masses
    return LossDistribution(step, int(places[0]), dense, infinity)


def _from_knots(step: float, remove: Mapping[str, Any], add: Mapping[str, Any]) -> Sides:
    """Return both directions from their knots, whose curves must meet at ``epsilon = 0``."""
    knots = [Knots(*_side_decoded(content)) for content in (remove, add)]
    if any(each.places.size and each.places[0] < 1 for each in knots):
        raise ValueError("knots must be at positive losses; got others.")
    variations = [each.total_variation(step) for each in knots]
    if not abs(variations[0] - variations[1]) <= _SAME * max(variations):
        raise ValueError(f"directions must have one total variation; got {variations}.")
    return sides_through(step, *knots)


def _check_variation(side: LossDistribution, written: float) -> None:
    """Raise if a direction has not the total variation that was written beside it.

    One that lost masses would claim a smaller cost.
    """
    found = knots_of(side).total_variation(side.step)
    if not abs(found - written) <= _SAME * max(found, written):
        raise ValueError(f"total_variation must be {found}, that of the masses; got {written}.")


def _side_encoded(places: IntArray, masses: FloatArray, infinity: float) -> dict[str, Any]:
    """Return a direction as plain values."""
    # Second differences of places are small numbers, which compress well.
    bends = np.diff(places, n=2, prepend=[0, 0])
    return {"infinity": infinity, "masses": _encoded(bends, masses)}


def _side_decoded(content: Mapping[str, Any]) -> tuple[IntArray, FloatArray, float]:
    """Return places, masses and the mass at infinity of a direction, after checking them."""
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
    """Return orders and divergences through which chords are within the tolerance.

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
    """Return few indices, the first and last among them, between which chords serve."""
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
    """Return the curve that was written as a table; None if nothing was known."""
    columns = _decoded(content, name="rdp")
    orders = check_vector(columns[0], name="orders", lower=1.0, lower_open=True)
    values = check_vector(columns[1], name="values", lower=0.0)
    if np.any(np.diff(orders) <= 0.0):
        raise ValueError("orders must be increasing; got others.")
    return RenyiTable(tuple(orders.tolist()), tuple(values.tolist())) if orders.size else None


# Columns -----------------------------------------------------------------------------------


def _encoded(first: npt.ArrayLike, second: npt.ArrayLike) -> str:
    """Return two columns of numbers as text: little-endian doubles, compressed.

    Bytes of one place value stand together, as equal ones compress well.
    """
    columns = np.array([first, second], dtype="<f8")
    raw = columns.view(np.uint8).reshape(-1, 8).T.tobytes()
    return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")


def _decoded(text: Any, *, name: str) -> tuple[FloatArray, FloatArray]:
    """Return the two columns that `_encoded` wrote, of no more rows than a profile has."""
    if not isinstance(text, str) or not text.isascii() or len(text) > _LONGEST_TEXT:
        raise ValueError(f"{name} must be a text that to_dict wrote; got another.")
    stream = zlib.decompressobj()
    raw = stream.decompress(base64.b64decode(text, validate=True), 16 * _MOST_ROWS)
    if len(raw) % 16 or not stream.eof or stream.unused_data:
        raise ValueError(f"{name} must be two columns of up to {_MOST_ROWS} doubles; got others.")
    ordered = np.frombuffer(raw, dtype=np.uint8).reshape(8, -1).T.tobytes()
    first, second = np.frombuffer(ordered, dtype="<f8").astype(np.float64).reshape(2, -1)
    return first, second
