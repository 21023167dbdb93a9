"""Results of audits in words and tables."""

from __future__ import annotations

import json
import math

import numpy as np

from skdptune.audit import AuditResult
from skdptune.audit._bounds import AuditPower, Refutation
from skdptune.audit._result import GaussianBound


def result(**more: object) -> AuditResult:
    content: dict[str, object] = {
        "estimator": "DPLogisticRegression",
        "epsilon_lower": 0.41,
        "claimed_epsilon": 1.0,
        "delta": 1e-5,
        "confidence": 0.95,
        "is_refuted": False,
        "refutation": None,
        "gaussian": None,
        "method": "auto",
        "statistic": "sum_of",
        "neighbouring": "add or remove one record",
        "canary": "the given record",
        "event": "statistic ≥ 1, likelier with the record",
        "n_trials": 200,
        "n_failed": 0,
        "stopped": "",
        "capital": ((0, 0.0), (100, 1.0)),
        "goal": 3.0,
        "statistic_with": np.ones(3),
        "statistic_without": np.zeros(3),
        "power_of": lambda: AuditPower(0.71, 1.6),
    }
    return AuditResult(**content | more)  # type: ignore[arg-type]


def test_verdicts_are_plain_words() -> None:
    assert result().verdict == (
        "Consistent with the claim: at δ = 1e-05, ε is at least 0.410 where 1.000 is claimed."
    )
    assert result(is_refuted=True, epsilon_lower=2.3129).verdict == (
        "The claim is refuted: at δ = 1e-05, ε is at least 2.312 where 1.000 is claimed."
    )
    # Bounds are rounded down.
    assert "ε is at least 1.999 where" in result(epsilon_lower=1.9999).verdict
    assert "ε is at least inf where" in result(epsilon_lower=math.inf).verdict
    found = result(is_refuted=True, refutation=Refutation(0.12, 0.9, 0.5)).verdict
    assert (
        found == "The claim is refuted: at δ = 0.12, ε is at least 0.900 where 0.500 is claimed."
    )


def test_bets_alone_state_how_unlikely_the_fits_are() -> None:
    bets = ((0, 0.0), (100, math.log(1e4)), (200, math.log(10.0)))
    found = result(is_refuted=True, capital=bets, gaussian=GaussianBound(2.0, 0.5, 0.3, True))
    assert (
        "have a probability below 0.0001 if the claim is true; if the statistic is normal"
        in found.verdict
    )
    assert "ε is at least 2.000" in found.verdict


def test_normal_statistics_that_contradict_are_mentioned() -> None:
    normal = GaussianBound(2.0, 0.5, 0.3, True)
    assert "But if the statistic is normal" in result(gaussian=normal).verdict
    assert "But" not in result(gaussian=normal._replace(p_value=1e-4)).verdict


def test_tables_hold_the_same_as_text_and_html() -> None:
    found = result(n_failed=3, stopped="enough", gaussian=GaussianBound(0.8, 0.2, 0.001, False))
    text, html = str(found), found._repr_html_()
    assert repr(found) == text
    for words in (
        "200, auto, 3 of which raised an error; stopped: enough",
        "95 %",
        "which the fits contradict",
        "noise of at most 0.71 times the actual noise, ε = 1.600, would have been detected",
        "the given record",
    ):
        assert words in text and words in html
    lines = text.splitlines()
    assert lines[1] == f"  {found.verdict}" and lines[2].startswith("  ")
    assert "<script" not in result(estimator="<script>")._repr_html_()
    # Refuted claims are red.
    assert "#e03131" not in html and "#e03131" in result(is_refuted=True)._repr_html_()
    assert "too small to detect" in str(result(power_of=lambda: AuditPower(None, None)))


def test_results_are_written_as_json() -> None:
    found = result(
        refutation=Refutation(0.1, 0.9, 0.5), gaussian=GaussianBound(1.0, 0.1, 0.5, False)
    )
    again = json.loads(json.dumps(found.to_dict()))
    assert again["refutation"] == {"delta": 0.1, "epsilon": 0.9, "claimed": 0.5}
    assert again["power"]["noise_factor"] == 0.71
    assert "statistic_with" not in again
