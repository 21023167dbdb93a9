"""A learner that says who fits it, and what kills that worker meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.model_selection.learners import Scripted, cloudpickle

# The workers may not find this file under its name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Slow(Scripted):
    """Says who fits it, and takes long enough for that worker to be killed meanwhile."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if self.mark:
            Path(self.mark, str(os.getpid())).touch()
        time.sleep(0.15)
        return super().fit(X, y)


def kill_the_first(folder: Path, killed: list[int]) -> None:
    """Wait for a worker to start a fit, and kill it."""
    for _ in range(6000):
        # This process itself tries a fit to made-up records before.
        found = [int(path.name) for path in folder.iterdir() if path.name != str(os.getpid())]
        if found:
            killed.append(found[0])
            os.kill(killed[0], signal.SIGKILL)
            return
        time.sleep(0.01)
