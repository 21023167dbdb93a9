"""Audits by one fit with many canaries, of models as they are and with half of their noise.

    python benchmarks/one_run.py [--epsilon 8] [--columns 784] [--seeds 3] [--mnist FILE]

Printed are medians over seeds: the lower bounds on epsilon by guesses and by mean scores, how many
guesses were right, how often half of the noise was found by mean scores, and the seconds of one
audit. With a file of MNIST (npz, with X_train and y_train) canaries are also put
with ten thousand of its records.
"""

from __future__ import annotations

import argparse
import time
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune.audit import one_run_audit
from skdptune.base import profile_of
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression

N_RECORDS = 1000
SHARE_OF_NOISE = 0.5


def models(epsilon: float, classes: list[int]) -> dict[str, Any]:
    """Return models by name."""
    common: dict[str, Any] = {"epsilon": epsilon, "classes": classes}
    found: dict[str, Any] = {
        "DPLogisticRegression, sgd": DPLogisticRegression(solver="sgd", **common),
        "DPLogisticRegression, preconditioned": DPLogisticRegression(**common),
    }
    if len(classes) == 2:
        found["DPLinearSVC, output"] = DPLinearSVC(solver="output", data_norm=1.0, **common)
    if all(map(find_spec, ("torch", "skorch", "opacus"))):
        from skdptune.neural_network import MLP, DPNeuralNetClassifier, LogisticHead

        for module in (LogisticHead, MLP):
            net = DPNeuralNetClassifier(module, max_epochs=10, **common)
            found[f"DPNeuralNetClassifier, {module.__name__}"] = net
    return found


def with_less_noise(model: Any, width: int) -> tuple[Any, Any]:
    """Return a model with a share of its noise, and what it claims with all of it."""
    sized = clone(model).set_params(n_public=N_RECORDS)
    level = sized.noise_level(N_RECORDS, width)
    claim = profile_of(sized, N_RECORDS, width)
    return sized.set_params(epsilon=None, noise_multiplier=SHARE_OF_NOISE * level), claim


def row(name: str, model: Any, X: np.ndarray, y: Any, seeds: int, **more: Any) -> str:
    """Return a row of the table."""
    start = time.perf_counter()
    results = [one_run_audit(model, X, y, random_state=seed, **more) for seed in range(seeds)]
    seconds = (time.perf_counter() - start) / seeds
    guesses = np.median([r.epsilon_lower for r in results])
    means = np.median([r.gaussian.epsilon_lower for r in results])
    assert not any(r.is_refuted for r in results)
    best = results[0]
    caught = "-"
    if not more:
        broken, claim = with_less_noise(model, X.shape[1])
        found = [
            one_run_audit(broken, X, y, claim=claim, delta=1e-5, random_state=seed)
            for seed in range(seeds)
        ]
        caught = f"{sum(r.gaussian.refutes for r in found)} of {seeds}"
    right = f"{best.n_right} of {best.n_guesses}"
    bounds = f"{best.claimed_epsilon:.2f} | {guesses:.2f} | {means:.2f}"
    return f"| {name} | {bounds} | {right} | {caught} | {seconds:.1f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--columns", type=int, default=784)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--mnist", default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| model | claim | guesses | mean scores | right | noise / 2 found | s |")
    print("|---|---|---|---|---|---|---|")
    X = np.zeros((N_RECORDS, options.columns), dtype=np.float32)
    for name, model in models(options.epsilon, [0, 1]).items():
        print(row(name, model, X, None, options.seeds), flush=True)
    if options.mnist is not None:
        data = np.load(options.mnist)
        X = (data["X_train"][:10_000].reshape(10_000, -1) / 255.0).astype(np.float32)
        y = data["y_train"][:10_000].astype(int)
        for name, model in models(options.epsilon, list(range(10))).items():
            print(row(f"MNIST, {name}", model, X, y, 1, background="given"), flush=True)


if __name__ == "__main__":
    main()
