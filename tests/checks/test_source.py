"""Checks of the code of scripts and notebooks: findings, code without findings, the command."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

from skdptune import Schema

DOCS = Path(__file__).parents[2] / "docs"
HEAD = """\
import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import *
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import *
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from skdptune import *
from skdptune.preprocessing import *

"""
# What leaks, by its code; the last line that starts with ">" is where it is found.
LEAKS = [
    ("SKP001", "model = make_pipeline(StandardScaler(), DPLogisticRegression())"),
    ("SKP012", "Schema({'age': (0, 120), 'patient_id': 'drop'})"),
    ("SKP012", "columns = {'user': ['a', 'b']}\nschema = Schema(columns, target=[0, 1, 2])"),
    ("SKP001", "scaler = StandardScaler()\nX = scaler.fit_transform(X)\nDPRidge().fit(X, y)"),
    ("SKP001", "scaler = StandardScaler().fit(X)\nDPRidge().fit(scaler.transform(X), y)"),
    ("SKP001", "X = (X - X.mean(axis=0)) / 3\nDPRandomSearchCV(DPRidge()).fit(X, y)"),
    ("SKP001", "steps = [('s', StandardScaler()), ('m', DPRidge())]\nmodel = Pipeline(steps)"),
    ("SKP001", "f = FrozenEstimator(PCA().fit(X))\nmake_pipeline(f, DPRidge()).fit(X, y)"),
    ("SKP001", "p = PCA()\np.fit(X)\nmake_pipeline(FrozenEstimator(p), DPRidge()).fit(X, y)"),
    ("SKP001", "s = StandardScaler().fit(X)\nDPRidge().fit(FrozenEstimator(s).transform(X), y)"),
    ("SKP002", "model = DPRidge(target_bound=y.max())"),
    ("SKP002", "low, high = np.min(age), 99\nschema = Schema({'age': (low, high)})"),
    ("SKP002", "stats = df.describe()\nSchema({'age': (0, stats.loc['max', 'age'])})"),
    ("SKP002", "X['age'] = X['age'] / X['age'].max()\nDPLinearSVC().fit(X, y)"),
    ("SKP002", "make_pipeline(KBinsDiscretizer(), DPLogisticRegression())"),
    ("SKP003", "DPLogisticRegression(n_public=len(X))"),
    ("SKP004", "delta = 1 / len(X)\nDPLogisticRegression(delta=delta)"),
    ("SKP005", "DPLogisticRegression(random_state=42)"),
    ("SKP005", "SEED = 0\nDPRandomSearchCV(DPRidge(), random_state=SEED)"),
    ("SKP005", "DPRidge(random_state=np.random.RandomState(3))"),
    ("SKP006", "GridSearchCV(DPLogisticRegression(), {'C': [1, 2]})"),
    ("SKP006", "model = make_private_pipeline(DPRidge(), {})\ncross_val_score(model, X, y)"),
    (
        "SKP006",
        "from sklearn.inspection import permutation_importance\n"
        "permutation_importance(DPRidge().fit(X, y), X, y)",
    ),
    ("SKP006", "model = DPRidge().fit(X, y)\nprint(model.score(X, y))"),
    ("SKP006", "m = DPLinearSVC()\nm.fit(X, y)\np = m.predict(X)\nprint(accuracy_score(y, p))"),
    (
        "SKP006",
        "def objective(trial):\n    return DPRidge().fit(X, y).score(Z, z)\n"
        "study.optimize(objective)",
    ),
    ("SKP007", "make_private_pipeline(LogisticRegression(), schema)"),
    ("SKP007", "DPGridSearchCV(LogisticRegression(), {'C': [1, 2]})"),
    ("SKP007", "DPRidge(epsilon=np.inf)"),
    ("SKP008", "DPLogisticRegression(classes=np.unique(y))"),
    ("SKP008", "Schema({'age': (0, 9)}, target=list(df['y'].unique()))"),
    ("SKP009", "make_pipeline(OneHotEncoder(), DPLogisticRegression())"),
    ("SKP009", "X = pd.get_dummies(df)\nDPLogisticRegression().fit(X, y)"),
    ("SKP009", "X = SimpleImputer().fit_transform(X)\nDPLogisticRegression().fit(X, y)"),
    ("SKP009", "Schema({'ward': sorted(set(df['ward']))})"),
    ("SKP010", "for e in (0.5, 1.0):\n    DPRidge(epsilon=e).fit(X, y)"),
    ("SKP010", "fits = [DPRidge(epsilon=e).fit(X, y) for e in (0.5, 1.0)]"),
    ("SKP010", "def run(e):\n    DPRidge(epsilon=e).fit(X, y)\nfor e in (1, 2):\n    run(e)"),
    ("SKP011", "DPRandomSearchCV(DPRidge(), strategy=RandomRuns(diagnostics=True))"),
    ("SKP015", "Pipeline([('m', DPLogisticRegression())], memory='cache')"),
    ("SKP016", "DPLogisticRegression(epsilon=20.0)"),
    ("SKP016", "DPLogisticRegression(delta=0.01)"),
    ("SKP017", "model = DPLogisticRegression()\nmodel.partial_fit(X, y)"),
    ("SKP018", "X['age'] = X['age'].rank()\nDPLinearSVC().fit(X, y)"),
    (
        "SKP018",
        "f = FunctionTransformer(lambda X: X - X.mean(axis=0))\nmake_pipeline(f, DPRidge())",
    ),
    ("SKP020", "from diffprivlib.models import GaussianNB\nGaussianNB(bounds=(0, 1))"),
]
# What costs nothing, or has no private model to leak into.
FINE = [
    "Schema({'age': (0, 120)}, person='patient_id')",
    "Schema({'user_age': (0, 120), 'id': 'drop'})",
    "make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)",
    "GridSearchCV(LogisticRegression(), {'C': [1, 2]}).fit(X, y).score(X, y)",
    "make_pipeline(OneHotEncoder(categories=[['a', 'b']]), DPLogisticRegression())",
    "make_pipeline(SimpleImputer(strategy='constant', fill_value=0), DPLogisticRegression())",
    "make_pipeline(DPStandardScaler(bounds=(0, 9)), DPLogisticRegression()).fit(X, y)",
    "X = X / X.max(axis=1)\nDPRidge().fit(X, y)",
    "model = DPRidge(target_bound=5).fit(X, y)\nprint(model.score(Z, z), Z.max())",
    "search = DPGridSearchCV(DPRidge(), {'alpha': [1, 2]}).fit(X, y)\n"
    "best = search.cv_results_['mean_test_score'].max()\nDPRidge(target_bound=best)",
    "DPRandomSearchCV(DPLogisticRegression(random_state=0))",
    "with PrivacyLedger('spent.db', 'visits'):\n    for e in (1, 2):\n        DPRidge().fit(X, y)",
    "scaler = StandardScaler()\nX = scaler.fit_transform(X)\n"
    "def fit(X):\n    return DPRidge().fit(X, y)",
    "def make(random_state=None):\n    return DPRidge(random_state=random_state)",
    "def make():\n    return DPRidge()\n\nfor _ in range(3):\n    make()",
    "DPLogisticRegression(delta=0.1 / len(X), random_state=None, epsilon=1.0)",
    "from diffprivlib.models import LogisticRegression as LR\n"
    "LR(data_norm=2.0, fit_intercept=False, n_jobs=1)",
    "f = FrozenEstimator(PCA().fit(public_rows))\nmake_pipeline(f, DPRidge()).fit(X, y)",
]


def run(capsys, *arguments):
    """Run the command in this process; return its exit status, output and errors."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["skdptune", *map(str, arguments)])
        runpy.run_module("skdptune", run_name="__main__")
    return ended.value.code, *capsys.readouterr()


