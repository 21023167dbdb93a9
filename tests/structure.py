"""Reads a package's source, without running it, for the tests of its structure.

Each file is read once. The result is a list of modules, each with the names that it imports and
when.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import skdptune

ROOT_NAME = "skdptune"
PACKAGE = Path(inspect.getfile(skdptune)).parent


@dataclass(frozen=True)
class Import:
    """One name that a module imports, in full: ``from a import b`` imports ``a.b``."""

    name: str
    runs_at_import: bool
    for_types_alone: bool


@dataclass(frozen=True)
class Module:
    """One source file: its path inside the package, and its content."""

    file: Path
    tree: ast.Module

    @property
    def name(self) -> str:
        parts = (ROOT_NAME, *self.file.with_suffix("").parts)
        return ".".join(parts[:-1] if self.is_init else parts)

    @property
    def is_init(self) -> bool:
        return self.file.name == "__init__.py"

    @property
    def package(self) -> str:
        """Return the package in which the module is; an ``__init__`` is in its own."""
        return self.name if self.is_init else parent(self.name)

    @cached_property
    def imports(self) -> list[Import]:
        return list(self._imports_below(self.tree))

    def _imports_below(
        self, node: ast.AST, at_import: bool = True, for_types: bool = False
    ) -> Iterator[Import]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (Import(name, at_import, for_types) for name in self._names(node))
        at_import &= not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        only_types = list(node.body) if is_type_checking(node) else []  # type: ignore[attr-defined]
        for child in ast.iter_child_nodes(node):
            # Expressions, which are most of a tree, hold no imports.
            if not isinstance(child, ast.expr):
                yield from self._imports_below(child, at_import, for_types or child in only_types)

    def _names(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            return
        # One dot is the module's own package, every further dot a package above it.
        base = self.package.split(".")[: len(self.package.split(".")) - node.level + 1]
        start = [*(base if node.level else []), *([node.module] if node.module else [])]
        yield from (".".join([*start, alias.name]) for alias in node.names)


def is_type_checking(node: ast.AST) -> bool:
    """Return whether a node is ``if TYPE_CHECKING:``, whose body never runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def parent(name: str) -> str:
    """Return the package that contains the object with a dotted name."""
    return name.rpartition(".")[0]


def is_within(name: str, package: str) -> bool:
    """Return whether a dotted name is a package or names something inside it."""
    return f"{name}.".startswith(f"{package}.")


def read_package(folder: Path) -> dict[str, Module]:
    """Return the modules below the folder of a package, by their dotted names."""
    modules = (
        Module(path.relative_to(folder), ast.parse(path.read_text("utf-8"), filename=str(path)))
        for path in sorted(folder.rglob("*.py"))
    )
    return {module.name: module for module in modules}


@cache
def our_modules() -> dict[str, Module]:
    """Return the modules of the package itself."""
    return read_package(PACKAGE)


def module_of(name: str, modules: dict[str, Module]) -> str | None:
    """Return the module of an imported name; None for other libraries."""
    while name and name not in modules:
        name = parent(name)
    return name or None


def write(path: Path, source: str) -> None:
    """Write a file of a made-up package."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
