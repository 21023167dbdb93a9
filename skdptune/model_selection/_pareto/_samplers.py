"""Samplers: proposals of parameters by name, as optuna samplers.

optuna is imported when a sampler is made, hence the class inside a function.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from skdptune._formatting import shown
from skdptune.model_selection._pareto._surrogates import (
    LEAST_SHARE,
    Posterior,
    Reference,
    Scales,
    Surrogate,
    front,
    hypervolume,
    non_dominated,
    success_probability,
)
from skdptune.model_selection._space import SearchSpace
from skdptune.model_selection._study import EVALUATION, REFUSED, proposal_numbers

FloatArray = NDArray[np.float64]
Score = Callable[[FloatArray], FloatArray]

# Candidates all over the cube and near good points; the best of them start local searches.
_N_UNIFORM = 384
_N_NEAR = 192
_N_STARTS = 6
# Step lengths of the local searches, and the number of steps tried for each.
_STEPS = (0.05, 0.02, 0.007, 0.002)
_N_TRIED = 16


@dataclass(frozen=True)
class History:
    """Earlier evaluations as points of the unit cube.

    Attributes
    ----------
    units, values : arrays of shape (n, dimensions) and (n, objectives)
        Successful evaluations, in the order in which they ended, and their objectives.
    pending, failed : arrays of shape (n, dimensions)
        Running evaluations, and failed ones.
    """

    units: FloatArray
    values: FloatArray
    pending: FloatArray
    failed: FloatArray


def initial_point(space: SearchSpace, entropy: int, number: int) -> dict[str, Any]:
    """Return a point of a Sobol sequence, which covers the given distributions evenly."""
    seed = np.random.SeedSequence(entropy, spawn_key=(0, 0))
    cube = stats.qmc.Sobol(len(space.names), scramble=True, rng=np.random.default_rng(seed))
    if number:
        cube.fast_forward(number)
    return space.from_unit(cube.random(1)[0])


def grid_points(space: SearchSpace, entropy: int, most: int) -> list[dict[str, Any]]:
    """Return the finest grid of at most ``most`` points, shuffled; at least two levels."""
    levels = 2
    while levels < most and space.grid_size(levels + 1) <= most:
        levels += 1
    points = space.grid(levels)
    seed = np.random.SeedSequence(entropy, spawn_key=(0, 1))
    order = np.random.default_rng(seed).permutation(len(points))
    return [points[index] for index in order]


def proposal_generator(entropy: int, number: int) -> np.random.Generator:
    """Return the random generator of a proposal, which is the same in each repetition."""
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(1, number)))


def best_point(
    score: Score,
    space: SearchSpace,
    around: FloatArray,
    known: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the point of the cube with the largest score.

    Of candidates all over the cube and near ``around``, the best start local searches. Points that
    cannot be distinguished from ``known`` ones are skipped.
    """
    known_features = space.features(known)

    def new_score(units: FloatArray) -> FloatArray:
        apart = space.features(units)[:, np.newaxis] - known_features
        is_known = ((apart**2).sum(axis=2) < 1e-12).any(axis=1)
        return np.where(is_known, -np.inf, score(units))

    units = rng.random((_N_UNIFORM, len(space.names)))
    if len(around):
        centres = around[rng.integers(len(around), size=_N_NEAR)]
        steps = 10.0 ** rng.uniform(-2.5, -0.5, size=(_N_NEAR, 1))
        units = np.vstack([units, _moved(centres, steps, rng)])
    scores = new_score(units)
    best = np.argsort(-scores, kind="stable")[:_N_STARTS]
    return _local_search(new_score, units[best], scores[best], rng)


def _moved(centres: FloatArray, steps: FloatArray | float, rng: np.random.Generator) -> FloatArray:
    """Return neighbours of points: some coordinates a step away, a few anywhere."""
    moved = centres + steps * rng.normal(size=centres.shape)
    kept = rng.random(centres.shape) < 0.3
    moved = np.where(kept, centres, moved)
    # A small step does not change a category.
    jumps = rng.random(centres.shape) < 0.1
    clipped: FloatArray = np.clip(np.where(jumps, rng.random(centres.shape), moved), 0.0, 1.0)
    return clipped


