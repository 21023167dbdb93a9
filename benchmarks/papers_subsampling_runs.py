"""Searches on images for `papers_subsampling.py`: three ways to tune a net, and what they cost."""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from data_sets import FOLDER
from papers_selection import dp_sgd

from skdptune import DPRandomSearchCV
from skdptune.accounting import Poisson, PrivacyProfile, calibrate, tune_then_fit
from skdptune.model_selection import RandomRuns
from skdptune.neural_network import MLP, DPNeuralNetClassifier

DELTA = 1e-5
# What the paper prints: the share for tuning, the rate of batches, the grids of its Table 2.
PART = 0.1
RATE = 0.0213
RATES = {"fashion": 10.0 ** np.arange(-3.0, 1.6, 0.5), "mnist": 10.0 ** np.arange(-4.0, 0.1, 0.5)}
CLIPPING = {"fashion": 3.0, "mnist": 1.0}
FILES = {"fashion": "fashion_mnist.npz", "mnist": "mnist.npz"}
NAMES = {"fashion": "FashionMNIST", "mnist": "MNIST"}
LEARNING_RATE, ALL_SETTINGS = "learning rate", "all"
Split = tuple[np.ndarray, ...]
# Of each seed: test accuracy, noise over the share of the final fit, seconds, one run's epsilon.
Rows = dict[float, list[tuple[float, float, float, float]]]


def has_data(name: str) -> bool:
    """Return whether the images are there."""
    return (FOLDER / FILES[name]).exists()


@functools.cache
def images(name: str, rows: int) -> Split:
    """Return the first images, public ones that candidates are scored on, and test images."""
    with np.load(FOLDER / FILES[name]) as file:
        X, X_rest = (
            file[key].reshape(-1, 784).astype(np.float32) / 255.0 for key in ("X_train", "X_test")
        )
        y, y_rest = (file[key].astype(np.int64) for key in ("y_train", "y_test"))
    half = len(y_rest) // 2
    return X[:rows], X_rest[:half], X_rest[half:], y[:rows], y_rest[:half], y_rest[half:]


def net(data: str, optimizer: str, **settings: Any) -> DPNeuralNetClassifier:
    """Return the paper's net for FashionMNIST, two hidden layers of 120 tempered sigmoids."""
    return DPNeuralNetClassifier(
        MLP(hidden=(120, 120)),
        classes=range(10),
        max_grad_norm=CLIPPING[data],
        optimizer=torch.optim.Adam if optimizer == "adam" else torch.optim.SGD,
        **settings,
    )


# Candidates that differ in cost, by Rényi divergences -------------------------------------------


@functools.cache
def candidate_noises(own: float, settings: tuple[tuple[float, float], ...]) -> tuple[float, ...]:
    """Return the noise with which each (rate, epochs) is (own, DELTA)-private."""
    return tuple(
        calibrate(lambda noise, s=s: training(noise, *s), own, DELTA, guess=1.5).value
        for s in settings
    )


def training(noise: float, rate: float, epochs: float) -> PrivacyProfile:
    """Return the profile of one training."""
    return dp_sgd(noise, rate, max(1, round(epochs / rate)))


@functools.cache
def own_epsilon(
    total: float, way: object, mean: float, settings: tuple[tuple[float, float], ...]
) -> float:
    """Return the epsilon of each candidate with which the whole costs `total` (section 4.1).

    The run's divergence of each order is the largest of any candidate.
    """

    def cost(own: float) -> PrivacyProfile:
        noises = candidate_noises(own, settings)
        run = functools.reduce(
            lambda one, two: one | two,
            (training(noise, *s) for noise, s in zip(noises, settings, strict=True)),
        )
        search = run.selected(Poisson(mean), "rdp")
        if way == "all":
            return search
        return tune_then_fit(search, run, PART, variant=way, bound="rdp")

    # Halving: how much a candidate may cost is wanted to a hundredth.
    low, high = total / 100.0, total
    while high - low > 0.01 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if cost(middle).epsilon(DELTA) <= total else (low, middle)
    return low


