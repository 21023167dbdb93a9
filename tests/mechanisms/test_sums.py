"""Sums on a grid: exact, whatever the order and the neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.mechanisms import _noise, unit_sum


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sum_is_close_to_the_sum(dtype) -> None:
    units = np.random.default_rng(0).uniform(-1, 1, size=(1000, 3)).astype(dtype)
    np.testing.assert_allclose(unit_sum(units), units.sum(axis=0, dtype=float), atol=2e-5)


def test_blocks_add_up(monkeypatch) -> None:
    units = np.random.default_rng(1).uniform(-1, 1, size=(100, 2))
    whole = unit_sum(units)
    monkeypatch.setattr(_noise, "_ROWS", 7)
    np.testing.assert_array_equal(unit_sum(units), whole)


def test_one_record_moves_the_sum_by_its_own_value_at_most() -> None:
    # Theorem R1.
    rng = np.random.default_rng(2)
    units = rng.uniform(-1, 1, size=5000)
    order = rng.permutation(5000)
    for value in (1.0, -1.0, 0.1, 1e-9, *rng.uniform(-1, 1, 50)):
        moved = unit_sum(np.append(units, value)[np.append(order, 5000)[::-1]]) - unit_sum(units)
        assert abs(moved) <= abs(value)
        assert abs(moved - value) <= _noise.UNIT


@pytest.mark.parametrize("order", [1, 2])
def test_no_norm_of_a_record_grows(order) -> None:
    rng = np.random.default_rng(3)
    for record in rng.uniform(-1, 1, size=(200, 1, 4)):
        assert np.linalg.norm(unit_sum(record), order) <= np.linalg.norm(record[0], order)


def test_what_is_no_unit_is_clipped() -> None:
    given = np.array([2.0, -np.inf, np.inf, np.nan])
    assert [float(unit_sum(given[i : i + 1])) for i in range(4)] == [1.0, -1.0, 1.0, -1.0]


def test_nothing_sums_to_zero() -> None:
    np.testing.assert_array_equal(unit_sum(np.empty((0, 3))), np.zeros(3))
    assert unit_sum(np.empty(0)).shape == ()


def test_sums_of_too_many_records_move_no_farther(monkeypatch) -> None:
    # Theorem R1. As if doubles had 20 bits: beyond, neighbouring sums would round to even ones.
    monkeypatch.setattr(_noise, "UNIT", 2.0**-53 * 16)
    units = np.append(np.ones(20), 16.0 * 2.0**-53)
    sums = [float(unit_sum(units[:count])) for count in range(12, 22)]
    assert sums == [12.0, 13.0, 14.0, 15.0] + [16.0] * 6
