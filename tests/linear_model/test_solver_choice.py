"""The solvers by name: what they pass on of a classifier's parameters and public sizes."""

import numpy as np
import pytest
from sklearn.base import clone

from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.linear_model._solver_choice import SOLVERS
from skdptune.linear_model._solvers import largest_subset_size
from tests.linear_model.test_private_classifier import DESCENTS, X, Y, subset_model


def test_sums_are_divided_by_the_public_batch_size():
    # One step with all records from zero weights: the sum of gradients over a constant.
    model = DPLogisticRegression(
        np.inf, 0.0, solver="sgd", C=1e15, batch_size=1.0, epochs=1, random_state=0, n_public=100
    )
    once = clone(model).fit(X[:50], Y[:50] > 0).coef_
    twice = clone(model).fit(np.vstack([X[:50]] * 2), np.tile(Y[:50] > 0, 2)).coef_
    np.testing.assert_allclose(twice, 2.0 * once, rtol=1e-12)
    gradients = (np.where(Y[:50] > 0, 1, -1) / 2)[:, None] * X[:50]
    lengths = np.sqrt(0.25 * (X[:50] ** 2).sum(axis=1) + 0.25)
    clipped = gradients / np.maximum(lengths, 1.0)[:, None]
    np.testing.assert_allclose(once[0], 2.0 * clipped.sum(axis=0) / 100, rtol=1e-9)


@pytest.mark.parametrize("solver", ["objective", "output"])
def test_tolerance_is_that_of_the_largest_subset(solver):
    subset = subset_model(DPLogisticRegression, solver).fit(X, Y)
    whole = subset_model(DPLogisticRegression, solver, n_public=None).fit(X, Y)
    assert subset.plan_.problem.n_samples == largest_subset_size(400)
    assert whole.plan_.problem.n_samples == 800
    bound = subset_model(DPLogisticRegression, solver, n_public=None)
    assert subset.plan_ == bound._plan(largest_subset_size(400), 3, 3)


@pytest.mark.parametrize("solver", DESCENTS)
def test_default_step_is_that_of_the_documentation(solver):
    model = subset_model(DPLogisticRegression, solver)
    rate = {"sgd": 2.0, "adam": 0.3 / 200**0.5}[solver]
    given = clone(model).set_params(learning_rate=rate).fit(X, Y)
    assert given.plan_.steps == 200
    np.testing.assert_array_equal(model.fit(X, Y).coef_, given.coef_)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC])
def test_weights_have_a_column_for_each_output(kind, solver):
    for labels, outputs in ((Y > 0, 1), (Y, 3)):
        model = kind(1.0, 1e-4, solver=solver, classes=np.unique(labels), random_state=0)
        model.fit(X, labels)
        assert model.coef_.shape == (outputs, 3)
        assert model.intercept_.shape == (outputs,)


def test_a_batch_is_a_share_or_a_number_of_records():
    for batch_size, expected in ((0.25, 200), (50, 50), (10_000, 800), (1e-9, 1)):
        model = DPLogisticRegression(solver="sgd", batch_size=batch_size, noise_multiplier=2.0)
        model.set_params(epochs=1, random_state=0)
        assert model.fit(X, Y > 0).plan_.batch_size == expected
