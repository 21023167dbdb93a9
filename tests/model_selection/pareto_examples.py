"""The two worked examples of the paper on Pareto fronts, and problems with known fronts.

Both functions are exact expectations, so that the front of a dense grid is near the true one.

1. Logistic regression with output perturbation: (gamma, sigma), the L2 penalty and the noise's
   standard deviation. Wu et al. (2017), algorithm 2: for a gamma-strongly convex loss of Lipschitz
   constant L the sensitivity of permutation-based gradient descent with batches of one record and
   steps 1/(gamma t) is 2 L / (gamma n). epsilon is the Gaussian mechanism's at delta=1e-6, exact.
   The utility is the accuracy on the data, whose expectation over Gaussian noise is a mean of
   normal probabilities: a record's margin is normal with deviation sigma * ||x||.
2. The sparse vector technique: (b, C), 100 queries of which 10 are 1, in random order.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy import optimize, special
from sklearn.linear_model import LogisticRegression

REFERENCE = (10.0, 1.0)
N_RECORDS, DELTA = 40_000, 1e-6
N_QUERIES, N_ONES = 100, 10
REGRESSION_SPACE = {"gamma": (1e-4, 1.0, "log"), "sigma": (0.1, 10.0, "log")}
VECTOR_SPACE = {"b": (1e-2, 1e2, "log"), "C": (1, 30)}


def regression_privacy(params: dict[str, Any]) -> float:
    sensitivity = 2.0 / (params["gamma"] * N_RECORDS)
    return gaussian_epsilon(params["sigma"] / sensitivity)


def gaussian_epsilon(noise: float, delta: float = DELTA) -> float:
    """Return the epsilon of the Gaussian mechanism (Balle and Wang, 2018, theorem 8)."""

    def excess(epsilon: float) -> float:
        left = special.ndtr(0.5 / noise - epsilon * noise)
        right = special.log_ndtr(-0.5 / noise - epsilon * noise)
        return float(left - np.exp(epsilon + right) - delta)

    if excess(0.0) <= 0.0:
        return 0.0
    top = 1.0
    while excess(top) > 0.0:
        top *= 2.0
        if top > 1e6:
            return float("inf")
    return float(optimize.brentq(excess, 0.0, top, xtol=1e-12, rtol=1e-10))


def regression_utility(params: dict[str, Any]) -> float:
    margins, norms = _margins(round(float(np.log(params["gamma"])), 3))
    return float(special.ndtr(margins / (params["sigma"] * norms)).mean())


@functools.cache
def _margins(log_gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return signed margins and norms of the records for a penalty, cached on a fine grid."""
    records, labels = _records()
    margins = (2 * labels - 1) * (records @ fitted_weights(log_gamma))
    return margins, np.linalg.norm(records, axis=1)


def fitted_weights(log_gamma: float) -> np.ndarray:
    """Return the minimiser of the mean logistic loss plus gamma / 2 times the squared norm."""
    records, labels = _records()
    penalty = 1.0 / (np.exp(log_gamma) * len(records))
    model = LogisticRegression(C=penalty, fit_intercept=False, tol=1e-5, max_iter=500)
    return np.asarray(model.fit(records, labels).coef_[0])


@functools.lru_cache(maxsize=1)
def _records() -> tuple[np.ndarray, np.ndarray]:
    """Return sparse binary records in the unit ball, as those of Adult are."""
    rng = np.random.default_rng(20)
    binary = (rng.random((400, 20)) < rng.uniform(0.1, 0.6, size=20)).astype(float)
    binary[:, 0] = 1.0
    records = binary / np.linalg.norm(binary, axis=1, keepdims=True)
    logits = 14.0 * records @ rng.normal(size=20) - 2.0
    return records, (rng.random(400) < special.expit(logits)).astype(int)


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
