"""Which nets may stand for each other."""

import numpy as np
import pytest
import torch
from torch import nn

from skdptune.neural_network import MLP, DPNeuralNetClassifier
from skdptune.neural_network._likeness import likeness
from tests.neural_network.nets import data, net_of

X, Y = data(30)


def key_of(net):
    net._start(net._course(X, Y))
    return likeness(net)


def test_what_does_not_change_the_shape_does_not_matter():
    key = key_of(net_of())
    other = net_of(lr=3.0, batch_size=7, epsilon=9.0, random_state=5, max_grad_norm=2.0)
    assert key_of(other) == key
    assert key_of(net_of(optimizer=torch.optim.Adam)) == key


class Mine(DPNeuralNetClassifier):
    pass


@pytest.mark.parametrize(
    "changes",
    [
        {"module": MLP(hidden=(6,))},
        {"module": MLP(hidden=(5,), temperature=1.0)},
        {"criterion__label_smoothing": 0.1},
        {"criterion__weight": torch.tensor([1.0, 2.0])},
        {"kind": Mine},
    ],
    ids=str,
)
def test_what_changes_a_loss_does(changes):
    assert key_of(net_of(**changes)) != key_of(net_of())


def test_weights_of_classes_are_compared_by_value():
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
    ("one", "other", "alike"),
    [
        ((1, [2.0]), (1, [2.0]), True),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        (np.zeros(2), np.zeros(2), False),
        (np.tanh, np.tanh, True),
        (lambda x: x, lambda x: x, False),
    ],
)
def test_settings_are_compared_by_value_where_they_are_plain(one, other, alike):
    keys = [key_of(net_of(module=Holds, module__what=what)) for what in (one, other)]
    assert (keys[0] == keys[1]) is alike
