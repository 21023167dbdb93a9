"""Plots of privacy profiles: every (epsilon, delta) that a release guarantees."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdptune._formatting import shown, shown_delta, shown_epsilon
from skdptune._validation import check_real, check_vector
from skdptune.accounting import LARGEST_LOSS, PrivacyProfile, PrivacyReport
from skdptune.inspection._plotting import (
    add_legend,
    axes_for,
    ink,
    line_look,
    next_place,
    quiet,
    tidy,
)
from skdptune.inspection._sources import (
    CurveOfReport,
    checked_profile,
    checked_report,
)

FloatArray = NDArray[np.float64]

# The least delta that is drawn, and the same beside a delta that was asked for.
_LEAST_DELTA, _BELOW_ASKED = 1e-10, 1e-3
_POINTS = 257
# What is drawn beyond the end of the curve, which is where delta is nearly the least it gets.
_ROOM, _NEARLY = 1.06, 1.01
# A shorter curve is none, and one unit of epsilon is drawn of it.
_LEAST_END = 1e-3
_NOTHING = 1e-300


class PrivacyProfileDisplay(CurveOfReport):
    """Plot of a privacy profile: delta over epsilon, with the point that was asked for.

    It is best made by `from_profile`, `from_report`, `from_estimator` or `from_search`. Several
    are compared by drawing them on one ``ax``, each with a `label`.

    Parameters
    ----------
    epsilons : array-like
        Increasing.
    deltas : array-like
        The least delta that the release guarantees at each of them.
    asked : tuple of (float, float), optional
        The epsilon and delta to mark.
    label : str, optional
        In the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Drawn on.
    figure_ : matplotlib Figure
        Of these axes.
    line_ : matplotlib Line2D
        The curve.
    point_ : matplotlib Line2D or None
        The point that was asked for.

    See Also
    --------
    TradeOffDisplay : The same guarantee, as what an attacker can do.

    Notes
    -----
    A release guarantees all points of its curve at once, and whatever lies above it. A delta of
    0, as of a pure guarantee, is drawn as the lower end of the axis.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile
    >>> from skdptune.inspection import PrivacyProfileDisplay
    >>> display = PrivacyProfileDisplay([0.0, 1.0], [0.1, 1e-5], asked=(1.0, 1e-5))
    >>> display.deltas.tolist()
    [0.1, 1e-05]
    >>> profile = PrivacyProfile.gaussian(0.25)
    >>> display = PrivacyProfileDisplay.from_profile(profile, delta=1e-5)  # doctest: +SKIP
    """

    def __init__(
        self,
        epsilons: ArrayLike,
        deltas: ArrayLike,
        *,
        asked: tuple[float, float] | None = None,
        label: str | None = None,
    ) -> None:
        self.epsilons = check_vector(epsilons, name="epsilons", lower=0.0)
        self.deltas = check_vector(deltas, name="deltas", lower=0.0, upper=1.0)
        if self.epsilons.size != self.deltas.size or np.any(np.diff(self.epsilons) <= 0.0):
            raise ValueError(
                "epsilons must be increasing, and as many as deltas; got "
                f"{self.epsilons.size} for {self.deltas.size}."
            )
        self.asked = None if asked is None else _checked_point(asked)
        self.label = label

    # Making ---------------------------------------------------------------------------------

    @classmethod
    def from_profile(
        cls,
        profile: PrivacyProfile,
        *,
        delta: float | None = None,
        epsilon: float | None = None,
        label: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw a profile.

        Parameters
        ----------
        profile : PrivacyProfile
        delta : float, optional
            At which a point is marked.
        epsilon : float, optional
            That was asked for at `delta`, no less than what the release costs there, which is
            the default.
        label : str, optional
            In the legend.
        ax : matplotlib Axes, optional
            To draw on; by default new ones.
        **options
            Of matplotlib's line.

        Returns
        -------
        PrivacyProfileDisplay
        """
        checked_profile(profile)
        if epsilon is not None and delta is None:
            raise ValueError(
                f"delta must be given with an epsilon; got None and {shown(epsilon)}."
            )
        asked = None
        if delta is not None:
            delta = check_real(delta, name="delta", lower=0.0, upper=1.0)
            # What a release costs more than is not said of it: the report raises.
            asked = (PrivacyReport(profile, delta, epsilon=epsilon).epsilon, delta)
        epsilons, deltas = _curve(profile, asked)
        return cls(epsilons, deltas, asked=asked, label=label).plot(ax=ax, **options)

    @classmethod
    def from_report(
        cls,
        report: PrivacyReport,
        *,
        label: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the profile of a report, with the epsilon and delta asked for.

        Parameters
        ----------
        report : PrivacyReport
        label, ax, **options
            As for `from_profile`; the label is by default the report's name.

        Returns
        -------
        PrivacyProfileDisplay
        """
        checked_report(report)
        return cls.from_profile(
            report.profile,
            delta=report.delta,
            epsilon=report.epsilon,
            label=report.name if label is None else label,
            ax=ax,
            **options,
        )

    # Drawing --------------------------------------------------------------------------------

    def plot(self, *, ax: Any = None, **options: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            To draw on; by default new ones.
        **options
            Of matplotlib's line.

        Returns
        -------
        PrivacyProfileDisplay
            Itself.
        """
        ax = axes_for(self, ax)
        is_first = not ax.lines
        floor = min(_floor(self.asked), 1.0 if is_first else ax.get_ylim()[0])
        right = max(float(self.epsilons[-1]), 0.0 if is_first else ax.get_xlim()[1])
        self.line_ = self._draw(ax, options)
        ax.set_xlim(0.0, right)
        ax.set_ylim(floor, 1.0)
        self.point_ = self._mark(ax, floor)
        if is_first:
            ax.set_xlabel("ε")
            ax.set_ylabel("δ")
            tidy(ax)
        add_legend(ax)
        return self

    def _draw(self, ax: Any, options: dict[str, Any]) -> Any:
        words = [] if self.label is None else [self.label]
        if words and self.asked is not None:
            words.append(_in_words(*self.asked))
        look = line_look(next_place(ax)) | {"label": ": ".join(words) or None} | options
        ax.set_yscale("log")
        # A delta of 0 lies below any axis.
        (line,) = ax.plot(self.epsilons, np.maximum(self.deltas, _NOTHING), **look)
        return line

    def _mark(self, ax: Any, floor: float) -> Any:
        """Mark the point that was asked for, and write its figures where no legend has them."""
        if self.asked is None or math.isinf(self.asked[0]):
            return None
        epsilon, delta = self.asked
        height = max(delta, floor)
        rule = {"color": quiet(ax), "linewidth": 0.8, "linestyle": ":", "zorder": 1}
        ax.plot([0.0, epsilon, epsilon], [height, height, floor], **rule)
        (point,) = ax.plot(
            epsilon,
            height,
            marker="o",
            markersize=7,
            markerfacecolor=ax.get_facecolor(),
            markeredgecolor=self.line_.get_color(),
            markeredgewidth=1.8,
            linestyle="none",
            zorder=5,
            clip_on=False,
        )
        if self.label is None:
            style = {"textcoords": "offset points", "fontsize": "small", "color": ink()}
            ax.annotate(_in_words(epsilon, delta), (epsilon, height), xytext=(8, 6), **style)
        return point


def _in_words(epsilon: float, delta: float) -> str:
    return f"{shown_epsilon(epsilon)} at δ = {shown_delta(delta)}"


def _curve(
    profile: PrivacyProfile, asked: tuple[float, float] | None
) -> tuple[FloatArray, FloatArray]:
    """Return the points to draw, from epsilon 0 to where delta is lost below the axis."""
    end = profile.epsilon(_floor(asked))
    if math.isinf(end):
        # To where the curve has come down to what it never goes below.
        end = profile.epsilon(min(1.0, _NEARLY * profile.delta(LARGEST_LOSS)))
    if not end > _LEAST_END or math.isinf(end):
        end = 1.0
    epsilons = np.linspace(0.0, _ROOM * end, _POINTS)
    # A pure guarantee ends at once.
    epsilons = np.unique(np.append(epsilons, end))
    if asked is not None and asked[0] > epsilons[-1] and math.isfinite(asked[0]):
        epsilons = np.append(epsilons, _ROOM * asked[0])
    return epsilons, np.asarray(profile.delta(epsilons), dtype=np.float64)


def _floor(asked: tuple[float, float] | None) -> float:
    """Return the least delta to draw."""
    if asked is None or asked[1] == 0.0:
        return _LEAST_DELTA
    return min(_LEAST_DELTA, _BELOW_ASKED * asked[1])


def _checked_point(asked: Any) -> tuple[float, float]:
    try:
        epsilon, delta = asked
    except (TypeError, ValueError):
        raise ValueError(f"asked must be an epsilon and a delta; got {shown(asked)}.") from None
    return (
        check_real(epsilon, name="asked[0]", lower=0.0),
        check_real(delta, name="asked[1]", lower=0.0, upper=1.0),
    )
