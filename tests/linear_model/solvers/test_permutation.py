import numpy as np
import pytest

from skdptune.linear_model._solvers._design import Design
from skdptune.linear_model._solvers._margin_losses import LOGISTIC, huber_hinge
from skdptune.linear_model._solvers._newton import RegularisedSum, minimise
from skdptune.linear_model._solvers._permutation import (
    fit_permutation,
    last_weights,
    path_sensitivity,
    plan_permutation,
)
from skdptune.linear_model._solvers._public_problem import PublicProblem

LOSSES = [LOGISTIC, huber_hinge()]


def name_of(loss):
    return f"{loss.name}-{loss.curvature_bound:g}"


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
@pytest.mark.parametrize("schedule", ["constant", "decreasing"])
@pytest.mark.parametrize("lam", [0.5, 20.0])
@pytest.mark.parametrize("n, batch", [(40, 8), (37, 10), (5, 1), (6, 6)])
def test_one_record_moves_the_weights_by_the_sensitivity_at_most(loss, schedule, lam, n, batch):
    # Theorem M4.
    plan = plan_permutation(
        PublicProblem(loss, 2**0.5, lam, 3, n),
        epsilon=1.0,
        delta=1e-5,
        epochs=3,
        batch_size=batch,
        schedule=schedule,
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
    # Theorem M4.
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
    # Theorem M4.
    problem = PublicProblem(LOGISTIC, 1.3, 4.0, 3, 20)
    steps = np.array([[1.0, 5.0], [1.0, 2.0]])
    # From the second step on: a record of the first batch counts once, of the second after it.
    expected = 1.3 * (2 / 20) * max(1.0 * (1 - 2.0 / 5.0), 2.0 + 5.0 * (1 - 1.0 / 5.0) * 0.6)
    assert path_sensitivity(problem, steps) == pytest.approx(expected, rel=1e-8)


def test_many_decreasing_steps_tend_to_the_sensitivity_of_the_minimum():
    plan = plan_permutation(
        PublicProblem(LOGISTIC, 2**0.5, 20.0, 3, 50),
        epsilon=1.0,
        delta=1e-5,
        epochs=400,
        batch_size=5,
        schedule="decreasing",
    )
    assert plan.sensitivity == pytest.approx(2**0.5 / 20.0, rel=0.02)


def test_steps_approach_the_minimum():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(400, 2))
    signs = np.where(rows[:, 0] > 0, 1.0, -1.0)
    design = Design.clipped(rows, 1.0, True)
    plan = plan_permutation(
        PublicProblem(LOGISTIC, 2**0.5, 20.0, 3, 400),
        epsilon=1.0,
        delta=1e-5,
        epochs=60,
        schedule="decreasing",
    )
    plain = minimise(RegularisedSum(LOGISTIC, design, signs, 20.0, np.zeros(3)), 1e-8)
    weights = last_weights(plan, design, signs, rng.permutation(400))
    np.testing.assert_allclose(weights, plain, atol=0.02 * np.linalg.norm(plain))


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


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n_problems", [1, 3])
def test_budget_is_met_and_used_up(delta, n_problems):
    plan = plan_permutation(
        PublicProblem(LOGISTIC, 1.5, 2.0, 6, 500, n_problems=n_problems), epsilon=1.0, delta=delta
    )
    assert 0.99 <= plan.profile.epsilon(delta) <= 1.0


def test_fit_adds_the_planned_noise():
    rng = np.random.default_rng(4)
    design, signs = Design.clipped(np.zeros((20, 2)), 1.0, False), np.ones(20)
    plan = plan_permutation(
        PublicProblem(LOGISTIC, 1.0, 1.0, 2, 20), epsilon=1.0, delta=1e-5, epochs=1
    )
    noise = np.array([fit_permutation(plan, design, signs, rng) for _ in range(500)])
    assert noise.std() == pytest.approx(plan.noise_scale, rel=0.1)


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"epochs": 0}, ValueError, "epochs must be"),
        ({"batch_size": 2.0}, TypeError, "batch_size must be"),
        ({"schedule": "cosine"}, ValueError, "schedule must be one of"),
        ({"learning_rate": 100.0}, ValueError, "learning_rate must be .* no contractions"),
        ({"epsilon": 0}, ValueError, "epsilon must be"),
    ],
)
def test_bad_parameters_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        plan_permutation(
            PublicProblem(LOGISTIC, 1.0, 1.0, 2, 9), **{"epsilon": 1.0, "delta": 1e-5, **change}
        )


def test_more_rows_than_planned_are_refused():
    plan = plan_permutation(PublicProblem(LOGISTIC, 1.0, 1.0, 2, 3), epsilon=1.0, delta=1e-5)
    design = Design.clipped(np.ones((4, 2)), 1.0, False)
    with pytest.raises(ValueError, match="design must be of at most 3 rows; got 4"):
        fit_permutation(plan, design, np.ones(4), np.random.default_rng(0))


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
