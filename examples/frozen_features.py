"""Embeddings of a public network as the rows of a private classifier
=====================================================================

Images, texts and sounds are best classified privately by the outputs of a network that was made
without the private records. These outputs, often called embeddings or frozen features, cost
nothing. This example makes a small network of filters from public images of the digits 0 to 4, and
learns the digits 5 to 9 from private images.

Needs the extra ``plot``.
"""

# %%
# Public and private images
# -------------------------
# In your project, the public network is one that others have published, and public rows are its
# outputs for images that anyone may see.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import skdptune
from skdptune.base import privacy_of
from skdptune.linear_model import DPLogisticRegression

DELTA, DIGITS = 1e-5, [5, 6, 7, 8, 9]

images, digits = load_digits().images / 16.0, load_digits().target
public_images = images[digits < 5]
images, images_test, y, y_test = train_test_split(
    images[digits >= 5],
    digits[digits >= 5],
    test_size=0.3,
    random_state=0,
    stratify=digits[digits >= 5],
)
print(f"{len(public_images)} public images, {len(images)} private ones to train on")

# %%
# A network of filters
# --------------------
# Its filters are patches of public images, whitened. A filter and its negative are applied at all
# places of an image, rectified, and averaged over each quarter of the image.


def patches(images):
    """Return all pieces of 4 by 4 pixels, each centred."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (4, 4), axis=(1, 2))
    pieces = windows.reshape(len(images), 5, 5, 16)
    return pieces - pieces.mean(axis=-1, keepdims=True)


pieces = patches(public_images).reshape(-1, 16)
values, vectors = np.linalg.eigh(np.cov(pieces.T))
whitening = vectors / np.sqrt(values + 0.01) @ vectors.T
strong = pieces[np.linalg.norm(pieces, axis=1) > 0.8] @ whitening
chosen = np.random.default_rng(0).permutation(strong)[:32]
filters = whitening @ (chosen / np.linalg.norm(chosen, axis=1, keepdims=True)).T


def embed(images):
    """Return the outputs of the network, one row for each image."""
    maps = patches(images) @ filters
    maps = np.concatenate([np.maximum(maps - 0.25, 0.0), np.maximum(-maps - 0.25, 0.0)], axis=-1)
    quarters = [maps[:, a : a + 3, b : b + 3].mean(axis=(1, 2)) for a in (0, 2) for b in (0, 2)]
    return np.concatenate(quarters, axis=1)


rows, rows_test, public_rows = embed(images), embed(images_test), embed(public_images)
print(f"{rows.shape[1]} outputs for each image")

# %%
# Three lines
# -----------
# The first line centres rows and rotates them to the main directions of *public* rows, so it costs
# nothing. `Normalizer` gives each row the norm 1, which is the public bound ``data_norm``. The
# classifier then needs only its budget and the labels.

rotation = FrozenEstimator(PCA(60, svd_solver="full").fit(public_rows))
head = DPLogisticRegression(1.0, DELTA, data_norm=1.0, classes=DIGITS, random_state=0)
model = make_pipeline(rotation, Normalizer(), head).fit(rows, y)
print(f"accuracy at epsilon 1: {model.score(rows_test, y_test):.3f}")
print(privacy_of(model))

# %%
# What the features gain
# ----------------------
# The smaller the budget, the more is gained over raw pixels, since the private model has less left
# to learn.


def accuracies(step, own, other):
    """Return the mean test accuracy of five fits for each epsilon."""
    means = []
    for epsilon in epsilons:
        scores = []
        for seed in range(5):
            head = DPLogisticRegression(
                epsilon, DELTA, data_norm=1.0, classes=DIGITS, random_state=seed
            )
            # The digits are public in truth: no budget keeps track of these fits.
            with skdptune.config_context(ledger=False):
                fitted = make_pipeline(*step, Normalizer(), head).fit(own, y)
            scores.append(fitted.score(other, y_test))
        means.append(np.mean(scores))
    return means


epsilons = [0.25, 0.5, 1.0, 2.0, 4.0]
pixels, pixels_test = images.reshape(-1, 64), images_test.reshape(-1, 64)
found = {
    "pixels": accuracies([], pixels, pixels_test),
    "rotated features": accuracies([rotation], rows, rows_test),
}
for name, means in found.items():
    print(f"{name:17s}", *(f"{mean:.3f}" for mean in means))

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, means in found.items():
    axes.plot(epsilons, means, marker="o", label=name)
axes.set_xscale("log", base=2)
axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
axes.set(xlabel="epsilon", ylabel="test accuracy", title="Five digits, 627 private images")
axes.legend()
