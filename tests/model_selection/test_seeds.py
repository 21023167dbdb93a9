"""Published objects cannot replay noise: no search, model or study contains its seeds."""

from __future__ import annotations

import functools
import io
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import (
    DParetoSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    RandomRuns,
)
from skdptune.preprocessing import DPStandardScaler
from tests.flat import flat
from tests.model_selection.ways import HAS_OPTUNA, WAYS

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, size=(400, 3))
Y = (X[:, 0] > 0.0).astype(int)
GENERATORS: tuple[Any, ...] = (
    np.random.Generator,
    np.random.RandomState,
    np.random.SeedSequence,
    np.random.BitGenerator,
)
KINDS = ("logistic", "pipeline", "columns")
SEARCHES = ("random", "random-refit", "random-folds", "grid", "grid-compose", "doubling")
# One of each kind of final model: the model of a run, and that of a separate fit.
CASES = [(name, "pipeline", 0) for name in SEARCHES]
CASES += [("adaptive", "pipeline", 0), ("adaptive", "logistic", None)] if HAS_OPTUNA else []
CASES += [("random", "columns", 0), ("grid", "columns", 0), ("grid", "logistic", None)]


def estimator(kind: str, seed: Any = None) -> tuple[Any, dict[str, list[Any]]]:
    """Return an estimator with independent noise in each step, and its searched space."""
    model = DPLogisticRegression(solver="output", data_norm=2.0, random_state=seed)
    if kind == "logistic":
        return model, {"C": [0.1, 1.0]}
    scaler = DPStandardScaler(bounds=(-1.0, 1.0), random_state=seed)
    step = scaler if kind == "pipeline" else ColumnTransformer([("scaled", scaler, [0, 1, 2])])
    return make_pipeline(step, model), {"dplogisticregression__C": [0.1, 1.0]}


def things(root: Any) -> Iterator[Any]:
    """Iterate over everything that a pickle of an object holds, by pickling it."""
    seen: list[Any] = []

    class Watching(pickle.Pickler):
        def reducer_override(self, thing: Any) -> Any:
            seen.append(thing)
            return NotImplemented

    Watching(io.BytesIO()).dump(root)
    yield from seen


def numbers(root: Any) -> set[int]:
    """Return all whole numbers that the attributes and arrays of an object's graph hold."""
    found: set[int] = set()
    waiting = [thing.__dict__ for thing in things(root) if hasattr(thing, "__dict__")]
    waiting += [thing for thing in things(root) if isinstance(thing, np.ndarray)]
    waiting += [root]
    seen: set[int] = set()
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            found |= set(thing.ravel().tolist()) if thing.dtype.kind in "iu" else set()
        elif isinstance(thing, int | np.integer):
            found.add(int(thing))
        elif isinstance(thing, dict):
            waiting += [*thing.keys(), *thing.values()]
        elif isinstance(thing, list | tuple | set | frozenset):
            waiting += thing
    return found


