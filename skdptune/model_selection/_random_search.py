"""Random search: a random number of independent candidates, of which the best wins."""

from __future__ import annotations

from typing import Any

from skdptune._docstrings import with_shared_text
from skdptune.ledger import PrivacyLedger
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._search import TuningSearch
from skdptune.model_selection._strategies import RandomRuns, Strategy


@with_shared_text(SHARED_TEXT)
class DPRandomSearchCV(TuningSearch):
    """Randomized search with differential privacy: one (epsilon, delta) for tuning and training.

    A random number of candidates, drawn independently, are trained and scored privately; the
    one of highest noisy score wins, if it is clearly better than the estimator as it is. By
    default they are trained on a small random part of the data with much noise, and what wins on
    all records with nearly all of the budget.

    Use it by default.

    Parameters
    ----------
    {estimator}
    param_distributions : dict or list of dicts, optional
        From parameter names to lists or distributions (objects with ``rvs``). Every candidate is
        drawn afresh, from lists with replacement, as the theorems require. The values are those
        of the model that is returned; runs on fewer records scale them, see `RandomRuns`.

        {no_space}

        A third of the draws are then the estimator as it is.
    n_iter : float, default=10
        Mean number of candidates. Other than in scikit-learn the number itself is random and
        stays secret: that is what makes the search cheap.
    {budget}
    {scoring}
    cv : float, int or HoldOut, default=0.2
        A fraction holds each record out for validation with that chance, by a random draw of its
        own; an integer asks for folds; `HoldOut` holds out those that a public rule names, such as
        the newest. A split that depends on other records could not be charged for.
    refit : {"winner", True, False}, default="winner"
        "winner" returns the winning run's own model, at no further cost; True fits it once more on
        all records; False returns none. Where candidates are fitted on a part of the records, as
        by default on a thousand and more, "winner" and True both mean a final fit on the rest.
    strategy : RandomRuns, optional
        How candidates are tried, with all that is seldom turned: the distribution of their number,
        the share of the records that they are fitted on, the theorem that is used.
    {common_parameters}

    Attributes
    ----------
    best_estimator_ : estimator
        The tuned private model.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        Its run's noisy score.
    cv_results_ : dict
        The two rows that were paid for: the estimator as it is, and the winner of the draws. The
        latter is returned only if it scores so much better that the chance of a mistake is at
        most 5 %. Without `try_own_values` of `RandomRuns`, the winner's row alone.
    best_index_ : int
        The row of what is returned.
    {common_attributes}

    See Also
    --------
    RandomRuns : Its strategy.
    DPGridSearchCV : A fixed list of candidates.
    skdptune.accounting.search_on_split : The cost.

    Notes
    -----
    Neighbours differ by adding or removing one record. The selection costs what the envelope bound
    gives for one run (fit and noisy score) and for the distribution of the number of runs; the
    tuning records are a Poisson sample (Koskela and Kulkarni 2023, variants 1 and 2). One more
    run, of the estimator as it is, is paid for and shown (Theorem F14). The number
    of runs is secret: it is shown nowhere, and how long a fit took must not be published either.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import loguniform
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPRandomSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=2000) > 0
    >>> search = DPRandomSearchCV(
    ...     DPLogisticRegression(), {"C": loguniform(1e-3, 1e2)}, epsilon=1.0, delta=1e-5,
    ...     random_state=0,
    ... ).fit(X, y)
    >>> search.privacy_.epsilon
    1.0
    >>> search.score(X, y) > 0.8
    True
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any = None,
        *,
        n_iter: float = 10,
        epsilon: float | None = None,
        delta: float | None = None,
        scoring: Any = None,
        cv: Any = 0.2,
        refit: Any = "winner",
        strategy: RandomRuns | None = None,
        n_jobs: int | None = None,
        verbose: int | None = None,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.scoring = scoring
        self.cv = cv
        self.refit = refit
        self.strategy = strategy
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.n_public = n_public
        self.ledger = ledger

    def _space(self) -> tuple[Any, str, str]:
        return self.param_distributions, "param_distributions", "distribution"

    def _strategy(self) -> Strategy:
        return RandomRuns() if self.strategy is None else self.strategy

    def _n_candidates(self) -> float:
        return self.n_iter
