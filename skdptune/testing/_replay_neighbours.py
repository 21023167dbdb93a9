"""Comparison of fits on neighbouring data that use the same noise."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from skdptune._validation import check_integer
from skdptune.accounting import PrivacyProfile
from skdptune.base import profile_of
from skdptune.base._shared import (
    ADD_OR_REMOVE,
    DEFAULT_DELTA,
    REPLACE,
    assumptions_of,
    by_persons,
    neighbouring_of,
    nested_estimators,
    own_parameters,
)
from skdptune.ledger._shared import BY_PERSON
from skdptune.testing._judgement import (
    ADDED,
    REPLACED,
    Claim,
    Replays,
    agreement_chance,
    allowed_shift,
    judged,
    judged_sizes,
    noiseless,
)
from skdptune.testing._published import (
    MISSING,
    Leaves,
    Neighbours,
    Whole,
    error_of,
    fit,
    has_returned,
    neighbours,
    same,
    with_public_size,
)
from skdptune.testing._replay_result import FIT, NeighbourReplay, Row

# A profile that allows everything has an infinite epsilon even at this delta.
_HALF = 0.5
_PUBLIC_SIZES = tuple(
    words.format(unit)
    for unit in ("records", "persons")
    for words in ("number of {} is public", "public number of {}")
)


@dataclass(frozen=True)
class Setting:
    """An estimator with and without a public constant as its number of records.

    Attributes
    ----------
    given, sized : estimator
        The user's estimator, and a copy with ``n_public`` wherever it is a parameter.
    profile : PrivacyProfile
        The claimed profile of `sized`.
    relation : str
        The neighbouring relation.
    n_samples, n_features, n_repeats : int
    """

    given: Any
    sized: Any
    profile: PrivacyProfile
    relation: str
    data: Neighbours
    n_repeats: int
    by_persons: bool = False

    @property
    def name(self) -> str:
        """Name of the estimator's class."""
        return type(self.given).__name__

    @property
    def is_changed(self) -> bool:
        """Whether the user did not set ``n_public``."""
        return self.sized is not self.given and any(
            own_parameters(part).get("n_public", 0) is None
            for _, part in nested_estimators(self.given)
        )

    def claim(self, leaves: Leaves) -> Claim:
        """Return what the claim allows for `sized`, given everything that one fit published."""
        states_size = self.states_size(leaves)
        has_constant = self._has_constant()
        return Claim(
            shift=allowed_shift(self.profile),
            chances={
                ADDED: agreement_chance(self.profile, self.n_repeats, 1),
                REPLACED: agreement_chance(self.profile, self.n_repeats, self._replacing),
            },
            adds=self.relation == ADD_OR_REMOVE,
            replacing=self._replacing,
            size_is_public=states_size and not has_constant,
            # Noise that depends on a public size differs between sizes.
            compares_sizes=has_constant or not states_size,
            n_samples=self.data.n_samples,
        )

    def claim_of_given(self, leaves: Leaves) -> Claim:
        """Return what the claim allows for the user's estimator."""
        claim = self.claim(leaves)
        return (
            replace(claim, size_is_public=self.states_size(leaves)) if self.is_changed else claim
        )

    def states_size(self, leaves: Leaves) -> bool:
        """Return whether the number of records is stated to be public."""
        stated = [
            self.relation,
            *assumptions_of(self.given, self.data.n_samples, self.data.n_features),
            *_sentences(leaves),
        ]
        return any(words in sentence for sentence in stated for words in _PUBLIC_SIZES)

    def announced(self, n_samples: int) -> Leaves:
        """Return what is announced for a fit to a number of records."""
        sizes = n_samples, self.data.n_features
        found: Leaves = {"privacy_profile(n)": Whole(profile_of(self.given, *sizes))}
        level = getattr(self.given, "noise_level", None)
        if level is not None:
            found["noise_level(n)"] = np.array([float(level(*sizes))])
        return found

    def result(self, rows: Sequence[Row]) -> NeighbourReplay:
        """Return the result of a replay."""
        delta = 0.0 if math.isfinite(self.profile.epsilon(0.0)) else DEFAULT_DELTA
        return NeighbourReplay(
            estimator=self.name,
            n_repeats=self.n_repeats,
            epsilon=self.profile.epsilon(delta),
            delta=delta,
            neighbouring=BY_PERSON[self.relation] if self.by_persons else self.relation,
            rows=tuple(rows),
        )

    @property
    def _replacing(self) -> int:
        # Replacing a record means removing one and adding another.
        return 1 if self.relation == REPLACE else 2

    def _has_constant(self) -> bool:
        """Return whether all private parts use ``n_public`` as their number of records."""
        if self.relation != ADD_OR_REMOVE:
            return False
        parts = [
            part for _, part in nested_estimators(self.sized) if hasattr(part, "privacy_profile")
        ]
        sizes = [own_parameters(part).get("n_public") for part in parts if self._has_cost(part)]
        return bool(sizes) and None not in sizes

    def _has_cost(self, part: Any) -> bool:
        try:
            cost = profile_of(part, self.data.n_samples, self.data.n_features)
        except ValueError:
            # An outer model may set values that the model inside it leaves open.
            return True
        return cost != PrivacyProfile.pure(0.0)


