"""Nets that are trained together have the same results as separately trained ones."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from scipy import stats
from skorch.callbacks import Callback, LRScheduler
from torch import nn

from skdptune.model_selection import DPRandomSearchCV, RandomRuns
from skdptune.neural_network import (
    MLP,
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetRegressor,
    LogisticHead,
    PopulationTrainer,
    SmallCNN,
)
from skdptune.neural_network._population import _net_batch as net_batch_module
from skdptune.neural_network._population import _trainer as trainer_module
from tests.neural_network.nets import KINDS, data, net_of, weights_of

X, Y = data(300)


class Skipping(nn.Module):
    """No plain sequence of layers."""

    def __init__(self, width=6):
        super().__init__()
        self.first, self.norm = nn.Linear(4, width), nn.GroupNorm(2, width)
        self.last = nn.Linear(width, 2)

    def forward(self, inputs):
        values = torch.tanh(self.norm(self.first(inputs)))
        return self.last(values + torch.sin(values))


class Doubling(DPNeuralNetClassifier):
    """Trains on records that it has changed."""

    def _validated(self, X, y):
        X, *others = super()._validated(X, y)
        return 2.0 * X, *others


class Stopper(Callback):
    data_independent = True

    def __init__(self, after):
        self.after = after

    def on_batch_end(self, net, **kwargs):
        self.after -= 1
        if not self.after:
            raise KeyboardInterrupt


def different(**settings):
    """Return nets that differ in all that a search may try."""
    tried = [
        {"lr": 0.1, "epsilon": 4.0, "batch_size": 50, "max_epochs": 2, "max_grad_norm": 1.0},
        {"lr": 1.0, "epsilon": 1.0, "batch_size": 60, "max_epochs": 1, "max_grad_norm": 0.1},
        {"lr": 0.3, "epsilon": np.inf, "batch_size": 7, "max_epochs": 1, "max_grad_norm": 3.0},
        {"lr": 0.2, "epsilon": 2.0, "batch_size": 0.3, "max_epochs": 0.5, "max_grad_norm": 1.0},
    ]
    return [
        net_of(**deepcopy({**one, **settings, "random_state": seed}))
        for seed, one in enumerate(tried)
    ]


def together(nets, targets=Y, **settings):
    return PopulationTrainer(**settings).fit(nets, X, targets)


CASES = {
    "plain": {},
    "adam": {"optimizer": torch.optim.Adam, "lr": 0.01},
    "momentum": {"optimizer__momentum": 0.9, "optimizer__weight_decay": 0.1},
    "schedule": {"callbacks": [LRScheduler("StepLR", step_size=1, gamma=0.5)]},
    "fixed batches": {"sampling": "fixed"},
    "allocation": {"sampling": "allocation"},
    "all records": {"batch_size": 1.0},
    "parts": {"max_physical_batch_size": 11},
    "one layer": {"module": LogisticHead},
    "images": {"module": SmallCNN((2, 2), hidden=3, input_shape=(1, 8, 8))},
    "no sequence": {"module": Skipping},
    "early stop": {"callbacks": [Stopper(3)]},
    "n_public": {"n_public": 500},
}


@pytest.mark.parametrize("case", CASES)
def test_each_is_as_if_trained_by_itself(case):
    # Theorem U2: nets trained together are as if trained one by one.
    records = np.tile(X, 16) if case == "images" else X
    nets = PopulationTrainer().fit(different(**CASES[case]), records, Y)
    alone = [net.fit(records, Y) for net in different(**CASES[case])]
    # Adam divides by lengths, and so enlarges rounding.
    tolerance = {"adam": 2e-3, "no sequence": 0.0}.get(case, 2e-5)
    for one, other in zip(nets, alone, strict=True):
        assert np.allclose(weights_of(one), weights_of(other), atol=tolerance)
        assert str(one.privacy_) == str(other.privacy_)
        assert one.plan_ == other.plan_
        assert np.array_equal(one.classes_, other.classes_)
        assert one.n_features_in_ == other.n_features_in_


@pytest.mark.parametrize("kind", KINDS)
def test_every_class_of_nets_has_fit_many(kind):
    made = [net_of(kind, random_state=seed) for seed in range(2)]
    nets = kind.fit_many(made, X, Y)
    assert nets == made
    for seed, net in enumerate(nets):
        alone = net_of(kind, random_state=seed).fit(X, Y)
        assert np.allclose(weights_of(net), weights_of(alone), atol=1e-5)
        assert np.allclose(net.predict(X), alone.predict(X), atol=1e-4)


def test_nets_of_all_classes_and_structures_may_be_mixed():
    nets = [
        *different(),
        net_of(DPNeuralNetRegressor),
        net_of(module=MLP(hidden=(3,))),
        net_of(criterion__label_smoothing=0.2),
        net_of(classes=[0, 1, 2]),
        net_of(Doubling, random_state=1),
        net_of(Doubling, random_state=2),
    ]
    for one in together(nets):
        alone = type(one)(**one.get_params()).fit(X, Y)
        assert np.allclose(weights_of(one), weights_of(alone), atol=1e-5)


def test_memory_bounds_nets_and_records(monkeypatch):
    seen = []
    found = net_batch_module.NetBatch._sums_of_chunk

    def recorded(self, rows, present):
        weights = sum(p.nbytes for p in self._replicas[0].parameters)
        numbers = self._gradients.numbers_per_record
        seen.append(len(rows) * (7 * weights + 8 * numbers * rows.shape[1]))
        return found(self, rows, present)

    monkeypatch.setattr(net_batch_module.NetBatch, "_sums_of_chunk", recorded)
    together([net_of(random_state=s, batch_size=200) for s in range(6)], max_memory=100_000)
    assert 50_000 < max(seen) <= 100_000
    seen.clear()
    together([net_of(random_state=s, batch_size=200) for s in range(6)], max_memory=10_000)
    assert max(seen) <= 10_000


def test_noise_has_its_size_and_is_independent_between_nets():
    # One step on all records: what differs from the step without noise is the noise.
    torch.manual_seed(3)
    settings = {
        # An instance, so that all start from the same weights.
        "module": nn.Linear(4, 2, bias=False),
        "lr": 1.0,
        "max_epochs": 1,
        "batch_size": 1.0,
        "max_grad_norm": 0.5,
        "epsilon": None,
    }
    nets = [net_of(noise_multiplier=3.0, random_state=s, **settings) for s in range(100)]
    noise = np.array([weights_of(net) for net in together(nets)])
    noise -= weights_of(net_of(noise_multiplier=1e-6, **settings).fit(X, Y))
    scaled = noise * 300 / (3.0 * 0.5)
    assert stats.kstest(scaled.ravel(), "norm").pvalue > 1e-3
    # Pairs of nets, and of weights of a net, are uncorrelated.
    assert abs(np.mean(scaled[:-1] * scaled[1:])) < 4 / np.sqrt(99 * 8)
    correlations = np.corrcoef(scaled.T)[np.triu_indices(8, 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(100)


def test_unseeded_nets_differ_and_batches_have_their_rate(monkeypatch):
    sizes, same = [], []
    indices = net_batch_module.Replica.row_numbers

    def counted(self):
        found = indices(self)
        sizes.append(len(found))
        same.append(tuple(found))
        return found

    monkeypatch.setattr(net_batch_module.Replica, "row_numbers", counted)
    nets = together([net_of(random_state=None, max_epochs=20) for _ in range(6)])
    assert len({weights_of(net).tobytes() for net in nets}) == 6
    assert len(set(same)) == len(same) == 6 * 120
    rate = np.mean(sizes) / 300
    assert abs(rate - 1 / 6) < 4 * np.sqrt(1 / 6 * 5 / 6 / (300 * len(sizes)))


# A test above shows that each net is almost identical to a separately trained one.
@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_distribution_is_that_of_nets_trained_one_by_one(count):
    # Theorem U2: nets trained together are as if trained one by one.
    settings = {"module": LogisticHead, "max_epochs": 1, "batch_size": 20}
    few = slice(0, 60)

    def made(first):
        return [
            net_of(random_state=seed, epsilon=None, noise_multiplier=0.5, **settings)
            for seed in range(first, first + count)
        ]

    nets = PopulationTrainer().fit(made(0), X[few], Y[few])
    alone = [net.fit(X[few], Y[few]) for net in made(1000)]
    found, wanted = (np.transpose([weights_of(n) for n in group]) for group in (nets, alone))
    for one, other in zip(found, wanted, strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-3


def test_a_net_that_diverges_fails_alone():
    nets = [net_of(random_state=0), net_of(lr=3e38, epsilon=0.01), net_of(random_state=2)]
    found = PopulationTrainer().fit(nets, X, Y, return_exceptions=True)
    assert found[0] is nets[0] and found[2] is nets[2]
    assert isinstance(found[1], FloatingPointError)
    assert not hasattr(nets[1], "privacy_")
    assert np.allclose(
        weights_of(nets[2]), weights_of(net_of(random_state=2).fit(X, Y)), atol=1e-5
    )
    with pytest.raises(FloatingPointError, match="diverged"):
        together([net_of(lr=3e38, epsilon=0.01)])


class Picky(nn.CrossEntropyLoss):
    """Fails for a batch that contains a certain record, as a user's code may."""

    limit = np.inf

    def forward(self, outputs, targets):
        if outputs.requires_grad and bool((outputs.detach().abs().sum(dim=1) > self.limit).any()):
            raise ValueError("such a record!")
        return super().forward(outputs, targets)


