"""Audits by many fits on neighbouring data: lower bounds on epsilon, and their power."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune._compat import number_of_features, number_of_samples, safe_indexing
from skdptune._formatting import shown
from skdptune._progress import Progress
from skdptune._validation import check_integer, check_n_jobs, check_option, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.audit._analyses import METHODS, analysis
from skdptune.audit._bounds import ClaimCurve, read_claim
from skdptune.audit._canaries import Canary, worst_canary
from skdptune.audit._games import Game, Players, Trials, as_seed, numbers_of, read_numbers
from skdptune.audit._result import AuditResult
from skdptune.base import profile_of
from skdptune.base._shared import (
    ADD_OR_REMOVE,
    REPLACE,
    assumptions_of,
    neighbouring_of,
    nested_estimators,
    own_parameters,
)
from skdptune.ledger._shared import BY_PERSON
from skdptune.testing._shared import neighbours, published, with_public_size, with_rows

_PUBLIC_SIZE = "number of records is public"
# Rows of a person who is made up for an audit.
_ROWS_OF_A_PERSON = 50


def canary_for(estimator: Any, X: Any, y: Any, canary: Any, groups: Any = None) -> Canary:
    """Create the neighbouring data sets of an audit.

    Parameters
    ----------
    estimator : estimator
    X, y : array-like
        The other records; targets may be None.
    canary : "auto", Canary, or a record
        A record is a row if `y` is None, and a pair (row, target) otherwise.
    groups : array-like, optional
        The person of each row. A record is then a table of a person's rows.
    """
    if isinstance(canary, Canary):
        return canary
    if isinstance(canary, str):
        if canary != "auto":
            raise ValueError(f'canary must be "auto", a Canary or a record; got {shown(canary)}.')
        found = worst_canary(estimator, X, y)
        return found if groups is None else found.of_persons(_ROWS_OF_A_PERSON)
    if groups is not None:
        return _with_person(estimator, X, y, canary, groups)
    return _with_record(estimator, X, y, *_parts(canary, X, y))


def _parts(record: Any, X: Any, y: Any) -> tuple[Any, Any]:
    row, target = record, None
    if y is not None:
        if not isinstance(record, tuple) or len(record) != 2:
            raise ValueError(
                "canary must be a pair (row, target), since y is given; got "
                f"{type(record).__name__}."
            )
        row, target = record
    try:
        shape = np.shape(row)
    except ValueError:
        shape = ()
    wanted = tuple(X.shape[1:]) if hasattr(X, "shape") else np.shape(X)[1:]
    if shape != wanted:
        raise ValueError(f"canary must have a row of the shape {wanted}; got shape {shape}.")
    return np.asarray(row), target


def _with_record(estimator: Any, X: Any, y: Any, row: Any, target: Any) -> Canary:
    """Return the data with one more record, or with one replaced if the claim is about that."""
    relation, size = neighbouring_of(estimator), number_of_samples(X)
    kept = np.arange(size - 1 if relation == REPLACE else size)
    others = safe_indexing(X, kept)
    targets = None if y is None else safe_indexing(y, kept)
    return Canary(
        with_rows(others, [row]),
        None if y is None else with_rows(targets, [target]),
        X,
        y,
        relation,
        lambda fitted: numbers_of(fitted, row, target),
        _constant(estimator, X, relation),
        "the given record",
    )


def _with_person(estimator: Any, X: Any, y: Any, person: Any, groups: Any) -> Canary:
    """Return the data with one more person."""
    relation, data = neighbouring_of(estimator), neighbours(X, y, person, groups)
    last = np.asarray(safe_indexing(data.added.X, [-1]))[0]
    target = None if y is None else np.asarray(data.added.y)[-1]
    return Canary(
        data.added.X,
        data.added.y,
        data.without.X,
        data.without.y,
        BY_PERSON[relation],
        lambda fitted: numbers_of(fitted, last, target),
        _constant(estimator, data.rows, relation, data.n_samples),
        "the given person",
        data.added.groups,
        data.without.groups,
    )


def _constant(estimator: Any, X: Any, relation: str, size: int | None = None) -> int | None:
    """Return the constant that replaces the number of records, or None if there is none.

    Raises
    ------
    ValueError
        If the claim holds for a public number of records, which adding a record would change.
    """
    size, width = size or number_of_samples(X), number_of_features(X)
    if relation == REPLACE:
        return None
    given = [own_parameters(part).get("n_public", 0) for _, part in nested_estimators(estimator)]
    constants = [constant for constant in given if constant != 0]
    try:
        if None in constants:
            profile_of(with_public_size(estimator, size), size, width)
        # The constant is public and replaces the real number.
        stated = () if constants else assumptions_of(estimator, size, width)
    except (TypeError, ValueError):
        # Some estimators do not accept a constant with their other parameters.
        constants, stated = [], (_PUBLIC_SIZE,)
    if relation != ADD_OR_REMOVE or any(_PUBLIC_SIZE in sentence for sentence in stated):
        raise ValueError(
            "canary must be a Canary of two data sets of the same size, since the guarantee of "
            f"{type(estimator).__name__} assumes that the number of records is public; got a "
            'record. "auto" makes one.'
        )
    return size if None in constants else None


FloatArray = NDArray[np.float64]

_MOST = 4096
# Computation times are not covered by any claim (Assumption F6).
_CLOCKS = ("time", "seconds", "history", "dur_")


class PublishedNumbers:
    """The numbers of a fit that an audit reads: named ones first, then everything published.

    Parameters
    ----------
    first : callable or None
        Function from a fitted estimator to some numbers.
    row : array-like
        Row for which the fitted object's responses are read.
    examples : list of estimator
        Fitted estimators; only places that all of them have, with equally many numbers, are read.

    Attributes
    ----------
    n_first : int
        Number of numbers returned by `first`.
    """

    def __init__(self, first: Callable[[Any], Any] | None, row: Any, examples: list[Any]) -> None:
        self._first, self._row = first, row
        self.n_first = 0 if first is None else int(np.size(first(examples[0])))
        found = [self._places(fitted) for fitted in examples]
        self._sizes = {
            place: numbers.size
            for place, numbers in found[0].items()
            if all(place in other and other[place].size == numbers.size for other in found)
        }
        total = sum(self._sizes.values())
        self._kept = np.unique(np.linspace(0, total - 1, min(total, _MOST)).round().astype(int))

    def __call__(self, fitted: Any) -> FloatArray:
        """Return the numbers of a fit, with NaN for missing ones."""
        places = self._places(fitted)
        rest = [np.empty(0)]
        for place, size in self._sizes.items():
            found = places.get(place, np.empty(0))
            rest.append(found if found.size == size else np.full(size, np.nan))
        first = [] if self._first is None else [np.ravel(self._first(fitted))]
        return np.concatenate([*first, np.concatenate(rest)[self._kept]])

    def _places(self, fitted: Any) -> dict[str, FloatArray]:
        clocks = _clocked_columns(fitted)
        return {
            place: leaf
            for place, leaf in published(fitted, self._row).items()
            if isinstance(leaf, np.ndarray)
            and not place.startswith(clocks)
            and not any(clock in place for clock in _CLOCKS)
        }


def _clocked_columns(fitted: Any) -> tuple[str, ...]:
    """Return the numbered places of a search's columns that contain times."""
    results = getattr(fitted, "cv_results_", None)
    if not isinstance(results, Mapping):
        return ()
    places = [place for place, name in enumerate(results) if "time" in str(name)]
    return tuple(f"cv_results_[{place}]" for place in places)


