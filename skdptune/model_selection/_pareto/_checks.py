"""Checks of the parameters and arguments of a Pareto search, before the data are read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import joblib
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import get_tags

from skdptune._compat import cloudpickle
from skdptune._formatting import shown
from skdptune._validation import check_integer, check_option, check_real
from skdptune.metrics import BoundedScorer
from skdptune.model_selection._pareto._families import Families
from skdptune.model_selection._pareto._plan import check_relation
from skdptune.model_selection._pareto._sampling import check_sampler
from skdptune.model_selection._pareto._study import (
    Record,
    check_epsilon_scale,
    check_reference_point,
)

if TYPE_CHECKING:
    from skdptune.model_selection._dpareto_search import DParetoSearchCV


TIME = "time"
# Names of other columns of the results.
_RESERVED = frozenset(
    {"", "epsilon", "error", "params", "number", "study_epsilon", TIME}
    | {"spread", "utilities", "seconds", "failure"}
)


@dataclass(frozen=True)
class ThirdObjective:
    """A third objective, to be minimised.

    Attributes
    ----------
    name : str
        Its column in the results.
    function : callable or None
        None is the time of an evaluation.
    """

    name: str
    function: Callable[..., Any] | None


def check_third_objective(given: Any, arguments: str) -> ThirdObjective | None:
    """Return a third objective, None for None, or raise.

    Parameters
    ----------
    given : None, "time" or (str, callable)
    arguments : str
        Of the function, for messages.
    """
    if given is None:
        return None
    if isinstance(given, str) and given == TIME:
        return ThirdObjective(TIME, None)
    is_pair = isinstance(given, tuple) and len(given) == 2
    if not (is_pair and isinstance(given[0], str) and callable(given[1])):
        raise TypeError(
            "third_objective must be None, 'time' or a tuple of a name and a function of "
            f"{arguments}; got {shown(given)}."
        )
    if given[0] in _RESERVED:
        raise ValueError(
            "third_objective must have a name that no other column of the results has; got "
            f"{shown(given[0])}."
        )
    return ThirdObjective(*given)


def warn_of_failures(records: Sequence[Record], *, stacklevel: int) -> None:
    """Warn of evaluations that failed, with the reason of the first."""
    failed = [record for record in records if record.evaluation.failure is not None]
    if failed:
        warnings.warn(
            f"{len(failed)} of {len(records)} evaluations failed. The first: "
            f"{failed[0].evaluation.failure}. evaluations_ names them all.",
            FitFailedWarning,
            stacklevel=stacklevel,
        )


def warn_of_one_cost(records: Sequence[Record], *, stacklevel: int) -> None:
    """Warn if no parameter of the space changes epsilon."""
    found = [record.evaluation for record in records if record.evaluation.failure is None]
    if len(found) > 1 and len({evaluation.epsilon for evaluation in found}) == 1:
        warnings.warn(
            f"All evaluations cost epsilon={found[0].epsilon:.4g}, so that the front is a single "
            "point. Let param_space hold what sets the noise, such as epsilon or "
            "noise_multiplier.",
            UserWarning,
            stacklevel=stacklevel,
        )


def warn_of_few(count: int, wanted: int, *, stacklevel: int) -> None:
    """Warn if a release paid for fewer evaluations than the initial ones."""
    if count < wanted:
        warnings.warn(
            f"release must be larger, or param_space hold smaller epsilons, for n_initial={wanted}"
            f" evaluations; it paid for {count}.",
            UserWarning,
            stacklevel=stacklevel,
        )


PRIVACY = ("profile", "moments")
_COUNTS = {"n_initial": 1, "n_iter": 0, "batch_size": 1, "n_repeats": 1}
_NOT_RELEASED = {
    "storage": "a storage keeps times, and a resumed study would not keep to its budget",
    "third_objective": "the budget does not pay for its values",
}


def check_pareto_parameters(settings: DParetoSearchCV, families: Families) -> None:
    """Raise for parameters out of their domains, beside those that all searches have."""
    check_real(settings.delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
    for name, least in _COUNTS.items():
        check_integer(getattr(settings, name), name=name, lower=least)
    check_option(settings.privacy, name="privacy", options=PRIVACY)
    third = third_objective_of(settings)
    check_reference_point(settings.reference_point, None if third is None else third.name)
    check_epsilon_scale(settings.epsilon_scale)
    _check_sampler(settings, families)
    _check_refit(settings)
    if settings.release is not None:
        _check_release(settings, families)


def third_objective_of(settings: DParetoSearchCV) -> ThirdObjective | None:
    """Return the third objective of a search, or raise."""
    return check_third_objective(settings.third_objective, "(model, X, y)")


def check_target(estimator: Any, y: Any) -> None:
    """Raise if a required target is missing: every evaluation would fail."""
    if y is None and get_tags(estimator).target_tags.required:
        raise ValueError(
            "y must be given: the estimator requires y to be passed, but the target y is None."
        )


def _check_sampler(settings: DParetoSearchCV, families: Families) -> None:
    # A class of samplers is not a sampler.
    if isinstance(settings.sampler, str | type):
        check_sampler(settings.sampler)
        if settings.sampler == "grid" and not families.is_single:
            raise ValueError(
                "sampler must be another than 'grid' for several families, whose grids would be "
                "multiplied; got 'grid'. Search each family by itself."
            )


def _check_refit(settings: DParetoSearchCV) -> None:
    if isinstance(settings.refit, bool):
        if settings.refit and settings.release is not None:
            raise ValueError(
                "refit must be an epsilon or False with release; got True, whose cost is not "
                "known beforehand."
            )
        return
    check_real(
        settings.refit,
        name="refit",
        lower=0.0,
        lower_open=True,
        upper=500.0,
        hint="It is the largest epsilon of the model; False fits none.",
    )


def _check_release(settings: DParetoSearchCV, families: Families) -> None:
    check_real(settings.release, name="release", lower=0.0, lower_open=True, upper=500.0)
    if settings.delta == 0.0:
        raise ValueError("delta must be above 0 with release; got 0.")
    for name, why in _NOT_RELEASED.items():
        given = getattr(settings, name)
        if given is not None:
            raise ValueError(f"{name} must be None with release: {why}; got {shown(given)}.")
    if not isinstance(settings.sampler, str):
        raise TypeError(
            "sampler must be a name with release; got an optuna sampler, which sees when "
            "evaluations started and ended."
        )
    for member in (*families, *families.steps):
        check_relation(member)


def check_picklable(scorer: BoundedScorer, families: Families, n_jobs: int | None) -> None:
    """Raise if workers could not be sent their work: every fit would count as failed."""
    backend, _ = joblib.parallel.get_active_backend()
    if n_jobs in (None, 1) or getattr(backend, "uses_threads", False):
        return
    try:
        cloudpickle.dumps((scorer, list(families), families.space))
    except Exception as problem:
        raise TypeError(
            "n_jobs must be 1 for an estimator, space or scoring that cannot be pickled; got "
            f"{shown(n_jobs)}. {type(problem).__name__}: {problem}"
        ) from problem
