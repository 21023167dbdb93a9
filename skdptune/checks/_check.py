"""The function `check` for estimators and searches, used before they see data."""

from __future__ import annotations

import inspect
import math
import numbers
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdptune._formatting import shown
from skdptune._validation import check_integer, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.base._shared import (
    ADD_OR_REMOVE,
    LOSS_OF_DOUBLING,
    Refusal,
    advised_delta,
    check_secret_size,
    distrusted,
    is_same,
    neighbouring_of,
    own_parameters,
    set_public_size,
)
from skdptune.checks._report import CheckReport, Finding, check_codes, issue, tip
from skdptune.checks._subject import ANY_FEATURES, Part, Subject, is_estimator, is_search, total_of
from skdptune.ledger._shared import settings_meant
from skdptune.preprocessing._shared import as_schema

# The rules: findings about numbers, refused steps and parameters, pipelines, and searches -------

# Larger values give a weak guarantee for any data.
LARGE_EPSILON, LARGE_DELTA = 10.0, 1e-3
# If doubling the noise may lose more points (accuracy, R²) than this, the budget is called small.
_MANY_POINTS = 5.0
_FACTOR = 2.0
# Python cannot print integers with thousands of digits, or convert them to floats.
_LARGEST = 10**15


def _owner(subject: Subject, name: str) -> Part | None:
    """Return which part sets a number: the search, or the step with the largest value."""
    if subject.is_search and own_parameters(subject.root).get(name) is not None:
        return subject.whole
    has = [part for part in subject.private_parts if part.own.get(name) is not None]
    # The largest value matters most.
    return max(has, key=lambda part: _number(part.own[name]), default=None)


def _number(value: object) -> float:
    """Return a number as a float; 0 if it is not a number, which other rules report."""
    return float(value) if isinstance(value, float) else float(_whole(value))


def _whole(value: object) -> int:
    """Return an integer that can be printed; 0 for other values."""
    return int(value) if isinstance(value, numbers.Integral) and abs(int(value)) < _LARGEST else 0


def _at(subject: Subject, name: str) -> str:
    owner = _owner(subject, name)
    return subject.name if owner is None else owner.at(name)


def _of_delta(subject: Subject) -> Iterator[Finding]:
    """SKP004 if the number of records is known; SKP016 if it is not."""
    delta, n_samples = subject.delta, subject.n_samples
    if delta is None or not delta < 1.0 or _not_released(subject):
        return
    if n_samples is not None and delta >= 1.0 / n_samples:
        found = f"delta={delta:g} is at least 1/n_samples={1.0 / n_samples:.3g}"
        yield issue("SKP004", _at(subject, "delta"), found, f"delta={advised_delta(n_samples):g}")
    elif n_samples is None and delta >= LARGE_DELTA:
        found = (
            f"delta={delta:g} is at least 1/n_samples for {math.ceil(1.0 / delta)} or more records"
        )
        yield issue("SKP016", _at(subject, "delta"), found, "delta=1e-6")


def _not_released(subject: Subject) -> bool:
    """Return whether it is a search that releases nothing and therefore states no epsilon."""
    if not subject.is_search:
        return False
    return own_parameters(subject.root).get("release", 0.0) is None


def _of_seeds(subject: Subject) -> Iterator[Finding]:
    """SKP005. A search sets the seeds of all steps, so only its own seed matters."""
    for part in [subject.whole] if subject.is_search else subject.private_parts:
        seed = part.own.get("random_state")
        if seed is not None:
            is_shown = isinstance(seed, numbers.Integral) and abs(int(seed)) < _LARGEST
            shown = str(int(seed)) if is_shown else f"a {type(seed).__name__}"
            found = f"random_state is {shown}, which determines all noise"
            yield issue("SKP005", part.at("random_state"), found, "random_state=None")


