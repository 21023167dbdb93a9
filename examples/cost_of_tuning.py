"""Tuning for free, and what it costs otherwise
===============================================

Show what it costs to tune a private model, and how little it can cost.

    python examples/cost_of_tuning.py

A team wants to train a model by DP-SGD on sensitive rows: 400 steps, each on a twentieth of the
rows, for a total of epsilon = 1 at delta = 1e-5. The learning rate is unknown, and they would like
to try about 20. Every run looks at the data, so every run costs.
"""

from dp_accounting import dp_event

from skdptune.accounting import Geometric, PrivacyProfile, calibrate, compare_bounds, tune_then_fit

EPSILON, DELTA = 1.0, 1e-5
RUN_COUNT = Geometric.from_mean(20)


def run(noise: float) -> PrivacyProfile:
    """Return the cost of one training run with this noise multiplier."""
    step = dp_event.PoissonSampledDpEvent(0.05, dp_event.GaussianDpEvent(noise))
    return PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(step, 400))


def search(noise: float, fraction: float) -> PrivacyProfile:
    """Return the cost of a search on a random part of the rows and a fit on the others."""
    return tune_then_fit(run(noise).selected(RUN_COUNT), run(noise), fraction)


def main() -> None:
    """Print both tables."""
    print("1. The best of about 20 runs, at a fixed noise of 4:\n")
    print(compare_bounds(run(4.0), RUN_COUNT, DELTA))

    print(f"\n2. The noise that a total of epsilon = {EPSILON:g} needs. What counts is the noise")
    print("   beside the rows of the final fit: noise / share of the rows.\n")
    ways = {
        "no tuning": (run, 1.0),
        "publish all 20 runs": (lambda noise: 20 * run(noise), 1.0),
        "private search on all rows": (lambda noise: run(noise).selected(RUN_COUNT), 1.0),
        "search on 1/10 of the rows": (lambda noise: search(noise, 0.1), 0.9),
        "search on 1/20 of the rows": (lambda noise: search(noise, 0.05), 0.95),
    }
    for name, (cost, share) in ways.items():
        noise = calibrate(cost, EPSILON, DELTA, guess=4.0).value
        print(f"   {name:<28} noise {noise:6.2f}   noise / share {noise / share:6.2f}")


if __name__ == "__main__":
    main()
