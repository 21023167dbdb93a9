"""Adaptive searches: candidates chosen by paid-for scores, ended early, resumed when killed."""

from skdptune.model_selection._adaptive._adaptive_cost import AdaptiveCostModel
from skdptune.model_selection._adaptive._allowance import Allowance
from skdptune.model_selection._adaptive._races import Races
from skdptune.model_selection._adaptive._session import AdaptiveChoice, AdaptiveSearchSession
from skdptune.model_selection._adaptive._studies import (
    PRUNERS,
    AdaptiveTrial,
    check_pruner,
    check_sampler,
    described,
    make_sampler,
)

__all__ = [
    "PRUNERS",
    "AdaptiveChoice",
    "AdaptiveCostModel",
    "AdaptiveSearchSession",
    "AdaptiveTrial",
    "Allowance",
    "Races",
    "check_pruner",
    "check_sampler",
    "described",
    "make_sampler",
]
