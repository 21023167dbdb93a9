"""What is settled before data, and what the report says of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.model_selection import DParetoSearchCV
from skdptune.model_selection._pareto._plan import Affordable, Study, study_report
from tests.model_selection.learners import Scripted

SPACE = {"epsilon": (0.1, 4.0, "log"), "quality": (0.5, 0.9)}


def within(**more: Any) -> tuple[Any, Any]:
    search = DParetoSearchCV(Scripted(delta=1e-7), SPACE, n_initial=4, n_iter=4, **more)
    return search, search._make_plan(500, 3)


def test_unreleased_study_protects_nothing() -> None:
    search, study = within()
    assert study.plan is None
    assert math.isinf(study.total.epsilon(0.9))
    report = study_report(search, study)
    assert math.isinf(report.epsilon) and "NOT PRIVATE" in str(report)
    with pytest.raises(ValueError, match="study must have a plan of its release"):
        Affordable(study)


def test_released_study_is_a_tree() -> None:
    search, study = within(release=8.0, refit=1.0)
    report = study_report(search, study)
    assert [part.name for part in report.parts] == ["evaluations", "scores", "final fit"]
    assert (report.epsilon, report.delta) == (9.0, 1e-5)
    assert report.epsilon_spent <= 9.0
    assert report.parts[2].profile == PrivacyProfile.approximate(1.0, 5e-6)
    assert "NOT PRIVATE" not in str(report)
    assert "Rényi filter of order" in str(report)


def test_proposals_are_charged_and_refused() -> None:
    _, study = within(release=8.0)
    ask = Affordable(study)
    cheap, dear = {"epsilon": 0.2, "quality": 0.5}, {"epsilon": 4.0, "quality": 0.5}
    answers = [ask(dear) for _ in range(6)]
    # Yes at first, and never again after the first no.
    assert answers[0] and not answers[-1]
    assert answers == sorted(answers, reverse=True)
    left = sum(answers)
    assert [ask(cheap) for _ in range(8 - left)] == [True] * (8 - left)
    # Eight were wanted.
    assert not ask(cheap)


def test_bad_parameters_are_refused_without_a_charge() -> None:
    _, study = within(release=8.0)
    ask = Affordable(study)
    assert not ask({"epsilon": -1.0, "quality": 0.5})
    assert not ask({"epsilon": "much", "quality": 0.5})
    assert ask._budget.n_charged == 0


def test_what_is_settled_is_kept() -> None:
    one, first = within(release=8.0)
    _, second = within(release=8.0)
    assert first is second
    assert one.set_params(release=7.0)._make_plan(500, 3) is not first
    assert isinstance(first, Study)
