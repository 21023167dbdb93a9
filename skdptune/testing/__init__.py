"""Checks for authors of private estimators."""

from skdptune.testing._fit_checks import check_private_estimator
from skdptune.testing._replay_neighbours import replay_neighbours
from skdptune.testing._replay_result import NeighbourReplay

__all__ = ["NeighbourReplay", "check_private_estimator", "replay_neighbours"]
