"""Sums of clipped gradients in closed form, compared with naive loops over records."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from skdptune.neural_network import MLP, SmallCNN
from skdptune.neural_network._stacked_gradients import (
    StackedConv2d,
    StackedLinear,
    layers_of,
    lengths_of,
    stacked_gradients,
)

NETS, RECORDS = 3, 6
LOSS = nn.CrossEntropyLoss(reduction="none")
NORMS = torch.tensor([0.5, 1.0, 100.0])


CASES = {
    "mlp": (lambda: MLP((5,), input_shape=4, n_outputs=3), (4,)),
    "cnn": (lambda: SmallCNN((2, 3), hidden=4, input_shape=(1, 8, 8), n_outputs=3), (1, 8, 8)),
}


def naive(module, inputs, targets, norm):
    parameters = list(module.parameters())
    total = [torch.zeros_like(p) for p in parameters]
    for record, target in zip(inputs, targets, strict=True):
        loss = LOSS(module(record[None]), target[None])[0]
        gradients = torch.autograd.grad(loss, parameters)
        length = torch.sqrt(sum(g.square().sum() for g in gradients))
        for values, gradient in zip(total, gradients, strict=True):
            values += gradient * min(1.0, norm / (float(length) + 1e-6))
    return total


def made(case):
    torch.manual_seed(1)
    make, shape = CASES[case]
    modules = [make() for _ in range(NETS)]
    target = torch.zeros((), dtype=torch.long)
    gradients = stacked_gradients(modules, LOSS, torch.rand(shape), target)
    parameters = zip(*(module.parameters() for module in modules), strict=True)
    stack = [torch.stack(list(same)).detach() for same in parameters]
    inputs = torch.randn(NETS, RECORDS, *shape)
    return modules, gradients, stack, inputs, torch.randint(0, 3, (NETS, RECORDS))


@pytest.mark.parametrize("case", CASES)
def test_sums_equal_a_naive_loop(case):
    # Theorem U2: nets trained together are as if trained one by one.
    modules, gradients, stack, inputs, targets = made(case)
    present = torch.ones(NETS, RECORDS, dtype=torch.bool)
    present[0, 2:] = False
    present[1] = False
    sums = gradients.clipped_sums(stack, inputs, targets, present, NORMS)
    for net, module in enumerate(modules):
        there = present[net]
        wanted = naive(module, inputs[net][there], targets[net][there], float(NORMS[net]))
        for found, values in zip(sums, wanted, strict=True):
            assert torch.allclose(found[net], values, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_weights_multiply_clipped_gradients(case):
    # Theorem U2, Theorem M0.
    modules, gradients, stack, inputs, targets = made(case)
    present = torch.ones(NETS, RECORDS, dtype=torch.bool)
    present[0, 2:] = False
    weights = torch.rand(NETS, RECORDS)
    sums = gradients.clipped_sums(stack, inputs, targets, present, NORMS, weights)
    for net, module in enumerate(modules):
        rows = [number for number in range(RECORDS) if bool(present[net, number])]
        alone = [
            naive(module, inputs[net][[i]], targets[net][[i]], float(NORMS[net])) for i in rows
        ]
        for position, found in enumerate(sums):
            wanted = sum(
                weights[net, i] * each[position] for i, each in zip(rows, alone, strict=True)
            )
            assert torch.allclose(found[net], wanted, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_records_without_a_finite_gradient_count_as_absent(case):
    modules, gradients, stack, inputs, targets = made(case)
    inputs[1, 3] = torch.nan
    inputs[2, 0] = torch.inf
    all_present = torch.ones(NETS, RECORDS, dtype=torch.bool)
    sums = gradients.clipped_sums(stack, inputs, targets, all_present, NORMS)
    finite = inputs.flatten(2).isfinite().all(dim=2)
    for net, module in enumerate(modules):
        wanted = naive(
            module, inputs[net][finite[net]], targets[net][finite[net]], float(NORMS[net])
        )
        for found, values in zip(sums, wanted, strict=True):
            assert torch.allclose(found[net], values, atol=1e-5)


def test_closed_form_that_differs_from_the_module_is_not_used():
    # Has the layers of a plain sequence, and computes something else with them.
    module = MLP((5,), input_shape=4, n_outputs=3)
    module.layers.forward = lambda inputs: 2.0 * nn.Sequential.forward(module.layers, inputs)
    target = torch.zeros((), dtype=torch.long)
    assert stacked_gradients([module], LOSS, torch.rand(4), target) is None


def frozen(module):
    module[0].bias.requires_grad_(False)
    return module


def tied():
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    return nn.Sequential(first, nn.Tanh(), second)


class Other(nn.Sequential):
    pass


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(3, 2), nn.Dropout()),
        nn.Sequential(nn.Linear(3, 2), nn.GroupNorm(1, 2)),
        nn.Sequential(nn.Linear(3, 2), nn.ReLU(inplace=True)),
        nn.Sequential(nn.Flatten(0), nn.Linear(3, 2)),
        nn.Sequential(nn.Conv2d(2, 2, 3, groups=2)),
        nn.Sequential(nn.Conv2d(2, 2, 3, padding="same")),
        nn.Sequential(nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular")),
        Other(nn.Linear(3, 2)),
        frozen(nn.Sequential(nn.Linear(3, 2))),
        tied(),
        torch.nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)),
    ],
    ids=lambda module: repr(module).replace("\n", "")[:60],
)
def test_other_modules_have_none(module):
    assert layers_of(module) is None


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda bias: nn.Linear(5, 3, bias=bias), (5,)),
        (lambda bias: nn.Conv2d(2, 3, 3, bias=bias), (2, 6, 7)),
        (
            lambda bias: nn.Conv2d(2, 3, (3, 2), (2, 1), (1, 2), (1, 2), bias=bias),
            (2, 8, 6),
        ),
    ],
)
def test_closed_forms_equal_a_loop_over_records(layer, shape, bias):
    torch.manual_seed(0)
    modules = [layer(bias) for _ in range(NETS)]
    stacked = layers_of(nn.Sequential(modules[0]))[0]
    parameters = zip(*(m.parameters() for m in modules), strict=True)
    stack = [torch.stack(list(same)).detach() for same in parameters]
    inputs = torch.randn(NETS, RECORDS, *shape)
    features = stacked.features(inputs)
    outputs = stacked.outputs(features, stack, inputs.shape)
    slopes = torch.randn(outputs.shape)
    norms = torch.empty(NETS, RECORDS)
    sums = [torch.zeros_like(values) for values in stack]
    for net, module in enumerate(modules):
        assert torch.allclose(outputs[net], module(inputs[net]), atol=1e-5)
        for record in range(RECORDS):
            module.zero_grad()
            module(inputs[net, record][None])[0].backward(slopes[net, record])
            gradients = [p.grad for p in module.parameters()]
            norms[net, record] = sum(g.square().sum() for g in gradients)
            for total, gradient in zip(sums, gradients, strict=True):
                total[net] += gradient
    gradients = stacked.gradients(features, slopes)
    assert torch.allclose(stacked.squared_norms(gradients), norms, rtol=1e-5)
    for place, found in stacked.sums(gradients, torch.ones(NETS, RECORDS)):
        assert torch.allclose(found.reshape(sums[place].shape), sums[place], atol=1e-4)


def test_slopes_whose_squares_underflow_do_not_hide_a_long_gradient():
    # Theorem U2: nets trained together are as if trained one by one.
    # The gradient is 1e18 * 1e-23 in each of 100 numbers; its slope's square is 0 in float32.
    stacked = StackedLinear(0, None)
    inputs = torch.full((1, 1, 100), 1e18)
    slopes = torch.full((1, 1, 1), 1e-23)
    truth = 100 * (1e18 * 1e-23) ** 2
    assert float(stacked.squared_norms(stacked.gradients(inputs, slopes))) >= truth


def test_large_patches_that_cancel_do_not_absorb_other_records():
    # Theorem U2: nets trained together are as if trained one by one.
    # Pixels of 2^40 and -2^40 side by side: the record's own gradient is moderate.
    stacked = StackedConv2d(0, None, {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1})
    inputs = torch.rand(1, 201, 1, 1, 64)
    inputs[0, 200, ..., ::2], inputs[0, 200, ..., 1::2] = 2.0**40, -(2.0**40)
    features = stacked.features(inputs)
    slopes = torch.full((1, 201, 1, 1, 64), 0.5)
    sums = []
    for size in (200, 201):
        gradients = stacked.gradients(features[:, :size], slopes[:, :size])
        factors = (1.0 / stacked.squared_norms(gradients).sqrt()).clamp(max=1.0)
        ((_, total),) = stacked.sums(gradients, factors)
        sums.append(float(total))
    assert abs(sums[1] - sums[0]) <= 1.0 + 1e-3


def test_lengths_of_large_layers_hide_nothing():
    # Theorem U1, Theorem U2. One norm of so many equal numbers in float32 would be .7 % too small.
    large = torch.full((1, 1, 3000, 3000), 0.1)
    exact = float(large.double().norm())
    found = StackedConv2d(0, 1, {}).squared_norms([large, torch.zeros(1, 1, 3000)])
    assert float(found) == pytest.approx(exact**2, rel=1e-5)
    assert float(lengths_of(large.flatten(1))) == pytest.approx(exact, rel=1e-5)


def test_linear_layers_on_sequences_have_no_closed_form():
    with pytest.raises(NotImplementedError, match="vectors"):
        StackedLinear(0, 1).features(torch.zeros(2, 3, 4, 5))
