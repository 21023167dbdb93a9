"""Plans and calibrations of this process, cached by the content of all that they follow from."""

from __future__ import annotations

import io
import pickle
import threading
from collections import OrderedDict
from types import FunctionType
from typing import Any

import joblib

# Profiles of a plan take some ten megabytes.
_SIZE = 8


def plan_key(*content: Any) -> str | None:
    """Return a key of everything that a plan follows from; None if it cannot be pickled."""
    try:
        return str(joblib.hash((_named_in(content), content)))
    except Exception:
        # What cannot be pickled is solved anew each time.
        return None


class PlanCache:
    """The last few plans; safe to use from several threads.

    Parameters
    ----------
    size : int, default=8
        Most plans that are kept.
    """

    def __init__(self, size: int = _SIZE) -> None:
        self._size = size
        self._plans: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str | None) -> Any:
        """Return the plan of a key, None if there is none."""
        with self._lock:
            return self._plans.get(key) if key is not None else None

    def put(self, key: str | None, plan: Any) -> None:
        """Keep a plan, and drop the oldest beyond the cache's size."""
        if key is None:
            return
        with self._lock:
            self._plans[key] = plan
            while len(self._plans) > self._size:
                self._plans.popitem(last=False)


plan_cache = PlanCache()


class _Names(pickle.Pickler):
    """Notes the classes and functions that are pickled by name.

    One that was defined anew, as in a notebook, has the same name and is another.
    """

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.found: list[int] = []

    def reducer_override(self, obj: Any) -> Any:
        """Note an object's identity; it is pickled as usual."""
        if isinstance(obj, type | FunctionType):
            self.found.append(id(obj))
        return NotImplemented


def _named_in(content: Any) -> list[int]:
    names = _Names()
    names.dump(content)
    return names.found
