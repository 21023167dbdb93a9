"""Tables of runs with much noise and of final fits with little, for `choosing.py`.

A table holds, for each of several seeds, a run of every candidate on four fifths of the training
rows and its accuracy on the others, and test accuracies of final fits of every candidate on all
training rows. Noise of scores is added when a table is read.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data_sets import JUDGING, MAKING, Split, a9a_split
from search_parts import hospital
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from skdptune.linear_model import DPLogisticRegression

DELTA = 1e-5
VALIDATION_SHARE = 0.2
Candidates = list[dict[str, Any]]


class Problem(NamedTuple):
    """Rows by seed, a model, the prefix of its parameters, and the numbers of runs and fits."""

    split: Callable[[int], Split]
    model: Any
    prefix: str = ""
    runs: int = 8
    fits: int = 16


def usual(name: str, **numbers: int) -> Callable[[], Problem]:
    """Return a way to load a data set of the other benchmarks."""

    def load() -> Problem:
        data = (MAKING | JUDGING)[name]()
        model = DPLogisticRegression(classes=range(int(data.y.max()) + 1))
        return Problem(data.split, model, **numbers)

    return load


def whole_a9a() -> Problem:
    """Return Adult with all of its records."""
    split = a9a_split()
    if split is None:
        raise FileNotFoundError("a9a.npz")
    return Problem(lambda seed: split, DPLogisticRegression(classes=[-1, 1]), "", 4, 6)


def visits(rows: int, **numbers: int) -> Callable[[], Problem]:
    """Return a way to make the visits of the example, whose default encoder is too coarse."""

    def load() -> Problem:
        found = hospital(rows)
        return Problem(found.split, found.model, found.prefix, **numbers)

    return load


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "cancer": usual("cancer"),
    "digits": usual("digits"),
    "airfoil": usual("airfoil"),
    "parkinsons": usual("parkinsons"),
    "bike": usual("bike", runs=8, fits=12),
    "made useless": usual("made useless"),
    "made rare": usual("made rare"),
    "made unscaled": usual("made unscaled"),
    "visits 4,000": visits(4000),
    "visits 15,000": visits(15_000, runs=6, fits=6),
    "a9a 10k": usual("a9a 10k", runs=6, fits=8),
    "a9a": whole_a9a,
}
# No constant of the rule was chosen on these.
JUDGES = ["elevators", "protein", "hastie", "made two clusters", "made unscaled, 3 classes"]
JUDGES += ["made redundant"]
PROBLEMS |= {name: usual(name, runs=6, fits=10) for name in JUDGES}


# Grids: the first candidate is the model as it comes ------------------------------------------


def suggested(model: Any, n_samples: int, n_features: int) -> tuple[Any, Candidates]:
    """Return what the estimator suggests, one parameter at a time."""
    found: Candidates = [{}]
    for name, values in model.suggested_space(n_samples, n_features).items():
        found += [{name: value} for value in values[1:]]
    present = {name: None for candidate in found for name in candidate}
    return model, [present | candidate for candidate in found]


def product(model: Any, rates: list[Any], norms: list[Any]) -> tuple[Any, Candidates]:
    """Return all pairs; the first is the default."""
    pairs = itertools.product(rates, norms)
    return model, [{"learning_rate": rate, "max_grad_norm": norm} for rate, norm in pairs]


def wide(model: Any, n_samples: int, n_features: int) -> tuple[Any, Candidates]:
    """Return what a user may type in around a model that needs no tuning."""
    return product(model, [1.0, 0.3, 3.0, 10.0], [None, 0.05, 0.2, 1.0])


def poor_sgd(model: Any, n_samples: int, n_features: int) -> tuple[Any, Candidates]:
    """Return learning rates of "sgd", the default of which was set far too short."""
    model = clone(model).set_params(solver="sgd", learning_rate=0.03)
    rates = [0.03 * 10.0 ** (power / 3.0) for power in range(10)]
    return model, [{"learning_rate": rate} for rate in rates]


def adam(model: Any, n_samples: int, n_features: int) -> tuple[Any, Candidates]:
    """Return multiples of the defaults of "adam"."""
    model = clone(model).set_params(solver="adam")
    model.set_params(learning_rate=0.01, max_grad_norm=1.0)
    return product(model, [0.01, 0.001, 0.003, 0.03, 0.1], [1.0, 0.1, 0.3])


GRIDS = {"suggested": suggested, "wide": wide, "poor sgd": poor_sgd, "adam": adam}


def grid_of(problem: Problem, name: str, X: Any) -> tuple[Any, Candidates]:
    """Return the model of a grid and its candidates."""
    if problem.prefix:
        knots = [5, 2, 3, 4, 7, 9, 13, 17, 21, 25]
        return problem.model, [{"tableencoder__n_knots": number} for number in knots]
    return GRIDS[name](problem.model, *X.shape)


# Tables ----------------------------------------------------------------------------------------


def noise_of_runs(n_candidates: int) -> tuple[float, float]:
    """Return the noise of the final fit over that of one untuned, and of a run over that."""
    final = 1.0 + 0.002 * max(n_candidates, 10)
    return final, math.sqrt(n_candidates / (final**2 - 1.0))


def with_noise(model: Any, prefix: str, n_samples: int, epsilon: float, ratio: float) -> Any:
    """Return a copy with this many times the noise that the budget would give."""
    step = model[-1] if prefix else model
    budgeted = clone(step).set_params(epsilon=epsilon, delta=DELTA)
    noise = ratio * budgeted.noise_level(n_samples)
    changes = {"epsilon": None, "delta": DELTA, "noise_multiplier": noise}
    return clone(model).set_params(**{prefix + name: value for name, value in changes.items()})


def scaled(model: Any, prefix: str, n_tune: int, n_final: int) -> Any:
    """Return the model with parameters for fewer records, as a search sets them."""
    step = model[-1] if prefix else model
    values = step.tuning_parameters(n_tune, n_final)
    if "learning_rate" in values:
        values["learning_rate"] *= math.sqrt(n_final / n_tune)
    return model.set_params(**{prefix + name: value for name, value in values.items()})


def score_of(model: Any, seed: int, prefix: str, rows: Split) -> float:
    """Return the accuracy of a fit; 0 where it fails, as in a search."""
    X, X_test, y, y_test = rows
    model.set_params(**{prefix + "random_state": seed})
    return float(model.fit(X, y).score(X_test, y_test))


class Runs(NamedTuple):
    """How runs differ from the settings above.

    `noise` multiplies theirs; learning rates of "sgd" are divided by their noise, over that of the
    final fit, to the power of `rate_power`.
    """

    noise: float = 1.0
    rate_power: float = 0.0

    def changed(self, model: Any, prefix: str, ratio: float) -> Any:
        """Return the model of a run with its learning rate."""
        if self.rate_power and not prefix and model.solver == "sgd":
            model.set_params(learning_rate=model.learning_rate * ratio**-self.rate_power)
        return model


USUAL_RUNS = Runs()


def make_table(
    problem: Problem, grid: str, epsilon: float, runs: Runs = USUAL_RUNS
) -> dict[str, Any]:
    """Return exact scores of runs of all candidates, and test accuracies of final fits."""
    rows = problem.split(0)
    n_samples = len(rows[0])
    model, candidates = grid_of(problem, grid, rows[0])
    final, ratio = noise_of_runs(len(candidates))
    ratio *= runs.noise
    prefix, n_tune = problem.prefix, round((1.0 - VALIDATION_SHARE) * n_samples)
    noisy = with_noise(model, prefix, n_samples, epsilon, ratio * final)
    last = with_noise(model, prefix, n_samples, epsilon, final)
    scores = np.empty((problem.runs, len(candidates)))
    accuracies = np.empty((problem.fits, len(candidates)))
    for seed in range(max(problem.runs, problem.fits)):
        X, X_test, y, y_test = problem.split(seed)
        parts = train_test_split(X, y, test_size=VALIDATION_SHARE, random_state=seed)
        for place, candidate in enumerate(candidates):
            own = 1000 * seed + place + 7
            if seed < problem.runs:
                tuned = clone(noisy).set_params(**candidate)
                tuned = scaled(tuned, prefix, n_tune, n_samples)
                tuned = runs.changed(tuned, prefix, ratio)
                scores[seed, place] = score_of(tuned, own, prefix, parts)
            if seed < problem.fits:
                fit = clone(last).set_params(**candidate)
                accuracies[seed, place] = score_of(fit, seed, prefix, (X, X_test, y, y_test))
    return {
        "scores": scores,
        "accuracies": accuracies,
        "candidates": json.dumps(candidates),
        "n_samples": n_samples,
        "n_features": rows[0].shape[1],
        "ratio": ratio * final,
        "epsilon": epsilon,
    }


def store_tables(folder: Path, names: list[str], epsilons: list[float], runs: Runs) -> None:
    """Make the tables that are not yet in the folder."""
    folder.mkdir(exist_ok=True, parents=True)
    for epsilon in epsilons:
        for name in names:
            problem = PROBLEMS[name]()
            for grid in ["encoder"] if problem.prefix else GRIDS:
                path = folder / f"{name}_{grid}_{epsilon:g}.npz"
                if path.exists():
                    continue
                started = time.process_time()
                np.savez(path, **make_table(problem, grid, epsilon, runs))
                print(f"{path.stem}: {time.process_time() - started:.1f} s", flush=True)
