"""Choose from a table of noisy scores: the default, unless another candidate is clearly better."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, ndtri

from skdptune.base._shared import LOSS_OF_DOUBLING
from skdptune.mechanisms import noise_for_budget
from skdptune.model_selection._running import clipped_deviation

# Deviation of runs from what a final fit would score, in units of the loss caused by their noise;
# and the loss, in points, from which on this deviation grows with its seventh power. Beyond that,
# candidates seem much better only because they withstand noise.
_DEVIATION_OF_LOSS, _LARGEST_OF_RULE, _POWER = 0.4, 6.0, 6
# Loss by the noise of runs, in points, from which on no choice by their scores has gained
# anything; for scores of clipped errors, the deviation of runs grows from here on.
_LARGEST_LOSS = 4.5
# Scores of errors that are clipped at a bound. If most errors are near it, a run's score depends
# on its noise to the first order, and not to the second as the loss does.
_CLIPPED = ("neg_squared_error", "neg_absolute_error")
# Sampling deviation of a score times the root of its number of records: two models disagree on few
# records.
_DEVIATION_OF_RECORDS = 0.25
# Points that the final fit may be expected to lose by the noise of a search's cost, and the
# largest deviation of scores that only choose among suggested values, in units of their range.
# Then the same for classifications of few columns, for which more was measured.
_LARGEST_COST, _LARGEST_DEVIATION_OF_SCORE = 0.3, 0.01
_LARGEST_COST_OF_FEW, _LARGEST_DEVIATION_OF_FEW = 0.6, 0.02
# Largest gain that suggested values had, in units of the range of a score, by its name. A search
# of suggested values must find such a gain at least half of the time.
_LARGEST_GAINS, _LARGEST_OF_OTHERS = {"accuracy": 0.08, "neg_squared_error": 0.04}, 0.01
# What gains and losses are counted in, if not in points of accuracy.
_OTHER_UNIT = "% of the range of a score"


def expected_loss(noise_ratio: float, epsilon: float, n_samples: int) -> float:
    """Return what a multiple of the noise may lose, in % of the range of a score, at most 100."""
    doublings = math.log2(max(noise_ratio, 1.0))
    return min(doublings * LOSS_OF_DOUBLING / (epsilon * n_samples), 100.0)


@dataclass(frozen=True)
class TableOutlook:
    """Public numbers that decide whether a search by noisy scores can be expected to help.

    Parameters
    ----------
    n_samples : int
        Number of records; public.
    epsilon : float
        The total of the search.
    noise_ratio : float
        Effective noise of a run divided by that of an untuned fit on all records.
    n_score : int
        Number of records that a score averages.
    score_noise : float, default=0.0
        Standard deviation of the noise on a score, in units of its range.
    rivals : int or callable, default=1
        See `margin`.
    score : str, default="accuracy"
        Name of the score. Scores other than accuracy use only a small part of their range.
    is_narrow : bool, default=True
        Whether this is a classification of at most 150 columns, for which more was measured.

    Notes
    -----
    Theorem N5, Theorem F12: all of this follows from public numbers, which may decide what is
    done.

    Runs have many times the noise of the final fit. Doubling the noise lost up to
    ``10000 / (epsilon n)`` points of accuracy in all measurements. If runs lose 4.5 points or more
    by this, they prefer the candidate that best withstands noise. A score of a run deviates from
    that of a final fit by 0.4 of the loss at most, where it prefers a candidate to the default.
    This holds for accuracy, log loss and squared error, each in units of its range.

    *The noise of the final fit* (`reason_by_noise`). The cost of a search leaves more noise for
    the fit. Doubling the noise lost 4 points of accuracy on digits, 1 on breast_cancer and 0.1 on
    8,000 rows of a9a between epsilon 1 and 4. A search that is expected to lose more than 0.3
    points by this is not worth it. The limit is 0.6 in narrow classifications, which lost half of
    that at most. With hundreds of columns noise loses more, and in regressions a search with these
    limits lost up to 17 points of R^2.

    *The resolution of a score* (`reason_by_deviation`), where the unchanged estimator is not
    compared by a test. A score over n records deviates by up to half its range over the root of n,
    and by its noise. Suggested values gain some points on some data, and nothing on most. Scores
    which deviate by more than 1 % of their range (2 % in narrow classifications) therefore choose
    at random or worse: runs on few records prefer values that suit few records.

    Examples
    --------
    >>> large = TableOutlook(30_000, 2.0, 20.0, 6000, 0.005, rivals=4)
    >>> round(large.loss, 1), round(large.deviation, 3), round(large.smallest_gain, 3)
    (0.7, 0.007, 0.021)
    >>> large.reason_against
    ''
    >>> TableOutlook(1000, 1.0, 20.0, 200, 0.3).reason_against
    'runs with 20 times the noise may lose 43 points of accuracy'
    >>> small = TableOutlook(1000, 1.0, 20.0, 200, 0.003)
    >>> small.reason_by_noise(1.1), small.reason_by_deviation
    ('the noise of its costs may lose 1.4 points of accuracy', 'a score deviates by 3.5 %')
    """

    n_samples: int
    epsilon: float
    noise_ratio: float
    n_score: int
    score_noise: float = 0.0
    rivals: int | Callable[[float], float] = 1
    score: str = "accuracy"
    is_narrow: bool = True

    @property
    def loss(self) -> float:
        """What a run is expected to lose because of its noise, in % of the range of a score."""
        return expected_loss(self.noise_ratio, self.epsilon, self.n_samples)

    @property
    def run_deviation(self) -> float:
        """Deviation of a score without its noise, in units of its range."""
        # Limited, so that a score says little but never nothing.
        loss = min(self.loss, 1e4)
        largest = _LARGEST_LOSS if self.score in _CLIPPED else _LARGEST_OF_RULE
        growth = max(loss / largest, 1.0) ** _POWER
        of_runs = _DEVIATION_OF_LOSS * loss * growth / 100.0
        return math.hypot(of_runs, _DEVIATION_OF_RECORDS / math.sqrt(max(self.n_score, 1)))

    @property
    def deviation(self) -> float:
        """Standard deviation of a score, in units of its range."""
        return math.hypot(self.run_deviation, self.score_noise)

    @property
    def smallest_gain(self) -> float:
        """Gain over the default that a score must show, in units of its range.

        A candidate that is better by this amount is found half of the time.
        """
        # Theorem N6: a worse candidate is rarely chosen.
        return margin(self.rivals) * math.sqrt(2.0) * self.deviation

    @property
    def reason_against(self) -> str:
        """Why scores cannot be expected to help; empty if they can."""
        if not self.loss < _LARGEST_LOSS:
            return (
                f"runs with {self.noise_ratio:.3g} times the noise may lose {self.loss:.0f} "
                f"{self._unit_of_loss}"
            )
        limit = _LARGEST_GAINS.get(self.score, _LARGEST_OF_OTHERS)
        if self.score == "accuracy" and not self.is_narrow:
            limit = _LARGEST_OF_OTHERS
        if self.smallest_gain <= limit:
            return ""
        return (
            f"a score deviates by {100.0 * clipped_deviation(self.deviation):.1f} %, so gains of "
            f"less than {self.gain_in_words} cannot be found"
        )

    def reason_by_noise(self, noise_ratio: float) -> str:
        """Return why the noise of the search's cost speaks against it; empty if it does not.

        Parameters
        ----------
        noise_ratio : float
            Effective noise of the returned model's fit divided by that of a fit without tuning.
        """
        loss = expected_loss(noise_ratio, self.epsilon, self.n_samples)
        if loss <= (_LARGEST_COST_OF_FEW if self.is_narrow else _LARGEST_COST):
            return ""
        return f"the noise of its costs may lose {loss:.1f} {self._unit_of_loss}"

    @property
    def reason_by_deviation(self) -> str:
        """Why a score deviates too much to choose by; empty if it does not."""
        deviation = math.hypot(0.5 / math.sqrt(self.n_score), self.score_noise)
        limit = _LARGEST_DEVIATION_OF_FEW if self.is_narrow else _LARGEST_DEVIATION_OF_SCORE
        if deviation <= limit:
            return ""
        return f"a score deviates by {100.0 * clipped_deviation(deviation):.1f} %"

    def is_clipped(self, own: float, lower: float, upper: float) -> bool:
        """Return whether clipping may decide, so that the unchanged estimator is kept.

        Parameters
        ----------
        own : float
            The published score of the unchanged estimator.
        lower, upper : float
            The range of a score.
        """
        # Theorem N6: a condition that is checked by what was paid for.
        return self.score in _CLIPPED and own < lower + 0.5 * (upper - lower)

    @property
    def gain_in_words(self) -> str:
        """The smallest gain, as text."""
        gain = 100.0 * self.smallest_gain
        unit = "points" if self.score == "accuracy" else _OTHER_UNIT
        return f"{gain:.2g} {unit}" if gain < 100.0 else f"100 {unit}"

    @property
    def _unit_of_loss(self) -> str:
        return "points of accuracy" if self.score == "accuracy" else _OTHER_UNIT


# The deviation of a private prediction, in units of half the range of targets, is this times the
# root of (noise of the budget times columns / records): measured within a factor of about 2.
_DEVIATION_OF_PREDICTIONS = 0.25


def target_in_words(
    bounds: tuple[float, float], n_samples: int, n_features: int, budget: tuple[float, float]
) -> str:
    """Return how much noise the predictions of a regression will have, in units of the target.

    Parameters
    ----------
    bounds : tuple of float
        The public range of targets.
    n_samples, n_features : int
        Public numbers of records and of columns.
    budget : tuple of float
        Epsilon and delta of a fit.

    Notes
    -----
    Theorem F12: this follows from public numbers. How a linear model's predictions deviate between
    fits was measured; ``docs/benchmarks.md`` has the figures.

    Examples
    --------
    >>> from skdptune.model_selection._choosing import target_in_words
    >>> target_in_words((-5000.0, 5000.0), 60, 3, (1.0, 1e-5))[:66]
    'Predictions will have noise of about 540: a target whose standard '
    """
    if math.isinf(budget[0]) or budget[1] == 0.0:
        return ""
    noise = noise_for_budget(*budget)[0] * n_features / n_samples
    share = min(_DEVIATION_OF_PREDICTIONS * math.sqrt(noise), 1.0)
    deviation = share * (bounds[1] - bounds[0]) / 2.0
    return (
        f"Predictions will have noise of about {float(f'{deviation:.2g}'):g}: a target whose "
        "standard deviation is below this number cannot be learned. The noise is proportional to "
        "the range of targets."
    )


# Positive values that span more than this factor are spaced by their logarithms.
_LONGEST_LINEAR_SPAN = 10.0
# Value of a category's indicator: two different categories are at a distance of 1.
_INDICATOR = math.sqrt(0.5)
_NUMBER, _LACKING = "a number", "lacking"


def encode(candidates: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return candidates as points, such that candidates with close values are close.

    Parameters
    ----------
    candidates : sequence of mappings
        From names of parameters to values of any kind; candidates may lack parameters. Public.

    Returns
    -------
    ndarray of shape (n_candidates, n_columns)
        The numbers of a parameter form an axis from 0 to 1. The axis is logarithmic if they are
        positive (or 0) and span more than a factor of 10. Everything else, including a missing
        parameter, is a category, and two different categories are at a distance of 1. If a
        parameter has both, being a number is a category as well. A parameter that is the same for
        all candidates has no column.

    Examples
    --------
    >>> from skdptune.model_selection._choosing import encode
    >>> encode([{"C": 0.01}, {"C": 1.0}, {"C": 100.0}]).ravel()
    array([0. , 0.5, 1. ])
    >>> encode([{"loss": "hinge"}, {"loss": "log"}, {"loss": "hinge"}]).round(1)
    array([[0.7, 0. ],
           [0. , 0.7],
           [0.7, 0. ]])
    """
    names = sorted({name for candidate in candidates for name in candidate})
    columns = [column for name in names for column in _columns_of(candidates, name)]
    return np.array(columns).reshape(len(columns), len(candidates)).T.copy()


