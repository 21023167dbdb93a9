"""Warnings about evaluations: failures, a single cost, and too few of them."""

from __future__ import annotations

import math
import warnings

import pytest
from sklearn.exceptions import FitFailedWarning

from skdptune.model_selection._pareto._families import (
    warn_of_failures,
    warn_of_few,
    warn_of_one_cost,
)
from skdptune.model_selection._pareto._optimizer import Evaluation, Record

FAILED = Record(2, {"quality": 0.1}, Evaluation(math.nan, failure="ValueError: no"))


def records(*epsilons: float) -> list[Record]:
    return [Record(n, {}, Evaluation(epsilon, (0.9,))) for n, epsilon in enumerate(epsilons)]


def test_failures_are_counted_and_the_first_is_explained() -> None:
    words = "2 of 4 evaluations failed. The first: ValueError: no"
    with pytest.warns(FitFailedWarning, match=words):
        warn_of_failures([*records(1.0, 2.0), FAILED, FAILED], stacklevel=2)


def test_one_cost_and_too_few_evaluations_are_named() -> None:
    with pytest.warns(UserWarning, match="^All evaluations cost epsilon=2, so .* a single point"):
        warn_of_one_cost([*records(2.0, 2.0), FAILED], stacklevel=2)
    with pytest.warns(UserWarning, match="^release must be larger.* n_initial=8.* paid for 3"):
        warn_of_few(3, 8, stacklevel=2)


def test_nothing_is_said_of_a_good_front() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_failures(records(1.0, 2.0), stacklevel=2)
        warn_of_one_cost(records(1.0, 2.0), stacklevel=2)
        warn_of_one_cost(records(1.0), stacklevel=2)
        warn_of_few(8, 8, stacklevel=2)