def test_records_that_make_a_loss_raise_fail_only_nets_that_draw_them(monkeypatch):
    records = X.copy()
    records[7] = 1e6
    monkeypatch.setattr(Picky, "limit", 1e3)
    settings = {"criterion": Picky, "max_epochs": 0.5, "batch_size": 20}

    def made():
        return [net_of(random_state=seed, module=LogisticHead, **settings) for seed in range(8)]

    nets = made()
    found = PopulationTrainer().fit(nets, records, Y, return_exceptions=True)
    failed = [isinstance(one, ValueError) for one in found]
    assert 0 < sum(failed) < 8
    for one, net, other in zip(failed, nets, made(), strict=True):
        if one:
            with pytest.raises(ValueError, match="such a record"):
                other.fit(records, Y)
        else:
            assert np.allclose(weights_of(net), weights_of(other.fit(records, Y)), atol=1e-5)


class Brittle(nn.BCELoss):
    """Fails depending on the weights, as a loss that refuses numbers above 1 does."""

    def forward(self, outputs, targets):
        if outputs.requires_grad and float(outputs.detach().mean()) > 0.5:
            raise ValueError("out of range")
        return super().forward(outputs, targets)


def test_outcome_of_a_net_is_a_function_of_its_own_random_draws():
    # Theorem U2: nets trained together are as if trained one by one.
    # A failure must not lead to new draws: nets that fail are trained again on the same ones.
    start = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
    for parameter in start.parameters():
        nn.init.zeros_(parameter)
    records = np.random.default_rng(0).normal(size=(8, 2))
    targets = np.arange(8) % 2

    def made(seeds):
        return [
            DPNeuralNetBinaryClassifier(
                start,
                criterion=Brittle,
                epsilon=None,
                noise_multiplier=2.0,
                delta=1e-4,
                batch_size=1.0,
                max_epochs=2,
                lr=1.0,
                classes=[0, 1],
                random_state=seed,
            )
            for seed in seeds
        ]

    trainer = PopulationTrainer()
    seeds = list(range(10))
    found = trainer.fit(made(seeds), records, targets, return_exceptions=True)
    failed = [isinstance(one, ValueError) for one in found]
    assert 1 < sum(failed) < 9
    for seed, is_failure in zip(seeds, failed, strict=True):
        (alone,) = trainer.fit(made([seed]), records, targets, return_exceptions=True)
        assert isinstance(alone, ValueError) == is_failure
    # A net that is not seeded repeats its draws as well.
    (job,) = trainer_module._jobs(made([None]), records, targets, None)
    draws = {float(job.run.restarted().rng.random()) for _ in range(3)}
    assert len(draws) == 1


