"""The page about a fitted model: what it must contain, and what it must not."""

from __future__ import annotations

import runpy
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdptune import DPGridSearchCV, DPLogisticRegression, DPRandomSearchCV, RandomRuns, report
from skdptune.base import NoProfileError
from skdptune.preprocessing import Schema, make_private_pipeline

X = np.random.default_rng(0).normal(size=(3000, 3))
Y = X[:, 0] > 0.0
GRID = {"dplogisticregression__C": [0.25, 4.0]}
SCHEMA = Schema({"x0": (-3, 3), "x1": (-3, 3), "<b>x2": (-3, 3)}, target=[False, True])


class Page(HTMLParser):
    """Collects headings, texts, and everything that would be loaded from elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.loaded, self.tags = [], [], [], set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.loaded += [value for name, value in attrs if name in ("src", "srcset", "data")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def table():
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=SCHEMA.names)


@pytest.fixture(scope="module")
def search(table):
    model = make_private_pipeline(DPLogisticRegression(), SCHEMA)
    return DPGridSearchCV(model, GRID, epsilon=1.0, delta=1e-5, strategy="table").fit(table, Y)


def test_page_contains_what_was_tuned_paid_and_published(search):
    page = Page(report(search))
    wanted = [
        "ε = 1.000 at δ = 1e-05",
        "add or remove one record",
        "DPLogisticRegression",
        "TableEncoder",
        "selection",
        "final fit",
        "No issues of DPGridSearchCV",
        "Which guarantee is given?",
        "scikit-learn",
        datetime.now(UTC).date().isoformat(),
    ]
    assert [one for one in wanted if one not in page.text] == []
    scores = search.cv_results_["mean_test_score"]
    assert [score for score in scores if f"{score:.4g}" not in page.text] == []
    assert [value for value in ("0.25", "4") if value not in page.texts] == []


def test_page_needs_no_other_file_and_runs_nothing(search):
    page = Page(report(search))
    assert page.loaded == []
    assert not page.tags & {"script", "link", "img", "iframe", "b"}
    assert "@import" not in report(search) and "url(" not in report(search)


def test_guess_of_an_attacker_is_bounded_by_the_distance(table):
    # Randomized response at log(3) is right with a probability of exactly 3/4.
    from skdptune.accounting import PrivacyProfile

    pure = PrivacyProfile.pure(np.log(3.0))
    assert pure.delta(0.0) == pytest.approx(0.5)
    model = DPLogisticRegression(epsilon=1.0, delta=1e-6, classes=[False, True]).fit(X, Y)
    right = 50.0 + 50.0 * model.privacy_.profile.delta(0.0)
    shown = float(Page(report(model)).text.partition("probability of at most ")[2].split()[0])
    assert right <= shown < right + 0.1
    # It is never above what the pure part of the guarantee and delta allow.
    assert shown <= 100.0 * (np.e + 1e-6) / (1.0 + np.e) + 0.1


def test_secret_values_are_on_no_page():
    strategy = RandomRuns(diagnostics=True)
    search = DPRandomSearchCV(
        DPLogisticRegression(), {"C": [0.1, 1.0]}, epsilon=1.0, strategy=strategy, verbose=0
    )
    search.fit(X, Y)
    vars(search)["diagnostics_"] = {"secret": "a secret value"}
    text = Page(report(search)).text
    assert "secret value" not in text
    assert "NOT PRIVATE" in text and "SKP011" in text


def test_curator_answers_questions_and_names_the_page(table):
    model = make_private_pipeline(DPLogisticRegression(epsilon=1.0, delta=1e-6), SCHEMA)
    page = report(model.fit(table, Y), name="Wards & waits", unit="one patient")
    assert "Wards & waits" in Page(page).text and "one patient" in Page(page).text
    with pytest.raises(TypeError, match="about must have keys"):
        report(model, colour="red")


def test_page_is_a_str_that_notebooks_frame_and_files_keep(search, tmp_path):
    page = report(search)
    assert repr(page) == "<ModelReport: DPGridSearchCV>"
    assert page._repr_html_().startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    page.save(tmp_path / "model.html")
    assert (tmp_path / "model.html").read_text(encoding="utf-8") == page


def test_models_without_a_guarantee_are_refused():
    with pytest.raises(NoProfileError):
        report(LogisticRegression().fit(X, Y))
    with pytest.raises(ValueError, match="epsilon must be finite"):
        report(DPLogisticRegression(epsilon=float("inf")).fit(X, Y))
    with pytest.raises(ValueError, match="must be fitted"):
        report(DPRandomSearchCV(DPLogisticRegression(), epsilon=1.0))


def test_command_writes_the_page(search, tmp_path):
    joblib.dump(search, tmp_path / "model.joblib")
    paths = [str(tmp_path / name) for name in ("model.joblib", "model.html")]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["skdptune", "report", *paths])
        runpy.run_module("skdptune", run_name="__main__")
    assert ended.value.code == 0
    assert "<h1>Model report: DPGridSearchCV</h1>" in (tmp_path / "model.html").read_text("utf-8")
