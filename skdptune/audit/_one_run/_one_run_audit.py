"""A lower bound on epsilon from a single fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from skdptune._validation import check_integer, check_option, check_real
from skdptune.accounting import PrivacyProfile
from skdptune.audit._canaries import (
    BACKGROUNDS,
    check_instance,
    check_table,
    check_targets,
    public_constant,
    relation_of,
    with_public_size,
)
from skdptune.audit._claims import read_claim
from skdptune.audit._one_run._guesses import guessed, numbers_of_guesses
from skdptune.audit._one_run._many_canaries import (
    KINDS,
    MISLABELLED,
    Canaries,
    given_canaries,
    mislabelled_canaries,
    orthogonal_canaries,
)
from skdptune.audit._one_run._result import OneRunResult
from skdptune.audit._one_run._scores import scores_of, seeded_fit
from skdptune.audit._one_run._verdicts import epsilon_verdict, profile_verdict
from skdptune.base import (
    ADD_OR_REMOVE,
    cost_of,
    profile_of,
    table_shape,
)
from skdptune.mechanisms import as_generator

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
    """Fit an estimator once with many canaries, each in by a coin, and bound its epsilon.

    Which canaries were in the data is guessed from how well the fitted model knows each. Under a
    true claim no more than some number of guesses can be right but for a small chance, whatever
    the model does, and however it treats the canaries together. So one fit is enough, which
    makes audits of nets affordable. The bound is lower than that of `audit_epsilon`, and the more
    so the more canaries get into each other's way: give many columns, or few canaries.

    Parameters
    ----------
    estimator : estimator
        A classifier or regression, or a pipeline or search of one; it is not changed.
        ``n_public`` is set where it is None, so that the number of included canaries sets no
        noise.
    X, y : array-like
        Made-up or public data. Their form decides, and with ``background="given"`` they are
        there beside the canaries.
    canaries : {"auto", "orthogonal", "mislabelled"} or pair (rows, targets), default="auto"
        "orthogonal" is rows along axes of their own, as long as clipping lets through, with
        labels by chance; more than there are columns share axes. "mislabelled" is records of
        `X` with wrong labels, the other ones being there. "auto" is "orthogonal". A pair is taken
        as it is, beside `X`.
    n_canaries : int, optional
        By default the number of columns, but at least 100 and at most 1000.
    n_guesses : int or pair (n_in, n_out), optional
        How many canaries are guessed at: in all, half of them to be in, or of each kind. Of the
        others nothing is said. By default several numbers are tried, and paid for.
    background : {"made-up", "given"}, default="made-up"
        The other records of "orthogonal": few rows in the middle of what is allowed, or `X`.
    form : {"fdp", "dp"}, default="fdp"
        "fdp" tests the whole claimed profile, which sees far more where noise is Gaussian; the
        bound is then for curves of the claim's kind, with less or more noise. "dp" tests epsilons
        at one delta, whatever the kind of noise.
    claim : PrivacyProfile or float, optional
        By default what the fitted estimator states in ``privacy_``, or else its `profile_of`.
        A number is an epsilon, at `delta`.
    delta : float, optional
        Where the bound is stated; by default that of the estimator's report.
    confidence : float, default=0.95
        Probability with which a true claim is not refuted, and the bound is at most the truth.
    score : callable, optional
        From a fitted model, rows and targets to a number per row, large for rows that it knows.
        By default the margin of the row's label, or the prediction in the direction of its
        target, less that of the opposite row, or less what a model without noise and without
        canaries says; for nets of this package also less what the first weights say.
    random_state : int or generator, optional
        Where coins, labels and the fit's noise come from.

    Returns
    -------
    OneRunResult
        With `epsilon_lower`, `claimed_epsilon`, `is_refuted`, `n_right`, `n_guesses`.

    See Also
    --------
    audit_epsilon : A higher bound, from many fits.

    Notes
    -----
    Theorem A4 ("dp", after Steinke, Nasr and Jagielski 2023) and Theorem A5 ("fdp", after
    Mahloujifar, Melis and Chaudhuri 2024); Theorem A6 pays for the choice among several numbers
    of guesses. Coins are independent, so that two data sets whose coins differ in one are
    neighbours of the estimator's relation. With "fdp" `epsilon_lower` is that of the curve whose
    power has, at each type I error, a normal quantile that is moved by a factor of the claim's:
    for a Gaussian claim, of Gaussian noise so many times less. The curves below it are refuted.

    A bound far below the claim is usual: a fit shows m guesses, of which a Gaussian claim lets few
    be sure. At epsilon = 8 a thousand canaries that do not interfere show 4 to 5.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.audit import one_run_audit
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> model = DPLogisticRegression(solver="sgd", epsilon=8.0, classes=[0, 1])
    >>> result = one_run_audit(model, np.zeros((500, 500)), random_state=0)
    >>> result.is_refuted, 2.0 < result.epsilon_lower < 8.0
    (False, True)

    The same model, by someone who claims an eighth of its epsilon:

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
    seed = _seed(rng)
    fitted = seeded_fit(prepared, *made.data(is_in, relation), seed)
    scores, words = scores_of(score, fitted, prepared, made, size, seed)
    if claim is None and not hasattr(fitted, "privacy_"):
        claim = profile_of(prepared, size, made.rows.shape[1])
    profile, delta = read_claim([fitted], size, claim, delta, can_be_zero=False)
    found = guessed(scores, is_in, sizes)
    risk = (1.0 - confidence) / len(found)
    test = profile_verdict if form == "fdp" else epsilon_verdict
    epsilon_lower, p_value, best = test(found, len(made), profile, delta, risk)
    claimed = profile.epsilon(delta)
    return OneRunResult(
        estimator=type(estimator).__name__,
        epsilon_lower=epsilon_lower,
        claimed_epsilon=claimed,
        delta=delta,
        confidence=confidence,
        is_refuted=p_value <= 1.0 - confidence,
        form=form,
        p_value=p_value,
        n_canaries=len(made),
        n_guesses=best.n_guesses,
        n_right=best.n_right,
        canary=made.reason,
        statistic=words,
        neighbouring=relation,
        statistic_with=scores[is_in],
        statistic_without=scores[~is_in],
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
    check_option(canaries, name="canaries", options=KINDS)
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
    """Return a copy with a constant for the number of records, which coins would change."""
    # Theorem A6.
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


def _seed(rng: np.random.Generator) -> np.random.SeedSequence:
    return np.random.SeedSequence(int(rng.integers(2**63)))
