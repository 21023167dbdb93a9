"""Time the accounting and its peer in one run, and print ratios.

    python benchmarks/accounting.py [runs]         profiles of runs and searches; noise; bounds
    python benchmarks/accounting.py search-costs   the plan of every default search
    python benchmarks/accounting.py lists          noise of candidates that differ in cost
    python benchmarks/accounting.py rules          noise of searches that validate by a public rule
    python benchmarks/accounting.py poisson-means  epsilon of Poisson numbers of runs
    python benchmarks/accounting.py white-box      epsilon of the best run, by what its score reads
    python benchmarks/accounting.py samplings      noise of a training, by how batches are drawn
    python benchmarks/accounting.py ledger         number of tuned searches that a ledger admits
    python benchmarks/accounting.py pickles        bytes of fitted models and searches

Machines are shared and noisy: each figure is the least of several repetitions, and only the ratios
to the peer in the same run mean something.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from scipy import optimize, stats

from skdptune.accounting import (
    Geometric,
    Poisson,
    PrivacyProfile,
    RunCountDistribution,
    SharedCurve,
    calibrate,
    compare_bounds,
    selection_lower_bound,
    tune_then_fit,
)
from skdptune.accounting._envelope import Envelope
from skdptune.accounting._profile import _profile_of_event

DELTA = 1e-5
RUN_COUNT = Geometric.from_mean(20)


def training(noise: float, sampling: float, steps: int) -> dp_event.DpEvent:
    """Return DP-SGD as an event."""
    step = dp_event.PoissonSampledDpEvent(sampling, dp_event.GaussianDpEvent(noise))
    return dp_event.SelfComposedDpEvent(step, steps)


def least_time(function: Callable[[], object], repetitions: int) -> float:
    """Return the least time of the processor of several calls."""
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def peer_epsilon(event: dp_event.DpEvent) -> float:
    """Build the run's loss distribution with dp_accounting and read epsilon off it."""
    accountant = PLDAccountant()
    accountant.compose(event)
    return accountant.get_epsilon(DELTA)


def fresh(event: dp_event.DpEvent) -> PrivacyProfile:
    """Return the profile of an event that no earlier call has left in a cache."""
    _profile_of_event.cache_clear()
    return PrivacyProfile.from_event(event)


def print_speed(repetitions: int) -> None:
    """Time the cost of a search, relative to the cost of one run."""
    event = training(1.0, 0.01, 10_000)
    run = PrivacyProfile.from_event(event)
    search = run.selected(RUN_COUNT)
    peer = least_time(lambda: peer_epsilon(event), repetitions)
    rows = {
        "dp_accounting: one run, epsilon": peer,
        "run, ours: build and epsilon": least_time(
            lambda: fresh(event).epsilon(DELTA), repetitions
        ),
        "search (envelope): epsilon": least_time(
            lambda: run.selected(RUN_COUNT).epsilon(DELTA), repetitions
        ),
        "search + final fit: epsilon": least_time(
            lambda: (search + run).epsilon(DELTA), repetitions
        ),
        "search + final fit from scratch": least_time(
            lambda: (fresh(event).selected(RUN_COUNT) + run).epsilon(DELTA), repetitions
        ),
        "search on a twentieth, then fit": least_time(
            lambda: tune_then_fit(search, run, 0.05).epsilon(DELTA), repetitions
        ),
    }
    print("DP-SGD, 10,000 steps; geometric number of runs, mean 20; delta 1e-5")
    for name, seconds in rows.items():
        print(f"  {name:<34} {seconds:8.4f} s  {seconds / peer:7.2f} x the peer")


Way = Callable[[PrivacyProfile, RunCountDistribution], PrivacyProfile]


def on_part(fraction: float, bound: str) -> tuple[Way, float]:
    """Return the search on a part of the rows with a fit on the others, and the share of these."""

    def cost(run: PrivacyProfile, count: RunCountDistribution) -> PrivacyProfile:
        return tune_then_fit(run.selected(count), run, fraction, bound=bound)

    return cost, 1.0 - fraction


