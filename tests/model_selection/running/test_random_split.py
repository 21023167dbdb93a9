"""Each record's place is its own random draw (Theorem T3)."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.model_selection._running._random_split import (
    disjoint_folds,
    disjoint_partitions,
    expected_size,
    random_split,
)


@pytest.mark.parametrize(("tuning", "variant"), [(None, 1), (0.3, 1), (0.3, 2)])
def test_places_have_their_chances(tuning: float | None, variant: int) -> None:
    n = 40_000
    split = random_split(n, 0.2, tuning, variant, np.random.default_rng(0))
    assert abs(split.validation.size / n - 0.2) < 0.01
    assert abs(split.tuning.size / n - (0.8 if tuning is None else tuning)) < 0.01
    assert not set(split.validation) & set(split.tuning)
    if tuning is None or variant == 2:
        assert split.final is None
    else:
        assert sorted([*split.final, *split.tuning]) == list(range(n))


def test_one_record_more_leaves_the_places_of_others() -> None:
    # Theorem T3.
    one = random_split(100, 0.2, 0.3, 1, np.random.default_rng(1))
    more = random_split(101, 0.2, 0.3, 1, np.random.default_rng(1))
    assert set(one.tuning) == set(more.tuning) - {100}
    assert set(one.validation) == set(more.validation) - {100}


def test_partitions_are_disjoint_and_uniform() -> None:
    # Theorem F5.
    found = disjoint_partitions(np.arange(10, 10_010), 4, np.random.default_rng(0))
    assert sorted(np.concatenate(found)) == list(range(10, 10_010))
    assert all(abs(part.size - 2500) < 200 for part in found)


def test_partitions_may_be_empty() -> None:
    found = disjoint_partitions(np.arange(2), 5, np.random.default_rng(0))
    assert len(found) == 5
    assert sum(part.size for part in found) == 2


def test_expected_size_is_never_zero() -> None:
    assert expected_size(1000, 0.2) == 200
    assert expected_size(3, 0.01) == 1


def test_folds_train_on_all_others() -> None:
    folds = disjoint_folds(1000, 3, np.random.default_rng(0))
    assert sorted(np.concatenate([held for _, held in folds])) == list(range(1000))
    for train, held in folds:
        assert sorted([*train, *held]) == list(range(1000))
