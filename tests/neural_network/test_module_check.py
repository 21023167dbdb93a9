"""Modules that mix records are refused, with Opacus's fix where there is one."""

from __future__ import annotations

import pytest
import torch
from opacus.layers import DPLSTM
from torch import nn

from skdptune.neural_network import MLP, SmallCNN
from skdptune.neural_network._module_check import (
    CriterionError,
    check_gradients,
    check_losses,
    check_module,
    check_outer_products,
    fixed_module,
    has_outer_products,
)
from skdptune.neural_network._noisy_steps import quiet_hooks
from tests.neural_network.nets import data, net_of


class Centred(nn.Linear):
    """Subtracts the batch's mean: no layer that Opacus knows."""

    def forward(self, inputs):
        return super().forward(inputs - inputs.mean(dim=0))


class Counting(nn.Module):
    """Keeps a running mean in a buffer, by a layer without parameters."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.keeper = nn.Module()
        self.keeper.register_buffer("mean", torch.zeros(4))

    def forward(self, inputs):
        self.keeper.mean = 0.9 * self.keeper.mean + 0.1 * inputs.detach().mean(dim=0)
        return self.layer(inputs - self.keeper.mean)


class Pooled(nn.Linear):
    def forward(self, inputs):
        return super().forward(inputs).mean(dim=0, keepdim=True)


class Detached(nn.Linear):
    """Subtracts the batch's mean, behind the back of gradients."""

    def forward(self, inputs):
        return super().forward(inputs - inputs.detach().mean(dim=0))


class Shortening(nn.Linear):
    """Changes its weights in each forward pass."""

    def forward(self, inputs):
        with torch.no_grad():
            self.weight.mul_(0.9)
        return super().forward(inputs)


class Averaging(nn.Linear):
    """Subtracts a running mean of its inputs, kept by a function of the caller."""

    def __init__(self, recall):
        super().__init__(4, 2)
        self.recall = recall

    def forward(self, inputs):
        return super().forward(inputs - self.recall(self, inputs.detach().mean(dim=0)))


MEANS = {}


def by_attribute(module, mean):
    module.mean = 0.9 * getattr(module, "mean", 0.0) + 0.1 * mean
    return module.mean.mean()


def by_global(module, mean):
    found = MEANS.get("mean", 0.0 * mean)
    MEANS["mean"] = 0.9 * found + 0.1 * mean
    return found.mean()


def when_used(module, mean):
    """Apply values from training only to predictions."""
    module.mean = mean if module.training else getattr(module, "mean", 0.0 * mean)
    return 0.0 if module.training else module.mean.mean()


class Reused(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, inputs):
        return self.last(self.first(self.first(inputs)))


class Loose(nn.Module):
    """Has a weight outside of layers."""

    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(4, 2), nn.Parameter(torch.ones(2))

    def forward(self, inputs):
        return self.scale * self.layer(inputs)


