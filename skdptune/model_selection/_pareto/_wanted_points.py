"""Parameters for a point of the front that is wanted, sought on surrogates, then verified."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

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

_N_SPREAD = 2**11
_N_AROUND = 16
_ROUNDS = (0.1, 0.03, 0.01, 0.003, 0.001)
# Surrogates err: so many of the most promising candidates are put to the oracles.
_N_VERIFIED = 20
_N_MEASURED = 5


@dataclass(frozen=True)
class WantedPoint:
    """An epsilon, an error, or both, that parameters shall not exceed.

    Attributes
    ----------
    epsilon, error : float
        The bounds.
    sought : int
        What is to be small: the error (1), or where that is bounded, epsilon (0).
    """

    epsilon: float
    error: float
    sought: int

    @classmethod
    def of(cls, epsilon: float | None, error: float | None) -> WantedPoint:
        """Return the point for bounds as :meth:`ParetoResult.best_params_for` takes them."""
        if epsilon is None and error is None:
            raise ValueError("epsilon or error must be given; got neither.")
        return cls(
            math.inf if epsilon is None else check_real(epsilon, name="epsilon", lower=0),
            1.0 if error is None else check_real(error, name="error", lower=0, upper=1),
            1 if error is None else 0,
        )

    def search(
        self,
        records: Sequence[Record],
        space: SearchSpace,
        reference: tuple[float, ...],
        privacy: Privacy | None,
        utility: Utility | None,
    ) -> dict[str, Any]:
        """Return parameters for the point, or raise if none were found."""
        if not records:
            raise ValueError("best_params_for needs an evaluation that succeeded; got none.")
        model, margin = _Model(records, space, reference), 0.0
        for _ in range(_N_MEASURED):
            candidates = self.candidates(model, privacy, margin)
            if not candidates:
                break
            chosen, error = self.measured(candidates, utility)
            if error <= self.error:
                return chosen
            # The surrogate promised too much: aim below the bound by more than that.
            margin = 2 * margin + 1e-3 + min(1.5 * (error - self.error), 0.1)
        raise ValueError(
            f"{self} must be within reach of the search; got no parameters for it. "
            "pareto_front_ shows what is."
        )

    def candidates(
        self, model: _Model, privacy: Privacy | None, margin: float
    ) -> list[_Candidate]:
        """Return parameters that obey the bounds, that of the error by a margin, best first."""
        aim = replace(self, error=self.error - margin) if margin else self
        found = aim.evaluated(model)
        if privacy is not None:
            found += aim.imagined(model, privacy)
        return sorted(found, key=lambda candidate: candidate[self.sought])

    def __str__(self) -> str:
        """Return the bounds."""
        bounds = (("epsilon", self.epsilon, math.inf), ("error", self.error, 1.0))
        return " and ".join(f"{n} <= {bound:g}" for n, bound, most in bounds if bound < most)

    def evaluated(self, model: _Model) -> list[_Candidate]:
        """Return the evaluations that obey the bounds, of which no privacy need be asked."""
        values = model.values
        # A surrogate smooths luck away; a front of lucky evaluations would promise too much.
        errors = model.predict(model.units)[:, 1]
        places = np.flatnonzero((values[:, 0] <= self.epsilon) & (values[:, 1] <= self.error))
        return [(float(values[p, 0]), float(errors[p]), model.params[p]) for p in places]

    def imagined(self, model: _Model, privacy: Privacy) -> list[_Candidate]:
        """Return the most promising parameters whose epsilon, as the oracle has it, obeys."""
        found: list[_Candidate] = []
        units, predicted = self.promising(model)
        for unit, (_, error) in zip(units, predicted, strict=True):
            params = model.space.from_unit(unit)
            epsilon = _asked(privacy, params)
            if epsilon <= self.epsilon and error <= self.error:
                found.append((epsilon, float(error), params))
        return found

    def promising(self, model: _Model) -> tuple[FloatArray, FloatArray]:
        """Return points of the cube, the best first, and their predicted epsilon and error."""
        rng = np.random.default_rng(0)
        cube = stats.qmc.Sobol(len(model.space.names), scramble=True, rng=rng)
        units = np.vstack([cube.random(_N_SPREAD), model.units])
        for step in (*_ROUNDS, 0.0):
            predicted = model.predict(units)
            best = np.argsort(self.cost(predicted), kind="stable")[: 2 * _N_VERIFIED]
            units, predicted = units[best], predicted[best]
            if step:
                around = np.repeat(units, _N_AROUND, axis=0)
                around = around + step * rng.normal(size=around.shape)
                units = np.vstack([units, np.clip(around, 0.0, 1.0)])
        return units[:_N_VERIFIED], predicted[:_N_VERIFIED]

    def cost(self, predicted: FloatArray) -> FloatArray:
        """Return what is to be small, far larger where a bound is broken."""
        epsilon, error = predicted.T
        # Somewhat below the bound, so that the oracle agrees more often than not.
        bound = np.log(max(self.epsilon * 0.999, 1e-12))
        excess = np.log(np.maximum(epsilon, 1e-12)) - bound
        broken = np.maximum(excess, 0.0) + np.maximum(error - self.error, 0.0)
        cost: FloatArray = np.where(broken > 0, 1e9 * (1.0 + broken), predicted[:, self.sought])
        return cost

    def measured(
        self, candidates: Sequence[_Candidate], utility: Utility | None
    ) -> tuple[dict[str, Any], float]:
        """Return the best candidate and its error, measured where that may be asked for."""
        if utility is None:
            return candidates[0][2], 0.0
        # One is enough where a bound is to be met; where not, the best of some is chosen.
        tried = candidates[: _N_MEASURED if self.sought == 1 else 1]
        errors = [_measured_error(utility, params) for _, _, params in tried]
        place = int(np.argmin(errors))
        return tried[place][2], errors[place]


# Epsilon, predicted error, parameters.
_Candidate = tuple[float, float, dict[str, Any]]


class _Model:
    """The surrogates of epsilon and error after the last evaluation."""

    def __init__(
        self, records: Sequence[Record], space: SearchSpace, reference: tuple[float, ...]
    ) -> None:
        self.space, self.params = space, [record.params for record in records]
        self.units = np.array([space.to_unit(params) for params in self.params])
        found = [record.evaluation for record in records]
        self.values = np.array([(e.epsilon, 1.0 - np.mean(e.utilities)) for e in found])
        self._scales = Scales((reference[0], 1.0))
        features, groups = space.features(self.units), feature_groups(space)
        targets = self._scales.forward(self.values).T
        self._processes = [Surrogate(groups).posterior(features, target) for target in targets]

    def predict(self, units: FloatArray) -> FloatArray:
        """Return the expected epsilon and error, rows of two."""
        means, _ = predictions(self._processes, self.space.features(units))
        return self._scales.backward(means)


def _asked(privacy: Privacy, params: dict[str, Any]) -> float:
    """Return an epsilon, infinite where the oracle fails: the parameters are not to be had."""
    try:
        epsilon = float(privacy(params))
    # An oracle may raise anything.
    except Exception:
        return math.inf
    return epsilon if epsilon >= 0.0 else math.inf


def _measured_error(utility: Utility, params: dict[str, Any]) -> float:
    try:
        return 1.0 - float(np.mean(utility(params)))
    # An oracle may raise anything.
    except Exception:
        return math.inf
