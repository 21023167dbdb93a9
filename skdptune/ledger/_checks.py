"""Checks of what is handed to a ledger, and of what it was registered with."""

from __future__ import annotations

import getpass
import json
import os
import platform
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from skdptune._formatting import shown
from skdptune._validation import check_kind, check_real
from skdptune.ledger._books import Terms
from skdptune.ledger._postgresql import check_url, is_url
from skdptune.ledger._storage import MEMORY, LedgerError

# Beyond, no profile has an epsilon.
_LARGEST_EPSILON = 600.0


def now() -> str:
    """Return the time by the clock of this machine, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def who_records(given: str | None) -> str:
    """Return who records an entry: the given name, or the user and the machine of this process."""
    if given is not None:
        return given
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A user without a name, as in a container.
        user = f"user {os.getuid()}" if hasattr(os, "getuid") else "a user"
    return "".join(each if each.isprintable() else "?" for each in f"{user}@{platform.node()}")


def check_path(path: Any) -> str:
    """Return the absolute path of a file, a URL, or what stands for memory, or raise."""
    domain = "a path, a URL or ':memory:'"
    check_kind(path, name="path_or_url", kind=(str, os.PathLike), domain=domain)
    text = os.fspath(path)
    if isinstance(text, str) and is_url(text):
        return check_url(text)
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise ValueError(f"path_or_url must be {domain}; got {shown(text)}.")
    return text if text == MEMORY else os.path.abspath(text)


def check_words(value: Any, *, name: str) -> str:
    """Return a text with something to show, or raise."""
    text: str = check_kind(value, name=name, kind=str, domain="a str")
    if not text.strip() or not text.isprintable():
        raise ValueError(f"{name} must be a str of visible characters; got {shown(text)}.")
    return text


def check_sentences(values: Any) -> list[str]:
    """Return assumptions as a list, or raise."""
    domain = "a sequence of str"
    if isinstance(values, str):
        raise TypeError(f"assumptions must be {domain}; got one str. Put it in a list.")
    check_kind(values, name="assumptions", kind=Sequence, domain=domain)
    return [check_words(value, name=f"assumptions[{i}]") for i, value in enumerate(values)]


def check_details(details: Any) -> dict[str, Any]:
    """Return details as plain values of strict JSON, or raise."""
    if details is None:
        return {}
    check_kind(details, name="details", kind=Mapping, domain="a mapping from str")
    if not all(isinstance(key, str) for key in details):
        raise TypeError("details must be a mapping from str; got other keys.")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(details), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"details must be fit for strict JSON; got others ({error}).") from None
    return plain


def new_terms(dataset: str, epsilon: Any, delta: Any, unit: Any) -> Terms:
    """Return what is registered for a data set, after checks."""
    epsilon = check_real(
        epsilon, name="epsilon", lower=0.0, lower_open=True, upper=_LARGEST_EPSILON
    )
    # Adding 0.0 turns -0.0 into 0.0.
    delta = check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True) + 0.0
    return Terms(dataset, epsilon, delta, check_words(unit, name="unit"), now(), uuid.uuid4().hex)


def check_agreement(terms: Terms, asked: Mapping[str, Any]) -> None:
    """Raise if something was asked for that is not what was registered; None asks for nothing."""
    for name, value in asked.items():
        registered = getattr(terms, name)
        if value is not None and value != registered:
            raise LedgerError(
                f"{name} must be {shown(registered)}, with which {shown(terms.dataset)} was "
                f"registered; got {shown(value)}. A lifetime budget does not change: leave "
                f"{name} out to open it."
            )
