"""What a Pareto search settles before it sees data, and the report of what that costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base import PUBLIC_LABELS, PUBLIC_SIZE, SEEDED
from skdptune.model_selection._cost import Layout
from skdptune.model_selection._pareto._evaluation import EvaluationCosts
from skdptune.model_selection._pareto._families import Families
from skdptune.model_selection._pareto._release import ReleasePlan, plan_release
from skdptune.model_selection._running import PUBLIC_VALIDATION, Quiet

_CURATOR = (
    "NOT PRIVATE: the front and all that led to it are exact, for the curator's eyes alone; "
    "release=epsilon prices them"
)
_OF_A_POINT = "the epsilon of a point is that of its model; whoever fits one pays it besides"
# Points of the space at which a release is planned.
_PROBES = 16
_UNPROTECTED = PrivacyProfile.approximate(0.0, 1.0)


@dataclass(frozen=True)
class Study:
    """All that is settled before the data are read.

    Attributes
    ----------
    pricing : Pricing
    plan : ReleasePlan or None
        None where nothing is released.
    """

    costs: EvaluationCosts
    plan: ReleasePlan | None

    @property
    def layout(self) -> Layout:
        """How the records are divided."""
        return self.costs.layout

    @property
    def delta(self) -> float:
        """At which the total is stated."""
        return self.costs.delta

    @property
    def total(self) -> PrivacyProfile:
        """What everything that is shown costs."""
        return _UNPROTECTED if self.plan is None else self.plan.total


def settle_pareto(search: Any, families: Families, layout: Layout, classes: Any) -> Study:
    """Return what the parameters of a search settle, or raise for what cannot be priced."""
    costs = EvaluationCosts(families, layout, float(search.delta), search.privacy, classes)
    if search.release is None:
        with Quiet():
            _probed(costs, costs.final, 1)
        return Study(costs, None)
    # dp_accounting reports on each fractional order.
    wanted = _PROBES if families.set_the_cost else 1
    with Quiet():
        plan = plan_release(
            layout,
            float(search.release),
            float(search.delta),
            search.n_initial + search.n_iter,
            search.n_repeats,
            _probed(costs, costs.of_evaluation, wanted),
            n_initial=search.n_initial,
            is_equal=not families.set_the_cost,
            follows_scores=search.sampler not in ("random", "grid"),
            final=None if search.refit is False else float(search.refit),
        )
    return Study(costs, plan)


def _probed(
    costs: EvaluationCosts, of: Callable[[dict[str, Any]], PrivacyProfile], wanted: int
) -> list[PrivacyProfile]:
    """Return what fits cost at some points of the space, the same each time."""
    found, problems = [], []
    rng = np.random.default_rng(0)
    for _ in range(_PROBES):
        try:
            found.append(of(costs.families.space.sample(rng)))
        except Exception as problem:
            problems.append(problem)
        if len(found) == wanted:
            break
    if not found:
        raise problems[0]
    return found


class Affordable:
    """Charges each proposal to the budget of a release; says no to what cannot be priced.

    Parameters
    ----------
    study : Study
    """

    def __init__(self, study: Study) -> None:
        if study.plan is None:
            raise ValueError("study must have a plan of its release; got none.")
        self._costs, self._budget = study.costs, study.plan.budget()

    def __call__(self, params: dict[str, Any]) -> bool:
        """Say whether parameters may be evaluated, and charge them if so."""
        with Quiet():
            try:
                self._costs(params)
                fit = self._costs.of_evaluation(params)
            except Exception:
                # What is known of a price before data, and fails, is a public matter.
                return False
            return self._budget.charge(fit)


def study_report(search: Any, study: Study) -> PrivacyReport:
    """Return what everything that a search shows costs, as a tree."""
    asked: float | None = None
    shown: tuple[PrivacyReport, ...] = ()
    if study.plan is not None:
        asked, shown = float(search.release), study.plan.parts
        if search.refit is not False:
            asked += float(search.refit)
            shown = (*shown, PrivacyReport(study.plan.final, search.delta, name="final fit"))
    return PrivacyReport(
        study.total,
        float(search.delta),
        epsilon=asked,
        name=type(search).__name__,
        parts=shown,
        assumptions=_sentences(search, study),
    )


def _sentences(search: Any, study: Study) -> tuple[str, ...]:
    sentences = [_CURATOR] if study.plan is None else [_OF_A_POINT]
    sentences.append(PUBLIC_SIZE)
    if any(is_classifier(member) for member in study.costs.families):
        sentences.append(PUBLIC_LABELS)
    if study.costs.layout.public:
        sentences.append(PUBLIC_VALIDATION)
    if search.random_state is not None:
        sentences.append(SEEDED)
    return tuple(sentences)
