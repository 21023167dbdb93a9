"""Ridge regressions on sums with Gaussian noise."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model import (
    AdaSSPLinearRegression,
    DPRidge,
    SufficientStatistics,
)
from skdptune.linear_model._regression import _ridge
from skdptune.linear_model._regression._ridge import (
    N_STEPS,
    exact_moment,
    largest_residual,
    noisy_sums_plan,
    release_sums,
    residual_moment,
    solve_noisy,
    whole_weights,
)
from skdptune.linear_model._regression._sufficient_statistics import (
    BLOCK,
    UNIT,
    Blocks,
    squared_radius,
)
from skdptune.mechanisms import gaussian_release
from skdptune.testing import replay_neighbours
from tests.auditing import watched_releases
from tests.base.nasty_records import EXTREME, FORMS, IMPROPER, as_column, nasty_rows, with_record
from tests.linear_model.regression.test_posterior_sampling import problem_of

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(3000, 3))
Y = np.clip(X @ [0.5, -0.4, 0.1], -1.0, 1.0)


@pytest.fixture
def ridges(monkeypatch):
    """Return the ridges with which fits solve."""
    found = []

    def record(gram, moment, ridge):
        found.append(ridge)
        return solve_noisy(gram, moment, ridge)

    monkeypatch.setattr(_ridge, "solve_noisy", record)
    return found


def test_ridge_of_adassp_follows_noise_and_eigenvalue(ridges):
    for epsilon, size in ((0.1, 300), (1.0, 300), (1.0, 20), (100.0, 3000)):
        AdaSSPLinearRegression(epsilon, 1e-5, target_bound=1.0, random_state=0).fit(
            X[:size], Y[:size]
        )
    assert ridges[0] > ridges[1] > ridges[3] == 0.0
    assert ridges[2] > ridges[1]
    AdaSSPLinearRegression(100.0, alpha=12.0, target_bound=1.0, data_norm=2.0).fit(X, Y)
    assert ridges[-1] == 3.0


def test_default_ridge_follows_the_noise(ridges):
    model = DPRidge(1.0, 1e-5, target_bound=1.0, fit_intercept=False, random_state=0)
    sums = SufficientStatistics(math.sqrt(3.0), 1.0, fit_intercept=False).update(X, Y)
    model.fit_statistics(sums)
    deviation = 1.0 / model._plan(3000, 3).shift
    assert ridges[-1] == pytest.approx(math.sqrt(3) * deviation, rel=1e-5)
    model.set_params(alpha=6.0).fit(X, Y)
    assert ridges[-1] == pytest.approx(2.0)
    model.set_params(alpha=None, epsilon=math.inf).fit(X, Y)
    assert ridges[-1] == 0.0
    np.testing.assert_allclose(model.coef_, [0.5, -0.4, 0.1], atol=1e-3)


@pytest.mark.parametrize("releases", [2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 1e-6), (1.0, 1e-5), (10.0, 1e-9)])
def test_cost_is_that_of_the_gaussian_releases(releases, epsilon, delta):
    # Theorem L8: gaussian noise on the sums of a ridge regression.
    plan = noisy_sums_plan(epsilon, delta, releases)
    composed = releases * PrivacyProfile.gaussian(plan.shift)
    assert composed.epsilon(delta) == pytest.approx(plan.profile.epsilon(delta), rel=1e-3)
    assert 0.998 * epsilon <= plan.profile.epsilon(delta) <= epsilon


def test_released_sums_have_the_planned_noise():
    problem, rng, shift = problem_of(X, Y), np.random.default_rng(0), 0.5
    grams, moments = zip(*(release_sums(problem, shift, rng) for _ in range(1000)), strict=True)
    grams, moments = np.array(grams), np.array(moments)
    np.testing.assert_array_equal(grams, grams.transpose(0, 2, 1))
    scale = problem.radius2 / shift
    np.testing.assert_allclose(grams.std(axis=0), scale, rtol=0.06)
    np.testing.assert_allclose(grams.mean(axis=0), problem.gram, atol=5 * scale / 60)
    np.testing.assert_allclose(moments.std(axis=0), math.sqrt(problem.radius2) / shift, rtol=0.06)
    flat = grams[:, *np.triu_indices(3)]
    assert np.abs(np.corrcoef(flat.T) - np.eye(6)).max() < 0.1


DELTA = 1e-5
# So few records that noise dominates at a budget of 1.
ROWS = rng.normal(size=(200, 6))
TARGETS = ROWS @ [0.5, -0.5, 0.3, 0.0, 0.0, 0.1] + 0.2
LARGEST = 2.0**32
# The shortest and the longest residuals that there are.
LIMITS = (float(2**20 // 3), 2.0**20)


def model(**settings):
    return DPRidge(
        **{"epsilon": 1.0, "delta": DELTA, "target_bound": 2.0, "random_state": 0} | settings
    )


def blocks_of(rows, targets, norm=1.5, bound=2.0, intercept=True):
    """Return copies of the blocks that a step reads."""
    sums = SufficientStatistics(norm, bound, intercept).update(rows[:0], targets[:0])
    return [block.copy() for block in sums.blocks(rows, targets)]


def moment_of(rows, targets, weights, limit=LIMITS[0], **bounds):
    return exact_moment(blocks_of(rows, targets, **bounds), weights, limit)


def by_hand(block, weights, limit):
    """Return the moment of whole numbers, in Python's integers."""
    total = [0] * len(weights)
    for *row, target in block.astype(int).tolist():
        product = sum(z * int(w) for z, w in zip(row, weights, strict=True))
        residual = target * 2**20 - product
        # Towards zero, as a float is cut.
        cut = math.copysign(1, residual) * min(abs(residual) // 2**20, int(limit))
        total = [sum_ + z * int(cut) for sum_, z in zip(total, row, strict=True)]
    return total


# What a step reads --------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 0.3, 1.0, 60.0, 4e3]), st.booleans())
def test_moment_is_that_of_whole_numbers(seed, scale, intercept):
    # Theorem L10: steps towards smaller residuals, at the cost of one release.
    generator = np.random.default_rng(seed)
    rows, targets = generator.normal(size=(30, 5)), generator.normal(size=30)
    weights = whole_weights(scale * generator.normal(size=5 + intercept))
    (block,) = blocks_of(rows, targets, intercept=intercept)
    for limit in LIMITS:
        assert exact_moment([block], weights, limit).tolist() == by_hand(block, weights, limit)


@pytest.mark.parametrize("seed", range(4))
def test_one_record_moves_a_step_by_its_own_products_within_the_joint_bound(seed):
    # Theorem L11: several targets, against whole numbers, on neighbouring data.
    generator = np.random.default_rng(seed)
    rows, targets = generator.normal(size=(40, 4)), 50.0 * generator.normal(size=(40, 3))
    weights = whole_weights(generator.normal(size=(5, 3)))
    limit, ranges = LIMITS[seed % 2], {"norm": 2.0, "bound": [(-1.0, 1.0), (90.0, 110.0), 3.0]}
    (block,) = blocks_of(rows, targets, **ranges)
    before = exact_moment([block], weights, limit)
    for place in range(3):
        own = np.column_stack([block[:, :5], block[:, 5 + place]])
        assert before[:, place].tolist() == by_hand(own, weights[:, place], limit)
    for scale in (0.1, 1.0, 1e6):
        more = [scale * generator.normal(size=(1, 4)), 1e3 * generator.normal(size=(1, 3))]
        longer = [np.concatenate(pair) for pair in zip((rows, targets), more, strict=True)]
        alone = moment_of(*more, weights, limit, **ranges)
        assert (moment_of(*longer, weights, limit, **ranges) - before).tolist() == alone.tolist()
        squares = sum(int(number) ** 2 for number in alone.ravel())
        assert squares <= 1.25 * 3.0 * 2**40 * int(limit) ** 2


@pytest.mark.parametrize("width", [1, 2, 3, 100, 1000])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_sums_are_exact_at_their_bounds(width, sign):
    # Theorem L10: the longest rows, weights along them, targets at both ends.
    rows = np.ones((4, width)) * 1e3
    targets = np.array([2.0, -2.0, 1.99, 0.0])
    (block,) = blocks_of(rows, targets)
    for shift in (0.0, 1.0):
        along = np.append(np.full(width, sign / math.sqrt(width)), 0.5 * sign)
        weights = whole_weights(1e9 * along) - shift * np.sign(along)
        products = block[:, :-1] @ weights
        assert 0.99 * math.sqrt(1.25) * 2**52 < abs(products[0]) < 2**53 - 2**40
        exact = [
            sum(int(z) * int(w) for z, w in zip(row, weights, strict=True))
            for row in block[:, :-1]
        ]
        assert products.tolist() == exact
        for limit in LIMITS:
            assert exact_moment([block], weights, limit).tolist() == by_hand(block, weights, limit)


def test_no_row_and_no_weights_are_longer_than_the_bounds():
    # Theorem L10: then a product of them is below 2^53, and so is any part of it.
    assert math.sqrt(1.25) * 2**20 * LARGEST + 2**40 < 2**53
    assert BLOCK * 2**20 * max(LIMITS) < 2**53
    assert largest_residual(1e-9, 1, 100) == LIMITS[0]
    assert largest_residual(1e9, 10**9, 1) == LIMITS[1]
    generator = np.random.default_rng(0)
    for width in (1, 7, 500):
        rows = generator.normal(size=(300, width)) * generator.choice([1e-3, 1.0, 1e9], (300, 1))
        (block,) = blocks_of(rows, np.zeros(300))
        squares = [sum(int(z) ** 2 for z in row) for row in block[:, :-1]]
        assert max(squares) <= 1.25 * 2**40
        for scale in (1e-3, 1.0, 4096.0, 1e9, 1e200, 1e308):
            weights = whole_weights(scale * generator.uniform(-1.0, 1.0, size=width))
            assert sum(int(w) ** 2 for w in weights) <= LARGEST**2


@pytest.mark.filterwarnings("error", "ignore:.* is fitted again")
def test_weights_are_whole_and_finite():
    weights = np.array([0.3, -1.7, np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(
        whole_weights(weights), [math.floor(0.3 * UNIT), -math.floor(1.7 * UNIT), 0, 0, 0]
    )
    np.testing.assert_array_equal(whole_weights(np.zeros(3)), np.zeros(3))
    np.testing.assert_array_equal(whole_weights(np.full(3, 1e-320)), np.zeros(3))
    huge = whole_weights(np.array([1e308, -1e308, 1e300]))
    np.testing.assert_allclose(huge[:2], np.array([1.0, -1.0]) * LARGEST / math.sqrt(2), rtol=1e-9)


@settings(max_examples=15)
@given(st.lists(st.integers(0, 9000), max_size=5), st.integers(0, 2**32 - 1))
def test_blocks_and_order_make_no_difference(cuts, seed):
    # Theorem L10: steps towards smaller residuals, at the cost of one release.
    generator = np.random.default_rng(seed)
    rows, targets = generator.normal(size=(9000, 3)), generator.normal(size=9000)
    weights = whole_weights(generator.normal(size=4))
    whole = moment_of(rows, targets, weights)
    order = generator.permutation(9000)
    parts = [
        moment_of(rows[index], targets[index], weights) for index in np.split(order, sorted(cuts))
    ]
    assert whole.tolist() == np.sum(parts, axis=0).tolist()
    twice = moment_of(np.repeat(rows, 2, axis=0), np.repeat(targets, 2), weights)
    assert twice.tolist() == (2 * whole).tolist()


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1])
@pytest.mark.parametrize("place", ["first", "last"])
def test_one_record_moves_a_moment_by_its_own_product_alone(size, place):
    # Theorem L10: steps towards smaller residuals, at the cost of one release.
    generator = np.random.default_rng(size)
    rows, targets = generator.normal(size=(size, 3)), 3.0 * generator.normal(size=size)
    for scale in (0.1, 1.0, 1e6, 1e200):
        row, target = scale * generator.normal(size=(1, 3)), generator.normal(size=1)
        weights = whole_weights(2.0 * generator.normal(size=4))
        pairs = [(rows, row), (targets, target)]
        more = [np.concatenate(pair[:: 1 if place == "last" else -1]) for pair in pairs]
        for limit in LIMITS:
            change = moment_of(*more, weights, limit) - moment_of(rows, targets, weights, limit)
            assert change.tolist() == moment_of(row, target, weights, limit).tolist()
            # The sensitivity of a step: norm of a row times the largest residual.
            most = 1.25 * 2**40 * int(limit) ** 2
            assert sum(int(number) ** 2 for number in change) <= most
            assert most <= squared_radius(True) * limit**2 * 2**40


def test_residuals_are_cut_at_a_limit_that_rises_as_noise_falls():
    rows = np.array([[1.5, 0.0]])
    for target, wanted in [(2.0, 1 / 3), (-9.0, -1 / 3), (0.2, 0.1), (np.nan, 0.0)]:
        blocks = Blocks((rows, np.array([target])), (1.5, 2.0, False))
        moment = residual_moment(blocks, np.zeros(2), LIMITS[0])
        np.testing.assert_allclose(moment, [wanted, 0.0], atol=1e-5)
    half = whole_weights(np.array([0.9, 0.0]))
    blocks = Blocks((rows, np.array([2.0])), (1.5, 2.0, False))
    np.testing.assert_allclose(residual_moment(blocks, half, LIMITS[0]), [0.1, 0.0], atol=1e-5)
    limits = [largest_residual(shift, 10_000, 10) for shift in np.geomspace(1e-3, 1e3, 50)]
    assert limits == sorted(limits) and limits[0] == LIMITS[0] and limits[-1] == LIMITS[1]
    assert all(limit == int(limit) for limit in limits)


@pytest.mark.parametrize("form", FORMS)
def test_any_record_moves_what_steps_read_by_its_own_alone(form, monkeypatch):
    # Theorem R5: in the worst case a record becomes a constant row.
    records = list(nasty_rows(form, 6))
    targets = np.resize(as_column([*IMPROPER, *EXTREME, 0.5]), len(records))
    weights = whole_weights(rng.normal(size=7))
    read = []

    def seen(problem, blocks, shift, limit, rng):
        read.append(blocks.total(partial(exact_moment, weights=weights, limit=limit)))
        return np.zeros(7)

    monkeypatch.setattr(_ridge, "refined_weights", seen)
    model(data_norm=1.5).fit(FORMS[form](ROWS[:20]), TARGETS[:20])
    before = read.pop()
    for row, target in zip(records, targets, strict=True):
        model(data_norm=1.5).fit(*with_record(ROWS[:20], TARGETS[:20], row, target, form))
        change = read.pop() - before
        form_alone = "objects" if form == "list" else form
        alone = with_record(ROWS[:0], TARGETS[:0], row, target, form_alone)
        model(data_norm=1.5).fit(*alone)
        assert change.tolist() == read.pop().tolist()
        assert sum(int(number) ** 2 for number in change) <= 1.25 * 2**80 / 9.0


# What it costs ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_releases_cost_what_the_sums_cost(epsilon, intercept, monkeypatch):
    # Theorem L10, Theorem L8.
    shifts = {}
    for alpha in (None, 10.0):
        ridge = model(epsilon=epsilon, alpha=alpha, fit_intercept=intercept)
        with watched_releases() as seen:
            ridge.fit(ROWS, TARGETS)
        shifts[alpha] = [release.shift for release in seen]
        assert ridge.privacy_.profile == ridge.privacy_profile(*ROWS.shape)
        assert ridge.privacy_.profile == model(epsilon=epsilon).privacy_profile(10**9, 3)
    assert len(shifts[None]) == 1 + N_STEPS
    assert len(shifts[10.0]) == 2
    assert math.hypot(*shifts[None]) == pytest.approx(math.hypot(*shifts[10.0]), rel=1e-12)
    composed = PrivacyProfile.gaussian(math.hypot(*shifts[None])).epsilon(DELTA)
    assert composed <= ridge.privacy_.profile.epsilon(DELTA) * (1.0 + 1e-9)


def test_each_step_adds_the_planned_noise_to_what_its_weights_leave():
    # Theorem L10: every value before noise follows from the data and from what was released.
    ridge = model(data_norm=2.0)
    with watched_releases() as seen:
        ridge.fit(ROWS, TARGETS)
    sums = SufficientStatistics(2.0, 2.0).update(ROWS, TARGETS)
    blocks = Blocks((ROWS, TARGETS), (2.0, 2.0, True))
    upper = np.triu_indices(7)
    np.testing.assert_array_equal(seen[0].value, sums.gram_and_moment[0][upper])
    gram = np.zeros((7, 7))
    gram[upper] = seen[0].noisy
    values, vectors = np.linalg.eigh(gram + np.triu(gram, 1).T)
    values = np.maximum(values, 0.0) + math.sqrt(7) * seen[0].scale
    weights = np.zeros(7)
    limit = largest_residual(math.hypot(*(release.shift for release in seen)), 200, 7)
    for release in seen[1:]:
        np.testing.assert_array_equal(release.value, residual_moment(blocks, weights, limit))
        wanted = math.sqrt(1.25) * limit / UNIT
        assert release.shift * release.scale == pytest.approx(wanted, rel=1e-5)
        weights = whole_weights(weights / UNIT + vectors @ (vectors.T @ release.noisy / values))
    np.testing.assert_allclose(ridge.coef_, weights[:6] / UNIT, rtol=1e-12)
    assert ridge.intercept_ == pytest.approx(0.5 * weights[6] / UNIT * 2.0)


def test_each_step_for_several_targets_is_that_of_its_statement():
    # Theorem L11, Theorem L10.
    targets = np.column_stack([TARGETS, 100.0 + TARGETS, -TARGETS])
    bounds = [1.0, (90.0, 110.0), 3.0]
    with watched_releases() as seen:
        model(data_norm=2.0, target_bound=bounds).fit(ROWS, targets)
    shift = math.hypot(*(release.shift for release in seen))
    limit = largest_residual(shift / math.sqrt(3.0), 200, 7)
    for release in seen[1:]:
        wanted = math.sqrt(squared_radius(True) * 3.0) * limit / UNIT
        assert release.value.size == 21
        assert release.shift * release.scale == pytest.approx(wanted, rel=1e-9)
    wanted = residual_moment(Blocks((ROWS, targets), (2.0, bounds, True)), np.zeros((7, 3)), limit)
    np.testing.assert_array_equal(np.reshape(seen[1].value, (7, 3)), wanted)


# Where they are taken ----------------------------------------------------------------------


def test_whether_steps_are_taken_follows_from_public_facts_alone():
    assert model().fit(ROWS, TARGETS).n_iter_ == N_STEPS
    assert model(n_public=200).fit(ROWS[:0], TARGETS[:0]).n_iter_ == N_STEPS
    assert model(n_public=90_000).fit(ROWS, TARGETS).n_iter_ == N_STEPS
    assert model(epsilon=math.inf).fit(ROWS, TARGETS).n_iter_ == 0
    assert model(alpha=10.0).fit(ROWS, TARGETS).n_iter_ == 0
    sums = SufficientStatistics(2.0, 2.0).update(ROWS, TARGETS)
    assert model(data_norm=2.0).fit_statistics(sums).n_iter_ == 0
    assert not hasattr(AdaSSPLinearRegression(target_bound=1.0).fit(ROWS, TARGETS), "n_iter_")


@pytest.mark.parametrize("form", ["array", "floats", "list", "frame"])
def test_fits_of_many_take_the_same_steps(form):
    X = {
        "array": ROWS,
        "floats": ROWS.astype(np.float32),
        "list": ROWS.tolist(),
        "frame": pd.DataFrame(ROWS, columns=list("abcdef")),
    }[form]
    models = [
        model(data_norm=norm, alpha=alpha, n_public=size, fit_intercept=flag, random_state=seed)
        for seed, (norm, alpha, size, flag) in enumerate(
            [(None, None, None, True), (1.0, None, None, True), (1.0, 9.0, None, True),
             (1.0, None, 200, True), (1.0, None, 90_000, False), (None, None, 200, False)]
        )
    ]  # fmt: skip
    others = [AdaSSPLinearRegression(1.0, DELTA, target_bound=2.0, random_state=0)]
    together = DPRidge.fit_many([clone(one) for one in models + others], X, TARGETS)
    for one, other in zip(models + others, together, strict=True):
        one.fit(X, TARGETS)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert one.intercept_ == other.intercept_
        assert hasattr(one, "feature_names_in_") == hasattr(other, "feature_names_in_")
    assert [one.n_iter_ for one in together[:-1]] == [5, 5, 0, 5, 5, 5]


# What they show, and gain -----------------------------------------------------------------


def replay_of_steps(ridge):
    few = 0.05 * np.random.default_rng(0).uniform(-1.0, 1.0, size=(127, 3))
    record = ([1e9, -1.0, 0.0], 104.0)
    return replay_neighbours(ridge, few, np.full(127, 100.0), record, n_repeats=20)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.filterwarnings("ignore::skdptune.base.PrivacyWarning")
def test_neighbours_are_not_told_apart(intercept):
    # Theorem L10: steps towards smaller residuals, at the cost of one release.
    ridge = DPRidge(0.5, 1e-3, data_norm=2.0, target_bound=(96.0, 104.0), fit_intercept=intercept)
    assert clone(ridge).fit(ROWS[:127], TARGETS[:127]).n_iter_ == N_STEPS
    assert replay_of_steps(ridge).findings == []


@pytest.mark.filterwarnings("ignore::skdptune.base.PrivacyWarning")
def test_steps_with_too_little_noise_would_be_found(monkeypatch):
    ridge = DPRidge(0.5, 1e-3, data_norm=2.0, target_bound=(96.0, 104.0))
    monkeypatch.setattr(
        _ridge,
        "gaussian_release",
        lambda value, sensitivity, scale, rng: gaussian_release(
            value, sensitivity, scale / 30.0, rng
        ),
    )
    assert replay_of_steps(ridge).findings


def test_more_epsilon_is_never_worse():
    # A column that the others hide, and targets far from a line: R2 over budgets, of ten fits.
    generator = np.random.default_rng(2)
    X = generator.normal(size=(4000, 12))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    y = np.clip(X[:, 0] - X[:, 1] + 0.3 * X[:, 2:6].sum(axis=1), -1.0, 1.0)
    scores = []
    for epsilon in (0.25, 1.0, 3.0, 6.0, 16.0):
        ridges = [
            model(epsilon=epsilon, target_bound=1.5, random_state=seed) for seed in range(10)
        ]
        found = [ridge.fit(X, y).score(X, y) for ridge in ridges]
        scores.append((np.mean(found), np.std(found, ddof=1) / math.sqrt(10.0)))
    for (less, less_error), (more, more_error) in itertools.pairwise(scores):
        assert more > less - 2.0 * math.hypot(less_error, more_error) - 0.002


def test_sums_of_many_blocks_do_not_overflow(monkeypatch):
    generator = np.random.default_rng(0)
    rows, targets = generator.normal(size=(36_000, 4)), generator.normal(size=36_000)
    monkeypatch.setattr("skdptune.linear_model._regression._sufficient_statistics._MOST_BLOCKS", 2)
    few = SufficientStatistics(1.0, 1.0).update(rows, targets)
    monkeypatch.undo()
    many = SufficientStatistics(1.0, 1.0).update(rows, targets)
    np.testing.assert_array_equal(few.gram_and_moment[0], many.gram_and_moment[0])
    # A block's largest sum, and the number of blocks that an integer holds before it is emptied.
    assert BLOCK * 2**40 <= 2**53
    assert BLOCK * 2**40 * 2**10 < 2**63
