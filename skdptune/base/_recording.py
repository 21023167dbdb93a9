"""Fits record themselves in a ledger; repeated fits that no ledger adds up cause a warning.

Methods that read data are wrapped once per class (Theorem H4).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast

from skdptune._compat import number_of_samples
from skdptune._formatting import shown, shown_delta, shown_number
from skdptune._validation import drop_frames
from skdptune.accounting import PrivacyReport
from skdptune.base._charges import (
    Charge,
    arguments_of,
    charge_of_fit,
    signature_of,
    signature_with_object,
)
from skdptune.base._costs import when_registered
from skdptune.base._payments import (
    Payment,
    carried_settings,
    carry_settings,
    current_payment,
    payment_for,
    repeats_are_meant,
)
from skdptune.base._persons import (
    OTHER_SOLVER,
    Persons,
    by_persons,
    names_persons,
    names_persons_inside,
    persons_for,
    refused_groups,
)
from skdptune.base._rows_in_parts import PrivateRows, with_parts
from skdptune.ledger import LedgerError, PrivacyLedger, Reservation
from skdptune.ledger._shared import checked_ledger, settings_in_force, settings_meant
from skdptune.mechanisms._shared import check_seed

# Second fits ---------------------------------------------------------------------------------
#
# A fit counts as repeated, as in manual tuning on the same data, if an earlier fit had the same
# class, whatever its parameters; a table with the same columns (their number, and their names if
# they have any); and the same number of records, or one more or less, as in folds of a
# cross-validation. A transformer is only compared with itself, since a composition may hold
# several of one class. All of this is public: no record is looked at, and only counts are kept.

# The number of columns, and a hash of their names.
Form = tuple[Any, int]
Cost = tuple[float, float]


class PrivacyWarning(UserWarning):
    """Warning about an allowed setting that gives less privacy than it seems to."""


class FitsSeen:
    """The fits of a class, or of one transformer, to tables with the same columns.

    Attributes
    ----------
    count : int
        Number of fits in this process that did not fail.
    costs : dict or None
        The first (epsilon, delta) for each number of records; None if they are not parameters.
        After a warning, None replaces the whole dict.
    """

    __slots__ = ("costs", "count")

    def __init__(self) -> None:
        self.count = 0
        self.costs: dict[int, Cost | None] | None = {}

    def like(self, size: int) -> list[Cost | None]:
        """Return the cost of an earlier fit to about this size, if no warning was given yet."""
        costs = self.costs or {}
        return [costs[near] for near in (size, size - 1, size + 1) if near in costs][:1]


class AnnouncedFit(NamedTuple):
    """A fit that is about to read its data.

    Attributes
    ----------
    seen : FitsSeen
        Fits of the same class.
    compared : FitsSeen or None
        The fits to compare with; None if a ledger adds up the cost.
    size : int
        The public number of records.
    cost : tuple or None
        Its (epsilon, delta), if these are parameters.
    """

    seen: FitsSeen
    compared: FitsSeen | None
    size: int
    cost: Cost | None


# Stored outside of the objects: a pickle must not contain counts, which may be secret.
_seen: weakref.WeakKeyDictionary[Any, dict[Form, FitsSeen]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_expected: ContextVar[bool] = ContextVar("skdptune_expected_refits", default=False)


@contextmanager
def expected_refits() -> Iterator[None]:
    """Do not count fits in a block of this thread nor warn about them, for example in an audit."""
    token = _expected.set(True)
    try:
        yield
    finally:
        _expected.reset(token)


def announce_fit(
    estimator: Any, X: Any, *, warns: bool, persons: Any = None
) -> AnnouncedFit | None:
    """Warn before a fit that repeats an earlier one reads data; return what to count later.

    Parameters
    ----------
    estimator : estimator
    X : array-like
        Only its form is used.
    warns : bool
        True if no ledger adds up the costs of fits.
    persons : Persons, optional
        If they are given, their number takes the place of the number of rows, which is secret.

    Returns
    -------
    AnnouncedFit or None
        None for fits without privacy, and for fits inside `expected_refits`.
    """
    cost = _cost_of(estimator)
    is_private = cost is None or cost[0] != math.inf
    if _expected.get() or not is_private or isinstance(estimator, type):
        return None
    kind = type(estimator)
    size, form = _size_and_form(estimator, X)
    if isinstance(persons, Persons):
        size = persons.size if getattr(estimator, "n_public", None) is None else size
    with _lock:
        seen = _seen_of(kind, form)
        if not warns or size is None:
            return AnnouncedFit(seen, None, 0, cost)
        # A composition may hold several transformers of one class.
        is_transformer = hasattr(kind, "transform") and not hasattr(kind, "predict")
        compared = _seen_of(estimator, form) if is_transformer else seen
        before = compared.like(size)
        if before:
            compared.costs = None
    if before:
        _warn(estimator, [*before, cost], "persons" if isinstance(persons, Persons) else "records")
    return AnnouncedFit(seen, compared, size, cost)


def count_fit(estimator: Any, fit: AnnouncedFit | None) -> None:
    """Count an announced fit after it succeeds; its report then shows the number of fits.

    A failed fit has published nothing, and is often repeated with other parameters.
    """
    if fit is None:
        return
    with _lock:
        fit.seen.count += 1
        if fit.compared is not None and fit.compared.costs is not None:
            fit.compared.costs.setdefault(fit.size, fit.cost)
    report = getattr(estimator, "__dict__", {}).get("privacy_")
    if isinstance(report, PrivacyReport):
        seen = fit.seen
        report.counted_by(lambda: seen.count)


def _cost_of(estimator: Any) -> Cost | None:
    """Return the (epsilon, delta) of an estimator, or None if they are missing or invalid."""
    found: tuple[Any, Any] = getattr(estimator, "epsilon", None), getattr(estimator, "delta", 0.0)
    if not all(isinstance(each, int | float) for each in found):
        return None
    try:
        epsilon, delta = map(float, found)
    except OverflowError:
        return None
    # The estimator itself rejects an invalid budget.
    return (epsilon, delta) if epsilon >= 0.0 and 0.0 <= delta <= 1.0 else None


def _seen_of(owner: Any, form: Form) -> FitsSeen:
    try:
        forms = _seen.setdefault(owner, {})
    except TypeError:
        # An object that cannot be a dictionary key.
        return FitsSeen()
    found = forms.get(form)
    if found is None:
        found = forms[form] = FitsSeen()
    return found


def _size_and_form(estimator: Any, X: Any) -> tuple[int | None, Form]:
    """Return the public number of records (None if unknown) and the form of the columns."""
    shape = getattr(X, "shape", None)
    columns: Any
    if isinstance(shape, tuple) and shape:
        size, columns = shape[0], shape[1:]
    elif isinstance(X, PrivateRows):
        size, columns = X.n_samples, (X.n_features,)
    else:
        size, columns = getattr(X, "n_samples", None), getattr(X, "n_features_in_", None)
        if size is None:
            with contextlib.suppress(TypeError, ValueError):
                # Chunks have an unknown length.
                size = number_of_samples(X)
    names = getattr(X, "columns", None)
    named = 0
    if names is not None:
        with contextlib.suppress(TypeError):
            named = hash(tuple(names))
    public = getattr(estimator, "n_public", None)
    size = size if public is None else public
    return size if isinstance(size, int) else None, (columns, named)


def _warn(estimator: Any, costs: list[Cost | None], units: str) -> None:
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
        f"{type(estimator).__name__} is fitted again to the same number of {units} with the "
        f"same columns. The costs of fits to the same data add up{so_far}, but privacy_ covers "
        f"only one fit, and scores that compare fits are not private.{tuned} If these fits are "
        "intended, record them: ledger=PrivacyLedger(...), or `with ledger:` around them. For "
        "public data, or a different table each time, use `with "
        "skdptune.config_context(ledger=False):`.",
        PrivacyWarning,
        # Points at the caller of the method: past `announce_fit` and two frames of its wrapper.
        stacklevel=5,
    )


# Recorded calls ------------------------------------------------------------------------------

Function = TypeVar("Function", bound=Callable[..., Any])
_METHODS = ("fit", "partial_fit", "fit_transform", "fit_predict", "fit_statistics")
# Methods that are defined in this module of scikit-learn call `fit` or `partial_fit`.
_CALLS_OTHERS = "sklearn.base"
_MARK = "_skdptune_records"


# Which ledger records a fit ------------------------------------------------------------------


def ledger_for(estimator: Any, own: Any = None) -> PrivacyLedger | None:
    """Return the ledger that records a fit: the estimator's own, or the active one.

    Raises
    ------
    ValueError
        If the two differ.
    LedgerError
        If there is none and one is required.

    Notes
    -----
    Theorem H4.
    """
    own = getattr(estimator, "ledger", None) if own is None else own
    if own is not None:
        around = settings_meant(carried_settings(estimator)).ledger
        if around not in (None, checked_ledger(own)):
            raise ValueError(
                f"ledger must be the one in use, {shown(around)}; got {shown(own)} of "
                f"{type(estimator).__name__}. They stand for different data sets: leave one of "
                "them out."
            )
        return checked_ledger(own)
    settings = settings_in_force(carried_settings(estimator))
    if settings.ledger is None and settings.require_ledger:
        raise LedgerError(
            "ledger must be given, since require_ledger is set; got None for "
            f"{type(estimator).__name__}. Nothing was read."
        )
    return settings.ledger


def is_paid(estimator: Any) -> bool:
    """Return whether a fit is part of another fit that is paid for."""
    payment = payment_for(estimator)
    return payment is not None and payment.settles


def announce_search(
    search: Any, X: Any, *, warns: bool, persons: Any = None
) -> AnnouncedFit | None:
    """Announce the fit of a search, unless it is part of another fit."""
    if payment_for(search) is not None:
        return None
    warns = warns and not repeats_are_meant(search)
    return announce_fit(search, X, warns=warns, persons=persons)


# Wrapping ------------------------------------------------------------------------------------


def recorded(method: Callable[..., Any], *, warns: bool) -> Callable[..., Any]:
    """Wrap a method that reads data, so that the active ledger records the call."""
    signature = signature_of(method)

    @functools.wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Keep this short: it is pickled with classes defined in a notebook when they go to
        # workers.
        try:
            return _recorded_call(method, signature, warns, self, args, kwargs)
        except (TypeError, ValueError) as error:
            drop_frames(error)
            raise

    setattr(fit, _MARK, True)
    return fit


def _recorded_call(
    method: Callable[..., Any],
    signature: inspect.Signature,
    warns: bool,
    estimator: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call a method that reads data, and record it unless another charge covers it."""
    if warns:
        # Theorem F9. Checked before any charge. Other libraries' models may draw from any
        # generator.
        check_seed(getattr(estimator, "random_state", None))
    # Theorem R10: rows in parts are refused here, or read through one class.
    args, kwargs = with_parts(estimator, args, kwargs)
    X = args[0] if args else kwargs.get("X", kwargs.get("statistics"))
    if names_persons(kwargs) or names_persons_inside(estimator) is not None:
        y = args[1] if len(args) > 1 else kwargs.get("y")
        found = persons_for(estimator, method.__name__, signature.parameters, kwargs, X, y)
        kwargs = {**kwargs, "groups": found}
    persons = kwargs.get("groups")
    announced: AnnouncedFit | None = None
    # Theorem H4: every fit sets its cost aside.
    payment = payment_for(estimator, method)
    if payment is not None and payment.settles:
        _check_payer(payment, estimator)
        _check_price(estimator, persons)
        with payment.part(estimator, method):
            return method(estimator, *args, **kwargs)
    ledger = ledger_for(estimator)
    if ledger is None:
        ledger = _ledger_around(estimator)
    is_counted = warns and payment is None
    if ledger is None:
        if is_counted:
            warns = not repeats_are_meant(estimator)
            announced = announce_fit(estimator, X, warns=warns, persons=persons)
        with Payment((estimator,), method, settles=False, outer=payment):
            result = method(estimator, *args, **kwargs)
        count_fit(estimator, announced)
        return result
    try:
        arguments = arguments_of(signature.bind(estimator, *args, **kwargs))
    except TypeError:
        # Let Python raise its own error for a call with wrong arguments.
        return method(estimator, *args, **kwargs)
    charge = charge_of_fit(estimator, arguments)
    if charge.is_free:
        return method(estimator, *args, **kwargs)
    with (
        charge.reserved(ledger) as reservation,
        Payment((estimator,), method, reservations=[reservation]),
    ):
        if is_counted:
            announced = announce_fit(estimator, X, warns=False, persons=persons)
        result = method(estimator, *args, **kwargs)
    charge.check_covers(estimator, ledger)
    count_fit(estimator, announced)
    return result


