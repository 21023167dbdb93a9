"""A ridge regression through its spectrum."""

import numpy as np

from skdptune.linear_model import SufficientStatistics
from skdptune.linear_model._regression._sufficient_statistics import RidgeProblem

rng = np.random.default_rng(0)


def test_solution_is_that_of_the_normal_equations():
    X, y = rng.uniform(-0.5, 0.5, size=(40, 3)), rng.uniform(-1.0, 1.0, 40)
    sums = SufficientStatistics(1.0, 1.0, False).update(X, y)
    gram, moment = sums.gram_and_moment
    problem = RidgeProblem(*sums.spectrum, moment, gram, 1.0, 1.0, 40)
    for ridge in (1e-3, 1.0, 1e4):
        wanted = np.linalg.solve(gram + ridge * np.eye(3), moment)
        np.testing.assert_allclose(problem.vectors @ problem.solution(ridge), wanted, rtol=1e-8)


def test_singular_problem_has_a_finite_solution():
    problem = RidgeProblem(np.zeros(2), np.eye(2), np.zeros(2), np.zeros((2, 2)), 1.0, 0.0, 1)
    np.testing.assert_array_equal(problem.solution(0.0), [0.0, 0.0])
