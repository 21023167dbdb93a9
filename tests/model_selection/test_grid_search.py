"""What is particular to the grid search."""

from __future__ import annotations

import numpy as np
import pytest

from skdptune.model_selection import DPGridSearchCV, RandomRuns
from tests.flat import flat
from tests.model_selection.learners import Scripted, table

DELTA = 1e-5
X, Y = table(400)


def search(values: object = None, **more: object) -> DPGridSearchCV:
    usual = {"random_state": 0}
    values = values or {"quality": [0.1, 0.5, 0.9]}
    return flat(DPGridSearchCV, Scripted(delta=DELTA), values, **{**usual, **more})


def test_pick_costs_the_same_for_any_number_of_candidates() -> None:
    many = search({"quality": np.linspace(0, 1, 500)})
    assert many.privacy_profile(400, 3) == search().privacy_profile(400, 3)


def test_composition_costs_every_candidate() -> None:
    costs = [
        search({"quality": [0.5] * n}, strategy="compose").privacy_profile(400).epsilon(DELTA)
        for n in (1, 2, 4)
    ]
    assert 0.9 < costs[0] <= 1.0 < costs[1] < costs[2]


def test_pick_follows_the_law_of_permute_and_flip() -> None:
    # Theorem F5.
    # Utilities 0 and 1 of two candidates at epsilon e: the worse wins with chance
    # exp(-n e / 2) / 2 for n parts, as its coin comes first half of the time.
    values = {"quality": [0.0, 1.1]}
    picks = [
        search(values, selection_epsilon=0.5, n_partitions=4, random_state=seed)
        .fit(X, Y)
        .best_params_["quality"]
        for seed in range(200)
    ]
    assert picks.count(0.0) == pytest.approx(200 * np.exp(-1.0) / 2, abs=4 * np.sqrt(30))


def test_every_row_of_a_composition_is_shown() -> None:
    found = search(strategy="compose", score_epsilon=20.0).fit(X, Y)
    scores = found.cv_results_["mean_test_score"]
    np.testing.assert_allclose(scores, [0.1, 0.5, 0.9], atol=0.15)
    assert found.cv_results_["rank_test_score"].tolist() == [3, 2, 1]
    assert found.best_index_ == 2


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"strategy": "best"}, ValueError, "strategy must be"),
        ({"n_partitions": 1}, ValueError, "n_partitions must be"),
        ({"n_partitions": "many"}, TypeError, "n_partitions must be"),
        ({"selection_epsilon": 0.0}, ValueError, "selection_epsilon must be"),
        (
            {"cv": 3, "strategy": "noisy_max"},
            ValueError,
            "cv must be a fraction for scores on disjoint partitions",
        ),
        ({"strategy": RandomRuns()}, TypeError, "or one of your own that searches a grid"),
        ({"strategy": 3}, TypeError, "or one of your own that searches a grid"),
    ],
)
def test_bad_parameters(settings: dict[str, object], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        search(**settings).privacy_profile(400, 3)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"epsilon": 1.0}, "candidates, all scores published"),
        ({"epsilon": 1.0, "cv": 5}, "candidates, all scores published"),
        ({"cv": 5}, "candidates, all scores published"),
        ({}, "permute-and-flip"),
        ({"epsilon": 1.0, "delta": 0.0}, "permute-and-flip"),
        ({"epsilon": 1.0, "n_partitions": 5}, "permute-and-flip"),
        ({"epsilon": 1.0, "selection_epsilon": 0.1}, "permute-and-flip"),
        ({"epsilon": 1.0, "tuning_estimator": Scripted()}, "permute-and-flip"),
    ],
)
def test_the_selection_follows_from_public_numbers(
    settings: dict[str, object], wanted: str
) -> None:
    report = search(**{"delta": DELTA, **settings}).plan(400, 3, compare=False).report
    assert wanted in report.parts[0].note


def test_very_many_candidates_are_chosen_from_and_not_shown() -> None:
    few, many = (
        search({"quality": np.linspace(0, 1, size)}, epsilon=1.0, delta=DELTA)
        for size in (50, 400)
    )
    # And the estimator's own value.
    assert "51 candidates" in few.plan(10_000, 3, compare=False).report.parts[0].note
    assert "permute-and-flip" in many.plan(10_000, 3, compare=False).report.parts[0].note


def test_candidates_that_cannot_have_more_noise_are_chosen_from() -> None:
    class Quiet(Scripted):
        """A fit whose noise has an end."""

        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> object:
            if self.epsilon < 0.5:
                raise ValueError("epsilon must be at least 0.5.")
            return super().privacy_profile(n_samples, n_features)

    made = DPGridSearchCV(Quiet(), {"quality": [0.1, 0.9]}, epsilon=2.0, delta=DELTA)
    assert "permute-and-flip" in made.plan(400, 3, compare=False).report.parts[0].note
