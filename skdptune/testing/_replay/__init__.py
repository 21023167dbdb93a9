"""Fits on neighbouring data with the same noise, and what may differ between them."""

from skdptune.testing._replay._fits import global_generators
from skdptune.testing._replay._published import published
from skdptune.testing._replay._replay_neighbours import replay_neighbours
from skdptune.testing._replay._result import NeighbourReplay

__all__ = ["NeighbourReplay", "global_generators", "published", "replay_neighbours"]
