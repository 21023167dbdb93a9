"""The ways to propose parameters, as optuna samplers.

optuna's classes are there when one of them is asked for, hence the factory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune.model_selection._pareto._sampling._ehvi import improvement_of_promising
from skdptune.model_selection._pareto._sampling._fronts import non_dominated
from skdptune.model_selection._pareto._sampling._hvpoi import hvpoi
from skdptune.model_selection._pareto._sampling._proposals import (
    History,
    Score,
    best_point,
    grid_points,
    initial_point,
    proposal_generator,
)
from skdptune.model_selection._pareto._sampling._spaces import SearchSpace
from skdptune.model_selection._pareto._sampling._surrogates import (
    Posterior,
    Scales,
    Surrogate,
    success_probability,
)

FloatArray = NDArray[np.float64]
Propose = Callable[[int, History], dict[str, Any]]
Acquisition = Callable[[FloatArray, FloatArray, FloatArray, Scales, FloatArray], FloatArray]

SAMPLERS = ("auto", "hvpoi", "random", "grid")
# Marks of trials: those that do a lost one's work again bear its number and its turn.
NUMBER, TURN = "number", "turn"
FOUND, REFUSED, WITHDRAWN = "found", "refused", "withdrawn"


@dataclass(frozen=True)
class SamplerSettings:
    """What the samplers must know about a search besides its space."""

    reference: tuple[float, ...]
    entropy: int
    n_initial: int
    n_total: int
    extra_is_positive: bool = False


class SurrogateProposer:
    """Propose the point at which an acquisition over Gaussian processes is largest."""

    def __init__(
        self, space: SearchSpace, settings: SamplerSettings, acquisition: Acquisition = hvpoi
    ) -> None:
        self.space, self.settings, self.acquisition = space, settings, acquisition
        self.scales = Scales(settings.reference, settings.extra_is_positive)
        self.groups = feature_groups(space)
        self._surrogates = [Surrogate(self.groups) for _ in settings.reference]

    def __call__(self, number: int, history: History) -> dict[str, Any]:
        """Return parameters for the evaluation of a number."""
        n_known = len(history.units) + len(history.pending) + len(history.failed)
        if n_known < self.settings.n_initial or len(history.units) < 2:
            return initial_point(self.space, self.settings.entropy, number)
        rng = proposal_generator(self.settings.entropy, number)
        known = np.vstack([history.units, history.pending, history.failed])
        around = history.units[non_dominated(history.values)]
        unit = best_point(self.score(history), self.space, around, known, rng)
        return self.space.from_unit(unit)

    def posteriors(self, history: History) -> list[Posterior]:
        """Return the objectives' processes, pending points believed to turn out as expected."""
        features = self.space.features(history.units)
        targets = self.scales.forward(history.values).T
        found = [
            surrogate.posterior(features, target)
            for surrogate, target in zip(self._surrogates, targets, strict=True)
        ]
        if len(history.pending) == 0:
            return found
        return [process.joined(self.space.features(history.pending)) for process in found]

    def score(self, history: History) -> Score:
        """Return the acquisition as a function of points of the cube."""
        processes = self.posteriors(history)
        believed = self.scales.backward(
            np.column_stack([process.targets for process in processes])[len(history.units) :]
        )
        points = np.vstack([history.values, believed])
        chance = self.chance(history)

        def score(units: FloatArray) -> FloatArray:
            features = self.space.features(units)
            means, deviations = predictions(processes, features)
            return self.acquisition(means, deviations, points, self.scales, chance(features))

        return score

    def chance(self, history: History) -> Callable[[FloatArray], FloatArray]:
        """Return the probability of success as a function of features."""
        good, failed = map(self.space.features, (history.units, history.failed))
        return success_probability(good, failed, self.groups)


