"""Folders do not use each other's private modules, and imports have no cycles.

A *room* is a private package such as ``skdptune.linear_model._solvers``, whose ``__init__`` names
what others may use. The source is read, not run, so that an import inside a function counts as
well.
"""

from __future__ import annotations

import ast
import importlib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.structure import PACKAGE, Module, is_within, module_of, our_modules, read_package, write


def test_nobody_reaches_past_an_init() -> None:
    assert reaching_past(our_modules()) == []


def test_nobody_asks_the_folder_it_is_in() -> None:
    assert asking_own_folder(our_modules()) == []


def test_a_folder_shows_public_names_alone() -> None:
    for init in sorted(PACKAGE.glob("*/__init__.py")):
        module = importlib.import_module(f"skdptune.{init.parent.name}")
        tree = ast.parse(init.read_text(encoding="utf-8"))
        shown = {
            (alias.asname or alias.name)
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and node.module != "typing"
            for alias in node.names
        }
        assert {name for name in shown if name[0] != "_"} <= set(module.__all__), init


def test_what_is_shared_has_a_user_in_another_folder() -> None:
    modules = our_modules()
    used = {
        imported.name
        for module in modules.values()
        for imported in module.imports
        if module.package.split(".")[:2] != imported.name.split(".")[:2]
    }
    for name, module in modules.items():
        if name.endswith("._shared"):
            found = {imported.name.rpartition(".")[2] for imported in module.imports}
            assert not {one for one in found if f"{name}.{one}" not in used}


def test_what_a_room_shows_has_a_user_outside() -> None:
    modules = our_modules()
    for name, room in modules.items():
        if room.is_init and name.rpartition(".")[2][0] == "_":
            used = {
                imported.name
                for module in modules.values()
                for imported in module.imports
                if not is_within(module.package, name)
            }
            found = {imported.name.rpartition(".")[2] for imported in room.imports}
            assert not {one for one in found if f"{name}.{one}" not in used}, name


def test_modules_import_in_no_circle() -> None:
    assert circles(module_graph(our_modules())) == []


def test_rooms_import_in_no_circle() -> None:
    modules = our_modules()
    folders = {module.package for module in modules.values()}
    assert {folder: found for folder in folders if (found := room_circles(folder, modules))} == {}


def reaching_past(modules: dict[str, Module]) -> list[str]:
    """Return each import of a private name from outside the package that holds it.

    These are: a room's module imported by another room, a room or a module of one public folder
    imported by another, and a private name of another module.
    """
    found = []
    for module in modules.values():
        for imported in module.imports:
            holder = private_holder(imported.name)
            if holder and not is_within(module.package, holder):
                found.append(f"{module.file.as_posix()} imports {imported.name}")
    return found


def private_holder(name: str) -> str | None:
    """Return the innermost package or module to whose private names a dotted name belongs."""
    parts = name.split(".")
    # Other folders use the module `_shared` of a folder.
    shown = [part.removeprefix("_") if part == "_shared" else part for part in parts]
    private = [i for i, part in enumerate(shown) if part[0] == "_" and not part.startswith("__")]
    return ".".join(parts[: private[-1]]) if private and parts[0] == "skdptune" else None


def asking_own_folder(modules: dict[str, Module]) -> list[str]:
    """Return each import of a package from inside it, which its ``__init__`` may still be loading.

    If the ``__init__`` loads its modules on demand, no graph shows the cycle.
    """
    return [
        f"{module.file.as_posix()} imports {imported.name}"
        for module in modules.values()
        for imported in module.imports
        if (asked := module_of(imported.name, modules))
        and asked != module.name
        and is_within(module.package, asked)
        and not imported.for_types_alone
    ]


def module_graph(modules: dict[str, Module]) -> dict[str, set[str]]:
    """Return the imports of each module, at any time, except those only for types."""
    return {
        module.name: {
            target
            for imported in module.imports
            if not imported.for_types_alone
            and (target := module_of(imported.name, modules))
            and target != module.name
        }
        for module in modules.values()
    }


def room_circles(folder: str, modules: dict[str, Module]) -> list[str]:
    """Return the cycles among the rooms and modules that are directly in a folder."""
    depth = folder.count(".") + 2
    graph: dict[str, set[str]] = {}
    for name, targets in module_graph(modules).items():
        rooms = {
            ".".join(each.split(".")[:depth])
            for each in (name, *targets)
            if is_within(each, folder) and each != folder
        }
        if is_within(name, folder) and name != folder:
            room = ".".join(name.split(".")[:depth])
            graph.setdefault(room, set()).update(rooms - {room})
    return circles(graph)