def make_setting(estimator: Any, data: Neighbours, n_repeats: int) -> Setting:
    """Create the setting of an estimator on some data; raise if it claims no privacy."""
    relation = neighbouring_of(estimator)
    sized = estimator
    if relation == ADD_OR_REMOVE:
        found = with_public_size(estimator, data.n_samples)
        # Some estimators do not accept n_public together with their other parameters.
        if has_returned(fit(found, data.without, data.rows, np.random.SeedSequence(0))):
            sized = found
    is_by_persons = data.without.groups is not None
    costed = by_persons(sized) if is_by_persons else sized
    profile = profile_of(costed, data.n_samples, data.n_features)
    if math.isinf(profile.epsilon(_HALF)):
        raise ValueError(
            f"estimator must claim some privacy; got {type(estimator).__name__} with a profile "
            "without any privacy. Give it a finite epsilon."
        )
    return Setting(estimator, sized, profile, relation, data, n_repeats, is_by_persons)


def _sentences(leaves: Leaves) -> Iterator[str]:
    """Iterate over the assumptions in the reports that a fit published."""
    for place, leaf in leaves.items():
        if "privacy_" in place and isinstance(leaf, Whole) and isinstance(leaf.value, str):
            yield leaf.value


# With fewer seeds, half of them would be too few to estimate a spread.
_FEWEST = 6
# Enough seeds to recognise a repeated value or factor.
_FEW = 3


