"""The scale of private nets' logits, from public numbers and trained weights."""

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss
from torch import nn

from skdptune.neural_network import (
    MLP,
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    LogisticHead,
)
from skdptune.neural_network import _classifier as room

KINDS = [DPNeuralNetBinaryClassifier, DPNeuralNetClassifier]


def data(size=3000, width=6):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(size, width))
    chances = 1.0 / (1.0 + np.exp(-X @ np.linspace(-2.0, 2.0, width)))
    return X, (rng.uniform(size=size) < chances).astype(int)


def net_of(kind=DPNeuralNetClassifier, module=LogisticHead, **settings):
    settings = {"epsilon": 4.0, "delta": 1e-4, "max_epochs": 3, "random_state": 0} | settings
    return kind(module, classes=[0, 1], **settings)


def weights_of(net):
    return [one.detach().clone() for one in net.module_.parameters()]


def raw(net, X, y, monkeypatch):
    """Fit a net as it was trained, without the factor."""
    with monkeypatch.context() as patch:
        patch.setattr(room, "logit_factor", lambda *arguments: 1.0)
        return net.fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("module", [LogisticHead, MLP(hidden=(8,))], ids=["linear", "mlp"])
def test_last_layer_is_multiplied_and_no_decision_changes(kind, module, monkeypatch):
    # Theorem U5: logits are made less steep by public numbers.
    X, y = data(400)
    plain = raw(net_of(kind, module, max_grad_norm=0.1), X, y, monkeypatch)
    net = net_of(kind, module, max_grad_norm=0.1).fit(X, y)
    factor = room.logit_factor(plain.module_, (6,), 0.1)
    assert 0.2 < factor < 0.8
    *hidden, weight, bias = zip(weights_of(plain), weights_of(net), strict=True)
    assert all(torch.equal(one, other) for one, other in hidden)
    for one, other in (weight, bias):
        torch.testing.assert_close(factor * one, other)
    np.testing.assert_array_equal(plain.predict(X), net.predict(X))
    assert net.privacy_.profile == plain.privacy_.profile


@pytest.mark.parametrize(("n_outputs", "more"), [(1, 1.0), (2, 2.0), (5, 2.0)])
@pytest.mark.parametrize("norm", [0.01, 0.5, 100.0])
def test_factor_of_a_linear_model_is_a_closed_form(n_outputs, more, norm):
    # Theorem U5: the gradient of a difference of two outputs has two rows (x, 1).
    module = LogisticHead(input_shape=30, n_outputs=n_outputs)
    length = np.sqrt(more * (0.36 * 30.0 / 3.0 + 1.0))
    wanted = min(1.0, norm / length) ** (1.0 / 3.0)
    assert room.logit_factor(module, (30,), norm) == pytest.approx(wanted, rel=0.02)


def test_factor_of_a_hidden_layer_is_that_of_all_gradients():
    # Theorem U5: against derivatives by hand.
    torch.manual_seed(0)
    module = MLP(hidden=(7,), input_shape=5, n_outputs=1)
    first, last = module.layers[1], module.layers[3]
    x = 0.6 * (torch.rand(20_000, 5) * 2.0 - 1.0)
    h = torch.tanh(first(x))
    inner = (last.weight * (1.0 - h**2)).square().sum(1) * (x.square().sum(1) + 1.0)
    length = float((inner + h.square().sum(1) + 1.0).mean().sqrt().detach())
    found = room.logit_factor(module, (5,), 0.3)
    assert found == pytest.approx((0.3 / length) ** (1.0 / 3.0), rel=0.05)


def test_log_loss_is_lower_than_without_the_factor(monkeypatch):
    X, y = data()
    for kind in KINDS:
        settings = {"max_epochs": "auto", "max_grad_norm": 0.1, "lr": 5.0}
        plain = raw(net_of(kind, **settings), X, y, monkeypatch)
        net = net_of(kind, **settings).fit(X, y)
        losses = [log_loss(y, one.predict_proba(X)) for one in (net, plain)]
        assert losses[0] < losses[1] - 0.01


class Own(nn.Module):
    """A user's module, of which nobody knows which layer makes the outputs."""

    def __init__(self, input_shape, n_outputs):
        super().__init__()
        self.last = nn.Linear(input_shape[0], n_outputs)

    def forward(self, inputs):
        return self.last(inputs)


def test_other_modules_and_criteria_are_left_alone():
    X, y = data(200)
    for settings in (
        {"module": Own},
        {"module": nn.Sequential(nn.Linear(6, 2), nn.LogSoftmax(dim=1)), "criterion": nn.NLLLoss},
        {"module": nn.Sequential(nn.Linear(6, 2)), "predict_nonlinearity": None},
    ):
        net = net_of(lr=0.0, max_grad_norm=1e-3, **settings)
        start = net.fit(X, y).module_
        if isinstance(settings["module"], nn.Module):
            torch.testing.assert_close(start[0].weight, settings["module"][0].weight)
        else:
            assert room.last_layer(start) is None
    shared = nn.Linear(4, 4)
    assert room.last_layer(nn.Sequential(shared, nn.Tanh(), shared)) is None
    assert room.last_layer(nn.Sequential(nn.Linear(4, 4), nn.Tanh())) is None
    assert room.last_layer(nn.Sequential()) is None


@pytest.mark.parametrize("kind", KINDS)
def test_nets_together_are_multiplied_once(kind):
    # Theorem U5, Theorem U2.
    X, y = data(300)
    settings = [{"max_grad_norm": 0.05}, {"max_grad_norm": 1e6}, {"module": Own}]
    together = kind.fit_many([net_of(kind, **one) for one in settings], X, y)
    for one, net in zip(settings, together, strict=True):
        alone = net_of(kind, **one).fit(X, y)
        np.testing.assert_allclose(net.predict_proba(X), alone.predict_proba(X), atol=1e-4)