def _ledger_around(estimator: Any) -> PrivacyLedger | None:
    """Return the ledger of an enclosing fit that does not include this one, or None."""
    payment = current_payment()
    ledgers = {each.ledger for each in payment.reservations} if payment is not None else set()
    if len(ledgers) != 1 or repeats_are_meant(estimator):
        return None
    return ledgers.pop()


def _check_payer(payment: Payment, estimator: Any) -> None:
    """Raise if a fit names a ledger, but is inside a fit that another ledger records."""
    own = getattr(estimator, "ledger", None) if payment.reservations else None
    if own is None or any(each.ledger == own for each in payment.reservations):
        return
    raise ValueError(
        f"ledger must be that of the fit around it, {shown(payment.reservations[0].ledger)}; "
        f"got {shown(own)} of {type(estimator).__name__}. They stand for different data sets: "
        "leave it out."
    )


def _check_price(estimator: Any, persons: Any) -> None:
    """Raise if a payer, who knows the cost by records, cannot pay for a fit by persons."""
    if isinstance(persons, Persons) and by_persons(estimator) is not estimator:
        # Theorem M8: objective perturbation where one person has any number of rows.
        raise TypeError(refused_groups("a fit inside of another one", OTHER_SOLVER))


def recorded_together(function: Function) -> Function:
    """Wrap a function that fits many estimators at once, so that ledgers record each of them.

    The function's first arguments are the class that owns it, the estimators and the data.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def fit_many(owner: Any, *args: Any, **kwargs: Any) -> Any:
        return _recorded_together(function, signature, owner, args, kwargs)

    setattr(fit_many, _MARK, True)
    return cast("Function", fit_many)


def _recorded_together(
    function: Callable[..., Any],
    signature: inspect.Signature,
    owner: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call a function that fits many estimators, and record those that no other charge covers."""
    if names_persons(kwargs) and "groups" not in signature.parameters:
        raise TypeError(refused_groups(f"{owner.__name__}.{function.__name__}"))
    # Theorem H4: each of many fits sets its cost aside.
    bound = signature.bind(owner, *args, **kwargs)
    models, X = _read_together(function, signature, bound, names_persons(kwargs))
    persons = bound.arguments.get("groups")
    around = [payment_for(model, function) for model in models]
    for model, payment in zip(models, around, strict=True):
        if payment is not None and payment.settles:
            _check_price(model, persons)
    own = [
        place
        for place, payment in enumerate(around)
        # The function itself raises for objects that it cannot fit.
        if hasattr(type(models[place]), _MARK) and not (payment is not None and payment.settles)
    ]
    charged = list(_charges(models, own, bound.arguments))
    reservations = _all_reserved(charged)
    settles = bool(charged) or any(each is not None and each.settles for each in around)
    with Payment(models, function, settles=settles, reservations=reservations):
        for reservation in reservations:
            reservation.mark_read()
        announced = _announced_together(
            models, [place for place in own if around[place] is None], X, persons
        )
        outcomes = function(*bound.args, **bound.kwargs)
    for (place, charge, ledger), reservation in zip(charged, reservations, strict=True):
        if not isinstance(outcomes[place], BaseException):
            reservation.confirm()
            charge.check_covers(outcomes[place], ledger)
    for place, fit in announced.items():
        if not isinstance(outcomes[place], BaseException):
            count_fit(models[place], fit)
    return outcomes


