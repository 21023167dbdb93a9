"""Pairs of columns in a boosting machine: grids, costs and learned scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone

from skdptune.ensemble import DPExplainableBoostingClassifier as Classifier
from skdptune.ensemble import DPExplainableBoostingRegressor as Regressor
from skdptune.ensemble import _boosting, _pairs
from skdptune.ensemble._boosting import (
    BinaryResiduals,
    BinnedColumn,
    Bins,
    BoundedResiduals,
    Piece,
    Table,
    plan_of_noise,
    sums_at,
)
from skdptune.ensemble._pairs import (
    Axis,
    Grid,
    Pair,
    PairLearner,
    axis_of,
    energy,
    equal_parts,
    grid_scale,
    most_cells,
    purified,
    released_grid,
    shrunken_steps,
)
from skdptune.mechanisms._shared import UNIT
from skdptune.testing import replay_neighbours
from tests.ensemble.tables import SCHEMA, people

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (4000, 3))
CROSSED = (X[:, 0] > 0.5) ^ (X[:, 1] > 0.3)
PRODUCT = 4.0 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5)


def pair_of(rng, shape=(4, 3), n_outputs=2):
    axes = [Axis(np.arange(size), rng.uniform(5.0, 50.0, size)) for size in shape]
    return Pair((0, 1), axes, n_outputs)


# Grids ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_one_record_changes_one_cell_by_its_residuals_and_by_one(seed, monkeypatch):
    # Theorem B2: exactly, and the sums are those of a slow oracle.
    rng = np.random.default_rng(seed)
    n, leaves = 300, np.array([0, 1, 1, 0, 2, 2, 3, 3, 3, 4, 5, 5])
    places = [rng.integers(0, size, n) for size in (4, 3)]
    units = np.trunc(rng.uniform(-1, 1, (2, n)) / UNIT)
    seen = []
    monkeypatch.setattr(_pairs, "add_gaussian", lambda values, *_: seen.append(values) or values)
    for start in (0, 1):
        pair = pair_of(rng)
        piece = Piece([one[start:] for one in places], None)
        at = pair.layout.places(piece)
        pair.counts = np.bincount(at, minlength=12).astype(float)
        released_grid(pair, leaves, sums_at(at, units[:, start:], 12), 1.0, 1.0, rng)
    sums, counts, sums_less, counts_less = seen
    slow = np.zeros((3, 6))
    for record in range(n):
        cell = leaves[3 * int(places[0][record]) + int(places[1][record])]
        slow[:2, cell] += units[:, record] * UNIT
        slow[2, cell] += 1.0
    assert np.array_equal(np.vstack([sums, counts]), slow)
    changed = np.zeros((3, 6))
    cell = leaves[3 * int(places[0][0]) + int(places[1][0])]
    changed[:, cell] = *(units[:, 0] * UNIT), 1.0
    assert np.array_equal(np.vstack([sums - sums_less, counts - counts_less]), changed)


@pytest.mark.parametrize("count", [0.0, 1.0, 50.0])
def test_every_cell_gets_noise_of_the_planned_size(count, monkeypatch):
    # Theorem B2: cells without a record too, in sums of every output and in counts.
    seen = []

    def watched(values, scale, generator):
        seen.append((values.shape, scale))
        return values

    monkeypatch.setattr(_pairs, "add_gaussian", watched)
    rng = np.random.default_rng(0)
    pair, leaves = pair_of(rng), np.arange(12)
    pair.counts[:] = count
    grid = released_grid(pair, leaves, np.zeros((2, 12)), math.sqrt(2.0), 3.0, rng)
    scale = 3.0 * math.sqrt(2.0 + 0.35**2)
    assert [shape for shape, _ in seen] == [(2, 12), (12,)]
    assert [each for _, each in seen] == pytest.approx([scale, scale / 0.35])
    assert grid.scale == seen[0][1]
    assert (grid.counts > 0.0).all()


def test_noise_of_sums_is_drawn():
    rng = np.random.default_rng(0)
    pair = pair_of(rng)
    sums = [
        released_grid(pair, np.arange(12), np.zeros((2, 12)), 1.0, 2.0, rng).sums
        for _ in "a" * 200
    ]
    assert np.std(sums) == pytest.approx(2.0 * math.hypot(1.0, 0.35), rel=0.05)


@pytest.mark.parametrize("norm", [1.0, math.sqrt(2.0)])
@pytest.mark.parametrize(("n_looked_at", "rounds"), [(0, 100), (28, 100), (1, 2), (28, 3)])
def test_cost_is_that_of_all_releases_together(norm, n_looked_at, rounds):
    # Theorem B2: counts, steps, grids that are looked at, and grids of rounds.
    share, noise, k, looks = 0.1, 3.7, 5, 0.08
    plan, whole = plan_of_noise(noise), plan_of_noise(noise)
    if n_looked_at:
        plan = whole.part(1.0 - looks)
    left = round(0.4 * rounds)
    shifts = [1.0 / plan.count_scale(k, share)] * k
    shifts += [1.0 / plan.step_scale(k, rounds, share)] * (k * (rounds - left))
    search = whole.part(looks).noise_multiplier * math.sqrt(max(n_looked_at, 1))
    round_noise = plan.part((1.0 - share) * left / rounds / rounds).noise_multiplier
    for each, times in ((search, n_looked_at), (round_noise, rounds)):
        scale = grid_scale(norm, each)
        # A record moves a grid by its residuals, and by one in counts with 1/w times the noise.
        shifts += [math.hypot(norm / scale, 0.35 / scale)] * times
    together = math.sqrt(math.fsum(shift**2 for shift in shifts))
    assert together <= 1.0 / noise
    assert together == pytest.approx(1.0 / noise, rel=1e-9)


@pytest.mark.parametrize("crossed", [True, False])
@pytest.mark.parametrize("interactions", [None, "auto", 2, [(0, 1)]], ids=str)
def test_the_releases_of_a_fit_cost_what_it_states(interactions, crossed, monkeypatch):
    # Theorem B2: as they are made, by all noise that a fit draws.
    squares = []

    def grid(pair, leaves, units, norm, noise, generator):
        squares.append(1.0 / noise**2)
        return released_grid(pair, leaves, units, norm, noise, generator)

    def count(values, scale, generator):
        squares.append(1.0 / scale**2)
        return values

    class Steps:
        def __init__(self, scale, generator):
            self.square = 1.0 / scale**2

        def added_to(self, sums):
            squares.append(self.square)
            return sums

    monkeypatch.setattr(_pairs, "released_grid", grid)
    monkeypatch.setattr(_boosting, "add_gaussian", count)
    monkeypatch.setattr(_boosting, "NormalNoise", Steps)
    settings = {"noise_multiplier": 0.8, "max_rounds": 10, "random_state": 0}
    model = Regressor(None, bounds=(0, 1), target_bound=1.0, interactions=interactions, **settings)
    model.fit(X, PRODUCT if crossed else X[:, 0])
    if interactions == "auto":
        assert bool(model.pairs_) == crossed
    assert math.fsum(squares) <= 1.0 / 0.8**2
    assert math.fsum(squares) == pytest.approx(1.0 / 0.8**2, rel=1e-9)


def test_cost_does_not_depend_on_pairs():
    # Theorem B2: noisy sums and counts on grids of two columns.
    for interactions in (None, 0, "auto", 2, [(0, 1)]):
        model = Regressor(bounds=(0, 1), target_bound=1.0, interactions=interactions)
        assert model.privacy_profile(100).epsilon(1e-5) <= 1.0
        assert model.noise_level(100) == Regressor(bounds=(0, 1), target_bound=1.0).noise_level(
            100
        )


@pytest.mark.parametrize(
    ("label", "weights"), [("ill", None), ("none of these", {"ill": 12.0})], ids=str
)
def test_neighbours_are_not_told_apart(label, weights):
    # Theorem B2: noisy sums and counts on grids of two columns.
    few = np.random.default_rng(0).uniform(0, 1, (200, 2))
    y = np.where(few[:, 0] > 0.9, "ill", "well")
    model = Classifier(
        0.3,
        1e-4,
        bounds=(0, 1),
        classes=["ill", "well"],
        class_weight=weights,
        interactions=[(0, 1)],
        max_rounds=4,
        max_bins=2,
        bin_share=0.01,
    )
    replay = replay_neighbours(model, few, y, ([0.95, 0.95], label), n_repeats=20)
    assert replay.findings == [], str(replay)


# What is made of grids -----------------------------------------------------------------------


def test_steps_are_means_of_residuals_without_noise_and_small_for_noise_alone():
    counts = np.array([10.0, 20.0])
    steps, variances = shrunken_steps(Grid(np.array([[5.0, -20.0]]), counts, 0.0), np.ones(1))
    assert steps[0] == pytest.approx([0.25, -0.5])
    assert (variances == 0.0).all()
    rng = np.random.default_rng(0)
    grid = Grid(rng.normal(scale=3.0, size=(1, 400)), np.full(400, 10.0), 3.0)
    steps, variances = shrunken_steps(grid, np.ones(1))
    assert np.abs(steps).mean() < 0.1 * 0.5 * np.abs(grid.sums / 10.0).mean()
    nothing = shrunken_steps(Grid(np.zeros((1, 3)), np.ones(3), 1.0), np.ones(1))
    assert all((each == 0.0).all() for each in nothing)


def test_steps_are_the_best_linear_estimate():
    # In a limit: the error is that of the closed form, effects and noise as large as each other.
    rng = np.random.default_rng(0)
    effects, counts = rng.normal(size=(1, 20_000)), np.full(20_000, 5.0)
    grid = Grid(5.0 * effects + rng.normal(scale=5.0, size=effects.shape), counts, 5.0)
    steps, _ = shrunken_steps(grid, np.ones(1))
    assert np.mean((2.0 * steps - effects) ** 2) == pytest.approx(0.5, rel=0.05)


def test_energy_is_beyond_additive_fits():
    rng = np.random.default_rng(0)
    rows, columns = np.arange(6), np.arange(5)
    counts = rng.uniform(50.0, 100.0, 30)
    additive = counts * (rng.normal(size=6)[:, None] + rng.normal(size=5)).reshape(-1)
    crossed = counts * np.outer(rng.normal(size=6), rng.normal(size=5)).reshape(-1)
    found = []
    for sums in (additive, additive + crossed):
        noisy = sums + rng.normal(scale=20.0, size=30)
        found.append(energy(Grid(noisy[None], counts, 20.0), rows, columns)[1])
    assert found[0] < 3.0
    assert found[1] > 10.0
    # Without an interaction to measure there is none.
    assert energy(Grid(np.ones((1, 5)), np.ones(5), 1.0), rows[:1], columns) == (0.0, 0.0)


def test_energy_of_noise_is_about_zero():
    rng = np.random.default_rng(1)
    rows = np.arange(5)
    found = [
        energy(Grid(rng.normal(scale=2.0, size=(1, 25)), np.full(25, 9.0), 2.0), rows, rows)[1]
        for _ in range(500)
    ]
    assert np.mean(found) == pytest.approx(0.0, abs=0.15)
    assert np.std(found) == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("size", [1, 2, 7, 40])
@pytest.mark.parametrize("n_parts", [1, 3, 64])
def test_parts_are_neighbours_of_about_equal_weight(size, n_parts):
    weights = np.random.default_rng(size).uniform(1.0, 2.0, size)
    parts = equal_parts(weights, n_parts)
    assert set(parts.tolist()) == set(range(parts.max() + 1))
    assert parts.max() < n_parts
    assert (np.diff(parts) >= 0).all()
    assert np.bincount(parts, weights).max() <= weights.sum() / n_parts + 2.0 or n_parts >= size


def test_purified_pairs_predict_the_same():
    rng = np.random.default_rng(0)
    pair = pair_of(rng)
    pair.scores = rng.normal(size=pair.scores.shape)
    before = pair.scores.copy().reshape(2, 4, 3)
    rows, columns = purified(pair)
    left = pair.scores.reshape(2, 4, 3)
    assert left + rows[:, :, None] + columns[:, None, :] == pytest.approx(before)
    assert np.average(left, axis=1, weights=pair.first.weights) == pytest.approx(0.0, abs=1e-12)
    assert np.average(left, axis=2, weights=pair.second.weights) == pytest.approx(0.0, abs=1e-12)


def test_columns_of_one_bin_are_in_no_pair():
    bins = [Bins(np.zeros(1, np.intp), np.ones(1)), Bins(np.arange(3), np.ones(3))]
    columns = [BinnedColumn(each, True) for each in (*bins, bins[1])]
    piece = Piece([np.zeros(5, np.intp)] * 3, BoundedResiduals(np.zeros(5)))
    scores = [np.zeros((1, 1)), np.array([[0.0, 1.0, 2.0]]), np.array([[0.0, 5.0, 0.0]])]
    generator = np.random.default_rng(0)
    learner = PairLearner.after(columns, scores, Table(piece), piece.residuals, 5, generator)
    assert learner.candidates([True, True, True]) == [(1, 2)]
    assert learner.candidates([True, False, True]) == []
    assert piece.after(learner.course).tolist() == [[0.0] * 5]
    residuals = BinaryResiduals(np.zeros(5, int))
    logistic = PairLearner.after(columns, scores, Table(piece), residuals, 5, generator)
    assert 0.02 <= logistic.curvature[0] <= 0.25


def test_axes_join_bins_beyond_the_most_and_order_categories():
    bins = Bins(np.arange(300), np.ones(300))
    column = BinnedColumn(bins, True)
    found = axis_of(column, np.zeros((1, 300)))
    assert found.weights.size == 64
    assert found.weights.sum() == 300.0
    words = BinnedColumn(Bins(np.arange(3), np.array([1.0, 2.0, 3.0])), False)
    found = axis_of(words, np.array([[0.5, -1.0, 0.0]]))
    assert found.of_bins.tolist() == [2, 0, 1]
    assert found.weights.tolist() == [2.0, 3.0, 1.0]


@pytest.mark.parametrize("n_cells", [8, 9.7, 100, 4096])
@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (2, 64), (64, 64), (5, 3)])
def test_grids_have_no_more_cells_than_allowed(shape, n_cells):
    pair = pair_of(np.random.default_rng(0), shape, 1)
    one, other = pair.sizes(n_cells)
    assert 1 <= one <= shape[0]
    assert 1 <= other <= shape[1]
    assert one * other <= n_cells
    assert 8 <= most_cells(10**9, 1e-3) <= 4096
    assert most_cells(5, 100.0) == 8


# Estimators -----------------------------------------------------------------------------------


def test_two_columns_that_only_matter_together_are_learnt():
    model = Classifier(4.0, bounds=(0, 1), random_state=0)
    assert clone(model).set_params(interactions=None).fit(X, CROSSED).score(X, CROSSED) < 0.75
    for interactions in ("auto", 1, [(1, 0)]):
        found = clone(model).set_params(interactions=interactions).fit(X, CROSSED)
        assert (0, 1) in found.pairs_
        assert found.score(X, CROSSED) > 0.85


def test_pairs_are_learnt_without_a_seed():
    found = Classifier(8.0, bounds=(0, 1)).fit(X, CROSSED)
    assert (0, 1) in found.pairs_
    assert found.score(X, CROSSED) > 0.8


def test_numbers_and_more_classes_have_pairs():
    model = Regressor(4.0, bounds=(0, 1), target_bound=(-10, 10), random_state=0)
    assert model.fit(X, 10.0 * PRODUCT).score(X, 10.0 * PRODUCT) > 0.7
    assert (0, 1) in model.pairs_
    y = CROSSED + 2 * (X[:, 2] > 0.5)
    model = Classifier(4.0, bounds=(0, 1), interactions=[(0, 1)], random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7
    assert model.pair_scores_[0].shape[2] == 4


def test_scores_of_columns_and_pairs_add_up():
    model = Classifier(4.0, bounds=(0, 1), interactions=[(0, 1), (1, 2)], random_state=0)
    model.fit(X, CROSSED)
    by_hand = np.full(4000, model.intercept_[0])
    cells = [np.minimum((column * 256).astype(int), 255) for column in X.T]
    for places, bins, scores in zip(cells, model.bins_, model.term_scores_, strict=True):
        by_hand += scores[bins[places]]
    for pair, bins, scores in zip(model.pairs_, model.pair_bins_, model.pair_scores_, strict=True):
        by_hand += scores[tuple(of[cells[at]] for at, of in zip(pair, bins, strict=True))]
    assert model.decision_function(X) == pytest.approx(by_hand)
    for own, noise in (("term_scores_", "term_deviations_"), ("pair_scores_", "pair_deviations_")):
        for scores, deviations in zip(getattr(model, own), getattr(model, noise), strict=True):
            assert deviations.shape == scores.shape
            assert (deviations >= 0.0).all()
            assert deviations.max() > 0.0


def test_few_records_leave_columns_the_whole_budget():
    few = {"bounds": (0, 1), "random_state": 0, "max_rounds": 10}
    own = Classifier(0.5, interactions=None, **few).fit(X[:500], CROSSED[:500])
    auto = Classifier(0.5, **few).fit(X[:500], CROSSED[:500])
    assert auto.pairs_ == []
    assert np.array_equal(auto.decision_function(X), own.decision_function(X))
    one = Classifier(8.0, **few).fit(X[:, :1], CROSSED)
    alone = Classifier(8.0, interactions=0, **few).fit(X[:, :1], CROSSED)
    assert np.array_equal(one.decision_function(X[:, :1]), alone.decision_function(X[:, :1]))


def test_additive_targets_give_no_pair_their_rounds():
    y = 0.5 * np.sin(6.0 * X[:, 0]) + 0.4 * X[:, 1]
    model = Regressor(4.0, bounds=(0, 1), target_bound=1.0, random_state=0).fit(X, y)
    assert model.pairs_ == []
    assert model.score(X, y) > 0.9


def test_pairs_are_listed_by_name_or_place():
    table, labels = people(300)
    settings = {"schema": SCHEMA, "max_rounds": 4, "random_state": 0}
    by_name = Classifier(interactions=[("sector", "age")], **settings).fit(table, labels)
    by_place = Classifier(interactions=[(0, 2)], **settings).fit(table, labels)
    assert by_name.pairs_ == by_place.pairs_ == [(0, 2)]
    assert np.array_equal(by_name.predict_proba(table), by_place.predict_proba(table))


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("interactions", ["auto", 3, [(0, 1)]], ids=str)
def test_tiny_tables_and_constant_columns(n, interactions):
    rows = np.zeros((n, 2))
    for n_public in (3, 90_000):
        model = Regressor(
            bounds=(0, 1),
            target_bound=1.0,
            interactions=interactions,
            n_public=n_public,
            max_rounds=4,
            random_state=0,
        ).fit(rows, np.ones(n))
        assert np.isfinite(model.predict(np.array([[0.0, 1.0], [0.5, 0.5]]))).all()


def test_without_noise_a_pair_is_nearly_right():
    model = Regressor(math.inf, bounds=(0, 1), target_bound=1.0, random_state=0)
    assert model.fit(X, PRODUCT).score(X, PRODUCT) > 0.9
    assert max(deviations.max() for deviations in model.pair_deviations_) == 0.0


def test_wrong_interactions_are_refused():
    table, labels = people(20)
    two = "pairs of two different columns"
    for values, message in (
        (["all"], "interactions must be one of 'auto'"),
        ([-1, 1.5], "interactions must be"),
        ([[(0, 9)]], "There are 4 columns"),
        ([[(0, 0)], [("age", "wage")], [(0, 1, 2)], ["age"], [3]], two),
    ):
        for given in values:
            model = Classifier(schema=SCHEMA, interactions=given)
            for ask in (model.privacy_profile, lambda _, model=model: model.fit(table, labels)):
                with pytest.raises((TypeError, ValueError), match=message):
                    ask(20)


def test_listed_pairs_need_two_rounds():
    model = Classifier(bounds=(0, 1), interactions=[(0, 1)], max_rounds=1)
    with pytest.raises(ValueError, match="max_rounds must be at least 2"):
        model.fit(X, CROSSED)


# Constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
def test_predictions_are_monotone_where_they_are_to_be(sign):
    y = np.sin(9.0 * X[:, 0]) * 0.5 + 0.4 * (X[:, 1] > 0.5)
    model = Regressor(2.0, bounds=(0, 1), target_bound=1.0, random_state=0)
    model.set_params(monotonic_cst=[sign, 0, 0], interactions=2).fit(X, y)
    assert all(0 not in pair for pair in model.pairs_)
    line = np.full((200, 3), 0.3)
    line[:, 0] = np.linspace(-0.2, 1.2, 200)
    assert (sign * np.diff(model.predict(line)) >= -1e-12).all()
    assert np.ptp(model.predict(line)) > 0.05


def test_missing_values_are_under_no_constraint():
    table, labels = people(2000)
    model = Classifier(schema=SCHEMA, monotonic_cst={"pay": 1, "age": -1}, random_state=0)
    model.fit(table, labels)
    ages = table.iloc[[0] * 50].assign(age=np.linspace(0, 100, 50))
    assert (np.diff(model.decision_function(ages)) <= 1e-12).all()
    pays = table.iloc[[0] * 50].assign(pay=np.logspace(0, 6, 50))
    assert (np.diff(model.decision_function(pays)) >= -1e-12).all()


def test_wrong_constraints_are_refused():
    table, labels = people(20)
    one = "one entry for each of the 4 columns"
    words = "must not constrain a column of categories; got 'sector'"
    for given, message in (
        *(([1, 0], one), ({"wage": 1}, one), (1, one)),
        ([2, 0, 0, 0], "must be -1, 0 or 1"),
        ({"sector": 1}, words),
    ):
        with pytest.raises(ValueError, match=message):
            Classifier(schema=SCHEMA, monotonic_cst=given).fit(table, labels)


def test_constraints_agree_with_classes_and_pairs():
    model = Classifier(bounds=(0, 1), monotonic_cst=[1, 0, 0], max_rounds=3)
    with pytest.raises(ValueError, match="monotonic_cst must be None with more than two classes"):
        model.fit(X[:50], np.arange(50) % 3)
    with pytest.raises(ValueError, match="monotonic_cst must be None with more than two classes"):
        clone(model).set_params(classes=[0, 1, 2]).privacy_profile(50)
    with pytest.raises(ValueError, match="must not list a column of monotonic_cst"):
        clone(model).set_params(interactions=[(0, 2)]).fit(X, CROSSED)
