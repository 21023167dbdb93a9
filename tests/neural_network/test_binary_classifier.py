"""Private nets with one output, for two classes."""

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from torch import nn

from skdptune.neural_network import (
    DPNeuralNetBinaryClassifier,
    LogisticHead,
)
from tests.neural_network.nets import DELTA, data, net_of, weights_of


def binary(**settings):
    return net_of(DPNeuralNetBinaryClassifier, **settings)


def separable(size=400):
    X = np.random.default_rng(0).normal(size=(size, 3))
    return X, X[:, 0] > 0


@pytest.mark.parametrize(
    ("module", "settings"),
    [(LogisticHead, {"optimizer": torch.optim.SGD, "max_epochs": 20}), ("auto", {})],
)
def test_tumours_are_classified(module, settings):
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(scale(X), y, random_state=0)
    net = DPNeuralNetBinaryClassifier(
        module, epsilon=3.0, delta=DELTA, random_state=0, **settings
    ).fit(X, y)
    assert net.privacy_.profile.epsilon(DELTA) <= 3.0
    assert net.score(X_test, y_test) > 0.9
    assert roc_auc_score(y_test, net.decision_function(X_test)) > 0.97


def test_probabilities_decisions_and_labels_agree():
    X, y = separable()
    net = DPNeuralNetBinaryClassifier(LogisticHead, delta=DELTA, epsilon=5.0, random_state=0)
    net.fit(X, y)
    with torch.no_grad():
        logits = net.module_(torch.from_numpy(X).float()).numpy().ravel()
    found = net.predict_proba(X)
    np.testing.assert_allclose(net.decision_function(X), logits, atol=1e-6)
    np.testing.assert_allclose(found[:, 1], expit(logits), atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(net.predict(X), logits > 0)


def test_threshold_changes_predictions_and_nothing_else():
    X, y = separable()
    net = binary().fit(X, y)
    before = net.predict_proba(X), weights_of(net)
    counts = [net.set_params(threshold=t).predict(X).sum() for t in (0.0, 0.3, 0.7, 1.0)]
    assert counts[0] == len(X) and counts[-1] == 0
    assert counts == sorted(counts, reverse=True) and counts[1] > counts[2]
    np.testing.assert_array_equal(net.predict_proba(X), before[0])
    np.testing.assert_array_equal(weights_of(binary(threshold=0.9).fit(X, y)), before[1])


def test_other_numbers_of_classes_are_refused():
    X = np.zeros((20, 2))
    with pytest.raises(ValueError, match="at least two classes"):
        binary(delta=1e-2).fit(X, np.zeros(20))
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        binary(delta=1e-2).fit(X, np.arange(20) % 3)
    with pytest.raises(ValueError, match="classes must be two labels; got 3"):
        binary(classes=[1, 2, 3]).privacy_profile(100)
    with pytest.raises(ValueError, match="threshold must be"):
        binary(threshold=1.5).privacy_profile(100)


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
def test_step_is_along_the_gradient_of_the_logistic_loss(mode):
    """One step without noise from zero weights, on all records: clipped residuals times rows."""
    X, y = data()
    module = nn.Linear(4, 1, bias=False)
    nn.init.zeros_(module.weight)
    net = binary(
        module=module, epsilon=np.inf, batch_size=1.0, max_epochs=1, grad_sample_mode=mode
    ).fit(X, y)
    gradients = (0.5 - y)[:, None] * X
    norms = np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True), 1.0)
    np.testing.assert_allclose(weights_of(net), -0.1 * (gradients / norms).mean(0), atol=1e-6)


def test_module_with_two_outputs_is_refused():
    with pytest.raises(ValueError, match=r"must return one output per record; got shape \(2,\)"):
        binary(module=LogisticHead(n_outputs=2)).fit(*data())


def test_module_with_one_probability_as_output():
    X, y = separable()
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 1), nn.Sigmoid())
    net = DPNeuralNetBinaryClassifier(
        module, criterion=nn.BCELoss, delta=DELTA, epsilon=5.0, random_state=0
    ).fit(X, y)
    assert net.score(X, y) > 0.9
    with torch.no_grad():
        wanted = net.module_(torch.from_numpy(X).float()).numpy().ravel()
    np.testing.assert_allclose(net.predict_proba(X)[:, 1], wanted, atol=1e-6)
    assert not hasattr(net, "decision_function")
    assert hasattr(binary(criterion=nn.BCEWithLogitsLoss()), "decision_function")
