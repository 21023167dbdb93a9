"""Pictures of benchmarks are those of their tables."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.exists(), reason="no benchmarks here")


def script(name: str) -> ModuleType:
    spec = spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_pictures_draw_what_the_tables_say() -> None:
    image = pytest.importorskip("PIL.Image")
    pictures = script("pictures")
    assert len(pictures.PICTURES) >= 8
    page = pictures.PAGE.read_text(encoding="utf-8")
    for name, made in pictures.PICTURES.items():
        looks = (name, f"{name}-dark") if name in pictures.DARK_TOO else (name,)
        for look in looks:
            with image.open(pictures.FOLDER / f"{look}.png") as drawn:
                description = drawn.text["Description"]
            fix = f"python benchmarks/pictures.py {name}"
            assert description == pictures.numbers_of(made()), fix
        assert f"(images/benchmarks/{name}.png)" in page


def test_figures_over_time_are_those_of_the_file() -> None:
    image = pytest.importorskip("PIL.Image")
    series = script("series")
    rows = series.read()
    assert {row["figure"] for row in rows} == set(series.FIGURES)
    with image.open(series.PICTURE) as drawn:
        description = drawn.text["Description"]
    assert description == series.numbers_of(series.series(rows)), "python benchmarks/series.py"


def test_figures_over_time_are_appended_and_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    series = script("series")
    file = tmp_path / "series.csv"
    for day in ("2026-01-01", "2026-01-02"):
        series.append(file, dict.fromkeys(series.FIGURES, 1.23456), day, "abc")
    found = series.series(series.read(file))
    assert found[next(iter(series.FIGURES))] == [("2026-01-01", 1.235), ("2026-01-02", 1.235)]
    series.draw(found, tmp_path / "series.png")
    assert (tmp_path / "series.png").stat().st_size > 1000
