"""The mechanism itself: gradients, clipping, noise, physical batches, empty batches, checks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from opacus.layers import DPLSTM
from scipy import stats
from sklearn.exceptions import NotFittedError
from torch import nn

from skdptune.mechanisms._shared import grid_of
from skdptune.neural_network import MLP, SmallCNN, _noisy_steps, _stacked_gradients
from skdptune.neural_network._noisy_steps import (
    GRAD_SAMPLE_MODES,
    GradientNoise,
    NoisySteps,
    NotPrivateError,
    quiet_hooks,
)
from tests.neural_network.nets import data as fitting_data
from tests.neural_network.nets import net_of
from tests.neural_network.nets import weights_of as trained
from tests.neural_network.test_private_net import LABELS, NETS, ROWS, any_net

criterion = nn.CrossEntropyLoss(reduction="none")


@pytest.fixture(autouse=True)
def _quiet():
    with quiet_hooks():
        yield


def linear(**settings):
    torch.manual_seed(0)
    return nn.Linear(4, 3, **settings)


def batch(size=6, features=4, classes=3):
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.normal(size=(size, features)).astype(np.float32))
    return X, torch.from_numpy(rng.integers(0, classes, size=size))


def steps_of(module, *, noise=0.0, norm=1.0, lr=1.0, divisor=1.0, mode="hooks", seed=0, **others):
    return NoisySteps(
        module,
        torch.optim.SGD(module.parameters(), lr=lr),
        others.pop("losses", criterion),
        noise_multiplier=noise,
        max_grad_norm=norm,
        divisor=divisor,
        mode=mode,
        rng=np.random.default_rng(seed),
        **others,
    )


def weights_of(module):
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()]).double().numpy()


def naive_clipped_sum(module, X, y, norm):
    """Return the sum of clipped gradients, record by record."""
    total = 0.0
    for number in range(len(X)):
        loss = criterion(module(X[number : number + 1]), y[number : number + 1]).sum()
        found = torch.autograd.grad(loss, list(module.parameters()))
        gradient = torch.cat([part.reshape(-1) for part in found]).double().numpy()
        total = total + gradient * min(1.0, norm / np.linalg.norm(gradient))
    return total


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
@pytest.mark.parametrize(("norm", "max_physical_batch_size"), [(0.3, 4), (1.0, 1), (100.0, None)])
def test_step_without_noise_is_the_naive_clipped_sum(mode, norm, max_physical_batch_size):
    # Theorem U1: training of a net, and how it is watched.
    X, y = batch()
    module = MLP(hidden=(5,), input_shape=4, n_outputs=3)
    wanted = weights_of(module) - 0.5 / 7.0 * naive_clipped_sum(module, X, y, norm)
    engine = steps_of(
        module,
        norm=norm,
        lr=0.5,
        divisor=7.0,
        mode=mode,
        max_physical_batch_size=max_physical_batch_size,
    )
    engine.step(X, y)
    np.testing.assert_allclose(weights_of(module), wanted, atol=2e-6)
    assert engine.steps_taken == 1


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
@pytest.mark.parametrize(("norm", "max_physical_batch_size"), [(0.3, 4), (100.0, None)])
def test_weights_multiply_clipped_gradients(mode, norm, max_physical_batch_size):
    # Theorem U1, Theorem M0.
    X, y = batch()
    table = torch.tensor([0.1, 1.0, 0.0])
    module = MLP(hidden=(5,), input_shape=4, n_outputs=3)
    alone = [naive_clipped_sum(module, X[i : i + 1], y[i : i + 1], norm) for i in range(len(X))]
    wanted = weights_of(module) - 0.5 / 7.0 * (table[y].numpy() @ np.array(alone))
    engine = steps_of(
        module,
        norm=norm,
        lr=0.5,
        divisor=7.0,
        mode=mode,
        max_physical_batch_size=max_physical_batch_size,
    )
    engine.weights = table[y]
    engine.step(X, y)
    np.testing.assert_allclose(weights_of(module), wanted, atol=2e-6)


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
def test_weighted_records_without_a_finite_gradient_have_no_influence(mode):
    X, y = batch()
    X[2] = torch.inf
    found, table = [], torch.tensor([0.1, 1.0, 0.5])
    for rows in (slice(None), [0, 1, 3, 4, 5]):
        module = linear()
        engine = steps_of(module, mode=mode)
        engine.weights = table[y[rows]]
        engine.step(X[rows], y[rows])
        found.append(weights_of(module))
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    assert np.isfinite(found[0]).all()


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
def test_convolutions_are_clipped_as_in_the_naive_loop(mode):
    X, y = batch(features=64)
    torch.manual_seed(1)
    module = SmallCNN((3, 4), hidden=5, input_shape=64, n_outputs=3)
    wanted = weights_of(module) - naive_clipped_sum(module, X, y, 0.4)
    steps_of(module, norm=0.4, mode=mode).step(X, y)
    np.testing.assert_allclose(weights_of(module), wanted, atol=5e-6)


class Reader(nn.Module):
    """Reads a sequence: one set of weights is used at every place of it."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 3)
        self.memory = DPLSTM(3, 4, batch_first=True)
        self.end = nn.Linear(4, 3)

    def forward(self, inputs):
        return self.end(self.memory(self.table(inputs.long()))[0][:, -1])


