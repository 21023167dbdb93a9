"""Fits on random subsets of secret size, and fits with a start."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skdptune.base import PrivacyWarning
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression

KINDS = [DPLogisticRegression, DPLinearSVC]
# Those whose proofs let the size be secret.
SECRET = ["objective", "output", "sgd", "adam"]
DESCENTS = ["sgd", "adam"]
DELTA = 1e-4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(800, 3))
Y = np.where(X @ [1.0, -1.0, 0.5] > 0, 1, 0) + (X[:, 0] > 1)


def subset_model(kind, solver, **parameters):
    return kind(
        1.0,
        DELTA,
        solver=solver,
        C=0.1,
        batch_size=40,
        classes=[0, 1, 2],
        random_state=0,
        n_public=400,
    ).set_params(**parameters)


# A secret size --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SECRET)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_public_depends_on_the_size_of_the_subset(kind, solver):
    model = subset_model(kind, solver)
    cost = model.privacy_profile(10**6, 3)
    expected = clone(model).fit(X[:400], Y[:400])
    assert expected.privacy_.profile == cost
    for size in (0, 1, 2, 30, 390, 800):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            subset = clone(model).fit(X[:size], Y[:size])
        assert subset.plan_ == expected.plan_
        assert subset.privacy_ == expected.privacy_
        assert subset.coef_.shape == (3, 3)
        assert set(vars(subset)) == set(vars(expected))
        assert "the number of records is public" in subset.privacy_.assumptions


@pytest.mark.parametrize("solver", DESCENTS)
def test_a_subset_costs_what_data_of_the_public_size_cost(solver):
    subset = subset_model(DPLogisticRegression, solver)
    whole = clone(subset).set_params(n_public=None)
    assert subset.privacy_profile(10**6) == whole.privacy_profile(400)
    assert subset.privacy_profile(10**6) != whole.privacy_profile(800)
    plan = clone(subset).fit(X, Y).plan_
    assert (plan.n_samples, plan.rate, plan.steps) == (400, 0.1, 200)


@pytest.mark.parametrize("solver", SECRET)
@pytest.mark.parametrize("rows", [[], [0], [1] * 60, [0, 2] * 30])
@pytest.mark.parametrize("names", [[0, 1, 2], ["no", "perhaps", "yes"]])
def test_missing_classes_are_no_error(solver, rows, names):
    model = subset_model(DPLogisticRegression, solver, classes=names)
    labels = np.array([names[k] for k in rows])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X[: len(rows)], labels)
    assert model.classes_.tolist() == names
    assert model.coef_.shape == (3, 3)


@pytest.mark.parametrize("solver", SECRET)
def test_a_subset_of_sparse_rows_may_be_empty(solver):
    model = subset_model(DPLinearSVC, solver).fit(sparse.csr_matrix((0, 3)), np.empty(0))
    assert model.coef_.shape == (3, 3)


def test_labels_of_many_kinds_warn_of_nothing_where_they_are_declared():
    # scikit-learn warns of more labels than half the records.
    model = subset_model(DPLogisticRegression, "sgd", classes=range(60))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X[:60], np.arange(60))
    assert model.coef_.shape == (60, 3)


def test_without_a_public_size_no_records_are_refused():
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        subset_model(DPLogisticRegression, "sgd", n_public=None).fit(X[:0], Y[:0])


def test_delta_is_compared_with_the_public_size():
    model = subset_model(DPLogisticRegression, "output", delta=0.004)
    with pytest.warns(PrivacyWarning, match="1/n_samples=0.0025"):
        model.fit(X[:20], Y[:20])
    model.set_params(delta=0.002)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, Y)


# A start --------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", DESCENTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_descent_starts_at_the_given_weights(kind, solver, fit_intercept, n_classes):
    outputs = 1 if n_classes == 2 else 3
    coef = np.arange(1.0, 3.0 * outputs + 1.0).reshape(outputs, 3)
    intercept = np.arange(outputs) - 0.5 if fit_intercept else np.zeros(outputs)
    model = subset_model(kind, solver, learning_rate=1e-9, fit_intercept=fit_intercept)
    model.set_params(classes=range(n_classes), n_public=None)
    model.fit(X, np.minimum(Y, n_classes - 1), coef_init=coef, intercept_init=intercept)
    np.testing.assert_allclose(model.coef_, coef, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, intercept, atol=1e-5)
    assert coef[0, 0] == 1.0


@pytest.mark.parametrize("solver", DESCENTS)
def test_start_changes_neither_cost_nor_assumptions(solver):
    model = subset_model(DPLogisticRegression, solver)
    cold = clone(model).fit(X, Y)
    warm = clone(model).fit(X, Y, cold.coef_, cold.intercept_)
    assert warm.privacy_ == cold.privacy_
    assert not np.array_equal(warm.coef_, cold.coef_)
    zeros = clone(model).fit(X, Y, np.zeros((3, 3)))
    np.testing.assert_array_equal(zeros.coef_, cold.coef_)


@pytest.mark.parametrize("solver", ["objective", "output", "psgd"])
@pytest.mark.parametrize("name", ["coef_init", "intercept_init"])
def test_start_is_refused_where_it_would_change_nothing(solver, name):
    model = DPLogisticRegression(solver=solver)
    with pytest.raises(ValueError, match=f"{name} must be None with solver='{solver}'"):
        model.fit("no data at all", "no labels", **{name: [0.0]})


def test_start_of_another_shape_is_refused():
    model = subset_model(DPLogisticRegression, "sgd")
    with pytest.raises(ValueError, match=r"coef_init must be of shape \(3, 3\)"):
        model.fit(X, Y, coef_init=np.zeros((3, 4)))


def test_other_arguments_are_refused_by_name():
    with pytest.raises(TypeError, match=r"alone; got \['start'\] as well"):
        DPLogisticRegression().fit(X, Y > 0, start=1)
