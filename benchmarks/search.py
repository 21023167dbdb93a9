"""What tuning costs, what it buys, and how fast the searches are.

    python benchmarks/search.py noise      noise of the final fit over that of one untuned fit
    python benchmarks/search.py utility    test accuracy of ways to tune at the same total budget
    python benchmarks/search.py nets       the same of nets, by fewer ways
    python benchmarks/search.py metrics    noise of fits and of scores by one metric and by several
    python benchmarks/search.py least      the least epsilon that reaches a target accuracy
    python benchmarks/search.py overhead   time, and that of scikit-learn's GridSearchCV

Digits come with scikit-learn; Adult (a9a) is read from SKDPTUNE_DATA, or ../shared/data.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from data_sets import Split, a9a_split, regression
from joblib import Parallel, delayed
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, train_test_split

from skdptune import metrics
from skdptune.accounting import PrivacyProfile
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import (
    AdaptiveTrials,
    DPAdaptiveSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    FullTable,
    LeastEpsilon,
    NoisyMaximum,
    RandomRuns,
)

EPSILONS = (0.5, 1.0, 2.0, 4.0)
DELTA = 1e-5
MEAN_RUNS = 20
# Most that a table may cost, by the number of candidates.
LIMITS = {10: 1.02, 20: 1.04, 40: 1.08}
SPACE = {"learning_rate": loguniform(0.05, 50.0), "max_grad_norm": loguniform(0.05, 5.0)}


def noise_ways(model: DPLogisticRegression, count: int, epsilon: float) -> dict[str, object]:
    """Return the searches of this many candidates whose noise is compared."""
    total = {"epsilon": epsilon, "delta": DELTA}
    grid = {"learning_rate": np.geomspace(0.05, 50.0, count).tolist()}
    drawn = {"n_iter": count, **total}

    def runs(**settings: object) -> RandomRuns:
        return RandomRuns(n_iter_distribution="geometric", **settings)

    return {
        "full table": DPGridSearchCV(model, grid, strategy="table", **total),
        "full table, limited": DPGridSearchCV(
            model, grid, strategy=FullTable(noise_limit=LIMITS[count]), **total
        ),
        "random number of runs": DPRandomSearchCV(model, SPACE, n_iter=count, **total),
        "noisy maximum": DPGridSearchCV(model, grid, strategy="noisy_max", **total),
        "envelope on all records": DPRandomSearchCV(
            model, SPACE, strategy=runs(tuning_fraction=None), **drawn
        ),
        "Thm 5.2 on all records": DPRandomSearchCV(
            model, SPACE, strategy=runs(tuning_fraction=None, bound="profile"), **drawn
        ),
        "Renyi bound of the subsampling paper": DPRandomSearchCV(
            model, SPACE, strategy=runs(bound="rdp"), **drawn
        ),
        "Papernot-Steinke": DPRandomSearchCV(
            model, SPACE, strategy=runs(tuning_fraction=None, bound="rdp"), **drawn
        ),
        "naive composition": DPGridSearchCV(model, grid, strategy="compose", **total),
    }


def print_noise(n_samples: int, epsilons: list[float], counts: list[int]) -> None:
    """Print the noise of tuned fits relative to their records, over that of an untuned one."""
    print(f"{n_samples} records, delta {DELTA:g}, rate .05, 400 steps, private scores")
    model = DPLogisticRegression(solver="sgd", batch_size=0.05, epochs=20)
    for count in counts:
        rows: dict[str, list[str]] = {}
        for epsilon in epsilons:
            untuned = None
            for name, search in noise_ways(model, count, epsilon).items():
                plan = search.plan(n_samples, 100, compare=untuned is None)
                if untuned is None:
                    untuned = plan.alternatives[0].effective_noise
                ratio = plan.row.effective_noise / untuned
                cell = f"{ratio:6.3f} ({plan.score_noise:.3f})"
                rows.setdefault(name, []).append(f"{cell:16s}")
        print(f"\n{count} candidates; in brackets the noise of a score")
        print(f"{'':38s}" + "".join(f"epsilon {e:<8g}" for e in epsilons))
        for name, cells in rows.items():
            print(f"{name:38s}" + "".join(cells), flush=True)


# Utility ------------------------------------------------------------------------------------


def digits() -> Split:
    """Return the digits, with their public range [0, 16] scaled to [-1, 1]."""
    X, y = load_digits(return_X_y=True)
    return tuple(train_test_split(X / 8.0 - 1.0, y, random_state=0, stratify=y))


def model_of(epsilon: float, labels: list[int]) -> DPLogisticRegression:
    """Return the model that all ways tune."""
    return DPLogisticRegression(
        epsilon, DELTA, solver="sgd", batch_size=0.02, epochs=5, classes=labels
    )


def ours(model, epsilon, seed, **changes):
    """Return our search; the changes make the others of it."""
    return DPRandomSearchCV(
        model,
        SPACE,
        n_iter=MEAN_RUNS,
        epsilon=epsilon,
        delta=DELTA,
        random_state=seed,
        strategy=RandomRuns(**{"n_iter_distribution": "geometric"} | changes),
    )


def listed(seed: int) -> list[dict[str, list[float]]]:
    """Return the number of candidates that the others try, as a grid."""
    rng = np.random.RandomState(seed)
    return [
        {name: [float(distribution.rvs(random_state=rng))] for name, distribution in SPACE.items()}
        for _ in range(MEAN_RUNS)
    ]


def in_grid(model, epsilon, seed, strategy="table"):
    """Return a search of listed candidates."""
    total = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
    return DPGridSearchCV(model, listed(seed), strategy=strategy, **total)


def adaptive(model, epsilon, seed, **changes):
    """Return a search whose candidates follow from the noisy scores of those before."""
    total = {"epsilon": epsilon, "delta": DELTA, "random_state": seed, "n_trials": MEAN_RUNS}
    return DPAdaptiveSearchCV(model, SPACE, strategy=AdaptiveTrials(**changes), **total)


def liu_talwar(model, epsilon, seed):
    """Return the search with runs of a third of the budget: such a search costs 3 epsilon."""
    return ours(
        model.set_params(epsilon=epsilon / 3.0, delta=DELTA / (10.0 * MEAN_RUNS)),
        None,
        seed,
        tuning_fraction=None,
        score_epsilon=epsilon / 3.0,
    )


WAYS: dict[str, Callable] = {
    "untuned": lambda model, epsilon, seed: model.set_params(random_state=seed),
    "ours": lambda m, e, s: ours(m, e, s, n_iter_distribution="auto"),
    "ours, geometric": ours,
    "ours, Poisson": lambda m, e, s: ours(m, e, s, n_iter_distribution="poisson"),
    "ours, linear rule": lambda m, e, s: ours(m, e, s, extrapolate="linear"),
    "ours, grid (noisy max)": lambda m, e, s: in_grid(m, e, s, "noisy_max"),
    "ours, table": lambda m, e, s: in_grid(m, e, s),
    "ours, table, largest score": lambda m, e, s: in_grid(m, e, s, FullTable(choose_by="max")),
    "ours, table without the default": lambda m, e, s: in_grid(
        m, e, s, FullTable(try_own_values=False)
    ),
    "ours, adaptive": lambda m, e, s: adaptive(m, e, s),
    "ours, adaptive, random": lambda m, e, s: adaptive(m, e, s, sampler="random"),
    "envelope on all data": lambda m, e, s: ours(m, e, s, tuning_fraction=None),
    "Thm 5.2 on all data": lambda m, e, s: ours(m, e, s, tuning_fraction=None, bound="profile"),
    "Papernot-Steinke": lambda m, e, s: ours(m, e, s, tuning_fraction=None, bound="rdp"),
    "Liu-Talwar": liu_talwar,
    "naive composition": lambda m, e, s: in_grid(m, e, s, "compose"),
    "Koskela-Kulkarni 1": lambda m, e, s: ours(m, e, s, bound="rdp", extrapolate="linear"),
    "Koskela-Kulkarni 2": lambda m, e, s: ours(
        m, e, s, bound="rdp", extrapolate="linear", variant=2
    ),
    "non-private tuning": lambda model, epsilon, seed: RandomizedSearchCV(
        model.set_params(random_state=seed), SPACE, n_iter=MEAN_RUNS, cv=3, random_state=seed
    ),
}


def accuracy(way: str, split: Split, epsilon: float, seed: int) -> float:
    """Return the test accuracy of one way to tune."""
    X, X_test, y, y_test = split
    model = model_of(epsilon, np.unique(y).tolist())
    return WAYS[way](model, epsilon, seed).fit(X, y).score(X_test, y_test)


def print_utility(names: list[str], ways: list[str], seeds: int, n_jobs: int) -> None:
    """Print mean test accuracies and their 95 % intervals."""
    for name in names:
        split = a9a_split() if name == "Adult" else digits()
        if split is None:
            print(f"{name}: the data are missing")
            continue
        print(f"\n{name}: {len(split[0])} training rows; {seeds} seeds")
        print(f"{'':26s}" + "".join(f"  epsilon {e:<7g}" for e in EPSILONS))
        for way in ways:
            cells = []
            for epsilon in EPSILONS:
                scores = Parallel(n_jobs=n_jobs)(
                    delayed(accuracy)(way, split, epsilon, seed) for seed in range(seeds)
                )
                half = 1.96 * np.std(scores, ddof=1) / np.sqrt(seeds)
                cells.append(f"{100 * np.mean(scores):6.2f} ± {100 * half:4.2f}")
            print(f"{way:26s}" + "".join(f"  {cell:15s}" for cell in cells), flush=True)


# Nets ---------------------------------------------------------------------------------------

NET_SPACE = {"lr": loguniform(0.05, 5.0), "max_grad_norm": loguniform(0.1, 10.0)}
NET_RUNS = 10


def net_ways(model, epsilon: float, seed: int) -> dict[str, object]:
    """Return searches over a net's learning rate and clipping norm."""
    total = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
    rng = np.random.RandomState(seed)
    grid = [
        {name: [float(distribution.rvs(random_state=rng))] for name, distribution in space.items()}
        for space in [NET_SPACE] * NET_RUNS
    ]
    return {
        "untuned": model.set_params(epsilon=epsilon, delta=DELTA, random_state=seed),
        "random": DPRandomSearchCV(model, NET_SPACE, n_iter=NET_RUNS, **total),
        "table": DPGridSearchCV(model, grid, **total),
        "table, largest score": DPGridSearchCV(
            model, grid, strategy=FullTable(choose_by="max"), **total
        ),
        "adaptive": DPAdaptiveSearchCV(model, NET_SPACE, n_trials=NET_RUNS, **total),
    }


