"""Time noisy gradient descent on linear models and its peers in one run, and print ratios.

    python benchmarks/linear.py

The peers: Opacus, by hooks and by ghost clipping, on ``torch.nn.Linear`` (where torch and Opacus
are installed), and scikit-learn's SGDClassifier, which is not private. The data: a9a from the
folder that SKDPTUNE_DATA names or from ``../shared/data``, else random data of its shape.

Machines are shared and noisy: each figure is the least of several repetitions, and only the ratios
within one run mean something.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import sklearn
from scipy.special import expit
from sklearn.linear_model import Ridge, SGDClassifier

from skdptune._secure_random import secure_generator
from skdptune.linear_model import PTRLinearRegression, SufficientStatistics
from skdptune.linear_model._solvers import (
    Design,
    _noisy_gradient,
    fit_noisy_gradient,
    margin_residuals,
)
from skdptune.mechanisms._shared import NoisyGradientPlan, plan_noisy_gradient

LOGISTIC = margin_residuals(lambda margins: -expit(-margins))
BATCH_SIZE, ADULT_ROWS = 256, 40_000


def adult() -> tuple[np.ndarray, np.ndarray, str]:
    """Return 40,000 rows of a9a as float32, signs, and where they come from."""
    folder = Path(os.environ.get("SKDPTUNE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / "a9a.npz").exists():
        return *synthetic(ADULT_ROWS, 123), "random data"
    with np.load(folder / "a9a.npz") as file:
        packed = np.concatenate([file["X_train"], file["X_test"]])[:ADULT_ROWS]
        signs = np.concatenate([file["y_train"], file["y_test"]])[:ADULT_ROWS]
        rows = np.unpackbits(packed, axis=1)[:, : int(file["n_features"])]
    return rows.astype(np.float32), signs.astype(np.float64), "a9a"


def synthetic(n_samples: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random float32 rows and signs of a noisy linear rule."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n_samples, n_features), dtype=np.float32)
    noise = rng.logistic(size=n_samples)
    # A rule in float64 would make a copy of the rows, and spoil the measured peak of memory.
    rule = rng.standard_normal(n_features, dtype=np.float32) / 3.0
    return rows, np.where(rows @ rule + noise > 0, 1.0, -1.0)


def least_time(function: Callable[[], object], repetitions: int) -> float:
    """Return the least processor time of several calls."""
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def make_fit(
    rows: np.ndarray, signs: np.ndarray, batch_size: int, epochs: float, **options: Any
) -> tuple[Callable[[], np.ndarray], int]:
    """Return a whole fit, clipping of the rows included, and its number of steps."""
    sampling = options.pop("sampling", "poisson")
    plan = plan_noisy_gradient(
        len(signs), epochs=epochs, batch_size=batch_size, noise_multiplier=1.0, sampling=sampling
    )

    def fit() -> np.ndarray:
        design = Design.clipped(rows, norm=4.0, intercept=True)
        return fit_noisy_gradient(
            plan,
            design,
            LOGISTIC,
            signs,
            1,
            learning_rate=0.5,
            max_grad_norm=1.0,
            rng=np.random.default_rng(0),
            **options,
        )

    return fit, plan.steps


def opacus_step_time(rows: np.ndarray, signs: np.ndarray, mode: str, steps: int) -> float | None:
    """Return the seconds per step of Opacus, after a few to warm up; None if it is missing."""
    try:
        torch = importlib.import_module("torch")
        opacus = importlib.import_module("opacus")
    except ImportError:
        return None
    warnings.filterwarnings("ignore")
    # On so small a model, torch's threads wait for each other, most of all on a busy machine.
    torch.set_num_threads(1)
    data = torch.utils.data.TensorDataset(
        torch.from_numpy(rows), torch.from_numpy((signs > 0).astype(np.float32))
    )
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH_SIZE)
    model, loss = torch.nn.Linear(rows.shape[1], 1), torch.nn.BCEWithLogitsLoss()
    made = opacus.PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
        **({"criterion": loss} if mode == "ghost" else {}),
    )
    model, optimizer, loader = made[0], made[1], made[-1]
    loss = made[2] if mode == "ghost" else loss
    start, warm_up = 0.0, 5
    for count, (batch, labels) in enumerate(loader):
        if count == warm_up:
            start = time.process_time()
        if count == warm_up + steps:
            break
        optimizer.zero_grad()
        loss(model(batch).squeeze(1), labels).backward()
        optimizer.step()
    return (time.process_time() - start) / steps


def print_adult(repetitions: int, epochs: float) -> None:
    """Compare the time per step at Adult's shape with that of Opacus."""
    rows, signs, source = adult()
    fits = {
        "sgd": make_fit(rows, signs, BATCH_SIZE, epochs),
        "sgd, float64": make_fit(rows.astype(np.float64), signs, BATCH_SIZE, epochs),
        "sgd, fixed-size": make_fit(rows, signs, BATCH_SIZE, epochs, sampling="fixed"),
        "adam": make_fit(rows, signs, BATCH_SIZE, epochs, optimizer="adam"),
    }
    ours = {name: least_time(fit, repetitions) / steps for name, (fit, steps) in fits.items()}
    modes = {
        f"Opacus {mode}": opacus_step_time(rows, signs, mode, 100) for mode in ("hooks", "ghost")
    }
    peers = {name: value for name, value in modes.items() if value is not None}
    print(f"{source}: {rows.shape[0]:,} x {rows.shape[1]}, batch {BATCH_SIZE}, time per step")
    for name, seconds in (ours | peers).items():
        ratios = [f"{peer / seconds:6.0f} x faster than {key}" for key, peer in peers.items()]
        print(f"  {name:16} {1e6 * seconds:8.1f} us  " + "  ".join(ratios if name in ours else []))
    if not peers:
        print("  Opacus is not installed: no ratio.")


