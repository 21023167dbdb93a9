"""Fail if installing a requirement would bring a package that the constraints do not pin.

Nothing is installed: pip only resolves. Usage, with any environment's Python:
``python .ci/unpinned.py constraints.txt ".[all]"``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

# What a torch built for CUDA brings differs between platforms and comes pinned by torch itself.
BROUGHT_BY_TORCH = re.compile(r"nvidia-.*|cuda-.*|triton")


def canonical(name: str) -> str:
    """Return the name of a distribution as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def resolve(constraints: str, requirement: str) -> set[str]:
    """Return the names of all packages that pip would install."""
    options = ["--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    command = [sys.executable, "-m", "pip", "install", *options, "-c", constraints, requirement]
    report = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {canonical(item["metadata"]["name"]) for item in json.loads(report)["install"]}


def main(constraints: str, requirement: str) -> int:
    """Print what is not pinned; return the exit status."""
    lines = Path(constraints).read_text(encoding="utf-8").splitlines()
    pinned = {canonical(line.partition("==")[0]) for line in lines if "==" in line}
    found = resolve(constraints, requirement)
    unpinned = sorted(
        name for name in found - pinned - {"skdptune"} if not BROUGHT_BY_TORCH.fullmatch(name)
    )
    print(f"{requirement}: {len(found)} packages, not pinned in {constraints}:", *unpinned or "-")
    return 1 if unpinned else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
