"""Selection mechanisms against their exact selection probabilities."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import special

from skdptune.accounting import (
    PrivacyProfile,
    exponential_mechanism,
    permute_and_flip,
    report_noisy_max,
)
from tests.accounting.cases import few

EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 1.7, 2.5, 4.0, 6.0])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(30)


def integration_rule(breaks, width):
    """Return a Gauss-Legendre rule that is broken wherever an integrand is."""
    ends = np.unique(np.concatenate([breaks, [np.min(breaks) - 40 * width]]))
    ends = np.append(ends, ends[-1] + 40 * width)
    pieces = [np.linspace(a, b, 2 + int((b - a) / width)) for a, b in itertools.pairwise(ends)]
    edges = np.unique(np.concatenate(pieces))
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half + half * NODES).ravel(), (half * WEIGHTS).ravel()


def laplace_distribution(x, scale):
    return np.where(x < 0, 0.5 * np.exp(-np.abs(x) / scale), 1 - 0.5 * np.exp(-np.abs(x) / scale))


# Density and distribution function of each noise.
NOISES = {
    "gaussian": (
        lambda x, s: np.exp(-0.5 * (x / s) ** 2) / (s * math.sqrt(2 * math.pi)),
        lambda x, s: special.ndtr(x / s),
    ),
    "laplace": (lambda x, s: np.exp(-np.abs(x) / s) / (2 * s), laplace_distribution),
    "exponential": (
        lambda x, s: np.where(x >= 0, np.exp(-np.abs(x) / s) / s, 0.0),
        lambda x, s: np.where(x > 0, -np.expm1(-np.abs(x) / s), 0.0),
    ),
}


def noisy_max_probabilities(scores, scale, noise):
    """Return each candidate's probability of winning, by quadrature."""
    density, distribution = NOISES[noise]
    points, weights = integration_rule(np.asarray(scores), scale)
    result = []
    for j, score in enumerate(scores):
        others = [distribution(points - s, scale) for i, s in enumerate(scores) if i != j]
        result.append(weights @ (density(points - score, scale) * np.prod(others, axis=0)))
    assert sum(result) == pytest.approx(1, abs=1e-12)
    return np.array(result)


def exponential_probabilities(scores, rate):
    return special.softmax(rate * np.asarray(scores))


def flip_probabilities(scores, rate):
    """Return permute-and-flip's probabilities, order by order."""
    flips = np.exp(rate * (np.asarray(scores) - max(scores)))
    result = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for j in order:
            result[j] += left * flips[j]
            left *= 1 - flips[j]
    return result / math.factorial(len(scores))


def hockey_stick(p, q, epsilons=EPSILONS):
    return np.maximum(p - np.exp(epsilons)[:, None] * q, 0).sum(axis=1)


def neighbours(count, monotone):
    """Return all extreme changes of the scores, by a sensitivity of 1."""
    if monotone:
        return [
            sign * np.array(change)
            for sign in (1, -1)
            for change in itertools.product([0.0, 1.0], repeat=count)
        ]
    return [np.array(change) for change in itertools.product([-1.0, 1.0], repeat=count)]


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(
    ("noise", "scale", "count"),
    [
        (noise, *case)
        for noise in ("gaussian", "laplace")
        for case in ((0.6, 3), (1.5, 2), (4.0, 3))
    ],
)
def test_noisy_max_covers_the_exact_probabilities(noise, scale, count, monotone):
    # Theorem N1: the index of the best noisy score, Gaussian or Laplace noise.
    rng = np.random.default_rng(count)
    profile = report_noisy_max(count, scale, noise=noise, monotone=monotone)
    for spread in (0.0, 1.0, 4.0):
        scores = spread * rng.uniform(-1, 1, count)
        p = noisy_max_probabilities(scores, scale, noise)
        for change in neighbours(count, monotone):
            q = noisy_max_probabilities(scores + change, scale, noise)
            for one, other in ((p, q), (q, p)):
                for direction in ("remove", "add"):
                    bound = profile.delta(EPSILONS, direction)
                    assert np.all(hockey_stick(one, other) <= bound * (1 + 1e-9) + 1e-13)


