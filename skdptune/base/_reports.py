"""What a fitted estimator cost: reports of anything that was fitted."""

from __future__ import annotations

import functools
import math

from skdptune._validation import check_integer, check_real
from skdptune.accounting import PrivacyReport
from skdptune.base._costs import cost_of, load_adapter_of
from skdptune.base._mixin import DEFAULT_DELTA
from skdptune.base._nested_parameters import own_member


def privacy_of(
    fitted: object, delta: float | None = None, *, n_samples: int | None = None
) -> PrivacyReport:
    """Return the report of anything that was fitted, pipelines included.

    Parameters
    ----------
    fitted : estimator
        A fitted private estimator, or a fitted pipeline of such and of steps that learn nothing.
    delta : float, optional
        Where to state the total. The default is the sum of the parts' deltas.
    n_samples : int, optional
        Number of records; needed only where a registered class has a cost that depends on it.

    Returns
    -------
    PrivacyReport
        With one part for each step that has a cost.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdptune.base import privacy_of
    >>> from skdptune.preprocessing import RowNormClipper
    >>> pipeline = make_pipeline(RowNormClipper(1.0)).fit(np.eye(3))
    >>> privacy_of(pipeline).epsilon
    0.0
    """
    if delta is not None:
        delta = check_real(delta, name="delta", lower=0.0, upper=1.0)
    if n_samples is not None:
        check_integer(n_samples, name="n_samples", lower=1)
    report = report_of(fitted, n_samples)
    if delta is None or delta == report.delta:
        return report
    return PrivacyReport(
        report.profile,
        delta,
        name=report.name,
        note=report.note,
        parts=report.parts,
        assumptions=report.assumptions,
        neighbouring=report.neighbouring,
        bound=report.bound,
    )


def report_of(fitted: object, n_samples: int | None) -> PrivacyReport:
    """Return the report of a fitted step, at its own delta."""
    load_adapter_of(fitted)
    own = own_member(fitted, "privacy_")
    if isinstance(own, PrivacyReport):
        return own
    if own_member(fitted, "privacy_profile") is not None:
        raise ValueError(f"fitted must be fitted; got a {type(fitted).__name__} without privacy_.")
    return report_registry(fitted, n_samples)


@functools.singledispatch
def report_registry(fitted: object, n_samples: int | None) -> PrivacyReport:
    """Return the report of an object without ``privacy_``; classes register their own function."""
    name = type(fitted).__name__
    profile = cost_of(fitted, n_samples or 1, None)
    # A second size shows whether the cost depends on the size.
    if n_samples is None and profile != cost_of(fitted, 1000, None):
        raise ValueError(f"n_samples must be given: the cost of {name} depends on it; got None.")
    delta = 0.0 if math.isfinite(profile.epsilon(0.0)) else DEFAULT_DELTA
    return PrivacyReport(profile, delta, name=name)
