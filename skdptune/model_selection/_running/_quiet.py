"""Silence while candidates are fitted: whoever counts warnings, logs or prints counts the runs."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import warnings
from types import TracebackType

from skdptune._progress import muted


class Quiet:
    """A context without warnings, records of logging and prints, of this process.

    It may be entered while it is in force, by searches in other threads or inside a search; the
    last to leave restores what the first one found.

    Notes
    -----
    Theorem F4.
    """

    _lock = threading.Lock()
    _depth = 0
    _stack = contextlib.ExitStack()

    def __enter__(self) -> Quiet:
        """Be silent."""
        with Quiet._lock:
            if Quiet._depth == 0:
                Quiet._stack = self._silence()
            Quiet._depth += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Be as loud as before, if nobody else needs silence."""
        with Quiet._lock:
            Quiet._depth -= 1
            if Quiet._depth == 0:
                Quiet._stack.close()

    @staticmethod
    def _silence() -> contextlib.ExitStack:
        stack = contextlib.ExitStack()
        nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
        stack.enter_context(contextlib.redirect_stdout(nowhere))
        stack.enter_context(contextlib.redirect_stderr(nowhere))
        stack.enter_context(muted())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        return stack
