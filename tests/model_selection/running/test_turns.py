"""Threads that call methods of one object take turns."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from skdptune.model_selection._running._turns import new_lock, one_at_a_time


class Counter:
    """Counts, slowly, what it looked at before."""

    def __init__(self) -> None:
        self._lock, self.count = new_lock(), 0

    @one_at_a_time
    def add(self, more: int, times: int = 1) -> int:
        """Add a number, in a way that two threads at once would spoil."""
        known = self.count
        time.sleep(1e-4)
        self.count = known + more
        return self.count if times == 1 else self.add(more, times - 1)


def test_no_thread_sees_what_another_has_half_done() -> None:
    counter = Counter()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: counter.add(1), range(40)))
    assert sorted(found) == list(range(1, 41))


def test_a_thread_may_call_again_within_its_turn() -> None:
    assert Counter().add(2, times=3) == 6
    assert Counter.add.__doc__ == "Add a number, in a way that two threads at once would spoil."
