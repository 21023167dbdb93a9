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
        # What is loaded when it is first used.
        our_seconds(*case[:4], 2, arguments.device)
        turns = [(*our_seconds(*case), bare_seconds(*case)) for _ in range(arguments.turns)]
        ours, beside, bare = (1e3 * min(column) for column in zip(*turns, strict=True))
        ratio = statistics.median(turn[0] / turn[2] for turn in turns)
        print(
            f"{where:8s} {name:10s} batch {size:4d} {mode:6s} {ours:8.3f} / {bare:8.3f}"
            f"  {ours / bare:5.2f}  median {ratio:5.2f}  {beside:6.1f}",
            flush=True,
        )


# Utility --------------------------------------------------------------------------------------


class DoubleNoise:
    """Noise in doubles from PCG64, in place of exact noise."""

    def __init__(self, deviation: float, rng: np.random.Generator, device: str = "cpu") -> None:
        self.deviation, self.rng = deviation, rng

    def added_to(self, total: torch.Tensor) -> torch.Tensor:
        """Return a sum with noise."""
        noise = self.rng.normal(0.0, self.deviation, size=tuple(total.shape))
        return total.detach() + torch.from_numpy(noise).to(total.dtype)


def print_noise(arguments: argparse.Namespace) -> None:
    """Print the time of a step with exact noise from AES, and with doubles from PCG64."""
    print("ms of a step (of the processor): noise in doubles from PCG64; exact, from AES; ratio")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 784)).astype(np.float32), np.arange(5000) % 10
    for name, batch in itertools.product(arguments.networks, arguments.batch_sizes):
        best = {DoubleNoise: np.inf, GradientNoise: np.inf}
        for source in [*best] * arguments.turns:
            net = sized(name, X)
            epochs = arguments.steps * batch / len(X)
            model = DPNeuralNetClassifier(
                net,
                optimizer=torch.optim.SGD,
                noise_multiplier=1.0,
                epsilon=None,
                max_epochs=epochs,
                batch_size=batch,
            )
            with mock.patch.object(_noisy_steps, "GradientNoise", source):
                start = time.process_time()
                model.fit(X, y)
                seconds = (time.process_time() - start) / arguments.steps
            best[source] = min(best[source], seconds)
        plain, exact = 1e3 * best[DoubleNoise], 1e3 * best[GradientNoise]
        print(f"  {name:10} batch {batch:5d} {plain:8.2f} {exact:8.2f} {exact / plain:6.2f}")


def accuracies(name: str, split: Split, net: DPNeuralNetClassifier) -> tuple[float, float]:
    """Return the test accuracy of our fit, and of plain Opacus at its noise and rate."""
    X, X_test, y, y_test = split
    plan = net.fit(X, y).plan_
    torch.manual_seed(net.random_state)
    module, optimizer, criterion, loader = attached(
        sized(name, X).to(net.device),
        loader_of(X, y, plan.batch_size),
        {
            "lr": net.lr,
            "noise_multiplier": plan.noise_multiplier,
            "max_grad_norm": net.max_grad_norm,
            "grad_sample_mode": net.grad_sample_mode,
        },
    )
    for _ in range(net.max_epochs):
        take_steps(module, optimizer, criterion, loader, net.device)
    with torch.no_grad():
        outputs = module.eval()(torch.from_numpy(X_test).to(net.device))
    theirs = float((outputs.argmax(dim=1).cpu().numpy() == y_test).mean())
    return net.score(X_test, y_test), theirs


