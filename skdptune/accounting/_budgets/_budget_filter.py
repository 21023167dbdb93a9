"""A filter that stops a search by threshold rounds before a pure budget can be exceeded."""

from __future__ import annotations

import numbers
from fractions import Fraction
from typing import Any

from skdptune._formatting import shown
from skdptune._running_budget import RunningBudget, one_at_a_time
from skdptune._validation import check_flag, check_integer, check_real
from skdptune.accounting._losses import LARGEST_LOSS

# What to do where the same filter is wanted twice.
INSTEAD = (
    "Make a filter of its own for another budget; processes share one budget by a "
    "skdptune.ledger.PrivacyLedger."
)


class BudgetExceededError(RuntimeError):
    """A round was recorded that the filter did not allow."""


class BudgetFilter(RunningBudget):
    r"""Keeps the cost of a threshold search within a pure budget, round by round.

    A round compares candidates with a noisy threshold, in order, and stops at the first that
    passes. A round with a hit costs `round_epsilon`, a round without costs half of it (see
    `doubling_threshold`). Check `may_continue` before each round, and pass its outcome to
    `record`. A search that stops no later than the filter says is `budget`-differentially private.

    Parameters
    ----------
    round_epsilon : float
        What a hit costs, in (0, 600].
    budget : float or None
        What the search may cost, at least `round_epsilon`. None means no budget; then
        `max_rounds` must be given.
    max_rounds : int, optional
        Most rounds of the search.

    Attributes
    ----------
    may_continue : bool
        Whether the next round may run: its worst outcome, a hit, still fits.
    spent : float
        What the rounds so far have cost.
    rounds : int
        Number of rounds so far.
    history : tuple of bool
        Outcomes so far, True for a hit.
    max_possible_rounds : int
        Most rounds that any search with this filter can have.
    max_possible_spent : float
        Most that any search with this filter can cost.

    Raises
    ------
    BudgetExceededError
        By `record`, for a round that may not run. The filter is left as it was.

    Notes
    -----
    Theorem N4.

    *Why the stop may depend on the outcomes.* Each outcome is charged its own cost, and the filter
    lets a round run only if either outcome keeps the sum within the budget: so it is at most the
    budget for **every** transcript at which a search can stop. This does not carry over to bounds
    with a delta, where the cost of a round must not depend on its outcome.

    *How many rounds.* With ``N = floor(2 budget / round_epsilon)`` half-rounds to spend, the
    next round may run while ``2 hits + misses <= N - 2``. Misses are cheapest, so no search has
    more than ``N - 1`` rounds, and all misses attain it; between a half and a whole
    `round_epsilon` is then left. All hits make ``floor(N / 2)`` rounds.

    *Rounding.* The count is made in whole half-rounds, after one exact division, and numbers
    count as they are written: 0.1 is one tenth, so that a budget of 1.0 holds ten rounds of
    0.1 (binary fractions would leave room for nine). A `fractions.Fraction` is taken as it is.

    Examples
    --------
    >>> from skdptune.accounting import BudgetFilter
    >>> budget_filter = BudgetFilter(round_epsilon=0.1, budget=0.3)
    >>> while budget_filter.may_continue:
    ...     budget_filter.record(hit=budget_filter.rounds == 1)
    >>> budget_filter.history
    (False, True, False, False)
    >>> budget_filter.spent, budget_filter.max_possible_rounds
    (0.25, 5)
    """

    _instead = INSTEAD

    __slots__ = ("_affordable", "_budget", "_history", "_max_rounds", "_round", "_used")

    def __init__(
        self,
        round_epsilon: float | Fraction,
        budget: float | Fraction | None,
        max_rounds: int | None = None,
    ) -> None:
        super().__init__()
        self._round = _positive(round_epsilon, "round_epsilon")
        self._budget = None if budget is None else _positive(budget, "budget")
        if max_rounds is not None:
            max_rounds = check_integer(max_rounds, name="max_rounds", lower=1)
        self._max_rounds = max_rounds
        self._affordable = self._half_rounds()
        self._used = 0
        # A tuple, so that what `history` has shown stays as it is.
        self._history: tuple[bool, ...] = ()

    def _half_rounds(self) -> int:
        """Return how many halves of `round_epsilon` may be spent."""
        if self._budget is None:
            if self._max_rounds is None:
                raise ValueError("budget must be given where max_rounds is not; got neither.")
            return 2 * self._max_rounds
        if self._budget < self._round:
            raise ValueError(
                f"budget must be at least round_epsilon ({shown(float(self._round))}), which one "
                f"hit costs; got {shown(float(self._budget))}."
            )
        halves = int(2 * self._budget / self._round)
        return halves if self._max_rounds is None else min(halves, 2 * self._max_rounds)

    @property
    def may_continue(self) -> bool:
        """Whether the next round may run."""
        return self._used + 2 <= self._affordable and not self._is_at_cap

    @property
    def _is_at_cap(self) -> bool:
        return self._max_rounds is not None and self.rounds >= self._max_rounds

    @property
    def spent(self) -> float:
        """What the rounds so far have cost."""
        return self._cost_of(self._used)

    @property
    def rounds(self) -> int:
        """Number of rounds so far."""
        return len(self._history)

    @property
    def history(self) -> tuple[bool, ...]:
        """Outcomes so far, True for a hit."""
        return self._history

    @property
    def max_possible_rounds(self) -> int:
        """Most rounds that any search with this filter can have."""
        within_budget = self._affordable - 1
        return within_budget if self._max_rounds is None else min(within_budget, self._max_rounds)

    @property
    def max_possible_spent(self) -> float:
        """Most that any search with this filter can cost."""
        return self._cost_of(self._affordable)

    @one_at_a_time
    def record(self, hit: bool) -> None:
        """Charge one round that has run.

        Parameters
        ----------
        hit : bool
            Whether a candidate passed the threshold.
        """
        check_flag(hit, name="hit")
        if not self.may_continue:
            raise BudgetExceededError(self._refusal())
        self._used += 2 if hit else 1
        self._history = (*self._history, bool(hit))

    def _refusal(self) -> str:
        advice = "Check may_continue before every round."
        if self._is_at_cap:
            return f"rounds must be at most {self._max_rounds}; got one more. {advice}"
        return (
            f"spent must leave {shown(float(self._round))} of the budget for the next round; got "
            f"{shown(self.spent)} spent of {shown(self._shown_budget)}. {advice}"
        )

    @property
    def _shown_budget(self) -> float | None:
        return None if self._budget is None else float(self._budget)

    def _cost_of(self, half_rounds: int) -> float:
        return float(half_rounds * self._round / 2)

    def __repr__(self) -> str:
        """Show the parameters and the state."""
        return (
            f"BudgetFilter(round_epsilon={float(self._round)!r}, budget={self._shown_budget!r}, "
            f"max_rounds={self._max_rounds!r}; spent={self.spent!r}, rounds={self.rounds})"
        )


def _positive(value: Any, name: str) -> Fraction:
    """Return a number of (0, 600] exactly as it is written."""
    number = check_real(value, name=name, lower=0.0, lower_open=True, upper=LARGEST_LOSS)
    if isinstance(value, numbers.Rational):
        # NumPy's integers are of limited size.
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(repr(number))