class TestGaussianNoisyMax:
    """Theorem N1."""

    @pytest.mark.parametrize("monotone", [False, True])
    @pytest.mark.parametrize("scale", [0.5, 2.0])
    def test_two_candidates_attain_the_bound(self, scale, monotone):
        best = np.zeros_like(EPSILONS)
        for gap in np.linspace(-12 * scale, 12 * scale, 1201):
            change = 1.0 if monotone else 2.0
            p = special.ndtr(np.array([gap, -gap]) / (scale * math.sqrt(2)))
            q = special.ndtr(np.array([gap - change, change - gap]) / (scale * math.sqrt(2)))
            best = np.maximum(best, hockey_stick(p, q))
        bound = report_noisy_max(2, scale, monotone=monotone).delta(EPSILONS)
        seen = bound > 1e-12
        assert seen.sum() >= 4
        assert np.all(best[seen] <= bound[seen] * (1 + 1e-12))
        assert best[seen] == pytest.approx(bound[seen], rel=2e-3)

    def test_monotone_cost_is_too_low_for_scores_that_move_apart(self):
        p = noisy_max_probabilities([0.5, -0.5], 2.0, "gaussian")
        q = noisy_max_probabilities([-0.5, 0.5], 2.0, "gaussian")
        assert hockey_stick(p, q)[0] > report_noisy_max(2, 2.0, monotone=True).delta(0.0) + 0.1

    @pytest.mark.parametrize(
        ("count", "shift"), few(7, [2, 3, 4, 5, 8, 100, 10**9], [1e-3, 0.3, 2.0, 12.0, 40.0])
    )
    def test_is_the_smaller_of_the_two_closed_forms(self, count, shift):
        def curve(mu, epsilon):
            first = mpmath.ncdf(mu / 2 - epsilon / mu)
            return first - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)

        profile = report_noisy_max(count, 2 / shift)
        rising = count // 2
        joint = shift * math.sqrt(rising * (count - rising) / count)
        with mpmath.workdps(60):
            for multiple in (0.0, 0.3, 1.0, 2.0, 4.0, 6.0, 7.5):
                epsilon = min(shift * (shift / 2 + multiple), 599.0)
                exact = float(min(count * curve(shift, epsilon), curve(joint, epsilon), 1))
                found = profile.delta(epsilon)
                # Chords of the convex curve of exp(epsilon), hence never below it, and a
                # hull that may be well below the smaller of the two where they cross.
                assert found >= 0.99 * exact or count > 4
                assert found <= exact * (1 + 1e-3) + 1e-15


class TestLaplaceNoisyMax:
    """Theorem N1."""

    @pytest.mark.parametrize(("monotone", "epsilon"), [(False, 1.0), (True, 0.5)])
    def test_is_pure(self, monotone, epsilon):
        profile = report_noisy_max(7, 6.0, sensitivity=3.0, noise="laplace", monotone=monotone)
        assert profile == PrivacyProfile.pure(epsilon)

    @pytest.mark.parametrize("monotone", [False, True])
    def test_the_pure_figure_is_attained_in_the_limit(self, monotone):
        scores = np.array([-60.0, 0.0, 0.0, 0.0, 0.0])
        change = np.array([0.0, 1, 1, 1, 1]) if monotone else np.array([-1.0, 1, 1, 1, 1])
        p = noisy_max_probabilities(scores, 2.0, "laplace")
        q = noisy_max_probabilities(scores + change, 2.0, "laplace")
        largest = report_noisy_max(5, 2.0, noise="laplace", monotone=monotone).epsilon(0)
        loss = math.log(p[0] / q[0])
        assert 0.99 * largest < loss <= largest

    def test_beyond_the_largest_loss_the_rest_goes_to_infinity(self):
        profile = report_noisy_max(2, 2 / 601, noise="laplace")
        exact = -math.expm1(-1)
        assert exact <= profile.delta(600.0) <= exact + 1e-12
        assert report_noisy_max(2, 1e-300, noise="laplace").epsilon(0.999) == math.inf


