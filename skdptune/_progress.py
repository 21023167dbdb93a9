"""Progress of long computations: a line with the current phase and the elapsed time.

By default, the line appears after one second if the output is a terminal or a notebook. Setting
``TQDM_DISABLE=1`` in the environment disables it everywhere.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token
from typing import Any, Self

import numpy as np

from skdptune._validation import check_integer

_INTERVAL = 0.5
# Shorter computations do not need a progress line.
_PATIENCE = 1.0


class Progress:
    """A line with the current phase and the elapsed time, refreshed by a thread.

    It shows a count and an estimate of the remaining time only if the caller reports how much
    there is to do. A random number of fits is secret and must not be shown.

    Parameters
    ----------
    name : str
        Name of the computation.
    verbose : int or None, default=None
        None shows the line after a second if the output is a terminal or a notebook, and removes
        it at the end. It shows nothing inside another computation that shows its own progress. 0
        shows nothing. Larger values show the line immediately and keep it at the end.
    """

    def __init__(self, name: str, verbose: int | None = None) -> None:
        self._name, self._verbose = name, check_verbose(verbose)
        self._words, self._unit = "", ""
        self._done, self._total, self._since = 0, 0, 0.0
        self._bar: Any = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._token: Token[Progress | None] | None = None

    # Updates, which cost next to nothing ------------------------------------------------------

    def phase(self, words: str) -> None:
        """Set the current phase."""
        self._words, self._total = words, 0
        self._draw()

    def count(self, done: int, total: int, unit: str = "candidates") -> None:
        """Set how much of a public total is done."""
        if done == 0 or not self._total:
            self._since = time.monotonic()
        self._done, self._total, self._unit = done, total, unit
        if done == total:
            self._draw()

    def line(self, words: str) -> None:
        """Print a separate line."""
        # Not with print, whose output is discarded while candidates are fitted.
        self._on_bar(lambda bar: bar.write(words, file=bar.fp))

    # Display ----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Start showing progress, and become the current progress."""
        wants = self._verbose or (self._verbose is None and _is_outermost() and _is_watched())
        if wants and not _n_mutes:
            # Standard error is redirected while candidates are fitted, so keep the original
            # stream.
            arguments = _tqdm(), _Stream(sys.stderr), time.time()
            if self._verbose:
                self._show(*arguments)
            self._thread = threading.Thread(target=self._refresh, args=arguments, daemon=True)
            self._thread.start()
        self._token = _IN_FORCE.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Stop showing progress."""
        if self._token is not None:
            _IN_FORCE.reset(self._token)
        if self._thread is None:
            return
        self._stop.set()
        self._thread.join()
        self.phase("done" if kind is None else "stopped")
        self._on_bar(lambda bar: bar.close())

    def _show(self, tqdm: Any, stream: Any, began: float) -> None:
        look = {"bar_format": "{desc} [{elapsed}]", "leave": bool(self._verbose), "file": stream}
        with suppress(Exception):
            bar = tqdm(**look)
            # If TQDM_DISABLE is set, the bar lacks the attributes that it needs to write.
            self._bar = None if bar.disable else bar
        self._on_bar(lambda bar: setattr(bar, "start_t", began))
        self._draw()

    def _refresh(self, tqdm: Any, stream: Any, began: float) -> None:
        if self._bar is None and not self._verbose:
            if self._stop.wait(_PATIENCE):
                return
            self._show(tqdm, stream, began)
        while not self._stop.wait(_INTERVAL):
            self._draw()

    def _draw(self) -> None:
        self._on_bar(lambda bar: bar.set_description_str(f"{self._name}: {self._in_words()}"))

    def _on_bar(self, draw: Callable[[Any], Any]) -> None:
        """Draw if a bar is shown; a lost terminal must not end a fit that was already paid for."""
        bar = self._bar
        if bar is None:
            return
        try:
            draw(bar)
        except Exception:
            bar.disable, self._bar = True, None

    def _in_words(self) -> str:
        done, total = self._done, self._total
        if not total:
            return self._words or "starting"
        said = f"{done} of {total} {self._unit}"
        if not 0 < done < total:
            return said
        left = (time.monotonic() - self._since) / done * (total - done)
        return f"{said}, about {_shown_time(left)} left"


class _Stream:
    """A stream whose writes never fail, since tqdm would keep its lock after an error."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, words: str) -> None:
        with suppress(Exception):
            self._stream.write(words)

    def flush(self) -> None:
        with suppress(Exception):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __eq__(self, other: object) -> bool:
        # tqdm asks only streams that it knows for the width of the terminal.
        return other is self or other is self._stream

    def __hash__(self) -> int:
        return hash(id(self._stream))


def check_verbose(verbose: Any) -> int | None:
    """Return `verbose` as an int or None, or raise; True is 1, as in scikit-learn."""
    if verbose is None or isinstance(verbose, bool | np.bool_):
        return None if verbose is None else int(verbose)
    return check_integer(verbose, name="verbose", lower=0)


@contextmanager
def muted() -> Iterator[None]:
    """Suppress all progress that starts inside the block, whatever its `verbose`, in any thread.

    Candidates may be fitted a secret number of times. Progress bars in notebooks do not write to
    standard error, so redirecting that stream would not hide them.

    Notes
    -----
    Theorem F4.
    """
    global _n_mutes
    with _MUTES:
        _n_mutes += 1
    try:
        yield
    finally:
        with _MUTES:
            _n_mutes -= 1


_n_mutes, _MUTES = 0, threading.Lock()
_IN_FORCE: ContextVar[Progress | None] = ContextVar("progress", default=None)
_SILENT = Progress("", 0)


def current_progress() -> Progress:
    """Return the current progress, or one that shows nothing."""
    return _IN_FORCE.get() or _SILENT


def _is_outermost() -> bool:
    # A worker always runs inside another computation, whose number of fits may be secret.
    is_worker = multiprocessing.current_process().name != "MainProcess"
    is_main_thread = threading.current_thread() is threading.main_thread()
    return _IN_FORCE.get() is None and is_main_thread and not is_worker


def _is_watched() -> bool:
    """Return whether standard error is shown on a terminal or in a notebook."""
    ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if ipython is not None and "ipykernel" in sys.modules:
        return True
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def _tqdm() -> Any:
    with warnings.catch_warnings():
        # tqdm warns if a notebook lacks widgets; it then draws a line of text.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    return tqdm


def _shown_time(seconds: float) -> str:
    if seconds < 1.0:
        return "1 s"
    if seconds < 100.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 6000.0 else f"{seconds / 3600.0:.0f} h"
