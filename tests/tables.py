"""Tables that several tests share: people with a schema, and a rare class."""

from __future__ import annotations

import numpy as np
import pandas as pd

COLUMNS = {
    "age": {"range": (18, 80), "missing": True},
    "pay": {"range": (0, 1e6), "scale": "log"},
    "since": ("2000-01-01", "2030-01-01"),
    "sector": {"categories": ["farm", "office", "school"], "missing": True},
    "paid": "boolean",
    "name": "drop",
}


def people(n: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return a table, and labels and numbers that depend on age and sector."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.choice([20.0, 45.0, 70.0, np.nan], n),
            "pay": rng.lognormal(8, 2, n),
            "since": pd.Timestamp("2001-02-03") + pd.to_timedelta(rng.integers(0, 9999, n), "D"),
            "sector": rng.choice(["farm", "office", "school", None], n),
            "paid": rng.random(n) < 0.5,
            "name": [f"person {i}" for i in range(n)],
        }
    )
    score = (table.age.fillna(45) - 45) + 20 * (table.sector == "farm")
    return table, np.where(score > 10, "yes", "no"), score.to_numpy(float)


def rare_class(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Return records of which few are positive, and no rule tells all of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.7 * rng.normal(size=n) > 1.9).astype(int)
