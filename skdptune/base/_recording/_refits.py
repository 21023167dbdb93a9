"""Second fits of one object that no ledger records."""

from __future__ import annotations

import math
import threading
import warnings
import weakref
from typing import Any

from skdptune._compat import number_of_samples


class PrivacyWarning(UserWarning):
    """A setting that is allowed, but promises less privacy than it seems to."""


# The number of records of an object's last fit, None once a warning was given. Outside of the
# objects, since a pickle of one must not hold what may be secret.
_sizes: weakref.WeakKeyDictionary[Any, int | None] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def warn_of_refit(estimator: Any, X: Any, *, stacklevel: int) -> None:
    """Warn where one object is fitted again to as many records, once for each object."""
    try:
        # What records may be no part of is of no known size.
        size = number_of_samples(X) if getattr(estimator, "n_public", None) is None else 0
        with _lock:
            before = _sizes.get(estimator, -1)
            is_second = before == size
            if before is not None:
                _sizes[estimator] = None if is_second else size
    except (TypeError, ValueError):
        # Chunks without a known length, or an object that cannot be told from others.
        return
    if is_second and getattr(estimator, "epsilon", None) != math.inf:
        name = type(estimator).__name__
        warnings.warn(
            f"{name} is fitted again to as many records: costs of fits to the same data add up, "
            "and privacy_ is that of the last fit alone. Record them: ledger=PrivacyLedger(...), "
            "or `with ledger:` around the fits. Clone the estimator to fit it to other data.",
            PrivacyWarning,
            stacklevel=stacklevel + 1,
        )