def print_large(repetitions: int, n_samples: int, batch_sizes: list[int]) -> None:
    """Compare an epoch on large data with one of scikit-learn, and the memory with the data's."""
    rows, signs = synthetic(n_samples, 100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = {}
    for batch_size in batch_sizes:
        fit, _ = make_fit(rows, signs, batch_size, 1.0)
        times[f"batch {batch_size}"] = least_time(fit, repetitions)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peer = SGDClassifier(loss="log_loss", max_iter=1, tol=None, random_state=0)
    seconds = least_time(lambda: peer.fit(rows, signs), repetitions)
    print(f"{n_samples:,} x 100 float32, one epoch; SGDClassifier {seconds:.3f} s")
    for name, value in times.items():
        print(f"  {name:16} {value:8.3f} s  {value / seconds:5.2f} of SGDClassifier's time")
    size = rows.nbytes / 1024
    print(
        f"  memory: peak rose by {(after - before) / size:.2f} of the data's {size / 1024:.0f} MB"
        f" (peak {after / size:.2f})"
    )


def print_noise(repetitions: int) -> None:
    """Compare steps whose noise is exact and from AES with steps of rounded noise from PCG64."""
    print(f"steps on 5,000 rows, batch {BATCH_SIZE}; noise in doubles, from PCG64: 1")
    for n_features, n_outputs in ((20, 1), (123, 1), (64, 10), (784, 10)):
        plain, seeded, unseeded = noise_times(n_features, n_outputs, 3 * repetitions)
        name = f"{n_features} features, {n_outputs} outputs"
        print(
            f"  {name:26} {1e6 * plain:8.1f} us a step"
            f"  exact, seeded: {seeded / plain:5.2f}  exact, AES: {unseeded / plain:5.2f}"
        )


def noise_times(n_features: int, n_outputs: int, repetitions: int) -> np.ndarray:
    """Return the seconds of a step: noise in doubles, exact noise with a seed, and without."""
    rows = np.random.default_rng(0).normal(size=(5000, n_features))
    targets = np.where(rows[:, :1] > 0, 1.0, -1.0).repeat(n_outputs, axis=1)
    plan = plan_noisy_gradient(5000, epochs=20, batch_size=BATCH_SIZE, noise_multiplier=1.0)
    design = Design.clipped(rows, norm=4.0, intercept=True)

    def seconds(rng: np.random.Generator) -> float:
        start = time.process_time()
        fit_noisy_gradient(
            plan,
            design,
            LOGISTIC,
            targets,
            n_outputs,
            learning_rate=0.5,
            max_grad_norm=1.0,
            rng=rng,
        )
        return (time.process_time() - start) / plan.steps

    # In turns, so that a busy moment of the machine meets all alike.
    times = np.full(3, np.inf)
    for _ in range(repetitions):
        with mock.patch.object(_noisy_gradient, "_noise", rounded_noise):
            plain = seconds(np.random.default_rng(0))
        now = [plain, seconds(np.random.default_rng(0)), seconds(secure_generator())]
        times = np.minimum(times, now)
    return times


def rounded_noise(
    plan: NoisyGradientPlan, max_grad_norm: float, n_weights: int, rng: np.random.Generator
) -> Callable[[np.ndarray], np.ndarray]:
    """Return what adds noise in doubles, as most libraries do."""
    deviation = plan.noise_multiplier * max_grad_norm
    return lambda total: total + rng.normal(0.0, deviation, total.shape)


def print_ridges(repetitions: int) -> None:
    """Compare private ridge regressions on sums of one pass with fits of scikit-learn's."""
    rows = np.random.default_rng(0).normal(size=(5000, 50))
    targets = rows[:, 0]
    ridges = np.geomspace(1.0, 1e5, 100)
    sums = SufficientStatistics(7.0, 1.0).update(rows, targets)
    models = [
        PTRLinearRegression(alpha=ridge, data_norm=7.0, target_bound=1.0, random_state=0)
        for ridge in ridges
    ]

    def fit_all() -> None:
        for model in models:
            model.fit_statistics(sums)

    # The first round finds what holds for each leverage.
    first = least_time(fit_all, 1)
    seconds = least_time(fit_all, repetitions)
    peer = least_time(
        lambda: [Ridge(alpha=ridge).fit(rows, targets) for ridge in ridges], repetitions
    )
    print(f"100 ridges, 5,000 x 50; scikit-learn's Ridge {peer:.3f} s")
    print(f"  first round      {first:8.3f} s  {first / peer:5.2f} of Ridge's time")
    print(f"  later            {seconds:8.3f} s  {seconds / peer:5.2f} of Ridge's time")


def print_versions() -> None:
    """Print what was measured."""
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    versions["scikit-learn"] = sklearn.__version__
    for name in ("torch", "opacus"):
        try:
            versions[name] = importlib.import_module(name).__version__
        except ImportError:
            versions[name] = "missing"
    print(", ".join(f"{name} {version}" for name, version in versions.items()))


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--epochs", type=float, default=5.0, help="of the runs on Adult")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the large data")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1024, 4096])
    arguments = parser.parse_args()
    # Before torch is loaded and anything else is allocated: a peak is of the whole process.
    print_large(arguments.repetitions, arguments.rows, arguments.batch_sizes)
    print_ridges(arguments.repetitions)
    print_noise(arguments.repetitions)
    print_versions()
    print_adult(arguments.repetitions, arguments.epochs)


if __name__ == "__main__":
    main()
