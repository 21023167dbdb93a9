"""Statements in docs/theorems.md, code and tests refer to each other in all directions.

Sources are read, not run, so that no extra needs to be installed.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.structure import PACKAGE

ROOT = Path(__file__).resolve().parents[1]
LEDGER = ROOT / "docs" / "theorems.md"
# The package may be installed elsewhere than its tests.
CODE_ROOT = PACKAGE.parent
FIELDS = ("Statement", "Source", "Proof", "Code", "Tests")
HEADING = re.compile(r"^### (Theorem|Assumption) ([A-Z][0-9]+)\. (\S.*)$", re.MULTILINE)
CITATION = re.compile(r"\b(Theorem|Assumption)(s?)\s+([A-Z][0-9]*)\b")
OF_A_PAPER = re.compile(r"\bTheorems?\s+[0-9]")
YEAR = re.compile(r"\b(?:19|20)[0-9]{2}\b")


@dataclass(frozen=True)
class Entry:
    """One entry of the ledger: its kind, its identifier, and the text of each of its fields."""

    kind: str
    name: str
    title: str
    fields: dict[str, str]

    @property
    def label(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def anchor(self) -> str:
        """Return the heading's anchor, as GitHub makes it."""
        heading = f"{self.label}. {self.title}".lower()
        return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")

    def paths(self, field: str) -> list[str]:
        return re.findall(r"`([^`]+)`", self.fields.get(field, ""))


