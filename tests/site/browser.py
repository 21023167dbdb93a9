"""Drives a headless Chromium by its DevTools protocol, for the tests of the site.

The protocol runs over two pipes, which Chromium itself offers: neither a driver nor a package is
needed, and no port is opened. Content from servers other than the site's own cannot be loaded.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MEASURE = Path(__file__).with_name("measure.js").read_text(encoding="utf-8")
# Chromium reads commands from descriptor 3 and answers on descriptor 4.
_START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3), os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    # A site of our own needs no sandbox, and as root there is none.
    "--no-sandbox",
    "--disable-gpu",
    # Containers have little shared memory.
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    # Other servers cannot be found, as for a reader without a network.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_PATIENCE = 60.0
_WAIT = """(async () => {
    for (let i = 0; i < 500 && !(%s); i++) {
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return Boolean(%s);
})()"""


def find_chromium() -> str | None:
    """Return the path of a Chromium, or None where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@contextmanager
def start_browser(executable: str) -> Iterator[Browser]:
    """Start Chromium with a separate profile, and end it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        to_read, commands = os.pipe()
        answers, to_write = os.pipe()
        ends = (to_read, to_write)
        process = subprocess.Popen(
            [sys.executable, "-ISc", _START, *map(str, ends), executable, *_OPTIONS]
            + [f"--user-data-dir={profile}", "about:blank"],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in ends:
            os.close(end)
        try:
            yield Browser(commands, answers)
        finally:
            # Chromium ends when its pipes do.
            os.close(commands)
            os.close(answers)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclass
class Browser:
    """Commands go into one pipe; answers and events come out of the other."""

    commands: int
    answers: int
    events: list[dict[str, Any]] = field(default_factory=list)
    _unread: bytes = b""
    _count: int = 0

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer; what happens meanwhile goes to `events`."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data) :]
        while True:
            answer = self._read()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> None:
        """Read events until this one of the session has come."""
        while not any(
            event.get("method") == method and event.get("sessionId") == session
            for event in self.events
        ):
            self.events.append(self._read())

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            if not select.select([self.answers], [], [], _PATIENCE)[0]:
                raise TimeoutError("Chromium does not answer.")
            data = os.read(self.answers, 1 << 20)
            if not data:
                raise RuntimeError("Chromium has ended.")
            self._unread += data
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)

    def open(self, url: str, *, width: int, is_dark: bool = False, height: int = 900) -> Tab:
        """Load a page in a window of this width, in the reader's colour scheme."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, target, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        tab.evaluate(MEASURE)
        self.call("Page.addScriptToEvaluateOnNewDocument", session, source=MEASURE)
        tab.set_width(width, height)
        tab.set_scheme(is_dark)
        tab.go(url)
        return tab


@dataclass
class Tab:
    """One page as a reader sees it."""

    browser: Browser
    target: str
    session: str

    def go(self, url: str) -> None:
        """Load a page; of what happened before, nothing is kept."""
        self.browser.events.clear()
        self.browser.call("Page.navigate", self.session, url=url)
        self.browser.wait_for("Page.loadEventFired", self.session)
        self.evaluate("document.fonts.ready.then(() => true)")

    def evaluate(self, expression: str) -> Any:
        """Return what a JavaScript expression is, once it is there."""
        result = self.browser.call(
            "Runtime.evaluate",
            self.session,
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait_until(self, condition: str) -> bool:
        """Return whether a condition in JavaScript comes true within ten seconds."""
        return self.evaluate(_WAIT % (condition, condition))

    def set_width(self, width: int, height: int = 900) -> None:
        """Make the window as wide as that, in CSS pixels."""
        self.browser.call(
            "Emulation.setDeviceMetricsOverride",
            self.session,
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def set_scheme(self, is_dark: bool) -> None:
        """Prefer dark or light pages, and no motion."""
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.browser.call("Emulation.setEmulatedMedia", self.session, features=features)

    def screenshot(self, file: Path, *, is_whole: bool = False) -> None:
        """Write a picture of what is seen, or of the whole page."""
        import base64

        data = self.browser.call(
            "Page.captureScreenshot", self.session, captureBeyondViewport=is_whole
        )
        file.write_bytes(base64.b64decode(data["data"]))

    def complaints(self, origin: str) -> list[str]:
        """Return errors on the console, and requests that failed or went elsewhere."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            what = event["params"]
            match event["method"]:
                case "Runtime.exceptionThrown":
                    found.append(f"exception: {_told(what['exceptionDetails'])}")
                case "Runtime.consoleAPICalled" if what["type"] in ("error", "assert"):
                    found.append(f"console: {[each.get('value') for each in what['args']]}")
                case "Log.entryAdded" if what["entry"]["level"] == "error":
                    found.append(f"log: {what['entry']['text']} {what['entry'].get('url', '')}")
                case "Network.requestWillBeSent":
                    url = what["request"]["url"]
                    if not url.startswith((origin, "data:", "blob:", "about:")):
                        found.append(f"asks another server: {url}")
        return found

    def close(self) -> None:
        """Close the page."""
        self.browser.call("Target.closeTarget", targetId=self.target)


def _told(details: dict[str, Any]) -> str:
    return details.get("exception", {}).get("description") or details["text"]
