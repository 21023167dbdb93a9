"""Links of the site, of the README and of the pages' sources are not broken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.site.links import broken_links, broken_markdown_links
from tests.structure import PACKAGE

ROOT = Path(__file__).parents[2]
SOURCES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(file for file in (ROOT / "docs").rglob("*.md") if "_build" not in file.parts),
]
# Files that the build creates among the sources.
GENERATED = ("generated/", "../generated/", "auto_examples/", "../auto_examples/")
A_PATH = re.compile(r"`((?:skdptune|tests|benchmarks|examples|docs|\.ci)/[\w/.-]*)(?:::[\w:]+)?`")
# Pages of the site are not in the source distribution.
needs_sources = pytest.mark.skipif(
    not (ROOT / "docs" / "conf.py").exists(), reason="no sources of the site here"
)


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    assert broken_links(site) == []


@needs_sources
@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_links_in_markdown_lead_somewhere(file: Path) -> None:
    assert list(broken_markdown_links(file, ROOT, GENERATED)) == []


@needs_sources
@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_paths_named_in_markdown_exist(file: Path) -> None:
    # A change log also names what is gone.
    if file.stem != "CHANGELOG":
        named = A_PATH.findall(file.read_text(encoding="utf-8"))
        # The package may be installed elsewhere.
        roots = (ROOT, PACKAGE.parent)
        assert [p for p in named if not any((root / p).exists() for root in roots)] == []


BROKEN = {
    '<a href="gone.html">': "does not exist",
    '<a href="other.html#gone">': "has no such anchor",
    '<a href="../elsewhere.html">': "leads out of the site",
    '<img srcset="other.html 1x, gone.png 2x">': "does not exist",
    '<object data="gone.svg">': "does not exist",
    '<script src="https://example.com/a.js">': "is loaded from another server",
    '<link rel="preconnect stylesheet" href="//example.com/a.css">': "is loaded from another",
    '<style>@import "https://example.com/a.css";</style>': "is loaded from another server",
    '<p style="background: url(gone.png)">': "does not exist",
}
SOUND = (
    '<a href="other.html#there">',
    '<a href="other.html?q=1#na%C3%AFve">',
    '<a href="folder/">',
    '<a href="https://example.com/a.js">',
    '<link rel="canonical" href="https://example.com/">',
    '<img src="data:image/png;base64,AAAA">',
)


def _write_site(folder: Path, html: str) -> Path:
    (folder / "folder").mkdir()
    (folder / "folder" / "index.html").write_text("<p>", encoding="utf-8")
    (folder / "other.html").write_text('<p id="there"><a name="naïve">', encoding="utf-8")
    (folder / "index.html").write_text(html, encoding="utf-8")
    return folder


@pytest.mark.parametrize("html", BROKEN)
def test_what_leads_nowhere_is_found(html: str, tmp_path: Path) -> None:
    (found,) = broken_links(_write_site(tmp_path, html))
    assert found.startswith("index.html: ")
    assert BROKEN[html] in found


@pytest.mark.parametrize("html", SOUND)
def test_what_leads_somewhere_is_passed_over(html: str, tmp_path: Path) -> None:
    assert broken_links(_write_site(tmp_path, html)) == []


def test_markdown_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(
        "# A `page`, here\n\n[a](#a-page-here) [b](gone.md) [c](#gone) [d](page.md#gone)\n"
        "[e](https://example.com) [f](../page.md)\n```\n[g](in_code.md)\n```\n",
        encoding="utf-8",
    )
    found = list(broken_markdown_links(file, tmp_path, ()))
    assert [line.split()[1] for line in found] == [
        "gone.md",
        "#gone",
        "page.md#gone",
        "../page.md",
    ]
