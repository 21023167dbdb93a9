"""What a Pareto search settles before it sees data, and the report of what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import is_classifier

from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base._mixin import PUBLIC_SIZE, SEEDED
from skdptune.model_selection._domain import PUBLIC_LABELS, PUBLIC_VALIDATION
from skdptune.model_selection._pareto_evaluation import Pricing
from skdptune.model_selection._pareto_release import ReleasePlan
from skdptune.model_selection._quiet import Quiet

_CURATOR = (
    "NOT PRIVATE: the front and all that led to it are exact, for the curator's eyes alone; "
    "release=epsilon prices them"
)
_OF_A_POINT = "the epsilon of a point is that of its model; whoever fits one pays it besides"
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

    pricing: Pricing
    plan: ReleasePlan | None

    @property
    def total(self) -> PrivacyProfile:
        """What everything that is shown costs."""
        return _UNPROTECTED if self.plan is None else self.plan.total


class Affordable:
    """Charges each proposal to the budget of a release; says no to what cannot be priced.

    Parameters
    ----------
    study : Study
    """

    def __init__(self, study: Study) -> None:
        if study.plan is None:
            raise ValueError("study must have a plan of its release; got none.")
        self._pricing, self._budget = study.pricing, study.plan.budget()

    def __call__(self, params: dict[str, Any]) -> bool:
        """Say whether parameters may be evaluated, and charge them if so."""
        with Quiet():
            try:
                self._pricing(params)
                fit = self._pricing.of_evaluation(params)
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
    if any(is_classifier(member) for member in study.pricing.families):
        sentences.append(PUBLIC_LABELS)
    if study.pricing.layout.public:
        sentences.append(PUBLIC_VALIDATION)
    if search.random_state is not None:
        sentences.append(SEEDED)
    return tuple(sentences)