def codes(output):
    return re.findall(r"^\S+:\d+:\d+: (SKP\d{3}) ", output, re.MULTILINE)


@pytest.fixture
def script(tmp_path):
    def write(code, name="script.py"):
        path = tmp_path / name
        path.write_text(HEAD + code + "\n", encoding="utf-8")
        return path

    return write


def notebook(path, *cells):
    listed = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    path.write_text(json.dumps({"cells": listed}), encoding="utf-8")
    return path


@pytest.mark.parametrize(("code", "text"), LEAKS)
def test_leak_is_found_once(script, capsys, code, text):
    status, out, err = run(capsys, "check", script(text))
    assert (status, codes(out), err) == (1, [code], "")
    assert out.endswith("Found 1 issue.\n")


@pytest.mark.parametrize("text", FINE)
def test_what_leaks_nothing_is_not_found(script, capsys, text):
    assert run(capsys, "check", script(text)) == (0, "No issues found.\n", "")


@pytest.mark.parametrize(
    "page", ["accounting", "assistants", "nets", "preprocessing", "searches", "start"]
)
def test_code_of_the_guide_has_no_findings(capsys, tmp_path, page):
    # It is what users are asked to copy.
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    path = tmp_path / "page.py"
    path.write_text("\n".join(blocks), encoding="utf-8")
    assert run(capsys, "check", path) == (0, "No issues found.\n", "")


