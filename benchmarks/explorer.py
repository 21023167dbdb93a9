r"""Make and check the table behind the page "What tuning costs" (docs/explorer.md).

    python benchmarks/explorer.py table [--quick]    compute the table; --quick: a tiny one, unkept
    python benchmarks/explorer.py margins            measure its margins and errors once more
    python benchmarks/explorer.py check --points 50  compare it with exact calibrations

**Why a table.** The page runs in the browser, without a server. Python in the browser (Pyodide)
would compute the exact noise, but has no build of opendp, which the package imports,
and would load tens of megabytes from another site. So the noise that each way of tuning needs is
computed here, on a grid, and the page interpolates (docs/_static/explorer.js).

**What is interpolated.** DP-SGD with rate q, T steps and noise s is nearly the Gaussian mechanism
of ``mu = q sqrt(T (exp(1/s^2) - 1))`` standard deviations (Bu, Dong, Long and Su 2020), so that
log mu depends very little on q and T, while s spans four orders of magnitude. The table holds
log mu, for each way of tuning, at the nodes of five axes: rate, epochs ``q T``, mean number of
runs, delta and epsilon, all in logarithms. Between them runs the polynomial through all nodes
(Lagrange), axis by axis; the nodes are close to Chebyshev's, and such that steps are whole
numbers. Publishing all of k runs of T steps is a run of k T steps, so it is read off the untuned
runs.

**How good it is.** ``table`` draws settings between the nodes, solves for their exact noise, and
keeps a multiple of the worst underestimate as a margin, which the page adds. It draws fresh
settings, too, and stores by how much the noise shown is then above the exact one. The page is for
planning: only the library gives guarantees.
"""

from __future__ import annotations

import argparse
import base64
import functools
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from accounting import DELTA, RUN_COUNT, WAYS, training
from scipy.interpolate import CubicSpline

from skdptune.accounting import (
    Geometric,
    PrivacyProfile,
    RunCountDistribution,
    UnreachableBudgetError,
    calibrate,
)

TABLE = Path(__file__).parents[1] / "docs" / "_static" / "explorer-table.js"
# Read by the browser as a script, as a page opened from a disk cannot fetch data.
OPENING = "globalThis.tuningTable = "
# In the order of the page, with the names of `accounting.WAYS`.
KEYS = {
    "untuned": "one untuned fit",
    "rdp": "search, rdp",
    "profile": "search, profile",
    "envelope": "search, envelope",
    "part_rdp": "search on 1/20, then fit, rdp",
    "part": "search on 1/20, then fit, envelope",
}
AXES = ("rate", "epochs", "runs", "delta", "epsilon")
# One over each rate, and epochs, are whole: so are the steps.
INVERSE_RATES = (5, 6, 12, 30, 83, 210, 398, 500)
EPOCHS = (1, 2, 5, 13, 36, 75, 100)
# All of 100 runs of 100 epochs are 10,000 epochs.
EPOCHS_OF_ALL = (1, 2, 6, 22, 90, 330, 1200, 4000, 8300, 10_000)
# Distance of two values of log mu at which a profile is computed.
STRIDE = 0.35
# Below this noise the runs are far from Gaussian, and the interpolation is less good.
BANDS = (2.0, math.inf)
SAFETY = {"rdp": 2.5, "part_rdp": 1.5, "others": 2.5}
# Orders of Rényi bounds are few, so that their curves have kinks: of these ways the polynomial in
# epsilon runs only through the nearest nodes, and margins are larger.
KINKED = ("rdp", "part_rdp")
NEAREST = 4
# Orders end at 128, so that Rényi bounds grow without limit near epsilon = log(1/delta) / 127.
# From three times that on they are smooth enough.
LEAST_KINKED = 3.0 / 127.0
README = {"rate": 0.05, "steps": 400, "runs": RUN_COUNT.mean, "delta": DELTA, "epsilon": 1.0}


def between(lower: float, upper: float, count: int) -> tuple[float, ...]:
    """Return Chebyshev's nodes, with both ends, in the logarithm."""
    angles = np.pi * np.arange(count) / (count - 1)
    middle, half = math.log(upper * lower) / 2.0, math.log(upper / lower) / 2.0
    nodes = np.exp(middle - half * np.cos(angles))
    return tuple(float(f"{node:.6g}") for node in nodes)


class Grid(NamedTuple):
    """Nodes of all axes."""

    rate: tuple[float, ...] = tuple(1.0 / count for count in INVERSE_RATES)
    epochs: tuple[float, ...] = EPOCHS
    runs: tuple[float, ...] = between(4.0, 100.0, 5)
    delta: tuple[float, ...] = between(1e-8, 1e-3, 5)
    epsilon: tuple[float, ...] = between(0.1, 10.0, 11)


