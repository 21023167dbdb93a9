"""What is settled before the data are read, kept for the next who asks, and what comes after."""

from __future__ import annotations

import io
import pickle
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

from skdptune._compat import number_of_samples
from skdptune.accounting import PrivacyReport
from skdptune.model_selection._cost._candidates import Candidates
from skdptune.model_selection._cost._cost_model import Cost, CostModel
from skdptune.model_selection._cost._layout import Layout
from skdptune.model_selection._running import (
    Data,
    RandomSplit,
    Streams,
    generator_of,
    random_split,
)

_CACHED = 32


@dataclass(frozen=True)
class Plan:
    """All that is settled before the data are read."""

    layout: Layout
    candidates: Candidates
    model: CostModel
    cost: Cost
    parts: tuple[PrivacyReport, ...]
    asked: float | None
    delta: float

    def with_classes(self, classes: Any) -> Plan:
        """Return the same with estimators that are told the label set."""
        fit_costs = replace(self.model.fit_costs, classes=classes)
        return replace(self, model=replace(self.model, fit_costs=fit_costs))


@dataclass
class Choice:
    """What a strategy returns: the winner, and the rows that may be shown."""

    candidate: dict[str, Any]
    score: float
    model: Any
    rows: list[dict[str, Any]]
    index: int = 0
    diagnostics: dict[str, Any] = field(default_factory=dict)


def split_for(plan: Plan, data: Data, streams: Streams) -> RandomSplit:
    """Return each record's place, as the layout has it."""
    layout = plan.layout
    return random_split(
        number_of_samples(data.X),
        layout.validation,
        layout.tuning,
        layout.variant,
        generator_of(streams.random_split),
    )


class PlanCache:
    """The last few solved plans, by the content of all parameters."""

    def __init__(self) -> None:
        self._items: OrderedDict[str, Plan] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str | None) -> Plan | None:
        with self._lock:
            return self._items.get(key) if key is not None else None

    def put(self, key: str | None, value: Plan) -> None:
        if key is None:
            return
        with self._lock:
            self._items[key] = value
            while len(self._items) > _CACHED:
                self._items.popitem(last=False)


plan_cache = PlanCache()


class _Names(pickle.Pickler):
    """Notes the classes and functions that are pickled by name.

    One that was defined anew, as in a notebook, bears the same name and is another.
    """

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.found: list[int] = []

    def reducer_override(self, obj: Any) -> Any:
        """Note an object's identity; it is pickled as usual."""
        if isinstance(obj, type | FunctionType):
            self.found.append(id(obj))
        return NotImplemented


def named_in(obj: Any) -> list[int]:
    names = _Names()
    names.dump(obj)
    return names.found
