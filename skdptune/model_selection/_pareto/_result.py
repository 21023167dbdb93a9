"""The result of a Pareto search: fronts, evaluations, and parameters for given bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from skdptune._validation import check_real
from skdptune.model_selection._pareto._families import objects
from skdptune.model_selection._pareto._optimizer import (
    Record,
    check_epsilon_scale,
    check_reference_point,
)
from skdptune.model_selection._pareto._samplers import predictions
from skdptune.model_selection._pareto._surrogates import (
    Scales,
    Surrogate,
    front,
    hypervolume_history,
    non_dominated,
)
from skdptune.model_selection._space import SearchSpace

FloatArray = NDArray[np.float64]
Privacy = Callable[[dict[str, Any]], float]
Utility = Callable[[dict[str, Any]], Sequence[float]]

# Points all over the cube, then near each of the best ones, at decreasing distances.
_N_UNIFORM = 2**11
_N_NEAR = 16
_DISTANCES = (0.1, 0.03, 0.01, 0.003, 0.001)
# Candidates that the privacy and the utility function verify, since predictions may be wrong.
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
        Whether the error is minimised; otherwise epsilon is, if the error has a bound.
    """

    epsilon: float
    error: float
    minimises_error: bool

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
            # The prediction was too good: aim below the bound by more than the prediction error.
            margin = 2 * margin + 1e-3 + min(1.5 * (error - self.error), 0.1)
        raise ValueError(
            f"epsilon and error must be bounds that the search can meet; got {self}. "
            "pareto_front_ shows which it can."
        )

    def candidates(
        self, model: _Predictions, privacy: Privacy | None, margin: float
    ) -> list[Candidate]:
        """Return candidates within the bounds, minus a margin for the error, best first."""
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
        # By predicted errors: the best measured errors are partly luck.
        errors = model.predict(model.units)[:, 1]
        within = np.flatnonzero((values[:, 0] <= self.epsilon) & (values[:, 1] <= self.error))
        return [Candidate(float(values[i, 0]), float(errors[i]), model.params[i]) for i in within]

    def predicted(self, model: _Predictions, privacy: Privacy) -> list[Candidate]:
        """Return the best predicted parameters whose computed epsilon is within the bound."""
        found: list[Candidate] = []
        units, predicted = self.best_predicted(model)
        for unit, (_, error) in zip(units, predicted, strict=True):
            params = model.space.from_unit(unit)
            epsilon = _value(privacy, params)
            if 0.0 <= epsilon <= self.epsilon and error <= self.error:
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
        """Return the objective to minimise; it is far larger if a bound is exceeded."""
        epsilon, error = predicted.T
        # Slightly below the bound, so that the computed epsilon is often below it as well.
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
        # One candidate is enough to meet a bound; otherwise the best of several is chosen.
        tried = candidates[: _N_MEASURED if self.minimises_error else 1]
        errors = [1.0 - _value(utility, candidate.params) for candidate in tried]
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
        features, groups = space.features(self.units), space.groups
        targets = self._scales.forward(self.values).T
        self._processes = [Surrogate(groups).posterior(features, target) for target in targets]

    def predict(self, units: FloatArray) -> FloatArray:
        """Return rows of predicted epsilon and error."""
        means, _ = predictions(self._processes, self.space.features(units))
        return self._scales.backward(means)


def _value(function: Callable[[dict[str, Any]], Any], params: dict[str, Any]) -> float:
    """Return the mean of a function's values; minus infinity, an invalid epsilon, if it fails."""
    try:
        return float(np.mean(function(params)))
    # A user's function may raise anything.
    except Exception:
        return -math.inf


Statistic = Callable[[Any], Any]


