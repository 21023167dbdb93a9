"""How many of so many guesses can be right under an (epsilon, delta) guarantee.

**Guarantee** (Theorem A4). Each of m canaries is included by a fair coin of its own, and
neighbours are data sets that differ in one coin. Whoever guesses r coins from what an (epsilon,
delta)-private fit shows is right v times or more with probability of at most
`chance_of_right_guesses`.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import special, stats

_LARGEST_EPSILON = 1e3
_N_HALVINGS = 60


def chance_of_right_guesses(
    n_right: int, n_guesses: int, n_canaries: int, epsilon: float, delta: float
) -> float:
    """Bound the chance that so many guesses, or more, are right.

    Parameters
    ----------
    n_right, n_guesses, n_canaries : int
        Numbers v, r and m; r is fixed before anything is seen, v <= r <= m.
    epsilon, delta : float
        The guarantee, for one coin.

    Returns
    -------
    float

    Notes
    -----
    Theorem A4: ``f(v) + m delta / (1 + exp(epsilon)) * peaks(r)``, where f is the upper tail of a
    binomial distribution of r trials with the chance q of randomised response.
    """
    rate = float(special.expit(epsilon))
    tail = float(stats.binom.sf(n_right - 1, n_guesses, rate))
    if delta > 0.0 and n_guesses > 0:
        tail += n_canaries * delta * (1.0 - rate) * mean_peak(n_guesses, rate)
    return min(tail, 1.0)


@functools.lru_cache(maxsize=256)
def mean_peak(n_guesses: int, rate: float) -> float:
    """Return the mean of the largest probabilities of binomials of 0 to n - 1 trials."""
    trials = np.arange(n_guesses)
    modes = np.floor((trials + 1) * rate)
    return float(stats.binom.pmf(np.minimum(modes, trials), trials, rate).mean())


def counted_epsilon(
    n_right: int, n_guesses: int, n_canaries: int, delta: float, risk: float
) -> float:
    """Return an epsilon that is above the true one at `delta` with a chance of at most `risk`.

    Notes
    -----
    Theorem A4. A guarantee holds for all larger epsilons, too, so that whichever epsilon is
    refuted refutes all smaller ones: the bound is one that is refuted.
    """
    if _is_possible(0.0, n_right, n_guesses, n_canaries, delta, risk):
        return 0.0
    low, high = 0.0, 1.0
    while not _is_possible(high, n_right, n_guesses, n_canaries, delta, risk):
        low, high = high, 2.0 * high
        if high > _LARGEST_EPSILON:
            return low
    for _ in range(_N_HALVINGS):
        middle = 0.5 * (low + high)
        if _is_possible(middle, n_right, n_guesses, n_canaries, delta, risk):
            high = middle
        else:
            low = middle
    return low


def _is_possible(
    epsilon: float, n_right: int, n_guesses: int, n_canaries: int, delta: float, risk: float
) -> bool:
    chance = chance_of_right_guesses(n_right, n_guesses, n_canaries, epsilon, delta)
    return math.isnan(chance) or chance > risk
