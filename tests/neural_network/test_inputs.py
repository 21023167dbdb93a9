"""Records, labels and targets of any usual kind."""

import numpy as np
import pytest
import torch

from skdptune.neural_network._inputs import as_array, as_columns, codes_of


def test_tensors_become_arrays_and_others_stay():
    weights = torch.ones(2, requires_grad=True)
    assert isinstance(as_array(weights), np.ndarray)
    values = [1, 2]
    assert as_array(values) is values


def test_codes_are_positions_among_the_classes():
    classes = np.array(["a", "b", "d"])
    np.testing.assert_array_equal(codes_of(np.array(["d", "a", "d"]), classes), [2, 0, 2])
    assert codes_of(np.array([], dtype=str), classes).dtype == np.int64


@pytest.mark.parametrize("label", ["c", "e", "A"])
def test_unnamed_labels_are_refused(label):
    with pytest.raises(ValueError, match="only labels named in classes"):
        codes_of(np.array(["a", label]), np.array(["a", "b", "d"]))


def test_targets_become_columns():
    assert as_columns(np.arange(3)).shape == (3, 1)
    assert as_columns(np.zeros((3, 2))).dtype == np.float32