def _local_search(
    score: Score,
    units: FloatArray,
    scores: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the best point that steps of decreasing length reach from any of the points."""
    for step in _STEPS:
        tried = _moved(np.repeat(units, _N_TRIED, axis=0), step, rng)
        found = score(tried).reshape(len(units), _N_TRIED)
        best = found.argmax(axis=1)
        better = found.max(axis=1) > scores
        tried = tried.reshape(len(units), _N_TRIED, -1)[np.arange(len(units)), best]
        units = np.where(better[:, np.newaxis], tried, units)
        scores = np.where(better, found.max(axis=1), scores)
    winner: FloatArray = units[int(np.argmax(scores))]
    return winner


_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Minimum number of candidates that pass the screening.
_N_SCREENED = 32


def expected_improvement(
    means: FloatArray, deviations: FloatArray, points: FloatArray, scales: Scales
) -> FloatArray:
    """Return the expected increase of the hypervolume by an evaluation.

    Parameters
    ----------
    means, deviations : arrays of shape (n, 2)
        Moments of the surrogates' normal distributions on their scales, independent between
        objectives.
    points : array of shape (k, 2)
        Objectives of earlier evaluations.
    scales : Scales
    """
    ends, ceilings = strips(scales.axes(points), scales.corner())
    is_log = scales.epsilon_scale == "log"
    # Nothing is gained to the left of it.
    ends[0] = math.log(LEAST_SHARE * scales.reference[0]) if is_log else 0.0
    shortfall = normal_shortfall if is_log else lognormal_shortfall
    reach = shortfall(means[:, :1], deviations[:, :1], ends)
    height = logit_normal_shortfall(means[:, 1:], deviations[:, 1:], ceilings)
    expected: FloatArray = (np.diff(reach, axis=1) * height).sum(axis=1)
    return expected


def screened_expected_improvement(
    means: FloatArray,
    deviations: FloatArray,
    points: FloatArray,
    scales: Scales,
    success: FloatArray | float = 1.0,
) -> FloatArray:
    """Return the expected improvement of the most promising candidates, 0 for the others.

    The parameters are those of :func:`expected_improvement`, and the probabilities that an
    evaluation succeeds. A candidate is promising if it improves most at one deviation below the
    mean: the expectation takes far longer to compute.
    """
    candidates = scales.axes(scales.backward(means - deviations))
    optimistic = improvement(candidates, scales.axes(points), scales.corner())
    best = np.argsort(-success * optimistic, kind="stable")[: max(_N_SCREENED, len(means) // 6)]
    expected = np.zeros(len(means))
    expected[best] = expected_improvement(means[best], deviations[best], points, scales)
    return expected * success


def normal_shortfall(means: FloatArray, deviations: FloatArray, ends: FloatArray) -> FloatArray:
    """Return the expectation of ``max(end - normal, 0)``."""
    standard = (ends - means) / deviations
    density = np.exp(-(standard**2) / 2) / math.sqrt(2 * math.pi)
    shortfall: FloatArray = deviations * (standard * special.ndtr(standard) + density)
    return np.maximum(shortfall, 0.0)


def lognormal_shortfall(means: FloatArray, deviations: FloatArray, ends: FloatArray) -> FloatArray:
    """Return the expectation of ``max(end - exp(normal), 0)``."""
    with np.errstate(divide="ignore"):
        standard = (np.log(ends) - means) / deviations
    growth = np.exp(np.minimum(means + deviations**2 / 2, 700.0))
    below = ends * special.ndtr(standard)
    shortfall: FloatArray = np.maximum(below - growth * special.ndtr(standard - deviations), 0.0)
    return shortfall


def logit_normal_shortfall(
    means: FloatArray, deviations: FloatArray, ceilings: FloatArray
) -> FloatArray:
    """Return the expectation of ``max(ceiling - expit(normal), 0)``, rows by columns.

    By Gauss-Hermite quadrature. The kink of the integrand slows its convergence, but the error
    stays below a hundredth of the deviation.
    """
    total = np.zeros((len(means), len(ceilings)))
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * np.maximum(ceilings - special.expit(means + node * deviations), 0.0)
    return total


_N_DRAWS = 128


def hvpoi(
    means: FloatArray,
    deviations: FloatArray,
    points: FloatArray,
    scales: Scales,
    success: FloatArray | float = 1.0,
) -> FloatArray:
    """Return the improvement at the mean times the probability of an improvement.

    Parameters
    ----------
    means, deviations : arrays of shape (n, objectives)
        Of the surrogates' normal distributions on their scales.
    points : array of shape (k, objectives)
        Objectives of earlier evaluations.
    scales : Scales
        Probabilities are the same on all scales; hypervolumes are those of ``scales.axes``.
    success : array of shape (n,) or float
        The probabilities that an evaluation succeeds.

    Notes
    -----
    The acquisition function of Avent, Gonzalez, Diethe, Paleyes and Balle (PoPETs 2020), after
    Couckuyt, Deschrijver and Dhaene (2014).
    """
    probability = probability_of_improvement(
        means, deviations, scales.forward(points), scales.limit()
    )
    candidates = scales.axes(scales.backward(means))
    gain = improvement(candidates, scales.axes(points), scales.corner())
    # If no mean improves, the probability decides; otherwise the constant is negligible.
    return success * probability * (gain + 1e-9)


def strips(points: FloatArray, reference: Reference) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the strips from left to right, and their ceilings.

    The first strip lies left of all points, from minus infinity, with the reference's ceiling;
    the last one ends at the reference.
    """
    inside = points[(points < np.asarray(reference)).all(axis=1)]
    steps = front(inside) if len(inside) else np.empty((0, 2))
    ends = np.concatenate([[-np.inf], steps[:, 0], [reference[0]]])
    ceilings = np.concatenate([[reference[1]], steps[:, 1]])
    return ends, ceilings


def probability_of_improvement(
    means: FloatArray, deviations: FloatArray, points: FloatArray, reference: Reference
) -> FloatArray:
    """Return the probabilities that normal points are below the reference and not dominated.

    Parameters
    ----------
    means, deviations : arrays of shape (n, objectives)
        Of the normal distributions, independent between objectives.
    points : array of shape (k, objectives)
        Objectives of earlier evaluations, on the same scales.
    reference : sequence of float
        The worst point that counts, on the same scales.
    """
    if means.shape[1] != 2:
        return _probability_by_draws(means, deviations, points, reference)
    ends, ceilings = strips(points, reference)
    left = special.ndtr((ends - means[:, :1]) / deviations[:, :1])
    below = special.ndtr((ceilings - means[:, 1:]) / deviations[:, 1:])
    probability: FloatArray = (np.diff(left, axis=1) * below).sum(axis=1)
    return probability


def improvement(candidates: FloatArray, points: FloatArray, reference: Reference) -> FloatArray:
    """Return the increase of the hypervolume by each candidate separately."""
    if candidates.shape[1] != 2:
        return _improvement_by_volumes(candidates, points, reference)
    ends, ceilings = strips(points, reference)
    width = np.maximum(ends[1:] - np.maximum(ends[:-1], candidates[:, :1]), 0.0)
    height = np.maximum(ceilings - candidates[:, 1:], 0.0)
    gain: FloatArray = (width * height).sum(axis=1)
    return gain


def _probability_by_draws(
    means: FloatArray, deviations: FloatArray, points: FloatArray, reference: Reference
) -> FloatArray:
    """Return the probabilities by quasi-random draws, the same draws for all points."""
    cube = stats.qmc.Sobol(means.shape[1], scramble=True, rng=0).random(_N_DRAWS)
    draws = means[:, np.newaxis] + deviations[:, np.newaxis] * special.ndtri(cube)
    improves = (draws < np.asarray(reference)).all(axis=2)
    for point in front(points) if len(points) else points:
        improves &= ~(point <= draws).all(axis=2)
    probability: FloatArray = improves.mean(axis=1)
    return probability


def _improvement_by_volumes(
    candidates: FloatArray, points: FloatArray, reference: Reference
) -> FloatArray:
    """Return the volume of each candidate's box that is not dominated by a point."""
    gains = np.zeros(len(candidates))
    for number, candidate in enumerate(candidates):
        if (candidate < reference).all():
            box = float(np.prod(np.asarray(reference) - candidate))
            gains[number] = max(0.0, box - hypervolume(np.maximum(points, candidate), reference))
    return gains


Propose = Callable[[int, History], dict[str, Any]]
Acquisition = Callable[[FloatArray, FloatArray, FloatArray, Scales, FloatArray], FloatArray]

SAMPLERS = ("auto", "hvpoi", "random", "grid")


@dataclass(frozen=True)
class SamplerSettings:
    """Public facts about a search that samplers need, in addition to its space.

    Attributes
    ----------
    scales : Scales
        The scales of the objectives, with the worst value of each that counts.
    entropy : int
        Seeds all proposals.
    n_initial, n_total : int
        Number of evaluations before the surrogates are used, and of all.
    """

    scales: Scales
    entropy: int
    n_initial: int
    n_total: int


class SurrogateProposer:
    """Propose the point where an acquisition function of Gaussian processes is largest."""

    def __init__(
        self, space: SearchSpace, settings: SamplerSettings, acquisition: Acquisition
    ) -> None:
        self.space, self.settings, self.acquisition = space, settings, acquisition
        self.scales, self.groups = settings.scales, space.groups
        self._surrogates = [Surrogate(self.groups) for _ in self.scales.reference]

    def __call__(self, number: int, history: History) -> dict[str, Any]:
        """Return parameters for the evaluation with a given number."""
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
        good, failed = map(self.space.features, (history.units, history.failed))
        success = success_probability(good, failed, self.groups)

        def score(units: FloatArray) -> FloatArray:
            features = self.space.features(units)
            means, deviations = predictions(processes, features)
            return self.acquisition(means, deviations, points, self.scales, success(features))

        return score


def predictions(
    processes: Sequence[Posterior], features: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return means and deviations, one column per objective."""
    pairs = [process.predict(features) for process in processes]
    means, deviations = zip(*pairs, strict=True)
    return np.column_stack(means), np.column_stack(deviations)


def make_sampler(sampler: Any, space: SearchSpace, settings: SamplerSettings) -> Any:
    """Return the optuna sampler with a name, or a given optuna sampler unchanged."""
    return _sampler_class()(sampler, space, settings) if isinstance(sampler, str) else sampler


def _proposer(name: str, space: SearchSpace, settings: SamplerSettings) -> Propose:
    if name == "random":
        return lambda number, history: space.sample(proposal_generator(settings.entropy, number))
    if name == "grid":
        points = grid_points(space, settings.entropy, settings.n_total)
        return lambda number, history: points[number % len(points)]
    # No fast formula is known for the expected improvement of three objectives.
    has_formula = name == "auto" and len(settings.scales.reference) == 2
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

        def sample_independent(self, study: Any, trial: Any, param_name: str, *_: Any) -> Any:
            raise ValueError(f"{shown(param_name)} must be a parameter of the space.")

        def _history(self, trial: Any, trials: Sequence[Any]) -> History:
            names = set(self.space.names)
            others = [t for t in trials if t.number != trial.number and set(t.params) >= names]
            done = [t for t in others if t.state == TrialState.COMPLETE]
            done.sort(key=lambda t: (t.datetime_complete, t.number))
            pending = [t for t in others if t.state == TrialState.RUNNING]
            # Because of their parameters, not of their processes.
            kinds = {EVALUATION, REFUSED}
            failed = [
                t for t in others if t.state == TrialState.FAIL and kinds & set(t.user_attrs)
            ]
            values = np.array([t.values for t in done], dtype=float)
            units, pending_units, failed_units = map(self._points, (done, pending, failed))
            return History(units, values, pending_units, failed_units)

        def _points(self, trials: Sequence[Any]) -> FloatArray:
            for trial in trials:
                if trial.number not in self._units:
                    params = self.space.from_optuna(trial.params)
                    self._units[trial.number] = self.space.to_unit(params)
            rows = [self._units[trial.number] for trial in trials]
            return np.array(rows).reshape(len(rows), len(self.space.names))

    return ProposingSampler
