"""Quick start: tune a private classifier
=========================================

Tune and train a private classifier with one total (epsilon, delta), and see what it gains.

Made-up visits to a hospital take the place of sensitive rows. Who waits long depends on the hour:
there is a rush at 8 and another at 18. The encoder cuts each number into pieces; its default of
five, one every six hours, cannot show two rushes of an hour or two. How many pieces do nobody
knows beforehand: the search finds it, out of the same budget.

Needs ``pandas``.
"""

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from skdptune import DPRandomSearchCV
from skdptune.accounting import calibrate
from skdptune.base import profile_of
from skdptune.linear_model import DPLogisticRegression
from skdptune.preprocessing import Schema, TableEncoder, make_private_pipeline

EPSILON, DELTA, SEED = 1.0, 1e-5, 0  # a seed, for a page that reads the same twice: leave it out
PIECES = list(range(3, 27, 2))


def visits(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Return visits, and whether the wait was long."""
    hour, age = rng.uniform(0.0, 24.0, n), rng.normal(50.0, 22.0, n).clip(0.0, 100.0)
    pressure = rng.normal(125.0, 22.0, n)
    ward = rng.choice(["surgery", "medicine", "children"], n)
    rush = np.exp(-(((hour - 8.0) / 1.5) ** 2)) + np.exp(-(((hour - 18.0) / 1.5) ** 2))
    logit = 8.0 * rush - 7.2 + 2.4 * ((age - 50.0) / 30.0) ** 2
    logit += np.abs(pressure - 120.0) / 10.0 + (ward == "surgery")
    waits = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-logit))
    table = pd.DataFrame({"hour": hour, "age": age, "pressure": pressure, "ward": ward})
    return table, np.where(waits, "long", "short")


# Ranges and categories from common knowledge: reading them off the rows would cost privacy.
schema = Schema(
    {
        "hour": (0, 24),
        "age": (0, 100),
        "pressure": (60, 220),
        "ward": {"categories": ["surgery", "medicine", "children"]},
    },
    target=["long", "short"],
)
model = make_private_pipeline(DPLogisticRegression(), schema)
rng = np.random.default_rng(SEED)
(X, y), (X_test, y_test) = visits(3_000, rng), visits(20_000, rng)

search = DPRandomSearchCV(
    model,
    {"tableencoder__n_knots": PIECES},
    n_iter=20,
    epsilon=EPSILON,
    delta=DELTA,
    verbose=1,
    random_state=SEED,
)
print("Before any row is read:")
print(search.plan(*X.shape))
search.fit(X, y)
print("\nAfter the fit:")
print(search.privacy_)

# For comparison: the same without tuning; by scikit-learn's grid search, each of whose fits (five
# folds of every candidate, and the last one) reads the rows; and without privacy.
n_fits = 5 * len(PIECES) + 1


def private(pieces: int, epsilon: float) -> Pipeline:
    """Return the model with a budget of its own."""
    settings = {"epsilon": epsilon, "delta": DELTA, "random_state": SEED}
    settings = {f"dplogisticregression__{name}": value for name, value in settings.items()}
    return clone(model).set_params(tableencoder__n_knots=pieces, **settings)


def accuracy(fitted: Pipeline | DPRandomSearchCV) -> float:
    """Return the share of new visits that are told right."""
    return fitted.score(X_test, y_test)


each = calibrate(
    lambda epsilon: profile_of(private(5, epsilon), *X.shape) * n_fits,
    EPSILON,
    DELTA,
    parameter="budget",
).value
tuned, untuned = accuracy(search), accuracy(private(5, EPSILON).fit(X, y))
naive = max(accuracy(private(pieces, each).fit(X, y)) for pieces in PIECES)
open_model = make_pipeline(TableEncoder(schema, 13), LogisticRegression(max_iter=1000)).fit(X, y)
chosen = search.best_params_["tableencoder__n_knots"]

print(f"\ntest accuracy at ε = {EPSILON:g} in all")
print(f"  tuned: {chosen} pieces                      {tuned:.3f}")
print(f"  untuned: 5 pieces, the default        {untuned:.3f}")
print(f"  GridSearchCV, {n_fits} fits of ε = {each:.2f}   {naive:.3f}  (if it chose the best)")
print(f"  no privacy at all: 13 pieces          {accuracy(open_model):.3f}")
print(f"Tuning gained {100.0 * (tuned - untuned):.1f} points: {chosen} pieces show both rushes.")
