"""Costs of anything: private estimators, registered classes, refusals."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Normalizer,
    StandardScaler,
)

from skdptune.accounting import PrivacyProfile
from skdptune.base import NoProfileError, privacy_of, profile_of, register_profile
from skdptune.ledger import PrivacyLedger
from tests.base.estimators import ROWS, Foreign, Private

# Costs --------------------------------------------------------------------------------------


def test_private_estimators_are_asked_with_the_public_sizes() -> None:
    assert profile_of(Private(0.5), 10) == PrivacyProfile.pure(0.5 + 1 / 10)
    assert profile_of(Private(0.5), 20, 3) == PrivacyProfile.pure(0.5 + 1 / 20 + 3)


@pytest.mark.parametrize(
    ("sizes", "error"),
    [
        *(((0, None), ValueError), ((10, 0), ValueError), ((-3, 2), ValueError)),
        *(((size, None), TypeError) for size in (1.5, None, "10", True)),
    ],
)
def test_sizes_are_checked(sizes, error) -> None:
    with pytest.raises(error, match="must be an integer"):
        profile_of(Private(), *sizes)


def test_cost_of_another_type_is_refused() -> None:
    class Wrong(Private):
        def privacy_profile(self, n_samples, n_features=None):
            return 1.0

    with pytest.raises(TypeError, match="the cost of Wrong must be a PrivacyProfile; got float"):
        profile_of(Wrong(), 10)


@pytest.mark.parametrize("kind", [Private, Normalizer, Pipeline, StandardScaler])
def test_classes_instead_of_instances_are_refused(kind) -> None:
    with pytest.raises(
        NoProfileError, match=f"must be an instance; got the class {kind.__name__}"
    ):
        profile_of(kind, 10)


# Registering -------------------------------------------------------------------------------------


def test_registered_class_and_its_subclasses_have_a_cost(registry) -> None:
    @register_profile(Foreign)
    def cost_of(estimator, n_samples, n_features):
        return PrivacyProfile.pure(n_samples / 100 + (n_features or 0))

    class Subclass(Foreign):
        pass

    assert callable(cost_of)
    assert profile_of(Foreign(), 50).epsilon(0) == 0.5
    assert profile_of(Subclass(), 50, 2).epsilon(0) == 2.5
    assert profile_of(make_pipeline(Normalizer(), Foreign()), 50).epsilon(0) == 0.5


def test_a_cost_may_be_the_function_of_no_module(registry) -> None:
    names = {"PrivacyProfile": PrivacyProfile}
    exec("def cost_of(*of_fit): return PrivacyProfile.pure(0.5)", names)
    assert names["cost_of"].__module__ is None
    register_profile(Foreign)(names["cost_of"])
    ledger = PrivacyLedger(":memory:", "patients", epsilon=1.0, delta=0.0)
    with ledger:
        copied = copy.deepcopy(clone(Foreign()))
        copied.fit(np.zeros((10, 2)))
    assert [record.epsilon for record in ledger.history()] == [0.5]


@pytest.mark.parametrize("bad", [Foreign(), "Foreign", None])
def test_only_classes_are_registered(bad) -> None:
    with pytest.raises(TypeError, match="kind must be a class"):
        register_profile(bad)


def test_registrations_and_pipelines_of_others_have_a_cost_whatever_was_loaded_before() -> None:
    code = (
        "from sklearn.pipeline import Pipeline\n"
        "from sklearn.preprocessing import FunctionTransformer, Normalizer\n"
        "class Other(Pipeline): pass\n"
        "from skdptune.accounting import PrivacyProfile\n"
        "from skdptune.base import profile_of, register_profile\n"
        "register_profile(FunctionTransformer)(lambda e, n, d: PrivacyProfile.pure(2.0))\n"
        "print(profile_of(FunctionTransformer(), 10).epsilon(0))\n"
        "print(profile_of(Other([('n', Normalizer())]), 10).epsilon(0))"
    )
    # Another process, since the class would stay registered in this one.
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).resolve().parents[2],
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout.split() == ["2.0", "0.0"]


@pytest.mark.parametrize("base", [Normalizer, Pipeline])
def test_own_profile_counts_more_than_that_of_a_registered_base(base) -> None:
    class Own(base):
        def privacy_profile(self, n_samples, n_features=None):
            return PrivacyProfile.pure(3.0)

    estimator = Own([("n", Normalizer())]) if base is Pipeline else Own()
    assert profile_of(estimator, 10).epsilon(0) == 3.0


def test_subclass_of_what_learns_nothing_may_learn() -> None:
    # Theorem R3: a pipeline costs what its steps cost together.
    class Learning(Normalizer):
        def fit(self, X, y=None):
            self.peak_ = np.max(X)
            return super().fit(X)

    with pytest.raises(NoProfileError):
        profile_of(Learning(), 10)


# Reports of what was fitted, at its own delta and at others ----------------------------------


def test_report_of_a_fitted_estimator_is_its_own() -> None:
    fitted = Private(0.5, 1e-6).fit(ROWS)
    assert privacy_of(fitted) is fitted.privacy_


def test_report_at_another_delta_keeps_everything_else() -> None:
    fitted = Private(0.5, 1e-6).fit(ROWS)
    report = privacy_of(fitted, delta=0.01)
    assert report.delta == 0.01
    assert report.epsilon == report.profile.epsilon(0.01) < fitted.privacy_.epsilon
    assert report.profile == fitted.privacy_.profile
    assert (report.name, report.assumptions) == ("Private", ("one",))
    assert privacy_of(fitted, delta=1e-6) is fitted.privacy_


@pytest.mark.parametrize("delta", [-1e-9, 1.5])
def test_delta_is_checked(delta) -> None:
    with pytest.raises(ValueError, match="delta must be"):
        privacy_of(Private().fit(ROWS), delta=delta)


def test_unfitted_estimator_has_no_report() -> None:
    with pytest.raises(ValueError, match="fitted must be fitted; got a Private without privacy_"):
        privacy_of(Private())
    with pytest.raises(ValueError, match="got a Private without privacy_"):
        privacy_of(make_pipeline(Normalizer(), Private()))


def test_what_learns_nothing_has_a_report_of_nothing() -> None:
    for fitted in (Normalizer(), Normalizer().fit(ROWS)):
        report = privacy_of(fitted)
        assert (report.epsilon, report.delta, report.name) == (0.0, 0.0, "Normalizer")


def test_report_of_a_registered_class_asks_for_the_size_it_depends_on(registry) -> None:
    register_profile(Foreign)(lambda e, n, d: PrivacyProfile.gaussian(n / 1000))
    pipeline = make_pipeline(Normalizer(), Foreign()).fit(ROWS)
    with pytest.raises(ValueError, match="n_samples must be given: the cost of Foreign"):
        privacy_of(pipeline)
    wanted = profile_of(pipeline, len(ROWS))
    assert privacy_of(pipeline, n_samples=len(ROWS)).profile == wanted
