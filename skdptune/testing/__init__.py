"""Checks of private estimators, for those who write their own."""

from skdptune.testing._check_private_estimator import check_private_estimator
from skdptune.testing._replay import NeighbourReplay, replay_neighbours

# isort: split
# For the other folders of this package.
from skdptune.testing._replay import global_generators as global_generators
from skdptune.testing._replay import published as published

__all__ = ["NeighbourReplay", "check_private_estimator", "replay_neighbours"]
