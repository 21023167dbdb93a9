"""What every distribution of the number of runs offers, and the checks of its arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Self, overload

import numpy as np

from skdptune._validation import (
    FloatArray,
    check_integer,
    check_kind,
    check_option,
    check_real,
    check_vector,
)
from skdptune.accounting._run_counts._sampling import IntArray, RandomState, make_generator


class RunCountDistribution(ABC):
    """Distribution of the number K of runs of a private search.

    A search draws K from a distribution that depends on public constants only, makes K independent
    runs and returns the best. K itself is never shown: the privacy cost depends on its
    distribution, through the probability generating function ``pgf(x) = E[x^K]`` and its
    derivatives.

    Distributions are immutable, compare by value and can be hashed and pickled. A subclass is a
    frozen dataclass that fills in the abstract members; they receive arguments already checked.

    Notes
    -----
    Assumption S0. The envelope (Theorem S2) is proved where ``pgf'' / pgf'''`` is linear in x. It
    is for all distributions here; one of your own must have this property, too.
    """

    _name: ClassVar[str]
    _known: ClassVar[dict[str, type[RunCountDistribution]]] = {}
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make the distribution known to `from_dict` by its name, if it has one of its own."""
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
            None draws from the entropy of the operating system. A seed makes the draw
            reproducible by whoever knows it, which a release with a guarantee must not be.
        size : int or tuple of int, default=None
            Shape of the result. None draws one number.

        Returns
        -------
        int, or array of int64 where ``size`` is given
        """
        if size is None:
            return int(self._draw(make_generator(random_state), ()))
        sizes = size if isinstance(size, tuple) else (size,)
        shape = tuple(check_integer(extent, name="size", lower=0) for extent in sizes)
        return np.asarray(self._draw(make_generator(random_state), shape), dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the distribution's name and parameters as plain values, fit for JSON."""
        return {"distribution": self._name} | {
            name: getattr(self, name) for name in self._parameters()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the distribution that `to_dict` described."""
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


def check_distribution(value: Any) -> RunCountDistribution:
    """Return the argument ``distribution`` if it is one of the number of runs, or raise."""
    distribution: RunCountDistribution = check_kind(
        value,
        name="distribution",
        kind=RunCountDistribution,
        domain="a distribution of the number of runs, such as Geometric(0.1)",
    )
    return distribution


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
