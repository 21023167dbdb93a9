"""The settings that the parts of a Pareto search read are parameters of the search."""

from __future__ import annotations

from skdptune.model_selection import DParetoSearchCV
from skdptune.model_selection._pareto._settings import ParetoSettings
from tests.model_selection.learners import Scripted


def test_a_search_has_all_settings() -> None:
    names = set(ParetoSettings.__annotations__)
    search = DParetoSearchCV(Scripted(), {"quality": (0.1, 0.9)})
    parameters = search.get_params(deep=False)
    assert names <= set(parameters)
    # What the parts get beside the settings: families, scorer, layout of the records, ledger.
    others = {"estimator", "param_space", "scoring", "cv", "n_public", "ledger", "verbose"}
    assert set(parameters) - names == others