def test_generators_are_refused_before_any_net_is_trained():
    # Theorem F9: no published object holds a seed or a generator of its noise.
    nets = [net_of(), net_of(random_state=np.random.default_rng(0))]
    with pytest.raises(TypeError, match="random_state must be an integer of at least 0"):
        type(nets[0]).fit_many(nets, X, Y, return_exceptions=True)
    assert not any(hasattr(net, "privacy_") for net in nets)


class Subclass(MLP):
    def __call__(self, inputs):
        return 2.0 * super().__call__(inputs)


class Moving(torch.optim.SGD):
    """Replaces the tensors of weights at each step."""

    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data = parameter.data.clone()


class StepsTwice(DPNeuralNetClassifier):
    def train_step(self, batch, **settings):
        inputs, targets = batch
        return super().train_step((2.0 * inputs, targets), **settings)


def tied():
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    return nn.Sequential(first, second)


def with_hook(name):
    module = nn.Sequential(nn.Linear(4, 2))
    getattr(module[0], f"register_{name}")(lambda *_: None)
    return module


def with_settings(*values):
    """Return the modules of nets that differ only in a setting of a layer."""
    return [{"module": MLP(hidden=(5,), temperature=value)} for value in values]


UNUSUAL = {
    "subclass of a ready module": [{"module": Subclass}] * 2,
    "dropout": [{"module": nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 2))}] * 2,
    "optimizer that moves weights": [{"optimizer": Moving}] * 2,
    "subclass of the net": [{"kind": StepsTwice}] * 2,
    "shared weights": [{"module": tied()}] * 2,
    "hooks": [{"module": with_hook(name)} for name in ("forward_hook", "forward_pre_hook")] * 2,
    "weight norm": [{"module": nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))}] * 2,
    "settings of layers": with_settings(1.0, 2.0, 1.0),
    "weights of losses": [
        {"criterion__weight": torch.tensor([1.0, weight])} for weight in (2.0, 2.0, 3.0)
    ],
}


