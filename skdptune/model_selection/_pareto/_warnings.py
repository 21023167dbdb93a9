"""Warnings about the evaluations of a Pareto search."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from sklearn.exceptions import FitFailedWarning

from skdptune.model_selection._pareto._study import Record


def warn_of_failures(records: Sequence[Record], *, stacklevel: int) -> None:
    """Warn of evaluations that failed, with the reason of the first."""
    failed = [record for record in records if record.evaluation.failure is not None]
    if failed:
        first = failed[0]
        warnings.warn(
            f"{len(failed)} of {len(records)} evaluations failed. The first, of {first.params}: "
            f"{first.evaluation.failure}. evaluations_ names them all.",
            FitFailedWarning,
            stacklevel=stacklevel,
        )


def warn_of_one_cost(records: Sequence[Record], *, stacklevel: int) -> None:
    """Warn if no parameter of the space changes epsilon."""
    found = [record.evaluation for record in records if record.evaluation.failure is None]
    if len(found) > 1 and len({evaluation.epsilon for evaluation in found}) == 1:
        warnings.warn(
            f"All evaluations cost epsilon={found[0].epsilon:.4g}, so that the front is a single "
            "point. Let param_space hold what sets the noise, such as epsilon or "
            "noise_multiplier.",
            UserWarning,
            stacklevel=stacklevel,
        )


def warn_of_few(count: int, wanted: int, *, stacklevel: int) -> None:
    """Warn if a release paid for fewer evaluations than the initial ones."""
    if count < wanted:
        warnings.warn(
            f"release must be larger, or param_space hold smaller epsilons, for n_initial={wanted}"
            f" evaluations; it paid for {count}.",
            UserWarning,
            stacklevel=stacklevel,
        )
