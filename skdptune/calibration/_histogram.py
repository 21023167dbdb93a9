"""Noisy counts of scores by label, and everything computed from them: curves, areas, bands.

Everything here is computed from the released counts and public numbers, at no further cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.isotonic import isotonic_regression
from sklearn.utils import Bunch

Floats = NDArray[np.float64]
# Confidence of the bands of whole histograms.
CONFIDENCE = 0.95
# Shares are not shown for sums that are smaller than this, in standard deviations of their noise.
_LEAST_DEVIATIONS = 3.0


@dataclass(frozen=True, eq=False)
class ScoreHistogram:
    """Numbers of records by score and label, with noise.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Ends of the bins of scores; scores beyond them are in the first and last bin.
    counts : ndarray of shape (2, n_bins)
        The released counts of the negative and the positive label; may be below 0.
    scale : float
        Standard deviation of the noise of each count.
    """

    edges: Floats
    counts: Floats
    scale: float

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return int(self.edges.size - 1)

    @property
    def sizes(self) -> Floats:
        """Numbers of negative and positive records, at least 1."""
        return np.maximum(self.counts.sum(axis=1), 1.0)

    def above(self) -> Floats:
        """Return the shares of each label's records above each edge, starting at the highest edge.

        They are the shares nearest to the released ones that never decrease, which undoes negative
        noise in empty bins.
        """
        sums = np.cumsum(self.counts[:, ::-1], axis=1) / self.sizes[:, None]
        inner = [isotonic_regression(row, y_min=0.0, y_max=1.0) for row in sums[:, :-1]]
        return np.concatenate([np.zeros((2, 1)), inner, np.ones((2, 1))], axis=1)

    @property
    def shares(self) -> Floats:
        """Shares of each label's records in the bins, from `above`."""
        return np.diff(self.above(), axis=1)[:, ::-1]

    def above_std(self, label: int) -> Floats:
        """Return standard deviations of `above` for one label, of noise and sampling."""
        share, size = self.above()[label], self.sizes[label]
        n_above = np.arange(self.n_bins + 1)
        noise = n_above * (1.0 - share) ** 2 + (self.n_bins - n_above) * share**2
        return np.sqrt(self.scale**2 * noise / size**2 + share * (1.0 - share) / size)

    def share_above(self, label: int, score: float) -> float:
        """Return the share of a label's records above a score, linear between edges."""
        # From the lowest edge upwards, as the interpolation requires.
        return float(np.interp(score, self.edges, self.above()[label, ::-1]))

    def confusion_std(self, score: float) -> Floats:
        """Return standard deviations of each label's numbers of records below and above a score.

        They are those of the noise and of the unknown places of records in the bin of the score.
        """
        place = np.interp(score, self.edges, np.arange(self.n_bins + 1.0))
        below = np.clip(place - np.arange(self.n_bins), 0.0, 1.0)
        noise = self.scale * np.sqrt([(below**2).sum(), ((1.0 - below) ** 2).sum()])
        # If the density of scores grows from 0 within a bin, interpolation errs by twice this.
        within = 0.5 * (self.shares * self.sizes[:, None]) @ (below * (1.0 - below))
        return np.hypot(noise[None, :], within[:, None])

    # Area under the ROC curve -------------------------------------------------------------

    def auc(self) -> float:
        """Return the area under the ROC curve; two scores in one bin count half."""
        negative, positive = self.shares
        return float(_auc_table(negative[None], positive[None])[0, 0])

    def auc_std(self) -> float:
        """Return the standard deviation of `auc`, of noise, sampling and bins.

        Notes
        -----
        The noise by propagation of errors; sampling by Hanley and McNeil (1982); and an eighth of
        the pairs in one bin, whose order is unknown.
        """
        (negative, positive), (n_negative, n_positive) = self.shares, self.sizes
        area = self.auc()
        below = np.cumsum(negative) - 0.5 * negative
        beyond = 1.0 - np.cumsum(positive) + 0.5 * positive
        noise = self.scale**2 * (
            ((below - area) ** 2).sum() / n_positive**2
            + ((beyond - area) ** 2).sum() / n_negative**2
        )
        wins = area / (2.0 - area) - area**2
        twice = 2.0 * area**2 / (1.0 + area) - area**2
        sampling = area * (1.0 - area) + (n_positive - 1.0) * wins + (n_negative - 1.0) * twice
        sampling = max(sampling, 0.0) / (n_positive * n_negative)
        bins = 0.125 * float((negative * positive).sum())
        return math.sqrt(noise + sampling + bins**2)

    def auc_band(self) -> tuple[float, float]:
        """Return the least and the largest area of counts that are possible given the noise.

        Notes
        -----
        Theorem Q2.
        """
        low, high = self.box()
        # The extreme has counts of one label at one end up to some bin, and at the other end
        # beyond.
        first = np.tri(self.n_bins + 1, self.n_bins, -1, dtype=bool)
        ends = []
        for is_least in (True, False):
            positive = np.where(first == is_least, high[1], low[1])
            negative = np.where(first == is_least, low[0], high[0])
            areas = _auc_table(negative, positive)
            ends.append(float(areas.min() if is_least else areas.max()))
        return ends[0], ends[1]

    def box(self) -> tuple[Floats, Floats]:
        """Return the least and largest counts that together contain all true ones.

        Notes
        -----
        Theorem Q2.
        """
        z = float(special.ndtri(1.0 - (1.0 - CONFIDENCE) / (2.0 * self.counts.size)))
        low, high = self.counts - z * self.scale, self.counts + z * self.scale
        return np.maximum(low, 0.0), np.maximum(high, 0.0)

    # Shares of labels -----------------------------------------------------------------------

    def precision_above(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return precision above each edge, its standard deviation, and where noise leaves any."""
        false, true = self.above() * self.sizes[:, None]
        total = false + true
        noise = self.scale * np.sqrt(np.arange(self.n_bins + 1))
        is_known = total > np.maximum(_LEAST_DEVIATIONS * noise, 1.0)
        total = np.maximum(total, 1.0)
        share = true / total
        return share, self._share_std(share, total, noise), is_known

    def reliability(self) -> Bunch:
        """Return the share of positive records by score, for bins with more records than noise."""
        negative, positive = self.shares * self.sizes[:, None]
        total = negative + positive
        is_known = total > max(_LEAST_DEVIATIONS * self.scale, 1.0)
        total = np.where(is_known, total, 1.0)
        share = positive / total
        centres = 0.5 * (self.edges[1:] + self.edges[:-1])
        return Bunch(
            prob_pred=special.expit(centres)[is_known],
            prob_true=share[is_known],
            prob_true_std=self._share_std(share, total, self.scale)[is_known],
            n_records=total[is_known],
        )

    def _share_std(self, share: Floats, total: Floats, noise: Any) -> Floats:
        """Return standard deviations of shares of positive records, of noise and sampling."""
        spread = noise**2 * (share**2 + (1.0 - share) ** 2) / total**2
        return np.asarray(np.sqrt(spread + share * (1.0 - share) / total))


def _auc_table(negative: Floats, positive: Floats) -> Floats:
    """Return the area for each pair of rows of counts; a half if a label has no record."""
    below = np.cumsum(negative, axis=1) - 0.5 * negative
    pairs = np.outer(negative.sum(axis=1), positive.sum(axis=1))
    areas = below @ positive.T
    return np.asarray(np.where(pairs > 0.0, areas / np.where(pairs > 0.0, pairs, 1.0), 0.5))


# Where scores lie -----------------------------------------------------------------------------

# Ends of the cells in which the range of scores is found.
RANGES = np.array([0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
COARSE = np.concatenate([-RANGES[::-1], [0.0], RANGES])
# Share of a label's records that may lie beyond an end of the bins.
_BEYOND = 0.02
# Bins for each 0.4th power of the records of the rarer label over the noise of a coarse count:
# errors by noise grow as the root of the number of bins, errors by width fall as its square.
_BINS = 2.8


def edges_for(counts: Floats, scale: float, n_bins: int | None) -> Floats:
    """Return edges of about equal bins, one of them 0, around nearly all records of each label.

    Parameters
    ----------
    counts : ndarray of shape (2, n_cells)
        Noisy numbers of records between the edges `COARSE`.
    scale : float
        Standard deviation of their noise.
    n_bins : int or None
        None for the number at which the errors by noise, which grow with it, and by coarseness are
        about equal.
    """
    if n_bins is None:
        n_fewest = max(float(counts.sum(axis=1).min()), 1.0)
        n_bins = round(min(max(_BINS * (n_fewest / max(scale, 1e-300)) ** 0.4, 10.0), 24.0))
    middle = RANGES.size + 1
    least = _BEYOND * counts.sum(axis=1)
    low = _end(counts[:, :middle][:, ::-1], least, scale)
    high = _end(counts[:, middle:], least, scale)
    n_low = min(max(round(n_bins * low / (low + high)), 1), n_bins - 1)
    lower, upper = np.linspace(-low, 0.0, n_low + 1), np.linspace(0.0, high, n_bins - n_low + 1)
    return np.concatenate([lower, upper[1:]])


def _end(counts: Floats, least: Floats, scale: float) -> float:
    """Return the nearest end of a range beyond which there are few records of either label."""
    for place, end in enumerate(RANGES):
        beyond = counts[:, place + 1 :]
        noise = _LEAST_DEVIATIONS * scale * math.sqrt(beyond.shape[1])
        if (beyond.sum(axis=1) <= np.maximum(least, noise)).all():
            return float(end)
    return float(RANGES[-1])
