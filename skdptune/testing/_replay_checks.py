"""Check of an estimator on neighbouring data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdptune._compat import safe_indexing
from skdptune.testing._replay import replay_neighbours
from skdptune.testing._subject import CheckDoesNotApply, Subject, require

_REPEATS = 6


def check_neighbours(subject: Subject) -> None:
    """Check that a record changes no more of what a fit publishes than the profile allows."""
    if math.isinf(subject.profile().epsilon(0.5)):
        raise CheckDoesNotApply("claims no privacy with these parameters")
    last = _farthest(subject.X)
    others = np.delete(np.arange(subject.n_samples), last)
    record = _at(subject.X, last)
    targets = None
    if subject.y is not None:
        targets, record = safe_indexing(subject.y, others), (record, _at(subject.y, last))
    rows = safe_indexing(subject.X, others)
    replay = replay_neighbours(subject.estimator, rows, targets, record, n_repeats=_REPEATS)
    found = [f"{finding.attribute} {finding.message}" for finding in replay.findings]
    require(
        not found, f"a record must change no more than the profile allows; {'; '.join(found)}."
    )


def _farthest(rows: Any) -> int:
    """Return the place of the longest record, or of the last where they are no numbers."""
    kind = getattr(getattr(rows, "dtype", None), "kind", "")
    if kind not in tuple("iuf") or not isinstance(rows, np.ndarray):
        return -1
    return int(np.argmax((rows.reshape(len(rows), -1).astype(np.float64) ** 2).sum(axis=1)))


def _at(rows: Any, place: int) -> Any:
    return rows.iloc[place] if hasattr(rows, "iloc") else rows[place]
