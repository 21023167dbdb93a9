"""What a search gains over the estimator as it comes, or loses.

    python benchmarks/search_default.py [--data NAME ...] [--epsilons .5 1 2 4] [--seeds 4]
        [--searches random table] [--spaces suggested given] [--scores accuracy log_loss r2]
        [--error .25]

Points of test accuracy, of log loss and of R^2 that `DPRandomSearchCV`, `DPGridSearchCV` and
`DPAdaptiveSearchCV` gain over the untuned estimator with the same budget, on the same splits, with
standard errors. The returned estimator is fitted once more with the seed of the untuned one, so
that a gain is due to its parameters and to the scale of its noise, and not to other draws of the
same noise. Searches that fit once gain 0. In brackets is how many searches were made, and how many
of those chose another candidate than the default. "worst" is the least that the candidate of a
single search is better than the default, by fits of all candidates on all seeds; "free" is that of
the best candidate.

"suggested" is a search without a space, "given" one over typed-in values around the default.
"error" is the share of the range of targets at which errors are clipped for scores of R^2. The
last lines are the mean over all searches, the worst single one, and the part of the free gain that
was found where that is 2 points or more, by data that made the rules and by data that judge.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import data_sets
import numpy as np
import people
import utility_problems
from search_parts import hospital
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, train_test_split

from skdptune import set_config
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.metrics import neg_log_loss, neg_squared_error
from skdptune.model_selection import DPAdaptiveSearchCV, DPGridSearchCV, DPRandomSearchCV
from skdptune.preprocessing import make_private_pipeline

DELTA, BOUND, MOST_LOG_LOSS = 1e-5, 3.0, 4.0
SEARCHES = {
    "random": DPRandomSearchCV,
    "table": DPGridSearchCV,
    "adaptive": DPAdaptiveSearchCV,
}
TABLES = {"visits 4,000": 4000, "visits 10,000": 10_000, "visits 30,000": 30_000}
CLASSES = data_sets.MAKING | data_sets.JUDGING
PEOPLE = {f"people: {name}": name for name in people.TABLES}
NUMBERS = {f"R2: {name}": p for name, p in utility_problems.PROBLEMS.items() if p.regression}
# Over a table, numbers have five knots by default; "straight" starts from straight lines.
PEOPLE_NUMBERS = {f"R2: {name}": (name, 5) for name in people.NUMBERS}
PEOPLE_NUMBERS |= {f"R2: {name}, straight": (name, 2) for name in people.NUMBERS}
# Constants of the rule were chosen on these.
MADE_RULES = ["parkinsons", "a9a 10k", "bike", "made rare", "made unscaled", "visits 4,000"]
MADE_RULES += ["R2: bike", "R2: elevators", "R2: protein", "R2: made curved"]
MADE_RULES += ["R2: parkinsons", "R2: wages, straight"]
USUAL = [*MADE_RULES, "visits 10,000", "visits 30,000", "cancer", "digits", "protein"]
USUAL += ["elevators", "hastie", "made two clusters", "made redundant", "R2: airfoil"]
USUAL += ["R2: diabetes", "people: smokers", "people: pensions", "people: arrests"]
USUAL += [f"R2: {name}, straight" for name in ("computers", "Ontario wages", "panel wages")]
USUAL += ["R2: school scores, straight"]


class Problem(NamedTuple):
    """Splits by seed, a model, the prefix of its parameters, scores, and typed-in values.

    `ends` are those of the range of targets, to which predictions are clipped.
    """

    split: Callable[[int], Any]
    model: Any
    prefix: str
    scores: tuple[str, ...]
    given: dict[str, list[Any]]
    ends: tuple[float, float] = (0.0, 1.0)


def problem(name: str) -> Problem:
    """Return a problem by its name."""
    scores = ("accuracy", "log_loss")
    if name in PEOPLE_NUMBERS:
        return of_people(*PEOPLE_NUMBERS[name])
    if name in NUMBERS:
        fold = NUMBERS[name].load()
        model = DPRidge(1.0, DELTA, target_bound=BOUND)

        def split(seed: int) -> Any:
            found = fold(seed)
            return found.X, found.X_test, found.y, found.y_test

        norm = split(0)[0].shape[1] ** 0.5
        given = {"alpha": [None, 10.0, 1000.0], "data_norm": [None, 0.5 * norm, 2.0 * norm]}
        return Problem(split, model, "", ("r2",), given, (-BOUND, BOUND))
    given = {"learning_rate": [None, 3.0, 10.0], "max_grad_norm": [None, 0.2]}
    if name in TABLES:
        visits = hospital(TABLES[name])
        knots = {"tableencoder__n_knots": [5, 2, 9, 17]}
        return Problem(visits.split, visits.model, visits.prefix, scores, knots)
    if name in PEOPLE:
        table = people.people(PEOPLE[name])
        model = make_private_pipeline(DPLogisticRegression(), table.schema)
        prefix = f"{model.steps[-1][0]}__"
        given = {prefix + key: values for key, values in given.items()}
        return Problem(table.split, model, prefix, scores, given)
    data = CLASSES[name]()
    model = DPLogisticRegression(classes=range(int(data.y.max()) + 1))
    return Problem(data.split, model, "", scores, given)


def of_people(name: str, n_knots: int) -> Problem:
    """Return a regression over a table of people, whose numbers have a number of knots."""
    rows, targets, schema = people.numbers(name)

    def split(seed: int) -> Any:
        return train_test_split(rows, targets, test_size=people.TEST_SHARE, random_state=seed)

    model = make_private_pipeline(DPRidge(), schema, n_knots=n_knots)
    knots = {"tableencoder__n_knots": sorted({2, 5, 9, 17}, key=lambda each: each != n_knots)}
    return Problem(split, model, "dpridge__", ("r2",), knots, schema.target_bounds)


def suggested(found: Problem, n_samples: int, n_features: int) -> list[dict[str, Any]]:
    """Return the suggested candidates, which differ from the model in one parameter."""
    steps = found.model.named_steps if found.prefix else {"": found.model}
    candidates: list[dict[str, Any]] = [{}]
    for name, step in steps.items():
        if hasattr(step, "suggested_space"):
            start = f"{name}__" if found.prefix else ""
            for key, values in step.suggested_space(n_samples, n_features).items():
                candidates += [{start + key: value} for value in values[1:]]
    return candidates


def measured(model: Any, X: Any, y: Any, found: Problem, scores: Any) -> dict[str, float]:
    """Return the points of a fitted model by each score."""
    if "r2" in scores:
        errors = np.mean((np.clip(model.predict(X), *found.ends) - y) ** 2)
        return {"r2": 100.0 * (1.0 - errors / np.var(y))}
    chances = model.predict_proba(X)
    places = np.searchsorted(model.classes_, y)
    right = np.maximum(chances[np.arange(len(places)), places], np.exp(-MOST_LOG_LOSS))
    is_right = chances.argmax(axis=1) == places
    return {"accuracy": 100.0 * is_right.mean(), "log_loss": 100.0 * np.log(right).mean()}


SCORINGS = {
    "accuracy": None,
    "log_loss": neg_log_loss(MOST_LOG_LOSS),
}


class Row(NamedTuple):
    """One cell: gains of single searches, of their candidates, the free gain, and counts."""

    gains: np.ndarray
    worst: float
    free: float
    made: int
    moved: int

    def __str__(self) -> str:
        """Show the mean with its standard error, the worst, and how many were made and moved."""
        error = np.std(self.gains, ddof=1) / len(self.gains) ** 0.5
        mean = f"{np.mean(self.gains):+.2f} ± {error:.2f}"
        return f"{mean}, worst {self.worst:+.2f} ({self.made}, {self.moved})"


def place_of(chosen: dict[str, Any], tried: list[dict[str, Any]], model: Any) -> int:
    """Return the place of a candidate among those tried, which it joins if it is new.

    Values that the model has anyway make no difference. Adaptive searches combine values.
    """
    own = model.get_params(deep=True)

    def changes(candidate: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in candidate.items() if value != own[name]}

    known = [changes(candidate) for candidate in tried]
    if changes(chosen) not in known:
        tried.append(changes(chosen))
        return len(known)
    return known.index(changes(chosen))


def rows_of(name: str, epsilon: float, options: Any) -> Iterator[tuple[str, str, str, float, Row]]:
    """Yield score, space, search, the untuned mean and the cell."""
    found = problem(name)
    scores = tuple(score for score in found.scores if score in options.scores)
    folds = [found.split(seed) for seed in range(options.seeds)]
    spaces = {}
    if "suggested" in options.spaces:
        spaces["suggested"] = (None, suggested(found, *folds[0][0].shape))
    if "given" in options.spaces:
        spaces["given"] = (found.given, list(ParameterGrid(found.given)))
    finals: dict[str, list[list[dict[str, float]]]] = {space: [] for space in spaces}

    def table_of(space: str, tried: list[dict[str, Any]], score: str) -> np.ndarray:
        """Return the points of all candidates so far, a row for each seed."""
        for candidate in tried[len(finals[space]) :]:
            of_seeds = enumerate(folds)
            each = [final(found, epsilon, s, candidate, fold, scores) for s, fold in of_seeds]
            finals[space].append(each)
        return np.array([[one[score] for one in each] for each in finals[space]]).T

    for score, (space, (values, tried)) in itertools.product(scores, spaces.items()):
        own = place_of({}, tried, found.model)
        table = table_of(space, tried, score)
        largest = options.error * (found.ends[1] - found.ends[0])
        scoring = SCORINGS.get(score, neg_squared_error(largest**2))
        for each in options.searches:
            gains, chosen, made = [], [], 0
            for seed, (X, X_test, y, y_test) in enumerate(folds):
                search = SEARCHES[each](
                    clone(found.model), values, epsilon=epsilon, delta=DELTA,
                    scoring=scoring, random_state=seed + 100,
                )  # fmt: skip
                if search.plan(*X.shape, compare=False).row.name.startswith("one fit"):
                    gains.append(0.0)
                    chosen.append(own)
                    continue
                made += 1
                search.fit(X, y)
                again = {found.prefix + "random_state": seed}
                returned = clone(search.best_estimator_).set_params(**again).fit(X, y)
                after = measured(returned, X_test, y_test, found, scores)[score]
                gains.append(after - table[seed, own])
                chosen.append(place_of(search.best_params_, tried, found.model))
            moved = sum(place != own for place in chosen)
            means = table_of(space, tried, score).mean(axis=0) - table[:, own].mean()
            worst = min(float(means[place]) for place in chosen)
            row = Row(np.array(gains), worst, float(means.max()), made, moved)
            yield score, space, each, float(table[:, own].mean()), row


def final(
    found: Problem, epsilon: float, seed: int, candidate: dict[str, Any], fold: Any, scores: Any
) -> dict[str, float]:
    """Return the points of a fit of a candidate with the whole budget."""
    X, X_test, y, y_test = fold
    budget = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
    own = {found.prefix + key: value for key, value in budget.items()}
    model = clone(found.model).set_params(**own, **candidate).fit(X, y)
    return measured(model, X_test, y_test, found, scores)


def print_summary(rows: list[tuple[str, str, Row]]) -> None:
    """Print what all searches gain, by score and by whether the data made the rules."""
    for score, makes in sorted({(score, name in MADE_RULES) for name, score, _ in rows}):
        cells = [row for name, of, row in rows if of == score and (name in MADE_RULES) == makes]
        gains = np.concatenate([row.gains for row in cells])
        shares = [np.mean(row.gains) / row.free for row in cells if row.free >= 2.0]
        found = f"{np.mean([share >= 0.5 for share in shares]):.0%} of" if shares else "none of"
        print(
            f"{score}, data that {'make' if makes else 'judge'}: mean {gains.mean():+.3f} of "
            f"{gains.size} searches, {sum(row.made for row in cells)} made; worst candidate "
            f"{min(row.worst for row in cells):+.2f}; worst search {gains.min():+.2f}; half of a "
            f"free gain of 2 points is found in {found} {len(shares)} cells"
        )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [*CLASSES, *TABLES, *PEOPLE, *NUMBERS, *PEOPLE_NUMBERS]
    parser.add_argument("--data", nargs="+", default=USUAL, choices=known)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument(
        "--searches", nargs="+", default=["random", "table"], choices=list(SEARCHES)
    )
    spaces = ["suggested", "given"]
    parser.add_argument("--spaces", nargs="+", default=spaces, choices=spaces)
    scores = [*SCORINGS, "r2"]
    parser.add_argument("--scores", nargs="+", default=scores, choices=scores)
    parser.add_argument("--error", type=float, default=0.25)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    # Many searches of one table each.
    set_config(ledger=False)
    print("| data | ε | score | space | search | untuned | gain, worst (made, moved) | free |")
    print("|---|---|---|---|---|---:|---:|---:|")
    rows = []
    for name, epsilon in itertools.product(options.data, options.epsilons):
        for score, space, search, untuned, row in rows_of(name, epsilon, options):
            cells = [name, f"{epsilon:g}", score, space, search, f"{untuned:.1f}", str(row)]
            print("| " + " | ".join(cells) + f" | {row.free:+.2f} |", flush=True)
            rows.append((name, score, row))
    print_summary(rows)


if __name__ == "__main__":
    main()