def _columns_of(candidates: Sequence[Mapping[str, Any]], name: str) -> list[np.ndarray]:
    """Return the axis of a parameter's numbers, and the indicators of its categories."""
    found = [
        _number_or_key(candidate[name]) if name in candidate else _LACKING
        for candidate in candidates
    ]
    given = np.array([isinstance(value, float) for value in found], dtype=bool)
    kinds = [_NUMBER if isinstance(value, float) else value for value in found]
    values = np.array([value if isinstance(value, float) else math.nan for value in found])
    columns = []
    if np.unique(values[given]).size > 1:
        # A value that is not a number is at the middle, no closer to one end than to the other.
        column = np.full(len(candidates), 0.5)
        column[given] = _axis(values[given])
        columns.append(column)
    categories = sorted(set(kinds))
    if len(categories) > 1:
        columns += [
            _INDICATOR * np.array([kind == category for kind in kinds], dtype=float)
            for category in categories
        ]
    return columns


def _axis(values: np.ndarray) -> np.ndarray:
    """Return distinct numbers on an axis from 0 to 1."""
    positive = values[values > 0.0]
    if (values >= 0.0).all() and positive.max() / _LONGEST_LINEAR_SPAN > positive.min():
        values = _logarithms(values)
    # Halved, since the difference of two doubles may overflow.
    halves = values / 2.0
    low, high = halves.min(), halves.max()
    return (halves - low) / (high - low)


