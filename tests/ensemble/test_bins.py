"""Cells joined to bins by noisy counts."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.ensemble import _bins
from skdptune.ensemble._bins import _join_neighbours, _join_rare, released_bins
from skdptune.ensemble._terms import terms_of_bounds, terms_of_schema
from skdptune.preprocessing import Schema

(WORDS,) = terms_of_schema(Schema({"word": ["a", "b", "c", "rare"]}), 4)
(NUMBERS,) = terms_of_bounds((0, 1), ["x"], 8)


def test_every_cell_is_counted_whether_or_not_a_record_has_it(monkeypatch):
    # Theorem B1: what nobody has gets noise as well, or its absence would show.
    seen = []

    def watched(values, scale, generator):
        seen.append((values.copy(), scale))
        return values

    monkeypatch.setattr(_bins, "add_gaussian", watched)
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


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("join", [_join_neighbours, _join_rare], ids=["ordered", "words"])
def test_bins_are_a_partition_with_the_least_in_each(join, seed):
    rng = np.random.default_rng(seed)
    counts, least = (
        rng.normal(5.0, 5.0, rng.integers(1, 30)),
        float(rng.choice([1.0, 10.0, 500.0])),
    )
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
