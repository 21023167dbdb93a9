"""The interface of all distributions of the number of runs, and validation of arguments."""

from __future__ import annotations

import copy
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import NDArray

from skdptune._secure_random import SecureGenerator, secure_generator
from skdptune._validation import (
    FloatArray,
    check_integer,
    check_kind,
    check_option,
    check_real,
    check_vector,
)

IntArray = NDArray[np.int64]
RandomState = int | np.random.Generator | np.random.RandomState | None


# Relative differences allowed in numerical checks, and number of draws compared with
# probabilities.
_SLACK = 1e-7
_DRAWS = 4000
# Smaller derivatives are ignored.
_LEAST_SEEN = 1e-200


class RunCountDistribution(ABC):
    """Distribution of the number K of runs of a private search.

    A search draws K from a distribution that depends only on public constants, makes K independent
    runs and returns the best one. K itself is never shown. The privacy cost depends on its
    distribution, through the probability generating function ``pgf(x) = E[x^K]`` and its
    derivatives.

    Distributions are immutable, compare by value, and are hashable and picklable. A subclass is a
    frozen dataclass that implements the abstract members, which receive validated arguments.

    Notes
    -----
    Assumption S0. Privacy costs assume that probabilities are not negative and sum to 1, so that
    ``pgf(1)`` is 1. They assume that `pgf_derivative` and `pgf_second_derivative` are the
    derivatives of `pgf`, finite up to 1, where the first one is `mean`; and that `sample` draws
    with these probabilities. The envelope (Theorem S2) is proved if ``pgf'' / pgf'''`` is linear
    in x. All of this holds for the distributions of this package. Your own distribution is checked
    numerically when it is used: this finds most mistakes, but proves nothing.
    """

    _name: ClassVar[str]
    _known: ClassVar[dict[str, type[RunCountDistribution]]] = {}
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Register the distribution's name for `from_dict`, if it defines a name."""
        super().__init_subclass__(**kwargs)
        if "_name" in vars(cls):
            RunCountDistribution._known[cls._name] = cls

    @property
    @abstractmethod
    def mean(self) -> float:
        """Expected number of runs, ``pgf_derivative(1)``."""

    @property
    def probability_of_none(self) -> float:
        """Probability that no run is made, ``pgf(0)``."""
        return self.pgf(0.0)

    @overload
    def pgf(self, x: float) -> float: ...
    @overload
    def pgf(self, x: FloatArray | Sequence[float]) -> FloatArray: ...
    def pgf(self, x: float | FloatArray | Sequence[float]) -> float | FloatArray:
        """Return the probability generating function ``E[x^K]`` at ``x`` in [0, 1]."""
        return _on_unit_interval(self._pgf, x)

    @overload
    def pgf_derivative(self, x: float) -> float: ...
    @overload
    def pgf_derivative(self, x: FloatArray | Sequence[float]) -> FloatArray: ...
    def pgf_derivative(self, x: float | FloatArray | Sequence[float]) -> float | FloatArray:
        """Return the derivative of `pgf` at ``x`` in [0, 1]; it is non-decreasing."""
        return _on_unit_interval(self._pgf_derivative, x)

    @overload
    def pgf_second_derivative(self, x: float) -> float: ...
    @overload
    def pgf_second_derivative(self, x: FloatArray | Sequence[float]) -> FloatArray: ...
    def pgf_second_derivative(self, x: float | FloatArray | Sequence[float]) -> float | FloatArray:
        """Return the second derivative of `pgf` at ``x`` in [0, 1]; it is not negative."""
        return _on_unit_interval(self._pgf_second_derivative, x)

    def probability_at_most(self, count: int) -> float:
        """Return the probability of at most ``count`` runs."""
        return self._probability_at_most(check_integer(count, name="count", lower=0, upper=None))

    @overload
    def sample(self, random_state: RandomState = None, size: None = None) -> int: ...
    @overload
    def sample(
        self, random_state: RandomState = None, *, size: int | tuple[int, ...]
    ) -> IntArray: ...
    @overload
    def sample(self, random_state: RandomState, size: int | tuple[int, ...]) -> IntArray: ...
    def sample(
        self, random_state: RandomState = None, size: int | tuple[int, ...] | None = None
    ) -> int | IntArray:
        """Draw numbers of runs.

        Parameters
        ----------
        random_state : None, int, numpy Generator or numpy RandomState, default=None
            None uses the operating system's entropy. A seed makes the draw reproducible by anyone
            who knows it; do not use one for a release with a guarantee.
        size : int or tuple of int, default=None
            Shape of the result. None draws one number.

        Returns
        -------
        int, or array of int64 where ``size`` is given
        """
        if size is None:
            return int(self._draw(_generator(random_state), ()))
        sizes = size if isinstance(size, tuple) else (size,)
        shape = tuple(
            check_integer(extent, name="size", lower=0, is_entry=True) for extent in sizes
        )
        return np.asarray(self._draw(_generator(random_state), shape), dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the distribution's name and parameters as plain values for JSON."""
        return {"distribution": self._name} | {
            name: getattr(self, name) for name in self._parameters()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Restore a distribution from the result of `to_dict`."""
        check_kind(values, name="values", kind=Mapping, domain="a mapping")
        known = {
            name: kind
            for name, kind in RunCountDistribution._known.items()
            if issubclass(kind, cls)
        }
        kind = known[check_option(values.get("distribution"), name="distribution", options=known)]
        parameters = {name: value for name, value in values.items() if name != "distribution"}
        if set(parameters) != set(kind._parameters()):
            expected, got = ", ".join(kind._parameters()), ", ".join(map(str, parameters))
            raise ValueError(f"parameters must be {expected}; got {got or 'none'}.")
        return kind(**parameters)

    @classmethod
    def _parameters(cls) -> list[str]:
        return [entry.name for entry in fields(cls) if entry.init]

    @abstractmethod
    def _pgf(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _pgf_derivative(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _pgf_second_derivative(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _probability_at_most(self, count: int) -> float: ...

    @abstractmethod
    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> IntArray: ...


def _generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator: from a cryptographic source for None, or seeded."""
    if isinstance(random_state, np.random.Generator | SecureGenerator):
        return random_state
    check_kind(
        random_state,
        name="random_state",
        kind=(type(None), numbers.Integral, np.random.RandomState),
        domain="None, an integer, a numpy Generator or a numpy RandomState",
    )
    if random_state is None:
        # Assumption E0: random bits from AES with a key from the operating system.
        return secure_generator()
    if isinstance(random_state, np.random.RandomState):
        # Drawing the seed advances the legacy generator, so that two calls give two samples.
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    seed = check_integer(random_state, name="random_state", lower=0, upper=None)
    return np.random.default_rng(seed)


def check_distribution(value: Any) -> RunCountDistribution:
    """Return a distribution of the number of runs, a user's own as a copy; raise for others."""
    distribution: RunCountDistribution = check_kind(
        value,
        name="distribution",
        kind=RunCountDistribution,
        domain="a distribution of the number of runs, such as Geometric(0.1)",
    )
    # Those of this package are proved (Theorem K1), and cannot change.
    if type(distribution).__module__.rpartition(".")[0] != __package__:
        distribution = copy.deepcopy(distribution)
        _check_own(distribution)
    return distribution


def _check_own(distribution: RunCountDistribution) -> None:
    """Raise if a user's distribution violates the assumptions of privacy costs.

    The checks are numerical: they find mistakes, but prove nothing.

    Notes
    -----
    Assumption S0, Theorem S2.
    """
    x = np.unique(np.concatenate([np.linspace(0.0, 1.0, 201), 1.0 - np.geomspace(1e-9, 0.1, 60)]))
    mean = check_real(distribution.mean, name="mean", lower=0.0, upper_open=True)
    value, slope, bend = (
        _sound(distribution.pgf(x), "pgf"),
        _sound(distribution.pgf_derivative(x), "pgf_derivative"),
        _sound(distribution.pgf_second_derivative(x), "pgf_second_derivative"),
    )
    if abs(value[-1] - 1.0) > _SLACK:
        raise _wrong("whose pgf is 1 at 1, so that its probabilities sum to 1")
    if abs(slope[-1] - mean) > _SLACK * mean:
        raise _wrong("whose mean is pgf_derivative(1)")
    if not _is_derivative(slope, value, x):
        raise _wrong("whose pgf_derivative is the derivative of its pgf")
    if not _is_derivative(bend, slope, x):
        raise _wrong("whose pgf_second_derivative is the derivative of its pgf_derivative")
    _check_bend(distribution)
    _check_draws(distribution)


def _sound(values: FloatArray, name: str) -> FloatArray:
    """Return the values of a function that must be finite, not negative and non-decreasing."""
    if not np.all(np.isfinite(values) & (values >= 0.0)):
        raise _wrong(f"whose {name} is finite and not negative on [0, 1]")
    if np.any(np.diff(values) < -_SLACK * values[-1]):
        raise _wrong(f"whose {name} does not fall on [0, 1]")
    return values


def _is_derivative(rise: FloatArray, of: FloatArray, x: FloatArray) -> bool:
    """Return whether the increments of a function agree with its non-decreasing derivative."""
    # The mean of a non-decreasing function is between its values at both ends.
    low, high = rise[:-1] * np.diff(x), rise[1:] * np.diff(x)
    slack = _SLACK * (of[-1] + high)
    return bool(np.all((np.diff(of) >= low - slack) & (np.diff(of) <= high + slack)))


def _check_bend(distribution: RunCountDistribution) -> None:
    """Raise unless ``pgf'' / pgf'''`` looks linear, as the proof of the envelope requires."""
    # Theorem S2: its proof needs pgf'' / pgf''' to be linear.
    places, near = np.linspace(0.05, 0.95, 19), 1e-4 * np.array([-1.0, 0.0, 1.0])
    points = (places[:, None] + near).ravel()
    values = distribution.pgf_second_derivative(points).reshape(-1, 3)
    seen = np.all(values >= _LEAST_SEEN, axis=1)
    places, values = places[seen], values[seen]
    growth = (values[:, 2] - values[:, 0]) / (near[2] - near[0])
    if places.size < 3 or np.all(growth <= 1e-6 * values[:, 1]):
        return
    ratios = values[:, 1] / np.maximum(growth, _LEAST_SEEN)
    line = np.polyval(np.polyfit(places, ratios, 1), places)
    if np.any(np.abs(ratios - line) > 1e-2 * np.max(np.abs(ratios))):
        raise _wrong("whose pgf'' / pgf''' is linear in x, for which the bound is proved")


def _check_draws(distribution: RunCountDistribution) -> None:
    """Raise unless draws agree with the probabilities and the generating function."""
    draws = distribution.sample(0, size=_DRAWS)
    if np.any(draws < 0):
        raise _wrong("whose draws are not negative")
    counts = np.unique(np.quantile(draws, [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99]).astype(np.int64))
    chances = np.array([distribution.probability_at_most(int(count)) for count in [0, *counts]])
    if not np.all((chances >= 0.0) & (chances <= 1.0 + _SLACK) & (chances == np.sort(chances))):
        raise _wrong("whose probability_at_most is a probability that does not fall")
    if abs(chances[0] - distribution.pgf(0.0)) > _SLACK:
        raise _wrong("whose pgf at 0 is its probability of no run")
    x = np.array([0.5, *(1.0 - np.array([0.5, 0.1]) / max(distribution.mean, 1.0))])
    # Six standard deviations, which a correct distribution exceeds once in 10^8, plus some tail.
    for found, stated in (
        (draws[:, None] <= counts, chances[1:]),
        (x ** draws[:, None].astype(np.float64), distribution.pgf(x)),
    ):
        allowed = 6.0 * found.std(axis=0) / math.sqrt(_DRAWS) + 0.01
        if np.any(np.abs(found.mean(axis=0) - stated) > allowed):
            raise _wrong("whose draws are as likely as pgf and probability_at_most state")


def _wrong(domain: str) -> ValueError:
    return ValueError(f"distribution must be one {domain}; got another.")


def _on_unit_interval(
    function: Callable[[FloatArray], FloatArray], x: float | FloatArray | Sequence[float]
) -> float | FloatArray:
    """Apply ``function`` to a number, or to an array of any shape, within [0, 1]."""
    try:
        array = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        got = type(x).__name__
        raise TypeError(f"x must be a number or an array of numbers; got {got}.") from None
    if array.ndim == 0:
        check_real(array[()] if isinstance(x, np.ndarray) else x, name="x", lower=0, upper=1)
        return float(function(array.reshape(1))[0])
    flat = check_vector(array.ravel(), name="x", lower=0, upper=1)
    return function(flat).reshape(array.shape)
