"""Filters that stop a search before it exceeds a budget: for pure rounds, and for sums."""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from typing import Any, ClassVar, Self

from skdptune._formatting import shown
from skdptune._running_budget import RunningBudget, one_at_a_time
from skdptune._validation import check_flag, check_integer, check_kind, check_real
from skdptune.accounting._loss_distribution import LARGEST_LOSS
from skdptune.accounting._profile import PrivacyProfile

# Advice if the same filter is needed twice.
INSTEAD = (
    "Create a separate filter for another budget. Processes share one budget through a "
    "skdptune.ledger.PrivacyLedger."
)


class BudgetExceededError(RuntimeError):
    """A round was recorded that the filter did not allow."""


class BudgetFilter(RunningBudget):
    r"""Keeps the cost of a threshold search within a pure budget, round by round.

    A round compares candidates with a noisy threshold, in order, and stops at the first one that
    passes. A round with a hit costs `round_epsilon`, a round without a hit costs half of it (see
    `doubling_threshold`). Check `may_continue` before each round, and pass its outcome to
    `record`. A search that stops when the filter requires it, or earlier, is
    `budget`-differentially private.

    Parameters
    ----------
    round_epsilon : float
        Cost of a round with a hit, in (0, 600].
    budget : float or None
        Largest cost of the search, at least `round_epsilon`. None means no budget; then
        `max_rounds` is required.
    max_rounds : int, optional
        Largest number of rounds.

    Attributes
    ----------
    may_continue : bool
        Whether the next round may run: its most expensive outcome, a hit, still fits.
    spent : float
        Cost of the rounds so far.
    rounds : int
        Number of rounds so far.
    history : tuple of bool
        Outcomes so far, True for a hit.
    max_possible_rounds : int
        Largest number of rounds of any search with this filter.
    max_possible_spent : float
        Largest cost of any search with this filter.

    Raises
    ------
    BudgetExceededError
        By `record`, for a round that may not run. The filter is not changed.

    Notes
    -----
    Theorem N4.

    *Why the stop may depend on the outcomes.* Each outcome is charged its own cost, and the filter
    only lets a round run if both outcomes keep the sum within the budget. So the sum is at most
    the budget for **every** transcript at which a search can stop. This is not true for bounds
    with a delta, where the cost of a round must not depend on its outcome.

    *Number of rounds.* Let ``N = floor(2 budget / round_epsilon)`` be the number of half-rounds to
    spend. The next round may run while ``2 hits + misses <= N - 2``. Misses cost least, so no
    search has more than ``N - 1`` rounds. A search with only misses reaches this number, and
    leaves between a half and a whole `round_epsilon`. A search with only hits has ``floor(N / 2)``
    rounds.

    *Rounding.* Half-rounds are counted as integers, after one exact division. Numbers are read as
    decimals: 0.1 is one tenth, so a budget of 1.0 allows ten rounds of 0.1 (binary fractions would
    allow nine). A `fractions.Fraction` is used exactly.

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
        # A tuple, so that earlier results of `history` do not change.
        self._history: tuple[bool, ...] = ()

    def _half_rounds(self) -> int:
        """Return how many halves of `round_epsilon` may be spent."""
        if self._budget is None:
            if self._max_rounds is None:
                raise ValueError("budget must be given if max_rounds is not; got neither.")
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
        """Cost of the rounds so far."""
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
        """Largest number of rounds of any search with this filter."""
        within_budget = self._affordable - 1
        return within_budget if self._max_rounds is None else min(within_budget, self._max_rounds)

    @property
    def max_possible_spent(self) -> float:
        """Largest cost of any search with this filter."""
        return self._cost_of(self._affordable)

    @one_at_a_time
    def record(self, hit: bool) -> None:
        """Charge a round that has run.

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
            f"spent must leave {shown(float(self._round))} of the budget for the next round; "
            f"got {shown(self.spent)} spent of {shown(self._shown_budget)}. {advice}"
        )

    @property
    def _shown_budget(self) -> float | None:
        return None if self._budget is None else float(self._budget)

    def _cost_of(self, half_rounds: int) -> float:
        return float(half_rounds * self._round / 2)

    def __repr__(self) -> str:
        """Return the parameters and the state as text."""
        return (
            f"BudgetFilter(round_epsilon={float(self._round)!r}, budget={self._shown_budget!r}, "
            f"max_rounds={self._max_rounds!r}; spent={self.spent!r}, rounds={self.rounds})"
        )


