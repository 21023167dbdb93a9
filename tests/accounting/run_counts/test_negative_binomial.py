"""The truncated negative binomial against high precision, up to the ends of its range."""

import math

import mpmath
import numpy as np
import pytest

from skdptune.accounting import TruncatedNegativeBinomial as Truncated
from tests.accounting.cases import few

LARGEST_GAMMA = math.nextafter(1.0, 0.0)
ETAS = [-0.99, -0.5, -1e-9, 0.0, 1e-9, 0.5, 1.0, 2.0, 50.0]
GAMMAS = [1e-140, 1e-60, 1e-20, 1e-8, 1e-3, 0.1, 0.5, 0.7, 0.999, 1 - 1e-10, LARGEST_GAMMA]
FUNCTIONS = ["pgf", "pgf_derivative", "pgf_second_derivative"]
POINTS = [0.0, 1e-12, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-9, 1 - 2.0**-53, 1.0]


def oracle(eta, gamma, x):
    """Return the mean, the pgf and two derivatives by the textbook formulas, 400 digits."""
    with mpmath.workdps(400):
        eta, gamma, x = mpmath.mpf(eta), mpmath.mpf(gamma), mpmath.mpf(x)
        w = 1 - (1 - gamma) * x
        if eta == 0:
            scale, value = -1 / mpmath.log(gamma), mpmath.log(w) / mpmath.log(gamma)
        else:
            scale = eta / (gamma**-eta - 1)
            value = (w**-eta - 1) / (gamma**-eta - 1)
        slope = scale * (1 - gamma) * w ** (-eta - 1)
        curvature = slope * (eta + 1) * (1 - gamma) / w
        mean = scale * (1 - gamma) * gamma ** (-eta - 1)
        return [float(number) for number in (mean, value, slope, curvature)]


@pytest.mark.parametrize(("eta", "gamma"), few(11, ETAS, GAMMAS))
def test_pgf_and_derivatives(eta, gamma):
    # Theorem K1: generating functions and tails of the number of runs.
    for x in POINTS:
        mean, value, slope, curvature = oracle(eta, gamma, x)
        # An exponent of a few hundred loses a few hundred units in the last place.
        tolerances = {"rel": 3e-13, "abs": 1e-300}
        at = np.array([x])
        assert Truncated(eta, gamma).mean == pytest.approx(mean, rel=1e-13)
        assert Truncated(eta, gamma).pgf(at)[0] == pytest.approx(value, **tolerances)
        assert Truncated(eta, gamma).pgf_derivative(at)[0] == pytest.approx(slope, **tolerances)
        assert Truncated(eta, gamma).pgf_second_derivative(at)[0] == pytest.approx(
            curvature, **tolerances
        )


@pytest.mark.parametrize("gamma", [1e-140, 1e-3, 0.7, LARGEST_GAMMA])
def test_shapes_near_zero_are_continuous(gamma):
    x = np.array(POINTS)
    for name in FUNCTIONS:
        # The ends of the range of shapes are finite.
        for eta in (-1 + 1e-15, 1e6):
            values = getattr(Truncated(eta, gamma), name)(x)
            assert np.isfinite(values).all() and (np.diff(values) >= 0).all()
        middle = getattr(Truncated(0.0, gamma), name)(x)
        for eta in [5e-324, -5e-324, 1e-300, -1e-300, 1e-17, -1e-17]:
            np.testing.assert_allclose(getattr(Truncated(eta, gamma), name)(x), middle, rtol=1e-12)


@pytest.mark.parametrize(
    ("eta", "target"),
    few(
        11,
        [-0.9, -0.5, -1e-9, 0.0, 1e-12, 1e-4, 0.5, 1.0, 2.0, 50.0, 1e6],
        [1 + 1e-6, 1.5, 20.0, 1e3, 1e6, 1e9],
    ),
)
def test_mean_round_trip(eta, target):
    gamma = Truncated.from_mean(target, eta).gamma
    assert 0 < gamma < 1
    # Near gamma = 1 the spacing of floats limits what a large shape can reach.
    spacing = eta * np.finfo(float).eps
    assert Truncated(eta, gamma).mean == pytest.approx(target, rel=2e-13 + spacing)


@pytest.mark.parametrize("eta", [-0.9, 0.0, 1.0, 50.0])
def test_means_next_to_one(eta):
    gamma = Truncated.from_mean(math.nextafter(1.0, 2.0), eta).gamma
    assert 1 - 1e-12 < gamma <= LARGEST_GAMMA


@pytest.mark.parametrize("eta", [-0.99, -0.96])
def test_largest_mean_of_a_shape_is_reached(eta):
    largest = Truncated(eta, 1e-140).mean
    gamma = Truncated.from_mean(largest * (1 - 1e-12), eta).gamma
    assert gamma == pytest.approx(1e-140, rel=1e-9)
    with pytest.raises(ValueError, match="^mean must be"):
        Truncated.from_mean(largest * 1.001, eta)


def sum_of_masses(eta, gamma, count):
    """Return P(K <= count) by adding up the masses."""
    first = Truncated(eta, gamma).pgf_derivative(np.array([0.0]))[0]
    counts = np.arange(1.0, count)
    steps = np.log1p(-gamma) + np.log1p((eta - 1) / (counts + 1))
    return first * (1 + np.exp(np.cumsum(steps)).sum())


@pytest.mark.parametrize(
    ("eta", "gamma"), few(9, ETAS, [1e-8, 1e-3, 0.1, 0.7, 0.999, LARGEST_GAMMA])
)
def test_probability_at_most_adds_up_the_masses(eta, gamma):
    # Theorem K1: generating functions and tails of the number of runs.
    for count in [1, 2, 10, 1000, 300_000]:
        expected = sum_of_masses(eta, gamma, count)
        assert Truncated(eta, gamma).probability_at_most(count) == pytest.approx(
            expected, rel=1e-10, abs=1e-13
        )


@pytest.mark.parametrize(
    ("eta", "gamma"), few(8, [-0.9, -1e-9, 0.0, 0.05, 0.0999999, 0.1, 0.5, 2.0], [1e-60, 1e-12])
)
def test_probability_of_more_than_can_be_summed(eta, gamma):
    """For vast counts K gamma has the gamma-like tail that the incomplete gammas describe.

    With K = x / gamma and gamma small, P(K > k) is C(k) times the integral of e^(-eta z)
    exp(-k e^-z), that is k^-eta (Gamma(eta, k gamma) - Gamma(eta, k)).
    """
    for count in [10**7, 10**10, 10**12]:
        with mpmath.workdps(150):
            eta_, gamma_, k = mpmath.mpf(eta), mpmath.mpf(gamma), mpmath.mpf(count)
            between = mpmath.gammainc(eta_, k * gamma_, k)
            density = 1 / -mpmath.log(gamma_) if eta == 0 else eta_ / (1 - gamma_**eta_)
            exceedance = float(density / mpmath.gamma(1 + eta_) * between)
        assert 1 - Truncated(eta, gamma).probability_at_most(count) == pytest.approx(
            exceedance, rel=1e-5, abs=1e-12
        )


def test_small_probabilities_keep_their_digits():
    """At eta = 1, P(K <= 3) = 1 - (1 - gamma)^3; elsewhere the first mass is phi'(0)."""
    assert Truncated(1.0, 1e-13).probability_at_most(3) == pytest.approx(3e-13, rel=1e-11, abs=0)
    assert Truncated(50.0, 1e-6).probability_at_most(1) == pytest.approx(5e-299, rel=1e-4, abs=0)
