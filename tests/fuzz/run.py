"""Calls one public constructor or function with random arguments, and describes faults.

Each input has a number, so that a failing one can be run again.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import math
import numbers
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune.accounting import BudgetExceededError, PrivacyProfile, PrivacyReport
from skdptune.ledger import LedgerError
from tests.fuzz import recipes
from tests.fuzz.recipes import is_estimator, recipe
from tests.fuzz.values import ENDLESS, Random, nasty, pick, table, target

SECONDS = 10
# What a call may raise; the library's own errors descend from these, or are named. A text may be
# taken for the name of a file.
ALLOWED: tuple[type[BaseException], ...] = (
    *(ValueError, TypeError, BudgetExceededError),
    *(FileNotFoundError, LedgerError),
)
# How often no argument is spoilt, one, two, three.
SPOILT = [0.35, 0.4, 0.2, 0.05]
# Of `fit`, which few estimators know or none.
KEYWORDS = ["sample_weight", "typo", "groups", "coef_init", "classes", "X_val"]
# How often each kind of callable is drawn: what is cheap more often.
WEIGHTS = {"estimator": 5.0, "search": 2.0, "net": 1.0, "other": 1.5}


class Hang(BaseException):
    """An input took too long."""


class Fault(Exception):
    """A call returned what it should not."""


@functools.cache
def targets() -> tuple[list[tuple[str, Callable[..., Any]]], np.ndarray]:
    """Return the public callables, and how often each is drawn."""
    found = [pair for pair in recipes.public_callables() if recipe(*pair) or _takes_any(pair[1])]
    weights = np.array([WEIGHTS[_kind(name, thing)] for name, thing in found])
    return found, weights / weights.sum()


def _takes_any(thing: Callable[..., Any]) -> bool:
    return bool(inspect.signature(thing).parameters)


def _kind(name: str, thing: Callable[..., Any]) -> str:
    if "Search" in name or name == "pareto_search":
        return "search"
    if "NeuralNet" in name:
        return "net"
    return "estimator" if is_estimator(thing) else "other"


def run(number: int) -> tuple[str, str, str]:
    """Return what was called, how it ended ("fit", "refused", a fault's name) and the details."""
    rng = np.random.default_rng(number)
    found, weights = targets()
    name, thing = found[int(rng.choice(len(found), p=weights))]
    try:
        with quiet(), _watchdog():
            _call(rng, name, thing)
    except ALLOWED as error:
        return name, "refused", f"{type(error).__name__}: {str(error)[:200]}"
    except (Exception, Hang) as error:
        return name, type(error).__name__, traceback.format_exc()
    return name, "done", ""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        with contextlib.redirect_stderr(io.StringIO()):
            yield


@contextlib.contextmanager
def _watchdog() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang(f"took more than {SECONDS} seconds")

    # Time of the processor, which other processes do not use up; and for what waits, of the clock.
    signals = {signal.SIGPROF: SECONDS, signal.SIGALRM: 20 * SECONDS}
    timers = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {each: signal.signal(each, stop) for each in signals}
    for each, seconds in signals.items():
        signal.setitimer(timers[each], seconds)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.setitimer(timers[each], 0)
            signal.signal(each, handler)


def _call(rng: Random, name: str, thing: Callable[..., Any]) -> None:
    made = made_of(thing, arguments(rng, name, thing))
    if is_estimator(thing):
        _fit(rng, made)
    elif hasattr(made, "update"):
        X = table(rng)
        made.update(X, target(rng, X, False))
    _check_result(made)


def made_of(thing: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Return what a callable makes of arguments by name."""
    parameters = inspect.signature(thing).parameters
    positional = [
        given.pop(name)
        for name, parameter in parameters.items()
        if parameter.kind is parameter.POSITIONAL_ONLY and name in given
    ]
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD and name in given:
            more = given.pop(name)
            given |= more if isinstance(more, dict) and all(map(_is_name, more)) else {}
    return thing(*positional, **given)


def _is_name(key: Any) -> bool:
    return isinstance(key, str)


def arguments(
    rng: Random, name: str, thing: Callable[..., Any], spoilt: int | None = None
) -> dict[str, Any]:
    """Return right arguments of which some are spoilt, by default up to three."""
    right = recipe(name, thing)
    given = {key: _fresh(key, pick(rng, values)) for key, values in right.items()}
    parameters = list(inspect.signature(thing).parameters)
    count = int(rng.choice(4, p=SPOILT)) if spoilt is None else spoilt
    for _ in range(count if parameters else 0):
        key = pick(rng, parameters)
        given[key] = nasty(rng)
        while key in recipes.ENDLESS and _is_endless(given[key]):
            given[key] = nasty(rng)
        if key == "n_jobs" and not isinstance(given[key], str):
            # Starting worker processes takes longer than everything else.
            given[key] = pick(rng, [None, 1, 0, 1.5, math.nan])
    return given


def _fresh(key: str, value: Any) -> Any:
    is_estimator = hasattr(value, "get_params") and not isinstance(value, type)
    return clone(value) if is_estimator and key != "fitted" else value


def _is_endless(value: Any) -> bool:
    if isinstance(value, list | tuple | np.ndarray):
        return any(map(_is_endless, value))
    if not isinstance(value, numbers.Real) or value != value or value == math.inf:
        return False
    return bool(value > ENDLESS)


def _fit(rng: Random, estimator: Any) -> None:
    X = table(rng)
    classify = "Regress" not in type(estimator).__name__
    y = target(rng, X, classify)
    more = {pick(rng, KEYWORDS): nasty(rng)} if rng.random() < 0.03 else {}
    if rng.random() < 0.02:
        estimator.fit(X, **more)
    else:
        estimator.fit(X, y, **more)
    report = getattr(estimator, "privacy_", None)
    if report is None and not hasattr(estimator, "bounds") and not hasattr(estimator, "norm"):
        raise Fault("fitted, and nothing is reported")
    if report is not None:
        check_report(report)
    if np.ndim(X) == 2:
        _use(estimator)


def _use(estimator: Any) -> None:
    """Ask the fitted model for its predictions, or a scaler for its rows."""
    n_features = getattr(estimator, "n_features_in_", None)
    if getattr(estimator, "refit", None) is False or n_features is None:
        return
    rows = np.linspace(-1.0, 1.0, 2 * n_features).reshape(2, n_features)
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        import pandas as pd

        rows = pd.DataFrame(rows, columns=names)
    method = "predict" if hasattr(estimator, "predict") else "transform"
    made = getattr(estimator, method)(rows)
    if len(made) != 2:
        raise Fault(f"{method} returned {len(made)} rows")
    if np.asarray(made).dtype.kind == "f" and not np.isfinite(np.asarray(made)).all():
        raise Fault(f"{method} returned what is not finite")


def _check_result(made: Any) -> None:
    if isinstance(made, PrivacyProfile):
        check_profile(made)
    if isinstance(made, PrivacyReport):
        check_report(made)
    profile = getattr(made, "profile", None)
    if isinstance(profile, PrivacyProfile):
        check_profile(profile)


def check_report(report: PrivacyReport) -> None:
    """Raise if a report states an epsilon that is none."""
    for epsilon in (report.epsilon, report.epsilon_spent):
        if epsilon is not None and not epsilon >= 0.0:
            raise Fault(f"the report states epsilon={epsilon}")
    if not 0.0 <= report.delta <= 1.0:
        raise Fault(f"the report states delta={report.delta}")
    str(report)
    check_profile(report.profile)


def check_profile(profile: PrivacyProfile) -> None:
    """Raise if a profile says NaN, a negative epsilon, or a delta outside of [0, 1]."""
    epsilons = [profile.epsilon(delta) for delta in (0.0, 1e-10, 1e-5, 0.5, 1.0)]
    if not all(epsilon >= 0.0 for epsilon in epsilons) or sorted(epsilons)[::-1] != epsilons:
        raise Fault(f"the profile has epsilons {epsilons}")
    deltas = np.asarray(profile.delta([0.0, 0.5, 5.0, 500.0]))
    if not ((deltas >= 0.0) & (deltas <= 1.0)).all() or (np.diff(deltas) > 0.0).any():
        raise Fault(f"the profile has deltas {deltas}")


def survey(start: int, count: int) -> tuple[Counter[str], list[str]]:
    """Return how many inputs ended how, and the details of those that found a fault."""
    ends: Counter[str] = Counter()
    faults = []
    for number in range(start, start + count):
        name, end, details = run(number)
        ends[end] += 1
        if end not in ("done", "refused"):
            faults.append(f"input {number}: {name}\n{details}")
    return ends, faults
