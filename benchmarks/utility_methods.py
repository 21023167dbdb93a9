"""What `utility.py` compares: the library's defaults, its other settings, and its peers.

A method that has several settings is taken at the best of them in hindsight, on the test rows.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from defaults import hindsight
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score
from table_encoder import SCHEMA
from utility_problems import TARGET_BOUND, Fold

from skdptune import linear_model
from skdptune.ensemble import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.metrics import neg_squared_error
from skdptune.model_selection import DPRandomSearchCV
from skdptune.preprocessing import Schema, make_private_pipeline

Settings = dict[str, Any]
OPACUS_EPOCHS, OPACUS_BATCHES, HIDDEN = 10, 10, 32
OTHER_REGRESSIONS = (
    "AdaSSPLinearRegression",
    "AdaOPSLinearRegression",
    "OPSLinearRegression",
    "PTRLinearRegression",
    "OutputPerturbationLinearRegression",
)


@dataclass(frozen=True)
class Task:
    """Requirements of a fit."""

    fold: Fold
    regression: bool
    epsilon: float
    delta: float
    seed: int

    @property
    def norm(self) -> float:
        """The public bound on rows, or the norm of a standardised row."""
        return self.fold.norm or float(np.sqrt(self.fold.X.shape[1]))

    @functools.cached_property
    def labels(self) -> np.ndarray:
        """The labels of a classification."""
        return np.unique(self.fold.y)

    def score(self, model: Any) -> float:
        """Fit a model; return its accuracy or its R2, in %."""
        return self.score_of(model.fit(self.fold.X, self.fold.y).predict(self.fold.X_test))

    def score_of(self, predicted: np.ndarray) -> float:
        """Return the accuracy of predictions, or their R2, in %."""
        if not self.regression:
            return 100.0 * float(np.mean(np.asarray(predicted) == self.fold.y_test))
        clipped = np.clip(np.nan_to_num(predicted), -TARGET_BOUND, TARGET_BOUND)
        return 100.0 * r2_score(self.fold.y_test, clipped)


def own_model(task: Task, epsilon: float | None, **settings: Any) -> Any:
    """Return the model that the library recommends, with its defaults except for some settings."""
    common = {"data_norm": task.fold.norm, "random_state": task.seed} | settings
    if task.regression:
        return DPRidge(epsilon, task.delta, target_bound=TARGET_BOUND, **common)
    return DPLogisticRegression(epsilon, task.delta, classes=task.labels, **common)


def default(task: Task) -> float:
    """Score the untuned default."""
    return task.score(own_model(task, task.epsilon))


def one_call(task: Task, family: str = "auto") -> float:
    """Score the model that `make_private_pipeline` makes from only a schema."""
    fold = task.fold
    if fold.tables is None:
        (rows, test), schema = (fold.X, fold.X_test), fold.schema(task.regression)
    else:
        (rows, test), columns = fold.tables, SCHEMA.to_dict()["columns"]
        schema = Schema(columns, target={"categories": task.labels.tolist()})
    model = make_private_pipeline(
        "auto",
        schema,
        epsilon=task.epsilon,
        delta=task.delta,
        family=family,
        random_state=task.seed,
    )
    return task.score_of(model.fit(rows, fold.y).predict(test))


def default_search(task: Task) -> float:
    """Score the random search without a space; regressions need a score with a bound."""
    scoring = neg_squared_error(bound=TARGET_BOUND**2) if task.regression else None
    search = DPRandomSearchCV(
        own_model(task, task.epsilon, random_state=None),
        epsilon=task.epsilon,
        delta=task.delta,
        scoring=scoring,
        random_state=task.seed,
    )
    return task.score(search)


def own_setting(task: Task, **settings: Any) -> float:
    """Score the default model with another setting."""
    return task.score(own_model(task, task.epsilon, **settings))


def own_settings(task: Task) -> list[Settings]:
    """Return what a search without a space tries, and a little more."""
    rows, columns = task.fold.X.shape
    space = own_model(task, task.epsilon).suggested_space(rows, columns)
    found = [{name: value} for name, values in space.items() for value in values[1:]]
    if task.regression:
        return found + [{"data_norm": share * task.norm} for share in (0.5, 0.75, 1.5)]
    return [*found, {"learning_rate": 0.5}, {"epochs": 200}]


def other_solver(task: Task, **settings: Any) -> float:
    """Score another solver, or another regression."""
    if not task.regression:
        return task.score(own_model(task, task.epsilon, **settings))
    kind = getattr(linear_model, settings["kind"])
    norm = settings["share"] * task.norm
    return task.score(
        kind(
            task.epsilon,
            task.delta,
            target_bound=TARGET_BOUND,
            data_norm=norm,
            random_state=task.seed,
        )
    )


def other_solvers(task: Task) -> list[Settings]:
    """Return the settings of other solvers, those of defaults.py for classifiers."""
    if not task.regression:
        return list(hindsight(task.fold.X.shape[1] * len(task.labels)))
    kinds = itertools.product(OTHER_REGRESSIONS, (0.6, 1.0))
    return [{"kind": kind, "share": share} for kind, share in kinds]


def boosting(task: Task) -> float:
    """Score the boosting machine of skdptune as it comes."""
    fold = task.fold
    kind = DPExplainableBoostingClassifier
    more: Settings = {"bounds": fold.ranges} if fold.tables is None else {"schema": SCHEMA}
    if task.regression:
        kind, more = DPExplainableBoostingRegressor, more | {"target_bound": TARGET_BOUND}
    model = kind(task.epsilon, task.delta, random_state=task.seed, **more)
    if fold.tables is None:
        return task.score(model)
    return task.score_of(model.fit(fold.tables[0], fold.y).predict(fold.tables[1]))


def interpret(task: Task, **settings: Any) -> float:
    """Score the boosting machine of interpret-core, with the same ranges."""
    from interpret.privacy import DPExplainableBoostingClassifier as Classifier
    from interpret.privacy import DPExplainableBoostingRegressor as Regressor

    fold = task.fold
    common = {"epsilon": task.epsilon, "delta": task.delta, "n_jobs": 1, **settings}
    if fold.tables is not None:
        numbers = {p: (c.low, c.high) for p, c in enumerate(SCHEMA.used) if hasattr(c, "low")}
        types = ["continuous" if p in numbers else "nominal" for p in range(len(SCHEMA.used))]
        names = [column.name for column in SCHEMA.used]
        model = Classifier(feature_types=types, privacy_bounds=numbers, **common)
        model.fit(fold.tables[0][names], fold.y)
        return task.score_of(model.predict(fold.tables[1][names]))
    common["feature_types"] = ["continuous"] * fold.X.shape[1]
    common["privacy_bounds"] = dict(enumerate(zip(*fold.ranges, strict=True)))
    if not task.regression:
        return task.score(Classifier(**common))
    bounds = {"privacy_target_min": -TARGET_BOUND, "privacy_target_max": TARGET_BOUND}
    return task.score(Regressor(**bounds, **common))


def diffprivlib(task: Task, **settings: Any) -> float:
    """Score diffprivlib's model, which takes no delta."""
    from diffprivlib import models

    common = {"epsilon": task.epsilon, "random_state": task.seed}
    if task.regression:
        bound, intercept = settings["bound"], settings["fit_intercept"]
        common |= {"bounds_X": (-bound, bound), "bounds_y": (-TARGET_BOUND, TARGET_BOUND)}
        return task.score(models.LinearRegression(fit_intercept=intercept, **common))
    norm = settings["share"] * task.norm
    return task.score(models.LogisticRegression(data_norm=norm, C=settings["C"], **common))


