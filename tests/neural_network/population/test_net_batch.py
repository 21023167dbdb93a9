"""Steps of several replicas: batches, noise, checks, and when each of them ends."""

import numpy as np
import pytest
import torch

from skdptune.neural_network._noisy_steps import NotPrivateError
from skdptune.neural_network._population._net_batch import NetBatch, Replica
from skdptune.neural_network._population._stacked_gradients import stacked_gradients
from tests.neural_network.nets import data, net_of, weights_of

X, Y = data(90)


def replicas_of(nets, targets=None):
    made = []
    for place, net in enumerate(nets):
        run = net._training_run(X, Y if targets is None else targets[place])
        with net._seeded_torch(run.rng):
            net._start(run)
        made.append(Replica(net, run))
    return made


def net_batch_of(replicas, length=10**9):
    first = replicas[0]
    gradients = stacked_gradients(
        [replica.net.module_ for replica in replicas],
        first.net._losses,
        torch.rand(4),
        torch.zeros((), dtype=torch.long),
    )
    return NetBatch(replicas, first.run.X, gradients, lambda size: length)


def test_batches_are_those_of_the_training_run():
    (sampled,) = replicas_of([net_of(batch_size=30)])
    sampled.begin()
    assert sampled.draw_batch()
    assert sampled.row_numbers().tolist() == sampled.rows.tolist()
    (full,) = replicas_of([net_of(batch_size=1.0, max_epochs=1)])
    full.begin()
    assert full.draw_batch() and full.row_numbers().tolist() == list(range(90))
    assert not full.draw_batch()


@pytest.mark.parametrize("length", [1, 7, 10**9])
def test_replicas_end_with_their_training_runs(length):
    nets = [net_of(random_state=seed, max_epochs=seed + 1) for seed in range(3)]
    replicas = replicas_of(nets)
    net_batch_of(replicas, length).train()
    for replica in replicas:
        assert replica.steps_taken == replica.run.plan.steps
    for seed, net in enumerate(nets):
        alone = net_of(random_state=seed, max_epochs=seed + 1).fit(X, Y)
        assert np.allclose(weights_of(net), weights_of(alone), atol=1e-5)


def test_replicas_may_have_targets_of_their_own():
    nets = [net_of(random_state=seed) for seed in range(2)]
    replicas = replicas_of(nets, targets=(Y, 1 - Y))
    net_batch_of(replicas).train()
    alone = net_of(random_state=1)
    run = alone._training_run(X, 1 - Y)
    alone._train_alone(run)
    assert np.allclose(weights_of(nets[1]), weights_of(alone), atol=1e-5)


def test_steps_are_checked_at_powers_of_two(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "skdptune.neural_network._population._net_batch.check_step",
        lambda *arguments: seen.append(arguments[-1]),
    )
    replicas = replicas_of([net_of(batch_size=10, max_epochs=1)])
    net_batch_of(replicas).train()
    assert replicas[0].steps_taken == 9
    # Steps 1, 2, 4 and 8.
    assert len(seen) == 4


def test_weights_are_erased_if_a_step_is_not_private(monkeypatch):
    def refuse(*arguments):
        raise NotPrivateError("no")

    monkeypatch.setattr("skdptune.neural_network._population._net_batch.check_step", refuse)
    replicas = replicas_of([net_of(random_state=seed) for seed in range(2)])
    with pytest.raises(NotPrivateError):
        net_batch_of(replicas).train()
    assert not any(weights_of(replica.net).any() for replica in replicas)


def test_ending_twice_changes_nothing():
    (replica,) = replicas_of([net_of()])
    replica.end()
    before = replica.parameters[0].data_ptr()
    replica.end()
    assert replica.parameters[0].data_ptr() == before
