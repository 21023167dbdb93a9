"""The version is the one that was built and installed."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import pytest
from packaging.version import Version

import skdptune
from skdptune import __version__

ROOT = Path(__file__).parents[1]


def test_version_is_the_installed_one() -> None:
    assert importlib.metadata.version("skdptune") == __version__
    assert str(Version(__version__)) == __version__


def test_addresses_are_the_same_everywhere() -> None:
    lines = importlib.metadata.metadata("skdptune").get_all("Project-URL", [])
    urls = dict(line.split(", ", 1) for line in lines)
    (finding,) = skdptune.check(skdptune.DPStandardScaler(bounds=(0, 1), random_state=0))
    assert finding.page.startswith(urls["Documentation"])
    assert all(urls[name].startswith(urls["Source"]) for name in ("Issues", "Changelog"))
    for path in (ROOT / ".github").rglob("*.yml"):
        for address in re.findall(r"https://\S+", path.read_text(encoding="utf-8")):
            assert address.startswith((urls["Documentation"], urls["Source"])), path
    for name in ("README.md", "docs/conf.py", "docs/checks.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        named = set(re.findall(r"https://github\.com/[\w-]+/skdptune", text))
        assert named == {urls["Source"]}, name


def test_citation_is_of_this_version() -> None:
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == __version__
    lines = importlib.metadata.metadata("skdptune").get_all("Project-URL", [])
    assert {f"Documentation, {cited['url']}", f"Source, {cited['repository-code']}"} <= set(lines)


def test_readme_of_the_package_leads_into_the_repository() -> None:
    """On PyPI there is only the README, without other files."""
    found = importlib.metadata.metadata("skdptune")
    text = found.get_payload() or found["Description"]
    assert text.count("](https://github.com/skdptune/skdptune/blob/main/docs/") > 10
    assert "](docs/" not in text and "](https://raw.githubusercontent.com/" in text
