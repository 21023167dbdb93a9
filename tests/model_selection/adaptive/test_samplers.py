"""Samplers and pruners by name, and as optuna has them."""

from __future__ import annotations

from typing import Any

import pytest

from skdptune.model_selection._adaptive._samplers import (
    PRUNERS,
    SAMPLERS,
    check_pruner,
    check_sampler,
    make_pruner,
    make_sampler,
)

optuna = pytest.importorskip("optuna")


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_names_are_samplers(sampler: str) -> None:
    check_sampler(sampler)
    assert isinstance(make_sampler(sampler, 20, 0, 2), optuna.samplers.BaseSampler)


@pytest.mark.parametrize("pruner", [None, *PRUNERS])
def test_names_are_pruners(pruner: Any) -> None:
    check_pruner(pruner)
    assert isinstance(make_pruner(pruner), optuna.pruners.BasePruner)


def test_given_ones_are_copied() -> None:
    sampler, pruner = optuna.samplers.RandomSampler(seed=0), optuna.pruners.MedianPruner()
    check_sampler(sampler)
    check_pruner(pruner)
    assert type(make_sampler(sampler, 20, 0, 1)) is type(sampler)
    assert make_sampler(sampler, 20, 0, 1) is not sampler
    assert make_pruner(pruner) is not pruner


@pytest.mark.parametrize("given", ["best", 3, optuna.samplers.TPESampler, None])
def test_others_are_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="sampler must be one of 'auto', 'tpe', 'gp', 'random'"):
        check_sampler(given)


@pytest.mark.parametrize("given", ["best", 3, optuna.pruners.MedianPruner])
def test_other_pruners_are_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="pruner must be one of 'halving', 'hyperband' or an"):
        check_pruner(given)