class TestNoisyMaxParameters:
    @pytest.mark.parametrize("noise", ["gaussian", "laplace"])
    def test_nothing_to_learn_costs_nothing(self, noise):
        free = PrivacyProfile.pure(0)
        assert report_noisy_max(1, 1e-9, noise=noise) == free
        assert report_noisy_max(50, 1e-9, sensitivity=0, noise=noise) == free

    @pytest.mark.parametrize("count", [2, 10**12])
    def test_extreme_scales(self, count):
        for scale in (1e-300, 1e-3):
            assert report_noisy_max(count, scale).epsilon(0.5) == math.inf
        for scale in (1e8, 1e300):
            assert report_noisy_max(count, scale).epsilon(1e-9) < 1e-5


class TestPermuteAndFlip:
    """Theorem N2."""

    @pytest.mark.parametrize("scores", [[0.3, -0.4], [1.0, 1.0, -2.0], [0.0, 0.5, 0.6, 3.0]])
    def test_is_noisy_max_with_exponential_noise(self, scores):
        rate = 0.7
        noisy = noisy_max_probabilities(scores, 1 / rate, "exponential")
        assert flip_probabilities(scores, rate) == pytest.approx(noisy, abs=1e-12)

    @pytest.mark.parametrize(
        ("count", "epsilon", "monotone"), few(6, [2, 3, 4], [0.1, 1.0, 4.0], [False, True])
    )
    def test_covers_the_exact_probabilities(self, count, epsilon, monotone):
        rng = np.random.default_rng(7)
        rate = epsilon if monotone else epsilon / 2
        profile = permute_and_flip(epsilon)
        grid = epsilon * np.linspace(0, 1, 9)
        bound = profile.delta(grid)
        for spread in (0.0, 1.0, 1.0, 5.0):
            scores = spread * rng.uniform(-1, 1, count)
            p = flip_probabilities(scores, rate)
            for change in neighbours(count, monotone):
                q = flip_probabilities(scores + change, rate)
                assert np.max(np.abs(np.log(p / q))) <= epsilon * (1 + 1e-12)
                assert np.all(hockey_stick(p, q, grid) <= bound + 1e-15)
                assert np.all(hockey_stick(q, p, grid) <= bound + 1e-15)

    def test_the_figure_is_attained(self):
        p, q = flip_probabilities([0.0, 0.0], 0.25), flip_probabilities([-1.0, 1.0], 0.25)
        assert math.log(p[0] / q[0]) == pytest.approx(0.5)
        assert permute_and_flip(0.5).epsilon(0) == 0.5


