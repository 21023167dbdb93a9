"""The largest number of correct guesses for any private mechanism, by linear programming."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.optimize import linprog


def largest_chance(
    n_right: int, n_guesses: int, n_canaries: int, points: Sequence[tuple[float, float]]
) -> float:
    """Return the largest probability of `n_right` correct guesses under points (epsilon, delta).

    A mechanism is a table: for each of all data sets the probabilities of all guesses. For each
    pair of neighbours and each point, the excess ``[p - exp(epsilon) q]+`` adds up to at most
    delta.
    """
    coins = list(itertools.product((-1, 1), repeat=n_canaries))
    guesses = [
        guess
        for guess in itertools.product((-1, 0, 1), repeat=n_canaries)
        if np.count_nonzero(guess) == n_guesses
    ]
    wide = len(guesses)
    pairs = [
        (one, other)
        for one, first in enumerate(coins)
        for other, second in enumerate(coins)
        if sum(a != b for a, b in zip(first, second, strict=True)) == 1
    ]
    n_table = len(coins) * wide
    blocks = [(pair, point) for pair in pairs for point in points]
    total = n_table + len(blocks) * wide
    rows, columns, values, limits = [], [], [], []
    n_rows = 0
    for place, ((one, other), (epsilon, delta)) in enumerate(blocks):
        start = n_table + place * wide
        for guess in range(wide):
            rows += [n_rows] * 3
            columns += [one * wide + guess, other * wide + guess, start + guess]
            values += [1.0, -np.exp(epsilon), -1.0]
            limits.append(0.0)
            n_rows += 1
        rows += [n_rows] * wide
        columns += range(start, start + wide)
        values += [1.0] * wide
        limits.append(delta)
        n_rows += 1
    won = np.zeros(total)
    for data, coin in enumerate(coins):
        for place, guess in enumerate(guesses):
            right = sum(a == b for a, b in zip(coin, guess, strict=True))
            won[data * wide + place] = -(right >= n_right) / len(coins)
    whole = sparse.kron(sparse.eye(len(coins)), np.ones((1, wide)))
    whole = sparse.hstack([whole, sparse.csr_matrix((len(coins), total - n_table))])
    solved = linprog(
        won,
        A_ub=sparse.csr_matrix((values, (rows, columns)), shape=(n_rows, total)),
        b_ub=limits,
        A_eq=whole,
        b_eq=np.ones(len(coins)),
        method="highs",
    )
    assert solved.status == 0
    return float(-solved.fun)
