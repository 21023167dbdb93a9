"""Parameters on which the cost may depend."""

from __future__ import annotations

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.base import cost_parameters
from tests.model_selection.learners import Scripted


def test_parameters_that_set_the_cost() -> None:
    pipeline = make_pipeline(Normalizer(), Scripted())
    names = ["scripted__quality", "scripted__delta", "normalizer__norm"]
    # The cost of a step that declares nothing may depend on everything.
    assert cost_parameters(pipeline, names) == {"scripted__delta", "normalizer__norm"}
