"""What an audit by one fit prints."""

from __future__ import annotations

import json

import numpy as np
import pytest

from skdptune.audit import one_run_audit
from skdptune.linear_model import DPLinearSVC

SVC = DPLinearSVC(solver="sgd", epsilon=4.0, classes=[0, 1])
X = np.zeros((100, 200))


def test_a_consistent_result_says_so():
    result = one_run_audit(SVC, X, random_state=0)
    text = str(result)
    head = "Audit of DPLinearSVC by one fit (add or remove one record)"
    assert text.startswith(f"{head}\n  Consistent with the claim: at")
    assert "for noise of the claimed kind" in text
    assert f"{result.n_right} of {result.n_guesses} right; 200 canaries" in text
    assert "kind" not in one_run_audit(SVC, X, form="dp", random_state=0).verdict
    assert "<table>" in result._repr_html_()


@pytest.mark.parametrize("form", ["fdp", "dp"])
def test_a_refuted_claim_is_named(form):
    result = one_run_audit(SVC, X, claim=0.05, form=form, random_state=0)
    assert result.is_refuted and result.epsilon_lower > 0.05
    assert result.verdict.startswith("The claim is refuted: so many right guesses")


def test_it_is_ready_for_json():
    content = one_run_audit(SVC, X, random_state=0).to_dict()
    assert content["n_canaries"] == 200
    json.dumps(content)


def test_it_is_drawn_and_shown_in_notebooks_like_other_audits():
    result = one_run_audit(SVC, X, random_state=0)
    html = result._repr_html_()
    assert "font-weight:600" in html and "#e03131" not in html
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = result.plot().ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("score", "density")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["canaries that were in", "canaries that were not"]
    matplotlib.pyplot.close("all")
