"""Parameter and attribute descriptions that the docstrings of the searches share.

Each section replaces the line ``{name}`` of a docstring.

[storage_of_runs]
storage : str or path-like, optional
    A file that stores the runs. If the process is killed, the same search of the same data resumes
    from it, with the cost and the noise of an uninterrupted search. The file is as secret as the
    data. Only its owner may read it, and its size does not show the number of runs. At the end
    everything is overwritten, except the note that the search has ended.

[of_every_strategy]
diagnostics : bool, default=False
    Whether to keep values that must stay secret in ``diagnostics_``. The fitted search is then
    **not private**.
error_score : {"worst", "raise"}, default="worst"
    "worst" gives a candidate whose fit fails the worst score, with the same noise as any other
    candidate. Unlike in scikit-learn, failures cause no warning and cannot get a number, since one
    record can decide whether a fit fails. "raise" needs `diagnostics`.
pre_dispatch : int or str, default="2*n_jobs"
    As in scikit-learn.

[estimator]
estimator : estimator
    A private estimator, or a Pipeline of private estimators and of steps that do not learn from
    data.

[budget]
epsilon, delta : float, optional
    The total budget for everything that is published: each candidate's fit, each score, the
    choice, and the final fit. Without epsilon each fit keeps the estimator's own budget, which
    must be finite, and `privacy_` reports the total. Without delta, the estimator's delta is
    used.

[no_space]
Without a space, the search uses the estimator's ``suggested_space``: values around its current
ones, for this budget and number of records. `plan` prints it. One parameter is varied at a time.
If public numbers show that such a search cannot be expected to help, or that no candidate of a
given space can score better by the required margin, `plan` says why. The unchanged estimator is
then fitted once on all records with the whole budget, and ``best_score_`` is NaN. `fit` warns if
a space was given. To search anyway, give a space and a `strategy`.

[scoring]
scoring : str or BoundedScorer, optional
    A score with known sensitivity, see `skdptune.metrics`. None is accuracy for classifiers, and
    the negative squared error for a regression with a `target_bound`. Errors are
    then clipped at a quarter of the range, before they are squared.

[scoring_by_several]
scoring : str, BoundedScorer, list, tuple or dict, optional
    A score with known sensitivity, see `skdptune.metrics`. Several metrics are given as a list of
    names or scorers, or as a dict from names to these, as in scikit-learn. Each metric is paid
    for: the scores of a candidate share the cost of one score. Each of m metrics therefore has the
    root of m times the noise (m times at a delta of 0), and nothing else changes. `plan` prints
    this noise. None is accuracy for classifiers, and the negative squared error for a regression
    with a `target_bound`. Errors are then clipped at a quarter of the range, before they are
    squared.

[refit_by_several]
With several metrics, the name of the metric by which the winner is chosen and refitted;
``best_score_`` is its score. A callable or False may be given instead.

[n_jobs]
n_jobs : int, optional
    Number of parallel workers, as in scikit-learn. Results do not depend on it.

[parameters_but_n_jobs]
verbose : int or None, default=None
    None shows the current phase and the elapsed time, once a call has taken a second, on a
    terminal or in a notebook. 0 shows nothing. A value above 0 shows them at once and leaves them
    on the screen. No count that must stay secret is shown.
random_state : int or None, default=None
    None draws from the operating system's entropy. A seed gives reproducible research runs.
    Anybody who knows the seed can compute the noise, and searches with the same seed share their
    noise. Published models keep the `random_state` of the given estimator, not that of their fit.
n_public : int, optional
    Public constant used in place of the number of records. By default the number of records is
    public.
ledger : PrivacyLedger, optional
    The ledger in which a fit reserves its cost before it reads the data. None uses the active
    ledger, if any: that of ``with ledger:`` or `skdptune.config_context`.

[common_attributes]
privacy_ : PrivacyReport
    The cost of everything, as a tree.
n_splits_, scorer_, multimetric_, classes_, n_features_in_, feature_names_in_
    As in scikit-learn.
diagnostics_ : dict
    Values that must stay secret; only with the strategy's `diagnostics`.
"""

SHARED_TEXT = __doc__
