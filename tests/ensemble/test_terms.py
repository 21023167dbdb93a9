"""Columns cut into cells, and cells joined to bins by noisy counts."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.ensemble import _terms
from skdptune.ensemble._terms import (
    _join_neighbours,
    _join_rare,
    released_bins,
    terms_of_bounds,
    terms_of_schema,
)
from skdptune.preprocessing import Schema

SCHEMA = Schema(
    {
        "age": {"range": (0, 100), "missing": True},
        "pay": {"range": (0, 1e6), "scale": "log"},
        "sector": ["farm", "mill"],
        "name": "drop",
    }
)


def as_cells(values):
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def test_numbers_are_in_equal_parts_of_their_range():
    (term,) = terms_of_bounds((0, 10), ["x"], 5)
    values = np.array([-3.0, 0.0, 1.999, 2.0, 9.999, 10.0, 1e300])
    assert term.cells(values).tolist() == [0, 0, 0, 1, 4, 4, 4]
    assert [term.value_at(end) for end in range(6)] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_columns_may_have_bounds_of_their_own():
    first, second = terms_of_bounds(([0, -1], [10, 1]), ["x", "y"], 4)
    assert first.cells(np.array([5.0])).tolist() == second.cells(np.array([0.0])).tolist() == [2]
    with pytest.raises(ValueError, match="bounds must be one number, or one per feature"):
        terms_of_bounds(([0, -1], [10, 1]), ["x"], 4)


def test_gaps_have_a_cell_of_their_own_where_they_are_announced():
    age, pay, sector = terms_of_schema(SCHEMA, 4)
    assert age.n_cells == 5
    assert age.cells(as_cells([None, "word", 10, 99])).tolist() == [4, 4, 0, 3]
    # Below all numbers.
    assert age.order.tolist() == [4, 0, 1, 2, 3]
    assert pay.n_cells == 4
    assert pay.cells(as_cells([None, 0, 1e6])).tolist() == [2, 0, 3]
    assert pay.order.tolist() == [0, 1, 2, 3]
    assert sector.cells(as_cells(["mill", "farm", "office", None])).tolist() == [1, 0, 2, 3]


@pytest.mark.parametrize(
    "value", [None, "farm", "office", 3, -1.0, np.inf, float("nan"), object()]
)
def test_one_record_changes_one_count_by_one(value):
    # Theorem B1: whatever a cell of the table holds.
    for term in terms_of_schema(SCHEMA, 8):
        others = as_cells([1, None, "mill", 50.0, "farm"])
        before = np.bincount(term.cells(others), minlength=term.n_cells)
        after = np.bincount(term.cells(as_cells([*others, value])), minlength=term.n_cells)
        assert after.size == before.size == term.n_cells
        assert np.abs(after - before).sum() == (after - before).max() == 1


def test_order_is_one_of_all_cells():
    for term in (*terms_of_schema(SCHEMA, 8), *terms_of_bounds((0, 1), ["x"], 8)):
        assert sorted(term.order.tolist()) == list(range(term.n_cells))


(WORDS,) = terms_of_schema(Schema({"word": ["a", "b", "c", "rare"]}), 4)
(NUMBERS,) = terms_of_bounds((0, 1), ["x"], 8)


def test_every_cell_is_counted_whether_or_not_a_record_has_it(monkeypatch):
    # Theorem B1: what nobody has gets noise as well, or its absence would show.
    seen = []

    def watched(values, scale, generator):
        seen.append((values.copy(), scale))
        return values

    monkeypatch.setattr(_terms, "add_gaussian", watched)
    for term in (WORDS, NUMBERS):
        for cells in ([], [0, 0, 1], [3]):
            places = np.array(cells, dtype=np.intp)
            released_bins(term, places, 2.0, 1.0, np.random.default_rng(0))
            values, scale = seen.pop()
            assert scale == 2.0
            assert values.tolist() == [cells.count(cell) for cell in range(term.n_cells)]


def test_noise_has_the_given_size():
    noisy = [
        released_bins(NUMBERS, np.zeros(0, np.intp), 5.0, 1e9, np.random.default_rng(seed))
        for seed in range(5)
    ]
    # Nothing reaches the least, which then stands for all.
    assert all(bins.weights.tolist() == [1e9] for bins in noisy)
    rng, cells = np.random.default_rng(0), np.repeat(np.arange(8), 1000)
    found = [released_bins(NUMBERS, cells, 5.0, 1.0, rng).weights for _ in range(200)]
    assert all(weights.size == 8 for weights in found)
    assert np.std(np.concatenate(found)[:-1]) == pytest.approx(5.0, rel=0.1)


@pytest.mark.parametrize("join", [_join_neighbours, _join_rare], ids=["ordered", "words"])
def test_bins_are_a_partition_with_the_least_in_each(join):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        counts = rng.normal(5.0, 5.0, rng.integers(1, 30))
        least = float(rng.choice([1.0, 10.0, 500.0]))
        bins = join(counts, least)
        assert bins.of_cells.shape == counts.shape
        assert sorted(set(bins.of_cells.tolist())) == list(range(bins.weights.size))
        assert (bins.weights >= least).all()
        sums = np.bincount(bins.of_cells, weights=counts)
        enough = sums >= least
        assert bins.weights[enough] == pytest.approx(sums[enough])
        if join is _join_neighbours:
            assert (np.diff(bins.of_cells) >= 0).all()


def test_rare_categories_share_a_bin_and_a_small_one_takes_another():
    assert _join_rare(np.array([50.0, 1.0, 40.0, 12.0]), 10.0).of_cells.tolist() == [0, 2, 1, 2]
    assert _join_rare(np.array([50.0, 9.0, 40.0, 2.0]), 10.0).weights.tolist() == [
        50.0,
        40.0,
        11.0,
    ]
    assert _join_rare(np.array([1.0, 2.0]), 10.0).weights.tolist() == [10.0]


def test_the_rest_of_the_cells_joins_the_last_bin():
    bins = _join_neighbours(np.array([6.0, 6.0, 10.0, 3.0]), 10.0)
    assert bins.of_cells.tolist() == [0, 0, 1, 1]
    assert bins.weights.tolist() == [12.0, 13.0]


def test_bins_have_more_records_than_noise():
    bins = released_bins(NUMBERS, np.arange(8), 10.0, 1.0, np.random.default_rng(0))
    assert (bins.weights >= 40.0).all()
