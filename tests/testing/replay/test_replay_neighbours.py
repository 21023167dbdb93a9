"""Private estimators pass for any record, and each planted leak is found."""

from __future__ import annotations

import functools
import sys
import types

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Normalizer,
    StandardScaler,
)
from sklearn.tree import DecisionTreeRegressor

from skdptune.accounting import PrivacyProfile
from skdptune.base import NoProfileError, register_profile
from skdptune.linear_model import DPLogisticRegression
from skdptune.preprocessing import DPStandardScaler, RowNormClipper
from skdptune.testing import NeighbourReplay, replay_neighbours
from tests.base.nasty_records import Stubborn
from tests.testing import estimators as toys
from tests.testing.public_estimators import BOUNDS, ESTIMATORS, SEARCHES, nets
from tests.testing.replay import leaks

RNG = np.random.default_rng(3)
X = RNG.uniform(-1.0, 1.0, size=(127, 3))
LABELS = np.arange(127) % 2
TARGETS = 0.5 * X[:, 0]
# Records in the domain, far outside, and improper ones.
RECORDS = {
    "corner": [1.0, -1.0, 1.0],
    "far": [leaks.SECRET, -1e8, 1e12],
    "improper": [np.nan, np.inf, 0.0],
    "zeros": [0.0, 0.0, 0.0],
}
FAR = RECORDS["far"]


@pytest.fixture(autouse=True)
def _same_draws_of_the_system(monkeypatch):
    monkeypatch.setattr(leaks.TakesNoiseFromTheSystem, "stream", np.random.default_rng(0))


def replay(estimator, record=FAR, **settings) -> NeighbourReplay:
    """Replay on data that suit the estimator, with the least common label."""
    y = LABELS if is_classifier(estimator) else TARGETS if is_regressor(estimator) else None
    target = 1 if is_classifier(estimator) else record[0]
    return replay_neighbours(
        estimator, X, y, record if y is None else (record, target), **settings
    )


def found_in(result) -> set[str]:
    return {finding.attribute for finding in result.findings}


# What must pass ----------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(len(ESTIMATORS)))
def test_every_public_estimator_passes(place) -> None:
    result = replay(ESTIMATORS[place], n_repeats=6)
    assert result.findings == [], str(result)
    assert len(result.rows) > 10


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("place", range(len(ESTIMATORS)))
def test_every_public_estimator_passes_any_record_and_more_seeds(place, name) -> None:
    replay(ESTIMATORS[place], RECORDS[name], n_repeats=60).assert_passes(needs_replay=False)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(SEARCHES)))
def test_every_search_passes(place) -> None:
    search = clone(SEARCHES[place])
    result = replay_neighbours(search, X, LABELS, ([5.0, -5.0, 5.0], 1), n_repeats=20)
    assert result.findings == [], str(result)


@pytest.mark.slow
@pytest.mark.parametrize("net", nets(), ids=lambda net: type(net).__name__)
def test_every_net_passes(net) -> None:
    rows = X.astype(np.float32)
    y = TARGETS.astype(np.float32) if is_regressor(net) else LABELS
    result = replay_neighbours(net, rows, y, ([100.0, -100.0, 100.0], 1), n_repeats=12)
    assert result.findings == [], str(result)


@pytest.mark.parametrize("name", ["corner", "far", "zeros"])
def test_a_private_mean_passes(name) -> None:
    replay(leaks.NoisyMean(), RECORDS[name]).assert_passes()


def test_right_estimators_at_the_limit_of_their_claim_pass() -> None:
    # Theorem V1: how far one record may move the mean of anything published.
    # All other records point the other way, and each seed is another chance to blame it.
    rows = np.tile([-1.0, 0.0], (60, 1))
    for seed in range(8):
        result = replay_neighbours(
            leaks.NoisyMean(), rows, None, [1e3, 0.0], n_repeats=8, random_state=seed
        )
        assert result.findings == []


