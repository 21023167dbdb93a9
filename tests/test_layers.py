"""Imports run one way: a module sees its own layer and those above it in the list.

The source is read, not run, so that an import inside a function counts as well.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import skdptune

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(skdptune.__file__).parent

LAYERS = (
    "_validation",
    "_formatting",
    "accounting",
    "mechanisms",
    "_compat",
    "base",
    "preprocessing",
    "metrics",
    "linear_model",
    "neural_network",
    "model_selection",
    "inspection",
    "audit",
    "datasets",
)
# pandas only where a table is asked for: it is among the optional ones below.
ACCOUNTING_MAY_IMPORT = {"numpy", "scipy", "dp_accounting", "pandas", "skdptune"}
OPTIONAL = {
    "botorch",
    "dask",
    "diffprivlib",
    "distributed",
    "gpytorch",
    "matplotlib",
    "moocore",
    "opacus",
    "optuna",
    "pandas",
    "skorch",
    "torch",
}
# Nets and their modules descend from torch's and skorch's classes, which must be there when they
# are defined. The folder's own __init__ stays free of them and loads its modules on demand.
NETS_MAY_IMPORT = {"opacus", "skorch", "torch"}


def test_package_obeys_its_layers() -> None:
    files = list(PACKAGE.rglob("*.py"))
    assert PACKAGE / "accounting" / "__init__.py" in files
    assert violations(PACKAGE) == []


def test_accounting_loads_neither_models_nor_frames() -> None:
    unwanted = ("sklearn", "torch", "pandas", "matplotlib")
    code = (
        "import sys, skdptune.accounting\n"
        f"print(*sorted(set(sys.modules) & set({unwanted!r})), sep=',')"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert loaded.stdout.strip() == ""


def test_nothing_loads_torch_before_a_net_is_asked_for() -> None:
    code = (
        "import sys, skdptune.model_selection, skdptune.neural_network\n"
        f"print(*sorted(set(sys.modules) & {NETS_MAY_IMPORT!r}), sep=',')"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert loaded.stdout.strip() == ""


@pytest.mark.parametrize("missing", sorted(NETS_MAY_IMPORT))
def test_missing_package_is_named_with_its_extra(missing: str) -> None:
    # None in place of a module is how Python is told that there is none.
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import skdptune.neural_network as nn\n"
        "try:\n    nn.DPNeuralNetClassifier\n"
        "except ModuleNotFoundError as problem:\n    print(problem)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    # Where all are missing, torch is the first to be.
    assert re.match(r"DPNeuralNetClassifier needs (torch|skorch|opacus), which is", told.stdout)
    assert "pip install 'skdptune[nn]'" in told.stdout


@pytest.mark.parametrize(
    ("file", "source", "complaint"),
    [
        ("metrics/_a.py", "from skdptune.model_selection import X", "imports model_selection"),
        ("metrics/_a.py", "import skdptune.audit._x", "imports audit"),
        ("metrics/_a.py", "from skdptune import audit", "imports audit"),
        ("metrics/_a.py", "from ..linear_model import X", "imports linear_model"),
        ("metrics/_a.py", "from .. import linear_model", "imports linear_model"),
        ("metrics/__init__.py", "from ..audit import X", "imports audit"),
        ("metrics/deep/_a.py", "from ...audit import X", "imports audit"),
        ("metrics/_a.py", "def f():\n    import skdptune.audit", "imports audit"),
        ("base.py", "from .metrics import X", "imports metrics"),
        ("metrics/_a.py", "from skdptune import __version__", "imports the package's root"),
        ("metrics/_a.py", "from skdptune._helpers import X", "imports _helpers"),
        ("helpers/_a.py", "", "is in no layer"),
        ("_helpers.py", "", "is in no layer"),
        ("accounting/_a.py", "import sklearn", "imports sklearn"),
        ("accounting/_a.py", "from sklearn.base import clone", "imports sklearn"),
        ("accounting/_a.py", "def f():\n    import torch.nn", "imports torch"),
        ("accounting/_a.py", "import opendp.prelude", "imports opendp"),
        ("accounting/_a.py", "import pandas", "imports pandas at module level"),
        ("metrics/_a.py", "import torch", "imports torch at module level"),
        ("metrics/_a.py", "import matplotlib.pyplot as plt", "imports matplotlib at"),
        ("metrics/_a.py", "try:\n    import dask\nexcept E:\n    pass", "imports dask at"),
        ("metrics/_a.py", "if X:\n    from optuna import Y", "imports optuna at"),
        ("metrics/_a.py", "class A:\n    import skorch", "imports skorch at"),
        ("metrics/_a.py", "if TYPE_CHECKING:\n    X\nelse:\n    import opacus", "opacus at"),
        ("neural_network/__init__.py", "import torch", "imports torch at"),
        ("neural_network/_a.py", "import matplotlib", "imports matplotlib at"),
        ("__init__.py", "import pandas", "imports pandas at"),
        ("__init__.py", "import diffprivlib.models", "imports diffprivlib at"),
    ],
)
def test_offence_is_caught(tmp_path: Path, file: str, source: str, complaint: str) -> None:
    write(tmp_path / file, source)
    found = violations(tmp_path)
    assert len(found) == 1
    assert file in found[0]
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("metrics/_a.py", "from skdptune.accounting import X\nfrom skdptune.base import Y"),
        (
            "metrics/_a.py",
            "from skdptune.metrics._b import X\nfrom ._c import Y\nfrom . import _d",
        ),
        ("metrics/_a.py", "import numpy\nimport sklearn.base\nimport skdptune_extras"),
        ("metrics/_a.py", "def f():\n    import torch\n    from pandas import DataFrame"),
        ("metrics/_a.py", "if TYPE_CHECKING:\n    import torch"),
        ("neural_network/_a.py", "import torch\nfrom skorch import X\nimport opacus.layers"),
        ("metrics/_a.py", "if typing.TYPE_CHECKING:\n    import torch"),
        ("base.py", "from .mechanisms import X"),
        ("accounting/_a.py", "import math\nfrom scipy import special\nimport dp_accounting.pld"),
        ("accounting/_a.py", "def f():\n    import pandas"),
        ("__init__.py", "from skdptune.datasets import X\nfrom . import audit"),
    ],
)
def test_permitted_import_passes(tmp_path: Path, file: str, source: str) -> None:
    write(tmp_path / file, source)
    assert violations(tmp_path) == []


def write(path: Path, source: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")


def violations(package: Path) -> list[str]:
    """Return one line for every import of a tree that breaks a rule."""
    found: list[str] = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package)
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        complaints = [*layer_complaints(file, tree), *optional_complaints(file, tree)]
        found += [f"{file.as_posix()} {complaint}" for complaint in complaints]
    return found


def layer_complaints(file: Path, tree: ast.Module) -> Iterator[str]:
    # The package's root is the one place that may see everything.
    if file == Path("__init__.py"):
        return
    layer = file.parts[0].removesuffix(".py")
    if layer not in LAYERS:
        yield "is in no layer"
        return
    visible = LAYERS[: LAYERS.index(layer) + 1]
    for name in imported_names(file, ast.walk(tree)):
        root, _, inner = name.partition(".")
        target = inner.partition(".")[0]
        if root == "skdptune" and target not in visible:
            yield f"imports {target}" if target else "imports the package's root"
        if layer == "accounting" and root not in ACCOUNTING_MAY_IMPORT | sys.stdlib_module_names:
            yield f"imports {root}"


def optional_complaints(file: Path, tree: ast.Module) -> Iterator[str]:
    is_net = file.parts[0] == "neural_network" and file.name != "__init__.py"
    refused = OPTIONAL - NETS_MAY_IMPORT if is_net else OPTIONAL
    for name in imported_names(Path("__init__.py"), nodes_run_at_import(tree)):
        root = name.partition(".")[0]
        if root in refused:
            yield f"imports {root} at module level"


def imported_names(file: Path, nodes: Iterator[ast.AST]) -> Iterator[str]:
    """Yield what each import names, in full and to the depth of one layer at least."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute_module(file, node)
            if module != "skdptune":
                yield module
                continue
            for alias in node.names:
                is_layer = alias.name in LAYERS
                yield f"skdptune.{alias.name}" if is_layer else "skdptune"


def absolute_module(file: Path, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    # One dot is the folder of the file, every further dot a folder above it.
    folders = ("skdptune", *file.parts[:-1])
    base = folders[: len(folders) - node.level + 1]
    return ".".join((*base, node.module) if node.module else base)


def nodes_run_at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without the bodies of functions and of ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for other in node.orelse:
                yield other
                yield from nodes_run_at_import(other)
        else:
            yield from nodes_run_at_import(node)
