"""Docstrings of classes that share parameters: each parameter is described once, in a base class.

The source of a class holds what is its own, and its signature all names, types and defaults; what
``help`` and documentation builders show of it is complete.
"""

from __future__ import annotations

import inspect
import re
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_HEADER = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\w[\w, ]*?)(?: : .*)?\n(?:(?: +.*)?\n)*", re.MULTILINE)


def with_inherited_entries(cls: Class) -> Class:
    r"""Complete a class's docstring by the parameters and attributes that its bases describe.

    Parameters are in the order of the signature, attributes in that of the bases, and an entry of
    the class itself replaces that of a base.

    Parameters
    ----------
    cls : type
        With a docstring in the numpydoc format.

    Returns
    -------
    type
        The same class.

    Examples
    --------
    >>> class Base:
    ...     '''Base.
    ...
    ...     Parameters
    ...     ----------
    ...     alpha : float
    ...         Strength.
    ...     '''
    >>> @with_inherited_entries
    ... class Child(Base):
    ...     '''Child.'''
    ...     def __init__(self, alpha): ...
    >>> sections_of(Child.__doc__)["Parameters"]
    'alpha : float\n    Strength.\n'
    """
    # Python run with -OO keeps no docstrings.
    if cls.__doc__ is None:
        return cls
    own = sections_of(cls.__doc__)
    described = [sections_of(vars(base).get("__doc__") or "") for base in reversed(cls.__mro__)]
    completed = {"": own.pop("")}
    for title in ("Parameters", "Attributes"):
        entries: dict[str, str] = {}
        for sections in described:
            entries |= entries_of(sections.get(title, ""))
        if title == "Parameters":
            entries = {name: entries[name] for name in inspect.signature(cls).parameters}
        if entries:
            completed[title] = "".join(entries.values())
    completed |= {title: body for title, body in own.items() if title not in completed}
    cls.__doc__ = "\n".join(_written(title, body) for title, body in completed.items())
    return cls


def sections_of(docstring: str) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by their titles; what comes first has none."""
    head, *rest = _HEADER.split(inspect.cleandoc(docstring) + "\n")
    return {"": head, **dict(zip(rest[::2], rest[1::2], strict=True))}


def entries_of(section: str) -> dict[str, str]:
    """Return the entries of a section by the names that they describe."""
    return {match[1]: match[0].rstrip() + "\n" for match in _ENTRY.finditer(section)}


def _written(title: str, body: str) -> str:
    body = body.strip("\n") + "\n"
    return f"{title}\n{'-' * len(title)}\n{body}" if title else body