class ParetoResult:
    """Result of a Pareto search: fronts, evaluations, and the best parameters for given bounds.

    It is returned by :func:`pareto_search`.

    Parameters
    ----------
    records : sequence of Record
        The evaluations in order of completion.
    space : SearchSpace
        The space of the parameters.
    reference_point : tuple of float
        The largest objectives that count for the hypervolume.
    epsilon_scale : {"linear", "log"}
        The scale of epsilon in the hypervolume.
    third : str or None
        The third objective's name.
    study : optuna.Study or None
        Kept as ``study_``.
    privacy : callable ``(params) -> epsilon`` or None
        Computes epsilon for ``best_params_for``.
    utility : callable ``(params) -> sequence of float`` or None
        Repeats of the utility, for ``best_params_for(verify=True)``.

    Attributes
    ----------
    pareto_front_ : DataFrame, or dict of arrays without pandas
        The non-dominated evaluations in order of increasing epsilon: ``epsilon``, ``error`` (1 -
        mean utility), the third objective by its name, ``param_<name>`` for each parameter,
        ``params`` (dicts).
    evaluations_ : DataFrame, or dict of arrays without pandas
        All evaluations in order of completion: ``number``, then the columns above, then ``spread``
        (standard deviation of the utility over repeats), ``utilities``, ``seconds`` and
        ``failure`` (None, or the reason of the failure; epsilon and error are then NaN).
    hypervolume_ : float
        Hypervolume of the front, below the reference point, on the scale of ``epsilon_scale``.
    hypervolume_history_ : ndarray of shape (n_evaluations,)
        The hypervolume after each evaluation, in order of completion.
    fronts_ : dict of str to ndarray
        ``"mean"``, ``"best"`` and ``"worst"``: the front's points (k, objectives), sorted, where
        an evaluation's utility is the mean, the largest or the smallest of its repeats.
    study_ : optuna.Study
        The study itself, for optuna's plots and exports. Its categories are indices of the space's
        lists, and parameters with a distribution are quantile levels.

    Examples
    --------
    >>> from skdptune.model_selection import pareto_search
    >>> result = pareto_search(
    ...     lambda params: 4.0 / params["noise"], lambda params: 1.0 / (1.0 + params["noise"]),
    ...     {"noise": (0.1, 10.0, "log")}, n_initial=8, n_iter=0, random_state=0,
    ... )
    >>> len(result.pareto_front_["epsilon"])
    8
    >>> result.best_params_for(epsilon=1.0)["noise"] >= 4.0
    True
    """

    def __init__(
        self,
        records: Sequence[Record],
        space: SearchSpace,
        *,
        reference_point: tuple[float, ...] = (10.0, 1.0),
        epsilon_scale: str = "linear",
        third: str | None = None,
        study: Any = None,
        privacy: Callable[[dict[str, Any]], float] | None = None,
        utility: Callable[[dict[str, Any]], Sequence[float]] | None = None,
    ) -> None:
        self.records, self.space, self.study_ = list(records), space, study
        self.reference_point = check_reference_point(reference_point, third)
        self.epsilon_scale, self.third = check_epsilon_scale(epsilon_scale), third
        self._privacy, self._utility = privacy, utility
        points = self._points(np.mean)
        self.hypervolume_history_ = hypervolume_history(
            points, self.reference_point, self.epsilon_scale
        )
        self.hypervolume_ = float(self.hypervolume_history_[-1]) if len(points) else 0.0
        self.evaluations_ = _table(self._evaluation_columns(points))
        self.pareto_front_ = _table(self._front_columns(points))
        statistics: dict[str, Statistic] = {"mean": np.mean, "best": np.max, "worst": np.min}
        self.fronts_ = {
            name: front(known[np.isfinite(known).all(axis=1)])
            for name, known in ((n, self._points(of)) for n, of in statistics.items())
        }

    def __repr__(self) -> str:
        """Return a one-line summary."""
        points = len(self.pareto_front_["epsilon"])
        return (
            f"{type(self).__name__}({len(self.records)} evaluations, {points} on the front, "
            f"hypervolume {self.hypervolume_:.4g})"
        )

    def _points(self, statistic: Statistic) -> FloatArray:
        """Return the objectives, one row per evaluation; NaN if it failed."""
        width = len(self.reference_point)
        rows = [_row(record.evaluation, statistic, width) for record in self.records]
        return np.array(rows, dtype=float).reshape(len(rows), width)

    def _evaluation_columns(self, points: FloatArray) -> dict[str, list[Any]]:
        found = [record.evaluation for record in self.records]
        spreads = [float(np.std(e.utilities)) if e.utilities else np.nan for e in found]
        return {
            "number": [record.number for record in self.records],
            **self._columns(points, self.records),
            "spread": spreads,
            "utilities": [e.utilities for e in found],
            "seconds": [e.seconds for e in found],
            "failure": [e.failure for e in found],
        }

    def _front_columns(self, points: FloatArray) -> dict[str, list[Any]]:
        finite = np.flatnonzero(np.isfinite(points).all(axis=1))
        kept = finite[non_dominated(points[finite])]
        kept = kept[np.argsort(points[kept, 0], kind="stable")]
        return self._columns(points[kept], [self.records[place] for place in kept])

    def _columns(self, points: FloatArray, records: Sequence[Record]) -> dict[str, list[Any]]:
        names = ["epsilon", "error", *([self.third] if self.third else [])]
        columns: dict[str, list[Any]] = dict(zip(names, points.T.tolist(), strict=True))
        for name in self.space.names:
            columns[f"param_{name}"] = [record.params[name] for record in records]
        columns["params"] = [dict(record.params) for record in records]
        return columns

    def best_params_for(
        self, *, epsilon: float | None = None, error: float | None = None, verify: bool = False
    ) -> dict[str, Any]:
        """Return the best parameters within a bound on epsilon, on the error, or on both.

        They are found on surrogates of the evaluations. Their epsilon is then computed by the
        privacy function, and is never above the bound.

        Parameters
        ----------
        epsilon : float, optional
            The largest epsilon. Without `error`, the predicted error is minimised.
        error : float, optional
            The largest predicted error; epsilon is then minimised.
        verify : bool, default=False
            Whether to call the utility function as well, at most five times. With `error`,
            parameters of a larger measured error are skipped. Without it, the best of the five
            best predicted ones are returned.

        Returns
        -------
        params : dict
            The parameters.

        Raises
        ------
        ValueError
            If no parameters within the bounds are found.
        """
        if epsilon is None and error is None:
            raise ValueError("epsilon or error must be given; got neither.")
        wanted = WantedPoint(
            math.inf if epsilon is None else check_real(epsilon, name="epsilon", lower=0),
            1.0 if error is None else check_real(error, name="error", lower=0, upper=1),
            error is None,
        )
        return wanted.search(
            [record for record in self.records if record.evaluation.failure is None],
            self.space,
            self.reference_point,
            self._privacy,
            self._utility if verify else None,
        )


def _row(found: Any, statistic: Statistic, width: int) -> list[float]:
    if found.failure is not None:
        return [np.nan] * width
    third = [] if width == 2 else [found.third]
    return [found.epsilon, max(1.0 - float(statistic(found.utilities)), 0.0), *third]


def _table(columns: dict[str, list[Any]]) -> Any:
    """Return a frame, or arrays if pandas is not installed."""
    try:
        import pandas
    except ModuleNotFoundError:
        return {name: _array(column) for name, column in columns.items()}
    return pandas.DataFrame({name: pandas.Series(_array(c)) for name, c in columns.items()})


def _array(column: list[Any]) -> NDArray[Any]:
    """Return an array of numbers for numbers, and of objects for everything else."""
    if column and all(type(value) in (int, float) for value in column):
        return np.array(column)
    return objects(column)
