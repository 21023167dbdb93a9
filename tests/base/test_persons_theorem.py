"""Means of rows keep the bounds of records; examples refute other rules."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.base._shared import persons_of
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._public_problem import (
    LOGISTIC,
    RegularisedSum,
    huber_hinge,
    minimise,
)

COUNTS = (1, 2, 3, 50, 5000)


@pytest.mark.parametrize("count", COUNTS)
def test_a_mean_of_bounded_rows_moves_a_sum_by_one_bound(count):
    # Theorem P14. All rows are as long as allowed and point the same way: the worst case.
    persons = persons_of(np.repeat([7, 9], [count, 4]), np.zeros((count + 4, 1)))
    # Integers: floats 1 / k could sum to more than 1.
    assert persons.weights[:count].sum() <= 2**30
    assert 1.0 - count / 2**30 <= persons.shares[:count].sum() <= 1.0
    rng = np.random.default_rng(count)
    rows = rng.normal(size=(count + 4, 3))
    rows /= np.linalg.norm(rows, axis=1)[:, np.newaxis]
    for contributions in (rows, np.tile(rows[:1], (count + 4, 1))):
        moved = (persons.shares[:, np.newaxis] * contributions)[:count].sum(axis=0)
        assert np.linalg.norm(moved) <= 1.0 + 1e-12


def test_weights_before_a_clip_cost_more():
    # Theorem P14: rows multiplied by the root of their weight, and then clipped.
    count, limit = 64, 0.1
    shares = np.full(count, 1.0 / count)
    right = np.sum(shares * np.minimum(np.ones(count), limit))
    wrong = np.sum(np.minimum(np.sqrt(shares) * np.ones(count), limit))
    assert right <= limit * (1.0 + 1e-12)
    # The clip binds for each row, so that the person counts as all of the rows.
    assert wrong == pytest.approx(count * limit)
    # Where it does not bind, the factor is still the root of the number of rows.
    assert np.sum(np.minimum(np.sqrt(shares), 1.0)) == pytest.approx(np.sqrt(count))


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("count", [1, 2, 50])
def test_one_person_moves_a_minimum_by_the_sensitivity_at_most(loss, count):
    # Theorem P14, Theorem M3: the gradient of a mean of losses is at most that of one.
    lam, distances = 0.3, []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        ids = np.concatenate([np.arange(20), np.full(count, 20)])
        rows = rng.normal(size=(ids.size, 2)) * rng.choice([0.3, 3.0])
        signs = rng.choice([-1.0, 1.0], size=ids.size)
        # The person whose rows agree moves the minimum farthest.
        rows[20:], signs[20:] = (rows[20], signs[20]) if seed % 2 else (rows[20:], signs[20:])
        found = []
        for kept in (ids.size, 20):
            design = Design.clipped(rows[:kept], 1.0, False)
            design = design.by_persons(persons_of(ids[:kept], rows[:kept]))
            function = RegularisedSum(loss, design, signs[:kept], lam, np.zeros(2))
            found.append(minimise(function, 1e-10))
        distances.append(np.linalg.norm(found[0] - found[1]))
    assert max(distances) <= loss.slope_bound / lam * (1.0 + 1e-6)
    assert max(distances) > 0.05 * loss.slope_bound / lam


def test_rows_joined_without_ids_are_no_person():
    # Theorem P14: who owns two of three rows of a joint person moves its mean by 4/3 of a bound.
    joint, rest = np.array([1.0, 1.0, -1.0]), np.array([-1.0])
    assert joint.mean() - rest.mean() == pytest.approx(4.0 / 3.0)
    # Such rows are left out, whoever owns them.
    ids = [1, None, None, 2, float("nan")]
    persons = persons_of(ids, np.zeros((5, 1)))
    assert persons.size == 2
    assert persons.select(np.arange(5)).tolist() == [0, 3]
