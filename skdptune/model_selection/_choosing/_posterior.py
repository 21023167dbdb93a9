"""The choice from a table of noisy scores: the default, unless another is clearly better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

from skdptune.model_selection._choosing._kernel import correlations, distances

# What is averaged over: lengths on axes from 0 to 1; deviations of candidates in units of the
# spread of the scores; and what they are worse than the default on average, in units of that.
_LENGTH_SCALES = (0.05, 0.15, 0.3)
_SPREADS = (0.05, 0.1, 0.25, 0.5, 1.0)
_DEFICITS = (0.0, 2.0, 4.0)
# Another candidate must be better than the default by this, in deviations of their difference.
_MARGIN = 0.25
# Scores without noise count as noisy by this, in units of their spread.
_LEAST_DEVIATION = 1e-4
# And scores with more noise than this say nothing all the same.
_LARGEST_DEVIATION = 1e6


@dataclass(frozen=True, eq=False)
class TableChoice:
    """The candidate that a table speaks for, and what it says of all of them.

    Attributes
    ----------
    index : int
        Place of the chosen candidate.
    mean, std : ndarray of shape (n_candidates,)
        Posterior means and standard deviations of the candidates' scores.
    """

    index: int
    mean: np.ndarray
    std: np.ndarray


def choose_from_table(
    points: np.ndarray,
    scores: np.ndarray,
    deviations: np.ndarray | float,
    default: int | None = None,
    *,
    run_deviation: float = 0.0,
) -> TableChoice:
    """Return the candidate to fit, from noisy scores of all: the default unless one is better.

    Parameters
    ----------
    points : ndarray of shape (n_candidates, n_columns)
        The candidates, as `encode` returns them.
    scores : ndarray of shape (n_candidates,)
        Their published scores; larger is better. One that is not finite says nothing.
    deviations : ndarray of shape (n_candidates,) or float
        Standard deviations of the noise on them. Infinite for a score that says nothing.
    default : int, optional
        Place of the candidate that is the estimator as it comes.
    run_deviation : float, default=0.0
        What the scores deviate by beside that: `TableOutlook.run_deviation`, times the range of a
        score.

    Returns
    -------
    TableChoice
        Without a single score the default, or else the first, and means that are NaN.

    Notes
    -----
    Theorem N5: the choice is post-processing of what the table publishes.

    Scores are those of a Gaussian process with the known noise. With a default, the process is of
    what candidates gain over it: 0 there, and elsewhere 0 or less on average, so that a table of
    nothing but noise returns the default. The default's own score has a flat prior, as the mean
    of all has where there is no default. Length scales, spreads and average deficits are averaged
    over by their marginal likelihoods, in closed form, so that nothing depends on a start or a
    seed. Of all candidates whose posterior gain less a margin is above 0, the one is chosen where
    that is largest; without a default, the one with the largest posterior mean.
    ``docs/benchmarks.md`` shows what this gains and loses.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.model_selection._choosing import choose_from_table, encode
    >>> points = encode([{"C": value} for value in (0.01, 0.1, 1.0, 10.0)])
    >>> clear = choose_from_table(points, np.array([0.7, 0.8, 0.85, 0.8]), 0.01, default=0)
    >>> clear.index, clear.mean.round(2)
    (2, array([0.71, 0.8 , 0.85, 0.8 ]))
    >>> choose_from_table(points, np.array([0.7, 0.8, 0.85, 0.8]), 0.2, default=0).index
    0
    """
    points, scores = np.asarray(points, dtype=float), np.asarray(scores, dtype=float)
    noise = np.hypot(
        np.broadcast_to(np.asarray(deviations, dtype=float), scores.shape), run_deviation
    )
    known = np.isfinite(scores) & np.isfinite(noise)
    if not known.any():
        nothing = np.full(scores.shape, np.nan)
        return TableChoice(default or 0, nothing, np.full(scores.shape, np.inf))
    centre, unit = _centre_and_unit(scores[known], noise[known])
    table = _Table(
        distances(points),
        (scores[known] - centre) / unit,
        np.clip(noise[known] / unit, _LEAST_DEVIATION, _LARGEST_DEVIATION),
        np.flatnonzero(known),
        default,
    )
    found = _averaged(list(_posteriors(table)))
    index = _chosen(found, default)
    return TableChoice(index, centre + unit * found.mean, unit * found.std)


def _centre_and_unit(scores: np.ndarray, noise: np.ndarray) -> tuple[float, float]:
    """Return the mean of the scores and their spread; their noise where all are equal."""
    largest = float(np.abs(scores).max()) or 1.0
    centre, spread = (
        largest * float(np.mean(scores / largest)),
        largest * float(np.std(scores / largest)),
    )
    # Scores that differ by rounding alone are equal.
    least = 1e-12 * largest
    if spread <= least:
        spread = max(float(noise.max()), least)
    return centre, spread


@dataclass(frozen=True, eq=False)
class _Table:
    """Scores in units of their spread, about their mean, at `known` places among the points."""

    apart: np.ndarray
    scores: np.ndarray
    noise: np.ndarray
    known: np.ndarray
    default: int | None


@dataclass(frozen=True, eq=False)
class _Posterior:
    """Moments of scores and of gains over the default, and the logarithm of the evidence."""

    mean: np.ndarray
    std: np.ndarray
    gain: np.ndarray
    gain_std: np.ndarray
    evidence: float


def _posteriors(table: _Table) -> Iterator[_Posterior]:
    """Yield the posterior for each length scale, spread and deficit."""
    for length_scale in _LENGTH_SCALES:
        shape = correlations(table.apart, length_scale)
        below = np.zeros(len(shape))
        if table.default is not None:
            with_default = shape[:, table.default]
            # Conditioned on a gain of 0 at the default.
            shape, below = shape - np.outer(with_default, with_default), 1.0 - with_default
        for spread in _SPREADS:
            deficits = _DEFICITS if table.default is not None else (0.0,)
            yield from _of_process(
                table, spread**2 * shape, [-spread * d * below for d in deficits]
            )


def _of_process(
    table: _Table, covariance: np.ndarray, priors: list[np.ndarray]
) -> Iterator[_Posterior]:
    """Yield the posterior for each prior mean of the gains, with one covariance of them."""
    known = table.known
    factor = cho_factor(covariance[np.ix_(known, known)] + np.diag(table.noise**2), lower=True)
    shared = covariance[:, known]
    weights = cho_solve(factor, shared.T).T
    ones = cho_solve(factor, np.ones(known.size))
    precision = float(ones.sum())
    variance = covariance.diagonal() - (weights * shared).sum(axis=1)
    follows = weights.sum(axis=1)
    log_volume = np.log(factor[0].diagonal()).sum() + 0.5 * np.log(precision)
    for prior in priors:
        left = table.scores - prior[known]
        level = float(ones @ left) / precision
        left = left - level
        gain = prior + weights @ left
        yield _Posterior(
            level + gain,
            np.sqrt(np.maximum(variance + (1.0 - follows) ** 2 / precision, 0.0)),
            gain,
            np.sqrt(np.maximum(variance + follows**2 / precision, 0.0)),
            -log_volume - 0.5 * float(left @ cho_solve(factor, left)),
        )


def _averaged(posteriors: list[_Posterior]) -> _Posterior:
    """Return the moments of the mixture, weighted by the evidence."""
    evidence = np.array([posterior.evidence for posterior in posteriors])
    weights = np.exp(evidence - logsumexp(evidence))

    def moments(mean: str, std: str) -> tuple[np.ndarray, np.ndarray]:
        means = np.array([getattr(posterior, mean) for posterior in posteriors])
        deviations = np.array([getattr(posterior, std) for posterior in posteriors])
        middle = weights @ means
        return middle, np.sqrt(weights @ (deviations**2 + (means - middle) ** 2))

    return _Posterior(*moments("mean", "std"), *moments("gain", "gain_std"), 0.0)


def _chosen(found: _Posterior, default: int | None) -> int:
    """Return the place of the best; of equal ones the default, or else the first."""
    if default is None:
        # Rounded, so that equal candidates are equal.
        return int(np.argmax(found.mean.round(9)))
    bound = found.gain - _MARGIN * found.gain_std
    bound[default] = 0.0
    best = int(np.argmax(bound.round(9)))
    return best if bound[best].round(9) > 0.0 else default
