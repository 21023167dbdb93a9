"""Draws of the number of runs against the distributions they claim to follow."""

import os
from functools import partial

import numpy as np
import pytest
from scipy import stats

from skdptune.accounting import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    TruncatedNegativeBinomial,
)
from tests.accounting.calls import calls_of
from tests.accounting.cases import few

DISTRIBUTIONS = [
    TruncatedNegativeBinomial(-0.95, 0.02),
    TruncatedNegativeBinomial(-0.5, 0.01),
    TruncatedNegativeBinomial(-0.5, 0.9),
    TruncatedNegativeBinomial(-1e-9, 0.01),
    TruncatedNegativeBinomial(1e-9, 0.01),
    TruncatedNegativeBinomial(1e-320, 0.01),
    TruncatedNegativeBinomial(0.1, 0.01),
    TruncatedNegativeBinomial(0.5, 0.001),
    TruncatedNegativeBinomial(3.0, 0.6),
    TruncatedNegativeBinomial(50.0, 0.05),
    Geometric(0.1),
    Geometric(0.999),
    Logarithmic(0.01),
    Poisson(0.7),
    Poisson(200),
    Binomial(12, 0.3),
]
LARGE = [TruncatedNegativeBinomial.from_mean(1e6, eta) for eta in (-0.5, 0.0, 0.2, 1.0, 50.0)]
SIZE = 100_000


@pytest.fixture
def unseeded(monkeypatch):
    """Without a seed numbers come from AES, here with a known key."""
    monkeypatch.setattr(os, "urandom", bytes)


def fit(distribution, draws):
    """Return the p-value of a chi-square test of ``draws``, in 30 classes."""
    ends = np.unique(np.quantile(draws, np.linspace(0, 1, 31)[:-1]).astype(int))
    ends = [end for end in ends if 0 < distribution.probability_at_most(int(end)) < 1]
    below = np.array([0, *(distribution.probability_at_most(int(end)) for end in ends), 1])
    counts = np.diff([0, *np.searchsorted(np.sort(draws), ends, side="right"), draws.size])
    masses = np.diff(below)
    wide = masses * draws.size > 5
    kept = np.append(counts[wide], counts[~wide].sum())
    expected = np.append(masses[wide], masses[~wide].sum()) * draws.size
    filled = expected > 0
    assert kept[~filled].sum() == 0
    return stats.chisquare(kept[filled], expected[filled], sum_check=False).pvalue


@pytest.mark.parametrize(
    ("distribution", "is_secure"), few(21, DISTRIBUTIONS + LARGE, [False, True]), ids=repr
)
def test_draws_follow_the_distribution(distribution, is_secure, unseeded):
    # Theorem K1. Searches without a seed draw from AES, whose generator has separate methods.
    stream = None if is_secure else 20240
    draws = distribution.sample(stream, size=3000 if is_secure else SIZE)
    assert fit(distribution, draws) > 1e-3
    assert draws.min() >= (0 if distribution.probability_of_none > 0 else 1)


@pytest.mark.parametrize(
    ("distribution", "other"),
    [
        (TruncatedNegativeBinomial(-0.5, 0.01), TruncatedNegativeBinomial(-0.45, 0.01)),
        (TruncatedNegativeBinomial(0.5, 0.001), TruncatedNegativeBinomial(0.55, 0.001)),
        (Logarithmic(0.01), TruncatedNegativeBinomial(0.05, 0.01)),
        (Logarithmic(0.01), Logarithmic(0.012)),
        (Geometric(0.1), Geometric(0.104)),
    ],
    ids=repr,
)
def test_the_fit_distinguishes_similar_distributions(distribution, other):
    assert fit(other, distribution.sample(20240, size=SIZE)) < 1e-6


@pytest.mark.parametrize("eta", [-0.9, 0.0, 50.0])
def test_work_depends_on_neither_the_mean_nor_the_size(eta):
    works = {
        calls_of(partial(TruncatedNegativeBinomial.from_mean(mean, eta).sample, 3, size=size))
        for mean in (10, 1e6)
        for size in (10, SIZE)
    }
    # A first call may fill a cache; a call for each draw would be thousands.
    assert max(works) <= min(works) + 10


@pytest.mark.parametrize("eta", [-0.99, 0.0, 1e6])
def test_vast_numbers_of_runs_are_cut_not_wrapped(eta, unseeded):
    for stream in (1, None):
        draws = TruncatedNegativeBinomial(eta, 1e-140).sample(stream, size=1000)
        assert draws.min() >= 1 and draws.max() <= 2**61
        if eta >= 0:
            assert draws.max() == 2**61


@pytest.mark.parametrize("distribution", [Geometric(1e-6), Logarithmic(1e-9), Poisson(1e9)])
def test_seeds_repeat_and_streams_move_on(distribution):
    def drawn(stream):
        return distribution.sample(stream, size=5).tolist()

    assert drawn(1) == drawn(1) == drawn(np.random.default_rng(1)) != drawn(2)
    assert distribution.sample(11) == distribution.sample(np.int64(11))
    for stream in (np.random.default_rng(0), np.random.RandomState(0)):
        assert drawn(stream) != drawn(stream)
    assert drawn(np.random.RandomState(4)) == drawn(np.random.RandomState(4))
    # Without a seed, the global state plays no part.
    state = np.random.get_state()
    try:
        unseeded = []
        for _ in range(2):
            np.random.seed(0)
            unseeded.append(drawn(None))
    finally:
        np.random.set_state(state)
    assert unseeded[0] != unseeded[1]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS[::5], ids=repr)
def test_sizes(distribution):
    assert type(distribution.sample(0)) is int
    assert distribution.sample(0, size=3).shape == (3,)
    assert distribution.sample(0, size=(2, 0, 3)).shape == (2, 0, 3)
    assert distribution.sample(0, size=()).shape == ()
    assert distribution.sample(0, size=(2, 3)).dtype == np.int64


def test_what_is_not_seeded_is_cryptographic(unseeded, monkeypatch):
    # Assumption E0: without a seed, all is a function of the operating system's bytes.
    first = Poisson(1e12).sample(size=5).tolist()
    assert (
        first == Poisson(1e12).sample(size=5).tolist() != Poisson(1e12).sample(0, size=5).tolist()
    )
    monkeypatch.setattr(os, "urandom", lambda count: bytes([1] * count))
    assert first != Poisson(1e12).sample(size=5).tolist()
