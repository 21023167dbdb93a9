"""How many evaluations Pareto searches need for a front, and the time of their proposals.

    python benchmarks/pareto.py samplers [--problem logreg-sgd ...] [--samplers auto random ...]
                            [--repetitions 10] [--evaluations 256] [--train 10000]
                                                 hypervolume against evaluations
    python benchmarks/pareto.py overhead         time of proposals; batches and one at a time
    python benchmarks/pareto.py examples         share of the hypervolume of exact fronts

The problems of "samplers", their domains, distributions and grids are those of Avent et al.,
Automatic Discovery of Privacy-Utility Pareto Fronts (2020), Tables 1, 3 and 4: linear models on
Adult (a9a, 40,000 records, and 8,842 for the utility) and two networks on MNIST (10,000 images for
the utility), both read from SKDPTUNE_DATA, or ../shared/data. As there, batches have a fixed size
m, and the noise of a mean gradient has the deviation 2 z L / m for a clipping norm L; z, a
multiplier, is in [0.1, 16], and delta is 1e-5, as in the authors' program. (The paper's tables
call that column a variance; with ``--variances`` the square of z has this domain.) Hypervolumes
are over epsilon, as the paper's, or with ``--epsilon-scale log`` over its logarithm, as the
authors' program can measure them. Epsilon is the tight one, or with ``--privacy moments`` that of
the moments accountant. Intervals hold 95 %, by Student's distribution. Examples: the functions of
the tests, which are exact expectations. `papers_avent.py` runs the paper's figures and Table 2.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import moocore
import numpy as np
from joblib import Parallel, delayed
from pareto_problems import ADULT, ADULT_TRAIN, PROBLEMS, Problem, search_space
from scipy import stats

from skdptune.model_selection import DParetoSearchCV, ParetoFront, pareto_search
from skdptune.model_selection._space import SearchSpace

DELTA, INITIAL = 1e-5, 16
# Table 2 of the paper: mean difference of the hypervolume to random sampling at 256 points.
PAPER_GAINS = {"logreg-sgd": 0.158, "logreg-adam": 0.439, "svm-sgd": 0.282}
SAMPLERS = ("auto", "hvpoi", "gp", "tpe", "random", "grid3", "grid4")

# Samplers -----------------------------------------------------------------------------------


def sampler_of(name: str, seed: int) -> Any:
    """Return the argument of a search for a sampler's name."""
    if name in ("gp", "tpe"):
        import optuna

        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        kind = {"gp": optuna.samplers.GPSampler, "tpe": optuna.samplers.TPESampler}[name]
        return kind(seed=seed, n_startup_trials=INITIAL)
    return name.rstrip("34")


def history_of(
    problem: Problem,
    name: str,
    seed: int,
    evaluations: int,
    repeats: int,
    privacy: str,
    epsilon_scale: str,
) -> tuple[np.ndarray, float]:
    """Return the hypervolume after each evaluation, and the seconds of the search."""
    number = int(name[-1]) ** 5 if name.startswith("grid") else evaluations
    search = DParetoSearchCV(
        problem.estimator,
        problem.space(name),
        delta=DELTA,
        n_iter=max(number - INITIAL, 0),
        strategy=ParetoFront(
            n_initial=min(INITIAL, number),
            sampler=sampler_of(name, seed),
            n_repeats=repeats,
            privacy=privacy,
            epsilon_scale=epsilon_scale,
        ),
        random_state=seed,
    )
    X, X_test, y, y_test = problem.split
    start = time.perf_counter()
    search.fit(X, y, X_val=X_test, y_val=y_test)
    return search.hypervolume_history_, time.perf_counter() - start


def half_width(values: np.ndarray) -> float:
    """Return half of the 95 % interval of a mean."""
    if len(values) < 2:
        return float("nan")
    return float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))


def gain_over(found: np.ndarray, random: np.ndarray) -> str:
    """Return the mean difference to random sampling with its interval (Welch)."""
    if min(len(found), len(random)) < 2:
        return f"{found.mean() - random.mean():+.3f}"
    test = stats.ttest_ind(found, random, equal_var=False)
    low, high = test.confidence_interval()
    return f"{found.mean() - random.mean():+.3f} ({low:+.3f}, {high:+.3f})"


