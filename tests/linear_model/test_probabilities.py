"""Probabilities of private logistic models are those of labels, at no cost (Theorem M7)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skdptune import DPLogisticRegression
from tests.accounting.cases import few

DELTA = 1e-6
N_TRAIN, N_TEST = 6000, 20_000


def made(width, n_classes=2, seed=0, strength=2.0, shift=0.0):
    """Return rows of several scales, and labels that are drawn from logistic chances."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_TRAIN + N_TEST, width)) @ rng.normal(size=(width, width))
    X /= np.sqrt(width)
    weights = strength * rng.normal(size=(width, n_classes)) / np.linalg.norm(X.std(axis=0))
    margins = X @ weights + shift * np.arange(n_classes)
    # The largest of margins with Gumbel noise has logistic chances.
    y = np.argmax(margins + rng.gumbel(size=margins.shape), axis=1)
    return X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]


def slope_of(model, X, y):
    """Return by what margins would have to be multiplied to fit labels best."""
    margins = model.decision_function(X).reshape(-1, 1)
    return float(LogisticRegression(C=1e9).fit(margins, y).coef_[0, 0])


def error_of(model, X, y):
    """Return the calibration error of the largest probability, over 15 bins of equal size."""
    chances = model.predict_proba(X)
    sure, right = chances.max(axis=1), model.predict(X) == y
    bins = np.array_split(np.argsort(sure), 15)
    gaps = [len(each) * abs(sure[each].mean() - right[each].mean()) for each in bins]
    return sum(gaps) / len(y)


@pytest.mark.parametrize(
    ("epsilon", "width", "shift"), few(6, [0.5, 1.0, 4.0], [4, 30], [0.0, -2.0])
)
def test_probabilities_as_they_come_are_those_of_labels(epsilon, width, shift):
    X, y, X_test, y_test = made(width, shift=shift)
    model = DPLogisticRegression(epsilon, DELTA, random_state=0).fit(X, y)
    without = LogisticRegression().fit(X, y)
    assert 0.7 < slope_of(model, X_test, y_test) < 1.4
    assert error_of(model, X_test, y_test) < (0.045 if epsilon < 1.0 else 0.03)
    lost = [log_loss(y_test, one.predict_proba(X_test)) for one in (model, without)]
    assert lost[0] < lost[1] + 0.04


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_grad_norm": 0.05, "epochs": 300},
        {"max_grad_norm": 0.3, "C": 1.0},
        {"learning_rate": 0.25, "epochs": 30},
        {"solver": "sgd", "max_grad_norm": 0.3},
        {"solver": "adam"},
    ],
    ids=str,
)
def test_own_parameters_leave_them_right(parameters):
    X, y, X_test, y_test = made(8)
    model = DPLogisticRegression(2.0, DELTA, random_state=0, **parameters).fit(X, y)
    assert 0.6 < slope_of(model, X_test, y_test) < 1.6
    assert error_of(model, X_test, y_test) < 0.06


def test_few_records_with_weak_labels_are_not_oversure():
    # Theorem M7: the factor costs nothing. Without it, the slope is .4 and the log loss .725.
    steepness, lost = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, size=(6300, 8))
        y = (0.7 * (X[:, 0] - X[:, 1]) + rng.logistic(size=len(X)) > 0.0).astype(int)
        model = DPLogisticRegression(1.0, DELTA, random_state=seed).fit(X[:300], y[:300])
        steepness.append(slope_of(model, X[300:], y[300:]))
        lost.append(log_loss(y[300:], model.predict_proba(X[300:])))
    assert 0.55 < np.mean(steepness) < 1.4
    assert np.mean(lost) < np.log(2.0) + 0.01


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_several_classes(epsilon):
    X, y, X_test, y_test = made(8, n_classes=4, strength=3.0)
    model = DPLogisticRegression(epsilon, DELTA, random_state=0).fit(X, y)
    without = LogisticRegression().fit(X, y)
    lost = [log_loss(y_test, one.predict_proba(X_test)) for one in (model, without)]
    assert lost[0] < lost[1] + 0.04
    assert error_of(model, X_test, y_test) < 0.04


def test_margins_of_several_classes_allow_for_the_length_of_residuals():
    """The length of residuals, √2, changes margins by 2^(1/6), and both neighbours are worse."""
    lost = []
    for seed, (n_classes, epsilon) in enumerate(itertools.product((3, 4), (1.0, 4.0))):
        X, y, X_test, y_test = made(8, n_classes=n_classes, seed=seed, strength=1.5)
        model = DPLogisticRegression(epsilon, DELTA, random_state=seed).fit(X, y)
        margins = model.decision_function(X_test)
        chances = [softmax(margins * 2.0**power, axis=1) for power in (-1 / 6, 0.0, 1 / 6)]
        lost.append([log_loss(y_test, each) for each in chances])
    below, as_is, above = np.mean(lost, axis=0)
    assert as_is < min(below, above)
