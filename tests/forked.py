"""Work in a process that is forked from this one, in which everything is loaded."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable
from typing import Any


class Forked:
    """A function that runs in a forked process."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.process = multiprocessing.get_context("fork").Process(target=function)
        with warnings.catch_warnings():
            # Threads of earlier tests do not matter here.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()

    def exit(self, seconds: float = 120.0) -> int | None:
        """Wait for the end, and return the exit code; minus the signal that killed it."""
        self.process.join(seconds)
        return self.process.exitcode