def test_pipelines_pass_and_free_steps_inside_do_not() -> None:
    classifier = DPLogisticRegression(solver="output", data_norm=2.0)
    right = make_pipeline(DPStandardScaler(bounds=BOUNDS), classifier)
    replay(right, n_repeats=8).assert_passes()
    wrong = make_pipeline(leaks.CountsForFree(), classifier)
    assert found_in(replay(wrong, n_repeats=8)) == {"steps[0][1].positive_count_"}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("LogisticRegression", {"data_norm": 2.0}),
        ("GaussianNB", {"bounds": BOUNDS}),
        ("KMeans", {"n_clusters": 2, "bounds": BOUNDS}),
    ],
)
def test_models_of_diffprivlib_pass(name, settings, monkeypatch) -> None:
    models = pytest.importorskip("diffprivlib.models")
    # As if nothing were known against them: a replay finds exact values, not too little noise.
    monkeypatch.setattr("skdptune.base._refusals._BY_CLASS", {})
    result = replay(getattr(models, name)(**settings), RECORDS["corner"], n_repeats=6)
    assert result.findings == [], str(result)
    assert result.neighbouring == "replace one of a public number of records"


def test_a_model_of_diffprivlib_that_reads_its_bounds_off_the_data_claims_nothing() -> None:
    models = pytest.importorskip("diffprivlib.models")
    with pytest.raises(NoProfileError, match="without bounds"):
        replay(models.GaussianNB())


# What must be found ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "settings", "leaking"),
    [
        (LogisticRegression, {}, {"coef_", "intercept_"}),
        (GaussianNB, {}, {"theta_", "var_", "class_count_", "epsilon_"}),
        (KNeighborsClassifier, {}, {"_fit_X", "_y", "n_samples_fit_"}),
        (DecisionTreeRegressor, {"max_depth": 2}, {"tree_[1][3]"}),
        (StandardScaler, {}, {"mean_", "var_", "n_samples_seen_"}),
        (PCA, {"n_components": 1}, {"mean_", "components_", "n_samples_"}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_estimators_of_scikit_learn_with_a_false_profile_are_caught(
    kind, settings, leaking
) -> None:
    """Even by a record like others, and whatever is claimed."""
    # A separate class, so that nothing is registered for others.
    claimed = type(kind.__name__, (kind,), {})
    register_profile(claimed)(lambda estimator, n_samples, n_features: PrivacyProfile.pure(8.0))
    result = replay(claimed(**settings), RECORDS["corner"], n_repeats=10)
    assert leaking <= found_in(result), str(result)
    with pytest.raises(AssertionError, match="publishes more than it claims"):
        result.assert_passes()


PLANTED = {
    leaks.ForgetsToClip: ("mean_", "moves too far"),
    leaks.StandardizesForFree: ("mean_", "moves too far"),
    leaks.ReleasesTwice: ("all numbers together", "moves too far"),
    leaks.NoiseFromTheSystemAndNoClipping: ("mean_", "moves too far"),
    leaks.CountsForFree: ("positive_count_", "differs without noise"),
    leaks.CountsIterations: ("n_iter_", "differs without noise"),
    leaks.StoresItsData: ("_kept[0][0]", "differs without noise"),
    leaks.StoresAnObject: ("scaler_.content.content", "differs without noise"),
    leaks.NamesKeysAfterRecords: ("seen_ (keys)[0]", "differs without noise"),
    leaks.NamesAttributesAfterRecords: ("table_ (not in all fits)", "differs without noise"),
    leaks.FailsForOne: ("fit", "differs without noise"),
    leaks.WarnsOfOne: ("warnings", "differs without noise"),
    leaks.PredictsFromItsData: ("predict(X)", "differs without noise"),
    leaks.ExpectsABatchOfPrivateSize: ("expected_batch_size_", "follows from the private size"),
    leaks.CountsStepsByPrivateSize: ("steps_", "follows from the private size"),
    leaks.PublishesItsRate: ("optimizer_[0]", "follows from the private size"),
    leaks.DividesByPrivateSize: ("mean_", "follows from the private size"),
    leaks.RegularizesByPrivateSize: ("mean_", "follows from the private size"),
    leaks.ScalesByRootOfPrivateSize: ("mean_", "follows from the private size"),
    leaks.IgnoresItsPublicSize: ("mean_", "follows from the private size"),
    leaks.StatesNoPublicSize: ("mean_", "follows from the private size"),
    leaks.AnnouncesByPrivateSize: ("noise_level(n)", "follows from the private size"),
}


@pytest.mark.parametrize("kind", PLANTED, ids=lambda kind: kind.__name__)
def test_planted_leaks_are_found(kind) -> None:
    # The 121st record is one step more.
    result = replay_neighbours(kind(), X[:120], None, FAR, n_repeats=12)
    assert PLANTED[kind] in {(found.attribute, found.kind) for found in result.findings}, result
    assert str(leaks.SECRET).split(".")[0] not in str(result) + repr(result.rows)


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self, left, right):
        self.left, self.right = left, right


class Both(Slotted):
    """Slots of a base class, and a dictionary."""

    def __init__(self, left, more):
        super().__init__(left, 0)
        self.more = more


# What an estimator may store of a record, whatever it is made of.
CONTENTS = {
    "number": (1.0, 2.0),
    "last_bit": (1.0, 1.0 + 2**-52),
    "word": ("a", "b"),
    "truth": (True, False),
    "type": (1, 1.5),
    "none": (None, 0),
    "array": (np.arange(3), np.array([0, 1, 3])),
    "complex": (np.array([1j]), np.array([2j])),
    "shape": (np.zeros((2, 3)), np.zeros((3, 2))),
    "objects": (np.array([1, "b", None], object), np.array([1, "c", None], object)),
    "records": (np.zeros(1, "f8,i4"), np.ones(1, "f8,i4")),
    "list": ([1, [2, 3]], [1, [2, 4]]),
    "set": ({1, 2}, {1, 3}),
    "key": ({"a": 1}, {"b": 1}),
    "value": ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}),
    "sparse": (sparse.eye(3).tocsr(), 2 * sparse.eye(3).tocsr()),
    "frame": (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 3]})),
    "slots": (leaks.Box(1), leaks.Box(2)),
    "base": (Both(1, 2), Both(3, 2)),
    "masked": (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 1])),
    "state": (functools.partial(max, 1), functools.partial(max, 2)),
    "generator": (np.random.default_rng(0), np.random.default_rng(1)),
    "function": (len, max),
    "nan": (np.nan, 1.0),
}


