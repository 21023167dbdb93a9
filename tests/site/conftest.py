"""Finds the built site and a browser for the tests of the site.

`SKDPTUNE_SITE` is the folder into which Sphinx has built; without it these tests skip. They need
Chromium, and skip without it unless `SKDPTUNE_TEST_BROWSER` is "required":

    SKDPTUNE_SITE=docs/_build/html python -m pytest tests/site
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.site.browser import Browser, find_chromium, start_browser


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
