"""Which nets can be trained together."""

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, LRScheduler
from torch import nn

from skdptune.neural_network import MLP, DPNeuralNetClassifier, DPNeuralNetRegressor
from skdptune.neural_network._population._grouping import can_train_together, grouping_key
from tests.neural_network.nets import data, net_of

X, Y = data(30)


def key_of(net):
    net._start(net._training_run(X, Y))
    return grouping_key(net)


def test_parameters_of_the_training_do_not_change_the_key():
    key = key_of(net_of())
    other = net_of(lr=3.0, batch_size=7, epsilon=9.0, random_state=5, max_grad_norm=2.0)
    assert key_of(other) == key
    assert key_of(net_of(optimizer=torch.optim.Adam)) == key


@pytest.mark.parametrize(
    "changes",
    [
        {"module": MLP(hidden=(6,))},
        {"module": MLP(hidden=(5,), temperature=1.0)},
        {"criterion__label_smoothing": 0.1},
        {"criterion__weight": torch.tensor([1.0, 2.0])},
        {"kind": DPNeuralNetRegressor},
    ],
    ids=str,
)
def test_parameters_of_outputs_and_losses_change_the_key(changes):
    assert key_of(net_of(**changes)) != key_of(net_of())


def test_class_weights_of_a_criterion_are_compared_by_value():
    keys = [
        key_of(net_of(criterion__weight=torch.tensor([1.0, weight]))) for weight in (2.0, 2.0, 3.0)
    ]
    assert keys[0] == keys[1] != keys[2]


class Holds(nn.Module):
    def __init__(self, what):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.what = what

    def forward(self, inputs):
        return self.layer(inputs)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ((1, [2.0]), (1, [2.0]), True),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        (np.zeros(2), np.zeros(2), False),
        (np.tanh, np.tanh, True),
        (lambda x: x, lambda x: x, False),
    ],
)
def test_settings_are_compared_by_value_where_they_are_plain(one, other, equal):
    keys = [key_of(net_of(module=Holds, module__what=what)) for what in (one, other)]
    assert (keys[0] == keys[1]) is equal


class Subclass(DPNeuralNetClassifier):
    pass


class UserCallback(Callback):
    data_independent = True


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        (net_of(), True),
        (net_of(callbacks=[LRScheduler("StepLR", step_size=1)]), True),
        (net_of(callbacks=[("rate", LRScheduler)]), True),
        (net_of(callbacks="disable"), True),
        (net_of(callbacks=[UserCallback()]), False),
        (net_of(callbacks=[("mine", UserCallback)]), False),
        (net_of(Subclass), False),
    ],
)
def test_subclasses_and_users_callbacks_are_trained_alone(net, expected):
    assert can_train_together(net) is expected


def tied():
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    return nn.Sequential(first, second)


def with_hook(name):
    module = nn.Sequential(nn.Linear(4, 2))
    getattr(module[0], f"register_{name}")(lambda *_: None)
    return module


def with_forward():
    module = nn.Sequential(nn.Linear(4, 2))
    module.forward = module[0].forward
    return module


@pytest.mark.parametrize(
    "module",
    [
        tied(),
        with_forward(),
        with_hook("forward_hook"),
        with_hook("forward_pre_hook"),
        with_hook("full_backward_hook"),
        with_hook("full_backward_pre_hook"),
        nn.utils.parametrizations.weight_norm(nn.Linear(4, 2)),
    ],
    ids=range(7),
)
def test_modules_that_are_more_than_their_parts_have_no_key(module):
    net = net_of()
    net._start(net._training_run(X, Y))
    vars(net)["module_"] = module
    vars(net)["optimizer_"] = torch.optim.SGD(module.parameters(), lr=0.1)
    assert grouping_key(net) is None


def test_an_optimizer_of_other_weights_has_no_key():
    net = net_of()
    net._start(net._training_run(X, Y))
    assert grouping_key(net) is not None
    vars(net)["optimizer_"] = torch.optim.SGD(nn.Linear(4, 2).parameters(), lr=0.1)
    assert grouping_key(net) is None


def test_positions_of_layers_and_types_of_numbers_change_the_key():
    one, other = nn.Tanh(), nn.Tanh()
    linear = nn.Linear(4, 4)
    modules = [nn.Sequential(one, linear, one), nn.Sequential(one, linear, other)]
    keys = [key_of(net_of(module=module)) for module in modules]
    assert keys[0] != keys[1]
    values = [1, 1.0, True, 0.0, -0.0, "1", (1,), [1], float("nan")]
    assert len({key_of(net_of(module=Holds, module__what=what)) for what in values}) == len(values)
    nan = [key_of(net_of(module=Holds, module__what=float("nan"))) for _ in range(2)]
    assert nan[0] == nan[1]