def circles(graph: dict[str, set[str]]) -> list[str]:
    """Return cycles of a graph until none is left; each is cut where it was found."""
    graph = {name: set(targets) for name, targets in graph.items()}
    found = []
    while circle := first_circle(graph):
        found.append(" -> ".join(circle))
        graph[circle[0]].remove(circle[1])
    return found


def first_circle(graph: dict[str, set[str]]) -> list[str]:
    """Return a cycle, whose last member imports the first; empty if none is left."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        circle: list[str] = problem.args[1]
        return circle[::-1]
    return []


def made_up(folder: Path, files: dict[str, str]) -> dict[str, Module]:
    """Return the modules of a package of these files, with an ``__init__`` in every folder."""
    for name, source in files.items():
        write(folder / name, source)
    for inside in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
        if not (inside / "__init__.py").exists():
            write(inside / "__init__.py", "")
    return read_package(folder)


PAST = [
    # A room's module, imported by another room and from one room deeper.
    ("base/_other/_x.py", "from .._room._a import A"),
    ("base/_room/_x.py", "from skdptune.base._room._inner._b import B"),
    # A folder's private module, and a private name of another module.
    ("metrics/_x.py", "def f():\n    from skdptune.base._costs import cost_of"),
    ("base/_x.py", "from skdptune.base._costs import _cost"),
]
FRONT_DOOR = [
    ("base/_room/_x.py", "from skdptune.base._room._a import A\nfrom . import _a"),
    ("base/_room/_inner/_x.py", "from skdptune.base._room._a import A"),
    ("base/__init__.py", "from skdptune.base._room import A\nfrom ._costs import cost_of"),
    ("metrics/_x.py", "from skdptune._validation import check\nfrom .. import _formatting"),
    ("metrics/_x.py", "from sklearn.utils.validation import _num_samples"),
]
OWN_FOLDER = [
    ("base/_x.py", "def f():\n    from . import A"),
    ("base/_room/_x.py", "from skdptune.base import A"),
]


@pytest.mark.parametrize(
    ("rule", "file", "source", "count"),
    [
        *((reaching_past, *case, 1) for case in PAST),
        *((reaching_past, *case, 0) for case in FRONT_DOOR),
        *((asking_own_folder, *case, 1) for case in OWN_FOLDER),
    ],
)
def test_imports_past_an_init_are_found(tmp_path, rule, file, source, count) -> None:
    found = rule(made_up(tmp_path, {file: source}))
    assert len(found) == count and all(file in line for line in found)


@pytest.mark.parametrize(
    "files",
    [
        {"base/_a.py": "from . import _b", "base/_b.py": "def f():\n    from . import _a"},
        {
            "base/_a.py": "from ._b import B",
            "base/_b.py": "from ._room import C",
            "base/_room/__init__.py": "from skdptune.base._room._c import C",
            "base/_room/_c.py": "from skdptune.base._a import A",
        },
    ],
)
def test_circle_of_modules_is_caught(tmp_path: Path, files: dict[str, str]) -> None:
    (circle,) = circles(module_graph(made_up(tmp_path, files)))
    first, *others = circle.split(" -> ")
    assert others[-1] == first
    assert len(set(others)) == len(others) == len(files)


def test_imports_for_types_make_no_circle(tmp_path: Path) -> None:
    types = "if TYPE_CHECKING:\n    from . import _a"
    files = {"base/_a.py": "from ._b import B", "base/_b.py": types}
    assert circles(module_graph(made_up(tmp_path, files))) == []


def test_circle_of_rooms_is_caught_where_its_modules_have_none(tmp_path: Path) -> None:
    files = {
        "base/_room/_one/_a.py": "from skdptune.base._room._two import B",
        "base/_room/_one/_c.py": "C = 1",
        "base/_room/_two/_b.py": "B = 1",
        "base/_room/_two/_d.py": "def f():\n    from skdptune.base._room._one import C",
    }
    modules = made_up(tmp_path, files)
    assert circles(module_graph(modules)) == room_circles("skdptune.base", modules) == []
    (circle,) = room_circles("skdptune.base._room", modules)
    assert set(circle.split(" -> ")) == {"skdptune.base._room._one", "skdptune.base._room._two"}


def test_every_circle_is_named() -> None:
    graph = {"a": {"b"}, "b": {"a", "c"}, "c": {"c2"}, "c2": {"c", "d"}, "d": set()}
    assert len(circles(graph)) == 2