_STATISTICS = ("auto", "response", "direction")
_FEWEST = 40


def audit_epsilon(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    canary: Any = "auto",
    n_trials: int = 1000,
    confidence: float = 0.95,
    statistic: str | Callable[[Any], Any] = "auto",
    method: str = "auto",
    claim: PrivacyProfile | float | None = None,
    delta: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int | None = None,
) -> AuditResult:
    """Fit an estimator many times with and without a record, and bound its epsilon from below.

    It audits estimators, pipelines and searches of this package and of others, as long as they
    state a cost or a `claim` is given. The bound holds for any estimator. A claim below the bound
    is refuted. A claim above the bound is not thereby proved.

    Parameters
    ----------
    estimator : estimator or search
        It is not changed. ``random_state`` is set for each fit, including nested estimators, so
        that all fits have independent noise. ``n_public`` is set if it is None and one side has
        one more record.
    X, y : array-like
        Made-up or public data; `y` may be None. With ``canary="auto"`` only their shape is used.
    groups : array-like of shape (n_rows,), optional
        The id of the person of each row, passed to ``fit``. The canary is then a person with all
        rows. "auto" repeats the worst record in 50 rows of one person, and each other row is a
        person. A given canary is a table of the person's rows, or a pair of this table and
        the rows' targets.
    canary : "auto", Canary, or a record, default="auto"
        The record that is present in half of the fits. "auto" is the worst one for the estimator's
        family, on made-up data (`worst_canary`). A row, or a pair (row, target) if `y` is given,
        is added to `X`. If the claim is about replacing a record, it replaces the last one
        instead.
    n_trials : int, default=1000
        Number of fits, half of them with the record; an upper limit for ``method="sequential"``.
    confidence : float, default=0.95
        Probability that the bound is at most the true epsilon, and that a true claim is not
        refuted.
    statistic : {"auto", "response", "direction"} or callable, default="auto"
        The numbers that are compared. "response" means a few numbers that the record is known to
        change: the model's prediction for it, scores of a search, statistics of scalers.
        "direction" means all numbers that a fit publishes. "auto" combines both. Several numbers
        are projected on one direction, of the numbers or of their distances from the usual ones;
        this direction is chosen on other fits. A callable is given a fitted copy and returns one
        or several numbers.
    method : {"auto", "counts", "gaussian", "sequential"}, default="auto"
        "counts" bounds the probabilities of an event that was chosen by other fits; it is valid
        for any mechanism. "sequential" bets on events against the claim, and stops as soon as the
        claim is refuted or can no longer be. "gaussian" gives a much higher bound from the same
        number of fits. It is valid if the statistic is normal with equal spread on both sides,
        which is tested but not proved. "auto" counts and bets, and adds the bound for a normal
        statistic.
    claim : PrivacyProfile or float, optional
        By default, the profile in the fitted estimator's ``privacy_``, or else its `profile_of`. A
        number is an epsilon at `delta`.
    delta : float, optional
        The delta at which the bound is stated; by default, that of the estimator's report.
    n_jobs : int, optional
        Number of workers, as in joblib.
    random_state : int or generator, optional
        Determines the seeds of the fits.
    verbose : int or None, default=None
        None shows the number of fits on terminals and in notebooks, after one second. 0 shows
        nothing. Larger values show the number immediately and keep it at the end.

    Returns
    -------
    AuditResult
        With `epsilon_lower`, `claimed_epsilon`, `is_refuted`, `power`, `verdict` and `plot`.

    See Also
    --------
    one_run_audit : A bound from a single fit, for estimators that are costly to fit.
    worst_canary : The record selected by "auto".
    skdptune.testing.replay_neighbours : Finds values that depend on a record without any noise.

    Notes
    -----
    Theorem A1 ("counts"), Theorem A2 ("gaussian") and Theorem A3 ("sequential"). The neighbouring
    relation is that of the claim. A claim is a whole profile, and an event tests all of it.
    Therefore a claim may be refuted even if the bound at one delta is below it.

    The power states which noise the same audit would have found to be too small. For this, audits
    are simulated in which the observed distances from the means are multiplied by a factor. If the
    factor is far from 1, the record is not the worst one, or there are too few fits. The factor is
    an estimate.

    Every fit costs what it claims. If the data are private and a ledger is active, the fits of an
    audit are recorded like any others. Made-up data need no ledger.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.audit import audit_epsilon
    >>> from skdptune.linear_model import DPLinearSVC
    >>> svc = DPLinearSVC(
    ...     solver="output", C=0.01, epsilon=8.0, classes=[0, 1], data_norm=1.0,
    ...     fit_intercept=False,
    ... )
    >>> X = np.zeros((50, 2))
    >>> result = audit_epsilon(svc, X, n_trials=100, random_state=0)
    >>> result.is_refuted
    False

    The same model with a claimed epsilon of 1:

    >>> result = audit_epsilon(svc, X, n_trials=400, claim=1.0, random_state=0)
    >>> result.is_refuted
    True
    """
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be an instance; got the class {estimator.__name__}.")
    if not hasattr(estimator, "get_params"):
        raise TypeError(f"estimator must have get_params, as clones need; got {shown(estimator)}.")
    check_option(method, name="method", options=METHODS)
    if not callable(statistic):
        check_option(statistic, name="statistic", options=_STATISTICS)
    n_pairs = check_integer(n_trials, name="n_trials", lower=_FEWEST) // 2
    confidence = check_real(
        confidence, name="confidence", lower=0.5, upper=1.0, lower_open=True, upper_open=True
    )
    check_n_jobs(n_jobs)
    seed, name = as_seed(random_state), type(estimator).__name__
    chosen = canary_for(estimator, X, y, canary, groups)
    with Progress(f"audit of {name}", verbose) as progress:
        players = Players(progress, seed, n_jobs, 2 * n_pairs)
        game, examples = _game(chosen, estimator, statistic, players)
        persons = chosen.groups_with
        size = number_of_samples(chosen.X_with) if persons is None else len(set(persons))
        curve = ClaimCurve(*read_claim(examples, size, claim, delta))
        trials = Trials(*_width(game, examples))
        analyse = analysis(method, curve, 1.0 - confidence)
        findings = analyse(trials, n_pairs, lambda number: players.add_to(trials, game, number))
    return AuditResult(
        estimator=name,
        claimed_epsilon=curve.epsilon,
        delta=curve.delta,
        confidence=confidence,
        method=method,
        statistic=_described(statistic, trials),
        neighbouring=chosen.neighbouring,
        canary=chosen.reason,
        n_trials=2 * len(trials),
        n_failed=trials.n_failed,
        **vars(findings),
    )


