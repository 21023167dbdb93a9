"""The parameters of a `DParetoSearchCV` that its parts read."""

from __future__ import annotations

from typing import Any, Protocol


class ParetoSettings(Protocol):
    """The settings of a Pareto search, see `DParetoSearchCV`."""

    delta: float
    n_initial: int
    n_iter: int
    batch_size: int
    sampler: Any
    reference_point: tuple[float, ...]
    epsilon_scale: str
    n_repeats: int
    privacy: str
    third_objective: Any
    release: float | None
    refit: Any
    storage: Any
    study_name: str | None
    n_jobs: int | None
    random_state: Any
