"""Imports run one way: a module sees its own layer and those above it in the list.

The source is read, not run, so that an import inside a function counts as well.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.structure import PACKAGE, ROOT_NAME, Module, our_modules, read_package, write

ROOT = Path(__file__).resolve().parents[1]

LAYERS = (
    "_version",
    "_formatting",
    "_validation",
    "_html",
    "_progress",
    "_docstrings",
    "_secure_random",
    "_running_budget",
    "accounting",
    "mechanisms",
    "ledger",
    "_compat",
    "base",
    "preprocessing",
    "metrics",
    "linear_model",
    "ensemble",
    "neural_network",
    "calibration",
    "checks",
    "model_selection",
    "testing",
    "inspection",
    "audit",
    "__main__",
)
# pandas is only imported when a table is requested: it is among the optional libraries below.
ACCOUNTING_MAY_IMPORT = {"numpy", "scipy", "dp_accounting", "pandas", "skdptune"}
OPTIONAL = {
    "dask",
    "diffprivlib",
    "distributed",
    "interpret",
    "matplotlib",
    "moocore",
    "opacus",
    "optuna",
    "pandas",
    "psycopg",
    "skorch",
    "sqlalchemy",
    "torch",
}
# Nets and their modules are subclasses of classes of torch and skorch, which must be importable
# when they are defined. The folder's own __init__ stays free of them and loads its modules on
# demand.
NETS_MAY_IMPORT = {"opacus", "skorch", "torch"}


def test_package_obeys_its_layers() -> None:
    modules = our_modules()
    assert "skdptune.accounting" in modules
    assert violations(modules) == []


def test_private_names_of_scikit_learn_are_used_in_one_module() -> None:
    private = re.compile(
        r"from (sklearn|joblib)\S* import [^#\n]*\b_[a-z]|"
        r"(from|import) (sklearn|joblib)\S*\._|joblib\.externals|(sklearn|joblib)\.__version__"
    )
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if private.search(path.read_text("utf-8"))
    }
    assert found == {"_compat.py"}


def in_a_fresh_python(script: str, *arguments: str) -> Any:
    """Return what a script prints as JSON in a Python that has loaded nothing before."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Starting Python is slow, so one process runs the steps one after another.
LOADED_AFTER_EACH_STEP = """
import json, sys
found = []
for step in sys.argv[1:]:
    exec(step)
    found.append(list(sys.modules))
print(json.dumps(found))
"""


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    # scikit-learn 1.7 loads pandas if it is installed.
    models = OPTIONAL - {"pandas"}
    not_yet = {
        "import skdptune; dir(skdptune)": OPTIONAL | {"numpy", "scipy", "sklearn"},
        "skdptune.accounting.PrivacyProfile": OPTIONAL | {"sklearn"},
        "skdptune.linear_model.DPLogisticRegression": models,
        "for name in dir(skdptune): 'DPNeural' in name or getattr(skdptune, name)": models,
        "from skdptune import *": models,
    }
    found = in_a_fresh_python(LOADED_AFTER_EACH_STEP, *not_yet)
    assert len(found) == len(not_yet)
    for (step, packages), loaded in zip(not_yet.items(), found, strict=True):
        assert packages.isdisjoint(loaded), step


ASK_FOR_A_NET_WITHOUT_EACH = """
import json, sys
import skdptune.neural_network as nn
complaints = {}
for missing in sys.argv[1:]:
    had = sys.modules.pop(missing, None)
    # None in place of a module is how Python is told that there is none.
    sys.modules[missing] = None
    try:
        nn.DPNeuralNetClassifier
    except ModuleNotFoundError as problem:
        complaints[missing] = str(problem)
    del sys.modules[missing]
    if had is not None:
        sys.modules[missing] = had
print(json.dumps(complaints))
"""


def test_missing_package_is_named_with_its_extra() -> None:
    packages = sorted(NETS_MAY_IMPORT)
    complaints = in_a_fresh_python(ASK_FOR_A_NET_WITHOUT_EACH, *packages)
    assert sorted(complaints) == packages
    for missing, complaint in complaints.items():
        # If all are missing, the message names the first one.
        named = missing if find_spec(missing) else "torch|skorch|opacus"
        assert re.match(f"DPNeuralNetClassifier needs ({named}), which is", complaint)
        assert "pip install 'skdptune[nn]'" in complaint


