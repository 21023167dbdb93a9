"""Audits by a single fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdptune.accounting import PrivacyProfile
from skdptune.audit import one_run_audit
from skdptune.base import register_profile
from skdptune.linear_model import DPLinearSVC, DPLogisticRegression, DPRidge
from tests.testing.public_estimators import HAS_NETS

SVC = DPLinearSVC(solver="sgd", epsilon=4.0, classes=[0, 1], epochs=5)
X = np.zeros((300, 300))


class Sums(LogisticRegression):
    """Publishes the sum of signed rows with Gaussian noise, each with its own coordinate."""

    def __init__(self, noise=1.0, random_state=None):
        super().__init__(random_state=random_state)
        self.noise = noise

    def privacy_profile(self, n_samples, n_features=None):
        return PrivacyProfile.gaussian(1.0 / self.noise)

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        total = (np.where(np.asarray(y) == 1, 1.0, -1.0)[:, None] * X).sum(axis=0)
        self.coef_ = (total + self.noise * rng.normal(size=total.size))[None]
        self.intercept_, self.classes_ = np.zeros(1), np.array([0, 1])
        return self


def with_noise(model, factor):
    """Return a model with this share of the noise, and its claim with all of the noise."""
    sized = model.__class__(**{**model.get_params(), "n_public": len(X)})
    profile = sized.privacy_profile(len(X), X.shape[1])
    level = sized.noise_level(len(X), X.shape[1])
    sized.set_params(epsilon=None, noise_multiplier=factor * level)
    return sized, profile


@pytest.mark.parametrize("form", ["fdp", "dp"])
def test_noise_that_is_too_small_is_found(form):
    model, claim = with_noise(clone(SVC).set_params(epsilon=2.0), 0.2)
    result = one_run_audit(model, X, claim=claim, delta=1e-5, form=form, random_state=0)
    assert result.is_refuted and result.p_value < 0.01
    assert result.epsilon_lower > result.claimed_epsilon == pytest.approx(2.0, rel=0.01)


@pytest.mark.slow
def test_right_noise_is_hardly_ever_refuted():
    # Theorem A6: an audit by one fit refutes no true claim.
    results = [
        one_run_audit(Sums(), X[:4], np.arange(4) % 2, canaries=rows(200), random_state=seed)
        for seed in range(8)
    ]
    assert sum(result.is_refuted for result in results) <= 2
    # And comes near, since canaries do not get into each other's way.
    assert 1.0 < np.median([result.epsilon_lower for result in results]) < 4.4
    assert results[0].claimed_epsilon == pytest.approx(4.38, abs=0.01)
    assert not one_run_audit(SVC, X, random_state=0).is_refuted


def rows(size):
    labels = np.arange(size) % 2
    return np.eye(300)[:size], labels


def test_other_kinds_of_estimators_are_audited():
    ridge = DPRidge(8.0, data_norm=1.0, target_bound=1.0)
    assert 0.0 < one_run_audit(ridge, np.zeros((500, 30)), np.zeros(500), random_state=0).p_value
    pipeline = make_pipeline(FunctionTransformer(), SVC)
    result = one_run_audit(pipeline, X, random_state=0)
    assert not result.is_refuted and result.epsilon_lower > 0.5
    psgd = DPLinearSVC(8.0, solver="psgd", classes=[0, 1], data_norm=1.0, fit_intercept=False)
    result = one_run_audit(psgd, X, random_state=0)
    assert (
        not result.is_refuted and len(result.statistic_with) + len(result.statistic_without) == 300
    )


def test_wrong_labels_beside_real_records():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(400, 5))
    y = (data[:, 0] > 0.0).astype(int)
    result = one_run_audit(
        DPLogisticRegression(8.0, classes=[0, 1]), data, y, canaries="mislabelled", random_state=0
    )
    assert result.n_canaries == 100 and not result.is_refuted
    given = one_run_audit(SVC, data, y, background="given", n_canaries=20, random_state=0)
    assert given.n_canaries == 20


def test_the_same_seed_gives_the_same_result():
    first, second = (one_run_audit(SVC, X, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.statistic_with, second.statistic_with)
    assert first.epsilon_lower == second.epsilon_lower


def test_improper_arguments_are_refused():
    with pytest.raises(TypeError, match="instance"):
        one_run_audit(DPLinearSVC, X)
    with pytest.raises(ValueError, match="each of 300"):
        one_run_audit(SVC, X, 1.0)
    with pytest.raises(ValueError, match="table"):
        one_run_audit(SVC, np.zeros(3))
    for wrong in (
        {"form": "f"},
        {"background": "none"},
        {"canaries": "far"},
        {"canaries": "mislabelled"},
        {"n_canaries": 1},
        {"claim": 0.0},
        {"claim": PrivacyProfile.approximate(0.0, 1.0), "delta": 1e-5},
        {"confidence": 1.0},
    ):
        with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
            one_run_audit(SVC, X, **wrong)

    class Counted(LogisticRegression):
        """A model whose cost depends on the number of records."""

    register_profile(Counted)(lambda estimator, n, d: PrivacyProfile.gaussian(1.0 / n))
    with pytest.raises(TypeError, match="n_public"):
        one_run_audit(Counted(), X, np.arange(300) % 2, canaries=rows(20))


@pytest.mark.slow
@pytest.mark.skipif(not HAS_NETS, reason="needs torch, skorch and opacus")
def test_nets_are_audited():
    from skdptune.neural_network import DPNeuralNetClassifier, LogisticHead

    net = DPNeuralNetClassifier(
        LogisticHead, epsilon=4.0, classes=[0, 1], max_epochs=3, batch_size=300
    )
    table = X.astype(np.float32)
    honest = one_run_audit(net, table, random_state=0)
    assert not honest.is_refuted and honest.epsilon_lower > 1.0
    model, claim = with_noise(net, 0.2)
    broken = one_run_audit(model, table, claim=claim, delta=1e-5, random_state=0)
    assert broken.is_refuted and broken.epsilon_lower > 4.0


WIDE_SVC = DPLinearSVC(solver="sgd", epsilon=4.0, classes=[0, 1])
WIDE = np.zeros((100, 200))


def test_a_consistent_result_says_so():
    result = one_run_audit(WIDE_SVC, WIDE, random_state=0)
    text = str(result)
    head = "Audit of DPLinearSVC by one fit (add or remove one record)"
    assert text.startswith(f"{head}\n  Consistent with the claim: at")
    assert "for noise of the claimed kind" in text
    assert f"{result.n_right} of {result.n_guesses} right; 200 canaries" in text
    assert "kind" not in one_run_audit(WIDE_SVC, WIDE, form="dp", random_state=0).verdict
    assert "<table>" in result._repr_html_()


@pytest.mark.parametrize("form", ["fdp", "dp"])
def test_a_refuted_claim_is_named(form):
    result = one_run_audit(WIDE_SVC, WIDE, claim=0.05, form=form, random_state=0)
    assert result.is_refuted and result.epsilon_lower > 0.05
    assert result.verdict.startswith("The claim is refuted: this many correct guesses")
