"""Modules for which Opacus takes something else for a record's gradient are refused."""

import pytest
import torch
from opacus.layers import DPLSTM
from torch import nn

from skdptune.neural_network import MLP, SmallCNN
from skdptune.neural_network._gradient_check import check_gradients
from skdptune.neural_network._module_check import has_outer_products
from skdptune.neural_network._noisy_steps import quiet_hooks
from tests.neural_network.nets import data, net_of

LOSS = nn.CrossEntropyLoss(reduction="none")
TARGETS = torch.zeros(5, dtype=torch.long)


@pytest.fixture(autouse=True)
def _quiet():
    with quiet_hooks():
        yield


class PositionsFirst(nn.Module):
    """Hands its layer positions along the first axis, and records along the second."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 2)

    def forward(self, inputs):
        return self.layer(inputs.T.unsqueeze(-1)).mean(dim=0)


class Normalising(nn.Module):
    """Mixes records on the way back alone."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 3), nn.Linear(3, 2)

    def forward(self, inputs):
        values = self.first(inputs)
        if values.requires_grad:
            values.register_hook(lambda slopes: slopes / slopes.norm())
        return self.last(values)


class Clamping(Normalising):
    def forward(self, inputs):
        values = self.first(inputs)
        if values.requires_grad:
            values.register_hook(lambda slopes: slopes.clamp(-1.0, 1.0))
        return self.last(values)


class Remembering(Normalising):
    """Scales slopes by the longest slope of all batches so far, on the way back alone."""

    longest = 1.0

    def forward(self, inputs):
        values = self.first(inputs)
        if values.requires_grad:
            scale = self.longest
            self.longest = scale + float(inputs.detach().abs().sum())
            values.register_hook(lambda slopes: slopes / scale)
        return self.last(values)


class Sorting(nn.Module):
    """Sorts its records and puts them back."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, inputs):
        order = inputs[:, 0].argsort()
        return self.layer(inputs[order])[order.argsort()]


class Reusing(nn.Module):
    """Uses a weight outside of its layer as well."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, inputs):
        values = self.layer(inputs)
        return values + nn.functional.linear(inputs.square(), self.layer.weight)


class Hooked(nn.Sequential):
    def __init__(self, scale=2.0):
        super().__init__(nn.Linear(4, 2))
        self[0].register_forward_hook(lambda _layer, _inputs, outputs: scale * outputs)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.last = DPLSTM(1, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, inputs):
        return self.last(self.cells(inputs.unsqueeze(-1))[0][:, -1])


@pytest.mark.parametrize("mode", ["hooks", "functorch"])
@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (MLP(input_shape=4, n_outputs=2), (4,)),
        (SmallCNN(input_shape=(1, 8, 8), n_outputs=2), (1, 8, 8)),
        (nn.Sequential(nn.Linear(4, 6), nn.Dropout(), nn.LayerNorm(6), nn.Linear(6, 2)), (4,)),
        (Recurrent(), (4,)),
    ],
    ids=["mlp", "cnn", "norm", "recurrent"],
)
def test_sound_modules_pass(module, shape, mode):
    check_gradients(module.train(), lambda: LOSS, shape, TARGETS, "cpu", mode)
    assert all(parameter.grad is None for parameter in module.parameters())


@pytest.mark.parametrize(
    "module",
    [PositionsFirst(), Normalising(), Sorting(), Reusing(), Hooked(), Remembering()],
    ids=lambda m: type(m).__name__,
)
def test_gradients_that_are_not_the_records_own_are_refused(module):
    # Assumption U0.
    torch.manual_seed(0)
    with pytest.raises(ValueError, match="gradients of records that are not their own"):
        check_gradients(module.train(), lambda: LOSS, (4,), TARGETS, "cpu", "hooks")


@pytest.mark.parametrize("mode", ["auto", "hooks", "functorch"])
def test_a_net_refuses_such_modules(mode):
    with pytest.raises(ValueError, match="not their own"):
        net_of(module=PositionsFirst, grad_sample_mode=mode, batch_size=4).fit(*data())


@pytest.mark.parametrize(
    "module",
    [PositionsFirst(), Normalising(), Clamping(), Sorting(), Reusing(), Hooked()],
    ids=lambda m: type(m).__name__,
)
def test_no_such_module_is_clipped_by_norms_alone(module):
    assert not has_outer_products(module, (4,), "cpu")
    with pytest.raises(ValueError, match="must not be 'ghost'"):
        net_of(module=module, grad_sample_mode="ghost").fit(*data())


def test_losses_that_refuse_synthetic_records_are_not_checked():
    def picky(outputs, targets):
        raise ValueError("not these")

    module = MLP(input_shape=4, n_outputs=2)
    check_gradients(module, lambda: picky, (4,), TARGETS, "cpu", "hooks")
