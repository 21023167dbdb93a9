"""Private linear regression, on data read in chunks
====================================================

Six private linear regressions on the same data, which are read once in chunks, and their accuracy
over ε.

Needs the extra ``plot``.
"""

# %%
# One pass over the data
# ----------------------
# Ten chunks of made-up rows take the place of a file that does not fit in memory. Bounds on the
# norm of a row and on a target must be known without a look at the data: the noise follows from
# these bounds, and larger values are clipped to them.

import numpy as np
from matplotlib import pyplot as plt

from skdptune.linear_model import (
    AdaOPSLinearRegression,
    AdaSSPLinearRegression,
    DPRidge,
    OPSLinearRegression,
    OutputPerturbationLinearRegression,
    PTRLinearRegression,
    SufficientStatistics,
)

BOUNDS = {"data_norm": 2.0, "target_bound": 2.0}
DELTA = 1e-6
COEFFICIENTS = np.array([0.8, -0.5, 0.3, 0.0])


def chunks(seed=0, count=10, size=2_000):
    """Yield rows and targets, as a reader of a large file would."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        X = rng.uniform(-1, 1, size=(size, 4))
        yield X, X @ COEFFICIENTS + 0.4 + 0.1 * rng.normal(size=size)


sums = SufficientStatistics(**BOUNDS)
for X, y in chunks():
    sums.update(X, y)
print(f"read {sums.n_samples} rows once")

# %%
# :class:`~skdptune.linear_model.SufficientStatistics` are exact sums of products of the columns:
# as secret as the records, and sufficient for every regression below. A fit to them needs only
# some algebra on small matrices.
#
# Releases of the same sums
# -------------------------
# They differ in the numbers to which noise is added.
#
# * *The sums.* :class:`~skdptune.linear_model.DPRidge` and
#   :class:`~skdptune.linear_model.AdaSSPLinearRegression` add noise to the sums, and solve a ridge
#   regression on them. The first is the one to start with.
# * *One posterior sample.* :class:`~skdptune.linear_model.OPSLinearRegression` draws the weights
#   from the posterior of a Bayesian regression, made wide enough for the worst data that there can
#   be. :class:`~skdptune.linear_model.PTRLinearRegression` and
#   :class:`~skdptune.linear_model.AdaOPSLinearRegression` release bounds first that say how much
#   better the data at hand are, and draw accordingly.
# * *The weights.* :class:`~skdptune.linear_model.OutputPerturbationLinearRegression` solves first,
#   and adds noise to the solution, again for the worst data.
#
# Every fit below is a separate release: publish one, or add up their costs.

EPSILONS = (0.1, 0.3, 1.0, 3.0)
KINDS = (
    DPRidge,
    AdaSSPLinearRegression,
    PTRLinearRegression,
    AdaOPSLinearRegression,
    OPSLinearRegression,
    OutputPerturbationLinearRegression,
)
X_test, y_test = next(chunks(seed=1, count=1, size=20_000))
found = {}
print(f"{'mean R² of ten fits':<34}" + "".join(f"  ε = {epsilon:<4g}" for epsilon in EPSILONS))
for kind in KINDS:
    scores = np.array(
        [
            [
                # Seeds, for a reproducible page; omit them for real noise.
                kind(epsilon, DELTA, random_state=seed, **BOUNDS)
                .fit_statistics(sums)
                .score(X_test, y_test)
                for seed in range(10)
            ]
            for epsilon in EPSILONS
        ]
    )
    found[kind.__name__] = scores
    print(f"{kind.__name__:<34}" + "".join(f"  {score:8.4f}" for score in scores.mean(axis=1)))

# %%
# From an iterator in one call
# ----------------------------
# ``fit`` also accepts chunks. The report is a tree of all releases, and lists the facts that are
# assumed to be public.

model = DPRidge(1.0, DELTA, random_state=0, **BOUNDS).fit(chunks())
print(model.privacy_)
print("weights:", model.coef_.round(3), "intercept:", round(float(model.intercept_), 3))

# %%
# The noise decides
# -----------------
# The plot shows the unexplained share of the variance. No model can explain the noise of the
# targets. With twenty thousand rows and an ε of 1, four of the six come close to this limit. The
# noise of the other two is made for the worst possible data.

looks = zip(
    ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7"),
    ("-", "--", "-.", ":", "-", "--"),
    "os^Dvx",
    strict=True,
)
figure, axes = plt.subplots(figsize=(7.6, 4.6), layout="constrained")
for (name, scores), (colour, dashes, marker) in zip(found.items(), looks, strict=True):
    unexplained = 1 - scores.mean(axis=1)
    axes.plot(EPSILONS, unexplained, dashes, color=colour, marker=marker, label=name)
noise = 0.1**2 / np.var(y_test)
axes.axhline(noise, color="gray", lw=0.8)
axes.annotate("noise of the targets", (0.1, noise), (0, -12), textcoords="offset points")
axes.set_xscale("log")
axes.set_yscale("log")
axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
axes.set_yticks((0.03, 0.05, 0.1, 0.2, 0.3), ("0.03", "0.05", "0.1", "0.2", "0.3"))
axes.minorticks_off()
axes.set(xlabel="ε of the fit", ylabel="unexplained share of the variance, 1 - R²")
axes.set_ylim(0.8 * noise, None)
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
plt.show()