def _logarithms(values: np.ndarray) -> np.ndarray:
    """Return logarithms; 0 is placed one mean step below the least positive value."""
    positive = np.unique(values[values > 0.0])
    step = (math.log(positive[-1]) - math.log(positive[0])) / (positive.size - 1)
    logarithms = np.log(np.where(values > 0.0, values, 1.0))
    return np.where(values > 0.0, logarithms, math.log(positive[0]) - step)


def _number_or_key(value: Any) -> float | str:
    """Return a finite number as a float, and other values as a text that identifies them."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    return _key(value)


def _key(value: Any) -> str:
    """Return a text that is the same for equal values; arrays are represented in full."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"array {value.shape} {value.dtype} {value.tobytes().hex()}"
    if isinstance(value, np.ndarray | list | tuple):
        return f"{type(value).__name__} [{', '.join(map(_key, value))}]"
    if isinstance(value, np.generic):
        value = value.item()
    return f"{type(value).__name__} {value!r}"


# Share of the variance that even close candidates do not have in common: grids have cliffs.
_OWN_SHARE = 0.5


def correlations(apart: np.ndarray, length_scale: float) -> np.ndarray:
    """Return the correlations of a process at points with these distances.

    Half of the variance belongs to a Matérn process that is twice differentiable, and half to
    white noise that only equal points share. For equal points the correlation is 1.

    Examples
    --------
    >>> import numpy as np
    >>> correlations(np.array([0.0, 0.3, 10.0]), 0.3).round(2)
    array([1.  , 0.26, 0.  ])
    """
    steps = math.sqrt(5.0) * apart / length_scale
    smooth = (1.0 + steps + steps**2 / 3.0) * np.exp(-steps)
    return np.where(apart > 0.0, (1.0 - _OWN_SHARE) * smooth, 1.0)


