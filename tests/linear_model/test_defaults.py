"""What stands for the parameters that are not given."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.linear_model._solver_choice import solver_of
from skdptune.mechanisms import noise_for_budget

KINDS = [DPLogisticRegression, DPLinearSVC]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    ("parameters", "solver"),
    [
        ({}, "preconditioned"),
        ({"epsilon": None, "noise_multiplier": 40.0}, "preconditioned"),
        ({"epsilon": np.inf}, "preconditioned"),
        ({"learning_rate": 1.0, "max_grad_norm": 0.5, "C": 0.1}, "preconditioned"),
        ({"epochs": 10}, "preconditioned"),
        ({"max_iter": 500, "tol": 0.0}, "preconditioned"),
        ({"n_public": 100}, "preconditioned"),
        ({"batch_size": 30}, "sgd"),
        ({"batch_size": 0.5, "n_public": 100}, "sgd"),
        ({"sampling": "allocation"}, "sgd"),
        ({"sampling": "fixed"}, "sgd"),
        ({"epochs": "max", "noise_multiplier": 30.0}, "sgd"),
        ({"delta": 0.0}, "objective"),
        ({"delta": 0.0, "batch_size": 30}, "objective"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_auto_chooses_a_solver_that_understands_what_is_given(kind, parameters, solver):
    model = kind(delta=1e-3, random_state=0).set_params(**parameters)
    assert solver_of(model) == solver
    fitted = clone(model).fit(X, Y)
    assert fitted.solver_ == solver
    assert fitted.privacy_.profile == model.privacy_profile(*X.shape)
    named = clone(model).set_params(solver=solver)
    assert named.privacy_profile(*X.shape) == model.privacy_profile(*X.shape)
    np.testing.assert_array_equal(named.fit(X, Y).coef_, fitted.coef_)
    assert model.noise_parameter == named.noise_parameter
    assert model.cost_parameters >= named.cost_parameters


def test_a_named_solver_is_kept():
    for solver in ("objective", "output", "psgd", "sgd", "adam", "preconditioned"):
        assert solver_of(DPLogisticRegression(solver=solver, delta=0.0, batch_size=3)) == solver


def test_many_classes_and_probabilities_without_a_word():
    rows, labels = load_digits(return_X_y=True)
    rows = (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-12)
    train, test, y, y_test = train_test_split(rows, labels, random_state=0)
    scores = [
        DPLogisticRegression(random_state=seed).fit(train, y).score(test, y_test)
        for seed in range(3)
    ]
    # With "objective", the default before, it is about .55.
    assert np.mean(scores) > 0.88
    assert DPLogisticRegression(random_state=0).fit(train, y).predict_proba(test).sum(
        axis=1
    ) == pytest.approx(np.ones(len(test)))


@pytest.mark.parametrize("delta", [1e-3, 0.0])
@pytest.mark.parametrize("solver", ["objective", "output"])
@pytest.mark.parametrize("kind", KINDS)
def test_regularization_holds_what_the_noise_does_to_margins(kind, solver, delta):
    margin = {"objective": 3.0, "output": 0.4}[solver]
    rows, labels = np.hstack([X, X, X]), np.arange(120) % 3
    for epsilon in (0.1, 1.0):
        for classes in ([0, 1], [0, 1, 2]):
            model = kind(epsilon, delta, solver=solver, classes=classes, data_norm=4.0)
            plan = model._plan(120, 9, len(classes))
            count = 1 if len(classes) == 2 else 3
            noise = (
                np.sqrt(10.0) * count / epsilon
                if delta == 0.0
                else np.sqrt(count) * noise_for_budget(epsilon, delta)[0]
            )
            expected = noise * 17.0 * count / margin
            if getattr(plan, "regularization_was_raised", False):
                assert plan.problem.regularization > expected
            else:
                assert plan.problem.regularization == pytest.approx(expected, rel=1e-12)
            given = clone(model).set_params(C=1.0 / expected, random_state=0)
            model.set_params(random_state=0).fit(rows, labels % len(classes))
            assert model.privacy_.profile == given.privacy_profile(120, 9)
            given.fit(rows, labels % len(classes))
            np.testing.assert_allclose(model.coef_, given.coef_, rtol=1e-6)


def test_regularization_is_never_below_one():
    model = DPLogisticRegression(100.0, 1e-3, solver="objective", data_norm=0.1)
    assert model._plan(120, 9, 2).problem.regularization >= 1.0
    model.set_params(solver="output", noise_multiplier=1e9)
    assert model._plan(120, 9, 2).problem.regularization <= 1e15


def test_a_secret_size_changes_neither_plan_nor_cost():
    model = DPLogisticRegression(delta=1e-3, classes=[0, 1], n_public=100, random_state=0)
    plans = [clone(model).fit(X[:size], Y[:size]).plan_ for size in (0, 1, 100, 120)]
    assert all(plan == plans[0] for plan in plans)
    assert plans[0].n_samples == 100


@pytest.mark.parametrize("parameters", [{}, {"learning_rate": 0.5, "C": 0.2}])
def test_fewer_records_keep_the_cost(parameters):
    model = DPLogisticRegression(**parameters)
    values = model.tuning_parameters(50, 1000)
    fewer = clone(model).set_params(**values)
    assert fewer.privacy_profile(50) == model.privacy_profile(1000)
    expected = {"C": 4.0} if parameters else {}
    assert values == pytest.approx(expected)


def test_support_vectors_of_many_classes_start_where_gradients_name_the_class():
    cold = DPLinearSVC(1.0, 1e-3, classes=range(4), random_state=0)
    labels = np.arange(120) % 4
    warm = clone(cold).fit(X, labels, intercept_init=np.full(4, -2.0))
    np.testing.assert_array_equal(cold.fit(X, labels).coef_, warm.coef_)
    # Without an intercept, or with two classes, the start is 0.
    for changes, names in (({"fit_intercept": False}, labels), ({"classes": [0, 1]}, labels % 2)):
        model = clone(cold).set_params(**changes)
        outputs = len(np.unique(names)) if len(np.unique(names)) > 2 else 1
        zeros = clone(model).fit(X, names, coef_init=np.zeros((outputs, 3)))
        np.testing.assert_array_equal(model.fit(X, names).coef_, zeros.coef_)