def replay_neighbours(
    estimator: Any,
    X: Any,
    y: Any,
    record: Any,
    *,
    groups: Any = None,
    n_repeats: int = 20,
    random_state: int = 0,
) -> NeighbourReplay:
    """Fit an estimator with and without a record, using the same noise, and compare the results.

    Use it for your own estimators, and for those of any library that have a privacy profile: their
    own, or one given to `skdptune.base.register_profile`. It compares everything that a fitted
    copy contains, including private attributes, and its predictions:

    * Values that do not depend on the seed must be equal: ``classes_``, plans, clipping norms,
      learning rates, numbers of steps, expected batch sizes, reports. So must errors and warnings
      of the fit.
    * The mean of a value that depends on the seed, over the seeds, may move by a limited number of
      standard deviations of its noise. The claimed profile sets the limit. With the same noise on
      both sides, even small moves are visible.
    * Nothing may depend on the real number of records, unless the report or the neighbouring
      relation states that it is public. If a batch size, a rate or a mean uses a private number of
      records, one record changes the noise of everything.

    Parameters
    ----------
    estimator : estimator
        Unfitted, with a privacy profile; it is not changed. Its ``random_state``, and that of
        nested estimators, is set for each fit, and so are the global generators of Python, NumPy
        and torch. ``n_public`` is set to the number of records if it is None; constants are
        compared without it, too.
    X, y : array-like
        Made-up or public data, some hundred records; `y` is None for estimators without targets.
    record : array-like, or tuple of a row and a target
        The record that is added, and that replaces another one. It is a pair if `y` is given, with
        a label that occurs in `y`. An extreme record shows most. With `groups`, it is a person: a
        table of all rows, or a pair of this table and the rows' targets.
    groups : array-like of shape (n_rows,), optional
        The id of the person of each row of `X`, passed to ``fit``. Neighbours then differ by one
        person with all rows, and all numbers of records are numbers of persons.
    n_repeats : int, default=20
        Number of seeds. The number of fits is two to four times as large.
    random_state : int, default=0
        Determines the seeds.

    Returns
    -------
    NeighbourReplay
        It has `findings`, `rows`, `not_replayed` and `assert_passes`. It contains no values of the
        data, and prints as a table.

    Raises
    ------
    NoProfileError
        If the estimator claims no privacy.
    ValueError
        If it cannot be fitted to `X` and `y`.

    See Also
    --------
    check_private_estimator : Checks of the contract of private estimators.

    Notes
    -----
    A finding contradicts the claim. A larger shift of a mean is impossible for any noise
    (Theorem V1). Values without noise may differ only with a probability that the message states
    (Theorem V2). The width of the noise is estimated; therefore a correct estimator at the very
    limit of its claim fails for about one in some thousand values. At large epsilons, one record
    may almost determine a choice between candidates. If all seeds agree, this looks like a value
    without noise, or like a shift. The probability of this is stated: 0.003 at epsilon = 1 and 20
    seeds, 0.4 at epsilon = 3.

    The absence of findings is not a proof. Only one record, some data and averages are compared.
    Noise that is a third too small is not detected. Nor is a private size that is neither
    published nor a factor of the noise. Only a proof shows that the profile is right. An audit
    with many fits may refute it.

    The same noise means the same seed. Noise cannot be repeated if it comes from the operating
    system, or if the number of draws depends on the data. Then averages over fits are compared,
    and the result says so (`not_replayed`). Adding a record shifts the draws, for example in
    random batches. Replacing one, which is two steps between neighbours, often does not.

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

    scikit-learn's scaler is not private, even if someone claims a cost for it:

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
    data = neighbours(X, y, record, groups)
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
    """Return what fits to all data sets publish, with one fit to each per seed."""
    without, added, replaced = [], [], []
    # Alternate between data sets, so that drifts over time affect all of them equally.
    for seed in seeds:
        without.append(fit(estimator, data.without, data.rows, seed))
        added.append(fit(estimator, data.added, data.rows, seed))
        replaced.append(fit(estimator, data.replaced, data.rows, seed))
    constant = fit(estimator, data.constant, data.rows, seeds[0])
    return Replays(without, added, replaced, constant if has_returned(constant) else None)


def _ends_of_fits(runs: Replays) -> Replays:
    """Return how the fits ended: whether they returned, or with which error."""

    def ends(side: Sequence[Leaves]) -> list[Leaves]:
        return [{FIT: leaves[FIT]} for leaves in side]

    return Replays(ends(runs.without), ends(runs.added), ends(runs.replaced), None)


def _returned(runs: Replays) -> Replays:
    """Return the fits of seeds for which all fits returned, without how they ended."""
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
    """Mark the row of a value whose noise is not repeated even on the same data."""
    is_noise = row.replayed is not None
    return replace(row, replayed=False) if is_noise and row.attribute not in repeats else row


def _with_sizes(
    rows: list[Row],
    setting: Setting,
    data: Neighbours,
    seeds: Sequence[np.random.SeedSequence],
    replays: Replays,
) -> list[Row]:
    """Add rows for values that depend on the number of records if ``n_public`` is not set."""
    claim = setting.claim_of_given(replays.without[0])
    found: list[Row] = []
    if setting.is_changed:
        open_size = _returned(_runs(setting.given, data, seeds))
        if open_size.without:
            found = judged_sizes(open_size, claim, noiseless(replays))
    own, more = ([setting.announced(data.n_samples + extra)] for extra in (0, 1))
    announced = judged(Replays(own, more, more, None), claim)
    is_new = {row.attribute for row in found}
    # A finding made with the constant stays valid.
    kept = [row for row in rows if row.is_finding or row.attribute not in is_new]
    names = {row.attribute for row in kept}
    return [*kept, *(row for row in found if row.attribute not in names), *announced]
