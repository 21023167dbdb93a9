"""Private quantiles: ranks, sensitivity, exact distribution, and refused arguments."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from skdptune.mechanisms import _quantiles as module
from skdptune.mechanisms import private_quantile, quantile_profile
from skdptune.mechanisms._quantiles import counts_of_points, ranked_runs
from tests.accounting.cases import few

SHARES = [0.0, 0.05, 0.3, 0.5, 0.9, 1.0]
STEPS = 4


def utilities(points, share: float, steps: int = STEPS) -> np.ndarray:
    """Return every grid point's utility, counted one by one."""
    target = share * len(points)
    result = []
    for point in range(steps + 1):
        below = sum(value < point for value in points)
        up_to = sum(value <= point for value in points)
        result.append(-max(below - target, target - up_to, 0.0))
    return np.array(result)


def data_sets(largest: int):
    for size in range(largest + 1):
        yield from itertools.combinations_with_replacement(range(STEPS + 1), size)


@pytest.mark.parametrize("share", SHARES)
def test_sensitivity_under_adding_a_record_is_attained_and_never_exceeded(share) -> None:
    # Theorem R1: noise of the scalers.
    largest = 0.0
    for points in data_sets(4):
        for record in range(STEPS + 1):
            moved = utilities((*points, record), share) - utilities(points, share)
            largest = max(largest, float(np.abs(moved).max()))
    assert largest == pytest.approx(max(share, 1.0 - share))


def test_rounded_ranks_move_by_no_more_than_is_allowed_for() -> None:
    # Theorem R1: products of a share and a count are rounded, and so are their differences.
    largest = 0.0
    for share in (0.05, 0.1, 0.3, 0.7):
        for size in (99_999, 524_287):
            _, before = ranked_runs(counts_of_points(np.full(size, 2)), share, STEPS)
            _, after = ranked_runs(counts_of_points(np.full(size + 1, 2)), share, STEPS)
            largest = max(largest, float(np.abs(after - before).max()) - max(share, 1.0 - share))
    assert 0.0 < largest <= module.ROUNDING


@pytest.mark.parametrize(("share", "epsilon"), few(6, SHARES, [0.2, 1.0, 3.0]))
def test_exact_distribution_on_all_small_data_sets_is_within_its_cost(share, epsilon) -> None:
    # Theorem R1: noise of the scalers.
    sharpness = epsilon / (2.0 * max(share, 1.0 - share))
    levels = np.array([-0.5, 0.0, 0.3, 0.9, 1.0]) * epsilon
    profile = quantile_profile(epsilon)
    claimed = {side: profile.delta(levels, side) for side in ("remove", "add")}
    worst = 0.0
    for points in data_sets(4):
        without = special.softmax(sharpness * utilities(points, share))
        for record in range(STEPS + 1):
            joined = special.softmax(sharpness * utilities((*points, record), share))
            worst = max(worst, float(np.abs(np.log(joined / without)).max()))
            for side, (p, q) in {"remove": (joined, without), "add": (without, joined)}.items():
                exact = [np.maximum(p - math.exp(level) * q, 0.0).sum() for level in levels]
                assert np.all(np.array(exact) <= claimed[side] + 1e-12)
    # At shares near 0 and 1 it takes larger data sets than these to come closer.
    assert 0.4 * epsilon < worst <= epsilon + 1e-12


@pytest.mark.parametrize("state", [np.random.default_rng(0), None])
def test_draws_follow_the_exact_distribution(state) -> None:
    values = np.array([0.9, 1.0, 3.1, 7.0, math.nan])
    wanted = special.softmax(1.5 / 1.4 * utilities((0, 1, 1, 3, 4), 0.3))
    draws = [private_quantile(values, 0.3, 0.0, 4.0, 1.5, state, steps=STEPS) for _ in range(2500)]
    counts = np.bincount(np.array(draws).astype(int), minlength=STEPS + 1)
    assert stats.chisquare(counts, 2500 * wanted).pvalue > 1e-9


@pytest.mark.parametrize("share", [0.1, 0.5, 0.75])
def test_quantile_is_found(share) -> None:
    values = np.random.default_rng(0).gamma(2.0, 10.0, 5000)
    found = private_quantile(values, share, 0.0, 1e6, 1.0, random_state=1)
    ranks = np.mean(values < found)
    assert ranks == pytest.approx(share, abs=0.02)


def test_without_privacy_it_is_the_order_statistic() -> None:
    values = np.arange(101) / 128
    assert private_quantile(values, 0.3, 0.0, 1.0, math.inf, random_state=0) == values[30]


@pytest.mark.parametrize(
    ("epsilon", "values", "share"),
    few(
        6,
        [1e-300, 1.0, 1e5, math.inf],
        [[], [math.nan], [math.inf, -math.inf], np.full(50, 2.0), [-1e308, 1e308]],
        [0.0, 0.5, 1.0],
    ),
)
def test_any_data_gives_a_point_of_the_range(values, epsilon, share) -> None:
    found = private_quantile(np.array(values), share, -1.0, 2.0, epsilon, random_state=0)
    assert -1.0 <= found <= 2.0


def test_answers_lie_on_a_public_grid() -> None:
    values = np.random.default_rng(0).normal(size=100)
    places = [
        (private_quantile(values, 0.5, -4.0, 4.0, 0.5, random_state=seed) + 4.0) / 8.0 * 2**20
        for seed in range(30)
    ]
    np.testing.assert_array_equal(places, np.rint(places))
    assert len(set(places)) > 20


def test_seed_repeats() -> None:
    found = [private_quantile([1.0, 2.0], 0.5, 0, 3, 0.1, random_state=s) for s in (3, 3, 4)]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"quantile": 1.1}, "quantile must be a number in"),
        ({"lower": 1.0}, "upper must be a finite number above lower"),
        ({"upper": math.inf}, "upper must be a finite number above lower"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"values": [[1.0]]}, "values must be one-dimensional; got 2 dimensions"),
    ],
)
def test_bad_arguments_are_refused(change, complaint) -> None:
    arguments = {"values": [0.5], "quantile": 0.5, "lower": 0.0, "upper": 1.0, "epsilon": 1.0}
    with pytest.raises(ValueError, match=complaint):
        private_quantile(**{**arguments, **change})


def test_cost_at_any_budget() -> None:
    assert quantile_profile(0.7).epsilon(0.0) == pytest.approx(0.7)
    assert quantile_profile(0.7).epsilon(0.05) < 0.7
    assert quantile_profile(math.inf).epsilon(0.5) == math.inf
    with pytest.raises(ValueError, match="epsilon must be"):
        quantile_profile(0.0)


@pytest.mark.parametrize("share", SHARES)
def test_runs_carry_the_utility_of_each_of_their_points(share) -> None:
    for points in data_sets(4):
        starts, values = ranked_runs(
            counts_of_points(np.array(points, dtype=np.int64)), share, STEPS
        )
        lengths = np.diff(starts, append=STEPS + 1)
        assert lengths.min() >= 1
        np.testing.assert_allclose(
            np.repeat(values, lengths), utilities(points, share), atol=1e-12
        )
