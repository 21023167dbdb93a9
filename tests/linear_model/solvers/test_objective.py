import dataclasses
import pickle

import numpy as np
import pytest
from scipy import optimize, sparse, stats

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._margin_losses import LOGISTIC, huber_hinge
from skdptune.linear_model._solvers._newton import RegularisedSum, minimise
from skdptune.linear_model._solvers._objective import (
    fit_objective,
    objective_curves,
    plan_objective,
)
from skdptune.linear_model._solvers._perturbation import Task, draw_noise
from tests.linear_model import perturbation_oracles as oracles

LOSSES = [LOGISTIC, huber_hinge(), huber_hinge(0.1)]


def name_of(loss):
    return f"{loss.name}-{loss.curvature_bound:g}"


EPSILONS = np.linspace(0.0, 5.0, 41)
# What the other records are: products of sign and (one-dimensional) row.
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
    # The laws that everything below rests on, against this package's own minimiser.
    rng, lam, sigma = np.random.default_rng(0), 0.3, 1.0
    rows = np.array(OTHERS["mixed"])
    design = Design.clipped(np.abs(rows)[:, None], 1.0, False)
    for loss in LOSSES:
        functions = [
            RegularisedSum(loss, design, np.sign(rows), lam, draw_noise(rng, 1, sigma, False))
            for _ in range(400)
        ]
        found = np.array([minimise(function, 1e-9)[0] for function in functions])
        levels = stats.norm.cdf(oracles.force(loss, rows, lam, found) / sigma)
        assert stats.kstest(levels, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("lam, sigma", [(0.05, 1.0), (0.3, 0.5), (1.0, 2.0), (20.0, 0.7)])
def test_curves_are_never_below_the_exact_ones_in_one_dimension(loss, others, lam, sigma):
    # Theorem M1.
    claimed = objective_curves(loss, 1.0 / lam, 1.0 / sigma, EPSILONS)
    for record in (1.0, -1.0, 0.4):
        exact = exact_curves(loss, OTHERS[others], record, lam, sigma)
        for ours, truth in zip(claimed, exact, strict=True):
            assert np.all(ours >= truth - 1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
def test_plans_profile_is_never_below_the_exact_one(loss):
    plan = plan_objective(loss, 1.0, 0.5, 1, 4, delta=1e-5, noise_multiplier=1.0)
    for others in OTHERS.values():
        remove, add = exact_curves(loss, others, 1.0, 0.5, 1.0)
        assert np.all(plan.profile.delta(EPSILONS, "remove") >= remove - 1e-12)
        assert np.all(plan.profile.delta(EPSILONS, "add") >= add - 1e-12)


def test_curves_are_attained_where_others_push_the_record_to_the_steep_part():
    # Strong regularization and a steep loss leave a Gaussian release: nothing is given away.
    loss, lam, sigma = huber_hinge(), 200.0, 1.0
    claimed = objective_curves(loss, 1.0 / lam, 1.0 / sigma, EPSILONS)
    exact = exact_curves(loss, OTHERS["none"], 1.0, lam, sigma)
    for ours, truth in zip(claimed, exact, strict=True):
        assert np.all(truth[:20] >= 0.97 * ours[:20])


def test_less_noise_than_claimed_is_seen_by_the_exact_curves():
    # The comparison above would notice noise that is a tenth too small.
    loss, lam = huber_hinge(), 200.0
    claimed = objective_curves(loss, 1.0 / lam, 1.0, EPSILONS)[0]
    exact = exact_curves(loss, OTHERS["none"], 1.0, lam, 0.9)[0]
    assert np.any(exact > 1.05 * claimed)


def test_the_determinant_matters():
    # Without it the remove direction would be the Gaussian curve, which the truth exceeds.
    lam, sigma = 0.05, 1.0
    remove, add = objective_curves(huber_hinge(0.1), 1.0 / lam, 1.0 / sigma, EPSILONS)
    exact = exact_curves(huber_hinge(0.1), OTHERS["none"], 1.0, lam, sigma)[0]
    assert np.any(exact > add + 1e-3)
    assert np.all(remove >= exact - 1e-12)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 5.0, 100.0])
