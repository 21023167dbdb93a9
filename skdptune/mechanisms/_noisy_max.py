"""Selection of the best of many candidates by the permute-and-flip mechanism."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from opendp import domains, measurements, measures, metrics, mod

from skdptune._validation import check_flag, check_private_numbers, check_real
from skdptune.mechanisms._randomness import RandomState, as_generator, random_below


def permute_and_flip_release(
    scores: ArrayLike,
    sensitivity: float,
    epsilon: float,
    *,
    monotone: bool = False,
    random_state: RandomState = None,
) -> int:
    r"""Return the index of a candidate with a nearly best score, by permute-and-flip.

    The release is `epsilon`-differentially private for data sets that differ in one record, added
    or removed, if that record changes no score by more than `sensitivity`.

    Parameters
    ----------
    scores : array-like of shape (n_candidates,)
        Scores, where larger is better. NaN counts as minus infinity, which only wins if all scores
        are minus infinity.
    sensitivity : float
        Largest change of any single score by one record.
    epsilon : float
        At least 0, where a candidate is selected at random; infinite for no privacy.
    monotone : bool, default=False
        Whether one record changes all scores in the same direction: all up (or not at all), or all
        down. Then half the noise is enough.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None uses the operating system's entropy through OpenDP's noisy maximum, which compares
        exactly; a seed draws reproducible floats.

    Returns
    -------
    int

    See Also
    --------
    skdptune.accounting.permute_and_flip : Computes the privacy cost.

    Notes
    -----
    Theorem N2.

    McKenna and Sheldon (2020): go through the candidates in random order and stop at candidate
    ``j`` with probability ``exp((u_j - max(u)) / b)``, where ``b = 2 * sensitivity / epsilon``, or
    ``b = sensitivity / epsilon`` for monotone scores. It is implemented in the form of Ding et al.
    (2021): the largest score after adding exponential noise with mean ``b`` to each. Equal scores
    have equal probabilities.

    A score that is infinite on one data set and finite on a neighbouring one changes by more than
    any sensitivity. Candidates that may fail on some data should get the worst value of the
    score's range instead.

    Examples
    --------
    >>> from skdptune.mechanisms import permute_and_flip_release
    >>> accuracies = [0.71, 0.93, 0.88, float("nan")]
    >>> permute_and_flip_release(accuracies, sensitivity=0.001, epsilon=1.0, random_state=0)
    1
    """
    values = _ranked(scores)
    influence = check_real(
        sensitivity, name="sensitivity", lower=0.0, upper=math.inf, upper_open=True
    )
    budget = check_real(epsilon, name="epsilon", lower=0.0)
    check_flag(monotone, name="monotone")
    generator = as_generator(random_state)
    # The candidates for which no other candidate is infinitely better.
    best = values.max()
    contenders = np.flatnonzero(np.isfinite(values) if math.isfinite(best) else values == best)
    scale = _noise_scale(influence * (1.0 if monotone else 2.0), budget)
    return int(contenders[_winner(values[contenders], scale, generator)])


def _ranked(scores: ArrayLike) -> NDArray[np.float64]:
    """Return the scores with minus infinity for NaN; error messages show none of them."""
    values = check_private_numbers(scores, name="scores")
    if values.ndim != 1 or values.size == 0:
        raise ValueError(
            f"scores must be one-dimensional and not empty; got an array of shape {values.shape}."
        )
    return np.where(np.isnan(values), -np.inf, values)


def _noise_scale(shift: float, budget: float) -> float:
    """Return the mean of the noise, rounded up: 0 for none, infinite if scores have no effect."""
    if shift == 0.0 or math.isinf(budget):
        return 0.0
    if budget == 0.0:
        return math.inf
    return math.nextafter(shift / budget, math.inf)


def _winner(
    values: NDArray[np.float64], scale: float, generator: np.random.Generator | None
) -> int:
    if math.isinf(scale) or math.isinf(values[0]):
        return random_below(values.size, generator)
    if scale == 0.0:
        best = np.flatnonzero(values == values.max())
        return int(best[random_below(best.size, generator)])
    if generator is None:
        return noisy_max(values, scale)
    with np.errstate(over="ignore"):
        # Differences to the best score keep their accuracy, whatever the size of the scores.
        behind = (values - values.max()) / scale
    return int(np.argmax(behind + generator.standard_exponential(values.size)))


# OpenDP's noisy maximum, safe in floating point ------------------------------------------

# OpenDP compares noisy scores by exact arithmetic, with all necessary digits.
#
# Theorem N2: the best score by permute-and-flip, or a draw by the exponential mechanism.

_FEATURE = "contrib"
_lock = threading.Lock()


def noisy_max(values: np.ndarray, scale: float) -> int:
    """Return the index of the largest value after adding exponential noise with mean `scale`."""
    return int(_selector(scale)(values.tolist()))


@functools.lru_cache(maxsize=64)
def _selector(scale: float) -> Callable[[list[float]], Any]:
    domain = domains.vector_domain(domains.atom_domain(T=float, nan=False))
    with _feature_enabled():
        return measurements.make_noisy_max(
            domain, metrics.linf_distance(T=float), measures.max_divergence(), scale
        )


@contextmanager
def _feature_enabled() -> Iterator[None]:
    """Enable OpenDP's contributed code only inside the block, and restore the user's setting."""
    with _lock:
        missing = _FEATURE not in mod.GLOBAL_FEATURES
        mod.GLOBAL_FEATURES.add(_FEATURE)
        try:
            yield
        finally:
            if missing:
                mod.GLOBAL_FEATURES.discard(_FEATURE)
