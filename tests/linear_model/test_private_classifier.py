"""The private linear classifiers: starts, secret sizes, defaults, suggestions, any record."""

from __future__ import annotations

import contextlib
import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skdptune.calibration import PrivateScoreCurves
from skdptune.ledger import PrivacyLedger
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.linear_model._solver_choice import Descent, Perturbation, Preconditioned
from skdptune.linear_model._solvers import Design, _objective, _output
from tests.accounting.cases import few
from tests.base.nasty_records import (
    FORMS,
    IMPROPER,
    as_list,
    nasty_rows,
    with_record,
)
from tests.conventions import check_interrupted_fit
from tests.linear_model.test_classifiers import (
    SOLVERS,
    WEIGHTS,
    rare_class,
    replay_of_weighted_neighbours,
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


@pytest.mark.parametrize(("kind", "solver"), few(5, KINDS, SECRET))
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


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize("solver", SECRET)
def test_missing_classes_are_no_error(solver):
    numbers, words = [0, 1, 2], ["no", "perhaps", "yes"]
    for rows, names in (([], words), ([0], numbers), ([1] * 60, words), ([0, 2] * 30, numbers)):
        model = subset_model(DPLogisticRegression, solver, classes=names)
        model.fit(X[: len(rows)], np.array([names[k] for k in rows]))
        assert model.classes_.tolist() == names
        assert model.coef_.shape == (3, 3)


# A start --------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", STARTING)
@pytest.mark.parametrize(
    ("kind", "n_classes", "fit_intercept"),
    [(DPLogisticRegression, 2, True), (DPLinearSVC, 3, False)],
)
def test_descent_starts_at_the_given_weights(kind, solver, n_classes, fit_intercept):
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
    if solver == "preconditioned":
        # Theorem M7: margins of a fit that goes on from given weights are not shortened.
        shares = cold.coef_ / zeros.coef_
        np.testing.assert_allclose(shares, shares[0, 0], rtol=1e-12)
        assert 0.0 < shares[0, 0] <= 1.0
    else:
        np.testing.assert_array_equal(zeros.coef_, cold.coef_)


@pytest.mark.parametrize("solver", ["objective", "output", "psgd"])
@pytest.mark.parametrize("name", ["coef_init", "intercept_init"])
def test_start_is_refused_where_it_would_change_nothing(solver, name):
    model = DPLogisticRegression(solver=solver)
    with pytest.raises(ValueError, match=f"{name} must be None with solver='{solver}'"):
        model.fit("no data at all", "no labels", **{name: [0.0]})


def test_an_output_may_start_at_plain_numbers_and_without_an_intercept_at_zero_alone():
    model = subset_model(DPLinearSVC, "sgd", classes=[0, 1], learning_rate=1e-9)
    for coef, intercept in (([1.0, 2.0, 3.0], 4.0), (np.array([[1, 2, 3]], np.float32), [4])):
        model.fit(X, np.minimum(Y, 1), coef, intercept)
        np.testing.assert_allclose(model.coef_, [[1.0, 2.0, 3.0]], atol=1e-5)
        np.testing.assert_allclose(model.intercept_, [4.0], atol=1e-5)
    model.set_params(fit_intercept=False).fit(X, np.minimum(Y, 1), None, [0.0])
    with pytest.raises(ValueError, match="intercept_init must be 0 or None"):
        model.fit(X, np.minimum(Y, 1), None, 0.5)


# Records with any content --------------------------------------------------------------------


class Reached(Exception):
    """The rows have reached the solver."""


ROWS, LABELS = X[:20], Y[:20]
# What a record may have for a label; the classes are 0, 1 and 2.
STRANGE_LABELS = [7, -1, 0.5, "maybe", *IMPROPER]


def reaching(monkeypatch, model, rows, labels):
    """Return the clipped rows, norms and labels that reach the solver."""
    found = []

    def weights(self, fits, design, codes):
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
@pytest.mark.parametrize(("form", "kind", "bound"), few(4, FORMS, KINDS, [2.0, 1e-90]))
def test_a_record_changes_its_own_row_alone(kind, form, bound, monkeypatch):
    # Theorem R5. Both kinds have one path from records to rows.
    model = subset_model(kind, "objective", data_norm=bound)
    before = reaching(monkeypatch, model, FORMS[form](ROWS), LABELS)
    for row in nasty_rows(form, 3):
        data = with_record(ROWS, LABELS, row, 1, form)
        after = reaching(monkeypatch, model, *data)
        check_one_row_more(before, after, bound)


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize("kind", KINDS)
def test_a_label_changes_its_own_row_alone(kind, monkeypatch):
    # Theorem R5: in the worst case a record becomes a constant row.
    model = subset_model(kind, "objective", data_norm=2.0)
    before = reaching(monkeypatch, model, ROWS, LABELS)
    for label in STRANGE_LABELS:
        data = with_record(ROWS, LABELS, [1.0, 1.0, 1.0], label, "doubles")
        check_one_row_more(before, reaching(monkeypatch, model, *data), 2.0, is_proper=False)


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
@pytest.mark.parametrize(("solver", "form", "kind"), few(8, [*SECRET, "psgd"], FORMS, KINDS))
def test_no_record_makes_a_fit_fail(solver, form, kind):
    # Theorem R5: in the worst case a record becomes a constant row.
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
        left.append(check_interrupted_fit(model, rows, Y))
    np.testing.assert_array_equal(*left)


@pytest.mark.parametrize("solver", ["objective", "output", "psgd"])
@pytest.mark.parametrize(("kind", "delta"), [(DPLogisticRegression, 0.0), (DPLinearSVC, DELTA)])
def test_weights_lie_on_the_grid_of_the_plan(kind, delta, solver):
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    grids = []
    for rows in (X, 0.0 * X, X[:, ::-1]):
        model = kind(1.0, delta, solver=solver, data_norm=2.0, classes=[0, 1, 2]).fit(rows, Y)
        grids.append(model.plan_.grid)
        steps = np.append(model.coef_, model.intercept_) / model.plan_.grid
        np.testing.assert_array_equal(steps, np.rint(steps))
    assert grids[0] == grids[1] == grids[2]
    assert np.log2(grids[0]) == np.rint(np.log2(grids[0]))


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
    # Of a clipping norm of 1, and of rows of the norm of three features and an intercept.
    factor = (1.0 / 2.0) ** (1.0 / 3.0)
    np.testing.assert_allclose(once[0], factor * 2.0 * clipped.sum(axis=0) / 100, rtol=1e-9)


SIZE_NEEDED = (
    ({"solver": "psgd"}, "n_public must be None with solver='psgd'.*Use another solver"),
    ({"solver": "sgd", "sampling": "fixed"}, "n_public must be None with sampling='fixed'"),
    ({"solver": "adam", "sampling": "fixed"}, "Use sampling='poisson' or 'allocation'"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_size_is_not_hidden_from_a_proof_that_needs_it(kind):
    for parameters, message in SIZE_NEEDED:
        model = kind(**parameters, n_public=100)
        with pytest.raises(ValueError, match=message):
            model.privacy_profile(100, 3)
        with pytest.raises(ValueError, match=message):
            model.fit("no data at all", "no labels")
        model.set_params(n_public=None).privacy_profile(100, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_most_steps_need_a_noise_and_a_budget(kind):
    for name, value, words in (
        ("solver", "objective", "epochs must be a number with solver='objective'; got 'max'"),
        ("solver", "psgd", "epochs must be a number with solver='psgd'.*'sgd' or 'adam'"),
        ("noise_multiplier", None, "noise_multiplier must be a number.*follows from"),
        ("noise_multiplier", -1.0, "noise_multiplier must be a number"),
        ("epsilon", None, "epsilon must be a number.*follows from noise_multiplier, epsilon"),
        ("epsilon", math.inf, "epsilon must be a number"),
        ("delta", 0.0, "delta must be a number"),
        ("epochs", "most", "epochs must be a number.*Or 'max', together with noise_multiplier"),
    ):
        settings = {"solver": "sgd", "epochs": "max", "noise_multiplier": 2.0, name: value}
        with pytest.raises((ValueError, TypeError), match=words):
            kind(**settings).privacy_profile(100, 3)
        with pytest.raises((ValueError, TypeError), match=words):
            kind(**settings).fit("no data at all", "no labels")


FEW = RNG.normal(size=(120, 3))
FEW_LABELS = (FEW[:, 0] > 0).astype(int)


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
def test_auto_chooses_a_solver_that_understands_what_is_given(parameters, solver):
    kind = KINDS[len(parameters) % 2]
    model = kind(delta=1e-3, random_state=0).set_params(**parameters)
    fitted = clone(model).fit(FEW, FEW_LABELS)
    assert fitted.solver_ == solver
    assert fitted.privacy_.profile == model.privacy_profile(*FEW.shape)
    named = clone(model).set_params(solver=solver)
    assert named.privacy_profile(*FEW.shape) == model.privacy_profile(*FEW.shape)
    np.testing.assert_array_equal(named.fit(FEW, FEW_LABELS).coef_, fitted.coef_)
    assert model.noise_parameter == named.noise_parameter
    assert model.cost_parameters >= named.cost_parameters


@pytest.mark.parametrize("parameters", [{}, {"learning_rate": 0.5, "C": 0.2}])
def test_fewer_records_keep_the_cost(parameters):
    model = DPLogisticRegression(**parameters)
    values = model.tuning_parameters(50, 1000)
    fewer = clone(model).set_params(**values)
    assert fewer.privacy_profile(50) == model.privacy_profile(1000)
    expected = {"C": 4.0} if parameters else {}
    assert values == pytest.approx(expected)


# Without noise, and with weights that are too large -------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("solver", ["objective", "output"])
def test_without_noise_class_weights_are_those_of_scikit_learn(solver, fit_intercept, monkeypatch):
    module = {"objective": _objective, "output": _output}[solver]
    monkeypatch.setattr(module, "add_noise", lambda weights, *rest: weights)
    monkeypatch.setattr(_objective, "draw_linear_term", lambda width, *rest: np.zeros(width))
    X, y = rare_class(500)
    model = DPLogisticRegression(
        100.0,
        solver=solver,
        C=0.5 * 8.0,
        class_weight=WEIGHTS,
        data_norm=10.0,
        fit_intercept=fit_intercept,
    ).fit(X, y)
    # With an intercept that is regularised like the rest.
    rows = np.column_stack([X, np.ones(500)]) if fit_intercept else X
    peer = LogisticRegression(C=0.5, class_weight=WEIGHTS, fit_intercept=False, tol=1e-10)
    weights = np.append(model.coef_[0], model.intercept_ if fit_intercept else [])
    np.testing.assert_allclose(weights, peer.fit(rows, y).coef_[0], atol=1e-5)


@pytest.mark.parametrize("solver", ["preconditioned", "objective", "output", "sgd"])
def test_weights_above_one_would_be_found(solver, monkeypatch):
    monkeypatch.setattr(
        Design, "weighted", lambda design, weights: replace(design, weights=10.0 * weights)
    )
    replay = replay_of_weighted_neighbours(DPLogisticRegression, solver, 1, 20)
    assert {finding.attribute for finding in replay.findings} >= {"coef_"}


@pytest.mark.parametrize("solver", SOLVERS)
def test_regularization_per_record_is_that_of_the_final_fit(solver, monkeypatch):
    kind = KINDS[SOLVERS.index(solver) % 2]
    # The final data repeat the tuning data, so means, and the model without noise, are the same.
    for module in (_objective, _output):
        monkeypatch.setattr(module, "add_noise", lambda values, *rest: values)
    monkeypatch.setattr(_objective, "draw_linear_term", lambda width, *rest: np.zeros(width))
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = (X @ [1.0, -2.0] + rng.normal(size=60) > 0).astype(int)
    is_exact = solver in ("objective", "output", "psgd")
    budget = {"noise_multiplier": 1.0} if is_exact else {"epsilon": math.inf}
    final = kind(
        delta=1e-6,
        solver=solver,
        C=0.05,
        batch_size=1.0,
        epochs=3000,
        max_grad_norm=100.0,
        random_state=0,
        learning_rate=0.05 if solver == "adam" else 0.15,
        **budget,
    )
    tuned = clone(final).set_params(**final.tuning_parameters(60, 240))
    final.fit(np.repeat(X, 4, axis=0), np.repeat(y, 4))
    tuned.fit(X, y)
    assert np.abs(final.coef_).max() > 0.1
    np.testing.assert_allclose(tuned.coef_, final.coef_, rtol=1e-6)
    unscaled = clone(tuned).set_params(C=0.05).fit(X, y)
    assert np.abs(unscaled.coef_ - final.coef_).max() > 0.05


@pytest.mark.parametrize("classes", [None, range(3)])
@pytest.mark.parametrize(
    "start",
    [
        {"coef_init": np.zeros((3, 4))},
        {"coef_init": np.zeros((2, 3))},
        {"coef_init": [["a", "b", "c"]] * 3},
        {"coef_init": [[1.0], [1.0, 2.0]]},
        {"coef_init": np.full((3, 3), np.nan)},
        {"intercept_init": [0.0, np.inf, 0.0]},
        {"intercept_init": np.zeros((3, 3))},
        {"coef_init": np.zeros((3, 3)), "intercept_init": [0.0, 0.0]},
        {"sample_weight": np.ones(800)},
        {"typo": 1},
    ],
)
def test_what_no_fit_can_start_from_is_refused_before_it_is_paid_for(classes, start):
    ledger = PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-4)
    model = DPLogisticRegression(solver="sgd", classes=classes)
    is_start = classes is None and "init" in "".join(start)
    around = [PrivateScoreCurves(model)] if is_start else []
    for each in (model, *around):
        with ledger, pytest.raises((TypeError, ValueError), match="must be|not supported|only"):
            each.fit(X, Y, **start)
    assert not list(ledger.history())


@pytest.mark.parametrize("solver", ["auto", "sgd"])
@pytest.mark.parametrize("name", ["coef_init", "intercept_init"])
def test_ids_in_the_place_of_weights_are_neither_shown_nor_paid_for(solver, name):
    ids = [f"SECRET-{number}" for number in range(len(Y))]
    ledger = PrivacyLedger(":memory:", "visits", epsilon=5.0, delta=1e-4)
    model = DPLogisticRegression(solver=solver)
    for around in (ledger, contextlib.nullcontext()):
        with around, pytest.raises((TypeError, ValueError), match=f"{name} must be") as caught:
            model.fit(X, Y, **{name: ids})
        assert "SECRET" not in str(caught.value)
    assert not list(ledger.history())


def random_settings(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return parameters of six models, of which most have the solver that shares passes."""
    choices = {
        "solver": ["auto", "auto", "auto", "sgd", "output"],
        "epsilon": [0.5, 3.0, math.inf],
        "C": [None, 1e-3, 10.0],
        "learning_rate": [None, 0.3],
        "max_grad_norm": [None, 0.5],
        "epochs": [None, 3],
        "data_norm": [None, 2.0],
        "fit_intercept": [True, True, False],
        "class_weight": [None, None, {0: 3.0}],
    }
    return [
        {name: values[rng.integers(len(values))] for name, values in choices.items()}
        | {"random_state": seed}
        for seed in range(6)
    ]


@pytest.mark.parametrize("case", range(12))
def test_models_fitted_together_are_those_fitted_alone_to_the_last_bit(case: int) -> None:
    # Theorem M7: noisy clipped gradients in coordinates that a release of second moments chooses.
    rng = np.random.default_rng(case)
    kind, labels = KINDS[case % 2], 2 + case // 2 % 2
    # With many columns, rows come in several chunks; with most, there is a diagonal basis.
    n_samples, n_features = [(60, 5), (3000, 90), (300, 20), (40, 1100)][case % 4]
    rows = rng.normal(size=(n_samples, n_features)).astype([np.float64, np.float32][case % 3 == 1])
    y = rng.integers(labels, size=n_samples)
    groups = rng.integers(n_samples // 2, size=n_samples) if case > 8 else None
    rows = sparse.csr_matrix(rows) if case % 5 == 3 else rows
    models = [
        kind(delta=1e-4, classes=range(labels)).set_params(**settings)
        for settings in random_settings(rng)
    ]
    alone = [clone(model).fit(rows, y, groups=groups) for model in models]
    # Without declared labels, this solver takes only two.
    last = kind(delta=1e-4, solver="output", data_norm=1.0)
    together = kind.fit_many([*models, last], rows, y, groups=groups, return_exceptions=True)
    assert isinstance(together[-1], ValueError) == (labels > 2)
    for model, one, other in zip(models, alone, together, strict=False):
        assert model is other
        for name in ("coef_", "intercept_", "classes_"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert one.privacy_ == other.privacy_
        assert one.n_features_in_ == other.n_features_in_


@pytest.mark.parametrize("solver", ["preconditioned", "sgd"])
def test_noise_that_underflows_is_not_left_out(solver: str) -> None:
    # Theorem M5, Theorem M7.
    model = DPLogisticRegression(None, noise_multiplier=0.1, max_grad_norm=5e-324, solver=solver)
    with pytest.raises(ValueError, match="deviation of the noise must be"):
        model.fit(FEW, FEW_LABELS)


@pytest.mark.parametrize("order", [(0, 0, 1, 1), (1, 0, 1, 0), (0, 1, 1, 0)])
def test_no_fit_subtracts_the_mean_that_another_one_released(order: tuple[int, ...]) -> None:
    # Theorem M7: with little noise rows are less their mean, with much noise they are not.
    rows = np.random.default_rng(0).normal(3.0, size=(400, 100))
    y = (rows[:, 0] > 3.0).astype(int)
    models = [
        DPLogisticRegression([4.0, 0.05][much], classes=[0, 1], epochs=20, random_state=place)
        for place, much in enumerate(order)
    ]
    alone = [clone(model).fit(rows, y) for model in models]
    for one, other in zip(alone, DPLogisticRegression.fit_many(models, rows, y), strict=True):
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.intercept_, other.intercept_)
