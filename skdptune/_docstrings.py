"""Shared parts of docstrings, written once and filled in by a class decorator.

[randomness]
random_state : int or None, default=None
    None draws from the operating system's entropy; a seed gives reproducible research runs.
    Fits with the same seed, such as clones on two folds, share their noise.

[size_and_ledger]
n_public : int, optional
    Public constant in place of the number of records. A search sets it if it fits on a random
    subset of the data, whose size must stay secret.
{ledger}

[ledger]
ledger : PrivacyLedger, optional
    The ledger in which a fit reserves its cost before it reads the data. None uses the active
    ledger, if any: that of ``with ledger:`` or `skdptune.config_context`.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import TypeVar

_Class = TypeVar("_Class", bound=type)
_SECTION = re.compile(r"^\[(\w+)\]\n(.*?)\n*(?=\n\[\w+\]\n|\Z)", re.MULTILINE | re.DOTALL)
_PLACEHOLDER = re.compile(r"^(?P<indentation> *)\{(?P<name>\w+)\}$", re.MULTILINE)


def with_shared_text(text: str | None) -> Callable[[_Class], _Class]:
    r"""Return a class decorator that replaces placeholder lines such as "{common_parameters}".

    Parameters
    ----------
    text : str or None
        A docstring with the sections that replace them. Each section begins with a line such as
        "[common_parameters]". The sections of this module can be used as well. A section may
        contain placeholders for other sections.

    Examples
    --------
    >>> from skdptune._docstrings import with_shared_text
    >>> @with_shared_text("About models.\n\n[seed]\nrandom_state : int")
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
    # Docstrings are None under python -OO.
    sections = dict(_SECTION.findall(__doc__ or "") + _SECTION.findall(text or ""))

    def text_of(match: re.Match[str]) -> str:
        found = _PLACEHOLDER.sub(text_of, sections[match["name"]])
        return textwrap.indent(found, match["indentation"])

    def fill(kind: _Class) -> _Class:
        if kind.__doc__:
            kind.__doc__ = _PLACEHOLDER.sub(text_of, kind.__doc__)
        return kind

    return fill