def print_nets(seeds: int, epsilons: list[float]) -> None:
    """Print mean test accuracies of nets of one hidden layer, and their standard errors."""
    from data_sets import MAKING
    from torch.optim import SGD

    from skdptune.neural_network import MLP, DPNeuralNetBinaryClassifier, DPNeuralNetClassifier

    for name in ("digits", "a9a 10k"):
        data = MAKING[name]()
        classes = int(data.y.max()) + 1
        kind = DPNeuralNetClassifier if classes > 2 else DPNeuralNetBinaryClassifier
        for epsilon in epsilons:
            found: dict[str, list[float]] = {}
            for seed in range(seeds):
                X, X_test, y, y_test = data.split(seed)
                model = kind(MLP(hidden=(32,)), optimizer=SGD, classes=range(classes))
                for way, search in net_ways(model, epsilon, seed).items():
                    score = search.fit(X, y).score(X_test, y_test)
                    found.setdefault(way, []).append(100.0 * score)
            cells = (
                f"{w} {np.mean(s):.1f} ± {np.std(s) / seeds**0.5:.1f}" for w, s in found.items()
            )
            print(f"{name}, epsilon {epsilon:g}: " + ", ".join(cells), flush=True)


# Overhead -----------------------------------------------------------------------------------


class Trivial(ClassifierMixin, BaseEstimator):
    """Takes next to no time to fit, so that what is left is the search's own time."""

    def __init__(self, epsilon=1.0, delta=0.0, constant=0):
        self.epsilon = epsilon
        self.delta = delta
        self.constant = constant

    cost_parameters = frozenset({"epsilon", "delta"})

    def privacy_profile(self, n_samples, n_features=None):
        """Return a pure profile."""
        return PrivacyProfile.pure(min(self.epsilon, 600.0))

    def fit(self, X, y):
        """Keep the labels."""
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        """Answer with one label."""
        return np.full(len(X), self.classes_[self.constant % len(self.classes_)])


