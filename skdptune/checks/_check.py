"""The function `check` for estimators and searches, used before they see data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from skdptune._formatting import shown
from skdptune._validation import check_integer, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.checks._findings import (
    findings_of_numbers,
    findings_of_refusals,
    findings_of_searches,
    findings_of_steps,
)
from skdptune.checks._report import CheckReport, Finding, check_codes, issue
from skdptune.checks._subject import Part, Subject, is_estimator, is_search, total_of
from skdptune.preprocessing._shared import as_schema

Rule = Callable[[Subject], Iterator[Finding]]
_RULES: tuple[Rule, ...] = (
    findings_of_refusals,
    findings_of_numbers,
    findings_of_searches,
    findings_of_steps,
)
_RULES_INSIDE = (findings_of_searches, findings_of_steps)


def check(
    estimator: Any,
    schema: Any = None,
    *,
    n_samples: int | None = None,
    n_features: int | None = None,
    delta: float | None = None,
    mute: Collection[str] = (),
) -> CheckReport:
    """Check what an estimator or a search would leak, overstate or lose, before its fit.

    Parameters
    ----------
    estimator : estimator or search
        Anything with ``fit`` and ``get_params``: private or not, a Pipeline, or a search of this
        package or of scikit-learn. It is neither changed nor fitted.
    schema : Schema, dict or str, optional
        Public description of the table to be fitted.
    n_samples : int, optional
        Number of records; public. If it is given, a search is planned, which can take as long as
        its ``plan``.
    n_features : int, optional
        Number of columns; by default, that of the schema.
    delta : float, optional
        The delta at which the total is stated; by default, the estimator's own.
    mute : collection of str, default=()
        Codes of findings to leave out, such as ``["SKP008"]``.

    Returns
    -------
    CheckReport
        A list of findings, each with a code, the place, the problem, a fix and the reason why it
        matters. It prints as a table.

    Raises
    ------
    TypeError
        If `estimator` is not an estimator. Errors that a fit would raise are findings instead.

    See Also
    --------
    skdptune.base.profile_of : Returns the privacy cost of a fit.

    Notes
    -----
    No data are read: findings depend only on parameters and public numbers. Functions of
    FunctionTransformers are called with a few made-up rows. The absence of findings is not a
    proof: the guarantee is stated by the report, under the assumptions that it lists.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import skdptune
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> pipeline = make_pipeline(StandardScaler(), DPLogisticRegression(classes=[0, 1]))
    >>> skdptune.check(pipeline)
    1 issue and 0 tips of Pipeline
    issue  SKP001  Pipeline.steps["standardscaler"]
        StandardScaler: it learns means and deviations from private rows
        -> Use skdptune.preprocessing.DPStandardScaler(bounds=...) or
           skdptune.preprocessing.TableEncoder(schema).
        (critical; https://skdptune.readthedocs.io/en/latest/checks.html#skp001)
    """
    if not is_estimator(estimator):
        raise TypeError(
            "estimator must be an estimator or a search, with fit and get_params; got "
            f"{shown(estimator)}."
        )
    muted = check_codes(mute)
    if n_samples is not None:
        check_integer(n_samples, name="n_samples", lower=1)
    described = None if schema is None else as_schema(schema)
    if n_features is not None:
        check_integer(n_features, name="n_features", lower=1)
    elif described is not None:
        n_features = len(described.names)
    if delta is not None:
        check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
    subject = Subject(estimator, n_samples, n_features, described)
    with warnings.catch_warnings():
        # Warnings by other code are findings here.
        warnings.simplefilter("ignore")
        subject = (
            _costed_search(subject, delta) if is_search(estimator) else _costed(subject, delta)
        )
        return _findings_of(subject).without(muted)


def check_plan(
    search: Any,
    total: PrivacyProfile,
    delta: float,
    n_samples: int,
    n_features: int | None,
    *,
    has_public_validation: bool,
    mute: Collection[str],
) -> CheckReport:
    """Return the findings about a planned search, without computing its cost again.

    Parameters
    ----------
    search : private search
    total : PrivacyProfile
        Its privacy cost.
    delta : float
        The delta at which the total is stated.
    n_samples : int
        Number of records.
    n_features : int or None
        Number of columns, if known.
    has_public_validation : bool
        Whether public validation data will be given.
    mute : collection of str
        Codes to leave out.
    """
    muted = check_codes(mute)
    subject = Subject(
        search,
        n_samples,
        n_features,
        epsilon=_asked(search, total.epsilon(delta)),
        delta=delta,
        is_planned=True,
        has_public_validation=has_public_validation,
    )
    return _findings_of(subject).without(muted)


def _findings_of(subject: Subject) -> CheckReport:
    found = _found_by(_RULES, subject)
    # The cost of a search inside a pipeline is part of the pipeline's cost.
    found += [
        finding
        for part in _searches_inside(subject)
        for finding in _found_by(
            _RULES_INSIDE, Subject(part.estimator, is_planned=True, place=part.place)
        )
    ]
    return CheckReport(found, subject.name)


def _searches_inside(subject: Subject) -> list[Part]:
    """Return the searches among the steps; an empty list if the steps cannot be listed."""
    try:
        inside = [part for part in subject.private_parts if is_search(part.estimator)]
    except Exception:
        return []
    return [part for part in inside if part.estimator is not subject.root]


def _found_by(rules: Sequence[Rule], subject: Subject) -> list[Finding]:
    found: list[Finding] = []
    for rule in rules:
        try:
            found += rule(subject)
        except Exception as error:
            # A parameter raises an error whenever it is used, so a fit would fail as well.
            reason = f"a parameter fails with {type(error).__name__}"
            found.append(issue("SKP019", subject.name, reason, "plain numbers, strings and lists"))
    return found


def _costed(subject: Subject, delta: float | None) -> Subject:
    """Return the subject with the total cost of its estimator."""
    epsilon, at = total_of(subject.root, subject.size, delta)
    return replace(subject, epsilon=epsilon, delta=at)


def _costed_search(subject: Subject, delta: float | None) -> Subject:
    """Return the subject with the search's total cost if sizes are given, or with its error."""
    search = subject.root
    try:
        if subject.n_samples is None:
            search._check_parameters()
            own = search.delta if delta is None else delta
            return replace(subject, epsilon=getattr(search, "epsilon", None), delta=own)
        plan = search._make_plan(subject.n_samples, subject.size[1])
        if delta is not None:
            return replace(
                subject, epsilon=plan.total.epsilon(delta), delta=delta, is_planned=True
            )
        epsilon = _asked(search, plan.total.epsilon(plan.delta))
        return replace(subject, epsilon=epsilon, delta=plan.delta, is_planned=True)
    except Exception as error:
        return replace(subject, error=error, delta=delta)


def _asked(search: Any, spent: float) -> float:
    """Return the epsilon requested for a search, or its actual cost if that is larger."""
    asked = getattr(search, "epsilon", None)
    return spent if asked is None else max(spent, float(asked))
