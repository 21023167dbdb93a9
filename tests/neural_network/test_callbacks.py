"""Which callbacks are allowed: those that read no data."""

import pytest
from skorch.callbacks import (
    Callback,
    Checkpoint,
    EarlyStopping,
    EpochScoring,
    LRScheduler,
    PassthroughScoring,
)
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

from skdptune.neural_network._callbacks import check_callbacks


class Vouched(Callback):
    data_independent = True


class Unknown(Callback):
    pass


class Subclass(LRScheduler):
    """A subclass may do anything."""


@pytest.mark.parametrize(
    "callbacks",
    [
        None,
        "disable",
        [],
        [LRScheduler],
        [LRScheduler(policy=StepLR, step_size=1)],
        [("schedule", LRScheduler(policy="StepLR", step_size=1)), Vouched, Vouched()],
        [("removed", None)],
    ],
)
def test_callbacks_without_data_pass(callbacks):
    check_callbacks(callbacks)


@pytest.mark.parametrize(
    "callback",
    [
        EarlyStopping(),
        EarlyStopping,
        EpochScoring("accuracy"),
        PassthroughScoring("train_loss"),
        Checkpoint(),
        Unknown(),
        Subclass(),
        LRScheduler(policy=ReduceLROnPlateau),
        LRScheduler(policy="ReduceLROnPlateau"),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_callbacks_that_read_data_are_refused(callback, named):
    with pytest.raises(ValueError, match="callbacks must not depend on the data; got .*charged"):
        check_callbacks([("name", callback) if named else callback])


def test_a_callback_outside_of_a_list_is_refused():
    with pytest.raises(TypeError, match="callbacks must be a list, or None; got LRScheduler"):
        check_callbacks(LRScheduler())