def diffprivlib_settings(task: Task) -> list[Settings]:
    """Return bounds and strengths of regularization."""
    if task.regression:
        choices = itertools.product((0.5, 1.0, 2.0, 4.0), (True, False))
        return [{"bound": bound, "fit_intercept": intercept} for bound, intercept in choices]
    pairs = itertools.product((0.25, 1.0), (0.001, 0.01, 0.1, 1.0))
    return [{"share": share, "C": C} for share, C in pairs]


class Batches:
    """A data set that hands over a whole batch at once; Opacus draws the same batches of it."""

    def __init__(self, *tensors: Any) -> None:
        self.tensors = tensors

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.tensors[0])

    def __getitem__(self, place: int) -> tuple[Any, ...]:
        """Return a record."""
        return tuple(tensor[place] for tensor in self.tensors)

    def __getitems__(self, places: list[int]) -> list[tuple[Any, ...]]:
        """Return a batch."""
        return [tuple(tensor[places] for tensor in self.tensors)]


@functools.cache
def opacus_noise(epsilon: float, delta: float) -> float:
    """Return the noise that `PrivacyEngine.make_private_with_epsilon` finds, once per budget."""
    from opacus.accountants.utils import get_noise_multiplier

    return get_noise_multiplier(
        target_epsilon=epsilon,
        target_delta=delta,
        sample_rate=1.0 / OPACUS_BATCHES,
        epochs=OPACUS_EPOCHS,
        accountant="prv",
    )


