"""How many guesses can be right under an (epsilon, delta) guarantee."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skdptune.audit._one_run_bounds import chance_of_right_guesses, counted_epsilon
from tests.audit.one_run.oracle import largest_chance

SIZES = [(1, 1), (2, 2), (1, 2), (3, 3), (2, 3), (1, 3)]


def as_published(n_canaries, n_guesses, n_right, epsilon, delta):
    """Return the bound that Steinke, Nasr and Jagielski (2023) print."""
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    pmf = stats.binom.pmf(n_right - np.arange(1, n_right + 1), n_guesses, rate)
    largest = np.max(np.cumsum(pmf) / np.arange(1, n_right + 1), initial=0.0)
    return stats.binom.sf(n_right - 1, n_guesses, rate) + 2.0 * n_canaries * delta * largest


@pytest.mark.parametrize("n_guesses, n_canaries", SIZES)
@pytest.mark.parametrize("epsilon, delta", [(1.0, 0.0), (0.0, 0.1), (1.0, 0.1), (2.0, 0.01)])
def test_no_mechanism_does_better(n_guesses, n_canaries, epsilon, delta):
    # Theorem A4: the best of all mechanisms, found by linear programming.
    for n_right in range(1, n_guesses + 1):
        best = largest_chance(n_right, n_guesses, n_canaries, [(epsilon, delta)])
        bound = chance_of_right_guesses(n_right, n_guesses, n_canaries, epsilon, delta)
        assert best <= bound + 1e-9
        if delta == 0.0:
            # Randomised response attains it.
            assert best == pytest.approx(bound, abs=1e-9)
        elif n_canaries == 1:
            assert best == pytest.approx(bound, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n_guesses", [2, 4])
def test_no_mechanism_of_four_coins_does_better(n_guesses):
    # Theorem A4.
    for n_right in range(1, n_guesses + 1):
        best = largest_chance(n_right, n_guesses, 4, [(0.7, 0.03)])
        assert best <= chance_of_right_guesses(n_right, n_guesses, 4, 0.7, 0.03) + 1e-9


@pytest.mark.parametrize(
    "n_canaries, n_guesses, epsilon",
    [(1000, 1000, 0.5), (1000, 100, 1.0), (100, 10, 4.0), (50, 1, 0.0), (1000, 100, 0.0)],
)
def test_the_bound_is_below_the_published_one_where_it_matters(n_canaries, n_guesses, epsilon):
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    for risk in (0.05, 1e-3):
        n_right = min(int(stats.binom.isf(risk, n_guesses, rate)) + 1, n_guesses)
        bound = chance_of_right_guesses(n_right, n_guesses, n_canaries, epsilon, 1e-5)
        published = as_published(n_canaries, n_guesses, n_right, epsilon, 1e-5)
        assert stats.binom.sf(n_right - 1, n_guesses, rate) < bound < published


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_randomised_response_is_bounded_by_its_epsilon_and_nearly_attains_it(epsilon):
    # Theorem A4.
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    for n_canaries, nearly in ((100, 0.0), (10_000, 0.9)):
        right = np.random.default_rng(0).binomial(n_canaries, rate, 400)
        numbers, places = np.unique(right, return_inverse=True)
        # The bound grows with the number: the least that exceeds the truth is looked for.
        median = counted_epsilon(int(np.median(right)), n_canaries, n_canaries, 0.0, 0.05)
        assert nearly * epsilon < median < epsilon
        chances = np.array(
            [
                chance_of_right_guesses(int(v), n_canaries, n_canaries, epsilon, 0.0)
                for v in numbers
            ]
        )
        assert np.mean(chances[places] <= 0.05) < 0.05 + 3.0 * math.sqrt(0.05 / 400)


@given(
    n_canaries=st.integers(1, 200),
    share=st.floats(0.0, 1.0),
    right=st.floats(0.0, 1.0),
    delta=st.sampled_from([0.0, 1e-6, 1e-3]),
)
def test_more_right_guesses_show_no_less(n_canaries, share, right, delta):
    n_guesses = max(1, int(share * n_canaries))
    n_right = int(right * n_guesses)
    bound = counted_epsilon(n_right, n_guesses, n_canaries, delta, 0.05)
    assert bound >= 0.0 and math.isfinite(bound)
    if n_right < n_guesses:
        assert counted_epsilon(n_right + 1, n_guesses, n_canaries, delta, 0.05) >= bound
    assert counted_epsilon(n_right, n_guesses, n_canaries, delta, 0.01) <= bound
    if n_guesses > 1:
        assert counted_epsilon(n_right, n_guesses, n_canaries + 50, delta, 0.05) <= bound + 1e-9


def test_edges():
    assert counted_epsilon(0, 0, 10, 1e-5, 0.05) == 0.0
    assert chance_of_right_guesses(0, 5, 10, 1.0, 1e-5) == 1.0
    assert counted_epsilon(2, 4, 10, 0.0, 0.05) == 0.0
    # All of r guesses right: q to the power of r is the risk.
    rate = 0.05 ** (1.0 / 100)
    expected = math.log(rate / (1.0 - rate))
    assert counted_epsilon(100, 100, 100, 0.0, 0.05) == pytest.approx(expected)
    assert counted_epsilon(100, 100, 100, 1.0, 0.05) == 0.0