# Hyperparameters that are averaged over. Length scales on axes from 0 to 1; spreads of candidates
# in units of the spread of the scores; and average deficits relative to the default, in units of
# the candidates' spread.
_LENGTH_SCALES = (0.05, 0.15, 0.3)
_SPREADS = (0.05, 0.1, 0.25, 0.5, 1.0)
_DEFICITS = (0.0, 2.0, 4.0)
# Scores without noise get this deviation, in units of their spread.
_LEAST_DEVIATION = 1e-4
# Scores with more noise than this carry no information anyway.
_LARGEST_DEVIATION = 1e6


@dataclass(frozen=True, eq=False)
class TableChoice:
    """The candidate chosen from a table, and the posterior of all candidates.

    Attributes
    ----------
    index : int
        Index of the chosen candidate.
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
    n_rivals: int | None = None,
) -> TableChoice:
    """Return the candidate to fit, from noisy scores of all: the default unless one is better.

    Parameters
    ----------
    points : ndarray of shape (n_candidates, n_columns)
        The candidates, as `encode` returns them.
    scores : ndarray of shape (n_candidates,)
        Their published scores; larger is better. A score that is not finite carries no
        information.
    deviations : ndarray of shape (n_candidates,) or float
        Standard deviations of the noise on the scores; infinite for a score without information.
    default : int, optional
        Index of the candidate that is the unchanged estimator.
    run_deviation : float, default=0.0
        Further deviation of the scores: `TableOutlook.run_deviation`, times the range of a score.
    n_rivals : int, optional
        Number of other candidates that there might have been; by default those in the table.

    Returns
    -------
    TableChoice
        The choice. Without a single score it is the default, or else the first candidate, and
        means are NaN.

    Notes
    -----
    Theorem N5: the choice is post-processing of what the table publishes. Theorem N6: the chance
    that it is worse than the default is at most 5 %.

    A candidate may only be chosen if its score exceeds that of the default by `margin` deviations
    of the difference. Which of these candidates is chosen follows from all scores.

    Scores are modelled by a Gaussian process with the known noise. With a default, the process
    describes the gains over it. They are 0 at the default and 0 or less on average elsewhere, so
    that a table of pure noise returns the default. The default's own score has a flat prior;
    without a default, the mean of all scores has one. Length scales, spreads and average deficits
    are averaged by their marginal likelihoods, in closed form, so the result does not depend on a
    starting value or a seed. Of the eligible candidates, the one with the largest posterior gain
    is chosen, if that gain is above 0. Without a default, the candidate with the largest posterior
    mean is chosen. ``docs/benchmarks.md`` shows what this gains and loses.

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
        cdist(points, points),
        (scores[known] - centre) / unit,
        np.clip(noise[known] / unit, _LEAST_DEVIATION, _LARGEST_DEVIATION),
        np.flatnonzero(known),
        default,
    )
    found = _averaged(list(_posteriors(table)))
    clear = None
    if default is not None:
        n_rivals = len(scores) - 1 if n_rivals is None else n_rivals
        with np.errstate(invalid="ignore", over="ignore"):
            clear = scores - scores[default] > margin(n_rivals) * np.hypot(noise, noise[default])
    index = _chosen(found, clear, default)
    return TableChoice(index, centre + unit * found.mean, unit * found.std)


