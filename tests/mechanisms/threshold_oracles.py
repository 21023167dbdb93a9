"""Slow and exact: the distribution of doubling threshold searches, integrated and enumerated."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

PIECE_NODES, PIECE_WEIGHTS = np.polynomial.legendre.leggauss(16)


def laplace_nodes(scale: float, width: float, kinks) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights that integrate over Laplace noise, smooth between the kinks."""
    ends = np.arange(-45.0 * scale, 45.0 * scale, min(scale, width))
    ends = np.unique(np.concatenate([ends, [0.0, 45.0 * scale], np.asarray(kinks, dtype=float)]))
    ends = ends[np.abs(ends) <= 45.0 * scale]
    middles, halves = (ends[1:] + ends[:-1]) / 2.0, np.diff(ends) / 2.0
    nodes = (middles[:, None] + halves[:, None] * PIECE_NODES).ravel()
    weights = (halves[:, None] * PIECE_WEIGHTS).ravel()
    return nodes, weights * np.exp(-np.abs(nodes) / scale) / (2.0 * scale)


def laplace_cdf(x: np.ndarray) -> np.ndarray:
    tail = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0.0, tail, 1.0 - tail)


def outcomes_given(threshold: np.ndarray, utilities, scale: float) -> np.ndarray:
    """Return the chances that each candidate is the first to pass, and last that of a miss."""
    below = laplace_cdf((threshold - np.asarray(utilities)[:, None]) / scale)
    above = laplace_cdf((np.asarray(utilities)[:, None] - threshold) / scale)
    none_before = np.cumprod(np.vstack([np.ones_like(threshold), below]), axis=0)
    return np.vstack([none_before[:-1] * above, none_before[-1]])


def transcripts(
    count: int, levels: int, max_rounds: int, max_hits: float, halves: float
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield every search's outcomes (count stands for a miss) and its thresholds in levels."""
    stack = [((), (), 0, 1)]
    while stack:
        outcomes, thresholds, level, step = stack.pop()
        hits = sum(outcome < count for outcome in outcomes)
        used = 2 * hits + (len(outcomes) - hits)
        over = len(outcomes) >= max_rounds or hits >= max_hits or used + 2 > halves
        if step == 0 or level >= levels or over:
            yield outcomes, thresholds
            continue
        proposed = (*thresholds, level + step)
        stack.append(((*outcomes, count), proposed, level, step // 2))
        for index in range(count):
            stack.append(((*outcomes, index), proposed, level + step, 2 * step))


def transcript_distribution(search, utilities, granularity: float, *, shrink: float = 1.0) -> dict:
    """Return the probability of every transcript of a fresh search from 0, its noise shrunk."""
    levels = math.ceil(1.0 / granularity)
    scales = search.threshold_scale * shrink, search.candidate_scale * shrink
    plan = search._plan
    halves = math.inf if plan.budget is None else 2 * plan.budget / plan.round_epsilon
    rounds, hits = search.max_rounds or math.inf, search.max_hits or math.inf
    found = list(transcripts(len(utilities), levels, rounds, hits, halves))
    asked = sorted({level for _, thresholds in found for level in thresholds})
    kinks = [u - level * granularity for u in utilities for level in asked]
    nodes, weights = laplace_nodes(scales[0], scales[1], kinks)
    given = {a: outcomes_given(a * granularity + nodes, utilities, scales[1]) for a in asked}
    if plan.redraws:
        each = {a: chances @ weights for a, chances in given.items()}
        return {o: math.prod(each[a][i] for i, a in zip(o, t, strict=True)) for o, t in found}
    return {
        o: float(weights @ math.prod(given[a][i] for i, a in zip(o, t, strict=True)))
        for o, t in found
    }
