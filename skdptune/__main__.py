"""The command ``python -m skdptune check|ledger|report``."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import joblib

from skdptune.checks import report
from skdptune.checks._shared import SourceFinding, check_codes, check_source


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status: 0, 1 if there are findings, or 2 for an error."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["ledger"]:
        sys.argv[1:] = given[1:]
        # The command ends the process with its own exit status.
        runpy.run_module("skdptune.ledger", run_name="__main__")
    parser = argparse.ArgumentParser(
        prog="python -m skdptune", description="Checks and reports for private models."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="find leaks in scripts and notebooks, by reading")
    check.add_argument("paths", nargs="+", metavar="PATH", help=".py or .ipynb file, or folder")
    for option, words in (("select", "report only these"), ("ignore", "do not report these")):
        check.add_argument(f"--{option}", default="", metavar="CODES", help=f"{words}: SKP001,…")
    page = commands.add_parser("report", help="write a fitted model's report as HTML")
    page.add_argument("model", help="file written by joblib.dump; loading it runs its code")
    page.add_argument("output", help="HTML file to write")
    commands.add_parser("ledger", help="show, history or export of a privacy ledger")
    asked = parser.parse_args(given)
    try:
        return _check(asked) if asked.command == "check" else _report(asked)
    except (OSError, TypeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2


def _check(asked: argparse.Namespace) -> int:
    """Print the findings in files, one on each line."""
    selected, ignored = (
        check_codes([one.strip() for one in codes.split(",") if one.strip()], name=option)
        for option, codes in (("--select", asked.select), ("--ignore", asked.ignore))
    )
    found: list[SourceFinding] = []
    failed = False
    for path in dict.fromkeys(_files(asked.paths)):
        try:
            found += check_source(path)
        except (OSError, ValueError) as error:
            failed = True
            print(error, file=sys.stderr)
    shown = [
        one for one in found if (not selected or one.code in selected) and one.code not in ignored
    ]
    for one in shown:
        print(one)
    ending = "" if len(shown) == 1 else "s"
    print(f"Found {len(shown)} issue{ending}." if shown else "No issues found.")
    return 2 if failed else int(bool(shown))


def _files(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the given files, and the scripts and notebooks of the given folders."""
    for path in map(Path, paths):
        if path.is_dir():
            found = (one for suffix in ("py", "ipynb") for one in path.rglob(f"*.{suffix}"))
            yield from sorted(one for one in found if not _is_hidden(one.relative_to(path)))
        else:
            yield path


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _report(asked: argparse.Namespace) -> int:
    """Write the report of a stored model."""
    report(joblib.load(asked.model)).save(asked.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
