"""The optuna studies of an adaptive search: one for choosing, and one that is shown."""

from __future__ import annotations

import contextlib
import copy
import re
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from skdptune.model_selection._adaptive._races import STARTS
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
    """

    params: dict[str, Any]
    splits: tuple[float, ...]
    place: int
    is_pruned: bool
    further: tuple[tuple[float, ...], ...] = ()

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
    _choosing: Any = field(init=False)

    def __post_init__(self) -> None:
        """Open the released study, and copy its trials to the other study."""
        # Not silenced: a warning that others could read the file must be shown.
        with quiet_optuna():
            self.released = open_study(self.storage, self.study_name, _DEFAULT_NAME, ["maximize"])
        with _silence():
            self._choosing = optuna().create_study(
                storage=timeless_storage(),
                # A pruner may choose by name which trials it compares.
                study_name=_DEFAULT_NAME,
                direction="maximize",
                pruner=make_pruner(self.pruner),
            )
            for trial in self.released.get_trials():
                self._choosing.add_trial(self._without_own(trial))

    def choose_by(self, sampler: Any) -> None:
        """Set the sampler."""
        self._choosing.sampler = sampler

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

    def check(self, params: Mapping[str, Any]) -> None:
        """Raise unless parameters belong to the space."""
        self.space.check(params)

    def _params_of(self, trial: Any) -> dict[str, Any]:
        return self.space.from_optuna(trial.params)

    def ask(self, number: int, params: Mapping[str, Any] | None = None) -> AdaptiveTrial:
        """Return the next trial; the sampler chooses the parameters that are not given."""
        if params:
            self._choosing.enqueue_trial(self.space.to_optuna(params))
        with _silence():
            chosen = self._choosing.ask(self.space.distributions())
        # Use the given values: optuna's copies may be rounded.
        return AdaptiveTrial(number, self._params_of(chosen) | dict(params or {}), chosen)

    def ask_own(self, number: int) -> AdaptiveTrial:
        """Return a trial of the estimator's own values."""
        if self.space.holds(self.own):
            return self.ask(number, self.own)
        # The trial has no point in the space, so samplers cannot learn from it.
        return AdaptiveTrial(number, dict(self.own), self._choosing.ask({}))

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
            self._choosing.tell(chosen, value, states.FAIL if is_outside else state)
        found = self._choosing.get_trials()[chosen.number]
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
            self._choosing.add_trial(self._without_own(released))

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
