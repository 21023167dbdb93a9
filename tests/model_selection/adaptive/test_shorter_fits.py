"""The first rungs have a share of the epochs, where these are counted."""

from __future__ import annotations

from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import pytest
from sklearn.pipeline import make_pipeline

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection._cost import FitSize
from skdptune.model_selection._strategies._adaptive_session import with_share
from skdptune.preprocessing import RowNormClipper

NINTH, SIZE = Fraction(1, 9), FitSize(1000, 1000, 3, False)


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [(18, 2), (4.5, 0.5), (3, 1), ("max", "max"), (None, None)],
)
def test_epochs_of_a_regression(epochs: Any, expected: Any) -> None:
    model = DPLogisticRegression(solver="sgd", epochs=epochs)
    found = with_share(model, {"learning_rate": 0.1}, NINTH, SIZE)
    assert found.get("epochs", epochs) == expected
    assert found["learning_rate"] == 0.1


def test_searched_epochs_are_scaled_and_the_candidate_stays() -> None:
    candidate = {"dplogisticregression__epochs": 27.0}
    model = make_pipeline(RowNormClipper(), DPLogisticRegression(solver="sgd"))
    found = with_share(model, candidate, NINTH, SIZE)
    assert found == {"dplogisticregression__epochs": 3.0}
    assert candidate == {"dplogisticregression__epochs": 27.0}
    assert with_share(model, candidate, Fraction(1), SIZE) is candidate


def test_what_has_no_epochs_stays_as_it_is() -> None:
    model = DPLogisticRegression(solver="output")
    assert with_share(model, {"C": 0.1}, NINTH, SIZE) == {"C": 0.1}


@pytest.mark.skipif(
    not all(map(find_spec, ("torch", "skorch", "opacus"))), reason="nets need torch"
)
def test_what_auto_stands_for_is_scaled() -> None:
    from skdptune.neural_network import DPNeuralNetClassifier, LogisticHead

    net = DPNeuralNetClassifier(LogisticHead)
    whole = net.tuning_parameters(1000, 1000)["max_epochs"]
    found = with_share(net, {}, NINTH, SIZE)["max_epochs"]
    assert found == max(1, round(whole / 9))
