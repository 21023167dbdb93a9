"""The optuna studies of an adaptive search: one for choosing, and one that is shown."""

from __future__ import annotations

import contextlib
import copy
import math
import re
import uuid
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from skdptune.model_selection._running import Result
from skdptune.model_selection._space import AdaptiveSpace
from skdptune.model_selection._study import (
    RUN,
    Begun,
    open_study,
    optuna,
    quiet_optuna,
    restored,
    timeless_storage,
    without_times,
)


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
# Random trials before the scores are used: a share of all, and a minimum.
_RANDOM_SHARE, _FEWEST_RANDOM = 0.25, 4


def make_sampler(
    sampler: Any, n_trials: int, seed: int | None, batch_size: int, has_conditions: bool
) -> Any:
    """Return the optuna sampler with a name, or a copy of the given one."""
    if not isinstance(sampler, str):
        return copy.deepcopy(sampler)
    if sampler == "auto":
        # "gp" found better candidates with 20 noisy scores, but cannot learn from several dicts.
        sampler = "gp" if find_spec("torch") is not None and not has_conditions else "tpe"
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
            group=has_conditions,
            constant_liar=batch_size > 1,
        )


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Silence optuna: some of the features in use are experimental."""
    with quiet_optuna(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


_DEFAULT_NAME = "adaptive_search"
_SCORES, _OWN = "scores", "own_values"


class AdaptiveTrial:
    """A candidate of an adaptive search, to be fitted and scored by its session.

    Attributes
    ----------
    number : int
        Number of the trial, counted from 0.
    params : dict
        The candidate's parameters.
    score : float or None
        Its noisy score, once it was passed to the session's `tell`. With several metrics, that of
        the main metric.
    metrics : dict of str to float
        The noisy score by each metric; a single metric has the name "score".
    is_told : bool
        Whether it was passed to the session's `tell`.

    Examples
    --------
    >>> from skdptune.model_selection import AdaptiveTrial
    >>> trial = AdaptiveTrial(0, {"C": 0.1}, None)
    >>> trial.params["C"], trial.score, trial.is_told
    (0.1, None, False)
    """

    def __init__(self, number: int, params: dict[str, Any], chosen: Any) -> None:
        self.number, self.params = number, params
        self.score: float | None = None
        self.metrics: dict[str, float] = {}
        self.is_told = False
        self._chosen, self._run = chosen, uuid.uuid4().hex

    def __repr__(self) -> str:
        """Show the released values of the trial."""
        return f"AdaptiveTrial(number={self.number}, params={self.params}, score={self.score})"


# A completed trial: its parameters, and its result without the model.
Told = tuple[dict[str, Any], Result]


@dataclass
class Studies:
    """A study in memory that a sampler uses, and the released study; neither holds times.

    Parameters
    ----------
    space : AdaptiveSpace
    own : dict
        The estimator's own values of the parameters, whether or not in the space.
    storage, study_name
        Of the released study.
    bounds : tuple of float
        Bounds of scores; shown scores are clipped to them.
    """

    space: AdaptiveSpace
    own: Mapping[str, Any]
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
            self.choosing = optuna().create_study(storage=timeless_storage(), direction="maximize")
            # The sampler sees no parameters outside of the space.
            outside = optuna().trial.create_trial(state=optuna().trial.TrialState.FAIL)
            for trial in self.released.get_trials():
                self.choosing.add_trial(outside if _OWN in trial.user_attrs else trial)

    def told(self) -> list[Told]:
        """Return the completed trials, in order; the times of their fits are unknown."""
        found = []
        for trial in self.released.get_trials(deepcopy=False):
            if _SCORES not in trial.user_attrs:
                continue
            splits, *further = restored(trial.user_attrs[_SCORES])
            is_own = _OWN in trial.user_attrs
            params = dict(self.own) if is_own else self.space.from_optuna(trial.params)
            score = float(np.mean(splits))
            found.append((params, Result(None, score, math.nan, None, splits, tuple(further))))
        return found

    def ask(self, number: int, params: Mapping[str, Any] | None = None) -> AdaptiveTrial:
        """Return the next trial; the sampler chooses the parameters that are not given."""
        if params:
            self.choosing.enqueue_trial(self.space.to_optuna(params))
        with _silence():
            chosen = self.choosing.ask()
            drawn = self.space.suggest(chosen)
        # Use the given values: optuna's copies may be rounded.
        return AdaptiveTrial(number, drawn | dict(params or {}), chosen)

    def ask_own(self, number: int) -> AdaptiveTrial:
        """Return a trial of the estimator's own values."""
        if self.space.holds(self.own):
            return self.ask(number, self.own)
        # The trial has no point in the space, so samplers cannot learn from it.
        return AdaptiveTrial(number, dict(self.own), self.choosing.ask({}))

    def begun(self, trial: AdaptiveTrial) -> Begun:
        """Return the record of a trial whose fit begins."""
        return Begun(trial._run, trial.number, dict(trial._chosen.params))

    def tell(self, trial: AdaptiveTrial, scores: list[Any]) -> Any:
        """End a trial with its scores, as from `stored`; return its released values."""
        package, chosen = optuna(), trial._chosen
        states = package.trial.TrialState
        state = states.COMPLETE
        attributes: dict[str, Any] = {_SCORES: scores, RUN: trial._run}
        is_outside = not chosen.params
        with _silence():
            if is_outside:
                self.choosing.tell(chosen, None, states.FAIL)
            else:
                self.choosing.tell(chosen, trial.score, states.COMPLETE)
        found = self.choosing.get_trials()[chosen.number]
        if is_outside:
            # Complete trials without parameters would leave optuna nothing to analyse.
            state, found.value, attributes[_OWN] = states.PRUNED, trial.score, True
        return self._release(state, found, attributes)

    def lose(self, begun: Begun) -> None:
        """Add a trial that was begun but not completed."""
        known, state = self.space.distributions(), optuna().trial.TrialState.FAIL
        found = optuna().trial.create_trial(
            state=state,
            params=begun.params,
            distributions={name: known[name] for name in begun.params},
        )
        with quiet_optuna():
            self.choosing.add_trial(self._release(state, found, {RUN: begun.run}))

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
        value = None if found.value is None else float(np.clip(found.value, *self.bounds))
        released = optuna().trial.create_trial(
            state=state,
            value=value,
            params=found.params,
            distributions=found.distributions,
            user_attrs=attributes,
            # Attributes that samplers keep, all derived from released scores.
            system_attrs=found.system_attrs,
        )
        self.released.add_trial(without_times(released))
        return self.released.get_trials()[-1]
