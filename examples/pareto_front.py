"""Which accuracy for which budget: a Pareto front
==================================================

The best accuracy for every ε at once, and models for a chosen ε.

The handwritten digits of scikit-learn take the place of sensitive rows. Which ε to choose is not
known yet, so :class:`~skdptune.model_selection.DParetoSearchCV` finds the best accuracy for every
ε: over noise, clipping, learning rate, epochs and batch size.

Needs the extras ``pareto`` and ``plot``.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skdptune import DParetoSearchCV
from skdptune.inspection import ParetoFrontDisplay
from skdptune.linear_model import DPLogisticRegression

X, y = load_digits(return_X_y=True)
# Pixels have a public range, 0 to 16: scaling them needs no look at the data.
X, X_test, y, y_test = train_test_split(X / 8.0 - 1.0, y, random_state=0, stratify=y)

# %%
# The search
# ----------
#
# Gaussian processes model ε and error over the parameters, and each evaluation goes where the
# front is likely to gain most. The scores are exact, so the front is not private and only for
# those who may see the data: ``privacy_`` says so. ``release=2.0`` would make it private, for an ε
# of 2.

search = DParetoSearchCV(
    DPLogisticRegression(solver="sgd", classes=range(10)),
    {
        "noise_multiplier": (0.5, 20.0, "log"),
        "max_grad_norm": (0.1, 5.0, "log"),
        "learning_rate": (0.05, 20.0, "log"),
        "epochs": (1, 40),
        "batch_size": (0.02, 0.3, "log"),
    },
    n_iter=32,
    cv=5,
    random_state=0,  # for the same output each time; leave it out for real noise
).fit(X, y)
print(f"{len(search.evaluations_)} evaluations, {len(search.pareto_front_)} on the front")
front = search.pareto_front_.drop(columns="params").round(3)
front

# %%
# Models for an ε, or for an error
# --------------------------------
#
# Between the evaluations the model of the front predicts which parameters are best. Their ε is
# computed and never exceeds the request; the error is a prediction. The ε covers only the fit, and
# not the choice of its parameters by the front.

ceiling = LogisticRegression(max_iter=1000).fit(X, y).score(X_test, y_test)
print(f"test accuracy without privacy: {ceiling:.3f}")
for wish in ({"epsilon": 1.0}, {"epsilon": 4.0}, {"error": 0.1}):
    model = search.best_estimator_for(X, y, **wish, random_state=0)
    (name, bound), cost = *wish.items(), model.privacy_.epsilon
    score = model.score(X_test, y_test)
    print(f"wanted {name} ≤ {bound:<4g} cost ε = {cost:.2f}, test accuracy {score:.3f}")

# %%
# The front
# ---------
#
# Each dot is an evaluation, and the line is the best evaluation up to an ε. Below ε = 0.5 a
# slightly larger ε gains much accuracy, above 3 only little.

display = ParetoFrontDisplay.from_search(search, y="utility", annotate=(1.0, 4.0))
display.ax_.axhline(ceiling, color="#666666", linewidth=1, linestyle="--", label="without privacy")
display.ax_.legend(frameon=False, loc="lower right")
display.ax_.set_ylabel("accuracy")
display.ax_.set_title("Digits: what accuracy an ε buys", loc="left")
plt.show()
