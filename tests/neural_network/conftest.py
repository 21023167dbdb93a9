"""One thread for every test of nets, and a record of the batches that a fit draws."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from skdptune.neural_network import _training_loop


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    # No verdict may depend on the number of threads, and other tests need theirs.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def batches(monkeypatch):
    """Return the inputs of every step that is taken."""
    seen = []
    step = _training_loop.NoisySteps.step

    def recorded(engine, inputs, targets):
        seen.append(inputs.clone())
        step(engine, inputs, targets)

    monkeypatch.setattr(_training_loop.NoisySteps, "step", recorded)
    return seen
