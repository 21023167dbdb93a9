"""Evaluations of parameters, as workers return them and as a study keeps them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from skdptune.model_selection._pareto._sampling import (
    EVALUATION,
    SearchSpace,
    evaluation_numbers,
)


@dataclass(frozen=True)
class Evaluation:
    """The objectives of parameters, or why they could not be evaluated.

    Attributes
    ----------
    epsilon : float
        The privacy of the parameters; ``inf`` is none.
    utilities : tuple of float
        One utility in [0, 1] per repeat.
    third : float or None
        The third objective, to be minimised.
    failure : str or None
        Why the evaluation failed; None is success, and the other attributes then hold.
    seconds : float
        The duration of the evaluation.
    """

    epsilon: float
    utilities: tuple[float, ...] = ()
    third: float | None = None
    failure: str | None = None
    seconds: float = 0.0

    @property
    def error(self) -> float:
        """1 minus the mean utility."""
        return max(1.0 - float(np.mean(self.utilities)), 0.0)


Evaluate = Callable[[dict[str, Any], int, np.random.SeedSequence], Evaluation]


@dataclass(frozen=True)
class Record:
    """A finished evaluation, also a failed one, with its number and parameters."""

    number: int
    params: dict[str, Any]
    evaluation: Evaluation


def failed_evaluation(problem: BaseException) -> Evaluation:
    """Return an evaluation that failed with an exception."""
    return Evaluation(math.nan, failure=f"{type(problem).__name__}: {problem}")


def checked_evaluation(found: Evaluation) -> Evaluation:
    """Return an evaluation of plain numbers, or raise for objectives out of their domains."""
    if found.failure is not None:
        return found
    epsilon = _number(found.epsilon, "epsilon", math.inf)
    utilities = tuple(_number(value, "utility", 1.0) for value in found.utilities)
    if not utilities:
        raise ValueError("utilities must hold at least one number; got none.")
    third = found.third if found.third is None else float(found.third)
    if third is not None and not math.isfinite(third):
        raise ValueError(f"The third objective must be a finite number; got {third}.")
    return Evaluation(epsilon, utilities, third)


def _number(value: Any, name: str, upper: float) -> float:
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {type(value).__name__}.")
    number = float(value)
    if not 0.0 <= number <= upper:
        raise ValueError(f"{name} must be a number in [0, {upper:g}]; got {number!r}.")
    return number


def write_evaluation(trial: Any, found: Evaluation) -> None:
    """Keep an evaluation in a trial."""
    trial.set_user_attr(EVALUATION, asdict(found))


def read_evaluation(trial: Any) -> Evaluation | None:
    """Return the evaluation that a trial keeps, None if it has none."""
    kept = trial.user_attrs.get(EVALUATION)
    return None if kept is None else Evaluation(**{**kept, "utilities": tuple(kept["utilities"])})


def is_evaluated(trial: Any) -> bool:
    """Return whether a trial is a finished evaluation, perhaps a failed one."""
    return bool(trial.state.is_finished()) and EVALUATION in trial.user_attrs


def records_of(study: Any, space: SearchSpace) -> list[Record]:
    """Return the finished evaluations of an optuna study in order of completion."""
    trials = study.get_trials(deepcopy=False)
    numbers_of = evaluation_numbers(trials)
    finished = [trial for trial in trials if is_evaluated(trial)]
    finished.sort(key=lambda trial: (trial.datetime_complete, trial.number))
    return [
        Record(numbers_of[trial.number], space.from_optuna(trial.params), found)
        for trial in finished
        if (found := read_evaluation(trial)) is not None
    ]
