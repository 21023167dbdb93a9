"""Shared parts of all displays: reports, visual style, and late loading of matplotlib.

Lines differ in colour, dashes and markers, and areas in colour and hatching. So they can be
distinguished in grey and with any colour vision. Text and rules have the text colour of
matplotlib's style, so they are also readable on dark backgrounds.
"""

from __future__ import annotations

import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any, Self

import numpy as np

from skdptune._formatting import shown_delta
from skdptune._validation import FloatArray, check_estimator, check_kind, installed
from skdptune.accounting import PrivacyReport
from skdptune.base import privacy_of, profile_of
from skdptune.base._shared import (
    DEFAULT_DELTA,
    assumptions_of,
    budget_owners,
    is_fitted,
    neighbouring_of,
)

_SLACK = 1e-9


def check_search(search: Any) -> None:
    """Raise unless an object is one of the package's searches."""
    if isinstance(search, type):
        raise TypeError(
            f"search must be a search of skdptune; got the class {search.__name__}. Call it first."
        )
    if not callable(getattr(search, "plan", None)):
        raise TypeError(f"search must be a search of skdptune; got {type(search).__name__}.")


def report_of_estimator(
    estimator: Any,
    n_samples: int | None = None,
    n_features: int | None = None,
    *,
    name: str = "estimator",
) -> PrivacyReport:
    """Return the report of a fitted estimator, or of a future fit to `n_samples` records.

    Parameters
    ----------
    estimator : estimator or pipeline
        A private estimator.
    n_samples, n_features : int, optional
        Public sizes of a future fit. If `n_samples` is given, the report is about that fit, even
        if the estimator is already fitted.
    name : str, default="estimator"
        Name of the argument in error messages.
    """
    check_estimator(estimator, name=name)
    if n_samples is not None:
        return _report_to_come(estimator, n_samples, n_features)
    if not _is_fitted(estimator):
        raise ValueError(
            f"{name} must be fitted if n_samples is not given; got a {type(estimator).__name__} "
            "that is not. For the cost of a future fit, give n_samples and n_features."
        )
    return privacy_of(estimator)


def _is_fitted(estimator: Any) -> bool:
    if hasattr(estimator, "privacy_"):
        return True
    return not hasattr(estimator, "privacy_profile") and is_fitted(estimator)


def _report_to_come(estimator: Any, n_samples: int, n_features: int | None) -> PrivacyReport:
    if callable(getattr(estimator, "plan", None)):
        planned: PrivacyReport = estimator.plan(n_samples, n_features).report
        return planned
    profile = profile_of(estimator, n_samples, n_features)
    owners = budget_owners(estimator)
    # As stated by `privacy_of` after the fit.
    delta = math.fsum(owner.delta or 0.0 for owner in owners)
    if not owners and math.isinf(profile.epsilon(0.0)):
        delta = DEFAULT_DELTA
    asked = getattr(estimator, "epsilon", None) if len(owners) == 1 else None
    if asked is not None and not profile.epsilon(delta) <= asked * (1.0 + _SLACK):
        asked = None
    return PrivacyReport(
        profile,
        delta,
        epsilon=asked,
        name=type(estimator).__name__,
        assumptions=assumptions_of(estimator, n_samples, n_features),
        neighbouring=neighbouring_of(estimator),
    )


class DrawsReport(ABC):
    """Base of displays of a report, which create it from several kinds of objects."""

    @classmethod
    @abstractmethod
    def from_report(cls, *report: Any, **options: Any) -> Self:
        """Draw a report."""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        n_samples: int | None = None,
        n_features: int | None = None,
        *,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the report of a fitted estimator, or of a future fit to `n_samples` records.

        Parameters
        ----------
        estimator : estimator or pipeline
            Fitted, unless `n_samples` is given. For a pipeline, the cost of each step is only
            known after the fit.
        n_samples, n_features : int, optional
            Public sizes of a future fit.
        ax, **options
            See `from_report`.

        Returns
        -------
        display
        """
        report = report_of_estimator(estimator, n_samples, n_features)
        return cls.from_report(report, ax=ax, **options)

    @classmethod
    def from_search(
        cls,
        search: Any,
        n_samples: int | None = None,
        n_features: int | None = None,
        *,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the report of a fitted search, or of a future search on `n_samples` records.

        Parameters
        ----------
        search : search
            Fitted, unless `n_samples` is given.
        n_samples, n_features : int, optional
            Public sizes of a future search.
        ax, **options
            See `from_report`.

        Returns
        -------
        display
        """
        check_search(search)
        report = report_of_estimator(search, n_samples, n_features, name="search")
        return cls.from_report(report, ax=ax, **options)