def _of_epsilon(subject: Subject) -> Iterator[Finding]:
    """SKP007 if epsilon is infinite, SKP016 if it is large."""
    unlimited = [] if subject.sets_budget else subject.private_parts
    infinite = [part for part in unlimited if _number(part.own.get("epsilon")) == math.inf]
    for part in infinite:
        found = "epsilon is infinite: the fit has no noise"
        yield issue("SKP007", part.at("epsilon"), found, "epsilon=1.0")
    epsilon = subject.epsilon
    if epsilon is None or infinite or _not_released(subject):
        return
    at = subject.name if subject.delta is None else f"at delta={subject.delta:g}"
    if math.isinf(epsilon):
        found = f"no finite epsilon holds {at}: the fit is not private"
        yield issue("SKP007", subject.name, found, "epsilon=1.0")
    elif epsilon > LARGE_EPSILON:
        odds = f"{math.exp(epsilon):.0e}" if epsilon < 500.0 else "more than 1e+200"
        found = f"epsilon={epsilon:.4g} in total: one record may change odds by a factor of {odds}"
        yield issue("SKP016", _at(subject, "epsilon"), found, "epsilon=1.0")


def _of_public_size(subject: Subject) -> Iterator[Finding]:
    """SKP003: a constant that replaces the number of records, and is far from it."""
    for part in [subject.whole] if subject.is_search else subject.private_parts:
        size, n_samples = _whole(part.own.get("n_public")), subject.n_samples
        if n_samples is None or size < 1:
            continue
        if not 1.0 / _FACTOR <= size / n_samples <= _FACTOR:
            found = (
                f"n_public={size} is far from the {n_samples} records: noise and rates are set "
                "for the wrong number"
            )
            fix = "n_public=the expected number of records, from public knowledge"
            yield tip("SKP003", part.at("n_public"), found, fix)


def _of_few_records(subject: Subject) -> Iterator[Finding]:
    """SKP013: the points that doubled noise may lose, by the measured rule of the searches."""
    epsilon, n_samples = subject.epsilon, subject.n_samples
    if n_samples is None or epsilon is None or not 0.0 < epsilon < math.inf:
        return
    if not (subject.is_search or hasattr(subject.root, "predict")):
        return
    lost = LOSS_OF_DOUBLING / (epsilon * n_samples)
    if lost >= _MANY_POINTS:
        unit = "R²" if is_regressor(subject.root) else "accuracy"
        found = (
            f"epsilon times the number of records is {epsilon * n_samples:.4g}: twice the noise "
            f"may lose {min(lost, 50.0):.2g}{' or more' if lost > 50.0 else ''} points of {unit}"
        )
        fix = "more records, fewer columns, a larger epsilon, or one fit without a search"
        yield tip("SKP013", _at(subject, "epsilon"), found, fix)


_BINS = frozenset(
    {"KBinsDiscretizer", "PowerTransformer", "QuantileTransformer", "SplineTransformer"}
)
_LEARNT = frozenset(
    {
        *("a function", "CountVectorizer", "DictVectorizer", "IterativeImputer", "KNNImputer"),
        *("OneHotEncoder", "OrdinalEncoder", "SimpleImputer", "TableVectorizer"),
        *("TargetEncoder", "TfidfVectorizer"),
    }
)
# These fit their estimator several times, and choose or learn by scores or predictions. So do all
# classes whose names end in CV.
_SEARCHES = frozenset({"SequentialFeatureSelector", "StackingClassifier", "StackingRegressor"})
# The code for an invalid parameter, by its name; other parameters have a common code.
_BY_PARAMETER = {
    **dict.fromkeys(("bounds", "bounds_X", "bounds_y", "data_norm", "target_bound"), "SKP002"),
    **dict.fromkeys(("schema",), "SKP009"),
    **dict.fromkeys(("n_public",), "SKP003"),
    **dict.fromkeys(("classes", "labels"), "SKP008"),
    **dict.fromkeys(("diagnostics", "error_score"), "SKP011"),
    **dict.fromkeys(("callbacks", "train_split", "third_objective"), "SKP015"),
}
_UNPAID = ", and neither are its scores and its choices, even around a private estimator"
_NEIGHBOURS = "about different neighbours"


