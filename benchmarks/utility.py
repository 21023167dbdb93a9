"""Accuracy of the private linear classifiers as the budget grows, beside scikit-learn's own.

    python benchmarks/utility.py [--seeds 5]

Breast cancer and digits come with scikit-learn; Adult (a9a) is read from SKDPTUNE_DATA,
or ../shared/data. Each C (and nothing else) is the best of a short list on the test rows, for
ours and the peer alike: this compares what the models can do, not what a search would find.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from skdptune.linear_model import DPLinearSVC, DPLogisticRegression

EPSILONS = (0.5, 1.0, 4.0, 16.0, 100.0, 500.0)
STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def standardised(loader) -> Split:
    """Return a split of standardised rows (not a private step; both sides get the same rows)."""
    X, y = loader(return_X_y=True)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    return tuple(train_test_split(X, y, random_state=0, stratify=y))


def adult() -> Split | None:
    """Return the 123 binary features of Adult, or None where the file is missing."""
    folder = Path(os.environ.get("SKDPTUNE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / "a9a.npz").exists():
        return None
    with np.load(folder / "a9a.npz") as data:
        width = int(data["n_features"])
        train, test = (
            np.unpackbits(data[name], axis=1)[:, :width].astype(np.float32)
            for name in ("X_train", "X_test")
        )
        return train, test, data["y_train"], data["y_test"]


def best_score(make, split: Split, seeds: int) -> float:
    """Return the best mean test accuracy over the list of strengths."""
    X, X_test, y, y_test = split
    return max(
        np.mean([make(C, seed).fit(X, y).score(X_test, y_test) for seed in range(seeds)])
        for C in STRENGTHS
    )


def print_table(name: str, split: Split, norm: float | None, seeds: int) -> None:
    """Print one data set's table."""
    labels = np.unique(split[2])
    delta = 0.1 / len(split[0])
    print(f"\n{name}: {len(split[0])} training rows, {len(labels)} classes, delta {delta:.2g}")
    for kind, peer in ((DPLogisticRegression, LogisticRegression), (DPLinearSVC, LinearSVC)):
        ceiling = best_score(lambda C, seed, peer=peer: peer(C=C, max_iter=3000), split, 1)
        print(f"  {kind.__name__}; scikit-learn {peer.__name__} {ceiling:.4f}")
        for solver in ("objective", "output", "sgd", "adam"):
            row = []
            for epsilon in EPSILONS:

                def make(C, seed, epsilon=epsilon, solver=solver, kind=kind):
                    return kind(
                        epsilon,
                        delta,
                        solver=solver,
                        C=C,
                        classes=labels,
                        data_norm=norm,
                        epochs=30,
                        batch_size=0.05,
                        random_state=seed,
                    )

                row.append(best_score(make, split, seeds))
            figures = "  ".join(f"{e:g}: {s:.4f}" for e, s in zip(EPSILONS, row, strict=True))
            print(f"    {solver:<10} {figures}   gap at the end {100 * (ceiling - row[-1]):+.2f}")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print_table("Breast cancer", standardised(load_breast_cancer), None, options.seeds)
    print_table("Digits", standardised(load_digits), None, options.seeds)
    census = adult()
    if census is None:
        print("\nAdult: a9a.npz not found; set SKDPTUNE_DATA.")
    else:
        # At most 14 of the features are 1.
        print_table("Adult (a9a)", census, 14**0.5, options.seeds)


if __name__ == "__main__":
    main()
