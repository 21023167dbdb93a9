"""Scorers by name, and refusals that say why and what instead."""

from __future__ import annotations

import pytest
from sklearn.metrics import accuracy_score, get_scorer, get_scorer_names

from skdptune import metrics
from skdptune.metrics import _names as module
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


@pytest.mark.parametrize("name", sorted(set(get_scorer_names()) - set(KNOWN)))
def test_every_other_name_of_scikit_learn_is_refused(name) -> None:
    with pytest.raises(ValueError, match=f"got '{name}'. .*(Use|make_bounded_scorer)"):
        get_bounded_scorer(name)


@pytest.mark.parametrize("name", sorted(module._INSTEAD))
def test_refusal_says_why_and_names_what_exists(name) -> None:
    assert name in get_scorer_names()
    with pytest.raises(ValueError, match="one record can change it|class counts of the data") as e:
        get_bounded_scorer(name)
    advice = str(e.value).rpartition("Use ")[2]
    named = [word for word in metrics.__all__ if word in advice]
    assert named


@pytest.mark.parametrize("bad", [None, accuracy_score, get_scorer("accuracy"), 3, accuracy])
def test_callables_and_others_are_refused(bad) -> None:
    with pytest.raises(
        TypeError, match="scoring must be a name or a BoundedScorer; got .*bounded_"
    ):
        get_bounded_scorer(bad)
