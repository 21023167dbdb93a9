"""Checks of arguments; their errors state the allowed values and the value that was given.

Every validator needs the argument's name, so that all messages of the package have the same form:
``<name> must be <domain>; got <value>.`` A table can be passed as any argument. Therefore values
are shown only through `skdptune._formatting.shown`, and entries of a container (``is_entry``) only
by their type.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import linecache
import math
import numbers
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdptune._formatting import nearest_name, shown, shown_names

FloatArray = NDArray[np.floating[Any]]
_P = ParamSpec("_P")
_R = TypeVar("_R")

# Larger integers are not meaningful counts, and few functions accept them.
LARGEST_INTEGER = 2**63 - 1

# What to write if a word is given in place of an estimator.
FOR_A_WORD = (
    'A word needs a schema, which tells the task: make_private_pipeline("auto", schema, '
    "epsilon=1.0) is an estimator."
)

_HERE = str(Path(__file__).parent)


def drop_frames(error: Exception) -> None:
    """Drop all frames of an error but the first, if a check of this package raised it.

    A traceback then shows the caller's line and one frame of the package. Errors that Python
    itself raises, such as for a wrong call, keep their frames: they are faults. With
    ``SKDPTUNE_TRACEBACKS=full`` in the environment, all errors do.
    """
    first = last = error.__traceback__
    if first is None or last is None or os.environ.get("SKDPTUNE_TRACEBACKS") == "full":
        return
    while last.tb_next is not None:
        last = last.tb_next
    file = last.tb_frame.f_code.co_filename
    line = linecache.getline(file, last.tb_lineno).lstrip()
    if file.startswith(_HERE) and line.startswith("raise "):
        first.tb_next = None


def with_one_frame(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a function so that its errors about arguments show one frame of this package."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError) as error:
            drop_frames(error)
            raise

    return call


class NamedArguments:
    """Base class of public classes: a wrong argument's message names the class and a near name."""

    __slots__ = ()

    # Hidden from type checkers, which then see the constructor's own arguments.
    if not TYPE_CHECKING:

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            """Raise for arguments that the constructor does not have."""
            if cls.__init__ is object.__init__ and (args or kwargs):
                raise TypeError(f"{cls.__name__}() takes no arguments")
            known = _arguments_of(cls.__init__) if kwargs else None
            for name in kwargs:
                if known is not None and name not in known:
                    raise unexpected_argument(cls, name, known)
            return super().__new__(cls)

        @classmethod
        @functools.cache
        def _get_param_names(cls) -> list[str]:
            """Return the names of the constructor's parameters, which a plan reads often."""
            return super()._get_param_names()


_known_arguments: WeakKeyDictionary[Any, tuple[str, ...] | None] = WeakKeyDictionary()


def _arguments_of(constructor: Any) -> tuple[str, ...] | None:
    """Return the names of a constructor's arguments; None if it takes any."""
    with contextlib.suppress(KeyError, TypeError):
        return _known_arguments[constructor]
    given = inspect.signature(constructor, follow_wrapped=False).parameters.values()
    takes_any = any(each.kind is each.VAR_KEYWORD for each in given)
    found = None if takes_any else tuple(each.name for each in given)[1:]
    with contextlib.suppress(TypeError):
        _known_arguments[constructor] = found
    return found


def unexpected_argument(cls: type, name: str, known: Sequence[str]) -> TypeError:
    """Return the error for an argument that the constructor of a class does not have."""
    near = nearest_name(name, known)
    hint = f"Did you mean {near}?" if near else f"It has {shown_names(known)}."
    return TypeError(f"{cls.__name__}() got an unexpected keyword argument {shown(name)}. {hint}")


@contextlib.contextmanager
def installed(needs: str, extra: str = "") -> Iterator[None]:
    """Say how to install a package if an import inside fails; `needs` is as "curves need"."""
    try:
        yield
    except ModuleNotFoundError as problem:
        package = (problem.name or "").partition(".")[0]
        how = f"the extra {shown(extra)}: pip install 'skdptune[{extra}]'" if extra else "pip"
        raise ModuleNotFoundError(
            f"{needs} {package}, which is not installed. Install it with {how}.", name=package
        ) from problem


def check_real(
    value: Any,
    *,
    name: str,
    lower: float = -math.inf,
    upper: float = math.inf,
    lower_open: bool = False,
    upper_open: bool = False,
    hint: str = "",
    is_entry: bool = False,
) -> float:
    """Return ``value`` as a float, or raise if it is not a number in the interval."""
    got = _shown_entry if is_entry else shown
    domain = _describe_interval(lower, upper, lower_open, upper_open)
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(_message(name, domain, type(value).__name__, hint))
    _check_width(value, name, domain, got)
    try:
        number = float(value)
    except OverflowError:
        # An integer or fraction beyond the range of doubles.
        raise ValueError(_message(name, domain, got(value), hint)) from None
    if not (_above(number, lower, lower_open) and _above(-number, -upper, upper_open)):
        raise ValueError(_message(name, domain, got(value), hint))
    return number


def check_share(value: Any, *, name: str, hint: str = "") -> float:
    """Return ``value`` as a float, or raise if it is not a number between 0 and 1."""
    return check_real(
        value, name=name, lower=0.0, upper=1.0, lower_open=True, upper_open=True, hint=hint
    )


