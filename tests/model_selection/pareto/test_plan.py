"""The plan that is made before the data, its report, and the filter of proposals."""

from __future__ import annotations

import math
from typing import Any

import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.model_selection import DParetoSearchCV
from skdptune.model_selection._pareto._plan import ParetoPlan, ProposalFilter
from tests.model_selection.learners import Scripted

SPACE = {"epsilon": (0.1, 4.0, "log"), "quality": (0.5, 0.9)}


def within(**more: Any) -> tuple[Any, Any]:
    search = DParetoSearchCV(Scripted(delta=1e-7), SPACE, n_initial=4, n_iter=4, **more)
    return search, search._make_plan(500, 3)


def test_search_without_a_release_protects_nothing() -> None:
    search, plan = within()
    assert plan.release is None
    assert math.isinf(plan.total.epsilon(0.9))
    report = search._report(plan)
    assert math.isinf(report.epsilon) and "NOT PRIVATE" in str(report)
    with pytest.raises(ValueError, match="plan must be of a release"):
        ProposalFilter(plan)


def test_report_of_a_release_is_a_tree() -> None:
    search, plan = within(release=8.0, refit=1.0)
    report = search._report(plan)
    assert [part.name for part in report.parts] == ["evaluations", "scores", "final fit"]
    assert (report.epsilon, report.delta) == (9.0, 1e-5)
    assert report.epsilon_spent <= 9.0
    assert report.parts[2].profile == PrivacyProfile.approximate(1.0, 5e-6)
    assert "NOT PRIVATE" not in str(report)
    assert "Gaussian filter" in str(report)


def test_proposals_are_charged_and_refused() -> None:
    _, plan = within(release=8.0)
    ask = ProposalFilter(plan)
    cheap, expensive = {"epsilon": 0.2, "quality": 0.5}, {"epsilon": 4.0, "quality": 0.5}
    answers = [ask(expensive) for _ in range(6)]
    # Yes at first, and never again after the first no.
    assert answers[0] and not answers[-1]
    assert answers == sorted(answers, reverse=True)
    left = sum(answers)
    assert [ask(cheap) for _ in range(8 - left)] == [True] * (8 - left)
    # Eight were wanted.
    assert not ask(cheap)


def test_bad_parameters_are_refused_without_a_charge() -> None:
    _, plan = within(release=8.0)
    ask = ProposalFilter(plan)
    assert not ask({"epsilon": -1.0, "quality": 0.5})
    assert not ask({"epsilon": "much", "quality": 0.5})
    assert ask.budget.n_charged == 0


def test_plan_is_cached() -> None:
    one, first = within(release=8.0)
    _, second = within(release=8.0)
    assert first is second
    assert one.set_params(release=7.0)._make_plan(500, 3) is not first
    assert isinstance(first, ParetoPlan)
