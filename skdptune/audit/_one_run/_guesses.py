"""Guesses of which canaries were included, by their scores, and how many of them are right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdptune._formatting import shown
from skdptune._validation import check_integer

FloatArray = NDArray[np.float64]

# Shares of all canaries that are guessed, half of them to be in and half of them not: where the
# noise is Gaussian, few sure guesses say more than all; where it is lacking, all are sure. Fewer
# than so many say hardly anything.
_SHARES = (0.75, 0.5, 0.25, 0.125, 0.0625)
_FEWEST = 12


class Guesses(NamedTuple):
    """How many guesses of each kind are made, and how many of all are right.

    Attributes
    ----------
    n_in, n_out : int
        Canaries guessed to be in the data, and not to be.
    n_right : int
    """

    n_in: int
    n_out: int
    n_right: int

    @property
    def n_guesses(self) -> int:
        """Number of guesses of both kinds."""
        return self.n_in + self.n_out

    @property
    def share_of_slots(self) -> float:
        """Share of pairs of a canary and a kind of guess that there may be: half for one kind."""
        return 1.0 if self.n_in and self.n_out else 0.5


def numbers_of_guesses(n_canaries: int, given: Any = None) -> list[tuple[int, int]]:
    """Return how many canaries are guessed to be in, and not: several pairs to be tried.

    Parameters
    ----------
    n_canaries : int
    given : None, int, or pair of int
        A number of guesses in all, or of each kind; None for several, which follow from the
        number of canaries alone.

    Notes
    -----
    Theorem A6.
    """
    if given is None:
        sizes = {int(n_canaries * share / 2) for share in _SHARES}
        # Of sure guesses all are right only if no more are made than there are of each kind.
        sizes.add(int(n_canaries / 2 - math.sqrt(n_canaries)))
        kept = sorted((size for size in sizes if 2 * size >= _FEWEST), reverse=True)
        return [(size, size) for size in kept] or [(n_canaries // 2, n_canaries // 2)]
    if isinstance(given, tuple):
        if len(given) != 2:
            raise ValueError(f"n_guesses must be a number or a pair of them; got {shown(given)}.")
        pair = tuple(check_integer(one, name="each of n_guesses", lower=0) for one in given)
    else:
        total = check_integer(given, name="n_guesses", lower=1)
        pair = (total - total // 2, total // 2)
    if not 1 <= sum(pair) <= n_canaries:
        raise ValueError(
            f"n_guesses must be between 1 and the number of canaries, {n_canaries}; got "
            f"{shown(given)}."
        )
    return [(pair[0], pair[1])]


def guessed(
    scores: FloatArray, is_in: NDArray[np.bool_], sizes: Sequence[tuple[int, int]]
) -> list[Guesses]:
    """Return how many guesses are right: the highest scores are in, the lowest are not.

    Parameters
    ----------
    scores : ndarray of shape (n_canaries,)
        Those of equal scores are taken in their order, which no coin has chosen.
    is_in : ndarray of bool
        Which canaries were included.
    sizes : sequence of (n_in, n_out)
    """
    order = np.argsort(-np.nan_to_num(scores), kind="stable")
    found = is_in[order]
    size = found.size
    return [
        Guesses(high, low, int(found[:high].sum() + low - found[size - low :].sum()))
        for high, low in sizes
    ]
