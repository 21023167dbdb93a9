"""The command ``python -m skdptune check|plan|report|ledger``."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import joblib

from skdptune.checks import report
from skdptune.checks._shared import SourceFinding, check_codes, check_source
from skdptune.preprocessing import Schema, make_private_pipeline

_MODEL = (
    "schema as JSON, for which one call chooses the model; or a search, as FILE.py:NAME or in a "
    "file written by joblib.dump, both of which run the code of the file"
)


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
    check = commands.add_parser("check", help="find leaks in the code of scripts and notebooks")
    check.add_argument("paths", nargs="+", metavar="PATH", help=".py or .ipynb file, or folder")
    for option, words in (("select", "report only these"), ("ignore", "do not report these")):
        check.add_argument(f"--{option}", default="", metavar="CODES", help=f"{words}: SKP001,…")
    plan = commands.add_parser("plan", help="show what a fit will do and cost, without any data")
    plan.add_argument("model", help=_MODEL)
    plan.add_argument("n_samples", type=int, help="number of records or persons; public")
    plan.add_argument("n_features", type=int, nargs="?", help="number of columns")
    plan.add_argument("--epsilon", type=float, help="total epsilon, for a schema")
    plan.add_argument("--delta", type=float, help="total delta, for a schema")
    plan.add_argument(
        "--compare", action="store_true", help="show alternatives, too, for a search"
    )
    page = commands.add_parser("report", help="write a fitted model's report as HTML")
    page.add_argument("model", help="file written by joblib.dump; loading it runs its code")
    page.add_argument("output", help="HTML file to write")
    commands.add_parser("ledger", help="show, history or export of a privacy ledger")
    asked = parser.parse_args(given)
    try:
        return {"check": _check, "plan": _plan, "report": _report}[asked.command](asked)
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
    if shown or not failed:
        print(f"Found {len(shown)} issue{ending}." if shown else "No issues found.")
    return 2 if failed else int(bool(shown))


def _files(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the given files, and the scripts and notebooks of the given folders."""
    for path in map(Path, paths):
        if path.is_dir():
            found = (one for suffix in ("py", "ipynb") for one in path.rglob(f"*.{suffix}"))
            names = ((one, one.relative_to(path).parts) for one in found)
            yield from sorted(one for one, own in names if not any(n[0] == "." for n in own))
        else:
            yield path


def _plan(asked: argparse.Namespace) -> int:
    """Print the plan of a search, or of the model that one call chooses for a schema."""
    budget = {name: getattr(asked, name) for name in ("epsilon", "delta")}
    budget = {name: value for name, value in budget.items() if value is not None}
    model = _planned_model(asked.model, budget)
    if not hasattr(model, "plan"):
        raise TypeError(
            f"{asked.model} must contain a search or a schema; got {type(model).__name__}, which "
            "has no plan: wrap it in a search, or use skdptune.base.profile_of."
        )
    more = {"compare": True} if asked.compare else {}
    print(model.plan(asked.n_samples, asked.n_features, **more))
    return 0


def _planned_model(source: str, budget: dict[str, Any]) -> Any:
    """Return the model that a file describes."""
    path, separator, name = source.rpartition(":")
    if source.endswith(".json"):
        schema = Schema.from_json(Path(source))
        # A range is that of the targets of a regression.
        task = "classifier" if schema.target_bounds is None else "regressor"
        return make_private_pipeline(task, schema, **budget)
    if budget:
        raise ValueError("--epsilon and --delta are for schemas; set those of a search in Python.")
    if separator and path.endswith(".py"):
        # Not as "__main__": what a script guards does not run.
        names = runpy.run_path(path, run_name="plan")
        if name not in names:
            raise ValueError(f"{path} defines no {name}.")
        return names[name]
    if source.endswith(".py"):
        raise ValueError(f"{source} must be followed by the name of a search, {source}:search.")
    return joblib.load(source)


def _report(asked: argparse.Namespace) -> int:
    """Write the report of a stored model."""
    report(joblib.load(asked.model)).save(asked.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
