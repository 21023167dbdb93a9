"""Closed forms that composition keeps: what a profile may know of itself beside its numbers."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass, replace

from skdptune.accounting._losses._closed_forms import gaussian_halves, randomised_response
from skdptune.accounting._losses._curves import Sides, connected
from skdptune.accounting._losses._sampled_gaussian import sampled_gaussian_sides

# More responses are composed by transforms: their closed form takes as many numbers.
_MOST_RESPONSES = 10**6


class Form(abc.ABC):
    """A release, or a composition of equal ones, known by a few numbers."""

    @abc.abstractmethod
    def sides(self, step: float | None = None) -> Sides:
        """Return both directions, on a given grid or one that suits."""

    @abc.abstractmethod
    def composed(self, other: Form) -> Form | None:
        """Return the form of the composition with another, None if there is none."""

    @abc.abstractmethod
    def repeated(self, count: int) -> Form | None:
        """Return the form of so many copies, None if there is none."""

    def subsampled(self, fraction: float) -> Form | None:
        """Return the form on a Poisson sample, None if there is none."""
        return None

    def covers(self, other: Form) -> bool:
        """Return whether this is known to cost at least as much as another, at any epsilon."""
        return self == other


@dataclass(frozen=True)
class ResponseForm(Form):
    """Randomised responses, each of which reveals everything with some probability.

    Notes
    -----
    Theorem P5.
    """

    epsilon: float
    failure: float
    count: int = 1

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is released."""
        return self.epsilon == 0.0 and self.failure == 0.0

    def sides(self, step: float | None = None) -> Sides:
        """Return both directions, on a given grid or that of the losses themselves."""
        losses = randomised_response(self.epsilon, self.failure, self.count)
        if step is not None:
            losses = losses.on_grid(step)
        return losses, losses

    def composed(self, other: Form) -> Form | None:
        """Return the form of more such responses."""
        if not isinstance(other, ResponseForm):
            return None
        if (self.epsilon, self.failure) != (other.epsilon, other.failure):
            return None
        return self._of(self.count + other.count)

    def repeated(self, count: int) -> Form | None:
        """Return the form of so many copies, None if they are too many."""
        return self._of(self.count * count)

    def covers(self, other: Form) -> bool:
        """Return whether as many responses tell at least as much each."""
        return (
            isinstance(other, ResponseForm)
            and self.count >= other.count
            and self.epsilon >= other.epsilon
            and self.failure >= other.failure
        )

    def _of(self, count: int) -> ResponseForm | None:
        return replace(self, count=count) if count <= _MOST_RESPONSES else None


@dataclass(frozen=True)
class GaussianForm(Form):
    """Gaussian noise of a sensitivity of ``mu`` standard deviations.

    Notes
    -----
    Theorem P6.
    """

    mu: float

    def sides(self, step: float | None = None) -> Sides:
        """Return both directions, on a given grid or one that suits."""
        return connected(*gaussian_halves(self.mu, step))

    def composed(self, other: Form) -> Form | None:
        """Return the form of both, whose squared shifts add up."""
        if not isinstance(other, GaussianForm):
            return None
        return GaussianForm(math.hypot(self.mu, other.mu))

    def repeated(self, count: int) -> Form | None:
        """Return the form of so many copies."""
        return GaussianForm(self.mu * math.sqrt(count))

    def subsampled(self, fraction: float) -> Form | None:
        """Return the form on a Poisson sample."""
        return SampledGaussianForm(self.mu, fraction)

    def covers(self, other: Form) -> bool:
        """Return whether the shift is as large."""
        return isinstance(other, GaussianForm) and self.mu >= other.mu


@dataclass(frozen=True)
class SampledGaussianForm(Form):
    """Gaussian noise on Poisson samples, a number of times.

    Notes
    -----
    Theorem P7.
    """

    mu: float
    rate: float
    count: int = 1

    def sides(self, step: float | None = None) -> Sides:
        """Return both directions, on a given grid or one that suits."""
        return sampled_gaussian_sides(self.mu, self.rate, self.count, step)

    def composed(self, other: Form) -> Form | None:
        """Return the form of more such releases."""
        if not isinstance(other, SampledGaussianForm):
            return None
        if (self.mu, self.rate) != (other.mu, other.rate):
            return None
        return replace(self, count=self.count + other.count)

    def repeated(self, count: int) -> Form | None:
        """Return the form of so many copies."""
        return replace(self, count=self.count * count)

    def subsampled(self, fraction: float) -> Form | None:
        """Return the form of one on a sample of a sample."""
        return replace(self, rate=self.rate * fraction) if self.count == 1 else None

    def covers(self, other: Form) -> bool:
        """Return whether shift, rate and number are as large: each costs more the larger."""
        return (
            isinstance(other, SampledGaussianForm)
            and self.mu >= other.mu
            and self.rate >= other.rate
            and self.count >= other.count
        )