# Okabe and Ito's colours, and grey. Yellow and black are left out: they are invisible on white or
# black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F")
DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "X", "P")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oo")
# Default size of a figure, in inches.
SIZE = (6.4, 4.2)
# Width of a character of the small font, in inches.
LETTER = 0.072
_POINTS_PER_INCH = 72.0
# Characters of the small font per inch of a title, and how the layout changes the width of axes:
# single axes get wider, others get narrower.
_LETTERS_PER_INCH, _WIDENED, _NARROWED = 15.0, 1.1, 0.8
_FEWEST_LETTERS = 20
# Shares of the text's colour in quieter colours: of rules and ticks, and of the grid.
_QUIET, _FAINT = 0.55, 0.12
# Above this luminance, black has a better contrast than white: (L + .05)^2 = 1.05 .05.
_LIGHT = 0.179


def load_pyplot(name: str) -> Any:
    """Return matplotlib's pyplot, or raise an error that names the extra to install."""
    with installed(f"{name} needs", "plot"):
        from matplotlib import pyplot
    return pyplot


def axes_for(display: Any, ax: Any = None, size: tuple[float, float] = SIZE) -> Any:
    """Return the axes for a plot, by default new ones; store them as ``ax_`` and ``figure_``.

    Parameters
    ----------
    display : object
        Display whose attributes are set, and which errors name.
    ax : matplotlib Axes, optional
        Axes given by the user.
    size : tuple of float, optional
        Size of a new figure, in inches.
    """
    pyplot = load_pyplot(type(display).__name__)
    if ax is None:
        _, ax = pyplot.subplots(figsize=size, layout="constrained")
    else:
        from matplotlib.axes import Axes

        check_kind(ax, name="ax", kind=Axes, domain="matplotlib Axes or None")
    display.ax_, display.figure_ = ax, ax.figure
    return ax


def line_look(place: int, markers: bool = False) -> dict[str, Any]:
    """Return the arguments of ``ax.plot`` for the line with this index, from 0.

    Colours and dashes have cycles of different lengths, so that 35 lines differ.
    """
    look = {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": DASHES[place % len(DASHES)],
        "linewidth": 1.7,
    }
    if markers:
        look |= {"marker": MARKERS[place % len(MARKERS)], "markersize": 5.5}
    return look


def draw_band(ax: Any, x: Any, low: Any, high: Any, place: int, words: str) -> Any:
    """Shade the area around the line with this index, and return it; name the first one only."""
    known = ax.get_legend_handles_labels()[1]
    look = {"color": COLOURS[place % len(COLOURS)], "alpha": 0.18, "linewidth": 0.0}
    return ax.fill_between(x, low, high, label=None if words in known else words, **look)


def next_place(ax: Any) -> int:
    """Return the index of the next line, after the labelled ones that the axes already show."""
    return len(ax.get_legend_handles_labels()[1])


def bar_look(place: int) -> dict[str, Any]:
    """Return the arguments of ``ax.bar`` for the area with this index, from 0."""
    return {
        "facecolor": COLOURS[place % len(COLOURS)],
        "hatch": HATCHES[place % len(HATCHES)],
        "edgecolor": "white",
        "linewidth": 0.8,
    }


