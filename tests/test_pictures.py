"""Pictures of benchmarks are those of their tables."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "pictures.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="no benchmarks here")


def script() -> ModuleType:
    spec = spec_from_file_location("pictures", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_pictures_draw_what_the_tables_say() -> None:
    image = pytest.importorskip("PIL.Image")
    pictures = script()
    assert len(pictures.PICTURES) >= 8
    page = pictures.PAGE.read_text(encoding="utf-8")
    for name, made in pictures.PICTURES.items():
        with image.open(pictures.FOLDER / f"{name}.png") as drawn:
            description = drawn.text["Description"]
        assert description == pictures.numbers_of(made()), f"python benchmarks/pictures.py {name}"
        assert f"(images/benchmarks/{name}.png)" in page
