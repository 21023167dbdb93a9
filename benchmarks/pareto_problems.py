"""The training problems of Avent et al. (2020), Tables 1, 3 and 4, for `pareto.py`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator

from skdptune.linear_model import DPLinearSVC, DPLogisticRegression

ADULT_TRAIN = 40_000
# The authors' program downloads a1a.t to fit on and a1a for the utility.
A1A_TRAIN, A1A_TEST = 30_956, 1_605
Space = dict[str, Any]
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Domain:
    """Intervals of the search, distributions of random sampling, and the ends of the grid."""

    epochs: tuple[int, int]
    batch: tuple[int, int]
    batch_distribution: tuple[float, float]
    rate: tuple[float, float]
    widest_rate: tuple[float, float]
    clip: tuple[float, float]
    # Of the exponential distributions of the learning rate, the noise and the clipping norm.
    decay: tuple[float, float, float]
    noise: tuple[float, float] = (0.1, 16.0)
    # Whether these numbers are squares of z: the paper's tables call them variances, its program
    # does not.
    is_variance: bool = False

    @property
    def noise_ends(self) -> tuple[float, float]:
        """Noise multipliers of the records' gradients: 2 z for batches of a fixed size."""
        power = 0.5 if self.is_variance else 1.0
        low, high = (2.0 * end**power for end in self.noise)
        return low, high


# In the paper's words: epochs, lot size, learning rate, clipping norm, noise.
ADULT = Domain(
    (1, 64), (8, 512), (128, 64), (5e-4, 5e-2), (1e-3, 0.1), (0.1, 4.0), (10.0, 0.1, 0.1)
)
MNIST = Domain(
    (1, 400), (16, 4000), (800, 800), (1e-3, 0.5), (1e-3, 0.5), (0.1, 12.0), (10.0, 0.5, 0.5)
)


@dataclass(frozen=True)
class Problem:
    """An estimator, the names and domain of its parameters, and records."""

    estimator: BaseEstimator
    names: tuple[str, str, str, str, str]
    domain: Domain
    split: Split

    def with_epochs(self, most: int | None) -> Problem:
        """Return the problem with fewer epochs at most."""
        low, high = self.domain.epochs
        epochs = low, high if most is None else min(most, high)
        return replace(self, domain=replace(self.domain, epochs=epochs))

    def with_variances(self) -> Problem:
        """Return the problem with the domain of z read as one of its square."""
        return replace(self, domain=replace(self.domain, is_variance=True))

    def with_split(self, split: Split) -> Problem:
        """Return the problem with other records."""
        return replace(self, split=split)

    def space(self, sampler: str) -> Space:
        """Return the space in which a sampler searches."""
        kind = sampler.rstrip("234")
        make = {"random": random_space, "grid": grid_space}.get(kind, search_space)
        return dict(zip(self.names, make(self.domain, len(self.split[0])), strict=True))


def search_space(domain: Domain, size: int) -> list[Any]:
    """Return intervals, with logarithmic scales where a user would choose them."""
    batch = domain.batch[0], min(domain.batch[1], size)
    logs = [(*ends, "log") for ends in (batch, domain.rate, domain.noise_ends, domain.clip)]
    return [domain.epochs, *logs]


def exponential(low: Any, high: Any, decay: Any) -> Any:
    """Return an exponential distribution from one end, truncated at the other."""
    return stats.truncexpon((high - low) * decay, loc=low, scale=1.0 / decay)


class NoiseDistribution(stats.rv_continuous):
    """The distribution of ``2 z`` if a power of ``z`` is truncated exponential."""

    def _get_support(self, *shapes: float) -> tuple[float, float]:
        low, high, _, power = shapes
        return 2.0 * low ** (1.0 / power), 2.0 * high ** (1.0 / power)

    def _cdf(self, x: Any, low: Any, high: Any, decay: Any, power: Any) -> Any:
        return exponential(low, high, decay).cdf((x / 2.0) ** power)

    def _ppf(self, q: Any, low: Any, high: Any, decay: Any, power: Any) -> Any:
        return 2.0 * exponential(low, high, decay).ppf(q) ** (1.0 / power)