class Stores(leaks.NoisyMean):
    """Stores one of two contents of every kind, as a record decides; and one that never ends."""

    def _before(self, X):
        for name, contents in CONTENTS.items():
            setattr(self, f"{name}_", contents[int(np.max(X) > 1e6)])
        self.circle_ = [self.number_]
        self.circle_.append(self.circle_)
        self.stubborn_ = Stubborn()


def test_what_is_stored_is_found_whatever_it_is_made_of() -> None:
    found = {finding.attribute.split("_")[0] for finding in replay(Stores(), n_repeats=6).findings}
    assert {name.split("_")[0] for name in CONTENTS} <= found


def test_a_result_prints_as_a_table() -> None:
    lines = str(replay(leaks.CountsForFree(), n_repeats=8)).splitlines()
    assert lines[0].startswith("CountsForFree: epsilon = ") and lines[0].endswith("; 8 seeds")
    assert lines[2].split() == ["value", "neighbours", "noise", "moved", "allowed", "result"]
    assert any(line.startswith("positive_count_  ") for line in lines)
    assert "1 finding:" in "\n".join(lines) or "findings:" in "\n".join(lines)


def test_all_wrong_means_are_tested() -> None:
    wrong = {
        kind
        for kind in vars(leaks).values()
        if isinstance(kind, type) and issubclass(kind, leaks.NoisyMean)
    }
    right = {
        *(leaks.NoisyMean, leaks.HasPublicSize, leaks.ShufflesFirst, leaks.HidesItsNoise),
        *(leaks.TakesNoiseFromTheSystem, leaks.ClaimsNothing),
    }
    elsewhere = {leaks.ClipsEachNumberAlone, leaks.MeanOverPrivateSize}
    assert wrong == {*PLANTED, *right, *elsewhere}


def test_a_mean_over_a_private_size_moves_by_twice_as_much() -> None:
    rows = np.tile([-1.0, 0.0], (99, 1))
    result = replay_neighbours(leaks.MeanOverPrivateSize(), rows, None, [1e3, 0.0], n_repeats=60)
    assert ("mean_", "moves too far") in {(f.attribute, f.kind) for f in result.findings}


