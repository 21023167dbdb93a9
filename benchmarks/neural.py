"""Private neural nets and Opacus: time of a step, accuracy, and many candidates at once.

    python benchmarks/neural.py step         time of a step of one net, and of bare Opacus
    python benchmarks/neural.py noise        time of a step by where its noise comes from
    python benchmarks/neural.py utility      accuracy, and Opacus's at the same settings
    python benchmarks/neural.py population   32 candidates at once, and one at a time

Digits come with scikit-learn; Fashion-MNIST is read from SKDPTUNE_DATA, or ../shared/data. The
networks: "width-120" has two hidden layers of 120 units, as in the paper on tuning by subsampling,
"CNN" is `SmallCNN`. For "step", "fashion" is random data of its size. Machines are shared and
noisy: only ratios within one run mean something.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import os
import platform
import statistics
import time
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import opacus
import sklearn
import skorch
import torch
from neural_peers import NETWORKS, OpacusInSkorch, attached, loader_of, sized, take_steps
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from skdptune.mechanisms._batches import poisson_batches
from skdptune.neural_network import DPNeuralNetClassifier, _noisy_steps
from skdptune.neural_network._noisy_steps import GradientNoise

DELTA = 1e-5
EPSILONS = (1.0, 3.0, 8.0)
MODES = ("hooks", "ghost")
# Clipping that computes only norms is not offered for convolutions.
MODES_OF = {"width-120": MODES, "CNN": ("hooks",)}
CANDIDATES = 32
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


# Data -----------------------------------------------------------------------------------------


def digits() -> Split:
    """Return the digits, with their public range [0, 16] scaled to [0, 1]."""
    X, y = load_digits(return_X_y=True)
    rows = (X / 16.0).astype(np.float32)
    return tuple(train_test_split(rows, y, random_state=0, stratify=y))


def fashion(train: int) -> Split:
    """Return the first images of Fashion-MNIST, in [0, 1], and all of its test images."""
    folder = Path(os.environ.get("SKDPTUNE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    with np.load(folder / "fashion_mnist.npz") as file:
        images = [file[name].reshape(-1, 784) for name in ("X_train", "X_test")]
        y, y_test = (file[name].astype(np.int64) for name in ("y_train", "y_test"))
    X, X_test = ((rows / 255.0).astype(np.float32) for rows in images)
    return X[:train], X_test, y[:train], y_test


# Time of a step -------------------------------------------------------------------------------


def bare_seconds(
    name: str, X: np.ndarray, y: np.ndarray, settings: dict[str, Any], steps: int, device: str
) -> float:
    """Return the seconds per step of Opacus in a bare loop over ready Poisson batches."""
    size = settings["batch_size"]
    inputs, targets = torch.from_numpy(X), torch.from_numpy(y)
    rng = np.random.default_rng(0)
    rows = [torch.from_numpy(r) for r in poisson_batches(len(X), size / len(X), steps, rng)]
    module, optimizer, criterion, _ = attached(
        sized(name, X).to(device), loader_of(X, y, size), settings, sampling="fixed"
    )
    started = now(device)
    take_steps(module, optimizer, criterion, ((inputs[r], targets[r]) for r in rows), device)
    return (now(device) - started) / steps


def our_seconds(
    name: str, X: np.ndarray, y: np.ndarray, settings: dict[str, Any], steps: int, device: str
) -> tuple[float, float]:
    """Return the seconds per step of a fit, and those that it needs in addition to its steps."""
    share = settings["batch_size"] / len(X)
    net = DPNeuralNetClassifier(
        NETWORKS[name](),
        optimizer=torch.optim.SGD,
        classes=range(10),
        device=device,
        random_state=0,
        **settings,
    )
    seconds = []
    for count in (steps, 1):
        net.set_params(max_epochs=share * count)
        # The privacy cost is computed once for equal parameters, and has its own benchmark.
        net.privacy_profile(len(X))
        started = now(device)
        net.fit(X, y)
        seconds.append(now(device) - started)
    per_step = (seconds[0] - seconds[1]) / (steps - 1)
    return per_step, seconds[1] - per_step


def print_step(arguments: argparse.Namespace) -> None:
    """Print the time of a step of ours and of Opacus in a bare loop, measured in turn."""
    keep_freed_memory()
    rng = np.random.default_rng(0)
    X, _, y, _ = digits()
    made_up = rng.random((20_000, 784), dtype=np.float32), rng.integers(10, size=20_000)
    shapes = {"digits": (X, y), "fashion": made_up}
    common = {"lr": 0.5, "noise_multiplier": 1.0, "max_grad_norm": 1.0}
    print(
        "ms per step: least of ours / of Opacus; median of the ratios by turns; ms besides steps"
    )
    cases = itertools.product(arguments.data, arguments.networks, arguments.batch_sizes, MODES)
    for where, name, size, mode in cases:
        if mode not in MODES_OF[name]:
            continue
        settings = common | {"batch_size": size, "grad_sample_mode": mode}
        case = (name, *shapes[where], settings, arguments.steps, arguments.device)
        for name, where, size in itertools.product(
        arguments.networks, arguments.data, arguments.batch_sizes
    ):
        # What is loaded when it is first used, by ours and by the peers.
        warm = (name, 100, 1, arguments.device)
        trained(our_nets(*warm)[:2], digits(), arguments.device, at_once=True)
        peers = their_nets(digits()[0], *warm, "hooks")[:2]
        trained(peers, digits(), arguments.device, at_once=False)
        split = digits() if where == "digits" else fashion(arguments.train)
        case = (name, size, arguments.epochs, arguments.device)
        print(f"\n{name}, {where}: {len(split[0])} records, batch {size}, {arguments.epochs} epochs")
        # Our reports state the costs of all noises; the peers compute none.
        ours, words = trained(our_nets(*case), split, arguments.device, at_once=True)
        print(f"  ours, at once               {words}", flush=True)
        for mode in arguments.modes:
            peers = their_nets(split[0], *case, mode)
            theirs, words = trained(peers, split, arguments.device, at_once=False)
            ratio = f"{theirs / ours:.1f} x ours"
            print(f"  skorch and Opacus, {mode:8s} {words}  {ratio}", flush=True)


# ----------------------------------------------------------------------------------------------


def now(device: str) -> float:
    """Return seconds: the processor's for one thread, so that other processes do not count."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    is_single = device == "cpu" and torch.get_num_threads() == 1
    return time.process_time() if is_single else time.perf_counter()


