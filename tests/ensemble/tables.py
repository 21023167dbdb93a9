"""A table of numbers, strings and missing values, with its public schema."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skdptune.preprocessing import Schema

SCHEMA = Schema(
    {
        "age": (0, 100),
        "pay": {"range": (0, 1e6), "scale": "log", "missing": True},
        "sector": ["farm", "mill", "office", "rare"],
        "paid": "boolean",
        "name": "drop",
    },
    target=["no", "yes"],
)


def people(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table without the rare sector, and labels that depend on age and sector."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n),
            "pay": np.where(rng.uniform(size=n) < 0.2, np.nan, 10 ** rng.uniform(0, 6, n)),
            "sector": rng.choice(["farm", "mill", "office"], n),
            "paid": rng.choice([True, False], n),
            "name": "someone",
        }
    )
    is_yes = (np.abs(table.age - 50) < 20) | (table.sector == "farm")
    return table, np.where(is_yes, "yes", "no")