def test_many_columns_move_together() -> None:
    """No single number moves far, and all of them do."""
    rows = np.random.default_rng(0).uniform(-0.01, 0.01, size=(60, 400))
    record = np.ones(400)
    wrong = replay_neighbours(leaks.ClipsEachNumberAlone(), rows, None, record)
    assert "mean_" in found_in(wrong)
    assert replay_neighbours(leaks.NoisyMean(), rows, None, record).findings == []


# Sizes -------------------------------------------------------------------------------------------


def test_public_sizes_are_told_from_private_ones() -> None:
    result = replay(leaks.HasPublicSize())
    result.assert_passes()
    stated = {row.attribute: row.result for row in replay(toys.Right()).rows}
    assert stated["size_"] == "follows from the public size"
    fixed = {row.attribute: row.result for row in replay(toys.Right(n_public=100)).rows}
    assert fixed["size_"] == "identical"

    class States(leaks.HasPublicSize):
        """Says that the number is public, and takes no constant for it."""

        def __init__(self, noise=4.0, random_state=None):
            super().__init__(noise, random_state)
            del self.n_public

        n_public = None

    assert not {f.kind for f in replay(States()).findings} & {"follows from the private size"}


def test_a_size_that_replacing_leaves_unchanged_is_public() -> None:
    class Replaces(leaks.DividesByPrivateSize):
        neighbouring = "replace one of a public number of records"

    result = replay(Replaces())
    result.assert_passes()
    assert {row.neighbours for row in result.rows if row.moved is not None} == {"record replaced"}


# The same noise ----------------------------------------------------------------------------------


def test_noise_that_is_not_replayed_is_named() -> None:
    system = replay(leaks.TakesNoiseFromTheSystem())
    assert system.findings == []
    assert {"mean_", "transform(X)"} <= set(system.not_replayed)
    with pytest.raises(AssertionError, match="no seed repeats the noise"):
        system.assert_passes()
    # One more record shifts all draws; another one in its place does not.
    shuffled = {row.attribute: row for row in replay(leaks.ShufflesFirst()).rows}
    assert shuffled["mean_"].replayed and shuffled["mean_"].neighbours == "record replaced"
    assert replay(leaks.HidesItsNoise()).not_replayed == []


def test_results_repeat_themselves_and_leave_no_trace() -> None:
    estimator = DPLogisticRegression(solver="output", random_state=3)
    before, state = dict(vars(estimator)), np.random.get_state()[1].tolist()
    one, again = (replay(estimator, n_repeats=6) for _ in range(2))
    other = replay(estimator, n_repeats=6, random_state=1)
    assert one == again != other
    assert vars(estimator) == before
    assert np.random.get_state()[1].tolist() == state


def test_torch_is_seeded_where_it_is_loaded(monkeypatch) -> None:
    torch = types.ModuleType("torch")
    torch.generator = np.random.RandomState(5)
    torch.manual_seed = torch.generator.seed
    torch.get_rng_state = torch.generator.get_state
    torch.set_rng_state = torch.generator.set_state
    monkeypatch.setitem(sys.modules, "torch", torch)
    before = torch.get_rng_state()[1].tolist()

    class Draws(leaks.NoisyMean):
        def _released(self, total, rng):
            return total + self.noise * torch.generator.normal(size=total.shape)

    assert replay(Draws()).not_replayed == []
    assert torch.get_rng_state()[1].tolist() == before


def test_fits_that_change_their_data_change_a_copy() -> None:
    class Scales(leaks.NoisyMean):
        def _clipped(self, X):
            X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
            X *= 0.5
            return X

    rows = X.copy()
    replay_neighbours(Scales(), rows, None, FAR, n_repeats=6).assert_passes()
    assert np.array_equal(rows, X)


# Arguments of fits, and their claims ----------------------------------------------------------


class Seen(leaks.NoisyMean):
    """Notes the tables that it is fitted to."""

    tables: list = []

    def _before(self, X):
        Seen.tables.append(X)

    def _clipped(self, X):
        return super()._clipped(np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float))