def _centre_and_unit(scores: np.ndarray, noise: np.ndarray) -> tuple[float, float]:
    """Return the mean and the spread of the scores; for equal scores, the noise is the spread."""
    largest = float(np.abs(scores).max()) or 1.0
    centre, spread = (
        largest * float(np.mean(scores / largest)),
        largest * float(np.std(scores / largest)),
    )
    # Scores that differ only by rounding count as equal.
    least = 1e-12 * largest
    if spread <= least:
        spread = max(float(noise.max()), least)
    return centre, spread


@dataclass(frozen=True, eq=False)
class _Table:
    """Centred scores in units of their spread, at the indices `known` among the points."""

    apart: np.ndarray
    scores: np.ndarray
    noise: np.ndarray
    known: np.ndarray
    default: int | None


@dataclass(frozen=True, eq=False)
class _Posterior:
    """Moments of scores, mean gains over the default, and the log evidence."""

    mean: np.ndarray
    std: np.ndarray
    gain: np.ndarray
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
    """Yield the posterior for each prior mean of the gains, with one covariance for all."""
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
            -log_volume - 0.5 * float(left @ cho_solve(factor, left)),
        )


def _averaged(posteriors: list[_Posterior]) -> _Posterior:
    """Return the moments of the mixture of posteriors, weighted by the evidence."""
    evidence = np.array([posterior.evidence for posterior in posteriors])
    weights = np.exp(evidence - logsumexp(evidence))
    means = np.array([posterior.mean for posterior in posteriors])
    deviations = np.array([posterior.std for posterior in posteriors])
    mean = weights @ means
    std = np.sqrt(weights @ (deviations**2 + (means - mean) ** 2))
    gain = weights @ np.array([posterior.gain for posterior in posteriors])
    return _Posterior(mean, std, gain, 0.0)


