"""Findings about searches, and about values that seem to come from one by hand."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune._formatting import shown
from skdptune.base import check_secret_size, own_parameters, set_public_size
from skdptune.checks._finding import Finding, issue, tip
from skdptune.checks._of_numbers import not_released
from skdptune.checks._subject import Subject
from skdptune.ledger import settings_meant

# Parameters that people tune; others state public knowledge, budgets or what is to be learnt.
_TUNED = frozenset(
    {
        *("C", "alpha", "batch_size", "bin_share", "epochs", "failure_probability", "l1_ratio"),
        *("learning_rate", "lr", "max_bins", "max_depth", "max_epochs", "max_grad_norm"),
        *("max_leaves", "max_leverage", "max_rounds", "n_estimators", "n_knots", "solver"),
        *("optimizer__momentum", "optimizer__weight_decay"),
    }
)
# Selections in which a grid's `try_own_values` counts for nothing.
_WITHOUT_OWN = ("noisy_max", "compose")


def findings_of_searches(subject: Subject) -> Iterator[Finding]:
    """Find what a search shows for nothing, and what it cannot gain by."""
    if not subject.is_search:
        yield from _of_tuning_by_hand(subject)
        return
    yield from _of_exact_scores(subject)
    yield from _of_diagnostics(subject)
    yield from _of_secret_size(subject)
    yield from _of_spaces(subject)


def _of_tuning_by_hand(subject: Subject) -> Iterator[Finding]:
    """SKP010: parameters that people tune have other values than they start with."""
    # A ledger that is in use adds up all fits.
    if settings_meant().ledger is not None:
        return
    for part in subject.private_parts:
        if part.own.get("ledger") is not None:
            continue
        signature = inspect.signature(type(part.estimator).__init__).parameters
        set_by_hand = [
            name
            for name, value in part.own.items()
            if name in _TUNED
            and name in signature
            and not _is_same(value, signature[name].default)
        ]
        if set_by_hand:
            names = " and ".join(set_by_hand)
            found = f"{names} {'are' if len(set_by_hand) > 1 else 'is'} not as by default"
            fix = f"DPRandomSearchCV({part.name}(), epsilon=...), or a PrivacyLedger for all fits"
            yield tip("SKP010", part.place, found, fix)


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same; arrays and others without an answer are not."""
    try:
        return bool(np.all(one == other))
    except Exception:
        return False


def _of_exact_scores(subject: Subject) -> Iterator[Finding]:
    """SKP006: exact scores of a Pareto search, and public data that scores are taken on."""
    if not_released(subject):
        found = "all scores and the choice are exact, for those alone who may see the data"
        yield issue("SKP006", subject.whole.at("release"), found, "release=1.0")
    if subject.has_public_validation:
        found = "the winner is chosen by scores on X_val, which flatter it there"
        yield tip("SKP006", f"{subject.name}.fit(X_val=...)", found, "score on other public data")


def _of_diagnostics(subject: Subject) -> Iterator[Finding]:
    """SKP011: what is kept for those alone who may see the data."""
    own = subject.whole.own
    if own.get("diagnostics") is not True:
        return
    found = "exact scores and the number of runs are kept in diagnostics_, and pickled"
    yield issue("SKP011", subject.whole.at("diagnostics"), found, "diagnostics=False")
    # Without diagnostics it is refused.
    error_score = own.get("error_score")
    if isinstance(error_score, str) and error_score == "raise":
        found = "an exception of a fit shows what the data hold"
        yield issue("SKP011", subject.whole.at("error_score"), found, "error_score='worst'")


def _of_secret_size(subject: Subject) -> Iterator[Finding]:
    """SKP003: with n_public, no cost may depend on the number of records."""
    size = subject.whole.own.get("n_public")
    if not isinstance(size, int) or size < 1 or subject.is_planned:
        return
    for place, estimator in subject.estimators:
        try:
            made = clone(estimator)
            set_public_size(made, size)
            check_secret_size(made, size, subject.size[1])
        except TypeError as error:
            if "n_public" in str(error):
                found = "its cost depends on the number of records, which n_public keeps secret"
                yield issue("SKP003", place, found, "an estimator with a parameter n_public")
        except Exception:
            continue


def _of_spaces(subject: Subject) -> Iterator[Finding]:
    """SKP014: one candidate, one value, or no way back to the estimator's own values."""
    tries_own = _tries_own(subject.root)
    for name, space in subject.spaces:
        place = f"{subject.name}.{name}"
        listed = {key: list(values) for key, values in space.items() if is_listed(values)}
        single = [key for key, values in listed.items() if len(values) == 1]
        if listed and len(single) == len(space):
            yield tip("SKP014", place, "it holds a single candidate", "one fit, without a search")
            continue
        for key in single:
            fix = f"estimator.set_params({key}={shown(listed[key][0])})"
            yield tip("SKP014", f'{place}["{key}"]', "it has a single value", fix)
        missing = [] if tries_own else _without_own(subject, space, listed)
        for key, value in missing:
            found = f"the estimator's own value, {shown(value)}, is not among those tried"
            yield tip("SKP014", f'{place}["{key}"]', found, f"add {shown(value)} to the list")


def _tries_own(search: Any) -> bool:
    """Return whether a search tries the estimator's own values whatever its space holds."""
    own = own_parameters(search)
    selection = own.get("selection")
    chooses_by_partitions = isinstance(selection, str) and selection in _WITHOUT_OWN
    return own.get("try_own_values") is True and not chooses_by_partitions


def _without_own(
    subject: Subject, space: Mapping[str, Any], listed: Mapping[str, list[Any]]
) -> Iterator[tuple[str, Any]]:
    """Yield searched lists that lack the estimator's own value, with that value."""
    known: dict[str, Any] = {}
    if len(subject.estimators) == 1:
        known = subject.estimators[0][1].get_params(deep=True)
    for key, values in listed.items():
        # With several values alone: of one it was said.
        is_plain = key in known and not hasattr(known[key], "get_params")
        if len(values) > 1 and is_plain and not any(_is_same(known[key], one) for one in values):
            yield key, known[key]


def is_listed(values: Any) -> bool:
    """Return whether values of a space are a list, and no range or distribution."""
    return isinstance(values, list) or (isinstance(values, np.ndarray) and values.ndim == 1)
