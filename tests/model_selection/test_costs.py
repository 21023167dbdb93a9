"""Causes of costs: candidates, parts of the records, numbers of runs, noise of tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from sklearn.model_selection import ShuffleSplit, StratifiedKFold
from sklearn.pipeline import Pipeline

from skdptune.accounting import PrivacyProfile, search_on_split
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import gaussian_profile, laplace_profile, noise_for_budget
from skdptune.metrics import accuracy
from skdptune.model_selection import HoldOut
from skdptune.model_selection._cost import ScoreNoise
from skdptune.model_selection._cost._candidates import Candidates
from skdptune.model_selection._cost._fit_costs import labels_set_the_cost
from skdptune.model_selection._cost._layout import Layout, make_layout
from skdptune.model_selection._running._data import (
    disjoint_partitions,
    random_split,
)
from skdptune.model_selection._strategies._full_table import noise_limit, table_noise
from skdptune.model_selection._strategies._random_runs import (
    DISTRIBUTIONS,
    candidate_distributions,
)
from tests.model_selection.learners import Scripted

# Candidates --------------------------------------------------------------------------------------


def grid(spaces: object) -> Candidates:
    return Candidates(spaces, name="param_grid", drawn=False)


SUGGESTION = {"a": [None, 1, 2], "b": ["own"], "c": [0.5, 0.25]}
DEFAULT = {"a": None, "b": "own", "c": 0.5}


def test_suggested_draws_are_independent_and_a_third_is_the_default() -> None:
    """Theorem F12."""
    candidates = Candidates.suggested(SUGGESTION, name="param_distributions", drawn=True)
    seeds = np.random.SeedSequence(0).spawn(2000)
    found = candidates.draw_each(seeds)
    listed = list(candidates.grid())
    shares = [found.count(one) / len(found) for one in listed]
    assert sum(shares) == 1.0
    np.testing.assert_allclose(shares, [1 / 3, 2 / 9, 2 / 9, 2 / 9], atol=0.03)
    # A draw follows only from its own seed.
    assert candidates.draw_each(seeds[100:103]) == found[100:103]
    # Of pairs, as many as if they were independent.
    pairs = sum(x == y == DEFAULT for x, y in zip(found[::2], found[1::2], strict=True))
    assert abs(pairs / 1000 - 1 / 9) < 0.03


# Whether a cost may depend on the labels ---------------------------------------------------------


def test_labels_that_nobody_declared() -> None:
    objective, sgd = (DPLogisticRegression(solver=solver) for solver in ("objective", "sgd"))
    declared = DPLogisticRegression(solver="objective", classes=[0, 1])
    # Another solver's cost may depend on the labels; a step may stand in place of none.
    for estimator, values, wanted in (
        (objective, {"tol": [1e-3]}, True),
        (declared, {"tol": [1e-3]}, False),
        (sgd, {"learning_rate": [1.0]}, False),
        (sgd, {"solver": ["sgd", "objective"]}, True),
        (Scripted(), {"quality": [0.1]}, False),
        (Pipeline([("last", None)]), {"last": [objective]}, True),
    ):
        assert labels_set_the_cost(estimator, grid(values)) is wanted


# Parts of the records, in public numbers ---------------------------------------------------------


def layout(n_samples: int = 1000, **more: Any) -> Layout:
    usual = {"cv": 0.2, "public": False, "tuning_fraction": None, "variant": 1}
    settings = {**usual, "refit": "winner", "is_random": False, **more}
    return make_layout(n_samples, 3, **settings)


def test_sizes_of_the_usual_layouts() -> None:
    sizes = ("n_train", "n_score", "n_final", "final", "train_is_random", "final_is_random")
    for made, wanted in (
        (layout(), (800, 200, 800, False, True, True)),
        (layout(tuning_fraction=0.1), (100, 200, 900, True, True, True)),
        (layout(tuning_fraction=0.1, variant=2), (100, 200, 1000, True, True, False)),
        (layout(cv=4, refit=True), (750, 1000, 1000, True, True, False)),
    ):
        assert tuple(getattr(made, name) for name in sizes) == wanted
    public = layout(public=True)
    assert (public.n_train, public.train_is_random, public.validation) == (1000, False, 0.0)


@pytest.mark.parametrize(
    ("n_samples", "share"),
    [(900, None), (1000, 0.2), (9_999, 0.2), (10_000, 0.1), (19_999, 0.1), (20_000, 0.05)],
)
def test_automatic_tuning_fraction(n_samples: int, share: float | None) -> None:
    assert layout(n_samples, tuning_fraction="auto").tuning == share


def test_bad_layouts() -> None:
    two = ShuffleSplit(2)
    for name, values, words in (
        ("cv", [0.0, 1.5, 1, True, None, StratifiedKFold(), two], "cv must be"),
        ("cv", [ShuffleSplit(1, test_size=30)], "cv must be KFold, ShuffleSplit with one split"),
        ("cv", [3], "refit must be True or False with folds"),
        ("variant", [3], "variant must be"),
        ("refit", ["best", 1], "refit must be 'winner', True or False; got"),
        ("tuning_fraction", [0.8, "some"], "tuning_fraction must be"),
        ("n_samples", [0], "n_samples must be"),
        ("n_samples", [10], "n_samples must be at least 20 to leave"),
    ):
        for value in values:
            with pytest.raises((TypeError, ValueError), match=words):
                layout(**{name: value})


def test_a_final_fit_of_no_record_is_paid_for() -> None:
    # Theorem F7: the probability that a fit has no records is paid for.
    found = layout(30, tuning_fraction=0.74, cv=0.25).chance_of_nothing
    assert found == pytest.approx(0.74**29 + 0.26**29, rel=1e-9)
    second = layout(30, tuning_fraction=0.74, cv=0.25, variant=2).chance_of_nothing
    # Of so little, pytest would take nothing for the same.
    assert second == pytest.approx(0.26**29, rel=1e-9, abs=0.0)


def test_replacing_a_record_moves_a_score_twice() -> None:
    # Theorem F8: searches over estimators whose guarantee is about replacing a record.
    plain, replaced = (layout(replaces=to).sensitivity(accuracy()) for to in (False, True))
    assert replaced == 2.0 * plain
    wrong, right = (accuracy().score(np.array([value, 1.0]), 200) for value in (0.0, 1.0))
    assert right - wrong == pytest.approx(replaced)


def test_guarantees_about_replacing_do_not_grow_by_sampling() -> None:
    # Theorem F8: searches over estimators whose guarantee is about replacing a record.
    assert layout(6000, replaces=True, tuning_fraction="auto").tuning is None
    with pytest.raises(ValueError, match="is not strengthened by sampling"):
        layout(6000, replaces=True, tuning_fraction=0.1)


# Each record's own place -------------------------------------------------------------------------


@pytest.mark.parametrize(("tuning", "variant"), [(None, 1), (0.3, 1), (0.3, 2)])
def test_places_have_their_chances(tuning: float | None, variant: int) -> None:
    n = 40_000
    split = random_split(n, 0.2, tuning, variant, np.random.default_rng(0))
    assert abs(split.validation.size / n - 0.2) < 0.01
    assert abs(split.tuning.size / n - (0.8 if tuning is None else tuning)) < 0.01
    assert not set(split.validation) & set(split.tuning)
    if tuning is None or variant == 2:
        assert split.final is None
    else:
        assert sorted([*split.final, *split.tuning]) == list(range(n))


def test_one_record_more_leaves_the_places_of_others() -> None:
    # Theorem T3: validation, tuning and rest by one random split.
    one = random_split(100, 0.2, 0.3, 1, np.random.default_rng(1))
    more = random_split(101, 0.2, 0.3, 1, np.random.default_rng(1))
    assert set(one.tuning) == set(more.tuning) - {100}
    assert set(one.validation) == set(more.validation) - {100}


def test_partitions_are_disjoint_and_uniform() -> None:
    # Theorem F5: an index chosen from mean scores over partitions.
    found = disjoint_partitions(np.arange(10, 10_010), 4, np.random.default_rng(0))
    assert sorted(np.concatenate(found)) == list(range(10, 10_010))
    assert all(abs(part.size - 2500) < 200 for part in found)


# Records that a rule holds out -------------------------------------------------------------------


def test_the_places_of_a_split_are_those_of_the_rule() -> None:
    """Theorem T9: coins only among the other records."""
    held_out = np.arange(4000) % 4 == 0
    split = random_split(4000, 0.2, 0.1, 1, np.random.default_rng(0), held_out)
    np.testing.assert_array_equal(split.validation, np.flatnonzero(held_out))
    assert not held_out[split.tuning].any()
    assert split.tuning.size == pytest.approx(3000 * 0.1 / 0.8, rel=0.15)
    assert split.final is not None
    assert sorted([*split.tuning, *split.final]) == list(range(4000))
    whole = random_split(4000, 0.2, None, 1, np.random.default_rng(0), held_out)
    np.testing.assert_array_equal(whole.tuning, np.flatnonzero(~held_out))
    assert whole.final is None


RULE = HoldOut(0, ">=", 0.0, share=0.2)


def test_fits_are_told_the_most_records_that_a_rule_may_leave() -> None:
    """Theorem T9, Theorem F3."""
    by_rule, by_coin = (layout(10_000, cv=cv, refit=True) for cv in (RULE, 0.2))
    assert (by_rule.n_train, by_coin.n_train) == (10_000, 8000)
    assert by_rule.n_score == by_coin.n_score == 2000
    assert by_rule.train_is_random
    assert by_rule.chance_of_nothing == 0.0
    of_part = layout(10_000, cv=RULE, tuning_fraction=0.1, refit=True)
    assert (of_part.n_train, of_part.n_final) == (1250, 10_000)
    assert layout(10_000, cv=RULE, tuning_fraction=0.1, refit=False).n_final == 1250
    assert of_part.train_share == layout(cv=0.2, tuning_fraction=0.1).train_share == 0.1


def test_guarantees_about_replacing_are_refused() -> None:
    """Theorem T9, Theorem F8: a replaced record may go to the other part."""
    with pytest.raises(ValueError, match="a replaced record may move to the other part"):
        layout(cv=RULE, refit=True, replaces=True)


# Numbers of runs by name, mean and chance --------------------------------------------------------


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_mean_is_as_wanted(name: str) -> None:
    distributions = candidate_distributions(name, 7, None)
    assert [distribution.mean for distribution in distributions] == pytest.approx(
        [7.0] * len(distributions), rel=1e-6
    )
    assert len(distributions) == (5 if name == "auto" else 1)


@pytest.mark.parametrize("name", ["geometric", "poisson", "logarithmic", "negative_binomial"])
def test_at_least_is_met_and_hardly_more(name: str) -> None:
    (distribution,) = candidate_distributions(name, 1, (5, 0.9))
    assert 0.9 <= 1.0 - distribution.probability_at_most(4) <= 0.903


# Noise of the runs of a table --------------------------------------------------------------------


DELTA = 1e-5


def of_table(**more: object) -> Layout:
    settings = {"cv": 0.2, "public": False, "tuning_fraction": None, "variant": 2, "refit": True}
    return make_layout(10_000, None, is_random=False, **{**settings, **more})


@pytest.mark.parametrize(
    ("epsilon", "count", "part"), [(0.5, 2, 0.1), (4.0, 10, None), (0.5, 40, None), (4.0, 40, 0.1)]
)
def test_the_final_fit_has_at_most_the_wanted_noise(
    epsilon: float, count: int, part: float | None
) -> None:
    """Theorem T8, for Gaussian fits; the noise is also the least that does it."""
    found, limit = of_table(tuning_fraction=part), noise_limit(epsilon, 10_000)
    noise = table_noise(epsilon, DELTA, count, found, limit)
    assert noise is not None
    of_fit, of_score = noise
    unit, _ = noise_for_budget(epsilon, DELTA)

    def total(fit_noise: float) -> float:
        fits, scores = (
            PrivacyProfile.gaussian(1.0 / (unit * limit * each)) * count
            for each in (fit_noise, of_score)
        )
        final = PrivacyProfile.gaussian(1.0 / (unit * limit))
        return search_on_split(
            fits, scores, final, validation_fraction=0.2, tuning_fraction=part, variant=2
        ).epsilon(DELTA)

    assert total(of_fit) <= epsilon
    assert total(0.98 * of_fit) > 0.999 * epsilon


def test_candidates_compare_best_on_all_records() -> None:
    """Theorem T8: noise relative to the records of a fit grows as the part shrinks."""
    parts = (None, 0.4, 0.1)
    found = [
        (table_noise(1.0, DELTA, 20, made, 1.04), made.train_share)
        for made in (of_table(tuning_fraction=part) for part in parts)
    ]
    ratios = [noise[0] / share for noise, share in found if noise is not None]
    assert len(ratios) == len(parts)
    assert ratios == sorted(ratios)


# Scores by several metrics -----------------------------------------------------------------------


@pytest.mark.parametrize(("n_metrics", "ratio"), [(1, 0.7), (2, 3.0), (3, 40.0), (7, 0.7)])
def test_scores_that_share_a_cost_compose_to_it(n_metrics: int, ratio: float) -> None:
    # Theorem T8: of one candidate's noise, composed metric by metric by another library.
    noise = ScoreNoise(ratio, "gaussian", gaussian_profile(1.0, ratio)).shared_by(n_metrics)
    interval = 1e-4 if ratio < 10.0 else 1e-5
    composed = pld.from_gaussian_mechanism(
        noise.ratio, value_discretization_interval=interval, pessimistic_estimate=False
    ).self_compose(n_metrics)
    for delta in (1e-3, 1e-5):
        assert noise.profile.epsilon(delta) >= composed.get_epsilon_for_delta(delta) * (1 - 1e-9)
        assert noise.profile.epsilon(delta) == pytest.approx(
            composed.get_epsilon_for_delta(delta), rel=0.01
        )
    of_one = noise.of_one * n_metrics
    assert of_one.epsilon(DELTA) == pytest.approx(noise.profile.epsilon(DELTA), rel=5e-3)
    pure = ScoreNoise(ratio, "laplace", laplace_profile(1.0, ratio)).shared_by(n_metrics)
    assert pure.profile.epsilon(0.0) >= n_metrics * (1.0 / pure.ratio)
    assert pure.ratio == pytest.approx(n_metrics * ratio)


@pytest.mark.parametrize("ratio", [0.8, 2.0])
def test_the_vector_of_scores_shows_what_is_charged_and_no_more(ratio: float) -> None:
    # Theorem T8: a record that moves each of two scores by its own sensitivity, by quadrature.
    noise = ScoreNoise(ratio, "gaussian", gaussian_profile(1.0, ratio)).shared_by(2)
    scales, shifts = noise.ratio * np.array([0.5, 2.0]), np.array([0.5, -2.0])
    points = [np.linspace(-9.0, 9.0, 1201) * scale for scale in scales]

    def density(at: np.ndarray, shift: float, scale: float) -> np.ndarray:
        return np.exp(-0.5 * ((at - shift) / scale) ** 2) / (scale * math.sqrt(2.0 * math.pi))

    def joint(present: float) -> np.ndarray:
        each = [
            density(at, present * shift, scale)
            for at, shift, scale in zip(points, shifts, scales, strict=True)
        ]
        return np.outer(*each)

    cell = math.prod(at[1] - at[0] for at in points)
    for epsilon in (0.0, 0.3, 1.0):
        excess = np.maximum(joint(1.0) - math.exp(epsilon) * joint(0.0), 0.0).sum() * cell
        assert excess == pytest.approx(noise.profile.delta(epsilon), abs=2e-4)
