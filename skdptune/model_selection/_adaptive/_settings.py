"""What a session needs of its search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from skdptune.accounting import PrivacyReport
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._adaptive._space import AdaptiveSpace
from skdptune.model_selection._cost import Plan
from skdptune.model_selection._running import Material, Result
from skdptune.model_selection._tuning_search import Choice, SearchState


class AdaptiveSettings(Protocol):
    """The settings and steps of an adaptive search, see `DPAdaptiveSearchCV`."""

    estimator: Any
    pruner: Any
    storage: Any
    study_name: str | None
    callbacks: Sequence[Callable[[Any, Any], Any]] | None
    n_jobs: int | None
    pre_dispatch: Any
    verbose: int | None

    def _scorer(self) -> BoundedScorer: ...

    def _report(self, plan: Plan, model: Any = None) -> PrivacyReport: ...

    def _material(self, state: SearchState) -> Material: ...

    def _searched(self, plan: Plan) -> Mapping[str, Any]: ...

    def _own_first(self, space: AdaptiveSpace) -> dict[str, Any] | None: ...

    def _has_own(self, candidates: Sequence[dict[str, Any]]) -> bool: ...

    def _public_plan(self, plan: Plan) -> dict[str, str]: ...

    def _make_sampler(self, seed: int | None) -> Any: ...

    def _n_at_once(self) -> int: ...

    def _deviation(self, plan: Plan) -> float: ...

    def _chosen(
        self, state: SearchState, candidates: Sequence[dict[str, Any]], results: Sequence[Result]
    ) -> Choice: ...

    def _final_model(self, state: SearchState, choice: Choice) -> Any: ...

    def _publish(self, plan: Plan, choice: Choice, model: Any) -> None: ...
