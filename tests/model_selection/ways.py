"""Construction of each search, so that every contract is tested; new ones must be added."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from skdptune import model_selection
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DParetoSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    LeastEpsilon,
)
from tests.flat import flat

FAST = {"random_state": 0}


@dataclass(frozen=True)
class Way:
    """One way of using a searcher: `make(estimator, values, **more)` returns it."""

    kind: type
    settings: dict[str, Any] = field(default_factory=dict)
    # Whether every row, or only that of the winner, is released.
    shows_all: bool = False
    # Columns of cv_results_ that other ways do not have.
    columns: frozenset[str] = frozenset()

    @property
    def needs_total(self) -> bool:
        """Whether the search needs an epsilon, so that fits cannot keep their own budgets."""
        return "epsilon" in self.settings

    def make(self, estimator: Any, values: Any, **more: Any) -> Any:
        return flat(self.kind, estimator, values, **{**FAST, **self.settings, **more})


# Only the drawn candidates.
_SMALL = {"n_iter": 3, "n_iter_distribution": "geometric", "try_own_values": False}
# Only the listed candidates.
_TABLE = {"strategy": "table", "try_own_values": False}
WAYS = {
    "random": Way(DPRandomSearchCV, {**_SMALL, "tuning_fraction": None}),
    "random-refit": Way(DPRandomSearchCV, {**_SMALL, "tuning_fraction": None, "refit": True}),
    "random-part": Way(DPRandomSearchCV, {**_SMALL, "tuning_fraction": 0.2}),
    "random-part-2": Way(DPRandomSearchCV, {**_SMALL, "tuning_fraction": 0.2, "variant": 2}),
    "random-own": Way(
        DPRandomSearchCV, {**_SMALL, "tuning_fraction": 0.2, "try_own_values": True}
    ),
    "random-folds": Way(
        DPRandomSearchCV, {**_SMALL, "tuning_fraction": None, "cv": 3, "refit": True}
    ),
    "grid": Way(DPGridSearchCV, {"strategy": "noisy_max"}),
    "grid-table": Way(DPGridSearchCV, _TABLE, shows_all=True),
    "grid-table-folds": Way(DPGridSearchCV, {**_TABLE, "cv": 3}, shows_all=True),
    "grid-table-part": Way(DPGridSearchCV, {**_TABLE, "tuning_fraction": 0.3}, shows_all=True),
    "grid-compose": Way(DPGridSearchCV, {"strategy": "compose"}, shows_all=True),
    "grid-folds": Way(
        DPGridSearchCV, {"strategy": "compose", "cv": 3, "refit": True}, shows_all=True
    ),
    # A target that a first level reaches if its fits do not fail.
    "grid-least": Way(
        DPGridSearchCV,
        {"strategy": LeastEpsilon(target_score=0.0), "epsilon": 3.0},
        shows_all=True,
        columns=frozenset({"epsilon"}),
    ),
    "doubling": Way(DoublingThresholdSearchCV),
    "doubling-per-round": Way(DoublingThresholdSearchCV, {"noise": "per-round", "max_rounds": 9}),
}
HAS_OPTUNA = find_spec("optuna") is not None
_FEW_TRIALS = {"n_trials": 3, "batch_size": 1, "sampler": "tpe", "try_own_values": False}
if HAS_OPTUNA:
    WAYS["adaptive"] = Way(DPAdaptiveSearchCV, _FEW_TRIALS, shows_all=True)
# Has many winners, and publishes none separately: its contract is in test_dpareto_search.py.
WITHOUT_WINNER = {DParetoSearchCV}
# One of each kind, for what costs time.
USUAL = (
    *("random", "random-part", "grid", "grid-table", "grid-compose", "grid-least", "doubling"),
    *(["adaptive"] if HAS_OPTUNA else []),
)


def searchers() -> set[type]:
    """Return the public classes that search for a winner: those with a fit and a price."""
    public = (getattr(model_selection, name) for name in model_selection.__all__)
    found = {
        thing
        for thing in public
        if inspect.isclass(thing) and hasattr(thing, "fit") and hasattr(thing, "privacy_profile")
    }
    return found - WITHOUT_WINNER - (set() if HAS_OPTUNA else {DPAdaptiveSearchCV})