QUICK = Grid((0.2, 0.02), (5, 20), (5.0, 20.0), (1e-6, 1e-5), (0.5, 1.0, 2.0))


# Noise and mu --------------------------------------------------------------------------------


def noise_of(log_mu: float, rate: float, steps: float) -> float:
    """Return the noise multiplier at which DP-SGD is nearly a Gaussian mechanism of this mu."""
    return 1.0 / math.sqrt(math.log1p(math.exp(2.0 * log_mu) / (rate * rate * steps)))


@functools.lru_cache(maxsize=64)
def run_of(noise: float, rate: float, steps: int) -> PrivacyProfile:
    """Return the profile of one run."""
    return PrivacyProfile.from_event(training(noise, rate, steps))


def exact_noise(way: str, setting: dict[str, Any], guess: float) -> float:
    """Return the noise that a way of tuning needs, by the accounting itself."""
    count = Geometric.from_mean(setting["runs"])

    def cost(noise: float) -> PrivacyProfile:
        run = run_of(noise, setting["rate"], setting["steps"])
        return WAYS[KEYS[way]][0](run, count)

    budget = setting["epsilon"], setting["delta"]
    try:
        # Close limits save evaluations where the guess is good.
        near = calibrate(cost, *budget, guess=guess, lower=0.95 * guess, upper=1.05 * guess).value
        if near > 0.951 * guess:
            return near
    except UnreachableBudgetError:
        pass
    return calibrate(cost, *budget, guess=guess).value


# The table -----------------------------------------------------------------------------------


class Sweep:
    """Epsilon of a way of tuning at evenly spaced values of log mu, read backwards.

    A profile gives epsilon at all deltas at once, so it is cheaper to compute the profiles of a
    row of noises than to solve for each epsilon and delta.
    """

    def __init__(
        self, way: str, rate: float, steps: int, count: RunCountDistribution, grid: Grid
    ) -> None:
        self._cost, self._rate, self._steps = WAYS[KEYS[way]][0], rate, steps
        self._count, self._grid = count, grid
        self._epsilons: dict[int, list[float]] = {}

    def log_mu(self) -> np.ndarray:
        """Return log mu at each delta and epsilon of the grid."""
        wanted = np.log(self._grid.epsilon)
        first = last = -3
        while max(self._at(first)) > self._grid.epsilon[0]:
            first -= 1
        while min(self._at(last)) < self._grid.epsilon[-1]:
            last += 1
        # Cubic pieces are best away from the ends.
        places = np.arange(first - 1, last + 2)
        values = np.array([self._at(place) for place in places])
        rows = []
        for column in values.T:
            known = column > 1e-4
            spline = CubicSpline(np.log(column[known]), STRIDE * places[known])
            rows.append(spline(wanted))
        return np.array(rows)

    def _at(self, place: int) -> list[float]:
        if place not in self._epsilons:
            noise = noise_of(STRIDE * place, self._rate, self._steps)
            cost = self._cost(run_of(noise, self._rate, self._steps), self._count)
            self._epsilons[place] = [cost.epsilon(delta) for delta in self._grid.delta]
        return self._epsilons[place]


def values_of(way: str, grid: Grid) -> Iterator[np.ndarray]:
    """Yield log mu of one way at each rate: epochs, runs, delta, epsilon."""
    counts = [Geometric.from_mean(runs) for runs in grid.runs]
    for rate in grid.rate:
        yield np.array(
            [
                [
                    Sweep(way, rate, round(epochs / rate), count, grid).log_mu()
                    for count in (counts if way != "untuned" else counts[:1])
                ]
                for epochs in grid.epochs
            ]
        )


def packed(values: np.ndarray) -> dict[str, Any]:
    """Return values in 16 bits each, as text."""
    lowest, highest = float(values.min()), float(values.max())
    step = (highest - lowest) / 65535
    whole = np.rint((values - lowest) / step).astype("<u2")
    return {"lowest": lowest, "step": step, "values": base64.b64encode(whole.tobytes()).decode()}


def make_table(grid: Grid, all_epochs: tuple[float, ...]) -> dict[str, Any]:
    """Compute the table, without margins."""
    table: dict[str, Any] = {"axes": grid._asdict(), "bands": [BANDS[0]], "ways": {}}
    for way, name in KEYS.items():
        start = time.process_time()
        own = grid._replace(epochs=all_epochs) if way == "untuned" else grid
        values = np.array(list(values_of(way, own)))
        table["ways"][way] = {"share": WAYS[name][1]} | packed(values)
        print(f"{way}: {values.size} values, {time.process_time() - start:.0f} s", flush=True)
    table["ways"]["untuned"]["epochs"] = all_epochs
    return table


