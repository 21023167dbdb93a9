"""Which processes work on a study, so that the evaluations of those that died are repeated.

optuna's ``RDBStorage(heartbeat_interval=...)`` does not serve, as of optuna 5.0:

* It works with ``Study.optimize`` alone; ``ask`` and ``tell``, which keep several evaluations
  running, warn that it does not, and record nothing.
* A process that is killed before its first heartbeat leaves a trial that never becomes stale.
* A process of this machine that was killed counts as alive until the grace period is over. A
  search that is resumed at once would make other proposals than one that was never killed.
* Storages in memory, in journals and behind proxies have none.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from typing import Any

# Of the study's user attributes.
_PREFIX = "process "
_INTERVAL = 30.0
# A process of another machine that was silent for so long is gone.
_GRACE_PERIOD = 180.0


class Heartbeat:
    """Shows other processes that this one works on a study, and which ones do.

    Parameters
    ----------
    study : optuna.Study
        Each process writes the time to its user attributes now and then.

    Attributes
    ----------
    process : str
        Name of this process: host, process id, and a random part.
    """

    def __init__(self, study: Any) -> None:
        self.study = study
        self.process = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Heartbeat:
        """Start."""
        self._beat()
        self._thread = threading.Thread(target=self._keep_beating, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        """Stop, and show the other processes so."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        self.study.set_user_attr(_PREFIX + self.process, 0.0)

    def _beat(self) -> None:
        self.study.set_user_attr(_PREFIX + self.process, time.time())

    def _keep_beating(self) -> None:
        while not self._stopped.wait(_INTERVAL):
            # A storage that is busy now is written to next time.
            with contextlib.suppress(Exception):
                self._beat()

    def alive(self) -> set[str]:
        """Return the names of the processes that work on the study."""
        attributes = self.study.user_attrs
        beats = {key: beat for key, beat in attributes.items() if key.startswith(_PREFIX)}
        processes = {key.removeprefix(_PREFIX): float(beat) for key, beat in beats.items()}
        return {name for name, beat in processes.items() if self._is_alive(name, beat)}

    def _is_alive(self, process: str, beat: float) -> bool:
        if process == self.process:
            return True
        host, pid, _ = process.rsplit(":", 2)
        is_local = host == socket.gethostname() and os.name == "posix"
        return time.time() - beat < _GRACE_PERIOD and not (is_local and _is_gone(int(pid)))


def _is_gone(pid: int) -> bool:
    """Return whether no process of this machine has an id; signal 0 does nothing to it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
