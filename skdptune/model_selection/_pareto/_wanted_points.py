"""Parameters for bounds on epsilon and error, searched on surrogates, then verified."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from skdptune._validation import check_real
from skdptune.model_selection._pareto._sampling import (
    Scales,
    SearchSpace,
    Surrogate,
    feature_groups,
    predictions,
)
from skdptune.model_selection._pareto._study import Record

FloatArray = NDArray[np.float64]
Privacy = Callable[[dict[str, Any]], float]
Utility = Callable[[dict[str, Any]], Sequence[float]]

# Points all over the cube, then near each of the best ones, at decreasing distances.
_N_UNIFORM = 2**11
_N_NEAR = 16
_DISTANCES = (0.1, 0.03, 0.01, 0.003, 0.001)
# Candidates that are verified by the privacy and by the utility function: predictions err.
_N_VERIFIED = 20
_N_MEASURED = 5


class Candidate(NamedTuple):
    """Parameters, their epsilon and their predicted error."""

    epsilon: float
    error: float
    params: dict[str, Any]


@dataclass(frozen=True)
class WantedPoint:
    """Upper bounds on epsilon, on the error, or on both.

    Attributes
    ----------
    epsilon, error : float
        The bounds.
    minimises_error : bool
        Whether the error is minimised; else, where it has a bound, epsilon.
    """

    epsilon: float
    error: float
    minimises_error: bool

    @classmethod
    def of(cls, epsilon: float | None, error: float | None) -> WantedPoint:
        """Return the point of the bounds of :meth:`ParetoResult.best_params_for`."""
        if epsilon is None and error is None:
            raise ValueError("epsilon or error must be given; got neither.")
        return cls(
            math.inf if epsilon is None else check_real(epsilon, name="epsilon", lower=0),
            1.0 if error is None else check_real(error, name="error", lower=0, upper=1),
            error is None,
        )

    def search(
        self,
        records: Sequence[Record],
        space: SearchSpace,
        reference: tuple[float, ...],
        privacy: Privacy | None,
        utility: Utility | None,
    ) -> dict[str, Any]:
        """Return parameters within the bounds, or raise if none are found."""
        if not records:
            raise ValueError("The search must have an evaluation that succeeded; got none.")
        model, margin = _Predictions(records, space, reference), 0.0
        for _ in range(_N_MEASURED):
            candidates = self.candidates(model, privacy, margin)
            if not candidates:
                break
            chosen, error = self.measure(candidates, utility)
            if error <= self.error:
                return chosen
            # The prediction was too good: aim below the bound by more than its error.
            margin = 2 * margin + 1e-3 + min(1.5 * (error - self.error), 0.1)
        raise ValueError(
            f"epsilon and error must be bounds that the search can meet; got {self}. "
            "pareto_front_ shows which it can."
        )

    def candidates(
        self, model: _Predictions, privacy: Privacy | None, margin: float
    ) -> list[Candidate]:
        """Return candidates within the bounds, less a margin for the error, best first."""
        aim = replace(self, error=self.error - margin) if margin else self
        found = aim.evaluated(model)
        if privacy is not None:
            found += aim.predicted(model, privacy)
        return sorted(found, key=lambda c: c.error if self.minimises_error else c.epsilon)

    def __str__(self) -> str:
        """Return the bounds."""
        bounds = (("epsilon", self.epsilon, math.inf), ("error", self.error, 1.0))
        return " and ".join(f"{n} <= {bound:g}" for n, bound, most in bounds if bound < most)

    def evaluated(self, model: _Predictions) -> list[Candidate]:
        """Return the evaluated parameters within the bounds."""
        values = model.values
        # By their predicted errors: those that were measured are the best ones by luck as well.
        errors = model.predict(model.units)[:, 1]
        within = np.flatnonzero((values[:, 0] <= self.epsilon) & (values[:, 1] <= self.error))
        return [Candidate(float(values[i, 0]), float(errors[i]), model.params[i]) for i in within]

    def predicted(self, model: _Predictions, privacy: Privacy) -> list[Candidate]:
        """Return the best predicted parameters whose computed epsilon is within the bound."""
        found: list[Candidate] = []
        units, predicted = self.best_predicted(model)
        for unit, (_, error) in zip(units, predicted, strict=True):
            params = model.space.from_unit(unit)
            epsilon = _epsilon_of(privacy, params)
            if epsilon <= self.epsilon and error <= self.error:
                found.append(Candidate(epsilon, float(error), params))
        return found

    def best_predicted(self, model: _Predictions) -> tuple[FloatArray, FloatArray]:
        """Return points of the cube, the best first, and their predicted epsilon and error."""
        rng = np.random.default_rng(0)
        cube = stats.qmc.Sobol(len(model.space.names), scramble=True, rng=rng)
        units = np.vstack([cube.random(_N_UNIFORM), model.units])
        for distance in (*_DISTANCES, 0.0):
            predicted = model.predict(units)
            best = np.argsort(self.loss(predicted), kind="stable")[: 2 * _N_VERIFIED]
            units, predicted = units[best], predicted[best]
            if distance:
                near = np.repeat(units, _N_NEAR, axis=0)
                near = near + distance * rng.normal(size=near.shape)
                units = np.vstack([units, np.clip(near, 0.0, 1.0)])
        return units[:_N_VERIFIED], predicted[:_N_VERIFIED]

    def loss(self, predicted: FloatArray) -> FloatArray:
        """Return what is minimised, far larger where a bound is exceeded."""
        epsilon, error = predicted.T
        # A little below the bound, so that the computed epsilon is often below it as well.
        bound = np.log(max(self.epsilon * 0.999, 1e-12))
        excess = np.maximum(np.log(np.maximum(epsilon, 1e-12)) - bound, 0.0)
        excess += np.maximum(error - self.error, 0.0)
        minimised = error if self.minimises_error else epsilon
        loss: FloatArray = np.where(excess > 0, 1e9 * (1.0 + excess), minimised)
        return loss

    def measure(
        self, candidates: Sequence[Candidate], utility: Utility | None
    ) -> tuple[dict[str, Any], float]:
        """Return the best candidate and its error, measured if there is a utility function."""
        if utility is None:
            return candidates[0].params, 0.0
        # To meet a bound one is enough; else the best of some is chosen.
        tried = candidates[: _N_MEASURED if self.minimises_error else 1]
        errors = [_measured_error(utility, candidate.params) for candidate in tried]
        best = int(np.argmin(errors))
        return tried[best].params, errors[best]


class _Predictions:
    """The surrogates of epsilon and error after the last evaluation."""

    def __init__(
        self, records: Sequence[Record], space: SearchSpace, reference: tuple[float, ...]
    ) -> None:
        self.space, self.params = space, [record.params for record in records]
        self.units = np.array([space.to_unit(params) for params in self.params])
        found = [record.evaluation for record in records]
        self.values = np.array([(e.epsilon, e.error) for e in found])
        self._scales = Scales((reference[0], 1.0))
        features, groups = space.features(self.units), feature_groups(space)
        targets = self._scales.forward(self.values).T
        self._processes = [Surrogate(groups).posterior(features, target) for target in targets]

    def predict(self, units: FloatArray) -> FloatArray:
        """Return rows of predicted epsilon and error."""
        means, _ = predictions(self._processes, self.space.features(units))
        return self._scales.backward(means)


def _epsilon_of(privacy: Privacy, params: dict[str, Any]) -> float:
    """Return the epsilon of parameters, infinite where the function fails."""
    try:
        epsilon = float(privacy(params))
    # The function of a user may raise anything.
    except Exception:
        return math.inf
    return epsilon if epsilon >= 0.0 else math.inf


def _measured_error(utility: Utility, params: dict[str, Any]) -> float:
    try:
        return 1.0 - float(np.mean(utility(params)))
    # The function of a user may raise anything.
    except Exception:
        return math.inf
