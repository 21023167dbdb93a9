"""Audit an estimator: is its ε true?
=====================================

A proof can have a gap, and code can have a fault. An audit fits an estimator many times, half of
the times without one record, and measures how well the fits reveal whether the record was there.
If they reveal more than the claimed ε allows, the claim is wrong. Here an honest estimator and two
broken ones are audited.

Needs the extra ``plot``.
"""

# %%
# Three estimators
# ----------------
# All claim an ε of 4. The first keeps it. The second has a typo: it is fitted with twice the
# epsilon that it reports, and so with about half of the noise. The third is a common mistake: a
# scaler that learns from the records, before a private model. Only the model was paid for.

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
        """Fit with twice the epsilon, and report the requested one."""
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
# No real records are needed: the audit makes up the worst possible data from the form of a table.
# Fits to made-up data cost no privacy. A pipeline with a scaler of scikit-learn states no claim,
# so we pass the claim of its last step.

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
# A claim is a whole curve with an ε for every δ. If one point is contradicted, the claim is
# refuted. The plot shows the statistic: the model's response to the record that is added or
# removed.


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
# The absence of a refutation is not a proof. The power of an audit says which fault it would have
# detected with a probability of 0.9: how much smaller the noise would have to be.

power = found["Honest"].power
print(f"noise of at most {power.noise_factor:.2f} times the actual noise: ε = {power.epsilon:.2f}")

# %%
# Few fits, if the fault is large
# -------------------------------
# A sequential audit bets against the claim with every pair of fits, and stops as soon as the
# claim is refuted. The claim need not be passed here: the estimator states one.

bets = audit_epsilon(
    slip, table, method="sequential", n_trials=2000, statistic="response", random_state=0
)
print(textwrap.fill(f"{bets.n_trials} fits: {bets.verdict}", 72))
bets.plot()
plt.show()

# %%
# One fit
# -------
# If a fit takes an hour, it can be audited by a single fit. Each of many made-up records is added
# or not, by its own coin. The audit then guesses the coins from the model's response to these
# records. It detects only larger faults: the broken model here lacks nearly all of the noise.

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
