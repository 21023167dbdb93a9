"""The distributions of the number of runs against their closed forms and against themselves."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    TruncatedNegativeBinomial,
)

GRID = np.concatenate([np.linspace(0, 1, 101), 1 - np.logspace(-12, -3, 10)])
GRID.sort()

DISTRIBUTIONS = [
    TruncatedNegativeBinomial(-0.9, 0.05),
    TruncatedNegativeBinomial(0.5, 0.01),
    TruncatedNegativeBinomial(7.0, 0.2),
    Geometric(0.1),
    Logarithmic(0.02),
    Poisson(0.3),
    Poisson(45),
    Binomial(1, 1.0),
    Binomial(1, 0.4),
    Binomial(2, 1.0),
    Binomial(30, 0.7),
]

shapes = st.one_of(
    st.floats(-0.99, 100),
    st.floats(-1e-6, 1e-6),
    st.sampled_from([-0.5, 0.0, 1.0]),
)
negative_binomials = st.builds(TruncatedNegativeBinomial, shapes, st.floats(1e-12, 1 - 1e-6))
distributions = st.one_of(
    negative_binomials,
    st.builds(Geometric, st.floats(1e-12, 1 - 1e-6)),
    st.builds(Logarithmic, st.floats(1e-12, 1 - 1e-6)),
    st.builds(Poisson, st.floats(1e-6, 1e6)),
    st.builds(Binomial, st.integers(1, 10**6), st.floats(1e-6, 1)),
)
deterministic = settings(derandomize=True, deadline=None, max_examples=20)


def probabilities(distribution, largest):
    """Return P(K = 0), ..., P(K = largest) by the textbook formulas, term by term."""
    counts = np.arange(largest + 1)
    match distribution:
        case TruncatedNegativeBinomial():
            eta, gamma = distribution.eta, distribution.gamma
            head = 1 / math.log(1 / gamma) if eta == 0 else eta * gamma**eta / (1 - gamma**eta)
            steps = (1 - gamma) * (counts[1:-1] + eta) / counts[2:]
            masses = head * (1 - gamma) * np.concatenate([[1], np.cumprod(steps)])
            return np.concatenate([[0], masses])
        case Poisson():
            logs = [
                k * math.log(distribution.rate) - distribution.rate - math.lgamma(k + 1)
                for k in counts
            ]
            return np.exp(logs)
        case Binomial(trials=n, probability=p):
            return np.array([math.comb(n, k) * p**k * (1 - p) ** max(n - k, 0) for k in counts])


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
class TestAgainstTheMasses:
    """Every quantity is a sum over the masses of the distribution.

    Theorem K1.
    """

    largest = 4000

    def masses(self, distribution):
        masses = probabilities(distribution, self.largest)
        assert masses.sum() == pytest.approx(1, abs=1e-12)
        return masses

    def test_pgf_and_derivatives(self, distribution):
        masses = self.masses(distribution)
        expected = masses @ np.arange(self.largest + 1)
        assert distribution.mean == pytest.approx(expected, rel=1e-11)
        none = pytest.approx(masses[0], rel=1e-13, abs=0)
        assert distribution.probability_of_none == none
        one, close = np.polynomial.Polynomial(masses), {"rel": 1e-11, "abs": 0}
        for x in [0.0, 0.2, 0.9, 0.999, 1.0]:
            assert distribution.pgf(x) == pytest.approx(one(x), **close)
            assert distribution.pgf_derivative(x) == pytest.approx(one.deriv()(x), **close)
            assert distribution.pgf_second_derivative(x) == pytest.approx(one.deriv(2)(x), **close)

    def test_probability_at_most(self, distribution):
        cumulative = np.cumsum(self.masses(distribution))
        for count in [0, 1, 2, 3, 10, 47, 300, 1500]:
            assert distribution.probability_at_most(count) == pytest.approx(
                cumulative[count], rel=1e-10, abs=0
            )


def test_named_distributions_have_their_closed_forms():
    gamma = 0.03
    x = np.linspace(0, 1, 11)
    w = 1 - (1 - gamma) * x
    np.testing.assert_allclose(Geometric(gamma).pgf(x), gamma * x / w, rtol=1e-13)
    np.testing.assert_allclose(Geometric(gamma).pgf_derivative(x), gamma / w**2, rtol=1e-13)
    np.testing.assert_allclose(
        Logarithmic(gamma).pgf(x), np.log(w) / np.log(gamma), rtol=1e-13, atol=1e-16
    )
    for stopping in np.linspace(0.01, 0.99, 99):
        assert Geometric(stopping).mean == 1 / stopping
    assert Logarithmic(gamma).mean == pytest.approx((1 / gamma - 1) / math.log(1 / gamma))
    np.testing.assert_allclose(Poisson(3).pgf(x), np.exp(3 * (x - 1)), rtol=1e-14)
    np.testing.assert_allclose(Binomial(9, 0.4).pgf(x), (0.6 + 0.4 * x) ** 9, rtol=1e-13)


def test_a_sure_binomial_has_a_fixed_number_of_runs():
    distribution = Binomial(5, 1)
    assert (distribution.probability_of_none, distribution.probability_at_most(4)) == (0, 0)
    assert distribution.probability_at_most(5) == 1
    assert distribution.pgf(0.5) == pytest.approx(0.5**5, rel=1e-14)
    assert set(distribution.sample(0, size=50)) == {5}


def test_large_binomials_keep_their_digits():
    with mpmath.workdps(60):
        base = 1 - mpmath.mpf(1e-9) * (1 - mpmath.mpf(0.3))
        expected = float(base ** (10**12))
    assert Binomial(10**12, 1e-9).pgf(0.3) == pytest.approx(expected, rel=1e-12, abs=0)


def test_poisson_tail_beyond_double_precision_of_one():
    assert Poisson(1000).probability_at_most(500) == pytest.approx(
        float(mpmath.gammainc(501, 1000, regularized=True)), rel=1e-11, abs=0
    )


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_no_count_is_too_large(distribution):
    for count in (10**6, 10**18, 10**400):
        assert distribution.probability_at_most(count) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("mean", [1 + 1e-9, 1.5, 20.0, 1e6])
def test_distributions_are_made_from_their_mean(mean):
    assert Poisson.from_mean(mean) == Poisson(mean)
    assert Binomial.from_mean(mean, trials=10**6).trials == 10**6
    assert Binomial.from_mean(mean, trials=10**6).mean == pytest.approx(mean, rel=1e-15, abs=0)
    for distribution, eta in [(Geometric.from_mean(mean), 1), (Logarithmic.from_mean(mean), 0)]:
        assert distribution.mean == pytest.approx(mean, rel=1e-13)
        assert distribution == TruncatedNegativeBinomial.from_mean(mean, eta)
    assert type(Geometric.from_mean(mean)) is Geometric
    assert type(Logarithmic.from_mean(mean)) is Logarithmic
    for stopping in np.linspace(0.01, 0.99, 99):
        assert Geometric(stopping).mean == 1 / stopping


def test_named_distributions_are_truncated_negative_binomials():
    general = TruncatedNegativeBinomial(1, 0.2)
    assert isinstance(Geometric(0.2), TruncatedNegativeBinomial)
    assert Geometric(0.2) == general and general == Geometric(0.2)
    assert hash(Geometric(0.2)) == hash(general)
    assert Logarithmic(0.2) == TruncatedNegativeBinomial(-0.0, 0.2)
    assert Logarithmic(0.2) != Geometric(0.2)
    assert Geometric(0.2) != Geometric(0.3)
    assert (Geometric(0.2).eta, Logarithmic(0.2).eta) == (1, 0)


@deterministic
@given(distributions)
def test_pgf_is_that_of_a_distribution(distribution):
    """E[x^K] rises from P(K = 0) to 1, is convex, and has slope E[K] at 1."""
    value, slope, curvature = (
        distribution.pgf(GRID),
        distribution.pgf_derivative(GRID),
        distribution.pgf_second_derivative(GRID),
    )
    assert value[0] == distribution.probability_of_none
    assert value[-1] == pytest.approx(1, abs=1e-12) and value.max() <= 1
    assert slope[-1] == pytest.approx(distribution.mean, rel=1e-12)
    assert (np.diff(value) >= 0).all() and (np.diff(slope) >= 0).all()
    assert (curvature >= 0).all()
    # A chord's slope lies between the slopes at its ends.
    rise, run, slack = np.diff(value), np.diff(GRID), 1e-12
    assert (rise >= slope[:-1] * run * (1 - slack) - slack).all()
    assert (rise <= slope[1:] * run * (1 + slack) + slack).all()


@deterministic
@given(distributions, st.lists(st.integers(0, 10**7), min_size=2, max_size=6))
def test_probability_at_most_is_a_distribution_function(distribution, counts):
    values = [distribution.probability_at_most(count) for count in sorted(counts)]
    assert all(0 <= value <= 1 for value in values)
    assert all(low <= high + 1e-10 for low, high in zip(values, values[1:], strict=False))
    for count, value in zip(sorted(counts), values, strict=True):
        assert 1 - value <= distribution.mean / (count + 1) + 1e-10  # Markov
    assert distribution.probability_at_most(0) == pytest.approx(
        distribution.probability_of_none, rel=1e-12
    )
