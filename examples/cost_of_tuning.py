"""Tuning for free, and what it costs otherwise
===============================================

How much noise a fully charged search adds to a private model: from nearly none to four times the
noise.

A team wants to train a model by DP-SGD on sensitive rows: 400 steps, each on a twentieth of the
rows, for a total of ε = 1 at δ = 1e-5. The learning rate is unknown, and they would like to try
about 20. Every run looks at the data, so every run costs. All figures here come from the
accounting: no data are needed.

Needs the extra ``plot``.
"""

from dp_accounting import dp_event
from matplotlib import pyplot as plt

from skdptune.accounting import Geometric, PrivacyProfile, calibrate, compare_bounds, tune_then_fit

EPSILON, DELTA = 1.0, 1e-5


def run(noise: float) -> PrivacyProfile:
    """Return the cost of one training run with this noise multiplier."""
    step = dp_event.PoissonSampledDpEvent(0.05, dp_event.GaussianDpEvent(noise))
    return PrivacyProfile.from_event(dp_event.SelfComposedDpEvent(step, 400))


# %%
# The best of about 20 runs
# -------------------------
#
# If only the best model is published, and the number of runs is random, the cost is far below that
# of publishing all models. The proved cost depends on the bound. This library uses the envelope,
# which is nearly the smallest valid bound.

comparison = compare_bounds(run(4.0), Geometric.from_mean(20), DELTA)
for row in comparison.rows:
    print(f"{row.name:<16} ε = {row.epsilon:.3f}   {row.note}")

# %%
# The noise of the final model at the same total
# ----------------------------------------------
#
# Now the total is given, and we compare the noise, divided by the share of rows on which the final
# model is trained. A search need not read all rows. If the best run is found on a random twentieth
# of them, and one run on all others follows, sampling makes the search very cheap.


def search_on(fraction: float, mean: float = 20):
    """Return the cost, by noise, of a search on a random part and a fit on the other rows."""
    runs = Geometric.from_mean(mean)
    return lambda noise: tune_then_fit(run(noise).selected(runs), run(noise), fraction)


def on_all(mean: float = 20):
    """Return the cost, by noise, of the best of several runs on all rows."""
    return lambda noise: run(noise).selected(Geometric.from_mean(mean))


def noise_of(cost, share: float = 1.0) -> float:
    """Return the noise that the total needs, over the share of rows of the final model."""
    return calibrate(cost, EPSILON, DELTA, guess=4.0).value / share


ways = {
    "no tuning": noise_of(run),
    "search on 1/20 of the rows": noise_of(search_on(0.05), 0.95),
    "search on 1/10 of the rows": noise_of(search_on(0.1), 0.9),
    "private search on all rows": noise_of(on_all()),
    "publish all 20 runs": noise_of(lambda noise: 20 * run(noise)),
}
least = ways["no tuning"]
for name, noise in ways.items():
    print(
        f"{name:<28} noise / share of the rows {noise:6.2f}   {100 * (noise / least - 1):+5.0f} %"
    )

# %%
# The difference grows with the number of candidates. The curve of the search on a twentieth of the
# rows stays close to the one without tuning. :class:`~skdptune.model_selection.DPRandomSearchCV`
# searches on a part of the rows by default; its noisy scores cost a little more.

means = [2, 5, 10, 20, 50, 100, 200]
curves = {
    "publish all": [noise_of(lambda noise, k=k: k * run(noise)) for k in means],
    "search on all rows": [noise_of(on_all(mean)) for mean in means],
    "search on 1/20 of the rows": [noise_of(search_on(0.05, mean), 0.95) for mean in means],
}
looks = (("#D55E00", "s", ":"), ("#E69F00", "D", "--"), ("#0072B2", "o", "-"))
figure, ax = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
for (name, noises), (colour, marker, dashes) in zip(curves.items(), looks, strict=True):
    ax.plot(means, noises, dashes, color=colour, marker=marker, label=name)
ax.axhline(least, color="#555555", linewidth=1)
ax.annotate("no tuning", (means[0], least), (0, -12), textcoords="offset points", color="#555555")
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_xticks(means, means)
ax.set_yticks([4, 6, 10, 20, 40], [4, 6, 10, 20, 40])
ax.minorticks_off()
ax.set(xlabel="candidates (on average)", ylabel="noise / share of the rows", ylim=(3, None))
ax.set_title(f"Noise that a total of ε = {EPSILON:g} needs", loc="left")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
