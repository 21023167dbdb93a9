"""Explainable boosting machines in a search
============================================

An interpretable model: predictions add up one curve for each column. The private boosting machine
of this package is tuned in a search, and so is that of interpret-core, after its cost is
registered. Finally, their curves are compared with the true effects.

Needs the extras ``ebm`` and ``plot``, and ``pandas``.
"""

# %%
# A table
# -------
# Made-up members of an insurance. Claims depend on the age in both directions, on the distance to
# work up to a point, and on the kind of car. One kind of car is rare.

import numpy as np
import pandas as pd
from interpret.privacy import DPExplainableBoostingClassifier as InterpretClassifier
from matplotlib import pyplot as plt
from scipy.special import expit, logit
from sklearn.pipeline import make_pipeline

from skdptune import DPRandomSearchCV, RandomRuns
from skdptune.base import register_profile
from skdptune.ensemble import DPExplainableBoostingClassifier
from skdptune.mechanisms import noise_for_budget
from skdptune.metrics import neg_log_loss
from skdptune.preprocessing import Schema, TableEncoder

CARS = ["small", "family", "sports", "oldtimer"]
EFFECT_OF_CARS = {"small": -0.6, "family": -0.3, "sports": 1.2, "oldtimer": 0.4}


def effect_of_age(age):
    """Return what an age adds to the log odds of a claim."""
    return 2.2 * ((age - 50) / 32) ** 2 - 0.8


def effect_of_distance(distance):
    """Return what a distance to work adds."""
    return 1.6 * np.minimum(distance, 30) / 30 - 0.9


def members(n, seed):
    """Return a table, and whether somebody claims."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.uniform(18, 82, n),
            "distance": rng.uniform(0, 60, n),
            "car": rng.choice(CARS, n, p=[0.45, 0.44, 0.10, 0.01]),
        }
    )
    odds = effect_of_age(table["age"]) + effect_of_distance(table["distance"])
    return table, rng.uniform(size=n) < expit(odds + table["car"].map(EFFECT_OF_CARS))


X, y = members(6_000, seed=0)
X_public, y_public = members(2_000, seed=1)  # of people who have agreed to be shown
X_test, y_test = members(20_000, seed=2)
print(X.head())

# %%
# What is public
# --------------
# The ranges and the kinds of cars are known without a look at the table.

schema = Schema({"age": (18, 82), "distance": (0, 60), "car": CARS}, target=[False, True])

# %%
# The machine of this package
# ---------------------------
# It takes the table as it is, with the schema. The search tries leaves of trees and numbers of
# bins; the learning rate follows from public numbers. Candidates are scored on the public rows, by
# the log loss, since probabilities should be right and not only labels.

SETTINGS = {
    "epsilon": 1.0,
    "delta": 1e-5,
    "scoring": neg_log_loss(4.0),
    "strategy": RandomRuns(tuning_fraction=None),
    "random_state": 0,
}


def report(search):
    """Print what a search has found."""
    accuracy = np.mean(search.predict(X_test) == y_test)
    loss = -search.score(X_test, y_test)
    print(search.best_params_)
    print(f"test accuracy {accuracy:.3f}, log loss {loss:.3f}")


ours = DPRandomSearchCV(
    DPExplainableBoostingClassifier(schema=schema),
    {"max_leaves": [2, 3, 5], "max_bins": [16, 32]},
    **SETTINGS,
)
ours.fit(X, y, X_val=X_public, y_val=y_public)
report(ours)
print(ours.privacy_)

# %%
# That of interpret-core
# ----------------------
# Another library's model gets its cost by :func:`~skdptune.base.register_profile`. A fit makes two
# kinds of Gaussian releases, for bins and for boosting, and splits epsilon and delta between them.
# Settings that the cost does not cover are refused: without types and ranges a fit computes them
# from the records.
#
# Categorical columns need care. In a ``"nominal"`` column a fit only counts the categories that
# occur in records: a count of old-timers shows that somebody has one, so a rare category reveals a
# record, even if all categories are known. The remedy is to pass only numbers.
# :class:`~skdptune.preprocessing.TableEncoder` creates a column of zeros and ones for each
# category of the schema, whether or not a record has it, scales numbers to [-1, 1], and handles
# missing values and unknown categories.


@register_profile(InterpretClassifier)
def cost_of_interpret(model, n_samples, n_features):
    """Return the cost of a fit: two Gaussian releases that share epsilon and delta."""
    types, bounds = model.feature_types, model.privacy_bounds
    if types is None or set(types) != {"continuous"} or bounds is None or len(bounds) < len(types):
        raise ValueError("feature_types must all be 'continuous', each with privacy_bounds.")
    if model.composition != "gdp":
        raise ValueError("composition must be 'gdp'.")
    share = model.bin_budget_frac
    _, bins = noise_for_budget(model.epsilon * share, model.delta / 2)
    _, boosting = noise_for_budget(model.epsilon * (1 - share), model.delta / 2)
    return bins + boosting


encoder = TableEncoder(schema, n_knots=None)
width = encoder.n_features_out
interprets = make_pipeline(
    encoder,
    InterpretClassifier(
        feature_types=["continuous"] * width,
        privacy_bounds={column: (-1.0, 1.0) for column in range(width)},
        n_jobs=1,
    ),
)

# %%
# A fit shows the number of its records, so this number must be public. Therefore no candidate may
# be fitted on a random part of the records, whose size is secret. Public validation data and
# ``tuning_fraction=None`` ensure this.

theirs = DPRandomSearchCV(
    interprets,
    {"dpexplainableboostingclassifier__learning_rate": [0.01, 0.03, 0.1, 0.3]},
    **SETTINGS,
)
theirs.fit(X, y, X_val=X_public, y_val=y_public)
report(theirs)
print(theirs.privacy_)

# %%
# The curves
# ----------
# Predictions are sums, so the contribution of a column is the change of the log odds along it.
# Dashes show the true effects of the made-up table. Cars with the same height share a bin: the
# noise of a rare kind would exceed its information.


def curve(model, column, values):
    """Return the contribution of a column to the log odds, minus its mean."""
    rows = pd.concat([X_test.iloc[:1]] * len(values), ignore_index=True)
    rows[column] = values
    odds = logit(model.predict_proba(rows)[:, 1])
    return odds - odds.mean()


grids = {"age": np.linspace(18, 82, 200), "distance": np.linspace(0, 60, 200), "car": CARS}
truths = {
    "age": effect_of_age(grids["age"]),
    "distance": effect_of_distance(grids["distance"]),
    "car": np.array([EFFECT_OF_CARS[car] for car in CARS]),
}
looks = {"skdptune": (ours, "#0072B2", "o"), "interpret-core": (theirs, "#D55E00", "s")}
figure, axes = plt.subplots(1, 3, figsize=(10.4, 4.0), layout="constrained", sharey=True)
for ax, (column, values) in zip(axes, grids.items(), strict=True):
    is_words = column == "car"
    truth = truths[column] - truths[column].mean()
    ax.plot(values, truth, "_" if is_words else "--", ms=24, color="gray", label="truth")
    for shift, (name, (model, colour, marker)) in zip((-0.1, 0.1), looks.items(), strict=True):
        places = np.arange(len(CARS)) + shift if is_words else values
        style = {"marker": marker, "ls": "none"} if is_words else {"drawstyle": "steps-mid"}
        ax.plot(places, curve(model, column, values), color=colour, label=name, **style)
    ax.set(xlabel=column)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("added to the log odds of a claim")
axes[1].legend(frameon=False)
plt.show()
