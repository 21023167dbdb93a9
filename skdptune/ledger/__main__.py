"""The command ``python -m skdptune.ledger show|history|export PATH_OR_URL DATASET``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from skdptune.ledger._ledger import PrivacyLedger
from skdptune.ledger._report import LedgerRecord
from skdptune.ledger._storage import LedgerError

_COLUMNS = "{:>6}  {:<24}  {:<9}  {:>12}  {:<24}  {}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0, or 2 if the ledger cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m skdptune.ledger", description="Show what was spent of a privacy budget."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for command, words in (
        ("show", "what is spent and what is left"),
        ("history", "one line for each reservation"),
        ("export", "everything, as JSON"),
    ):
        chosen = commands.add_parser(command, help=words)
        place = "file of the ledger, or URL of its database, without a password"
        chosen.add_argument("path_or_url", help=place)
        chosen.add_argument("dataset", help="name of the data set")
        if command == "history":
            chosen.add_argument("--json", action="store_true", help="as JSON, one list")
    asked = parser.parse_args(arguments)
    try:
        ledger = PrivacyLedger(asked.path_or_url, asked.dataset)
        print(_shown(ledger, asked))
    except (LedgerError, ValueError, TypeError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _shown(ledger: PrivacyLedger, asked: argparse.Namespace) -> str:
    if asked.command == "show":
        return str(ledger.report())
    if asked.command == "export":
        return ledger.to_json(indent=2)
    records = ledger.history()
    if asked.json:
        return json.dumps([record.to_dict() for record in records], allow_nan=False, indent=2)
    lines = [_COLUMNS.format("number", "time", "status", "epsilon", "who", "name: note")]
    return "\n".join([*lines, *(_line(n, record) for n, record in enumerate(records, 1))])


def _line(number: int, record: LedgerRecord) -> str:
    time = record.time[:23]
    return _COLUMNS.format(
        number,
        time,
        record.status,
        f"{record.epsilon:.6g}",
        record.who,
        ": ".join(filter(None, (record.name, record.note))),
    )


if __name__ == "__main__":
    sys.exit(main())
