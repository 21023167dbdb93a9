"""Steps of boosting: residuals, exact sums, noise, random trees."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from skdptune.ensemble._boosting import (
    BinaryResiduals,
    BinnedColumn,
    BoundedResiduals,
    SoftmaxResiduals,
    _sums,
    boosted_scores,
    random_leaves,
)
from skdptune.ensemble._terms import Bins
from skdptune.mechanisms._shared import UNIT

SIZES = np.array([0.0, 1e-9, 0.3, 1.0, 7.0, 40.0, 800.0, 1e100, 1e103])


def made(kind, rng, n):
    if kind == "binary":
        return BinaryResiduals, (rng.integers(0, 2, n),)
    if kind == "softmax":
        return SoftmaxResiduals, (rng.integers(0, 4, n), 4)
    return BoundedResiduals, (rng.uniform(-1, 1, n),)


def scores_of(rng, n_outputs, n):
    return rng.choice(SIZES, (n_outputs, n)) * rng.uniform(-1, 1, (n_outputs, n))


@pytest.mark.parametrize("kind", ["binary", "softmax", "bounded"])
def test_norm_is_never_exceeded(kind):
    # Theorem B1.
    rng = np.random.default_rng(0)
    residuals_of, arguments = made(kind, rng, 20_000)
    residuals = residuals_of(*arguments)
    units = residuals.units(scores_of(rng, residuals.n_outputs, 20_000))
    assert (units == np.trunc(units)).all()
    assert (np.linalg.norm(units, axis=0) * UNIT <= residuals.norm).all()
    # And it is attained.
    assert np.linalg.norm(units, axis=0).max() * UNIT > 0.999 * residuals.norm


@pytest.mark.parametrize("kind", ["binary", "softmax", "bounded"])
def test_residuals_of_a_record_are_its_own_bit_by_bit(kind):
    # Theorem B1: wherever it is among others, and whoever they are.
    rng = np.random.default_rng(1)
    n = 2003
    residuals_of, (targets, *more) = made(kind, rng, n)
    scores = scores_of(rng, 4 if kind == "softmax" else 1, n)
    scores[:, ::2] = rng.normal(size=(scores.shape[0], (n + 1) // 2))
    together = residuals_of(targets, *more).units(scores)
    for start in (1, 2, 3):
        part = residuals_of(targets[start:], *more).units(scores[:, start:])
        assert np.array_equal(part, together[:, start:])
    for place in range(0, n, 50):
        one = slice(place, place + 1)
        alone = residuals_of(targets[one], *more).units(scores[:, one])
        assert np.array_equal(alone, together[:, one])


@pytest.mark.parametrize("kind", ["binary", "softmax"])
def test_weights_shorten_residuals(kind):
    # Theorem B1: and those of a record are still its own.
    rng = np.random.default_rng(4)
    residuals_of, arguments = made(kind, rng, 2000)
    weights = rng.choice([0.0, 1e-9, 0.1, 1.0], 2000)
    scores = scores_of(rng, 4 if kind == "softmax" else 1, 2000)
    plain = residuals_of(*arguments).units(scores.copy())
    weighted = residuals_of(*arguments, weights)
    units = weighted.units(scores.copy())
    assert (units == np.trunc(units)).all()
    assert np.abs(units - weights * plain).max() <= 2.0
    assert (np.linalg.norm(units, axis=0) * UNIT <= weights * weighted.norm).all()
    alone = residuals_of(arguments[0][7:9], *arguments[1:], weights[7:9])
    assert np.array_equal(alone.units(scores[:, 7:9].copy()), units[:, 7:9])


def test_residuals_are_targets_less_predictions():
    scores = np.random.default_rng(2).normal(size=(3, 50))
    codes = np.arange(50) % 3
    found = SoftmaxResiduals(codes, 3).units(scores) * UNIT
    assert found == pytest.approx(np.eye(3)[codes].T - special.softmax(scores, axis=0), abs=2e-8)
    found = BinaryResiduals(codes % 2).units(scores[:1]) * UNIT
    assert found[0] == pytest.approx(codes % 2 - special.expit(scores[0]), abs=2e-8)
    found = BoundedResiduals(np.zeros(50)).units(scores[:1]) * UNIT
    assert found[0] == pytest.approx(np.clip(-scores[0], -1, 1), abs=2e-8)


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
