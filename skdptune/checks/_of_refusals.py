"""Findings about what is refused: they say the same as the refusal, and are built from it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skdptune.base import Refusal, distrusted
from skdptune.checks._finding import Finding, issue
from skdptune.checks._subject import Subject

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
# They fit their estimator several times, and choose or learn by scores or predictions.
_SEARCHES = frozenset(
    {
        *("CalibratedClassifierCV", "RFECV", "SequentialFeatureSelector", "StackingClassifier"),
        *("StackingRegressor", "TunedThresholdClassifierCV", "ElasticNetCV", "LassoCV"),
        *("LassoLarsCV", "LogisticRegressionCV", "RidgeClassifierCV", "RidgeCV"),
    }
)
# The code of what is wrong with a parameter, by its name; others are refused as they are.
_BY_PARAMETER = {
    **dict.fromkeys(("bounds", "bounds_X", "bounds_y", "data_norm", "target_bound"), "SKP002"),
    **dict.fromkeys(("schema",), "SKP009"),
    **dict.fromkeys(("n_public",), "SKP003"),
    **dict.fromkeys(("classes", "labels"), "SKP008"),
    **dict.fromkeys(("diagnostics", "error_score"), "SKP011"),
    **dict.fromkeys(("callbacks", "train_split", "third_objective"), "SKP015"),
}
_UNPAID = ", and neither are its scores and its choices, whatever it is around"
_NEIGHBOURS = "about different neighbours"


def findings_of_refusals(subject: Subject) -> Iterator[Finding]:
    """Find what is refused: steps without a cost, and wrong parameters."""
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


def code_of_refusal(refusal: Refusal) -> str:
    """Return the code of what keeps an estimator from having a cost."""
    if refusal.is_of_distrusted:
        return "SKP020"
    name, _, missing = refusal.got.partition(" without ")
    if missing:
        return "SKP008" if missing == "classes" else "SKP002"
    if name in _BINS:
        return "SKP002"
    if name in _LEARNT:
        return "SKP009"
    if name.endswith("SearchCV") or name in _SEARCHES:
        return "SKP006"
    return "SKP001" if refusal.learns_features else "SKP007"


def _of_error(place: str, error: Exception) -> Finding:
    """Return what an error says of a parameter, as a finding."""
    text = " ".join(str(error).split())
    parameter = next(iter(re.findall(r"^(\w+) must ", text)), "")
    code = _BY_PARAMETER.get(parameter, "SKP019")
    if "must have a parameter n_public" in text:
        code = "SKP003"
    if _NEIGHBOURS in text:
        code = "SKP012"
    # In the house's form: the fault is one sentence, and a hint may follow.
    found, separator, hint = text.partition(". ")
    where = f"{place}.{parameter}" if parameter not in ("", "estimator") else place
    return issue(code, where, found.removesuffix("."), hint if separator else _remedy_of(text))


def _remedy_of(text: str) -> str:
    """Return what to do where an error has no hint: what it says must be so."""
    wanted = re.findall(r"^(\w+) must (.*?); got ", text)
    return "{} must {}".format(*wanted[0]) if wanted else "Mend what the message names."
