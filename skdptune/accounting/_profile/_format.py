"""How a profile is written down as plain values, and read back."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from skdptune._validation import check_integer, check_real, check_vector
from skdptune.accounting._losses import ORDERS, LossDistribution, RenyiCurve, RenyiTable

FORMAT = 1


def packed(remove: LossDistribution, add: LossDistribution, renyi: RenyiCurve) -> dict[str, Any]:
    """Return a profile's parts as plain values, the add direction only if it differs."""
    return {
        "format": FORMAT,
        "remove": _side_packed(remove),
        "add": None if remove.equals(add) else _side_packed(add),
        "rdp": _tabulated(renyi),
    }


def unpacked(
    content: Mapping[str, Any],
) -> tuple[LossDistribution, LossDistribution, RenyiCurve | None]:
    """Return the parts that `packed` wrote, after checking them."""
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise ValueError(
            f"content must be a dict written by to_dict, format {FORMAT}; got {content!r:.80}."
        )
    try:
        remove = _side_unpacked(content["remove"])
        add = remove if content["add"] is None else _side_unpacked(content["add"])
        if add.step != remove.step:
            raise ValueError(
                f"step must be one for both directions; got {remove.step}, {add.step}."
            )
        return remove, add, _from_table(content["rdp"])
    except (KeyError, TypeError, binascii.Error, zlib.error) as error:
        raise ValueError(
            f"content must be a dict written by to_dict; got one that is broken: {error!r:.60}."
        ) from error


def _side_packed(side: LossDistribution) -> dict[str, Any]:
    """Return one direction as plain values; masses as compressed little-endian doubles."""
    raw = np.ascontiguousarray(side.masses, dtype="<f8").tobytes()
    return {
        "step": side.step,
        "lowest": side.lowest,
        "infinity": side.infinity,
        "masses": base64.b64encode(zlib.compress(raw)).decode("ascii"),
    }


def _side_unpacked(content: Mapping[str, Any]) -> LossDistribution:
    raw = zlib.decompress(base64.b64decode(content["masses"]))
    step = check_real(content["step"], name="step", lower=0.0, lower_open=True)
    lowest = check_integer(content["lowest"], name="lowest")
    infinity = check_real(content["infinity"], name="infinity", lower=0.0, upper=1.0)
    if not raw or len(raw) % 8:
        raise ValueError(f"masses must be doubles; got {len(raw)} bytes.")
    masses = np.frombuffer(raw, dtype="<f8").astype(np.float64)
    if not np.isfinite(masses).all() or masses.min() < 0.0:
        raise ValueError("masses must be finite and not negative; got others.")
    # Less mass than one would claim a smaller cost than any release has.
    total = float(masses.sum()) + infinity
    if not total >= 1.0 - 1e-9:
        raise ValueError(f"masses must sum to at least 1 with infinity's; got {total}.")
    return LossDistribution(step, lowest, masses, infinity)


def _tabulated(renyi: RenyiCurve) -> dict[str, list[float]]:
    """Return a Rényi curve's finite values at the usual orders."""
    values = renyi.at(ORDERS)
    known = np.isfinite(values)
    return {"orders": ORDERS[known].tolist(), "values": values[known].tolist()}


def _from_table(content: Mapping[str, Any]) -> RenyiCurve | None:
    """Return the curve that `_tabulated` wrote; None if nothing was known."""
    orders = check_vector(content["orders"], name="orders", lower=1.0, lower_open=True)
    values = check_vector(content["values"], name="values", lower=0.0)
    if orders.size != values.size or np.any(np.diff(orders) <= 0.0):
        raise ValueError("orders must be increasing and as many as values; got others.")
    if not orders.size:
        return None
    return RenyiTable(tuple(orders.tolist()), tuple(values.tolist()))