@pytest.mark.parametrize("max_physical_batch_size", [None, 4])
def test_recurrent_weights_are_clipped_as_in_the_naive_loop(max_physical_batch_size):
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.integers(0, 10, size=(6, 5)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 3, size=6))
    torch.manual_seed(1)
    module = Reader()
    wanted = weights_of(module) - naive_clipped_sum(module, X, y, 0.4)
    steps_of(module, norm=0.4, max_physical_batch_size=max_physical_batch_size).step(X, y)
    np.testing.assert_allclose(weights_of(module), wanted, atol=5e-6)


@pytest.mark.parametrize(
    ("mode", "max_physical_batch_size"), [("hooks", 2), ("functorch", None), ("ghost", 2)]
)
def test_distribution_of_a_noisy_sum(mode, max_physical_batch_size):
    """Mean: the clipped sum. Standard deviation: noise times norm, once for each step."""
    # Theorem U1: training of a net, and how it is watched.
    X, y = batch(4)
    noise, norm, divisor, runs = 1.7, 0.6, 5.0, 200
    start = linear()
    wanted = -naive_clipped_sum(start, X, y, norm)
    module = linear()
    engine = steps_of(
        module,
        noise=noise,
        norm=norm,
        divisor=divisor,
        mode=mode,
        max_physical_batch_size=max_physical_batch_size,
    )
    deviations = []
    for _ in range(runs):
        module.load_state_dict(start.state_dict())
        engine.step(X, y)
        moved = (weights_of(module) - weights_of(start)) * divisor
        deviations.append(moved - wanted)
    z = np.array(deviations) / (noise * norm)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3
    assert z.std() == pytest.approx(1.0, abs=4.0 / math.sqrt(2 * z.size))
    # Neither across coordinates nor from step to step.
    correlations = np.corrcoef(z, rowvar=False) - np.eye(z.shape[1])
    assert np.abs(correlations).max() < 5.0 / math.sqrt(runs)
    assert abs(np.corrcoef(z[:-1].ravel(), z[1:].ravel())[0, 1]) < 4.0 / math.sqrt(z.size)


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
def test_empty_batch_is_a_step_of_noise_alone(mode):
    X, y = batch()
    module = linear()
    engine = steps_of(module, noise=2.0, norm=0.5, mode=mode)
    found = []
    for _ in range(100):
        before = weights_of(module)
        engine.step(X[:0], y[:0])
        found.append(weights_of(module) - before)
    assert engine.steps_taken == 100
    z = np.ravel(found) / (2.0 * 0.5)
    assert stats.kstest(z, "norm").pvalue > 1e-3


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
@pytest.mark.parametrize("bad_value", [math.nan, math.inf, 3e38])
def test_record_without_a_finite_gradient_has_no_influence(mode, bad_value):
    X, y = batch()
    module = linear()
    wanted = weights_of(module) - naive_clipped_sum(module, X[1:], y[1:], 1.0)
    X[0] = bad_value
    steps_of(module, mode=mode).step(X, y)
    found = weights_of(module)
    assert np.isfinite(found).all()
    # A finite gradient whose norm overflows is clipped to zero.
    np.testing.assert_allclose(found, wanted, atol=2e-6)


