"""Objects that spend a budget call by call, used in one process and by one thread at a time."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from threading import RLock
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar


class RunningBudget:
    """Base of objects that keep the remaining budget from one call to the next.

    A copy, a pickle or a forked process would hold the remaining budget a second time, and both
    would spend it. Therefore such an object cannot be copied or pickled. In a forked process,
    every method decorated with `one_at_a_time` raises an error.

    Notes
    -----
    Theorem G6 and Theorem D3.

    Examples
    --------
    >>> class Purse(RunningBudget):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.left = 3
    ...     @one_at_a_time
    ...     def spend(self, some):
    ...         self.left -= some
    ...         return self.left
    >>> Purse().spend(2)
    1
    """

    __slots__ = ("_process", "_turn")

    # What the user can do instead of copying the object; part of the error message.
    _instead: ClassVar[str] = ""

    def __init__(self) -> None:
        self._process = os.getpid()
        # Reentrant: the thread that holds the lock may acquire it again.
        self._turn = RLock()

    def _check_process(self) -> None:
        """Raise if this process was forked from the one in which the object was made."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"{type(self).__name__} must be used in the process where it was made; got a call "
                f"in a forked one, which would spend the same budget again. {self._instead}"
            )

    def __reduce__(self) -> Any:
        """Raise TypeError: the object cannot be copied or pickled."""
        raise TypeError(
            f"{type(self).__name__} must be used where it was made; got a request to copy or "
            f"pickle it, which would spend the same budget again. {self._instead}"
        )


ArgumentsT = ParamSpec("ArgumentsT")
ResultT = TypeVar("ResultT")
HolderT = TypeVar("HolderT", bound=RunningBudget)
Method = Callable[Concatenate[HolderT, ArgumentsT], ResultT]


def one_at_a_time(
    method: Method[HolderT, ArgumentsT, ResultT],
) -> Method[HolderT, ArgumentsT, ResultT]:
    """Make a method run in one thread at a time, and raise an error in forked processes.

    The check of the remaining budget and the spending happen in one thread, without another in
    between.
    """

    @functools.wraps(method)
    def called(
        self: HolderT, /, *arguments: ArgumentsT.args, **named: ArgumentsT.kwargs
    ) -> ResultT:
        # Check this first: another thread may have held the lock when the process was forked.
        self._check_process()
        with self._turn:
            return method(self, *arguments, **named)

    return called