def test_finding_names_place_code_and_remedy(script, capsys):
    path = script("model = make_pipeline(StandardScaler(), DPLogisticRegression())")
    line = HEAD.count("\n") + 1
    _, out, _ = run(capsys, "check", path)
    assert out.startswith(f"{path}:{line}:23: SKP001 StandardScaler: it learns means")
    assert "skdptune.preprocessing.DPStandardScaler(bounds=...)" in out


def test_nothing_is_executed(script, capsys, tmp_path):
    path = script(f"open({str(tmp_path / 'made')!r}, 'w')\nraise RuntimeError")
    assert run(capsys, "check", path)[0] == 0
    assert not (tmp_path / "made").exists()


def test_codes_are_selected_ignored_and_switched_off(script, capsys):
    path = script(
        "DPRidge(random_state=1, epsilon=20.0)\n"
        "DPRidge(random_state=1, epsilon=20.0)  # noqa: SKP005\n"
        "DPRidge(random_state=1, epsilon=20.0)  # noqa\n"
    )
    found = [
        codes(run(capsys, "check", path, *options)[1])
        for options in ([], ["--select", "SKP005"], ["--ignore", "SKP005,SKP016"])
    ]
    assert [sorted(each) for each in found] == [["SKP005", "SKP016", "SKP016"], ["SKP005"], []]
    status, out, err = run(capsys, "check", path, "--select", "SKP999")
    assert (status, out) == (2, "")
    assert err == "--select must hold codes from SKP001 to SKP020; got 'SKP999'.\n"


def test_notebook_is_read_cell_by_cell(tmp_path, capsys):
    path = notebook(
        tmp_path / "study.ipynb",
        "%matplotlib inline\nfrom sklearn.preprocessing import StandardScaler\n!ls",
        "%%bash\nrm -r *",
        "from skdptune import DPRidge\nX = StandardScaler().fit_transform(X)",
        "files = !ls\nDPRidge?\nDPRidge().fit(X, y)",
    )
    status, out, _ = run(capsys, "check", path)
    assert status == 1
    assert out.startswith(f"{path}:cell 3:2:5: SKP001 ")


