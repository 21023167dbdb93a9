"""What a study notes on its trials beside optuna's own: which evaluation each one is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# User attributes of trials. A trial that repeats a lost one keeps the lost one's two numbers.
NUMBER, PROPOSAL = "number", "proposal"
# The evaluation that a trial holds, or why it was closed without one.
EVALUATION, REFUSED, WITHDRAWN = "evaluation", "refused", "withdrawn"


def proposal_numbers(trials: Sequence[Any]) -> list[int]:
    """Return which proposal each trial is, from 0; a repeated one has its first trial's number."""
    numbers, n_repeated = [], 0
    for trial in trials:
        is_repeated = PROPOSAL in trial.user_attrs
        numbers.append(
            int(trial.user_attrs[PROPOSAL]) if is_repeated else trial.number - n_repeated
        )
        n_repeated += is_repeated
    return numbers


def evaluation_numbers(trials: Sequence[Any]) -> list[int]:
    """Return which evaluation each trial is: proposals that were dismissed are not counted."""
    numbers, n_dismissed = [], 0
    for trial, proposal in zip(trials, proposal_numbers(trials), strict=True):
        attributes = trial.user_attrs
        numbers.append(int(attributes.get(NUMBER, proposal - n_dismissed)))
        n_dismissed += REFUSED in attributes or WITHDRAWN in attributes
    return numbers


def failed_by_parameters(trial: Any) -> bool:
    """Return whether a failed trial's parameters, not its process, are why it failed."""
    return EVALUATION in trial.user_attrs or REFUSED in trial.user_attrs