# What one run costs to what all costs, and the share of the rows that the final model sees.
WAYS: dict[str, tuple[Way, float]] = {
    "one untuned fit": (lambda run, count: run, 1.0),
    "publish all 20 runs": (lambda run, count: math.ceil(count.mean) * run, 1.0),
    "search, rdp": (lambda run, count: run.selected(count, "rdp"), 1.0),
    "search, profile": (lambda run, count: run.selected(count, "profile"), 1.0),
    "search, envelope": (lambda run, count: run.selected(count), 1.0),
    "search on 1/20, then fit, rdp": on_part(0.05, "rdp"),
    "search on 1/20, then fit, envelope": on_part(0.05, "profile"),
    "search on 1/50, then fit, envelope": on_part(0.02, "profile"),
}


def print_headline() -> None:
    """Print the noise that each way of tuning needs for one total budget."""
    print("Noise for epsilon 1 at delta 1e-5 in total: DP-SGD, sampling 0.05, 400 steps, ~20 runs")
    print(f"  {'':<36} {'noise':>8} {'effective':>10} {'epsilon':>9} {'seconds':>8}")
    for name, (way, share) in WAYS.items():
        start = time.process_time()
        found = calibrate(
            lambda noise, way=way: way(
                PrivacyProfile.from_event(training(noise, 0.05, 400)), RUN_COUNT
            ),
            1.0,
            DELTA,
            guess=4.0,
        )
        seconds = time.process_time() - start
        reached = found.profile.epsilon(DELTA)
        print(
            f"  {name:<36} {found.value:8.3f} {found.value / share:10.3f} {reached:9.4f}"
            f" {seconds:8.2f}"
        )


# Poisson numbers of runs ---------------------------------------------------------------------

MEANS_DELTA = 1e-6


def envelope_epsilon(run: PrivacyProfile, distribution: RunCountDistribution) -> float:
    """Return what Theorem S1 says without Theorem S6, both of which make the default bound."""
    remove, add = run._sides
    curves = [Envelope(*sides, distribution) for sides in ((remove, add), (add, remove))]

    def excess(epsilon: float) -> float:
        return max(float(curve.delta(np.array([epsilon]))[0]) for curve in curves) - MEANS_DELTA

    top = max(curve.top for curve in curves)
    return 0.0 if excess(0.0) <= 0.0 else float(optimize.brentq(excess, 0.0, top, xtol=1e-5))


def run_of_envelope(epsilon: float, distribution: RunCountDistribution) -> PrivacyProfile:
    """Return the Gaussian run whose search costs epsilon by Theorem S1."""

    def excess(log_shift: float) -> float:
        run = PrivacyProfile.gaussian(math.exp(log_shift))
        return envelope_epsilon(run, distribution) - epsilon

    found = optimize.brentq(excess, math.log(epsilon / 200.0), math.log(epsilon), xtol=1e-4)
    return PrivacyProfile.gaussian(math.exp(found))


def print_poisson_means(options: argparse.Namespace) -> None:
    """Print what a Poisson number of Gaussian runs costs by each theorem, and at least."""
    print(f"Gaussian runs, a Poisson number of them, delta {MEANS_DELTA:g}; epsilon by")
    print(f"  {'mean':>6} {'envelope (S1)':>14} {'positions (S6)':>15} {'at least':>9} {'gap':>7}")
    for target, mean in itertools.product(options.epsilons, options.means):
        distribution = Poisson.from_mean(mean)
        run = run_of_envelope(target, distribution)
        default = run.selected(distribution).epsilon(MEANS_DELTA)
        least = selection_lower_bound(run, distribution, MEANS_DELTA)
        print(
            f"  {mean:6g} {envelope_epsilon(run, distribution):14.3f} {default:15.3f} {least:9.3f}"
            f" {default / least - 1.0:7.1%}",
            flush=True,
        )


def print_white_box(options: argparse.Namespace) -> None:
    """Print what the best of Gaussian runs costs, by how its score may depend on a record."""
    print(f"the best of a geometric number of Gaussian runs, delta {MEANS_DELTA:g}; epsilon if")
    print("the score       reads others   rises with the loss   is any (S4)   bound (S1)")
    for shift, mean in itertools.product([0.25, 0.5, 1.0], [10.0, 20.0]):
        run, distribution = PrivacyProfile.gaussian(shift), Geometric.from_mean(mean)
        figures = (
            run.epsilon(MEANS_DELTA),
            epsilon_of_rising_score(shift, mean),
            selection_lower_bound(run, distribution, MEANS_DELTA),
            run.selected(distribution).epsilon(MEANS_DELTA),
        )
        print(f"{shift:4g} {mean:4g}" + "".join(f"{figure:15.2f}" for figure in figures))


