"""A user's type checker knows the types of the package: correct code passes, wrong code fails."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# The comment at the end of a line is the only error that must be found there.
USERS_FILE = """\
from typing import assert_type

import skdptune
from skdptune import DParetoSearchCV, DPGridSearchCV, DPRandomSearchCV, ParetoFront, pareto_search
from skdptune import AdaptiveTrials, DoublingThresholdSearchCV, DPAdaptiveSearchCV, RandomRuns
from skdptune import DPNeuralNetClassifier, DPRidge as RidgeOfRoot
from skdptune import DPRandomSerachCV  # attr-defined
from skdptune.accounting import Geometric, PrivacyProfile, PrivacyReport
from skdptune.base import privacy_of, profile_of
from skdptune.ensemble import DPExplainableBoostingClassifier as BoostingClassifier
from skdptune.linear_model import DPLogisticRegression, DPRidge
from skdptune.metrics import make_bounded_scorer
from skdptune.preprocessing import DPStandardScaler, Schema, TableEncoder, make_private_pipeline

model = DPLogisticRegression(C=0.5, epsilon=1.0, delta=1e-5)
assert_type(model.fit([[0.0]], [0]), DPLogisticRegression)
assert_type(model.privacy_profile(n_samples=1000, n_features=3), PrivacyProfile)
assert_type(model.privacy_, PrivacyReport)
assert_type(profile_of(model, n_samples=1000).epsilon(1e-5), float)
DPLogisticRegression(epsilon="a")  # arg-type
DPLogisticRegression(eps=1.0)  # call-arg
assert_type(DPRidge().fit([[0.0]], [0.0]), DPRidge)
DPRidge(alpha="a")  # arg-type
assert_type(BoostingClassifier(bounds=(0, 1)).fit([[0.0]], [0]), BoostingClassifier)
BoostingClassifier(max_rounds="many")  # arg-type
assert_type(DPStandardScaler(bounds=(0.0, 1.0)).fit([[0.0]]), DPStandardScaler)
DPStandardScaler(epsilon="a")  # arg-type
schema = Schema({"age": (0, 120)}, target=["no", "yes"])
assert_type(Schema.from_json(schema.to_json()), Schema)
assert_type(TableEncoder(schema).fit([[0.0]]), TableEncoder)
assert_type(TableEncoder(schema).data_norm, float)
TableEncoder(schema, n_knots="a")  # arg-type
TableEncoder()  # call-arg
make_private_pipeline(model, schema).fit([[0.0]], [0])
make_private_pipeline(model)  # call-arg
PrivacyProfile.gaussian("a")  # arg-type

space = {"C": [0.1, 1.0]}
search = DPRandomSearchCV(model, space, n_iter=20, epsilon=1.0, delta=1e-5, n_jobs=2)
assert_type(search, skdptune.model_selection.DPRandomSearchCV)
assert_type(search.fit([[0.0]], [0]), DPRandomSearchCV)
DPRandomSearchCV(model, space, strategy=RandomRuns(n_iter_distribution=Geometric.from_mean(2)))
DPRandomSearchCV(model, space, n_iter="ten")  # arg-type
DPRandomSearchCV(model, space, n_iters=10)  # call-arg
DPRandomSearchCV(model, epsilon=1.0)
DPRandomSearchCV()  # call-arg
DPGridSearchCV(model, epsilon=1.0)
DoublingThresholdSearchCV(model, epsilon=1.0)
DPRandomSearchCV(model, space, epsilon="a")  # arg-type
assert_type(skdptune.check(search, schema, n_samples=1000), skdptune.checks.CheckReport)
assert_type(search.plan(1000).findings[0], skdptune.checks.Finding)
skdptune.check(model, n_samples="many")  # arg-type
DPGridSearchCV(model, space, epsilon=1.0)
DPGridSearchCV(model, space, strategy=1)  # arg-type
DPAdaptiveSearchCV(model, {"C": (0.1, 1.0)}, strategy=AdaptiveTrials(sampler="tpe"))
DPAdaptiveSearchCV(model, space, n_trials=1.5)  # arg-type
DParetoSearchCV(model, space, n_iter=1.5)  # arg-type
DParetoSearchCV(model, space, strategy=ParetoFront(n_initial=4, sampler="random"))
ParetoFront(n_initial="a")  # arg-type
DoublingThresholdSearchCV(model, space, delta="a")  # arg-type

assert_type(skdptune.linear_model.DPLogisticRegression(), DPLogisticRegression)
assert_type(skdptune.DPLogisticRegression(), DPLogisticRegression)
assert_type(RidgeOfRoot(), DPRidge)
RidgeOfRoot(alpha="a")  # arg-type
DPNeuralNetClassifier(epsilon="a")  # arg-type
skdptune.linear  # attr-defined
skdptune.importlib  # attr-defined
skdptune.model_selection.importlib  # attr-defined
"""

# Reading torch would take longer than everything else, and its types are not tested here.
CONFIGURATION = """\
[mypy]
strict = True
[mypy-torch.*,opacus.*,skorch.*]
follow_imports = skip
"""


def test_right_code_passes_and_wrong_code_does_not(tmp_path: Path) -> None:
    (tmp_path / "users_file.py").write_text(USERS_FILE, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(CONFIGURATION, encoding="utf-8")
    # In another folder than the checkout, so that the installed package is found.
    options = ["--show-error-codes", "--hide-error-context", "--no-error-summary"]
    result = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--cache-dir=cache", "users_file.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stderr == ""
    wanted = {
        number: comment.group(1)
        for number, line in enumerate(USERS_FILE.splitlines(), start=1)
        if (comment := re.search(r"  # ([a-z-]+)$", line))
    }
    assert len(wanted) > 10
    found = re.findall(r"^(.+?):(\d+): error: .* \[([a-z-]+)\]$", result.stdout, re.MULTILINE)
    assert {file for file, _, _ in found} == {"users_file.py"}, result.stdout
    assert {int(number): code for _, number, code in found} == wanted, result.stdout
