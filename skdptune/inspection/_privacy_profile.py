"""Plots of guarantees: the privacy profile, and the trade-off curve of an attacker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdptune._formatting import shown, shown_delta, shown_epsilon
from skdptune._validation import check_flag, check_kind, check_option, check_real, check_vector
from skdptune.accounting import PrivacyProfile, PrivacyReport
from skdptune.accounting._shared import LARGEST_LOSS
from skdptune.base._shared import ADD_OR_REMOVE, PERSON, PERSON_ZEROED, REPLACE, ZERO_OUT
from skdptune.inspection._plotting import (
    DrawsReport,
    add_legend,
    add_title,
    axes_for,
    ink,
    line_look,
    next_place,
    percent,
    quiet,
    tidy,
)

FloatArray = NDArray[np.float64]

# The smallest delta that is drawn, and its ratio to a requested delta.
_LEAST_DELTA, _BELOW_ASKED = 1e-10, 1e-3
_POINTS = 257
# How far the plot extends beyond the end of the curve. The curve ends where delta is within this
# factor of its limit.
_ROOM, _NEARLY = 1.06, 1.01
# A shorter curve is invisible; then one unit of epsilon is drawn.
_LEAST_END = 1e-3
_NOTHING = 1e-300


class PrivacyProfileDisplay(DrawsReport):
    """Plot of a privacy profile: delta against epsilon, with the requested point.

    Create it by `from_profile`, `from_report`, `from_estimator` or `from_search`. To compare
    several profiles, draw them on the same ``ax``, each with a `label`.

    Parameters
    ----------
    epsilons : array-like
        Increasing epsilons.
    deltas : array-like
        The smallest delta that the release guarantees at each epsilon.
    asked : tuple of (float, float), optional
        The requested epsilon and delta, to be marked.
    label : str, optional
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.
    line_ : matplotlib Line2D
        The curve.
    point_ : matplotlib Line2D or None
        The requested point.

    See Also
    --------
    TradeOffDisplay : Shows the same guarantee as a limit on an attacker.

    Notes
    -----
    A release guarantees all points of its curve simultaneously, and every point above it. A delta
    of 0, as for a pure guarantee, is drawn at the lower end of the axis.

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

    # Creation ------------------------------------------------------------------------------

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
        """Draw a privacy profile.

        Parameters
        ----------
        profile : PrivacyProfile
        delta : float, optional
            The delta at which a point is marked.
        epsilon : float, optional
            The epsilon requested at `delta`. It must be at least the cost of the release there,
            which is the default.
        label : str, optional
            Name in the legend.
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        **options
            Options of matplotlib's line.

        Returns
        -------
        PrivacyProfileDisplay
        """
        check_kind(profile, name="profile", kind=PrivacyProfile, domain="a PrivacyProfile")
        if epsilon is not None and delta is None:
            raise ValueError(
                f"delta must be given with an epsilon; got None and {shown(epsilon)}."
            )
        asked = None
        if delta is not None:
            delta = check_real(delta, name="delta", lower=0.0, upper=1.0)
            # The report raises an error if the release costs more than the requested epsilon.
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
        """Draw the profile of a report, with the requested epsilon and delta.

        Parameters
        ----------
        report : PrivacyReport
        label, ax, **options
            See `from_profile`; the default label is the report's name.

        Returns
        -------
        PrivacyProfileDisplay
        """
        check_kind(report, name="report", kind=PrivacyReport, domain="a PrivacyReport")
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
            Axes for the plot; by default, new axes are created.
        **options
            Options of matplotlib's line.

        Returns
        -------
        PrivacyProfileDisplay
            The display itself.
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
        # A delta of 0 lies below any logarithmic axis.
        (line,) = ax.plot(self.epsilons, np.maximum(self.deltas, _NOTHING), **look)
        return line

    def _mark(self, ax: Any, floor: float) -> Any:
        """Mark the requested point, and write its values if no legend contains them."""
        if self.asked is None or math.isinf(self.asked[0]):
            return None
        epsilon, delta = self.asked
        height = max(delta, floor)
        rule = {"color": quiet(ax), "linewidth": 0.8, "linestyle": ":", "zorder": 1}
        ax.plot([0.0, epsilon, epsilon], [height, height, floor], **rule)
        point = _draw_points(ax, epsilon, height, self.line_.get_color())
        if self.label is None:
            style = {"textcoords": "offset points", "fontsize": "small", "color": ink()}
            ax.annotate(_in_words(epsilon, delta), (epsilon, height), xytext=(8, 6), **style)
        return point


