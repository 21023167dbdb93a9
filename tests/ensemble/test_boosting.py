"""Inside a boosting machine: cells and bins, the noise of both stages, residuals and trees."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy import special

from skdptune.accounting import PrivacyProfile
from skdptune.base._shared import weights_of_classes
from skdptune.ensemble import _boosting, _classifier
from skdptune.ensemble._boosting import (
    BinaryResiduals,
    BinnedColumn,
    Bins,
    BoundedResiduals,
    Course,
    Piece,
    RateRule,
    SoftmaxResiduals,
    Table,
    _join_neighbours,
    _join_rare,
    boosted_scores,
    counted,
    plan_of_budget,
    plan_of_noise,
    random_leaves,
    released_bins,
    sums_at,
    terms_of_bounds,
    terms_of_schema,
)
from skdptune.ensemble._pairs import Layout, PairCourse
from skdptune.mechanisms import noise_for_budget
from skdptune.mechanisms._shared import UNIT
from skdptune.preprocessing import Schema
from tests.ensemble.test_classifier import replay_of_weighted_neighbours

SIZES = np.array([0.0, 1e-9, 0.3, 1.0, 7.0, 40.0, 800.0, 1e100, 1e103])


def made(kind, rng, n):
    if kind == "binary":
        return BinaryResiduals, (rng.integers(0, 2, n),)
    if kind == "softmax":
        return SoftmaxResiduals, (rng.integers(0, 4, n), 4)
    return BoundedResiduals, (rng.uniform(-1, 1, n),)


def scores_of(rng, n_outputs, n):
    return rng.choice(SIZES, (n_outputs, n)) * rng.uniform(-1, 1, (n_outputs, n))


@pytest.mark.parametrize("kind", ["binary", "softmax", "bounded"])
def test_norm_is_never_exceeded(kind):
    # Theorem B1: noisy counts and noisy sums of residuals of an explainable boosting machine.
    rng = np.random.default_rng(0)
    residuals_of, arguments = made(kind, rng, 20_000)
    residuals = residuals_of(*arguments)
    units = residuals.units(scores_of(rng, residuals.n_outputs, 20_000))
    assert (units == np.trunc(units)).all()
    assert (np.linalg.norm(units, axis=0) * UNIT <= residuals.norm).all()
    # And it is attained.
    assert np.linalg.norm(units, axis=0).max() * UNIT > 0.999 * residuals.norm


@pytest.mark.parametrize("kind", ["binary", "softmax", "bounded"])
def test_residuals_of_a_record_are_its_own_bit_by_bit(kind):
    # Theorem B1: wherever it is among others, and whoever they are.
    rng = np.random.default_rng(1)
    n = 2003
    residuals_of, (targets, *more) = made(kind, rng, n)
    scores = scores_of(rng, 4 if kind == "softmax" else 1, n)
    scores[:, ::2] = rng.normal(size=(scores.shape[0], (n + 1) // 2))
    together = residuals_of(targets, *more).units(scores)
    for start in (1, 2, 3):
        part = residuals_of(targets[start:], *more).units(scores[:, start:])
        assert np.array_equal(part, together[:, start:])
    for place in range(0, n, 50):
        one = slice(place, place + 1)
        alone = residuals_of(targets[one], *more).units(scores[:, one])
        assert np.array_equal(alone, together[:, one])


@pytest.mark.parametrize("kind", ["binary", "softmax"])
def test_weights_shorten_residuals(kind):
    # Theorem B1: and those of a record are still its own.
    rng = np.random.default_rng(4)
    residuals_of, arguments = made(kind, rng, 2000)
    weights = rng.choice([0.0, 1e-9, 0.1, 1.0], 2000)
    scores = scores_of(rng, 4 if kind == "softmax" else 1, 2000)
    plain = residuals_of(*arguments).units(scores.copy())
    weighted = residuals_of(*arguments, weights)
    units = weighted.units(scores.copy())
    assert (units == np.trunc(units)).all()
    assert np.abs(units - weights * plain).max() <= 2.0
    assert (np.linalg.norm(units, axis=0) * UNIT <= weights * weighted.norm).all()
    alone = residuals_of(arguments[0][7:9], *arguments[1:], weights[7:9])
    assert np.array_equal(alone.units(scores[:, 7:9].copy()), units[:, 7:9])


def test_residuals_are_targets_less_predictions():
    scores = np.random.default_rng(2).normal(size=(3, 50))
    codes = np.arange(50) % 3
    found = SoftmaxResiduals(codes, 3).units(scores) * UNIT
    assert found == pytest.approx(np.eye(3)[codes].T - special.softmax(scores, axis=0), abs=2e-8)
    found = BinaryResiduals(codes % 2).units(scores[:1]) * UNIT
    assert found[0] == pytest.approx(codes % 2 - special.expit(scores[0]), abs=2e-8)
    found = BoundedResiduals(np.zeros(50)).units(scores[:1]) * UNIT
    assert found[0] == pytest.approx(np.clip(-scores[0], -1, 1), abs=2e-8)


@pytest.mark.parametrize("kind", ["binary", "softmax", "bounded"])
def test_residuals_follow_from_moved_states(kind):
    # Theorem B1: within the norm, each from its own record, and as from the sum of all updates.
    rng = np.random.default_rng(3)
    n, sizes = 500, (0.1, 1.0, 30.0, 700.0, 1e100)
    residuals_of, (targets, *more) = made(kind, rng, n)
    residuals, places = residuals_of(targets, *more), rng.integers(0, 6, n)
    state = np.ones((residuals.n_outputs, n))
    alone, alone_state = residuals_of(targets[7:8], *more), state[:, 7:8].copy()
    scores = np.zeros_like(state)
    for size in sizes:
        update = size * rng.uniform(-1, 1, (residuals.n_outputs, 6))
        residuals.moved(state, update, places)
        alone.moved(alone_state, update, places[7:8])
        scores += update[:, places]
        with np.errstate(all="ignore"):
            units, own = residuals.units_of(state), alone.units_of(alone_state)
        assert (np.linalg.norm(units, axis=0) * UNIT <= residuals.norm).all()
        assert np.array_equal(units, np.trunc(units))
        assert np.array_equal(own, units[:, 7:8])
        if size <= 30.0:
            assert units * UNIT == pytest.approx(residuals.units(scores) * UNIT, abs=1e-7)


SETTINGS = {"max_rounds": 4, "max_leaves": 3, "learning_rate": 0.5}


def columns_of(rng, n, sizes=(5, 1, 3)):
    found = []
    for place, size in enumerate(sizes):
        weights = rng.uniform(5.0, 50.0, size)
        bins = Bins(np.arange(size), weights)
        found.append(BinnedColumn(bins, place != 2))
    return found, [rng.integers(0, column.bins.weights.size, n) for column in found]


@pytest.mark.parametrize("seed", range(3))
def test_one_record_moves_sums_by_its_own_residuals(seed):
    # Theorem B1: exactly, in whatever order.
    rng = np.random.default_rng(seed)
    n, n_leaves = 5000, 3
    places, leaves = rng.integers(0, 6, n), np.array([0, 0, 1, 2, 2, 1])
    units = np.trunc(rng.uniform(-1, 1, (2, n)) / UNIT)

    def leaf_sums(places, units):
        return sums_at(leaves, sums_at(places, units, 6), n_leaves)

    whole = leaf_sums(places, units)
    less = leaf_sums(places[1:], units[:, 1:])
    expected = np.zeros((2, n_leaves))
    expected[:, leaves[places[0]]] = units[:, 0]
    assert np.array_equal(whole - less, expected)
    order = rng.permutation(n)
    assert np.array_equal(leaf_sums(places[order], units[:, order]), whole)


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_a_slow_oracle(seed):
    # Theorem B1: without noise, and with the same trees.
    rng = np.random.default_rng(seed)
    n = 40
    (columns, places), targets = columns_of(rng, n), rng.integers(0, 2, n)
    residuals, generator = BinaryResiduals(targets), np.random.default_rng(7)
    records = Table(Piece(places, residuals))
    found = boosted_scores(columns, records, residuals, 0.0, generator, **SETTINGS)
    again = np.random.default_rng(7)
    tables = [[0.0] * column.bins.weights.size for column in columns]
    for _ in range(SETTINGS["max_rounds"]):
        for column, own, table in zip(columns, places, tables, strict=True):
            leaves = random_leaves(len(table), SETTINGS["max_leaves"], column.is_ordered, again)
            sums, weights = [0.0] * len(table), [0.0] * len(table)
            for record in range(n):
                score = sum(
                    other[each[record]] for each, other in zip(places, tables, strict=True)
                )
                leaf = leaves[own[record]]
                sums[leaf] += targets[record] - 1.0 / (1.0 + np.exp(-score))
            for place, leaf in enumerate(leaves):
                weights[leaf] += column.bins.weights[place]
            for place, leaf in enumerate(leaves):
                table[place] += SETTINGS["learning_rate"] * sums[leaf] / weights[leaf]
    for scores, table in zip(found, tables, strict=True):
        assert scores.shape == (1, len(table))
        assert scores[0] == pytest.approx(table, abs=1e-5)


@pytest.mark.parametrize("kind", [Course, PairCourse])
def test_a_state_is_the_same_from_the_start_and_from_the_last_one(kind):
    # Theorem R10: a retried part, a repeated attempt, and a worker that comes late.
    rng = np.random.default_rng(0)
    _, places = columns_of(rng, 50)
    residuals = SoftmaxResiduals(rng.integers(0, 3, 50), 3)
    course = kind([rng.normal(size=(3, size)) for size in (5, 1, 3)])
    layout = Layout((0, 2), 3 * np.arange(5, dtype=np.uint16), np.arange(3, dtype=np.uint16), 15)
    goes_on = Piece(places, residuals)
    for _ in range(40):
        column = rng.integers(3) if kind is Course else layout
        course.moves.append((column, rng.normal(size=(3, 15))))
        if rng.random() < 0.6:
            state = goes_on.after(course).tobytes()
            assert goes_on.after(course).tobytes() == state
            assert pickle.loads(pickle.dumps(goes_on)).after(course).tobytes() == state
            goes_on.residuals.units_of(goes_on.after(course))
    assert goes_on.after(kind(course.tables)).tobytes() != state


def test_noise_has_the_planned_size():
    # Theorem B1: without records, a step's update is only noise.
    bins = Bins(np.zeros(1, np.intp), np.array([4.0]))
    column, residuals = BinnedColumn(bins, True), BoundedResiduals(np.zeros(0))
    records = Table(Piece([np.zeros(0, np.intp)], residuals))
    settings = {"max_rounds": 1, "max_leaves": 3, "learning_rate": 0.5}
    rng = np.random.default_rng(0)
    found = [
        boosted_scores([column], records, residuals, 8.0, rng, **settings)[0][0, 0]
        for _ in range(2000)
    ]
    # 8 times the rate, over the records.
    assert np.std(found) == pytest.approx(1.0, rel=0.08)
    assert abs(np.mean(found)) < 0.1


@pytest.mark.parametrize("n_bins", [1, 2, 3, 8])
@pytest.mark.parametrize("max_leaves", [2, 3, 20])
def test_leaves_are_not_empty(n_bins, max_leaves):
    rng = np.random.default_rng(0)
    for _ in range(50):
        ordered = random_leaves(n_bins, max_leaves, True, rng)
        free = random_leaves(n_bins, max_leaves, False, rng)
        for leaves in (ordered, free):
            assert sorted(set(leaves.tolist())) == list(range(min(n_bins, max_leaves)))
        assert (np.diff(ordered) >= 0).all()


def test_scores_stay_finite_whatever_the_noise():
    rng = np.random.default_rng(0)
    (columns, places), residuals = columns_of(rng, 30), BoundedResiduals(np.zeros(30))
    records = Table(Piece(places, residuals))
    with np.errstate(all="ignore"):
        found = boosted_scores(columns, records, residuals, 1e300, rng, **SETTINGS)
    assert all(np.isfinite(scores).all() for scores in found)


# The noise of both stages, and what it costs -------------------------------------------------


def normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def closed_form(shift: float, epsilon: float) -> float:
    first = normal(shift / 2 - epsilon / shift)
    return first - math.exp(epsilon) * normal(-shift / 2 - epsilon / shift)


@pytest.mark.parametrize(("k", "rounds"), [(1, 1), (1, 300), (14, 300), (200, 1), (200, 300)])
@pytest.mark.parametrize(("share", "noise"), [(0.001, 3.73), (0.1, 0.5), (0.9, 40.0)])
def test_cost_is_that_of_all_releases_of_both_stages(k, rounds, share, noise):
    # Theorem B1: k histograms and k T steps of one Gaussian release each.
    plan = plan_of_noise(noise)
    shifts = [1.0 / plan.count_scale(k, share)] * k
    shifts += [1.0 / plan.step_scale(k, rounds, share)] * (k * rounds)
    together = math.sqrt(math.fsum(shift**2 for shift in shifts))
    assert together <= 1.0 / noise
    assert together == pytest.approx(1.0 / noise, rel=1e-9)
    for epsilon in (0.1, 1.0, 3.0):
        truth = closed_form(together, epsilon)
        assert truth <= plan.profile.delta(epsilon) <= truth * 1.001 + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 1000.0])
def test_budget_is_met_and_nearly_all_used(epsilon):
    plan = plan_of_budget(epsilon, 1e-5)
    assert min(epsilon, 100.0) * 0.999 <= plan.profile.epsilon(1e-5) <= epsilon


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_both_stages_take_less_epsilon_than_their_sum(epsilon):
    # Theorem B1: as interpret-core splits a budget, a tenth of epsilon and half of delta to bins.
    delta = 1e-5
    counts = noise_for_budget(0.1 * epsilon, delta / 2)[0]
    steps = noise_for_budget(0.9 * epsilon, delta / 2)[0]
    together = PrivacyProfile.gaussian(math.hypot(1.0 / counts, 1.0 / steps))
    assert 0.86 < together.epsilon(delta) / epsilon < 0.88


def test_rate_makes_the_noise_that_the_rule_wants_and_is_bounded():
    rule = RateRule(noise=0.4, largest=1.0)
    plan = plan_of_noise(4.0)
    rate = plan.learning_rate(10_000, 5, 100, 3, rule)
    # Noise of a sum over the records of a leaf, times the root of all rounds and columns.
    leaf = 4.0 * math.sqrt(5 * 100) / (10_000 / 3)
    assert rate * leaf * math.sqrt(5 * 100) == pytest.approx(0.4)
    # Where it drowns, it may have more.
    growing = rule._replace(growth=1.0 / 3.0)
    drowned = plan.learning_rate(75, 5, 100, 3, rule)
    assert plan.learning_rate(75, 5, 100, 3, growing) == pytest.approx(drowned * 10 ** (1 / 3))
    assert plan.learning_rate(10_000, 5, 100, 3, growing) == rate
    assert plan.learning_rate(10**9, 5, 100, 3, rule) == 1.0
    assert plan_of_budget(math.inf, 1e-5).learning_rate(10, 5, 100, 3, rule) == 1.0


# Columns cut into cells, and cells joined to bins by noisy counts ----------------------------


SCHEMA = Schema(
    {
        "age": {"range": (0, 100), "missing": True},
        "pay": {"range": (0, 1e6), "scale": "log"},
        "sector": ["farm", "mill"],
        "name": "drop",
    }
)


def as_cells(values):
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def test_numbers_are_in_equal_parts_of_their_range():
    (term,) = terms_of_bounds((0, 10), ["x"], 5)
    values = np.array([-3.0, 0.0, 1.999, 2.0, 9.999, 10.0, 1e300])
    assert term.cells(values).tolist() == [0, 0, 0, 1, 4, 4, 4]
    assert [term.value_at(end) for end in range(6)] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_gaps_have_a_cell_of_their_own_where_they_are_announced():
    age, pay, sector = terms_of_schema(SCHEMA, 4)
    assert age.n_cells == 5
    assert age.cells(as_cells([None, "word", 10, 99])).tolist() == [4, 4, 0, 3]
    # Below all numbers.
    assert age.order.tolist() == [4, 0, 1, 2, 3]
    assert pay.n_cells == 4
    assert pay.cells(as_cells([None, 0, 1e6])).tolist() == [2, 0, 3]
    assert pay.order.tolist() == [0, 1, 2, 3]
    assert sector.cells(as_cells(["mill", "farm", "office", None])).tolist() == [1, 0, 2, 3]


@pytest.mark.parametrize(
    "value", [None, "farm", "office", 3, -1.0, np.inf, float("nan"), object()]
)
def test_one_record_changes_one_count_by_one(value):
    # Theorem B1: whatever a cell of the table holds.
    for term in terms_of_schema(SCHEMA, 8):
        others = as_cells([1, None, "mill", 50.0, "farm"])
        before = np.bincount(term.cells(others), minlength=term.n_cells)
        after = np.bincount(term.cells(as_cells([*others, value])), minlength=term.n_cells)
        assert after.size == before.size == term.n_cells
        assert np.abs(after - before).sum() == (after - before).max() == 1


(WORDS,) = terms_of_schema(Schema({"word": ["a", "b", "c", "rare"]}), 4)
(NUMBERS,) = terms_of_bounds((0, 1), ["x"], 8)


def test_every_cell_is_counted_whether_or_not_a_record_has_it(monkeypatch):
    # Theorem B1: what nobody has gets noise as well, or its absence would show.
    seen = []

    def watched(values, scale, generator):
        seen.append((values.copy(), scale))
        return values

    monkeypatch.setattr(_boosting, "add_gaussian", watched)
    for term in (WORDS, NUMBERS):
        for cells in ([], [0, 0, 1], [3]):
            places = np.array(cells, dtype=np.intp)
            counts = counted(places, term.n_cells)
            released_bins(term, counts, 2.0, 1.0, np.random.default_rng(0))
            values, scale = seen.pop()
            assert scale == 2.0
            assert values.tolist() == [cells.count(cell) for cell in range(term.n_cells)]


def test_noise_has_the_given_size():
    noisy = [
        released_bins(NUMBERS, np.zeros(8), 5.0, 1e9, np.random.default_rng(seed))
        for seed in range(5)
    ]
    # Nothing reaches the least, which then stands for all.
    assert all(bins.weights.tolist() == [1e9] for bins in noisy)
    rng, counts = np.random.default_rng(0), np.full(8, 1000.0)
    found = [released_bins(NUMBERS, counts, 5.0, 1.0, rng).weights for _ in range(200)]
    assert all(weights.size == 8 for weights in found)
    assert np.std(np.concatenate(found)[:-1]) == pytest.approx(5.0, rel=0.1)


@pytest.mark.parametrize("join", [_join_neighbours, _join_rare], ids=["ordered", "words"])
def test_bins_are_a_partition_with_the_least_in_each(join):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        counts = rng.normal(5.0, 5.0, rng.integers(1, 30))
        least = float(rng.choice([1.0, 10.0, 500.0]))
        bins = join(counts, least)
        assert bins.of_cells.shape == counts.shape
        assert sorted(set(bins.of_cells.tolist())) == list(range(bins.weights.size))
        assert (bins.weights >= least).all()
        sums = np.bincount(bins.of_cells, weights=counts)
        enough = sums >= least
        assert bins.weights[enough] == pytest.approx(sums[enough])
        if join is _join_neighbours:
            assert (np.diff(bins.of_cells) >= 0).all()


def test_rare_categories_share_a_bin_and_a_small_one_takes_another():
    assert _join_rare(np.array([50.0, 1.0, 40.0, 12.0]), 10.0).of_cells.tolist() == [0, 2, 1, 2]
    assert _join_rare(np.array([50.0, 9.0, 40.0, 2.0]), 10.0).weights.tolist() == [
        50.0,
        40.0,
        11.0,
    ]
    assert _join_rare(np.array([1.0, 2.0]), 10.0).weights.tolist() == [10.0]


def test_weights_above_one_would_be_found(monkeypatch):
    monkeypatch.setattr(
        _classifier, "weights_of_classes", lambda *given: 10.0 * weights_of_classes(*given)
    )
    assert replay_of_weighted_neighbours({"ill": 12.0}, "ill").findings


def test_order_is_one_of_all_cells():
    for term in (*terms_of_schema(SCHEMA, 8), *terms_of_bounds((0, 1), ["x"], 8)):
        assert sorted(term.order.tolist()) == list(range(term.n_cells))
