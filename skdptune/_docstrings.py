"""Docstrings of classes that share parameters: what they share is written once."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import TypeVar

_Class = TypeVar("_Class", bound=type)


def with_shared_text(texts: Mapping[str, str]) -> Callable[[_Class], _Class]:
    """Return a class decorator that fills in lines such as "{common_parameters}" of a docstring.

    Parameters
    ----------
    texts : mapping of str to str
        From the name in braces, which is a line of its own, to the text in its place.

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

        # Python drops docstrings on request.
        if kind.__doc__:
            line = r"(?m)^(?P<indentation> *)\{(?P<name>\w+)\}$"
            kind.__doc__ = re.sub(line, text_of, kind.__doc__)
        return kind

    return fill
