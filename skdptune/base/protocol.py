"""The contract of a private estimator: what it must offer, what it may offer, and who uses it.

A private estimator is a scikit-learn estimator whose privacy cost is known before it sees data.
Nothing below has to be inherited: an estimator that has the members satisfies the protocol.
`skdptune.testing.check_private_estimator` checks the whole contract, and
`skdptune.testing.replay_neighbours` what one record changes in all that a fit publishes.

**Required members**

========================= ====================================== ===============================
member                    used by                                where it is missing
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

Nothing that a fit publishes may differ between neighbours beyond what the profile allows. What
follows from the real number of records is no exception, unless the report is about neighbours of
the same number of records or its assumptions hold "the number of records is public".

**Optional parameters** of the constructor, as ``get_params(deep=False)`` lists them

========================= ====================================== ===============================
parameter                 what a search does with it             where it is missing
========================= ====================================== ===============================
``epsilon``, ``delta``    sets them so that the whole search     the search needs
                          meets its budget; the steps of a       ``epsilon=None`` and adds up
                          pipeline share it in the proportion    the steps' own costs; searched
                          of their epsilons, ``delta=0`` stays   parameters that change the
                          0, ``delta=None`` means that of the    cost must list few values
                          estimators inside; ``epsilon=inf``
                          asks for a fit without noise (50 is
                          tried if that raises ValueError)
``noise_multiplier``      where it is not None, leaves           ``epsilon`` alone sets the
                          ``epsilon`` alone; sets it in          noise
                          surrogates of the final fit
``n_public``              sets it to the expected number of      TypeError on a random part,
                          records on a random part, whose real   unless the cost does not
                          size is secret; cost and fit must use  depend on ``n_samples``
                          it in place of the real number, and
                          a part may be empty
``random_state``          sets an independent seed for every     the estimator draws on its
                          fit; None, for the operating system's  own, and a seeded search does
                          entropy, in a search without a seed    not repeat itself
``classes``               sets the public label set where it is  each fit knows the labels of
                          None; where the parameter is also in   its own part alone; one that
                          ``cost_parameters``, the labels are    fails for it scores the worst
                          read before the cost is known          value
``ledger``                records its total there, once, before  records it in the ledger in
                          it reads the data; no ledger is        use, if there is one
                          searched over
========================= ====================================== ===============================

**Optional members**

========================= ====================================== ===============================
member                    what a search does with it             where it is missing
========================= ====================================== ===============================
``cost_parameters``       computes one cost for candidates that  every searched parameter may
                          differ in other parameters alone       change the cost: all values
                                                                 are costed (64 at most), or
                                                                 held to one budget each
``noise_parameter``       solves for the noise of the whole      solves for an ``epsilon``,
                          search itself, and sets it under this  from which every fit solves
                          name, beside an ``epsilon`` and        for its own noise
                          ``delta`` that it meets
``calibrate_to_curve``    sets what it returns, where            tries values of the
                          candidates differ in cost, so that     ``noise_parameter``, or of
                          the fit lies below one curve           ``epsilon``
``privacy_assumptions``   states them in ``plan()`` and its own  those of the fitted winner's
                          report, for every candidate whose      ``privacy_`` alone
                          cost may differ
``neighbouring``          states the weakest relation of all     "add or remove one record"
                          candidates' steps; mixtures with
                          "replace ..." are refused
``n_features_out``        in a pipeline, costs the steps after   where a step may return another
                          it with this number of columns, which  number of columns, later steps
                          follows from public parameters alone   are costed without it
``fixed_epochs``          where ``epochs`` or ``max_epochs``     must be there with "max"
                          is "max" or "auto", sets what it
                          returns in surrogates, which have no
                          budget
``noise_level``           shows the noise of the final fit in    none is shown; surrogates of
                          its plan; with ``tuning_parameters``,  the final fit are trained
                          sets it as ``noise_multiplier`` of     without noise
                          surrogates, with ``epsilon=None``, in
                          proportion to their records
``tuning_parameters``     sets what it returns in fits on fewer  all parameters stay as they
                          records than the final fit has         are
                          (``learning_rate``, ``lr`` and
                          ``optimizer__lr`` half the way, unless
                          ``extrapolate="linear"``)
``suggested_space``       tries what it returns where the        ValueError where the user
                          user gives no space: each parameter    gives no space
                          by itself, others as they are; in a
                          pipeline, with the step's prefix
``fit_many``              fits many candidates of the class in   candidates are fitted one by
                          one call                               one
``coef_init``,            with ``warm_start=True`` starts the    TypeError with
``intercept_init`` of     final fit from ``coef_`` and           ``warm_start=True``
``fit``                   ``intercept_`` of the winning run
``classes_``,             offers them itself after its fit,      the search has none either
``n_features_in_``,       like all methods of the winner
``feature_names_in_``
scikit-learn's tags       ``estimator_type`` decides how labels  scikit-learn's defaults
                          are treated and which scorer is the
                          default, ``input_tags`` which data are
                          accepted
========================= ====================================== ===============================

**Recording** (Theorem H4). Fits of classes that inherit from `PrivateEstimatorMixin`, or that were
registered with `register_profile`, record their profile in a ledger before they read data. An
estimator that has the members alone is recorded within a search, and else by nothing.

A search fits copies. It removes scikit-learn's callbacks from them and sets a pipeline's
``memory`` to None, since both keep what no budget pays for; with ``n_jobs`` above 1 it pickles
them. It also fits one to zero records of the data's form, to have something to return where a
fit fails. Models of diffprivlib are recognised by their module: their guarantee is about
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
        """Return the parameters by name; `deep` adds those of estimators among them."""
        ...

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name, those of inner estimators as ``name__parameter``."""
        ...


