"""The remaining allowance of an adaptive search, in shares of the fits that were paid for."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from skdptune.accounting import BudgetExceededError

FACTOR, N_RUNGS = 3, 3
# Shares of a trial's cost: all in one fit, or with a pruner one share for each rung.
WHOLE = (Fraction(1),)
RUNGS = tuple(
    Fraction(FACTOR**place, sum(FACTOR**other for other in range(N_RUNGS)))
    for place in range(N_RUNGS)
)
# Largest number of trials, as a multiple of the trials that could all climb to the end.
MOST_TIMES = 4


class Allowance:
    """Admit fits while their shares sum to at most the number of paid trials.

    Parameters
    ----------
    n_trials : int
        Number of trials that may climb to the end.
    rungs : sequence of Fraction
        Shares of the fits of a trial that climbs to the end.

    Notes
    -----
    Theorem G6. A fit of share f has a privacy curve below a Gaussian curve of f times the squared
    shift paid for a trial. It fails with f times the trial's probability. The same holds for its
    score. Shares are added exactly.
    """

    def __init__(self, n_trials: int, rungs: Sequence[Fraction]) -> None:
        self.n_trials, self.rungs = n_trials, tuple(rungs)
        self.climb = sum(self.rungs, Fraction(0))
        self.spent = Fraction(0)
        self.reserved = Fraction(0)
        self.n_asked = 0

    @property
    def most_trials(self) -> int:
        """Largest number of trials, including pruned ones."""
        return self.n_trials if self.rungs == WHOLE else MOST_TIMES * self.n_trials

    @property
    def n_left(self) -> int:
        """Number of trials that may be started now, if all of them climb to the end."""
        return int(min(self.left // self.climb, self.most_trials - self.n_asked))

    @property
    def left(self) -> Fraction:
        """The allowance that is neither spent nor reserved."""
        return self.n_trials - self.spent - self.reserved

    def ask(self) -> None:
        """Reserve the cost of one more trial that climbs to the end, or raise."""
        if self.n_left < 1:
            raise self.refusal()
        self.set_aside(self.climb)
        self.n_asked += 1

    def refusal(self) -> BudgetExceededError:
        """Return the error for one trial too many."""
        return BudgetExceededError(
            f"ask must be called at most as often as is paid for; got a call after "
            f"{self.n_asked} trials. Give more n_trials to start with."
        )

    def set_aside(self, share: Fraction) -> None:
        """Reserve the cost of future fits."""
        self.reserved += share

    def free(self, share: Fraction) -> None:
        """Release a reserved amount that was not used."""
        self.reserved -= share

    def count(self, shares: Sequence[Fraction]) -> None:
        """Count a trial that was begun before."""
        self.spent += sum(shares, Fraction(0))
        self.n_asked += 1

    def begin(self, place: int) -> None:
        """Spend the reserved cost of a trial's fit at a rung."""
        share = self.rungs[place]
        if self.spent + share > self.n_trials:
            raise BudgetExceededError(
                f"fits must be paid for; got one of a share of {share}, and {self.spent} of "
                f"{self.n_trials} are spent."
            )
        self.spent += share
        self.reserved -= share

    def close(self, n_begun: int) -> None:
        """Release what a trial has not used of its reservation."""
        self.free(sum(self.rungs[n_begun:], Fraction(0)))
