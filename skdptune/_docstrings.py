"""Shared parts of docstrings, written once and filled in by a class decorator."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import TypeVar

_Class = TypeVar("_Class", bound=type)


def with_shared_text(texts: Mapping[str, str]) -> Callable[[_Class], _Class]:
    """Return a class decorator that replaces placeholder lines such as "{common_parameters}".

    Parameters
    ----------
    texts : mapping of str to str
        Maps each name in braces, which must be the whole line, to the text that replaces it.

    Examples
    --------
    >>> from skdptune._docstrings import with_shared_text
    >>> @with_shared_text({"seed": "random_state : int"})
    ... class Model:
    ...     '''A model.
    ...
    ...     {seed}
    ...     '''
    >>> print(Model.__doc__)
    A model.
    <BLANKLINE>
        random_state : int
    <BLANKLINE>
    """

    def fill(kind: _Class) -> _Class:
        def text_of(match: re.Match[str]) -> str:
            return textwrap.indent(texts[match["name"]], match["indentation"])

        # Docstrings are None under python -OO.
        if kind.__doc__:
            line = r"(?m)^(?P<indentation> *)\{(?P<name>\w+)\}$"
            kind.__doc__ = re.sub(line, text_of, kind.__doc__)
        return kind

    return fill
