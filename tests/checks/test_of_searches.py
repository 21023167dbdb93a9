"""Spaces, and values that were set by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import uniform

from skdptune import DPGridSearchCV, check
from skdptune.ledger import PrivacyLedger, config_context
from tests.checks.examples import model, named, random_search


def places(search: Any) -> list[str]:
    found = [one.place for one in check(search) if one.code == "SKP014"]
    return [place.partition(".")[2] for place in found]


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        ({"C": [None, 1.0]}, []),
        ({"C": uniform(0.1, 1.0)}, []),
        ({"C": [1.0]}, ["param_distributions"]),
        ([{"C": [1.0]}, {"C": [None, 1.0]}], ["param_distributions"]),
        ({"C": [0.1, 1.0]}, ['param_distributions["C"]']),
        ({"C": np.array([0.1, 1.0])}, ['param_distributions["C"]']),
        ({"C": [1.0], "tol": uniform(0.0, 1e-3)}, ['param_distributions["C"]']),
        ({"none": [1.0, 2.0]}, []),
        (None, []),
    ],
    ids=["own", "drawn", "single", "several", "listed", "array", "beside", "unknown", "none"],
)
def test_spaces_are_read_in_every_form(space: Any, expected: list[str]) -> None:
    assert places(random_search(space=space)) == expected


def test_own_values_of_steps_are_known_by_their_names() -> None:
    search = random_search(
        named("passthrough", C=0.3), {"fit__C": [0.3, 1.0], "fit__tol": [0, 1e-3]}
    )
    assert places(search) == ['param_distributions["fit__tol"]']


@pytest.mark.parametrize("selection", ["auto", "table", "noisy_max", "compose"])
def test_table_tries_own_values_by_itself(selection: str) -> None:
    search = DPGridSearchCV(model(), {"C": [0.1, 1.0]}, epsilon=1.0, selection=selection)
    tries = selection in ("auto", "table")
    assert places(search) == ([] if tries else ['param_grid["C"]'])
    search.set_params(try_own_values=False)
    assert places(search) == ['param_grid["C"]']


def test_ledger_that_is_in_use_adds_up_what_is_tuned_by_hand() -> None:
    ledger = PrivacyLedger(":memory:", "patients", epsilon=10.0, delta=1e-5)
    with config_context(ledger=ledger):
        assert check(model(C=0.5)).codes == ()
    assert check(model(C=0.5, ledger=ledger)).codes == ()
    assert check(model(C=0.5)).codes == ("SKP010",)


def test_values_that_are_public_knowledge_are_not_tuned() -> None:
    known = model(data_norm=2.0, class_weight={0: 1.0, 1: 2.0}, epsilon=0.5, delta=1e-6)
    assert check(known).codes == ()
    (finding,) = check(model(C=0.5, solver="sgd", epochs=3))
    assert (finding.code, finding.kind) == ("SKP010", "tip")
    assert finding.found == "C and epochs and solver are not as by default"
