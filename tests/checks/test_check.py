"""Checks as users make them: findings, refused arguments, and the last lines of plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdptune
from skdptune import (
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    check,
)
from skdptune.base import NoProfileError, profile_of
from skdptune.checks import CheckReport
from skdptune.linear_model import DPLogisticRegression
from skdptune.preprocessing import DPStandardScaler, Schema, make_private_pipeline
from tests.checks.examples import model, random_search
from tests.fuzz import recipes, run
from tests.testing.public_estimators import ESTIMATORS, HAS_NETS, HAS_PARETO, nets
from tests.testing.public_estimators import SEARCHES as PUBLIC_SEARCHES

N_SAMPLES, N_FEATURES = 32_561, 10
SCHEMA = Schema(
    {
        "age": (18, 100),
        "income": {"range": (0, 1_000_000), "scale": "log", "missing": True},
        "sector": {"categories": ["farm", "factory", "office"], "missing": "?"},
        "name": "drop",
    },
    target=["no", "yes"],
)
SPACE = {"learning_rate": loguniform(0.1, 10), "max_grad_norm": loguniform(0.1, 5)}
SEARCH = DPRandomSearchCV(
    DPLogisticRegression(solver="sgd", batch_size=0.05), SPACE, epsilon=1.0, delta=1e-5
)
# One of each public estimator and search, and what the README and the docstrings recommend.
RECOMMENDED: list[Any] = [
    *ESTIMATORS,
    *PUBLIC_SEARCHES,
    *nets(),
    DPLogisticRegression(),
    DPLogisticRegression(epsilon=2.0, delta=1e-5, classes=[0, 1]),
    make_private_pipeline(DPLogisticRegression(), SCHEMA),
    make_pipeline(
        DPStandardScaler(epsilon=0.5, delta=1e-6, bounds=(0, 1000)),
        DPLogisticRegression(epsilon=2.0, delta=1e-6, classes=[0, 1]),
    ),
    SEARCH,
    DPRandomSearchCV(make_private_pipeline(DPLogisticRegression(), SCHEMA), epsilon=1.0),
    DPGridSearchCV(DPLogisticRegression(), epsilon=1.0),
    DPGridSearchCV(model(), {"C": [0.1, 1.0]}, epsilon=1.0, strategy="noisy_max"),
    DoublingThresholdSearchCV(DPLogisticRegression(), epsilon=1.0),
]
NAMES = [f"{place}-{type(one).__name__}" for place, one in enumerate(RECOMMENDED)]


@pytest.mark.parametrize("recommended", RECOMMENDED, ids=NAMES)
def test_nothing_recommended_has_an_issue(recommended: Any) -> None:
    assert check(recommended).issues == ()
    if not hasattr(recommended, "plan"):
        found = check(recommended, n_samples=N_SAMPLES, n_features=N_FEATURES)
        assert found.raise_on_issues() is found


def test_plan_of_a_recommended_search_has_no_issue() -> None:
    plan = SEARCH.plan(N_SAMPLES, N_FEATURES, compare=False)
    assert plan.findings.issues == ()
    # The plan is cached, and so the check of a search with sizes is the same.
    assert check(SEARCH, n_samples=N_SAMPLES, n_features=N_FEATURES) == plan.findings


@pytest.mark.skipif(not HAS_PARETO, reason="needs optuna")
def test_adaptive_search_has_no_issue_and_a_front_without_a_release_has() -> None:
    space = {"C": (0.1, 10.0, "log")}
    assert check(DPAdaptiveSearchCV(model(), space, epsilon=1.0)).codes == ()
    exact = skdptune.DParetoSearchCV(model(), {"epsilon": (0.1, 2.0), "C": (0.1, 10.0)})
    assert [one.place for one in check(exact).issues] == ["DParetoSearchCV.release"]
    assert check(exact, n_samples=2000, n_features=3).codes == ("SKP006",)
    assert check(clone(exact).set_params(release=2.0)).codes == ()


@pytest.mark.skipif(not HAS_NETS, reason="needs torch, skorch and Opacus")
def test_nets_have_no_issue_but_by_their_callbacks() -> None:
    from skorch.callbacks import EarlyStopping

    from skdptune.neural_network import MLP, DPNeuralNetClassifier

    net = DPNeuralNetClassifier(MLP(hidden=(120,)), epsilon=3.0, lr=2.0, max_epochs=20)
    assert check(net, n_samples=60_000).issues == ()
    stopped = clone(net).set_params(callbacks=[EarlyStopping()])
    assert [(one.code, one.place) for one in check(stopped).issues] == [
        ("SKP015", "DPNeuralNetClassifier.callbacks")
    ]


@pytest.mark.parametrize(
    "estimator",
    [3, None, DPLogisticRegression, object()],
    ids=["number", "none", "class", "object"],
)
def test_search_of_no_estimator_is_an_issue(estimator: Any) -> None:
    found = check(DPRandomSearchCV(estimator, {"C": [0.1, 1.0]}, epsilon=1.0))
    assert [one.code for one in found.issues] == ["SKP019"]


# Objects that are not estimators, and wrong arguments -------------------------------------------


@pytest.mark.parametrize(
    ("thing", "got"),
    [
        (object, "the class object"),
        (DPLogisticRegression, "the class DPLogisticRegression"),
        (None, "None"),
        ("C", "'C'"),
        ([1.0], "list of length 1"),
    ],
    ids=["class", "estimator-class", "none", "word", "list"],
)
def test_what_is_no_estimator_is_refused(thing: Any, got: str) -> None:
    with pytest.raises(TypeError, match=f"^estimator must be an estimator or a search, .*{got}"):
        check(thing)
    with pytest.raises(TypeError, match=r"^estimator must be .* got object\.$"):
        check(object())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples must be an integer of at least 1"),
        ({"n_samples": "many"}, TypeError, "n_samples must be an integer"),
        ({"n_features": -1}, ValueError, "n_features must be an integer of at least 1"),
        ({"delta": 1.0}, ValueError, r"delta must be a number in \[0, 1\)"),
        ({"schema": {"age": (120, 0)}}, ValueError, "schema must describe every column"),
        ({"mute": ["SKP099"]}, ValueError, "mute must hold codes"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_arguments_are_refused(arguments: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        check(model(), **arguments)


# What a check does not do ----------------------------------------------------------------------


def test_nothing_is_raised_by_an_estimator_that_fails_at_all() -> None:
    class Failing(DPLogisticRegression):
        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
            raise ZeroDivisionError("division by zero")

    (finding,) = check(Failing(classes=[0, 1])).issues
    assert (finding.code, finding.found) == ("SKP019", "division by zero")
    assert check(random_search(Failing(classes=[0, 1])), n_samples=100).codes == ("SKP019",)


# Parameters of any type -------------------------------------------------------------------------


def survey(first: int, count: int, *, with_nets: bool) -> tuple[int, int]:
    """Check estimators with spoilt parameters; return how many had an issue, and how many none.

    What `profile_of` refuses must have an issue, or a check would call it fine.
    """
    made = [
        (name, thing)
        for name, thing in recipes.public_callables()
        if recipes.is_estimator(thing) and (with_nets or "NeuralNet" not in name)
    ]
    counts = [0, 0]
    for number in range(first, first + count):
        rng = np.random.default_rng(number)
        name, thing = made[rng.integers(len(made))]
        with run.quiet():
            try:
                estimator = run.made_of(thing, run.arguments(rng, name, thing))
            except run.ALLOWED:
                continue
            is_search = hasattr(estimator, "plan")
            found = check(estimator, **({} if is_search else {"n_samples": 20, "n_features": 2}))
            assert str(found) and found._repr_html_()
            counts[not found.issues] += 1
            if not is_search and not found.issues:
                assert profile_of(estimator, 20, 2), (number, name)
    return counts[0], counts[1]


def test_no_parameter_makes_a_check_fail_or_pass_what_is_refused() -> None:
    assert min(survey(0, 40, with_nets=False)) > 0


@pytest.mark.slow
def test_no_parameter_of_thousands_makes_a_check_fail() -> None:
    assert min(survey(10_000, 6000, with_nets=True)) > 300


# The words of refusals ------------------------------------------------------------------------


def test_search_that_would_be_refused_is_reported() -> None:
    wrong = make_pipeline(StandardScaler(), model(tol=-1.0))
    search = random_search(wrong, {"dplogisticregression__C": [0.1, 1.0]})
    assert set(check(search).codes) >= {"SKP001", "SKP019"}
    assert set(check(search, n_samples=1000).codes) >= {"SKP001", "SKP019"}
    with pytest.raises((NoProfileError, ValueError)):
        search.plan(1000, 3)


# The plan --------------------------------------------------------------------------------------


def test_plan_ends_with_its_findings() -> None:
    search = random_search(DPLogisticRegression(), {"C": [0.1, 1.0]}, delta=1e-2, random_state=0)
    with pytest.warns(skdptune.base.PrivacyWarning):
        plan = search.plan(500, 3, compare=False)
    assert plan.findings.codes == ("SKP004", "SKP005", "SKP008", "SKP013")
    lines = str(plan).splitlines()
    assert lines[-len(plan.findings) :] == list(plan.findings.brief)
    assert lines[-4].startswith("SKP004 (issue) DPRandomSearchCV.delta: delta=0.01 is at least")


def test_plan_leaves_out_what_is_muted() -> None:
    search = random_search(DPLogisticRegression(), {"C": [None, 0.1]})
    plan = search.plan(50_000, 3, compare=False, mute=["SKP008"])
    assert plan.findings == CheckReport()
    assert "SKP" not in str(plan)
    with pytest.raises(ValueError, match="mute must hold codes"):
        search.plan(50_000, 3, mute=["SKP8"])


def test_plan_and_check_find_the_same_of_a_constant_that_is_far() -> None:
    search = random_search(space={"C": [None, 0.1]}, n_public=50_000)
    found = search.plan(5_000, 3, compare=False).findings
    assert found.codes == ("SKP003",)
    assert check(search, n_samples=5_000, n_features=3) == found
