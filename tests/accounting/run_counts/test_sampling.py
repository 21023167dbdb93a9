"""Draws of the number of runs against the distributions they claim to follow."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from skdptune._secure_random import SecureGenerator, secure_generator
from skdptune.accounting import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    TruncatedNegativeBinomial,
)
from skdptune.accounting._run_counts._negative_binomial import make_generator
from tests.accounting.calls import calls_of

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


@pytest.mark.parametrize("distribution", DISTRIBUTIONS + LARGE, ids=repr)
@pytest.mark.parametrize("is_secure", [False, True])
def test_draws_follow_the_distribution(distribution, is_secure):
    # Theorem K1. Searches without a seed draw from AES, which has methods of its own.
    stream = secure_generator(bytes(16)) if is_secure else 20240
    draws = distribution.sample(stream, size=3000 if is_secure else SIZE)
    assert fit(distribution, draws) > 1e-3
    assert draws.min() >= (0 if distribution.probability_of_none > 0 else 1)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS + LARGE, ids=repr)
def test_draws_have_the_generating_function(distribution):
    draws = distribution.sample(7, size=SIZE).astype(float)
    for x in [0.3, 0.9, 1 - 1 / distribution.mean / 2, 1 - 1e-6]:
        variance = max(distribution.pgf(x * x) - distribution.pgf(x) ** 2, 0)
        # Bernstein: Gaussian deviations, and a few draws more or less of a rare event.
        tolerance = 4.5 * np.sqrt(variance / SIZE) + 10 / SIZE
        assert (x**draws).mean() == pytest.approx(distribution.pgf(x), abs=tolerance)


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


@pytest.mark.parametrize("eta", [-0.9, -0.5, 0.0, 0.2, 1.0, 50.0])
def test_large_means_are_whole_numbers_from_one_on(eta):
    draws = TruncatedNegativeBinomial.from_mean(1e6, eta).sample(3, size=SIZE)
    assert draws.min() >= 1 and draws.dtype == np.int64


@pytest.mark.parametrize("eta", [-0.9, -0.5, 0.0, 0.2, 1.0, 50.0])
def test_work_depends_on_neither_the_mean_nor_the_size(eta):
    works = {
        calls_of(partial(TruncatedNegativeBinomial.from_mean(mean, eta).sample, 3, size=size))
        for mean in (10, 1e6)
        for size in (10, SIZE)
    }
    # A first call may fill a cache; a call for each draw would be thousands.
    assert max(works) <= min(works) + 10


@pytest.mark.parametrize("eta", [0.0, 0.2, 1.0, 50.0])
def test_large_means_are_met(eta):
    draws = TruncatedNegativeBinomial.from_mean(1e6, eta).sample(5, size=SIZE)
    error = draws.std() / np.sqrt(SIZE)
    assert draws.mean() == pytest.approx(1e6, abs=4 * error)


@pytest.mark.parametrize("eta", [-0.99, -0.01, 0.0, 1e-9, 1.0, 1e6])
def test_vast_numbers_of_runs_are_cut_not_wrapped(eta):
    for stream in (1, secure_generator(bytes(16))):
        draws = TruncatedNegativeBinomial(eta, 1e-140).sample(stream, size=1000)
        assert draws.min() >= 1 and draws.max() <= 2**61
        if eta >= 0:
            assert draws.max() == 2**61


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_a_seed_repeats_the_draws(distribution):
    again = distribution.sample(11, size=20)
    np.testing.assert_array_equal(distribution.sample(11, size=20), again)
    np.testing.assert_array_equal(distribution.sample(np.random.default_rng(11), size=20), again)
    assert distribution.sample(11) == distribution.sample(np.int64(11))


@pytest.mark.parametrize(
    "distribution", [Geometric(1e-6), Logarithmic(1e-9), Poisson(1e9)], ids=repr
)
def test_streams_move_on(distribution):
    assert distribution.sample(1, size=5).tolist() != distribution.sample(2, size=5).tolist()
    for stream in (np.random.default_rng(0), np.random.RandomState(0)):
        assert (
            distribution.sample(stream, size=5).tolist()
            != distribution.sample(stream, size=5).tolist()
        )
    first, second = np.random.RandomState(4), np.random.RandomState(4)
    assert (
        distribution.sample(first, size=5).tolist() == distribution.sample(second, size=5).tolist()
    )


def test_without_a_seed_the_global_state_plays_no_part():
    distribution = Poisson(1e12)
    state = np.random.get_state()
    try:
        np.random.seed(0)
        first = distribution.sample(size=5)
        np.random.seed(0)
        second = distribution.sample(size=5)
    finally:
        np.random.set_state(state)
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_sizes(distribution):
    assert type(distribution.sample(0)) is int
    assert distribution.sample(0, size=3).shape == (3,)
    assert distribution.sample(0, size=(2, 0, 3)).shape == (2, 0, 3)
    assert distribution.sample(0, size=()).shape == ()
    assert distribution.sample(0, size=(2, 3)).dtype == np.int64


@pytest.mark.parametrize("size", [-1, (2, -1)])
def test_negative_sizes_are_refused(size):
    with pytest.raises(ValueError, match="^size must be an integer of at least 0"):
        Poisson(1).sample(0, size=size)


@pytest.mark.parametrize("size", [1.5, "3", [2, 3]])
def test_sizes_of_other_kinds_are_refused(size):
    with pytest.raises(TypeError, match="^size must be an integer"):
        Poisson(1).sample(0, size=size)


@pytest.mark.parametrize("random_state", [1.5, "seed", True, [1]])
def test_random_states_of_other_kinds_are_refused(random_state):
    with pytest.raises(TypeError, match="^random_state must be"):
        Poisson(1).sample(random_state)


def test_negative_seeds_are_refused():
    with pytest.raises(ValueError, match="^random_state must be an integer of at least 0"):
        Poisson(1).sample(-1)


def test_what_is_not_seeded_is_cryptographic():
    # Assumption E0.
    assert isinstance(make_generator(None), SecureGenerator)
    assert not isinstance(make_generator(3), SecureGenerator)