class TestExponentialMechanism:
    """Theorem N2."""

    epsilons = (0.02, 0.5, 2.0, 8.0)

    @pytest.mark.parametrize(
        ("count", "epsilon", "monotone"), few(6, [2, 3, 4], epsilons, [False, True])
    )
    def test_covers_the_exact_probabilities(self, count, epsilon, monotone):
        rng = np.random.default_rng(3)
        rate = epsilon if monotone else epsilon / 2
        grid = epsilon * np.linspace(-1, 1, 21)
        bound = exponential_mechanism(epsilon).delta(grid)
        for spread in (0.0, 1.0, 1.0, 4.0):
            scores = spread * rng.uniform(-1, 1, count)
            p = exponential_probabilities(scores, rate)
            for change in neighbours(count, monotone):
                q = exponential_probabilities(scores + change, rate)
                assert np.ptp(np.log(p / q)) <= epsilon * (1 + 1e-12)
                assert np.all(hockey_stick(p, q, grid) <= bound + 1e-14)

    @pytest.mark.parametrize("epsilon", epsilons)
    def test_two_candidates_attain_it_everywhere(self, epsilon):
        grid = epsilon * np.linspace(0, 0.95, 20)
        gaps = np.linspace(-3 * epsilon - 10, 3 * epsilon + 10, 40001)
        p = special.expit(gaps + epsilon / 2)[:, None]
        q = special.expit(gaps - epsilon / 2)[:, None]
        ahead = np.maximum(p - np.exp(grid) * q, 0)
        behind = np.maximum((1 - p) - np.exp(grid) * (1 - q), 0)
        best = (ahead + behind).max(axis=0)
        assert exponential_mechanism(epsilon).delta(grid) == pytest.approx(best, rel=1e-3)

    @pytest.mark.parametrize("epsilon", epsilons)
    def test_closed_form_at_and_below_zero(self, epsilon):
        profile = exponential_mechanism(epsilon)
        grid = epsilon * np.linspace(-1, 0.999, 50)
        exact = (math.exp(epsilon / 2) - np.exp(grid / 2)) ** 2 / math.expm1(epsilon)
        for direction in ("remove", "add"):
            found = profile.delta(grid, direction)
            assert found[:-2] == pytest.approx(exact[:-2], rel=1e-3)
            assert found == pytest.approx(exact, rel=1e-2)
            assert np.all(found >= exact * (1 - 1e-9))
        assert profile.delta(0.0) == pytest.approx(math.tanh(epsilon / 4))
        assert profile.epsilon(0) == pytest.approx(epsilon, rel=1e-14)

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
    def test_renyi_bound(self, epsilon):
        t = np.linspace(0, epsilon, 2001)
        share = (np.exp(-t) - math.exp(-epsilon)) / -math.expm1(-epsilon)
        orders = np.array([1.5, 2.0, 5.0, 30.0])
        exact = [
            np.log(share * np.exp(a * t) + (1 - share) * np.exp(a * (t - epsilon))).max() / (a - 1)
            for a in orders
        ]
        found = exponential_mechanism(epsilon).rdp(orders)
        assert np.all(found >= exact)
        assert found == pytest.approx(exact, rel=1e-4)

    @pytest.mark.parametrize("epsilon", [1e-6, 1e-4, 0.01, 600.0])
    def test_renyi_bound_is_sound_at_extreme_sizes(self, epsilon):
        orders = np.array([1.0 + 1e-6, 1.1, 2.0, 64.0, 1024.0])
        found = exponential_mechanism(epsilon).rdp(orders)
        assert np.all(found > 0)
        assert np.all(np.diff(found) >= 0)
        assert np.all(found <= np.minimum(orders * epsilon**2 / 8, epsilon * (1 + 1e-12)))
        with mpmath.workdps(60):
            for order, value in zip(orders.tolist(), found, strict=True):
                shares = [mpmath.mpf(k) / 40 * epsilon for k in range(41)]
                low = mpmath.exp(-mpmath.mpf(epsilon))
                moments = []
                for t in shares:
                    q = (mpmath.exp(-t) - low) / (1 - low)
                    down = mpmath.exp(order * (t - epsilon))
                    moments.append(q * mpmath.exp(order * t) + (1 - q) * down)
                assert value >= mpmath.log(max(moments)) / (mpmath.mpf(order) - 1)

    def test_edges(self):
        assert exponential_mechanism(0) == PrivacyProfile.pure(0)
        for epsilon in (5e-324, 1e-12):
            assert exponential_mechanism(epsilon).epsilon(0) == pytest.approx(1e-6)
        assert exponential_mechanism(600).epsilon(0) == pytest.approx(600, rel=1e-14)
        # Mixing with other grids keeps a pure end up to the grid.
        both = exponential_mechanism(1.0) + PrivacyProfile.pure(0.5)
        assert 1.5 * (1 - 1e-12) <= both.epsilon(0) < 1.501
