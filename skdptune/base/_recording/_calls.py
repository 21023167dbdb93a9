"""What a call gives to a method that reads data, whatever the method is made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def arguments_of(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Return the arguments of a call by name, also where its method calls them otherwise."""
    known = dict(bound.arguments)
    for name, each in bound.signature.parameters.items():
        if each.kind is each.VAR_KEYWORD and name != "refused":
            known |= known.pop(name, {})
    if "statistics" in known:
        return known
    for name, value in zip(("X", "y"), bound.args[1:], strict=False):
        is_data = name == "X" or isinstance(value, list | tuple) or hasattr(value, "shape")
        if name not in known and is_data:
            known[name] = value
    return known


def signature_with_object(method: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a bound method with its object in the first place."""
    own = inspect.Parameter("_object", inspect.Parameter.POSITIONAL_ONLY)
    return inspect.Signature([own, *signature_of(method).parameters.values()])


def signature_of(method: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a method, or one that takes anything where it tells none."""
    try:
        return inspect.signature(method)
    except ValueError:
        # Of compiled code that does not tell.
        return inspect.signature(lambda *args, **kwargs: None)
