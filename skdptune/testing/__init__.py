"""Checks of private estimators, for those who write their own."""

from skdptune.testing._check_private_estimator import check_private_estimator
from skdptune.testing._replay_neighbours import replay_neighbours
from skdptune.testing._replay_result import NeighbourReplay

# isort: split
# For the other folders of this package.
from skdptune.testing._published import global_generators as global_generators
from skdptune.testing._published import published as published
from skdptune.testing._published import with_public_size as with_public_size

__all__ = ["NeighbourReplay", "check_private_estimator", "replay_neighbours"]
