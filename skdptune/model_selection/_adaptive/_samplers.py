"""Samplers and pruners of an adaptive search, by name or as optuna has them."""

from __future__ import annotations

import copy
import warnings
from importlib.util import find_spec
from typing import Any

from skdptune.model_selection._adaptive._races import STARTS
from skdptune.model_selection._pareto import optuna

SAMPLERS = ("auto", "tpe", "gp", "random")
PRUNERS = tuple(STARTS)
# Trials at random before the scores are used: this share, and at least so many.
_RANDOM_SHARE, _FEWEST_RANDOM = 0.25, 4


def check_sampler(sampler: Any) -> None:
    """Raise unless a sampler is a name or an optuna sampler."""
    _check(sampler, "sampler", SAMPLERS, "sample_relative", "optuna.samplers.TPESampler(seed=0)")


def check_pruner(pruner: Any) -> None:
    """Raise unless a pruner is None, a name or an optuna pruner."""
    if pruner is not None:
        _check(pruner, "pruner", PRUNERS, "prune", "optuna.pruners.MedianPruner()")


def _check(given: Any, name: str, names: tuple[str, ...], method: str, example: str) -> None:
    if isinstance(given, str) and given in names:
        return
    # A class of samplers is not a sampler.
    if isinstance(given, str | type) or not hasattr(given, method):
        listed = ", ".join(map(repr, names))
        raise ValueError(
            f"{name} must be one of {listed} or an optuna {name}, such as {example}; got "
            f"{given!r:.60}."
        )


def make_sampler(
    sampler: Any, n_trials: int, seed: int | None, batch_size: int, *, prunes: bool = False
) -> Any:
    """Return an optuna sampler: the one of a name, or a copy of the one that was given."""
    if not isinstance(sampler, str):
        return copy.deepcopy(sampler)
    if sampler == "auto":
        # Of 20 noisy scores it found better candidates, but it passes over those of pruned trials.
        sampler = "gp" if find_spec("torch") is not None and not prunes else "tpe"
    samplers = optuna().samplers
    n_random = max(_FEWEST_RANDOM, int(_RANDOM_SHARE * n_trials))
    with warnings.catch_warnings():
        # Some of it is experimental to optuna.
        warnings.simplefilter("ignore")
        if sampler == "random":
            return samplers.RandomSampler(seed=seed)
        if sampler == "gp":
            return samplers.GPSampler(seed=seed, n_startup_trials=n_random)
        return samplers.TPESampler(
            seed=seed,
            n_startup_trials=n_random,
            multivariate=True,
            constant_liar=batch_size > 1,
        )


def make_pruner(pruner: Any) -> Any:
    """Return an optuna pruner, one that prunes nothing for None and for races of our own."""
    pruners = optuna().pruners
    if pruner is None or pruner in PRUNERS:
        return pruners.NopPruner()
    return copy.deepcopy(pruner)
