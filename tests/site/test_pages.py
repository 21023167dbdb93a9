"""Pages of the built site in a real browser: nothing fails, and all is visible and legible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.site.browser import Browser, Tab
from tests.site.conftest import serve

WIDTHS = (400, 1280)


def _looks(browser: Browser, origin: str, pages: list[str]) -> list[str]:
    """Return descriptions of the faults of pages. One tab is faster than a tab for each page."""
    tab = browser.open(f"{origin}{pages[0]}", width=WIDTHS[0])
    found = [what for page in pages for what in _look(tab, origin, page)]
    tab.close()
    return found


def _look(tab: Tab, origin: str, page: str) -> list[str]:
    """Return what is wrong with a page."""
    is_main = "/" not in page
    # Pages of classes and functions have the same colours: those of one in five are looked at.
    is_alike = page.startswith("generated/") and len(page) % 5 > 0
    tab.set_width(WIDTHS[0])
    tab.set_scheme(False)
    tab.go(f"{origin}{page}")
    found = [
        f"{page} at {WIDTHS[0]} px: {each}" for each in tab.evaluate("siteMeasures.overflow()")
    ]
    for is_dark in () if is_alike else (False, True):
        tab.set_scheme(is_dark)
        assert tab.wait_until(f"document.documentElement.dataset.theme === '{_theme(is_dark)}'")
        low = tab.evaluate("siteMeasures.lowContrast()")
        assert low["checked"] > 5
        found += [f"{page}, {_theme(is_dark)}: {each}" for each in low["found"]]
    if is_main:
        tab.set_width(WIDTHS[1])
        wide = tab.evaluate("siteMeasures.overflow()")
        found += [f"{page} at {WIDTHS[1]} px: {each}" for each in wide]
    return found + [f"{page}: {each}" for each in tab.complaints(origin)]


def _theme(is_dark: bool) -> str:
    return "dark" if is_dark else "light"


def test_pages_are_sound(site: Path, browser: Browser, origin: str) -> None:
    pages = sorted(file.relative_to(site).as_posix() for file in site.glob("*.html"))
    assert {"index.html", "start.html", "theorems.html"} <= set(pages)
    found = _looks(browser, origin, pages)
    assert not found, "\n".join(found)


# In parts, which processes share.
@pytest.mark.parametrize("part", range(4))
def test_reference_and_gallery_are_sound(
    site: Path, browser: Browser, origin: str, part: int
) -> None:
    folders = ("api", "generated", "auto_examples")
    pages = sorted(
        file.relative_to(site).as_posix()
        for name in folders
        for file in site.glob(f"{name}/*.html")
    )
    assert len(pages) > 50
    found = _looks(browser, origin, pages[part::4])
    assert not found, "\n".join(found)


def test_search_finds_the_grid_search(browser: Browser, origin: str) -> None:
    tab = browser.open(f"{origin}search.html?q=grid+search", width=1280)
    # Results come one by one.
    assert tab.wait_until("/found \\d+ page/.test(document.body.innerText)")
    results = tab.evaluate("document.querySelector('#search-results').innerText")
    assert "DPGridSearchCV" in results
    assert tab.complaints(origin) == []
    tab.close()


def test_every_block_of_code_can_be_copied(browser: Browser, origin: str) -> None:
    tab = browser.open(f"{origin}start.html", width=1280)
    blocks = tab.evaluate("document.querySelectorAll('div.highlight pre').length")
    assert blocks > 3
    assert tab.evaluate("document.querySelectorAll('button.copybtn').length") == blocks
    tab.close()


# Below: the measures themselves, on pages that are wrong by intent.
@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[object]:
    """Return a function that opens a page of this HTML."""
    server = serve(tmp_path)
    origin = next(server)
    tabs: list[Tab] = []

    def open_page(body: str) -> tuple[Tab, str]:
        html = f"<!doctype html><meta charset=utf-8><link rel=icon href='data:,'>{body}"
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        tabs.append(browser.open(f"{origin}page.html", width=400))
        return tabs[-1], origin

    yield open_page
    for tab in tabs:
        tab.close()
    next(server, None)


@pytest.mark.parametrize(
    ("style", "ratio"),
    [
        ("color: #777", 4.48),
        ("color: rgb(0 0 0 / 50%)", 3.98),
        ("color: black; opacity: .5", 3.98),
        ("color: #fff; background: #999", 2.85),
        ("color: #999; font-size: 24px", 2.85),
    ],
)
def test_pale_text_is_found(show: object, style: str, ratio: float) -> None:
    tab, _ = show(f"<p style='{style}'>pale")
    (found,) = tab.evaluate("siteMeasures.lowContrast()")["found"]
    what, number, text = re.fullmatch(r"(.*) (.*): (.*)", found).groups()
    assert (what, text) == ("body > p", "pale")
    # Colours have 8 bits.
    assert abs(float(number) - ratio) < 0.03


@pytest.mark.parametrize(
    "style", ["color: #767676", "color: #949494; font-size: 24px", "color: #fff; display: none"]
)
def test_dark_text_is_passed_over(show: object, style: str) -> None:
    tab, _ = show(f"<p style='{style}'>clear")
    assert tab.evaluate("siteMeasures.lowContrast()")["found"] == []


def test_the_scheme_reaches_the_page(show: object) -> None:
    tab, _ = show("<style>@media (prefers-color-scheme: dark) { p { color: #eee } }</style><p>a")
    assert tab.evaluate("siteMeasures.lowContrast()")["found"] == []
    tab.set_scheme(True)
    assert len(tab.evaluate("siteMeasures.lowContrast()")["found"]) == 1


def test_what_is_too_wide_is_found(show: object) -> None:
    tab, _ = show("<style>body { margin: 0 }</style><p style='width: 500px'>wide")
    assert tab.evaluate("siteMeasures.overflow()") == [
        "the page is 100 px too wide",
        "body > p ends at 500 px",
    ]
    tab.set_width(600)
    assert tab.evaluate("siteMeasures.overflow()") == []


def test_what_is_cut_off_is_found(show: object) -> None:
    tab, _ = show(
        "<style>html { overflow-x: clip }</style><p style='width: 500px; margin: 0'>wide"
    )
    assert tab.evaluate("siteMeasures.overflow()")[-1].startswith("body > p ends at")


def test_a_part_that_scrolls_in_place_of_the_page_is_found(show: object) -> None:
    tab, _ = show("<main style='overflow: auto'><h1>title</h1><p style='width: 900px'>wide</main>")
    (found,) = tab.evaluate("siteMeasures.overflow()")
    assert found.startswith("body > main is ")


def test_what_scrolls_by_itself_is_passed_over(show: object) -> None:
    tab, _ = show("<div style='overflow-x: auto'><p style='width: 900px'>wide")
    assert tab.evaluate("siteMeasures.overflow()") == []


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("<script>console.error('oh')</script>", "console: ['oh']"),
        ("<script>missing()</script>", "exception: ReferenceError"),
        ("<img src='gone.png'>", "404"),
        ("<script src='https://example.com/a.js'></script>", "asks another server"),
    ],
)
def test_what_fails_is_found(show: object, body: str, complaint: str) -> None:
    tab, origin = show(f"<p>{body}")
    assert any(complaint in each for each in tab.complaints(origin))