def epsilon_of_rising_score(shift: float, mean: float) -> float:
    """Return the epsilon of the highest of a geometric number of Gaussian values."""
    values = np.linspace(-12.0, 12.0 + shift, 400_001)
    # Masses of the highest, from the probabilities that one value is larger.
    larger = (stats.norm.sf(values - shift), stats.norm.sf(values))
    p, q = (-np.diff(tail / (tail + (1.0 - tail) / mean)) for tail in larger)

    def excess(epsilon: float) -> float:
        ratio = math.exp(epsilon)
        sides = (np.maximum(p - ratio * q, 0.0), np.maximum(q - ratio * p, 0.0))
        return max(float(side.sum()) for side in sides) - MEANS_DELTA

    return float(optimize.brentq(excess, 0.0, 50.0))


# Whole searches -----------------------------------------------------------------------------

# Times of the peer, except for a cached plan: seconds.
TARGETS = {"cold": 3.0, "warm": 0.05, "alternatives": 5.0}
PLANS = Path(__file__).with_name("search_costs.py")


def plan_times(search: str, estimator: str, options: argparse.Namespace) -> dict[str, Any]:
    """Time the plans of one search in fresh processes, and keep the least of each time."""
    arguments = [search, estimator, "--epsilon", str(options.epsilon)]
    # More threads would count more of the processor than they save.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found: dict[str, Any] = {}
    ways = [[], ["--compare"]] if options.alternatives else [[]]
    for way in ways * options.repetitions:
        done = subprocess.run(
            [sys.executable, str(PLANS), *arguments, *way],
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            return {"search": search, "estimator": estimator, "failed": done.stderr[-500:].strip()}
        times = json.loads(done.stdout)
        if way:
            times = {"alternatives": times["cold"], "peer": times["peer"]}
        for name, value in times.items():
            is_time = name in (*TARGETS, "peer")
            found[name] = min(found.get(name, value), value) if is_time else value
    del found["compare"]
    limits = {name: TARGETS[name] * (1.0 if name == "warm" else found["peer"]) for name in TARGETS}
    found["missed"] = [name for name, limit in limits.items() if found.get(name, 0.0) > limit]
    return found


def print_search_costs(options: argparse.Namespace) -> None:
    """Time the plan of default searches, relative to dp_accounting's epsilon of 10,000 steps."""
    pairs = itertools.product(options.estimators, options.searches)
    rows = (plan_times(search, estimator, options) for estimator, search in pairs)
    if options.json:
        print(json.dumps(list(rows), indent=2))
        return
    print(
        f"Seconds of the processor for a plan, epsilon {options.epsilon:g}\n"
        f"  {'estimator':<11} {'search':<9} {'cold':>7} {'x peer':>7}"
        f" {'warm':>7} {'alternatives':>13} {'x peer':>7} {'peer':>6} {'epsilon':>8}  missed"
    )
    for row in rows:
        name = f"  {row['estimator']:<11} {row['search']:<9}"
        if "failed" in row:
            print(f"{name} failed: {row['failed'].splitlines()[-1]}", flush=True)
            continue
        peer, more = row["peer"], row.get("alternatives", math.nan)
        print(
            f"{name} {row['cold']:7.2f} {row['cold'] / peer:7.2f} {row['warm']:7.3f} {more:13.2f}"
            f" {more / peer:7.2f} {peer:6.2f} {row['epsilon']:8.4f}  {', '.join(row['missed'])}",
            flush=True,
        )


def print_lists(options: argparse.Namespace) -> None:
    """Print the noise of candidates that differ in cost, and of candidates that do not.

    Each is the noise of the estimator's own setting, of the same cost in all.
    """
    # The accounting needs no scikit-learn, and its peak of memory is printed.
    from scipy.stats import randint, uniform

    from skdptune.linear_model import DPLogisticRegression
    from skdptune.model_selection import DPRandomSearchCV, RandomRuns

    model = DPLogisticRegression(solver="sgd", batch_size=0.05, epochs=20)
    spaces: dict[str, Any] = {
        "one setting": {"batch_size": [0.05]},
        "rates .03 to .07": {"batch_size": uniform(0.03, 0.04)},
        "200 to 600 steps": {"epochs": randint(10, 31)},
        "both": {"batch_size": uniform(0.03, 0.04), "epochs": randint(10, 31)},
        # Few may be costed exactly; of more, the one with most noise loses least.
        "4 in a list": {"batch_size": [0.02, 0.05], "epochs": [5, 20]},
        "6 in a list": {"batch_size": [0.02, 0.03, 0.05], "epochs": [5, 20]},
    }
    settings = {"n_iter": 20, "delta": DELTA}
    print("Effective noise: sampling 0.05, 400 steps, ~20 runs, public validation data")
    print(f"  {'tuning':<9} {'epsilon':>8}" + "".join(f" {name:>17} {'':6}" for name in spaces))
    for tuning, fraction in {"5 %": 0.05, "all data": None}.items():
        for epsilon in options.epsilons:
            noises = []
            for space in spaces.values():
                search = DPRandomSearchCV(
                    model,
                    space,
                    epsilon=epsilon,
                    strategy=RandomRuns(n_iter_distribution="geometric", tuning_fraction=fraction),
                    **settings,
                )
                plan = search.plan(32_561, 100, public_validation=True, compare=False)
                noises.append(plan.row.effective_noise)
            cells = "".join(f" {noise:17.3f} {noise / noises[0]:6.3f}" for noise in noises)
            print(f"  {tuning:<9} {epsilon:8g}{cells}", flush=True)
    print_plan_times()


def print_plan_times() -> None:
    """Print the processor time of plans of lists of settings that all differ in cost."""
    from skdptune.linear_model import DPLogisticRegression
    from skdptune.model_selection import DPRandomSearchCV

    event = training(2.0, 0.01, 10_000)
    peer = least_time(lambda: peer_epsilon(event), 3)
    print(
        "\nPlans of lists, by the processor; relative to dp_accounting's epsilon of 10,000 steps"
    )
    draws = np.random.default_rng(0)
    for number in (16, 200):
        pairs = zip(draws.uniform(0.01, 0.1, number), draws.integers(2, 12, number), strict=True)
        space = [{"batch_size": [round(rate, 4)], "epochs": [int(n)]} for rate, n in pairs]
        search = DPRandomSearchCV(
            DPLogisticRegression(solver="sgd"), space, epsilon=1.0, delta=DELTA, n_iter=20
        )
        start = time.process_time()
        search.plan(32_561, 100, compare=False)
        seconds = time.process_time() - start
        print(f"  {number:4d} settings {seconds:7.2f} s {seconds / peer:7.1f}", flush=True)
    for batch in (256, 10):
        model = DPLogisticRegression(solver="sgd", batch_size=batch, epochs=1)
        search = DPRandomSearchCV(model, {"C": [0.1, 1.0]}, epsilon=1.0, delta=DELTA, n_iter=20)
        start = time.process_time()
        search.plan(10**7, 100, compare=False)
        seconds = time.process_time() - start
        print(f"  10^7 records, batches of {batch:3d} {seconds:7.2f} s {seconds / peer:7.1f}")


def print_rules(options: argparse.Namespace) -> None:
    """Print the noise of searches whose validation part is drawn, and by a public rule."""
    from skdptune.linear_model import DPLogisticRegression
    from skdptune.model_selection import DPGridSearchCV, DPRandomSearchCV, HoldOut, RandomRuns

    model, values = DPLogisticRegression(solver="sgd", batch_size=0.05, epochs=20), {"C": [1.0]}
    draws = {"n_iter": 20, "delta": DELTA}
    many = {"C": [10.0**power for power in range(-9, 10)]}
    ways: dict[str, Callable[..., Any]] = {
        f"random, {name}": lambda more=more, **given: DPRandomSearchCV(
            model, values, strategy=RandomRuns(n_iter_distribution="geometric", **more), **given
        )
        for name, more in {
            "tuned on 5 %": {"tuning_fraction": 0.05},
            "tuned on 20 %": {"tuning_fraction": 0.2},
            "the winner's model": {"tuning_fraction": None},
        }.items()
    }
    for name, word in {"full table": "table", "noisy maximum": "noisy_max"}.items():
        ways[f"grid, {name}"] = lambda word=word, n_iter=None, **given: DPGridSearchCV(
            model, many, strategy=word, **given
        )
    print("Effective noise: sampling 0.05, 400 steps, ~20 runs, a fifth held out for validation")
    print(f"  {'search':<27} {'epsilon':>8} {'by coin':>9} {'by rule':>9} {'ratio':>7}")
    for (name, make), epsilon in itertools.product(ways.items(), options.epsilons):
        plans = (
            make(cv=cv, epsilon=epsilon, **draws).plan(32_561, 100, compare=False)
            for cv in (0.2, HoldOut(0, ">=", 0.0, share=0.2))
        )
        by_coin, by_rule = (plan.row.effective_noise for plan in plans)
        print(
            f"  {name:<27} {epsilon:8g} {by_coin:9.3f} {by_rule:9.3f} {by_rule / by_coin:7.3f}",
            flush=True,
        )


def print_samplings(options: argparse.Namespace) -> None:
    """Print the noise that one training needs, for each way to draw its batches."""
    from skdptune.mechanisms._shared import SAMPLINGS, plan_noisy_gradient

    print(f"Noise multiplier of one training, delta {DELTA:g} (seconds to find it)")
    print("  epochs  batches  epsilon" + "".join(f" {name:>20}" for name in SAMPLINGS))
    for epochs, batches, epsilon in itertools.product(
        options.epochs, options.batches, options.epsilons
    ):
        cells = ""
        for sampling in SAMPLINGS:
            start = time.process_time()
            plan = plan_noisy_gradient(
                100 * batches,
                epochs=epochs,
                batch_size=100,
                epsilon=epsilon,
                delta=DELTA,
                sampling=sampling,
            )
            seconds = time.process_time() - start
            cells += f" {plan.noise_multiplier:11.3f} ({seconds:4.1f} s)"
        print(f"  {epochs:6d}  {batches:7d}  {epsilon:7g}{cells}", flush=True)


def print_ledger(options: argparse.Namespace) -> None:
    """Print how many tuned searches a lifetime budget admits, by each way of adding up."""
    from skdptune.ledger import PrivacyLedger
    from skdptune.ledger._books import Totals, Ways

    searches = {}
    print("Budget (3, 1e-5); Gaussian runs, geometric number of mean 20, delta 1e-6 each")
    print(f"  {'epsilon':>8} {'two ways':>9} {'with copies':>12} {'composed':>9} {'seconds':>8}")
    for epsilon in options.epsilons:
        search = calibrate(
            lambda mu: PrivacyProfile.gaussian(mu).selected(RUN_COUNT),
            epsilon,
            1e-6,
            parameter="budget",
            upper=25.0,
        ).profile
        searches[epsilon] = search
        before = (ways.more(Totals(), ways.charges_of(search)) for ways in Ways.options(3.0, 1e-5))
        start = time.process_time()
        ledger = PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5)
        found = ledger.plan(search).n_more
        seconds = time.process_time() - start
        composed = int(found)
        while ((composed + 1) * search).epsilon(1e-5) <= 3.0:
            composed += 1
        print(
            f"  {epsilon:8g} {max(before):9.0f} {found:12.0f} {composed:9d} {seconds:8.1f}",
            flush=True,
        )
    if {1.0, 0.1} <= set(searches):
        print_mixed_ledger(searches[1.0], searches[0.1])