def print_utility(arguments: argparse.Namespace) -> None:
    """Print mean test accuracies over the seeds, with standard errors of the difference."""
    print("test accuracy in %: ours, plain Opacus, difference and its standard error")
    # Opacus takes as many whole batches as there are, so that a rate of 1/10 is shared.
    settings = {
        "digits": {"lr": 1.0, "batch_size": 135, "max_epochs": 20},
        "fashion": {"lr": 2.0, "batch_size": arguments.batch, "max_epochs": arguments.epochs},
    }
    for where, name in itertools.product(arguments.data, arguments.networks):
        split = digits() if where == "digits" else fashion(arguments.train)
        for epsilon in EPSILONS:
            net = DPNeuralNetClassifier(
                NETWORKS[name](),
                optimizer=torch.optim.SGD,
                epsilon=epsilon,
                delta=DELTA,
                classes=range(10),
                grad_sample_mode=MODES_OF[name][-1],
                device=arguments.device,
                **settings[where],
            )
            pairs = [
                accuracies(name, split, net.set_params(random_state=seed))
                for seed in range(arguments.seeds)
            ]
            ours, theirs = 100.0 * np.array(pairs).T
            error = np.std(ours - theirs, ddof=1) / np.sqrt(len(pairs))
            print(
                f"{where:8s} {len(split[0]):6d} images  {name:10s} epsilon {epsilon:g}  "
                f"{ours.mean():6.2f}  {theirs.mean():6.2f}  "
                f"{(ours - theirs).mean():+6.2f} ± {error:.2f}",
                flush=True,
            )


# Many candidates ------------------------------------------------------------------------------


def candidates() -> list[dict[str, Any]]:
    """Return learning rates, clipping norms and noises of 32 candidates."""
    rng = np.random.default_rng(0)
    return [
        {
            "lr": float(10 ** rng.uniform(-1.0, 0.5)),
            "max_grad_norm": float(10 ** rng.uniform(-0.5, 0.5)),
            "noise_multiplier": float(rng.uniform(0.8, 3.0)),
        }
        for _ in range(CANDIDATES)
    ]


def our_nets(name: str, size: int, epochs: int, device: str) -> list[DPNeuralNetClassifier]:
    """Return the candidates as ours."""
    return [
        DPNeuralNetClassifier(
            NETWORKS[name](),
            optimizer=torch.optim.SGD,
            batch_size=size,
            max_epochs=epochs,
            classes=range(10),
            device=device,
            random_state=number,
            **settings,
        )
        for number, settings in enumerate(candidates())
    ]


def their_nets(
    X: np.ndarray, name: str, size: int, epochs: int, device: str, mode: str
) -> list[Any]:
    """Return the candidates as skorch's, with Opacus attached."""
    nets = []
    for number, settings in enumerate(candidates()):
        private = {name: settings[name] for name in ("max_grad_norm", "noise_multiplier")}
        torch.manual_seed(number)
        net = OpacusInSkorch(
            sized(name, X),
            criterion=nn.CrossEntropyLoss,
            optimizer=torch.optim.SGD,
            lr=settings["lr"],
            batch_size=size,
            max_epochs=epochs,
            classes=range(10),
            train_split=None,
            callbacks="disable",
            verbose=0,
            device=device,
            private=private | {"grad_sample_mode": mode},
        )
        nets.append(net)
    return nets


def trained(nets: list[Any], split: Split, device: str, *, at_once: bool) -> tuple[float, str]:
    """Return the seconds of a training, and a text on accuracy and the increase of memory."""
    before = memory(device, peak=False)
    started = now(device)
    if at_once:
        DPNeuralNetClassifier.fit_many(nets, split[0], split[2])
    else:
        for net in nets:
            net.fit(split[0], split[2])
    seconds = now(device) - started
    rise = (memory(device, peak=True) - before) / 2**20
    accuracy = np.mean([net.score(split[1], split[3]) for net in nets])
    return seconds, f"{seconds:8.2f} s  accuracy {accuracy:.4f}  memory + {rise:4.0f} MiB"


def print_population(arguments: argparse.Namespace) -> None:
    """Print the seconds of 32 candidates, at once and one after another, and their ratio."""
    # What is loaded when it is first used, by ours and by the peers.
    first = (arguments.networks[0], 100, 1, arguments.device)
    trained(our_nets(*first)[:2], digits(), arguments.device, at_once=True)
    peers = their_nets(digits()[0], *first, "hooks")[:2]
    trained(peers, digits(), arguments.device, at_once=False)
    cases = itertools.product(arguments.networks, arguments.data, arguments.batch_sizes)
    for name, where, size in cases:
        split = digits() if where == "digits" else fashion(arguments.train)
        case = (name, size, arguments.epochs, arguments.device)
        print(
            f"\n{name}, {where}: {len(split[0])} records, batch {size}, {arguments.epochs} epochs"
        )
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