@pytest.mark.parametrize(
    ("file", "source", "complaint"),
    [
        ("metrics/_a.py", "from skdptune.model_selection import X", "imports model_selection"),
        ("metrics/deep/_a.py", "from ...audit import X", "imports audit"),
        ("metrics/_a.py", "def f():\n    import skdptune.audit", "imports audit"),
        ("metrics/_a.py", "from skdptune import __version__", "imports __version__"),
        ("helpers/_a.py", "", "is in no layer"),
        ("accounting/_a.py", "from sklearn.base import clone", "imports sklearn"),
        ("accounting/_a.py", "import pandas", "imports pandas at module level"),
        ("metrics/_a.py", "try:\n    import dask\nexcept E:\n    pass", "imports dask at"),
        ("metrics/_a.py", "if TYPE_CHECKING:\n    X\nelse:\n    import opacus", "opacus at"),
        ("neural_network/__init__.py", "import torch", "imports torch at"),
        ("neural_network/_a.py", "import matplotlib", "imports matplotlib at"),
    ],
)
def test_offence_is_caught(tmp_path: Path, file: str, source: str, complaint: str) -> None:
    write(tmp_path / file, source)
    found = violations(read_package(tmp_path))
    assert len(found) == 1
    assert file in found[0]
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (
            "metrics/_a.py",
            "from skdptune.metrics._b import X\nfrom ._c import Y\nfrom . import _d",
        ),
        ("metrics/_a.py", "def f():\n    import torch\n    from pandas import DataFrame"),
        ("metrics/_a.py", "if TYPE_CHECKING:\n    import torch"),
        ("neural_network/_a.py", "import torch\nfrom skorch import X\nimport opacus.layers"),
        ("accounting/_a.py", "import math\nfrom scipy import special\nimport dp_accounting.pld"),
        ("__init__.py", "from skdptune.metrics import X\nfrom . import audit"),
    ],
)
def test_permitted_import_passes(tmp_path: Path, file: str, source: str) -> None:
    write(tmp_path / file, source)
    assert violations(read_package(tmp_path)) == []


def violations(modules: dict[str, Module]) -> list[str]:
    """Return one line for every import of a tree that breaks a rule."""
    return [
        f"{module.file.as_posix()} {complaint}"
        for module in modules.values()
        for rule in (layer_complaints, accounting_complaints, optional_complaints)
        for complaint in rule(module)
    ]


def layer_complaints(module: Module) -> Iterator[str]:
    """Imports see their own layer and those above it in the list."""
    # The package's root is the one place that may see everything.
    if module.name == ROOT_NAME:
        return
    layer = module.file.parts[0].removesuffix(".py")
    if layer not in LAYERS:
        yield "is in no layer"
        return
    visible = LAYERS[: LAYERS.index(layer) + 1]
    for imported in module.imports:
        root, _, inner = imported.name.partition(".")
        target = inner.partition(".")[0]
        if root == ROOT_NAME and target not in visible:
            yield f"imports {target}" if target else "imports the package's root"


def accounting_complaints(module: Module) -> Iterator[str]:
    """The accounting needs no library of models."""
    permitted = ACCOUNTING_MAY_IMPORT | sys.stdlib_module_names
    roots = (imported.name.partition(".")[0] for imported in module.imports)
    if module.file.parts[0] == "accounting":
        yield from (f"imports {root}" for root in roots if root not in permitted)


def optional_complaints(module: Module) -> Iterator[str]:
    """Packages of an extra are imported where they are used."""
    is_net = module.file.parts[0] == "neural_network" and not module.is_init
    refused = OPTIONAL - NETS_MAY_IMPORT if is_net else OPTIONAL
    for imported in module.imports:
        root = imported.name.partition(".")[0]
        if root in refused and imported.runs_at_import and not imported.for_types_alone:
            yield f"imports {root} at module level"
