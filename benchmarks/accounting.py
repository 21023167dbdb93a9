"""Time the accounting beside its peer in one run, and print ratios.

    python benchmarks/accounting.py

Machines are shared and noisy: each figure is the least of several repetitions, and only the ratios
to the peer in the same run mean something.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

from skdptune.accounting import Geometric, PrivacyProfile, calibrate, compare_bounds, tune_then_fit

DELTA = 1e-5
RUN_COUNT = Geometric.from_mean(20)


def training(noise: float, sampling: float, steps: int) -> dp_event.DpEvent:
    """Return DP-SGD as an event."""
    step = dp_event.PoissonSampledDpEvent(sampling, dp_event.GaussianDpEvent(noise))
    return dp_event.SelfComposedDpEvent(step, steps)


def least_time(function: Callable[[], object], repetitions: int) -> float:
    """Return the least wall time of several calls."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def peer_epsilon(event: dp_event.DpEvent) -> float:
    """Build the run's loss distribution with dp_accounting and read epsilon off it."""
    accountant = PLDAccountant()
    accountant.compose(event)
    return accountant.get_epsilon(DELTA)


def print_speed(repetitions: int) -> None:
    """Time the cost of a search beside the cost of one run."""
    event = training(1.0, 0.01, 10_000)
    run = PrivacyProfile.from_event(event)
    search = run.selected(RUN_COUNT)
    peer = least_time(lambda: peer_epsilon(event), repetitions)
    rows = {
        "dp_accounting: one run, epsilon": peer,
        "run, ours: build and epsilon": least_time(
            lambda: PrivacyProfile.from_event(event).epsilon(DELTA), repetitions
        ),
        "search (envelope): epsilon": least_time(
            lambda: run.selected(RUN_COUNT).epsilon(DELTA), repetitions
        ),
        "search + final fit: epsilon": least_time(
            lambda: (search + run).epsilon(DELTA), repetitions
        ),
        "search + final fit from scratch": least_time(
            lambda: (PrivacyProfile.from_event(event).selected(RUN_COUNT) + run).epsilon(DELTA),
            repetitions,
        ),
        "search on a twentieth, then fit": least_time(
            lambda: tune_then_fit(search, run, 0.05).epsilon(DELTA), repetitions
        ),
    }
    print("DP-SGD, 10,000 steps; geometric number of runs, mean 20; delta 1e-5")
    for name, seconds in rows.items():
        print(f"  {name:<34} {seconds:8.4f} s  {seconds / peer:7.2f} x the peer")


def print_headline() -> None:
    """Print the noise that each way of tuning needs for one total budget."""

    def run(noise: float) -> PrivacyProfile:
        return PrivacyProfile.from_event(training(noise, 0.05, 400))

    def on_sample(fraction: float, bound: str) -> Callable[[float], PrivacyProfile]:
        return lambda noise: tune_then_fit(
            run(noise).selected(RUN_COUNT), run(noise), fraction, bound=bound
        )

    ways: dict[str, tuple[Callable[[float], PrivacyProfile], float]] = {
        "one untuned fit": (run, 1.0),
        "publish all 20 runs": (lambda noise: 20 * run(noise), 1.0),
        "search, rdp": (lambda noise: run(noise).selected(RUN_COUNT, "rdp"), 1.0),
        "search, profile": (lambda noise: run(noise).selected(RUN_COUNT, "profile"), 1.0),
        "search, envelope": (lambda noise: run(noise).selected(RUN_COUNT), 1.0),
        "search on 1/20, then fit, rdp": (on_sample(0.05, "rdp"), 0.95),
        "search on 1/20, then fit, envelope": (on_sample(0.05, "profile"), 0.95),
        "search on 1/50, then fit, envelope": (on_sample(0.02, "profile"), 0.98),
    }
    print("Noise for epsilon 1 at delta 1e-5 in total: DP-SGD, sampling 0.05, 400 steps, ~20 runs")
    print(f"  {'':<36} {'noise':>8} {'effective':>10} {'epsilon':>9} {'seconds':>8}")
    for name, (cost, share) in ways.items():
        start = time.perf_counter()
        found = calibrate(cost, 1.0, DELTA, guess=4.0)
        seconds = time.perf_counter() - start
        reached = found.profile.epsilon(DELTA)
        print(
            f"  {name:<36} {found.value:8.3f} {found.value / share:10.3f} {reached:9.4f}"
            f" {seconds:8.2f}"
        )


def main() -> None:
    """Print the times, the noise of each way to tune, and a comparison of bounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    print_speed(options.repetitions)
    print()
    print_headline()
    print()
    print(compare_bounds(PrivacyProfile.from_event(training(2.0, 0.01, 5000)), RUN_COUNT, DELTA))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(f"\nPeak memory of this process: {peak:.0f} MB")


if __name__ == "__main__":
    main()
