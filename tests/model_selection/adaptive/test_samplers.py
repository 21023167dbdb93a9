"""Samplers and pruners by name, and as optuna has them."""

from __future__ import annotations

from typing import Any

import pytest

from skdptune.model_selection._adaptive import _studies
from skdptune.model_selection._adaptive._studies import (
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


@pytest.mark.parametrize("has_torch", [False, True])
def test_default_needs_no_torch(has_torch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = "torch" if has_torch else None
    monkeypatch.setattr(_studies, "find_spec", lambda name: found)
    expected = optuna.samplers.GPSampler if has_torch else optuna.samplers.TPESampler
    assert type(make_sampler("auto", 20, 0, 1)) is expected
    # A process passes over trials that were pruned.
    assert type(make_sampler("auto", 20, 0, 1, prunes=True)) is optuna.samplers.TPESampler


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