def check_integer(
    value: Any,
    *,
    name: str,
    lower: int | None = None,
    upper: int | None = LARGEST_INTEGER,
    hint: str = "",
    is_entry: bool = False,
) -> int:
    """Return ``value`` as an int, or raise if it is not an integer in the range."""
    got = _shown_entry if is_entry else shown
    domain = "an integer" if lower is None else f"an integer of at least {lower}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(_message(name, domain, got(value), hint))
    _check_width(value, name, domain, got)
    if lower is not None and int(value) < lower:
        raise ValueError(_message(name, domain, got(value), hint))
    if upper is not None and int(value) > upper:
        highest = "2**63 - 1" if upper == LARGEST_INTEGER else str(upper)
        domain += f" {'of' if lower is None else 'and'} at most {highest}"
        raise ValueError(_message(name, domain, got(value), hint))
    return int(value)


def check_n_jobs(value: Any) -> int | None:
    """Return a number of workers in joblib's convention, or raise."""
    if value is None:
        return None
    number = check_integer(value, name="n_jobs", hint="None and 1 mean no parallel workers.")
    if number == 0:
        raise ValueError("n_jobs must be None or an integer other than 0; got 0.")
    return number


def check_flag(value: Any, *, name: str) -> bool:
    """Return ``value`` as a bool, or raise if it is not a boolean, such as 0.5 or "no"."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(_message(name, "True or False", shown(value), ""))
    return bool(value)


def check_option(value: Any, *, name: str, options: Collection[Any], hint: str = "") -> Any:
    """Return ``value`` if it is one of ``options``, or raise."""
    if not isinstance(value, str | int) or value not in options:
        listed = shown_names(options)
        raise ValueError(_message(name, f"one of {listed}", shown(value), hint))
    return value


def check_estimator(value: Any, *, name: str, others: str = "") -> Any:
    """Return ``value`` if it is an object with ``fit``, or raise TypeError.

    Parameters
    ----------
    value : object
    name : str
        Name of the argument.
    others : str, default=""
        What else is accepted, as the end of the sentence.
    """
    if isinstance(value, type) or not hasattr(value, "fit"):
        hint = FOR_A_WORD if isinstance(value, str) else ""
        raise TypeError(_message(name, f"an estimator with fit{others}", shown(value), hint))
    return value


def check_kind(
    value: Any, *, name: str, kind: type | UnionType | tuple[type, ...], domain: str
) -> Any:
    """Return ``value`` if it is an instance of ``kind``, or raise TypeError."""
    if not isinstance(value, kind):
        raise TypeError(_message(name, domain, type(value).__name__, ""))
    return value


def check_numbers(value: Any, *, name: str, hint: str = "") -> FloatArray:
    """Return ``value`` as an array of floats, or raise without showing what it holds."""
    try:
        return np.asarray(value, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} must be finite throughout.") from None
    except (TypeError, ValueError):
        raise TypeError(_message(name, "an array of numbers", shown(value), hint)) from None


def check_vector(
    values: ArrayLike,
    *,
    name: str,
    lower: float = -math.inf,
    upper: float = math.inf,
    lower_open: bool = False,
) -> FloatArray:
    """Return ``values`` as a one-dimensional float array without NaN, or raise."""
    domain = _describe_interval(lower, upper, lower_open, False) + " throughout"
    try:
        raw = np.asarray(values)
    except ValueError:
        raise TypeError(
            _message(name, "an array of numbers", "rows of unequal length", "")
        ) from None
    if raw.dtype.kind not in "iuf" and raw.size:
        raise TypeError(_message(name, "an array of numbers", shown(values), ""))
    array = raw.astype(np.float64)
    if array.ndim != 1:
        raise ValueError(_message(name, "one-dimensional", f"{array.ndim} dimensions", ""))
    inside = (array > lower if lower_open else array >= lower) & (array <= upper)
    if not inside.all():
        got = f"another number in place {int(np.argmin(inside))}"
        raise ValueError(_message(name, domain, got, ""))
    return array


def check_private_numbers(values: Any, *, name: str) -> NDArray[np.float64]:
    """Return ``values`` as an array of doubles, or raise an error that shows none of them."""
    try:
        return np.asarray(values, dtype=np.float64)
    except Exception:
        # Converting an arbitrary object to a number may raise any error.
        raise TypeError(_message(name, "an array of numbers", "something else", "")) from None


def _shown_entry(value: Any) -> str:
    """Return the type of a container's entry: its value could be a value of a record."""
    return "another number" if isinstance(value, numbers.Real) else type(value).__name__


def _message(name: str, domain: str, got: str, hint: str) -> str:
    return f"{name} must be {domain}; got {got}." + (f" {hint}" if hint else "")


def _check_width(value: Any, name: str, domain: str, shown_as: Callable[[Any], str]) -> None:
    """Raise for NumPy's narrow numbers: the square of 200 in 8 bits is 64 (Assumption F6)."""
    if isinstance(value, np.integer | np.floating) and value.itemsize < 8:
        got = f"{shown_as(value.item())} as a {type(value).__name__}"
        hint = "Arithmetic in this type overflows or rounds: pass its .item()."
        raise TypeError(_message(name, domain, got, hint))


def _above(number: float, bound: float, is_open: bool) -> bool:
    return number > bound if is_open else number >= bound


def _describe_interval(lower: float, upper: float, lower_open: bool, upper_open: bool) -> str:
    if math.isinf(lower) and math.isinf(upper):
        return "a number"
    left = "(" if lower_open or math.isinf(lower) else "["
    right = ")" if upper_open or math.isinf(upper) else "]"
    return f"a number in {left}{lower:g}, {upper:g}{right}"
