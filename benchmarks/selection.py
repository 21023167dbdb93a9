"""Which way of picking a candidate loses least, at the same total epsilon.

    python benchmarks/selection.py simulated [--seeds 200]    regret on simulated utilities
    python benchmarks/selection.py adult [--seeds 2] [--partitions 20]
                                                              test accuracy of whole searches

Simulated: every candidate has a utility in [0, 1], which one record changes by at most 1/k. The
ways are the doubling threshold search with either noise (its defaults) and with coarse steps from
chance level on, permute-and-flip, the largest of utilities with Laplace noise, and the best of a
random number of random candidates by noisy score.
Each costs the same epsilon at delta 1e-5 (most are pure). Regret is the best utility less that
of the candidate picked. Adult (a9a) is read from SKDPTUNE_DATA, or ../shared/data.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable

import numpy as np
from data_sets import a9a_split

from skdptune.accounting import Geometric, PrivacyProfile, calibrate
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import doubling_threshold_release, permute_and_flip_release
from skdptune.model_selection import (
    DoublingThresholdSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    NoisyMaximum,
    RandomRuns,
    ThresholdRounds,
)

DELTA = 1e-5
RUN_COUNT = Geometric.from_mean(20)
SIZES, PARTITION_COUNTS, EPSILONS = (10, 100, 1000), (20, 100), (0.1, 0.5, 1.0, 4.0)
# Uniform, as in the papers; and as accuracies over a grid often are: most good, few the best.
UTILITY_DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform on (0, 1)": lambda rng, size: rng.random(size),
    "0.5 + 0.4 Beta(2, 2)": lambda rng, size: 0.5 + 0.4 * rng.beta(2.0, 2.0, size),
}
# Fewer levels are fewer hits to pay for; half is what guessing reaches with two classes.
COARSE = {"granularity": 0.1, "initial_utility": 0.5}
Pick = Callable[[np.ndarray, int, float, int], int]


def threshold_search(noise: str, **steps: float) -> Pick:
    """Return the pick by a doubling threshold search; without a hit, the first candidate."""

    def pick(utilities: np.ndarray, n_partitions: int, epsilon: float, seed: int) -> int:
        found, _ = doubling_threshold_release(
            utilities,
            sensitivity=1.0 / n_partitions,
            noise=noise,
            epsilon=epsilon,
            delta=DELTA if noise == "per-round" else 0.0,
            random_state=seed,
            **steps,
        )
        return 0 if found is None else found

    return pick


def permute_and_flip(utilities: np.ndarray, n_partitions: int, epsilon: float, seed: int) -> int:
    """Return the pick by one-sided exponential noise."""
    return permute_and_flip_release(utilities, 1.0 / n_partitions, epsilon, random_state=seed)


def noisy_max(utilities: np.ndarray, n_partitions: int, epsilon: float, seed: int) -> int:
    """Return the pick by Laplace noise."""
    noise = np.random.default_rng(seed).laplace(
        0.0, 2.0 / (n_partitions * epsilon), utilities.size
    )
    return int(np.argmax(utilities + noise))


@functools.cache
def noise_of_scores(epsilon: float) -> float:
    """Return the noise of each score, over its sensitivity, that the random number of them needs.

    The fits are not charged here: they are on partitions, as for the other ways.
    """
    return calibrate(
        lambda ratio: PrivacyProfile.gaussian(1.0 / ratio).selected(RUN_COUNT), epsilon, DELTA
    ).value


def random_runs(utilities: np.ndarray, n_partitions: int, epsilon: float, seed: int) -> int:
    """Return the best of a random number of candidates, drawn with replacement."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(utilities.size, size=RUN_COUNT.sample(rng))
    scores = utilities[chosen] + noise_of_scores(epsilon) / n_partitions * rng.normal(
        size=chosen.size
    )
    return int(chosen[np.argmax(scores)])


WAYS: dict[str, Pick] = {
    "threshold, sparse": threshold_search("sparse"),
    "threshold, per-round": threshold_search("per-round"),
    "threshold, coarse": threshold_search("sparse", **COARSE),
    "permute-and-flip": permute_and_flip,
    "noisy max": noisy_max,
    "random runs": random_runs,
}


