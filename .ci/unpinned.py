"""Fail if an environment holds a package that the constraints do not pin.

Usage, with the environment's own Python: ``python .ci/unpinned.py constraints.txt``. With a
requirement, as in ``python .ci/unpinned.py constraints.txt ".[all,diffprivlib]"``, what it would
bring counts as well. Nothing is installed: pip only resolves.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

# What a torch built for CUDA brings differs between platforms and comes pinned by torch itself.
BROUGHT_BY_TORCH = re.compile(r"nvidia-.*|cuda-.*|triton")
OURS_OR_PYTHONS = {"skdptune", "pip"}


def canonical(name: str) -> str:
    """Return the name of a distribution as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed() -> set[str]:
    """Return the names of all packages of this environment."""
    return {canonical(found.metadata["Name"]) for found in distributions()}


def brought_by(constraints: str, requirement: str) -> set[str]:
    """Return the names of all packages that pip would add to this environment."""
    options = ["--dry-run", "--quiet", "--report", "-", "-c", constraints]
    command = [sys.executable, "-m", "pip", "install", *options, requirement]
    report = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {canonical(item["metadata"]["name"]) for item in json.loads(report)["install"]}


def main(constraints: str, *requirements: str) -> int:
    """Print what is not pinned; return the exit status."""
    lines = Path(constraints).read_text(encoding="utf-8").splitlines()
    pinned = {canonical(line.partition("==")[0]) for line in lines if "==" in line}
    found = installed().union(*(brought_by(constraints, each) for each in requirements))
    unpinned = sorted(
        name for name in found - pinned - OURS_OR_PYTHONS if not BROUGHT_BY_TORCH.fullmatch(name)
    )
    print(f"{len(found)} packages, of which {constraints} does not pin:", *unpinned or "-")
    return 1 if unpinned else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
