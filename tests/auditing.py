"""Lower bounds on epsilon from fits on neighbouring data, and noise that is too small on purpose.

Every bound holds with probability 1 - `RISK`: for any mechanism (`counted`), or for any mechanism
whose statistic is normal with the same deviation on both data sets (`measured`, which detects much
more with the same number of fits). Choices that depend on results are made on the first half of
the fits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile
from skdptune.audit import _bounds
from skdptune.calibration import _private_conformal
from skdptune.linear_model._regression._sufficient_statistics import RidgeProblem
from skdptune.mechanisms import _doubling, _noise, _noisy_max, _quantiles, gaussian_release
from skdptune.mechanisms._exact_noise import _releases
from skdptune.model_selection import _search
from skdptune.model_selection._running import RandomSplit
from skdptune.model_selection._strategies import _random_runs

# The risk of one bound. In a table of fewer than a hundred correct bounds, one of them is above
# the true value with probability below 1e-3. Seeds are fixed, so the outcome never changes.
RISK = 5e-6


def counted_epsilon(together: Any, without: Any, delta: float, risk: float) -> float:
    """Return a lower bound from one event, chosen by every other number of both sides."""
    event = _bounds.best_event(together[::2], without[::2], risk, np.array([delta]))
    return _bounds.bound_by(event, together[1::2], without[1::2], delta, risk)


def least_epsilon(hits: Any, trials: Any, delta: float, risk: float) -> float:
    """Return a lower bound on epsilon from how often an event happened, likelier side first."""
    pairs = zip(np.array(hits, dtype=float), np.array(trials, dtype=float), strict=True)
    counts = _bounds.Counts(*(np.array([number]) for pair in pairs for number in pair))
    found = _bounds.intervals(counts, risk)
    return float(_bounds.least_epsilons(found, np.array([delta]))[0, 0])


def gaussian_epsilon(together: Any, without: Any, delta: float, risk: float) -> float:
    """Return a lower bound on epsilon if both sides are normal with equal deviations."""
    shift = min(_bounds.gaussian_shift(together, without, risk), _bounds.LARGEST_SHIFT)
    return PrivacyProfile.gaussian(shift).epsilon(delta) if shift > 0.0 else 0.0


def measured(together: np.ndarray, without: np.ndarray, delta: float) -> float:
    """Return a lower bound on epsilon where the statistic is normal."""
    return gaussian_epsilon(together, without, delta, RISK)


def counted(together: np.ndarray, without: np.ndarray, delta: float) -> float:
    """Return a lower bound on epsilon from one event, for any statistic.

    The event is chosen on the first halves. If there are two outcomes, all four choices are tested
    on all fits, each at a quarter of the risk.
    """
    values = np.unique(np.concatenate([together, without]))
    if values.size > 2:
        return counted_epsilon(together, without, delta, RISK)
    events = _bounds.possible_events(together, without)
    found = _bounds.intervals(_bounds.count(events, together, without), RISK / 4)
    return max(0.0, float(_bounds.least_epsilons(found, np.array([delta])).max()))


class Release(NamedTuple):
    """A value, the claimed scale of its noise, and the released result."""

    value: np.ndarray
    shift: float
    scale: float
    noisy: np.ndarray


@contextlib.contextmanager
def less_noise(share: float) -> Iterator[None]:
    """Multiply all noise of the package by a factor, where it is drawn."""
    constant, chi = _releases.ConstantFactor, _releases.ChiFactor
    images, laplace = _releases.rounded_images, _doubling.standard_laplace
    scale, drawn = _noisy_max._noise_scale, _quantiles._drawn

    def sharper(utilities: Any, lengths: Any, sharpness: float, generator: Any) -> int:
        return drawn(utilities, lengths, sharpness / share, generator)

    def narrower(centre: Any, matrix: Any, spreads: Any, draws: Any, grid: float) -> Any:
        return images(centre, matrix, share * spreads, draws, grid)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_releases, "ConstantFactor", lambda value: constant(share * value))
        patch.setattr(_releases, "ChiFactor", lambda value, *rest: chi(share * value, *rest))
        patch.setattr(_releases, "rounded_images", narrower)
        patch.setattr(_doubling, "standard_laplace", lambda *args: share * laplace(*args))
        patch.setattr(_noisy_max, "_noise_scale", lambda *args: share * scale(*args))
        patch.setattr(_quantiles, "_drawn", sharper)
        yield


@contextlib.contextmanager
def watched_releases() -> Iterator[list[Release]]:
    """Collect all Gaussian and Laplace releases."""
    seen: list[Release] = []
    released = _noise._released

    def watched(value: Any, sensitivity: float, scale: float, *rest: Any) -> Any:
        made = released(value, sensitivity, scale, *rest)
        seen.append(Release(np.ravel(value), sensitivity / scale, scale, np.ravel(made)))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_noise, "_released", watched)
        yield seen


# Faults that only the audit of one feature can detect. Forgotten noise is replaced by a hundredth
# of the correct noise, since bounds from normal statistics need some.
_FORGOTTEN = 0.01


@contextlib.contextmanager
def replaced(place: Any, name: str, made: Any) -> Iterator[None]:
    """Put something else in place of an attribute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, name, made)
        yield


def noise_forgotten(module: Any) -> AbstractContextManager[None]:
    """Let a module release exact sums and counts."""

    def exact(value: Any, sensitivity: float, scale: float, random_state: Any) -> Any:
        return gaussian_release(value, sensitivity, _FORGOTTEN * scale, random_state)

    return replaced(module, "gaussian_release", exact)


def quantile_without_noise() -> AbstractContextManager[None]:
    """Let intervals and sets have the quantile of the scores itself."""
    quantile = _private_conformal.private_quantile

    def exact(
        values: Any, level: float, low: float, high: float, _: float, *more: Any, **how: Any
    ):
        return quantile(values, level, low, high, np.inf, *more, **how)

    return replaced(_private_conformal, "private_quantile", exact)


def held_out_records_fitted() -> AbstractContextManager[None]:
    """Fit models of intervals to all records, including the held-out ones."""
    fitted = _private_conformal._fitted

    def on_all(estimator: Any, rows: Any, targets: Any, records: Any, *more: Any) -> Any:
        return fitted(estimator, rows, targets, np.arange(len(targets)), *more)

    return replaced(_private_conformal, "_fitted", on_all)


def noise_of_one_target() -> AbstractContextManager[None]:
    """Ignore that a record has one residual for each target."""
    return replaced(RidgeProblem, "joint_norm", 1.0)


def run_for_nothing() -> AbstractContextManager[None]:
    """Forget to charge the run of the unchanged estimator."""
    return replaced(_random_runs, "_with_own_run", lambda model, epsilon: model)


def all_records_tuned() -> AbstractContextManager[None]:
    """Train the candidates of a search on the records of validation, too."""
    made = _search.random_split

    def joint(n_samples: int, *rest: Any) -> RandomSplit:
        split = made(n_samples, *rest)
        return RandomSplit(np.arange(n_samples), split.validation, split.final)

    return replaced(_search, "random_split", joint)
