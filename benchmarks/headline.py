"""The picture of the README: what tuning gains, and what it costs, at one total budget.

    python benchmarks/headline.py [--seeds 10] [--plot docs/images/headline.png]

Left: accuracy on new made-up visits to a hospital (those of examples/tune_logistic_regression.py)
over the total epsilon, tuned and untuned, by scikit-learn's grid search at the same total and
without privacy. The grid search is given the best of its candidates on the test rows. Right: the
noise of one training run over the share of the rows that it sees, by way of tuning, as
`accounting.py` prints it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import runpy
from pathlib import Path
from typing import Any

import numpy as np
from accounting import DELTA, RUN_COUNT, WAYS, training
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skdptune import DPRandomSearchCV
from skdptune.accounting import PrivacyProfile, calibrate
from skdptune.base import profile_of
from skdptune.preprocessing import TableEncoder

EXAMPLE = Path(__file__).parents[1] / "examples" / "tune_logistic_regression.py"
# Okabe and Ito's colours; markers and dashes differ as well, for prints in grey.
LOOKS: dict[str, tuple[str, str, Any]] = {
    "no privacy": ("#7F7F7F", "", (0, (1, 1))),
    "tuned by skdptune": ("#0072B2", "o", "-"),
    "untuned": ("#D55E00", "s", (0, (6, 2))),
    "GridSearchCV at that total": ("#009E73", "^", (0, (2, 1.5))),
}
BARS = {
    "one untuned fit": "no tuning",
    "search on 1/20, then fit, envelope": "tuned by skdptune",
    "search, envelope": "best of 20 runs, envelope",
    "search, profile": "best of 20 runs, profile (2024)",
    "search, rdp": "best of 20 runs, Rényi (2022)",
    "publish all 20 runs": "all 20 runs, composed",
}


def example() -> dict[str, Any]:
    """Return what the example defines; what it prints is dropped."""
    import matplotlib

    matplotlib.use("Agg")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return runpy.run_path(str(EXAMPLE))


def accuracies(given: dict[str, Any], epsilon: float, seed: int) -> dict[str, float]:
    """Return the accuracy of each way on new visits."""
    rng = np.random.default_rng(1000 + seed)
    (X, y), (X_test, y_test) = given["visits"](3_000, rng), given["visits"](20_000, rng)
    pieces = given["PIECES"]

    def private(number: int, budget: float) -> Any:
        settings = {"epsilon": budget, "delta": DELTA, "random_state": seed}
        settings = {f"dplogisticregression__{name}": value for name, value in settings.items()}
        return clone(given["model"]).set_params(tableencoder__n_knots=number, **settings)

    search = DPRandomSearchCV(
        given["model"],
        {"tableencoder__n_knots": pieces},
        n_iter=20,
        epsilon=epsilon,
        delta=DELTA,
        verbose=0,
        random_state=seed,
    )
    n_fits = 5 * len(pieces) + 1
    each = calibrate(
        lambda budget: profile_of(private(5, budget), *X.shape) * n_fits,
        epsilon,
        DELTA,
        parameter="budget",
    ).value
    without = make_pipeline(TableEncoder(given["schema"], 13), LogisticRegression(max_iter=1000))
    return {
        "no privacy": without.fit(X, y).score(X_test, y_test),
        "tuned by skdptune": search.fit(X, y).score(X_test, y_test),
        "untuned": private(5, epsilon).fit(X, y).score(X_test, y_test),
        "GridSearchCV at that total": max(
            private(number, each).fit(X, y).score(X_test, y_test) for number in pieces
        ),
    }


def noises(epsilon: float) -> dict[str, float]:
    """Return the noise over the share of the rows, by way of tuning."""
    found = {}
    for name, shown in BARS.items():
        way, share = WAYS[name]
        noise = calibrate(
            lambda noise, way=way: way(
                PrivacyProfile.from_event(training(noise, 0.05, 400)), RUN_COUNT
            ),
            epsilon,
            DELTA,
            guess=4.0,
        ).value
        found[shown] = noise / share
    return found


def draw(
    path: Path, epsilons: list[float], table: dict[str, np.ndarray], bars: dict[str, float]
) -> None:
    """Draw both panels."""
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.6, 3.5), layout="constrained", width_ratios=(1.0, 1.0)
    )
    for name, values in table.items():
        colour, marker, dashes = LOOKS[name]
        mean = 100.0 * values.mean(axis=1)
        error = 100.0 * values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
        left.plot(epsilons, mean, color=colour, marker=marker, ls=dashes, label=name)
        left.fill_between(epsilons, mean - error, mean + error, color=colour, alpha=0.2, lw=0)
    left.set_xscale("log", base=2)
    left.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    left.set(xlabel="ε in all, at δ = 1e-5", ylabel="accuracy on new rows (%)")
    left.set_title("What tuning gains", loc="left", fontsize="medium")
    left.legend(frameon=False, fontsize="small")
    places = np.arange(len(bars))[::-1]
    colours = ["#0072B2" if "skdptune" in name else "#BBBBBB" for name in bars]
    right.barh(places, list(bars.values()), color=colours, height=0.65)
    for place, value in zip(places, bars.values(), strict=True):
        right.text(value, place, f" {value:.2f}", va="center", fontsize="small")
    right.set_yticks(places, list(bars))
    right.set_xlim(0.0, 1.12 * max(bars.values()))
    right.set_xlabel("noise / share of the rows, at ε = 1 in all")
    right.set_title("What tuning costs", loc="left", fontsize="medium")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run, print, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    given = example()
    found = [
        [accuracies(given, epsilon, seed) for seed in range(options.seeds)]
        for epsilon in options.epsilons
    ]
    names = list(LOOKS)
    table = {name: np.array([[one[name] for one in row] for row in found]) for name in names}
    print(f"accuracy on new rows in %, mean of {options.seeds} seeds and its standard error")
    print(f"{'epsilon':<28}" + "".join(f"{epsilon:>14g}" for epsilon in options.epsilons))
    for name, values in table.items():
        errors = 100.0 * values.std(axis=1, ddof=min(1, options.seeds - 1))
        errors /= np.sqrt(options.seeds)
        cells = zip(100.0 * values.mean(axis=1), errors, strict=True)
        print(f"{name:<28}" + "".join(f"{mean:9.1f} ±{error:3.1f}" for mean, error in cells))
    bars = noises(1.0)
    print("noise / share of the rows at epsilon 1")
    for name, value in bars.items():
        print(f"{name:<34}{value:8.2f}")
    if options.plot is not None:
        draw(options.plot, options.epsilons, table, bars)


if __name__ == "__main__":
    main()