@pytest.mark.parametrize("form", ["array", "frame", "list", "sparse"])
def test_data_sets_differ_in_one_record_and_keep_their_form(form) -> None:
    make = {"frame": pd.DataFrame, "list": np.ndarray.tolist, "sparse": sparse.csr_matrix}
    given = make.get(form, np.float32)(np.tile([0.5, 0.25], (9, 1)))
    Seen.tables.clear()
    replay_neighbours(Seen(), given, None, [1.0, -1.0], n_repeats=6).assert_passes()
    assert {type(each) for each in Seen.tables} == {type(given)}
    assert {getattr(each, "dtype", None) for each in Seen.tables} == {
        getattr(given, "dtype", None)
    }
    found = set()
    for each in Seen.tables:
        rows = np.asarray(each.toarray() if form == "sparse" else each, dtype=float).tolist()
        found.add((len(rows), rows.count([1.0, -1.0])))
    # Without the record, with it, and with another in its place.
    assert {(9, 0), (10, 1), (10, 0)} <= found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((X, LABELS, [1.0, 2.0, 3.0]), "record must be a pair"),
        ((X, None, [98765.0]), "record must have the shape of a row"),
        ((X[:1], None, X[0]), "at least two records"),
    ],
)
def test_wrong_data_are_refused_without_quoting_them(arguments, words) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        replay_neighbours(leaks.NoisyMean(), *arguments)
    assert "98765" not in str(caught.value)


def test_shifts_follow_from_the_profile() -> None:
    # Theorem V1. Replacing a record is two steps.
    allowed = {
        row.neighbours: row.allowed
        for record in (FAR, np.zeros(3))
        for row in replay(leaks.NoisyMean(), record, n_repeats=20, random_state=3).rows
        if row.allowed
    }
    assert allowed.pop("record added", 0.25) == pytest.approx(0.25, rel=0.05)
    assert allowed.pop("record replaced", 0.5) == pytest.approx(0.5, rel=0.05)
    result = replay(leaks.NoisyMean(), n_repeats=10)
    assert (result.estimator, result.n_repeats, result.delta) == ("NoisyMean", 10, 1e-5)
    assert result.epsilon == pytest.approx(PrivacyProfile.gaussian(0.25).epsilon(1e-5))


@pytest.mark.parametrize("free", [Normalizer(), RowNormClipper()], ids=["normalizer", "clipper"])
def test_free_steps_need_no_public_size(free) -> None:
    # So that values that follow from the number of other records are private.
    found = replay(make_pipeline(free, leaks.IgnoresItsPublicSize()), RECORDS["corner"]).findings
    assert {finding.kind for finding in found} == {"follows from the private size"}


# Arguments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"n_repeats": 5}, ValueError, "n_repeats must be an integer of at least 6; got 5"),
        ({"random_state": None}, TypeError, "random_state must be an integer"),
        ({"estimator": leaks.NoisyMean}, TypeError, "must be an instance; got the class Noisy"),
        ({"estimator": StandardScaler()}, NoProfileError, "must be private"),
        ({"estimator": leaks.ClaimsNothing()}, ValueError, "must claim some privacy"),
    ],
)
def test_wrong_arguments_are_refused(arguments, kind, words) -> None:
    given = {"estimator": leaks.NoisyMean(), "X": X, "y": None, "record": FAR, **arguments}
    with pytest.raises(kind, match=words):
        replay_neighbours(**given)


def test_an_estimator_that_cannot_be_fitted_is_refused_without_its_words() -> None:
    rows = X.copy()
    rows[3, 0] = leaks.SECRET
    with pytest.raises(ValueError, match="fit of FailsForOne raised ValueError") as caught:
        replay_neighbours(leaks.FailsForOne(), rows, None, FAR)
    assert "98765" not in str(caught.value) and caught.value.__cause__ is None


def test_an_estimator_that_mostly_fails_does_not_pass_in_silence() -> None:
    class Fails(leaks.NoisyMean):
        def _before(self, X):
            if self.random_state % 5:
                raise ValueError("bad luck")

    result = replay(Fails(), n_repeats=12)
    assert [row.attribute for row in result.rows] == ["fit"]
    with pytest.raises(AssertionError, match="nothing else was compared"):
        result.assert_passes()