def keep_freed_memory() -> None:
    """Have the C library keep what is freed: its page faults come and go, up to 40 % of a step."""
    trim_threshold, mmap_threshold = -1, -3
    library = ctypes.CDLL(None)
    library.mallopt(mmap_threshold, 1 << 25)
    library.mallopt(trim_threshold, (1 << 31) - 1)


def memory(device: str, *, peak: bool) -> int:
    """Return the bytes in use, and begin to watch for the peak, or return that peak."""
    if device.startswith("cuda"):
        if peak:
            return torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    if not peak:
        # What was freed before is given back, or it would be used again unseen.
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    wanted = "VmHWM:" if peak else "VmRSS:"
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(wanted))


def print_versions(device: str) -> None:
    """Print what is measured, and where."""
    where = torch.cuda.get_device_name(device) if device.startswith("cuda") else "CPU"
    threads = torch.get_num_threads()
    seconds = "processor" if device == "cpu" and threads == 1 else "wall"
    print(f"device: {where}, {threads} of {os.cpu_count()} cores, {seconds} time")
    print(f"Python {platform.python_version()}, ", end="")
    modules = (np, sklearn, torch, skorch, opacus)
    print(", ".join(f"{module.__name__} {module.__version__}" for module in modules))


def main() -> None:
    """Run one benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("step", "noise", "utility", "population"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=1, help="of torch, on the CPU")
    parser.add_argument("--data", nargs="+", choices=("digits", "fashion"), default=["digits"])
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--train", type=int, default=60_000, help="images of Fashion-MNIST")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=3000, help="of Fashion-MNIST, for utility")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[135, 450])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES, help="of Opacus")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200, help="of each fit that is timed")
    parser.add_argument("--turns", type=int, default=5, help="of ours and Opacus, for step")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    # Opacus and torch warn of hooks, of no secure random numbers and of experimental modes.
    warnings.filterwarnings("ignore")
    print_versions(arguments.device)
    show = {
        "step": print_step,
        "noise": print_noise,
        "utility": print_utility,
        "population": print_population,
    }
    show[arguments.what](arguments)


if __name__ == "__main__":
    main()
