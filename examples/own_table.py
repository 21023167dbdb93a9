"""A table of one's own, by its schema
======================================

Fit a private classifier to a DataFrame of one's own in one step, by its public schema.

The people are made up. What is written in the schema must be public: it costs nothing.

Needs ``pandas``.
"""

import numpy as np
import pandas as pd

from skdptune.base import privacy_of, profile_of
from skdptune.linear_model import DPLogisticRegression
from skdptune.preprocessing import Schema, make_private_pipeline

rng = np.random.default_rng(0)
people = pd.DataFrame(
    {
        "age": rng.choice([*range(18, 80), None], 20_000),  # some gaps
        "income": rng.lognormal(10, 1, 20_000).round(),
        "sector": rng.choice(["farm", "office", "school", "?"], 20_000),
        "name": "somebody",
    }
)
y = np.where(np.log(people.income) + (people.sector == "farm") > 10.5, "yes", "no")

schema = Schema(
    {
        "age": {"range": (18, 100), "missing": True},
        "income": {"range": (0, 1_000_000), "scale": "log"},
        "sector": {"categories": ["farm", "office", "school"], "missing": "?"},
        "name": "drop",
    },
    target=["no", "yes"],
)
pipeline = make_private_pipeline(DPLogisticRegression(epsilon=1.0, random_state=0), schema)
print(schema)
print("\nbefore any row is read:", profile_of(pipeline, len(people)))
pipeline.fit(people[:15_000], y[:15_000])
print(privacy_of(pipeline))
print("\nfeatures:", ", ".join(pipeline[:-1].get_feature_names_out()))
print(f"test accuracy: {pipeline.score(people[15_000:], y[15_000:]):.3f}")