def _positive(value: Any, name: str) -> Fraction:
    """Return a number in (0, 600], exactly as its decimal representation."""
    number = check_real(value, name=name, lower=0.0, lower_open=True, upper=LARGEST_LOSS)
    if isinstance(value, numbers.Rational):
        # NumPy's integers have a limited size.
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(repr(number))


# Filters that add up two numbers of each release -----------------------------------------

# Rounding may make sums of shares exceed a budget; the guarantee includes this excess.
SLACK = 1e-12


def check_total(epsilon: float, delta: float, failure: float) -> tuple[float, float, float]:
    """Return a total, and the part of its delta that is set aside, or raise."""
    epsilon = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True, upper_open=True)
    delta = check_real(delta, name="delta", lower=0.0, upper=1.0, lower_open=True, upper_open=True)
    return (
        epsilon,
        delta,
        check_real(failure, name="failure", lower=0.0, upper=delta, upper_open=True),
    )


class SummingFilter(RunningBudget):
    """Admits releases within a budget and a failure probability; subclasses define their meaning.

    Parameters
    ----------
    budget, failure : float
        Limits on the sums of the charges of all releases.
    profile : PrivacyProfile
        The cost of all releases within these limits together, whichever are chosen.
    """

    __slots__ = ("_budget", "_failure", "_profile", "_spent")

    _instead = INSTEAD

    # Meaning of the budget, for messages.
    _unit: ClassVar[str] = "budget"

    def __init__(self, budget: float, failure: float, profile: PrivacyProfile) -> None:
        super().__init__()
        self._budget, self._failure, self._profile = budget, failure, profile
        self._spent: tuple[tuple[float, float], ...] = ()

    def emptied(self) -> Self:
        """Return a new filter with the same total, its own budget, and nothing recorded."""
        other = type(self).__new__(type(self))
        for kind in type(self).__mro__:
            for name in getattr(kind, "__slots__", ()):
                setattr(other, name, getattr(self, name))
        SummingFilter.__init__(other, self._budget, self._failure, self._profile)
        return other

    def _charge(self, part: PrivacyProfile) -> tuple[float, float]:
        """Return the charges of a release, to the budget and to the failure."""
        raise NotImplementedError

    @property
    def budget(self) -> float:
        """Limit on the sum of charges to the budget."""
        return self._budget

    @property
    def failure(self) -> float:
        """Limit on the sum of the probabilities of revealing everything."""
        return self._failure

    @property
    def profile(self) -> PrivacyProfile:
        """The cost of all releases together, whichever are chosen."""
        return self._profile

    @property
    def n_parts(self) -> int:
        """Number of releases so far."""
        return len(self._spent)

    @property
    def spent(self) -> float:
        """Part of `budget` used by the releases so far."""
        return math.fsum(budget for budget, _ in self._spent)

    @property
    def spent_failure(self) -> float:
        """Part of `failure` used by the releases so far."""
        return math.fsum(failure for _, failure in self._spent)

    def fits(self, part: PrivacyProfile, count: int = 1) -> bool:
        """Return whether one more release fits, or several with the same cost.

        Parameters
        ----------
        part : PrivacyProfile
            The cost of a single release, given everything that was released before.
        count : int, default=1
            Number of releases.
        """
        count = check_integer(count, name="count", lower=1)
        *before, (budget, failure) = self._with(part)
        return self._is_within((*before, (count * budget, count * failure)))

    @one_at_a_time
    def record(self, part: PrivacyProfile) -> None:
        """Charge a release before it is made.

        Parameters
        ----------
        part : PrivacyProfile
            Its cost, given everything that was released before.
        """
        spent = self._with(part)
        if not self._is_within(spent):
            budget, failure = spent[-1]
            raise BudgetExceededError(
                f"part must fit into the remaining budget, {self.budget - self.spent:.6g} of "
                f"{self._unit} and {self.failure - self.spent_failure:.6g} of failure; got "
                f"{budget:.6g} and {failure:.6g}. Check fits before every release."
            )
        self._spent = spent

    def _with(self, part: PrivacyProfile) -> tuple[tuple[float, float], ...]:
        check_kind(part, name="part", kind=PrivacyProfile, domain="a PrivacyProfile")
        return (*self._spent, self._charge(part))

    def _is_within(self, spent: tuple[tuple[float, float], ...]) -> bool:
        budget, failure = (math.fsum(column) for column in zip(*spent, strict=True))
        return budget <= self._budget * (1.0 + SLACK) and failure <= self._failure * (1.0 + SLACK)

    def _shown(self, parameters: str) -> str:
        return (
            f"{type(self).__name__}({parameters}budget={self._budget:.6g}, "
            f"failure={self._failure:g}; spent={self.spent:.6g}, n_parts={self.n_parts})"
        )