# Searches ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Experiment:
    """One panel: a data set, an optimizer, ways to tune, what is tuned and how many candidates."""

    data: str
    optimizer: str
    ways: dict[str, tuple[object, str]]
    tuned: str
    mean: float

    @property
    def title(self) -> str:
        """Return what is above the panel."""
        optimizer = "DP-Adam" if self.optimizer == "adam" else "DP-SGD"
        return f"{NAMES[self.data]}, {optimizer}, {self.tuned} tuned"

    def run(self, options: argparse.Namespace) -> dict[str, Rows]:
        """Run all searches, seed by seed, but those that are kept."""
        kept = dict(read(options.results)) if options.results else {}
        found: dict[str, Rows] = {way: {e: [] for e in options.epsilons} for way in self.ways}
        cases = itertools.product(range(options.seeds), options.epsilons, self.ways)
        for seed, epsilon, way in cases:
            setting = [self.data, self.optimizer, self.tuned, self.mean, way, epsilon, seed]
            key = json.dumps([*setting, options.rows, options.epochs], ensure_ascii=False)
            if key not in kept:
                kept[key] = self.search(way, epsilon, seed, options)
                if options.results:
                    with options.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps([key, kept[key]], ensure_ascii=False) + "\n")
            found[way][epsilon].append(tuple(kept[key]))
        return found

    def search(self, way: str, epsilon: float, seed: int, options: argparse.Namespace) -> Any:
        """Return what one search found."""
        kind, bound = self.ways[way]
        split = images(self.data, options.rows)
        started = time.process_time()
        if self.tuned == ALL_SETTINGS and bound == "rdp":
            by_hand = self.by_hand(kind, epsilon, seed, options.epochs, split)
            accuracy, noise, own = by_hand
        else:
            search = self.as_search(kind, bound, epsilon, seed, options.epochs)
            X, X_val, X_test, y, y_val, y_test = split
            plan = search.plan(*X.shape, public_validation=True, compare=False)
            search.fit(X, y, X_val=X_val, y_val=y_val)
            accuracy = search.score(X_test, y_test)
            noise, own = plan.row.effective_noise, plan.row.fit_epsilon
        return accuracy, noise, time.process_time() - started, own

    def factor(self, kind: object) -> float:
        """Return how many times as large the final fit's learning rate is than the runs'."""
        sgd = {"all": 1.0, 1: (1.0 - PART) / PART, 2: 1.0 / PART}
        return 1.0 if self.optimizer == "adam" else sgd[kind]

    def settings(self, epochs: float) -> tuple[tuple[float, float], ...]:
        """Return the rates and epochs of all candidates."""
        if self.tuned == LEARNING_RATE:
            return ((RATE, epochs),)
        rates, shares = (128 / 60_000 * 10, 256 / 60_000 * 10), (0.25, 0.5, 0.75, 1.0)
        return tuple((rate, share * epochs) for rate in rates for share in shares)

    def as_search(
        self, kind: object, bound: str, epsilon: float, seed: int, epochs: float
    ) -> DPRandomSearchCV:
        """Return the package's search; its space is the final fit's, the runs' is scaled down."""
        space: dict[str, Any] = {"lr": (self.factor(kind) * RATES[self.data]).tolist()}
        settings = self.settings(epochs)
        if self.tuned == ALL_SETTINGS:
            space["batch_size"] = sorted({rate for rate, _ in settings})
            space["max_epochs"] = sorted({count for _, count in settings})
        return DPRandomSearchCV(
            net(self.data, self.optimizer, batch_size=RATE, max_epochs=epochs),
            space,
            epsilon=epsilon,
            delta=DELTA,
            random_state=seed,
            strategy=RandomRuns(
                n_iter_distribution=Poisson(self.mean),
                bound=bound,
                tuning_fraction=None if kind == "all" else PART,
                variant=1 if kind == "all" else kind,
                extrapolate="linear",
            ),
        )

    def by_hand(
        self, kind: object, epsilon: float, seed: int, epochs: float, split: Split
    ) -> tuple[float, float, float]:
        """Return test accuracy, noise and one run's epsilon of the paper's tuning of all settings.

        The package's searches refuse this bound for candidates of different cost.
        """
        X, X_val, X_test, y, y_val, y_test = split
        settings, rng = self.settings(epochs), np.random.default_rng(seed)
        own = own_epsilon(epsilon, kind, self.mean, settings)
        noises = candidate_noises(own, settings)
        part = np.ones(len(X), bool) if kind == "all" else rng.random(len(X)) < PART
        best: tuple[float, Any, int, float] = (-1.0, None, 0, 0.0)
        for _ in range(rng.poisson(self.mean)):
            number, lr = int(rng.integers(len(settings))), float(rng.choice(RATES[self.data]))
            model = self.candidate(settings[number], noises[number], lr, rng)
            score = model.fit(X[part], y[part]).score(X_val, y_val)
            if score > best[0]:
                best = score, model, number, lr
        _, model, number, lr = best
        if kind != "all" and model is not None:
            model = self.candidate(settings[number], noises[number], lr * self.factor(kind), rng)
            rest = ~part if kind == 1 else np.ones(len(X), bool)
            model.fit(X[rest], y[rest])
        share = 1.0 - PART if kind == 1 else 1.0
        chance = 0.1 if model is None else model.score(X_test, y_test)
        return chance, float(np.mean(noises)) / share, own

    def candidate(
        self, setting: tuple[float, float], noise: float, lr: float, rng: np.random.Generator
    ) -> DPNeuralNetClassifier:
        """Return one net."""
        rate, count = setting
        seed = int(rng.integers(2**31))
        common = {"batch_size": rate, "max_epochs": count, "noise_multiplier": noise, "lr": lr}
        return net(self.data, self.optimizer, epsilon=None, random_state=seed, **common)


def read(file: Any) -> Iterator[tuple[str, Any]]:
    """Return the searches that a file keeps."""
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            key, values = json.loads(line)
            yield key, values


def summary(rows: Rows, *, alone: bool = False) -> np.ndarray:
    """Return epsilons, means and standard errors of accuracies in %, noises and seconds.

    With `alone` the epsilon is that of one training with the noise of the search.
    """
    columns = []
    for epsilon, found in rows.items():
        accuracy, noise, seconds, own = np.array(found).T
        error = np.std(accuracy, ddof=1) / math.sqrt(len(found)) if len(found) > 1 else 0.0
        shown = own.mean() if alone else epsilon
        columns.append([shown, 100 * accuracy.mean(), 100 * error, noise.mean(), seconds.mean()])
    return np.array(columns).T
