"""What messages show: privacy figures rounded up, and arguments without what they hold."""

from __future__ import annotations

import datetime
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

import numpy as np

NOT_PRIVATE = "not private"

# How much a message repeats: characters of a word and of a number, values of a tuple, names.
_LONGEST_TEXT = 80
_LONGEST_NUMBER = 40
_LONGEST_TUPLE = 3
_MOST_NAMES = 40
_SCALARS = bool | numbers.Number | np.generic | datetime.date | datetime.timedelta
_CONTAINERS = (Mapping, Sequence, Set)

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


def shown(value: Any, *, longest: int = _LONGEST_TEXT) -> str:
    """Show what a user gave in a message: an option or a number as it is, else its type and size.

    Whatever else an object holds may be records: a table can land in any argument. Numbers, None,
    True, False, dates, short words, and tuples of up to three of them are shown as Python writes
    them; of an array or a table its type and shape, of other containers their type and length, of
    all other objects their type. Words of up to ``longest`` characters are short.
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
    """Show a path, without the middle of a very long one."""
    text = str(path)
    return repr(text if len(text) <= 200 else f"{text[:90]}...{text[-90:]}")


def shown_names(values: Iterable[Any]) -> str:
    """Show the public names of parameters, options or columns, each as `shown` does."""
    listed = list(values)
    more = [f"and {len(listed) - _MOST_NAMES} more"] if len(listed) > _MOST_NAMES else []
    return ", ".join([*map(shown, listed[:_MOST_NAMES]), *more])


def shown_params(params: Mapping[str, Any]) -> str:
    """Show the values of parameters by their names."""
    return ", ".join(f"{name}={shown(value)}" for name, value in params.items())


def _scalar(value: Any, longest: int = _LONGEST_TEXT) -> str | None:
    """Return a number, an option or a date as Python writes it; None for all else."""
    if isinstance(value, str):
        is_short = len(value) <= longest and "\n" not in value
        return str.__repr__(value) if is_short else None
    is_scalar = value is None or isinstance(value, _SCALARS)
    if not is_scalar or isinstance(value, np.void | np.bytes_):
        return None
    try:
        text = repr(value)
    except Exception:
        # Python does not print integers of thousands of digits.
        return None
    return text if len(text) <= _LONGEST_NUMBER and "\n" not in text else None


def _size(value: Any) -> str:
    """Return the shape or the length of a container in words; nothing for other objects."""
    try:
        if isinstance(value, str):
            return f" of {len(value)} characters"
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple):
            return f" of shape {tuple(map(int, shape))}"
        return f" of length {len(value)}" if isinstance(value, _CONTAINERS) else ""
    except Exception:
        # What a foreign object does when it is asked for its size.
        return ""


def _shortest_decimal(value: float) -> Decimal:
    """Return the shortest decimal that reads back as the value.

    Rounded up from there, 1.1 is shown as 1.100; from its binary digits it would be 1.101.
    """
    return Decimal(repr(float(value)))