def test_bound_by_slopes_improves_on_kappa_for_logistic_and_equals_it_for_the_hinge(ratio):
    gaussian, mu = PrivacyProfile.gaussian(0.5), 0.5
    for loss, is_better in ((LOGISTIC, True), (huber_hinge(), False)):
        kappa = np.log1p(loss.curvature_bound * ratio)
        points = kappa + np.array([0.5, 1.0, 1.5])
        remove, _ = objective_curves(loss, ratio, mu, points)
        coarse = gaussian.delta(points - kappa)
        assert np.all(remove <= coarse)
        if is_better:
            assert np.all(remove[:2] < 0.95 * coarse[:2])
        else:
            np.testing.assert_allclose(remove, coarse, rtol=1e-3)


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
def test_loss_of_privacy_is_below_the_bound_of_the_proof_in_three_dimensions(loss, lam):
    # Theorem M1.
    rng, sigma, share = np.random.default_rng(0), 0.8, np.linspace(0.0, 1.0, 4001)
    for _ in range(60):
        rows = rng.normal(size=(6, 2)) * rng.choice([0.2, 2.0])
        signs = rng.choice([-1.0, 1.0], 6)
        design = Design.clipped(rows, 1.0, True)
        tilt = draw_noise(rng, 3, sigma, False)
        weights = minimise(RegularisedSum(loss, design, signs, lam, tilt), 1e-10)
        z = np.append(rows[-1] * design.scale[-1], 1.0)
        margin, length = signs[-1] * z @ weights, np.linalg.norm(z)
        # Privacy's loss by its definition: densities with and without the last record.
        hessians = [lam * np.eye(3), lam * np.eye(3)]
        for i, row in enumerate(np.column_stack([rows * design.scale[:, None], np.ones(6)])):
            bend = loss.second_derivative(signs[i] * row @ weights) * np.outer(row, row)
            hessians[0] += bend
            hessians[1] += bend * (i < 5)
        without = tilt + signs[-1] * loss.derivative(margin) * z
        determinants = [np.linalg.slogdet(hessian)[1] for hessian in hessians]
        norms = (without @ without - tilt @ tilt) / (2.0 * sigma**2)
        true = determinants[0] - determinants[1] + norms
        t = -signs[-1] * (z @ tilt) / (length * sigma)
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
    # Theorem M1.
    plan = plan_objective(loss, 1.0, lam, 1, 30, delta=0.0, noise_multiplier=1.5)
    claimed = plan.profile.epsilon(0.0)
    scale = plan.noise_scale
    grid = np.linspace(-60.0 / lam, 60.0 / lam, 200_001)
    worst = 0.0
    for others in OTHERS.values():
        for record in (1.0, -1.0, 0.4):
            logarithms = [
                np.log(oracles.curvature(loss, rows, lam, grid))
                - np.abs(oracles.force(loss, rows, lam, grid)) / scale
                for rows in (others, [*others, record])
            ]
            worst = max(worst, float(np.abs(logarithms[0] - logarithms[1]).max()))
    assert 0.6 * claimed <= worst <= claimed


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge()], ids=name_of)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("n_problems", [1, 4])
def test_budget_is_met_and_spent(loss, epsilon, delta, n_problems):
    plan = plan_objective(
        loss, 1.5, 2.0, 6, 500, epsilon=epsilon, delta=delta, n_problems=n_problems
    )
    assert 0.99 * epsilon <= plan.profile.epsilon(delta) <= epsilon
    assert plan.is_pure == (delta == 0.0)
    # What hides the rest of the minimisation is nothing beside the tilt's own effect.
    hessian = plan.regularization + 500 * loss.curvature_bound * 1.5**2
    assert plan.release_scale < 0.1 * plan.noise_scale / hessian


def test_regularization_is_raised_to_a_public_floor_only_when_needed():
    strong = plan_objective(huber_hinge(), 1.0, 50.0, 3, 100, epsilon=1.0, delta=1e-5)
    weak = plan_objective(huber_hinge(), 1.0, 1e-4, 3, 100, epsilon=1.0, delta=1e-5)
    assert (strong.regularization, strong.regularization_was_raised) == (50.0, False)
    assert weak.regularization_was_raised
    # For this loss the rule is: the determinants take half of epsilon.
    assert np.log1p(1.0 / weak.regularization) == pytest.approx(0.5)
    logistic = plan_objective(LOGISTIC, 1.0, 1e-4, 3, 100, epsilon=1.0, delta=0.0)
    assert np.log1p(0.25 / logistic.regularization) > 0.6
    assert logistic.noise_scale == pytest.approx(2.0, rel=0.03)


def test_given_noise_is_used_as_it_is():
    plan = plan_objective(LOGISTIC, 2.0, 1e-3, 3, 100, delta=1e-5, noise_multiplier=3.0)
    assert plan.noise_scale == 6.0
    assert (plan.regularization, plan.regularization_was_raised) == (1e-3, False)
    assert plan.profile.epsilon(1e-5) > PrivacyProfile.gaussian(1 / 3).epsilon(1e-5)


