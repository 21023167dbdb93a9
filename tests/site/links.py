"""Finds broken links, in a folder of HTML and in Markdown files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes that hold an address, and tags whose address a browser loads to show the page.
_ADDRESSES = ("href", "src", "data", "poster", "srcset")
_LOADED = (
    "script",
    "img",
    "iframe",
    "source",
    "video",
    "audio",
    "embed",
    "object",
    "use",
    "image",
)
_LOADED_RELATIONS = {"stylesheet", "preload", "modulepreload", "icon", "manifest", "prefetch"}
_IN_STYLE = re.compile(r"""url\(\s*["']?([^"')]+)["']?\s*\)|@import\s+["']([^"']+)""")
_MARKDOWN_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_MARKDOWN_CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1", re.MULTILINE | re.DOTALL)
_CODE_IN_A_LINE = re.compile(r"`[^`\n]+`")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


class _Page(HTMLParser):
    """What a page offers as anchors, and the addresses in it: (address, is it loaded)."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors = {"", "top"}
        self.addresses: list[tuple[str, bool]] = []
        self._is_style = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._is_style = tag == "style"
        self.anchors |= {values[key] or "" for key in ("id", "name") if key in values}
        is_loaded = tag in _LOADED or bool(
            tag == "link" and _LOADED_RELATIONS & set((values.get("rel") or "").split())
        )
        for key in _ADDRESSES:
            if values.get(key):
                texts = values[key].split(",") if key == "srcset" else [values[key]]
                self.addresses += [(text.split()[0], is_loaded) for text in texts if text.strip()]
        self.addresses += [(url, True) for url in in_style(values.get("style") or "")]

    def handle_data(self, data: str) -> None:
        if self._is_style:
            self.addresses += [(url, True) for url in in_style(data)]

    def handle_endtag(self, tag: str) -> None:
        self._is_style = False


def in_style(text: str) -> list[str]:
    """Return the addresses in a style sheet."""
    return [one or other for one, other in _IN_STYLE.findall(text)]


def broken_links(site: Path) -> list[str]:
    """Return descriptions of broken links in a built site, and of content from other servers."""
    site = site.resolve()

    @cache
    def read(file: Path) -> _Page:
        return _Page(file.read_text(encoding="utf-8"))

    def complaint(page: Path, address: str, is_loaded: bool) -> str | None:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            is_elsewhere = is_loaded and parts.scheme not in ("data", "blob")
            return "is loaded from another server" if is_elsewhere else None
        target = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
        target = target / "index.html" if target.is_dir() else target
        if parts.path.startswith("/") or not target.is_relative_to(site):
            return "leads out of the site"
        if not target.exists():
            return "does not exist"
        if target.suffix != ".html" or unquote(parts.fragment) in read(target).anchors:
            return None
        return "has no such anchor"

    found = []
    pages = [file for file in site.rglob("*.html") if "_static" not in file.parts]
    for file in sorted(pages):
        for address, is_loaded in read(file).addresses:
            if (what := complaint(file, address, is_loaded)) is not None:
                found.append(f"{file.relative_to(site)}: {address} {what}")
    for file in sorted(site.rglob("*.css")):
        for address in in_style(file.read_text(encoding="utf-8")):
            if (what := complaint(file, address, True)) is not None:
                found.append(f"{file.relative_to(site)}: {address} {what}")
    return found


def slug(heading: str) -> str:
    """Return the anchor that GitHub and the site give to a heading in Markdown."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def _anchors(file: Path) -> set[str]:
    text = _MARKDOWN_CODE.sub("", file.read_text(encoding="utf-8"))
    return {slug(heading) for heading in _HEADING.findall(text)} | {""}


def broken_markdown_links(file: Path, root: Path, generated: tuple[str, ...]) -> Iterator[str]:
    """Yield links of a Markdown file to files or headings that are not there.

    Links to folders that the build fills, such as ``generated/``, are left to `broken_links`.
    """
    text = _MARKDOWN_CODE.sub("", file.read_text(encoding="utf-8"))
    # What is in brackets is the link's text, so that code in it may go.
    for address in _MARKDOWN_LINK.findall(_CODE_IN_A_LINE.sub("code", text)):
        parts = urlsplit(address)
        if parts.scheme or parts.path.startswith(generated):
            continue
        target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
        if not target.is_relative_to(root) or not target.exists():
            yield f"{file.name}: {address} does not exist"
        elif target.suffix == ".md" and parts.fragment not in _anchors(target):
            yield f"{file.name}: {address} has no such heading"
