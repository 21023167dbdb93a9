"""Studies of adaptive searches: pruning, and resuming after a crash."""

from skdptune.model_selection._adaptive._allowance import RUNGS, WHOLE, Allowance
from skdptune.model_selection._adaptive._races import Race, Races
from skdptune.model_selection._adaptive._studies import (
    PRUNERS,
    AdaptiveTrial,
    Studies,
    Told,
    check_pruner,
    check_sampler,
    described,
    make_sampler,
)

__all__ = [
    "PRUNERS",
    "RUNGS",
    "WHOLE",
    "AdaptiveTrial",
    "Allowance",
    "Race",
    "Races",
    "Studies",
    "Told",
    "check_pruner",
    "check_sampler",
    "described",
    "make_sampler",
]
