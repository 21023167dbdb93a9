"""Methods of a session that threads call one after the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import RLock
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

ArgumentsT = ParamSpec("ArgumentsT")
ResultT = TypeVar("ResultT")


class HasLock(Protocol):
    """What has a lock of its own."""

    # What the function of this name in `threading` makes.
    _lock: Any


SessionT = TypeVar("SessionT", bound=HasLock)
Method = Callable[Concatenate[SessionT, ArgumentsT], ResultT]


def one_at_a_time(
    method: Method[SessionT, ArgumentsT, ResultT],
) -> Method[SessionT, ArgumentsT, ResultT]:
    """Return a method that holds the lock of its object, so that other threads wait.

    What is looked at and spent is so looked at and spent by one thread. The lock is one that the
    same thread may take again.

    Examples
    --------
    >>> class Counter:
    ...     def __init__(self):
    ...         self._lock, self.count = new_lock(), 0
    ...     @one_at_a_time
    ...     def add(self, more):
    ...         self.count += more
    ...         return self.count
    >>> Counter().add(2)
    2
    """

    @functools.wraps(method)
    def called(
        self: SessionT, /, *arguments: ArgumentsT.args, **named: ArgumentsT.kwargs
    ) -> ResultT:
        with self._lock:
            return method(self, *arguments, **named)

    return called


def new_lock() -> Any:
    """Return a lock that the thread that holds it may take again."""
    return RLock()
