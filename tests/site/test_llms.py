"""The files for language models name every page once, and contain written pages in full."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

LINE = re.compile(r"- \[(.+?)\]\((\S+?)\)(?:: (.+))?")
# Made by Sphinx, without their own text.
LISTS = {"genindex.html", "py-modindex.html", "search.html"}


@pytest.fixture(scope="module")
def lines(site: Path) -> list[tuple[str, str, str]]:
    """Return title, address and sentence of each page in llms.txt."""
    text = (site / "llms.txt").read_text(encoding="utf-8")
    return [found for line in text.splitlines() for found in LINE.findall(line)]


def test_every_page_is_named_once(site: Path, lines: list[tuple[str, str, str]]) -> None:
    pages = {
        file.relative_to(site).as_posix()
        for file in site.rglob("*.html")
        if not file.relative_to(site).parts[0].startswith("_")
    }
    assert sorted(address for _, address, _ in lines) == sorted(pages - LISTS)


def test_most_pages_say_what_they_are_about(lines: list[tuple[str, str, str]]) -> None:
    without = {address for _, address, sentence in lines if not sentence}
    # Lists of other pages.
    assert without <= {"guide.html", "background.html"}
    short = [each for each in lines if each[1] not in without and len(each[2]) < 15]
    assert short == []
    assert not any("download the full example" in sentence for _, _, sentence in lines)


def test_it_begins_with_the_name_and_a_summary(site: Path) -> None:
    first, empty, summary, *_ = (site / "llms.txt").read_text(encoding="utf-8").splitlines()
    assert (first, empty) == ("# skdptune", "")
    assert summary.startswith("> Train and tune a scikit-learn model on sensitive records")


def test_it_contains_the_rules_for_assistants(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    rules, _, pages = text.partition("\n## Pages\n")
    assert "## Rules for coding assistants\n" in rules
    assert "### What replaces what\n" in rules
    assert "](migrating.html)" in rules
    assert "## User guide\n" in pages


def test_the_full_text_has_the_written_pages(site: Path) -> None:
    text = (site / "llms-full.txt").read_text(encoding="utf-8")
    for words in ("<!-- start.html -->", "# Pitfalls", "### Theorem S1. Envelope (default)"):
        assert words in text