class Lookup(nn.Module):
    """Treats its inputs as indices, through which no gradient flows."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 3)

    def forward(self, inputs):
        return self.table(inputs.long()).sum(dim=1)


def batch_norm(fix=False):
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    return fixed_module(module) if fix else module


@pytest.mark.parametrize(
    "module",
    [
        MLP(input_shape=4, n_outputs=2),
        nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.LayerNorm(8), nn.Linear(8, 2)),
        Lookup(),
        batch_norm(fix=True),
    ],
)
def test_sound_module_passes_and_is_not_changed(module):
    before = {name: value.clone() for name, value in module.state_dict().items()}
    check_module(module, (4,), "cpu")
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())


@pytest.mark.parametrize(
    ("module", "complaint"),
    [
        (batch_norm(), "BatchNorm cannot support training.*fix_module=True"),
        (Centred(4, 2), "in which a record changes the outputs of others"),
        (Detached(4, 2), "in which a record changes the outputs of others"),
        (Shortening(4, 2), "in which a record changes a buffer or a parameter"),
        (nn.Sequential(nn.Linear(4, 2), nn.Embedding(3, 2, max_norm=1.0)), "no max_norm"),
        (Counting(), "in which a record changes a buffer"),
        (Pooled(4, 2), "one output for each record; got 1 for 3 records"),
        (nn.Flatten(), "module must have parameters to train"),
        (nn.Linear(5, 2), r"must accept records of shape \(4,\)"),
    ],
)
def test_unsound_module_is_refused(module, complaint):
    # Assumption U0: one record's gradient does not depend on other records.
    with pytest.raises(ValueError, match=complaint):
        check_module(module, (4,), "cpu")


@pytest.mark.parametrize("recall", [by_attribute, by_global, when_used])
def test_module_whose_outputs_depend_on_earlier_batches_is_refused(recall):
    # Assumption U0: one record's gradient does not depend on other records.
    MEANS.clear()
    module = Averaging(recall)
    with pytest.raises(ValueError, match="changes the outputs"):
        check_module(module, (4,), "cpu")
    assert not hasattr(module, "mean")


def kept_in_closure():
    module, seen = nn.Sequential(nn.Linear(4, 2)), []
    module[0].register_forward_hook(lambda _layer, inputs, _outputs: seen.append(inputs))
    return module


def kept_in_class():
    class Keeper(nn.Linear):
        seen = []

        def forward(self, inputs):
            self.seen.append(inputs.detach().tolist())
            return super().forward(inputs)

    return Keeper(4, 2)


@pytest.mark.parametrize("made", [kept_in_closure, kept_in_class])
def test_module_that_shares_what_it_keeps_with_its_copies_is_refused(made):
    # Assumption U0: one record's gradient does not depend on other records.
    with pytest.raises(ValueError, match="an object which its copies share"):
        check_module(made(), (4,), "cpu")


class Mixing(nn.CrossEntropyLoss):
    def forward(self, outputs, targets):
        losses = super().forward(outputs, targets)
        return losses * losses.detach().sum()


class Choosy(nn.CrossEntropyLoss):
    def forward(self, outputs, targets):
        raise ValueError("not these")


def test_losses_that_depend_on_other_records_are_refused():
    targets = torch.zeros(5, dtype=torch.long)
    module = nn.Linear(4, 2)
    check_losses(module, lambda: nn.CrossEntropyLoss(reduction="none"), (4,), targets, "cpu")
    check_losses(module, lambda: Choosy(reduction="none"), (4,), targets, "cpu")
    weights = nn.CrossEntropyLoss(reduction="none", weight=torch.tensor([1.0, 5.0]))
    check_losses(module, lambda: weights, (4,), targets, "cpu")
    with pytest.raises(ValueError, match="changes the losses of others"):
        check_losses(module, lambda: Mixing(reduction="none"), (4,), targets, "cpu")
    # Only by targets.
    by_targets = lambda outputs, targets: outputs[:, 0] * targets.float().sum()  # noqa: E731
    with pytest.raises(ValueError, match="changes the losses of others"):
        check_losses(module, lambda: by_targets, (4,), targets, "cpu")


class Running(nn.CrossEntropyLoss):
    """Divides losses by a running mean of earlier ones."""

    def __init__(self, when, **settings):
        super().__init__(**settings)
        self.when, self.mean = when, 1.0

    def forward(self, outputs, targets):
        losses, mean = super().forward(outputs, targets), self.mean
        if self.when(outputs):
            self.mean = 0.9 * mean + 0.1 * float(losses.detach().mean())
        return losses / mean


@pytest.mark.parametrize("when", [lambda outputs: True, lambda outputs: outputs.requires_grad])
def test_losses_that_depend_on_earlier_batches_are_refused(when):
    # Assumption U0: one record's gradient does not depend on other records.
    targets = torch.zeros(5, dtype=torch.long)
    with pytest.raises(ValueError, match="criterion must not depend on earlier batches"):
        check_losses(
            nn.Linear(4, 2), lambda: Running(when, reduction="none"), (4,), targets, "cpu"
        )


@pytest.mark.parametrize(
    ("module", "shape", "allowed"),
    [
        (MLP(input_shape=4, n_outputs=2), (4,), True),
        (nn.Sequential(nn.Linear(4, 3, bias=False), nn.ReLU(), nn.Linear(3, 2)), (4,), True),
        (nn.Linear(4, 2), (5, 4), False),
        (SmallCNN(input_shape=(1, 8, 8), n_outputs=2), (1, 8, 8), False),
        (nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2)), (4,), False),
        (Reused(), (4,), False),
        (Loose(), (4,), False),
    ],
)
def test_clipping_by_norms_is_for_single_outer_products(module, shape, allowed):
    # Theorem U1: training of a net, and how it is watched.
    if allowed:
        check_outer_products(module, shape, "cpu")
    else:
        with pytest.raises(ValueError, match="must not be 'ghost'"):
            check_outer_products(module, shape, "cpu")


def test_losses_that_suit_no_outputs_are_refused_on_synthetic_records():
    module, targets = nn.Linear(4, 2), torch.zeros(7, dtype=torch.int64)

    def total(outputs, wanted):
        raise CriterionError("one loss per record")

    with pytest.raises(CriterionError, match="one loss per record"):
        check_losses(module, lambda: total, (4,), targets, "cpu")
    # Other errors may only occur for synthetic records.
    check_losses(module, lambda: lambda outputs, wanted: 1 / 0, (4,), targets, "cpu")


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
    """Mixes records only in the backward pass."""

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
    """Scales gradients by the longest one of all batches so far, only in the backward pass."""

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
    # Assumption U0: one record's gradient does not depend on other records.
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
