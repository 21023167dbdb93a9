"""Findings about budgets, sizes and seeds: numbers that are public, and what they promise."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator

from skdptune.base import LOSS_OF_DOUBLING, advised_delta, own_parameters
from skdptune.checks._finding import Finding, issue, tip
from skdptune.checks._subject import Part, Subject

# Above these a guarantee says little, whatever the data are.
_LARGE_EPSILON, _LARGE_DELTA = 10.0, 1e-3
# Points of accuracy that doubled noise may lose, from which on a budget is called small.
_MANY_POINTS = 5.0
_FACTOR = 2.0
# Python neither shows nor turns into floats integers of thousands of digits.
_LARGEST = 10**15


def findings_of_numbers(subject: Subject) -> Iterator[Finding]:
    """Find numbers with which the guarantee is none, is less than it seems, or costs utility."""
    yield from _of_delta(subject)
    yield from _of_seeds(subject)
    yield from _of_epsilon(subject)
    yield from _of_public_size(subject)
    yield from _of_few_records(subject)


def _owner(subject: Subject, name: str) -> Part | None:
    """Return what sets a number of the total: the search, or the first step that has it."""
    if subject.is_search and own_parameters(subject.root).get(name) is not None:
        return subject.whole
    has = [part for part in subject.private_parts if part.own.get(name) is not None]
    # The largest counts most.
    return max(has, key=lambda part: _number(part.own[name]), default=None)


def _number(value: object) -> float:
    """Return a number as a float; 0 for what is none, which is refused elsewhere."""
    return float(value) if isinstance(value, float) else float(_whole(value))


def _whole(value: object) -> int:
    """Return an integer that can be shown; 0 for what is none."""
    return int(value) if isinstance(value, numbers.Integral) and abs(int(value)) < _LARGEST else 0


def _at(subject: Subject, name: str) -> str:
    owner = _owner(subject, name)
    return subject.name if owner is None else owner.at(name)


def _of_delta(subject: Subject) -> Iterator[Finding]:
    """SKP004 where the number of records is known; SKP016 where it is not."""
    delta, n_samples = subject.delta, subject.n_samples
    if delta is None or not delta < 1.0 or not_released(subject):
        return
    if n_samples is not None and delta >= 1.0 / n_samples:
        found = f"delta={delta:g} is at least 1/n_samples={1.0 / n_samples:.3g}"
        yield issue("SKP004", _at(subject, "delta"), found, f"delta={advised_delta(n_samples):g}")
    elif n_samples is None and delta >= _LARGE_DELTA:
        found = f"delta={delta:g} is at least 1/n_samples from {math.ceil(1.0 / delta)} records on"
        yield issue("SKP016", _at(subject, "delta"), found, "delta=1e-6")


def not_released(subject: Subject) -> bool:
    """Return whether it is a search that releases nothing, and so states no epsilon."""
    if not subject.is_search:
        return False
    return own_parameters(subject.root).get("release", 0.0) is None


def _of_seeds(subject: Subject) -> Iterator[Finding]:
    """SKP005: a search sets the seeds of all steps, so that its own alone counts."""
    for part in [subject.whole] if subject.is_search else subject.private_parts:
        seed = part.own.get("random_state")
        if seed is not None:
            is_shown = isinstance(seed, numbers.Integral) and abs(int(seed)) < _LARGEST
            shown = str(int(seed)) if is_shown else f"a {type(seed).__name__}"
            found = f"random_state is {shown}, from which all noise follows"
            yield issue("SKP005", part.at("random_state"), found, "random_state=None")


def _of_epsilon(subject: Subject) -> Iterator[Finding]:
    """SKP007 where epsilon is infinite, SKP016 where it is large."""
    unlimited = [] if subject.sets_budget else subject.private_parts
    infinite = [part for part in unlimited if _number(part.own.get("epsilon")) == math.inf]
    for part in infinite:
        found = "epsilon is infinite: the fit has no noise"
        yield issue("SKP007", part.at("epsilon"), found, "epsilon=1.0")
    epsilon = subject.epsilon
    if epsilon is None or infinite or not_released(subject):
        return
    at = subject.name if subject.delta is None else f"at delta={subject.delta:g}"
    if math.isinf(epsilon):
        found = f"no epsilon holds {at}: the fit is not private"
        yield issue("SKP007", subject.name, found, "epsilon=1.0")
    elif epsilon > _LARGE_EPSILON:
        odds = f"{math.exp(epsilon):.0e}" if epsilon < 500.0 else "more than 1e+200"
        found = f"epsilon={epsilon:.4g} in all: one record may change odds by a factor of {odds}"
        yield issue("SKP016", _at(subject, "epsilon"), found, "epsilon=1.0")


def _of_public_size(subject: Subject) -> Iterator[Finding]:
    """SKP003: a constant in place of the number of records that is far from it."""
    for part in [subject.whole] if subject.is_search else subject.private_parts:
        size, n_samples = _whole(part.own.get("n_public")), subject.n_samples
        if n_samples is None or size < 1:
            continue
        if not 1.0 / _FACTOR <= size / n_samples <= _FACTOR:
            found = (
                f"n_public={size} stands for some {n_samples} records: noise and rates are set "
                "for the wrong number"
            )
            fix = "n_public=the expected number of records, from public knowledge"
            yield tip("SKP003", part.at("n_public"), found, fix)


def _of_few_records(subject: Subject) -> Iterator[Finding]:
    """SKP013: what twice the noise may lose, by the measured rule of the searches."""
    epsilon, n_samples = subject.epsilon, subject.n_samples
    if n_samples is None or epsilon is None or not 0.0 < epsilon < math.inf:
        return
    if not (subject.is_search or hasattr(subject.root, "predict")):
        return
    lost = LOSS_OF_DOUBLING / (epsilon * n_samples)
    if lost >= _MANY_POINTS:
        found = (
            f"epsilon times the number of records is {epsilon * n_samples:.4g}: twice the noise "
            f"may lose {min(lost, 50.0):.2g}{' or more' if lost > 50.0 else ''} points of accuracy"
        )
        fix = "more records, fewer columns, a larger epsilon, or one fit without a search"
        yield tip("SKP013", _at(subject, "epsilon"), found, fix)