class Fittable(Protocol):
    """An object with ``fit``, which takes X, mostly y, and returns the object itself."""

    @property
    def fit(self) -> Callable[..., Any]:
        """Return the method; which arguments it takes is up to the estimator."""
        ...


class HasPrivacyProfile(Protocol):
    """An object whose privacy cost follows from its parameters and public sizes alone."""

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return what a fit costs, for neighbours by one record, added or removed.

        It must see no data, need no fit, and not change the estimator; bad parameters raise
        ValueError or TypeError. Where ``n_public`` is given, it takes the place of `n_samples`.

        Parameters
        ----------
        n_samples : int
            Number of records; public.
        n_features : int, optional
            Number of columns; a profile may need it.
        """
        ...


class PrivateEstimator(Parametrized, Fittable, HasPrivacyProfile, Protocol):
    """All that a search requires of the estimator that it tunes."""


class FittedPrivateEstimator(PrivateEstimator, Protocol):
    """A private estimator after ``fit``."""

    @property
    def privacy_(self) -> PrivacyReport:
        """Return the report, whose profile is the one that was announced before the fit."""
        ...


# Optional parameters -------------------------------------------------------------------------


class HasBudget(Protocol):
    """A private estimator whose noise is solved for from ``epsilon`` and ``delta``."""

    epsilon: float | None
    delta: float | None


class HasNoiseMultiplier(Protocol):
    """A private estimator whose noise may be given in units of a record's influence."""

    noise_multiplier: float | None


class HasPublicSize(Protocol):
    """A private estimator that may use a public constant for the number of records."""

    n_public: int | None


class HasRandomState(Protocol):
    """An estimator whose noise may be seeded; None draws the operating system's entropy."""

    random_state: int | None


class HasClasses(Protocol):
    """A classifier that may be given its public label set."""

    classes: Sequence[Any] | None


# Optional members ----------------------------------------------------------------------------


class DeclaresCostParameters(Protocol):
    """An estimator that names the parameters on which its profile depends.

    Two estimators that differ in other parameters alone, each valid by itself, must have one
    profile. The names may depend on the present values of parameters.
    """

    @property
    def cost_parameters(self) -> Collection[str]:
        """Return the names, without prefixes."""
        ...


