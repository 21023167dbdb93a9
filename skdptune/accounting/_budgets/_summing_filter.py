"""What filters have in common that add up two numbers of each release."""

from __future__ import annotations

import math
from typing import ClassVar, Self

from skdptune._running_budget import RunningBudget, one_at_a_time
from skdptune._validation import check_integer, check_kind
from skdptune.accounting._budgets._budget_filter import INSTEAD, BudgetExceededError
from skdptune.accounting._profile import PrivacyProfile

# Sums of shares of a budget may exceed it by rounding; the guarantee is made for that much more.
SLACK = 1e-12


class SummingFilter(RunningBudget):
    """Admits releases while a budget and a failure last; what they mean is up to subclasses.

    Parameters
    ----------
    budget, failure : float
        What the charges of all releases may sum to.
    profile : PrivacyProfile
        What releases within these totals cost together, whichever are chosen.
    """

    __slots__ = ("_budget", "_failure", "_profile", "_spent")

    _instead = INSTEAD

    # What the budget is made of, for messages.
    _unit: ClassVar[str] = "budget"

    def __init__(self, budget: float, failure: float, profile: PrivacyProfile) -> None:
        super().__init__()
        self._budget, self._failure, self._profile = budget, failure, profile
        self._spent: tuple[tuple[float, float], ...] = ()

    def emptied(self) -> Self:
        """Return another filter of the same total, with nothing recorded: a budget of its own."""
        other = type(self).__new__(type(self))
        for kind in type(self).__mro__:
            for name in getattr(kind, "__slots__", ()):
                setattr(other, name, getattr(self, name))
        SummingFilter.__init__(other, self._budget, self._failure, self._profile)
        return other

    def _charge(self, part: PrivacyProfile) -> tuple[float, float]:
        """Return what a release takes of the budget and of the failure."""
        raise NotImplementedError

    @property
    def budget(self) -> float:
        """What releases may take of it in total."""
        return self._budget

    @property
    def failure(self) -> float:
        """What the probabilities of revealing everything may sum to."""
        return self._failure

    @property
    def profile(self) -> PrivacyProfile:
        """What all releases cost together, whichever are chosen."""
        return self._profile

    @property
    def n_parts(self) -> int:
        """Number of releases so far."""
        return len(self._spent)

    @property
    def spent(self) -> float:
        """What the releases so far have used of `budget`."""
        return math.fsum(budget for budget, _ in self._spent)

    @property
    def spent_failure(self) -> float:
        """What the releases so far have used of `failure`."""
        return math.fsum(failure for _, failure in self._spent)

    def fits(self, part: PrivacyProfile, count: int = 1) -> bool:
        """Return whether one more release still fits, or several of the same cost.

        Parameters
        ----------
        part : PrivacyProfile
            What one costs, given all that was released before.
        count : int, default=1
            How many.
        """
        count = check_integer(count, name="count", lower=1)
        *before, (budget, failure) = self._with(part)
        return self._is_within((*before, (count * budget, count * failure)))

    @one_at_a_time
    def record(self, part: PrivacyProfile) -> None:
        """Charge one release, before it is made.

        Parameters
        ----------
        part : PrivacyProfile
            What it costs, given all that was released before.
        """
        spent = self._with(part)
        if not self._is_within(spent):
            budget, failure = spent[-1]
            raise BudgetExceededError(
                f"part must fit into what is left, {self.budget - self.spent:.6g} of "
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
