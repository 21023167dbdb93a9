"""Writes llms.txt and llms-full.txt next to the pages, for readers that are programs.

llms.txt contains the rules for coding assistants in full, and names each page with its first
sentence and its address (https://llmstxt.org); llms-full.txt contains the handwritten pages in
full. It omits the reference, which ``help()`` shows and llms.txt lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

# Not so short that an initial would end it.
SENTENCE = re.compile(r"(.{20,}?[.:?!])(?= [A-Z`(]|$)")
LONGEST = 240
RULES = "assistants"
HEADING = re.compile(r"^(#+ )", re.MULTILINE)
LINK = re.compile(r"\]\((\w+)\.md")


def documents_below(environment: Any, document: str) -> Iterator[str]:
    """Yield a page and all below it, each once, in the order of the tables of contents."""
    seen = set()
    waiting = [document]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            yield current
            waiting += reversed(environment.toctree_includes.get(current, []))


def is_aside(node: nodes.Node | None) -> bool:
    """Return whether a node is in a table, a note or the like."""
    # Docutils treats the description of a name as an admonition.
    while node is not None and (
        isinstance(node, addnodes.desc) or not isinstance(node, nodes.table | nodes.Admonition)
    ):
        node = node.parent
    return node is not None


def first_sentence(tree: nodes.document) -> str:
    """Return the first sentence of a page's text, without tables, notes and bases."""
    for paragraph in tree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if not is_aside(paragraph) and not text.startswith("Bases: "):
            found = SENTENCE.match(text)
            return (found[1] if found else text)[:LONGEST].rstrip(":")
    return ""


def line_of(environment: Any, document: str, link: str) -> str:
    """Return the line of llms.txt about one page."""
    title = environment.titles[document].astext()
    sentence = first_sentence(environment.get_doctree(document))
    return f"- [{title}]({link})" + (f": {sentence}" if sentence else "")


def source_of(environment: Any, document: str) -> str:
    """Return a page's source."""
    return Path(environment.doc2path(document)).read_text(encoding="utf-8").strip()


def rules_of(app: Any) -> str:
    """Return the page of rules as a section: its headings one level lower, outside of its code."""
    parts = source_of(app.env, RULES).split("```")
    text = "```".join(
        part if place % 2 else HEADING.sub(r"#\1", part) for place, part in enumerate(parts)
    )

    def address(link: re.Match[str]) -> str:
        return f"]({app.config.html_baseurl}{app.builder.get_target_uri(link[1])}"

    return LINK.sub(address, text)


def index_of(app: Any) -> str:
    """Return llms.txt: the rules, and a section for each entry of the first contents."""
    environment = app.env
    root = app.config.root_doc

    def line(document: str) -> str:
        link = app.config.html_baseurl + app.builder.get_target_uri(document)
        return line_of(environment, document, link)

    sections = environment.toctree_includes.get(root, [])
    alone = [each for each in sections if not environment.toctree_includes.get(each)]
    summary = first_sentence(environment.get_doctree(root))
    parts = [f"# {app.config.project}", f"> {summary}", rules_of(app)]
    parts += ["## Pages", "\n".join(map(line, [root, *alone]))]
    for section in sections:
        if section not in alone:
            title = environment.titles[section].astext()
            below = map(line, documents_below(environment, section))
            parts.append(f"## {title}\n\n" + "\n".join(below))
    return "\n\n".join(parts) + "\n"


def full_text(app: Any) -> str:
    """Return llms-full.txt: the sources of all pages in Markdown, each under its name."""
    environment = app.env
    pages = []
    for document in documents_below(environment, app.config.root_doc):
        if environment.doc2path(document).endswith(".md"):
            text = source_of(environment, document)
            pages.append(f"<!-- {app.builder.get_target_uri(document)} -->\n\n{text}")
    return "\n\n".join(pages) + "\n"


def write(app: Any, exception: Exception | None) -> None:
    """Write both files, where pages of HTML were made."""
    if exception is None and app.builder.format == "html":
        folder = Path(app.outdir)
        folder.joinpath("llms.txt").write_text(index_of(app), encoding="utf-8")
        folder.joinpath("llms-full.txt").write_text(full_text(app), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Connect the hook."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