def _read_together(
    function: Callable[..., Any],
    signature: inspect.Signature,
    bound: inspect.BoundArguments,
    has_persons: bool,
) -> tuple[list[Any], Any]:
    """Put estimators, rows and persons in the form in which they are read; return the first two.

    Rows in parts and persons are refused or read as for a single fit.
    """
    name, of_records = list(signature.parameters)[1:3]
    # An iterator of estimators would be exhausted by the first of two readings.
    bound.arguments[name] = models = list(bound.arguments[name])
    for model in models:
        if hasattr(type(model), _MARK):
            check_seed(getattr(model, "random_state", None))
    X, y = bound.arguments.get(of_records), bound.arguments.get("y")
    for model in models:
        # Theorem R10, as for a single fit.
        (X, y), _ = with_parts(model, (X, y), {"groups": bound.arguments.get("groups")})
    bound.arguments |= {of_records: X, "y": y}
    for model in models if has_persons else ():
        bound.arguments["groups"] = persons_for(
            model, function.__name__, signature.parameters, bound.arguments, X, y
        )
    return models, X


def _charges(
    models: Sequence[Any], own: Sequence[int], arguments: Mapping[str, Any]
) -> Iterator[tuple[int, Charge, PrivacyLedger]]:
    """Yield the position, the charge and the ledger of each estimator that needs a record."""
    for place in own:
        ledger = ledger_for(models[place])
        if ledger is not None:
            charge = charge_of_fit(models[place], arguments)
            if not charge.is_free:
                yield place, charge, ledger