def findings_of_refusals(subject: Subject) -> Iterator[Finding]:
    """Find refused steps and parameters: steps without a cost, and invalid parameters."""
    for place, refusal in subject.refusals:
        code = code_of_refusal(refusal)
        reason = f"{refusal.reason}{_UNPAID if code == 'SKP006' else ''}"
        yield issue(code, place, f"{refusal.got}: {reason}", refusal.remedy or "Leave it out.")
    for place, error in subject.errors:
        yield _of_error(place, error)
    refused = {place for place, refusal in subject.refusals if refusal.is_of_distrusted}
    for part in subject.private_parts:
        fault = distrusted(part.estimator)
        if fault is not None and part.place not in refused:
            fix = fault.instead or "Use another model."
            yield issue("SKP020", part.place, f"{fault.name}: {fault.reason}", fix)


def is_of_scores(name: str) -> bool:
    """Return whether a class of this name fits its estimator several times."""
    return name.endswith("CV") or name in _SEARCHES


def code_of_refusal(refusal: Refusal) -> str:
    """Return the code for the reason why an estimator has no cost."""
    if refusal.is_of_distrusted:
        return "SKP020"
    name, _, missing = refusal.got.partition(" without ")
    if missing:
        return "SKP008" if missing == "classes" else "SKP002"
    if name in _BINS:
        return "SKP002"
    if name in _LEARNT:
        return "SKP009"
    if is_of_scores(name):
        return "SKP006"
    return "SKP001" if refusal.learns_features else "SKP007"


def _of_error(place: str, error: Exception) -> Finding:
    """Convert an error about a parameter into a finding."""
    text = " ".join(str(error).split())
    parameter = next(iter(re.findall(r"^(\w+) must ", text)), "")
    code = _BY_PARAMETER.get(parameter, "SKP019")
    if "must have a parameter n_public" in text:
        code = "SKP003"
    if _NEIGHBOURS in text:
        code = "SKP012"
    # By convention, a message states the fault in one sentence, and a hint may follow.
    found, separator, hint = text.partition(". ")
    where = f"{place}.{parameter}" if parameter not in ("", "estimator") else place
    return issue(code, where, found.removesuffix("."), hint if separator else _remedy_of(text))


def _remedy_of(text: str) -> str:
    """Return advice for an error without a hint, from the condition that it states."""
    wanted = re.findall(r"^(\w+) must (.*?); got ", text)
    return "{} must {}".format(*wanted[0]) if wanted else "Follow the message."


_FEW_ROWS = 4


def findings_of_steps(subject: Subject) -> Iterator[Finding]:
    """Find steps that store, show or read data without paying for it."""
    for part in subject.parts:
        if isinstance(part.estimator, FunctionTransformer):
            yield from _of_function(part, subject.n_features)
        if part.is_composition:
            yield from _of_composition(part, subject.is_search)
    for part in subject.private_parts:
        yield from _of_labels(part, subject)
        yield from _of_bounds(part, subject)
        yield from _of_repetition(part)
        yield from _of_neighbours(part)
    yield from _of_schema(subject)
    yield from _of_persons(subject)


def _of_function(part: Part, n_features: int | None) -> Iterator[Finding]:
    """SKP018: a function is tested on made-up rows; otherwise the user's statement is trusted."""
    function = part.own["func"]
    if function is None or isinstance(function, np.ufunc):
        return
    name = getattr(function, "__name__", type(function).__name__)
    if _mixes_rows(part.estimator, n_features or ANY_FEATURES):
        found = f"the result of {name} for a made-up row depends on other rows"
        yield issue("SKP018", part.at("func"), found, "FunctionTransformer(np.log1p)")
        return
    found = f"it is unknown whether {name} treats each record separately"
    fix = "a NumPy ufunc, such as np.log1p, or check that it uses no mean, rank or order"
    yield tip("SKP018", part.at("func"), found, fix)


