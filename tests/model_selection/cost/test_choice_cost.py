"""The cost of a choice by utilities on partitions, and of one fit (Theorem F5)."""

from __future__ import annotations

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.model_selection import DPGridSearchCV
from skdptune.model_selection._cost import CostModel
from tests.flat import flat
from tests.model_selection.learners import Scripted

DELTA = 1e-5


def model(**more: object) -> CostModel:
    search = flat(DPGridSearchCV, Scripted(delta=DELTA), {"quality": [0.1, 0.9]}, **more)
    return search._make_plan(1000, 3).model


def test_total_composes_the_choice_and_the_fit() -> None:
    found = model(selection_epsilon=0.3, n_partitions=5)
    cost = found.at(None)
    # A training record pays for the choice and the fit, a validation record for no more.
    fit = Scripted(delta=DELTA).privacy_profile(1)
    assert cost.total.epsilon(DELTA) <= (PrivacyProfile.pure(0.3) + fit).epsilon(DELTA) + 1e-9
    assert cost.total.epsilon(DELTA) > fit.epsilon(DELTA)
    assert cost.fit == cost.final == fit


def test_without_a_final_fit_the_choice_is_all() -> None:
    cost = model(selection_epsilon=0.3, refit=False).at(None)
    assert cost.final is None
    assert cost.total.epsilon(0.0) == pytest.approx(0.3, rel=1e-6)


@pytest.mark.parametrize(("total", "wanted"), [(2.0, 0.5), (None, 0.25)])
def test_by_default_a_choice_costs_a_quarter(total: float | None, wanted: float) -> None:
    assert model(epsilon=total, strategy="noisy_max").solved.epsilon == pytest.approx(
        wanted, rel=1e-3
    )
