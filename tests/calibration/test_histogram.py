"""Curves, areas and bands of noisy counts, against truth and slow oracles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special
from sklearn.metrics import roc_auc_score

from skdptune.calibration._histogram import COARSE, ScoreHistogram, edges_for

EDGES = np.linspace(-3.0, 3.0, 25)
Floats = NDArray[np.float64]


def people(n: int, seed: int) -> tuple[Floats, NDArray[np.intp]]:
    """Return scores that are logits of their labels, and labels."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(-0.5, 1.2, n)
    return scores, (rng.uniform(size=n) < special.expit(scores)).astype(np.intp)


def counted(scores: Floats, y: NDArray[np.intp], edges: Floats = EDGES) -> Floats:
    clipped = np.clip(scores, edges[0], edges[-1])
    return np.stack([np.histogram(clipped[y == label], edges)[0] for label in (0, 1)]).astype(
        float
    )


def noisy(counts: Floats, scale: float, seed: int, claimed: float | None = None) -> ScoreHistogram:
    noise = np.random.default_rng(seed).normal(size=counts.shape)
    return ScoreHistogram(EDGES, counts + scale * noise, scale if claimed is None else claimed)


def test_without_noise_all_is_that_of_the_binned_scores() -> None:
    scores, y = people(4000, 0)
    histogram = ScoreHistogram(EDGES, counted(scores, y), 0.0)
    binned = np.digitize(scores, EDGES[1:-1])
    assert histogram.auc() == pytest.approx(roc_auc_score(y, binned), abs=1e-12)
    assert histogram.auc_band() == pytest.approx((histogram.auc(), histogram.auc()), abs=1e-12)
    above = histogram.above()
    for place, edge in enumerate(EDGES[-2:0:-1], start=1):
        for label in (0, 1):
            assert above[label, place] == pytest.approx((scores[y == label] >= edge).mean())
    precision, _, is_known = histogram.precision_above()
    assert is_known[1:].all() and not is_known[0]
    assert precision[12] == pytest.approx(y[scores >= EDGES[12]].mean())
    found = histogram.reliability()
    assert np.abs(found.prob_true - found.prob_pred).max() < 0.2
    assert found.n_records.sum() == pytest.approx(4000)


def test_area_that_is_least_or_largest_in_the_box_is_that_of_a_slow_search() -> None:
    # Theorem Q2. All corners of the box, and random counts within.
    rng = np.random.default_rng(1)
    for _ in range(20):
        counts = rng.uniform(2.0, 12.0, size=(2, 4))
        histogram = ScoreHistogram(np.arange(5.0), counts, 1.0)
        low, high = histogram.box()
        corners = []
        for ends in itertools.product((0, 1), repeat=8):
            chosen = np.where(np.reshape(ends, (2, 4)) == 1, high, low)
            if (chosen.sum(axis=1) > 0.0).all():
                corners.append(area(*chosen))
        least, largest = histogram.auc_band()
        assert least == pytest.approx(min(corners), abs=1e-12)
        assert largest == pytest.approx(max(corners), abs=1e-12)
        for _ in range(100):
            inside = area(*rng.uniform(low, high))
            assert least - 1e-12 <= inside <= largest + 1e-12


def area(negative: Floats, positive: Floats) -> float:
    wins = sum(
        n * p * (1.0 if j > i else 0.5 if i == j else 0.0)
        for i, n in enumerate(negative)
        for j, p in enumerate(positive)
    )
    return float(wins / (negative.sum() * positive.sum()))


def test_bands_of_these_records_cover_as_they_say() -> None:
    # Theorem Q2: the areas that noisy counts leave possible.
    scores, y = people(8000, 2)
    counts = counted(scores, y)
    truth = ScoreHistogram(EDGES, counts, 0.0).auc()

    def coverage(claimed: float) -> float:
        hits = []
        for seed in range(200):
            found = noisy(counts, 20.0, seed, claimed)
            low, high = found.box()
            hits.append(bool(((low <= counts) & (counts <= high)).all()))
            if hits[-1]:
                least, largest = found.auc_band()
                assert least <= truth <= largest
        return float(np.mean(hits))

    # 95 % at least, of which 200 releases show 91 % in all but one of a hundred cases.
    assert coverage(20.0) >= 0.91
    # Noise whose stated scale is half of the true one.
    assert coverage(10.0) < 0.3


