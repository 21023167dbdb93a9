"""An example of the paper on Pareto fronts: the sparse vector technique, of parameters b and C.

Of 100 queries in random order, 10 are 1. The utility is an exact expectation, so that the front of
a dense grid is near the true one.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy import special

REFERENCE = (10.0, 1.0)
N_QUERIES, N_ONES = 100, 10
VECTOR_SPACE = {"b": (1e-2, 1e2, "log"), "C": (1, 30)}


def vector_privacy(params: dict[str, Any]) -> float:
    third = (2.0 * params["C"]) ** (1 / 3)
    return (1.0 + third) * (1.0 + third**2) / params["b"]


def vector_utility(params: dict[str, Any]) -> float:
    """Return the expected F1 score, exact except for one-dimensional quadrature.

    Given the threshold's noise, queries exceed it independently: ones with probability p, zeros
    with q. In random order, the answers are a random order of hits and misses, cut at the C-th
    hit: of the hits a uniform subset of size min(hits, C) is kept.
    """
    bound = int(params["C"])
    threshold = params["b"] / (1.0 + (2.0 * bound) ** (1 / 3))
    noise = params["b"] - threshold
    limits = 0.5 + threshold * _laplace_quantiles()
    true = _binomial(N_ONES, _exceeds(limits - 1.0, noise))
    false = _binomial(N_QUERIES - N_ONES, _exceeds(limits, noise))
    expected = np.einsum("ni,ij,nj->n", true, _scores(bound), false, optimize=True)
    return float(np.clip(expected.mean(), 0.0, 1.0))


def _exceeds(limits: np.ndarray, scale: float) -> np.ndarray:
    tail = 0.5 * np.exp(-np.abs(limits) / scale)
    return np.where(limits >= 0, tail, 1.0 - tail)


@functools.lru_cache(maxsize=1)
def _laplace_quantiles() -> np.ndarray:
    levels = (np.arange(200) + 0.5) / 200
    return np.where(levels < 0.5, np.log(2 * levels), -np.log(2 * (1 - levels)))


@functools.lru_cache(maxsize=2)
def _log_choices(number: int) -> np.ndarray:
    counts = np.arange(number + 1)
    return np.asarray(-special.betaln(counts + 1, number - counts + 1) - np.log(number + 1))


def _binomial(number: int, probabilities: np.ndarray) -> np.ndarray:
    """Return the distributions of the number of hits, one row per probability."""
    counts = np.arange(number + 1)
    p = np.clip(probabilities, 1e-300, 1.0 - 1e-16)[:, np.newaxis]
    logs = counts * np.log(p) + (number - counts) * np.log1p(-p)
    return np.exp(_log_choices(number) + logs)


@functools.cache
def _scores(bound: int) -> np.ndarray:
    """Return the expected F1 score by the numbers of true and false hits; C hits are kept."""
    scores = np.zeros((N_ONES + 1, N_QUERIES - N_ONES + 1))
    for true, false in np.ndindex(scores.shape):
        kept = min(true + false, bound)
        if kept:
            # F1 = 2 true / (kept + ones) is linear in the true hits that are kept.
            expected = kept * true / (true + false)
            scores[true, false] = 2 * expected / (kept + N_ONES)
    return scores


def simulated_vector_utility(params: dict[str, Any], rng: np.random.Generator) -> float:
    """Return the F1 score of one run of the algorithm."""
    answers = rng.permutation(np.arange(N_QUERIES) < N_ONES)
    bound = int(params["C"])
    threshold = params["b"] / (1.0 + (2.0 * bound) ** (1 / 3))
    limit = 0.5 + rng.laplace(scale=threshold)
    released = np.zeros(N_QUERIES, dtype=bool)
    for place, answer in enumerate(answers):
        if answer + rng.laplace(scale=params["b"] - threshold) >= limit:
            released[place] = True
            if released.sum() >= bound:
                break
    return 2.0 * float((released & answers).sum()) / float(released.sum() + N_ONES)