def _mixes_rows(step: Any, n_features: int) -> bool:
    """Return whether a function gives rows other values together than one at a time."""
    rows = np.random.default_rng(0).uniform(0.5, 2.0, size=(_FEW_ROWS, n_features))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            made = clone(step)
            together = np.asarray(made.transform(rows.copy()), dtype=float)
            single = [np.asarray(made.transform(row[None].copy()), dtype=float) for row in rows]
            alone = np.concatenate(single)
            return together.shape != alone.shape or not np.allclose(
                together, alone, equal_nan=True
            )
    except Exception:
        # The function needs other input, such as a table with names, so the test shows nothing.
        return False


def _of_composition(part: Part, in_search: bool) -> Iterator[Finding]:
    """SKP015: caches of transformed records, and computation times."""
    # A search fits copies without a cache.
    if (
        isinstance(part.estimator, Pipeline)
        and part.estimator.memory is not None
        and not in_search
    ):
        found = (
            "transformed records are stored on disk, readable for everybody with access to the "
            "folder"
        )
        yield issue("SKP015", part.at("memory"), found, "memory=None")
    if part.own.get("verbose") is True:
        found = "the time of each step is printed, and can depend on a record"
        yield tip("SKP015", part.at("verbose"), found, "verbose=False")


def _of_labels(part: Part, subject: Subject) -> Iterator[Finding]:
    """SKP008: labels that are not declared, or differ from those of the schema."""
    if "classes" not in part.own or not is_classifier(part.estimator):
        return
    labels = None if subject.schema is None else subject.schema.target_labels
    fix = f"classes={labels if labels is not None else '[...]'}"
    declared = part.own["classes"]
    is_random = any(owner.own.get("n_public") is not None for owner in (part, subject.whole))
    if declared is None and is_random:
        found = "no labels are declared, and the labels in a random part of the records are secret"
        yield issue("SKP008", part.at("classes"), found, fix)
    elif declared is None:
        found = "the labels are taken from the data, and assumed to be public"
        yield tip("SKP008", part.at("classes"), found, fix)
    elif labels is not None and {*map(str, declared)} != {*map(str, labels)}:
        found = "the schema names other labels; records with undeclared labels are ignored"
        yield tip("SKP008", part.at("classes"), found, fix)


def _of_bounds(part: Part, subject: Subject) -> Iterator[Finding]:
    """SKP002: missing bounds that a step needs, if nothing else reports them before a fit."""
    known = {place for place, _ in (*subject.errors, *subject.refusals)}
    is_open = "bounds" in part.own and part.own["bounds"] is None
    if is_open and part.own.get("schema") is None and part.place not in known:
        found = "no bounds are given, and the step must not compute them from the data"
        yield issue("SKP002", part.at("bounds"), found, "bounds=(0, 120)")


def _of_repetition(part: Part) -> Iterator[Finding]:
    """SKP017: fits that continue from the last one."""
    if part.own.get("warm_start") is True:
        found = "each fit continues from the last one, at the full cost again"
        yield issue("SKP017", part.at("warm_start"), found, "warm_start=False")
    elif hasattr(part.estimator, "partial_fit"):
        found = (
            "each call of partial_fit costs as much as a fit, and no report adds up these costs"
        )
        fix = "a single fit, or PrivacyLedger(...).reserve before each call"
        yield tip("SKP017", part.at("partial_fit"), found, fix)


def _of_neighbours(part: Part) -> Iterator[Finding]:
    """SKP012: a neighbouring relation other than adding or removing one record."""
    try:
        relation = neighbouring_of(part.estimator)
    except TypeError:
        return
    if relation != ADD_OR_REMOVE:
        found = f"the guarantee is about neighbours that {relation}"
        fix = "compare its epsilon only with those for the same neighbours"
        yield tip("SKP012", part.place, found, fix)