def _announced_together(
    models: Sequence[Any], own: Sequence[int], X: Any, persons: Any
) -> dict[int, AnnouncedFit | None]:
    """Announce fits made by one call, and warn if they repeat earlier fits."""
    announced = {}
    for place in own:
        model = models[place]
        # Several fits in one call are intended, so they cause no warning about each other.
        is_first = place == own[0] and ledger_for(model) is None
        warns = is_first and not repeats_are_meant(model)
        announced[place] = announce_fit(model, X, warns=warns, persons=persons)
    return announced


def _all_reserved(charged: Sequence[tuple[int, Charge, PrivacyLedger]]) -> list[Reservation]:
    """Reserve the costs of all estimators, or of none if one exceeds the budget."""
    found: list[Reservation] = []
    try:
        for _, charge, ledger in charged:
            found.append(charge.reserved(ledger))
    except BaseException:
        for reservation in found:
            reservation.cancel("another estimator of the same call did not fit into the budget")
        raise
    return found


def record_fits(kind: Any, *, warns: bool) -> None:
    """Wrap the methods of a class that read data, unless they are wrapped already."""
    for name in _METHODS:
        found = inspect.getattr_static(kind, name, None)
        if found is not None and not _is_done(found):
            is_plain = isinstance(found, FunctionType)
            made = recorded(found, warns=warns) if is_plain else Recorded(found, warns)
            _replace(kind, name, made)
    many = inspect.getattr_static(kind, "fit_many", None)
    if isinstance(many, classmethod) and not _is_done(many.__func__):
        kind.fit_many = classmethod(recorded_together(many.__func__))
    setattr(kind, _MARK, True)
    carry_settings(kind)


