"""Objective perturbation: its cost, its noise, its minimiser, and the losses."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from skdptune.linear_model._solvers._design import Design, draw_linear_term
from skdptune.linear_model._solvers._objective import (
    objective_curves,
    plan_objective,
)
from skdptune.linear_model._solvers._public_problem import (
    LOGISTIC,
    MarginLoss,
    PublicProblem,
    RegularisedSum,
    huber_hinge,
    largest_subset_size,
    minimise,
)
from tests.accounting.cases import few
from tests.linear_model import perturbation_oracles as oracles


def random_problem(seed, n=300, d=5, intercept=True):
    """Return clipped rows and the signs of a noisy rule."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    signs = np.where(rows[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return Design.clipped(rows, 1.0, intercept), signs


def name_of(loss):
    return f"{loss.name}-{loss.curvature_bound:g}"


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge()], ids=name_of)
@pytest.mark.parametrize(
    ("epsilon", "delta", "n_problems"),
    [(0.1, 1e-6, 1), (0.1, 0.0, 4), (1.0, 1e-6, 4), (1.0, 0.0, 1), (8.0, 1e-6, 1), (8.0, 0.0, 4)],
)
def test_budget_is_met_and_used_up(loss, epsilon, delta, n_problems):
    plan = plan_objective(
        PublicProblem(loss, 1.5, 2.0, 6, 500, n_problems=n_problems), epsilon=epsilon, delta=delta
    )
    assert 0.99 * epsilon <= plan.profile.epsilon(delta) <= epsilon
    assert plan.is_pure == (delta == 0.0)
    # The noise that hides the rest of the minimisation is negligible compared to the effect of the
    # term.
    hessian = plan.regularization + 500 * loss.curvature_bound * 1.5**2
    assert plan.release_scale < 0.1 * plan.noise_scale / hessian


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge()], ids=name_of)
def test_gap_of_a_plan_is_reached_on_degenerate_data(loss):
    # Theorem M2: further noise hides the error of a minimiser.
    plan = plan_objective(PublicProblem(loss, 2**0.5, 1e-3, 4, 5000), epsilon=1.0, delta=1e-5)
    rng = np.random.default_rng(2)
    same = np.ones((5000, 3))
    for rows, signs in [
        (same, np.ones(5000)),
        (same, np.resize([1.0, -1.0], 5000)),
        (0.0 * same, np.ones(5000)),
        (same * rng.normal(size=(5000, 1)), rng.choice([-1.0, 1.0], 5000)),
    ]:
        design = Design.clipped(rows, 1.0, True)
        term = draw_linear_term(4, plan.noise_scale, plan.is_pure, rng)
        function = RegularisedSum(loss, design, signs, plan.regularization, term)
        weights = minimise(function, plan.gap)
        slope = function.gradient(weights, function.margins(weights))
        assert np.linalg.norm(slope) <= plan.gap / 2


LOSSES = [LOGISTIC, huber_hinge(), huber_hinge(0.1)]


EPSILONS = np.linspace(0.0, 5.0, 41)
# The other records: products of sign and (one-dimensional) row.
OTHERS = {
    "none": [],
    "with": [0.9, 0.5, 1.0],
    "against": [-1.0] * 30,
    "against, weak": [-0.3] * 5,
    "mixed": [1.0, -1.0, 0.2, -0.7],
}


def exact_curves(loss, others, record, lam, sigma):
    return oracles.exact_curves(loss, others, record, lam, sigma, EPSILONS)


