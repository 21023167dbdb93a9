"""Tables encoded by a public schema, with several numbers of knots, at several budgets.

    python benchmarks/table_encoder.py adult    raw columns of Adult, compared with scikit-learn
    python benchmarks/table_encoder.py numbers  data sets of numbers: classifiers and regressions

Adult (adult.csv.gz) and the UCI regressions are read from SKDPTUNE_DATA, or ../shared/data. The
schema of Adult is that of the attribute list that the UCI repository publishes with the data
(adult.names) and of the survey's questionnaire, not of the rows: the survey asks people above 16,
counts ages to 90 and hours to 99, and codes gains with five digits, losses with four. Of the data
sets of numbers the ranges are read off the data and widened by a tenth to each side, which is not
private, and the same for every way; targets of regressions are halved at their median for
classifiers.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.preprocessing import Schema, make_private_pipeline

EPSILONS = (0.5, 1.0, 2.0, 4.0)
DELTA = 1e-5
KNOTS = (None, 3, 5, 9)
FOLDER = Path(os.environ.get("SKDPTUNE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def words(text: str) -> list[str]:
    """Return the values in a line of the attribute list."""
    return [word.strip() for word in text.split(",")]


SCHEMA = Schema(
    {
        "age": (17, 90),
        "workclass": {
            "categories": words(
                "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, "
                "Without-pay, Never-worked"
            ),
            "missing": "?",
        },
        # The number of people that a record stands for in the survey.
        "fnlwgt": "drop",
        "education": words(
            "Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, "
            "7th-8th, 12th, Masters, 1st-4th, 10th, Doctorate, 5th-6th, Preschool"
        ),
        "education_num": (1, 16),
        "marital_status": words(
            "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, "
            "Married-spouse-absent, Married-AF-spouse"
        ),
        "occupation": {
            "categories": words(
                "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, "
                "Prof-specialty, Handlers-cleaners, Machine-op-inspct, Adm-clerical, "
                "Farming-fishing, Transport-moving, Priv-house-serv, Protective-serv, "
                "Armed-Forces"
            ),
            "missing": "?",
        },
        "relationship": words(
            "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried"
        ),
        "race": words("White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black"),
        "sex": ["Female", "Male"],
        "capital_gain": {"range": (0, 99_999), "scale": "log"},
        "capital_loss": {"range": (0, 9_999), "scale": "log"},
        "hours_per_week": (0, 99),
        "native_country": {
            "categories": words(
                "United-States, Cambodia, England, Puerto-Rico, Canada, Germany, "
                "Outlying-US(Guam-USVI-etc), India, Japan, Greece, South, China, Cuba, Iran, "
                "Honduras, Philippines, Italy, Poland, Jamaica, Vietnam, Mexico, Portugal, "
                "Ireland, France, Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia, "
                "Hungary, Guatemala, Nicaragua, Scotland, Thailand, Yugoslavia, El-Salvador, "
                "Trinadad&Tobago, Peru, Hong, Holand-Netherlands"
            ),
            "missing": "?",
        },
    },
    target={"name": "income", "categories": ["<=50K", ">50K"]},
)


def adult_table() -> tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.Series] | None:
    """Return training and test rows and their labels, None where the file is missing."""
    if not (FOLDER / "adult.csv.gz").exists():
        return None
    table = pd.read_csv(FOLDER / "adult.csv.gz")
    is_training = table.pop("split") == "train"
    labels = table.pop("income")
    return table[is_training], table[~is_training], labels[is_training], labels[~is_training]


def figures(model, data) -> tuple[float, float]:
    """Return accuracy and area under the curve on the test rows."""
    X, X_test, y, y_test = data
    model.fit(X, y)
    chances = model.predict_proba(X_test)[:, 1]
    return float(np.mean(model.predict(X_test) == y_test)), roc_auc_score(y_test, chances)


def without_privacy(X: pd.DataFrame):
    """Return scikit-learn's model on standardised numbers and learnt categories."""
    names = X.select_dtypes("number").columns
    columns = make_column_transformer(
        (StandardScaler(), names),
        (OneHotEncoder(handle_unknown="ignore"), X.columns.difference(names)),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=3000))