class Choosy(nn.Module):
    """Raises, between its layers, on batches in which some record has a large number."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 5), nn.Linear(5, 3)

    def forward(self, X):
        hidden = self.first(X)
        if float(X.abs().max()) > 100.0:
            raise OverflowError("a record's text")
        return self.second(hidden)


def choosy_losses(outputs, targets):
    if bool((targets == 7).any()):
        raise IndexError("a target's text")
    return criterion(outputs, targets)


@pytest.mark.parametrize(
    ("mode", "kind", "number", "max_physical_batch_size"),
    [
        ("hooks", "input", 0, None),
        ("functorch", "input", 5, 1),
        ("hooks", "input", 5, 4),
        ("functorch", "target", 0, 2),
        ("ghost", "target", 5, None),
        ("ghost", "target", 0, 4),
        ("hooks", "both", 0, 2),
        ("functorch", "all", 0, None),
        ("hooks", "all", 0, 4),
    ],
)
def test_record_that_the_module_or_the_losses_refuse_has_no_influence(
    mode, kind, number, max_physical_batch_size
):
    # Theorem U1: training of a net, and how it is watched.
    X, y = batch()
    torch.manual_seed(0)
    module = linear() if mode == "ghost" else Choosy()
    is_kept = torch.arange(6) != number
    if kind in ("both", "all"):
        is_kept = is_kept & (torch.arange(6) != 1) if kind == "both" else is_kept & False
    wanted = weights_of(module) - naive_clipped_sum(module, X[is_kept], y[is_kept], 1.0)
    X[~is_kept], y[~is_kept] = (200.0, y[~is_kept]) if kind != "target" else (X[~is_kept], 7)
    steps = steps_of(
        module, mode=mode, losses=choosy_losses, max_physical_batch_size=max_physical_batch_size
    )
    steps.step(X, y)
    np.testing.assert_allclose(weights_of(module), wanted, atol=2e-6)
    # What the failed pass left behind does not reach the next step.
    wanted = weights_of(module) - naive_clipped_sum(module, *batch(5), 1.0)
    steps.step(*batch(5))
    np.testing.assert_allclose(weights_of(module), wanted, atol=2e-6)


def test_what_raises_on_no_record_by_itself_is_raised():
    class Never(nn.Linear):
        def forward(self, X):
            if len(X) == 6:
                raise MemoryError("six are too many")
            return super().forward(X)

    with pytest.raises(MemoryError, match="six"):
        steps_of(Never(4, 3)).step(*batch())


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
def test_one_record_moves_the_sum_by_no_more_than_the_norm(mode):
    # Theorem U1: training of a net, and how it is watched.
    X, y = batch()
    ends = []
    for size in (5, 6):
        module = linear()
        steps_of(module, norm=0.25, mode=mode).step(1e3 * X[:size], y[:size])
        ends.append(weights_of(module))
    assert np.linalg.norm(ends[0] - ends[1]) == pytest.approx(0.25, rel=1e-4)


def test_frozen_parameters_stay():
    module = MLP(hidden=(5,), input_shape=4, n_outputs=3)
    module.layers[1].weight.requires_grad_(False)
    before = module.layers[1].weight.clone()
    engine = steps_of(module, noise=1.0)
    engine.step(*batch())
    assert torch.equal(module.layers[1].weight, before)


# What is checked ----------------------------------------------------------------------------


class Forgetful(nn.Module):
    """Has a layer that its forward does not use, or not any more."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(4, 3), nn.Linear(4, 3)
        self.rereplicas = False

    def forward(self, inputs):
        return self.used(inputs) + (self.unused(inputs) if self.rereplicas else 0.0)


@pytest.mark.parametrize("mode", ["hooks", "functorch"])
@pytest.mark.parametrize("at_first", [False, True])
def test_parameter_without_gradients_per_record_is_refused(mode, at_first):
    module = Forgetful()
    engine = steps_of(module, mode=mode)
    if at_first:
        module.rereplicas = True
        engine.step(*batch())
        module.rereplicas = False
    with pytest.raises(NotPrivateError, match="one gradient per record"):
        engine.step(*batch())


def test_optimizer_of_other_parameters_is_refused():
    module = linear()
    with pytest.raises(NotPrivateError, match="must hold the parameters of module"):
        NoisySteps(
            module,
            torch.optim.SGD(linear().parameters(), lr=1.0),
            criterion,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            divisor=1.0,
            mode="hooks",
            rng=np.random.default_rng(0),
        )


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_too_little_noise_is_detected(monkeypatch, mode, share):
    # Theorem U1: training of a net, and how it is watched.
    def added_to(self, total):
        return total + share * torch.randn_like(total)

    monkeypatch.setattr(_noisy_steps.GradientNoise, "added_to", added_to)
    module = MLP(hidden=(50,), input_shape=4, n_outputs=3)
    with pytest.raises(NotPrivateError, match="noise must be added"):
        steps_of(module, noise=1.0, mode=mode).step(*batch())


