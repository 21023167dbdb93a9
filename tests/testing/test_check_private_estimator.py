"""Every public estimator meets the contract, and its check names the failures."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import EstimatorCheckFailedWarning

from skdptune.accounting import PrivacyProfile
from skdptune.testing import check_private_estimator
from tests.testing import estimators as toys
from tests.testing.public_estimators import BOUNDS, ESTIMATORS, HAS_OPTUNA, PUBLIC, SEARCHES, nets

NETS = nets()


def failures(estimator: Any) -> list[str]:
    results = check_private_estimator(estimator, on_fail=None)
    return [f"{name}: {message}" for name, passed, message in results if passed is False]


def named(estimator: Any) -> str:
    # The repr of a net is that of its class.
    return type(estimator).__name__ if estimator in NETS else repr(estimator)[:60]


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *SEARCHES, *NETS], ids=named)
def test_estimator_keeps_the_contract(estimator) -> None:
    assert failures(estimator) == []


def test_no_public_estimator_is_left_out() -> None:
    # A Pareto search shows exact scores, unless it releases them: it is for the curator's eyes.
    not_here = {"DParetoSearchCV", *([] if HAS_OPTUNA else ["DPAdaptiveSearchCV"])}
    checked = {type(one).__name__ for one in [*ESTIMATORS, *SEARCHES, *NETS]}
    assert len(PUBLIC) > 15
    assert checked == PUBLIC.keys() - not_here


def test_delta_has_one_default() -> None:
    # A search takes that of its estimator where it is given none.
    kinds = {type(one) for one in [*ESTIMATORS, *SEARCHES]}
    defaults = {kind: inspect.signature(kind).parameters.get("delta") for kind in kinds}
    found = {kind: default.default for kind, default in defaults.items() if default is not None}
    assert len(found) > 10
    for kind, default in found.items():
        assert default == (None if "estimator" in kind._get_param_names() else 1e-5), kind


@pytest.mark.parametrize(
    ("name", "settings", "failed"),
    [
        # Its constructor sets classes_.
        ("LogisticRegression", {"data_norm": 2.0}, ["check_constructor"]),
        ("GaussianNB", {"bounds": BOUNDS}, []),
        ("LinearRegression", {"bounds_X": BOUNDS, "bounds_y": BOUNDS}, []),
        ("StandardScaler", {"bounds": BOUNDS}, []),
    ],
)
def test_model_of_diffprivlib_keeps_the_contract(name, settings, failed, monkeypatch) -> None:
    models = pytest.importorskip("diffprivlib.models")
    # As if nothing were known against them.
    monkeypatch.setattr("skdptune.base._refusals._BY_CLASS", {})
    results = check_private_estimator(getattr(models, name)(**settings), on_fail=None)
    # Clones of their models share the noise of a RandomState.
    failed = sorted([*failed, "check_random_state"])
    assert [result.name for result in results if result.passed is False] == failed


def test_all_checks_apply_to_an_estimator_with_every_optional_member() -> None:
    results = check_private_estimator(toys.CalibratesItself())
    assert [name for name, passed, _ in results if passed is not True] == []
    assert len(results) == 21


def test_results_say_why_a_check_does_not_apply() -> None:
    results = {name: rest for name, *rest in check_private_estimator(toys.RightTransformer())}
    assert results["check_n_public"] == [None, "RightTransformer has no parameter n_public."]
    assert results["check_pipeline"] == [True, ""]


@pytest.mark.parametrize(
    ("wrong", "check", "message"),
    [
        (toys.ChangesParameters, "parameters", "set_params must store values as they are"),
        (toys.FittedByItsConstructor, "constructor", "with ['coef_']"),
        (toys.AnnouncesAfterFitAlone, "profile", "must work before fit"),
        (toys.AnnouncesAtRandom, "profile", "same profile in each call"),
        (toys.AnnouncesANumber, "profile", "must be a PrivacyProfile; got float"),
        (
            toys.CostsMoreThanItsBudget,
            "profile_within_budget",
            "at most epsilon=1 at delta=0; it costs 2",
        ),
        (
            toys.CostsLessForMore,
            "profile_monotone_in_epsilon",
            "a larger epsilon must not cost less",
        ),
        (toys.HidesACostParameter, "cost_parameters", "must name 'clip'"),
        (toys.NamesNoParameters, "cost_parameters", "['noise'] are not"),
        (toys.HasNegativeNoise, "noise_level", "must be positive"),
        (toys.HasNoiseThatGrows, "noise_level", "must not grow with epsilon"),
        (toys.IgnoresItsNoiseParameter, "noise_parameter", "must determine the profile"),
        (toys.CalibratesTooLittle, "calibration_to_curve", "those for a shift of 0.1 cost more"),
        (toys.SuggestsOthersFirst, "suggested_space", "must list the present value first"),
        (toys.SuggestsBudgets, "suggested_space", "must leave ['epsilon'] to the search"),
        (toys.ScalesItsBudget, "tuning_parameters", "must leave ['epsilon'] to the search"),
        (toys.ReportsLess, "report", "announced before the fit"),
        (toys.ReportsNothing, "report", "without privacy_"),
        (toys.ReturnsAnother, "report", "must return the estimator itself"),
        (toys.ReportsWhatItSaw, "report_ignores_values", "must not depend on the values"),
        (toys.CostsMoreForLargeValues, "report_ignores_values", "must not depend on the values"),
        (toys.CostsByTheRealSize, "n_public", "must not depend on n_samples"),
        (toys.ShowsTheRealSize, "n_public", "['n_samples_seen_'] do"),
        (toys.IgnoresItsSeed, "random_state", "random_state=7 must repeat itself"),
        (toys.IsAlwaysSeeded, "random_state", "must draw fresh noise"),
        (toys.SharesAGenerator, "random_state", "clones with a Generator as random_state"),
        (toys.FitsCopies, "fit_many", "fitted in place"),
        (toys.CannotBeSent, "pickle", "pickle"),
        (toys.CountsForFree, "neighbours", "n_kept_ differs when a record is"),
        (toys.DropsRecords, "pipeline", "one row per record"),
        (toys.PredictsPairs, "grid_search", "one predict per record"),
        (toys.NeedsManyRecords, "random_search", "at least 80"),
    ],
)
def test_wrong_estimator_is_caught_by_the_check_for_it(wrong, check, message) -> None:
    # Checks stop at the first that fails: those before it pass.
    with pytest.raises(AssertionError) as caught:
        check_private_estimator(wrong())
    assert str(caught.value).startswith(f"{wrong.__name__} fails check_{check}: ")
    assert message in str(caught.value)


def test_failure_warns_or_is_returned() -> None:
    wrong = toys.ReportsLess()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EstimatorCheckFailedWarning)
        warned = check_private_estimator(wrong, on_fail="warn")
    assert warned == check_private_estimator(wrong, on_fail=None)
    failed = [result for result in warned if result.passed is False]
    assert failed[0].name == "check_report"
    assert [str(warning.message.exception) for warning in caught] == [
        f"ReportsLess fails {result.name}: {result.message}" for result in failed
    ]


def test_estimator_is_left_alone() -> None:
    estimator = toys.Right(random_state=3)
    before = dict(vars(estimator))
    check_private_estimator(estimator)
    assert vars(estimator) == before


def test_own_data_are_used() -> None:
    class FiveColumns(toys.Right):
        def fit(self, X, y):
            if np.shape(X)[1] != 5:
                raise ValueError("X must have 5 columns.")
            return super().fit(X, y)

    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(101, 5))
    check_private_estimator(FiveColumns(), X, np.arange(101) % 2)
    failed = check_private_estimator(FiveColumns(), on_fail=None)
    assert any("X must have 5 columns." in result.message for result in failed)


@pytest.mark.parametrize("kind", [list, object, np.float32])
def test_own_data_of_any_form_are_used(kind) -> None:
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(127, 3))
    rows = X.astype(np.float32) if kind is np.float32 else X
    labels = np.arange(127) % 2
    labels = labels.tolist() if kind is list else labels.astype(object)
    results = {each.name: each for each in check_private_estimator(toys.Right(), rows, labels)}
    assert results["check_neighbours"].passed is True
    with pytest.raises(AssertionError, match="check_neighbours: .*n_kept_"):
        check_private_estimator(toys.CountsForFree(), rows, labels)


def test_neighbours_are_not_compared_without_a_claim() -> None:
    class ClaimsNothing(toys.Right):
        def privacy_profile(self, n_samples, n_features=None):
            return PrivacyProfile.approximate(0.0, 1.0)

    results = check_private_estimator(ClaimsNothing(), on_fail=None)
    (result,) = (each for each in results if each.name == "check_neighbours")
    assert result.passed is None
    assert "claims no privacy" in result.message


@pytest.mark.parametrize(("on_fail", "kind"), [("ignore", ValueError), (3, ValueError)])
def test_bad_arguments_are_refused(on_fail, kind) -> None:
    with pytest.raises(kind, match="on_fail must be one of"):
        check_private_estimator(toys.Right(), on_fail=on_fail)
    with pytest.raises(TypeError, match="estimator must be an instance; got the class Right"):
        check_private_estimator(toys.Right)
