"""The explainable boosting machine for labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special
from sklearn.base import clone

from skdptune.ensemble import DPExplainableBoostingClassifier as Classifier
from skdptune.testing import replay_neighbours
from tests.ensemble.tables import SCHEMA, people

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (3000, 3))
BAND = np.abs(X[:, 0] - 0.5) < 0.25


def test_it_learns_what_bends():
    model = Classifier(bounds=(0, 1), random_state=0).fit(X, BAND)
    assert model.score(X, BAND) > 0.85
    assert model.privacy_.epsilon == 1.0


def test_it_learns_from_words_and_gaps():
    table, labels = people(4000)
    model = Classifier(schema=SCHEMA, random_state=0).fit(table, labels)
    assert model.score(table, labels) > 0.85
    # Its share of "yes" is the same as among numbers.
    ranges = [np.ptp(scores) for scores in model.term_scores_]
    assert min(ranges[0], ranges[2]) > 2 * max(ranges[1], ranges[3])


def test_more_classes_have_a_score_each():
    y = np.array(["low", "middle", "high"])[(X[:, 1] * 3).astype(int)]
    model = Classifier(4.0, bounds=(0, 1), random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
    scores, chances = model.decision_function(X), model.predict_proba(X)
    assert scores.shape == chances.shape == (3000, 3)
    assert chances == pytest.approx(special.softmax(scores, axis=1))
    assert np.exp(model.predict_log_proba(X)) == pytest.approx(chances)
    assert model.term_scores_[0].shape[1] == 3


def test_scores_add_up():
    model = Classifier(bounds=(0, 1), random_state=0).fit(X, BAND)
    assert model.decision_function(X) == pytest.approx(special.logit(model.predict_proba(X)[:, 1]))
    by_hand = np.full(3000, model.intercept_[0])
    for column, bins, scores in zip(X.T, model.bins_, model.term_scores_, strict=True):
        by_hand += scores[bins[np.minimum((column * bins.size).astype(int), bins.size - 1)]]
    assert model.decision_function(X) == pytest.approx(by_hand)
    for scores, weights in zip(model.term_scores_, model.bin_weights_, strict=True):
        assert np.average(scores, weights=weights) == pytest.approx(0.0, abs=1e-12)


def test_labels_are_those_declared_here_or_in_the_schema():
    table, labels = people(50)
    few = np.full(50, "yes")
    model = Classifier(schema=SCHEMA, max_rounds=2, random_state=0)
    assert model.fit(table, few).classes_.tolist() == ["no", "yes"]
    assert "the label set is public" not in model.privacy_.assumptions
    # An undeclared label counts as the first one, and cannot make a fit fail.
    odd = few.astype(object)
    odd[0] = None
    assert model.fit(table, odd).classes_.tolist() == ["no", "yes"]
    model = Classifier(bounds=(0, 1), classes=[3, 1, 2], max_rounds=2).fit(
        X[:50], np.ones(50, int)
    )
    assert model.classes_.tolist() == [1, 2, 3]


def test_without_noise_it_is_nearly_right():
    model = Classifier(math.inf, bounds=(0, 1), random_state=0).fit(X, BAND)
    assert model.score(X, BAND) > 0.97
    assert model.privacy_.profile.epsilon(1e-5) == math.inf
    assert sum(model.bin_weights_[0]) == 3000


# Class weights ------------------------------------------------------------------------------


def rare():
    """Return records of which few are "ill", and no rule tells all of them."""
    rng = np.random.default_rng(1)
    chances = 0.25 * (np.abs(X[:, 0] - 0.5) < 0.1)
    return np.where(rng.random(3000) < chances, "ill", "well")


def test_class_weights_find_more_of_a_rare_class():
    y = rare()
    model = Classifier(8.0, bounds=(0, 1), classes=["ill", "well"], random_state=0).fit(X, y)
    assert not (model.predict(X) == "ill").any()
    weighted = clone(model).set_params(class_weight={"ill": 12.0}).fit(X, y)
    assert (weighted.predict(X)[y == "ill"] == "ill").mean() > 0.7
    assert weighted.privacy_.profile == model.privacy_.profile
    (more,) = set(weighted.privacy_.assumptions) - set(model.privacy_.assumptions)
    assert more == "class weights are public, not computed from the data"
    assert weighted.get_params()["class_weight"] == {"ill": 12.0}
    same = clone(model).set_params(class_weight={"ill": 2.0, "well": 2.0}).fit(X, y)
    assert np.array_equal(same.decision_function(X), model.decision_function(X))


def test_without_noise_class_weights_are_odds():
    # The minimum of the weighted logistic loss: odds times the weights.
    y = np.random.default_rng(2).random(3000) < 0.1 + 0.3 * X[:, 0]
    settings = {"max_rounds": 300, "learning_rate": 1.0, "max_bins": 6, "bounds": (0, 1)}
    model = Classifier(math.inf, random_state=0, **settings).fit(X[:, :1], y)
    weighted = clone(model).set_params(class_weight={True: 6.0}).fit(X[:, :1], y)
    moved = weighted.decision_function(X[:, :1]) - model.decision_function(X[:, :1])
    assert moved == pytest.approx(np.full(3000, math.log(6.0)), abs=0.02)


def replay_of_weighted_neighbours(weights, label):
    """Return the replay of one record, in a fit of nothing but its few steps."""
    few = np.random.default_rng(0).uniform(0, 1, (200, 1))
    y = np.where(few[:, 0] > 0.9, "ill", "well")
    model = Classifier(
        0.3,
        1e-4,
        bounds=(0, 1),
        classes=["ill", "well"],
        class_weight=weights,
        max_rounds=5,
        max_bins=2,
        max_leaves=2,
        bin_share=0.01,
    )
    return replay_neighbours(model, few, y, ([0.95], label), n_repeats=20)


@pytest.mark.parametrize(
    ("weights", "label"), [({"ill": 12.0}, "ill"), ({"well": 5.0}, "none of these")], ids=str
)
def test_weighted_neighbours_are_not_told_apart(weights, label):
    # Theorem B1: noisy counts and noisy sums of residuals of an explainable boosting machine.
    replay = replay_of_weighted_neighbours(weights, label)
    assert replay.findings == [], str(replay)


@pytest.mark.parametrize("given", ["balanced", {}, {"dead": 1.0}, {"ill": 0.0}], ids=str)
def test_class_weights_that_are_not_public_numbers_are_refused(given):
    table, labels = people(50)
    for more in ({"bounds": (0, 1), "classes": ["ill", "well"]}, {"schema": SCHEMA}):
        model = Classifier(class_weight=given, **more)
        with pytest.raises((TypeError, ValueError), match="^class_weight"):
            model.privacy_profile(50)
    with pytest.raises((TypeError, ValueError), match="^class_weight"):
        Classifier(class_weight=given, bounds=(0, 1)).fit(X, rare())
