"""Prose, docstrings and messages avoid constructions that readers stumble over.

A pattern points at a place to look at: some uses are good English, so a few findings are allowed.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Findings in 1,000 lines of prose; one is always allowed. Tests also quote such texts.
MOST, MOST_OF_TESTS = 3.0, 8.0
LEAST_WORDS = 4  # shorter texts are names and units

# What to write instead of what the pattern finds.
HABITS = {
    "only": r"(?<!not )(?<!leave )(?<!left )\balone\b",
    "separately": r"\bby (itself|themselves)\b",
    "in addition to, next to, relative to": r"\bbeside\b",
    "this many, twice as many": r"\bso (many|much)\b(?! (as|that))|\bas (many|much)[.,;:]",
    "a noun in place of a clause with what": r"\bwhat (it|this|they) (takes?|says?|does?)\b",
    "is not a": r"(?<![Tt]here )\b(is|are|was|were) no (?!longer|more|need|way|one|such)\w+",
    "given, classified; only people are told": r"\b(is|are|was|were|be) told\b",
    "everything else, except for": r"\b(all else|but for)\b",
    "silently": r"\bwithout a word\b",
    "its own, a separate": r"\bof (its|their|one's) own\b",
    "missing values": r"\bgaps\b",
    "expensive, more expensive": r"\bdear(er|est)?\b",
    "the subject": r"\b(Whoever|Whatever|Whichever)\b",
    "finally, anyway, almost not": r"\b(at last|all the same|hardly)\b",
    "must be": r"\b(is|are) to be \w+ed\b",
}
ANY = re.compile("|".join(HABITS.values()))
FOLDERS = sorted(ROOT.glob("skdptune/*/__init__.py"))
AREAS = {
    "pages": ("*.md", "docs/**/*.md", "docs/**/*.rst"),
    "theorems": ("docs/theorems.md",),
    "package's root": ("skdptune/*.py",),
    **{path.parent.name: (f"skdptune/{path.parent.name}/**/*.py",) for path in FOLDERS},
    "tests": ("tests/**/*.py",),
    "examples": ("examples/*.py", "examples/*.rst"),
    "benchmarks": ("benchmarks/*.py",),
}


def lines_of_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page without code, formulas and tables."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "$$")):
            is_code = not is_code
        elif line.strip() and not is_code and not line.startswith(("|", "    ")):
            yield number, re.sub(r"`[^`]*`", "", line)


def lines_of_module(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of docstrings and comments, and messages."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            lines = node.value.splitlines()
            if len(lines) > 1 or len(node.value.split()) >= LEAST_WORDS:
                for place, line in enumerate(lines):
                    if line.strip() and not line.lstrip().startswith((">>>", "...")):
                        yield node.lineno + place, line
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def habits_of(line: str) -> list[str]:
    """Return what to write instead, for each habit in a line."""
    if not ANY.search(line):
        return []
    return [better for better, pattern in HABITS.items() if re.search(pattern, line)]


@pytest.mark.parametrize("area", AREAS)
def test_prose_is_plain(area: str) -> None:
    paths = {path for pattern in AREAS[area] for path in ROOT.glob(pattern)}
    made = {"_build", "auto_examples", "generated"}
    found, count = [], 0
    for path in sorted(paths):
        # This file consists of such texts.
        if made.isdisjoint(path.parts) and path != Path(__file__):
            read = lines_of_module if path.suffix == ".py" else lines_of_page
            for number, line in read(path.read_text(encoding="utf-8")):
                count += 1
                place = f"{path.relative_to(ROOT)}:{number}"
                found += [f"{place}: {better}? {line.strip()}" for better in habits_of(line)]
    if not count:
        pytest.skip("not in this copy")
    most = MOST_OF_TESTS if area == "tests" else MOST
    assert len(found) <= max(most * count / 1000.0, 1.0), "\n".join(found)


@pytest.mark.parametrize(
    ("line", "better"),
    [
        ("Rows of other labels teach nothing, without a word.", ["silently"]),
        ("Words and gaps are handled by itself.", ["separately", "missing values"]),
        (
            "An estimator that is no classifier, hardly",
            ["is not a", "finally, anyway, almost not"],
        ),
        ("It is no longer needed, and not alone.", []),
    ],
)
def test_habits_are_found(line: str, better: list[str]) -> None:
    assert habits_of(line) == better


def test_lines_are_those_that_people_read() -> None:
    page = "# Title\n\nSome `beside` code\n```\nbeside\n```\n| beside |\n"
    assert list(lines_of_page(page)) == [(1, "# Title"), (3, "Some  code")]
    module = (
        '"""Say.\n\n>>> beside\n"""\nname = "beside"\nraise ValueError("this is a text")  # why\n'
    )
    assert sorted(lines_of_module(module)) == [(1, "Say."), (6, "# why"), (6, "this is a text")]
