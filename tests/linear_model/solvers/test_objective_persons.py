"""Objective perturbation for neighbours that differ by one person with all rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdptune.linear_model._solvers._objective import objective_curves, plan_objective
from skdptune.linear_model._solvers._public_problem import LOGISTIC, PublicProblem, huber_hinge


class Person:
    """A person's mean loss in two dimensions: its gradients and Hessians, as plain sums."""

    def __init__(self, rows, signs, loss):
        self.signed = np.asarray(rows, dtype=float) * np.asarray(signs, dtype=float)[:, np.newaxis]
        self.loss = loss

    def gradient(self, w):
        slopes = self.loss.derivative(w @ self.signed.T)
        return slopes @ self.signed / len(self.signed)

    def hessian(self, w):
        curvatures = self.loss.second_derivative(w @ self.signed.T)
        products = np.einsum("ri,rj->rij", self.signed, self.signed)
        return np.einsum("...r,rij->...ij", curvatures, products) / len(self.signed)


def density(people, lam, sigma, w):
    """Return the density of the release at each w: that of the noise, times a determinant."""
    noise = -lam * w - sum(person.gradient(w) for person in people)
    hessian = lam * np.eye(2) + sum(person.hessian(w) for person in people)
    exponent = -0.5 * np.sum(noise**2, axis=-1) / sigma**2
    return np.exp(exponent) / (2.0 * math.pi * sigma**2) * np.linalg.det(hessian)


def exact_curves(person, others, lam, sigma, epsilons, n_points):
    """Return both curves by quadrature; what lies outside of the grid is left out."""
    # Steps are fine near 0, where the curvatures are, and reach nine standard deviations.
    reach = math.asinh(9.0 * sigma / lam)
    v = np.linspace(-reach, reach, n_points)
    places, steps = np.sinh(v), np.cosh(v) * (v[1] - v[0])
    w = np.stack(np.meshgrid(places, places, indexing="ij"), axis=-1)
    mass = np.multiply.outer(steps, steps)
    with_person = density([person, *others], lam, sigma, w)
    without = density(others, lam, sigma, w)
    assert np.sum(without * mass) == pytest.approx(1.0, abs=2e-3)

    def curve(one, other):
        return np.array(
            [np.sum(np.maximum(one - math.exp(e) * other, 0.0) * mass) for e in epsilons]
        )

    return curve(with_person, without), curve(without, with_person)


def random_person(rng, loss):
    """Return a person of 1, 2, 5 or 12 rows of norm at most 1, in one or all directions."""
    count = int(rng.choice([1, 2, 5, 12]))
    angles = rng.uniform(0.0, 2.0 * math.pi) + rng.choice([0.0, 0.3, 3.0]) * rng.normal(size=count)
    norms = rng.choice([1.0, 0.5], size=count)
    rows = norms[:, np.newaxis] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return Person(rows, rng.choice([-1.0, 1.0], size=count), loss)


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge()], ids=lambda loss: loss.name)
def test_curves_are_never_below_those_of_real_persons(loss):
    # Theorem M8: objective perturbation where one person has any number of rows.
    rng = np.random.default_rng(0)
    epsilons = np.array([0.05, 0.3, 1.0, 2.0])
    for _ in range(6):
        shift, ratio = rng.choice([0.3, 1.0, 2.0]), rng.choice([0.2, 1.0, 4.0, 16.0])
        others = [random_person(rng, loss) for _ in range(rng.integers(0, 3))]
        n_points = 241 if loss is LOGISTIC else 481
        person = random_person(rng, loss)
        exact = exact_curves(person, others, 1 / ratio, 1 / shift, epsilons, n_points)
        bounds = objective_curves(loss, ratio, shift, epsilons, persons=True)
        for found, bound in zip(exact, bounds, strict=True):
            # Quadrature over corners of the hinge is accurate to about a thousandth.
            assert np.all(found <= bound * 1.003 + 1e-4)


def crossed(loss):
    """Return a person whose four rows have two directions, each with both labels."""
    return Person([[1, 0], [1, 0], [0, 1], [0, 1]], [1, -1, 1, -1], loss)


def test_the_bound_for_one_direction_is_wrong_for_persons():
    # Theorem M8: the curve of Theorem M1 is refuted by a factor of more than 1e15.
    epsilons = np.array([2.5])
    exact, _ = exact_curves(crossed(LOGISTIC), [], 1 / 32, 1 / 0.03, epsilons, n_points=601)
    one_row = objective_curves(LOGISTIC, 32.0, 0.03, epsilons)[0]
    person = objective_curves(LOGISTIC, 32.0, 0.03, epsilons, persons=True)[0]
    assert exact[0] == pytest.approx(1.0e-5, rel=0.1)
    assert one_row[0] < 1e-15 * exact[0]
    assert exact[0] <= person[0]


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge()], ids=lambda loss: loss.name)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (4.0, 1e-5), (1.0, 0.0)])
def test_a_plan_for_persons_meets_its_budget_at_no_less_noise(loss, epsilon, delta):
    # Theorem M8: objective perturbation where one person has any number of rows.
    problem = PublicProblem(loss, 1.5, 2.0, 6, 500)
    plan = plan_objective(problem, epsilon=epsilon, delta=delta, persons=True)
    assert 0.99 * epsilon <= plan.profile.epsilon(delta) <= epsilon
    # At one regularization, persons need no less noise than rows, and little more.
    same = PublicProblem(loss, 1.5, plan.regularization, 6, 500)
    rows = plan_objective(same, epsilon=epsilon, delta=delta)
    assert 0.999 <= plan.noise_multiplier / rows.noise_multiplier <= 1.5


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge()], ids=lambda loss: loss.name)
def test_pure_plans_bound_the_densities_of_real_persons(loss):
    # Theorem M8: with noise of density exp(-norm / scale), the ratio is bounded everywhere.
    rng = np.random.default_rng(1)
    problem = PublicProblem(loss, 1.0, 0.5, 2, 500)
    plan = plan_objective(problem, epsilon=2.0, delta=0.0, persons=True)
    lam, scale = plan.regularization, plan.noise_scale
    w = rng.normal(size=(4000, 2)) * np.geomspace(0.05, 50.0, 4000)[:, np.newaxis]
    for person in [crossed(loss), *(random_person(rng, loss) for _ in range(8))]:
        before, after = -lam * w, -lam * w - person.gradient(w)
        norms = np.linalg.norm(before, axis=1) - np.linalg.norm(after, axis=1)
        hessian = lam * np.eye(2) + person.hessian(w)
        losses = norms / scale + np.log(np.linalg.det(hessian) / lam**2)
        assert np.max(np.abs(losses)) <= 2.0
