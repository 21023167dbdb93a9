"""What is noted before a fit is spent, whoever noted it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from unittest import mock

import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdptune.model_selection import DPAdaptiveSearchCV
from skdptune.model_selection._adaptive._studies import described
from skdptune.model_selection._study import Begun, Journal
from tests.model_selection.learners import Scripted

PLAN = {"n_trials": "2", "epsilon": "1.0"}


class Study:
    """A study's attributes; `before_look` is called once, before they are next read."""

    study_name = "search"

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.before_look: Any = None

    @property
    def user_attrs(self) -> dict[str, Any]:
        before, self.before_look = self.before_look, None
        if before is not None:
            before()
        return dict(self.kept)

    def set_user_attr(self, name: str, value: Any) -> None:
        self.kept[name] = value


def opened(study: Study) -> Journal:
    journal = Journal(study)
    journal.open(PLAN)
    return journal


def trial(run: str, *shares: int) -> Begun:
    return Begun(run, 0, {"C": 0.1}, tuple(map(Fraction, shares)))


def outcome(act: Any) -> str:
    try:
        act()
    except RuntimeError:
        return "refused"
    return "made"


def test_what_is_begun_is_read_back() -> None:
    study = Study()
    journal = opened(study)
    journal.begin(trial("a", 1), 2)
    journal.begin(trial("a", 1, 1), 2)
    assert Journal(study).begun() == [trial("a", 1, 1)]


def test_more_than_is_paid_for_is_refused() -> None:
    journal = opened(Study())
    journal.begin(trial("a", 1), 2)
    journal.begin(trial("b", 1), 2)
    with pytest.raises(RuntimeError, match="got more than was paid for"):
        journal.begin(trial("c", 1), 2)


def test_no_two_processes_make_more_than_one_may() -> None:
    # Theorem G6: the notes alone keep the sum, also where nobody sees who has taken over.
    for interleaved in (False, True):
        study = Study()
        first, second = opened(study), opened(study)
        study.kept["process"] = mock.ANY
        found = []
        second_begins = lambda s=second, f=found: f.append(  # noqa: E731
            outcome(lambda: s.begin(trial("b", 1), 1))
        )
        if interleaved:
            study.before_look = second_begins
        found.append(outcome(lambda j=first: j.begin(trial("a", 1), 1)))
        if not interleaved:
            second_begins()
        assert found.count("made") <= 1
        finals = []
        second_ends = lambda s=second, f=finals: f.append(outcome(s.begin_final))  # noqa: E731
        if interleaved:
            study.before_look = second_ends
        finals.append(outcome(first.begin_final))
        if not interleaved:
            second_ends()
        assert finals.count("made") <= 1


def test_who_was_taken_over_from_makes_nothing_more() -> None:
    study = Study()
    first = opened(study)
    second = opened(study)
    for act in (lambda: first.begin(trial("a", 1), 2), first.begin_final):
        with pytest.raises(RuntimeError, match="storage must be used by one process at a time"):
            act()
    # What the first has noted counts, although it was refused.
    assert [one.run for one in second.begun()] == ["a"]


def test_after_the_final_fit_nothing_is_resumed() -> None:
    study = Study()
    opened(study).begin_final()
    with pytest.raises(ValueError, match="Its final fit is spent, whether or not it came to"):
        opened(study)


def test_another_plan_is_refused_by_name() -> None:
    study = Study()
    opened(study)
    with pytest.raises(ValueError, match="with the same epsilon; got 'search', which is one of"):
        Journal(study).open(PLAN | {"epsilon": "2.0"})
    with pytest.raises(ValueError, match="the same cv, n_trials; got"):
        Journal(study).open({"epsilon": "1.0", "cv": "3"})


def test_descriptions_are_those_of_other_processes() -> None:
    assert described(lambda: 0) == described(lambda: 0)
    assert described(0.1) != described(0.2)


def test_long_parameters_are_described_to_their_end() -> None:
    # Theorem G6: what is resumed was paid for as it is.
    def model(last: str) -> Pipeline:
        names = [f"column_{number}" for number in range(200)]
        step = FunctionTransformer(kw_args={"names": [*names, last]})
        return Pipeline([("step", step), ("clf", Scripted())])

    assert described(model("a")) == described(model("a"))
    assert described(model("a")) != described(model("b"))


def test_how_the_budget_is_divided_is_part_of_the_plan() -> None:
    # Theorem G6.
    settings = {"epsilon": 1.0, "delta": 1e-5, "n_trials": 4}
    plans = []
    for more in ({}, {"refit": False}, {"noise_limit": 1.5}):
        search = DPAdaptiveSearchCV(Scripted(), {"quality": [0.1, 0.9]}, **settings, **more)
        plan = search._public_plan(search._make_plan(500, 3))
        plans.append((plan["final fit"], plan["cost of a fit"], plan["noise of a score"]))
    assert len(set(plans)) == 3
