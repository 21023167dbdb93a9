"""The privacy cost of any estimator, from its parameters and public sizes."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any

from skdptune._validation import check_integer, check_kind
from skdptune.accounting import PrivacyProfile
from skdptune.base._distrusted import distrusted_class
from skdptune.base._nested_parameters import own_member
from skdptune.base._refusals import NoProfileError, Refusal, no_profile, refusal_of

# The estimator is of the class that the function is registered for.
CostFunction = Callable[[Any, int, int | None], PrivacyProfile]

# Optional libraries, whose models are registered when the first one is met.
_ADAPTERS = {"diffprivlib": "skdptune.base._diffprivlib"}
_REPLACING = frozenset({"diffprivlib"})
_ANY_SIZE = 1000
_watchers: list[Callable[[type], None]] = []
_broken: set[str] = set()


def profile_of(estimator: object, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
    """Return what fitting an estimator costs, before it sees data.

    Parameters
    ----------
    estimator : estimator
        A private estimator, a transformer that learns nothing, a Pipeline, ColumnTransformer or
        FeatureUnion of such, or of a class that was registered. It is not changed.
    n_samples : int
        Number of records; treated as public.
    n_features : int, optional
        Number of columns, where it is known.

    Returns
    -------
    PrivacyProfile

    Raises
    ------
    NoProfileError
        If some step learns from data and has no profile. The message names all such steps, and
        what to use instead of each.

    Notes
    -----
    Steps that see the same records compose adaptively, per direction. Neighbours differ by adding
    or removing one record.

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
    """Return the profile of a fit, by the estimator's own word or that of its registered class."""
    load_adapter_of(estimator)
    # An estimator's own profile takes precedence over that of a class it descends from.
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
    """Return an error together with all that keeps estimators from having a cost, if anything.

    Who mends one thing at a time would else be refused again for each.
    """
    refusals: list[Refusal] = []
    for estimator in estimators:
        try:
            cost_of(estimator, _ANY_SIZE, None)
        except NoProfileError as found:
            refusals += found.refusals
        except (TypeError, ValueError):
            # Bad parameters, or a cost that depends on the number of columns.
            continue
    if not refusals:
        return error
    return NoProfileError(*refusals, refusal_of(error))


def refusals_of(estimator: object, n_features: int | None = None) -> tuple[Refusal, ...]:
    """Return what keeps an estimator from having a cost at any size, wrong parameters aside.

    Parameters
    ----------
    estimator : estimator
    n_features : int, optional
        Number of columns, where it is known. A number of records is made up.
    """
    try:
        cost_of(estimator, _ANY_SIZE, n_features)
    except NoProfileError as found:
        return tuple(each for each in found.refusals if not each.is_of_parameter)
    except Exception:
        # What else is wrong may be so at the made-up size alone: it is said when it is known.
        return ()
    return ()


def has_cost(estimator: object) -> bool:
    """Return whether an estimator has a profile of its own or a registered one."""
    load_adapter_of(estimator)
    if isinstance(estimator, type):
        return False
    own = own_member(estimator, "privacy_profile")
    return own is not None or _registry.dispatch(type(estimator)) is not _registry.dispatch(object)


def replaces_records(estimator: object) -> bool:
    """Return whether an estimator's guarantee is about replacing a record, not adding one.

    Bounds for sampling and for disjoint parts, which are about adding one, then do not apply.
    """
    own = own_member(estimator, "neighbouring")
    if isinstance(own, str) and own.startswith("replace"):
        return True
    return any(kind.__module__.partition(".")[0] in _REPLACING for kind in type(estimator).__mro__)


def load_adapter_of(estimator: object) -> None:
    """Register the models of the optional library that an estimator comes from, if it is known."""
    for kind in type(estimator).__mro__:
        adapter = _ADAPTERS.get(kind.__module__.partition(".")[0])
        if adapter is not None:
            importlib.import_module(adapter).register()
            return


def has_adapter(module: object) -> bool:
    """Return whether a module is of an optional library whose models are known here."""
    return str(module).partition(".")[0] in _ADAPTERS


def load_adapters() -> None:
    """Register the models of all optional libraries that are installed."""
    for library, adapter in _ADAPTERS.items():
        if library in _broken or find_spec(library) is None:
            continue
        try:
            importlib.import_module(adapter).register()
        except ImportError:
            # Of a version that does not go with what else is installed: nobody can use it.
            _broken.add(library)


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
        Whether a class is registered of which it is known that it does not keep to the guarantee
        that its library states. Reports then list the fault among their assumptions.

    Returns
    -------
    callable
        Decorator of a function ``(estimator, n_samples, n_features) -> PrivacyProfile``.

    Notes
    -----
    Assumption R4. From then on fits of the class, and of those that descend from it, are recorded
    in the ledger that is in use (Theorem H4).

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
            "kind must keep to the guarantee that its library states, unless insist=True; got "
            f"{kind.__name__}: {fault.fault} ({fault.source})."
        )

    def decorator(function: CostFunction) -> CostFunction:
        register_cost(kind)(function)
        for watcher in _watchers:
            watcher(kind)
        return function

    return decorator


def register_cost(kind: type) -> Callable[[CostFunction], CostFunction]:
    """Register the cost of a class whose fits are not to be recorded: its steps' own fits are."""
    return _registry.register(kind)


def registration_of(kind: type) -> tuple[type, CostFunction] | None:
    """Return the class that others have registered, and its cost, from which a class descends."""
    for each in kind.__mro__:
        function = _registry.registry.get(each)
        if function is not None and each is not object:
            is_own = function.__module__.startswith("skdptune.")
            return None if is_own else (each, function)
    return None


def adopt_registration(kind: type, function: CostFunction) -> None:
    """Register a class as in the process that has sent it here, unless it is."""
    if kind not in _registry.registry:
        register_profile(kind, insist=True)(function)


def when_registered(watcher: Callable[[type], None]) -> None:
    """Call a function with each class that is registered from now on."""
    _watchers.append(watcher)