def seeds_of(made: Any) -> dict[str, Any]:
    """Return the seeds of an estimator and of its steps, by their names."""
    params = made.get_params()
    return {name: params[name] for name in params if name.endswith("random_state")}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Note every seed that a search draws for the fits of its models."""
    noted: set[int] = set()
    for kind in (DPLogisticRegression, DPStandardScaler):
        monkeypatch.setattr(kind, "fit", noting(kind.fit, noted))
    return noted


def noting(fit: Any, noted: set[int]) -> Any:
    @functools.wraps(fit)
    def fitted(model: Any, *args: Any, **more: Any) -> Any:
        if model.random_state is not None:
            noted.add(model.random_state)
        return fit(model, *args, **more)

    return fitted


def assert_cannot_be_replayed(published: Any, drawn: set[int]) -> None:
    for thing in things(published):
        assert not isinstance(thing, GENERATORS), type(thing)
        assert type(thing).__module__ != "torch._C" or type(thing).__name__ != "Generator"
    assert not drawn & numbers(published)
    found = pickle.dumps(published)
    # Short ones are found in any pickle.
    long = [seed.to_bytes(4, "little") for seed in drawn if seed >= 1 << 24]
    assert [seed for seed in long if seed in found] == []


@pytest.mark.parametrize(("name", "kind", "seed"), CASES)
def test_no_search_holds_a_seed_that_it_drew(
    name: str, kind: str, seed: int | None, drawn: set[int]
) -> None:
    # Theorem F9: no published object holds a seed or a generator of its noise.
    model, values = estimator(kind)
    search = WAYS[name].make(model, values, epsilon=4.0, delta=1e-4, random_state=seed)
    search.fit(X, Y)
    assert bool(drawn) == (seed is not None)
    for published in (search, search.best_estimator_, search.privacy_, vars(search)):
        assert_cannot_be_replayed(published, drawn)
    assert set(seeds_of(search.best_estimator_).values()) == {None}


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_searches_have_the_seed_of_the_users_estimator(kind: str) -> None:
    # Theorem F9: no published object holds a seed or a generator of its noise.
    model, values = estimator(kind, 12345)
    search = WAYS["random"].make(model, values, epsilon=4.0, delta=1e-4).fit(X, Y)
    assert set(seeds_of(search.best_estimator_).values()) == {12345}


def test_what_is_kept_for_diagnosis_holds_no_seed(drawn: set[int]) -> None:
    # Theorem F9: no published object holds a seed or a generator of its noise.
    model, values = estimator("pipeline")
    for kind in (DPRandomSearchCV, DPGridSearchCV):
        total = {"epsilon": 4.0, "delta": 1e-4}
        search = flat(kind, model, values, diagnostics=True, random_state=0, **total)
        search.fit(X, Y)
        assert drawn
        assert_cannot_be_replayed(search, drawn)


def test_a_final_fit_that_fails_holds_no_seed(
    drawn: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Theorem F9: no published object holds a seed or a generator of its noise.
    fit, sizes = DPLogisticRegression.fit, []

    @functools.wraps(fit)
    def failing(model: Any, rows: Any, *args: Any, **more: Any) -> Any:
        sizes.append(len(rows))
        found = fit(model, rows, *args, **more)
        if len(rows) == len(X):
            raise ValueError("no fit")
        return found

    monkeypatch.setattr(DPLogisticRegression, "fit", failing)
    model, values = estimator("pipeline")
    search = WAYS["random-refit"].make(model, values, epsilon=4.0, delta=1e-4).fit(X, Y)
    assert len(X) in sizes
    assert drawn
    assert_cannot_be_replayed(search, drawn)


def test_pareto_models_hold_no_seed(drawn: set[int]) -> None:
    # Theorem F9: no published object holds a seed or a generator of its noise.
    pytest.importorskip("optuna")
    model, values = estimator("logistic")
    search = flat(
        DParetoSearchCV,
        model,
        {"epsilon": (0.5, 4.0), **values},
        n_initial=3,
        n_iter=0,
        refit=True,
        random_state=0,
    ).fit(X, Y)
    made = search.best_estimator_for(X, Y, epsilon=4.0, random_state=3)
    assert drawn
    for published in (search.best_estimator_, made):
        assert_cannot_be_replayed(published, drawn)
        assert published.random_state is None


@pytest.mark.parametrize(("optimizer", "in_search"), [("Adam", False), ("SGD", True)])
def test_nets_hold_no_generator(
    optimizer: str, in_search: bool, drawn: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Theorem F9: no published object holds a seed or a generator of its noise.
    torch = pytest.importorskip("torch")
    pytest.importorskip("opacus")
    from skdptune.neural_network import MLP, DPNeuralNetClassifier

    together = DPNeuralNetClassifier.fit_many.__func__

    def many(kind: Any, nets: Any, *args: Any, **more: Any) -> Any:
        drawn.update(net.random_state for net in nets)
        return together(kind, nets, *args, **more)

    monkeypatch.setattr(DPNeuralNetClassifier, "fit_many", classmethod(many))
    net = DPNeuralNetClassifier(
        MLP(hidden=(4,)),
        epsilon=4.0,
        delta=1e-4,
        classes=[0, 1],
        max_epochs=1,
        optimizer=getattr(torch.optim, optimizer),
    )
    records = X.astype(np.float32)
    if in_search:
        search = DPRandomSearchCV(
            net,
            {"lr": [0.1, 0.2]},
            n_iter=2,
            epsilon=4.0,
            delta=1e-4,
            strategy=RandomRuns(),
            random_state=0,
        ).fit(records, Y)
        published = search.best_estimator_
        assert drawn
    else:
        published = net.fit(records, Y)
    assert published.random_state is None
    assert_cannot_be_replayed(published, drawn)
    for _, value in published.optimizer_.state_dict()["state"].items():
        assert not any(isinstance(one, torch.Generator) for one in value.values())


@pytest.mark.parametrize("name", ["random", "grid-table", "doubling"])
def test_a_plan_is_that_of_any_seed_and_models_keep_their_own(name: str) -> None:
    # Theorem F0: a plan that was made for one seed serves estimators with another.
    shown = set()
    for seed in (5, None, 6):
        model, space = estimator("pipeline", seed)
        search = WAYS[name].make(model, space, epsilon=4.0, delta=1e-5)
        search.fit(X, Y)
        steps = search.best_estimator_.named_steps.values()
        assert [step.random_state for step in steps] == [seed, seed]
        shown.add((search.privacy_.epsilon, tuple(search.predict(X))))
    assert len(shown) == 1
