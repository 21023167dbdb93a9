"""What the library itself knows of a release."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# A fitted search and the part of its report that candidates are in.
_OF_SEARCHES = re.compile(r"(^|\W)(\w*SearchCV|selection)\b")


@dataclass(frozen=True)
class ReleaseFacts:
    """What is known of a release, or of all that were made from a data set.

    Parameters
    ----------
    name : str
        What was released.
    epsilon, delta : float
        The guarantee.
    neighbouring : str
        How neighbouring data sets differ.
    unit : str
        What one record is, where it is known; else empty.
    assumptions : tuple of str
        What must hold, and what is taken to be public.
    composition : str
        How costs were added up.
    tuning : str
        Whether the cost of choosing hyperparameters is part of the guarantee.
    other_releases : str
        What is known of other releases from the same data.
    tree : str
        All parts with their costs, as it is printed.
    is_continual : bool
        Whether more releases may follow within the same guarantee.
    """

    name: str
    epsilon: float
    delta: float
    neighbouring: str
    unit: str
    assumptions: tuple[str, ...]
    composition: str
    tuning: str
    other_releases: str
    tree: str
    is_continual: bool


def includes_tuning(names: Iterable[str]) -> bool:
    """Return whether a search is among the names of what was released and of its parts."""
    return any(_OF_SEARCHES.search(name) for name in names)
