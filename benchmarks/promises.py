"""Whether what plans promise about a choice, and about the noise of predictions, holds.

    python benchmarks/promises.py clipped [--seeds 60]       searches of regressions
    python benchmarks/promises.py gains [--seeds 15]         searches with a clear gain
    python benchmarks/promises.py levels [--seeds 200]       levels of a doubling threshold
    python benchmarks/promises.py predictions [--seeds 8]    noise of predictions

"clipped": how often a table chooses one of four candidates whose settings equal those of the
estimator up to .4 %, in % of the searches, and the mean clipped error in units of its bound. "two
values" is one end of the range in 90 % of records and the other end in 10 %; "a quarter" has the
other end in 25 %.

"gains": how often a table over `alpha` leaves an estimator that predicts nothing (alpha=1e6), in %
of the searches, and R2 on new records in %, with and without the search.

"levels": mean regret of a choice among ten utilities, and how often it exceeds what a plan says.

"predictions": deviation of predictions between fits, divided by what a plan says, of `DPRidge`.
"""

from __future__ import annotations

import argparse
import itertools
import math

import numpy as np
from search_default import NUMBERS
from sklearn.base import clone
from sklearn.metrics import r2_score

from skdptune import set_config
from skdptune.linear_model import DPRidge
from skdptune.model_selection import DPGridSearchCV, ThresholdRounds
from skdptune.model_selection._strategies._partitions import Partitions
from skdptune.model_selection._strategies._threshold_rounds import deviation_of

DELTA = 1e-5
KINDS = (
    "errors at the end",
    "two ends",
    "two values",
    "a quarter",
    "normal",
    "heavy tails",
    "skewed",
)
SIZES = ((3000, 3, 2.0), (20_000, 3, 1.0), (20_000, 20, 2.0))


