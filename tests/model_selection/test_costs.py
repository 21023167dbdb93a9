"""What costs follow from: candidates, parts of the records, numbers of runs, noise of tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline

from skdptune.accounting import Geometric, Poisson, PrivacyProfile, search_on_split
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import noise_for_budget
from skdptune.metrics import accuracy
from skdptune.model_selection._cost import ExpectedGain
from skdptune.model_selection._cost._candidates import Candidates
from skdptune.model_selection._cost._fit_costs import labels_set_the_cost
from skdptune.model_selection._cost._layout import Layout, make_layout, split_of
from skdptune.model_selection._cost._table_noise import (
    noise_limit,
    table_noise,
    tuning_fraction_of_table,
)
from skdptune.model_selection._running._data import (
    disjoint_folds,
    disjoint_partitions,
    expected_size,
    random_split,
)
from skdptune.model_selection._strategies._random_runs import (
    DISTRIBUTIONS,
    candidate_distributions,
    runs_at_most,
)
from tests.model_selection.learners import Scripted

# Candidates --------------------------------------------------------------------------------------


def drawn(spaces: object) -> Candidates:
    return Candidates(spaces, name="param_distributions", drawn=True)


def grid(spaces: object) -> Candidates:
    return Candidates(spaces, name="param_grid", drawn=False)


@pytest.mark.parametrize(
    ("spaces", "kind", "words"),
    [
        ([], TypeError, "param_grid must be a dict from parameter names"),
        (3, TypeError, "param_grid must be a dict from parameter names"),
        ("quality", TypeError, "param_grid must be a dict from parameter names"),
        ([3], TypeError, "param_grid must hold dicts; got int"),
        ({3: [1]}, TypeError, "the keys of param_grid must be names; got 3"),
        ({"quality": []}, ValueError, r"param_grid\['quality'\] must not be empty"),
        ({"quality": 0.5}, TypeError, r"param_grid\['quality'\] must be a list; got float"),
        ({"quality": "abc"}, TypeError, r"param_grid\['quality'\] must be a list; got str"),
        ({"quality": np.ones((2, 2))}, TypeError, "must be a list; got ndarray"),
        ({"quality": uniform()}, TypeError, "DPRandomSearchCV draws from distributions"),
    ],
)
def test_bad_spaces_are_named(spaces: object, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        grid(spaces)


@pytest.mark.parametrize("values", [[1.0], uniform()], ids=["list", "distribution"])
@pytest.mark.parametrize("name", ["quality", "scriptd__quality", "scripted__qualty"])
def test_the_parameter_that_was_meant_is_named(name: str, values: object) -> None:
    # scikit-learn's own message shows the whole pipeline, and no parameter of its steps.
    with pytest.raises(ValueError, match="must name parameters of Pipeline") as refusal:
        drawn({name: values}).check_names(make_pipeline(Scripted()))
    assert str(refusal.value).endswith("Did you mean 'scripted__quality'?")


def test_grid_is_the_product_of_its_lists() -> None:
    found = list(grid([{"a": [1, 2], "b": [3]}, {"c": [4]}]).grid())
    assert found == [{"a": 1, "b": 3}, {"a": 2, "b": 3}, {"c": 4}]


def test_draws_are_with_replacement_and_uniform() -> None:
    random = np.random.RandomState(0)
    found = [drawn({"a": ["x", "y"]}).draw(random)["a"] for _ in range(400)]
    assert 150 < found.count("x") < 250


def test_draws_choose_among_the_spaces() -> None:
    random = np.random.RandomState(0)
    found = [frozenset(drawn([{"a": [1]}, {"b": uniform()}]).draw(random)) for _ in range(50)]
    assert set(found) == {frozenset("a"), frozenset("b")}


SUGGESTION = {"a": [None, 1, 2], "b": ["own"], "c": [0.5, 0.25]}
DEFAULT = {"a": None, "b": "own", "c": 0.5}


def test_a_suggestion_is_tried_one_parameter_at_a_time() -> None:
    found = Candidates.suggested(SUGGESTION, name="param_grid", drawn=False)
    assert found.default == DEFAULT
    assert list(found.grid()) == [
        DEFAULT,
        {**DEFAULT, "a": 1},
        {**DEFAULT, "a": 2},
        {**DEFAULT, "c": 0.25},
    ]
    assert grid({"a": [1]}).default is None


def test_suggested_draws_are_independent_and_a_third_is_the_default() -> None:
    """Theorem F12."""
    candidates = Candidates.suggested(SUGGESTION, name="param_distributions", drawn=True)
    seeds = np.random.SeedSequence(0).spawn(3000)
    found = candidates.draw_each(seeds)
    listed = list(candidates.grid())
    shares = [found.count(one) / len(found) for one in listed]
    assert sum(shares) == 1.0
    np.testing.assert_allclose(shares, [1 / 3, 2 / 9, 2 / 9, 2 / 9], atol=0.03)
    # A draw follows from its own seed alone.
    assert candidates.draw_each(seeds[100:103]) == found[100:103]
    # Of pairs, as many as if they were independent.
    pairs = sum(x == y == DEFAULT for x, y in zip(found[::2], found[1::2], strict=True))
    assert abs(pairs / 1500 - 1 / 9) < 0.03


def test_a_suggestion_of_present_values_alone_is_always_the_default() -> None:
    candidates = Candidates.suggested({"a": [3]}, name="param_distributions", drawn=True)
    assert candidates.draw_each(np.random.SeedSequence(0).spawn(5)) == [{"a": 3}] * 5


class Lenient:
    """Takes any parameter, and names one."""

    def __init__(self, named: float = 0.0) -> None:
        self.named = named

    def get_params(self, deep: bool = True) -> dict[str, float]:
        return {"named": self.named}

    def set_params(self, **params: float) -> Lenient:
        if any(name.startswith("bad") for name in params):
            raise ValueError("bad")
        vars(self).update(params)
        return self


def test_names_are_those_that_set_params_takes() -> None:
    grid({"other": [1.0]}).check_names(Lenient())
    drawn({"other": uniform()}).check_names(Lenient())
    with pytest.raises(ValueError, match="param_distributions must name .* got 'bad'"):
        drawn({"bad": uniform()}).check_names(Lenient())
    with pytest.raises(ValueError, match="bad"):
        grid({"bad": [1.0]}).check_names(Lenient())


def test_steps_that_are_searched_over() -> None:
    own, first, second = Scripted(0.1), Scripted(0.2), Scripted(0.3)
    pipeline = Pipeline([("before", None), ("last", own)])

    def found(space: object) -> list[tuple[object, float]]:
        made = grid(space).with_steps(pipeline)
        return [(each["before"], each["last"].quality) for each in made]

    assert found({"last__quality": [0.5]}) == [(None, 0.1)]
    assert found({"last": [first, second], "last__quality": [0.5]}) == [(None, 0.2), (None, 0.3)]
    both = {"before": ["passthrough", None], "last": [first, second]}
    assert {place for place, _ in found(both)} == {"passthrough", None}
    assert {quality for _, quality in found(both)} == {0.2, 0.3}
    assert found([{"last": [second]}, {"last__quality": [0.5]}]) == [(None, 0.3), (None, 0.1)]
    assert own.quality == 0.1 and pipeline["last"] is own


# Whether a cost may depend on the labels ---------------------------------------------------------


def labels_matter(estimator: object, values: object) -> bool:
    return labels_set_the_cost(estimator, Candidates(values, name="param_grid", drawn=False))


@pytest.mark.parametrize(
    ("estimator", "values", "wanted"),
    [
        (DPLogisticRegression(solver="objective"), {"tol": [1e-3]}, True),
        (DPLogisticRegression(solver="objective", classes=[0, 1]), {"tol": [1e-3]}, False),
        (DPLogisticRegression(solver="sgd"), {"learning_rate": [1.0]}, False),
        # Another solver's cost may depend on the labels.
        (DPLogisticRegression(solver="sgd"), {"solver": ["sgd", "objective"]}, True),
        (Scripted(), {"quality": [0.1]}, False),
        # A step that is searched over, in place of none.
        (
            Pipeline([("last", None)]),
            {"last": [DPLogisticRegression(solver="objective")]},
            True,
        ),
    ],
)
def test_labels_that_nobody_declared(estimator: object, values: object, wanted: bool) -> None:
    assert labels_matter(estimator, values) is wanted


# Parts of the records, in public numbers ---------------------------------------------------------


def layout(n_samples: int = 1000, **more: Any) -> Layout:
    usual = {"cv": 0.2, "public": False, "tuning_fraction": None, "variant": 1}
    settings = {**usual, "refit": "winner", "is_random": False, **more}
    return make_layout(n_samples, 3, **settings)


def test_sizes_of_the_usual_layouts() -> None:
    plain = layout()
    assert (plain.n_train, plain.n_score, plain.final) == (800, 200, False)
    assert (plain.n_final, plain.train_is_random) == (800, True)
    part = layout(tuning_fraction=0.1)
    assert (part.n_train, part.n_score, part.n_final, part.final) == (100, 200, 900, True)
    assert part.final_is_random
    second = layout(tuning_fraction=0.1, variant=2)
    assert (second.n_final, second.final_is_random) == (1000, False)
    folds = layout(cv=4, refit=True)
    assert (folds.n_train, folds.n_score, folds.n_final) == (750, 1000, 1000)
    public = layout(public=True)
    assert (public.n_train, public.train_is_random, public.validation) == (1000, False, 0.0)


@pytest.mark.parametrize(
    ("n_samples", "share"),
    [(900, None), (1000, 0.2), (9_999, 0.2), (10_000, 0.1), (19_999, 0.1), (20_000, 0.05)],
)
def test_automatic_tuning_fraction(n_samples: int, share: float | None) -> None:
    assert layout(n_samples, tuning_fraction="auto").tuning == share


def test_automatic_tuning_fraction_leaves_records() -> None:
    assert layout(1500, tuning_fraction="auto", cv=0.9).tuning is None


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"cv": 0.0}, ValueError, "cv must be"),
        ({"cv": 1.5}, ValueError, "cv must be"),
        ({"cv": 1}, ValueError, "cv must be"),
        ({"cv": True}, TypeError, "cv must be a fraction or a number of folds; got bool"),
        ({"cv": None}, TypeError, "cv must be a fraction or a number of folds; got NoneType"),
        ({"cv": StratifiedKFold()}, ValueError, "cv must be KFold, ShuffleSplit with one split"),
        ({"cv": ShuffleSplit(1, test_size=30)}, ValueError, "cv must be KFold, ShuffleSplit"),
        ({"cv": ShuffleSplit(2)}, ValueError, "cv must be KFold, ShuffleSplit"),
        ({"variant": 3}, ValueError, "variant must be"),
        ({"refit": "best"}, ValueError, "refit must be 'winner', True or False; got 'best'"),
        ({"refit": 1}, ValueError, "refit must be 'winner', True or False; got 1"),
        ({"cv": 3}, ValueError, "refit must be True or False with folds"),
        ({"tuning_fraction": 0.8}, ValueError, "tuning_fraction must be"),
        ({"tuning_fraction": "some"}, ValueError, "tuning_fraction must be"),
        ({"n_samples": 0}, ValueError, "n_samples must be"),
        ({"n_samples": 10}, ValueError, "n_samples must be at least 20 to leave"),
    ],
)
def test_bad_layouts(settings: dict[str, Any], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        layout(**settings)


@pytest.mark.parametrize(
    ("splitter", "wanted"),
    [
        (KFold(4), (0.0, 4)),
        (KFold(3, shuffle=True, random_state=0), (0.0, 3)),
        (ShuffleSplit(1, test_size=0.3), (0.3, 0)),
        (ShuffleSplit(1), (0.1, 0)),
    ],
    ids=["folds", "shuffled-folds", "share", "default-share"],
)
def test_splitters_that_treat_records_alike_are_taken(
    splitter: Any, wanted: tuple[float, int]
) -> None:
    assert split_of(splitter) == wanted


def test_a_final_fit_of_no_record_is_paid_for() -> None:
    # Theorem F7.
    found = layout(30, tuning_fraction=0.74, cv=0.25).chance_of_nothing
    assert found == pytest.approx(0.74**29 + 0.26**29, rel=1e-9)
    second = layout(30, tuning_fraction=0.74, cv=0.25, variant=2).chance_of_nothing
    # Of so little, pytest would take nothing for the same.
    assert second == pytest.approx(0.26**29, rel=1e-9, abs=0.0)


def test_replacing_a_record_moves_a_score_twice() -> None:
    # Theorem F8.
    plain, replaced = (layout(replaces=to).sensitivity(accuracy()) for to in (False, True))
    assert replaced == 2.0 * plain
    wrong, right = (accuracy().score(np.array([value, 1.0]), 200) for value in (0.0, 1.0))
    assert right - wrong == pytest.approx(replaced)


def test_guarantees_about_replacing_do_not_grow_by_sampling() -> None:
    # Theorem F8.
    assert layout(6000, replaces=True, tuning_fraction="auto").tuning is None
    with pytest.raises(ValueError, match="is not strengthened by sampling"):
        layout(6000, replaces=True, tuning_fraction=0.1)


def test_a_final_fit_needs_records() -> None:
    with pytest.raises(ValueError, match="to leave some records for the final fit"):
        layout(20, tuning_fraction=0.9, public=True)


def test_least_number_of_records_is_enough() -> None:
    assert layout(20).n_score == 4


def test_uses_of_the_records_cover_what_their_sizes_say() -> None:
    settings = (
        {},
        {"refit": True},
        {"tuning_fraction": 0.1},
        {"tuning_fraction": 0.1, "variant": 2},
        {"tuning_fraction": 0.1, "cv": 4},
        {"cv": 4, "refit": True},
        {"public": True, "refit": False},
    )
    for setting in settings:
        found = layout(**setting)
        width = {use: end - start for use, (start, end) in found.uses.items()}
        folds = 1.0 - 1.0 / found.folds if found.folds else 1.0
        assert width["fits of candidates"] * folds == pytest.approx(found.train_share)
        assert width.get("scores", 0.0) == pytest.approx(found.score_share)
        if found.final:
            assert width["final fit"] == pytest.approx(found.final_share)
        assert set(width) - {"scores"} == {
            "fits of candidates",
            *(["final fit"] if found.final else []),
        }
        assert all(0.0 <= start < end <= 1.0 for start, end in found.uses.values())
    apart = layout(tuning_fraction=0.1).uses
    # Neither those who score nor those who are fitted last took part in candidates' fits.
    assert apart["scores"][0] == apart["final fit"][0] == apart["fits of candidates"][1] == 0.1


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
    # Theorem T3.
    one = random_split(100, 0.2, 0.3, 1, np.random.default_rng(1))
    more = random_split(101, 0.2, 0.3, 1, np.random.default_rng(1))
    assert set(one.tuning) == set(more.tuning) - {100}
    assert set(one.validation) == set(more.validation) - {100}


def test_partitions_are_disjoint_and_uniform() -> None:
    # Theorem F5.
    found = disjoint_partitions(np.arange(10, 10_010), 4, np.random.default_rng(0))
    assert sorted(np.concatenate(found)) == list(range(10, 10_010))
    assert all(abs(part.size - 2500) < 200 for part in found)


def test_partitions_may_be_empty() -> None:
    found = disjoint_partitions(np.arange(2), 5, np.random.default_rng(0))
    assert len(found) == 5
    assert sum(part.size for part in found) == 2


def test_expected_size_is_never_zero() -> None:
    assert expected_size(1000, 0.2) == 200
    assert expected_size(3, 0.01) == 1


def test_folds_train_on_all_others() -> None:
    folds = disjoint_folds(1000, 3, np.random.default_rng(0))
    assert sorted(np.concatenate([held for _, held in folds])) == list(range(1000))
    for train, held in folds:
        assert sorted([*train, *held]) == list(range(1000))


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


def test_auto_leaves_out_what_attains_no_such_chance() -> None:
    # A logarithmic number of runs is 1 too often, whatever its mean.
    with pytest.raises(ValueError, match=r"with n_iter_distribution='logarithmic'; got \(5, 0.99"):
        candidate_distributions("logarithmic", 1, (5, 0.99))
    found = candidate_distributions("auto", 1, (5, 0.99))
    assert any(isinstance(each, Poisson) for each in found)
    assert all(1.0 - each.probability_at_most(4) >= 0.99 for each in found)


def test_one_run_is_one_run() -> None:
    (distribution,) = candidate_distributions("auto", 1, None)
    assert distribution.probability_at_most(0) == 0.0
    assert distribution.probability_at_most(1) == 1.0


def test_law_itself_is_taken() -> None:
    distribution = Poisson.from_mean(3)
    assert candidate_distributions(distribution, 99, None) == [distribution]


@pytest.mark.parametrize(
    ("distribution", "n_iter", "at_least", "words"),
    [
        ("gauss", 3, None, "n_iter_distribution must be"),
        ("geometric", 0.5, None, "n_iter must be"),
        ("geometric", float("nan"), None, "n_iter must be"),
        ("geometric", 3, 5, r"at_least must be \(number of runs, probability\); got 5"),
        ("geometric", 3, (0, 0.5), r"at_least\[0\] must be"),
        ("geometric", 3, (2, 1.0), r"at_least\[1\] must be"),
    ],
)
def test_bad_wishes(distribution: str, n_iter: float, at_least: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        candidate_distributions(distribution, n_iter, at_least)  # type: ignore[arg-type]


@pytest.mark.parametrize("distribution", [Geometric.from_mean(20), Poisson.from_mean(20)])
def test_runs_at_most_is_the_quantile(distribution: object) -> None:
    found = runs_at_most(distribution, 0.99)
    assert (
        distribution.probability_at_most(found)
        >= 0.99
        > distribution.probability_at_most(found - 1)
    )


# Noise of the runs of a table --------------------------------------------------------------------


DELTA = 1e-5


def of_table(**more: object) -> Layout:
    settings = {"cv": 0.2, "public": False, "tuning_fraction": None, "variant": 2, "refit": True}
    return make_layout(10_000, None, is_random=False, **{**settings, **more})


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("count", [2, 10, 40])
@pytest.mark.parametrize("part", [None, 0.1])
def test_the_final_fit_has_at_most_the_wanted_noise(
    epsilon: float, count: int, part: float | None
) -> None:
    """Theorem T8, for Gaussian fits; the noise is also the least that does it."""
    found, limit = of_table(tuning_fraction=part), noise_limit(epsilon, 10_000)
    noise = table_noise(epsilon, DELTA, count, found, limit)
    assert noise is not None
    unit, _ = noise_for_budget(epsilon, DELTA)

    def total(fit_noise: float) -> float:
        fits, scores = (
            PrivacyProfile.gaussian(1.0 / (unit * limit * each)) * count
            for each in (fit_noise, noise.score)
        )
        final = PrivacyProfile.gaussian(1.0 / (unit * limit))
        return search_on_split(
            fits, scores, final, validation_fraction=0.2, tuning_fraction=part, variant=2
        ).epsilon(DELTA)

    assert total(noise.fit) <= epsilon
    assert total(0.98 * noise.fit) > 0.999 * epsilon


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_candidates_compare_best_on_all_records(epsilon: float) -> None:
    """Theorem T8: noise beside the records of a fit grows as the part shrinks."""
    parts = (None, 0.4, 0.2, 0.1, 0.05)
    found = [
        (table_noise(epsilon, DELTA, 20, made, 1.04), made.train_share)
        for made in (of_table(tuning_fraction=part) for part in parts)
    ]
    ratios = [noise.fit / share for noise, share in found if noise is not None]
    assert len(ratios) == len(parts)
    assert ratios == sorted(ratios)


def test_on_all_records_squared_shifts_add_up() -> None:
    noise = table_noise(1.0, DELTA, 10, of_table(), 1.02)
    assert noise is not None
    wanted = math.sqrt(10 / (1.02**2 - 1.0))
    assert noise.fit == pytest.approx(wanted, rel=0.01)
    assert noise.score == pytest.approx(wanted, rel=1e-12)


def test_with_folds_fits_and_scores_share_what_there_is() -> None:
    noise = table_noise(1.0, DELTA, 10, of_table(cv=5), 1.02)
    assert noise is not None
    shifts = 40 / noise.fit**2 + 10 / noise.score**2
    assert shifts == pytest.approx(1.02**2 - 1.0, rel=0.05)
    assert 10 / noise.score**2 == pytest.approx(shifts / 2, rel=0.05)


def test_public_validation_data_leave_all_to_the_fits() -> None:
    noise = table_noise(1.0, DELTA, 10, of_table(public=True), 1.02)
    assert noise is not None
    assert noise.fit == pytest.approx(math.sqrt(10 / (1.02**2 - 1.0)), rel=0.01)


def test_pure_guarantees_add_up_themselves() -> None:
    noise = table_noise(1.0, 0.0, 10, of_table(), 1.05)
    assert noise is not None
    assert noise.score == pytest.approx(10 / 0.05)


def test_no_noise_is_enough_where_the_final_fit_takes_all() -> None:
    assert table_noise(1.0, DELTA, 10**9, of_table(), 1.0 + 1e-9) is None


@pytest.mark.parametrize(
    ("epsilon", "n_samples", "wanted"),
    [(0.5, 100, 1.02), (1.0, 4000, 1.028), (1.0, 10_000, 1.05), (100.0, 10**9, 1.05)],
)
def test_a_table_may_cost_a_few_percent(epsilon: float, n_samples: int, wanted: float) -> None:
    assert noise_limit(epsilon, n_samples) == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize(
    ("count", "n_samples", "wanted"),
    [
        (25, 100, None),
        (26, 10_000, 0.5),
        (100, 10_000, 0.2),
        (5000, 100_000, 0.02),
        (60, 500, 0.5),
    ],
)
def test_a_part_saves_time_where_candidates_are_many(
    count: int, n_samples: int, wanted: float | None
) -> None:
    assert tuning_fraction_of_table(count, n_samples) == wanted


# Whether a search of a suggested space is worth it -----------------------------------------------


WORTH = {
    "n_samples": 40_000,
    "epsilon": 1.0,
    "noise_ratio": 1.1,
    "n_score": 8000,
    "score_noise": 0.004,
    "is_narrow": True,
}


def test_many_records_at_a_low_cost_are_worth_it() -> None:
    assert ExpectedGain(**WORTH).reason_against == ""
    assert ExpectedGain(**{**WORTH, "noise_ratio": 0.9}).loss == 0.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"noise_ratio": 8.0}, "its costs may lose 0.8 points"),
        ({"epsilon": 0.01}, "its costs may lose 3"),
        ({"n_samples": 400}, "its costs may lose 3"),
        ({"n_score": 200}, "a score deviates by 3.6 %"),
        ({"score_noise": 0.4}, "a score deviates by 40.0 %"),
        ({"score_noise": math.nan}, "a score deviates"),
    ],
)
def test_each_reason_is_named(changes: dict[str, float], words: str) -> None:
    assert words in ExpectedGain(**{**WORTH, **changes}).reason_against


@pytest.mark.parametrize("name", ["n_samples", "epsilon", "n_score"])
def test_more_records_and_more_budget_never_speak_against_it(name: str) -> None:
    verdicts = [
        ExpectedGain(**{**WORTH, name: WORTH[name] * factor}).reason_against == ""
        for factor in (0.01, 0.1, 1, 10, 100)
    ]
    assert verdicts == sorted(verdicts)
