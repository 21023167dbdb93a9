"""Quick start: tune a private classifier
=========================================

Tune and train a classifier with one total (ε, δ), and see what tuning gains.

Made-up visits to a hospital take the place of sensitive rows. A long wait depends on the hour:
there is a rush at 8 and another at 18. The encoder cuts each number into pieces. Its default of
five, one every six hours, cannot show two rushes of an hour or two. The best number of pieces is
not known beforehand: the search finds a good one within the same budget.

Needs ``pandas``. The picture at the end is drawn if matplotlib is installed.
"""

from importlib.util import find_spec

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from skdptune import DPGridSearchCV, config_context
from skdptune.accounting import calibrate
from skdptune.base import profile_of
from skdptune.linear_model import DPLogisticRegression
from skdptune.preprocessing import Schema, TableEncoder, make_private_pipeline

EPSILON, DELTA, SEED = 1.0, 1e-5, 0  # a seed, for a page that reads the same twice: leave it out
PIECES = list(range(3, 27, 2))


def chance(hour: np.ndarray, age: np.ndarray, pressure: np.ndarray, ward: np.ndarray):
    """Return the probability of a long wait, which is unknown in practice."""
    rush = np.exp(-(((hour - 8.0) / 1.5) ** 2)) + np.exp(-(((hour - 18.0) / 1.5) ** 2))
    logit = 8.0 * rush - 7.2 + 2.4 * ((age - 50.0) / 30.0) ** 2
    logit += np.abs(pressure - 120.0) / 10.0 + (ward == "surgery")
    return 1.0 / (1.0 + np.exp(-logit))


def visits(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Return visits, and whether the wait was long."""
    hour, age = rng.uniform(0.0, 24.0, n), rng.normal(50.0, 22.0, n).clip(0.0, 100.0)
    pressure = rng.normal(125.0, 22.0, n)
    ward = rng.choice(["surgery", "medicine", "children"], n)
    table = pd.DataFrame({"hour": hour, "age": age, "pressure": pressure, "ward": ward})
    waits = rng.uniform(size=n) < chance(hour, age, pressure, ward)
    return table, np.where(waits, "long", "short")


rng = np.random.default_rng(SEED)
(X, y), (X_test, y_test) = visits(15_000, rng), visits(20_000, rng)
X.head()

# %%
# A private model
# ---------------
#
# Ranges and categories come from common knowledge: computing them from the rows would cost
# privacy.

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

# %%
# The search, before and after it reads the rows
# ----------------------------------------------
#
# The search tries what the model suggests, here more pieces and other steps, and shows all noisy
# scores. The plan follows from public numbers. Its first row is this search, the second row is a
# single fit without tuning, and the other rows are alternatives. The notes say how much better a
# candidate must score to replace the estimator's own values.

search = DPGridSearchCV(model, epsilon=EPSILON, delta=DELTA, random_state=SEED)
print("Before any row is read:")
print(search.plan(*X.shape, compare=True))

# %%
# ``privacy_`` states the cost of everything that the fitted search shows.

search.fit(X, y)
print("\nAfter the fit:")
print(search.privacy_)

# %%
# The gain of tuning
# ------------------
#
# For comparison: the same model without tuning; with scikit-learn's grid search, whose fits (five
# folds of every candidate, and the final one) all read the rows; and without privacy.

n_fits = 5 * len(PIECES) + 1


def private(pieces: int, epsilon: float) -> Pipeline:
    """Return the model with a separate budget."""
    settings = {"epsilon": epsilon, "delta": DELTA, "random_state": SEED}
    settings = {f"dplogisticregression__{name}": value for name, value in settings.items()}
    return clone(model).set_params(tableencoder__n_knots=pieces, **settings)


def accuracy(fitted: Pipeline | DPGridSearchCV) -> float:
    """Return the share of new visits that are classified correctly."""
    return fitted.score(X_test, y_test)


each = calibrate(
    lambda epsilon: profile_of(private(5, epsilon), *X.shape) * n_fits,
    EPSILON,
    DELTA,
    parameter="budget",
).value
with config_context(ledger=False):  # made-up visits: nobody's privacy adds up
    default = private(5, EPSILON).fit(X, y)
    naive = max(accuracy(private(pieces, each).fit(X, y)) for pieces in PIECES)
tuned, untuned = accuracy(search), accuracy(default)
open_model = make_pipeline(TableEncoder(schema, 13), LogisticRegression(max_iter=1000)).fit(X, y)
chosen = search.best_params_["tableencoder__n_knots"]

print(f"\ntest accuracy at ε = {EPSILON:g} in all")
print(f"  tuned: {chosen} pieces                      {tuned:.3f}")
print(f"  untuned: 5 pieces, the default        {untuned:.3f}")
print(f"  GridSearchCV, {n_fits} fits of ε = {each:.2f}   {naive:.3f}  (if it chose the best)")
print(f"  no privacy at all: 13 pieces          {accuracy(open_model):.3f}")
print(f"The search returned {chosen} pieces, and gained {100.0 * (tuned - untuned):.1f} points.")

# %%
# With a bend every six hours, the default model blurs both rushes. With a bend every three hours,
# a model comes close to them.

if find_spec("matplotlib") is not None:
    from matplotlib import pyplot as plt

    hours = np.linspace(0.0, 24.0, 97)
    everybody = pd.concat([X_test[:500].assign(hour=hour) for hour in hours])
    figure, ax = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
    truth = chance(*(everybody[name].to_numpy() for name in everybody))
    ax.fill_between(hours, truth.reshape(97, -1).mean(axis=1), color="#DDDDDD", label="truth")
    looks = ((search, "-", "#0072B2", f"tuned, {chosen} pieces"),
             (default, "--", "#D55E00", "untuned, 5 pieces"))  # fmt: skip
    for fitted, dashes, colour, name in looks:
        predicted = fitted.predict_proba(everybody)[:, list(fitted.classes_).index("long")]
        by_hour = predicted.reshape(97, -1).mean(axis=1)
        ax.plot(hours, by_hour, dashes, color=colour, linewidth=2, label=name)
    ax.set(xlabel="hour of the visit", ylabel="probability of a long wait")
    ax.set(xlim=(0, 24), ylim=(0, 1), xticks=range(0, 25, 3))
    ax.set_title(f"Two rushes, seen at ε = {EPSILON:g} in all", loc="left")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    plt.show()
