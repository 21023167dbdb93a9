"""Shared by the tests of displays: a fixed style, and pictures for comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.inspection import pictures

CheckPicture = Callable[[Any, str], None]


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with pictures.drawing():
        yield


@pytest.fixture
def check_picture(tmp_path: Path) -> CheckPicture:
    """Return ``check_picture(figure, name)``, for figures that are drawn during the test."""
    return partial(pictures.check_picture, folder=tmp_path)
