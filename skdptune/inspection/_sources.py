"""The reports that displays draw: of a fitted estimator or search, or of one to be fitted."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Self

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skdptune._formatting import shown
from skdptune._validation import check_kind
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base import privacy_of, profile_of
from skdptune.base._shared import DEFAULT_DELTA, assumptions_of, budget_owners, neighbouring_of

_SLACK = 1e-9


def checked_profile(profile: Any) -> PrivacyProfile:
    """Return a profile, or raise."""
    found: PrivacyProfile = check_kind(
        profile, name="profile", kind=PrivacyProfile, domain="a PrivacyProfile"
    )
    return found


def checked_report(report: Any) -> PrivacyReport:
    """Return a report, or raise."""
    found: PrivacyReport = check_kind(
        report, name="report", kind=PrivacyReport, domain="a PrivacyReport"
    )
    return found


def check_search(search: Any) -> None:
    """Raise unless an object is one of the package's searches."""
    if isinstance(search, type):
        raise TypeError(
            f"search must be a search of skdptune; got the class {search.__name__}. Call it first."
        )
    if not callable(getattr(search, "plan", None)):
        raise TypeError(f"search must be a search of skdptune; got {type(search).__name__}.")


def report_of_search(search: Any, n_samples: int | None, n_features: int | None) -> PrivacyReport:
    """Return the report of a fitted search, or of a fit to `n_samples` records."""
    check_search(search)
    return report_of_estimator(search, n_samples, n_features, name="search")


def report_of_estimator(
    estimator: Any,
    n_samples: int | None = None,
    n_features: int | None = None,
    *,
    name: str = "estimator",
) -> PrivacyReport:
    """Return the report of a fitted estimator, or of a fit to `n_samples` records.

    Parameters
    ----------
    estimator : estimator or pipeline
        Private.
    n_samples, n_features : int, optional
        The records of the fit to come; the report is then that of this fit, whether or not there
        was one before.
    name : str, default="estimator"
        In errors.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(f"{name} must be an estimator with fit; got {shown(estimator)}.")
    if n_samples is not None:
        return _report_to_come(estimator, n_samples, n_features)
    if not _is_fitted(estimator):
        raise ValueError(
            f"{name} must be fitted where n_samples is not given; got a "
            f"{type(estimator).__name__} that is not. For what a fit would cost, give n_samples "
            "and n_features."
        )
    return privacy_of(estimator)


def _is_fitted(estimator: Any) -> bool:
    if hasattr(estimator, "privacy_"):
        return True
    if hasattr(estimator, "privacy_profile"):
        return False
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _report_to_come(estimator: Any, n_samples: int, n_features: int | None) -> PrivacyReport:
    if callable(getattr(estimator, "plan", None)):
        planned: PrivacyReport = estimator.plan(n_samples, n_features, compare=False).report
        return planned
    profile = profile_of(estimator, n_samples, n_features)
    owners = budget_owners(estimator)
    # As `privacy_of` states it after the fit.
    delta = math.fsum(owner.delta or 0.0 for owner in owners)
    if not owners and math.isinf(profile.epsilon(0.0)):
        delta = DEFAULT_DELTA
    asked = getattr(estimator, "epsilon", None) if len(owners) == 1 else None
    if asked is not None and not profile.epsilon(delta) <= asked * (1.0 + _SLACK):
        asked = None
    return PrivacyReport(
        profile,
        delta,
        epsilon=asked,
        name=type(estimator).__name__,
        assumptions=assumptions_of(estimator, n_samples, n_features),
        neighbouring=neighbouring_of(estimator),
    )


class CurveOfReport(ABC):
    """What displays share that draw a curve of a report: where the report comes from."""

    @classmethod
    @abstractmethod
    def from_report(
        cls, report: PrivacyReport, *, label: str | None = None, ax: Any = None, **options: Any
    ) -> Self:
        """Draw the curve of a report."""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        n_samples: int | None = None,
        n_features: int | None = None,
        *,
        label: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the curve of a fitted estimator, or of a fit to `n_samples` records.

        Parameters
        ----------
        estimator : estimator or pipeline
            Fitted, unless `n_samples` is given.
        n_samples, n_features : int, optional
            Public sizes of the fit to come.
        label, ax, **options
            As for `from_profile`; the label is by default the estimator's class.

        Returns
        -------
        display
        """
        report = report_of_estimator(estimator, n_samples, n_features)
        return cls.from_report(report, label=label, ax=ax, **options)

    @classmethod
    def from_search(
        cls,
        search: Any,
        n_samples: int | None = None,
        n_features: int | None = None,
        *,
        label: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the curve of a fitted search, or of a search of `n_samples` records.

        Parameters
        ----------
        search : search
            Fitted, unless `n_samples` is given.
        n_samples, n_features : int, optional
            Public sizes of the search to come.
        label, ax, **options
            As for `from_profile`; the label is by default the search's class.

        Returns
        -------
        display
        """
        report = report_of_search(search, n_samples, n_features)
        return cls.from_report(report, label=label, ax=ax, **options)
