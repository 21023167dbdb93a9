"""The contract of a private estimator: what it must offer, what it may offer, and who uses it.

A private estimator is a scikit-learn estimator whose privacy cost is known before it sees data. It
need not inherit from any class below: an estimator that has the members satisfies the protocol.
`skdptune.testing.check_private_estimator` checks the whole contract.
`skdptune.testing.replay_neighbours` checks how one record changes what a fit publishes.

**Required members**

========================= ====================================== ===============================
member                    used by                                if it is missing
========================= ====================================== ===============================
``get_params``,           everything: candidates, budgets and    TypeError
``set_params``            seeds are parameters
``fit(X, y)``             every run of a search, on a part of    TypeError before data are read
                          the records
``privacy_profile``       `profile_of` and every search, before  NoProfileError, unless the
                          data are read                          class was registered with
                                                                 `register_profile`
``privacy_`` after fit    `privacy_of`, also inside pipelines;   ValueError in `privacy_of`
                          a search reports its own total
``predict``,              scoring: the response method of the    TypeError before data are read
``predict_proba`` or      scorer
``decision_function``
========================= ====================================== ===============================

Nothing that a fit publishes may differ between neighbours beyond what the profile allows. This
includes everything that depends on the real number of records. The only exceptions are reports
about neighbours of the same number of records, and reports whose assumptions include "the number
of records is public".

**Optional parameters** of the constructor, as ``get_params(deep=False)`` lists them

========================= ====================================== ===============================
parameter                 what a search does with it             if it is missing
========================= ====================================== ===============================
``epsilon``, ``delta``    sets them so that the whole search     the search needs
                          meets its budget; the steps of a       ``epsilon=None`` and adds up
                          pipeline share it in proportion to     the steps' own costs; searched
                          their epsilons; ``delta=0`` stays 0;   parameters that change the
                          ``delta=None`` means the delta of the  cost must list few values
                          nested estimators; ``epsilon=inf``
                          requests a fit without noise (50 is
                          tried if that raises ValueError)
``noise_multiplier``      if it is not None, does not change     only ``epsilon`` sets the noise
                          ``epsilon``; sets it in surrogates of
                          the final fit
``n_public``              on a random part of the data, whose    TypeError on a random part,
                          real size is secret, sets it to the    unless the cost does not
                          expected number of records; cost and   depend on ``n_samples``
                          fit must use it instead of the real
                          number, and a part may be empty
``random_state``          sets an independent seed for every     the estimator draws its own
                          fit; in a search without a seed, sets  noise, and a seeded search is
                          None for the operating system's        not reproducible
                          entropy
``classes``               sets the public label set if it is     each fit only knows the labels
                          None; if the parameter is also in      of its part; a fit that
                          ``cost_parameters``, the labels are    fails because of this gets the
                          read before the cost is known          worst score
``ledger``                records its total there, once, before  records it in the active
                          it reads the data; ``ledger`` cannot   ledger, if there is one
                          be searched over
========================= ====================================== ===============================

**Optional members**

========================= ====================================== ===============================
member                    what a search does with it             if it is missing
========================= ====================================== ===============================
``cost_parameters``       computes one cost for candidates that  every searched parameter may
                          differ only in other parameters        change the cost: the cost of
                                                                 each value is computed (64 at
                                                                 most), or limited to one
                                                                 budget each
``noise_parameter``       solves for the noise of the whole      solves for an ``epsilon``,
                          search itself, and sets it under this  from which every fit solves
                          name, together with an ``epsilon``     for its own noise
                          and ``delta`` that it meets
``calibrate_to_curve``    if candidates differ in cost, sets     tries values of the
                          the values that it returns, so that    ``noise_parameter``, or of
                          the fit lies below one curve           ``epsilon``
``privacy_assumptions``   states them in ``plan()`` and its own  states only those of the
                          report, for every candidate whose      fitted winner's ``privacy_``
                          cost may differ
``neighbouring``          states the weakest relation of all     "add or remove one record"
                          candidates' steps; mixtures with
                          "replace ..." are refused
``n_features_out``        in a pipeline, computes the cost of    if a step may return another
                          later steps for this number of         number of columns, the costs of
                          columns, which depends only on public  later steps are computed
                          parameters                             without it
``fixed_epochs``          if ``epochs`` or ``max_epochs`` is     is required for "max"
                          "max" or "auto", sets the values that
                          it returns in surrogates, which have
                          no budget
``noise_level``           shows the noise of the final fit in    no noise is shown; surrogates
                          its plan; with ``tuning_parameters``,  of the final fit are trained
                          sets it as ``noise_multiplier`` of     without noise
                          surrogates, with ``epsilon=None``, in
                          proportion to their records
``tuning_parameters``     sets the values that it returns in     all parameters keep their
                          fits on fewer records than the final   values
                          fit has (``learning_rate``, ``lr``
                          and ``optimizer__lr`` only half the
                          way, unless ``extrapolate="linear"``)
``suggested_space``       if the user gives no space, tries the  ValueError if the user gives no
                          values that it returns: each           space
                          parameter separately, with the others
                          unchanged; in a pipeline, with the
                          step's prefix
``fit_many``              fits many candidates of the class in   candidates are fitted one by
                          one call                               one
``coef_init``,            with ``warm_start=True`` starts the    TypeError with
``intercept_init`` of     final fit from ``coef_`` and           ``warm_start=True``
``fit``                   ``intercept_`` of the winning run
``classes_``,             has them itself after its fit, like    the search has none either
``n_features_in_``,       all methods of the winner
``feature_names_in_``
scikit-learn's tags       ``estimator_type`` decides how labels  scikit-learn's defaults
                          are treated and which scorer is the
                          default, ``input_tags`` which data are
                          accepted
========================= ====================================== ===============================

**Recording** (Theorem H4). Fits of classes that inherit from `PrivateEstimatorMixin`, or that were
registered with `register_profile`, record their profile in a ledger before they read data. An
estimator that only has the members is recorded within a search, but not otherwise.

A search fits copies. It removes scikit-learn's callbacks from them and sets a pipeline's
``memory`` to None, since both keep what no budget pays for; with ``n_jobs`` above 1 it pickles
them. It also fits a copy to zero records of the data's form, in order to have something to return
if a fit fails. Models of diffprivlib are recognised by their module: their guarantee is about
replacing a record, not adding one.

Examples
--------
>>> from skdptune.accounting import PrivacyProfile
>>> from skdptune.base.protocol import HasPrivacyProfile
>>> class NoisyCount:
...     def privacy_profile(self, n_samples, n_features=None):
...         return PrivacyProfile.pure(0.5)
>>> def epsilon_of(estimator: HasPrivacyProfile) -> float:
...     return estimator.privacy_profile(n_samples=1000).epsilon(0.0)
>>> epsilon_of(NoisyCount())
0.5
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import ArrayLike

from skdptune.accounting import PrivacyProfile, PrivacyReport, SharedCurve

__all__ = [
    "CalibratesToCurve",
    "DeclaresCostParameters",
    "FitsMany",
    "Fittable",
    "FittedPrivateEstimator",
    "HasBudget",
    "HasClasses",
    "HasNoiseMultiplier",
    "HasPrivacyProfile",
    "HasPublicSize",
    "HasRandomState",
    "NamesNeighbours",
    "NamesNoiseParameter",
    "Parametrized",
    "PrivateEstimator",
    "ReportsNoiseLevel",
    "ScalesToFewerRecords",
    "SpendsBudgetOnSteps",
    "StartsFromWeights",
    "StatesAssumptions",
    "SuggestsSpace",
]


# Required ------------------------------------------------------------------------------------


class Parametrized(Protocol):
    """An object with parameters that can be read and set by name, as every estimator has."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` adds those of nested estimators."""

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name, those of nested estimators as ``name__parameter``."""


class Fittable(Protocol):
    """An object with ``fit``, which accepts X, usually y, and returns the object itself."""

    @property
    def fit(self) -> Callable[..., Any]:
        """Return the method; its other arguments are up to the estimator."""


class HasPrivacyProfile(Protocol):
    """An object whose privacy cost depends only on its parameters and public sizes."""

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return the privacy cost of a fit, for neighbours by one record, added or removed.

        It must not see data, need a fit, or change the estimator. Invalid parameters raise
        ValueError or TypeError. If ``n_public`` is given, it replaces `n_samples`.

        Parameters
        ----------
        n_samples : int
            Number of records; public.
        n_features : int, optional
            Number of columns; some profiles need it.
        """


