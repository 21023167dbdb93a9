"""Configuration of the site: `python -m sphinx -W docs docs/_build/html`."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Any

import joblib
from sphinx_gallery.sorting import ExplicitOrder

import skdptune

# Workers that run examples import from here, too.
sys.path.insert(0, str(Path(__file__).parent))
import gallery  # noqa: E402

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
    "sphinx_gallery.gen_gallery",
    # Beside this file.
    "llms",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "images", "_templates"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

# Each public name has its own page, with all inherited members.
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "skdptune"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
# The reader's own choice of light or dark.
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {
        "text": f"skdptune {version}",
        "alt_text": "skdptune: home",
        "image_light": "_static/favicon.svg",
        "image_dark": "_static/favicon.svg",
    },
    "github_url": "https://github.com/skdptune/skdptune",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# All examples are run, and a failing one fails the build. Examples whose packages are missing are
# shown without output.
gallery.remove_stale()
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/(?:" + "|".join(map(re.escape, gallery.runnable())) + ")$",
    "within_subsection_order": ExplicitOrder(
        [
            "tune_logistic_regression.py",
            "own_table.py",
            "cost_of_tuning.py",
            "grid_and_adaptive_search.py",
            "explainable_boosting.py",
            "private_nets.py",
            "frozen_features.py",
            "private_regression.py",
            "pareto_front.py",
            "ledger_over_a_project.py",
            "audit_an_estimator.py",
            "third_party_estimator.py",
            "search_on_a_cluster.py",
            "doubling_threshold.py",
            "*",
        ]
    ),
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skdptune",),
    "reset_modules": ("matplotlib", "gallery.reset"),
    "parallel": joblib.cpu_count(),
    "image_srcset": ["2x"],
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": math.inf,
    "write_computation_times": False,
}


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
