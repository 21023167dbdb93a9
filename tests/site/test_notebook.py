"""Displays of the package in a real JupyterLab: models, plans, progress and errors.

`SKDPTUNE_JUPYTER` is a Python that has JupyterLab, of the same version as that of the tests. Its
kernel imports all other packages from the environment of the tests:

    python3 -m venv /tmp/jupyter && /tmp/jupyter/bin/python -m pip install jupyterlab skore
    SKDPTUNE_JUPYTER=/tmp/jupyter/bin/python python -m pytest tests/site/test_notebook.py
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.site.browser import Tab, find_chromium, start_browser

CELLS = [
    """
import numpy as np
from skdptune import DPGridSearchCV, DPLogisticRegression, config_context
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 3))
y = (X[:, 0] > 0).astype(int)
DPLogisticRegression(epsilon=1.0, delta=1e-6, classes=[0, 1]).fit(X, y)
""",
    """
search = DPGridSearchCV(
    DPLogisticRegression(classes=[0, 1]), {"C": [0.1, 1.0]}, epsilon=1.0, delta=1e-6, verbose=1,
    strategy="table",
)
search.plan(3000, 3, compare=True)
""",
    "with config_context(ledger=False):\n    fitted = search.fit(X, y)\nfitted",
    "DPLogisticRegression(epsilon=-1.0).fit(X, y)",
]
SETTINGS = {
    # No requests to other servers, all cells on the page, and the reader's colours.
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "apputils-extension/themes": {"adaptive-theme": True},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
FRAMES = "output(3).match(/File [^\\n]*skdptune[^\\n]*/g)"
OUTPUT = """
const cells = () => [...document.querySelectorAll('.jp-Notebook .jp-CodeCell')];
const area = (place) => cells()[place].querySelector('.jp-Cell-outputArea');
const output = (place) => area(place)?.innerText ?? '';
"""


def write_notebook(file: Path) -> None:
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{place}",
            "metadata": {},
            "source": source.strip(),
            "outputs": [],
            "execution_count": None,
        }
        for place, source in enumerate(CELLS)
    ]
    kernel = {"name": "tested", "display_name": "tested", "language": "python"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}}
    file.write_text(json.dumps(notebook | {"nbformat": 4, "nbformat_minor": 5}))


def write_settings(folder: Path, python: str) -> dict[str, str]:
    """Write the kernel and the settings, and return the environment that names them."""
    for name, setting in SETTINGS.items():
        file = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(setting))
    kernel = folder / "data" / "kernels" / "tested"
    kernel.mkdir(parents=True)
    root = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join([root, *(path for path in sys.path if path.endswith("-packages"))])
    (kernel / "kernel.json").write_text(
        json.dumps(
            {
                "argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                "display_name": "tested",
                "language": "python",
                "env": {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            }
        )
    )
    folders = {"JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTER_DATA_DIR": "data"}
    folders |= {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_RUNTIME_DIR": "runtime"}
    # The kernel drops frames as a user's does, though those of tests are kept.
    given = {name: value for name, value in os.environ.items() if name != "SKDPTUNE_TRACEBACKS"}
    return {**given, **{name: str(folder / place) for name, place in folders.items()}}


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a JupyterLab with the notebook, only for this machine."""
    python = os.environ.get("SKDPTUNE_JUPYTER")
    if not python:
        if os.environ.get("SKDPTUNE_TEST_BROWSER") == "required":
            pytest.fail("SKDPTUNE_JUPYTER names no Python with JupyterLab.")
        pytest.skip("SKDPTUNE_JUPYTER names no Python with JupyterLab.")
    folder = tmp_path_factory.mktemp("lab")
    (folder / "root").mkdir()
    write_notebook(folder / "root" / "tuning.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--no-browser", "--allow-root", "--expose-app-in-browser", "--ip=127.0.0.1")
    options += (f"--port={port}", "--IdentityProvider.token=", f"--notebook-dir={folder}/root")
    server = subprocess.Popen(
        [python, "-m", "jupyterlab", *options],
        env=write_settings(folder, python),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/api", server)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait(30)


def wait_for(url: str, server: subprocess.Popen[Any]) -> None:
    for _ in range(600):
        with suppress(OSError), urllib.request.urlopen(url):
            return
        assert server.poll() is None, "JupyterLab has ended."
        time.sleep(0.1)
    pytest.fail("JupyterLab does not start.")


@pytest.fixture(scope="module")
def tab(origin: str) -> Iterator[Tab]:
    """Return the notebook in a browser, with all of its cells run."""
    executable = find_chromium()
    if executable is None:
        if os.environ.get("SKDPTUNE_TEST_BROWSER") == "required":
            pytest.fail("There is no Chromium.")
        pytest.skip("There is no Chromium.")
    with start_browser(executable) as browser:
        tab = browser.open(f"{origin}lab/tree/tuning.ipynb", width=1280, height=3000)
        ready = f"document.querySelectorAll('.jp-CodeCell').length >= {len(CELLS)}"
        patiently(tab, f"window.jupyterapp && {ready}")
        # Cells that run before the kernel is connected are lost.
        kernel = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel"
        patiently(tab, f"{kernel}?.status === 'idle'")
        patiently(tab, f"{kernel}.connectionStatus === 'connected'")
        tab.evaluate("void jupyterapp.commands.execute('notebook:run-all-cells')")
        tab.evaluate(f"window.eval({json.dumps(OUTPUT.replace('const ', 'var '))})")
        patiently(tab, "output(3).includes('Error')")
        yield tab


def patiently(tab: Tab, condition: str) -> None:
    if not any(tab.wait_until(f"Boolean({condition})") for _ in range(20)):
        pytest.fail(f"{condition} stays false in: {tab.evaluate('document.body.innerText')}")


# One test: processes that share the tests of the site would each start a JupyterLab.
def test_a_notebook_shows_models_plans_progress_and_errors(tab: Tab, tmp_path: Path) -> None:
    assert "DPLogisticRegression" in tab.evaluate("output(0)")
    assert tab.evaluate("area(0).querySelectorAll('.sk-estimator').length") >= 1
    # A plan is a table, whose first row is the search.
    assert tab.evaluate("area(1).querySelectorAll('tbody tr').length") >= 4
    assert "DPGridSearchCV" in tab.evaluate("area(1).querySelector('tbody tr').innerText")
    # Progress ends in one line above the result.
    lines = tab.evaluate("area(2).querySelector('[data-mime-type*=stderr]').innerText")
    assert len(lines.strip().splitlines()) == 1
    assert "DPGridSearchCV" in lines
    assert "best_estimator_: DPLogisticRegression" in tab.evaluate("output(2)")
    # An error has one frame of the package, that of `fit`.
    assert tab.evaluate(f"{FRAMES}.length") == 1
    assert "ValueError: epsilon must be" in tab.evaluate("output(3)")
    for is_dark in (False, True):
        tab.set_scheme(is_dark)
        theme = "false" if is_dark else "true"
        splash = "document.querySelector('#jupyterlab-splash')"
        patiently(tab, f"document.body.dataset.jpThemeLight === '{theme}' && !{splash}")
        folder = Path(os.environ.get("SKDPTUNE_PICTURES", tmp_path))
        tab.screenshot(folder / f"notebook-{'dark' if is_dark else 'light'}.png")
        for place in range(3):
            low = tab.evaluate(f"siteMeasures.lowContrast(area({place}))")
            assert low["checked"] > 1
            # A link to a class without a page is scikit-learn's own, and prompts JupyterLab's.
            foreign = ("sk-estimator-doc-link", "jp-OutputPrompt")
            assert [each for each in low["found"] if not any(one in each for one in foreign)] == []