def _of_schema(subject: Subject) -> Iterator[Finding]:
    """SKP009: a schema that is given but not used by any step, or differs from that of a step."""
    if subject.schema is None:
        return
    used = [part for part in subject.parts if part.own.get("schema") is not None]
    if not used:
        found = (
            "no step uses the schema, so it does not encode text, dates and missing values of "
            "the table"
        )
        fix = "make_private_pipeline(estimator, schema)"
        yield tip("SKP009", subject.name, found, fix)
    for part in used:
        try:
            # A pipeline of persons gives its encoder the schema without them.
            own = as_schema(part.own["schema"])
            is_same = own in (subject.schema, subject.schema.of_features())
        except (TypeError, ValueError):
            continue
        if not is_same:
            found = "its schema differs from the one that is given here"
            yield tip("SKP009", part.at("schema"), found, "TableEncoder(schema)")


# Names of columns that hold ids of persons, such as patient, user_id, CustomerNo and id_client.
_PERSON = "client|customer|household|participant|patient|person|respondent|student|subject|user"
# Without a word such as "id", these may be a property: whether somebody is insured, for example.
_OTHERS = (
    f"{_PERSON}|account|beneficiary|borrower|card|citizen|donor|driver|employee|family|insured|"
    "member|owner|passenger|policyholder|pupil|resident|subscriber|taxpayer|visitor|voter|worker"
)
_ID = "ids?|no|nr|num|number|key|code|uuid|guid|hash|ref"
_LOOKS_LIKE_A_PERSON = re.compile(
    rf"(?:{_PERSON})s?|(?:{_OTHERS})[ _.-]*(?:{_ID})|(?:{_ID})[ _.-]*(?:of[ _.-]*)?(?:{_OTHERS})|"
    r"ssn|mrn|(?:social[ _.-]*security|medical[ _.-]*record)(?:[ _.-]*(?:no|number))?"
)
PERSONS_UNNAMED = (
    "looks like the id of a person, and no person is named: the guarantee is then about single "
    "rows"
)


def looks_like_a_person(column: Any) -> bool:
    """Return whether the name of a column looks like the id of a person; no data are needed."""
    return isinstance(column, str) and bool(_LOOKS_LIKE_A_PERSON.fullmatch(column.lower()))


def _of_persons(subject: Subject) -> Iterator[Finding]:
    """SKP012: a column of ids, used or ignored, in a schema that names no person."""
    schemas = {subject.name: subject.schema} if subject.schema is not None else {}
    if any(part.own.get("person") is not None for part in subject.parts):
        return
    for part in subject.parts:
        try:
            schemas |= {part.at("schema"): as_schema(part.own["schema"])}
        except (KeyError, TypeError, ValueError):
            # Without a schema, or with one that another rule reports.
            continue
    columns = {
        name: place
        for place, schema in schemas.items()
        if schema.person is None
        for name in schema.names
        if looks_like_a_person(name)
    }
    for name, place in columns.items():
        found = f"the column {shown(name)} {PERSONS_UNNAMED}"
        yield tip("SKP012", place, found, f"Schema(..., person={shown(name)}), if persons recur")


# Parameters that people tune. Others state public knowledge, budgets or the task.
_TUNED = frozenset(
    {
        *("C", "alpha", "batch_size", "bin_share", "epochs", "failure_probability", "l1_ratio"),
        *("learning_rate", "lr", "max_bins", "max_depth", "max_epochs", "max_grad_norm"),
        *("max_leaves", "max_leverage", "max_rounds", "n_estimators", "n_knots", "solver"),
        *("optimizer__momentum", "optimizer__weight_decay"),
    }
)


def findings_of_searches(subject: Subject) -> Iterator[Finding]:
    """Find what a search shows without paying for it, and settings that cannot help."""
    if not subject.is_search:
        yield from _of_tuning_by_hand(subject)
        return
    yield from _of_exact_scores(subject)
    yield from _of_diagnostics(subject)
    yield from _of_secret_size(subject)
    yield from _of_spaces(subject)


