"""Released bounds hold with their stated probability, on either of two neighbours."""

import functools
import math

import numpy as np
import pytest
from scipy import stats

from skdptune.linear_model._regression import _released_bounds
from skdptune.linear_model._regression._posterior_sampling import adaptive_plan
from skdptune.linear_model._regression._released_bounds import (
    margin,
    release_least_eigenvalue,
    release_noisy_eigenvalue,
    release_residual_bound,
)
from skdptune.mechanisms import gaussian_release

TRIALS = 100_000
FAILURE = 0.01


@pytest.fixture(autouse=True)
def _noise_may_be_given(monkeypatch):
    """Add a standard normal number that is given in place of a source of noise.

    What `gaussian_release` adds in its place has the same distribution, by tests of its own.
    """

    def release(value, sensitivity, scale, source):
        if isinstance(source, float):
            return value + scale * source
        return gaussian_release(value, sensitivity, scale, source)

    monkeypatch.setattr(_released_bounds, "gaussian_release", release)


def many(release, *arguments, seed):
    """Return 100,000 draws of standard noise, and the release as a function of one of them."""
    numbers = np.random.default_rng(seed).standard_normal(TRIALS)
    return numbers, functools.partial(release, *arguments)


def share_of_failures(numbers, at, fails):
    """Return in what share of the draws a release fails.

    It moves with its noise one way, so that it fails above one of the draws or below it.
    """
    ordered = np.sort(numbers)
    wrong = [fails(at(ordered[0])), fails(at(ordered[-1]))]
    if wrong[0] == wrong[1]:
        return float(wrong[0])
    low, high = 0, TRIALS - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(at(ordered[middle])) == wrong[0] else (low, middle)
    return (low + 1) / TRIALS if wrong[0] else (TRIALS - high) / TRIALS


def most_failures(probability):
    return stats.binom.ppf(1.0 - 1e-6, TRIALS, probability) / TRIALS


def neighbours(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    rows = rng.normal(size=(60, d))
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    targets = np.clip(rows @ rng.normal(size=d) + rng.normal(size=60), -1.0, 1.0)
    if seed % 2:
        # Along the weakest direction, and as long as can be, a row moves most.
        rows[-1] = np.linalg.eigh(rows[:-1].T @ rows[:-1])[1][:, 0]
        targets[-1] = -1.0
    return rows, targets


@pytest.mark.parametrize("seed", range(8))
def test_eigenvalue_bound_lies_below_that_of_the_smaller_set(seed):
    # Theorem L4.
    rows, _ = neighbours(seed)
    values = [np.linalg.eigvalsh(part.T @ part)[0] for part in (rows[:-1], rows)]
    assert values[0] <= values[1] <= values[0] + 1.0 + 1e-12
    for number, least in enumerate(values):
        numbers, at = many(
            release_least_eigenvalue, least, 1.0, 0.8, FAILURE, seed=10 * seed + number
        )
        found = share_of_failures(numbers, at, lambda bound: bound > values[0])
        assert found <= most_failures(FAILURE)


def test_eigenvalue_bound_fails_as_often_as_it_may():
    # The larger set, where the record adds all it can to the eigenvalue.
    numbers, at = many(release_least_eigenvalue, 21.0, 1.0, 0.8, FAILURE, seed=0)
    found = share_of_failures(numbers, at, lambda bound: bound > 20.0)
    assert found == pytest.approx(FAILURE, rel=0.15)
    numbers, at = many(release_noisy_eigenvalue, 20.0, 1.0, 0.8, FAILURE, seed=1)
    assert share_of_failures(numbers, at, lambda bound: bound > 20.0) == pytest.approx(
        FAILURE, rel=0.15
    )


@pytest.mark.parametrize("ridge", [0.5, 5.0, 50.0])
@pytest.mark.parametrize("seed", range(8))
def test_residual_bound_holds_for_every_record_of_the_smaller_set(seed, ridge):
    # Theorem L4.
    rows, targets = neighbours(seed)
    solutions = [
        np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ y)
        for x, y in ((rows[:-1], targets[:-1]), (rows, targets))
    ]
    least = np.linalg.eigvalsh(rows[:-1].T @ rows[:-1])[0]
    leverage = 1.0 / (least + ridge)
    norms = [float(np.linalg.norm(solution)) for solution in solutions]
    sizes = [math.log1p(norm) for norm in norms]
    assert abs(sizes[0] - sizes[1]) <= math.log1p(leverage) + 1e-12
    largest = 1.0 + norms[0]
    for number, norm in enumerate(norms):
        numbers, at = many(
            release_residual_bound, norm, 1.0, leverage, 0.5, FAILURE, seed=10 * seed + number
        )
        found = share_of_failures(numbers, at, lambda bound: bound < largest)
        assert found <= most_failures(FAILURE)


def test_leverage_stays_in_the_box_where_the_bounds_hold():
    plan = adaptive_plan(1.0, 1e-6, None, None, "exact")
    for seed in range(20):
        rows, targets = neighbours(seed)
        smaller = rows[:-1].T @ rows[:-1]
        least = float(np.linalg.eigvalsh(smaller)[0])
        for released in (0.0, 0.5 * least, least):
            ridge = max(1e-3, 1.0 / plan.leverage - released)
            H = smaller + ridge * np.eye(rows.shape[1])
            bound = 1.0 / (released + ridge)
            assert bound <= plan.leverage * (1.0 + 1e-12)
            assert rows[-1] @ np.linalg.solve(H, rows[-1]) <= bound * (1.0 + 1e-9)


def test_margin_is_a_normal_quantile():
    assert stats.norm.sf(margin(1e-9)) == pytest.approx(1e-9)


def test_no_noise_releases_the_value():
    assert release_noisy_eigenvalue(5.0, 1.0, math.inf, 0.5) == 5.0
    assert release_residual_bound(2.0, 1.0, 0.5, math.inf, 0.5) == pytest.approx(4.5)


def test_next_to_no_budget_gives_a_float():
    bound = release_residual_bound(1.0, 1.0, 0.1, 1e-9, 1e-9, np.random.default_rng(0))
    assert math.isfinite(bound * bound)