def parse(text: str) -> list[Entry]:
    """Return the entries of a ledger, in order."""
    found = list(HEADING.finditer(text))
    entries = []
    for heading in found:
        body = re.split(r"^#{1,3} ", text[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0]
        pieces = re.split(rf"^\*({'|'.join(FIELDS)})[.:]+\*", body, flags=re.MULTILINE)
        fields = dict(zip(pieces[1::2], (piece.strip() for piece in pieces[2::2]), strict=True))
        entries.append(Entry(heading[1], heading[2], heading[3], fields))
    return entries


@functools.cache
def citations(text: str) -> frozenset[str]:
    """Return what a text cites, such as "Theorem S1"."""
    return frozenset(f"{kind}{plural} {name}" for kind, plural, name in CITATION.findall(text))


@functools.cache
def read(path: Path) -> tuple[str, list[str], ast.Module]:
    text = path.read_text("utf-8")
    return text, text.splitlines(), ast.parse(text)


def find(names: list[str], nodes: list[ast.stmt]) -> ast.stmt | None:
    """Return the class, function or variable of a dotted name."""
    for node in nodes:
        known = [node.name] if isinstance(node, ast.ClassDef | ast.FunctionDef) else []
        known += [target.id for target in getattr(node, "targets", []) if hasattr(target, "id")]
        if names[0] in known:
            return node if len(names) == 1 else find(names[1:], getattr(node, "body", []))
    return None


def source_of(names: list[str], path: Path) -> str | None:
    """Return the lines of an object of a module, including comments right above it, or None."""
    text, lines, tree = read(path)
    if not names:
        return text
    node = find(names, tree.body)
    if node is None:
        return None
    decorators = getattr(node, "decorator_list", [])
    first = min(part.lineno for part in (*decorators, node)) - 1
    while first > 0 and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return "\n".join(lines[first : node.end_lineno])


def citations_of_code(dotted: str, root: Path = ROOT) -> frozenset[str] | None:
    """Return the citations of an object of the package; None if it does not exist."""
    parts = dotted.split(".")
    root = CODE_ROOT if root == ROOT else root
    for size in range(len(parts), 0, -1):
        base = root.joinpath(*parts[:size])
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                source = source_of(parts[size:], path)
                return None if source is None else citations(source)
    return None


def citations_of_test(test_id: str, root: Path = ROOT) -> frozenset[str] | None:
    """Return the citations of a test or its class; None if there is no such test."""
    file, *names = test_id.split("::")
    path = root / file
    if not path.is_file() or not all(name.lower().startswith("test") for name in names):
        return None
    source = source_of(names, path)
    if source is None:
        return None
    around = find(names[:1], read(path)[2].body) if names[1:] else None
    heading = (ast.get_docstring(around) or "") if isinstance(around, ast.ClassDef) else ""
    return citations(source) | citations(heading)


def complaints(entries: list[Entry], root: Path = ROOT) -> Iterator[str]:
    """Yield one line for everything missing in an entry, or in its code and tests."""
    for name, count in Counter(entry.name for entry in entries).items():
        if count > 1:
            yield f"{name} names {count} entries"
    for entry in entries:
        if not entry.fields.get("Statement"):
            yield f"{entry.label} has no statement"
        if not (entry.fields.get("Source") or entry.fields.get("Proof")):
            yield f"{entry.label} has neither source nor proof"
        if not entry.paths("Code"):
            yield f"{entry.label} names no code"
        if not entry.paths("Tests") and entry.kind == "Theorem":
            yield f"{entry.label} names no test"
        for field, find_citations in (("Code", citations_of_code), ("Tests", citations_of_test)):
            for path in entry.paths(field):
                cited = find_citations(path, root)
                if cited is None:
                    yield f"{entry.label} names {path}, which is not there"
                elif entry.label not in cited:
                    yield f"{entry.label} is not cited by {path}"


def unknown_citations(text: str, known: set[str]) -> list[str]:
    """Return citations of a text for which there is no entry."""
    return sorted(citations(text) - known)


def nameless_theorems(text: str) -> list[str]:
    """Return theorems of papers that are cited without authors and year shortly before."""
    return [
        text[match.start() : match.end() + 10].splitlines()[0]
        for match in OF_A_PAPER.finditer(text)
        if not YEAR.search(text[max(match.start() - 200, 0) : match.start()])
    ]


def bare_names(text: str) -> set[str]:
    """Return identifiers that a ledger uses without "Theorem", outside of code and formulas."""
    plain = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    return set(re.findall(r"(?<![\w.])[A-Z][0-9]+(?![\w.]*[\w])", plain))


def broken_anchors(text: str, entries: list[Entry]) -> set[str]:
    """Return links to anchors that are not a heading of the ledger."""
    anchors = {entry.anchor for entry in entries}
    links = re.findall(r"\]\((?:\S*theorems\.md)?#([^)\s]+)\)", text)
    return {link for link in links if link not in anchors}


@functools.cache
def ledger() -> list[Entry]:
    return parse(LEDGER.read_text("utf-8"))


def files() -> list[Path]:
    """Return all files that may cite an entry, without this one and its wrong examples."""
    folders = [ROOT / name for name in ("tests", "benchmarks", "examples")]
    folders.append(CODE_ROOT / "skdptune")
    sources = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    texts = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
    return [path for path in (*sources, *texts) if path != Path(__file__).resolve()]


def test_every_entry_has_code_and_tests_that_cite_it() -> None:
    assert len(ledger()) >= 55
    found = list(complaints(ledger()))
    assert not found, "\n".join(found)


def test_every_citation_has_an_entry() -> None:
    # Each citation has its whole name, "Theorem S1, Theorem S5", so that a text search finds it.
    known = {entry.label for entry in ledger()}
    found = {
        str(path): unknown
        for path in files()
        if (unknown := unknown_citations(path.read_text("utf-8"), known))
    }
    assert found == {}


def test_theorems_of_papers_are_named_with_their_year() -> None:
    found = {
        str(path): nameless
        for path in files()
        if (nameless := nameless_theorems(path.read_text("utf-8")))
    }
    assert found == {}


def test_ledger_lists_every_entry_in_its_table_and_names_no_other() -> None:
    text, names = LEDGER.read_text("utf-8"), [entry.name for entry in ledger()]
    rows = re.findall(r"^\| \[([A-Z][0-9]+)\]\(#(\S+)\)", text, re.MULTILINE)
    assert rows == [(entry.name, entry.anchor) for entry in ledger()]
    assert bare_names(text) <= set(names)
    # Every heading was recognised.
    assert text.count("\n### ") == len(names)


def test_links_into_the_ledger_lead_somewhere() -> None:
    texts = {path: path.read_text("utf-8") for path in files() if path.suffix == ".md"}
    broken = {path.name: broken_anchors(text, ledger()) for path, text in texts.items()}
    assert {name: links for name, links in broken.items() if links} == {}


GOOD = """
### Theorem A1. A sum (default)

*Statement.* One `and` one.

*Proof.* Count. ∎

*Code:* `package.sums.add` and, of the class,
`package.sums.Sum.of`.

*Tests:* `tests/test_sums.py::test_add`, `tests/test_sums.py::TestSum::test_of`.
"""
CODE = '''
@decorated
def add(one, two):
    """Return a sum.

    Notes
    -----
    Theorem A1.
    """


class Sum:
    def of(self):
        # Theorem A1, Assumption A2.
        return 2
'''
TESTS = '''
def test_add():
    # Theorem A1.
    assert 1 + 1 == 2


class TestSum:
    """Theorem A1."""

    def test_of(self):
        assert 1 + 1 == 2
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return the root of a package of one module, with its test."""
    for name, text in (("package/sums.py", CODE), ("tests/test_sums.py", TESTS)):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(text, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("good", "bad", "complaint"),
    [
        ("*Statement.*", "", "has no statement"),
        ("*Proof.*", "", "has neither source nor proof"),
        ("*Code:*", "Code:", "names no code"),
        ("*Tests:*", "Tests:", "names no test"),
        ("sums.add", "sums.plus", "package.sums.plus, which is not there"),
        ("package.sums.add", "package.add", "package.add, which is not there"),
        ("test_add", "test_plus", "test_plus, which is not there"),
        ("A1. A", "A2. A", "Theorem A2 is not cited by package.sums.add"),
        ("Theorem A1", "Assumption A1", "Assumption A1 is not cited by tests/test_sums.py"),
    ],
)
def test_what_an_entry_lacks_is_said(tree: Path, good: str, bad: str, complaint: str) -> None:
    found = list(complaints(parse(GOOD.replace(good, bad)), tree))
    assert any(complaint in line for line in found), found


def test_what_does_not_cite_its_entry_is_said(tree: Path) -> None:
    path = tree / "tests" / "test_sums.py"
    path.write_text(TESTS.replace("Theorem A1", "Theorem A11"), "utf-8")
    assert list(complaints(parse(GOOD), tree)) == [
        "Theorem A1 is not cited by tests/test_sums.py::test_add",
        "Theorem A1 is not cited by tests/test_sums.py::TestSum::test_of",
    ]


def test_an_object_cites_by_itself_or_in_the_comment_above(tree: Path) -> None:
    path = tree / "package" / "others.py"
    text = '"""Theorem A3."""\n\n\n# A limit: Assumption A2.\nLIMIT = 1\nOTHER = 2\n'
    path.write_text(text, "utf-8")
    assert citations_of_code("package.others.LIMIT", tree) == {"Assumption A2"}
    assert citations_of_code("package.others.OTHER", tree) == set()
    assert citations_of_code("package.others", tree) == {"Theorem A3", "Assumption A2"}
    assert citations_of_code("package.others.MISSING", tree) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# Theorem A1, Theorem A1.", []),
        ("By Theorem\n    B7.", ["Theorem B7"]),
        ("Theorems A1 and A1", ["Theorems A1"]),
        ("Theorem A", ["Theorem A"]),
        ("The theorem A9, Theorem 5.2 and Theorem of A1", []),
    ],
)
def test_unknown_citation_is_found(text: str, found: list[str]) -> None:
    assert unknown_citations(text, {"Theorem A1"}) == found


def test_bare_names_and_links_are_found() -> None:
    text = "By A1 (B2), `C3` and H_1; D4's. ```\nE5\n``` See [F6](#theorem-f6-it)."
    assert bare_names(text) == {"A1", "B2", "D4", "F6"}
    assert broken_anchors(text, []) == {"theorem-f6-it"}
    assert broken_anchors("[A1](docs/theorems.md#theorem-a1-a-sum-default)", parse(GOOD)) == set()
