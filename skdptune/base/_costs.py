"""The price of any estimator, from its parameters and public sizes."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

from skdptune._validation import check_integer, check_kind, check_real
from skdptune.accounting import PrivacyProfile, PrivacyReport

CostFunction = Callable[[Any, int, int | None], PrivacyProfile]

_USUAL_DELTA = 1e-5

# Optional libraries whose models are taken in when the first one is met.
_ADAPTERS = {"diffprivlib": "skdptune.base._diffprivlib"}
_REPLACING = frozenset({"diffprivlib"})
_INSTEAD = {
    "StandardScaler": "skdptune.preprocessing.DPStandardScaler, or BoundedScaler(bounds)",
    "MinMaxScaler": "skdptune.preprocessing.DPMinMaxScaler, or BoundedScaler(bounds)",
    "MaxAbsScaler": "skdptune.preprocessing.BoundedScaler(bounds)",
    "RobustScaler": "skdptune.preprocessing.DPMinMaxScaler",
    "OneHotEncoder": "OneHotEncoder(categories=[...], handle_unknown='ignore') with a known list",
    "OrdinalEncoder": (
        "OrdinalEncoder(categories=[...], handle_unknown='use_encoded_value', unknown_value=-1)"
    ),
    "SimpleImputer": "SimpleImputer(strategy='constant', keep_empty_features=True)",
    "LogisticRegression": "skdptune.linear_model.DPLogisticRegression",
    "LinearSVC": "skdptune.linear_model.DPLinearSVC",
    "SGDClassifier": "skdptune.linear_model.DPLogisticRegression(solver='sgd')",
}


class NoProfileError(TypeError):
    """An estimator learns from data, and nothing says what that costs.

    Attributes
    ----------
    steps : tuple of str
        Names of the steps that lead to it.
    """

    def __init__(self, what: str, why: str = ".", steps: tuple[str, ...] = ()) -> None:
        super().__init__(what, why, steps)
        self.steps = steps

    def __str__(self) -> str:
        """Return the message, with the names of the steps after what was met there."""
        what, why, steps = self.args
        place = f" (step {' / '.join(steps)!r})" if steps else ""
        return f"{what}{place}{why}"

    def within(self, step: str) -> NoProfileError:
        """Return the error as seen from a composition around it."""
        what, why, steps = self.args
        return NoProfileError(what, why, (step, *steps))


def profile_of(estimator: Any, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
    """Return what fitting an estimator costs, before it sees data.

    Parameters
    ----------
    estimator : estimator
        A private estimator, a transformer that learns nothing, a Pipeline, ColumnTransformer or
        FeatureUnion of such, or a kind that was registered. It is not changed.
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
        If some step learns from data and has no profile. The message names it, and what to
        use instead.

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


def cost_of(estimator: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    """Return the price through the registry, after loading what knows the estimator's library."""
    _adopt_library_of(estimator)
    # An estimator's own word counts more than that of a class it descends from.
    own = getattr(estimator, "privacy_profile", None)
    is_ours = own is not None and not isinstance(estimator, type)
    find = own if is_ours else functools.partial(_registry, estimator)
    profile = find(n_samples, n_features)
    kind = type(estimator).__name__
    name = f"the price of {kind}"
    check_kind(profile, name=name, kind=PrivacyProfile, domain="a PrivacyProfile")
    return profile


def has_cost(estimator: Any) -> bool:
    """Say whether an estimator has a profile of its own or a registered one."""
    _adopt_library_of(estimator)
    if isinstance(estimator, type):
        return False
    own = getattr(estimator, "privacy_profile", None)
    return own is not None or _registry.dispatch(type(estimator)) is not _registry.dispatch(object)


def replaces_records(estimator: Any) -> bool:
    """Say whether an estimator's guarantee is about replacing a record, not adding one.

    Nothing that rests on a record being there or not, as sampling does, then applies.
    """
    return any(kind.__module__.partition(".")[0] in _REPLACING for kind in type(estimator).__mro__)


def _adopt_library_of(estimator: Any) -> None:
    for kind in type(estimator).__mro__:
        adapter = _ADAPTERS.get(kind.__module__.partition(".")[0])
        if adapter is not None:
            importlib.import_module(adapter).adopt()
            return


@functools.singledispatch
def _registry(estimator: Any, n_samples: int, n_features: int | None) -> PrivacyProfile:
    raise no_profile(estimator)


def register_profile(kind: type) -> Callable[[CostFunction], CostFunction]:
    """Register the price of a kind of estimator that is not ours.

    Parameters
    ----------
    kind : type
        Class of the estimators; subclasses are included.

    Returns
    -------
    callable
        Decorator of a function ``(estimator, n_samples, n_features) -> PrivacyProfile``.

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

    def decorator(function: CostFunction) -> CostFunction:
        _registry.register(kind)(function)
        return function

    return decorator


def no_profile(estimator: Any) -> NoProfileError:
    """Return the error that names an estimator without a profile, and what to use instead."""
    if isinstance(estimator, type):
        name = estimator.__name__
        return NoProfileError(f"estimator must be an instance; got the class {name}")
    if estimator is None or isinstance(estimator, str):
        return NoProfileError(f"estimator must be an estimator; got {estimator!r}")
    name = type(estimator).__name__
    advice = _INSTEAD.get(name)
    hint = f"Use {advice}." if advice else "If you know its cost, tell it to register_profile."
    return NoProfileError(
        f"estimator must be private or learn nothing; got {name}",
        f", which learns from the data at a price that nobody stated. {hint}",
    )


def privacy_of(
    fitted: Any, delta: float | None = None, *, n_samples: int | None = None
) -> PrivacyReport:
    """Return the report of anything that was fitted, pipelines included.

    Parameters
    ----------
    fitted : estimator
        A fitted private estimator, or a fitted pipeline of such and of steps that learn nothing.
    delta : float, optional
        At which to state the total. The default is the sum of the parts' deltas.
    n_samples : int, optional
        Number of records; asked for only where a registered kind's price depends on it.

    Returns
    -------
    PrivacyReport
        With one part for each step that costs anything.

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


def report_of(fitted: Any, n_samples: int | None) -> PrivacyReport:
    """Return the report of a step, at its own delta."""
    _adopt_library_of(fitted)
    own = getattr(fitted, "privacy_", None)
    if isinstance(own, PrivacyReport):
        return own
    if hasattr(fitted, "privacy_profile"):
        raise ValueError(f"fitted must be fitted; got a {type(fitted).__name__} without privacy_.")
    return report_registry(fitted, n_samples)


@functools.singledispatch
def report_registry(fitted: Any, n_samples: int | None) -> PrivacyReport:
    """Return the report of one kind of object that has none of its own."""
    name = type(fitted).__name__
    profile = cost_of(fitted, n_samples or 1, None)
    # A second size tells whether the price depends on the size.
    if n_samples is None and profile != cost_of(fitted, 1000, None):
        raise ValueError(f"n_samples must be given: the price of {name} depends on it; got None.")
    delta = 0.0 if math.isfinite(profile.epsilon(0.0)) else _USUAL_DELTA
    return PrivacyReport(profile, delta, name=name)
