"""Nets by persons: batches draw persons, and a person moves a sum by one clipped gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from skdptune.audit import audit_epsilon
from skdptune.base._shared import Persons, persons_of
from skdptune.ledger import PrivacyLedger
from skdptune.neural_network import (
    MLP,
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetRegressor,
    LogisticHead,
    PopulationTrainer,
    SmallCNN,
)
from skdptune.neural_network import _private_net as private_net_module
from skdptune.neural_network._noisy_steps import GradientNoise
from skdptune.testing import replay_neighbours
from tests.neural_network.nets import data, net_of, weights_of

P = 40
IDS = np.repeat(np.arange(P), np.random.default_rng(1).integers(1, 9, size=P))
X, Y = data(IDS.size)
PERSON = "add or remove one person with all of their rows"
WAYS = {
    "poisson": {},
    "fixed": {"sampling": "fixed"},
    "allocation": {"sampling": "allocation"},
    "hooks": {"grad_sample_mode": "hooks"},
    "ghost": {"grad_sample_mode": "ghost"},
    "pieces": {"grad_sample_mode": "functorch", "max_physical_batch_size": 7},
    "weighted": {"class_weight": {0: 1.0, 1: 0.3}},
    "recipe": {"optimizer": "auto", "batch_size": "auto", "max_epochs": 9},
}


def person_net(**settings):
    return net_of(**{"batch_size": 10, "classes": [0, 1], "delta": 1e-3, **settings})


@pytest.mark.parametrize("way", WAYS)
def test_with_one_row_for_each_person_nothing_changes(way):
    # Theorem P14, Theorem U1.
    alone = person_net(**WAYS[way]).fit(X, Y)
    ids = [f"person {place}" for place in np.random.default_rng(0).permutation(len(X))]
    by_persons = person_net(**WAYS[way]).fit(X, Y, groups=ids)
    # Sums have 64 bits by persons, and 32 bits by rows.
    np.testing.assert_allclose(weights_of(by_persons), weights_of(alone), rtol=0, atol=1e-5)
    assert by_persons.privacy_.profile == alone.privacy_.profile
    assert by_persons.privacy_.neighbouring == PERSON


class Plain(torch.nn.Module):
    """A module without a closed form."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, inputs):
        return self.layer(inputs)


def frozen_sums(monkeypatch, net, *given, groups):
    """Return the exact sums of all steps of a fit whose weights do not follow from the data."""
    steps = []

    def added_to(self, total):
        steps.append(total.detach().double().numpy().ravel().copy())
        made = np.random.default_rng(len(steps)).normal(size=total.shape)
        return torch.from_numpy(made).to(total.dtype) * self.deviation

    with monkeypatch.context() as patch:
        patch.setattr(GradientNoise, "added_to", added_to)
        net.fit(*given, groups=groups)
    return steps


def change_of(monkeypatch, k, same, **settings):
    """Return how far one person of k rows moves a sum, in units of the clipping norm."""
    rng = np.random.default_rng(k)
    rows = (
        np.full((k, 4), 50.0)
        if same
        else rng.normal(size=(k, 4)) * rng.choice([0.1, 30.0], k)[:, None]
    )
    labels = np.ones(k, dtype=int) if same else rng.integers(0, 2, size=k)
    settings = {"batch_size": P, "n_public": P, "max_epochs": 3, **settings}
    before = frozen_sums(monkeypatch, person_net(**settings), X, Y, groups=IDS)
    order = rng.permutation(IDS.size + k)
    table, more = np.concatenate([X, rows])[order], np.append(Y, labels)[order]
    ids = np.append(IDS, np.full(k, P))[order]
    after = frozen_sums(monkeypatch, person_net(**settings), table, more, groups=ids)
    assert len(before) == len(after) == 3
    pairs = zip(before, after, strict=True)
    return max(float(np.linalg.norm(one - other)) for one, other in pairs)