def ink() -> Any:
    """Return the text colour of matplotlib's style."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def quiet(ax: Any, share: float = _QUIET) -> tuple[float, float, float]:
    """Return a colour between the text colour and the background colour."""
    from matplotlib.colors import to_rgb, to_rgba

    ground = to_rgba(ax.get_facecolor())
    if ground[3] == 0.0:
        ground = to_rgba(ax.figure.get_facecolor())
    pairs = zip(to_rgb(ink()), ground[:3], strict=True)
    red, green, blue = (share * text + (1.0 - share) * below for text, below in pairs)
    return red, green, blue


def ink_on(colour: Any) -> str:
    """Return black or white, whichever is easier to read on a colour."""
    from matplotlib.colors import to_rgb

    shares = (0.2126, 0.7152, 0.0722)
    # Contrast as defined for the Web (WCAG), with a power approximating sRGB's curve.
    luminance = sum(share * c**2.2 for share, c in zip(shares, to_rgb(colour), strict=True))
    return "black" if luminance > _LIGHT else "white"


def tidy(ax: Any, grid: str = "both") -> None:
    """Remove the upper and right side of the frame, and draw a faint grid in the background.

    Parameters
    ----------
    ax : matplotlib Axes
    grid : {"both", "x", "y"}
        Axes whose major ticks have grid lines.
    """
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(quiet(ax))
    ax.tick_params(which="both", color=quiet(ax))
    ax.grid(True, which="major", axis=grid, color=quiet(ax, _FAINT), linewidth=0.8)
    ax.set_axisbelow(True)


def add_title(ax: Any, text: str, inches: float | None = None) -> Any:
    """Write a sentence above the axes, wrapped into lines, and return the artist.

    The default width in inches is about that of the axes.
    """
    if inches is None:
        # The layout computes the exact width only when drawing.
        share = _WIDENED if len(ax.figure.axes) == 1 else _NARROWED
        inches = float(share * ax.get_position().width * ax.figure.get_figwidth())
    return ax.set_title(wrapped(text, inches), fontsize="small", loc="left")


def wrapped(text: str, inches: float = SIZE[0]) -> str:
    """Return a text in lines that fit into the given width in the small font."""
    width = max(int(inches * _LETTERS_PER_INCH), _FEWEST_LETTERS)
    # Keep numbers and their percent signs together.
    pieces = text.replace(" %", "\u00a0%").splitlines()
    lines = [line for piece in pieces for line in textwrap.wrap(piece, width) or [""]]
    return "\n".join(lines).replace("\u00a0%", " %")


def shortened(text: str, most: int) -> str:
    """Return a text with at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def percent(share: float, rounding: str, *, digits: int) -> str:
    """Return a share in percent, rounded up or down to some digits of its exact value."""
    exact = 100 * Decimal(repr(share))
    return f"{Context(prec=digits, rounding=rounding).plus(exact).normalize():f} %"


def add_legend(ax: Any, **options: Any) -> Any:
    """Draw and return a legend of all labelled artists; return None if there are none."""
    handles, labels = ax.get_legend_handles_labels()
    if not labels:
        return None
    style = {"frameon": False, "fontsize": "small", "handlelength": 2.8}
    return ax.legend(handles, labels, **style | options)


def write_beside(
    ax: Any, words: str, position: float, height: float, *, left: bool = False
) -> Any:
    """Write a label next to the end of a horizontal bar, above the grid."""
    ground = {"boxstyle": "square,pad=0.1", "facecolor": ax.get_facecolor(), "linewidth": 0.0}
    return ax.annotate(
        words,
        (position, height),
        xytext=(-5 if left else 5, 0),
        textcoords="offset points",
        va="center",
        ha="right" if left else "left",
        fontsize="small",
        color=ink(),
        bbox=ground,
    )


def row_heights(names: Sequence[str], between: float) -> tuple[FloatArray, float]:
    """Return the middle of each name of one or more lines, and the height of all, in lines."""
    lines = np.array([1 + name.count("\n") for name in names]) + between
    return np.cumsum(lines) - 0.5 * lines, float(lines.sum())


def name_rows(ax: Any, names: Sequence[str], heights: Any, inches: float) -> None:
    """Write the names of horizontal bars into a left-aligned column of the given width."""
    ax.set_yticks(list(heights), list(names), fontsize="small", linespacing=1.1, ha="left")
    ax.tick_params(axis="y", length=0, pad=_POINTS_PER_INCH * inches)


def room_for(words: Sequence[str], inches: float) -> float:
    """Return the factor by which an axis must exceed its longest bar so that labels fit.

    Parameters
    ----------
    words : sequence of str
        Labels next to the bars.
    inches : float
        Length of the axis.
    """
    needed = LETTER * (max(map(len, words), default=0) + 2)
    width = max(inches, 1.5 * needed)
    return width / (width - needed)


# If the ratio of its ends is smaller, an axis has few powers of ten.
_FEW_POWERS = 30.0


def dress_epsilons(ax: Any, ends: tuple[float, float], delta: float | None = None) -> None:
    """Format the horizontal axis for epsilons: logarithmic, with a label and plain numbers.

    Parameters
    ----------
    ax : matplotlib Axes
    ends : tuple of float
        Smallest and largest epsilon to be shown.
    delta : float, optional
        The delta at which the epsilons are stated.
    """
    ax.set_xscale("log")
    ax.set_xlim(*ends)
    ax.set_xlabel(epsilon_label(delta))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    has_minor = ends[1] < _FEW_POWERS * ends[0]

    def minor_label(value: float, _: Any) -> str:
        """Return a label at 2 and 5 times powers of ten."""
        text = f"{value:g}"
        return text if has_minor and text.strip("0.") in ("2", "5") else ""

    ax.xaxis.set_minor_formatter(minor_label)


def epsilon_label(delta: float | None) -> str:
    """Return the axis label for epsilons stated at a delta."""
    return "ε" if delta is None else f"ε at δ = {shown_delta(delta)}"