def _chosen(found: _Posterior, clear: np.ndarray | None, default: int | None) -> int:
    """Return the index of the best candidate; with ties the default, or else the first."""
    if default is None or clear is None:
        # Rounded, so that equal candidates compare as equal.
        return int(np.argmax(found.mean.round(9)))
    # Theorem N6 holds whichever of these candidates is chosen.
    gain = np.where(clear, found.gain.round(9), 0.0)
    gain[default] = 0.0
    best = int(np.argmax(gain))
    return best if gain[best] > 0.0 else default


# The test ---------------------------------------------------------------------------------------

# Probability of choosing a candidate that is not better than the default.
_ERROR = 0.05


def margin(rivals: int | Callable[[float], float]) -> float:
    """Return the number of deviations by which a candidate must score better than the default.

    Parameters
    ----------
    rivals : int or callable
        Number of other candidates, or the probability generating function of a random number.

    Returns
    -------
    float

    Notes
    -----
    Theorem N6.

    Examples
    --------
    >>> from skdptune.accounting import Poisson
    >>> round(margin(1), 3), round(margin(10), 3)
    (1.645, 2.568)
    >>> round(margin(Poisson.from_mean(10).pgf), 3)
    2.567
    """
    if not callable(rivals):
        return float(ndtri((1.0 - _ERROR) ** (1.0 / max(rivals, 1))))
    if rivals(0.5) >= 1.0 - _ERROR:
        # Usually, the candidate has no rivals.
        return 0.0
    share = brentq(lambda x: float(rivals(x)) - (1.0 - _ERROR), 0.5, 1.0, xtol=1e-12)
    return float(ndtri(share))


def tail_factor(kind: str) -> float:
    """Return the factor for the scale of noise in the test, relative to Gaussian noise.

    Notes
    -----
    Theorem N6. Differences of Laplace noise have longer tails.
    """
    return 1.5 if kind == "laplace" else 1.0


def kept_in_words(outlook: TableOutlook) -> str:
    """Return the sentences that say when the unchanged estimator is kept."""
    words = (
        "The estimator's own parameters are kept unless another candidate scores higher by "
        f"{outlook.gain_in_words}: the chance that a worse one is chosen is at most 5 %"
    )
    if outlook.score not in _CLIPPED:
        return f"{words}."
    return (
        f"{words}, if few errors are beyond the bound at which they are clipped. They are also "
        "kept if their own score is in the lower half of its range, where clipping decides."
    )


def advice_of(outlook: TableOutlook) -> str:
    """Return a warning that scores say little, if that can be expected."""
    if not outlook.reason_against:
        return ""
    return (
        "The table cannot be expected to distinguish the candidates, since "
        f"{outlook.reason_against}. With the estimator's own parameters among the candidates, "
        "these are kept unless another is clearly better."
    )
