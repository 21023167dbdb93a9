"""What is spent call by call: by one object, in one process, by one thread at a time."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from threading import RLock
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar


class RunningBudget:
    """Base of objects that keep what is left of a budget from one call to the next.

    Such an object has one holder. A copy, a pickle or a forked process would hold what is left a
    second time, and both would spend it. So copies and pickles are refused, and in a forked
    process every method that `one_at_a_time` decorates.

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

    # What its holder can do instead of a copy.
    _instead: ClassVar[str] = ""

    def __init__(self) -> None:
        self._process = os.getpid()
        # The thread that holds it may take it again.
        self._turn = RLock()

    def _check_process(self) -> None:
        """Raise in a process that was forked from the one in which the object was made."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"{type(self).__name__} must be used in the process where it was made; got a call "
                f"in a forked one, which would spend the same budget again. {self._instead}"
            )

    def __reduce__(self) -> Any:
        """Refuse to be copied or pickled."""
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
    """Return a method for which other threads wait, and which forked processes are refused.

    So one thread looks at what is left and spends it before another one looks.
    """

    @functools.wraps(method)
    def called(
        self: HolderT, /, *arguments: ArgumentsT.args, **named: ArgumentsT.kwargs
    ) -> ResultT:
        # First: a thread may have held the lock while the process was forked.
        self._check_process()
        with self._turn:
            return method(self, *arguments, **named)

    return called
