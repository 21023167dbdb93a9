"""Rounds of the doubling threshold search
==========================================

How a search that only asks "is any candidate better than this?" finds a good candidate, and how
its noise limits it.

Ding, Wu, Xu and Pan propose it in *Constant-overhead Differentially Private Hyperparameter
Tuning*: a threshold rises above the best utility so far. The step is doubled after each success,
and halved after each failure. The search needs few answers, for any number of candidates.

Needs ``pandas`` and the extra ``plot``.
"""

import math

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skdptune import DoublingThresholdSearchCV
from skdptune.accounting import doubling_threshold
from skdptune.inspection import DoublingRoundsDisplay
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import DoublingThreshold
from skdptune.model_selection import ThresholdRounds
from skdptune.preprocessing import Schema, TableEncoder, make_private_pipeline

# %%
# A search on data
# ----------------
#
# Whether somebody comes depends on the hour, with a rush every six hours. The best number of
# intervals of the hour is unknown. Candidates are scored on 100 disjoint parts of the rows, so one
# row changes only the score of one part. Models trained on the parts are not shown, so they need
# not be private, and a round costs the same for 3 candidates as for 300.

rng = np.random.default_rng(0)
hours = pd.DataFrame({"hour": rng.uniform(0.0, 24.0, 16_000)})
odds = 3.0 * np.sin(2.0 * np.pi * hours["hour"] / 6.0)
comes = np.where(rng.uniform(size=len(hours)) < 1.0 / (1.0 + np.exp(-odds)), "yes", "no")
schema = Schema({"hour": (0, 24)}, target=["no", "yes"])

search = DoublingThresholdSearchCV(
    make_private_pipeline(DPLogisticRegression(), schema),
    {"tableencoder__n_knots": [3, 5, 9, 13, 17, 25]},
    epsilon=4.0,
    delta=1e-6,
    random_state=0,
    strategy=ThresholdRounds(
        n_partitions=100,
        tuning_estimator=make_pipeline(TableEncoder(schema), LogisticRegression()),
        granularity=0.05,
        initial_utility=0.5,
    ),
).fit(hours, comes)
print("chosen:", search.best_params_)
print(f"{len(search.trace_)} rounds, cost ε = {search.privacy_.epsilon:.3f} in all")

# %%
# The rounds are paid for, and may be shown:

DoublingRoundsDisplay.from_search(search)
plt.show()

# %%
# Many searches, and how many rounds they take
# --------------------------------------------
#
# Now with made-up utilities of 100 candidates, uniform between 0 and 1, and the papers' noise:
# drawn anew in each round, of scale 2 / (kε) on the threshold and 4 / (kε) on the candidates, for
# k parts and a cost of ε per round. The number of rounds depends on n, the number of levels
# between the start and the best.

MANY_ROUNDS = 60


def rounds_of(utilities, strength: float, seed: int, granularity: float = 0.01):
    """Return how many rounds a search takes for kε = strength, and the utility that it finds."""
    halves = 2 + math.ceil(3 * (MANY_ROUNDS - 1) / 2)
    noise = {"sensitivity": 1.0 / strength, "noise": "per-round", "epsilon": halves / 2}
    if math.isinf(strength):
        noise = {"sensitivity": 1.0, "noise": None}
    search = DoublingThreshold(
        granularity=granularity,
        max_rounds=None if math.isinf(strength) else MANY_ROUNDS,
        random_state=seed,
        **noise,
    )
    found, chosen = 0, 0.0
    while not search.finished:
        index = search.propose(utilities)
        found, chosen = found + 1, chosen if index is None else float(utilities[index])
    return found, chosen


strengths = (5.0, 10.0, 100.0, math.inf)
names = [f"kε = {strength:g}" if math.isfinite(strength) else "no noise" for strength in strengths]
distances = np.unique(np.geomspace(8, 900, 9).astype(int))
means = {}
for strength, name in zip(strengths, names, strict=True):
    means[name] = []
    for n in distances:
        counts = []
        for seed in range(10):
            utilities = np.random.default_rng(seed).random(100)
            counts.append(rounds_of(utilities, strength, seed, utilities.max() / n)[0])
        means[name].append(np.mean(counts))

# %%
# Results and costs
# -----------------
#
# Fidelity is the utility of the chosen candidate divided by the best one. For k = 100 parts the
# table shows the true cost of the rounds, bounded beforehand: a search that nearly finds the best
# candidate, with kε = 100, is expensive. With more noise a search ends soon, since noise lifts the
# threshold to a utility of 1, which no candidate exceeds. For a fixed list of candidates
# :class:`~skdptune.model_selection.DPGridSearchCV` does better.

utilities = np.random.default_rng(2).random(100)
rows = {}
for strength, name in zip(strengths, names, strict=True):
    ends = [rounds_of(utilities, strength, seed) for seed in range(100)]
    most = max(count for count, _ in ends)
    cost = 0.0
    if math.isfinite(strength):
        cost = doubling_threshold(strength / 100, max_rounds=most).epsilon(1e-5)
    fidelity = np.mean([chosen for _, chosen in ends]) / utilities.max()
    rows[name] = {"rounds": np.mean([count for count, _ in ends]), "fidelity": fidelity}
    rows[name] |= {"ε of all rounds, k = 100": cost if math.isfinite(strength) else math.inf}
table = pd.DataFrame(rows).T.round(2)
print(table)
table

# %%
# The number of rounds grows with the logarithm of the distance, and is about three times the
# logarithm without noise. This is the papers' result; it does not say that these rounds find good
# candidates.

looks = (
    ("#D55E00", "s", ":"),
    ("#E69F00", "D", "--"),
    ("#0072B2", "o", "-."),
    ("#222222", "^", "-"),
)
figure, ax = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
for (name, rounds), (colour, marker, dashes) in zip(means.items(), looks, strict=True):
    ax.plot(distances, rounds, dashes, color=colour, marker=marker, label=name)
for multiple in (1, 3, 5):
    ax.plot(distances, multiple * np.log2(distances), color="#BBBBBB", linewidth=1, zorder=0)
    ax.annotate(f"{multiple} log₂ n", (distances[-1], multiple * np.log2(distances[-1])), (4, -3),
                textcoords="offset points", color="#555555")  # fmt: skip
ax.set_xscale("log")
ax.set(xlabel="levels between start and best, n", ylabel="rounds", xlim=(None, 2000))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
