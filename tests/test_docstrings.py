"""Docstrings that share text are filled in."""

from __future__ import annotations

import inspect

import pytest

from skdptune import DoublingThresholdSearchCV, DPGridSearchCV, DPRandomSearchCV
from skdptune._docstrings import with_shared_text


def test_lines_in_braces_are_replaced_at_their_indentation() -> None:
    @with_shared_text({"name": "a : int\n    What it is."})
    class Some:
        """Something.

        {name}
        {not a name}
        """

    text = inspect.getdoc(Some) or ""
    assert text.splitlines()[2:] == ["a : int", "    What it is.", "{not a name}"]


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError):

        @with_shared_text({})
        class Some:
            """Something.

            {name}
            """


@pytest.mark.parametrize("kind", [DPRandomSearchCV, DPGridSearchCV, DoublingThresholdSearchCV])
def test_every_parameter_of_a_search_is_documented(kind: type) -> None:
    text = inspect.getdoc(kind) or ""
    assert "{" + "common" not in text
    for name in inspect.signature(kind).parameters:
        lines = [line for line in text.splitlines() if " : " in line and not line.startswith(" ")]
        named = {part.strip() for line in lines for part in line.split(" : ")[0].split(",")}
        assert name in named, name
