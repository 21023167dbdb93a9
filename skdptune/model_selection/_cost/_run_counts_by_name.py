"""Distributions of the number of runs by name, by mean or by the chance of enough runs."""

from __future__ import annotations

import math
from collections.abc import Callable

from skdptune._validation import check_integer, check_option, check_real
from skdptune.accounting import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    RunCountDistribution,
    TruncatedNegativeBinomial,
)

_MOST_RUNS = 1e9


def _binomial(mean: float) -> RunCountDistribution:
    # Half of the trials run, which spreads less than Poisson, and costs more.
    return Binomial.from_mean(mean, max(1, math.ceil(2.0 * mean)))


_MAKERS: dict[str, Callable[[float], RunCountDistribution]] = {
    "geometric": Geometric.from_mean,
    "logarithmic": Logarithmic.from_mean,
    "negative_binomial": lambda mean: TruncatedNegativeBinomial.from_mean(mean, 0.5),
    # Rarely makes few runs, for little more.
    "concentrated": lambda mean: TruncatedNegativeBinomial.from_mean(mean, 3.0),
    "poisson": Poisson.from_mean,
    "binomial": _binomial,
}
# Those among which "auto" picks: the others never cost less for the same mean.
_CHOICE = ("geometric", "logarithmic", "negative_binomial", "concentrated", "poisson")
DISTRIBUTIONS = ("auto", *_MAKERS)


def candidate_distributions(
    n_iter_distribution: str | RunCountDistribution,
    n_iter: float,
    at_least: tuple[int, float] | None,
) -> list[RunCountDistribution]:
    """Return the distributions that a search may use; it takes the cheapest.

    Parameters
    ----------
    n_iter_distribution : str or RunCountDistribution
        A name, "auto" for several, or the distribution itself.
    n_iter : float
        Mean number of runs.
    at_least : tuple of int and float, or None
        ``(k, chance)``: instead of the mean, ask for at least k runs with that chance.
    """
    if isinstance(n_iter_distribution, RunCountDistribution):
        return [n_iter_distribution]
    check_option(n_iter_distribution, name="n_iter_distribution", options=DISTRIBUTIONS)
    names = _CHOICE if n_iter_distribution == "auto" else (n_iter_distribution,)
    if at_least is not None:
        count, chance = _checked_wish(at_least)
        return [_distribution_of_chance(_MAKERS[name], count, chance) for name in names]
    mean = check_real(n_iter, name="n_iter", lower=1.0, upper=_MOST_RUNS)
    if mean == 1.0:
        return [Binomial(1, 1.0)]
    return [_MAKERS[name](mean) for name in names]


def _checked_wish(at_least: tuple[int, float]) -> tuple[int, float]:
    try:
        count, chance = at_least
    except (TypeError, ValueError):
        raise ValueError(f"at_least must be (number of runs, chance); got {at_least!r}.") from None
    check_integer(count, name="at_least[0]", lower=1)
    return count, check_real(
        chance, name="at_least[1]", lower=0.0, upper=1.0, lower_open=True, upper_open=True
    )


def _distribution_of_chance(
    make: Callable[[float], RunCountDistribution], count: int, chance: float
) -> RunCountDistribution:
    """Return the distribution of least mean with at least `count` runs at the wanted chance."""

    def is_enough(mean: float) -> bool:
        return 1.0 - make(mean).probability_at_most(count - 1) >= chance

    low, high = 1.0 + 1e-9, 2.0
    while not is_enough(high):
        low, high = high, 2.0 * high
        if high > _MOST_RUNS:
            raise ValueError(f"at_least must be attainable; got {(count, chance)!r}.")
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return make(high)


def runs_at_most(n_iter_distribution: RunCountDistribution, chance: float) -> int:
    """Return the least number of runs that is not exceeded with the given chance."""
    high = 1
    while n_iter_distribution.probability_at_most(high) < chance:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle)
            if n_iter_distribution.probability_at_most(middle) >= chance
            else (middle, high)
        )
    return high