def _draw_points(ax: Any, x: Any, y: Any, colour: Any) -> Any:
    """Draw marked points as circles, and return them."""
    look = {"marker": "o", "markersize": 7, "linestyle": "none", "zorder": 5, "clip_on": False}
    look |= {"markerfacecolor": ax.get_facecolor(), "markeredgecolor": colour}
    (points,) = ax.plot(x, y, markeredgewidth=1.8, **look)
    return points


def _in_words(epsilon: float, delta: float) -> str:
    return f"{shown_epsilon(epsilon)} at δ = {shown_delta(delta)}"


def _curve(
    profile: PrivacyProfile, asked: tuple[float, float] | None
) -> tuple[FloatArray, FloatArray]:
    """Return the points to draw, from epsilon 0 to where delta falls below the axis."""
    end = profile.epsilon(_floor(asked))
    if math.isinf(end):
        # The curve does not reach the axis: end where it is close to its limit.
        end = profile.epsilon(min(1.0, _NEARLY * profile.delta(LARGEST_LOSS)))
    if not end > _LEAST_END or math.isinf(end):
        end = 1.0
    epsilons = np.linspace(0.0, _ROOM * end, _POINTS)
    # A pure guarantee ends abruptly.
    epsilons = np.unique(np.append(epsilons, end))
    if asked is not None and asked[0] > epsilons[-1] and math.isfinite(asked[0]):
        epsilons = np.append(epsilons, _ROOM * asked[0])
    return epsilons, np.asarray(profile.delta(epsilons), dtype=np.float64)


def _floor(asked: tuple[float, float] | None) -> float:
    """Return the smallest delta to draw."""
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


_KINDS = ("found", "missed")
# Rates on linear and logarithmic scales, so that curves are smooth on both.
_LEAST_RATE = 1e-6
_RATES = np.unique(
    np.concatenate(
        [
            np.linspace(0.0, 1.0, 201),
            np.geomspace(_LEAST_RATE, 1.0, 121),
            1.0 - np.geomspace(_LEAST_RATE, 1.0, 61),
        ]
    )
)
_LEAST_SHOWN = 1e-4
# Groups accused wrongly and rightly by an attacker, for each neighbouring relation.
_WORDS = {
    ADD_OR_REMOVE: ("of the absent", "of the present"),
    REPLACE: ("of those who were replaced", "of those who were not"),
    ZERO_OUT: ("of those who were zeroed out", "of those who were not"),
    PERSON: ("of the absent", "of the present"),
    PERSON_ZEROED: ("of those who were zeroed out", "of those who were not"),
}
_OTHERS = ("of the one kind of neighbours", "of the other")


