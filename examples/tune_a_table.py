"""Tune a pipeline over a table
===============================

Tune a pipeline over a table of numbers and categories with one total (epsilon, delta).

What is public is written down: the range of each number and the categories of each word. What
is not (means and deviations) is learned privately, inside of the search, and is part of its cost.
The people are made up.

Needs ``pandas``.
"""

import numpy as np
import pandas as pd
from scipy.stats import loguniform
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skdptune import DPRandomSearchCV
from skdptune.linear_model import DPLogisticRegression
from skdptune.preprocessing import DPStandardScaler, RowNormClipper

SECTORS = ["farm", "factory", "office", "school"]


def people(n: int) -> tuple[pd.DataFrame, pd.Series]:
    """Return a table of people and whether they earn much."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "hours": rng.normal(38, 9, n).clip(0, 80).round(),
            "sector": rng.choice(SECTORS, n, p=[0.1, 0.3, 0.4, 0.2]),
        }
    )
    pay = 0.04 * (table.age - 40) + 0.1 * (table.hours - 38)
    pay += table.sector.map({"farm": -1.0, "factory": 0.0, "office": 1.0, "school": 0.3})
    return table, (pay + rng.logistic(0, 0.6, n) > 1.0).map({True: "much", False: "little"})


X, y = people(20_000)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)

columns = ColumnTransformer(
    [
        # Its epsilon is a weight: how much of the whole the scaling gets beside the training.
        ("numbers", DPStandardScaler(bounds=([18, 0], [80, 80]), epsilon=0.1), ["age", "hours"]),
        # Known categories, and no error for others: an encoder that learns nothing.
        (
            "words",
            OneHotEncoder(categories=[SECTORS], handle_unknown="ignore", sparse_output=False),
            ["sector"],
        ),
    ]
)
model = DPLogisticRegression(solver="sgd", batch_size=0.02, classes=["little", "much"])
pipeline = make_pipeline(columns, RowNormClipper(3.0), model)
search = DPRandomSearchCV(
    pipeline,
    {
        "dplogisticregression__learning_rate": loguniform(0.1, 10.0),
        "dplogisticregression__max_grad_norm": loguniform(0.1, 5.0),
    },
    epsilon=1.0,
    delta=1e-6,
    random_state=0,  # for a page that reads the same twice; leave it out for real noise
)

print("Before any row is read:")
print(search.plan(*X.shape))

search.fit(X, y)
print("\nAfter the fit:")
print(search.privacy_)
print("\nchosen:", {name: round(float(value), 3) for name, value in search.best_params_.items()})

most = DummyClassifier().fit(X, y).score(X_test, y_test)
print(f"\ntest accuracy: {search.score(X_test, y_test):.3f}; of the commonest answer: {most:.3f}")