# Reading it, as explorer.js does -------------------------------------------------------------


def weights(nodes: np.ndarray, place: float) -> np.ndarray:
    """Return what each node counts in the polynomial through all of them."""
    result = np.ones(nodes.size)
    for node in range(nodes.size):
        others = np.delete(nodes, node)
        result[node] = np.prod((place - others) / (nodes[node] - others))
    return result


def weights_of(nodes: np.ndarray, place: float, count: int) -> np.ndarray:
    """Return the weights of the polynomial through all nodes, or the nearest of rising ones."""
    first = min(max(int(np.searchsorted(nodes, place)) - count // 2, 0), nodes.size - count)
    result = np.zeros(nodes.size)
    result[first : first + count] = weights(nodes[first : first + count], place)
    return result


def interpolated(table: dict[str, Any], way: str, setting: dict[str, Any]) -> float:
    """Return the noise that the table says, without margin."""
    entry = table["ways"][way]
    places = setting | {"epochs": setting["rate"] * setting["steps"]}
    axes = [(name, entry.get(name, table["axes"][name])) for name in AXES]
    if way == "untuned":
        axes = [axis for axis in axes if axis[0] != "runs"]
    whole = np.frombuffer(base64.b64decode(entry["values"]), dtype="<u2")
    values = entry["lowest"] + entry["step"] * whole.astype(np.float64)
    for name, nodes in axes:
        logs, place = np.log(nodes), math.log(places[name])
        is_local = name == "epsilon" and way in KINKED
        counts = (
            weights_of(logs, place, min(NEAREST, logs.size)) if is_local else weights(logs, place)
        )
        values = counts @ values.reshape(len(nodes), -1)
    return noise_of(float(values[0]), setting["rate"], setting["steps"])


def band_of(noise: float) -> int:
    """Return which margin a noise has."""
    return int(noise >= BANDS[0])


def is_covered(way: str, setting: dict[str, Any]) -> bool:
    """Return whether the page shows this way: Rényi bounds not where epsilon is very small."""
    least = LEAST_KINKED * math.log(1.0 / setting["delta"])
    return way not in KINKED or setting["epsilon"] >= least


def margin_of(way: str) -> str:
    """Return which margins a way has: its own, or those of all ways without kinks."""
    return way if way in KINKED else "others"


def shown(table: dict[str, Any], way: str, setting: dict[str, Any]) -> float:
    """Return the noise that the page shows: with the margin that was measured."""
    noise = interpolated(table, way, setting)
    return noise * (1.0 + table["margins"][margin_of(way)][band_of(noise)])


def read_table(path: Path = TABLE) -> dict[str, Any]:
    """Return the table of the page."""
    return json.loads(path.read_text(encoding="utf-8").removeprefix(OPENING).rstrip(";\n"))


# Errors --------------------------------------------------------------------------------------


def settings(table: dict[str, Any], count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield random settings, a third of them on the border of what the table covers."""
    rng = np.random.default_rng(seed)
    ends = np.log([(min(table["axes"][name]), max(table["axes"][name])) for name in AXES])
    for index in range(count):
        shares = rng.uniform(size=len(AXES))
        if index % 3 == 0:
            shares = np.where(rng.uniform(size=shares.size) < 0.4, np.round(shares), shares)
        logs = ends[:, 0] + shares * (ends[:, 1] - ends[:, 0])
        rate, epochs, *others = np.exp(logs).tolist()
        least, most = np.exp(ends[1])
        steps = min(max(round(epochs / rate), math.ceil(least / rate - 1e-9)), most / rate)
        named = zip(AXES[2:], others, strict=True)
        yield {"rate": rate, "steps": math.floor(steps + 1e-9), **dict(named)}


def log_errors(
    table: dict[str, Any], count: int, seed: int, read: Callable[..., float]
) -> dict[str, list[tuple[float, float, dict[str, Any]]]]:
    """Return noises of each way, by how much reading them is off (logarithm), and settings."""
    found: dict[str, list[tuple[float, float, dict[str, Any]]]] = {
        way: [] for way in (*KEYS, "composition")
    }
    for setting in settings(table, count, seed):
        for way, errors in found.items():
            if not is_covered(way, setting):
                continue
            place = all_of(setting) if way == "composition" else setting
            key = "untuned" if way == "composition" else way
            noise = interpolated(table, key, place)
            exact = exact_noise(key, place, noise)
            errors.append((noise, math.log(read(table, key, place) / exact), setting))
    return found


def all_of(setting: dict[str, Any]) -> dict[str, Any]:
    """Return the one long run that all runs are together."""
    return setting | {"steps": setting["steps"] * math.ceil(setting["runs"])}


def set_margins(table: dict[str, Any], points: int) -> None:
    """Measure errors between the nodes, and keep what makes up for the worst of all ways."""
    low: dict[str, list[list[float]]] = {
        name: [[1e-3] for _ in BANDS] for name in (*KINKED, "others")
    }
    for way, errors in log_errors(table, points, 1, interpolated).items():
        for noise, error, _ in errors:
            bands = range(len(BANDS)) if way in KINKED else [band_of(noise)]
            for band in bands:
                low[margin_of(way)][band].append(-error)
    table["margins"] = {
        name: [math.ceil(1e4 * math.expm1(SAFETY[name] * max(band))) / 1e4 for band in bands]
        for name, bands in low.items()
    }
    print(f"Margins for noise below {BANDS[0]:g}, and above: {table['margins']}", flush=True)


def print_errors(table: dict[str, Any], points: int, seed: int) -> dict[str, list[list[float]]]:
    """Print and return the least and the largest excess of shown over exact noise."""
    found: dict[str, list[list[float]]] = {}
    print(f"Shown above exact noise, least to most; {points} settings, seed {seed}")
    for way, errors in log_errors(table, points, seed, shown).items():
        found[way], cells = [], ""
        for band in range(len(BANDS)):
            part = [math.expm1(error) for noise, error, _ in errors if band_of(noise) == band]
            ends = [min(part), max(part)] if part else [math.nan, math.nan]
            found[way].append([round(end, 5) for end in ends])
            cells += f"   {ends[0]:8.3%} to {ends[1]:7.3%}"
        print(f"  {way:<11} noise below {BANDS[0]:g}, and above:{cells}", flush=True)
        _, least, setting = min(errors, key=lambda error: error[1], default=(0.0, 0.0, {}))
        if least < 0.0:
            print(f"    too little by {-math.expm1(least):.3%} at {setting}")
    return found


def write(table: dict[str, Any], path: Path) -> None:
    """Write the table as a script."""
    text = OPENING + json.dumps(table, separators=(",", ":")) + ";\n"
    path.write_text(text, encoding="utf-8")
    print(f"{path}: {len(text) / 1000:.0f} kB")


def measure(table: dict[str, Any], points: int) -> None:
    """Set margins, what is left of errors, and the exact figures of one setting."""
    set_margins(table, points)
    table["points"] = points
    table["errors"] = print_errors(table, points, seed=2)
    exact = {way: exact_noise(way, README, 4.0) for way in KEYS}
    exact["composition"] = exact_noise("untuned", all_of(README), 4.0)
    table["example"] = README | {"noise": {way: round(noise, 5) for way, noise in exact.items()}}


def make(options: argparse.Namespace) -> None:
    """Compute the table, its margins, and what is left of errors."""
    start = time.process_time()
    if options.quick:
        measure(make_table(QUICK, (5, 20, 400)), points=3)
    else:
        table = make_table(Grid(), EPOCHS_OF_ALL)
        # Not lost if what follows is stopped.
        write(table, options.to)
        measure(table, options.points)
        write(table, options.to)
    print(f"{time.process_time() - start:.0f} s of the processor in all")


def measure_again(options: argparse.Namespace) -> None:
    """Measure margins and errors of the table that there is."""
    table = read_table(options.to)
    measure(table, options.points)
    write(table, options.to)


def check(options: argparse.Namespace) -> None:
    """Compare the table of the page with exact calibrations."""
    errors = print_errors(read_table(), options.points, options.seed)
    for way, bands in errors.items():
        # Kinks of Rényi bounds can hide between the nodes.
        least = -0.05 if way in KINKED else 0.0
        if any(ends[0] < least for ends in bands):
            raise SystemExit(f"The table shows too little noise: {way}.")


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    for name, act in (("table", make), ("margins", measure_again)):
        part = parts.add_parser(name, help=act.__doc__)
        part.add_argument("--points", type=int, default=32, help="settings of each measurement")
        part.add_argument("--to", type=Path, default=TABLE)
        part.set_defaults(act=act)
    parts.choices["table"].add_argument("--quick", action="store_true", help="tiny, and not kept")
    checks = parts.add_parser("check", help=check.__doc__)
    checks.add_argument("--points", type=int, default=50)
    checks.add_argument("--seed", type=int, default=3)
    checks.set_defaults(act=check)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
