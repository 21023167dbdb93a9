"""Records, labels and targets of any usual kind."""

import numpy as np
import pytest
import torch

from skdptune.neural_network._inputs import as_array, as_columns, codes_of, own_array


def test_tensors_become_arrays_and_others_stay():
    weights = torch.ones(2, requires_grad=True)
    assert isinstance(as_array(weights), np.ndarray)
    values = [1, 2]
    assert as_array(values) is values


def test_codes_are_positions_among_the_classes():
    classes = np.array(["a", "b", "d"])
    np.testing.assert_array_equal(codes_of(np.array(["d", "a", "d"]), classes), [2, 0, 2])
    assert codes_of(np.array([], dtype=str), classes).dtype == np.int64


@pytest.mark.parametrize(
    "given", [np.ones((2, 3)), np.ones((3, 2)).T, np.ones((2, 3), np.float32), [[1.0], [2.0]]]
)
def test_arrays_are_not_the_callers(given):
    rows = np.asarray(given)
    own = own_array(rows, given)
    np.testing.assert_array_equal(own, rows)
    assert own.flags.c_contiguous
    assert own.flags.writeable
    assert not np.may_share_memory(own, rows)


def test_targets_become_columns():
    assert as_columns(np.arange(3)).shape == (3, 1)
    assert as_columns(np.zeros((3, 2))).dtype == np.float32