def test_deviations_are_those_of_noise_and_sampling() -> None:
    scale, errors = 20.0, []
    everyone, labels = people(400_000, 3)
    truth = roc_auc_score(labels, everyone)
    recall = (everyone[labels == 1] >= 0.0).mean()
    for seed in range(200):
        scores, y = people(8000, 10 + seed)
        found = noisy(counted(scores, y), scale, seed)
        place = int(np.flatnonzero(EDGES[::-1] == 0.0)[0])
        share = found.above()[1, place]
        errors.append(
            (
                (found.auc() - truth) / found.auc_std(),
                (share - recall) / found.above_std(1)[place],
            )
        )
    covered = (np.abs(errors) <= 1.96).mean(axis=0)
    assert covered[0] >= 0.9 and covered[1] >= 0.9
    # The bands are not just wide: most of each deviation is used.
    assert (np.sqrt(np.mean(np.square(errors), axis=0)) > 0.55).all()


def test_points_of_all_curves_are_covered_by_their_deviations() -> None:
    whole = ScoreHistogram(EDGES, counted(*people(1_000_000, 4)) / 125.0, 0.0)
    truth = [
        *whole.above(),
        whole.precision_above()[0],
        whole.counts[1] / whole.counts.sum(axis=0),
    ]

    def coverage(claimed: float) -> Floats:
        """Return the share of covered points: of the rates, precision and reliability."""
        hits: list[list[NDArray[np.bool_]]] = [[], [], [], []]
        for seed in range(100):
            found = noisy(counted(*people(8000, 10 + seed)), 20.0, seed, claimed)
            precision, spread, is_known = found.precision_above()
            # Rates are 0 and 1 at the ends.
            rates = [
                (found.above()[k][1:-1], found.above_std(k)[1:-1], truth[k][1:-1]) for k in (0, 1)
            ]
            known = found.reliability()
            places = np.searchsorted(special.expit(EDGES), known.prob_pred) - 1
            points = [
                *rates,
                (precision[is_known], spread[is_known], truth[2][is_known]),
                (known.prob_true, known.prob_true_std, truth[3][places]),
            ]
            for own, (value, deviation, true) in zip(hits, points, strict=True):
                own.append(np.abs(value - true) <= 1.96 * deviation)
        return np.array([np.concatenate(own).mean() for own in hits])

    covered = coverage(20.0)
    assert ((covered > 0.93) & (covered < 0.99)).all(), covered
    # Noise whose stated scale is a fifth of the true one.
    assert (coverage(4.0) < 0.9).all()


def test_curves_never_fall_and_end_where_they_must() -> None:
    for seed in range(20):
        found = noisy(counted(*people(500, seed)), 30.0, seed)
        above = found.above()
        assert (np.diff(above, axis=1) >= 0.0).all()
        assert np.array_equal(above[:, 0], [0.0, 0.0])
        assert np.array_equal(above[:, -1], [1.0, 1.0])
        assert 0.0 <= found.auc() <= 1.0
        assert found.auc_band()[0] <= found.auc_band()[1]
    # Without records, only noise.
    nothing = noisy(np.zeros((2, 24)), 30.0, 0)
    assert 0.0 <= nothing.auc() <= 1.0 and np.isfinite(nothing.auc_std())


@pytest.mark.parametrize(("middle", "spread"), [(0.0, 0.1), (-5.0, 1.0), (0.5, 3.0), (3.0, 0.3)])
def test_bins_hold_nearly_all_scores_and_one_edge_is_0(middle: float, spread: float) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(middle, spread, 20_000)
    cells = np.stack([np.bincount(np.digitize(scores, COARSE), minlength=16)] * 2).astype(float)
    edges = edges_for(cells, 0.0, 12)
    assert edges.size == 13 and (np.diff(edges) > 0.0).all() and 0.0 in edges
    inside = (scores >= edges[0]) & (scores <= edges[-1])
    assert inside.mean() > 0.95 or np.abs(edges[[0, -1]]).max() == 8.0
    # With the fewest records, only noise decides, and a range is returned.
    edges = edges_for(rng.normal(0.0, 100.0, (2, 16)), 100.0, None)
    assert edges.size >= 11 and (np.diff(edges) > 0.0).all()
