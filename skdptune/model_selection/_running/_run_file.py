"""Store the runs of a search in a file, so that a killed search can be resumed."""

from __future__ import annotations

import base64
import hmac
import json
import os
import pickle
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skdptune._compat import cloudpickle, fcntl
from skdptune._formatting import shown_path
from skdptune.model_selection._running._quiet import Streams
from skdptune.model_selection._running._runs import Result
from skdptune.model_selection._study import create_private, restored, salted, stored

_FORMAT = "skdptune runs 1"
_SALT_BYTES = 16
_ENTROPY_BITS = 256
# The size of a file is this, or 4, 16, ... times this, so that it does not show a count.
_BLOCK = 1 << 16


class RunFile:
    """The stored state of a search: its noisy scores, and the entropy of its random split.

    It is as secret as the data. Only its owner may read it. At the end everything is overwritten,
    except the note that the search has ended.

    Parameters
    ----------
    path : str or path-like
        A new file, or that of the same search.
    identity : str
        Identity of the search and its data. The file keeps a salted, slow hash of it.
    keeps_all : bool
        Whether the models of all runs are kept, or only that of the best one.

    Attributes
    ----------
    entropy : int
        Entropy for the split of the data and for the draws of candidates.
    results : dict of int to Result
        Results by the number of a run.

    Raises
    ------
    ValueError
        If the file belongs to another search, to an ended one, or to something else.
    RuntimeError
        If another process uses it.

    Notes
    -----
    Theorem F13.
    """

    def __init__(self, path: Any, identity: str, *, keeps_all: bool) -> None:
        self._path = Path(path).expanduser().resolve()
        self._identity, self._keeps_all = identity, keeps_all
        self._checked()

    def __enter__(self) -> RunFile:
        """Read the file, or create it, and lock out other processes."""
        create_private(self._path)
        self._locked: Any = _locked(self._path)
        self.results: dict[int, Result] = {}
        try:
            known = self._checked()
            if known is None:
                self._salted = salted(self._identity, os.urandom(_SALT_BYTES))
                self.entropy = secrets.randbits(_ENTROPY_BITS)
                self._write()
                return self
        except BaseException:
            self._locked.close()
            raise
        self._salted, self.entropy = known["search"], int(known["entropy"], 16)
        for number, (kept, model) in known["runs"].items():
            values, *further = (tuple(map(float.fromhex, each)) for each in restored(kept))
            found = None if model is None else pickle.loads(base64.b85decode(model))
            score = float(np.mean(values))
            self.results[int(number)] = Result(
                found, score, float("nan"), None, values, tuple(further)
            )
        return self

    def __exit__(self, *problem: object) -> None:
        """Unlock the file for other processes."""
        self._locked.close()

    def _checked(self) -> dict[str, Any] | None:
        """Return the content of the file; None if it is missing or empty."""
        try:
            text = self._path.read_bytes() if self._path.is_file() else b""
            known = json.loads(text) if text else None
            is_own = True
            if text and os.name == "posix":
                # A file that others could have written is not unpickled.
                state = self._path.stat()
                is_own = state.st_uid == os.getuid() and not state.st_mode & 0o022
        except (OSError, ValueError):
            known = {}
        if known is not None and (not isinstance(known, dict) or known.get("format") != _FORMAT):
            raise ValueError(
                "storage must be a new file, or that of a search; got "
                f"{shown_path(self._path)}, which has other content."
            )
        if not is_own:
            raise ValueError(
                "storage must be a file that others cannot write; got "
                f"{shown_path(self._path)}, which they can."
            )
        if known is None:
            return None
        salt = bytes.fromhex(known["search"].partition("$")[0])
        if not hmac.compare_digest(salted(self._identity, salt), known["search"]):
            raise ValueError(
                "storage must be a new file, or that of a search of the same data, parameters "
                f"and version; got {shown_path(self._path)}, which belongs to another search."
            )
        if "entropy" not in known:
            raise ValueError(
                "storage must be the file of an unfinished search; got "
                f"{shown_path(self._path)}, whose search has ended. Use a new file, at the full "
                "cost again."
            )
        return known

    def streams(self, given: Streams) -> Streams:
        """Return the streams of a search; without a seed, the split and the draws are stored."""
        if given.random_split is not None:
            return given
        split, draw = np.random.SeedSequence(self.entropy).spawn(2)
        return replace(given, random_split=split, draw=draw)

    def note(self, number: int, result: Result) -> None:
        """Store a run, which is then not repeated."""
        self.results[number] = result
        if not self._keeps_all:
            best = max(one.score for one in self.results.values())
            for place, one in self.results.items():
                # The first run may be returned whatever its score is.
                if place > 0 and one.model is not None and one.score < best:
                    self.results[place] = replace(one, model=None)
        self._write()

    def end(self) -> None:
        """Overwrite everything, except the note that the search has ended."""
        self._replace({"format": _FORMAT, "search": self._salted})

    def _write(self) -> None:
        runs = {
            str(number): (
                stored([[value.hex() for value in splits] for splits in one.by_metric]),
                None
                if one.model is None
                else base64.b85encode(cloudpickle.dumps(one.model)).decode(),
            )
            for number, one in self.results.items()
        }
        own = {"format": _FORMAT, "search": self._salted, "entropy": f"{self.entropy:x}"}
        self._replace({**own, "runs": runs})

    def _replace(self, content: dict[str, Any]) -> None:
        """Write the file completely or not at all, even if the process is killed."""
        text = json.dumps(content).encode()
        size = _BLOCK
        while size < len(text):
            size *= 4
        # Always use the same temporary name, so that killed processes leave at most one such file.
        name = self._path.with_name(f".{self._path.name}.new")
        name.unlink(missing_ok=True)
        try:
            number = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(number, "wb") as new:
                new.write(text.ljust(size))
                new.flush()
                os.fsync(new.fileno())
            # The file is never visible under its name without the lock.
            locked = _locked(name)
            os.replace(name, self._path)
        except BaseException:
            name.unlink(missing_ok=True)
            raise
        self._locked.close()
        self._locked = locked


def _locked(path: Path) -> Any:
    """Return an open file that no other process of this machine has locked."""
    opened = open(path, "rb")  # noqa: SIM115 (it is open as long as the search runs)
    try:
        if fcntl is not None:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have replaced it in the meantime.
            if not os.path.samestat(os.fstat(opened.fileno()), path.stat()):
                raise OSError
    except OSError:
        opened.close()
        raise RuntimeError(
            f"storage must be used by one process at a time; got {shown_path(path)}, which "
            "another one uses."
        ) from None
    return opened