def _replace(kind: Any, name: str, method: Any) -> None:
    try:
        setattr(kind, name, method)
    except TypeError as error:
        raise TypeError(
            f"kind must be a class whose methods can be wrapped, so that ledgers see its fits; "
            f"got {kind.__name__}, which cannot be changed. Register a subclass in Python."
        ) from error


def _is_done(function: Any) -> bool:
    if isinstance(function, Recorded):
        return True
    # Compare the code object: functools.wraps copies every other attribute, even to functions that
    # never call the original.
    code = getattr(function, "__code__", None)
    is_wrapped = code in _CODES
    return is_wrapped or getattr(function, "__module__", None) == _CALLS_OTHERS


class Recorded:
    """Recorder for a method that is not a plain function of its class.

    Parameters
    ----------
    method : descriptor or callable
        As found in the class: a class method, a property, an ``available_if`` method, ...
    warns : bool
    """

    def __init__(self, method: Any, warns: bool) -> None:
        self.__doc__ = getattr(method, "__doc__", None)
        self._method, self._warns = method, warns

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        """Return the method of an object or of the class, wrapped so that calls are recorded."""
        method = self._method
        found = method.__get__(estimator, owner) if hasattr(method, "__get__") else method
        if not callable(found):
            return found
        if estimator is None and not isinstance(method, classmethod | staticmethod):
            return recorded(found, warns=self._warns) if hasattr(method, "__get__") else found
        # A call on the class itself has no known cost, and is refused if a ledger is required.
        subject = owner if estimator is None else estimator

        @functools.wraps(found)
        def fit(*args: Any, **kwargs: Any) -> Any:
            def call(_: Any, *args: Any, **kwargs: Any) -> Any:
                return found(*args, **kwargs)

            return _recorded_call(
                call, signature_with_object(found), self._warns, subject, args, kwargs
            )

        return fit


def watch(kind: Any) -> None:
    """Record the fits of a class of another library, and of all its subclasses.

    This includes subclasses that are defined later and read data in their own `fit`.

    Notes
    -----
    Theorem H4.
    """
    for each in (kind, *_descendants(kind)):
        record_fits(each, warns=False)
    own = vars(kind).get("__init_subclass__")
    if hasattr(own, _MARK):
        return

    def __init_subclass__(cls: Any, /, **settings: Any) -> None:
        if own is None:
            super(kind, cls).__init_subclass__(**settings)
        else:
            own.__func__(cls, **settings)
        record_fits(cls, warns=False)

    setattr(__init_subclass__, _MARK, True)
    kind.__init_subclass__ = classmethod(__init_subclass__)


def _descendants(kind: Any) -> Iterator[Any]:
    for each in kind.__subclasses__():
        yield each
        yield from _descendants(each)


def _nothing(self: Any) -> None: ...


_CODES = {recorded(_nothing, warns=False).__code__, recorded_together(_nothing).__code__}
when_registered(watch)
