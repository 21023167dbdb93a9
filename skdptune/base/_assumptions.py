"""What a guarantee rests on: its assumptions, and the neighbours that it is about."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

from skdptune._formatting import shown
from skdptune.accounting import PrivacyReport
from skdptune.base._costs import load_adapter_of, replaces_records
from skdptune.base._nested_parameters import nested_estimators, own_member
from skdptune.ledger import ADD_OR_REMOVE, RELATIONS, REPLACE, common_relation

# Assumption F6.
SEEDED = (
    "the noise is drawn from a seed: whoever knows the seed can subtract it, and fits with the "
    "same seed, such as clones on two folds, share their noise and have no joint guarantee"
)


def neighbouring_of(estimator: Any) -> str:
    """Return the neighbours that an estimator's guarantee is about, all of its steps counted.

    Steps about replacing and steps about adding a record are told apart by what computes costs,
    since what costs nothing is of either kind.
    """
    parts = [("", estimator)]
    if hasattr(estimator, "get_params"):
        parts = list(nested_estimators(estimator))
    found = {_own_relation(part) for _, part in parts}
    return REPLACE if REPLACE in found else weakest(found)


def _own_relation(estimator: Any) -> str:
    if replaces_records(estimator):
        return REPLACE
    relation = own_member(estimator, "neighbouring") or ADD_OR_REMOVE
    if relation not in RELATIONS:
        raise TypeError(
            f"neighbouring must be one of {list(RELATIONS)}; got "
            f"{shown(relation)} of {type(estimator).__name__}."
        )
    return str(relation)


def weakest(relations: Iterable[str]) -> str:
    """Return the relation that guarantees about all given ones hold for; raise if there is none.

    Notes
    -----
    Theorem F11.
    """
    found = set(relations)
    common = common_relation(found)
    if common is not None:
        return common
    raise TypeError(
        "estimator must hold private steps of one kind; got guarantees about different "
        f"neighbours: {', and '.join(sorted(found))}."
    )


def assumptions_of(
    estimator: Any, n_samples: int, n_features: int | None = None
) -> tuple[str, ...]:
    """Return the assumptions of an estimator's guarantee that are known before its fit.

    Parameters
    ----------
    estimator : estimator
        It is asked by its own ``privacy_assumptions``, or by the function of its class.
    n_samples : int
        Number of records; public.
    n_features : int, optional
        Number of columns, where it is known.

    Notes
    -----
    Theorem F11.
    """
    load_adapter_of(estimator)
    own = own_member(estimator, "privacy_assumptions")
    if own is None or isinstance(estimator, type):
        own = functools.partial(assumption_registry, estimator)
    try:
        return once(own(n_samples, n_features))
    except ValueError:
        # They follow from a number that is not known before the fit.
        return ()


@functools.singledispatch
def assumption_registry(
    estimator: object, n_samples: int, n_features: int | None
) -> tuple[str, ...]:
    """Return the assumptions of an object without a word of its own; classes register theirs."""
    return ()


def assumptions_in(report: PrivacyReport) -> tuple[str, ...]:
    """Return the assumptions of a report and of all its parts, once each."""
    return once(_gathered(report))


def _gathered(report: PrivacyReport) -> Iterator[str]:
    yield from report.assumptions
    for part in report.parts:
        yield from _gathered(part)


def once(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return sentences in their order, without repetitions."""
    return tuple(dict.fromkeys(sentences))
