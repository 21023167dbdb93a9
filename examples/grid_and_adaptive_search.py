"""See every score: a full table, and an adaptive search
========================================================

All noisy scores of a grid as a heat map, and those of an adaptive search by optuna's own plots.

:class:`~skdptune.model_selection.DPGridSearchCV` fits and scores every candidate with much noise,
shows all scores, and fits the chosen one with nearly all of the budget.
:class:`~skdptune.model_selection.DPAdaptiveSearchCV` does the same for ranges of values: a sampler
of optuna sees the noisy scores so far, which are paid for, and proposes the next candidate.

Needs the extras ``plot`` and ``pareto``.
"""

import warnings

import numpy as np
import optuna
from matplotlib import pyplot as plt
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skdptune import DPAdaptiveSearchCV, DPGridSearchCV
from skdptune.accounting import PrivacyProfile
from skdptune.base import register_profile
from skdptune.inspection import GridScoresDisplay
from skdptune.linear_model import DPLogisticRegression

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (18_000, 2))
chance = 1 / (1 + np.exp(-6 * np.sin(5 * X[:, 0] + 1) * np.cos(4 * X[:, 1])))
y = (rng.uniform(size=len(X)) < chance).astype(int)
X, X_test, y, y_test, _, chance_test = train_test_split(
    X, y, chance, test_size=1 / 3, random_state=0
)

# %%
# A model with two parameters that matter
# ---------------------------------------
#
# The classes lie on a bent chessboard, which a linear model cannot separate. Random waves of the
# columns make this possible, if there are enough of them, and if they are neither too long nor too
# short (``gamma``). scikit-learn's sampler of such waves reads only the number of columns if
# ``gamma`` is a number. We have checked this, so we register it, and it can be part of a private
# pipeline. The norm of its rows is at most the square root of 2, which is also known beforehand.


@register_profile(RBFSampler)
def cost_of_waves(sampler, n_samples, n_features):
    """Return the cost of a step that learns nothing from the rows."""
    if not isinstance(sampler.gamma, (int, float)):
        raise ValueError("gamma must be a number; 'scale' is learned from the rows.")
    return PrivacyProfile.pure(0.0)


model = make_pipeline(
    RBFSampler(gamma=1, n_components=50, random_state=0),
    DPLogisticRegression(classes=[0, 1], data_norm=2**0.5),
)
budget = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}  # a seed only for this page

# %%
# The full table of a grid
# ------------------------

grid = DPGridSearchCV(
    model,
    {
        "rbfsampler__gamma": [0.1, 0.3, 1, 3, 10, 30, 100],
        "rbfsampler__n_components": [20, 50, 100],
    },
    **budget,
).fit(X, y)
print("chosen of the grid:", grid.best_params_)
print(
    f"cost: {grid.privacy_.epsilon:.3f} in all, for {len(grid.cv_results_['params'])} candidates"
)
GridScoresDisplay.from_search(grid)
plt.show()

# %%
# All of these scores may be published, and any rule may choose by them. The runs have much noise,
# so their scores are worse than those of the final model; only their order matters.
#
# An adaptive search
# ------------------
#
# Ranges instead of lists: the sampler returns to regions with good scores.

adaptive = DPAdaptiveSearchCV(
    model,
    {"rbfsampler__gamma": (0.1, 100.0, "log"), "rbfsampler__n_components": (20, 100, "log")},
    n_trials=20,
    **budget,
).fit(X, y)
print("chosen by the adaptive search:", adaptive.best_params_)
print(
    f"cost: {adaptive.privacy_.epsilon:.3f} in all, for {len(adaptive.study_.trials)} candidates"
)

# %%
# ``study_`` is a study of optuna, and contains only released values. So all of its plots may be
# shown: the order of trials, and the scores over both parameters.

with plt.style.context("default"), warnings.catch_warnings():
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    axes = optuna.visualization.matplotlib.plot_slice(
        adaptive.study_, target_name="noisy accuracy"
    )
    axes[1].set_xticks([20, 50, 100], [20, 50, 100])
    axes[1].minorticks_off()
    axes[0].figure.set_size_inches(9, 4.5)
    axes[0].figure.suptitle("The scores over each parameter")
    plt.show()

# %%
# The gain
# --------
#
# All three models have the same ε. The right ``gamma`` could not be known beforehand, and finding
# it gave the final fit less than 5 % more noise. It gained some eight points by the grid, and nine
# by the adaptive search, which can try values between those of a grid.

untuned = clone(model).set_params(
    **{f"dplogisticregression__{name}": value for name, value in budget.items()}
)
scores = {
    "untuned": untuned.fit(X, y).score(X_test, y_test),
    "full table of a grid": grid.score(X_test, y_test),
    "adaptive search": adaptive.score(X_test, y_test),
}
best = np.mean((chance_test > 0.5) == y_test)
print("test accuracy at ε = 1 in all")
for name, score in scores.items():
    print(f"  {name:<22} {score:.3f}")
print(f"  {'the true classes':<22} {best:.3f}")

axis = np.linspace(-1, 1, 120)
plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained", sharey=True)
for ax, (name, found) in zip(axes, {"untuned": untuned, "tuned": adaptive}.items(), strict=False):
    chances = found.predict_proba(plane)[:, 1].reshape(120, 120)
    ax.imshow(chances, extent=(-1, 1, -1, 1), origin="lower", cmap="cividis", vmin=0, vmax=1)
    key = "adaptive search" if name == "tuned" else name
    ax.set_title(f"{name}: accuracy {scores[key]:.3f}", loc="left")
truth = 1 / (1 + np.exp(-6 * np.sin(5 * plane[:, 0] + 1) * np.cos(4 * plane[:, 1])))
image = axes[2].imshow(
    truth.reshape(120, 120), extent=(-1, 1, -1, 1), origin="lower", cmap="cividis", vmin=0, vmax=1
)
axes[2].set_title(f"the truth: accuracy {best:.3f}", loc="left")
figure.colorbar(image, ax=axes, label="chance of class 1", shrink=0.8)
plt.show()