@pytest.mark.parametrize("mode", ["auto", "hooks", "functorch", "ghost"])
@pytest.mark.parametrize("same", [True, False])
def test_one_person_moves_a_sum_by_the_norm_at_most(monkeypatch, mode, same):
    # Theorem P14, Theorem U1.
    for k in (1, 2, 50, 5000):
        found = change_of(monkeypatch, k, same, grad_sample_mode=mode, optimizer=torch.optim.SGD)
        assert 0.0 < found <= 1.0 + 1e-5


def test_a_person_in_many_chunks_moves_a_sum_by_the_norm_at_most(monkeypatch):
    # Theorem P14, Theorem U1: roundings of sums over chunks would add up in 32 bits.
    settings = {"max_physical_batch_size": 1, "optimizer": torch.optim.SGD}
    found = change_of(monkeypatch, 1000, True, grad_sample_mode="auto", **settings)
    assert 0.9 < found <= 1.0 + 1e-5


@pytest.mark.parametrize("mode", ["auto", "hooks", "ghost"])
def test_a_net_that_weighs_rows_is_found(monkeypatch, mode):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    monkeypatch.setattr(Persons, "shares", property(lambda self: np.ones(self.codes.size)))
    assert change_of(monkeypatch, 50, True, grad_sample_mode=mode) > 10.0


@pytest.mark.parametrize("k", [1, 3, 7, 49, 5000, 2**17 + 1])
def test_weights_of_a_person_sum_to_one_at_most(k):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    persons = persons_of(np.repeat([0, 1], [k, 3]), np.zeros(k + 3))
    shares = private_net_module.shares_of(persons)
    assert (shares == shares.astype(np.float32)).all()
    assert k * float(shares[0]) <= 1.0
    assert k * float(shares[0]) > 1.0 - 1e-3


@pytest.mark.parametrize("way", WAYS)
def test_neither_ids_nor_copies_of_rows_matter(way):
    settings = WAYS[way]
    given = person_net(**settings).fit(X, Y, groups=IDS)
    renamed = person_net(**settings).fit(X, Y, groups=[f"{(7 * one) % 41}x" for one in IDS])
    np.testing.assert_array_equal(weights_of(renamed), weights_of(given))
    thrice = person_net(**settings).fit(np.tile(X, (3, 1)), np.tile(Y, 3), groups=np.tile(IDS, 3))
    np.testing.assert_allclose(weights_of(thrice), weights_of(given), rtol=0, atol=2e-4)
    assert str(thrice.plan_) == str(given.plan_)
    assert str(thrice.privacy_) == str(given.privacy_)
    assert set(vars(thrice)) == set(vars(given))
    assert thrice.lr_ == given.lr_


def test_rows_without_an_id_are_left_out():
    given = person_net().fit(X, Y, groups=IDS.astype(object))
    rows = np.concatenate([np.full((2, 4), np.nan), X, np.full((1, 4), 9.0)])
    both = person_net().fit(rows, [1, 0, *Y, 1], groups=[None, True, *IDS.tolist(), np.nan])
    np.testing.assert_array_equal(weights_of(both), weights_of(given))


def test_persons_are_drawn_and_set_all_sizes(batches):
    net = person_net(batch_size=0.25, sampling="fixed", grad_sample_mode="hooks").fit(
        X, Y, groups=IDS
    )
    assert (net.plan_.n_samples, net.plan_.batch_size) == (P, 10)
    known = {row.tobytes(): person for row, person in zip(X.astype(np.float32), IDS, strict=True)}
    for inputs in batches:
        people = [known[row.tobytes()] for row in inputs.numpy()]
        drawn = set(people)
        assert len(drawn) == 10
        assert len(people) == np.isin(IDS, list(drawn)).sum()


