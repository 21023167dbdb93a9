"""Parameters that are refused together; each by itself is tested with the classifiers."""

import numpy as np
import pytest

from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.linear_model._parameters import check_parameters

SIZE_NEEDED = [
    ({"solver": "psgd"}, "n_public must be None with solver='psgd'.*Use another solver"),
    ({"solver": "sgd", "sampling": "fixed"}, "n_public must be None with sampling='fixed'"),
    ({"solver": "adam", "sampling": "fixed"}, "Use sampling='poisson'"),
]


@pytest.mark.parametrize(("parameters", "message"), SIZE_NEEDED)
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC])
def test_size_is_not_hidden_from_a_proof_that_needs_it(kind, parameters, message):
    model = kind(**parameters, n_public=100)
    with pytest.raises(ValueError, match=message):
        model.privacy_profile(100, 3)
    with pytest.raises(ValueError, match=message):
        model.fit("no data at all", "no labels")
    model.set_params(n_public=None).privacy_profile(100, 3)


@pytest.mark.parametrize("solver", ["objective", "output", "sgd", "adam"])
def test_size_may_be_hidden_otherwise(solver):
    sampling = "fixed" if solver in ("objective", "output") else "poisson"
    check_parameters(DPLinearSVC(solver=solver, sampling=sampling, n_public=100))


@pytest.mark.parametrize(
    ("value", "kind"), [(0, ValueError), (-3, ValueError), (10.0, TypeError), (True, TypeError)]
)
def test_public_size_is_a_positive_integer(value, kind):
    with pytest.raises(kind, match="n_public must be an integer of at least 1"):
        check_parameters(DPLogisticRegression(n_public=value))


def test_numpy_numbers_are_accepted():
    check_parameters(DPLogisticRegression(n_public=np.int64(10), C=np.float32(0.5)))