def print_mixed_ledger(large: PrivacyProfile, small: PrivacyProfile) -> None:
    """Print how many small searches follow two large ones, and what copies would need."""
    from skdptune.ledger import PrivacyLedger

    ledger = PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5)
    for profile in (large, large):
        with ledger.reserve(profile, name="search"):
            pass
    fixed = 0
    while (2 * large + (fixed + 1) * small).epsilon(1e-5) <= 3.0:
        fixed += 1
    copies, most = 1, 113
    while copies <= most and not SharedCurve(0.1, 1e-7, copies * small).covers(large):
        copies += 1
    words = f"{copies}" if copies <= most else f"more than {most}"
    print(f"\nAfter two of epsilon 1: {ledger.plan(small).n_more:.0f} more of .1;", end=" ")
    print(f"{fixed} if costs were fixed beforehand. Copies of .1 above one of 1: {words}")


def print_pickles(options: argparse.Namespace) -> None:
    """Print the bytes of pickled models, and the times to load them and to read their cost."""
    from sklearn.datasets import make_classification, make_regression
    from sklearn.pipeline import make_pipeline

    from skdptune.linear_model import DPLogisticRegression, DPRidge
    from skdptune.model_selection import (
        DoublingThresholdSearchCV,
        DParetoSearchCV,
        DPGridSearchCV,
        DPRandomSearchCV,
    )
    from skdptune.preprocessing import DPStandardScaler

    classes = make_classification(2000, 8, random_state=0)
    targets = make_regression(2000, 8, random_state=0)
    budget = {"epsilon": 1.0, "delta": 1e-6}
    model, values = DPLogisticRegression(), {"C": [0.1, 1.0, 10.0]}
    pipeline = make_pipeline(DPStandardScaler(bounds=(-5.0, 5.0)), model)
    steps = {f"dplogisticregression__{name}": given for name, given in values.items()}
    front = {"epsilon": (0.1, 2.0, "log")}
    models: dict[str, Any] = {
        "DPLogisticRegression": DPLogisticRegression(**budget),
        "DPLogisticRegression, objective": DPLogisticRegression(solver="objective", **budget),
        "DPRidge": DPRidge(target_bound=1000.0, **budget),
        "DPGridSearchCV": DPGridSearchCV(model, values, **budget),
        "DPGridSearchCV over a pipeline": DPGridSearchCV(pipeline, steps, **budget),
        "DPRandomSearchCV": DPRandomSearchCV(model, values, **budget),
        "DoublingThresholdSearchCV": DoublingThresholdSearchCV(model, values, **budget),
        "DParetoSearchCV": DParetoSearchCV(model, front, delta=1e-6, n_iter=4, release=8.0),
    }
    print(f"{'':<32} {'kB':>8} {'load':>8} {'read':>8}  (ms of the processor)")
    for name, each in models.items():
        stored = pickle.dumps(each.fit(*(targets if name == "DPRidge" else classes)))
        start = time.process_time()
        report = pickle.loads(stored).privacy_
        loaded = time.process_time()
        str(report)
        times = (1e3 * (loaded - start), 1e3 * (time.process_time() - loaded))
        print(f"{name:<32} {len(stored) / 1e3:8.1f} {times[0]:8.1f} {times[1]:8.1f}", flush=True)


