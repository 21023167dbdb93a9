"""Plain values as YAML, written so that every reader gets the same values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# Words that every version of YAML reads as themselves; others are quoted.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*( [A-Za-z0-9_-]+)*")
_NOT_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n"}
_INDENT = "  "


def to_yaml(content: Mapping[str, Any]) -> str:
    """Return a mapping of texts, numbers, lists of texts, and such mappings, as YAML."""
    return "\n".join(_lines(content)) + "\n"


def _lines(content: Mapping[str, Any]) -> Iterator[str]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield f"{key}:"
            yield from (_INDENT + line if line else line for line in _lines(value))
        elif isinstance(value, list):
            yield f"{key}:"
            yield from (f"{_INDENT}- {_scalar(item)}" for item in value)
        elif isinstance(value, str) and _is_block(value):
            yield f"{key}: |-"
            yield from (_INDENT + line if line else line for line in value.split("\n"))
        else:
            yield f"{key}: {_scalar(value)}"


def _is_block(text: str) -> bool:
    """Return whether a text of several lines can be written as it stands."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and not text.endswith("\n")
        and not lines[0].startswith(" ")
        and bool(lines[0])
        and all(line.isprintable() for line in lines)
    )


def _scalar(value: str | int | float) -> str:
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _NOT_WORDS
        return value if is_plain else _quoted(value)
    # YAML 1.1 reads 1e-05 as a text.
    text = repr(value)
    return re.sub(r"^(-?\d+)e", r"\1.0e", text)


def _quoted(text: str) -> str:
    """Return a text in double quotes, with all that cannot be printed as numbers."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
