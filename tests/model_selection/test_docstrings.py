"""Every parameter of a search is described, whatever its docstring shares with others."""

from __future__ import annotations

import inspect

import pytest

from skdptune import DoublingThresholdSearchCV, DPGridSearchCV, DPRandomSearchCV
from skdptune.model_selection._docstrings import SHARED_TEXT


@pytest.mark.parametrize("kind", [DPRandomSearchCV, DPGridSearchCV, DoublingThresholdSearchCV])
def test_every_parameter_of_a_search_is_documented(kind: type) -> None:
    text = inspect.getdoc(kind) or ""
    assert not any("{" + name + "}" in text for name in SHARED_TEXT)
    for name in inspect.signature(kind).parameters:
        lines = [line for line in text.splitlines() if " : " in line and not line.startswith(" ")]
        named = {part.strip() for line in lines for part in line.split(" : ")[0].split(",")}
        assert name in named, name
