"""Differences between the versions of scikit-learn."""

from __future__ import annotations

import re

from tests.structure import PACKAGE


def test_private_names_of_scikit_learn_are_used_here_alone() -> None:
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
