"""Fits on neighbouring data with the same noise, and what may differ between them."""

from skdptune.testing._replay._replay_neighbours import replay_neighbours
from skdptune.testing._replay._result import NeighbourReplay

__all__ = ["NeighbourReplay", "replay_neighbours"]
