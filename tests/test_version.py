"""The version is the one that was built and installed."""

from __future__ import annotations

import importlib.metadata

from packaging.version import Version

import skdptune


def test_version_is_the_installed_one() -> None:
    assert importlib.metadata.version("skdptune") == skdptune.__version__
    assert str(Version(skdptune.__version__)) == skdptune.__version__
