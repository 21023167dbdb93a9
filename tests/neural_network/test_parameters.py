"""Parameters of private nets: names, setting, and what is refused before data are read."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from skorch.callbacks import EarlyStopping

from skdptune.neural_network import MLP, DPNeuralNetClassifier, LogisticHead
from tests.neural_network.nets import KINDS, data, net_of, weights_of


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"train_split": 5}, "train_split must be None"),
        ({"callbacks": [EarlyStopping()]}, "callbacks must not depend on the data"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"delta": 0.0}, "delta must be"),
        ({"noise_multiplier": 0.0}, "noise_multiplier must be"),
        ({"max_grad_norm": 0.0}, "max_grad_norm must be"),
        ({"max_epochs": 0}, "max_epochs must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"batch_size": 1.5}, "batch_size must be"),
        ({"max_physical_batch_size": 0}, "max_physical_batch_size must be"),
        ({"grad_sample_mode": "exact"}, "grad_sample_mode must be one of 'auto', 'hooks'"),
        ({"n_public": 0}, "n_public must be"),
        ({"sampling": "shuffle"}, "sampling must be one of 'poisson', 'fixed', 'allocation'"),
        ({"n_public": 9, "sampling": "fixed"}, "n_public must be None with sampling='fixed'"),
        ({"lr": -1.0}, "lr must be"),
        ({"device": "nowhere"}, "device must be one that torch knows"),
        ({"iterator_train__shuffle": True}, "iterator_train__shuffle must not be given"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_parameters_are_refused_before_data_are_read(kind, settings, complaint):
    net = net_of(kind, **settings)
    with pytest.raises(ValueError, match=complaint):
        net.privacy_profile(100)
    with pytest.raises(ValueError, match=complaint):
        net.fit("neither", "read")


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is there")
def test_absent_device_is_refused():
    with pytest.raises(ValueError, match="got CUDA without one"):
        net_of(device="cuda").privacy_profile(100)


def test_parameters_come_back_and_can_be_set():
    net = net_of(module__hidden=(3,), module=MLP, optimizer__momentum=0.5)
    params = net.get_params()
    assert params["module__hidden"] == (3,)
    assert params["optimizer__momentum"] == 0.5
    assert params["classes"] is None
    assert not any(name.startswith("_") for name in params)
    assert clone(net).get_params() == params
    assert net.set_params(module__hidden=(4, 4), lr=0.2).lr == 0.2
    net.fit(*data())
    assert [layer.out_features for layer in net.module_.layers[1::2]] == [4, 4, 2]
    with pytest.raises(ValueError, match="Invalid parameter 'wrong'"):
        net.set_params(wrong=1)


def test_unknown_component_arguments_are_refused():
    with pytest.raises(ValueError, match="unexpected argument.*epsilonn"):
        net_of(epsilonn=1.0).fit(*data())


def test_setting_a_parameter_keeps_what_was_fitted():
    X, y = data()
    net = net_of(module=MLP, module__hidden=(5,)).fit(X, y)
    before = weights_of(net)
    net.set_params(module__hidden=(9,), optimizer__momentum=0.1)
    np.testing.assert_array_equal(weights_of(net), before)


def test_subclass_keeps_its_parameters():
    class Mine(DPNeuralNetClassifier):
        def __init__(self, module=LogisticHead, *, extra=1, **parameters):
            super().__init__(module, **parameters)
            self.extra = extra

    net = clone(Mine(extra=3, epsilon=2.0, classes=[0, 1], module__bias=False))
    assert (net.extra, net.epsilon, net.classes) == (3, 2.0, [0, 1])
    assert len(list(net.fit(*data()).module_.parameters())) == 1


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"noise_multiplier": None}, "noise_multiplier must be a number.*follows from"),
        ({"epsilon": None}, "epsilon must be a number.*follows from noise_multiplier, epsilon"),
        ({"epsilon": float("inf")}, "epsilon must be a number"),
        ({"delta": 0.0}, "delta must be a number"),
        ({"max_epochs": "most"}, "max_epochs must be a number.*Or 'max', beside noise_multiplier"),
    ],
)
def test_most_steps_need_a_noise_and_a_budget(settings, complaint):
    net = net_of(**{"max_epochs": "max", "noise_multiplier": 2.0, **settings})
    with pytest.raises((ValueError, TypeError), match=complaint):
        net.privacy_profile(100)
