"""The optuna studies of an adaptive search: one for choosing, and one that is shown."""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import re
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np

from skdptune.accounting import BudgetExceededError
from skdptune.model_selection._space import AdaptiveSpace
from skdptune.model_selection._study import (
    RUN,
    Begun,
    check_named,
    open_study,
    optuna,
    quiet_optuna,
    restored,
    timeless_storage,
    without_times,
)
from skdptune.model_selection._study import check_sampler as check_sampler_of

# Successive halving: the best third of the trials in a race continues at each rung --------------

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


def described(value: Any) -> str:
    """Return a text for a parameter that is the same in every process."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(described, value))}]"
    if not isinstance(value, type) and hasattr(value, "get_params"):
        # scikit-learn's own text omits long values, in which two estimators may differ.
        own = sorted(
            (name, each) for name, each in value.get_params(deep=False).items() if name != "ledger"
        )
        listed = ", ".join(f"{name}={described(each)}" for name, each in own)
        return f"{type(value).__name__}({listed})"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


SAMPLERS = ("auto", "tpe", "gp", "random")
PRUNERS = tuple(STARTS)
# Random trials before the scores are used: a share of all, and a minimum.
_RANDOM_SHARE, _FEWEST_RANDOM = 0.25, 4


def check_sampler(sampler: Any) -> None:
    """Raise unless a sampler is a known name or an optuna sampler."""
    check_sampler_of(sampler, SAMPLERS)


def check_pruner(pruner: Any) -> None:
    """Raise unless a pruner is None, a known name or an optuna pruner."""
    if pruner is not None:
        check_named(pruner, "pruner", PRUNERS, "prune", "pruners.MedianPruner()")


def make_sampler(
    sampler: Any, n_trials: int, seed: int | None, batch_size: int, *, prunes: bool = False
) -> Any:
    """Return the optuna sampler with a name, or a copy of the given one."""
    if not isinstance(sampler, str):
        return copy.deepcopy(sampler)
    if sampler == "auto":
        # With 20 noisy scores it found better candidates, but it ignores scores of pruned trials.
        sampler = "gp" if find_spec("torch") is not None and not prunes else "tpe"
    samplers = optuna().samplers
    n_random = max(_FEWEST_RANDOM, int(_RANDOM_SHARE * n_trials))
    with warnings.catch_warnings():
        # Some of it is experimental in optuna.
        warnings.simplefilter("ignore")
        if sampler == "random":
            return samplers.RandomSampler(seed=seed)
        if sampler == "gp":
            return samplers.GPSampler(seed=seed, n_startup_trials=n_random)
        return samplers.TPESampler(
            seed=seed,
            n_startup_trials=n_random,
            multivariate=True,
            constant_liar=batch_size > 1,
        )


def make_pruner(pruner: Any) -> Any:
    """Return an optuna pruner; for None and for our own races it never prunes."""
    pruners = optuna().pruners
    if pruner is None or pruner in PRUNERS:
        return pruners.NopPruner()
    return copy.deepcopy(pruner)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Silence optuna: some of the features in use are experimental."""
    with quiet_optuna(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


_DEFAULT_NAME = "adaptive_search"
_SCORES, _PLACE, _OWN = "scores", "rung", "own_values"


class AdaptiveTrial:
    """A candidate of an adaptive search, to be fitted and scored by its session.

    Attributes
    ----------
    number : int
        Number of the trial, counted from 0.
    params : dict
        The candidate's parameters.
    scores : tuple of float
        Its noisy scores so far: one, or with a pruner one for each fit so far. With several
        metrics, those of the main metric.
    metrics : dict of str to float
        The latest noisy score by each metric; a single metric has the name "score".
    is_told : bool
        Whether it was passed to the session's `tell`.
    is_pruned : bool
        Whether the pruner has ended it.

    Examples
    --------
    >>> from skdptune.model_selection import AdaptiveTrial
    >>> trial = AdaptiveTrial(0, {"C": 0.1}, None)
    >>> trial.params["C"], trial.scores, trial.is_told
    (0.1, (), False)
    """

    def __init__(self, number: int, params: dict[str, Any], chosen: Any) -> None:
        self.number, self.params = number, params
        self.scores: tuple[float, ...] = ()
        self.metrics: dict[str, float] = {}
        self.is_told = self.is_pruned = False
        self._chosen, self._run, self._is_own = chosen, uuid.uuid4().hex, False
        # Its first rung, and its race.
        self._start = 0
        self._race: Any = None

    def __repr__(self) -> str:
        """Show the released values of the trial."""
        return f"AdaptiveTrial(number={self.number}, params={self.params}, scores={self.scores})"


@dataclass(frozen=True)
class Told:
    """The released values of a completed trial.

    Attributes
    ----------
    params : dict
    splits : tuple of float
        The noisy scores of its last fits, one for each fold.
    place : int
        Its last rung.
    is_pruned : bool
    further : tuple of tuple of float
        The scores by each further metric.
    details : tuple of (float, str or None)
        Seconds and error of the last fit, which are secret; unknown in a resumed search.
    """

    params: dict[str, Any]
    splits: tuple[float, ...]
    place: int
    is_pruned: bool
    further: tuple[tuple[float, ...], ...] = ()
    details: tuple[float, str | None] = (math.nan, None)

    @property
    def score(self) -> float:
        """The noisy score."""
        return float(np.mean(self.splits))


@dataclass
class Studies:
    """A study in memory that a sampler uses, and the released study; neither holds times.

    Parameters
    ----------
    space : AdaptiveSpace
    own : dict
        The estimator's own values of the parameters, whether or not in the space.
    pruner : None, str or optuna pruner
    steps : sequence of int
        The rungs, in the numbering that the pruner uses.
    storage, study_name
        Of the released study.
    bounds : tuple of float
        Bounds of scores; shown scores are clipped to them.
    """

    space: AdaptiveSpace
    own: Mapping[str, Any]
    pruner: Any
    steps: Sequence[int]
    storage: Any
    study_name: str | None
    bounds: tuple[float, float]
    released: Any = field(init=False)
    choosing: Any = field(init=False)

    def __post_init__(self) -> None:
        """Open the released study, and copy its trials to the other study."""
        # Not silenced: a warning that others could read the file must be shown.
        with quiet_optuna():
            self.released = open_study(self.storage, self.study_name, _DEFAULT_NAME, ["maximize"])
        with _silence():
            self.choosing = optuna().create_study(
                storage=timeless_storage(),
                # A pruner may choose by name which trials it compares.
                study_name=_DEFAULT_NAME,
                direction="maximize",
                pruner=make_pruner(self.pruner),
            )
            for trial in self.released.get_trials():
                self.choosing.add_trial(self._without_own(trial))

    def _without_own(self, trial: Any) -> Any:
        """Return a released trial in the form for the sampler, if it belongs to the space."""
        if _OWN not in trial.user_attrs:
            return trial
        states = optuna().trial.TrialState
        return optuna().trial.create_trial(state=states.FAIL)

    def told(self) -> list[Told]:
        """Return the completed trials, in order."""
        pruned = optuna().trial.TrialState.PRUNED
        found = []
        for trial in self.released.get_trials(deepcopy=False):
            if _SCORES not in trial.user_attrs:
                continue
            splits, *further = restored(trial.user_attrs[_SCORES])
            place = trial.user_attrs[_PLACE]
            is_pruned = trial.state == pruned and place < len(self.steps) - 1
            params = dict(self.own) if _OWN in trial.user_attrs else self._params_of(trial)
            found.append(Told(params, splits, place, is_pruned, tuple(further)))
        return found

    def _params_of(self, trial: Any) -> dict[str, Any]:
        return self.space.from_optuna(trial.params)

    def ask(self, number: int, params: Mapping[str, Any] | None = None) -> AdaptiveTrial:
        """Return the next trial; the sampler chooses the parameters that are not given."""
        if params:
            self.choosing.enqueue_trial(self.space.to_optuna(params))
        with _silence():
            chosen = self.choosing.ask(self.space.distributions())
        # Use the given values: optuna's copies may be rounded.
        return AdaptiveTrial(number, self._params_of(chosen) | dict(params or {}), chosen)

    def ask_own(self, number: int) -> AdaptiveTrial:
        """Return a trial of the estimator's own values."""
        if self.space.holds(self.own):
            return self.ask(number, self.own)
        # The trial has no point in the space, so samplers cannot learn from it.
        return AdaptiveTrial(number, dict(self.own), self.choosing.ask({}))

    def begun(self, trial: AdaptiveTrial, shares: Sequence[Any]) -> Begun:
        """Return the record of a trial whose next fit begins."""
        return Begun(trial._run, trial.number, dict(trial._chosen.params), tuple(shares))

    def report(self, trial: AdaptiveTrial, score: float, place: int) -> None:
        """Report a noisy score to the pruner."""
        trial._chosen.report(score, self.steps[place])

    def prunes(self, trial: AdaptiveTrial) -> bool:
        """Return whether the pruner ends a trial, given the reported scores."""
        with _silence():
            return bool(trial._chosen.should_prune())

    def tell(self, trial: AdaptiveTrial, scores: list[Any]) -> Any:
        """End a trial with its last scores, as from `stored`; return its released values."""
        package, chosen = optuna(), trial._chosen
        states = package.trial.TrialState
        state = states.PRUNED if trial.is_pruned else states.COMPLETE
        place = trial._start + len(trial.scores) - 1
        attributes = {_SCORES: scores, _PLACE: place, RUN: trial._run}
        is_outside = not chosen.params
        if is_outside:
            attributes[_OWN] = True
        with _silence():
            # A pruned trial has the last reported score.
            value = None if trial.is_pruned or is_outside else trial.scores[-1]
            self.choosing.tell(chosen, value, states.FAIL if is_outside else state)
        found = self.choosing.get_trials()[chosen.number]
        if is_outside:
            # Complete trials without parameters would leave optuna nothing to analyse.
            state, found.value = states.PRUNED, trial.scores[-1]
        return self._release(state, found, attributes)

    def lose(self, begun: Begun, scores: Mapping[int, list[Any]] | None = None) -> None:
        """Add a trial that was begun but not completed: as a pruned one if it has scores."""
        states, known = optuna().trial.TrialState, self.space.distributions()
        state = states.FAIL
        attributes: dict[str, Any] = {RUN: begun.run}
        values = {
            place: float(np.mean(restored(kept)[0])) for place, kept in (scores or {}).items()
        }
        if values:
            last = max(values)
            state = states.PRUNED
            attributes |= {_SCORES: (scores or {})[last], _PLACE: last}
            attributes |= {} if begun.params else {_OWN: True}
        found = optuna().trial.create_trial(
            state=state,
            value=values[max(values)] if values else None,
            params=begun.params,
            distributions={name: known[name] for name in begun.params},
            intermediate_values={self.steps[place]: value for place, value in values.items()},
        )
        with quiet_optuna():
            released = self._release(state, found, attributes)
            self.choosing.add_trial(self._without_own(released))

    def call(self, callback: Any, released: Any) -> bool:
        """Call a function with the released study and trial; return whether it asks to stop."""
        stopped: list[bool] = []
        # optuna's own `stop` must be called from optuna's own loop.
        self.released.stop = lambda: stopped.append(True)
        try:
            callback(self.released, released)
        finally:
            del self.released.stop
        return bool(stopped)

    def runs(self) -> set[str]:
        """Return which of the begun trials are in the released study."""
        trials = self.released.get_trials(deepcopy=False)
        return {trial.user_attrs[RUN] for trial in trials if RUN in trial.user_attrs}

    def _release(self, state: Any, found: Any, attributes: dict[str, Any]) -> Any:
        values = {step: self._clipped(value) for step, value in found.intermediate_values.items()}
        released = optuna().trial.create_trial(
            state=state,
            value=None if found.value is None else self._clipped(found.value),
            params=found.params,
            distributions=found.distributions,
            user_attrs=attributes,
            # Attributes that pruners and samplers keep, all derived from released scores.
            system_attrs=found.system_attrs,
            intermediate_values=values if len(self.steps) > 1 else None,
        )
        self.released.add_trial(without_times(released))
        return self.released.get_trials()[-1]

    def _clipped(self, value: float) -> float:
        return float(np.clip(value, *self.bounds))
