"""What a Pareto search found: the front, how it came to be, and parameters for a wanted point."""

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
from skdptune.model_selection._pareto._study import Record, check_reference_point
from skdptune.model_selection._pareto._wanted_points import WantedPoint

FloatArray = NDArray[np.float64]


class ParetoResult:
    """The fronts of a search, and parameters for points on them.

    It is returned by :func:`pareto_search`.

    Parameters
    ----------
    records : sequence of Record
        The evaluations in order of completion.
    space : SearchSpace
        Where the parameters came from.
    reference_point : tuple of float
        The anti-ideal point of the hypervolume.
    third : str or None
        The third objective's name.
    study : optuna.Study or None
        Kept as ``study_``.
    privacy : callable ``(params) -> epsilon`` or None
        Exact privacy, for ``best_params_for``.
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
        Of the front, below the reference point.
    hypervolume_history_ : ndarray of shape (n_evaluations,)
        The hypervolume after each evaluation, in order of completion.
    fronts_ : dict of str to ndarray
        ``"mean"``, ``"best"`` and ``"worst"``: the front's points (k, objectives), sorted, where
        an evaluation's utility is the mean, the largest or the smallest of its repeats.
    study_ : optuna.Study
        The study itself: what optuna can plot or export. Its categories are places in the
        space's lists, and parameters with a distribution are quantiles' levels.

    Examples
    --------
    >>> from skdptune.model_selection._pareto._result import ParetoResult
    >>> from skdptune.model_selection._pareto._study import Evaluation, Record
    >>> from skdptune.model_selection._pareto._sampling._spaces import SearchSpace
    >>> records = [Record(0, {"noise": 1.0}, Evaluation(4.0, (0.8, 0.9)))]
    >>> result = ParetoResult(records, SearchSpace({"noise": (0.1, 10.0, "log")}))
    >>> round(result.hypervolume_, 3)
    5.1
    """

    def __init__(
        self,
        records: Sequence[Record],
        space: SearchSpace,
        *,
        reference_point: tuple[float, ...] = (10.0, 1.0),
        third: str | None = None,
        study: Any = None,
        privacy: Callable[[dict[str, Any]], float] | None = None,
        utility: Callable[[dict[str, Any]], Sequence[float]] | None = None,
    ) -> None:
        self.records, self.space, self.study_ = list(records), space, study
        self.reference_point = check_reference_point(reference_point, third)
        self.third = third
        self._privacy, self._utility = privacy, utility
        points = self._points(np.mean)
        self.hypervolume_history_ = hypervolume_history(points, self.reference_point)
        self.hypervolume_ = float(self.hypervolume_history_[-1]) if len(points) else 0.0
        self.evaluations_ = _table(self._evaluation_columns(points))
        self.pareto_front_ = _table(self._front_columns(points))
        statistics = {"mean": np.mean, "best": np.max, "worst": np.min}
        self.fronts_ = {
            name: front(known[np.isfinite(known).all(axis=1)])
            for name, known in ((n, self._points(of)) for n, of in statistics.items())
        }

    def __repr__(self) -> str:
        """Show what was found in one line."""
        points = len(self.pareto_front_["epsilon"])
        return (
            f"{type(self).__name__}({len(self.records)} evaluations, {points} on the front, "
            f"hypervolume {self.hypervolume_:.4g})"
        )

    def _points(self, statistic: Callable[[Any], Any]) -> FloatArray:
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
        """Return parameters for a wanted point of the front.

        They are sought on surrogates of the evaluations, then the privacy oracle is asked: an
        epsilon above the wanted one is never returned, however the surrogates err.

        Parameters
        ----------
        epsilon : float or None
            Alone: the lowest predicted error among parameters of at most this epsilon.
        error : float or None
            Alone: the lowest epsilon among parameters of at most this predicted error. With
            ``epsilon``: of at most that epsilon.
        verify : bool
            Whether the utility oracle is asked, too, at most five times: with ``error``,
            parameters that turn out to be worse are passed over; without, the best of the five
            most promising is returned.

        Returns
        -------
        params : dict
            The parameters.

        Raises
        ------
        ValueError
            If no parameters were found for the point.
        """
        wanted = WantedPoint.of(epsilon, error)
        return wanted.search(
            [record for record in self.records if record.evaluation.failure is None],
            self.space,
            self.reference_point,
            self._privacy,
            self._utility if verify else None,
        )


def _row(found: Any, statistic: Callable[[Any], Any], width: int) -> list[float]:
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