METRICS = {
    "accuracy": metrics.accuracy(),
    "neg_brier_score": metrics.neg_brier_score(),
    "neg_log_loss": metrics.neg_log_loss(bound=4.0),
    "weighted accuracy": metrics.accuracy(class_weight={False: 1.0, True: 3.0}),
}


def print_metrics(sizes: list[int], epsilons: list[float], n_candidates: int = 10) -> None:
    """Print the noise of the final fit over that without tuning, and that of an accuracy."""
    grid = {"learning_rate": np.geomspace(0.05, 50.0, n_candidates).tolist()}
    for n_samples in sizes:
        for epsilon in epsilons:
            cells = []
            for count in (1, 2, 4):
                scoring = {name: METRICS[name] for name in list(METRICS)[:count]}
                model = DPLogisticRegression(solver="sgd", batch_size=0.05, epochs=20)
                search = DPGridSearchCV(
                    model, grid, epsilon=epsilon, delta=DELTA, scoring=scoring, refit="accuracy",
                    strategy=FullTable(try_own_values=False),
                )  # fmt: skip
                plan = search.plan(n_samples, 10, compare=True)
                ratio = plan.row.effective_noise / plan.alternatives[0].effective_noise
                cells.append(f"{ratio:.3f} ({plan.score_noise:.4f})")
            print(f"| {n_samples:,} | {epsilon:g} | {' | '.join(cells)} |", flush=True)


