"""Which parameters a Pareto search over estimators takes; nothing here sees data."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
from sklearn.utils import get_tags

from skdptune._compat import cloudpickle
from skdptune._validation import check_integer, check_option, check_real
from skdptune.model_selection._pareto._evaluation import check_relation
from skdptune.model_selection._pareto._families import Families
from skdptune.model_selection._pareto._sampling import check_sampler
from skdptune.model_selection._pareto._study import check_reference_point
from skdptune.model_selection._running import Streams

PRIVACY = ("profile", "moments")
_COUNTS = {"n_initial": 1, "n_iter": 0, "batch_size": 1, "n_repeats": 1}
_UNPAID = {
    "storage": "a storage notes times, and would go on without its budget",
    "third_objective": "its values are not paid for",
}


def check_pareto_parameters(search: Any, families: Families) -> None:
    """Raise unless the parameters of a search are as its documentation has them."""
    check_real(search.delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
    for name, least in _COUNTS.items():
        check_integer(getattr(search, name), name=name, lower=least)
    check_option(search.privacy, name="privacy", options=PRIVACY)
    check_reference_point(search.reference_point, third_name(search.third_objective))
    _check_sampler(search, families)
    if search.n_public is not None:
        check_integer(search.n_public, name="n_public", lower=1)
    if not isinstance(search.random_state, np.random.Generator | np.random.RandomState):
        Streams.of(search.random_state)
    _check_scorer(search, families)
    _check_refit(search)
    if search.release is not None:
        _check_release(search, families)


def third_name(third: Any) -> str | None:
    """Return the third objective's name, None if there is none."""
    if third is None or (isinstance(third, str) and third == "time"):
        return third
    is_pair = isinstance(third, tuple) and len(third) == 2
    if not (is_pair and isinstance(third[0], str) and callable(third[1])):
        raise TypeError(
            "third_objective must be None, 'time' or a tuple of a name and a function of "
            f"(model, X, y); got {third!r:.60}."
        )
    return third[0]


def check_target(estimator: Any, y: Any) -> None:
    """Raise for a target that is missing, in place of every evaluation."""
    if y is None and get_tags(estimator).target_tags.required:
        raise ValueError(
            "y must be given: the estimator requires y to be passed, but the target y is None."
        )


def _check_sampler(search: Any, families: Families) -> None:
    # A class is no sampler.
    if isinstance(search.sampler, str | type):
        check_sampler(search.sampler)
        if search.sampler == "grid" and not families.is_one:
            raise ValueError(
                "sampler must be another than 'grid' for several families, whose parameters would "
                "be multiplied; got 'grid'. Search each family by itself."
            )


def _check_scorer(search: Any, families: Families) -> None:
    scorer = search._scorer()
    for member in families:
        if not hasattr(member, scorer.response_method):
            raise TypeError(
                f"scoring must suit the estimator; got {scorer.name!r}, which asks for "
                f"{scorer.response_method}, and {type(member).__name__} has none."
            )


def _check_refit(search: Any) -> None:
    if isinstance(search.refit, bool):
        if search.refit and search.release is not None:
            raise ValueError(
                "refit must be an epsilon or False with release; got True, whose price nobody "
                "knows beforehand."
            )
        return
    check_real(
        search.refit,
        name="refit",
        lower=0.0,
        lower_open=True,
        upper=500.0,
        hint="It is the most that the model may cost; False fits none.",
    )


def _check_release(search: Any, families: Families) -> None:
    check_real(search.release, name="release", lower=0.0, lower_open=True, upper=500.0)
    if search.delta == 0.0:
        raise ValueError("delta must be above 0 with release; got 0.")
    for name, why in _UNPAID.items():
        if getattr(search, name) is not None:
            raise ValueError(f"{name} must be None with release: {why}.")
    if not isinstance(search.sampler, str):
        raise TypeError(
            "sampler must be a name with release; got an optuna sampler, which is told when "
            "evaluations began and ended."
        )
    for member in (*families, *families.steps):
        check_relation(member)


def check_can_be_sent(search: Any, families: Families) -> None:
    """Refuse workers that could not be given their work: every fit would count as failed."""
    backend, _ = joblib.parallel.get_active_backend()
    if search.n_jobs in (None, 1) or getattr(backend, "uses_threads", False):
        return
    try:
        cloudpickle.dumps((search._scorer(), list(families), families.space))
    except Exception as problem:
        raise TypeError(
            "n_jobs must be 1 for an estimator, space or scoring that cannot be pickled; got "
            f"{search.n_jobs!r}. {type(problem).__name__}: {problem}"
        ) from problem
