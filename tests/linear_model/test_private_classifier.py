"""Fits on random subsets of secret size, and fits with a start."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skdptune.base import PrivacyWarning
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.linear_model._solver_choice import Descent, Perturbation, Preconditioned
from tests.base.nasty_records import (
    FORMS,
    IMPROPER,
    as_list,
    interrupted_draws,
    nasty_rows,
    with_record,
)

KINDS = [DPLogisticRegression, DPLinearSVC]
# Those whose proofs let the size be secret.
SECRET = ["preconditioned", "objective", "output", "sgd", "adam"]
DESCENTS = ["sgd", "adam"]
STARTING = ["preconditioned", *DESCENTS]
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
            warnings.filterwarnings("ignore", ".* is fitted again")
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
        warnings.filterwarnings("ignore", ".* is fitted again")
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
        warnings.filterwarnings("ignore", ".* is fitted again")
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
        warnings.filterwarnings("ignore", ".* is fitted again")
        model.fit(X, Y)


# A start --------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", STARTING)
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


@pytest.mark.parametrize("solver", STARTING)
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


# Whatever a record holds --------------------------------------------------------------------


class Reached(Exception):
    """The rows have reached the solver."""


ROWS, LABELS = X[:20], Y[:20]
# What a record may have for a label; the classes are 0, 1 and 2.
STRANGE_LABELS = [7, -1, 0.5, "maybe", *IMPROPER]


def reaching(monkeypatch, model, rows, labels):
    """Return the clipped rows, norms and labels that reach the solver."""
    found = []

    def weights(self, model, plan, design, codes, rng, start):
        clipped = np.asarray(sparse.csr_matrix(design.rows).toarray(), dtype=float)
        found.append((clipped * design.scale[:, None], design.squared_norms, codes))
        raise Reached

    monkeypatch.setattr(Descent, "weights", weights)
    monkeypatch.setattr(Preconditioned, "weights", weights)
    monkeypatch.setattr(Perturbation, "weights", weights)
    with pytest.raises(Reached):
        model.fit(rows, labels)
    return found[0]


def check_one_row_more(before, after, bound, is_proper=None):
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(new[:-1], old)
    rows, squares, codes = after
    assert np.isfinite(rows).all()
    assert np.linalg.norm(rows[-1] / bound) <= 1.0
    assert 0.0 <= squares[-1] <= bound**2 + 1.0
    assert codes[-1] in (0, 1, 2)
    if is_proper is False:
        assert not rows[-1].any()
        assert codes[-1] == 0


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize("bound", [1e-90, 2.0])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_record_changes_its_own_row_alone(kind, form, bound, monkeypatch):
    # Theorem R5.
    model = subset_model(kind, "objective", data_norm=bound)
    before = reaching(monkeypatch, model, FORMS[form](ROWS), LABELS)
    for row in nasty_rows(form, 3):
        data = with_record(ROWS, LABELS, row, 1, form)
        after = reaching(monkeypatch, model, *data)
        check_one_row_more(before, after, bound)


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize("label", STRANGE_LABELS, ids=lambda label: type(label).__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_a_label_changes_its_own_row_alone(kind, label, monkeypatch):
    # Theorem R5.
    model = subset_model(kind, "objective", data_norm=2.0)
    before = reaching(monkeypatch, model, ROWS, LABELS)
    data = with_record(ROWS, LABELS, [1.0, 1.0, 1.0], label, "doubles")
    check_one_row_more(before, reaching(monkeypatch, model, *data), 2.0, is_proper=False)


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", [*SECRET, "psgd"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_record_makes_a_fit_fail(kind, solver, form):
    # Theorem R5.
    rows = [*as_list(ROWS), *nasty_rows(form, 3)]
    labels = np.resize(np.array([0, 1, 2, *STRANGE_LABELS], dtype=object), len(rows))
    for data_norm in (None, 1.0):
        model = subset_model(kind, solver, data_norm=data_norm)
        model.set_params(n_public=None if solver == "psgd" else 400, delta=1e-6)
        model.fit(FORMS[form](rows), labels)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.intercept_).all()
        assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("solver", [*SECRET, "psgd"])
def test_an_interrupted_fit_leaves_nothing_of_the_data(solver):
    left = []
    for rows in (X, -3.0 * X):
        model = subset_model(DPLogisticRegression, solver)
        model.set_params(n_public=None if solver == "psgd" else 400)
        model.fit(X, Y).set_params(random_state=None)
        before = set(vars(model)) - {"privacy_"}
        with pytest.raises(KeyboardInterrupt), interrupted_draws():
            model.fit(rows, Y)
        assert set(vars(model)) == before
        with pytest.raises(NotFittedError):
            model.predict(X)
        left.append(model.coef_)
    np.testing.assert_array_equal(*left)


@pytest.mark.parametrize("solver", ["objective", "output", "psgd"])
@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_lie_on_the_grid_of_the_plan(kind, delta, solver):
    # Theorem E1.
    grids = []
    for rows in (X, 0.0 * X, X[:, ::-1]):
        model = kind(1.0, delta, solver=solver, data_norm=2.0, classes=[0, 1, 2]).fit(rows, Y)
        grids.append(model.plan_.grid)
        steps = np.append(model.coef_, model.intercept_) / model.plan_.grid
        np.testing.assert_array_equal(steps, np.rint(steps))
    assert grids[0] == grids[1] == grids[2]
    assert np.log2(grids[0]) == np.rint(np.log2(grids[0]))
