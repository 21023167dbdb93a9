"""The usual scores: agreement with scikit-learn, bounds, and independence of records."""

from __future__ import annotations

import functools
import math
import re

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    get_scorer,
    get_scorer_names,
    jaccard_score,
    log_loss,
    matthews_corrcoef,
    mean_absolute_error,
    mean_squared_error,
    precision_score,
    recall_score,
    roc_auc_score,
)

from skdptune import metrics
from skdptune.metrics import (
    accuracy,
    balanced_accuracy,
    get_bounded_scorer,
    neg_absolute_error,
    neg_brier_score,
    neg_log_loss,
    neg_squared_error,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
SCORES = X[:, 0] + RNG.normal(size=400)
WORDS = np.array(["ill", "so so", "well"], dtype=object)
TARGETS = {
    "numbers": (SCORES > 0).astype(int),
    "words": WORDS[np.digitize(SCORES, [-1.0, 0.5])],
}
TOLERANCE = 1e-6


class Given:
    """Returns the probabilities or predictions that it was made with."""

    def __init__(self, response, classes=None):
        self.response = np.asarray(response)
        self.classes_ = classes

    def predict(self, X):
        return self.response

    predict_proba = predict


def every_scorer():
    return [
        accuracy(),
        balanced_accuracy({0: 0.2, 1: 0.8}),
        neg_brier_score(),
        neg_log_loss(3.0),
        neg_squared_error(2.0),
        neg_absolute_error(1.5),
        accuracy({0: 3.0, 1: 1}),
        neg_brier_score({0: 3.0, 1: 1}),
        neg_log_loss(3.0, {0: 3.0, 1: 1}),
    ]


@pytest.mark.parametrize("kind", TARGETS)
def test_classification_scores_agree_with_scikit_learn(kind) -> None:
    y = TARGETS[kind]
    model = LogisticRegression().fit(X, y)
    prediction, probabilities = model.predict(X), model.predict_proba(X)
    labels, counts = np.unique(y, return_counts=True)
    shares = dict(zip(labels.tolist(), (counts / y.size).tolist(), strict=True))
    truth = (y[:, None] == labels[None, :]).astype(float)
    brier = np.mean(np.sum((truth - probabilities) ** 2, axis=1)) / 2.0
    if kind == "numbers":
        assert brier == pytest.approx(brier_score_loss(y, probabilities[:, 1]))
    wanted = [
        (accuracy(), accuracy_score(y, prediction)),
        (balanced_accuracy(shares), balanced_accuracy_score(y, prediction)),
        (neg_brier_score(), -brier),
        (neg_log_loss(1e3), -log_loss(y, probabilities)),
    ]
    for scorer, value in wanted:
        # The grid on which values are summed is as fine as the bounds are wide.
        assert scorer(model, X, y) == pytest.approx(value, abs=TOLERANCE * (1 - scorer.lower))


@pytest.mark.parametrize("shape", [(400,), (400, 1), (400, 2)])
def test_regression_scores_agree_with_scikit_learn(shape) -> None:
    y = np.random.default_rng(1).normal(size=shape)
    model = DummyRegressor(strategy="quantile", quantile=0.7).fit(X, y)
    prediction = model.predict(X)
    squared = mean_squared_error(y, prediction)
    absolute = mean_absolute_error(y, prediction)
    assert neg_squared_error(100.0)(model, X, y) == pytest.approx(-squared, abs=1e-5)
    assert neg_absolute_error(100.0)(model, X, y) == pytest.approx(-absolute, abs=1e-5)


@pytest.mark.parametrize("scorer", every_scorer(), ids=lambda scorer: scorer.name)
def test_values_stay_within_the_bounds_and_records_apart(scorer) -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 50)
    if scorer.response_method == "predict":
        response = rng.choice([0.0, 1.0, -50.0, np.nan, np.inf, 1e300], size=50)
        models = [Given(response), Given(response[:20])]
    else:
        response = rng.choice([0.0, 0.3, 1.0, -2.0, 7.0, np.nan, 1e200], size=(50, 2))
        models = [Given(response, [0, 1]), Given(response[:20], [0, 1])]
    values = scorer.per_record(models[0], None, y)
    assert scorer.lower <= values.min() <= values.max() <= scorer.upper
    assert scorer.lower == values.min()
    np.testing.assert_array_equal(scorer.per_record(models[1], None, y[:20]), values[:20])


def test_class_that_the_model_does_not_know_scores_the_worst() -> None:
    model = Given([[0.5, 0.5]], [0, 1])
    assert neg_brier_score()(model, None, [2]) == -1.0
    assert neg_log_loss(4.0)(model, None, [2]) == -4.0
    assert balanced_accuracy({0: 0.5, 1: 0.5})(Given([2]), None, [2]) == 0.0


def test_balanced_accuracy_is_sensitive_where_a_class_is_rare() -> None:
    scorer = balanced_accuracy({"a": 0.05, "b": 0.25, "c": 0.7})
    assert scorer.upper == pytest.approx(1 / (3 * 0.05))
    values = scorer.per_record(Given(["a", "b", "b"]), None, np.array(["a", "b", "c"]))
    np.testing.assert_allclose(values, [1 / 0.15, 1 / 0.75, 0.0])


def test_bad_frequencies_are_refused() -> None:
    for given, complaint in (
        (None, "class_frequencies must be a mapping .* got NoneType"),
        ({"a": 0.5, "b": 0.6}, "class_frequencies must sum to 1; got 1.1"),
        ({}, "must sum to 1; got 0"),
        ({"a": 0.0, "b": 1.0}, r"class_frequencies\['a'\] must be a number in \(0, 1\]"),
    ):
        with pytest.raises((TypeError, ValueError), match=complaint):
            balanced_accuracy(given)


