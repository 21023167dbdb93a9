"""What is said of estimators without a privacy cost."""

from __future__ import annotations

import importlib
import pickle
import re

import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from skdptune.base import NoProfileError
from skdptune.base import _refusals as module
from skdptune.base._shared import Refusal, no_profile, together

COUNTERPARTS = [
    (LogisticRegression(), "linear_model.DPLogisticRegression."),
    (LinearSVC(), "linear_model.DPLinearSVC."),
    (SVC(), "linear_model.DPLinearSVC."),
    (SGDClassifier(), "linear_model.DPLogisticRegression(solver='sgd')."),
    (LinearRegression(), "linear_model.NoisyStatisticsRidge(target_bound=...)."),
    (Ridge(), "linear_model.NoisyStatisticsRidge(target_bound=...)."),
    (MLPClassifier(), "neural_network.DPNeuralNetClassifier."),
    (MLPRegressor(), "neural_network.DPNeuralNetRegressor."),
    (GridSearchCV(LinearSVC(), {"C": [1]}), "model_selection.DPGridSearchCV."),
    (KNeighborsClassifier(), "linear_model.DPLogisticRegression or"),
    (KNeighborsRegressor(), "linear_model.NoisyStatisticsRidge(target_bound=...) or"),
    (RandomForestClassifier(), "ensemble.DPExplainableBoostingClassifier(bounds=...)."),
    (
        RandomForestRegressor(),
        "ensemble.DPExplainableBoostingRegressor(bounds=..., target_bound=...).",
    ),
    (IsolationForest(), "register_profile"),
]


@pytest.mark.parametrize(
    ("model", "counterpart"), COUNTERPARTS, ids=[type(m).__name__ for m, _ in COUNTERPARTS]
)
def test_model_that_is_not_private_is_called_so(model, counterpart) -> None:
    message = str(no_profile(model))
    assert "this model is not private" in message
    assert counterpart in message


def test_boosting_of_interpret_is_said_to_leak() -> None:
    class DPExplainableBoostingClassifier:
        """Stands for that of interpret-core, which has no privacy profile."""

    message = str(no_profile(DPExplainableBoostingClassifier()))
    assert "its fit shows the number of records" in message
    assert "Use skdptune.ensemble.DPExplainableBoostingClassifier(bounds=...)." in message


def test_transformers_say_what_they_learn() -> None:
    assert "got StandardScaler: it learns means and deviations" in str(
        no_profile(StandardScaler())
    )
    for stranger in (PCA(), KMeans(), object()):
        assert "it learns from private rows, at an unknown cost" in str(no_profile(stranger))


def test_advice_names_public_objects() -> None:
    advice = [*module._MODELS.values(), *module._COUNTERPARTS.values()]
    advice += [instead for _, instead in module._TRANSFORMERS.values()]
    advice += [instead for _, instead in module._LEAKING.values()]
    names = {name for text in advice for name in re.findall(r"skdptune\.(\w+)\.(\w+)", text)}
    assert len(names) > 8
    for folder, name in names:
        assert name in importlib.import_module(f"skdptune.{folder}").__all__


def test_settings_are_named_as_they_are_set() -> None:
    one = Refusal("Some", "it learns", "Use Another.", (("a", "1"), ("b", "None")))
    assert one.sentence.endswith("got Some: it learns. Set a=1 and b=None, or use Another.")
    (inside,) = NoProfileError(one).within("inner").within("outer").refusals
    assert inside.path == "outer__inner"
    assert inside.line == (
        "outer__inner: Some: it learns. Set outer__inner__a=1 and outer__inner__b=None, or use "
        "Another."
    )
    assert Refusal("Some", "it learns").sentence.endswith("got Some: it learns.")


def test_error_is_copied_with_all_that_it_says() -> None:
    error = no_profile(LogisticRegression()).within("last")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_errors_are_joined() -> None:
    missing, bad = no_profile(PCA()), ValueError("C must be positive; got 0.")
    assert together([("a", bad)]) is bad
    assert str(together([("a", missing)])) == str(missing.within("a"))
    both = together([("a", missing), ("b", bad)])
    assert isinstance(both, NoProfileError)
    assert [each.path for each in both.refusals] == ["a", "b"]
    assert str(both).endswith("- b: a parameter: C must be positive; got 0.")
    twice = together([("a", bad), ("b", bad)])
    assert type(twice) is ValueError
    assert str(twice).count("C must be positive") == 2
    # What a caller may want to tell apart by its type is not joined.
    special = UnicodeError("of a kind of its own")
    assert together([("a", special), ("b", bad)]) is special
