"""Finds the built site and a browser for the tests of the site.

`SKDPTUNE_SITE` is the folder into which Sphinx has built; without it these tests skip. They need
Chromium, and skip without it unless `SKDPTUNE_TEST_BROWSER` is "required":

    SKDPTUNE_SITE=docs/_build/html python -m pytest tests/site
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.site.browser import Browser, find_chromium, start_browser

STATIC = Path(__file__).parents[2] / "docs" / "_static"


@pytest.fixture(scope="session")
def site() -> Path:
    """Return the folder of the built site."""
    folder = os.environ.get("SKDPTUNE_SITE")
    if not folder:
        pytest.skip("SKDPTUNE_SITE names no built site.")
    return Path(folder).absolute()


@pytest.fixture(scope="session")
def browser(site: Path) -> Iterator[Browser]:
    """Return a headless Chromium, only for tests of the site, since it slows down others."""
    executable = find_chromium()
    if executable is None:
        if os.environ.get("SKDPTUNE_TEST_BROWSER") == "required":
            pytest.fail("There is no Chromium.")
        pytest.skip("There is no Chromium.")
    with start_browser(executable) as browser:
        yield browser


class _Quiet(SimpleHTTPRequestHandler):
    # Keeps connections, and lets the browser keep scripts and styles, which all pages share.
    protocol_version = "HTTP/1.1"

    def end_headers(self) -> None:
        """Say that files do not change."""
        self.send_header("Cache-Control", "max-age=600")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print no requests."""


def serve(folder: Path) -> Iterator[str]:
    """Serve a folder only to this machine, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def origin(site: Path) -> Iterator[str]:
    """Return the address at which the site is served."""
    yield from serve(site)


def serve_page(folder: Path, parts: list[str]) -> Iterator[str]:
    """Serve a page of this HTML with the site's scripts, and without the rest of the site."""
    shutil.copytree(STATIC, folder / "_static")
    head = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Page</title>'
    head += '<link rel="icon" href="data:,">'
    (folder / "index.html").write_text(head + "\n".join(parts), encoding="utf-8")
    yield from serve(folder)


def run_script(
    browser: Browser, page: str, script: str, given: str
) -> Iterator[Callable[[str, object], Any]]:
    """Yield a function: what an expression is, given `data` and these names, on an empty page."""
    tab = browser.open(page, width=400)
    tab.evaluate("document.body.replaceChildren(); globalThis.module = {}; 0")
    tab.evaluate(f"{(STATIC / script).read_text(encoding='utf-8')}; 0")

    def evaluated(expression: str, data: object) -> Any:
        return tab.evaluate(
            f"(() => {{ {given}, data = {json.dumps(data)}; return {expression}; }})()"
        )

    yield evaluated
    tab.close()