@pytest.mark.parametrize("make", [neg_log_loss, neg_squared_error, neg_absolute_error])
@pytest.mark.parametrize("bound", [0.0, -1.0, math.inf, math.nan])
def test_bound_must_be_positive_and_finite(make, bound) -> None:
    with pytest.raises(ValueError, match="bound must be a number in .* It clips each record's"):
        make(bound)


@pytest.mark.parametrize("kind", TARGETS)
def test_weighted_scores_are_those_of_scikit_learn_up_to_the_sum_of_weights(kind) -> None:
    y = TARGETS[kind]
    weights = dict(zip(np.unique(y), (0.5, 2.0, 1.0), strict=False))
    each = np.array([weights[label] for label in y]) / 2.0
    model = LogisticRegression().fit(X, y)
    found = accuracy(weights)(model, X, y)
    missed = 1.0 - accuracy_score(y, model.predict(X), sample_weight=each)
    assert found == pytest.approx(1.0 - missed * each.mean(), abs=TOLERANCE)
    found = neg_log_loss(50.0, weights)(model, X, y)
    wanted = -log_loss(y, model.predict_proba(X), sample_weight=each) * each.mean()
    assert found == pytest.approx(wanted, abs=TOLERANCE)


def test_weights_change_neither_bounds_nor_sensitivity() -> None:
    # Theorem R2: how far one record moves a bounded score.
    weights = {0: 1e-3, 1: 7.0}
    for plain, weighted in (
        (accuracy(), accuracy(weights)),
        (neg_brier_score(), neg_brier_score(weights)),
        (neg_log_loss(3.0), neg_log_loss(3.0, weights)),
    ):
        assert (plain.lower, plain.upper) == (weighted.lower, weighted.upper)
        assert plain.sensitivity(10) == weighted.sensitivity(10)


def test_weighted_losses_are_clipped_before_they_are_weighted() -> None:
    model = Given([[1.0, 0.0], [1.0, 0.0]], classes=[0, 1])
    values = neg_log_loss(3.0, {0: 2.0, 1: 1.0}).per_record(model, X[:2], np.array([1, 0]))
    assert values.tolist() == [-1.5, 0.0]


def test_classes_that_are_not_named_weigh_as_the_largest() -> None:
    model = Given([0, 0, 0])
    values = accuracy({0: 2.0, 1: 1.0}).per_record(model, X[:3], np.array([0, 1, 2]))
    assert values.tolist() == [1.0, 0.5, 0.0]


def test_weights_that_are_none_are_refused() -> None:
    for make in (accuracy, neg_brier_score, lambda weights: neg_log_loss(3.0, weights)):
        for given in ("balanced", {}, {0: 0.0}, {0: math.inf}):
            with pytest.raises((TypeError, ValueError), match="class_weight"):
                make(given)


# Scorers by name, and refusals that say why and what instead ---------------------------------


KNOWN = {
    "accuracy": accuracy,
    "neg_brier_score": neg_brier_score,
    "neg_log_loss": neg_log_loss,
}


@pytest.mark.parametrize("name", KNOWN)
def test_name_stands_for_its_scorer(name) -> None:
    assert get_bounded_scorer(name) == KNOWN[name]()
    assert get_bounded_scorer(name).name == name
    assert name in get_scorer_names()


def test_every_other_name_of_scikit_learn_is_refused() -> None:
    with_advice = 0
    for name in sorted(set(get_scorer_names()) - set(KNOWN)):
        with pytest.raises(ValueError, match=f"got '{name}'. .*(Use|make_bounded_scorer)") as e:
            get_bounded_scorer(name)
        says_why = re.search("(one record|one of them) .*can change it", str(e.value))
        if says_why:
            advice = str(e.value).rpartition("Use ")[2]
            assert any(word in advice for word in metrics.__all__), name
            with_advice += 1
    assert with_advice >= 35


@pytest.mark.parametrize("bad", [None, accuracy_score, get_scorer("accuracy"), 3, accuracy])
def test_callables_and_others_are_refused(bad) -> None:
    with pytest.raises(
        TypeError, match="scoring must be a name or a BoundedScorer; got .*bounded_"
    ):
        get_bounded_scorer(bad)


# One record of 100 is positive; the change of each score, and what the refusal says of it.
CHANGES = {
    "roc_auc": (roc_auc_score, 1.0, "up to 1"),
    "average_precision": (average_precision_score, 0.99, "nearly 1"),
    "f1": (f1_score, 1.0, "up to 1"),
    "precision": (functools.partial(precision_score, zero_division=0), 1.0, "up to 1"),
    "recall": (recall_score, 1.0, "up to 1"),
    "jaccard": (jaccard_score, 1.0, "up to 1"),
    "matthews_corrcoef": (matthews_corrcoef, 1.0, "1 and more"),
    "balanced_accuracy": (balanced_accuracy_score, 0.5, "up to one over the number of classes"),
    "f1_micro": (functools.partial(f1_score, average="micro"), 0.01, "about one over the number"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_refusal_says_by_how_much_one_record_changes_a_score(name) -> None:
    score, change, words = CHANGES[name]
    is_positive = np.arange(100) == 0
    is_rank = name in ("roc_auc", "average_precision")
    right = np.where(is_positive, 0.9, 0.1)
    # The positive record is replaced by one that the model takes for the least likely of all.
    wrong = np.where(is_positive, 0.0, 0.1)
    scores = [score(is_positive, one if is_rank else one > 0.5) for one in (right, wrong)]
    assert scores[0] - scores[1] == pytest.approx(change)
    with pytest.raises(ValueError, match=words):
        get_bounded_scorer(name)


def test_scorer_is_returned_itself() -> None:
    scorer = metrics.neg_squared_error(3.0)
    assert get_bounded_scorer(scorer) is scorer
