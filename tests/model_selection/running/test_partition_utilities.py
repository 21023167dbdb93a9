"""Utilities on disjoint partitions, and the noise that hides one record."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.metrics import accuracy
from skdptune.model_selection._running._data import Data
from skdptune.model_selection._running._partition_utilities import (
    auto_partitions,
    choice_noise,
    partition_utilities,
    permute_and_flip_cost,
)
from tests.model_selection.learners import Loud, Scripted, Together, table

DATA = Data(*table(400), {}, {})


def utilities(estimators: list[object], parts: list[np.ndarray], raises: bool = False) -> object:
    return partition_utilities(
        estimators,
        [None] * len(estimators),
        DATA,
        parts,
        DATA,
        accuracy(),
        400,
        n_jobs=1,
        pre_dispatch="2*n_jobs",
        raises=raises,
    )


@pytest.mark.parametrize(("parts", "scores"), [(10, 1000), (10, 3), (50, 25), (10, None)])
def test_neither_kind_of_record_costs_more_than_the_choice(parts: int, scores: int | None) -> None:
    # Theorem F5.
    noise = choice_noise(0.5, parts, scores)
    assert max(noise.epsilon, noise.of_score) == pytest.approx(0.5)
    # One record's change over the noise's scale.
    assert noise.epsilon == pytest.approx(0.5 / (parts * noise.sensitivity))
    assert noise.of_score == pytest.approx(
        0.0 if scores is None else 0.5 / (2.0 * scores * noise.sensitivity)
    )


@pytest.mark.parametrize(("parts", "scores"), [(10, 1000), (10, 3), (50, 25)])
def test_a_replaced_record_costs_no_more_than_the_choice(parts: int, scores: int) -> None:
    # Theorem F8: it moves utilities in any direction, so twice the change counts.
    noise = choice_noise(0.5, parts, scores, monotone=False)
    assert max(noise.epsilon, noise.of_score) == pytest.approx(0.5)
    scale = 2.0 * noise.sensitivity / 0.5
    assert noise.of_score == pytest.approx(2.0 / scores / scale)


def test_number_of_partitions_follows_public_numbers() -> None:
    assert auto_partitions(1.0, 100_000) == 50
    assert auto_partitions(1.0, 2_000) == 20
    assert auto_partitions(1.0, 200) == 5
    assert auto_partitions(1e-3, 100) == 50
    assert auto_partitions(100.0, 100_000) == 2


def test_utility_is_the_mean_over_the_partitions() -> None:
    parts = list(np.array_split(np.arange(400), 4))
    truth = [float(np.mean(DATA.X[:, 1] < quality)) for quality in (0.2, 0.9)]
    found = utilities([Scripted(0.2), Scripted(0.9)], parts)
    np.testing.assert_allclose(found, truth, atol=1e-12)


def test_empty_partition_and_failing_candidate_count_as_the_worst() -> None:
    parts = [np.arange(400), np.arange(0)]
    found = utilities([Scripted(1.0), Loud(0.1)], parts)
    np.testing.assert_allclose(found, [0.5, 0.0], atol=1e-12)
    with pytest.raises(ValueError, match="exception of"):
        utilities([Loud(0.1)], parts, raises=True)


def test_many_candidates_keep_their_order() -> None:
    qualities = np.linspace(0.0, 1.0, 40)
    found = utilities([Scripted(float(q)) for q in qualities], [np.arange(400)])
    np.testing.assert_allclose(found, [np.mean(DATA.X[:, 1] < q) for q in qualities], atol=1e-12)


@pytest.mark.parametrize(
    ("last", "calls"), [(0.6, ["together"]), (0.9, ["together", "alone", "alone", "alone"])]
)
def test_candidates_that_can_be_fitted_together_are(last: float, calls: list[str]) -> None:
    qualities = (0.2, 0.8, last)
    parts = list(np.array_split(np.arange(400), 2))
    Together.calls.clear()
    found = utilities([Together(q) for q in qualities], parts)
    assert Together.calls == [*calls, *calls]
    wanted = utilities([Scripted(q) for q in qualities], parts)
    # Quality 0.8 fails among others, and not by itself.
    np.testing.assert_allclose(found[[0, 2]], wanted[[0, 2]])
    assert found[1] == (0.0 if last == 0.6 else wanted[1])
    with pytest.raises(ValueError, match="cannot"):
        utilities([Together(q) for q in qualities], parts, raises=True)


def test_choice_of_nothing_is_free() -> None:
    assert permute_and_flip_cost(0.0).epsilon(0.0) == 0.0
    assert permute_and_flip_cost(0.3).epsilon(0.0) == pytest.approx(0.3)
