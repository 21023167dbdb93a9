"""Common parts of all private estimators: a budget, a cost before the fit, a report after it."""

from __future__ import annotations

import math
import warnings
from typing import Any

from skdptune._validation import NamedArguments, check_integer, check_real
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.base._costs import SEEDED
from skdptune.base._persons import OWN_USE, PUBLIC_SIZE, Persons, about_persons
from skdptune.base._recording import PrivacyWarning, record_fits
from skdptune.base._tuning import budget_owners
from skdptune.ledger import PrivacyLedger
from skdptune.ledger._shared import ADD_OR_REMOVE

# Assumptions stated in reports, from Assumption P0.
PUBLIC_LABELS = "the label set is public"
PUBLIC_WEIGHTS = "class weights are public, not computed from the data"


def advised_delta(n_samples: int) -> float:
    """Return 1 / (10 * n_samples), rounded down to one significant digit."""
    tenfold = 10 * int(n_samples)
    power = len(str(tenfold - 1))
    return float(f"{10**power // tenfold}e-{power}")


def warn_of_large_delta(delta: float, n_samples: int, *, stacklevel: int) -> None:
    """Warn if a delta is so large that a whole record could be published."""
    if delta >= 1.0 / n_samples:
        warnings.warn(
            f"delta={delta:g} is at least 1/n_samples={1.0 / n_samples:.3g}: publishing one "
            f"random record in full would satisfy that. Choose delta={advised_delta(n_samples):g} "
            "or less.",
            PrivacyWarning,
            stacklevel=stacklevel,
        )


class PrivateEstimatorMixin(NamedArguments):
    """Budget handling and reporting for an estimator with parameters ``epsilon`` and ``delta``.

    A subclass has the parameters ``epsilon``, ``delta`` and ``random_state``. The latter is an int
    or None: fits refuse generators, because clones would copy them and draw the same noise. It may
    also have a parameter for its noise, and ``n_public``, a constant used in place of the number
    of records. It implements ``privacy_profile(n_samples, n_features=None)``, which depends only
    on parameters and public sizes.

    Its methods that read data (``fit``, ``partial_fit``, ``fit_many``) are recorded in the ledger
    given as its parameter ``ledger``, if there is one, or else in the active ledger (Theorem H4).
    Therefore the result of `privacy_profile` must cover everything that such a call does. A
    subclass whose methods fit more models than the methods that they override must define its own
    `privacy_profile`. If it inherits `privacy_profile`, only one call of an overridden method is
    paid for.

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
    # The neighbouring relation, as worded in reports; a subclass may have another one.
    neighbouring: str = ADD_OR_REMOVE

    def __init_subclass__(cls, **settings: Any) -> None:
        """Wrap the fits of a subclass so that ledgers record them."""
        super().__init_subclass__(**settings)
        record_fits(cls, warns=True)

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return the assumptions of a fit's report, from parameters and public sizes only.

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
        """Return the privacy cost of a fit; subclasses implement it."""
        raise NotImplementedError

    def _checked_budget(self) -> tuple[float, float]:
        """Return (epsilon, delta) after validation; an infinite epsilon means "no privacy"."""
        epsilon = check_real(
            self.epsilon,
            name="epsilon",
            lower=0.0,
            lower_open=True,
            hint="A smaller epsilon is more private; 1 is a common choice.",
        )
        return epsilon, self._checked_delta()

    def _checked_delta(self) -> float:
        own: Any = self
        if own.delta is None and hasattr(own, "estimator"):
            # In the form that searches expect: the delta of the estimator inside.
            return float(budget_owners(own)[0].delta or 0.0)
        return check_real(self.delta, name="delta", lower=0.0, upper=1.0, upper_open=True)

    def _public_size(self, n_samples: int) -> int:
        """Return ``n_public`` if it is given, and else the number of records."""
        if self.n_public is None:
            return n_samples
        return check_integer(self.n_public, name="n_public", lower=1)

    def _warn_of_large_delta(self, n_samples: int) -> None:
        """Warn if delta is so large that a whole record could be published."""
        warn_of_large_delta(self._checked_delta(), n_samples, stacklevel=4)

    def _input_refusal(self, form: str) -> str | None:
        """Return None if `fit` takes "groups" or "parts", or else what to use instead.

        A subclass that returns None for "groups" must satisfy Theorem P14, and its `fit` passes
        persons on to `_make_report`. One that returns None for "parts" must satisfy Theorem R10:
        it reads rows only through exact sums.
        """
        return OWN_USE

    def _make_report(
        self,
        profile: PrivacyProfile,
        assumptions: tuple[str, ...] = (),
        persons: Persons | bool | None = None,
        **more: Any,
    ) -> PrivacyReport:
        """Return the report to be stored as ``privacy_``, with `more` of its arguments."""
        relation = self.neighbouring
        if persons:
            relation, assumptions = about_persons(relation, assumptions)
        seeded = (SEEDED,) if self.random_state is not None else ()
        asked, delta = self.epsilon, self._checked_delta()
        cost = profile.epsilon(delta)
        if asked is None or not math.isfinite(asked) or cost > asked:
            asked = None
        return PrivacyReport(
            profile,
            delta,
            epsilon=asked,
            name=type(self).__name__,
            assumptions=(*assumptions, *seeded),
            neighbouring=relation,
            **more,
        )
