"""How many fits a process has seen, and a warning of those that nobody adds up.

**What counts as the same thing, tuned on the same data.** Fits of one class, whatever their
parameters, to tables with the same columns (their number, and their names where they have some)
and as many records, or one more or less, as the folds of a cross-validation have. A transformer
is compared with itself alone, since a composition may hold several of a class. All of
this is public: no record is looked at, and nothing but counts is kept.
"""

from __future__ import annotations

import contextlib
import math
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from skdptune._compat import number_of_samples
from skdptune._formatting import shown_delta, shown_number
from skdptune.accounting import PrivacyReport

# The number of columns, and a hash of their names.
Form = tuple[Any, int]
Cost = tuple[float, float]


class PrivacyWarning(UserWarning):
    """A setting that is allowed, but promises less privacy than it seems to."""


class FitsSeen:
    """The fits of a class, or of a transformer, to tables with the same columns.

    Attributes
    ----------
    count : int
        In this process, of those that did not fail.
    costs : dict or None
        The first (epsilon, delta) of each number of records, None where it is no parameter. None
        in place of all of them once a warning was given.
    """

    __slots__ = ("costs", "count")

    def __init__(self) -> None:
        self.count = 0
        self.costs: dict[int, Cost | None] | None = {}

    def how_many(self) -> int:
        """Return how many there are by now."""
        return self.count

    def like(self, size: int) -> list[Cost | None]:
        """Return the cost of a fit to as many records, if there was one and no warning of it."""
        costs = self.costs or {}
        return [costs[near] for near in (size, size - 1, size + 1) if near in costs][:1]


class AnnouncedFit(NamedTuple):
    """A fit that is about to read its data.

    Attributes
    ----------
    seen : FitsSeen
        Of its class.
    compared : FitsSeen or None
        What it is compared with; None where its cost is added up.
    size : int
        The public number of records.
    cost : tuple or None
        Its (epsilon, delta), where these are parameters.
    """

    seen: FitsSeen
    compared: FitsSeen | None
    size: int
    cost: Cost | None


# Outside of the objects, since a pickle of one must not hold what may be secret.
_seen: weakref.WeakKeyDictionary[Any, dict[Form, FitsSeen]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_expected: ContextVar[bool] = ContextVar("skdptune_expected_refits", default=False)


@contextmanager
def expected_refits() -> Iterator[None]:
    """Neither count fits of a block in this thread nor warn of them, as those of an audit."""
    token = _expected.set(True)
    try:
        yield
    finally:
        _expected.reset(token)


def announce_fit(estimator: Any, X: Any, *, warns: bool) -> AnnouncedFit | None:
    """Warn before a fit reads the data where it may be one of many, and return what to count.

    Parameters
    ----------
    estimator : estimator
    X : array-like
        Its form alone is used.
    warns : bool
        Whether nobody adds up what fits cost.

    Returns
    -------
    AnnouncedFit or None
        None for what protects nothing, and for fits that are expected.
    """
    cost = _cost_of(estimator)
    is_private = cost is None or cost[0] != math.inf
    if _expected.get() or not is_private or isinstance(estimator, type):
        return None
    kind = type(estimator)
    size, form = _size_and_form(estimator, X)
    with _lock:
        seen = _seen_of(kind, form)
        if not warns or size is None:
            return AnnouncedFit(seen, None, 0, cost)
        # A composition may hold several transformers of a class.
        is_transformer = hasattr(kind, "transform") and not hasattr(kind, "predict")
        compared = _seen_of(estimator, form) if is_transformer else seen
        before = compared.like(size)
        if before:
            compared.costs = None
    if before:
        _warn(estimator, [*before, cost])
    return AnnouncedFit(seen, compared, size, cost)


def count_fit(estimator: Any, fit: AnnouncedFit | None) -> None:
    """Count a fit that was announced and has not failed; its report then says how many there were.

    What failed has published nothing, and is often tried again with other parameters.
    """
    if fit is None:
        return
    with _lock:
        fit.seen.count += 1
        if fit.compared is not None and fit.compared.costs is not None:
            fit.compared.costs.setdefault(fit.size, fit.cost)
    report = getattr(estimator, "__dict__", {}).get("privacy_")
    if isinstance(report, PrivacyReport):
        report.counted_by(fit.seen.how_many)


def _cost_of(estimator: Any) -> Cost | None:
    """Return the budget among an estimator's parameters, None without a proper one."""
    epsilon, delta = getattr(estimator, "epsilon", None), getattr(estimator, "delta", 0.0)
    if isinstance(epsilon, int | float) and isinstance(delta, int | float):
        return epsilon, delta
    return None


def _seen_of(owner: Any, form: Form) -> FitsSeen:
    try:
        forms = _seen.setdefault(owner, {})
    except TypeError:
        # An object that cannot be told from others.
        return FitsSeen()
    found = forms.get(form)
    if found is None:
        found = forms[form] = FitsSeen()
    return found


def _size_and_form(estimator: Any, X: Any) -> tuple[int | None, Form]:
    """Return the public number of records, None where it is not known, and the columns."""
    shape = getattr(X, "shape", None)
    columns: Any
    if isinstance(shape, tuple) and shape:
        size, columns = shape[0], shape[1:]
    else:
        size, columns = getattr(X, "n_samples", None), getattr(X, "n_features_in_", None)
        if size is None:
            with contextlib.suppress(TypeError, ValueError):
                # Chunks have no length that is known.
                size = number_of_samples(X)
    names = getattr(X, "columns", None)
    named = 0
    if names is not None:
        with contextlib.suppress(TypeError):
            named = hash(tuple(names))
    public = getattr(estimator, "n_public", None)
    size = size if public is None else public
    return size if isinstance(size, int) else None, (columns, named)


def _warn(estimator: Any, costs: list[Cost | None]) -> None:
    known = [cost for cost in costs if cost is not None]
    so_far = ""
    if len(known) == len(costs):
        epsilon, delta = (sum(each) for each in zip(*known, strict=True))
        so_far = f", so far to ε = {shown_number(epsilon)} at δ = {shown_delta(delta)}"
    tuned = ""
    if not getattr(type(estimator), "_is_private_search", False):
        tuned = (
            " To tune, use skdptune.DPRandomSearchCV: its epsilon covers all fits, their scores "
            "and the choice."
        )
    warnings.warn(
        f"{type(estimator).__name__} is fitted again to as many records with the same columns: "
        f"costs of fits to the same data add up{so_far}, while privacy_ is that of one fit alone, "
        f"and scores by which fits are compared are not private.{tuned} If these fits are meant, "
        "record them: ledger=PrivacyLedger(...), or `with ledger:` around them. For data that are "
        "public, or another table each time, use `with skdptune.config_context(ledger=False):`.",
        PrivacyWarning,
        # Of who calls the method: from here through `announce_fit` and two of its wrapper.
        stacklevel=5,
    )
