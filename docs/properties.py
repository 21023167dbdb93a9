"""Writes the table of all private estimators' properties into choosing.md, from the code.

    python docs/properties.py

Everything but the theorems is asked of the estimators themselves: their parameters, their tags
for scikit-learn, their methods, and what a fit or a cost is refused for.
"""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import get_tags

PAGE = Path(__file__).with_name("choosing.md")
BEGIN = "<!-- The table: python docs/properties.py -->\n"
END = "\n<!-- End of the table. -->"
FOLDERS = ("linear_model", "ensemble", "neural_network", "preprocessing")
COLUMNS = (
    *("estimator", "for", "must be given", "may be given", "δ = 0", "neighbours", "weights"),
    *("more than two classes", "sparse", "in chunks", "many at once", "secret n", "GPU"),
    "theorems",
)
# All that is not asked of the code: the entries of theorems.md that the guarantee rests on.
THEOREMS = {
    "DPLogisticRegression": ("M0", "M1", "M2", "M3", "M4", "M5", "M6", "M7"),
    "DPLinearSVC": ("M0", "M1", "M2", "M3", "M4", "M5", "M6", "M7"),
    "DPRidge": ("L0", "L8", "L9", "L10", "L11"),
    "AdaSSPLinearRegression": ("L0", "L8", "L9"),
    "OutputPerturbationLinearRegression": ("L0", "L6", "L7"),
    "OPSLinearRegression": ("L0", "L1", "L6"),
    "AdaOPSLinearRegression": ("L0", "L1", "L3", "L4", "L5"),
    "PTRLinearRegression": ("L0", "L1", "L3", "L4", "L5"),
    "DPExplainableBoostingClassifier": ("B1", "B2"),
    "DPExplainableBoostingRegressor": ("B1", "B2"),
    "DPNeuralNetBinaryClassifier": ("U1", "U2", "U5"),
    "DPNeuralNetClassifier": ("U1", "U2", "U5"),
    "DPNeuralNetRegressor": ("U1", "U2", "U4", "U6"),
    "DPStandardScaler": ("R1",),
    "DPMinMaxScaler": ("R1",),
    "DPPCA": ("R9",),
}
# Parameters that state public knowledge, and values that every estimator takes for them.
PUBLIC = {"bounds": (-1.0, 1.0), "target_bound": 1.0, "data_norm": 1.0, "schema": None}
PUBLIC_ALONE = (*PUBLIC, "classes")


def estimators() -> Iterator[tuple[str, type]]:
    """Yield folder and class of each private estimator that can be imported here."""
    for folder in FOLDERS:
        module = importlib.import_module(f"skdptune.{folder}")
        for name in module.__all__:
            try:
                cls = getattr(module, name)
            except ImportError:
                # It needs an extra.
                continue
            is_class = inspect.isclass(cls) and hasattr(cls, "privacy_profile")
            if is_class and "epsilon" in inspect.signature(cls).parameters:
                yield folder, cls


def parameters(cls: type) -> dict[str, Any]:
    """Return the names and defaults of a class's parameters."""
    return cls().get_params(deep=False)


def required(cls: type) -> list[str]:
    """Return the public knowledge without which nothing is fitted: the fit names it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)).astype(np.float32), np.tile([0, 1], 30)
    given: dict[str, Any] = {}
    missing: list[str] = []
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cls(**given, random_state=0).fit(X, y)
        except ValueError as error:
            name = str(error).partition(" must be")[0]
            if name not in PUBLIC or name in given:
                raise
            missing.append(name)
            given[name] = PUBLIC[name]
        else:
            return missing


def pure(cls: type) -> str:
    """Return whether a fit may cost δ = 0, and for how many classes."""
    given = {key: PUBLIC[key] for key in required(cls)}
    if "delta" in parameters(cls):
        given["delta"] = 0.0
    try:
        is_pure = np.isfinite(cls(**given).privacy_profile(10_000, 5).epsilon(0.0))
    except ValueError:
        return ""
    tags = get_tags(cls(**given)).classifier_tags
    is_binary = tags is not None and not tags.multi_class and multiclass(cls) == "yes"
    return ("two classes, or `classes=`" if is_binary else "yes") if is_pure else ""


def neighbours(cls: type) -> str:
    """Return how neighbouring data sets differ."""
    usual = cls().neighbouring.removesuffix(" one record")
    if "solver" not in parameters(cls):
        return usual
    is_same = cls(solver="psgd").neighbouring == cls().neighbouring
    return usual if is_same else f'{usual}; `solver="psgd"`: empty a place'


def kind(cls: type) -> str:
    """Return what is learned."""
    return {"classifier": "classes", "regressor": "numbers", None: "scales"}.get(
        get_tags(cls()).estimator_type, "scales"
    )


def multiclass(cls: type) -> str:
    """Return whether a classifier takes more than two classes; nothing for others."""
    tags = get_tags(cls()).classifier_tags
    return "" if tags is None else _yes(tags.multi_class)


def weights(cls: type) -> str:
    """Return which weights are taken."""
    of_records = "sample_weight" in inspect.signature(cls.fit).parameters
    found = ["records"] * of_records + ["classes"] * ("class_weight" in parameters(cls))
    return ", ".join(found)


def _yes(is_so: bool) -> str:
    return "yes" if is_so else ""


def _link(entry: str, anchors: dict[str, str]) -> str:
    return f"[{entry}](theorems.md#{anchors[entry]})"


def anchors() -> dict[str, str]:
    """Return the anchor of each entry of theorems.md."""
    text = PAGE.with_name("theorems.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| \[(\w+)\]\(#([^)]+)\)", text, re.MULTILINE))


def row(folder: str, cls: type) -> str:
    """Return one line of the table."""
    known = parameters(cls)
    given = required(cls)
    optional = [name for name in PUBLIC_ALONE if name in known and name not in given]
    if "schema" in known:
        # Either of the two says between which numbers columns lie.
        given = ["bounds` or `schema" if name == "bounds" else name for name in given]
        optional.remove("schema")
    cells = (
        f"[{cls.__name__}](generated/skdptune.{folder}.{cls.__name__}.rst)",
        kind(cls),
        ", ".join(f"`{name}`" for name in given),
        ", ".join(f"`{name}`" for name in optional),
        pure(cls),
        neighbours(cls),
        weights(cls),
        multiclass(cls),
        _yes(get_tags(cls()).input_tags.sparse),
        "`fit_statistics`" if hasattr(cls, "fit_statistics") else "",
        "`fit_many`" if hasattr(cls, "fit_many") else "",
        "`n_public`" if "n_public" in known else "",
        "`device`" if "device" in known else "",
        ", ".join(_link(entry, anchors()) for entry in THEOREMS[cls.__name__]),
    )
    return "| " + " | ".join(cells) + " |"


def table() -> str:
    """Return the whole table in Markdown."""
    head = "| " + " | ".join(COLUMNS) + " |"
    # In the order of THEOREMS, which is that of the page's advice.
    found = sorted(estimators(), key=lambda each: list(THEOREMS).index(each[1].__name__))
    return "\n".join([head, "|---" * len(COLUMNS) + "|", *(row(*each) for each in found)])


def main() -> None:
    """Put the table between its marks."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
