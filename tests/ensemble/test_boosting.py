"""Steps of boosting: exact sums, noise, random trees."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.ensemble._bins import Bins
from skdptune.ensemble._boosting import BinnedColumn, _sums, boosted_scores, random_leaves
from skdptune.ensemble._residuals import BinaryResiduals, BoundedResiduals
from skdptune.mechanisms import UNIT

SETTINGS = {"max_rounds": 4, "max_leaves": 3, "learning_rate": 0.5}


def columns_of(rng, n, sizes=(5, 1, 3)):
    found = []
    for place, size in enumerate(sizes):
        weights = rng.uniform(5.0, 50.0, size)
        bins = Bins(np.arange(size), weights)
        found.append(BinnedColumn(rng.integers(0, size, n), bins, place != 2))
    return found


@pytest.mark.parametrize("seed", range(10))
def test_one_record_moves_sums_by_its_own_residuals(seed):
    # Theorem B1: exactly, in whatever order.
    rng = np.random.default_rng(seed)
    n, n_leaves = 5000, 3
    places, leaves = rng.integers(0, 6, n), np.array([0, 0, 1, 2, 2, 1])
    units = np.trunc(rng.uniform(-1, 1, (2, n)) / UNIT)
    whole = _sums(places, units, leaves, n_leaves)
    less = _sums(places[1:], units[:, 1:], leaves, n_leaves)
    expected = np.zeros((2, n_leaves))
    expected[:, leaves[places[0]]] = units[:, 0] * UNIT
    assert np.array_equal(whole - less, expected)
    order = rng.permutation(n)
    assert np.array_equal(_sums(places[order], units[:, order], leaves, n_leaves), whole)


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_a_slow_oracle(seed):
    # Theorem B1: without noise, and with the same trees.
    rng = np.random.default_rng(seed)
    n = 40
    columns, targets = columns_of(rng, n), rng.integers(0, 2, n)
    generator = np.random.default_rng(7)
    found = boosted_scores(columns, BinaryResiduals(targets), 0.0, generator, **SETTINGS)
    again = np.random.default_rng(7)
    tables = [[0.0] * column.bins.weights.size for column in columns]
    for _ in range(SETTINGS["max_rounds"]):
        for column, table in zip(columns, tables, strict=True):
            leaves = random_leaves(len(table), SETTINGS["max_leaves"], column.is_ordered, again)
            sums, weights = [0.0] * len(table), [0.0] * len(table)
            for record in range(n):
                score = sum(
                    other[each.places[record]] for each, other in zip(columns, tables, strict=True)
                )
                leaf = leaves[column.places[record]]
                sums[leaf] += targets[record] - 1.0 / (1.0 + np.exp(-score))
            for place, leaf in enumerate(leaves):
                weights[leaf] += column.bins.weights[place]
            for place, leaf in enumerate(leaves):
                table[place] += SETTINGS["learning_rate"] * sums[leaf] / weights[leaf]
    for scores, table in zip(found, tables, strict=True):
        assert scores.shape == (1, len(table))
        assert scores[0] == pytest.approx(table, abs=1e-5)


def test_noise_has_the_planned_size():
    # Theorem B1: without records, a step's update is noise alone.
    bins = Bins(np.zeros(1, np.intp), np.array([4.0]))
    column = BinnedColumn(np.zeros(0, np.intp), bins, True)
    settings = {"max_rounds": 1, "max_leaves": 3, "learning_rate": 0.5}
    rng = np.random.default_rng(0)
    found = [
        boosted_scores([column], BoundedResiduals(np.zeros(0)), 8.0, rng, **settings)[0][0, 0]
        for _ in range(2000)
    ]
    # 8 times the rate, over the records.
    assert np.std(found) == pytest.approx(1.0, rel=0.08)
    assert abs(np.mean(found)) < 0.1


@pytest.mark.parametrize("n_bins", [1, 2, 3, 8])
@pytest.mark.parametrize("max_leaves", [2, 3, 20])
def test_leaves_are_not_empty(n_bins, max_leaves):
    rng = np.random.default_rng(0)
    for _ in range(50):
        ordered = random_leaves(n_bins, max_leaves, True, rng)
        free = random_leaves(n_bins, max_leaves, False, rng)
        for leaves in (ordered, free):
            assert sorted(set(leaves.tolist())) == list(range(min(n_bins, max_leaves)))
        assert (np.diff(ordered) >= 0).all()


def test_all_cuts_are_equally_likely():
    rng = np.random.default_rng(0)
    cuts = [np.flatnonzero(np.diff(random_leaves(5, 2, True, rng)))[0] for _ in range(4000)]
    assert np.bincount(cuts, minlength=4) == pytest.approx(np.full(4, 1000), abs=150)


def test_scores_stay_finite_whatever_the_noise():
    rng = np.random.default_rng(0)
    columns = columns_of(rng, 30)
    with np.errstate(all="ignore"):
        found = boosted_scores(
            columns, BoundedResiduals(np.zeros(30)), 1e300, np.random.default_rng(0), **SETTINGS
        )
    assert all(np.isfinite(scores).all() for scores in found)
