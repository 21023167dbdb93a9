"""Whole audits: true claims stand, planted faults are found, errors say what to do."""

from __future__ import annotations

import warnings

import joblib
import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator

from skdptune.accounting import PrivacyProfile
from skdptune.audit import AuditResult, Canary, audit_epsilon
from skdptune.base import NoProfileError
from skdptune.linear_model import DPLinearSVC
from skdptune.preprocessing import DPStandardScaler
from tests.audit.released import RECORD, RECORDS, NoisySum, sum_of

METHODS = ("auto", "counts", "gaussian", "sequential")
FAULTS = {
    "noise half of what is claimed": {"factor": 0.5},
    "an unclipped record": {"limit": 3.0},
    "an exact number beside it": {"shows_sum": True},
    "an error that a record decides on": {"fails_beyond": 0.5},
}


def audited(
    method: str = "auto", n_trials: int = 600, seed: int = 0, **fault: object
) -> AuditResult:
    statistic = sum_of if set(fault) <= {"factor", "limit"} else "direction"
    return audit_epsilon(
        NoisySum(**fault),  # type: ignore[arg-type]
        RECORDS,
        canary=RECORD,
        method=method,
        n_trials=n_trials,
        statistic=statistic,
        random_state=seed,
    )


@pytest.mark.parametrize("method", METHODS)
def test_true_claims_are_not_refuted(method: str) -> None:
    # Theorem A1, Theorem A3.
    result = audited(method, 400)
    assert not result.is_refuted
    assert result.epsilon_lower <= result.claimed_epsilon
    assert result.claimed_epsilon == PrivacyProfile.gaussian(1.0).epsilon(1e-5)
    assert result.delta == 1e-5
    assert result.verdict.startswith("Consistent with the claim: at δ = 1e-05, ε is at least ")


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str) -> None:
    result = audited(**FAULTS[fault])
    assert result.is_refuted
    assert result.verdict.startswith("The claim is refuted: ")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_too_little_noise(method: str) -> None:
    result = audited(method, 800, factor=0.5)
    assert result.is_refuted
    assert result.n_trials < 800 if method == "sequential" else result.n_trials == 800


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_true_claims_are_refuted_no_more_often_than_stated(method: str) -> None:
    # Theorem A1, Theorem A2, Theorem A3.
    n_audits = 60
    alarms = sum(audited(method, 200, seed).is_refuted for seed in range(n_audits))
    assert stats.binomtest(alarms, n_audits, 0.05, alternative="greater").pvalue > 1e-3


def test_normal_statistics_are_measured_beside_counts() -> None:
    result = audited(n_trials=600)
    assert result.gaussian is not None and result.gaussian.is_plausible
    assert result.epsilon_lower < result.gaussian.epsilon_lower <= result.claimed_epsilon
    assert not result.gaussian.is_refuted