class NamesNoiseParameter(Protocol):
    """An estimator of which one parameter sets the noise of a fit, and nothing else.

    Where that parameter is given, it decides, whatever ``epsilon`` is. More noise costs less, and
    with the noise that a budget leads to the fit is the same as with the budget.
    """

    @property
    def noise_parameter(self) -> str | None:
        """Return the parameter's name; None where there is none with the present parameters."""
        ...


class CalibratesToCurve(Protocol):
    """An estimator that finds by itself the parameters with which a curve covers its fit."""

    def calibrate_to_curve(
        self, curve: SharedCurve, n_samples: int, n_features: int | None = None
    ) -> Mapping[str, Any]:
        """Return values to set on a copy, so that its `privacy_profile` is covered by `curve`.

        With about the least noise; a search checks the profile. ``delta`` is set before, and
        ``random_state`` is not among the values.

        Raises
        ------
        UnreachableBudgetError
            If no values do.
        """
        ...


class StatesAssumptions(Protocol):
    """An estimator that names what its guarantee rests on before it is fitted."""

    def privacy_assumptions(self, n_samples: int, n_features: int | None = None) -> Sequence[str]:
        """Return sentences, those of the later report's ``assumptions`` that are known by now.

        ValueError says that they follow from a number of columns that is not given.
        """
        ...


class NamesNeighbours(Protocol):
    """An estimator that names the neighbours that its guarantee is about, as its reports do."""

    @property
    def neighbouring(self) -> str:
        """Return how neighbouring data sets differ.

        "add or remove one record", "replace one of a public number of records", or "add or remove
        one record's contribution at its place, the public number of records unchanged".
        """
        ...


class SpendsBudgetOnSteps(Protocol):
    """An estimator whose number of steps may follow from its noise and its budget."""

    def fixed_epochs(self, n_samples: int, n_features: int | None = None) -> Mapping[str, float]:
        """Return the number that "max" stands for, by its parameter; empty if one is given."""
        ...


class ReportsNoiseLevel(Protocol):
    """An estimator that returns the noise of a fit in units of a record's influence."""

    def noise_level(self, n_samples: int, n_features: int | None = None) -> float:
        """Return the noise, positive; as ``noise_multiplier`` it makes the same noise."""
        ...


class ScalesToFewerRecords(Protocol):
    """An estimator that knows how parameters for the final fit suit fits on fewer records."""

    def tuning_parameters(self, n_tune: int, n_final: int) -> Mapping[str, Any]:
        """Return values to set on a copy that is fitted to `n_tune` in place of `n_final` records.

        The budget, ``n_public`` and ``random_state`` are not among them: a search sets these.
        """
        ...


class SuggestsSpace(Protocol):
    """An estimator that knows which values are worth searching beside those that it has."""

    def suggested_space(
        self, n_samples: int, n_features: int | None = None
    ) -> Mapping[str, Sequence[Any]]:
        """Return few values by parameter, from public numbers alone, at the present budget.

        The first value of each parameter is the one that the estimator has, None included where
        that stands for a rule. Without `n_features` there may be fewer; an empty mapping means
        that nothing is worth searching.
        """
        ...


class FitsMany(Protocol):
    """A class whose estimators can be fitted together, in one pass."""

    @classmethod
    def fit_many(
        cls, estimators: Sequence[Any], X: Any, y: Any = None, *, return_exceptions: bool = False
    ) -> list[Any]:
        """Fit each in place, independently and at the cost of its own ``fit``, and return all.

        With `return_exceptions` an exception stands in the place of an estimator that failed.
        A subclass that overrides ``fit`` does not offer an inherited ``fit_many``.
        """
        ...


class StartsFromWeights(Protocol):
    """A linear model that can start from the weights of another, released before."""

    coef_: ArrayLike
    intercept_: ArrayLike

    def fit(self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None) -> Any:
        """Fit the model, from the given weights on."""
        ...
