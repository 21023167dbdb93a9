"""Progress that shows what is going on and for how long, and counts nothing that is secret."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

_INTERVAL = 0.5


class Progress:
    """A line with the current phase and the time since the start, refreshed by a thread.

    There is no total and no count, unless a search says how many runs there are: where their
    number is random it is secret.

    Parameters
    ----------
    name : str
        Of the search.
    shown : bool
        Whether to show anything.
    """

    def __init__(self, name: str, shown: bool) -> None:
        self._name, self._shown = name, shown
        self._bar: Any = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def phase(self, words: str) -> None:
        """Show what is going on now."""
        if self._bar is not None:
            self._bar.set_description_str(f"{self._name}: {words}")

    def count(self, done: int, total: int) -> None:
        """Show how many of a public number of runs are done."""
        if self._bar is not None:
            self._bar.set_description_str(f"{self._name}: {done} of {total} candidates")

    def line(self, words: str) -> None:
        """Show a line of its own."""
        if self._bar is not None:
            # Not to where prints go: those are dropped while candidates are fitted.
            self._bar.write(words, file=self._bar.fp)

    def __enter__(self) -> Progress:
        """Start showing."""
        if self._shown:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=None, bar_format="{desc} [{elapsed}]", leave=True)
            self._thread = threading.Thread(target=self._refresh, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop showing."""
        if self._bar is not None:
            self._stop.set()
            if self._thread is not None:
                self._thread.join()
            self.phase("done" if error is None else "stopped")
            self._bar.close()

    def _refresh(self) -> None:
        while not self._stop.wait(_INTERVAL):
            self._bar.refresh()
