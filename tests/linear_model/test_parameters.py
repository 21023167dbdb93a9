"""Parameters that are refused together; each by itself is tested with the classifiers."""

import numpy as np
import pytest

from skdptune.linear_model import DPLinearSVC, DPLogisticRegression

SIZE_NEEDED = [
    ({"solver": "psgd"}, "n_public must be None with solver='psgd'.*Use another solver"),
    ({"solver": "sgd", "sampling": "fixed"}, "n_public must be None with sampling='fixed'"),
    ({"solver": "adam", "sampling": "fixed"}, "Use sampling='poisson' or 'allocation'"),
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
    unused = "fixed" if solver in ("objective", "output") else "poisson"
    for sampling in (unused, "allocation"):
        DPLinearSVC(solver=solver, sampling=sampling, n_public=100).privacy_profile(100, 2)


@pytest.mark.parametrize(
    ("value", "kind"), [(0, ValueError), (-3, ValueError), (10.0, TypeError), (True, TypeError)]
)
def test_public_size_is_a_positive_integer(value, kind):
    with pytest.raises(kind, match="n_public must be an integer of at least 1"):
        DPLogisticRegression(n_public=value).privacy_profile(100, 2)


def test_numpy_numbers_are_accepted():
    DPLogisticRegression(n_public=np.int64(10), C=np.float64(0.5)).privacy_profile(100, 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "objective"}, "epochs must be a number with solver='objective'; got 'max'"),
        ({"solver": "psgd"}, "epochs must be a number with solver='psgd'.*'sgd' or 'adam'"),
        ({"noise_multiplier": None}, "noise_multiplier must be a number.*follows from"),
        ({"noise_multiplier": -1.0}, "noise_multiplier must be a number"),
        ({"epsilon": None}, "epsilon must be a number.*follows from noise_multiplier, epsilon"),
        ({"epsilon": float("inf")}, "epsilon must be a number"),
        ({"delta": 0.0}, "delta must be a number"),
        ({"epochs": "most"}, "epochs must be a number.*Or 'max', beside noise_multiplier"),
    ],
)
def test_most_steps_need_a_noise_and_a_budget(parameters, message):
    settings = {"solver": "sgd", "epochs": "max", "noise_multiplier": 2.0, **parameters}
    for kind in (DPLogisticRegression, DPLinearSVC):
        with pytest.raises((ValueError, TypeError), match=message):
            kind(**settings).privacy_profile(100, 3)
        with pytest.raises((ValueError, TypeError), match=message):
            kind(**settings).fit("no data at all", "no labels")
