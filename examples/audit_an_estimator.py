"""Audit an estimator: is its ε true?
====================================

A proof can have a gap, and code can have a fault. An audit fits an estimator many times, half of
the times without one record, and asks how well the fits tell which it was: if better than the
claimed ε allows, the claim is wrong. Here an honest estimator is audited beside two broken ones.

Needs the extra ``plot``.
"""

# %%
# Three estimators
# ----------------
# All claim an ε of 4. The first keeps it. The second has a slip of the pen: it is fitted with
# twice the epsilon that it reports, and so with about half of the noise. The third is a mistake
# that is easily made: a scaler that learns from the records in front of a private model, which
# alone was paid for.

import textwrap

import numpy as np
from matplotlib import pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdptune.accounting import PrivacyReport
from skdptune.audit import audit_epsilon, one_run_audit
from skdptune.base import profile_of
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression


class SlipOfThePen(DPLinearSVC):
    """A classifier with less noise than it reports."""

    def fit(self, X, y):
        """Fit with twice the epsilon, and report what was asked for."""
        settings = self.get_params()
        careless = DPLinearSVC(**settings | {"epsilon": 2 * self.epsilon}).fit(X, y)
        vars(self).update(vars(careless) | settings)
        self.privacy_ = PrivacyReport(
            self.privacy_profile(*np.shape(X)), self.delta, name="SlipOfThePen"
        )
        return self


settings = {
    "solver": "output",
    "C": 0.01,
    "epsilon": 4.0,
    "classes": [0, 1],
    "data_norm": 1.0,
    "fit_intercept": False,
}
honest = DPLinearSVC(**settings)
slip = SlipOfThePen(**settings)
scaled = make_pipeline(StandardScaler(), honest)

# %%
# Many fits
# ---------
# No real records are needed: the worst data that there can be are made up, from the form of a
# table. Fits to made-up data cost nobody anything. A pipeline with a scaler of scikit-learn claims
# nothing by itself, so the claim is stated: that of its last step.

table = np.zeros((50, 3))
claim = profile_of(honest, *table.shape)
models = {"Honest": honest, "Half of the noise": slip, "Scaler not paid for": scaled}
found = {
    name: audit_epsilon(
        model, table, claim=claim, n_trials=800, statistic="response", random_state=0
    )
    for name, model in models.items()
}
for name, result in found.items():
    print(textwrap.fill(f"{name}: {result.verdict}", 72))

# %%
# A claim is a whole curve of an ε for every δ, and one point of it that is contradicted refutes
# all of it. Drawn is what was looked at: what the model says of the record that comes and goes.


def draw(results):
    """Draw audits one below the other."""
    size = (7.2, 3.3 * len(results))
    figure, axes = plt.subplots(len(results), 1, figsize=size, layout="constrained")
    for ax, (name, result) in zip(axes, results.items(), strict=True):
        result.plot(ax=ax)
        ax.set_ylabel(name)
    return figure


draw(found)
plt.show()

# %%
# No refutation is no proof. The power of an audit says which fault it would have found with a
# probability of 0.9, had it been there: how far noise would have to be from what there was.

power = found["Honest"].power
print(f"noise of at most {power.noise_factor:.2f} times the actual noise: ε = {power.epsilon:.2f}")

# %%
# Few fits, where the fault is large
# ----------------------------------
# A sequential audit bets against the claim with every pair of fits, and stops as soon as the
# claim is refuted. The claim need not be given to it: the estimator states one.

bets = audit_epsilon(
    slip, table, method="sequential", n_trials=2000, statistic="response", random_state=0
)
print(textwrap.fill(f"{bets.n_trials} fits: {bets.verdict}", 72))
bets.plot()
plt.show()

# %%
# One fit
# -------
# What takes an hour to fit is audited by a single fit, to which many made-up records are added or
# not, each by a coin of its own. Then the audit guesses the coins from what the model says of
# these records. It sees less: of the broken model nearly all of the noise is missing.

wide = np.zeros((500, 500))
model = DPLogisticRegression(solver="sgd", epsilon=4.0, classes=[0, 1])
broken = DPLogisticRegression(solver="sgd", epsilon=40.0, classes=[0, 1])
claim = profile_of(model, *wide.shape)
once = {
    "Honest": one_run_audit(model, wide, claim=claim, random_state=0),
    "Far less noise": one_run_audit(broken, wide, claim=claim, random_state=0),
}
for name, result in once.items():
    print(textwrap.fill(f"{name}: {result.verdict}", 72))

draw(once)
plt.show()
