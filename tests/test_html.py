"""Frames of notebooks: self-contained, and right on light and on dark pages."""

from __future__ import annotations

import re

from skdptune import _html
from skdptune._html import box, title


def test_frame_holds_its_content_and_no_script() -> None:
    shown = box(title("A &amp; B") + "<p>text</p>", width="46em", style="overflow-x:auto")
    assert "max-width:46em" in shown and "overflow-x:auto" in shown
    assert shown.endswith("A &amp; B</div><p>text</p></div>")
    assert "<script" not in shown and "<style" not in shown and "class=" not in shown


def test_colours_are_those_of_the_page_but_greys_and_a_red() -> None:
    values = [value for value in vars(_html).values() if isinstance(value, str)]
    colours = re.findall(r"#\w+|rgba?\([^)]*\)", " ".join([*values, box("", width="1em")]))
    assert colours
    assert {re.sub(r",[^,]*\)$", "", colour) for colour in colours} <= {
        "#e03131",
        "rgba(128,128,128",
    }
    assert "background" not in box("", width="1em")
