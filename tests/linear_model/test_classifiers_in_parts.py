"""Classifiers of rows that lie in parts: exact sums, the same bits for any parts, and refusals."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special
from sklearn.base import clone

from skdptune import (
    DPLinearSVC,
    DPLogisticRegression,
    PrivacyLedger,
    PrivateRows,
    RowNormClipper,
    Schema,
    make_private_pipeline,
)
from skdptune.linear_model._solvers import (
    Design,
    ExactGradients,
    cut_basis,
    softmax_residuals,
)
from skdptune.linear_model._solvers._noisy_gradient import (
    ClippedGradients,
    Coordinates,
    margin_residuals,
)
from skdptune.mechanisms import _noisy_gradient_plan
from skdptune.testing import replay_neighbours
from tests.parts import in_order, in_parts

rng = np.random.default_rng(0)
N = 700
ROWS = rng.normal(size=(N, 4)) * rng.choice([0.1, 1.0, 30.0], size=(N, 1))
LABELS = (ROWS[:, 0] - ROWS[:, 1] + 0.3 * rng.normal(size=N) > 0).astype(int)
THREE = LABELS + (ROWS[:, 2] > 0)
ROWS[5, 1], ROWS[6, 0] = np.nan, 1e200
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "epochs": 6, "random_state": 0}
MODELS = {
    "logistic": (DPLogisticRegression(classes=[0, 1], **BUDGET), LABELS),
    "clipped": (DPLogisticRegression(classes=[0, 1], data_norm=1.0, C=0.1, **BUDGET), LABELS),
    "weighted": (DPLinearSVC(classes=[0, 1], class_weight={0: 0.3, 1: 1.0}, **BUDGET), LABELS),
    "softmax": (DPLogisticRegression(classes=[0, 1, 2], **BUDGET), THREE),
    "rest": (DPLinearSVC(classes=[0, 1, 2], fit_intercept=False, **BUDGET), THREE),
    "few": (DPLogisticRegression(classes=[0, 1], **{**BUDGET, "epsilon": 1e-3}), LABELS),
}
NOISY = {"solver": "sgd", "batch_size": 60, "epsilon": 1.0, "delta": 1e-6, "random_state": 0}
BATCHES = {
    "poisson": (DPLogisticRegression(classes=[0, 1], **NOISY), LABELS),
    "fixed": (DPLinearSVC(classes=[0, 1], sampling="fixed", **NOISY), LABELS),
    "allocation": (
        DPLinearSVC(classes=[1, 2, 3], sampling="allocation", C=0.1, epochs=3.5, **NOISY),
        THREE,
    ),
    "adam": (
        DPLogisticRegression(
            classes=[0, 1, 2],
            class_weight={0: 1.0, 1: 0.3, 2: 0.5},
            **{**NOISY, "solver": "adam", "batch_size": 7, "epochs": 4},
        ),
        THREE,
    ),
    "all records": (
        DPLogisticRegression(classes=[0, 1], n_public=500, **{**NOISY, "batch_size": 500}),
        LABELS,
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore:.* is fitted again")


def chunk(y, places):
    return lambda: iter([(ROWS[places], y[places])])


def in_chunks(y, cuts, seed=0):
    """Return the rows in parts of other sizes and in another order."""
    order = np.random.default_rng(seed).permutation(N)
    return PrivateRows.from_chunks([chunk(y, part) for part in np.split(order, sorted(cuts))])


def bits(model):
    return model.coef_.tobytes() + model.intercept_.tobytes()


@pytest.fixture(scope="module")
def one_part():
    with pytest.MonkeyPatch.context() as patch:
        # Rows that are read again for each step.
        patch.setattr("skdptune.base._rows_in_parts._LITTLE", 0)
        return {
            name: bits(clone(model).fit(PrivateRows.from_arrays(ROWS, y)))
            for name, (model, y) in MODELS.items()
        }


@pytest.mark.parametrize("cells", [0, N * 4 - 1, N * 4])
def test_few_rows_are_read_once_for_all_steps(one_part, monkeypatch, cells):
    # Theorem R10: the bound follows from public numbers, and the bits are the same.
    monkeypatch.setattr("skdptune.base._rows_in_parts._LITTLE", cells)
    passes = []

    def chunks():
        passes.append(1)
        return chunk(LABELS, slice(None))()

    model = clone(MODELS["logistic"][0]).fit(PrivateRows.from_chunks(chunks))
    assert bits(model) == one_part["logistic"]
    assert (len(passes) > BUDGET["epochs"]) == (cells < N * 4)


# The same model for any parts -------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=4)
@given(cuts=st.lists(st.integers(0, N), max_size=5), seed=st.integers(0, 2**32 - 1))
def test_any_parts_give_the_same_bits(name, one_part, cuts, seed):
    """Theorem R10."""
    model, y = MODELS[name]
    assert bits(clone(model).fit(in_chunks(y, cuts, seed))) == one_part[name]


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_nearly_that_of_a_fit_in_memory(name):
    # Rows are cut to a millionth of their length.
    model, y = MODELS[name]
    whole, parts = clone(model).fit(ROWS, y), clone(model).fit(in_chunks(y, [100, 101]))
    assert_allclose(parts.coef_, whole.coef_, atol=1e-4 * np.abs(whole.coef_).max())
    assert_allclose(parts.intercept_, whole.intercept_, atol=1e-4 * np.abs(whole.coef_).max())
    assert parts.privacy_.profile.delta(0.5) == whole.privacy_.profile.delta(0.5)
    assert str(parts.privacy_) == str(whole.privacy_)


def test_dask_gives_the_same_bits(one_part):
    dask = pytest.importorskip("dask.array")
    rows, y = dask.from_array(ROWS, chunks=(300, 4)), dask.from_array(THREE, chunks=300)
    assert bits(clone(MODELS["softmax"][0]).fit(rows, y)) == one_part["softmax"]
    model = BATCHES["adam"][0]
    assert bits(clone(model).fit(rows, y)) == bits(clone(model).fit(ROWS, THREE))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", BATCHES)
@settings(max_examples=3)
@given(cuts=st.lists(st.integers(0, N), max_size=5), ahead=st.sampled_from([1, 999, 2**25]))
def test_batches_of_any_parts_give_the_bits_of_a_fit_in_memory(name, dtype, cuts, ahead):
    """Theorem R10."""
    model, y = BATCHES[name]
    with np.errstate(over="ignore"), pytest.MonkeyPatch.context() as patch:
        rows = ROWS.astype(dtype)
        patch.setattr(_noisy_gradient_plan, "_NUMBERS_AHEAD", ahead)
        inside, passes = clone(model).fit(rows, y), []
        found = clone(model).fit(in_order(rows, y, cuts, passes))
    assert bits(found) == bits(inside)
    assert str(found.privacy_) == str(inside.privacy_)
    # One more to see the types, and one to count the rows.
    plan = found.plan_
    at_once = max(1, (2**22 if ahead // 5 > N else ahead // 5) // plan.batch_size)
    # Steps on all rows read them once.
    assert len(passes) == 2 + (1 if plan.rate == 1.0 else -(-plan.steps // at_once))


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, N), max_size=5), seed=st.integers(0, 2**32 - 1))
def test_gathered_rows_are_those_with_the_given_numbers(cuts, seed):
    """Theorem R10: also among chosen rows, for any cuts, and for no rows at all."""
    draw = np.random.default_rng(seed)
    rows, chosen = in_order(ROWS, THREE, cuts), np.flatnonzero(draw.random(N) < 0.7)
    for within, places in ((rows, np.arange(N)), (rows.take(chosen), chosen)):
        numbers = np.flatnonzero(draw.random(places.size) < draw.choice([0.0, 0.01, 0.6, 1.0]))
        cells, nothing, labels = within.gathered(numbers, lambda X, y: (X, None, y))
        assert_array_equal(cells, ROWS[places[numbers]])
        assert_array_equal(labels, THREE[places[numbers]])
        assert nothing is None


def test_rows_in_another_order_or_number_end_a_fit_on_batches(monkeypatch):
    """Theorem R10: a coin belongs to the number of a row."""
    monkeypatch.setattr(_noisy_gradient_plan, "_NUMBERS_AHEAD", 1)
    for last, message in (
        (np.arange(N)[::-1], "same order in every pass"),
        (np.arange(N - 1), "another number of rows"),
    ):
        passes = iter(range(1000))

        def chunks(last=last, passes=passes):
            places = last if next(passes) == 4 else np.arange(N)
            yield ROWS[places], LABELS[places]

        model = clone(BATCHES["poisson"][0])
        with pytest.raises(ValueError, match=rf"{message}.* part 0 of X"):
            model.fit(PrivateRows.from_chunks(chunks))
        assert not hasattr(model, "privacy_") and not hasattr(model, "coef_")


def test_maps_of_files_are_read_in_memory(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    model, y = MODELS["logistic"]
    mapped = clone(model).fit(np.load(tmp_path / "rows.npy", mmap_mode="r"), y)
    assert bits(mapped) == bits(clone(model).fit(ROWS, y))


def test_without_rows_only_noise_is_fitted():
    model, y = MODELS["logistic"]
    empty = PrivateRows.from_arrays(ROWS[:0], y[:0])
    with pytest.raises(ValueError, match="must have records; got 0"):
        clone(model).fit(empty)
    found = clone(model).set_params(n_public=N).fit(empty)
    assert bits(found) != bits(clone(model).set_params(n_public=N, random_state=1).fit(empty))


def test_rows_of_no_declared_label_count_as_zeros():
    model, y = MODELS["softmax"]
    odd, plain = y.astype(object), y.copy()
    odd[[3, 8]] = None, "seven"
    X = ROWS.copy()
    X[[3, 8]], plain[[3, 8]] = 0.0, 0
    found = clone(model).fit(PrivateRows.from_arrays(ROWS, odd))
    assert bits(found) == bits(clone(model).fit(PrivateRows.from_arrays(X, plain)))


# Exact sums -------------------------------------------------------------------------------------

LOGISTIC = margin_residuals(lambda margins: -special.expit(-margins))


def signs(codes, outputs):
    return LOGISTIC, np.where(codes == 1, 1.0, -1.0)


def softmax(codes, outputs):
    return softmax_residuals, codes


BASES = {
    "full": np.random.default_rng(1).normal(size=(5, 5)) * [1.0, 1e-3, 1.0, 50.0, 1.0],
    "diagonal": np.array([2.0, 0.1, 30.0, 0.5, 1.0]),
}
PROBLEMS = {"signs": (signs, 1), "softmax": (softmax, 3)}


def sums_of(basis, problem, limit=0.3, scale=1.0):
    problem_of, outputs = PROBLEMS[problem]
    point = scale * np.random.default_rng(2).normal(size=(5, outputs))
    return ExactGradients(problem_of, cut_basis(BASES[basis]), limit, point)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("basis", BASES)
def test_sums_are_those_of_clipped_gradients(basis, problem):
    design = Design.clipped(np.nan_to_num(ROWS), 100.0, intercept=True)
    sums = sums_of(basis, problem)
    found = sums.of_total(sums(design, THREE))
    coordinates = Coordinates(sums.basis, 5)
    residuals_of, targets = sums.problem_of(THREE, sums.point.shape[1])
    norms = coordinates.squared_norms(design)
    slow = ClippedGradients(design, targets, residuals_of, 0.3, norms)
    expected = coordinates.gradient(slow(coordinates.weights(sums.point), slice(None)))
    assert_allclose(found, expected, atol=0.3 * N * 1e-5)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("basis", BASES)
def test_a_sum_is_the_sum_of_its_records(basis, problem):
    # As whole numbers, and in blocks of rows that are added up by one product.
    many = np.concatenate([np.nan_to_num(ROWS)] * 8)
    labels = np.tile(THREE, 8)
    sums = sums_of(basis, problem)
    total = sums(Design.clipped(many, np.inf, intercept=True), labels)
    single = [
        sums(Design.clipped(many[[place]], np.inf, intercept=True), labels[[place]])
        for place in range(N)
    ]
    assert_array_equal(total, 8 * np.sum(single, axis=0))
    assert all(isinstance(entry, int) for entry in total.ravel())


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("basis", BASES)
@given(
    row=st.lists(st.floats(-1e300, 1e300) | st.floats(-2, 2), min_size=4, max_size=4),
    label=st.integers(0, 2),
    scale=st.sampled_from([0.0, 1e-9, 1.0, 1e9, 1e200, 1e300]),
    limit=st.sampled_from([1e-300, 1e-60, 0.3, 1e6]),
)
def test_no_record_counts_more_than_the_limit(basis, problem, row, label, scale, limit):
    """Theorem R10, Theorem M5: compared as fractions, without any rounding."""
    sums = sums_of(basis, problem, limit, scale)
    with np.errstate(all="ignore"):
        design = Design.clipped(np.array([row]), np.inf, intercept=True)
        total = sums(design, np.array([label]))
    unit = Fraction(limit) * Fraction(2) ** -59
    assert sum(Fraction(entry) ** 2 for entry in total.ravel()) * unit**2 <= Fraction(limit) ** 2


def rows_on_a_tie(width=40):
    """Return a row whose squared norm has other bits if its entries are added up otherwise."""
    for seed in range(200):
        row = np.random.default_rng(seed).normal(size=(1, width))
        many = np.asfortranarray(np.repeat(row, 3, axis=0))
        if np.einsum("ij,ij->i", many, many)[0] != np.einsum("ij,ij->i", row, row)[0]:
            return row
    raise AssertionError("NumPy adds up all of them in one order.")


def test_no_record_decides_in_which_order_others_are_added_up():
    # Theorem R10: one improper record makes NumPy copy the rows, so that rows are contiguous.
    row = rows_on_a_tie()
    columns = np.asfortranarray(np.repeat(row, 50, axis=0))
    assert len(np.unique(Design.clipped(columns, np.inf, intercept=False).squared_norms)) == 1
    wanted = Design.clipped(row, np.inf, intercept=False).squared_norms[0]
    assert Design.clipped(columns, np.inf, intercept=False).squared_norms[0] == wanted
    clipped = RowNormClipper(norm=1.0).fit(columns)
    odd = np.asfortranarray(np.vstack([columns, np.full(40, np.nan)]))
    assert_array_equal(clipped.transform(odd)[:50], clipped.transform(columns))


@pytest.mark.parametrize("entry", [1e155, 1e295, 1e307, np.inf, np.nan])
def test_weights_that_diverged_mix_no_records(entry):
    """Theorem R10."""
    sums = replace(sums_of("full", "softmax"), point=np.full((5, 3), entry))
    with np.errstate(all="ignore"):
        design = Design.clipped(np.nan_to_num(ROWS[:9]), np.inf, intercept=True)
        single = [sums(design.take(slice(k, k + 1)), THREE[k : k + 1]) for k in range(9)]
        assert_array_equal(sums(design, THREE[:9]), np.sum(single, axis=0))


def test_a_chunk_of_improper_labels_ends_no_fit():
    # Theorem R5: a record's label may decide the type of its chunk.
    text = np.where(LABELS == 1, "yes", "no")
    model = DPLogisticRegression(classes=["no", "yes"], **BUDGET)
    first = lambda: iter([(ROWS[:699], text[:699])])  # noqa: E731
    found = []
    for odd in ([np.nan], pd.Series([np.nan]), [7], [None], ["maybe"]):
        last = lambda odd=odd: iter([(ROWS[699:], odd)])  # noqa: E731
        found.append(bits(clone(model).fit(PrivateRows.from_chunks([first, last]))))
    assert len(set(found)) == 1
    with pytest.raises(TypeError, match="y must hold the labels 'no', 'yes'"):
        clone(model).fit(PrivateRows.from_arrays(ROWS, LABELS))


def test_labels_of_numbers_are_read_one_by_one():
    # Theorem R5: in any type, to which one record may turn those of its chunk.
    model = DPLogisticRegression(classes=[0, 2**53 - 1], **BUDGET)
    wide = np.where(LABELS == 1, 2**53 - 1, 0)
    wide[:3] = 1, 2**53, -1
    found = []
    for labels in (wide, wide.astype(np.uint64), wide.astype(float), wide.astype(object)):
        parts = lambda labels=labels: iter([(ROWS[:9], labels[:9]), (ROWS[9:], labels[9:])])  # noqa: E731
        found.append(bits(clone(model).fit(PrivateRows.from_chunks(parts))))
    assert len(set(found)) == 1
    lone = lambda: iter([(ROWS[:1], [True]), (ROWS[1:], wide[1:])])  # noqa: E731
    clone(model).fit(PrivateRows.from_chunks(lone))


def test_the_limit_is_reached():
    sums = sums_of("full", "signs", limit=1e-3)
    total = sums(Design.clipped(ROWS[:1], np.inf, intercept=True), LABELS[:1])
    assert 0.999e-3 < np.linalg.norm(sums.of_total(total)) <= 1e-3


@pytest.mark.parametrize("solver", ["preconditioned", "sgd"])
def test_replayed_neighbours_differ_as_they_may(solver):
    """Theorem R10."""
    model = in_parts(DPLogisticRegression)(
        1.0, 1e-6, classes=[0, 1], epochs=3, batch_size=20, solver=solver
    )
    record = (np.array([1e9, np.nan, -1.0, 2.0]), 1)
    replay_neighbours(model, ROWS[10:70], LABELS[10:70], record, n_repeats=6).assert_passes()


# Tables, pipelines, refusals --------------------------------------------------------------------


def table(size=600):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 90, size).astype(float), "smoker": rng.random(size) < 0.3}
    )
    frame["town"] = rng.choice(["a", "b", None], size)
    frame.loc[3, "age"] = np.nan
    frame["late"] = np.where(frame["age"] > 50, "yes", "no")
    return frame


SCHEMA = Schema({"age": (18, 90), "smoker": [False, True], "town": ["a", "b"]}, ["no", "yes"])


def test_files_of_tables_with_labels_as_text(tmp_path):
    pytest.importorskip("pyarrow")
    frame = table()
    frame[:200].to_parquet(tmp_path / "a.parquet")
    frame[200:].to_parquet(tmp_path / "b.parquet")
    pipeline = make_private_pipeline(DPLogisticRegression(**BUDGET), SCHEMA)
    model = clone(pipeline).fit(PrivateRows.from_parquet(tmp_path, target="late"))
    X, y = frame.drop(columns="late"), frame["late"]
    whole = clone(pipeline).fit(X, y)
    assert_allclose(model[-1].coef_, whole[-1].coef_, atol=1e-4)
    assert_array_equal(model.predict(X), whole.predict(X))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": None}, "Declare the labels"),
        ({"solver": "output"}, "solver='preconditioned'"),
        ({"solver": "objective"}, "solver='preconditioned'"),
    ],
)
def test_what_cannot_be_fitted_in_parts_is_refused_for_free(changes, message):
    model = DPLogisticRegression(**{"classes": [0, 1], **changes})
    ledger = PrivacyLedger(":memory:", "patients", epsilon=9.0, delta=1e-5)
    with ledger, pytest.raises(TypeError, match=message):
        model.fit(in_chunks(LABELS, [100]))
    assert not ledger.history()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (PrivateRows.from_arrays(ROWS), "requires y to be passed"),
        (PrivateRows.from_chunks(iter([(ROWS, LABELS)])), "readable again"),
    ],
)
def test_rows_without_labels_or_read_once_are_refused_for_free(rows, message):
    ledger = PrivacyLedger(":memory:", "patients", epsilon=9.0, delta=1e-5)
    with ledger, pytest.raises(ValueError, match=message):
        DPLogisticRegression(classes=[0, 1], n_public=N).fit(rows)
    assert not ledger.history()