def print_adult(seeds: int, solver: str) -> None:
    """Print accuracy and area under the curve on Adult."""
    data = adult_table()
    if data is None:
        print("Adult: adult.csv.gz not found; set SKDPTUNE_DATA.")
        return
    print(f"Adult, raw columns, delta = {DELTA:g}, mean of {seeds} seeds: accuracy / AUC")
    accuracy, area = figures(without_privacy(data[0]), data)
    print(f"scikit-learn without privacy: {accuracy:.4f} / {area:.4f}")
    for n_knots in KNOTS:
        start, row = time.perf_counter(), []
        for epsilon in EPSILONS:
            found = []
            for seed in range(seeds):
                model = DPLogisticRegression(epsilon, DELTA, solver=solver, random_state=seed)
                found.append(figures(make_private_pipeline(model, SCHEMA, n_knots=n_knots), data))
            accuracy, area = np.mean(found, axis=0)
            row.append(f"{epsilon:g}: {accuracy:.4f} / {area:.4f}")
        each = (time.perf_counter() - start) / len(EPSILONS) / seeds
        print(f"n_knots={n_knots!s:<5}", "  ".join(row), f"  {each:.2f} s a fit", flush=True)


def number_tables():
    """Iterate over names, columns and targets of data sets of numbers."""
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    yield "made up", *make_classification(5000, 40, n_informative=5, random_state=0)
    for name in ("airfoil", "parkinsons", "elevators", "protein", "bike"):
        if not (FOLDER / f"uci_{name}.npz").exists():
            print(f"uci_{name}.npz not found; set SKDPTUNE_DATA.")
            continue
        with np.load(FOLDER / f"uci_{name}.npz") as data:
            X, y = data["X"], data["y"]
            if name == "bike":
                # These two add up to the target.
                X = X[:, ~np.isin(data["feature_names"], ["casual", "registered"])]
        logarithms = {"elevators": np.log, "protein": np.log1p, "bike": np.log}
        yield name, X, logarithms.get(name, np.asarray)(y)


def widened(X: np.ndarray) -> dict[str, tuple[float, float]]:
    """Return the range of each column, widened by a tenth to each side."""
    low, high = X.min(axis=0), X.max(axis=0)
    room = np.where(high > low, (high - low) / 10, 1.0)
    return {f"x{j}": pair for j, pair in enumerate(zip(low - room, high + room, strict=True))}


def print_numbers(seeds: int, solver: str) -> None:
    """Print accuracies of classifiers, and R2 of regressions, on data sets of numbers."""
    for name, X, y in number_tables():
        print(f"\n{name} {X.shape}: test accuracy, and R2 where the target is a number")
        labels = y if np.unique(y).size == 2 else (y > np.median(y)).astype(int)
        bound = 1.1 * float(np.abs(y).max())
        schema = Schema(widened(X), target=(-bound, bound))
        for n_knots in KNOTS:
            row = []
            for epsilon in EPSILONS:
                accuracies, shares = [], []
                for seed in range(seeds):
                    train, test = train_test_split(
                        np.arange(len(y)), test_size=0.25, random_state=seed
                    )
                    model = DPLogisticRegression(
                        epsilon, DELTA, solver=solver, classes=[0, 1], random_state=seed
                    )
                    model = make_private_pipeline(model, schema, n_knots=n_knots)
                    accuracies.append(
                        model.fit(X[train], labels[train]).score(X[test], labels[test])
                    )
                    if labels is y:
                        continue
                    ridge = DPRidge(epsilon, DELTA, random_state=seed)
                    ridge = make_private_pipeline(ridge, schema, n_knots=n_knots)
                    guess = ridge.fit(X[train], y[train]).predict(X[test]).clip(-bound, bound)
                    shares.append(r2_score(y[test], guess))
                figure = f"{epsilon:g}: {np.mean(accuracies):.3f}"
                row.append(figure + (f" / {np.mean(shares):.3f}" if shares else ""))
            print(f"n_knots={n_knots!s:<5}", "  ".join(row), flush=True)


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=["adult", "numbers"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--solver", default="auto")
    options = parser.parse_args()
    print_table = {"adult": print_adult, "numbers": print_numbers}[options.table]
    print_table(options.seeds, options.solver)


if __name__ == "__main__":
    main()
