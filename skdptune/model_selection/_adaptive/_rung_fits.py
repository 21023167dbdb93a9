"""Fits and noisy scores of trials at one rung."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skdptune.model_selection._adaptive._adaptive_cost import AdaptiveCostModel
from skdptune.model_selection._adaptive._settings import AdaptiveSettings
from skdptune.model_selection._adaptive._shorter_fits import with_share
from skdptune.model_selection._cost import CurveSetting
from skdptune.model_selection._running import (
    Material,
    Result,
    Run,
    child_stream,
    perform_runs,
    spawned,
)
from skdptune.model_selection._tuning_search import SearchState


@dataclass(frozen=True, eq=False)
class RungFits:
    """Makes the fits of an adaptive search.

    Parameters
    ----------
    search : DPAdaptiveSearchCV
    state : SearchState
    model : AdaptiveCostModel
    material : Material
        Records, and how they are scored with a whole share of noise.
    begin : callable
        Is called as ``begin(trial, place)`` for each fit that is paid for, before data are read.
    """

    search: AdaptiveSettings
    state: SearchState
    model: AdaptiveCostModel
    material: Material
    begin: Callable[[Any, int], None]

    def of(self, trials: Sequence[Any], place: int) -> list[Result]:
        """Fit and score trials at a rung, side by side."""
        # Theorem G6.
        runs = [self._run_of(trial, place) for trial in trials]
        for trial in trials:
            self.begin(trial, place)
        return perform_runs(
            runs,
            self._material_at(place),
            n_jobs=self.search.n_jobs,
            pre_dispatch=self.search.pre_dispatch,
        )

    def _run_of(self, trial: Any, place: int) -> Run:
        """Return the run of a trial, whose cost is known to be what is paid for."""
        model, share = self.model, self.model.rungs[place]
        costs, size = model.fit_costs, model.rung_size(share)
        setting = model.rung_setting(self.state.plan.cost.run_setting, share)
        candidate = with_share(costs.estimator, trial.params, share / model.rungs[-1], size)
        if model.prunes and isinstance(setting, CurveSetting):
            costs.check_below([candidate], setting, size)
        else:
            costs.check([candidate], setting, size)
        made = costs.configured(candidate, setting, size)
        seeds = child_stream(child_stream(self.state.streams.runs, trial.number), place)
        return Run(made, *spawned(seeds, 2))

    def _material_at(self, place: int) -> Material:
        scoring = self.material.scoring
        noisier = replace(scoring, ratio=scoring.ratio / math.sqrt(self.model.rungs[place]))
        return replace(self.material, scoring=noisier)
