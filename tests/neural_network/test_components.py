"""Modules and criteria of private nets, and that nothing trains beside `fit`."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch import nn

from skdptune.neural_network import MLP
from skdptune.neural_network._noisy_steps import NotPrivateError
from tests.neural_network.nets import data, net_of, weights_of


def test_module_instance_is_copied_and_its_weights_are_reported_as_public():
    X, y = data()
    module = MLP(hidden=(5,), input_shape=4, n_outputs=2)
    before = module.layers[1].weight.detach().clone()
    net = net_of(module=module).fit(X, y)
    assert torch.equal(module.layers[1].weight, before)
    assert not torch.equal(net.module_.layers[1].weight, before)
    assert any("started with are public" in text for text in net.privacy_.assumptions)
    assert not any("started with" in text for text in net_of().fit(X, y).privacy_.assumptions)


@pytest.mark.parametrize("name", ["fit_loop", "train_step", "train_step_single", "partial_fit"])
def test_training_outside_of_fit_is_refused(name):
    X, y = data()
    net = net_of().fit(X, y)
    before = weights_of(net)
    with pytest.raises(AttributeError, match=f"{name} is not offered"):
        getattr(net, name)((torch.zeros(1, 4), torch.zeros(1)))
    with pytest.raises(AttributeError, match="is not offered"):
        net.get_iterator(None, training=True)
    np.testing.assert_array_equal(weights_of(net), before)
    assert not hasattr(net, "partial_fit")


class Normed(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))


def test_layer_that_mixes_records_is_refused_or_fixed():
    X, y = data()
    with pytest.raises(ValueError, match="BatchNorm.*fix_module=True"):
        net_of(module=Normed).fit(X, y)
    net = net_of(module=Normed, fix_module=True).fit(X, y)
    assert isinstance(net.module_[1], nn.GroupNorm)


def test_criterion_without_losses_per_record_is_refused():
    class Own(nn.Module):
        def forward(self, outputs, targets):
            return outputs.sum()

    class Total(nn.CrossEntropyLoss):
        def forward(self, outputs, targets):
            return super().forward(outputs, targets).sum()

    with pytest.raises(ValueError, match="criterion must have an attribute reduction"):
        net_of(criterion=Own).fit(*data())
    with pytest.raises(ValueError, match="one loss per record"):
        net_of(criterion=Total).fit(*data())


def test_criterion_with_parameters_is_refused():
    class Scaled(nn.CrossEntropyLoss):
        def __init__(self, reduction="mean"):
            super().__init__(reduction=reduction)
            self.scale = nn.Parameter(torch.ones(1))

    with pytest.raises(NotPrivateError, match="parameters of module and no others"):
        net_of(criterion=Scaled).fit(*data())


def test_module_that_does_not_train_is_refused():
    with pytest.raises(TypeError, match="module must be a torch.nn.Module, or .* got Ridge"):
        net_of(module=lambda: Ridge()).fit(*data())
    with pytest.raises(ValueError, match="module must have parameters to train"):
        net_of(module=nn.Flatten).fit(*data())


def test_settings_of_an_instance_can_be_changed():
    net = net_of(module=MLP(hidden=(5,), scale=1.5), module__hidden=(3,)).fit(*data())
    assert net.module_.layers[1].out_features == 3
    assert net.module_.layers[2].scale == 1.5


def test_images_keep_their_shape():
    X, y = data(48)
    images = np.repeat(X, 16, axis=1).reshape(48, 1, 8, 8)
    net = net_of(module=nn.Flatten, delta=1e-3)
    with pytest.raises(ValueError, match="parameters to train"):
        net.fit(images, y)
    net.set_params(module=MLP).fit(images, y)
    assert net.module_.input_shape == (1, 8, 8)
    assert net.predict(images).shape == (48,)
