"""What all private estimators share: one budget, a cost before the fit, a report after it."""

from __future__ import annotations

import math
import warnings
from typing import Any

from skdptune._validation import check_integer, check_real
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base._costs import SEEDED
from skdptune.base._recording import PrivacyWarning, record_fits
from skdptune.ledger import PrivacyLedger
from skdptune.ledger._shared import ADD_OR_REMOVE

# Assumptions that reports state, by Assumption P0.
PUBLIC_SIZE = "the number of records is public"
PUBLIC_LABELS = "the label set is public"
PUBLIC_WEIGHTS = "class weights are public, not counted in the data"


def advised_delta(n_samples: int) -> float:
    """Return a tenth of one over the number of records, rounded down to one digit."""
    tenfold = 10 * int(n_samples)
    power = len(str(tenfold - 1))
    return float(f"{10**power // tenfold}e-{power}")


def warn_of_large_delta(delta: float, n_samples: int, *, stacklevel: int) -> None:
    """Warn of a delta that would permit publishing a whole record."""
    if delta >= 1.0 / n_samples:
        warnings.warn(
            f"delta={delta:g} is at least 1/n_samples={1.0 / n_samples:.3g}: publishing one "
            f"random record in full would satisfy that. Choose delta={advised_delta(n_samples):g} "
            "or less.",
            PrivacyWarning,
            stacklevel=stacklevel,
        )


class PrivateEstimatorMixin:
    """Budget handling and reporting of an estimator with ``epsilon`` and ``delta`` parameters.

    A subclass has the parameters ``epsilon``, ``delta`` and ``random_state`` (an int or None; fits
    refuse generators, which clones would copy and draw the same noise from), maybe one for its
    noise, maybe ``n_public``, a constant in place of the number of records, and the method
    ``privacy_profile(n_samples, n_features=None)``, which follows from parameters and public sizes
    alone. Its methods that read data (``fit``, ``partial_fit``, ``fit_many``) are then recorded in
    the ledger of its parameter ``ledger``, if it has one, or in the one that is in use
    (Theorem H4): what `privacy_profile` returns must cover all that such a call does. A subclass
    whose methods fit more than those that they override states its own; if it inherits
    `privacy_profile`, only one call of an overridden method is paid for.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile
    >>> from skdptune.base import PrivateEstimatorMixin, profile_of
    >>> class NoisyMean(PrivateEstimatorMixin):
    ...     epsilon, delta, random_state = 0.5, 0.0, None
    ...     def privacy_profile(self, n_samples, n_features=None):
    ...         return PrivacyProfile.pure(self.epsilon)
    >>> profile_of(NoisyMean(), n_samples=100).epsilon(0.0)
    0.5
    """

    epsilon: float | None
    delta: float
    random_state: int | None
    n_public: int | None = None
    ledger: PrivacyLedger | None = None
    # How neighbours differ, in the words of reports; a subclass may have another relation.
    neighbouring: str = ADD_OR_REMOVE

    def __init_subclass__(cls, **settings: Any) -> None:
        """Let a ledger record the fits of a subclass."""
        super().__init_subclass__(**settings)
        record_fits(cls, warns=True)

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return what a fit's report will assume, from parameters and public sizes alone.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Number of columns.

        Returns
        -------
        tuple of str
        """
        return (PUBLIC_SIZE,)

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return what a fit costs; subclasses implement it."""
        raise NotImplementedError

    def _checked_budget(self) -> tuple[float, float]:
        """Return (epsilon, delta) after validation; epsilon may be infinite for "no privacy"."""
        epsilon = check_real(
            self.epsilon,
            name="epsilon",
            lower=0.0,
            lower_open=True,
            hint="A smaller epsilon is more private; 1 is a common choice.",
        )
        return epsilon, self._checked_delta()

    def _checked_delta(self) -> float:
        return check_real(self.delta, name="delta", lower=0.0, upper=1.0, upper_open=True)

    def _public_size(self, n_samples: int) -> int:
        """Return the number that stands for that of the records: ``n_public``, where given."""
        if self.n_public is None:
            return n_samples
        return check_integer(self.n_public, name="n_public", lower=1)

    def _warn_of_large_delta(self, n_samples: int) -> None:
        """Warn of a delta that would permit publishing a whole record."""
        warn_of_large_delta(self.delta, n_samples, stacklevel=4)

    def _make_report(
        self, profile: PrivacyProfile, assumptions: tuple[str, ...] = ()
    ) -> PrivacyReport:
        """Return the report for ``privacy_``."""
        seeded = (SEEDED,) if self.random_state is not None else ()
        asked = self.epsilon
        cost = profile.epsilon(self.delta)
        if asked is None or not math.isfinite(asked) or cost > asked:
            asked = None
        return PrivacyReport(
            profile,
            self.delta,
            epsilon=asked,
            name=type(self).__name__,
            assumptions=(*assumptions, *seeded),
            neighbouring=self.neighbouring,
        )