def print_samplers(arguments: argparse.Namespace) -> None:
    """Print hypervolumes against evaluations, and the differences to random sampling."""
    # Random sampling first: the others are compared with it.
    samplers = sorted(arguments.samplers, key=lambda name: name != "random")
    for name in arguments.problem:
        try:
            problem = PROBLEMS[name](arguments.train).with_epochs(arguments.epochs)
            problem = problem.with_variances() if arguments.variances else problem
        except (FileNotFoundError, ModuleNotFoundError) as missing:
            print(f"\n{name}: left out: {missing}")
            continue
        print(
            f"\n{name}: {len(problem.split[0]):,} records, {arguments.repetitions} repetitions, "
            f"epsilon by {arguments.privacy}, {arguments.epsilon_scale} scale; hypervolume below "
            "(10, 1)"
        )
        if name in PAPER_GAINS:
            print(f"gain over random sampling at 256 points in the paper: {PAPER_GAINS[name]:.3f}")
        print_problem(problem, samplers, arguments)


def print_problem(problem: Problem, samplers: list[str], arguments: argparse.Namespace) -> None:
    """Print one line per sampler."""
    marks = [m for m in (16, 32, 64, 128, 256) if m < arguments.evaluations]
    marks.append(arguments.evaluations)
    print(f"{'':12s}" + "".join(f"{m:>16d}" for m in marks) + "   gain over random   s a search")
    random = None
    for name in samplers:
        histories, seconds = repeated(problem, name, arguments)
        # A grid is of no use before its end.
        used = marks if not name.startswith("grid") else [histories.shape[1]]
        columns = [histories[:, min(mark, histories.shape[1]) - 1] for mark in used]
        cells = "".join(f"{c.mean():8.3f} ± {half_width(c):.3f}" for c in columns)
        random = columns[-1] if name == "random" else random
        gain = "" if random is None or name == "random" else gain_over(columns[-1], random)
        label = f"{name} ({used[0]})" if name.startswith("grid") else name
        cells = cells.rjust(16 * len(marks))
        print(f"{label:12s}{cells}   {gain:24s}{seconds:8.1f}", flush=True)


def repeated(
    problem: Problem, name: str, arguments: argparse.Namespace
) -> tuple[np.ndarray, float]:
    """Return one row of hypervolumes per repetition, and the mean seconds of a search."""
    settings = arguments.evaluations, arguments.repeats, arguments.privacy, arguments.epsilon_scale
    found = Parallel(n_jobs=arguments.n_jobs)(
        delayed(history_of)(problem, name, seed, *settings)
        for seed in range(arguments.repetitions)
    )
    histories, seconds = zip(*found, strict=True)
    return np.array(histories), float(np.mean(seconds))


# Overhead -----------------------------------------------------------------------------------

FREE_SPACE = dict(
    zip(("epochs", "batch", "rate", "noise", "clip"), search_space(ADULT, 4000), strict=True)
)
SLEEP = 0.1
WAYS: dict[str, dict[str, int]] = {
    "one at a time": {},
    "batches of 4, 2 workers": {"batch_size": 4, "n_jobs": 2},
}


def free_privacy(params: dict[str, Any]) -> float:
    """Return an epsilon after the central limit theorem of composition."""
    share, steps = params["batch"] / 4000, 4000 * params["epochs"] / params["batch"]
    return float(4 * share * np.sqrt(steps * np.expm1(min((2 / params["noise"]) ** 2, 50.0))))


def free_utility(params: dict[str, Any]) -> float:
    """Return a utility with an optimum inside of the domain, decreasing in the noise."""
    steps = 4000 * params["epochs"] / params["batch"]
    travelled = np.log(params["rate"] * params["clip"] * steps)
    noise = params["rate"] * params["noise"] * params["clip"] * np.sqrt(steps) / params["batch"]
    return float(0.5 + 0.35 / (1 + (travelled / 3 - 0.5) ** 2 + noise**2))


def slow_utility(params: dict[str, Any]) -> float:
    """Return the same, after a pause."""
    time.sleep(SLEEP)
    return free_utility(params)


