"""How neighbouring data sets differ: the three relations, and the one that holds for several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skdptune._formatting import shown

ADD_OR_REMOVE = "add or remove one record"
# A null record holds the place of one that is not there.
ZERO_OUT = (
    "add or remove one record's contribution at its place, the public number of records unchanged"
)
REPLACE = "replace one of a public number of records"
RELATIONS = (ADD_OR_REMOVE, ZERO_OUT, REPLACE)


def check_relation(value: Any) -> str:
    """Return a relation, or raise for what is none."""
    if not isinstance(value, str) or value not in RELATIONS:
        raise ValueError(f"neighbouring must be one of {list(RELATIONS)}; got {shown(value)}.")
    return value


def common_relation(relations: Iterable[str]) -> str | None:
    """Return the relation that guarantees about all given ones hold for, None if there is none.

    Notes
    -----
    Theorem F11.
    """
    found = set(relations)
    if len(found) <= 1:
        return next(iter(found), ADD_OR_REMOVE)
    return ZERO_OUT if found == {ADD_OR_REMOVE, ZERO_OUT} else None