@pytest.mark.parametrize("case", UNUSUAL)
def test_unusual_nets_are_trained_as_by_themselves(case):
    def made():
        return [net_of(random_state=seed, **one) for seed, one in enumerate(UNUSUAL[case])]

    for one, other in zip(together(made()), made(), strict=True):
        assert np.allclose(weights_of(one), weights_of(other.fit(X, Y)), atol=1e-5)


def test_missing_noise_is_detected_and_weights_are_erased(monkeypatch):
    monkeypatch.setattr(
        net_batch_module.GradientNoise, "added_to", lambda self, total: total.clone()
    )
    nets = different(epsilon=1.0)
    with pytest.raises(RuntimeError, match="noise must be added"):
        PopulationTrainer().fit(nets, X, Y, return_exceptions=True)
    assert not any(hasattr(net, "privacy_") for net in nets)
    assert any(not weights_of(net).any() for net in nets)


def test_missing_clipping_is_detected(monkeypatch):
    monkeypatch.setattr(
        "skdptune.neural_network._stacked_gradients.clipping_factors",
        lambda lengths, norms: lengths**0.0,
    )
    with pytest.raises(RuntimeError, match="clipped"):
        together([net_of(max_grad_norm=1e-3)])


def test_a_net_does_not_keep_the_weights_of_others():
    nets = together([net_of(random_state=seed) for seed in range(8)])
    alone = len(pickle.dumps(net_of(random_state=0).fit(X, Y)))
    assert max(len(pickle.dumps(net)) for net in nets) < alone + 500
    again = pickle.loads(pickle.dumps(nets[3]))
    assert np.array_equal(again.predict(X), nets[3].predict(X))
    for net in nets:
        assert all(p.grad is None and p.requires_grad for p in net.module_.parameters())
        assert not net.module_.training


def test_bad_arguments_are_refused():
    net = net_of()
    with pytest.raises(ValueError, match="one twice"):
        together([net, net])
    with pytest.raises(TypeError, match="private net"):
        together([net_of(), "net"])
    with pytest.raises(ValueError, match="lr must be"):
        PopulationTrainer().fit([net_of(), net_of(lr=-1.0)], X, Y, return_exceptions=True)
    with pytest.raises(ValueError, match="max_memory must be"):
        together([net], max_memory=0)
    assert together([]) == []


@pytest.mark.parametrize("cv", [0.2, 3])
def test_searches_train_their_candidates_together(cv, monkeypatch):
    calls = []
    fit = trainer_module.PopulationTrainer.fit

    def counted(self, nets, *arguments, **settings):
        calls.append(len(nets))
        return fit(self, nets, *arguments, **settings)

    monkeypatch.setattr(trainer_module.PopulationTrainer, "fit", counted)

    def search():
        return DPRandomSearchCV(
            DPNeuralNetClassifier(MLP(hidden=(5,)), classes=[0, 1], max_epochs=1, batch_size=50),
            {"lr": [0.05, 0.5, 2.0]},
            n_iter=5,
            epsilon=20.0,
            delta=1e-4,
            cv=cv,
            random_state=0,
            refit="winner" if cv == 0.2 else True,
            strategy=RandomRuns(
                n_iter_distribution="poisson", diagnostics=True, tuning_fraction=None
            ),
        ).fit(X, Y)

    found = search()
    assert len(calls) == (1 if cv == 0.2 else 3)
    monkeypatch.setattr(
        "skdptune.model_selection._running._engine.can_be_together", lambda *_: False
    )
    alone = search()
    assert found.best_params_ == alone.best_params_
    assert found.best_score_ == pytest.approx(alone.best_score_, abs=1e-9)
    assert str(found.privacy_) == str(alone.privacy_)
    assert np.allclose(
        weights_of(found.best_estimator_), weights_of(alone.best_estimator_), atol=1e-5
    )


@pytest.mark.gpu
def test_gpu_gives_what_the_cpu_gives_without_noise():
    settings = {"epsilon": np.inf, "max_epochs": 1}
    for case in ("plain", "images"):
        records = np.tile(X, 16) if case == "images" else X
        made = [different(**CASES[case], **settings, device=d) for d in ("cuda", "cpu")]
        found = [PopulationTrainer().fit(nets, records, Y) for nets in made]
        for one, other in zip(*found, strict=True):
            weights = np.concatenate(
                [p.detach().cpu().numpy().ravel() for p in one.module_.parameters()]
            )
            assert np.allclose(weights, weights_of(other), atol=1e-3)