def print_simulated(seeds: int) -> None:
    """Print the mean regret of all ways."""
    for name, draw in UTILITY_DISTRIBUTIONS.items():
        print(f"\nMean regret over {seeds} seeds; utilities {name}")
        print("  |S|    k  epsilon" + "".join(f"{way:>21}" for way in WAYS) + f"{'blind':>10}")
        for size in SIZES:
            tables = [draw(np.random.default_rng([size, seed]), size) for seed in range(seeds)]
            blind = np.mean([table.max() - table.mean() for table in tables])
            for n_partitions in PARTITION_COUNTS:
                for epsilon in EPSILONS:
                    row = []
                    for pick in WAYS.values():
                        regrets = [
                            table.max() - table[pick(table, n_partitions, epsilon, seed)]
                            for seed, table in enumerate(tables)
                        ]
                        row.append(float(np.mean(regrets)))
                    best = min(row)
                    marks = "".join(
                        f"{regret:20.3f}{'*' if regret == best else ' '}" for regret in row
                    )
                    print(
                        f"{size:5d}{n_partitions:5d}{epsilon:9.1f}{marks}{blind:10.3f}", flush=True
                    )


# Whole searches -----------------------------------------------------------------------------

GRID = {"learning_rate": [0.05, 0.5, 5.0, 50.0], "max_grad_norm": [0.1, 0.5, 2.0]}


def searches(epsilon: float, seed: int, n_partitions: int | str) -> dict[str, object]:
    """Return the searches over the same candidates for the same total."""
    model = DPLogisticRegression(
        epsilon, DELTA, solver="sgd", batch_size=0.02, epochs=5, classes=[-1, 1]
    )
    common = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}

    def threshold(**settings: object) -> DoublingThresholdSearchCV:
        rounds = ThresholdRounds(n_partitions=n_partitions, **settings)
        return DoublingThresholdSearchCV(model, GRID, strategy=rounds, **common)

    return {
        "threshold, sparse": threshold(),
        "threshold, per-round": threshold(noise="per-round"),
        "threshold, coarse": threshold(**COARSE),
        "permute-and-flip": DPGridSearchCV(
            model, GRID, strategy=NoisyMaximum(n_partitions=n_partitions), **common
        ),
        "random runs on part of the data": DPRandomSearchCV(
            model, GRID, n_iter=12, strategy=RandomRuns(n_iter_distribution="geometric"), **common
        ),
        "estimator's defaults, untuned": model.set_params(random_state=seed),
    }


def print_adult(seeds: int, epsilons: tuple[float, ...], n_partitions: int | str) -> None:
    """Print the test accuracy of all searches."""
    split = a9a_split()
    if split is None:
        print("Adult: a9a.npz not found; set SKDPTUNE_DATA.")
        return
    X, X_test, y, y_test = split
    print(
        f"Adult (a9a): {len(X)} training rows, 12 candidates, delta {DELTA:g}, "
        f"{n_partitions} partitions"
    )
    for epsilon in epsilons:
        for name in searches(epsilon, 0, n_partitions):
            scores, started = [], time.perf_counter()
            for seed in range(seeds):
                found = searches(epsilon, seed, n_partitions)[name].fit(X, y)
                scores.append(found.score(X_test, y_test))
            seconds = (time.perf_counter() - started) / seeds
            listed = " ".join(f"{score:.4f}" for score in scores)
            print(
                f"  epsilon {epsilon:3.1f}  {name:32s} {np.mean(scores):.4f}  ({listed})  "
                f"{seconds:6.1f} s",
                flush=True,
            )


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("simulated", "adult"))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 2.0])
    options = parser.parse_args()
    if options.what == "simulated":
        print_simulated(options.seeds or 200)
    else:
        print_adult(options.seeds or 2, tuple(options.epsilons), options.partitions or "auto")


if __name__ == "__main__":
    main()
