"""What the docstrings of the searches share."""

from __future__ import annotations

_N_JOBS = """\
n_jobs : int, optional
    Number of parallel workers, as in scikit-learn. Results do not depend on it.
"""
_BUT_N_JOBS = """\
verbose : int or None, default=None
    None shows what is going on, and for how long, once it has taken a second, where somebody
    watches: on a terminal or in a notebook. 0 shows nothing; above 0 it is shown at once and
    left; no count that must stay secret.
random_state : int or None, default=None
    None draws from the operating system's entropy; a seed gives reproducible research runs,
    whose noise is no secret to whoever knows the seed, and is shared by searches with the same
    seed. Models that are published hold the `random_state` of the estimator that was given, not
    the one of their fit.
n_public : int, optional
    Public constant used in place of the number of records, which otherwise is public.
ledger : PrivacyLedger, optional
    Where a fit sets its cost aside before it reads the data. None is the ledger in use, if
    any: that of ``with ledger:`` or `skdptune.config_context`."""

SHARED_TEXT = {
    "storage_of_runs": """\
storage : str or path-like, optional
    A file that keeps the runs: where the process was killed, the same search of the same data goes
    on, at the cost and with the noise of one that was not killed. It is as secret as the data:
    only its user may read it, its size shows no number of runs, and in the end all is overwritten
    but that the search has ended.""",
    "of_every_strategy": """\
diagnostics : bool, default=False
    Whether the search keeps what must stay secret in ``diagnostics_``. The fitted search is then
    **not private**.
error_score : {"worst", "raise"}, default="worst"
    "worst" gives a candidate whose fit fails the worst score, with the same noise as any other.
    Other than in scikit-learn there is no warning and no number to choose, since whether a fit
    fails can depend on one record. "raise" needs `diagnostics`.
pre_dispatch : int or str, default="2*n_jobs"
    As in scikit-learn.""",
    "estimator": """\
estimator : estimator
    A private estimator, or a Pipeline of private estimators and of steps that learn nothing.""",
    "budget": """\
epsilon, delta : float, optional
    The total for everything that is published: each candidate's fit, each score, the choice,
    and the final fit. Without epsilon each fit keeps the estimator's own budget, which must be
    finite, and `privacy_` reports the total; without delta it is the estimator's.""",
    "no_space": """\
Without a space, the estimator suggests one (its ``suggested_space``), around its present
values and at this budget and size; `plan` prints it. One parameter at a time is varied.
Where public numbers say that such a search cannot be expected to help, `plan` says why, and
the estimator is fitted once, as it is, on all records with all of the budget;
``best_score_`` is then NaN. To search all the same, give the space.""",
    "scoring": """\
scoring : str or BoundedScorer, optional
    A score with known sensitivity, see `skdptune.metrics`. None is accuracy for classifiers, and
    for a regression with a `target_bound` minus the squared error, of a record at most that of
    the middle of the range.""",
    "scoring_by_several": """\
scoring : str, BoundedScorer, list, tuple or dict, optional
    A score with known sensitivity, see `skdptune.metrics`; or several metrics: a list of names or
    scorers, or a dict from names to these, as in scikit-learn. Each metric is paid for: the scores
    of a candidate share what one may cost, so that each of m has the root of m times the noise
    (m times at a delta of 0), and nothing else changes. `plan` prints it. None is accuracy for
    classifiers, and for a regression with a `target_bound` minus the squared error, of a record at
    most that of the middle of the range.""",
    "refit_by_several": """\
Of several metrics, the name of the one that decides: by it the winner is chosen, fitted and
scored, and ``best_score_`` is its score; or a callable, or False.""",
    "common_parameters": _N_JOBS + _BUT_N_JOBS,
    "parameters_but_n_jobs": _BUT_N_JOBS,
    "common_attributes": """\
privacy_ : PrivacyReport
    The cost of everything, as a tree.
n_splits_, scorer_, multimetric_, classes_, n_features_in_, feature_names_in_
    As in scikit-learn.
diagnostics_ : dict
    With the strategy's `diagnostics`: what must stay secret.""",
}
