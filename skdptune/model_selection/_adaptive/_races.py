"""Successive halving: the best third of the trials in a race continues at each rung."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from skdptune.model_selection._adaptive._allowance import FACTOR, Allowance

# First rungs of a search's successive races, and the largest numbers of trials in them.
STARTS: dict[str, tuple[tuple[int, int], ...]] = {
    "halving": ((0, 27),),
    "hyperband": ((0, 9), (1, 5), (2, 3)),
}


@dataclass(frozen=True)
class Bracket:
    """Largest number of trials in a race at each rung, from its first rung on.

    Attributes
    ----------
    start : int
        The first rung.
    counts : tuple of int
        Numbers of trials at the first rung and at the later ones.
    """

    start: int
    counts: tuple[int, ...]

    def cost(self, rungs: Sequence[Fraction]) -> Fraction:
        """Return the sum of the shares of all fits."""
        shares = rungs[self.start :]
        pairs = zip(self.counts, shares, strict=True)
        return sum((count * share for count, share in pairs), Fraction(0))


def n_going_on(count: int, *, has_own: bool = False) -> int:
    """Return how many of the trials on a rung go on to the next.

    Examples
    --------
    >>> n_going_on(27), n_going_on(2), n_going_on(3, has_own=True)
    (9, 1, 2)
    """
    # The estimator's own values always continue, and need at least one rival.
    return max(count // FACTOR, min(count, 2 if has_own else 1))


def largest_bracket(
    left: Fraction, start: int, most: int, rungs: Sequence[Fraction], *, has_own: bool
) -> Bracket | None:
    """Return the largest bracket that the remaining allowance pays for; None if there is none.

    Parameters
    ----------
    left : Fraction
        Remaining allowance, in units of the cost of a trial that climbs to the end.
    start : int
        The first rung.
    most : int
        Largest number of trials.
    rungs : sequence of Fraction
    has_own : bool
        Whether one of the trials is never pruned.
    """
    for count in range(most, 0, -1):
        counts = [count]
        for _ in rungs[start + 1 :]:
            counts.append(n_going_on(counts[-1], has_own=has_own))
        found = Bracket(start, tuple(counts))
        if found.cost(rungs) <= left:
            return found
    return None


@dataclass(eq=False)
class Race:
    """A bracket in progress.

    Parameters
    ----------
    bracket : Bracket

    Attributes
    ----------
    place : int
        The current rung of its trials.
    n_asked : int
        Number of trials that have entered.
    set_aside : Fraction
        Largest cost of its further fits.
    """

    bracket: Bracket
    place: int = field(init=False)
    n_asked: int = field(init=False, default=0)
    set_aside: Fraction = field(init=False, default=Fraction(0))
    _n_awaited: int = field(init=False)
    _arrived: list[tuple[Any, Any]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """Start at the bracket's first rung."""
        self.place, self._n_awaited = self.bracket.start, self.bracket.counts[0]

    @property
    def n_left(self) -> int:
        """Number of trials that may still enter."""
        return self.bracket.counts[0] - self.n_asked

    @property
    def is_complete(self) -> bool:
        """Whether all trials of the present rung have their scores."""
        return bool(self._arrived) and len(self._arrived) >= self._n_awaited

    def arrive(self, trial: Any, result: Any) -> None:
        """Record that a trial has a score at the present rung."""
        self._arrived.append((trial, result))

    def close(self) -> None:
        """Admit no further trials."""
        self.n_asked, self._n_awaited = self.bracket.counts[0], len(self._arrived)

    def divide(self, n_rungs: int) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """Return the trials that continue, and those that end here with their results.

        Notes
        -----
        Theorem G6: the division uses only noisy scores that are paid for.
        """
        ranked = sorted(self._arrived, key=lambda one: (-one[0].scores[-1], one[0].number))
        # Sorting keeps the order of the others.
        ranked.sort(key=lambda one: not one[0]._is_own)
        is_last = self.place == n_rungs - 1
        count = 0 if is_last else n_going_on(len(ranked), has_own=ranked[0][0]._is_own)
        self._arrived, self._n_awaited = [], count
        self.place += not is_last
        return [trial for trial, _ in ranked[:count]], ranked[count:]


class Races:
    """The races of a search; each one is paid for before it begins.

    Parameters
    ----------
    kind : {"halving", "hyperband"}
    allowance : Allowance
        The allowance that may be spent.
    has_own : bool
        Whether one trial of the first race is never pruned.

    Notes
    -----
    Theorem G6. The largest cost of a race is reserved when its first trial is started. The unused
    part is released when the race is over.
    """

    def __init__(self, kind: str, allowance: Allowance, *, has_own: bool) -> None:
        self._kind, self._allowance, self._has_own = kind, allowance, has_own
        self._n_begun = 0
        self._open: list[Race] = []

    @property
    def n_left(self) -> int:
        """Number of further trials that are paid for now."""
        return self.n_left_in_race + sum(bracket.counts[0] for bracket in self._coming())

    @property
    def n_left_in_race(self) -> int:
        """Number of further trials in the latest race."""
        return self._open[-1].n_left if self._open else 0

    @property
    def n_together(self) -> int:
        """Number of further trials that belong to one race."""
        coming = next(self._coming(), None)
        return self.n_left_in_race or (0 if coming is None else coming.counts[0])

    def _coming(self) -> Iterator[Bracket]:
        """Iterate over the brackets that the remaining allowance pays for."""
        left, rungs, starts = self._allowance.left, self._allowance.rungs, STARTS[self._kind]
        for number in itertools.count(self._n_begun):
            place, most = starts[number % len(starts)]
            has_own = self._has_own and number == 0
            found = largest_bracket(left, place, most, rungs, has_own=has_own)
            if found is None:
                return
            yield found
            left -= found.cost(rungs)

    def enter(self) -> Race:
        """Return the race of the next trial; raise if none is paid for."""
        if self.n_left_in_race < 1:
            bracket = next(self._coming(), None)
            if bracket is None:
                raise self._allowance.refusal()
            race = Race(bracket)
            race.set_aside = bracket.cost(self._allowance.rungs)
            self._allowance.set_aside(race.set_aside)
            self._n_begun += 1
            self._open.append(race)
        race = self._open[-1]
        race.n_asked += 1
        self._allowance.n_asked += 1
        return race

    def begin(self, race: Race, place: int) -> None:
        """Spend the cost of a trial's fit from the reservation of its race."""
        self._allowance.begin(place)
        race.set_aside -= self._allowance.rungs[place]

    def end(self, race: Race) -> None:
        """Release what a race has not used of its reservation."""
        self._allowance.free(race.set_aside)
        race.set_aside = Fraction(0)
        self._open.remove(race)

    def closed(self) -> list[Race]:
        """Return the races in progress, which admit no further trials from now on."""
        for race in list(self._open):
            race.close()
            if not race.is_complete:
                self.end(race)
        return list(self._open)
