"""Samplers: proposals of parameters by name, as optuna samplers.

optuna is imported when a sampler is made, hence the class inside a function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune.model_selection._pareto._sampling._ehvi import screened_expected_improvement
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
from skdptune.model_selection._pareto._sampling._trials import (
    failed_by_parameters,
    proposal_numbers,
)

FloatArray = NDArray[np.float64]
Propose = Callable[[int, History], dict[str, Any]]
Acquisition = Callable[[FloatArray, FloatArray, FloatArray, Scales, FloatArray], FloatArray]

SAMPLERS = ("auto", "hvpoi", "random", "grid")


@dataclass(frozen=True)
class SamplerSettings:
    """What samplers must know about a search beside its space.

    Attributes
    ----------
    reference : tuple of float
        The worst value of each objective that counts.
    entropy : int
        Seeds all proposals.
    n_initial, n_total : int
        Evaluations before the surrogates are used, and all of them.
    third_is_positive : bool
        Whether a third objective is modelled on a logarithmic scale.
    epsilon_scale : {"linear", "log"}
        The scale of the first objective in the hypervolume.
    """

    reference: tuple[float, ...]
    entropy: int
    n_initial: int
    n_total: int
    third_is_positive: bool = False
    epsilon_scale: str = "linear"


class SurrogateProposer:
    """Propose the point where an acquisition function of Gaussian processes is largest."""

    def __init__(
        self, space: SearchSpace, settings: SamplerSettings, acquisition: Acquisition = hvpoi
    ) -> None:
        self.space, self.settings, self.acquisition = space, settings, acquisition
        self.scales = Scales(
            settings.reference,
            settings.third_is_positive,
            epsilon_scale=settings.epsilon_scale,
        )
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
        """Return the objectives' processes, with pending points at their predicted values."""
        features = self.space.features(history.units)
        targets = self.scales.forward(history.values).T
        found = [
            surrogate.posterior(features, target)
            for surrogate, target in zip(self._surrogates, targets, strict=True)
        ]
        if len(history.pending) == 0:
            return found
        return [process.with_predicted(self.space.features(history.pending)) for process in found]

    def score(self, history: History) -> Score:
        """Return the acquisition as a function of points of the cube."""
        processes = self.posteriors(history)
        predicted = self.scales.backward(
            np.column_stack([process.targets for process in processes])[len(history.units) :]
        )
        points = np.vstack([history.values, predicted])
        success = self.success(history)

        def score(units: FloatArray) -> FloatArray:
            features = self.space.features(units)
            means, deviations = predictions(processes, features)
            return self.acquisition(means, deviations, points, self.scales, success(features))

        return score

    def success(self, history: History) -> Callable[[FloatArray], FloatArray]:
        """Return the probability that an evaluation succeeds, as a function of features."""
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
    """Return the index of the dimension that each column of features belongs to."""
    probe = np.full((1, 1), 0.5)[:, 0]
    widths = [dimension.features(probe).shape[1] for dimension in space.dimensions.values()]
    return [index for index, width in enumerate(widths) for _ in range(width)]


def make_sampler(sampler: Any, space: SearchSpace, settings: SamplerSettings) -> Any:
    """Return the optuna sampler of a name, or an optuna sampler as it is."""
    from optuna.samplers import BaseSampler

    if isinstance(sampler, BaseSampler):
        return sampler
    return _sampler_class()(check_sampler(sampler), space, settings)


def check_sampler(sampler: Any) -> str:
    """Return the name of a sampler, or raise with a hint how to give another one."""
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
    # No fast formula is known for the expected improvement of three objectives.
    has_formula = name == "auto" and len(settings.reference) == 2
    acquisition = screened_expected_improvement if has_formula else hvpoi
    return SurrogateProposer(space, settings, acquisition)


@functools.cache
def _sampler_class() -> Any:
    """Return the optuna sampler class that takes parameters from a proposer."""
    from optuna.samplers import BaseSampler
    from optuna.trial import TrialState

    class ProposingSampler(BaseSampler):  # type: ignore[misc, unused-ignore]
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
            number = proposal_numbers(trials)[trial.number]
            return self.space.to_optuna(self.propose(number, history))

        def sample_independent(
            self, study: Any, trial: Any, param_name: str, param_distribution: Any
        ) -> Any:
            raise ValueError(f"{param_name!r} must be a parameter of the space.")

        def _history(self, trial: Any, trials: Sequence[Any]) -> History:
            others = [t for t in trials if t.number != trial.number and self._is_complete(t)]
            done = [t for t in others if t.state == TrialState.COMPLETE]
            done.sort(key=lambda t: (t.datetime_complete, t.number))
            pending = [t for t in others if t.state == TrialState.RUNNING]
            failed = [t for t in others if t.state == TrialState.FAIL and failed_by_parameters(t)]
            values = np.array([t.values for t in done], dtype=float)
            units, pending_units, failed_units = map(self._points, (done, pending, failed))
            return History(units, values, pending_units, failed_units)

        def _is_complete(self, trial: Any) -> bool:
            return set(trial.params) >= set(self.space.names)

        def _points(self, trials: Sequence[Any]) -> FloatArray:
            for trial in trials:
                if trial.number not in self._units:
                    params = self.space.from_optuna(trial.params)
                    self._units[trial.number] = self.space.to_unit(params)
            rows = [self._units[trial.number] for trial in trials]
            return np.array(rows).reshape(len(rows), len(self.space.names))

    return ProposingSampler