def test_folder_is_searched(script, tmp_path, capsys):
    first = script("DPRidge(epsilon=20.0)")
    (tmp_path / ".hidden").mkdir()
    script("DPRidge(epsilon=20.0)", ".hidden/other.py")
    second = notebook(tmp_path / "b.ipynb", "from skdptune import *\nDPRidge(epsilon=30.0)")
    _, out, _ = run(capsys, "check", tmp_path)
    found = re.findall(r"^(\S+?):(?:cell 1:)?\d+", out.replace("cell 1", "cell_1"), re.M)
    assert {Path(one.split(":cell")[0]) for one in found} == {first, second}


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.py", "caf\udce9", "must be text in UTF-8"),
        ("a.py", "def", "must be Python; got an error: "),
        ("a.ipynb", "{}", "must be a notebook; got something else."),
    ],
)
def test_unreadable_file_is_an_error_and_others_are_checked(
    script, tmp_path, capsys, name, text, complaint
):
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    other = script("DPRidge(epsilon=20.0)")
    status, out, err = run(capsys, "check", tmp_path / name, other, tmp_path / "none.py")
    assert status == 2
    assert codes(out) == ["SKP016"]
    assert complaint in err and "none.py" in err and "Traceback" not in err
    # Nothing was read, so nothing is said to be fine.
    assert run(capsys, "check", tmp_path / name)[:2] == (2, "")


def test_ledger_command_is_that_of_the_ledger(tmp_path, capsys):
    status, out, err = run(capsys, "ledger", "show", tmp_path / "none.db", "patients")
    assert (status, out) == (2, "")
    assert err.startswith("path_or_url must be the place of a ledger")


class TestPlan:
    """``python -m skdptune plan`` prints the plan of what a file describes."""

    @pytest.mark.parametrize(
        ("target", "model"),
        [(["no", "yes"], "a linear model"), ((0, 9), "a linear model is fitted, since")],
    )
    def test_of_a_schema(self, capsys, tmp_path, target, model):
        schema = Schema({"age": (0, 100), "ward": ["a", "b"]}, target=target)
        file = tmp_path / "schema.json"
        file.write_text(schema.to_json(), encoding="utf-8")
        verdict, output, errors = run(
            capsys, "plan", file, 60, "--epsilon", "2", "--delta", "1e-5"
        )
        assert (verdict, errors) == (0, "")
        assert "ε = 2.000 at δ = 1e-05 in all" in output
        assert model in output

    def test_of_a_search_in_a_script(self, capsys, tmp_path):
        file = tmp_path / "study.py"
        file.write_text(
            "from skdptune import DPLogisticRegression, DPRandomSearchCV\n"
            "search = DPRandomSearchCV(DPLogisticRegression(), {'C': [0.1, 1.0]}, epsilon=1.5)\n"
            "if __name__ == '__main__':\n    raise SystemExit('not to be run')\n",
            encoding="utf-8",
        )
        verdict, output, errors = run(capsys, "plan", f"{file}:search", 2_000, 6)
        assert (verdict, errors) == (0, "")
        names = runpy.run_path(str(file))
        assert output == f"{names['search'].plan(2_000, 6)}\n"

    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            (["{schema}", "100"], "epsilon must be given"),
            (["{schema}", "0", "--epsilon", "1"], "n_samples"),
            (["{schema}", "100", "--epsilon", "-1"], "epsilon"),
            (["{script}:other", "100"], "defines no other"),
            (["{script}:number", "100"], "must contain a search or a schema; got int"),
            (["{script}:number", "100", "--epsilon", "1"], "set those of a search in Python"),
            (["{folder}/nothing.json", "100"], "nothing.json"),
        ],
    )
    def test_wrong_input(self, capsys, tmp_path, asked, message):
        script, schema = tmp_path / "study.py", tmp_path / "schema.json"
        script.write_text("number = 1\n", encoding="utf-8")
        schema.write_text(Schema({"a": (0, 1)}, target=["x", "y"]).to_json(), encoding="utf-8")
        places = {"script": script, "schema": schema, "folder": tmp_path}
        verdict, output, errors = run(capsys, "plan", *(one.format(**places) for one in asked))
        assert (verdict, output) == (2, "")
        assert message in errors
