"""Thousands of fits on neighbouring data, and how much they reveal about one record.

A lower bound on epsilon is computed from the released values. It must be near the claim, but must
not exceed it. With 30 % less noise than planned, it must exceed the claim. For every change, pairs
of fits with the same noise estimate epsilon, or a bound is computed from fewer fits.
The table of records, statistics and claims is in tests/audited.py. The bounds on epsilon and the
probability of a false alarm are in tests/auditing.py. Results are in docs/security.md; this
command prints them::

    python -m pytest -m slow -s tests/test_audits.py
"""

from __future__ import annotations

import numpy as np
import pytest

from tests import audited, auditing
from tests.testing.public_estimators import HAS_OPTUNA, HAS_PARETO, PUBLIC

CASES = audited.cases()
FAULTS = audited.faults()
QUICK_FAULTS = [name for name, fault in FAULTS.items() if fault.n_fits <= 200]
NOT_HERE = {
    # These learn nothing.
    *("BoundedScaler", "RowNormClipper", "TableEncoder"),
    *([] if HAS_PARETO else ["DParetoSearchCV"]),
    *([] if HAS_OPTUNA else ["DPAdaptiveSearchCV"]),
}


def test_the_table_has_every_private_estimator():
    audited_names = {name.partition(",")[0] for name in CASES}
    assert {name for name in PUBLIC if name not in audited_names} == NOT_HERE & PUBLIC.keys()


def test_a_false_alarm_is_unlikely_in_the_whole_table():
    assert (2 * len(CASES) + len(FAULTS)) * auditing.RISK < 1e-3


@pytest.mark.parametrize("name", CASES)
def test_fits_show_no_more_than_is_claimed(name):
    # Theorem M1, Theorem M4, Theorem L8, Theorem L10, Theorem B1, Theorem B2, Theorem R1.
    # Theorem D0, Theorem F14, Theorem I1, Theorem L11, Theorem Q1, Theorem T8, Theorem T9.
    # Theorem M7, Theorem U6.
    case = CASES[name]
    if case.bound == "measured":
        found, claimed = case.paired(40, seed=0), case.claimed()
        # The deviation of this number of fits is known to about a tenth.
        assert 0.4 * claimed < found < 1.3 * claimed
    else:
        assert case.bounds(case.n_quick, seed=0) <= case.claimed()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_many_fits_show_no_more_than_is_claimed_and_do_where_noise_is_too_small(name):
    case = CASES[name]
    found, claimed = case.bounds(case.n_fits, seed=0), case.claimed()
    with auditing.less_noise(0.7):
        broken = case.bounds(case.n_fits, seed=1)
    print(f"| {name} | {case.n_fits} | {claimed:.2f} | {found:.2f} | {broken:.2f} |")
    assert 0.4 * claimed < found <= claimed < broken


def found_of(name):
    """Return the bound and the claim of an audit while a release is broken."""
    fault = FAULTS[name]
    case = CASES[fault.case] if isinstance(fault.case, str) else fault.case
    with fault.broken():
        return case.bounds(fault.n_fits, seed=2), case.claimed()


@pytest.mark.parametrize("name", QUICK_FAULTS)
def test_a_forgotten_noise_is_found(name):
    found, claimed = found_of(name)
    assert found > claimed


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_one_feature_are_found(name):
    # Theorem F14: a random search publishes one more run, of the unchanged estimator.
    found, claimed = found_of(name)
    print(f"| {name} | {FAULTS[name].n_fits} | {claimed:.2f} | {found:.2f} |")
    assert found > claimed


def test_two_outcomes_are_counted_in_all_four_ways():
    for flip in (False, True):
        for swap in (False, True):
            rare, common = np.zeros(1000), (np.arange(1000) < 500).astype(float)
            samples = (1.0 - rare, 1.0 - common) if flip else (rare, common)
            found = auditing.counted(*(samples[::-1] if swap else samples), 0.0)
            assert 3.0 < found < np.log(500.0)


# Only audits at night have less noise.
@pytest.mark.slow
def test_less_noise_is_less_noise_of_every_kind():
    # With the same seeds, all statistics move towards their means by the same factor. Some
    # statistics are not linear in the noise.
    curved = ("OPS", "SSP", "folds")
    for name, case in CASES.items():
        if case.bound == "measured" and not any(word in name for word in curved):
            # With less noise, a search may make another choice, so more draws are needed.
            seeds = range(30 if "Search" in name else 6)
            plain = np.std([case.draw(False, np.random.default_rng(s)) for s in seeds])
            with auditing.less_noise(0.7):
                less = np.std([case.draw(False, np.random.default_rng(s)) for s in seeds])
            assert less / plain == pytest.approx(0.7, rel=0.02), name