def test_all_nets_and_forms_of_rows_take_persons():
    for net in (
        DPNeuralNetRegressor(target_bound=3.0, delta=1e-3, max_epochs=5, random_state=0),
        DPNeuralNetBinaryClassifier(
            delta=1e-3, classes=[0, 1], module=LogisticHead, random_state=0
        ),
    ):
        targets = X[:, 0] if isinstance(net, DPNeuralNetRegressor) else Y
        fitted = net.fit(X, targets, groups=IDS)
        assert fitted.privacy_.neighbouring == PERSON
        assert fitted.plan_.n_samples == P
    images = np.random.default_rng(0).uniform(size=(IDS.size, 1, 8, 8)).astype(np.float32)
    net = DPNeuralNetClassifier(SmallCNN, delta=1e-3, classes=[0, 1], max_epochs=1)
    assert net.fit(images, Y, groups=IDS).privacy_.neighbouring == PERSON
    hidden = person_net(n_public=30).fit(X, Y, groups=[None] * len(X))
    assert np.isfinite(weights_of(hidden)).all()
    with pytest.raises(ValueError, match="must be as long as X") as error:
        person_net().fit(X, Y[1:], groups=IDS)
    assert str(len(X)) not in str(error.value)


@pytest.mark.parametrize("fit_many", [DPNeuralNetClassifier.fit_many, PopulationTrainer().fit])
def test_nets_of_persons_are_trained_together_as_alone(fit_many):
    # Theorem U2, Theorem P14.
    ways = [WAYS["poisson"], WAYS["weighted"], {"lr": 0.1}, {"module": Plain}]
    nets = fit_many([person_net(**way) for way in ways], X, Y, groups=IDS.astype(str))
    for way, net in zip(ways, nets, strict=True):
        alone = person_net(**way).fit(X, Y, groups=IDS)
        np.testing.assert_allclose(weights_of(net), weights_of(alone), rtol=0, atol=1e-5)
        assert str(net.privacy_) == str(alone.privacy_)
        assert str(net.plan_) == str(alone.plan_)


def test_a_ledger_records_each_of_many_nets_by_persons():
    ledger = PrivacyLedger(":memory:", "visits", epsilon=9.0, delta=1e-2)
    with ledger:
        DPNeuralNetClassifier.fit_many([person_net(), person_net(lr=0.1)], X, Y, groups=IDS)
        for wrong in (IDS[1:], [None] * len(X)):
            with pytest.raises(ValueError, match="groups must"):
                DPNeuralNetClassifier.fit_many([person_net()], X, Y, groups=wrong)
    assert [record.neighbouring for record in ledger.history()] == [PERSON, PERSON]
    assert [record.details["n_samples"] for record in ledger.history()] == [P, P]


@pytest.mark.parametrize("count", [2, 5000])
def test_nets_protect_whole_persons(count):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    net = person_net(module=MLP(hidden=(3,)), random_state=None, batch_size=P, max_epochs=2)
    person = np.tile([[5.0, -5.0, 5.0, 5.0]], (count, 1)), np.zeros(count, dtype=int)
    replay = replay_neighbours(net, X, Y, person, groups=IDS, n_repeats=6, random_state=1)
    assert replay.findings == []


@pytest.mark.slow
@pytest.mark.parametrize("weighs_rows", [False, True])
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_audits_refute_only_nets_that_weigh_rows(name, weighs_rows, monkeypatch):
    # Theorem P14: a record may be a person with all rows, who counts by a mean of the rows.
    if weighs_rows:
        shares = property(lambda self: np.ones(self.codes.size))
        monkeypatch.setattr(Persons, "shares", shares)
    settings = {"optimizer": "auto", "batch_size": "auto"} if name == "adam" else {"lr": 0.1}
    net = DPNeuralNetClassifier(
        LogisticHead, delta=1e-5, classes=[0, 1], max_epochs=4, **{"batch_size": 30, **settings}
    )
    rows = np.zeros((30, 2))
    result = audit_epsilon(net, rows, groups=np.arange(30), n_trials=2000, random_state=0)
    assert result.is_refuted == weighs_rows
