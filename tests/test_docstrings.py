"""Docstrings that share text are filled in."""

from __future__ import annotations

import inspect

import pytest

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
