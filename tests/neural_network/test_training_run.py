"""Training runs can be restarted; the steps of epochs add up to all steps."""

import math

import pytest

from skdptune.neural_network._training_run import steps_of_epochs
from tests.neural_network.nets import data, net_of


@pytest.mark.parametrize(
    ("steps", "epochs", "wanted"),
    [
        (10, 2, [5, 5]),
        (10, 3, [4, 3, 3]),
        (10, 2.5, [4, 4, 2]),
        (3, 0.2, [3]),
        (1, 1e-9, [1]),
        (2, 4, [1, 0, 1, 0]),
    ],
)
def test_steps_of_epochs(steps, epochs, wanted):
    assert list(steps_of_epochs(steps, epochs)) == wanted


@pytest.mark.parametrize("steps", [1, 7, 10, 100])
@pytest.mark.parametrize("epochs", [0.3, 1, 2, 3.5, 40])
def test_steps_of_epochs_add_up(steps, epochs):
    counts = list(steps_of_epochs(steps, epochs))
    assert sum(counts) == steps
    assert min(counts) >= 0
    assert len(counts) == max(1, math.ceil(epochs))


def test_a_restarted_run_repeats_its_draws_and_leaves_the_run_as_it_is():
    run = net_of(random_state=None)._training_run(*data(60))
    draws = [run.restarted().rng.random() for _ in range(2)]
    assert draws == [run.rng.random()] * 2
    assert run.restarted().X is run.X
