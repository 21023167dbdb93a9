"""The optional protocol of nets: noise, cost parameters, and the fit on fewer records."""

import math

import pytest
import torch
from sklearn.base import clone

from skdptune.base import profile_of
from skdptune.mechanisms import steps_for_budget
from skdptune.neural_network import MLP, DPNeuralNetClassifier, DPNeuralNetRegressor
from tests.neural_network.nets import data, net_of


@pytest.mark.parametrize("kind", [DPNeuralNetClassifier, DPNeuralNetRegressor])
def test_fit_on_fewer_records_has_the_same_cost_and_noise(kind):
    net = kind(batch_size=100, lr=4.0)
    values = net.tuning_parameters(n_tune=500, n_final=2000)
    assert values == {"batch_size": 0.05, "lr": 1.0, **net.fixed_epochs(2000)}
    fewer = kind(batch_size=100, lr=4.0).set_params(**values)
    assert profile_of(fewer, 500) == profile_of(net, 2000)
    assert fewer.noise_level(500) == net.noise_level(2000)


def test_learning_rate_with_a_prefix_is_preferred():
    net = DPNeuralNetClassifier(optimizer__lr=4.0, batch_size=0.1, max_epochs=10)
    assert net.tuning_parameters(10, 40) == {"batch_size": 0.1, "optimizer__lr": 1.0}


def test_adam_keeps_its_learning_rate():
    net = DPNeuralNetClassifier(optimizer=torch.optim.Adam, batch_size=80, max_epochs=10)
    assert net.tuning_parameters(n_tune=50, n_final=40) == {"batch_size": 1.0}


def test_noise_level_can_be_given_as_noise_multiplier():
    net = DPNeuralNetClassifier(epsilon=2.0)
    level = net.noise_level(1000)
    assert DPNeuralNetClassifier(noise_multiplier=level).noise_level(1000) == level
    assert profile_of(DPNeuralNetClassifier(noise_multiplier=level), 1000) == profile_of(net, 1000)


CHANGED = {
    "batch_size": 50,
    "delta": 1e-7,
    "epsilon": 0.3,
    "max_epochs": 3,
    "n_public": 400,
    "noise_multiplier": 2.0,
    "sampling": "allocation",
    "module": MLP(hidden=(3,)),
    "optimizer": torch.optim.Adam,
    "lr": 0.01,
    "max_grad_norm": 0.1,
    "grad_sample_mode": "ghost",
    "max_physical_batch_size": 8,
    "criterion": torch.nn.NLLLoss,
    "classes": [0, 1, 2],
    "class_weight": {0: 1.0, 1: 8.0},
    "random_state": 1,
    "fix_module": True,
    "verbose": 1,
}


@pytest.mark.parametrize("name", sorted(CHANGED))
def test_cost_depends_on_the_declared_parameters_alone(name):
    net = DPNeuralNetClassifier()
    before = net.privacy_profile(1000)
    same = net.set_params(**{name: CHANGED[name]}).privacy_profile(1000) == before
    assert same == (name not in net.cost_parameters)


def test_most_steps_of_plan_and_fit_agree_and_spend_the_budget():
    """Theorem M5."""
    X, y = data(200)
    net = net_of(epsilon=2.0, max_epochs="max", noise_multiplier=2.0, batch_size=0.1)
    net.fit(X, y)
    steps = steps_for_budget(2.0, 0.1, 2.0, net.delta)
    assert net.plan_.steps == steps > 50
    assert len(net.history) == math.ceil(steps / 10)
    assert net.privacy_.profile == profile_of(net, 200)
    assert 0.97 * 2.0 <= net.privacy_.epsilon_spent <= 2.0 == net.privacy_.epsilon
    assert net.noise_parameter is None
    fixed = clone(net).set_params(**net.fixed_epochs(200), epsilon=None)
    assert fixed.fixed_epochs(200) == {} and fixed.noise_parameter == "noise_multiplier"
    assert profile_of(fixed, 200) == profile_of(net, 200)


@pytest.mark.parametrize("kind", [DPNeuralNetClassifier, DPNeuralNetRegressor])
def test_rate_and_norm_are_suggested_around_the_present_ones(kind):
    space = kind(lr=0.6, max_grad_norm=1.5).suggested_space(1000, 3)
    assert space == {
        "lr": [0.6, pytest.approx(0.2), pytest.approx(1.8)],
        "max_grad_norm": [1.5, pytest.approx(0.5), pytest.approx(4.5)],
    }
    assert not set(space) & kind().cost_parameters
    prefixed = kind(optimizer__lr=0.3, lr=0.6).suggested_space(1000)
    assert set(prefixed) == {"optimizer__lr", "max_grad_norm"}
    assert set(kind(lr=0.0).suggested_space(1000)) == {"max_grad_norm"}