def print_overhead() -> None:
    """Print times, GridSearchCV's on the same candidates, and that of planning a large grid."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 10)), rng.integers(2, size=2000)
    grid = {"constant": list(range(200))}
    searches = {
        "GridSearchCV, 2 folds": GridSearchCV(Trivial(), grid, cv=2),
        "compose": DPGridSearchCV(Trivial(), grid, epsilon=100.0, delta=1e-6, strategy="compose"),
        "noisy max, 2 partitions": DPGridSearchCV(
            Trivial(), grid, epsilon=1.0, strategy=NoisyMaximum(n_partitions=2)
        ),
    }
    for name, search in searches.items():
        times = []
        for _ in range(3):
            start = time.perf_counter()
            search.fit(X, y)
            times.append(time.perf_counter() - start)
        print(f"{name:24s} {1e3 * min(times) / 200:7.2f} ms a candidate")
    steps = np.geomspace(0.1, 10, 100)
    large = {"learning_rate": steps, "max_grad_norm": steps}
    model = DPLogisticRegression(solver="sgd", batch_size=0.05)
    start = time.perf_counter()
    DPGridSearchCV(model, large, epsilon=1.0, delta=DELTA).plan(40_000, 100, compare=False)
    elapsed = time.perf_counter() - start
    # Measured separately: tracing memory takes time. With another size nothing is cached.
    tracemalloc.start()
    DPGridSearchCV(model, large, epsilon=1.0, delta=DELTA).plan(40_001, 100, compare=False)
    peak = tracemalloc.get_traced_memory()[1]
    print(f"plan of 10,000 candidates: {elapsed:.2f} s, peak {peak / 2**20:.0f} MB")


# The least epsilon ---------------------------------------------------------------------------


def print_least(seeds: int) -> None:
    """Print the epsilon that was found for a target, and test accuracies, by ways to plan."""
    total = {"epsilon": 4.0, "delta": DELTA}
    problems = (("Adult", 0.82), ("Adult", 0.84), ("protein", 0.68), ("protein", 0.72))
    for name, target in problems:
        found, accuracies = [], []
        for seed in range(seeds):
            split = a9a_split() if name == "Adult" else regression(name).split(seed)
            X, X_test, y, y_test = split
            model = DPLogisticRegression(classes=np.unique(y).tolist(), random_state=seed)
            ways = (
                DPGridSearchCV(model, {}, strategy=LeastEpsilon(target_score=target), **total),
                DPGridSearchCV(model, {"C": [1e-3, 1e-2, 0.1, 1.0]}, strategy="table", **total),
                model.set_params(**total),
            )
            ways = [way.set_params(random_state=seed).fit(X, y) for way in ways]
            found.append((ways[0].epsilon_, ways[0].reached_))
            accuracies.append([way.score(X_test, y_test) for way in ways])
        epsilons, reached = np.array(found).T
        least, tuned, fixed = 100.0 * np.mean(accuracies, axis=0)
        print(
            f"{name}, target {target:.0%}: stops at mean epsilon {epsilons.mean():.2f}, "
            f"{reached.mean():.0%} reached; test accuracy {least:.1f} %, "
            f"at epsilon 4 tuned {tuned:.1f} %, one fit {fixed:.1f} %",
            flush=True,
        )


def main() -> None:
    """Run one benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "what", choices=("noise", "utility", "nets", "metrics", "least", "overhead")
    )
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY")
    parser.add_argument(
        "--data", nargs="+", choices=("Adult", "digits"), default=["Adult", "digits"]
    )
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--samples", type=int, default=32_561)
    parser.add_argument("--sizes", type=int, nargs="+", default=[3_000, 30_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--counts", type=int, nargs="+", choices=LIMITS, default=list(LIMITS))
    arguments = parser.parse_args()
    if arguments.what == "noise":
        print_noise(arguments.samples, arguments.epsilons, arguments.counts)
    elif arguments.what == "utility":
        print_utility(arguments.data, arguments.ways, arguments.seeds, arguments.n_jobs)
    elif arguments.what == "nets":
        print_nets(arguments.seeds, arguments.epsilons)
    elif arguments.what == "metrics":
        print_metrics(arguments.sizes, arguments.epsilons)
    elif arguments.what == "least":
        print_least(arguments.seeds)
    else:
        print_overhead()


if __name__ == "__main__":
    main()
