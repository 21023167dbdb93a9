"""Scorers by name, and refusals that say why and what instead."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    get_scorer,
    get_scorer_names,
    jaccard_score,
    matthews_corrcoef,
    precision_score,
    recall_score,
    roc_auc_score,
)

from skdptune import metrics
from skdptune.metrics import accuracy, get_bounded_scorer, neg_brier_score

KNOWN = {"accuracy": accuracy, "neg_brier_score": neg_brier_score}


@pytest.mark.parametrize("name", KNOWN)
def test_name_stands_for_its_scorer(name) -> None:
    assert get_bounded_scorer(name) == KNOWN[name]()
    assert get_bounded_scorer(name).name == name
    assert name in get_scorer_names()


def test_scorer_is_returned_itself() -> None:
    scorer = metrics.neg_squared_error(3.0)
    assert get_bounded_scorer(scorer) is scorer


def test_every_other_name_of_scikit_learn_is_refused() -> None:
    with_advice = 0
    for name in sorted(set(get_scorer_names()) - set(KNOWN)):
        with pytest.raises(ValueError, match=f"got '{name}'. .*(Use|make_bounded_scorer)") as e:
            get_bounded_scorer(name)
        says_why = re.search("(one record|single one) can change it", str(e.value))
        if says_why:
            advice = str(e.value).rpartition("Use ")[2]
            assert any(word in advice for word in metrics.__all__), name
            with_advice += 1
    assert with_advice >= 36


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
