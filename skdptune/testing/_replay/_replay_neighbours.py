"""Fits on neighbouring data with the same noise, compared with what the estimator claims."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from skdptune._validation import check_integer
from skdptune.testing._replay._fits import Neighbours, error_of, fit, has_returned, neighbours
from skdptune.testing._replay._judgement import Replays, judged, judged_sizes, noiseless
from skdptune.testing._replay._published import MISSING, Leaves, same
from skdptune.testing._replay._result import FIT, NeighbourReplay, Row
from skdptune.testing._replay._setting import Setting, make_setting

# Halves of fewer seeds would leave nothing to estimate a spread from.
_FEWEST = 6
# To see the same value, or the same factor, again.
_FEW = 3


def replay_neighbours(
    estimator: Any, X: Any, y: Any, record: Any, *, n_repeats: int = 20, random_state: int = 0
) -> NeighbourReplay:
    """Fit an estimator with and without a record, with the same noise, and compare all it shows.

    It is for estimators of one's own and of any library with a privacy profile, their own or one
    given to `skdptune.base.register_profile`. Everything that a fitted copy holds is compared,
    private attributes included, and what it predicts:

    * What no seed changes must be the same: ``classes_``, plans, clipping norms, learning rates,
      numbers of steps, expected batch sizes, reports. So must errors and warnings of the fit.
    * What varies with the seed may move, on average over the seeds, by no more standard deviations
      of its noise than the claimed profile allows. With the same noise on both sides, the move is
      seen as it is, however small.
    * Nothing may follow from the real number of records, unless the report or the neighbouring
      relation states that it is public. A batch size, a rate or a mean over a private number of
      records is how one record changes the noise of all.

    Parameters
    ----------
    estimator : estimator
        Unfitted, with a privacy profile; it is not changed. Its ``random_state`` and those inside
        are set for each fit, and so are the global generators of Python, NumPy and torch.
        ``n_public`` is set to the number of records where it is None; constants are compared
        without it, too.
    X, y : array-like
        Made-up or public data, some hundred records; `y` is None for what takes no targets.
    record : array-like, or tuple of a row and a target
        The record that is added, and put in the place of another: the pair where `y` is given,
        with a label that occurs in `y`. An extreme one shows most.
    n_repeats : int, default=20
        Number of seeds. Two to four times as many fits are made.
    random_state : int, default=0
        Where the seeds come from.

    Returns
    -------
    NeighbourReplay
        With `findings`, `rows`, `not_replayed` and `assert_passes`. It holds no values of the
        data, and prints as a table.

    Raises
    ------
    NoProfileError
        If the estimator claims nothing.
    ValueError
        If it cannot be fitted to `X` and `y`.

    See Also
    --------
    check_private_estimator : Checks of the contract of private estimators.

    Notes
    -----
    A finding contradicts the claim: a mean that moves farther is impossible whatever the noise is
    (Theorem V1), values without noise may differ only by a chance that the message states
    (Theorem V2). Widths of noise are estimated, which lets a right estimator fail once in some
    thousand values at the very limit of its claim. At large epsilons a choice between candidates
    that one record all but decides looks like a value without noise, or a shift, if all seeds
    agree; the chance of that is stated, 0.003 at epsilon = 1 and 20 seeds, 0.4 at epsilon = 3.

    No finding proves nothing: one record and some data are compared, averages alone, and noise a
    third too small is not seen; nor is a private size that is neither published nor a factor of
    the noise. That the profile is right takes a proof, and an audit of many fits to refute it.

    The same noise means the same seed. Noise is not repeated where it comes from the operating
    system, or where the number of draws depends on the data; then averages over fits are compared,
    as the result says (`not_replayed`). Where adding a record shifts the draws, as it does in
    random batches, replacing one, which is two steps from neighbour to neighbour, often does not.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdptune.preprocessing import DPStandardScaler
    >>> from skdptune.testing import replay_neighbours
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(100, 2))
    >>> private = DPStandardScaler(epsilon=1.0, bounds=(-1, 1))
    >>> replay_neighbours(private, X, None, [50.0, 50.0]).findings
    []

    The scaler of scikit-learn, whoever claims whatever for it:

    >>> from skdptune.accounting import PrivacyProfile
    >>> from skdptune.base import register_profile
    >>> class Scaler(StandardScaler):
    ...     pass
    >>> @register_profile(Scaler)
    ... def false_cost_of_scaler(estimator, n_samples, n_features):
    ...     return PrivacyProfile.pure(1.0)
    >>> result = replay_neighbours(Scaler(), X, None, [50.0, 50.0])
    >>> [finding.attribute for finding in result.findings]
    ['n_samples_seen_', 'mean_', 'var_', 'scale_', 'transform(X)']
    """
    check_integer(n_repeats, name="n_repeats", lower=_FEWEST)
    check_integer(random_state, name="random_state", lower=0)
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be an instance; got the class {estimator.__name__}.")
    data = neighbours(X, y, record)
    setting = make_setting(estimator, data, n_repeats)
    seeds = np.random.SeedSequence(random_state).spawn(n_repeats)
    runs = _runs(setting.sized, data, seeds)
    first = next(filter(has_returned, runs.without), None)
    if first is None:
        raise ValueError(
            f"estimator must be one that can be fitted to X and y; the fit of {setting.name} "
            f"raised {error_of(runs.without[0])}."
        )
    claim = setting.claim(first)
    rows, replays = judged(_ends_of_fits(runs), claim), _returned(runs)
    if len(replays.without) >= _FEWEST:
        again = fit(setting.sized, data.without, data.rows, seeds[0])
        before = runs.without[0]
        repeated = {place for place in again if same(again[place], before.get(place, MISSING))}
        rows += [_marked(row, repeated) for row in judged(replays, claim)]
        rows = _with_sizes(rows, setting, data, seeds[:_FEW], replays)
    return setting.result(rows)


def _runs(estimator: Any, data: Neighbours, seeds: Sequence[np.random.SeedSequence]) -> Replays:
    """Return what fits to all data sets publish, one of each per seed."""
    without, added, replaced = [], [], []
    # In turns, so that what drifts with time is the same on all sides.
    for seed in seeds:
        without.append(fit(estimator, data.without, data.rows, seed))
        added.append(fit(estimator, data.added, data.rows, seed))
        replaced.append(fit(estimator, data.replaced, data.rows, seed))
    constant = fit(estimator, data.constant, data.rows, seeds[0])
    return Replays(without, added, replaced, constant if has_returned(constant) else None)


def _ends_of_fits(runs: Replays) -> Replays:
    """Return whether fits returned, or with which error they ended."""

    def ends(side: Sequence[Leaves]) -> list[Leaves]:
        return [{FIT: leaves[FIT]} for leaves in side]

    return Replays(ends(runs.without), ends(runs.added), ends(runs.replaced), None)


def _returned(runs: Replays) -> Replays:
    """Return the fits of those seeds with which all of them returned, less how they ended."""
    sides = runs.without, runs.added, runs.replaced
    kept = [all(map(has_returned, fits)) for fits in zip(*sides, strict=True)]

    def published(side: Sequence[Leaves]) -> list[Leaves]:
        return [
            {place: leaf for place, leaf in leaves.items() if place != FIT}
            for leaves in compress(side, kept)
        ]

    without, added, replaced = map(published, sides)
    return Replays(without, added, replaced, runs.constant)


def _marked(row: Row, repeats: Collection[str]) -> Row:
    """Return a row that says so where one seed does not repeat the noise even on the same data."""
    is_noise = row.replayed is not None
    return replace(row, replayed=False) if is_noise and row.attribute not in repeats else row


def _with_sizes(
    rows: list[Row],
    setting: Setting,
    data: Neighbours,
    seeds: Sequence[np.random.SeedSequence],
    replays: Replays,
) -> list[Row]:
    """Return rows that state, too, what follows from the number of records without a constant."""
    claim = setting.claim_of_given(replays.without[0])
    found: list[Row] = []
    if setting.is_changed:
        open_size = _returned(_runs(setting.given, data, seeds))
        if open_size.without:
            found = judged_sizes(open_size, claim, noiseless(replays))
    constants = [{name: pair[0] for name, pair in setting.announced().items()}]
    more = [{name: pair[1] for name, pair in setting.announced().items()}]
    announced = judged(Replays(constants, more, more, None), claim)
    is_new = {row.attribute for row in found}
    # A finding with the constant stands.
    kept = [row for row in rows if row.is_finding or row.attribute not in is_new]
    names = {row.attribute for row in kept}
    return [*kept, *(row for row in found if row.attribute not in names), *announced]
