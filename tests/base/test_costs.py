"""Costs of anything: private estimators, registered classes, refusals."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skdptune.accounting import PrivacyProfile
from skdptune.base import (
    NoProfileError,
    beside_refusals,
    profile_of,
    refusals_of,
    register_profile,
)
from skdptune.base import _costs as module
from tests.base.estimators import Foreign, Private


def in_a_new_process(code: str) -> str:
    """Return what code prints where nothing was imported before."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=module.__file__.rpartition("/skdptune/")[0],
        check=True,
        capture_output=True,
        text=True,
    )
    return result.stdout.strip()


# Costs --------------------------------------------------------------------------------------


def test_private_estimators_are_asked_with_the_public_sizes() -> None:
    assert profile_of(Private(0.5), 10) == PrivacyProfile.pure(0.5 + 1 / 10)
    assert profile_of(Private(0.5), 20, 3) == PrivacyProfile.pure(0.5 + 1 / 20 + 3)


def test_estimator_is_left_alone() -> None:
    estimator = make_pipeline(Normalizer(), Private())
    profile_of(estimator, 10)
    assert not hasattr(estimator[-1], "privacy_")


def test_search_like_objects_speak_for_themselves() -> None:
    class Search(Private):
        def __init__(self, estimator=None):
            self.estimator = estimator

        def privacy_profile(self, n_samples, n_features=None):
            return 3 * profile_of(self.estimator, n_samples, n_features)

    search = Search(make_pipeline(Normalizer(), Private(0.25)))
    assert profile_of(search, 4).epsilon(0) == pytest.approx(1.5)


@pytest.mark.parametrize(("n_samples", "n_features"), [(0, None), (10, 0), (-3, 2)])
def test_sizes_are_checked(n_samples, n_features) -> None:
    with pytest.raises(ValueError, match="must be an integer of at least 1"):
        profile_of(Private(), n_samples, n_features)


@pytest.mark.parametrize("size", [1.5, None, "10", True])
def test_sizes_must_be_integers(size) -> None:
    with pytest.raises(TypeError, match="n_samples must be an integer"):
        profile_of(Private(), size)


def test_cost_of_another_type_is_refused() -> None:
    class Wrong(Private):
        def privacy_profile(self, n_samples, n_features=None):
            return 1.0

    with pytest.raises(TypeError, match="the cost of Wrong must be a PrivacyProfile; got float"):
        profile_of(Wrong(), 10)


# Refusals -------------------------------------------------------------------------------------


def test_refusal_names_the_estimator_and_what_to_use() -> None:
    with pytest.raises(NoProfileError, match=r"got StandardScaler: it learns .*DPStandardScaler"):
        profile_of(StandardScaler(), 10)
    with pytest.raises(NoProfileError, match="got KMeans: .* pass it to register_profile"):
        profile_of(KMeans(), 10)
    with pytest.raises(NoProfileError, match="got LogisticRegression: .*DPLogisticRegression"):
        profile_of(LogisticRegression(), 10)


def test_refusal_is_a_type_error() -> None:
    assert issubclass(NoProfileError, TypeError)


@pytest.mark.parametrize("kind", [Private, Normalizer, Pipeline, StandardScaler])
def test_classes_instead_of_instances_are_refused(kind) -> None:
    with pytest.raises(
        NoProfileError, match=f"must be an instance; got the class {kind.__name__}"
    ):
        profile_of(kind, 10)


def test_refusals_are_found_without_sizes_and_without_what_depends_on_them() -> None:
    composed = make_pipeline(StandardScaler(), Private(-1.0))
    (refusal,) = refusals_of(composed)
    assert (refusal.got, refusal.steps) == ("StandardScaler", ("standardscaler",))
    assert refusals_of(make_pipeline(Normalizer(), Private(0.5)), 3) == ()
    assert refusals_of(Private(-1.0)) == ()


def test_other_complaints_are_said_beside_refusals() -> None:
    complaint = ValueError("scoring must be given; got None.")
    assert beside_refusals(complaint, [Normalizer(), Private()]) is complaint
    whole = make_pipeline(StandardScaler(), LogisticRegression())
    both = beside_refusals(complaint, [whole])
    assert isinstance(both, NoProfileError)
    assert str(both).splitlines()[0].endswith("; 3 things wrong:")
    assert str(both).splitlines()[-1] == "- a parameter: scoring must be given; got None."


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


@pytest.mark.parametrize("bad", [Foreign(), "Foreign", None])
def test_only_classes_are_registered(bad) -> None:
    with pytest.raises(TypeError, match="kind must be a class"):
        register_profile(bad)


def test_registration_does_not_outlive_its_test() -> None:
    with pytest.raises(NoProfileError):
        profile_of(Foreign(), 50)


def test_registration_holds_whatever_was_loaded_before() -> None:
    code = (
        "from sklearn.preprocessing import FunctionTransformer\n"
        "from skdptune.accounting import PrivacyProfile\n"
        "from skdptune.base import profile_of, register_profile\n"
        "register_profile(FunctionTransformer)(lambda e, n, d: PrivacyProfile.pure(2.0))\n"
        "print(profile_of(FunctionTransformer(), 10).epsilon(0))"
    )
    assert in_a_new_process(code) == "2.0"


def test_pipeline_of_another_library_has_a_cost_whatever_was_loaded_before() -> None:
    code = (
        "from sklearn.pipeline import Pipeline\n"
        "from sklearn.preprocessing import Normalizer\n"
        "from skdptune.base import profile_of\n"
        "class Other(Pipeline): pass\n"
        "print(profile_of(Other([('n', Normalizer())]), 10).epsilon(0))"
    )
    assert in_a_new_process(code) == "0.0"


@pytest.mark.parametrize("base", [Normalizer, Pipeline])
def test_own_profile_counts_more_than_that_of_a_registered_base(base) -> None:
    class Own(base):
        def privacy_profile(self, n_samples, n_features=None):
            return PrivacyProfile.pure(3.0)

    estimator = Own([("n", Normalizer())]) if base is Pipeline else Own()
    assert profile_of(estimator, 10).epsilon(0) == 3.0


def test_subclass_of_what_learns_nothing_may_learn() -> None:
    # Theorem R3.
    class Learning(Normalizer):
        def fit(self, X, y=None):
            self.peak_ = np.max(X)
            return super().fit(X)

    with pytest.raises(NoProfileError):
        profile_of(Learning(), 10)
