"""Counts the calls of a function, a measure of work that ignores the machine's load."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(function: Callable[[], Any]) -> int:
    """Return the number of functions called, of Python and of C, in this thread.

    Loops inside of one call, as numpy's, count once: what grows is what Python does itself.
    """
    count = 0

    def record(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before, collects = sys.getprofile(), gc.isenabled()
    # What others left behind may call functions when it is collected.
    gc.disable()
    sys.setprofile(record)
    try:
        function()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count
