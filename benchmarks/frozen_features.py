"""Private classifiers on the outputs of a frozen public network, and on raw pixels.

    python benchmarks/frozen_features.py                                MNIST, 60,000 rows
    python benchmarks/frozen_features.py --data fashion --seeds 1       Fashion-MNIST
    python benchmarks/frozen_features.py --data round                   100 classes, 3,000 rows
    python benchmarks/frozen_features.py --arrays mine.npz --columns 64 your own rows

The network is one layer of filters: 64 patches of the *other* set of images, which counts as
public, with both signs, pooled to 3 by 3 cells. Nothing is trained. Rows are centred, rotated to
the first principal components of public rows, and brought to norm 1. Test accuracy in %, the mean
over seeds with its deviation, of three ways; for the first also the log loss, and the calibration
error of the largest probability (15 bins):

* `DPLogisticRegression(data_norm=1)`, as it comes;
* least squares with one target for each class: noisy sums of products of rows, and five noisy
  steps whose residuals are clipped as vectors;
* prototypes: noisy sums of the rows of each class, and the one of nearest direction.

The last two are sketches that draw noise from NumPy, with the same Gaussian guarantee. MNIST and
Fashion-MNIST are read from SKDPTUNE_DATA, or ../shared/data. `mine.npz` has `X_train`, `y_train`,
`X_test`, `y_test` and public rows `X_public`; labels are whole numbers.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
import torch
from data_sets import stored
from probabilities import figures
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from torch.nn import functional

import skdptune
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import noise_for_budget

DELTA = 1e-5
FILES = {"mnist": "mnist.npz", "fashion": "fashion_mnist.npz"}
N_FILTERS, SIDE, CELLS, THRESHOLD = 64, 6, 3, 0.25
N_PUBLIC = 10_000
# Steps of least squares, and the share of the squared shift that pays for them.
STEPS, STEPS_SHARE = 5, 0.7
# Classes, columns, rows and the deviation of a row from its class, of made-up embeddings.
N_CLASSES, WIDTH, N_ROWS, SPREAD = 100, 64, 3000, 0.14
Arrays = dict[str, np.ndarray]


# Features -------------------------------------------------------------------------------------


def filters(images: np.ndarray) -> torch.Tensor:
    """Return whitened patches of public images, as the weights of a convolution."""
    rng = np.random.default_rng(0)
    patches = functional.unfold(tensor(images[:2000]), SIDE).numpy()
    patches = patches.transpose(0, 2, 1).reshape(-1, SIDE**2)
    patches = patches[rng.choice(len(patches), 100_000, replace=False)]
    patches -= patches.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(patches.T @ patches / len(patches))
    whitening = vectors / np.sqrt(values + 0.01) @ vectors.T
    lengths = np.linalg.norm(patches, axis=1)
    chosen = patches[lengths > np.median(lengths)][:N_FILTERS] @ whitening
    chosen /= np.linalg.norm(chosen, axis=1, keepdims=True)
    weights = (chosen @ whitening).reshape(N_FILTERS, 1, SIDE, SIDE)
    weights -= weights.mean(axis=(2, 3), keepdims=True)
    return torch.tensor(weights, dtype=torch.float32)


def tensor(images: np.ndarray) -> torch.Tensor:
    """Return images with one channel."""
    return torch.tensor(images[:, None] / 255.0, dtype=torch.float32)


@torch.no_grad()
def outputs(weights: torch.Tensor, images: np.ndarray) -> np.ndarray:
    """Return the outputs of the network, one row for each image."""
    rows = []
    for start in range(0, len(images), 1000):
        maps = functional.conv2d(tensor(images[start : start + 1000]), weights, padding=1)
        both = torch.cat([torch.relu(maps - THRESHOLD), torch.relu(-maps - THRESHOLD)], dim=1)
        rows.append(functional.adaptive_avg_pool2d(both, CELLS).flatten(1).numpy())
    return np.concatenate(rows)


def pixels_and_features(name: str) -> dict[str, Arrays]:
    """Return the arrays of a set of images, as pixels and as outputs of the network."""
    own = stored(FILES[name])
    (other,) = [stored(file) for known, file in FILES.items() if known != name]
    weights = filters(other["X_train"])
    images = {key: own[key] for key in ("X_train", "X_test")}
    images["X_public"] = other["X_train"][:N_PUBLIC]
    labels = {key: own[key] for key in ("y_train", "y_test")}
    pixels = {key: array.reshape(len(array), -1) / 255.0 for key, array in images.items()}
    features = {key: outputs(weights, array) for key, array in images.items()}
    return {"pixels": pixels | labels, "features": features | labels}


def round_classes() -> Arrays:
    """Return made-up embeddings, in which a class is its centre and noise, with 30 rows each."""
    rng, arrays = np.random.default_rng(1000), {}
    centres = rng.normal(size=(N_CLASSES, WIDTH))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    for part in ("train", "test", "public"):
        codes = rng.integers(N_CLASSES, size=N_ROWS)
        arrays[f"y_{part}"] = codes
        arrays[f"X_{part}"] = centres[codes] + rng.normal(scale=SPREAD, size=(N_ROWS, WIDTH))
    return arrays


# Ways to classify -------------------------------------------------------------------------------


def logistic(
    X: np.ndarray, codes: np.ndarray, test: np.ndarray, epsilon: float, seed: int
) -> np.ndarray:
    """Return the probabilities of our classifier as it comes."""
    model = DPLogisticRegression(
        epsilon, DELTA, data_norm=1.0, classes=range(codes.max() + 1), random_state=seed
    )
    return model.fit(X, codes).predict_proba(test)


def least_squares(
    X: np.ndarray, codes: np.ndarray, test: np.ndarray, epsilon: float, seed: int
) -> np.ndarray:
    """Return linear scores that were fitted to indicators of classes."""
    rng, shift = np.random.default_rng(seed), 1.0 / noise_for_budget(epsilon, DELTA)[0]
    targets = np.eye(codes.max() + 1)[codes]
    targets -= 1.0 / targets.shape[1]
    noise = 1.0 / (shift * math.sqrt(1.0 - STEPS_SHARE))
    drawn = np.triu(rng.normal(scale=noise, size=(X.shape[1], X.shape[1])))
    values, vectors = np.linalg.eigh(X.T @ X + drawn + np.triu(drawn, 1).T)
    raised = np.maximum(values, 0.0) + math.sqrt(len(values)) * noise
    weights = np.zeros((X.shape[1], targets.shape[1]))
    for _ in range(STEPS):
        residuals = targets - X @ weights
        lengths = np.linalg.norm(residuals, axis=1, keepdims=True)
        total = X.T @ (residuals * np.minimum(1.0, 1.0 / np.maximum(lengths, 1e-12)))
        total += rng.normal(scale=math.sqrt(STEPS / STEPS_SHARE) / shift, size=weights.shape)
        weights += vectors @ ((vectors.T @ total).T / raised).T
    return test @ weights


def prototypes(
    X: np.ndarray, codes: np.ndarray, test: np.ndarray, epsilon: float, seed: int
) -> np.ndarray:
    """Return the cosines with noisy sums of classes."""
    rng, noise = np.random.default_rng(seed), noise_for_budget(epsilon, DELTA)[0]
    sums = np.eye(codes.max() + 1)[codes].T @ X
    sums += rng.normal(scale=noise, size=sums.shape)
    return test @ (sums / np.linalg.norm(sums, axis=1, keepdims=True)).T


WAYS: dict[str, Callable[..., np.ndarray]] = {
    "logistic": logistic,
    "least squares": least_squares,
    "prototypes": prototypes,
}


def main() -> None:
    """Print the figures of all ways."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--data", choices=[*FILES, "round"], default="mnist")
    source.add_argument("--arrays", help="an .npz file of your own")
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--rows", type=int, help="train on the first rows only")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 4.0])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.arrays:
        with np.load(arguments.arrays) as file:
            forms = {"yours": dict(file)}
    elif arguments.data == "round":
        forms = {"round": round_classes()}
    else:
        forms = pixels_and_features(arguments.data)
    print(f"features in {time.process_time():.0f} s of a processor")
    for form, arrays in forms.items():
        width = min(arguments.columns, *arrays["X_public"].shape)
        rotation = PCA(width, random_state=0).fit(arrays["X_public"])
        public = make_pipeline(FrozenEstimator(rotation), Normalizer())
        y = arrays["y_train"][: arguments.rows].astype(int)
        X = public.fit_transform(arrays["X_train"][: arguments.rows])
        test, y_test = public.transform(arrays["X_test"]), arrays["y_test"].astype(int)
        for epsilon in arguments.epsilons:
            for way in arguments.ways:
                found, words, start = [], "", time.process_time()
                for seed in range(arguments.seeds):
                    with skdptune.config_context(ledger=False):
                        scores = WAYS[way](X, y, test, epsilon, seed)
                    found.append(100.0 * np.mean(scores.argmax(axis=1) == y_test))
                seconds = (time.process_time() - start) / arguments.seeds
                if way == "logistic":
                    log_loss, _, calibration, *_ = figures(scores, y_test, np.unique(y))
                    words = f"log loss {log_loss:.3f}  calibration {calibration:.3f}"
                print(
                    f"{form:9s} {len(y):6d} x {width:4d}  epsilon {epsilon:<4g} {way:14s} "
                    f"{np.mean(found):5.2f} ({np.std(found):.2f})  {seconds:4.1f} s  {words}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
