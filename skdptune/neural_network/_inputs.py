"""Conversion of records and targets to the arrays of 32-bit numbers that nets take."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def as_array(values: Any) -> Any:
    """Return torch tensors as NumPy arrays, and anything else as it is."""
    if isinstance(values, torch.Tensor):
        return values.detach().cpu().numpy()
    return values


def own_array(rows: np.ndarray, given: Any) -> np.ndarray:
    """Return rows in memory that is not the caller's, in C order."""
    is_own = rows.flags.c_contiguous and rows.flags.writeable
    if is_own and isinstance(given, np.ndarray) and not np.may_share_memory(rows, given):
        return rows
    return np.array(rows, order="C")


def codes_of(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return labels, each among `classes`, as numbers 0, 1, ...: their positions there."""
    if labels.size == 0:
        return np.zeros(0, dtype=np.int64)
    return np.searchsorted(classes, labels).astype(np.int64)


def as_columns(targets: np.ndarray) -> np.ndarray:
    """Return a copy of targets as 32-bit numbers, one column for each."""
    columns = targets[:, None] if targets.ndim == 1 else targets
    return np.array(columns, dtype=np.float32, order="C")
