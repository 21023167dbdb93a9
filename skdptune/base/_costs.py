"""The privacy cost of any estimator before its fit, its assumptions, and reports after a fit."""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any

from skdptune._formatting import shown
from skdptune._validation import check_integer, check_kind, check_real
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base._parameters import nested_estimators, own_member
from skdptune.base._refusals import (
    LIBRARY,
    NoProfileError,
    Refusal,
    distrusted_class,
    no_profile,
    refusal_of,
)
from skdptune.ledger._shared import ADD_OR_REMOVE, RELATIONS, REPLACE, common_relation

# Its first argument is an estimator of the class for which the function is registered.
CostFunction = Callable[[Any, int, int | None], PrivacyProfile]

DEFAULT_DELTA = 1e-5

# Registers the models of the optional library when the first one is encountered. Their guarantee
# is about replacing a record.
_ADAPTER = "skdptune.base._diffprivlib"
_ANY_SIZE = 1000
_watchers: list[Callable[[type], None]] = []


def profile_of(estimator: object, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
    """Return the privacy cost of fitting an estimator, before it sees data.

    Parameters
    ----------
    estimator : estimator
        A private estimator, a transformer that learns nothing from data, an estimator of a
        registered class, or a Pipeline, ColumnTransformer or FeatureUnion of these. It is not
        changed.
    n_samples : int
        Number of records; treated as public.
    n_features : int, optional
        Number of columns, if it is known.

    Returns
    -------
    PrivacyProfile

    Raises
    ------
    NoProfileError
        If a step learns from data and has no profile. The message lists all such steps, and what
        to use instead of each.

    Notes
    -----
    Steps that see the same records compose adaptively, separately for each direction. Neighbours
    differ by adding or removing one record.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> from skdptune.base import profile_of
    >>> profile_of(make_pipeline(Normalizer()), n_samples=100).epsilon(0.0)
    0.0
    """
    check_integer(n_samples, name="n_samples", lower=1)
    if n_features is not None:
        check_integer(n_features, name="n_features", lower=1)
    return cost_of(estimator, n_samples, n_features)


def cost_of(estimator: object, n_samples: int, n_features: int | None) -> PrivacyProfile:
    """Return the profile of a fit, stated by the estimator or by its registered class."""
    load_adapter_of(estimator)
    # An estimator's own profile takes precedence over that of a registered parent class.
    own = own_member(estimator, "privacy_profile")
    if own is None or isinstance(estimator, type):
        own = functools.partial(_registry, estimator)
    profile = own(n_samples, n_features)
    name = f"the cost of {type(estimator).__name__}"
    checked: PrivacyProfile = check_kind(
        profile, name=name, kind=PrivacyProfile, domain="a PrivacyProfile"
    )
    return checked


def beside_refusals(error: Exception, estimators: Iterable[object]) -> Exception:
    """Combine an error with all reasons why these estimators have no cost, if there are any.

    Users then see everything that is wrong at once, and need not fix one problem per attempt.
    """
    refusals = [each for estimator in estimators for each in _refusals(estimator)]
    return NoProfileError(*refusals, refusal_of(error)) if refusals else error


def refusals_of(estimator: object) -> tuple[Refusal, ...]:
    """Return the reasons why an estimator has no cost, except invalid parameters."""
    return tuple(each for each in _refusals(estimator) if not each.is_of_parameter)


def _refusals(estimator: object) -> tuple[Refusal, ...]:
    try:
        cost_of(estimator, _ANY_SIZE, None)
    except NoProfileError as found:
        return found.refusals
    except Exception:
        # Other errors may occur only at the made-up size. They are raised when the size is known.
        return ()
    return ()


def has_cost(estimator: object) -> bool:
    """Return whether an estimator states its own profile or has a registered one."""
    load_adapter_of(estimator)
    if isinstance(estimator, type):
        return False
    own = own_member(estimator, "privacy_profile")
    return own is not None or _registry.dispatch(type(estimator)) is not _registry.dispatch(object)


def replaces_records(estimator: object) -> bool:
    """Return whether an estimator's guarantee is about replacing a record, not adding one.

    Bounds for sampling and for disjoint parts are about adding a record, so they do not apply
    then.
    """
    own = own_member(estimator, "neighbouring")
    if isinstance(own, str) and own.startswith("replace"):
        return True
    return any(has_adapter(kind.__module__) for kind in type(estimator).__mro__)


def load_adapter_of(estimator: object) -> None:
    """Register the models of the optional library if an estimator comes from it."""
    if any(has_adapter(kind.__module__) for kind in type(estimator).__mro__):
        importlib.import_module(_ADAPTER).register()


def has_adapter(module: object) -> bool:
    """Return whether a module belongs to the optional library whose models are registered."""
    return str(module).partition(".")[0] == LIBRARY


@functools.cache
def load_adapters() -> None:
    """Register the models of the optional library, if it is installed."""
    if find_spec(LIBRARY) is not None:
        # The installed version may be incompatible with other packages, and cannot be used then.
        with contextlib.suppress(ImportError):
            importlib.import_module(_ADAPTER).register()


@functools.singledispatch
def _registry(estimator: object, n_samples: int, n_features: int | None) -> PrivacyProfile:
    raise no_profile(estimator)


def register_profile(
    kind: type, *, insist: bool = False
) -> Callable[[CostFunction], CostFunction]:
    """Register the privacy cost of a class of estimators that has no ``privacy_profile``.

    Parameters
    ----------
    kind : type
        Class of the estimators; subclasses are included.
    insist : bool, default=False
        Whether to register a class that is known to violate the guarantee that its library states.
        Reports then list the fault among their assumptions.

    Returns
    -------
    callable
        Decorator for a function ``(estimator, n_samples, n_features) -> PrivacyProfile``.

    Notes
    -----
    Assumption R4. After the registration, fits of the class and of its subclasses are recorded in
    the active ledger (Theorem H4).

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile
    >>> from skdptune.base import profile_of, register_profile
    >>> class NoisyMean:
    ...     noise = 4.0
    >>> @register_profile(NoisyMean)
    ... def cost_of_noisy_mean(estimator, n_samples, n_features):
    ...     return PrivacyProfile.gaussian(1 / estimator.noise)
    >>> round(profile_of(NoisyMean(), n_samples=100).epsilon(1e-6), 2)
    1.06
    """
    check_kind(kind, name="kind", kind=type, domain="a class")
    check_kind(insist, name="insist", kind=bool, domain="True or False")
    fault = distrusted_class(kind)
    if fault is not None and not insist:
        raise ValueError(
            "kind must meet the guarantee that its library states, unless insist=True; got "
            f"{kind.__name__}: {fault.fault} ({fault.source})."
        )

    def decorator(function: CostFunction) -> CostFunction:
        register_cost(kind)(function)
        for watcher in _watchers:
            watcher(kind)
        return function

    return decorator


def register_cost(kind: type) -> Callable[[CostFunction], CostFunction]:
    """Register the cost of a class whose fits are not recorded because those of its steps are."""
    return _registry.register(kind)


def registration_of(kind: type) -> tuple[type, CostFunction] | None:
    """Return the parent class that a user registered, with its cost, or None."""
    for each in kind.__mro__:
        function = _registry.registry.get(each)
        if function is not None and each is not object:
            # Code run by `exec` belongs to no module.
            is_own = str(getattr(function, "__module__", None)).startswith("skdptune.")
            return None if is_own else (each, function)
    return None


def adopt_registration(kind: type, function: CostFunction) -> None:
    """Register a class as in the process that sent it here, if it is not registered yet."""
    if kind not in _registry.registry:
        register_profile(kind, insist=True)(function)


def when_registered(watcher: Callable[[type], None]) -> None:
    """Call a function with each class that is registered from now on."""
    _watchers.append(watcher)


# Assumptions of a guarantee, and its neighbouring relation -----------------------------------

# Assumption F6: seeds are not covered.
SEEDED = (
    "the noise is drawn from a seed: anybody who knows the seed can subtract it, and fits with "
    "the same seed, such as clones on two folds, share their noise and have no joint guarantee"
)


def neighbouring_of(estimator: Any) -> str:
    """Return the neighbouring relation of an estimator's guarantee, including all of its steps.

    Mixtures of steps about replacing and steps about adding a record are detected where costs are
    computed, because a step without a cost is compatible with both relations.
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
    """Return the relation for which guarantees about all given ones hold; raise if there is none.

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
    """Return those assumptions of an estimator's guarantee that are known before its fit.

    Parameters
    ----------
    estimator : estimator
        Its method ``privacy_assumptions`` is called, or otherwise the function registered for its
        class.
    n_samples : int
        Number of records; public.
    n_features : int, optional
        Number of columns, if it is known.

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
        # The assumptions depend on a number that is not known before the fit.
        return ()


@functools.singledispatch
def assumption_registry(
    estimator: object, n_samples: int, n_features: int | None
) -> tuple[str, ...]:
    """Return the assumptions of an object that does not state any; classes register a function."""
    return ()


def assumptions_in(report: PrivacyReport) -> tuple[str, ...]:
    """Return the assumptions of a report and of all its parts, without repetitions."""
    return once(_gathered(report))


def _gathered(report: PrivacyReport) -> Iterator[str]:
    yield from report.assumptions
    for part in report.parts:
        yield from _gathered(part)


def once(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return sentences in their order, without repetitions."""
    return tuple(dict.fromkeys(sentences))


# Reports of fitted objects -------------------------------------------------------------------


def privacy_of(
    fitted: object, delta: float | None = None, *, n_samples: int | None = None
) -> PrivacyReport:
    """Return the privacy report of any fitted estimator or pipeline.

    Parameters
    ----------
    fitted : estimator
        A fitted private estimator, or a fitted pipeline of private estimators and of steps that
        learn nothing from data.
    delta : float, optional
        The delta at which the total is stated. The default is the sum of the parts' deltas.
    n_samples : int, optional
        Number of records; required only if a registered class has a cost that depends on it.

    Returns
    -------
    PrivacyReport
        It has one part for each step that has a cost.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdptune.base import privacy_of
    >>> from skdptune.preprocessing import RowNormClipper
    >>> pipeline = make_pipeline(RowNormClipper(1.0)).fit(np.eye(3))
    >>> privacy_of(pipeline).epsilon
    0.0
    """
    if delta is not None:
        delta = check_real(delta, name="delta", lower=0.0, upper=1.0)
    if n_samples is not None:
        check_integer(n_samples, name="n_samples", lower=1)
    report = report_of(fitted, n_samples)
    if delta is None or delta == report.delta:
        return report
    return PrivacyReport(
        report.profile,
        delta,
        name=report.name,
        note=report.note,
        parts=report.parts,
        assumptions=report.assumptions,
        neighbouring=report.neighbouring,
        bound=report.bound,
    )


def report_of(fitted: object, n_samples: int | None) -> PrivacyReport:
    """Return the report of a fitted step, at its own delta."""
    load_adapter_of(fitted)
    own = own_member(fitted, "privacy_")
    if isinstance(own, PrivacyReport):
        return own
    if own_member(fitted, "privacy_profile") is not None:
        raise ValueError(f"fitted must be fitted; got a {type(fitted).__name__} without privacy_.")
    return report_registry(fitted, n_samples)


@functools.singledispatch
def report_registry(fitted: object, n_samples: int | None) -> PrivacyReport:
    """Return the report of an object without ``privacy_``; classes register a function."""
    name = type(fitted).__name__
    profile = cost_of(fitted, n_samples or 1, None)
    # A second size shows whether the cost depends on the size.
    if n_samples is None and profile != cost_of(fitted, 1000, None):
        raise ValueError(f"n_samples must be given: the cost of {name} depends on it; got None.")
    return PrivacyReport(
        profile,
        0.0 if math.isfinite(profile.epsilon(0.0)) else DEFAULT_DELTA,
        name=name,
        assumptions=assumptions_of(fitted, n_samples or 1),
        neighbouring=neighbouring_of(fitted),
    )
