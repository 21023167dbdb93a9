"""Shared by many tests: a few of many cases, and the cost of noisy gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle, islice
from typing import Any

import numpy as np
from dp_accounting import dp_event

from skdptune.accounting import PrivacyProfile
from skdptune.accounting._profile import as_given


def few(count: int, *columns: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return `count` combinations, always the same ones, in which every value appears."""
    rng = np.random.default_rng(0)
    listed = [list(column) for column in columns]
    if max(map(len, listed)) > count:
        raise ValueError("count must be at least the number of values of each column.")
    drawn = [list(islice(cycle(column), count)) for column in listed]
    return list(zip(*([c[i] for i in rng.permutation(count)] for c in drawn), strict=True))


def steps(rate: float, noise: float, count: int) -> dp_event.DpEvent:
    """Return `count` noisy steps, each on a Poisson sample of the records."""
    step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    return dp_event.SelfComposedDpEvent(step, count)


def trained(
    rate: float, noise: float, count: int, discretization: float | None = None
) -> PrivacyProfile:
    """Return the profile of such steps."""
    return PrivacyProfile.from_event(steps(rate, noise, count), discretization)


def without_form(profile: PrivacyProfile) -> PrivacyProfile:
    """Return a profile that knows nothing of itself but its numbers."""
    return PrivacyProfile._of(as_given, profile._sides, profile._renyi)