class PrivateEstimator(Parametrized, Fittable, HasPrivacyProfile, Protocol):
    """Everything that a search requires of the estimator that it tunes."""


class FittedPrivateEstimator(PrivateEstimator, Protocol):
    """A private estimator after ``fit``."""

    @property
    def privacy_(self) -> PrivacyReport:
        """Return the report; its profile is the one announced before the fit."""


# Optional parameters -------------------------------------------------------------------------


class HasBudget(Protocol):
    """A private estimator whose noise is computed from ``epsilon`` and ``delta``."""

    epsilon: float | None
    delta: float | None


class HasNoiseMultiplier(Protocol):
    """A private estimator whose noise may be given in units of one record's influence."""

    noise_multiplier: float | None


class HasPublicSize(Protocol):
    """A private estimator that can use a public constant for the number of records."""

    n_public: int | None


class HasRandomState(Protocol):
    """An estimator whose noise may be seeded; None uses the operating system's entropy."""

    random_state: int | None


class HasClasses(Protocol):
    """A classifier that accepts its public label set."""

    classes: Sequence[Any] | None


# Optional members ----------------------------------------------------------------------------


class DeclaresCostParameters(Protocol):
    """An estimator that names the parameters on which its profile depends.

    Two estimators that differ only in other parameters, and are both valid, must have the same
    profile. The names may depend on the current values of parameters.
    """

    @property
    def cost_parameters(self) -> Collection[str]:
        """Return the names, without prefixes."""


