"""A lower bound on epsilon from a single fit."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from skdptune._compat import number_of_samples
from skdptune._validation import check_integer, check_option, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.audit._bounds import read_claim
from skdptune.audit._canaries import (
    BACKGROUNDS,
    N_BESIDE,
    check_instance,
    check_table,
    check_targets,
    known_extremes,
    labels_of,
    last_step,
    orthogonal_rows,
    public_constant,
    relation_of,
)
from skdptune.audit._games import response
from skdptune.audit._one_run_bounds import (
    epsilon_verdict,
    guessed,
    mean_verdict,
    numbers_of_guesses,
    profile_verdict,
)
from skdptune.audit._result import OneRunResult
from skdptune.base import profile_of
from skdptune.base._shared import (
    ADD_OR_REMOVE,
    REPLACE,
    cost_of,
    expected_refits,
    nested_estimators,
    own_parameters,
    set_seeds,
    table_shape,
    without_noise,
)
from skdptune.mechanisms import as_generator
from skdptune.testing._shared import with_public_size

ORTHOGONAL, MISLABELLED = "orthogonal", "mislabelled"
_KINDS = ("auto", ORTHOGONAL, MISLABELLED)


@dataclass(frozen=True, eq=False)
class Canaries:
    """Records that are included at random, their substitutes, and the other records.

    Attributes
    ----------
    rows, targets : ndarray
        The canaries; `targets` is None if there are none.
    instead_rows, instead_targets : ndarray
        Substitutes for canaries that are not included, if the neighbouring relation replaces
        records.
    others, other_targets : ndarray
        Records that are always included.
    reason : str
    has_opposites : bool
        Whether `instead_rows` are as likely as `rows` for a model that has seen neither.
    """

    rows: Any
    targets: Any
    instead_rows: Any
    instead_targets: Any
    others: Any
    other_targets: Any
    reason: str
    has_opposites: bool

    def __len__(self) -> int:
        """Return the number of canaries."""
        return number_of_samples(self.rows)

    def data(self, is_in: np.ndarray, relation: str) -> tuple[Any, Any]:
        """Return the data with the included canaries in order, after the other records.

        Parameters
        ----------
        is_in : ndarray of bool
        relation : str
            How neighbours differ: a record is added, replaced by another one, or replaced by a row
            of zeros.

        Notes
        -----
        Theorem A6: data sets whose coins differ in one place are neighbours.
        """
        rows, targets = self.rows, self.targets
        if relation == ADD_OR_REMOVE:
            rows = rows[is_in]
            targets = None if targets is None else targets[is_in]
        else:
            places = is_in.reshape(-1, *[1] * (rows.ndim - 1))
            rows = np.where(places, rows, self.instead_rows if relation == REPLACE else 0.0)
            if targets is not None and relation == REPLACE:
                targets = np.where(is_in, targets, self.instead_targets)
        X = np.concatenate([self.others, rows.astype(self.others.dtype, copy=False)])
        return X, None if targets is None else np.concatenate([self.other_targets, targets])


def orthogonal_canaries(
    estimator: Any,
    shape: tuple[int, ...],
    y: Any,
    size: int,
    data: tuple[Any, Any] | None,
    rng: np.random.Generator,
) -> Canaries:
    """Return canaries along different axes, as long as clipping allows.

    Parameters
    ----------
    estimator : estimator
    shape : tuple of int
        Shape of the data.
    y : array-like or None
        Used for labels if the estimator declares none.
    size : int
        Number of canaries; if there are fewer axes, canaries share them.
    data : pair of arrays, or None
        The records that are always included; None for a few rows in the middle of the allowed
        range.
    rng : Generator
        Draws the labels.
    """
    found = orthogonal_rows(estimator, shape, size, None if data is None else data[0])
    extremes = known_extremes(estimator, shape, y)
    if found is None or extremes is None:
        raise TypeError(
            "estimator must be of a family whose clipping is known if canaries are chosen "
            f"automatically; got {type(last_step(estimator)).__name__}. Give canaries as a pair "
            '(rows, targets), or use canaries="mislabelled".'
        )
    rows, opposite, why = found
    targets = _drawn_targets(estimator, y, extremes.target, size, rng)
    others, other_targets = extremes.background(N_BESIDE) if data is None else data
    return Canaries(rows, targets, opposite, targets, others, other_targets, f"{size} {why}", True)


def mislabelled_canaries(
    estimator: Any, X: np.ndarray, y: np.ndarray, size: int, rng: np.random.Generator
) -> Canaries:
    """Return some of the given records with wrong labels; the others are always included.

    Parameters
    ----------
    estimator : estimator
    X, y : ndarray
    size : int
        Number of canaries; at most the number of records.
    rng : Generator
        Draws the records and their labels.
    """
    labels = labels_of(estimator, y)
    if labels is None or size > len(X):
        raise ValueError(
            f"canaries must be {ORTHOGONAL!r} or given unless there are labels and as many "
            f"records as canaries; got {len(X)} records, {size} canaries and "
            f"{'labels' if labels is not None else 'targets that are not labels'}."
        )
    order = rng.permutation(len(X))
    chosen, rest = np.sort(order[:size]), np.sort(order[size:])
    places = np.searchsorted(labels, y[chosen])
    wrong = labels[(places + rng.integers(1, len(labels), size)) % len(labels)]
    reason = f"{size} of the given records, each with a wrong label"
    rows = X[chosen]
    return Canaries(rows, wrong, rows, y[chosen], X[rest], y[rest], reason, False)


def given_canaries(canaries: Any, X: np.ndarray, y: Any) -> Canaries:
    """Return the user's canaries, to be added to the given data.

    Parameters
    ----------
    canaries : pair (rows, targets)
        Targets may be None.
    X, y : array-like
    """
    if not isinstance(canaries, tuple) or len(canaries) != 2:
        raise ValueError(
            f"canaries must be one of {list(_KINDS)} or a pair (rows, targets); got "
            f"{type(canaries).__name__}."
        )
    rows, targets = np.asarray(canaries[0]), canaries[1]
    targets = None if targets is None else np.asarray(targets)
    if rows.shape[1:] != X.shape[1:] or (targets is not None and len(targets) != len(rows)):
        raise ValueError(
            f"canaries must have rows of the shape {X.shape[1:]}, and as many targets; got shape "
            f"{rows.shape}."
        )
    if (targets is None) != (y is None):
        raise ValueError(
            "canaries must have targets if y is given, and only then; got another pair."
        )
    return Canaries(
        rows, targets, np.zeros_like(rows), targets, X, y, f"{len(rows)} given records", False
    )


def _drawn_targets(
    estimator: Any, y: Any, target: Any, size: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Return random targets, so that they cancel in an intercept."""
    if target is None:
        return None
    model = last_step(estimator)
    if is_classifier(model):
        labels = labels_of(estimator, y)
        return None if labels is None else labels[rng.integers(0, len(labels), size)]
    return np.where(rng.integers(0, 2, size) == 1, float(target), -float(target))


