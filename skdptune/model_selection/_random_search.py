"""Random search: fit a random number of independent candidates and return the best one."""

from __future__ import annotations

from typing import Any

from skdptune._docstrings import with_shared_text
from skdptune.base._shared import arguments_of
from skdptune.ledger import PrivacyLedger
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._search import TuningSearch
from skdptune.model_selection._strategies import RandomRuns


@with_shared_text(SHARED_TEXT)
class DPRandomSearchCV(TuningSearch):
    """Randomized search with differential privacy: one (epsilon, delta) for tuning and training.

    A random number of candidates are drawn independently, trained and scored privately. The
    candidate with the highest noisy score wins, if it is clearly better than the unchanged
    estimator. By default candidates are trained on a small random part of the data with much
    noise. The winner is then trained on all records with nearly all of the budget.

    This is the default choice among the searches.

    Parameters
    ----------
    {estimator}
    param_distributions : dict or list of dicts, optional
        From parameter names to lists or distributions (objects with ``rvs``). Every candidate is
        drawn independently, from lists with replacement, as the theorems require. The values are
        those of the returned model; runs on fewer records scale them, see `RandomRuns`.

        {no_space}

        A third of the draws are then the unchanged estimator.
    n_iter : float, default=10
        Mean number of candidates. Unlike in scikit-learn, the number itself is random and stays
        secret, which keeps the cost of the search low.
    {budget}
    {scoring}
    cv : float, int or HoldOut, default=0.2
        A fraction is the probability that a record is held out for validation, independently of
        the other records. An integer is a number of folds. `HoldOut` holds out the records that a
        public rule selects, such as the newest. A split that depends on other records cannot be
        charged for.
    refit : {"winner", True, False}, default="winner"
        "winner" returns the winning run's own model, at no further cost. True fits it once more on
        all records. False returns no model. If candidates are fitted on a part of the records, as
        by default on a thousand and more, "winner" and True both mean a final fit on the rest.
    strategy : RandomRuns, optional
        How candidates are tried, with the less common options: the distribution of their number,
        the share of the records on which they are fitted, and the theorem that bounds the cost.
    {n_jobs}
    {parameters_but_n_jobs}

    Attributes
    ----------
    best_estimator_ : estimator
        The tuned private model.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        The noisy score of its run.
    cv_results_ : dict
        The two rows that were paid for: the unchanged estimator, and the winner of the draws. The
        winner is returned only if its score is better by a margin that limits the probability of a
        mistake to 5 %. Without `try_own_values` of `RandomRuns`, only the winner's row.
    best_index_ : int
        The row of the returned candidate.
    {common_attributes}

    See Also
    --------
    RandomRuns : Its strategy.
    DPGridSearchCV : A fixed list of candidates.
    skdptune.accounting.search_on_split : The cost.

    Notes
    -----
    Neighbours differ by adding or removing one record. The selection costs what the envelope bound
    gives for one run (fit and noisy score) and for the distribution of the number of runs. The
    tuning records are a Poisson sample (Koskela and Kulkarni 2023, variants 1 and 2). One
    additional run, of the unchanged estimator, is paid for and shown (Theorem F14). The number of
    runs is secret and is never shown. The time that a fit took must not be published either.

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

    param_distributions: Any
    n_iter: float

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
        self.__dict__.update(arguments_of(locals()))

    _searched, _counted = ("param_distributions", "distribution"), "n_iter"
    _default_strategy = RandomRuns
