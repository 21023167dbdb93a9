"""The parts of docstrings that classifier and regressor share."""

TEXT = {
    "summary": """\
The explainable boosting machine of interpret-core, for tables with columns of numbers and of
words: predictions add up one score for each column, and the scores of a column are a curve that
can be drawn. It needs no scaling, and learns steps and bends that linear models do not.
`to_interpret` leads to the pictures and explanations of interpret-core.""",
    "budget": """\
epsilon : float or None, default=1.0
    Privacy budget of a fit; infinite for no noise. Not used where `noise_multiplier` is given.
delta : float, default=1e-5
    The other number of the budget; positive, and far below 1 over the number of records.""",
    "columns": """\
bounds : tuple (lower, upper), optional
    Range of the columns, for tables of numbers: two numbers, or two arrays with one number per
    column. It must be known without looking at the data; what lies beyond is clipped.
schema : Schema, dict or str, optional
    In place of `bounds`, for tables with words and gaps: the range or the categories of every
    column, see `skdptune.preprocessing.Schema`. A column of words stays one column.""",
    "boosting": """\
max_bins : int, default=32
    About how many bins a column of numbers is cut into, with about as many records each.
max_rounds : int, default=100
    Rounds of boosting, each of which gives every column one tree. More rounds take more noise in
    each, at the same cost.
max_leaves : int, default=3
    Leaves of a tree.
learning_rate : float, optional
    Share of its mean residual by which a leaf moves. Times `max_rounds`, it sets how far scores
    may get and how much noise they have. None follows a rule from public numbers: the rate at
    which the noise of a prediction has a standard deviation of 0.4 (of a logit; more where there
    are few records for the budget) or of 0.08 (of half of the targets' range), and at most 1 or
    0.3. ``docs/benchmarks.md`` says what it was measured on.
bin_share : float, default=0.1
    Share of the budget (of its squared shift, see Notes) that pays for the counts of records in
    bins; the rest is for the boosting.
noise_multiplier : float, optional
    Noise of the whole fit, as standard deviations to a sensitivity of 1. Given, it replaces
    `epsilon`.
random_state : int or None, default=None
    None draws from the operating system's entropy; a seed gives reproducible research runs.
    Fits with the same seed, such as clones on two folds, share their noise.
n_public : int, optional
    Public constant in place of the number of records. A search sets it where it fits on a
    random subset of the data, whose size must stay secret.
ledger : PrivacyLedger, optional
    Where a fit sets its cost aside before it reads the data. None is the ledger in use, if
    any: that of ``with ledger:`` or `skdptune.config_context`.""",
    "shared_attributes": """\
term_names_ : list of str
    The column of each term.
term_scores_ : list of ndarray of shape (n_bins,) or (n_bins, n_classes)
    The scores of each term's bins, with mean zero.
bin_weights_ : list of ndarray of shape (n_bins,)
    Noisy numbers of records in the bins.
bins_ : list of ndarray of shape (n_cells,)
    For each term, the bin of each of its cells: equal parts of a range, or categories.
learning_rate_ : float
    The rate that was used.
intercept_ : ndarray of shape (1,) or (n_classes,)
    The mean prediction.
privacy_ : PrivacyReport
    What the fit cost.
n_features_in_ : int
    Number of columns.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the columns, where they had any.""",
    "notes": """\
Theorem B1.

Neighbours differ by adding or removing one record. The algorithm is that of Nori et al. (2021,
arXiv 2106.09680), as in interpret-core: noisy counts decide on bins, then trees that are cut at
random move the scores of one column after another by noisy sums of residuals. With k columns and
T rounds a record changes k counts and k T sums; all are Gaussian releases, which compose to one,
of squared shift ``1 / noise_multiplier**2``. So a fit costs exactly one Gaussian release, whatever
the other parameters are. interpret-core splits epsilon between both stages and adds it up again;
the same noise takes some 13 % less of it here.

Noise, counts and sums are those of this package, since what a fit of interpret-core (0.7.8) shows
is more than its report says: the number of records (``bag_weights_``, and the bins), labels and
categories that one record alone has (also with declared categories), and in regressions residuals
as long as the targets are, where its noise suits the length of their range.""",
}