@expected_refits()
def seeded_fit(prepared: Any, X: Any, y: Any, seed: np.random.SeedSequence) -> Any:
    """Return a fitted copy, with all seeds derived from one; warnings are suppressed."""
    made = clone(prepared)
    set_seeds(made, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.fit(X) if y is None else made.fit(X, y)


def scores_of(
    score: Any,
    fitted: Any,
    prepared: Any,
    made: Canaries,
    size: int,
    seed: np.random.SeedSequence,
) -> tuple[np.ndarray, str]:
    """Return how well a model knows each canary, and a description of this score.

    Parameters
    ----------
    score : callable or None
        The user's function.
    fitted, prepared : estimator
        The estimator after and before its fit.
    made : Canaries
    size : int
        Constant used as the number of records.
    seed : SeedSequence
        Seed of the fit.
    """
    if score is not None:
        found = np.asarray(score(fitted, made.rows, made.targets), dtype=np.float64)
        if found.shape != (len(made),):
            raise ValueError(
                f"score must return one number for each of {len(made)} canaries; got shape "
                f"{found.shape}."
            )
        return found, str(getattr(score, "__name__", type(score).__name__))
    first, words = untrained(prepared, made, seed), "the model's response to a canary"
    known = _known(fitted, made.rows, made.targets)
    if first is not None:
        known -= _known(first, made.rows, made.targets)
        words += ", minus its response before training"
    if made.has_opposites:
        known -= _known(fitted, made.instead_rows, made.targets)
        if first is not None:
            known += _known(first, made.instead_rows, made.targets)
        return known, f"{words}, minus the same for the opposite row"
    reference = without_noise(prepared, size, made.rows.shape[1])
    reference = seeded_fit(reference, made.others, made.other_targets, np.random.SeedSequence(0))
    known -= _known(reference, made.rows, made.targets)
    return known, f"{words}, minus the response of a model without noise and canaries"


def untrained(prepared: Any, made: Canaries, seed: np.random.SeedSequence) -> Any:
    """Return a net of this package with its initial weights, or None for other estimators.

    Parameters
    ----------
    prepared : estimator
    made : Canaries
    seed : SeedSequence
        Seed of the fit.

    Notes
    -----
    Theorem A6. In other libraries' nets, the noise may depend on the draw of the first weights.
    """
    for prefix, part in nested_estimators(prepared):
        names = own_parameters(part)
        ours = type(part).__module__.startswith("skdptune.neural_network")
        if ours and {"module", "lr"} <= names.keys():
            return seeded_fit(
                clone(prepared).set_params(**{f"{prefix}lr": 0.0}),
                made.others,
                made.other_targets,
                seed,
            )
    return None


def _known(fitted: Any, rows: Any, targets: Any) -> np.ndarray:
    found = response(fitted, rows, targets)
    return np.sign(np.asarray(targets, dtype=float)) * found if is_regressor(fitted) else found


_FORMS = ("fdp", "dp")
_FEWEST, _USUAL, _MOST = 2, 100, 1000


def one_run_audit(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    canaries: Any = "auto",
    n_canaries: int | None = None,
    n_guesses: int | tuple[int, int] | None = None,
    background: str = "made-up",
    form: str = "fdp",
    claim: PrivacyProfile | float | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
    score: Callable[[Any, Any, Any], Any] | None = None,
    random_state: Any = None,
) -> OneRunResult:
    """Fit an estimator once with many canaries, included at random, and bound its epsilon.

    The audit guesses which canaries were in the data, from how well the fitted model knows each.
    Under a true claim, for any model, more than a certain number of right guesses is unlikely. One
    fit is enough, which makes audits of nets affordable. The bound is lower than that of
    `audit_epsilon`, in particular if canaries interfere. Use many columns, or few canaries.

    Parameters
    ----------
    estimator : estimator
        A classifier or regression, or a pipeline or search of one; it is not changed. If
        ``n_public`` is None, it is set, so that the noise does not depend on the number of
        included canaries.
    X, y : array-like
        Made-up or public data. Only their shape is used, unless ``background="given"``; then the
        canaries are added to them.
    canaries : {"auto", "orthogonal", "mislabelled"} or pair (rows, targets), default="auto"
        "orthogonal" is one row along each axis, as long as clipping allows, with random labels; if
        there are more canaries than columns, some share an axis. "mislabelled" means records of
        `X` with wrong labels, among the other records. "auto" is "orthogonal". A pair is added to
        `X` unchanged.
    n_canaries : int, optional
        Number of canaries; by default, the number of columns, but at least 100 and at most 1000.
    n_guesses : int or pair (n_in, n_out), optional
        Number of guesses: in total, half of them "in", or of each kind. No guess is made about the
        other canaries. By default, half and a quarter of the canaries are tried, each with half of
        the risk.
    background : {"made-up", "given"}, default="made-up"
        The other records for "orthogonal": a few rows in the middle of the allowed range, or `X`.
    form : {"fdp", "dp"}, default="fdp"
        "fdp" tests the whole claimed profile, which gives a far higher bound for Gaussian noise.
        The bound is for curves of the claim's kind, with less or more noise. "dp" tests epsilons
        at one delta, for any kind of noise.
    claim : PrivacyProfile or float, optional
        By default, the profile in the fitted estimator's ``privacy_``, or else its `profile_of`. A
        number is an epsilon at `delta`.
    delta : float, optional
        The delta at which the bound is stated; by default, that of the estimator's report.
    confidence : float, default=0.95
        Probability that a true claim is not refuted, and that the bound is at most the truth.
    score : callable, optional
        Maps a fitted model, rows and targets to one number per row, which is large for rows that
        the model knows. The default is the margin of the row's label, or the prediction in the
        direction of its target. From this, the value for the opposite row is subtracted, or that
        of a model without noise and canaries. For nets of this package, the value of the untrained
        net is subtracted as well.
    random_state : int or generator, optional
        Seed of the coins, the labels and the fit's noise.

    Returns
    -------
    OneRunResult
        It has `epsilon_lower`, `claimed_epsilon`, `is_refuted`, `n_right`, `n_guesses`, and
        `gaussian`: a far higher bound that assumes independent scores.

    See Also
    --------
    audit_epsilon : Gives a higher bound, from many fits.

    Notes
    -----
    Theorem A4 ("dp", after Steinke, Nasr and Jagielski 2023) and Theorem A5 ("fdp", after
    Mahloujifar, Melis and Chaudhuri 2024); Theorem A6 pays for the choice among several numbers of
    guesses. Coins are independent, so two data sets whose coins differ in one place are neighbours
    of the estimator's relation.

    With "fdp", `epsilon_lower` belongs to a curve that is derived from the claim. At each type I
    error, the normal quantile of its power is at a distance from that of the error, which is the
    claim's distance times a common factor. For a Gaussian claim, the curve is Gaussian, too. The
    curves below it are refuted.

    `epsilon_lower` far below the claim is normal: under a Gaussian claim, an event of probability
    .05 may show nearly all coins. At epsilon = 8, a thousand canaries that do not interfere show 4
    to 5. Theorem A8 excludes such events. It compares the mean scores of included and of excluded
    canaries, assuming that scores are independent, and those of excluded canaries normal. This
    holds for sums with Gaussian noise and canaries that do not interfere.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.audit import one_run_audit
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> model = DPLogisticRegression(solver="sgd", epsilon=8.0, classes=[0, 1])
    >>> result = one_run_audit(model, np.zeros((500, 500)), random_state=0)
    >>> result.is_refuted, 2.0 < result.epsilon_lower < 8.0
    (False, True)
    >>> 4.0 < result.gaussian.epsilon_lower < 8.0
    True

    The same model with an eighth of its epsilon as the claim:

    >>> one_run_audit(model, np.zeros((500, 500)), claim=1.0, random_state=0).is_refuted
    True
    """
    check_option(form, name="form", options=_FORMS)
    check_option(background, name="background", options=BACKGROUNDS)
    confidence = check_real(
        confidence, name="confidence", lower=0.5, upper=1.0, lower_open=True, upper_open=True
    )
    check_instance(estimator)
    check_targets(X, y)
    rng = as_generator(random_state) or np.random.default_rng()
    made = _canaries(estimator, X, y, canaries, n_canaries, background, rng)
    sizes = numbers_of_guesses(len(made), n_guesses)
    relation = relation_of(estimator)
    prepared, size = _prepared(estimator, X, made, relation)
    is_in = rng.integers(0, 2, len(made)) == 1
    seed = np.random.SeedSequence(int(rng.integers(2**63)))
    fitted = seeded_fit(prepared, *made.data(is_in, relation), seed)
    scores, words = scores_of(score, fitted, prepared, made, size, seed)
    if claim is None and not hasattr(fitted, "privacy_"):
        claim = profile_of(prepared, size, made.rows.shape[1])
    profile, delta = read_claim([fitted], size, claim, delta, can_be_zero=False)
    found = guessed(scores, is_in, sizes)
    risk = (1.0 - confidence) / len(found)
    test = profile_verdict if form == "fdp" else epsilon_verdict
    epsilon_lower, p_value, best = test(found, len(made), profile, delta, risk)
    sides = scores[is_in], scores[~is_in]
    return OneRunResult(
        estimator=type(estimator).__name__,
        epsilon_lower=epsilon_lower,
        claimed_epsilon=profile.epsilon(delta),
        delta=delta,
        confidence=confidence,
        is_refuted=p_value <= 1.0 - confidence,
        form=form,
        p_value=p_value,
        gaussian=mean_verdict(*sides, profile, delta, 1.0 - confidence),
        n_canaries=len(made),
        n_guesses=best.n_guesses,
        n_right=best.n_right,
        canary=made.reason,
        statistic=words,
        neighbouring=relation,
        statistic_with=sides[0],
        statistic_without=sides[1],
    )


def _canaries(
    estimator: Any,
    X: Any,
    y: Any,
    canaries: Any,
    n_canaries: int | None,
    background: str,
    rng: np.random.Generator,
) -> Canaries:
    shape = check_table(X)
    if not isinstance(canaries, str):
        return given_canaries(canaries, np.asarray(X), None if y is None else np.asarray(y))
    check_option(canaries, name="canaries", options=_KINDS)
    size = min(max(math.prod(shape[1:]), _USUAL), _MOST)
    if n_canaries is not None:
        size = check_integer(n_canaries, name="n_canaries", lower=_FEWEST)
    if canaries == MISLABELLED:
        if y is None:
            raise ValueError(f"y must be given with canaries={MISLABELLED!r}; got None.")
        return mislabelled_canaries(estimator, np.asarray(X), np.asarray(y), size, rng)
    data = None
    if background == "given":
        data = np.asarray(X), None if y is None else np.asarray(y)
    return orthogonal_canaries(estimator, shape, y, size, data, rng)


def _prepared(estimator: Any, X: Any, made: Canaries, relation: str) -> tuple[Any, int]:
    """Return a copy with a constant number of records, since coins change the real number."""
    # Theorem A6: with a constant size, the noise does not depend on coins.
    shape = table_shape(X)
    size = max(int(shape[0]), len(made.others) + len(made) // 2)
    if relation != ADD_OR_REMOVE:
        return clone(estimator), len(made.others) + len(made)
    constant = public_constant(estimator, (size, *shape[1:]))
    sized = with_public_size(estimator, constant)
    if cost_of(sized, size, shape[1]) != cost_of(sized, 2 * size + 1, shape[1]):
        raise TypeError(
            "estimator must have a parameter n_public, or a cost that does not depend on the "
            f"number of records, since coins decide how many there are; got "
            f"{type(estimator).__name__}."
        )
    return sized, size