def opacus(task: Task, hidden: int, lr: float) -> float:
    """Score a linear head (`hidden` is 0) or a small net, trained by Opacus and Adam."""
    fold, labels = task.fold, () if task.regression else task.labels
    targets = fold.y[:, None] if task.regression else np.searchsorted(labels, fold.y)
    module = network(fold.X.shape[1], hidden, max(len(labels), 1))
    train_with_opacus(module, fold.X, targets, lr, task.epsilon, task.delta, task.seed)
    outputs = outputs_of(module, fold.X_test)
    return task.score_of(outputs[:, 0] if task.regression else labels[outputs.argmax(axis=1)])


def train_with_opacus(
    module: Any,
    X: np.ndarray,
    targets: np.ndarray,
    lr: float,
    epsilon: float,
    delta: float,
    seed: int,
) -> None:
    """Train a module by Opacus and Adam on numbers, or on the codes of classes."""
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    is_regression = targets.dtype.kind == "f"
    kind = torch.float32 if is_regression else torch.int64
    data = Batches(torch.tensor(X, dtype=torch.float32), torch.tensor(targets, dtype=kind))
    # As many batches as the noise is for.
    size = -(-len(data) // OPACUS_BATCHES)
    private, optimizer, loader = PrivacyEngine().make_private(
        module=module,
        optimizer=torch.optim.Adam(module.parameters(), lr=lr),
        data_loader=DataLoader(data, batch_size=size, collate_fn=lambda batch: batch[0]),
        noise_multiplier=opacus_noise(epsilon, delta),
        max_grad_norm=1.0,
    )
    loss = torch.nn.MSELoss() if is_regression else torch.nn.CrossEntropyLoss()
    for _ in range(OPACUS_EPOCHS):
        for rows, wanted in loader:
            optimizer.zero_grad()
            loss(private(rows), wanted).backward()
            optimizer.step()


def outputs_of(module: Any, X: np.ndarray) -> np.ndarray:
    """Return the outputs of a module."""
    import torch

    with torch.no_grad():
        found: np.ndarray = module(torch.tensor(X, dtype=torch.float32)).numpy()
    return found


def network(columns: int, hidden: int, outputs: int) -> Any:
    """Return a linear head, or a net of one hidden layer."""
    from torch import nn

    if hidden == 0:
        return nn.Linear(columns, outputs)
    return nn.Sequential(nn.Linear(columns, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


def opacus_settings(task: Task) -> list[Settings]:
    """Return rates of a linear head and of a small net."""
    rates = {0: (0.01, 0.03, 0.1), HIDDEN: (0.003, 0.01, 0.03)}
    return [{"hidden": hidden, "lr": lr} for hidden, several in rates.items() for lr in several]


def without_privacy(task: Task) -> float:
    """Score scikit-learn's model."""
    model = LinearRegression() if task.regression else LogisticRegression(max_iter=300)
    return task.score(model)


def trees_without_privacy(task: Task) -> float:
    """Score scikit-learn's boosted trees."""
    kind = HistGradientBoostingRegressor if task.regression else HistGradientBoostingClassifier
    return task.score(kind(random_state=task.seed))


@dataclass(frozen=True)
class Method:
    """A column of the table.

    `cells` is the largest number of rows x columns x classes at which all seeds are run; beyond it
    they become fewer in proportion, and none beyond `most` times the usual number.
    """

    name: str
    score: Callable[..., float]
    settings: Callable[[Task], list[Settings]] = lambda task: [{}]
    cells: float = 1e8
    most: float = 1000.0
    needs: str | None = None
    two_classes: bool = False
    private: bool = True

    def seeds(self, task: Task, most: int) -> int:
        """Return the number of seeds; 0 if the method is not run."""
        classes = 1 if task.regression or len(task.labels) == 2 else len(task.labels)
        if self.needs and importlib.util.find_spec(self.needs) is None:
            return 0
        times = task.fold.X.size * classes / self.cells
        if (self.two_classes and classes > 1) or times > self.most:
            return 0
        return min(most, max(2, round(most / max(times, 1.0))))


METHODS = (
    Method("default", default),
    Method("search", default_search),
    Method("own settings", own_setting, own_settings),
    Method("other solvers", other_solver, other_solvers, cells=1e6, most=500.0),
    Method("DP-EBM", boosting, cells=2e5, most=40.0),
    Method(
        "diffprivlib", diffprivlib, diffprivlib_settings, cells=2e6, most=50, needs="diffprivlib"
    ),
    Method(
        "interpret",
        interpret,
        lambda task: [{"learning_rate": rate} for rate in (0.01, 0.05)],
        cells=5e3,
        needs="interpret",
        two_classes=True,
    ),
    Method("Opacus", opacus, opacus_settings, cells=2e5, most=500.0, needs="opacus"),
    Method("one call", one_call, cells=1e7),
    Method("no privacy", without_privacy, cells=1e7, private=False),
    Method("trees, no privacy", trees_without_privacy, cells=1e6, most=50.0, private=False),
)
