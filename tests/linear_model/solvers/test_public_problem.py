"""What is public about a problem: bounds on derivatives, tolerances, sizes of random subsets."""

import math

import pytest
from scipy import stats

from skdptune.linear_model._solvers._margin_losses import LOGISTIC
from skdptune.linear_model._solvers._public_problem import PublicProblem, largest_subset_size


def problem(**changes):
    values = {"loss": LOGISTIC, "radius": 2.0, "regularization": 0.5, "width": 3, "n_samples": 100}
    return PublicProblem(**(values | changes))


def test_one_records_derivatives_are_bounded():
    assert problem().gradient_bound == pytest.approx(2.0)
    assert problem().curvature_bound == pytest.approx(0.25 * 4.0)


def test_regularization_is_only_ever_raised():
    assert problem().regularised_at_least(0.1).regularization == 0.5
    assert problem().regularised_at_least(2.0).regularization == 2.0


def test_gap_grows_with_sizes_and_honours_the_tolerance():
    small, large = problem().gradient_gap(), problem(n_samples=100_000).gradient_gap()
    assert 0.0 < small < large < 1e-4
    assert problem().gradient_gap(tol=1e-3) == pytest.approx(1e-3 * 100 * 2.0)
    assert problem().gradient_gap(tol=1e-300) == small


@pytest.mark.parametrize("name", ["radius", "regularization"])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_sizes_are_refused_by_name(name, bad):
    with pytest.raises(ValueError, match=f"{name} must be"):
        problem(**{name: bad})


@pytest.mark.parametrize("expected", [1, 2, 7, 100, 3163, 10**5, 10**7])
@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.5, 0.999])
def test_a_random_subset_is_never_larger_than_the_largest(expected, rate):
    # Theorem F3.
    # The public size may be the expectation rounded down.
    chance = stats.binom.sf(largest_subset_size(expected), round((expected + 0.5) / rate), rate)
    assert chance < 1e-20
    assert largest_subset_size(expected) < expected + 10 * math.sqrt(expected) + 102


def test_gap_of_the_largest_subset_covers_smaller_ones():
    sizes = [100, 150, largest_subset_size(100)]
    gaps = [problem(n_samples=size).gradient_gap() for size in sizes]
    assert gaps == sorted(gaps)
