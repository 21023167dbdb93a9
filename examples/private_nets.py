"""Neural networks, many at once and tuned on a tenth
=====================================================

A small net learns handwritten digits by noisy gradient descent. It is compared with a linear
model, then eight nets are trained at once. Finally, the net is tuned within one budget in two
ways, which differ in accuracy and in work.

Needs the extras ``nn`` and ``plot``.
"""

# %%
# What is public
# --------------
# A pixel lies between 0 and 16, and a digit is one of ten: both are known without a look at the
# records. So scaling costs nothing, and the labels are declared instead of taken from the data.
# Candidates are scored on public images.
#
# Seeds make this page reproducible. Omit them if the noise should protect somebody.

import time

import numpy as np
import torch
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skdptune import DPRandomSearchCV
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import RandomRuns
from skdptune.neural_network import MLP, DPNeuralNetClassifier, PopulationTrainer

torch.set_num_threads(1)  # so small nets are trained fastest by one thread
DELTA, DIGITS = 1e-5, range(10)

X, y = load_digits(return_X_y=True)
X, X_rest, y, y_rest = train_test_split(X / 16, y, train_size=1200, random_state=0, stratify=y)
X_public, X_test, y_public, y_test = train_test_split(
    X_rest, y_rest, train_size=0.5, random_state=0, stratify=y_rest
)

# %%
# A net and a linear model
# ------------------------
# Both have the same budget. Noise is stated as a multiple of the norm to which the gradient of
# each record is clipped. It is added to every weight in every step, and a net has many more
# weights than a linear model.


def net(epsilon=1.0, **settings):
    """Return a private net with one hidden layer."""
    return DPNeuralNetClassifier(
        MLP(hidden=(32,)),
        optimizer=torch.optim.SGD,
        epsilon=epsilon,
        delta=DELTA,
        classes=DIGITS,
        batch_size=0.1,
        **settings,
    )


epsilons, nets, linear = (1.0, 2.0, 4.0, 8.0), [], []
print("epsilon   noise   accuracy of the net   of the linear model")
for epsilon in epsilons:
    fitted = net(epsilon, lr=1.0, max_epochs=20, random_state=0).fit(X, y)
    simple = DPLogisticRegression(epsilon=epsilon, delta=DELTA, classes=DIGITS, random_state=0)
    nets.append(fitted.score(X_test, y_test))
    linear.append(simple.fit(X, y).score(X_test, y_test))
    noise = fitted.plan_.noise_multiplier
    print(f"{epsilon:7g}   {noise:5.2f}   {nets[-1]:19.3f}   {linear[-1]:19.3f}")

# %%
# At the smallest budget the linear model is ahead. There are 299 test images, so differences of
# two points are within chance.
#
# Many nets at once
# -----------------
# :class:`~skdptune.neural_network.PopulationTrainer` trains any number of nets together. They only
# share arithmetic: each has its own batches, clipping and noise, and ends with the weights of its
# own ``fit``. The searches do the same with their candidates.

rates = np.geomspace(0.1, 3.0, 8)
started = time.perf_counter()
alone = [net(lr=rate, max_epochs=5, random_state=0).fit(X, y) for rate in rates]
between = time.perf_counter()
together = PopulationTrainer().fit(
    [net(lr=rate, max_epochs=5, random_state=0) for rate in rates], X, y
)
ended = time.perf_counter()
gap = max(
    (one - other).abs().max().item()
    for mine, yours in zip(alone, together, strict=True)
    for one, other in zip(mine.module_.parameters(), yours.module_.parameters(), strict=True)
)
print(f"one at a time: {between - started:.1f} s, at once: {ended - between:.1f} s")
print(f"largest difference between their weights: {gap:.0e}")

# %%
# Tuning on a tenth
# -----------------
# Learning rate and number of epochs are tuned. Epochs change the cost of a training run, so the
# noise of each candidate is adjusted. The whole search, including its final fit, stays within an
# epsilon of 1 for all candidates. We compare two ways, as in Koskela and Kulkarni, *Practical
# Differentially Private Hyperparameter Tuning with Subsampling* (2023), in miniature: candidates
# are trained on a random tenth of the records and the winner on the others (``variant=2`` would
# train it on all), or all are trained on all records, and the best of these nets is returned.
#
# ``diagnostics=True`` stores values that must stay secret, here to count the work: never use it on
# sensitive data.

SPACE = {"lr": np.geomspace(0.1, 3.0, 6).tolist(), "max_epochs": [10, 20]}
WAYS = {
    "a tenth": {"tuning_fraction": 0.1, "variant": 1},
    "all": {"tuning_fraction": None},
}


def search_of(way, seed):
    """Return a search that tunes on a tenth, or on all."""
    return DPRandomSearchCV(
        net(),
        SPACE,
        n_iter=8,
        epsilon=1.0,
        delta=DELTA,
        random_state=seed,
        # As in the paper, the winner is not compared with the estimator's own values.
        strategy=RandomRuns(
            n_iter_distribution="poisson", try_own_values=False, diagnostics=True, **WAYS[way]
        ),
    )


def work_of(search):
    """Return the gradient evaluations of a search: epochs times expected records, of all fits."""
    share = search.strategy.tuning_fraction
    epochs = sum(params["max_epochs"] for params in search.diagnostics_["params"])
    if share is None:
        return epochs * len(X)
    return (epochs * share + search.best_params_["max_epochs"] * (1 - share)) * len(X)


found = {}
print("tuned on   accuracy of three searches   gradients   final noise")
for way in WAYS:
    searches = [
        search_of(way, seed).fit(X, y, X_val=X_public, y_val=y_public) for seed in range(3)
    ]
    scores = [search.score(X_test, y_test) for search in searches]
    work = [work_of(search) for search in searches]
    found[way] = work, scores
    plan = search_of(way, 0).plan(*X.shape, public_validation=True, compare=False)
    shown = "   ".join(f"{score:.3f}" for score in scores)
    noise = plan.row.effective_noise
    print(f"{way:8s}   {shown:>26s}   {np.mean(work):9,.0f}   {noise:11.1f}")

# %%
# A fit on a tenth is a tenth of the work; the third column counts gradients of single records. It
# also costs so little privacy that more budget remains for the final fit: the last column is its
# noise relative to the number of its records.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 4.0), layout="constrained", sharey=True)
left.plot(epsilons, linear, color="#D55E00", marker="s", linestyle="--", label="linear model")
left.plot(epsilons, nets, color="#0072B2", marker="o", label="net")
left.set_xscale("log", base=2)
left.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
left.set(xlabel="ε of one fit", ylabel="test accuracy")
left.set_title("A fit without tuning", loc="left")
for (way, (work, scores)), marker, colour in zip(
    found.items(), "oD", ("#0072B2", "#009E73"), strict=True
):
    thousands, mean = np.divide(work, 1000), np.mean(scores)
    right.plot(thousands, scores, marker, color=colour, markersize=5, alpha=0.5)
    right.plot(thousands.mean(), mean, marker, color=colour, markersize=11, label=f"on {way}")
right.set(xlabel="gradient evaluations of a search (thousands)", xlim=(0, None))
right.set_title("Three searches (small) and their mean, ε = 1", loc="left")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
plt.show()
