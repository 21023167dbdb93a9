"""Text for messages: privacy figures rounded up, and arguments without their contents."""

from __future__ import annotations

import datetime
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import ROUND_CEILING, Context, Decimal
from difflib import get_close_matches
from typing import Any

import numpy as np

NOT_PRIVATE = "not private"

# Limits on what a message repeats: characters of a string or number, entries of a tuple, names.
_LONGEST_TEXT = 80
_LONGEST_NUMBER = 40
_LONGEST_TUPLE = 3
_MOST_NAMES = 40
_SCALARS = bool | numbers.Number | np.generic | datetime.date | datetime.timedelta
_CONTAINERS = (Mapping, Sequence, Set)

# Use our own decimal contexts: the user's may round down, or raise when a result is inexact.
_CEILING = Context(prec=28, rounding=ROUND_CEILING)
_THREE_DIGITS = Context(prec=3, rounding=ROUND_CEILING)


def shown_number(value: float) -> str:
    """Format a number >= 0, rounded up to three decimals or three significant digits.

    Reading the text back as a float never gives less than ``value``.
    """
    if math.isinf(value):
        return "inf"
    exact = _shortest_decimal(value)
    if value == 0.0 or 0.1 <= value < 1e6:
        return f"{_CEILING.quantize(exact, Decimal('0.001')):f}"
    rounded = _THREE_DIGITS.plus(exact)
    return f"{rounded:f}" if 1e-4 <= value < 0.1 else f"{rounded:.2e}"


def shown_percent(share: float) -> str:
    """Format a share with three digits."""
    return f"{100.0 * share:.3g} %"


def shown_epsilon(value: float) -> str:
    """Format an epsilon; an infinite one is shown as "not private"."""
    return NOT_PRIVATE if math.isinf(value) else f"ε = {shown_number(value)}"


def shown_delta(value: float) -> str:
    """Format a delta in [0, 1] with at most three digits, rounded up: 1e-05, 0.001, 8.1e-06."""
    return f"{float(_THREE_DIGITS.plus(_shortest_decimal(value))):g}"


def shown(value: Any, *, longest: int = _LONGEST_TEXT) -> str:
    """Format an argument for a message: scalars in full, other objects by their type and size.

    An object may contain records, because a table can be passed as any argument. Numbers, None,
    True, False, dates, short strings, and tuples of up to three of these are shown as Python
    writes them. Arrays and tables are shown by their type and shape, other containers by their
    type and length, and other objects by their type. A string is short if it has at most
    ``longest`` characters.
    """
    if isinstance(value, tuple) and type(value) is tuple and 0 < len(value) <= _LONGEST_TUPLE:
        texts = [_scalar(each) for each in value]
        if None not in texts:
            inside = ", ".join(map(str, texts))
            return f"({inside},)" if len(texts) == 1 else f"({inside})"
    text = _scalar(value, longest)
    if text is not None:
        return text
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"{type(value).__name__}{_size(value)}"


def shown_path(path: Any) -> str:
    """Format a path; the middle of a very long path is left out."""
    text = str(path)
    return repr(text if len(text) <= 200 else f"{text[:90]}...{text[-90:]}")


def shown_names(values: Iterable[Any]) -> str:
    """Format a list of public names, such as parameters, options or columns, each with `shown`."""
    listed = list(values)
    more = [f"and {len(listed) - _MOST_NAMES} more"] if len(listed) > _MOST_NAMES else []
    return ", ".join([*map(shown, listed[:_MOST_NAMES]), *more])


def nearest_name(name: Any, known: Sequence[str]) -> str:
    """Return the known name that is closest, in quotation marks, or "" if none is close."""
    return "".join(map(shown, get_close_matches(str(name), known, n=1)))


def shown_params(params: Mapping[str, Any]) -> str:
    """Format parameters as "name=value" pairs."""
    return ", ".join(f"{name}={shown(value)}" for name, value in params.items())


def _scalar(value: Any, longest: int = _LONGEST_TEXT) -> str | None:
    """Return a number, a short string or a date as Python writes it; None for other objects."""
    if isinstance(value, str):
        is_short = len(value) <= longest and "\n" not in value
        return str.__repr__(value) if is_short else None
    is_scalar = value is None or isinstance(value, _SCALARS)
    if not is_scalar or isinstance(value, np.void | np.bytes_):
        return None
    try:
        text = repr(value)
    except Exception:
        # Python does not print integers with thousands of digits.
        return None
    return text if len(text) <= _LONGEST_NUMBER and "\n" not in text else None


def _size(value: Any) -> str:
    """Return the shape or the length of a container as text, and "" for other objects."""
    try:
        if isinstance(value, str):
            return f" of {len(value)} characters"
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple):
            return f" of shape {tuple(map(int, shape))}"
        return f" of length {len(value)}" if isinstance(value, _CONTAINERS) else ""
    except Exception:
        # Foreign objects may raise any error when asked for their size.
        return ""


def _shortest_decimal(value: float) -> Decimal:
    """Return the shortest decimal that reads back as the value.

    Rounding it up shows 1.1 as 1.100; rounding up the exact binary value would show 1.101.
    """
    return Decimal(repr(float(value)))
