"""The private linear classifiers as scikit-learn estimators, and their cost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from skdptune.accounting import PrivacyProfile
from skdptune.base import profile_of
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.testing import replay_neighbours
from tests.base.nasty_records import FIT_TAKES_ANY_RECORD
from tests.conventions import check_as_scikit_learn_does
from tests.tables import rare_class

SOLVERS = ["auto", "preconditioned", "objective", "output", "psgd", "sgd", "adam"]
EXPECTED_FAILURES = {
    "check_non_transformer_estimators_n_iter": (
        "how many iterations a minimisation took depends on the data and is not released"
    ),
    **FIT_TAKES_ANY_RECORD,
}
DELTA = 1e-4
# Every solver, and both losses: what is asked of one loss is one path for both.
PAIRS = pytest.mark.parametrize(
    ("kind", "solver"),
    [
        *((DPLogisticRegression, solver) for solver in SOLVERS),
        *((DPLinearSVC, solver) for solver in ("auto", "objective", "psgd")),
    ],
)

# The same where one case takes seconds: with every change one of each way to train.
DEAR_PAIRS = pytest.mark.parametrize(
    ("kind", "solver"),
    [
        (DPLogisticRegression, "auto"),
        (DPLinearSVC, "objective"),
        (DPLinearSVC, "psgd"),
        (DPLogisticRegression, "sgd"),
        *(
            pytest.param(kind, solver, marks=pytest.mark.slow)
            for kind, solver in (
                *((DPLogisticRegression, solver) for solver in SOLVERS[1:5]),
                (DPLogisticRegression, "adam"),
                (DPLinearSVC, "auto"),
            )
        ),
    ],
)


def scaled(loader):
    X, y = loader(return_X_y=True)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    return train_test_split(X, y, random_state=0)


@pytest.fixture(scope="module")
def cancer():
    return scaled(load_breast_cancer)


@DEAR_PAIRS
def test_scikit_learns_checks(kind, solver):
    check_as_scikit_learn_does(kind(solver=solver), EXPECTED_FAILURES, 45)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("kind", "peer"), [(DPLogisticRegression, LogisticRegression), (DPLinearSVC, LinearSVC)]
)
def test_with_a_large_budget_it_is_as_good_as_scikit_learn(kind, peer, solver, cancer):
    X, X_test, y, y_test = cancer
    # With batches, "auto" is "sgd".
    C = 0.1 if solver in ("auto", "sgd", "adam") else 0.01
    model = kind(300.0, DELTA, solver=solver, C=C, epochs=60, batch_size=64, random_state=0)
    score = model.fit(X, y).score(X_test, y_test)
    assert score >= peer(C=C).fit(X, y).score(X_test, y_test) - 0.03


@DEAR_PAIRS
def test_many_classes(kind, solver):
    X, X_test, y, y_test = scaled(load_digits)
    model = kind(200.0, DELTA, solver=solver, classes=range(10), C=0.1, random_state=0)
    model.fit(X, y)
    assert model.score(X_test, y_test) > 0.8
    assert model.coef_.shape == (10, X.shape[1])
    assert model.intercept_.shape == (10,)
    if kind is DPLogisticRegression:
        chances = model.predict_proba(X_test)
        assert chances.sum(axis=1) == pytest.approx(np.ones(len(X_test)))
        np.testing.assert_array_equal(chances.argmax(axis=1), model.predict(X_test))


def test_many_classes_must_be_named_where_the_cost_depends_on_them():
    X, _, y, _ = scaled(load_digits)
    with pytest.raises(ValueError, match="Name the labels in classes="):
        DPLogisticRegression(solver="objective", random_state=0, delta=DELTA).fit(X, y)
    # Of a pure budget, "auto" makes the same.
    with pytest.raises(ValueError, match="Name the labels in classes="):
        DPLogisticRegression(delta=0.0, random_state=0).fit(X, y)


def test_float32_and_sparse_rows_give_the_same_model(cancer):
    X, _, y, _ = cancer
    for solver in SOLVERS:
        model = DPLogisticRegression(5.0, DELTA, solver=solver, C=0.1, random_state=3)
        dense = clone(model).fit(X, y).coef_
        np.testing.assert_allclose(
            clone(model).fit(sparse.csr_matrix(X), y).coef_, dense, rtol=1e-5, atol=1e-7
        )
        np.testing.assert_allclose(
            clone(model).fit(X.astype(np.float32), y).coef_, dense, rtol=1e-2, atol=1e-3
        )


def test_a_diverging_descent_is_a_bad_model_and_no_error(cancer):
    X, X_test, y, _ = cancer
    model = DPLogisticRegression(
        1.0, DELTA, solver="sgd", learning_rate=1e300, C=1e-12, random_state=0
    ).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict_proba(X_test)).all()


BAD = {
    "epsilon": [0.0, -1.0, math.nan],
    "delta": [1.0, -1e-9],
    "solver": ["newton"],
    "sampling": ["shuffle"],
    "C": [0.0],
    "data_norm": [0.0],
    "noise_multiplier": [0.0],
    "max_grad_norm": [0.0],
    "learning_rate": [-1.0],
    "batch_size": [0, 1.5],
    "epochs": [0],
    "max_iter": [10],
    "tol": [1.0],
    "classes": [["a"], ["a", "a"]],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_refused_before_data(name):
    for value in BAD[name]:
        model = DPLogisticRegression(**{name: value})
        with pytest.raises(ValueError, match=f"{name} must be"):
            model.fit("no data at all", "no labels")
        with pytest.raises(ValueError, match=f"{name} must be"):
            model.privacy_profile(100, 3)


def test_cost_without_the_number_of_features():
    assert DPLogisticRegression(data_norm=1.0).privacy_profile(500).epsilon(1e-5) <= 1.0
    assert DPLogisticRegression(solver="sgd").privacy_profile(500).epsilon(1e-5) <= 1.0
    assert DPLogisticRegression().privacy_profile(500).epsilon(1e-5) <= 1.0
    for unknown in (DPLogisticRegression(solver="objective"), DPLogisticRegression(delta=0.0)):
        with pytest.raises(ValueError, match="data_norm must be given"):
            unknown.privacy_profile(500)


def test_long_rows_are_shortened_and_the_report_states_it(cancer):
    X, _, y, _ = cancer
    shorter = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True) / 2.0, 1.0)
    model = DPLogisticRegression(3.0, DELTA, data_norm=2.0, C=0.1, random_state=0)
    long, short = clone(model).fit(X, y), clone(model).fit(shorter, y)
    np.testing.assert_allclose(long.coef_, short.coef_, rtol=1e-6, atol=1e-9)
    assert "rows are clipped to Euclidean norm 2" in long.privacy_.assumptions


def test_profile_is_that_of_the_hand_built_event(cancer):
    from dp_accounting import dp_event

    model = DPLogisticRegression(
        solver="sgd", noise_multiplier=1.7, batch_size=50, epochs=4, delta=DELTA
    )
    step = dp_event.PoissonSampledDpEvent(50 / 400, dp_event.GaussianDpEvent(1.7))
    by_hand = PrivacyProfile.from_event(
        dp_event.SelfComposedDpEvent(step, math.ceil(4 * 400 / 50))
    )
    assert model.privacy_profile(400).epsilon(DELTA) == pytest.approx(
        by_hand.epsilon(DELTA), rel=1e-3
    )


# Class weights ----------------------------------------------------------------------------

WEIGHTS = {0: 1.0, 1: 8.0}


@PAIRS
def test_class_weights_find_more_of_a_rare_class(kind, solver):
    X, y = rare_class()
    model = kind(4.0, DELTA, solver=solver, classes=[0, 1], random_state=0)
    plain = model.fit(X, y).predict(X)
    weighted = clone(model).set_params(class_weight=WEIGHTS).fit(X, y)
    assert plain[y == 1].mean() < 0.6
    assert weighted.predict(X)[y == 1].mean() > plain[y == 1].mean() + 0.2
    assert weighted.score(X, y) > 0.75
    # And cost the same.
    assert weighted.privacy_.profile == model.privacy_.profile
    (more,) = set(weighted.privacy_.assumptions) - set(model.privacy_.assumptions)
    assert more == "class weights are public, not computed from the data"
    assert profile_of(weighted, 3000, 3) == profile_of(model, 3000, 3)
    assert "class_weight" not in model.cost_parameters


def replay_of_weighted_neighbours(kind, solver, label, n_repeats):
    """Return the replay of a long record of the class with the largest weight, and few others."""
    rng = np.random.default_rng(0)
    X = 0.01 * rng.normal(size=(127, 3))
    y = (X[:, 0] > 0.01).astype(int)
    y[:4] = 2
    model = kind(
        0.1,
        1e-3,
        solver=solver,
        classes=[0, 1, 2],
        class_weight={0: 0.1, 1: 3.0},
        data_norm=2.0,
        epochs=2,
        batch_size=127,
        C=1e3 if solver in ("preconditioned", "sgd", "adam") else None,
    )
    return replay_neighbours(model, X, y, ([1e9, -3.0, 0.0], label), n_repeats=n_repeats)


@pytest.mark.parametrize(
    ("kind", "solver"),
    [
        *((DPLogisticRegression, solver) for solver in SOLVERS[1:]),
        (DPLinearSVC, "objective"),
    ],
)
def test_weighted_neighbours_are_not_told_apart(kind, solver):
    # Theorem M0: what bounds a record's influence on a linear classifier.
    for label, n_repeats in ((1, 20), ("none of these", 6)):
        replay = replay_of_weighted_neighbours(kind, solver, label, n_repeats)
        assert replay.findings == [], str(replay)


@pytest.mark.parametrize("solver", ["preconditioned", "objective", "sgd"])
def test_a_label_that_is_not_declared_weighs_as_the_first(solver):
    # Theorem R5: in the worst case a record becomes a constant row.
    X, y = rare_class(300)
    labels = np.where(y == 1, "ill", "healthy").astype(object)
    model = DPLogisticRegression(
        solver=solver,
        delta=DELTA,
        classes=["ill", "healthy"],
        class_weight={"ill": 5.0},
        random_state=0,
    )
    strange, first = labels.copy(), labels.copy()
    strange[:9], first[:9] = "unheard of", "healthy"
    zeros = X.copy()
    zeros[:9] = 0.0
    expected = clone(model).fit(zeros, first).coef_
    np.testing.assert_array_equal(clone(model).fit(X, strange).coef_, expected)


@pytest.mark.parametrize("classes", [None, [0, 1]], ids=["found", "declared"])
@pytest.mark.parametrize("given", ["balanced", {}, {2: 1.0}, {0: 0.0}], ids=str)
def test_class_weights_that_are_not_public_numbers_are_refused(given, classes):
    X, y = rare_class(100)
    model = DPLogisticRegression(classes=classes, class_weight=given)
    with pytest.raises((TypeError, ValueError), match="^class_weight"):
        model.fit(X, y)
    if classes is not None or given != {2: 1.0}:
        with pytest.raises((TypeError, ValueError), match="^class_weight"):
            profile_of(model, 100, 3)


def test_more_epsilon_does_not_raise_the_log_loss_of_few_records():
    """Where noise is small, a penalty replaces it; without one, it rose by a fifth."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = {16.0: [], 300.0: []}
    for epsilon, losses in found.items():
        for seed in range(4):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[:200], order[200:]
            model = DPLogisticRegression(epsilon, 1e-5, random_state=seed)
            chances = model.fit(X[train], y[train]).predict_proba(X[test])
            losses.append(log_loss(y[test], chances))
    assert np.mean(found[300.0]) < 1.05 * np.mean(found[16.0])
    # A penalty that is given is kept.
    strong = DPLogisticRegression(300.0, 1e-5, C=1e-3, random_state=0).fit(X[train], y[train])
    assert np.linalg.norm(strong.coef_) < 0.5 * np.linalg.norm(model.coef_)
