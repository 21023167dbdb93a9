"""Charges of fits before they read data: their cost, and the assumptions behind it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone, is_classifier
from sklearn.utils import check_consistent_length, get_tags

from skdptune._compat import number_of_features, number_of_samples
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base._costs import SEEDED, assumptions_of, cost_of, neighbouring_of, once
from skdptune.base._persons import Persons, about_persons, by_persons
from skdptune.base._reading import as_table
from skdptune.base._records import check_rows_form, labels_in, read_targets
from skdptune.base._rows_in_parts import PrivateRows
from skdptune.ledger import PrivacyLedger, Reservation

# Arguments of a call to a method that reads data ---------------------------------------------


def arguments_of(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Return the arguments of a call by name; positional data are "X" and "y" in any method."""
    known = dict(bound.arguments)
    for name, each in bound.signature.parameters.items():
        if each.kind is each.VAR_KEYWORD and name != "refused":
            known |= known.pop(name, {})
    if "statistics" in known:
        return known
    for name, value in zip(("X", "y"), bound.args[1:], strict=False):
        is_data = name == "X" or isinstance(value, list | tuple) or hasattr(value, "shape")
        if name not in known and is_data:
            known[name] = value
    return known


def signature_with_object(method: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a bound method, with its object as the first parameter."""
    own = inspect.Parameter("_object", inspect.Parameter.POSITIONAL_ONLY)
    return inspect.Signature([own, *signature_of(method).parameters.values()])


def signature_of(method: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a method, or one that accepts anything if the method has none."""
    try:
        return inspect.signature(method)
    except ValueError:
        # Compiled code may have no signature.
        return inspect.signature(lambda *args, **kwargs: None)


# Charges -------------------------------------------------------------------------------------

UNKNOWN_SIZE = (
    "n_public must be given for rows in parts whose number is not known, if a ledger records the "
    "fit, since the cost is set aside before they are read; got None."
)
# Curves are compared at all of these: a ledger's total depends on more than one delta.
_DELTAS = tuple(10.0**-exponent for exponent in range(1, 16))


@dataclass(frozen=True)
class Charge:
    """The cost of a release, and what a ledger records with it.

    Parameters
    ----------
    profile : PrivacyProfile
        An upper bound on its cost.
    name : str
    assumptions : tuple of str
    neighbouring : str
    details : dict
        Public facts about the release.
    """

    profile: PrivacyProfile
    name: str
    assumptions: tuple[str, ...]
    neighbouring: str
    details: dict[str, Any]

    @property
    def is_free(self) -> bool:
        """Whether nothing has to be recorded, because the cost is zero."""
        return self.profile == PrivacyProfile.pure(0.0)

    def reserved(self, ledger: PrivacyLedger) -> Reservation:
        """Reserve the cost in a ledger, or raise if it exceeds the remaining budget."""
        return ledger.reserve(
            self.profile,
            name=self.name,
            assumptions=self.assumptions,
            neighbouring=self.neighbouring,
            details=self.details,
        )

    def check_covers(self, estimator: Any, ledger: PrivacyLedger) -> None:
        """Charge the actual cost of a fit in full, if it exceeds the announced cost."""
        found = getattr(estimator, "privacy_", None)
        if not isinstance(found, PrivacyReport) or found.profile == self.profile:
            return
        deltas = {0.0, ledger.delta, ledger.delta / 2.0, found.delta, *_DELTAS}
        actual, announced = found.profile, self.profile
        if all(actual.epsilon(d) <= announced.epsilon(d) * (1.0 + 1e-9) for d in deltas):
            return
        details = self.details | {"announced": self.name}
        more = Charge(found.profile, self.name, self.assumptions, self.neighbouring, details)
        with more.reserved(ledger):
            pass


def charge_of_fit(estimator: Any, arguments: Mapping[str, Any]) -> Charge:
    """Return the charge for a fit, computed from parameters and the form of its arguments.

    Parameters
    ----------
    estimator : estimator
    arguments : mapping
        The arguments of its fit, by name.

    Raises
    ------
    ValueError, TypeError
        If parameters are invalid, or if no fit could use arguments of this form.

    Notes
    -----
    Theorem H4. No record is read, with one exception: the label set, if it is public and affects
    the cost.
    """
    _check_form(estimator, arguments)
    n_samples, n_features = _sizes(estimator, arguments)
    costed = _labelled(estimator, arguments.get("y"))
    if isinstance(arguments.get("groups"), Persons):
        costed = by_persons(costed)
    profile = cost_of(costed, n_samples, n_features)
    seeded = (SEEDED,) if getattr(estimator, "random_state", None) is not None else ()
    kind, relation = type(estimator), neighbouring_of(estimator)
    assumed = (*assumptions_of(costed, n_samples, n_features), *seeded)
    if isinstance(arguments.get("groups"), Persons):
        relation, assumed = about_persons(relation, assumed)
    return Charge(
        profile,
        kind.__name__,
        once(assumed),
        relation,
        {"estimator": f"{kind.__module__}.{kind.__qualname__}", "n_samples": n_samples},
    )


def _check_form(estimator: Any, arguments: Mapping[str, Any]) -> None:
    """Raise for parameters and for forms of arguments that the fit would reject anyway."""
    check = getattr(estimator, "_check_parameters", None)
    if callable(check):
        check()
    X, y = _rows_of(arguments), arguments.get("y")
    has_form = hasattr(X, "shape") or hasattr(X, "__len__")
    if has_form and hasattr(estimator, "__sklearn_tags__"):
        _check_tagged(estimator, X, y)
    check = getattr(estimator, "_check_fit", None)
    if callable(check):
        check({**arguments, "X": X})


def _check_tagged(estimator: Any, X: Any, y: Any) -> None:
    """Raise for a form of records that scikit-learn's tags of an estimator rule out."""
    tags = get_tags(estimator)
    if y is None and tags.target_tags.required:
        name = type(estimator).__name__
        raise ValueError(f"y must be given: {name} requires y to be passed; got None.")
    if hasattr(X, "shape") and tags.input_tags.two_d_array:
        # Of classes of other libraries, we only know that they accept tables.
        check_rows_form(X, accept_sparse=True, allow_nd=True)
    if y is not None:
        check_consistent_length(X, y)


def _rows_of(arguments: Mapping[str, Any]) -> Any:
    """Return the records: the argument X, or else the first argument after the object itself."""
    if "X" in arguments:
        return as_table(arguments["X"])
    others = [value for name, value in arguments.items() if name not in ("self", "y")]
    return others[0] if others else None


def _sizes(estimator: Any, arguments: Mapping[str, Any]) -> tuple[int, int | None]:
    """Return the public number of records, and the number of columns or None if it is unknown."""
    X, statistics = _rows_of(arguments), arguments.get("statistics")
    n_features = X.n_features if isinstance(X, PrivateRows) else number_of_features(X)
    if statistics is not None:
        n_features = getattr(statistics, "n_features_in_", None)
    public, persons = getattr(estimator, "n_public", None), arguments.get("groups")
    if public is not None:
        return public, n_features
    if isinstance(persons, Persons):
        return persons.size, n_features
    if statistics is not None:
        return int(statistics.n_samples), n_features
    if isinstance(X, PrivateRows) and X.n_samples is not None:
        return X.n_samples, n_features
    try:
        return number_of_samples(X), n_features
    except (TypeError, ValueError):
        raise ValueError(UNKNOWN_SIZE) from None


def _labelled(estimator: Any, y: Any) -> Any:
    """Return the estimator, or a copy with the public label set if the cost depends on it."""
    is_open = getattr(estimator, "classes", ()) is None
    if y is None or not is_open or not hasattr(estimator, "__sklearn_tags__"):
        return estimator
    if not is_classifier(estimator):
        return estimator
    if "classes" not in getattr(estimator, "cost_parameters", ("classes",)):
        return estimator
    labels, _ = read_targets(y, "any", None)
    if labels.ndim != 1:
        return estimator
    found = labels_in(labels)
    if found.size < 2:
        raise ValueError("y must have at least two classes; got one class.")
    return clone(estimator).set_params(classes=found.tolist())
