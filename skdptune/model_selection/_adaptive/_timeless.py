"""A storage in memory that keeps no times, so that no sampler or pruner can follow them."""

from __future__ import annotations

import functools
from datetime import datetime
from typing import Any

from skdptune.model_selection._pareto import optuna

# How long a fit takes can depend on a record: all trials are said to have been made at one time.
NO_TIME = datetime(2000, 1, 1)


def without_times(trial: Any) -> Any:
    """Return a frozen trial, whose dates are set to one time."""
    trial.datetime_start = NO_TIME
    if trial.state.is_finished():
        trial.datetime_complete = NO_TIME
    return trial


def timeless_storage() -> Any:
    """Return a new storage in memory that keeps no times."""
    return _storage_class()()


@functools.cache
def _storage_class() -> Any:
    package = optuna()

    class TimelessStorage(package.storages.InMemoryStorage):  # type: ignore[name-defined]
        """Keeps all trials as of one time."""

        def create_new_trial(self, study_id: int, template_trial: Any = None) -> int:
            state = package.trial.TrialState.RUNNING
            template = template_trial or package.trial.create_trial(state=state)
            return int(super().create_new_trial(study_id, without_times(template)))

        def set_trial_state_values(self, trial_id: int, state: Any, values: Any = None) -> bool:
            is_set = bool(super().set_trial_state_values(trial_id, state, values))
            # What this storage returns is what it keeps.
            without_times(self.get_trial(trial_id))
            return is_set

    return TimelessStorage
