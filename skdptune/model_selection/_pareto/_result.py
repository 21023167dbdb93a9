"""The result of a Pareto search: fronts, evaluations, and parameters for given bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune.model_selection._pareto._sampling import (
    SearchSpace,
    front,
    hypervolume_history,
    non_dominated,
)
from skdptune.model_selection._pareto._study import (
    Record,
    check_epsilon_scale,
    check_reference_point,
)
from skdptune.model_selection._pareto._wanted_points import WantedPoint

FloatArray = NDArray[np.float64]
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
        The non-dominated evaluations by rising epsilon: ``epsilon``, ``error`` (1 - mean utility),
        the third objective by its name, ``param_<name>`` for each parameter, ``params`` (dicts).
    evaluations_ : DataFrame, or dict of arrays without pandas
        All evaluations in order of completion: ``number``, then as above, then ``spread``
        (standard deviation of the utility over repeats), ``utilities``, ``seconds``
        and ``failure`` (None, or why it failed; epsilon and error are NaN then).
    hypervolume_ : float
        Of the front, below the reference point, on the scale of ``epsilon_scale``.
    hypervolume_history_ : ndarray of shape (n_evaluations,)
        The hypervolume after each evaluation, in order of completion.
    fronts_ : dict of str to ndarray
        ``"mean"``, ``"best"`` and ``"worst"``: the front's points (k, objectives), sorted, where
        an evaluation's utility is the mean, the largest or the smallest of its repeats.
    study_ : optuna.Study
        The study itself, for optuna's plots and exports. Its categories are indices of the
        space's lists, and parameters with a distribution are levels of quantiles.

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
        """Return a summary in one line."""
        points = len(self.pareto_front_["epsilon"])
        return (
            f"{type(self).__name__}({len(self.records)} evaluations, {points} on the front, "
            f"hypervolume {self.hypervolume_:.4g})"
        )

    def _points(self, statistic: Statistic) -> FloatArray:
        """Return the objectives, one row per evaluation; NaN where it failed."""
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
        privacy function, and never above the bound.

        Parameters
        ----------
        epsilon : float, optional
            The largest epsilon. Without `error`, the predicted error is minimised.
        error : float, optional
            The largest predicted error; epsilon is then minimised.
        verify : bool, default=False
            Whether to call the utility function as well, at most five times: with `error`,
            parameters of a larger measured error are passed over; without, the best of the five
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
        wanted = WantedPoint.of(epsilon, error)
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
    """Return a frame, or arrays where pandas is not installed."""
    try:
        import pandas
    except ModuleNotFoundError:
        return {name: _array(column) for name, column in columns.items()}
    return pandas.DataFrame({name: pandas.Series(_array(c)) for name, c in columns.items()})


def _array(column: list[Any]) -> NDArray[Any]:
    """Return numbers as numbers, and everything else as the objects they are."""
    if column and all(type(value) in (int, float) for value in column):
        return np.array(column)
    array = np.empty(len(column), dtype=object)
    array[:] = column
    return array
