"""The budget of a data set over a whole project
================================================

A ledger holds one lifetime budget for a count, a comparison of models, a search and a broken run.

Every ``privacy_`` describes only its own fit: two searches of ε = 1 on the same data cost 2, and
neither report says so. A :class:`~skdptune.ledger.PrivacyLedger` holds the budget of a data set in
a file that all notebooks, scripts and workers of a project share. Each fit reserves its cost
before it reads a record, and is refused if the cost exceeds the remaining budget.

Needs the extra ``plot``.
"""

import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_score, train_test_split

from skdptune import DPRandomSearchCV, PrivacyLedger
from skdptune.accounting import BudgetExceededError
from skdptune.inspection import LedgerDisplay
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression
from skdptune.mechanisms import laplace_profile, laplace_release

X, y = make_classification(12_000, 12, n_informative=6, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
file = Path(tempfile.mkdtemp()) / "patients.ledger"

# %%
# Monday: a file, and a count
# ---------------------------
#
# The ledger is created once. Your own releases reserve their cost by hand. Here it is the number
# of patients with a high first value, with noise for ε = 0.1.

PrivacyLedger.create(file, "patients", epsilon=3.0, delta=1e-5)

ledger = PrivacyLedger(file, "patients")  # in every notebook and script
with ledger.reserve(laplace_profile(1.0, 10.0), name="high first values"):
    count = laplace_release(np.array([float(np.sum(X[:, 0] > 1))]), 1.0, 10.0, random_state=0)
print(f"about {count[0]:.0f} of the patients")
print(f"remaining: ε = {ledger.remaining():.3f}")

# %%
# Tuesday: two kinds of models
# ----------------------------
#
# Inside ``with ledger:`` every private fit records itself, including fits by scikit-learn's own
# tools: five folds are five fits. Their exact scores are not private, and are only for those who
# may see the data.

with ledger:
    for model in (DPLogisticRegression(classes=[0, 1]), DPLinearSVC(classes=[0, 1])):
        model.set_params(epsilon=0.2, delta=1e-7, random_state=0)
        scores = cross_val_score(model, X, y, cv=5)
        print(f"{type(model).__name__:<22} {scores.mean():.3f} by five fits of ε = 0.2")
print(f"remaining: ε = {ledger.remaining():.3f}")

# %%
# Wednesday: a run breaks
# -----------------------
#
# The cost of a read stays spent, even if the run fails: somebody may have seen a result.

try:
    with ledger.reserve(laplace_profile(1.0, 5.0), name="by ward"):
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print(f"interrupted; remaining: ε = {ledger.remaining():.3f}")

# %%
# Thursday: the search
# --------------------
#
# A colleague opens the same file, and tunes. A search records its total, once.

theirs = PrivacyLedger(file, "patients")
search = DPRandomSearchCV(
    DPLogisticRegression(classes=[0, 1]), {"C": [0.01, 0.1, 1.0, 10.0]},
    epsilon=1.0, delta=1e-6, random_state=0, ledger=theirs,
).fit(X, y)  # fmt: skip
print(f"test accuracy: {search.score(X_test, y_test):.3f}")
print(f"remaining: ε = {ledger.remaining():.3f}")

# %%
# Friday: too much
# ----------------
#
# A last search of ε = 2.5 would exceed the budget. It is refused before it reads a record. A
# search within the remaining budget is accepted.

for epsilon in (2.5, 2.0):
    last = DPRandomSearchCV(
        DPLinearSVC(classes=[0, 1]), {"C": [0.01, 0.1, 1.0, 10.0]},
        epsilon=epsilon, delta=1e-6, random_state=0, ledger=ledger,
    )  # fmt: skip
    try:
        print(f"ε = {epsilon}, test accuracy: {last.fit(X, y).score(X_test, y_test):.3f}")
    except BudgetExceededError as refusal:
        print(f"ε = {epsilon}, refused: {refusal}")

# %%
# The week
# --------
#
# Costs are not simply added up: many small releases together cost less than the sum of their ε.
# The budget also holds if releases are chosen by earlier results.

for record in ledger.history():
    print(f"{record.status:<10} {record.name:<20} ε = {record.epsilon:.3f}")
ledger.report()

# %%
# The display shows confirmed releases, the broken run, which counts, and the budget. The broken
# run uses a large part for its ε: costs of Laplace noise add up less favourably than those of the
# Gaussian noise of the fits.

display = LedgerDisplay.from_ledger(ledger)
print(display.in_words)
plt.show()
