"""Noise on the weights: of minima, and of passes over the records in random order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse, stats

from skdptune.linear_model._solvers import _design, _output
from skdptune.linear_model._solvers._design import (
    Design,
    add_noise,
    additive_noise,
    draw_linear_term,
    linear_term_error,
    noise_grid,
)
from skdptune.linear_model._solvers._output import (
    fit_output,
    fit_permutation,
    last_weights,
    path_sensitivity,
    plan_output,
    plan_permutation,
)
from skdptune.linear_model._solvers._public_problem import (
    LOGISTIC,
    PublicProblem,
    RegularisedSum,
    huber_hinge,
    minimise,
)
from tests import auditing

LOSSES = [LOGISTIC, huber_hinge()]


def name_of(loss):
    return f"{loss.name}-{loss.curvature_bound:g}"


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
@pytest.mark.parametrize("lam", [0.1, 1.0, 30.0])
def test_one_record_moves_the_minimum_by_the_sensitivity_at_most(loss, lam):
    # Theorem M3: output perturbation.
    rng = np.random.default_rng(0)
    plan = plan_output(PublicProblem(loss, 2**0.5, lam, 4, 30), epsilon=1.0, delta=1e-5)
    largest = 0.0
    for trial in range(60):
        n = int(rng.integers(0, 30))
        rows = rng.normal(size=(n + 1, 3)) * rng.choice([0.1, 1.0, 10.0])
        signs = rng.choice([-1.0, 1.0], n + 1)
        if trial % 2:
            # A lone record against silent others is where the bound is attained.
            rows[:n] = 0.0
        design = Design.clipped(rows, 1.0, True)
        weights = [
            minimise(RegularisedSum(loss, design.take(k), signs[k], lam, np.zeros(4)), plan.gap)
            for k in (np.arange(n), np.arange(n + 1))
        ]
        largest = max(largest, float(np.linalg.norm(weights[0] - weights[1])))
    assert largest <= plan.sensitivity
    if lam > 20.0:
        assert largest >= 0.4 * plan.sensitivity


def test_sensitivity_is_attained():
    # Theorem M3: output perturbation.
    plan = plan_output(PublicProblem(huber_hinge(), 1.0, 50.0, 2, 1), epsilon=1.0, delta=0.0)
    design = Design.clipped(np.array([[0.6, 0.8]]), 1.0, False)
    function = RegularisedSum(huber_hinge(), design, np.ones(1), 50.0, np.zeros(2))
    weights = minimise(function, plan.gap)
    assert np.linalg.norm(weights) == pytest.approx(plan.sensitivity, rel=1e-6)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("n_problems", [1, 4])
def test_budget_is_met_and_used_up(epsilon, delta, n_problems):
    plan = plan_output(
        PublicProblem(LOGISTIC, 1.5, 2.0, 6, 500, n_problems=n_problems),
        epsilon=epsilon,
        delta=delta,
    )
    assert 0.99 * epsilon <= plan.profile.epsilon(delta) <= epsilon
    assert plan.sensitivity == pytest.approx(0.75, rel=1e-6)
    each = plan_output(
        PublicProblem(LOGISTIC, 1.5, 2.0, 6, 500),
        delta=delta,
        noise_multiplier=plan.noise_scale / 0.75,
    )
    # The cost of all is the composition of the costs of each.
    composed = (n_problems * each.profile).epsilon(delta)
    assert composed == pytest.approx(plan.profile.epsilon(delta), rel=2e-3)


def test_fit_adds_the_planned_noise_to_the_minimum():
    rng = np.random.default_rng(1)
    rows, signs = rng.normal(size=(50, 3)), rng.choice([-1.0, 1.0], 50)
    design = Design.clipped(sparse.csr_matrix(rows), 1.0, True)
    for delta in (0.0, 1e-5):
        plan = plan_output(PublicProblem(LOGISTIC, 2**0.5, 1.0, 4, 50), epsilon=1.0, delta=delta)
        plain = minimise(RegularisedSum(LOGISTIC, design, signs, 1.0, np.zeros(4)), plan.gap)
        noise = np.array([fit_output(plan, design, signs, rng) for _ in range(120)]) - plain
        if delta:
            assert noise.std() == pytest.approx(plan.noise_scale, rel=0.1)
        else:
            norms = np.linalg.norm(noise, axis=1)
            assert norms.mean() == pytest.approx(4 * plan.noise_scale, rel=0.1)


def lowest_bit(values):
    """Return the power of two of the lowest bit among numbers that are not 0."""
    fractions, exponents = np.frexp(values[values != 0.0])
    digits = (fractions * 2.0**53).astype(np.int64)
    return float(np.min(exponents - 53 + np.log2((digits & -digits).astype(np.float64))))


def lowest_bits_of_fits(plan, seed, n_fits=40):
    """Return how deep bits go in fits without any record, and with one that is in all columns."""
    rng, width = np.random.default_rng(seed), plan.problem.width
    rows = Design.clipped(sparse.csr_matrix(np.ones((1, width))), 1.0, False)
    return [
        [lowest_bit(fit_output(plan, part, np.ones(part.n_samples), rng)) for _ in range(n_fits)]
        for part in (rows.take(np.arange(0)), rows)
    ]


def test_low_bits_do_not_show_which_weights_are_zero(monkeypatch):
    # Theorem E1: an audit on many columns, like those of hashed features.
    plan = plan_output(PublicProblem(LOGISTIC, 1.0, 1.0, 2**16, 1), epsilon=0.5, delta=1e-6)
    without, together = lowest_bits_of_fits(plan, seed=0)
    assert set(without) == set(together) == {math.log2(plan.grid)}

    def add_floats(values, scale, is_pure, rng):
        return values + scale * rng.standard_normal(values.size)

    # Where noise is added as floats, 0 + x has all bits of x, and w + x none behind the last of w.
    monkeypatch.setattr(_output, "add_noise", add_floats)
    without, together = (-np.array(depths) for depths in lowest_bits_of_fits(plan, seed=1))
    hits = np.sum(without > together.max()), 0
    found = auditing.least_epsilon(hits, (without.size, together.size), 1e-6, risk=2e-3)
    assert found > 2.0 * plan.profile.epsilon(1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
@pytest.mark.parametrize("own", [0.2, 1.0])
def test_one_weighted_record_moves_the_minimum_by_the_sensitivity_at_most(loss, own):
    # Theorem M0, Theorem M3.
    rng = np.random.default_rng(0)
    plan = plan_output(PublicProblem(loss, 2**0.5, 0.5, 4, 30), epsilon=1.0, delta=1e-5)
    for _ in range(30):
        rows = rng.normal(size=(30, 3)) * rng.choice([0.0, 1.0, 10.0])
        rows[-1] = 5.0
        signs, weights = rng.choice([-1.0, 1.0], 30), rng.choice([0.1, 1.0], 30)
        weights[-1] = own
        design = Design.clipped(rows, 1.0, True).weighted(weights)
        one, other = (
            minimise(RegularisedSum(loss, design.take(k), signs[k], 0.5, np.zeros(4)), plan.gap)
            for k in (np.arange(29), np.arange(30))
        )
        assert np.linalg.norm(one - other) <= own * plan.sensitivity


def distances(plan, rng, trials):
    """Return how far emptying one place moved the weights, for data of several kinds."""
    n, found = plan.problem.n_samples, []
    for trial in range(trials):
        rows = rng.normal(size=(n, 2)) * 10.0
        signs = rng.choice([-1.0, 1.0], n)
        if trial % 2:
            # Others against one: the slope of the one stays near its bound.
            rows[:] = rows[0]
            signs[:] = -1.0
            signs[0] = 1.0
        if trial % 4 == 3:
            signs[1:] = 0.0
        emptied = signs.copy()
        emptied[0] = 0.0
        design, order = Design.clipped(rows, 1.0, True), rng.permutation(n)
        pair = [last_weights(plan, design, s, order) for s in (signs, emptied)]
        found.append(float(np.linalg.norm(pair[0] - pair[1])))
    return np.array(found)


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
@pytest.mark.parametrize(
    ("lam", "n", "batch"), [(0.5, 40, 8), (20.0, 37, 10), (0.5, 37, 10), (0.5, 5, 1), (20.0, 6, 6)]
)
def test_one_record_moves_the_weights_by_the_sensitivity_at_most(loss, lam, n, batch):
    # Theorem M4: gradient steps over a permutation, then noise.
    plan = plan_permutation(
        PublicProblem(loss, 2**0.5, lam, 3, n),
        epsilon=1.0,
        delta=1e-5,
        epochs=3,
        batch_size=batch,
    )
    found = distances(plan, np.random.default_rng(0), 60)
    assert np.all(found <= plan.sensitivity)
    assert found.max() >= 0.15 * plan.sensitivity


def test_sensitivity_is_nearly_attained():
    # Short steps keep the hinge steep, and every place then matters almost alike.
    plan = plan_permutation(
        PublicProblem(huber_hinge(), 2**0.5, 1.0, 3, 20),
        epsilon=1.0,
        delta=1e-5,
        batch_size=4,
        learning_rate=0.01,
    )
    found = distances(plan, np.random.default_rng(1), 40)
    assert 0.9 * plan.sensitivity <= found.max() <= plan.sensitivity


def test_sensitivity_matches_the_recursion():
    # Theorem M4: gradient steps over a permutation, then noise.
    problem = PublicProblem(LOGISTIC, 1.3, 4.0, 3, 21)
    steps = np.random.default_rng(0).uniform(0.1, 1.0, size=(4, 5))
    worst = 0.0
    for place in range(5):
        distance = 0.0
        for row in steps:
            for j, step in enumerate(row):
                distance *= 1.0 - step * 4.0 / 21
                distance += (j == place) * step * (5 / 21) * 1.3
        worst = max(worst, distance)
    assert path_sensitivity(problem, steps) == pytest.approx(worst, rel=1e-8)


def test_a_step_that_forgets_where_it_began_leaves_a_number():
    # Theorem M4: gradient steps over a permutation, then noise.
    problem = PublicProblem(LOGISTIC, 1.3, 4.0, 3, 20)
    steps = np.array([[1.0, 5.0], [1.0, 2.0]])
    # From the second step on: a record of the first batch counts once, of the second after it.
    expected = 1.3 * (2 / 20) * max(1.0 * (1 - 2.0 / 5.0), 2.0 + 5.0 * (1 - 1.0 / 5.0) * 0.6)
    assert path_sensitivity(problem, steps) == pytest.approx(expected, rel=1e-8)


def test_missing_rows_are_empty_places():
    rng = np.random.default_rng(3)
    design, signs = Design.clipped(rng.normal(size=(30, 2)), 1.0, True), np.ones(30)
    signs[-4:] = 0.0
    plan = plan_permutation(
        PublicProblem(LOGISTIC, 2**0.5, 1.0, 3, 30), epsilon=1.0, delta=1e-5, batch_size=7
    )
    order = rng.permutation(30)
    fewer = design.take(np.arange(26))
    np.testing.assert_allclose(
        last_weights(plan, fewer, signs[:26], order),
        last_weights(plan, design, signs, order),
        atol=1e-12,
    )


def test_fit_adds_the_planned_noise():
    rng = np.random.default_rng(4)
    design, signs = Design.clipped(np.zeros((20, 2)), 1.0, False), np.ones(20)
    plan = plan_permutation(
        PublicProblem(LOGISTIC, 1.0, 1.0, 2, 20), epsilon=1.0, delta=1e-5, epochs=1
    )
    noise = np.array([fit_permutation(plan, design, signs, rng) for _ in range(500)])
    assert noise.std() == pytest.approx(plan.noise_scale, rel=0.1)


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
def test_one_weighted_record_moves_the_weights_by_the_sensitivity_at_most(loss):
    # Theorem M0, Theorem M4.
    problem = PublicProblem(loss, 2**0.5, 0.5, 3, 37)
    plan = plan_permutation(problem, epsilon=1.0, delta=1e-5, epochs=3, batch_size=10)
    rng = np.random.default_rng(0)
    for own in (0.2, 1.0):
        for _ in range(20):
            weights = rng.choice([0.05, 1.0], 37)
            weights[0] = own
            design = Design.clipped(10.0 * rng.normal(size=(37, 2)), 1.0, True).weighted(weights)
            signs, order = rng.choice([-1.0, 1.0], 37), rng.permutation(37)
            emptied = np.where(np.arange(37) == 0, 0.0, signs)
            one, other = (last_weights(plan, design, s, order) for s in (signs, emptied))
            assert np.linalg.norm(one - other) <= own * plan.sensitivity


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e-10])
def test_noise_beyond_the_largest_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be at least 2e-09; got"):
        additive_noise(epsilon, 0.0, None, 2)


@pytest.mark.parametrize("is_pure", [True, False])
def test_noise_has_the_stated_distribution(is_pure):
    # Theorem E2: noise of density exp(-norm) is a chi number times normal ones.
    rng = np.random.default_rng(0)
    values = np.array([1.0, -2.0, 0.0])
    draws = np.stack([add_noise(values, 2.0, is_pure, rng) for _ in range(2000)]) - values
    norms = np.linalg.norm(draws, axis=1)
    distribution = stats.gamma(3, scale=2.0) if is_pure else stats.chi(3, scale=2.0)
    assert stats.kstest(norms, distribution.cdf).pvalue > 1e-4
    # No direction is preferred: the share of the first coordinate is uniform in three dimensions.
    assert stats.kstest(draws[:, 0] / norms, stats.uniform(-1, 2).cdf).pvalue > 1e-4


@pytest.mark.parametrize("is_pure", [True, False])
def test_noise_is_on_the_grid_that_its_plan_states(is_pure):
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    rng = np.random.default_rng(1)
    for scale in (1e-6, 3.0, 1e7):
        values = rng.normal(size=500) * rng.choice([0.0, 1e-3, 1e6], 500)
        steps = add_noise(values, scale, is_pure, rng) / noise_grid(scale, 500, is_pure)
        np.testing.assert_array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("is_pure", [True, False])
@pytest.mark.parametrize("width", [1, 40])
def test_linear_terms_are_near_noise_in_real_numbers(is_pure, width, monkeypatch):
    # Theorem M2: the same draws on a finer grid are the same real numbers, rounded less.
    rough = draw_linear_term(width, 2.0, is_pure, np.random.default_rng(2))
    monkeypatch.setattr(_design, "_FINE_BITS", 60)
    fine = draw_linear_term(width, 2.0, is_pure, np.random.default_rng(2))
    least = linear_term_error(width, 2.0, is_pure)
    monkeypatch.undo()
    bound = linear_term_error(width, 2.0, is_pure)
    assert 0.0 < np.linalg.norm(rough - fine) <= bound + least
    assert bound <= 1e-9 * (width if is_pure else math.sqrt(width))
