"""Plots of the curves of a classifier that follow from a private histogram of its scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from skdptune._formatting import shown, shown_delta, shown_epsilon
from skdptune._validation import check_flag, check_kind, check_option
from skdptune.calibration import PrivateScoreCurves
from skdptune.inspection._plotting import (
    SIZE,
    add_legend,
    add_title,
    axes_for,
    draw_band,
    ink,
    line_look,
    load_pyplot,
    next_place,
    tidy,
)

_LEGENDS = {"roc": "lower right", "precision_recall": "lower left", "reliability": "upper left"}
KINDS = tuple(_LEGENDS)
# An interval of this many standard deviations contains 95 % of a normal distribution.
_DEVIATIONS = 1.96
_BAND = "95 % of noise and sampling"


class ScoreCurvesDisplay:
    """ROC curve, precision-recall curve and reliability of a private classifier, with bands.

    The curves follow from the histogram that `PrivateScoreCurves` or `PrivateThreshold` released
    with its fit. So a plot has no further privacy cost.

    Parameters
    ----------
    curves : PrivateScoreCurves
        A fitted object.
    name : str, optional
        Name in the legend; by default, the class of the classifier.

    Attributes
    ----------
    ax_ : matplotlib Axes or ndarray of Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.
    lines_ : list of matplotlib Line2D
        The curves, one for each kind.
    bands_ : list of matplotlib artists
        Bands of 95 %, point by point: for the noise, and for the sampling of the records.

    See Also
    --------
    skdptune.calibration.PrivateScoreCurves : Computes the numbers of the plot.

    Notes
    -----
    Each point has its own band, for noise and sampling. The bands do not include that scores of
    records in the fit are slightly too good. The cost of the histogram, and the neighbours for
    which it holds, are in its report.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.calibration import PrivateScoreCurves
    >>> from skdptune.inspection import ScoreCurvesDisplay
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(6000, 2))
    >>> curves = PrivateScoreCurves(DPLogisticRegression(), epsilon=1.0, random_state=0)
    >>> display = ScoreCurvesDisplay(curves.fit(X, X[:, 0] > 0))
    >>> display.plot(kind="roc").ax_.get_ylabel()  # doctest: +SKIP
    'true positive rate'
    """

    def __init__(self, curves: Any, *, name: str | None = None) -> None:
        self.curves = _fitted(curves)
        self.name = type(self.curves.estimator_).__name__ if name is None else name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        kind: str | Sequence[str] = KINDS,
        ax: Any = None,
        name: str | None = None,
        band: bool = True,
    ) -> ScoreCurvesDisplay:
        """Draw the curves of a fitted estimator.

        Parameters
        ----------
        estimator : PrivateScoreCurves, pipeline or search
            A fitted object, a pipeline that ends in one, or a search over one.
        kind, ax, band
            See `plot`.
        name : str, optional
            Name in the legend.

        Returns
        -------
        ScoreCurvesDisplay
        """
        return cls(estimator, name=name).plot(kind=kind, ax=ax, band=band)

    def plot(
        self, *, kind: str | Sequence[str] = KINDS, ax: Any = None, band: bool = True
    ) -> ScoreCurvesDisplay:
        """Draw one kind of curve, or several side by side.

        Parameters
        ----------
        kind : {"roc", "precision_recall", "reliability"} or sequence of these
            The curves to draw; by default, all. Reliability needs probabilities.
        ax : matplotlib Axes, optional
            Axes for a single kind; by default, new axes are created.
        band : bool, default=True
            Whether to show the bands.

        Returns
        -------
        ScoreCurvesDisplay
            The display itself.
        """
        check_flag(band, name="band")
        kinds = self._checked_kinds(kind, ax)
        if len(kinds) == 1:
            axes = [axes_for(self, ax)]
        else:
            pyplot = load_pyplot(type(self).__name__)
            width = 0.62 * SIZE[0] * len(kinds)
            self.figure_, self.ax_ = pyplot.subplots(
                1, len(kinds), figsize=(width, SIZE[1]), layout="constrained"
            )
            axes = list(self.ax_)
        self.lines_: list[Any] = []
        self.bands_: list[Any] = []
        for place, (each, own) in enumerate(zip(kinds, axes, strict=True)):
            self._draw(each, own, band, is_first=place == 0)
        return self

    def _checked_kinds(self, kind: Any, ax: Any) -> list[str]:
        kinds = [kind] if isinstance(kind, str) else list(kind)
        for each in kinds:
            check_option(each, name="kind", options=KINDS)
        if kind is KINDS and not hasattr(self.curves, "reliability_"):
            kinds.remove("reliability")
        if not kinds or (ax is not None and len(kinds) > 1):
            raise ValueError(f"kind must be a single kind if ax is given; got {shown(kind)}.")
        return kinds

    def _draw(self, kind: str, ax: Any, band: bool, is_first: bool) -> None:
        x, y, spread, labels = getattr(self, f"_{kind}")()
        is_new = not ax.lines
        place = next_place(ax)
        look = line_look(place, markers=kind == "reliability")
        if is_new and kind != "precision_recall":
            ax.plot([0.0, 1.0], [0.0, 1.0], color=ink(), linewidth=1.0, linestyle=(0, (1, 2)))
        (line,) = ax.plot(x, y, label=self._label(kind), zorder=4, **look)
        self.lines_.append(line)
        if band:
            low, high = np.clip([y - spread, y + spread], 0.0, 1.0)
            self.bands_.append(draw_band(ax, x, low, high, place, _BAND))
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.02), xlabel=labels[0], ylabel=labels[1])
        tidy(ax)
        add_legend(ax, loc=_LEGENDS[kind])
        if is_first and is_new:
            report = self.curves.privacy_
            add_title(
                ax,
                f"{type(self.curves).__name__}: {shown_epsilon(report.epsilon)} at "
                f"δ = {shown_delta(report.delta)} in all",
            )

    def _label(self, kind: str) -> str:
        if kind != "roc":
            return self.name
        return f"{self.name}, area {self.curves.roc_auc_:.3f} ± {self.curves.roc_auc_std_:.3f}"

    def _roc(self) -> tuple[Any, ...]:
        found = self.curves.roc_curve_
        # An error of the false positive rate moves points of the curve by its slope.
        spread = np.hypot(found.tpr_std, found.fpr_std * _slopes(found.fpr, found.tpr))
        labels = "false positive rate", "true positive rate"
        return found.fpr, found.tpr, _DEVIATIONS * spread, labels

    def _precision_recall(self) -> tuple[Any, ...]:
        found = self.curves.precision_recall_curve_
        spread = _DEVIATIONS * found.precision_std
        return found.recall, found.precision, spread, ("recall", "precision")

    def _reliability(self) -> tuple[Any, ...]:
        found = self.curves.reliability_
        labels = "predicted probability", "share of positive records"
        return found.prob_pred, found.prob_true, _DEVIATIONS * found.prob_true_std, labels


def _slopes(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the slopes of a curve at its points, between both neighbours of each."""
    left = np.concatenate([x[:1], x[:-1]]), np.concatenate([y[:1], y[:-1]])
    right = np.append(x[1:], x[-1]), np.append(y[1:], y[-1])
    run = np.maximum(right[0] - left[0], 1e-12)
    return (right[1] - left[1]) / run


def _fitted(estimator: Any) -> PrivateScoreCurves:
    found = getattr(estimator, "best_estimator_", estimator)
    if isinstance(found, Pipeline):
        found = found.steps[-1][1]
    curves: PrivateScoreCurves = check_kind(
        found,
        name="estimator",
        kind=PrivateScoreCurves,
        domain="a PrivateScoreCurves or PrivateThreshold, or end in one",
    )
    if not hasattr(curves, "privacy_"):
        raise ValueError("estimator must be fitted; got one that is not. Call fit first.")
    return curves
