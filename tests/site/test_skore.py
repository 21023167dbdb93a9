"""The checks in a report of skore itself.

skore needs many packages, so it is installed with JupyterLab (see test_notebook.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import numpy as np
from skdptune import DPLogisticRegression
from skdptune.checks import skore_checks
from skore import CrossValidationReport, EstimatorReport
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 3))
y = (X[:, 0] > 0).astype(int)
model = make_pipeline(StandardScaler(), DPLogisticRegression(classes=[0, 1]))
fitted = EstimatorReport(model.fit(X, y), X_test=X, y_test=y)
for report in (fitted, CrossValidationReport(model, X, y, splitter=2)):
    report.checks.add(skore_checks())
    table = report.checks.summarize().frame()
    print(*table[table["code"].str.startswith("SKP")]["section"], sep=",")
"""


def test_a_report_shows_a_scaler_that_learns() -> None:
    python = os.environ.get("SKDPTUNE_JUPYTER")
    if not python:
        if os.environ.get("SKDPTUNE_TEST_BROWSER") == "required":
            pytest.fail("SKDPTUNE_JUPYTER names no Python with skore.")
        pytest.skip("SKDPTUNE_JUPYTER names no Python with skore.")
    root = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join([root, *(path for path in sys.path if path.endswith("-packages"))])
    done = subprocess.run(
        [python, "-W", "ignore", "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(("issue", "passed"))]
    assert [line.split(",").count("issue") for line in lines] == [1, 1]
    assert all(line.startswith("issue,passed") for line in lines)