def print_overhead(arguments: argparse.Namespace) -> None:
    """Print the time of searches whose evaluations take none, then that of batches."""
    print("16 + 256 evaluations of five parameters that take no time")
    for name in ("auto", "hvpoi", "random"):
        start, cpu = time.perf_counter(), time.process_time()
        pareto_search(free_privacy, free_utility, FREE_SPACE, sampler=name, random_state=0)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        print(f"  {name:8s} {wall:6.2f} s, {cpu:6.2f} s of the processor", flush=True)
    print_batches(arguments.repetitions)


def print_batches(repetitions: int) -> None:
    """Print the time of batches, and that of one evaluation at a time."""
    print(f"16 + 48 evaluations of {SLEEP:g} s each, {repetitions} repetitions")
    # Workers start once in a session.
    timed(0, {"n_initial": 4, "n_iter": 0, "batch_size": 4, "n_jobs": 2})
    base = None
    for way, given in WAYS.items():
        found = [timed(seed, {"n_iter": 48} | given) for seed in range(repetitions)]
        seconds, volumes = (np.array(column) for column in zip(*found, strict=True))
        base = seconds.mean() if base is None else base
        print(
            f"  {way:24s} {seconds.mean():6.2f} s, {base / seconds.mean():5.2f} x as fast, "
            f"hypervolume {volumes.mean():.4f} ± {half_width(volumes):.4f}"
        )


def timed(seed: int, given: dict[str, int]) -> tuple[float, float]:
    """Return the seconds of a search with a slow oracle, and its hypervolume."""
    start = time.perf_counter()
    result = pareto_search(free_privacy, slow_utility, FREE_SPACE, random_state=seed, **given)
    return time.perf_counter() - start, result.hypervolume_


# Worked examples ----------------------------------------------------------------------------


def print_examples(arguments: argparse.Namespace) -> None:
    """Print the hypervolume of searches as a share of that of a dense grid."""
    # Their functions are also the ground truth of tests, which is where they live.
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "model_selection"))
    import pareto_examples as known

    regression = known.regression_privacy, known.regression_utility, known.REGRESSION_SPACE
    vector = known.vector_privacy, known.vector_utility, known.VECTOR_SPACE
    for name, example in {"logistic regression": regression, "sparse vector": vector}.items():
        privacy, utility, space = example
        grid = SearchSpace(space).grid(240)
        points = np.array([(privacy(p), 1.0 - utility(p)) for p in grid])
        exact = moocore.hypervolume(points, ref=np.array([10.0, 1.0]))
        print(f"\n{name}: hypervolume {exact:.4f} by a grid of {len(grid):,} points")
        for sampler in ("auto", "hvpoi", "random"):
            shares = [
                pareto_search(*example, sampler=sampler, random_state=s).hypervolume_history_
                / exact
                for s in range(arguments.repetitions)
            ]
            print(f"  {sampler:8s}" + share_cells(np.array(shares)), flush=True)


def share_cells(shares: np.ndarray) -> str:
    """Return means and minima of percentages after some evaluations."""
    return "".join(
        f"   {mark}: {100 * shares[:, mark - 1].mean():6.2f} % "
        f"(min {100 * shares[:, mark - 1].min():6.2f})"
        for mark in (32, 64, 128, 272)
    )


def main() -> None:
    """Run one benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("samplers", "overhead", "examples"))
    parser.add_argument("--problem", nargs="+", choices=PROBLEMS, default=["logreg-sgd"])
    parser.add_argument(
        "--samplers", nargs="+", choices=SAMPLERS, default=["random", "auto", "hvpoi", "grid3"]
    )
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--evaluations", type=int, default=256, help="of all samplers but grids")
    parser.add_argument("--repeats", type=int, default=1, help="fits per evaluation")
    parser.add_argument("--train", type=int, default=ADULT_TRAIN, help="records to fit on")
    parser.add_argument("--epochs", type=int, help="most epochs, by default the paper's")
    parser.add_argument("--variances", action="store_true", help="take the domain of z for z**2")
    parser.add_argument("--epsilon-scale", choices=("linear", "log"), default="linear")
    parser.add_argument("--privacy", choices=("profile", "moments"), default="profile")
    parser.add_argument("--n-jobs", type=int, default=1, help="repetitions at a time")
    arguments = parser.parse_args()
    {"samplers": print_samplers, "overhead": print_overhead, "examples": print_examples}[
        arguments.what
    ](arguments)


if __name__ == "__main__":
    main()