def _game(
    canary: Canary, estimator: Any, statistic: Any, players: Players
) -> tuple[Game, list[Any]]:
    """Return the game, and fits of both sides from which the places of numbers are read."""
    prepared = canary.prepared(estimator)
    game = Game(prepared, canary.sides, canary.statistic)
    examples, errors = [], []
    for present, seed in zip((True, False), players.seeds(2), strict=True):
        try:
            examples.append(game.fitted(present, seed))
        except Exception as problem:
            errors.append(problem)
    if not examples:
        raise ValueError(
            "estimator must be one that can be fitted to the data of the audit; the fit of "
            f"{type(estimator).__name__} raised {shown(errors[0])}. Its message may show "
            "records and is omitted: fit the estimator yourself to read it."
        ) from None
    if callable(statistic):
        return replace(game, statistic=statistic), examples
    if statistic == "response":
        return game, examples
    first = canary.statistic if statistic == "auto" else None
    return replace(game, statistic=PublishedNumbers(first, canary.X_with[-1:], examples)), examples


def _width(game: Game, examples: list[Any]) -> tuple[int, int | None]:
    """Return the size of the statistic, and how many of its numbers are the most informative."""
    numbers = read_numbers(game.statistic(examples[0]))
    first = game.statistic.n_first if isinstance(game.statistic, PublishedNumbers) else 0
    return numbers.size, first or None


def _described(statistic: Any, trials: Trials) -> str:
    if callable(statistic):
        return str(getattr(statistic, "__name__", type(statistic).__name__))
    words = {
        "auto": "the model's response to the canary, and all published numbers",
        "response": "the model's response to the canary",
        "direction": "all published numbers of the model",
    }[statistic]
    return f"{words}: {trials.width} numbers in one direction" if trials.width > 1 else words
