"""Nets on rows that lie in parts: the bits of a fit in memory, for any parts (Theorem R10)."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skdptune import (
    DPGridSearchCV,
    PrivacyLedger,
    PrivateRows,
    Schema,
    make_private_pipeline,
)
from skdptune.mechanisms import _noisy_gradient_plan
from skdptune.neural_network import (
    MLP,
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetRegressor,
)
from skdptune.testing import replay_neighbours
from tests.neural_network.nets import weights_of
from tests.parts import in_order

rng = np.random.default_rng(0)
N = 400
ROWS = rng.normal(size=(N, 4))
LABELS = (ROWS[:, 0] - ROWS[:, 1] > 0) + (ROWS[:, 2] > 1).astype(int)
TARGETS = ROWS[:, :2] + ROWS[:, 2:]
ROWS[5, 1], ROWS[6, 0], TARGETS[7, 1] = np.nan, 1e200, np.inf
SMALL = {"module": MLP(hidden=(5,)), "batch_size": 30, "max_epochs": 1.5, "random_state": 0}
NETS = {
    "classes": (DPNeuralNetClassifier(classes=[0, 1, 2], **SMALL), LABELS),
    "weighted": (
        DPNeuralNetClassifier(classes=[0, 1, 2], class_weight={0: 0.3}, n_public=300, **SMALL),
        LABELS,
    ),
    "two": (
        DPNeuralNetBinaryClassifier(
            classes=[False, True], sampling="allocation", grad_sample_mode="hooks", **SMALL
        ),
        LABELS > 0,
    ),
    "fixed": (DPNeuralNetRegressor(sampling="fixed", target_bound=2.0, **SMALL), TARGETS[:, 0]),
    "targets": (
        # Its closed form is not known, so Opacus computes its gradients.
        DPNeuralNetRegressor(
            **{**SMALL, "module": torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(4, 2))}
        ),
        TARGETS,
    ),
    "all records": (DPNeuralNetRegressor(max_epochs=7, random_state=0), TARGETS[:, 0]),
}
pytestmark = pytest.mark.filterwarnings("ignore:.* is fitted again")


@pytest.fixture
def many_rows(monkeypatch):
    """Let no table be small enough to stay in memory."""
    monkeypatch.setattr("skdptune.base._rows_in_parts._LITTLE", 0)


@pytest.fixture(scope="module")
def whole():
    with np.errstate(over="ignore"):
        return {name: clone(net).fit(ROWS, y) for name, (net, y) in NETS.items()}


@pytest.mark.parametrize("name", NETS)
@settings(max_examples=4)
@given(
    cuts=st.lists(st.integers(0, N), max_size=4),
    ahead=st.sampled_from([1, 499, 2**25]),
    kept=st.sampled_from([0, N * 4 - 1, N * 4]),
)
def test_any_parts_give_the_bits_of_a_fit_in_memory(name, whole, cuts, ahead, kept):
    """Theorem R10: for any parts, and however many batches are read in a pass."""
    net, y = NETS[name]
    passes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skdptune.base._rows_in_parts._LITTLE", kept)
        patch.setattr(_noisy_gradient_plan, "_NUMBERS_AHEAD", ahead)
        found = clone(net).fit(in_order(ROWS, y, cuts, passes))
    assert weights_of(found).tobytes() == weights_of(whole[name]).tobytes()
    assert str(found.privacy_) == str(whole[name].privacy_)
    assert (found.predict(ROWS[20:]) == whole[name].predict(ROWS[20:])).all()
    # One more to see the types, and one to count the rows.
    plan, at_once = found.plan_, ahead // 4 if ahead // 4 < found.plan_.n_samples else 2**22
    count = plan.steps if plan.rate == 1.0 else max(1, at_once // plan.batch_size)
    assert len(passes) == 2 + (1 if kept == N * 4 else -(-plan.steps // count))


def test_nets_that_are_fitted_together_read_their_own_batches(many_rows):
    # Theorem R10, Theorem U2.
    net, y = NETS["classes"]
    nets = [clone(net).set_params(random_state=seed, lr=rate) for seed, rate in ((0, 1), (1, 2))]
    together = DPNeuralNetClassifier.fit_many(list(map(clone, nets)), in_order(ROWS, y))
    for one, other in zip(nets, together, strict=True):
        assert weights_of(one.fit(ROWS, y)).tobytes() == weights_of(other).tobytes()


def test_labels_that_are_not_declared_count_as_zeros(many_rows):
    # Theorem R5: in any type, which one record may decide.
    net, y = NETS["classes"]
    plain, rows = y.copy(), ROWS.copy()
    rows[[3, 8]], plain[[3, 8]] = 0.0, 0
    wanted = weights_of(clone(net).fit(rows, plain))
    for odd in ("seven", np.nan, -(2**53)):
        labels = y.astype(object)
        labels[[3, 8]] = None, odd
        assert (weights_of(clone(net).fit(in_order(ROWS, labels))) == wanted).all()


def test_without_rows_only_noise_is_fitted(many_rows):
    net, y = NETS["classes"]
    empty = PrivateRows.from_arrays(ROWS[:0], y[:0])
    with pytest.raises(ValueError, match="must have records; got 0"):
        clone(net).fit(empty)
    made = clone(net).set_params(n_public=N)
    assert (weights_of(clone(made).fit(empty)) == weights_of(made.fit(ROWS[:0], y[:0]))).all()


class InParts(DPNeuralNetClassifier):
    """Fits any table in parts of seven rows."""

    def fit(self, X, y=None, *, groups=None):
        return super().fit(PrivateRows.from_arrays(X, y, rows_per_part=7))


def test_replayed_neighbours_differ_as_they_may(many_rows):
    """Theorem R10."""
    net = InParts(classes=[0, 1, 2], n_public=60, **{**SMALL, "random_state": None})
    record = (np.array([1e9, np.nan, -1.0, 2.0]), 1)
    replay_neighbours(net, ROWS[10:70], LABELS[10:70], record, n_repeats=6).assert_passes()


# Tables, clusters, searches ---------------------------------------------------------------------


def table(size=300):
    draw = np.random.default_rng(3)
    frame = pd.DataFrame({"age": draw.integers(18, 90, size).astype(float)})
    frame["town"] = draw.choice(["a", "b", None], size)
    return frame, np.where(frame["age"] > 50, "yes", "no")


@pytest.mark.parametrize("cells", [0, 2**23])
def test_pipelines_and_searches_of_nets_are_those_of_a_table(cells, monkeypatch):
    """Theorem R10, Theorem R11."""
    monkeypatch.setattr("skdptune.base._rows_in_parts._LITTLE", cells)
    X, y = table()
    schema = Schema({"age": (18, 90), "town": ["a", "b"]}, ["no", "yes"])
    net = DPNeuralNetBinaryClassifier(**{**SMALL, "max_epochs": 2})
    pipeline = make_private_pipeline(net, schema)
    models = [clone(pipeline).fit(X, y), clone(pipeline).fit(in_frames(X, y))]
    assert (weights_of(models[0][-1]) == weights_of(models[1][-1])).all()
    assert list(models[1].predict(X)) == list(models[0].predict(X))
    search = DPGridSearchCV(
        pipeline,
        {"dpneuralnetbinaryclassifier__lr": [0.1, 1.0]},
        epsilon=3.0,
        strategy="table",
        random_state=0,
    )
    found = [clone(search).fit(X, y), clone(search).fit(in_frames(X, y))]
    assert found[0].best_params_ == found[1].best_params_
    scores = [np.asarray(one.cv_results_["mean_test_score"]) for one in found]
    np.testing.assert_allclose(*scores, atol=1e-6)
    best = [weights_of(one.best_estimator_[-1]) for one in found]
    np.testing.assert_allclose(*best, rtol=1e-4, atol=1e-6)


def in_frames(X, y):
    halves = (slice(0, 130), slice(130, None))
    return PrivateRows.from_chunks([lambda h=half: iter([(X[h], y[h])]) for half in halves])


@pytest.mark.parametrize("cells", [0, 2**23])
def test_dask_gives_the_same_bits(cells, whole, monkeypatch):
    # Theorem R10: sums over rows in parts count each row once, with the same bits for any parts.
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr("skdptune.base._rows_in_parts._LITTLE", cells)
    for name in ("classes", "fixed"):
        net, y = NETS[name]
        lazy = da.from_array(ROWS, chunks=(130, 3)), da.from_array(y, chunks=150)
        found = clone(net).fit(*lazy)
        assert weights_of(found).tobytes() == weights_of(whole[name]).tobytes()


def test_images_of_dask_and_of_files_are_read_in_memory(tmp_path):
    da = pytest.importorskip("dask.array")
    images, targets = ROWS[10:].reshape(-1, 2, 2), TARGETS[10:, 0]
    net = NETS["fixed"][0]
    wanted = weights_of(clone(net).fit(images, targets))
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    for given_as in (da.from_array(images), mapped):
        assert (weights_of(clone(net).fit(given_as, targets)) == wanted).all()


# Refusals ---------------------------------------------------------------------------------------


def unread():
    raise AssertionError("read")


@pytest.mark.parametrize(
    ("rows", "fitted", "message"),
    [
        (in_order(ROWS, LABELS), {"classes": None}, "Declare the labels"),
        (PrivateRows.from_arrays(ROWS), {}, "requires y to be passed"),
        (PrivateRows.from_chunks(iter([(ROWS, LABELS)])), {}, "readable again"),
        (PrivateRows.from_chunks(unread), {"groups": np.arange(N)}, "groups must be None with"),
        (PrivateRows.from_arrays(ROWS, LABELS), {"module": torch.nn.BatchNorm1d(4)}, "BatchNorm"),
    ],
)
def test_what_cannot_be_fitted_in_parts_is_refused_for_free(rows, fitted, message):
    net = clone(NETS["weighted"][0]).set_params(
        class_weight=None, **{name: value for name, value in fitted.items() if name != "groups"}
    )
    ledger = PrivacyLedger(":memory:", "patients", epsilon=9.0, delta=1e-3)
    with ledger, pytest.raises((TypeError, ValueError), match=message):
        net.fit(rows, groups=fitted.get("groups"))
    assert not ledger.history()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[::-1], y[::-1]), "same order in every pass.* part 0 of X"),
        (lambda X, y: (X[:-1], y[:-1]), "another number of rows.* part 0 of X"),
        (lambda X, y: (X[:, 1:], y), "4 columns; got 3. This is part 0 of X"),
        (lambda X, y: 1 / 0, "part 0 of X must be readable; got ZeroDivisionError"),
    ],
)
def test_rows_that_change_between_passes_end_a_fit(change, message, many_rows, monkeypatch):
    """Theorem R10: a coin belongs to the number of a row."""
    monkeypatch.setattr(_noisy_gradient_plan, "_NUMBERS_AHEAD", 1)
    passes = iter(range(1000))

    def chunks():
        yield (ROWS, LABELS) if next(passes) < 4 else change(ROWS, LABELS)

    net = clone(NETS["classes"][0])
    with pytest.raises((ValueError, RuntimeError), match=message):
        net.fit(PrivateRows.from_chunks(chunks))
    assert not hasattr(net, "privacy_")