def test_oracle_agrees_with_simulated_minima():
    # The distributions that everything below rests on, against this package's own minimiser.
    rng, lam, sigma = np.random.default_rng(0), 0.3, 1.0
    rows = np.array(OTHERS["mixed"])
    design = Design.clipped(np.abs(rows)[:, None], 1.0, False)
    for loss in LOSSES:
        functions = [
            RegularisedSum(loss, design, np.sign(rows), lam, term)
            for term in (draw_linear_term(1, sigma, False, rng) for _ in range(400))
        ]
        found = np.array([minimise(function, 1e-9)[0] for function in functions])
        levels = stats.norm.cdf(oracles.gradient(loss, rows, lam, found) / sigma)
        assert stats.kstest(levels, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
@pytest.mark.parametrize("lam, sigma", [(0.05, 1.0), (0.3, 0.5), (1.0, 2.0), (20.0, 0.7)])
def test_curves_are_never_below_the_exact_ones_in_one_dimension(loss, lam, sigma):
    # Theorem M1: objective perturbation at the exact minimum.
    claimed = objective_curves(loss, 1.0 / lam, 1.0 / sigma, EPSILONS)
    for others, record in itertools.product(OTHERS.values(), (1.0, -1.0, 0.4)):
        exact = exact_curves(loss, others, record, lam, sigma)
        for ours, true in zip(claimed, exact, strict=True):
            assert np.all(ours >= true - 1e-12)


def test_less_noise_than_claimed_is_seen_by_the_exact_curves():
    # The comparison above would notice noise that is a tenth too small.
    loss, lam = huber_hinge(), 200.0
    claimed = objective_curves(loss, 1.0 / lam, 1.0, EPSILONS)[0]
    exact = exact_curves(loss, OTHERS["none"], 1.0, lam, 0.9)[0]
    assert np.any(exact > 1.05 * claimed)


def test_supremum_by_slopes_matches_a_naive_search():
    ratio, mu, epsilon = 3.0, 0.7, 1.2
    t = np.linspace(-9.0, 9.0, 20_001)
    a = np.linspace(0.0, 1.0, 2001)
    worst = np.full_like(t, -np.inf)
    for share in a:
        line = np.log1p(share * (1 - share) * ratio) + mu * share * t + (mu * share) ** 2 / 2
        worst = np.maximum(worst, line)
    expected = np.trapezoid(np.maximum(1 - np.exp(epsilon - worst), 0) * stats.norm.pdf(t), t)
    ours = objective_curves(LOGISTIC, ratio, mu, np.array([epsilon]))[0][0]
    assert expected * (1 - 1e-6) <= ours <= expected * 1.002


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
@pytest.mark.parametrize("lam", [0.1, 2.0])
def test_privacy_loss_is_below_the_bound_of_the_proof_in_three_dimensions(loss, lam):
    # Theorem M1: objective perturbation at the exact minimum.
    rng, sigma, share = np.random.default_rng(0), 0.8, np.linspace(0.0, 1.0, 4001)
    for _ in range(60):
        rows = rng.normal(size=(6, 2)) * rng.choice([0.2, 2.0])
        signs = rng.choice([-1.0, 1.0], 6)
        design = Design.clipped(rows, 1.0, True)
        term = draw_linear_term(3, sigma, False, rng)
        weights = minimise(RegularisedSum(loss, design, signs, lam, term), 1e-10)
        z = np.append(rows[-1] * design.scale[-1], 1.0)
        margin, length = signs[-1] * z @ weights, np.linalg.norm(z)
        # The privacy loss by its definition: densities with and without the last record.
        hessians = [lam * np.eye(3), lam * np.eye(3)]
        for i, row in enumerate(np.column_stack([rows * design.scale[:, None], np.ones(6)])):
            bend = loss.second_derivative(signs[i] * row @ weights) * np.outer(row, row)
            hessians[0] += bend
            hessians[1] += bend * (i < 5)
        without = term + signs[-1] * loss.derivative(margin) * z
        determinants = [np.linalg.slogdet(hessian)[1] for hessian in hessians]
        norms = (without @ without - term @ term) / (2.0 * sigma**2)
        true = determinants[0] - determinants[1] + norms
        t = -signs[-1] * (z @ term) / (length * sigma)
        mu = 2**0.5 / sigma
        bound = np.log1p(loss.curvature_at_slope(share) * 2.0 / lam)
        bound = np.max(bound + mu * share * t + 0.5 * (mu * share) ** 2)
        assert true <= bound + 1e-6
        # With normal noise the sign matters: the add direction's loss is minus this one.
        opposite = -signs[-1] * (z @ without) / (length * sigma)
        assert -true <= max(0.0, -mu * opposite + mu**2 / 2.0) + 1e-6


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
@pytest.mark.parametrize("lam", [0.05, 1.0])
def test_pure_plan_bounds_the_exact_ratio_in_one_dimension(loss, lam):
    # Theorem M1: objective perturbation at the exact minimum.
    plan = plan_objective(PublicProblem(loss, 1.0, lam, 1, 30), delta=0.0, noise_multiplier=1.5)
    claimed = plan.profile.epsilon(0.0)
    scale = plan.noise_scale
    grid = np.linspace(-60.0 / lam, 60.0 / lam, 60_001)
    worst = 0.0

    def log_density(rows):
        slope = np.abs(oracles.gradient(loss, rows, lam, grid))
        return np.log(oracles.curvature(loss, rows, lam, grid)) - slope / scale

    for others in OTHERS.values():
        without = log_density(others)
        for record in (1.0, -1.0, 0.4):
            together = log_density([*others, record])
            worst = max(worst, float(np.abs(without - together).max()))
    assert 0.6 * claimed <= worst <= claimed


def test_profile_includes_the_second_release():
    # Theorem M2: further noise hides the error of a minimiser.
    plan = plan_objective(
        PublicProblem(LOGISTIC, 1.0, 1.0, 3, 100), delta=1e-5, noise_multiplier=2.0
    )
    second_mu = 2.0 * plan.distance / plan.release_scale
    assert second_mu == pytest.approx(0.05 / 2.0)
    without = objective_curves(LOGISTIC, 1.0, 0.5, EPSILONS[:12])[0]
    # Near 0 convexity lowers the profile below these points.
    assert np.all(plan.profile.delta(EPSILONS[3:12], "remove") > without[3:])


@dataclass(frozen=True)
class Weighted:
    """A loss times a weight, as the exact curves take it."""

    loss: MarginLoss
    weight: float

    def derivative(self, margins):
        return self.weight * self.loss.derivative(margins)

    def second_derivative(self, margins):
        return self.weight * self.loss.second_derivative(margins)


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
@pytest.mark.parametrize("weight", [0.05, 0.7])
def test_weighted_records_cost_no_more(loss, weight):
    # Theorem M0, Theorem M1.
    for lam, sigma in ((0.05, 1.0), (0.3, 0.5)):
        claimed = objective_curves(loss, 1.0 / lam, 1.0 / sigma, EPSILONS)
        for others, record in itertools.product(OTHERS.values(), (1.0, -1.0)):
            exact = exact_curves(Weighted(loss, weight), others, record, lam, sigma)
            for ours, true in zip(claimed, exact, strict=True):
                assert np.all(ours >= true - 1e-12)


STEEP_LOSSES = [LOGISTIC, huber_hinge(0.5), huber_hinge(0.05)]


def problem(loss, seed, lam, term_scale=0.0, n=60, d=4):
    rng = np.random.default_rng(seed)
    design = Design.clipped(rng.normal(size=(n, d)) * 2.0, 3.0, True)
    signs = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return RegularisedSum(loss, design, signs, lam, term_scale * rng.normal(size=d + 1))


def value(function, weights):
    margins = function.signs * function.design.decision(weights)
    penalty = 0.5 * function.regularization * weights @ weights
    return function.loss.value(margins).sum() + penalty + function.linear_term @ weights


@pytest.mark.parametrize(
    ("loss", "lam", "term_scale"), few(6, STEEP_LOSSES, [1e-2, 1.0, 1e3], [0.0, 30.0])
)
def test_gradient_is_as_small_as_asked(loss, lam, term_scale):
    # Theorem M2: further noise hides the error of a minimiser.
    function = problem(loss, 0, lam, term_scale)
    weights = minimise(function, 1e-8)
    gradient = optimize.approx_fprime(weights, lambda w: value(function, w), 1e-6)
    assert np.abs(gradient).max() < 1e-3 * max(1.0, lam)
    assert np.linalg.norm(function.gradient(weights, function.margins(weights))) <= 1e-8


def test_too_few_steps_give_the_data_independent_model():
    function = problem(LOGISTIC, 2, 1e-3)
    np.testing.assert_array_equal(minimise(function, 1e-300, max_iter=3), np.zeros(5))


@pytest.mark.parametrize(
    ("loss", "lam"), few(8, [*STEEP_LOSSES, huber_hinge(1e-3)], [1e-4, 1.0, 1e3])
)
def test_minimum_is_stationary_for_hard_linear_terms(loss, lam):
    design, signs = random_problem(0)
    gap = 1e-9 * design.n_samples
    for size in (0.0, 1.0, 1e4):
        term = size * np.random.default_rng(1).normal(size=design.width)
        function = RegularisedSum(loss, design, signs, lam, term)
        weights = minimise(function, gap)
        assert np.any(weights != 0.0)
        assert np.linalg.norm(function.gradient(weights, function.margins(weights))) <= gap / 2


SMOOTH_LOSSES = [LOGISTIC, huber_hinge(), huber_hinge(0.05), huber_hinge(3.0)]


MARGINS = np.linspace(-8.0, 8.0, 3203)


@pytest.mark.parametrize("loss", SMOOTH_LOSSES, ids=name_of)
def test_derivatives_are_those_of_the_value(loss):
    for start, end in [(-5.0, 0.3), (0.4, 1.2), (0.9, 6.0)]:
        slope = integrate.quad(loss.derivative, start, end, points=[0.95, 1.05], limit=200)[0]
        assert slope == pytest.approx(float(loss.value(end) - loss.value(start)), abs=1e-9)
        curve = integrate.quad(loss.second_derivative, start, end, points=[0.95, 1.05], limit=200)
        change = float(loss.derivative(end) - loss.derivative(start))
        assert curve[0] == pytest.approx(change, abs=1e-6)


@pytest.mark.parametrize("loss", SMOOTH_LOSSES, ids=name_of)
def test_bounds_hold_and_are_attained(loss):
    # Theorem M0: what bounds a record's influence on a linear classifier.
    slopes, curvatures = loss.derivative(MARGINS), loss.second_derivative(MARGINS)
    assert np.all(slopes <= 0.0) and np.all(curvatures >= 0.0)
    assert np.abs(slopes).max() == pytest.approx(loss.slope_bound, rel=1e-3)
    assert np.abs(slopes).max() <= loss.slope_bound
    assert curvatures.max() == pytest.approx(loss.curvature_bound, rel=1e-12)


@pytest.mark.parametrize("loss", SMOOTH_LOSSES, ids=name_of)
def test_curvature_at_slope_covers_every_margin(loss):
    shares = -loss.derivative(MARGINS) / loss.slope_bound
    bound = loss.curvature_at_slope(shares)
    assert np.all(loss.second_derivative(MARGINS) <= bound * (1.0 + 1e-12) + 1e-15)


@pytest.mark.parametrize("loss", SMOOTH_LOSSES, ids=name_of)
def test_curvature_at_slope_has_the_shape_that_the_proof_needs(loss):
    shares = np.linspace(1e-3, 1.0, 1000)
    curvature = loss.curvature_at_slope(shares)
    assert np.all(np.diff(curvature, 2) <= 1e-12)
    assert np.all(np.diff(curvature / shares**2) <= 1e-9)


def test_logistic_is_stable_far_out():
    far = np.array([-1e4, -800.0, 800.0, 1e4])
    np.testing.assert_allclose(LOGISTIC.value(far), [1e4, 800.0, 0.0, 0.0], atol=1e-300)
    np.testing.assert_array_equal(LOGISTIC.derivative(far[:2]), [-1.0, -1.0])
    # Relative accuracy of a small tail, both sides alike.
    assert float(LOGISTIC.second_derivative(40.0)) == pytest.approx(np.exp(-40.0), rel=1e-12)
    assert float(LOGISTIC.second_derivative(-40.0)) == pytest.approx(np.exp(-40.0), rel=1e-12)


@pytest.mark.parametrize("loss", SMOOTH_LOSSES, ids=name_of)
@pytest.mark.parametrize("weight", [1e-3, 0.3, 0.9, 1.0])
def test_weighted_losses_stay_within_the_curvature_at_a_slope(loss, weight):
    # Theorem M0: a loss times a number in [0, 1] keeps all bounds of the loss.
    shares = -weight * loss.derivative(MARGINS) / loss.slope_bound
    assert np.all((shares >= 0.0) & (shares <= 1.0))
    curvatures = weight * loss.second_derivative(MARGINS)
    assert np.all(curvatures <= loss.curvature_at_slope(shares) * (1.0 + 1e-12) + 1e-15)
    # Also where shorter rows have these slopes.
    for length in (0.1, 0.7):
        assert np.all(
            curvatures * length**2
            <= loss.curvature_at_slope(shares * length) * (1.0 + 1e-12) + 1e-15
        )


@pytest.mark.parametrize("expected", [1, 2, 7, 100, 3163, 10**5, 10**7])
def test_a_random_subset_is_never_larger_than_the_largest(expected):
    # Theorem F3: sizes of random parts are never used.
    for rate in (1e-9, 0.01, 0.5, 0.999):
        # The public size may be the expectation rounded down.
        count = round((expected + 0.5) / rate)
        assert stats.binom.sf(largest_subset_size(expected), count, rate) < 1e-20
    assert largest_subset_size(expected) < expected + 10 * math.sqrt(expected) + 102