class NamesNoiseParameter(Protocol):
    """An estimator with one parameter that sets the noise of a fit, and nothing else.

    If that parameter is given, it determines the noise, whatever ``epsilon`` is. More noise costs
    less. A fit with the noise that follows from a budget is the same as a fit with that budget.
    """

    @property
    def noise_parameter(self) -> str | None:
        """Return the parameter's name; None if there is none with the current parameters."""


class CalibratesToCurve(Protocol):
    """An estimator that finds parameters with which a curve covers its fit."""

    def calibrate_to_curve(
        self, curve: SharedCurve, n_samples: int, n_features: int | None = None
    ) -> Mapping[str, Any]:
        """Return values to set on a copy, so that `curve` covers its `privacy_profile`.

        The noise should be about the smallest possible; a search checks the profile. ``delta`` is
        set before, and ``random_state`` is not among the values.

        Raises
        ------
        UnreachableBudgetError
            If no values achieve this.
        """


class StatesAssumptions(Protocol):
    """An estimator that states the assumptions of its guarantee before it is fitted."""

    def privacy_assumptions(self, n_samples: int, n_features: int | None = None) -> Sequence[str]:
        """Return those assumptions of the later report that are known before the fit.

        Each is a sentence. ValueError means that they depend on a number of columns that is not
        given.
        """


class NamesNeighbours(Protocol):
    """An estimator that states the neighbouring relation of its guarantee, as its reports do."""

    @property
    def neighbouring(self) -> str:
        """Return how neighbouring data sets differ.

        "add or remove one record", "replace one of a public number of records", or "add or remove
        one record's contribution at its place, the public number of records unchanged".
        """


class SpendsBudgetOnSteps(Protocol):
    """An estimator whose number of steps may follow from its noise and its budget."""

    def fixed_epochs(self, n_samples: int, n_features: int | None = None) -> Mapping[str, float]:
        """Return the number that "max" stands for, by parameter; empty if a number is given."""


class ReportsNoiseLevel(Protocol):
    """An estimator that returns the noise of a fit in units of one record's influence."""

    def noise_level(self, n_samples: int, n_features: int | None = None) -> float:
        """Return the noise, a positive number; as ``noise_multiplier`` it gives the same noise."""


class ScalesToFewerRecords(Protocol):
    """An estimator that can adapt parameters for the final fit to fits on fewer records."""

    def tuning_parameters(self, n_tune: int, n_final: int) -> Mapping[str, Any]:
        """Return values to set on a copy that is fitted to `n_tune` instead of `n_final` records.

        The budget, ``n_public`` and ``random_state`` are not among them, since a search sets
        these.
        """


class SuggestsSpace(Protocol):
    """An estimator that suggests values worth searching, in addition to its current ones."""

    def suggested_space(
        self, n_samples: int, n_features: int | None = None
    ) -> Mapping[str, Sequence[Any]]:
        """Return a few values for each parameter, from public numbers only, at the current budget.

        The first value of each parameter is the estimator's current one, including None if that
        stands for a rule. Without `n_features` there may be fewer values. An empty mapping means
        that nothing is worth searching.
        """


class FitsMany(Protocol):
    """A class whose estimators can be fitted together, in one pass."""

    @classmethod
    def fit_many(
        cls, estimators: Sequence[Any], X: Any, y: Any = None, *, return_exceptions: bool = False
    ) -> list[Any]:
        """Fit each in place, independently and at the cost of its own ``fit``, and return all.

        With `return_exceptions`, an estimator that failed is replaced by its exception. Searches
        by persons use it only if it takes ``groups``, as ``fit`` does. A subclass that overrides
        ``fit`` does not offer an inherited ``fit_many``.

        An estimator may have a property ``shares_passes``. True says that its fit is the same in
        any company, to the last bit, so that searches divide candidates among workers. False says
        that it gains nothing, so that candidates are fitted one by one.
        """


class StartsFromWeights(Protocol):
    """A linear model that can start from the weights of another model, released before."""

    coef_: ArrayLike
    intercept_: ArrayLike

    def fit(self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None) -> Any:
        """Fit the model, starting from the given weights."""
