"""The training of a private net: steps, batches, empty batches, modes, and how it ends."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.linear_model import Ridge
from skorch.callbacks import Callback, EarlyStopping
from torch import nn

from skdptune.neural_network import MLP, DPNeuralNetClassifier, LogisticHead
from tests.neural_network.nets import KINDS, MODES, data, net_of, weights_of


class CountingSGD(torch.optim.SGD):
    """Counts its steps, over all optimizers."""

    steps = 0

    def step(self, closure=None):
        type(self).steps += 1
        return super().step(closure)


# Steps and batches -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "batch_size", "epochs", "steps", "mode"),
    [
        (300, 50, 2, 12, "hooks"),
        (300, 70, 1, 5, "functorch"),
        (300, 0.1, 1.5, 15, "ghost"),
        (30, 50, 3, 3, "functorch"),
        (300, 300, 0.2, 1, "hooks"),
    ],
)
def test_the_optimizer_takes_exactly_the_planned_steps(size, batch_size, epochs, steps, mode):
    X, y = data(size)
    CountingSGD.steps = 0
    net = net_of(
        optimizer=CountingSGD,
        noise_multiplier=1.0,
        batch_size=batch_size,
        max_epochs=epochs,
        grad_sample_mode=mode,
        max_physical_batch_size=9,
    ).fit(X, y)
    assert CountingSGD.steps == net.plan_.steps == steps
    assert len(net.history_) == max(1, int(np.ceil(epochs)))


def test_batches_are_drawn_record_by_record(batches):
    X, y = data()
    settings = {"max_epochs": 80, "batch_size": 60, "grad_sample_mode": "ghost"}
    net_of(module=LogisticHead, **settings).fit(X, y)
    assert len(batches) == 400
    sizes = np.array([len(batch) for batch in batches])
    # Binomial of 300 records at rate 0.2.
    assert abs(sizes.mean() - 60.0) < 5 * np.sqrt(48 / 400)
    assert sizes.var() == pytest.approx(48.0, rel=0.25)
    first = np.array([float(X[0].astype(np.float32)[0]) in batch[:, 0] for batch in batches])
    assert abs(first.mean() - 0.2) < 5 * np.sqrt(0.16 / 400)


def test_batches_of_fixed_size(batches):
    X, y = data()
    net_of(sampling="fixed", batch_size=70, max_epochs=3, grad_sample_mode="ghost").fit(X, y)
    assert {len(batch) for batch in batches} == {70}
    assert all(len(np.unique(batch[:, 0])) == 70 for batch in batches)


def test_every_record_is_in_one_allocated_batch_of_an_epoch(batches):
    # Theorem M6: noisy clipped gradients, each record in one batch of a round at random.
    X, y = data()
    net = net_of(
        sampling="allocation", batch_size=70, max_epochs=2.5, grad_sample_mode="ghost"
    ).fit(X, y)
    # 300 records make four batches, of 75 records on the average.
    assert (net.plan_.rate, net.plan_.batch_size, len(batches)) == (0.25, 75, 10)
    for epoch in (batches[:4], batches[4:8]):
        seen = np.sort(np.concatenate(epoch)[:, 0])
        np.testing.assert_array_equal(seen, np.sort(X[:, 0].astype(np.float32)))
    assert len({len(batch) for batch in batches}) > 1
    assert 0 < sum(len(batch) for batch in batches[8:]) < 300


@pytest.mark.parametrize("mode", MODES)
def test_empty_batches_are_steps_too(mode, batches):
    X, y = data()
    net = net_of(batch_size=1, max_epochs=0.1, grad_sample_mode=mode, epsilon=None)
    net.set_params(noise_multiplier=1.0).fit(X, y)
    assert 0 in {len(batch) for batch in batches}
    assert len(batches) == net.plan_.steps == 30


@pytest.mark.parametrize("kind", KINDS)
def test_no_records_at_all_are_a_fit_where_the_number_is_secret(kind):
    X, y = data()
    public = {"classes": [0, 1]} if kind is DPNeuralNetClassifier else {}
    net = net_of(kind, n_public=300, **public).fit(X[:0], y[:0])
    assert net.predict(X).shape == (300,)


@pytest.mark.parametrize("mode", MODES)
def test_distribution_of_weights_without_records(mode):
    """Without records, a net is a sum of noise, whose scale follows only from the plan."""
    module = nn.Linear(50, 40, bias=False)
    nn.init.zeros_(module.weight)
    net = net_of(
        module=module,
        classes=list(range(40)),
        n_public=300,
        max_grad_norm=0.3,
        lr=0.7,
        grad_sample_mode=mode,
    ).fit(np.zeros((0, 50)), np.zeros(0, dtype=int))
    step = 0.7 * net.plan_.noise_multiplier * 0.3 / 50
    found = weights_of(net) / (step * np.sqrt(net.plan_.steps))
    assert stats.kstest(found, "norm").pvalue > 1e-3
    assert found.std() == pytest.approx(1.0, abs=4.0 / np.sqrt(2 * 2000))


# How training ends -----------------------------------------------------------------------


class Stopping(Callback):
    """Stops after this number of steps, like a user at the keyboard."""

    data_independent = True

    def __init__(self, steps=3):
        self.steps = steps

    def on_batch_end(self, net, batch=None, training=None, **others):
        assert batch is None
        if len(net.history_[-1]["batches"]) == self.steps:
            raise KeyboardInterrupt


def test_training_that_stops_early_costs_all_planned_steps():
    X, y = data()
    CountingSGD.steps = 0
    net = net_of(callbacks=[Stopping()], optimizer=CountingSGD).fit(X, y)
    assert CountingSGD.steps == 3
    assert net.privacy_.profile == net.privacy_profile(300)
    assert "training stopped after 3 of 12 steps; the cost is that of all planned steps" in (
        net.privacy_.assumptions
    )


def test_callback_that_replaces_another_is_refused():
    net = net_of(callbacks=[("own", Stopping())], callbacks__own=EarlyStopping())
    with pytest.raises(ValueError, match="callbacks must not depend on the data"):
        net.fit(*data())


@pytest.mark.gpu
@pytest.mark.parametrize("mode", MODES)
def test_fit_on_a_gpu(mode):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    X, y = data(3000)
    net = net_of(device="cuda", grad_sample_mode=mode, max_epochs=10, epsilon=8.0).fit(X, y)
    assert next(net.module_.parameters()).is_cuda
    assert net.score(X, y) > 0.8
    on_cpu = net_of(epsilon=np.inf, random_state=1).fit(X, y)
    on_gpu = net_of(epsilon=np.inf, random_state=1, device="cuda").fit(X, y)
    np.testing.assert_allclose(on_gpu.predict_proba(X), on_cpu.predict_proba(X), atol=1e-3)


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

    with pytest.raises(RuntimeError, match="parameters of module and no others"):
        net_of(criterion=Scaled).fit(*data())


def test_images_keep_their_shape():
    X, y = data(48)
    images = np.repeat(X, 16, axis=1).reshape(48, 1, 8, 8)
    net = net_of(module=nn.Flatten, delta=1e-3)
    with pytest.raises(ValueError, match="parameters to train"):
        net.fit(images, y)
    net.set_params(module=MLP).fit(images, y)
    assert net.module_.input_shape == (1, 8, 8)
    assert net.predict(images).shape == (48,)


def test_module_that_does_not_train_is_refused():
    with pytest.raises(TypeError, match="module must be a torch.nn.Module, or .* got Ridge"):
        net_of(module=lambda: Ridge()).fit(*data())
    with pytest.raises(ValueError, match="module must have parameters to train"):
        net_of(module=nn.Flatten).fit(*data())