def random_space(domain: Domain, size: int) -> list[Any]:
    """Return the distributions of the paper: Tables 3 and 4."""
    mean, deviation = domain.batch_distribution
    sizes = np.arange(domain.batch[0], min(domain.batch[1], size) + 1)
    weights = stats.norm.pdf(sizes, mean, deviation)
    batch = stats.rv_discrete(values=(sizes, weights / weights.sum()))()
    rate = exponential(*domain.widest_rate, domain.decay[0])
    clip = exponential(*domain.clip, domain.decay[2])
    power = 2.0 if domain.is_variance else 1.0
    noise = NoiseDistribution(name="noise")(*domain.noise, domain.decay[1], power)
    return [stats.randint(domain.epochs[0], domain.epochs[1] + 1), batch, rate, noise, clip]


def grid_space(domain: Domain, size: int) -> list[Any]:
    """Return the intervals of the paper's grids."""
    batch = domain.batch[0], min(domain.batch[1], size)
    return [domain.epochs, batch, domain.widest_rate, domain.noise_ends, domain.clip]


def folder() -> Path:
    """Return the folder of the data."""
    return Path(os.environ.get("SKDPTUNE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def adult(train: int) -> Split:
    """Return the first records of Adult, and those after the 40,000th."""
    with np.load(folder() / "a9a.npz") as file:
        packed = np.concatenate([file["X_train"], file["X_test"]])
        y = np.concatenate([file["y_train"], file["y_test"]])
        X = np.unpackbits(packed, axis=1)[:, : int(file["n_features"])].astype(np.float32)
    train = min(train, ADULT_TRAIN)
    return X[:train], X[ADULT_TRAIN:], y[:train], y[ADULT_TRAIN:]


def a1a(train: int | None = None) -> Split:
    """Return as many records of Adult as the authors had, drawn from the same 32,561.

    Which 1,605 of them are a1a is not known here: a fixed draw takes their place.
    """
    with np.load(folder() / "a9a.npz") as file:
        X = np.unpackbits(file["X_train"], axis=1)[:, : int(file["n_features"])]
        y = file["y_train"]
    order = np.random.default_rng(0).permutation(len(y))
    test, rest = order[:A1A_TEST], order[A1A_TEST:][: train or A1A_TRAIN]
    X = X.astype(np.float32)
    return X[rest], X[test], y[rest], y[test]


def mnist(train: int) -> Split:
    """Return the first images of MNIST, in [0, 1], and all of its test images."""
    with np.load(folder() / "mnist.npz") as file:
        X, X_test = (file[name].reshape(-1, 784) for name in ("X_train", "X_test"))
        y, y_test = (file[name].astype(np.int64) for name in ("y_train", "y_test"))
    rows, test = ((images / 255.0).astype(np.float32) for images in (X[:train], X_test))
    return rows, test, y[:train], y_test


def linear(kind: Callable[..., BaseEstimator], solver: str, train: int) -> Problem:
    """Return a linear model on Adult."""
    names = ("epochs", "batch_size", "learning_rate", "noise_multiplier", "max_grad_norm")
    model = kind(solver=solver, sampling="fixed", classes=[-1, 1])
    return Problem(model, names, ADULT, adult(train))


def network(hidden: tuple[int, ...], train: int) -> Problem:
    """Return a perceptron on MNIST."""
    import torch

    from skdptune.neural_network import MLP, DPNeuralNetClassifier

    names = ("max_epochs", "batch_size", "lr", "noise_multiplier", "max_grad_norm")
    model = DPNeuralNetClassifier(
        MLP(hidden=hidden),
        optimizer=torch.optim.SGD,
        classes=range(10),
        sampling="fixed",
        epsilon=None,
    )
    return Problem(model, names, MNIST, mnist(train))


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "logreg-sgd": lambda train: linear(DPLogisticRegression, "sgd", train),
    "logreg-adam": lambda train: linear(DPLogisticRegression, "adam", train),
    "svm-sgd": lambda train: linear(DPLinearSVC, "sgd", train),
    "mlp1": lambda train: network((1000,), train),
    "mlp2": lambda train: network((128, 64), train),
}