def print_runs(options: argparse.Namespace) -> None:
    """Print the times of profiles, the noise of each way to tune, and a comparison of bounds."""
    print_speed(options.repetitions)
    print()
    print_headline()
    print()
    print(compare_bounds(PrivacyProfile.from_event(training(2.0, 0.01, 5000)), RUN_COUNT, DELTA))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(f"\nPeak memory of this process: {peak:.0f} MB")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the information that each part receives."""
    parser.set_defaults(part="runs", repetitions=5)
    parts = parser.add_subparsers(dest="part")
    runs = parts.add_parser("runs", help=print_runs.__doc__)
    runs.add_argument("--repetitions", type=int, default=5)
    costs = parts.add_parser("search-costs", help=print_search_costs.__doc__)
    costs.add_argument("--searches", nargs="+", default=["random", "grid", "doubling", "pareto"])
    costs.add_argument(
        "--estimators",
        nargs="+",
        default=[
            *("logistic", "objective", "sgd", "svm", "net", "regression", "pipeline"),
        ],
    )
    costs.add_argument("--epsilon", type=float, default=1.0)
    costs.add_argument("--repetitions", type=int, default=1, help="processes of each kind")
    costs.add_argument("--alternatives", action=argparse.BooleanOptionalAction, default=True)
    costs.add_argument("--json", action="store_true")
    lists = parts.add_parser("lists", help=print_lists.__doc__)
    lists.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    rules = parts.add_parser("rules", help=print_rules.__doc__)
    rules.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    means = parts.add_parser("poisson-means", help=print_poisson_means.__doc__)
    means.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    means.add_argument("--means", type=float, nargs="+", default=[10.0, 30.0, 100.0, 300.0])
    ledger = parts.add_parser("ledger", help=print_ledger.__doc__)
    ledger.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 0.5, 0.2, 0.1])
    parts.add_parser("white-box", help=print_white_box.__doc__)
    parts.add_parser("pickles", help=print_pickles.__doc__)
    samplings = parts.add_parser("samplings", help=print_samplings.__doc__)
    samplings.add_argument("--epochs", type=int, nargs="+", default=[1, 10])
    samplings.add_argument("--batches", type=int, nargs="+", default=[20, 100, 1000])
    samplings.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    options = parser.parse_args()
    PARTS[options.part](options)


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "runs": print_runs,
    "search-costs": print_search_costs,
    "lists": print_lists,
    "rules": print_rules,
    "poisson-means": print_poisson_means,
    "white-box": print_white_box,
    "samplings": print_samplings,
    "ledger": print_ledger,
    "pickles": print_pickles,
}

if __name__ == "__main__":
    main()
