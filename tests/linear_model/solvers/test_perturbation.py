"""Public sizes, budgets and noise that the perturbations share."""

import math

import numpy as np
import pytest
from scipy import stats

from skdptune.linear_model._solvers._margin_losses import LOGISTIC
from skdptune.linear_model._solvers._perturbation import (
    Task,
    check_budget,
    draw_noise,
    largest_part,
)


def task(**changes):
    values = {"loss": LOGISTIC, "radius": 2.0, "regularization": 0.5, "width": 3, "n_samples": 100}
    return Task(**(values | changes))


def test_force_and_stiffness_bound_one_records_derivatives():
    assert task().force == pytest.approx(2.0)
    assert task().stiffness == pytest.approx(0.25 * 4.0)


def test_regularization_is_only_ever_raised():
    assert task().regularised_at_least(0.1).regularization == 0.5
    assert task().regularised_at_least(2.0).regularization == 2.0


def test_gap_grows_with_sizes_and_honours_the_tolerance():
    small, large = task().gradient_gap(), task(n_samples=100_000).gradient_gap()
    assert 0.0 < small < large < 1e-4
    assert task().gradient_gap(tolerance=1e-3) == pytest.approx(1e-3 * 100 * 2.0)
    assert task().gradient_gap(tolerance=1e-300) == small


@pytest.mark.parametrize("name", ["radius", "regularization"])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_sizes_are_refused_by_name(name, bad):
    with pytest.raises(ValueError, match=f"{name} must be"):
        task(**{name: bad})


def test_a_budget_is_epsilon_or_noise():
    assert check_budget(1.0, 1e-5, None, 1) == (1.0, 1e-5)
    assert check_budget(1.0, 1e-5, 3.0, 1) == (None, 1e-5)
    assert check_budget(math.inf, 0.0, None, 1)[0] == 600.0
    with pytest.raises(ValueError, match="noise_multiplier must be"):
        check_budget(None, 1e-5, 1e-3, 1)


@pytest.mark.parametrize("is_pure", [True, False])
def test_noise_has_the_stated_law(is_pure):
    rng = np.random.default_rng(0)
    draws = np.stack([draw_noise(rng, 3, 2.0, is_pure) for _ in range(4000)])
    norms = np.linalg.norm(draws, axis=1)
    distribution = stats.gamma(3, scale=2.0) if is_pure else stats.chi(3, scale=2.0)
    assert stats.kstest(norms, distribution.cdf).pvalue > 1e-4
    # No direction is preferred: the share of the first coordinate is uniform in three dimensions.
    assert stats.kstest(draws[:, 0] / norms, stats.uniform(-1, 2).cdf).pvalue > 1e-4


@pytest.mark.parametrize("expected", [1, 2, 7, 100, 3163, 10**5, 10**7])
@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.5, 0.999])
def test_a_part_is_never_larger_than_the_largest(expected, rate):
    # The public size may be the expectation rounded down.
    chance = stats.binom.sf(largest_part(expected), round((expected + 0.5) / rate), rate)
    assert chance < 1e-20
    assert largest_part(expected) < expected + 10 * math.sqrt(expected) + 102


def test_gap_of_the_largest_part_covers_smaller_ones():
    sizes = [100, 150, largest_part(100)]
    gaps = [task(n_samples=size).gradient_gap() for size in sizes]
    assert gaps == sorted(gaps)