@pytest.mark.parametrize("mode", GRAD_SAMPLE_MODES)
def test_missing_clipping_is_detected(monkeypatch, mode):
    # Theorem U1: training of a net, and how it is watched.
    for module in (_noisy_steps, _stacked_gradients):
        monkeypatch.setattr(module, "clipping_factors", lambda lengths, norms: lengths**0.0)
    with pytest.raises(NotPrivateError, match="must be clipped"):
        steps_of(linear(), noise=1.0, norm=1e-3, mode=mode).step(*batch())


def test_buffers_of_trainable_layers_are_refused():
    class Buffered(nn.Linear):
        def __init__(self):
            super().__init__(4, 3)
            self.register_buffer("seen", torch.zeros(1))

    with pytest.raises(ValueError, match="of a kind that Opacus supports"):
        steps_of(Buffered())


def added(deviation, seed, total):
    return GradientNoise(deviation, np.random.default_rng(seed)).added_to(total)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_is_normal_with_the_deviation(dtype):
    draws = added(3.0, 0, torch.full((400, 500), 7.0, dtype=dtype))
    assert draws.dtype == dtype
    assert draws.shape == (400, 500)
    flat = (draws.double().numpy().ravel() - 7.0) / 3.0
    assert stats.kstest(flat, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(flat[:-1], flat[1:])[0, 1]) < 0.01


def test_sums_are_rounded_to_a_grid_that_no_data_choose():
    # Theorem E1: a release is real noise plus the value, rounded to a grid that no data choose.
    for value in (0.0, 1e-9, 0.3, 1234.5678):
        total = torch.full((1000,), value, dtype=torch.float64)
        steps = added(1.7, 0, total).numpy() / grid_of(1.7)
        np.testing.assert_array_equal(steps, np.rint(steps))


def test_a_sums_noise_does_not_depend_on_what_was_added_to_others():
    # Theorem E1: neighbouring data sets meet the same noise.
    first, second = (GradientNoise(1.0, np.random.default_rng(0)) for _ in range(2))
    for value in (0.0, 5.0, 1e6):
        first.added_to(torch.full((7,), value))
        second.added_to(torch.full((7,), -value))
    zeros = torch.zeros(50)
    assert torch.equal(first.added_to(zeros), second.added_to(zeros))


def test_on_other_devices_torch_draws_the_noise(monkeypatch):
    # Assumption F6. No other device is needed to see what would be asked of it.
    noise = GradientNoise(2.0, np.random.default_rng(0))
    noise._device = torch.device("meta")
    noise._generator = torch.Generator().manual_seed(0)
    drawn = []

    def normal(mean, deviation, *, size, generator, device, dtype):
        drawn.append((mean, deviation, tuple(size), device.type, dtype))
        return torch.ones(size, dtype=dtype)

    monkeypatch.setattr(torch, "normal", normal)
    assert torch.equal(noise.added_to(torch.zeros(2, 3)), torch.ones(2, 3))
    assert drawn == [(0.0, 2.0, (2, 3), "meta", torch.float32)]


# In a fit ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", *GRAD_SAMPLE_MODES])
def test_weights_are_erased_after_a_step_with_too_little_noise(monkeypatch, mode):
    monkeypatch.setattr(GradientNoise, "added_to", lambda self, total: total.clone())
    net = net_of(grad_sample_mode=mode)
    with pytest.raises(NotPrivateError, match="noise must be added"):
        net.fit(*fitting_data())
    assert not trained(net).any()
    with pytest.raises(NotFittedError):
        net.predict(fitting_data()[0])


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
@pytest.mark.parametrize("name", NETS)
def test_a_step_interrupted_before_its_noise_leaves_nothing_of_the_data(name, mode, monkeypatch):
    def added_to(self, total):
        raise KeyboardInterrupt

    monkeypatch.setattr(GradientNoise, "added_to", added_to)
    left = []
    for rows in (ROWS, -3.0 * ROWS):
        net = any_net(name, grad_sample_mode=mode, batch_size=100).fit(rows, LABELS)
        assert all(not vars(p) and p.grad is None for p in net.module_.parameters())
        left.append(trained(net))
    np.testing.assert_array_equal(*left)