def test_a_seed_repeats_an_audit_with_any_number_of_workers() -> None:
    one, other = audited(n_trials=80, seed=3), audited(n_trials=80, seed=3)
    # Workers cannot import the tests.
    with joblib.parallel_config(backend="threading"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        third = audit_epsilon(
            NoisySum(),
            RECORDS,
            canary=RECORD,
            n_trials=80,
            statistic=sum_of,
            random_state=3,
            n_jobs=2,
        )
    assert one.verdict == other.verdict == third.verdict
    assert np.array_equal(one.statistic_with, third.statistic_with)
    assert not np.array_equal(one.statistic_with, audited(n_trials=80, seed=4).statistic_with)


def test_no_two_fits_share_their_noise() -> None:
    # With the same noise on both sides a shift would be seen through any noise.
    result = audited(n_trials=80)
    drawn = np.concatenate([result.statistic_with - 1.0, result.statistic_without])
    assert np.unique(drawn.round(12)).size == drawn.size


def test_fits_are_made_in_batches_until_it_is_clear() -> None:
    found = audited("sequential", 2000, factor=0.4)
    assert found.stopped == "the claim is refuted"
    assert found.n_trials == 2 * found.capital[-1][0] < 600
    hopeless = audited("sequential", 2000, factor=3.0)
    assert hopeless.stopped == "the rest would hardly refute the claim"
    assert hopeless.n_trials < 1000


def test_worst_canaries_are_the_default() -> None:
    model = DPLinearSVC(
        solver="output", epsilon=8.0, classes=[0, 1], data_norm=1.0, fit_intercept=False
    )
    result = audit_epsilon(model, np.zeros((50, 2)), n_trials=300, random_state=0)
    assert not result.is_refuted
    assert result.gaussian is not None and result.gaussian.epsilon_lower > 4.0
    lying = audit_epsilon(model, np.zeros((50, 2)), n_trials=300, claim=1.0, random_state=0)
    assert lying.is_refuted and lying.claimed_epsilon == 1.0


def test_scalers_need_no_targets() -> None:
    scaler = DPStandardScaler(8.0, bounds=(-1.0, 1.0))
    result = audit_epsilon(scaler, np.zeros((50, 2)), n_trials=200, random_state=0)
    assert not result.is_refuted
    assert result.claimed_epsilon == pytest.approx(8.0, rel=1e-3)


class Mean(BaseEstimator):
    """Another library's estimator: no profile, no seed, noise from NumPy's global generator."""

    def fit(self, X, y=None):
        self.mean_ = float(np.clip(X, 0.0, 1.0).sum()) + np.random.normal(scale=0.5)
        return self


def test_estimators_of_others_are_given_a_claim() -> None:
    arguments = {"canary": RECORD, "n_trials": 400, "statistic": "direction", "random_state": 0}
    right = audit_epsilon(Mean(), RECORDS, claim=PrivacyProfile.gaussian(2.0), **arguments)
    wrong = audit_epsilon(Mean(), RECORDS, claim=PrivacyProfile.gaussian(1.0), **arguments)
    assert (right.is_refuted, wrong.is_refuted) == (False, True)
    with pytest.raises(NoProfileError, match="got Mean: it learns from private rows"):
        audit_epsilon(Mean(), RECORDS, **arguments)


def test_pairs_of_data_sets_are_taken_as_they_are() -> None:
    pair = Canary(
        np.ones((3, 1)), None, np.zeros((3, 1)), None, "add or remove one record", sum_of
    )
    # They differ by three records.
    assert audit_epsilon(NoisySum(), RECORDS, canary=pair, n_trials=200, random_state=0).is_refuted


def test_progress_counts_fits(capsys: pytest.CaptureFixture[str]) -> None:
    audit_epsilon(
        NoisySum(),
        RECORDS,
        canary=RECORD,
        n_trials=40,
        statistic=sum_of,
        random_state=0,
        verbose=1,
    )
    shown = capsys.readouterr().err
    assert "audit of NoisySum" in shown and "40/40" in shown


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"n_trials": 10}, "n_trials must be an integer of at least 40; got 10"),
        ({"confidence": 1.0}, "confidence must be a number in "),
        ({"method": "guess"}, "method must be one of 'auto'"),
        ({"statistic": "loss"}, "statistic must be one of 'auto'"),
        ({"canary": "best"}, 'canary must be "auto", a Canary or a record; got'),
        ({"canary": [1.0, 2.0]}, "canary must have a row of the shape"),
        ({"claim": -1.0}, "claim must be a number in"),
        ({"claim": PrivacyProfile.gaussian(1.0), "delta": 0.0}, "claim must be finite at delta=0"),
        ({"random_state": -1}, "random_state must be None, an integer"),
        ({"method": "gaussian", "claim": 1.0, "delta": 0.0}, "where delta is 0"),
    ],
)
def test_bad_arguments_are_named(settings: dict[str, object], complaint: str) -> None:
    arguments = {"canary": RECORD, "n_trials": 40, "statistic": sum_of} | settings
    with pytest.raises(ValueError, match=complaint):
        audit_epsilon(NoisySum(), RECORDS, **arguments)  # type: ignore[arg-type]


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(TypeError, match="must be an instance; got the class NoisySum"):
        audit_epsilon(NoisySum, RECORDS)
    with pytest.raises(ValueError, match="the fit of NoisySum raised RuntimeError: too large"):
        audit_epsilon(NoisySum(fails_beyond=-1.0), RECORDS, canary=RECORD, statistic=sum_of)
    with pytest.raises(TypeError, match="statistic must return a number or an array of numbers"):
        audit_epsilon(NoisySum(), RECORDS, canary=RECORD, statistic=lambda fitted: "no")
