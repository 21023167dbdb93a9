"""Objective perturbation: budgets that are met, and fits that keep to their plan."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._margin_losses import LOGISTIC, huber_hinge
from skdptune.linear_model._solvers._newton import RegularisedSum, minimise
from skdptune.linear_model._solvers._noise import draw_linear_term
from skdptune.linear_model._solvers._objective import fit_objective, plan_objective
from skdptune.linear_model._solvers._public_problem import PublicProblem
from tests.linear_model import perturbation_oracles as oracles
from tests.linear_model.perturbation_oracles import random_problem


def name_of(loss):
    return f"{loss.name}-{loss.curvature_bound:g}"


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge()], ids=name_of)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("n_problems", [1, 4])
def test_budget_is_met_and_used_up(loss, epsilon, delta, n_problems):
    plan = plan_objective(
        PublicProblem(loss, 1.5, 2.0, 6, 500, n_problems=n_problems), epsilon=epsilon, delta=delta
    )
    assert 0.99 * epsilon <= plan.profile.epsilon(delta) <= epsilon
    assert plan.is_pure == (delta == 0.0)
    # What hides the rest of the minimisation is next to nothing beside the term's own effect.
    hessian = plan.regularization + 500 * loss.curvature_bound * 1.5**2
    assert plan.release_scale < 0.1 * plan.noise_scale / hessian


def test_regularization_is_raised_to_a_public_floor_only_when_needed():
    strong = plan_objective(
        PublicProblem(huber_hinge(), 1.0, 50.0, 3, 100), epsilon=1.0, delta=1e-5
    )
    weak = plan_objective(PublicProblem(huber_hinge(), 1.0, 1e-4, 3, 100), epsilon=1.0, delta=1e-5)
    assert (strong.regularization, strong.regularization_was_raised) == (50.0, False)
    assert weak.regularization_was_raised
    # For this loss the rule is: the determinants take half of epsilon.
    assert np.log1p(1.0 / weak.regularization) == pytest.approx(0.5)
    logistic = plan_objective(PublicProblem(LOGISTIC, 1.0, 1e-4, 3, 100), epsilon=1.0, delta=0.0)
    assert np.log1p(0.25 / logistic.regularization) > 0.6
    assert logistic.noise_scale == pytest.approx(2.0, rel=0.03)


def test_given_noise_is_used_as_it_is():
    plan = plan_objective(
        PublicProblem(LOGISTIC, 2.0, 1e-3, 3, 100), delta=1e-5, noise_multiplier=3.0
    )
    assert plan.noise_scale == 6.0
    assert (plan.regularization, plan.regularization_was_raised) == (1e-3, False)
    assert plan.profile.epsilon(1e-5) > PrivacyProfile.gaussian(1 / 3).epsilon(1e-5)


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
    sizes = dict(loss=LOGISTIC, radius=1.0, regularization=1.0, width=2, n_samples=9)
    budget = {"epsilon": 1.0, "delta": 1e-5, "noise_multiplier": None}
    given = {**sizes, "n_problems": 1, **budget, **change}
    with pytest.raises(error, match=message):
        problem = PublicProblem(**{name: given.pop(name) for name in (*sizes, "n_problems")})
        plan_objective(problem, **given)


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge()], ids=name_of)
def test_gap_of_a_plan_is_reached_on_degenerate_data(loss):
    # Theorem M2.
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


def test_sparse_rows_give_the_same_weights():
    design, signs = random_problem(6)
    thin = Design.clipped(sparse.csr_matrix(design.rows), 1.0, True)
    plan = plan_objective(PublicProblem(LOGISTIC, 2**0.5, 1.0, 6, 300), epsilon=1.0, delta=1e-5)
    ours, theirs = (
        fit_objective(plan, rows, signs, np.random.default_rng(0)) for rows in (design, thin)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-7)


def test_fit_is_near_the_minimum_when_the_noise_is_small():
    design, signs = random_problem(7, n=20_000)
    plan = plan_objective(PublicProblem(LOGISTIC, 2**0.5, 1.0, 6, 20_000), epsilon=5.0, delta=1e-5)
    plain = minimise(RegularisedSum(LOGISTIC, design, signs, 1.0, np.zeros(6)), 1e-6)
    weights = fit_objective(plan, design, signs, np.random.default_rng(0))
    assert 0.0 < np.linalg.norm(weights - plain) < 0.05 * np.linalg.norm(plain)


def test_fit_refuses_data_of_another_shape():
    design, signs = random_problem(8)
    plan = plan_objective(PublicProblem(LOGISTIC, 1.0, 1.0, 4, 300), epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match="design must be of width 4; got 6"):
        fit_objective(plan, design, signs, np.random.default_rng(0))


def test_fit_depends_on_the_generator_alone():
    design, signs = random_problem(9)
    plan = plan_objective(PublicProblem(LOGISTIC, 2**0.5, 1.0, 6, 300), epsilon=1.0, delta=1e-5)
    first, again, other = (
        fit_objective(plan, design, signs, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_plans_pickle():
    plan = plan_objective(PublicProblem(LOGISTIC, 1.0, 1.0, 4, 300), epsilon=1.0, delta=1e-5)
    assert pickle.loads(pickle.dumps(plan)) == plan


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
    middle = 0.5 * plan.problem.gradient_bound / plan.regularization
    best = 1.25 * plan.noise_scale / plan.regularization
    if direction == "remove":
        return oracles.epsilon_lower_bound(together, without, 0.01, middle + best)
    return oracles.epsilon_lower_bound(-without, -together, 0.01, -middle + best)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_audit_finds_no_violation(direction):
    # Theorem M1. tests/test_audits.py has thorough ones, which noise that is too small does not
    # pass.
    plan = plan_objective(PublicProblem(huber_hinge(), 1.0, 100.0, 2, 1), epsilon=2.0, delta=0.01)
    assert 0.3 < attack(plan, 1000, 0, direction) <= 2.0
