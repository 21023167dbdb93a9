"""Messages about estimators without a privacy cost."""

from __future__ import annotations

import importlib
import inspect
import pickle
import re

import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import IsolationForest, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import all_estimators

from skdptune.base import NoProfileError, profile_of


def no_profile(estimator) -> NoProfileError:
    """Return the error that says why an estimator has no cost."""
    with pytest.raises(NoProfileError) as refusal:
        profile_of(estimator, 10)
    return refusal.value


COUNTERPARTS = [
    (LogisticRegression(), "linear_model.DPLogisticRegression."),
    (LinearSVC(), "linear_model.DPLinearSVC."),
    (SVC(), "linear_model.DPLinearSVC."),
    (SGDClassifier(), "linear_model.DPLogisticRegression(solver='sgd')."),
    (LinearRegression(), "linear_model.DPRidge(target_bound=...)."),
    (Ridge(), "linear_model.DPRidge(target_bound=...)."),
    (MLPClassifier(), "neural_network.DPNeuralNetClassifier."),
    (MLPRegressor(), "neural_network.DPNeuralNetRegressor."),
    (GridSearchCV(LinearSVC(), {"C": [1]}), "model_selection.DPGridSearchCV."),
    (TunedThresholdClassifierCV(LinearSVC()), "calibration.PrivateThreshold"),
    (KNeighborsClassifier(), "linear_model.DPLogisticRegression or"),
    (KNeighborsRegressor(), "linear_model.DPRidge(target_bound=...) or"),
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
    assert "its fit reveals the number of records" in message
    assert "Use skdptune.ensemble.DPExplainableBoostingClassifier(bounds=...)." in message


def test_transformers_say_what_they_learn() -> None:
    assert "got StandardScaler: it learns means and deviations" in str(
        no_profile(StandardScaler())
    )
    assert "Use skdptune.preprocessing.DPPCA(bounds=...)." in str(no_profile(PCA()))
    for stranger in (TruncatedSVD(), KMeans(), object()):
        assert "it learns from private rows, at an unknown cost" in str(no_profile(stranger))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_advice_names_public_objects() -> None:
    names = set()
    for kind in (each for _, each in all_estimators() if not inspect.isabstract(each)):
        inner = {"estimator", "estimators", "base_estimator"} & {
            *inspect.signature(kind).parameters
        }
        try:
            made = kind(**{name: [] if name == "estimators" else PCA() for name in inner})
            profile_of(made, 10, 3)
        except NoProfileError as refusal:
            names |= set(re.findall(r"skdptune\.(\w+)\.(\w+)", str(refusal)))
        except (TypeError, ValueError):
            # Without the parameters that it must be given.
            continue
    assert len(names) > 8
    for folder, name in names - {("base", "register_profile")}:
        assert name in importlib.import_module(f"skdptune.{folder}").__all__


def test_error_is_copied_with_all_that_it_says() -> None:
    error = no_profile(LogisticRegression()).within("last")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
