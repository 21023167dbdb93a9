"""Data that are read piece by piece: memory-mapped arrays, dask arrays, iterators of chunks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from skdptune.base import target_array

# Rows of one piece of a memory-mapped array; they are in memory at the same time.
_ROWS = 2**16


def is_streamed(X: Any) -> bool:
    """Return whether data are to be read piece by piece.

    Parameters
    ----------
    X : object
        A memory-mapped array, a dask array, or an iterator (such as a generator).
    """
    return isinstance(X, np.memmap) or _is_dask(X) or isinstance(X, Iterator)


def chunks_of(X: Any, y: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """Iterate over pieces of rows and their targets.

    Parameters
    ----------
    X : numpy.memmap, dask.array.Array or iterator of pairs (X_chunk, y_chunk)
    y : array-like or dask.array.Array; None with an iterator of pairs

    Yields
    ------
    rows, targets : array-like, ndarray
    """
    if isinstance(X, Iterator):
        yield from _pairs(X, y)
        return
    if y is None:
        raise ValueError("y must be given with rows that are an array; got None.")
    if _is_dask(X):
        yield from _dask_chunks(X, y)
        return
    targets = target_array(y)
    if X.ndim != 2 or targets.shape != X.shape[:1]:
        raise ValueError(
            "X and y must be of shapes (n_samples, n_features) and (n_samples,); got "
            f"{X.shape} and {targets.shape}."
        )
    for start in range(0, X.shape[0], _ROWS):
        yield X[start : start + _ROWS], targets[start : start + _ROWS]


def _pairs(X: Iterator[Any], y: Any) -> Iterator[tuple[Any, np.ndarray]]:
    if y is not None:
        raise ValueError("y must be None with an iterator of chunks, which brings its targets.")
    for pair in X:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                "an iterator of chunks must give pairs (X_chunk, y_chunk); got "
                f"{type(pair).__name__}."
            )
        yield pair[0], target_array(pair[1])


def _is_dask(X: Any) -> bool:
    # Whoever passes a dask array has imported dask.
    arrays = sys.modules.get("dask.array")
    return arrays is not None and isinstance(X, arrays.Array)


def _dask_chunks(X: Any, y: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Compute a dask array's blocks of rows one after the other."""
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional; got {X.ndim} dimensions.")
    X = X.rechunk({1: -1})
    if not _is_dask(y):
        y = target_array(y)
    is_known = not any(np.isnan(size) for size in X.chunks[0])
    if is_known and np.shape(y) != X.shape[:1]:
        raise ValueError(f"y must be of shape {X.shape[:1]}; got {np.shape(y)}.")
    start = 0
    for index in range(X.numblocks[0]):
        rows = X.blocks[index].compute()
        stop = start + rows.shape[0]
        # Blocks of unknown length line up with those of the targets, or the chunk is refused.
        part = y[start:stop] if is_known or not _is_dask(y) else y.blocks[index]
        yield np.asarray(rows), np.asarray(part.compute() if _is_dask(y) else part)
        start = stop