def predictions(
    processes: Sequence[Posterior], features: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return means and deviations, one column per objective."""
    pairs = [process.predict(features) for process in processes]
    means, deviations = zip(*pairs, strict=True)
    return np.column_stack(means), np.column_stack(deviations)


def feature_groups(space: SearchSpace) -> list[int]:
    """Return for each column of features the place of its dimension."""
    probe = np.full((1, 1), 0.5)[:, 0]
    widths = [dimension.features(probe).shape[1] for dimension in space.dimensions.values()]
    return [place for place, width in enumerate(widths) for _ in range(width)]


def make_sampler(sampler: Any, space: SearchSpace, settings: SamplerSettings) -> Any:
    """Return an optuna sampler for a name, or the user's own as it is."""
    from optuna.samplers import BaseSampler

    if isinstance(sampler, BaseSampler):
        return sampler
    return _sampler_class()(check_sampler(sampler), space, settings)


def check_sampler(sampler: Any) -> Any:
    """Return the name of one of our samplers, or raise and say how to give another."""
    if not isinstance(sampler, str) or sampler not in SAMPLERS:
        names = ", ".join(map(repr, SAMPLERS))
        raise ValueError(
            f"sampler must be one of {names} or an optuna sampler, such as "
            f"optuna.samplers.TPESampler(seed=0); got {sampler!r}."
        )
    return sampler


def _proposer(name: str, space: SearchSpace, settings: SamplerSettings) -> Propose:
    if name == "random":
        return lambda number, history: space.sample(proposal_generator(settings.entropy, number))
    if name == "grid":
        points = grid_points(space, settings.entropy, settings.n_total)
        return lambda number, history: points[number % len(points)]
    # The expected improvement of three objectives has no sum that is as fast.
    is_fast = name == "auto" and len(settings.reference) == 2
    return SurrogateProposer(space, settings, improvement_of_promising if is_fast else hvpoi)


@functools.cache
def _sampler_class() -> Any:
    """Return the class that asks one of ours for parameters, made when optuna is there."""
    from optuna.samplers import BaseSampler
    from optuna.trial import TrialState

    class ProposingSampler(BaseSampler):  # type: ignore[misc]
        """Propose all parameters of a trial at once."""

        def __init__(self, name: str, space: SearchSpace, settings: SamplerSettings) -> None:
            self.made_of = (name, space, settings)
            self.propose, self.space = _proposer(*self.made_of), space
            self._units: dict[int, FloatArray] = {}

        def __reduce__(self) -> Any:
            return make_sampler, self.made_of

        def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
            return self.space.distributions()

        def sample_relative(
            self, study: Any, trial: Any, search_space: dict[str, Any]
        ) -> dict[str, Any]:
            trials = study.get_trials(deepcopy=False)
            if set(trial.system_attrs.get("fixed_params", {})) >= set(search_space):
                return {}
            history = self._history(trial, trials)
            return self.space.to_optuna(self.propose(turns(trials)[trial.number], history))

        def sample_independent(
            self, study: Any, trial: Any, param_name: str, param_distribution: Any
        ) -> Any:
            raise ValueError(f"{param_name!r} is no parameter of the search's space.")

        def _history(self, trial: Any, trials: Sequence[Any]) -> History:
            others = [t for t in trials if t.number != trial.number and self._is_whole(t)]
            done = [t for t in others if t.state == TrialState.COMPLETE]
            done.sort(key=lambda t: (t.datetime_complete, t.number))
            pending = [t for t in others if t.state == TrialState.RUNNING]
            failed = [t for t in others if t.state == TrialState.FAIL and _is_bad(t)]
            values = np.array([t.values for t in done], dtype=float)
            units, waiting, bad = (self._points(some) for some in (done, pending, failed))
            return History(units, values, waiting, bad)

        def _is_whole(self, trial: Any) -> bool:
            return set(trial.params) >= set(self.space.names)

        def _points(self, trials: Sequence[Any]) -> FloatArray:
            for trial in trials:
                if trial.number not in self._units:
                    params = self.space.from_optuna(trial.params)
                    self._units[trial.number] = self.space.to_unit(params)
            rows = [self._units[trial.number] for trial in trials]
            return np.array(rows).reshape(len(rows), len(self.space.names))

    return ProposingSampler


def _is_bad(trial: Any) -> bool:
    """Return whether a trial's parameters, not its process, are why it came to nothing."""
    return FOUND in trial.user_attrs or REFUSED in trial.user_attrs


def turns(trials: Sequence[Any]) -> list[int]:
    """Return which proposal each trial is: those done again keep the place of the first try."""
    found, again = [], 0
    for trial in trials:
        is_again = TURN in trial.user_attrs
        found.append(int(trial.user_attrs[TURN]) if is_again else trial.number - again)
        again += is_again
    return found


def evaluation_numbers(trials: Sequence[Any]) -> list[int]:
    """Return which evaluation each trial is: its turn less the proposals that were dismissed."""
    found, dismissed = [], 0
    for trial, turn in zip(trials, turns(trials), strict=True):
        attributes = trial.user_attrs
        found.append(int(attributes.get(NUMBER, turn - dismissed)))
        dismissed += REFUSED in attributes or WITHDRAWN in attributes
    return found
