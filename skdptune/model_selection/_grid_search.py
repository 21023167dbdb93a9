"""Grid search: a fixed public list of candidates, all released or one chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from skdptune._docstrings import with_shared_text
from skdptune._validation import check_option
from skdptune.base._shared import arguments_of
from skdptune.ledger import PrivacyLedger
from skdptune.model_selection._cost import split_of
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._search import TuningSearch
from skdptune.model_selection._strategies import (
    Composition,
    FullTable,
    NoisyMaximum,
    Plan,
    PlanRequest,
    Strategy,
)


class TableOrOneFit(FullTable):
    """A full table; one fit of the unchanged estimator if no fit can have the noise of a table."""

    def plan(self, request: PlanRequest) -> Plan:
        """Return the plan of the table, or the plan of a search that is not worth it."""
        try:
            return FullTable().plan(request)
        except ValueError:
            is_asked_for = request.is_multimetric or split_of(request.cv)[1]
            if is_asked_for or request.refit not in ("winner", True):
                raise
        # Theorem N6: what chooses without a comparison must be asked for.
        return replace(NoisyMaximum().plan(request), advice=_TOO_NOISY)


# Why a table is not made.
_TOO_NOISY = "the estimator cannot be fitted with the noise of a table"
_STRATEGIES: dict[str, type[Strategy]] = {
    "auto": TableOrOneFit,
    "table": FullTable,
    "noisy_max": NoisyMaximum,
    "compose": Composition,
}


@with_shared_text(SHARED_TEXT)
class DPGridSearchCV(TuningSearch):
    """Grid search with differential privacy: one (epsilon, delta) for tuning and training.

    By default every candidate is fitted and scored with a lot of noise, and all noisy scores are
    shown. The chosen candidate is then fitted on all records with nearly all of the budget: the
    table adds 2 to 5 % to the noise of the final fit. The estimator's own parameters are kept
    unless another candidate is better by a test of 5 %. If public numbers show that no candidate
    can pass this test, only the unchanged estimator is fitted, with the whole budget.

    Parameters
    ----------
    {estimator}
    param_grid : dict or list of dicts, optional
        From parameter names to lists of values, as the returned model will have them.

        {no_space}
    {budget}
    strategy : {"auto", "table", "noisy_max", "compose"} or strategy, default="auto"
        "table" fits all candidates with much more noise, publishes their noisy scores, and then
        fits the chosen one: see `FullTable`. "noisy_max" publishes only the choice, and its cost
        does not depend on the number of candidates: `NoisyMaximum`. "compose" gives each
        candidate's fit the same noise, and thereby publishes all models: `Composition`. These
        classes have the less common options. "auto" is "table", unless public numbers show that no
        candidate can win, or the estimator cannot be fitted with the noise of a table. Then the
        unchanged estimator is fitted once, and `plan` says why. With several metrics, "auto" is
        always "table". `LeastEpsilon` finds the least epsilon that reaches a target score.
    {scoring_by_several}
    cv : float, int, HoldOut or splitter, default=0.2
        A fraction is the probability that a record is held out for validation, independently of
        the other records. An integer is a number of folds (not with "noisy_max"); each record
        joins one of them at random, independently of the others. `HoldOut` holds out the records
        that a public rule selects, such as the newest. Of scikit-learn's splitters, KFold is
        accepted for its number of folds, and ShuffleSplit with one split for its fraction. A split
        that depends on other records cannot be charged for.
    refit : {"winner", True, False}, str or callable, default="winner"
        "winner" and True mean a single fit of the chosen candidate on all records. With "compose",
        "winner" returns the candidate's own model, at no further cost. False returns no model.
        With "table" and "compose", a callable may choose: it gets ``cv_results_``, which is paid
        for, and returns the index of a candidate.
        {refit_by_several}
    {n_jobs}
    {parameters_but_n_jobs}

    Attributes
    ----------
    best_estimator_ : estimator
        The tuned private model.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        With "table", the posterior mean of the chosen candidate's score, or its noisy score if the
        strategy chooses the largest one. With "compose", its noisy score. With "noisy_max" NaN,
        since no score is published. Not available if `refit` is a callable.
    best_score_std_ : float
        Standard deviation of that posterior, at most half of the public range of a score; with
        "table".
    cv_results_ : dict
        With "table" and "compose", one row for each candidate, as in scikit-learn but without
        times, which can depend on a record. It holds the parameters, the noisy scores (of each
        fold, if there are folds), and in ``std_test_score`` the standard deviation of the noise,
        or of the folds' noisy scores, at most half of the public range of a score. With
        "noisy_max", the winner's parameters. If nothing was searched, one row with the score
        NaN. With several metrics, columns end in their names in place of ``score``.
    best_index_ : int
        The winner's row of `cv_results_`.
    epsilon_, reached_, ex_post_
        See `LeastEpsilon`; only with this strategy.
    {common_attributes}

    See Also
    --------
    DPRandomSearchCV : A random number of candidates; only the best one is shown.

    Notes
    -----
    Neighbours differ by adding or removing one record. Theorem T8 for "table". The choice of
    "noisy_max" is permute-and-flip (McKenna and Sheldon 2020): a noisy maximum with one-sided
    exponential noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPGridSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=20_000) > 0
    >>> search = DPGridSearchCV(
    ...     DPLogisticRegression(), {"C": [1e-5, 1e-1, 10.0]}, epsilon=1.0, delta=1e-5,
    ...     random_state=0,
    ... ).fit(X, y)
    >>> search.privacy_.epsilon
    1.0
    >>> search.cv_results_["param_C"].tolist()
    [None, 1e-05, 0.1, 10.0]
    >>> search.score(X, y) > 0.9
    True
    """

    param_grid: Any

    def __init__(
        self,
        estimator: Any,
        param_grid: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        scoring: Any = None,
        cv: Any = 0.2,
        refit: Any = "winner",
        strategy: str | Strategy = "auto",
        n_jobs: int | None = None,
        verbose: int | None = None,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    _searched = ("param_grid", "grid")

    def _strategy(self) -> Strategy:
        if not isinstance(self.strategy, str):
            return self.strategy
        check_option(self.strategy, name="strategy", options=tuple(_STRATEGIES))
        return _STRATEGIES[self.strategy]()
