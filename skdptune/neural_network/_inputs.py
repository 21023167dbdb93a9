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


def codes_of(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return labels as numbers 0, 1, ...: their positions in `classes`, which increases."""
    if labels.size == 0:
        return np.zeros(0, dtype=np.int64)
    codes = np.minimum(np.searchsorted(classes, labels), classes.size - 1)
    if not np.array_equal(classes[codes], labels):
        raise ValueError("y must hold only labels named in classes; got others.")
    return codes.astype(np.int64)


def as_columns(targets: np.ndarray) -> np.ndarray:
    """Return targets as 32-bit numbers, one column for each."""
    columns = targets[:, None] if targets.ndim == 1 else targets
    return np.ascontiguousarray(columns, dtype=np.float32)
