"""Privacy figures as they are shown: short, and never below the exact value."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal

NOT_PRIVATE = "not private"

# Contexts of our own: the user's may round down, or raise where a result is inexact.
_CEILING = Context(prec=28, rounding=ROUND_CEILING)
_THREE_DIGITS = Context(prec=3, rounding=ROUND_CEILING)


def shown_number(value: float) -> str:
    """Show a number >= 0 with three decimals, or three digits where that is too few or many.

    What is shown, read back as a float, is never below ``value``.
    """
    if math.isinf(value):
        return "inf"
    exact = _shortest_decimal(value)
    if value == 0.0 or 0.1 <= value < 1e6:
        return f"{_CEILING.quantize(exact, Decimal('0.001')):f}"
    rounded = _THREE_DIGITS.plus(exact)
    return f"{rounded:f}" if 1e-4 <= value < 0.1 else f"{rounded:.2e}"


def shown_epsilon(value: float) -> str:
    """Show an epsilon, or that an infinite one is no privacy."""
    return NOT_PRIVATE if math.isinf(value) else f"ε = {shown_number(value)}"


def shown_delta(value: float) -> str:
    """Show a delta in [0, 1] with at most three digits, rounded up: 1e-05, 0.001, 8.1e-06."""
    return f"{float(_THREE_DIGITS.plus(_shortest_decimal(value))):g}"


def _shortest_decimal(value: float) -> Decimal:
    """Return the shortest decimal that reads back as the value.

    Rounded up from there, 1.1 is shown as 1.100; from its binary digits it would be 1.101.
    """
    return Decimal(repr(float(value)))