def _of_tuning_by_hand(subject: Subject) -> Iterator[Finding]:
    """SKP010: parameters that are often tuned have other values than their defaults."""
    # An active ledger adds up all fits.
    if settings_meant().ledger is not None:
        return
    for part in subject.private_parts:
        if part.own.get("ledger") is not None:
            continue
        signature = inspect.signature(type(part.estimator).__init__).parameters
        set_by_hand = [
            name
            for name, value in part.own.items()
            if name in _TUNED and name in signature and not is_same(value, signature[name].default)
        ]
        if set_by_hand:
            names = " and ".join(set_by_hand)
            found = f"{names} {'are' if len(set_by_hand) > 1 else 'is'} not at the default"
            fix = f"DPRandomSearchCV({part.name}(), epsilon=...), or a PrivacyLedger for all fits"
            yield tip("SKP010", part.place, found, fix)


def _of_exact_scores(subject: Subject) -> Iterator[Finding]:
    """SKP006: exact scores of a Pareto search, and public data used for validation scores."""
    if _not_released(subject):
        found = "all scores and the choice are exact, only for those who may see the data"
        yield issue("SKP006", subject.whole.at("release"), found, "release=1.0")
    if subject.has_public_validation:
        found = "the winner is chosen by scores on X_val, so its score there is too optimistic"
        yield tip("SKP006", f"{subject.name}.fit(X_val=...)", found, "score on other public data")


def _of_diagnostics(subject: Subject) -> Iterator[Finding]:
    """SKP011: diagnostics, which are only for people who may see the data."""
    own = _strategy_of(subject.root)
    if own.get("diagnostics") is not True:
        return
    found = "exact scores and the number of runs are kept in diagnostics_, and pickled"
    yield issue("SKP011", subject.whole.at("strategy.diagnostics"), found, "diagnostics=False")
    # Without diagnostics, the search refuses this value.
    error_score = own.get("error_score")
    if isinstance(error_score, str) and error_score == "raise":
        found = "an exception in a fit shows values of the data"
        place = subject.whole.at("strategy.error_score")
        yield issue("SKP011", place, found, "error_score='worst'")


def _of_secret_size(subject: Subject) -> Iterator[Finding]:
    """SKP003: with n_public, the cost must not depend on the number of records."""
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
    """SKP014: one candidate, one value, or a space without the estimator's own values."""
    tries_own = _strategy_of(subject.root).get("try_own_values") is True
    for name, space in subject.spaces:
        place = f"{subject.name}.{name}"
        listed = {key: list(values) for key, values in space.items() if _is_listed(values)}
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


def _strategy_of(search: Any) -> Mapping[str, Any]:
    """Return the parameters of a search's strategy; empty if it has none."""
    try:
        return own_parameters(search._strategy())
    except Exception:
        # The search itself reports this.
        return {}


def _without_own(
    subject: Subject, space: Mapping[str, Any], listed: Mapping[str, list[Any]]
) -> Iterator[tuple[str, Any]]:
    """Yield searched lists that lack the estimator's own value, together with that value."""
    known: dict[str, Any] = {}
    if len(subject.estimators) == 1:
        known = subject.estimators[0][1].get_params(deep=True)
    for key, values in listed.items():
        # Only lists with several values; single values are reported already.
        is_plain = key in known and not hasattr(known[key], "get_params")
        if len(values) > 1 and is_plain and not any(is_same(known[key], one) for one in values):
            yield key, known[key]


def _is_listed(values: Any) -> bool:
    """Return whether the values of a space are a list, rather than a range or a distribution."""
    return isinstance(values, list) or (isinstance(values, np.ndarray) and values.ndim == 1)


Rule = Callable[[Subject], Iterator[Finding]]
_RULES: tuple[Rule, ...] = (
    findings_of_refusals,
    _of_delta,
    _of_seeds,
    _of_epsilon,
    _of_public_size,
    _of_few_records,
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
        if is_search(estimator):
            subject = _costed_search(subject, delta)
        else:
            epsilon, at = total_of(estimator, subject.size, delta)
            subject = replace(subject, epsilon=epsilon, delta=at)
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