def test_profile_includes_the_second_release():
    # Theorem M2.
    plan = plan_objective(LOGISTIC, 1.0, 1.0, 3, 100, delta=1e-5, noise_multiplier=2.0)
    second_mu = 2.0 * plan.gap / (plan.regularization * plan.release_scale)
    assert second_mu == pytest.approx(0.05 / 2.0)
    without = objective_curves(LOGISTIC, 1.0, 0.5, EPSILONS[:12])[0]
    # Near 0 convexity lowers the profile below these points.
    assert np.all(plan.profile.delta(EPSILONS[3:12], "remove") > without[3:])


BAD = [
    ({"loss": "logistic"}, TypeError, "loss must be a MarginLoss"),
    ({"radius": 0.0}, ValueError, "radius must be"),
    ({"regularization": -1.0}, ValueError, "regularization must be"),
    ({"width": 0}, ValueError, "width must be"),
    ({"n_samples": 1.5}, TypeError, "n_samples must be"),
    ({"n_problems": 0}, ValueError, "n_problems must be"),
    ({"epsilon": 0.0}, ValueError, "epsilon must be"),
    ({"epsilon": None}, TypeError, "epsilon must be"),
    ({"delta": 1.0}, ValueError, "delta must be"),
    ({"noise_multiplier": 0.0}, ValueError, "noise_multiplier must be"),
]


@pytest.mark.parametrize("change, error, message", BAD)
def test_bad_parameters_are_refused(change, error, message):
    good = dict(loss=LOGISTIC, radius=1.0, regularization=1.0, width=2, n_samples=9)
    with pytest.raises(error, match=message):
        plan_objective(**{**good, "epsilon": 1.0, "delta": 1e-5, **change})


def random_problem(seed, n=300, d=5, intercept=True):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    signs = np.where(rows[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return Design.clipped(rows, 1.0, intercept), signs


@pytest.mark.parametrize("loss", [*LOSSES, huber_hinge(1e-3)], ids=name_of)
@pytest.mark.parametrize("lam", [1e-4, 1.0, 1e3])
def test_minimum_is_stationary_for_hard_tilts(loss, lam):
    design, signs = random_problem(0)
    gap = 1e-9 * design.n_samples
    for size in (0.0, 1.0, 1e4):
        tilt = size * np.random.default_rng(1).normal(size=design.width)
        function = RegularisedSum(loss, design, signs, lam, tilt)
        weights = minimise(function, gap)
        assert np.any(weights != 0.0)
        assert np.linalg.norm(function.gradient(weights, function.margins(weights))) <= gap / 2


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge()], ids=name_of)
def test_gap_of_a_plan_is_reached_on_degenerate_data(loss):
    # Theorem M2.
    plan = plan_objective(loss, 2**0.5, 1e-3, 4, 5000, epsilon=1.0, delta=1e-5)
    rng = np.random.default_rng(2)
    same = np.ones((5000, 3))
    for rows, signs in [
        (same, np.ones(5000)),
        (same, np.resize([1.0, -1.0], 5000)),
        (0.0 * same, np.ones(5000)),
        (same * rng.normal(size=(5000, 1)), rng.choice([-1.0, 1.0], 5000)),
    ]:
        design = Design.clipped(rows, 1.0, True)
        tilt = draw_noise(rng, 4, plan.noise_scale, plan.is_pure)
        function = RegularisedSum(loss, design, signs, plan.regularization, tilt)
        weights = minimise(function, plan.gap)
        slope = function.gradient(weights, function.margins(weights))
        assert np.linalg.norm(slope) <= plan.gap / 2


def test_sharp_corners_at_large_weights_are_no_obstacle():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 60))
    design = Design.clipped(rows, 1.0, True)
    signs = np.where(rows[:, 0] > 0, 1.0, -1.0)
    loss, lam = huber_hinge(0.01), 1e-3
    gap = Task(loss, 2**0.5, lam, 61, 600).gradient_gap(60.0)
    for size in (0.0, 4.0):
        function = RegularisedSum(loss, design, signs, lam, size * rng.normal(size=61))
        weights = minimise(function, gap)
        slope = function.gradient(weights, function.margins(weights))
        assert np.linalg.norm(slope) <= gap / 2


def test_minimum_agrees_with_scipy():
    design, signs = random_problem(3)
    tilt = np.random.default_rng(4).normal(size=design.width)
    function = RegularisedSum(LOGISTIC, design, signs, 0.7, tilt)

    def value(w):
        return LOGISTIC.value(function.margins(w)).sum() + 0.35 * w @ w + tilt @ w

    expected = optimize.minimize(value, np.zeros(design.width), method="BFGS", tol=1e-6).x
    np.testing.assert_allclose(minimise(function, 1e-9), expected, atol=1e-4)