class TradeOffDisplay(DrawsReport):
    """Plot of the trade-off curve: an attacker's rate of records found against false alarms.

    An attacker sees the release and guesses whether a record was in the data. For any attack and
    any additional knowledge, the rate at which records in the data are found is below the curve.
    Create the display by `from_profile`, `from_report`, `from_estimator` or `from_search`.

    Parameters
    ----------
    false_positive_rates : array-like
        Increasing, in [0, 1]: the share of absent records that the attacker wrongly reports.
    true_positive_rates : array-like
        The largest share of present records that can then be found.
    marked : sequence of (float, float), default=()
        Pairs of rates to mark, and to state in a sentence.
    neighbouring : str, default="add or remove one record"
        The neighbouring relation.
    label : str, optional
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.
    line_ : matplotlib Line2D
        The curve.
    points_ : matplotlib Line2D or None
        The marked points.
    guessing_ : matplotlib Line2D
        The line of random guessing.

    See Also
    --------
    PrivacyProfileDisplay : Shows the same guarantee as pairs of epsilon and delta.

    Notes
    -----
    Theorem P2. The curve is `PrivacyProfile.tradeoff`. It is a lower bound on the false-negative
    rate of any test at its false-positive rate, whichever of two neighbouring data sets is the
    hypothesis (Dong, Roth and Su 2022). Numbers in sentences are rounded so that they stay true.

    Examples
    --------
    >>> from skdptune.inspection import TradeOffDisplay
    >>> display = TradeOffDisplay([0.0, 0.01, 1.0], [0.0, 0.046, 1.0], marked=[(0.01, 0.046)])
    >>> display.statement
    'An attacker who accuses 1 % of the absent finds at most 4.6 % of the present.'
    """

    def __init__(
        self,
        false_positive_rates: ArrayLike,
        true_positive_rates: ArrayLike,
        *,
        marked: Sequence[tuple[float, float]] = (),
        neighbouring: str = ADD_OR_REMOVE,
        label: str | None = None,
    ) -> None:
        absent = _checked_rates(false_positive_rates, "false_positive_rates")
        present = _checked_rates(true_positive_rates, "true_positive_rates")
        if absent.size != present.size or np.any(np.diff(absent) <= 0.0):
            raise ValueError(
                "false_positive_rates must be increasing, and as many as true_positive_rates; got "
                f"{absent.size} for {present.size}."
            )
        self.false_positive_rates, self.true_positive_rates = absent, present
        self.marked = _checked_pairs(marked)
        self.neighbouring = check_kind(neighbouring, name="neighbouring", kind=str, domain="a str")
        self.label = label

    @property
    def statement(self) -> str:
        """A sentence that explains the marked points."""
        wrongly, rightly = _WORDS.get(self.neighbouring, _OTHERS)
        if not self.marked:
            return ""
        accused = _listed([_percent(absent, ROUND_FLOOR) for absent, _ in self.marked])
        found = _listed([_percent(present, ROUND_CEILING) for _, present in self.marked])
        return f"An attacker who accuses {accused} {wrongly} finds at most {found} {rightly}."

    # Creation ------------------------------------------------------------------------------

    @classmethod
    def from_profile(
        cls,
        profile: PrivacyProfile,
        *,
        false_positive_rates: float | Sequence[float] = 0.01,
        neighbouring: str = ADD_OR_REMOVE,
        label: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the trade-off curve of a profile.

        Parameters
        ----------
        profile : PrivacyProfile
        false_positive_rates : float or sequence of float, default=0.01
            Rates to mark, and to state in a sentence.
        neighbouring : str, default="add or remove one record"
            The neighbouring relation.
        label : str, optional
            Name in the legend.
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        **options
            `kind` and `log` of `plot`, and options of matplotlib's line.

        Returns
        -------
        TradeOffDisplay
        """
        check_kind(profile, name="profile", kind=PrivacyProfile, domain="a PrivacyProfile")
        marked = _checked_rates(
            np.atleast_1d(np.asarray(false_positive_rates)), "false_positive_rates"
        )
        display = cls(
            _RATES,
            _found(profile, _RATES),
            marked=list(zip(marked.tolist(), _found(profile, marked).tolist(), strict=True)),
            neighbouring=neighbouring,
            label=label,
        )
        return display.plot(ax=ax, **options)

    @classmethod
    def from_report(
        cls, report: PrivacyReport, *, ax: Any = None, label: str | None = None, **options: Any
    ) -> Self:
        """Draw the trade-off curve of a report.

        Parameters
        ----------
        report : PrivacyReport
        label, ax, **options
            See `from_profile`; the default label is the report's name.

        Returns
        -------
        TradeOffDisplay
        """
        check_kind(report, name="report", kind=PrivacyReport, domain="a PrivacyReport")
        return cls.from_profile(
            report.profile,
            neighbouring=report.neighbouring,
            label=report.name if label is None else label,
            ax=ax,
            **options,
        )

    # Drawing --------------------------------------------------------------------------------

    def plot(
        self, *, ax: Any = None, kind: str = "found", log: bool = False, **options: Any
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        kind : {"found", "missed"}, default="found"
            Whether to draw true-positive rates, or false-negative rates as in the literature on
            trade-off functions.
        log : bool, default=False
            Whether both axes are logarithmic, which makes small false-positive rates visible.
        **options
            Options of matplotlib's line.

        Returns
        -------
        TradeOffDisplay
            The display itself.
        """
        check_option(kind, name="kind", options=_KINDS)
        check_flag(log, name="log")
        ax = axes_for(self, ax)
        is_first = not ax.lines
        if is_first:
            # The result of random guessing at each false-positive rate.
            guess = {"color": quiet(ax), "linewidth": 1.0, "linestyle": ":", "label": "guessing"}
            ax.plot(_RATES, _shown(_RATES, kind), **guess)
        self.guessing_ = ax.lines[0]
        look = line_look(next_place(ax) - 1) | {"label": self._name()} | options
        shown = _shown(self.true_positive_rates, kind)
        (self.line_,) = ax.plot(self.false_positive_rates, shown, **look)
        self.points_ = None
        if self.marked:
            absent, present = np.array(self.marked).T
            colour = self.line_.get_color()
            self.points_ = _draw_points(ax, absent, _shown(present, kind), colour)
        if is_first:
            _name_axes(ax, kind, self.neighbouring)
            ends = {"xlim": (0.0, 1.0), "ylim": (0.0, 1.0)}
            if log:
                ends = dict.fromkeys(("xlim", "ylim"), (_LEAST_SHOWN, 1.0))
                ax.set(xscale="log", yscale="log")
            ax.set(**ends)
            tidy(ax)
            if self.marked:
                add_title(ax, self.statement)
        else:
            # One sentence cannot describe several curves, or several neighbouring relations.
            ax.set_title("", loc="left")
            if ax.get_xlabel() != _axis_labels(kind, self.neighbouring)[0]:
                _name_axes(ax, kind, "")
        add_legend(ax, loc="upper right" if kind == "missed" else "lower right")
        return self

    def _name(self) -> str | None:
        """Return the curve's name in the legend, with the values of a single marked point."""
        if self.label is None or len(self.marked) != 1:
            return self.label
        ((absent, present),) = self.marked
        found, accused = _percent(present, ROUND_CEILING), _percent(absent, ROUND_FLOOR)
        return f"{self.label}: at most {found} at {accused}"


def _name_axes(ax: Any, kind: str, neighbouring: str) -> None:
    x, y = _axis_labels(kind, neighbouring)
    ax.set(xlabel=x, ylabel=y)


def _axis_labels(kind: str, neighbouring: str) -> tuple[str, str]:
    wrongly, rightly = _WORDS.get(neighbouring, _OTHERS)
    rate = "true-positive rate" if kind == "found" else "false-negative rate"
    return f"accused {wrongly} (false-positive rate)", f"{kind} {rightly} ({rate})"


def _found(profile: PrivacyProfile, rates: FloatArray) -> FloatArray:
    """Return the largest true-positive rates for given false-positive rates, rounded up."""
    missed = np.asarray(profile.tradeoff(rates), dtype=np.float64)
    # Exact decimals, because a floating-point subtraction could round down.
    found = [float(1 - Decimal(repr(each))) for each in missed.tolist()]
    return np.clip(np.maximum(found, rates), 0.0, 1.0)


def _shown(found: Any, kind: str) -> Any:
    return found if kind == "found" else 1.0 - np.asarray(found)


def _checked_rates(rates: ArrayLike, name: str) -> FloatArray:
    return check_vector(rates, name=name, lower=0.0, upper=1.0).astype(np.float64)


def _percent(rate: float, rounding: str) -> str:
    """Return a rate in percent, rounded to two digits, or three from ten percent on."""
    return percent(rate, rounding, digits=3 if Decimal(repr(rate)) >= Decimal("0.1") else 2)


def _listed(words: Sequence[str]) -> str:
    """Return "1 %", "1 % or 2 %", "1 %, 2 % or 3 %"."""
    *before, last = words
    return f"{', '.join(before)} or {last}" if before else last


def _checked_pairs(marked: Any) -> tuple[tuple[float, float], ...]:
    try:
        pairs = [tuple(pair) for pair in marked]
    except TypeError:
        raise TypeError(f"marked must be pairs of rates; got {shown(marked)}.") from None
    found = []
    for place, pair in enumerate(pairs):
        if len(pair) != 2:
            raise ValueError(f"marked must be pairs of rates; got {len(pair)} in place {place}.")
        rates = [
            check_real(rate, name=f"marked[{place}]", lower=0.0, upper=1.0, is_entry=True)
            for rate in pair
        ]
        found.append((rates[0], rates[1]))
    return tuple(found)
