"""The steps of epochs add up, whatever their number."""

import math

import pytest

from skdptune.neural_network._population._training_run import steps_of_epochs


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