def test_minimisation_that_cannot_succeed_ends_with_zeros():
    design, signs = random_problem(5, n=20)
    function = RegularisedSum(LOGISTIC, design, signs, 1.0, np.zeros(design.width))
    np.testing.assert_array_equal(minimise(function, 1e-300), np.zeros(design.width))


def test_sparse_rows_give_the_same_weights():
    design, signs = random_problem(6)
    thin = Design.clipped(sparse.csr_matrix(design.rows), 1.0, True)
    plan = plan_objective(LOGISTIC, 2**0.5, 1.0, 6, 300, epsilon=1.0, delta=1e-5)
    ours, theirs = (
        fit_objective(plan, rows, signs, np.random.default_rng(0)) for rows in (design, thin)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-7)


def test_fit_is_near_the_minimum_when_the_noise_is_small():
    design, signs = random_problem(7, n=20_000)
    plan = plan_objective(LOGISTIC, 2**0.5, 1.0, 6, 20_000, epsilon=5.0, delta=1e-5)
    plain = minimise(RegularisedSum(LOGISTIC, design, signs, 1.0, np.zeros(6)), 1e-6)
    weights = fit_objective(plan, design, signs, np.random.default_rng(0))
    assert 0.0 < np.linalg.norm(weights - plain) < 0.05 * np.linalg.norm(plain)


def test_fit_refuses_data_of_another_shape():
    design, signs = random_problem(8)
    plan = plan_objective(LOGISTIC, 1.0, 1.0, 4, 300, epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match="design must be of width 4; got 6"):
        fit_objective(plan, design, signs, np.random.default_rng(0))


def test_fit_depends_on_the_generator_alone():
    design, signs = random_problem(9)
    plan = plan_objective(LOGISTIC, 2**0.5, 1.0, 6, 300, epsilon=1.0, delta=1e-5)
    first, again, other = (
        fit_objective(plan, design, signs, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_plans_pickle():
    plan = plan_objective(LOGISTIC, 1.0, 1.0, 4, 300, epsilon=1.0, delta=1e-5)
    assert pickle.loads(pickle.dumps(plan)) == plan


@pytest.mark.parametrize("width", [1, 3])
def test_pure_noise_has_a_gamma_norm_and_a_uniform_direction(width):
    rng = np.random.default_rng(0)
    draws = np.array([draw_noise(rng, width, 2.0, True) for _ in range(4000)])
    norms = np.linalg.norm(draws, axis=1)
    assert stats.kstest(norms, stats.gamma(width, scale=2.0).cdf).pvalue > 1e-3
    assert np.all(np.abs(draws.mean(axis=0)) < 5 * draws.std(axis=0) / np.sqrt(4000))


def attack(plan, n_fits, seed, direction):
    """Return a lower limit of epsilon at the plan's delta, from the worst data for the hinge."""
    rng = np.random.default_rng(seed)
    # Without other records the margins are near 0, where the hinge is steep.
    record = np.array([[0.6, 0.8]])
    rows = [Design.clipped(record[:k], 1.0, False) for k in (0, 1)]
    samples = [
        np.array([fit_objective(plan, r, np.ones(r.n_samples), rng) for _ in range(n_fits)])
        for r in rows
    ]
    without, together = (sample @ record[0] for sample in samples)
    # The record pulls the weights to its side: its presence is seen above, absence below.
    middle = 0.5 * plan.task.force / plan.regularization
    # Further out the odds are better and the hits fewer.
    best = (2.1 if n_fits > 5000 else 1.25) * plan.noise_scale / plan.regularization
    if direction == "remove":
        return oracles.epsilon_lower_bound(together, without, 0.01, middle + best)
    return oracles.epsilon_lower_bound(-without, -together, 0.01, -middle + best)


def audit(n_fits, direction):
    plan = plan_objective(huber_hinge(), 1.0, 100.0, 2, 1, epsilon=2.0, delta=0.01)
    honest = attack(plan, n_fits, 0, direction)
    assert 0.3 < honest <= 2.0
    cheat = dataclasses.replace(plan, noise_scale=0.7 * plan.noise_scale)
    return attack(cheat, n_fits, 1, direction)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_audit_finds_no_violation(direction):
    # Theorem M1.
    audit(1000, direction)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_audit_catches_noise_that_is_thirty_percent_too_small(direction):
    assert audit(20_000, direction) > 2.0