def targets(kind: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return targets in [-1, 1]."""
    size = len(X)
    made = {
        "errors at the end": lambda: 0.5 * np.sign(rng.normal(size=size)) + 0.1 * X[:, 0],
        "two ends": lambda: np.sign(rng.normal(size=size) + 0.5 * X[:, 0]),
        "two values": lambda: np.where(rng.random(size) < 0.1, 1.0, -1.0),
        "a quarter": lambda: np.where(rng.random(size) < 0.25, 1.0, -1.0),
        "normal": lambda: 0.3 * X[:, 0] + 0.2 * rng.normal(size=size),
        "heavy tails": lambda: 0.1 * rng.standard_t(2, size=size),
        "skewed": lambda: 0.2 * rng.exponential(size=size) - 1.0,
    }
    return np.clip(made[kind](), -1.0, 1.0)


def clipped(seeds: int) -> None:
    """Print how often searches choose a candidate that gains nothing."""
    for (size, width, epsilon), alpha in itertools.product(SIZES, (None, 1e-6)):
        budget = {"epsilon": epsilon, "delta": DELTA}
        start = DPRidge(**budget, data_norm=1.0, target_bound=1.0, alpha=alpha)
        name, own = ("data_norm", 1.0) if alpha is None else ("alpha", alpha)
        listed = {name: [own * (1.0 + 1e-3 * step) for step in range(5)]}
        for kind in KINDS:
            wrong, errors = 0, []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                X = rng.uniform(-1.0, 1.0, size=(size, width))
                y = targets(kind, X, rng)
                search = DPGridSearchCV(clone(start), listed, **budget, random_state=seed)
                search.fit(X / math.sqrt(width), y)
                wrong += search.best_index_ != 0
                errors.append(search.cv_results_["mean_test_score"][0] / search.scorer_.lower)
            cells = [f"{size:,} x {width}", f"{epsilon:g}", str(alpha), kind]
            cells += [f"{np.mean(errors):.2f}", f"{100.0 * wrong / seeds:.0f}"]
            print("| " + " | ".join(cells) + " |", flush=True)


def gains(seeds: int) -> None:
    """Print how often tables find a clear gain."""
    slopes = np.array([2.0, 1.0, -1.0, 0.5, 0.0, 0.0])
    for size, epsilon in ((3000, 1.0), (3000, 4.0), (10_000, 1.0), (10_000, 4.0), (30_000, 1.0)):
        budget = {"epsilon": epsilon, "delta": DELTA}
        found, reached, plain = 0, [], []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            X = rng.uniform(-1.0, 1.0, size=(size + 2000, slopes.size))
            y = np.clip(X @ slopes + 0.5 * rng.normal(size=len(X)), -4.0, 4.0)
            start = DPRidge(**budget, target_bound=4.0, alpha=1e6, random_state=seed)
            listed = {"alpha": [1e-6, 1e-2, 1.0, 100.0]}
            search = DPGridSearchCV(clone(start), listed, **budget, random_state=seed)
            found += search.fit(X[:size], y[:size]).best_params_["alpha"] != start.alpha
            start.fit(X[:size], y[:size])
            for model, scores in ((search, reached), (start, plain)):
                scores.append(100.0 * r2_score(y[size:], model.predict(X[size:])))
        cells = [f"{size:,}", f"{epsilon:g}", f"{100.0 * found / seeds:.0f}"]
        cells += [f"{np.mean(reached):.1f}", f"{np.mean(plain):.1f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


def levels(seeds: int) -> None:
    """Print the regret of doubling thresholds."""
    for noise, (count, epsilon) in itertools.product(
        ("sparse", "per-round"), ((24, 0.25), (200, 0.25), (200, 1.0), (1000, 1.0))
    ):
        cells = [noise, f"{count}", f"{epsilon:g}"]
        for height in (0.01, 0.1, "auto"):
            rng, strategy = np.random.default_rng(0), ThresholdRounds(noise=noise)
            strategy.granularity, lost, above = height, [], 0
            for seed in range(seeds):
                rounds = strategy.rounds(Partitions(epsilon, count, None), DELTA, seed)
                utilities = rng.uniform(size=10)
                while not rounds.finished:
                    rounds.propose(utilities)
                chosen = utilities[0 if rounds.winner is None else rounds.winner[1]]
                lost.append(utilities.max() - chosen)
                above += lost[-1] > rounds.granularity + 2.0 * deviation_of(rounds)
            cells.append(f"{np.mean(lost):.3f} ({100.0 * above / seeds:.0f} %)")
        print("| " + " | ".join(cells) + f" | {deviation_of(rounds):.2f} |", flush=True)


def predictions(seeds: int) -> None:
    """Print measured deviations of predictions, relative to those of plans."""
    for name, wide in itertools.product(("airfoil", "parkinsons", "bike"), (3.0, 30.0)):
        fold = NUMBERS[f"R2: {name}"].load()(0)
        for size, epsilon in itertools.product((60, 400, 1100, 4000, 13_000), (1.0, 4.0)):
            if size > len(fold.X):
                continue
            start = DPRidge(epsilon, DELTA, target_bound=wide)
            search = DPGridSearchCV(start, {"alpha": [1.0, 2.0]}, epsilon=epsilon, delta=DELTA)
            words = search.plan(size, fold.X.shape[1], compare=False).target
            said = float(words.split("noise of about ")[1].split(":")[0])
            X, y = fold.X[:size], fold.y[:size]
            fits = [clone(start).set_params(random_state=seed).fit(X, y) for seed in range(seeds)]
            found = np.array([fit.predict(fold.X_test[:300]) for fit in fits])
            ratio = math.sqrt(found.var(axis=0, ddof=1).mean()) / said
            print(f"| {name} | {wide:g} | {size:,} | {epsilon:g} | {said:g} | {ratio:.2f} |")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {"clipped": (clipped, 60), "gains": (gains, 15)}
    parts |= {"levels": (levels, 200), "predictions": (predictions, 8)}
    parser.add_argument("part", choices=parts)
    parser.add_argument("--seeds", type=int)
    options = parser.parse_args()
    # Many searches of one table each.
    set_config(ledger=False)
    run, seeds = parts[options.part]
    run(options.seeds or seeds)


if __name__ == "__main__":
    main()
