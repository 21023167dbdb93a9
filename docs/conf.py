"""Configuration of the site: `python -m sphinx -W docs docs/_build/html`."""

from __future__ import annotations

from typing import Any

import skdptune

project = "skdptune"
author = "The skdptune developers"
copyright = author
version = release = skdptune.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "images", "_templates"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

# Of each public name a page of its own, with all that it inherits.
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "skdptune"
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def skip_member(
    app: object, what: str, name: str, member: object, skip: bool, options: object
) -> bool | None:
    """Leave out what a class inherits from another library, which has its own documentation."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    module = getattr(function, "__module__", None)
    if what == "class" and isinstance(module, str) and not module.startswith("skdptune"):
        return True
    return None


def setup(app: Any) -> None:
    """Connect the hook."""
    app.connect("autodoc-skip-member", skip_member)
