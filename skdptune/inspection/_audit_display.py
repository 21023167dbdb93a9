"""Plots of audits: the statistic with and without a record, or the capital of bets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdptune._validation import check_integer, check_kind, check_option, check_real, check_vector
from skdptune.inspection._plotting import (
    COLOURS,
    HATCHES,
    add_legend,
    add_title,
    axes_for,
    ink,
    line_look,
    tidy,
)

FloatArray = NDArray[np.floating[Any]]

_KINDS = ("auto", "statistic", "capital")
_MOST_BINS, _FEWEST_BINS = 40, 8
_OF_RECORD = ("with the record", "without")
_OF_CANARIES = ("canaries that were in", "canaries that were not")
# Looks of the two sides: they also differ in outline and hatching, so that grey prints are
# readable.
_LOOKS = ((1, "-"), (0, (0, (4, 1.5))))


class AuditDisplay:
    """Plot of an audit: the statistic with and without the record, or the bets.

    Create it by `from_result`, or by the ``plot`` method of the result.

    Parameters
    ----------
    statistic_with, statistic_without : array-like
        The statistic of fits with and without the record. For a single fit: the scores of canaries
        that were in the data, and of those that were not.
    capital : sequence of (int, float), default=()
        Pairs: a number of fits, and the logarithm of the capital of bets against the claim.
    goal : float, default=inf
        Logarithm of the capital at which the claim is refuted.
    title : str, default=""
        The verdict of the audit.
    statistic : str, default="statistic"
        Name of the statistic.
    labels : pair of str, default=("with the record", "without")
        Labels of both sides in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.
    lines_ : list of matplotlib artists
        Both histograms, or the line of the capital.

    See Also
    --------
    skdptune.audit.audit_epsilon : Audits an estimator by many fits.
    skdptune.audit.one_run_audit : Audits an estimator by a single fit.

    Examples
    --------
    >>> from skdptune.inspection import AuditDisplay
    >>> display = AuditDisplay([1.0, 2.0, 1.5], [0.0, 0.5, -0.5], title="Consistent.")
    >>> display.plot().ax_.get_xlabel()  # doctest: +SKIP
    'statistic'
    """

    def __init__(
        self,
        statistic_with: ArrayLike,
        statistic_without: ArrayLike,
        *,
        capital: Any = (),
        goal: float = math.inf,
        title: str = "",
        statistic: str = "statistic",
        labels: Sequence[str] = _OF_RECORD,
    ) -> None:
        self.statistic_with = check_vector(statistic_with, name="statistic_with")
        self.statistic_without = check_vector(statistic_without, name="statistic_without")
        self.capital = _checked_capital(capital)
        self.goal = check_real(goal, name="goal")
        check_kind(title, name="title", kind=str | None, domain="None or a str")
        self.title = title
        self.statistic = statistic
        check_kind(labels, name="labels", kind=(list, tuple), domain="a pair of texts")
        if len(labels) != len(_LOOKS):
            raise ValueError(f"labels must be a pair of texts; got {len(labels)}.")
        self.labels = tuple(map(str, labels))

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, kind: str = "auto") -> AuditDisplay:
        """Draw the result of an audit.

        Parameters
        ----------
        result : AuditResult or OneRunResult
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        kind : {"auto", "statistic", "capital"}, default="auto"
            See `plot`; "auto" is "capital" for sequential audits.

        Returns
        -------
        AuditDisplay
        """
        if not hasattr(result, "statistic_with"):
            raise TypeError(
                f"result must be an AuditResult or a OneRunResult; got {type(result).__name__}."
            )
        check_option(kind, name="kind", options=_KINDS)
        is_one_run = hasattr(result, "n_canaries")
        if kind == "auto" and not is_one_run:
            kind = "capital" if result.method == "sequential" else "statistic"
        display = cls(
            _counted(result.statistic_with),
            _counted(result.statistic_without),
            capital=() if is_one_run else result.capital,
            goal=math.inf if is_one_run else result.goal,
            title=result.verdict,
            statistic="score" if is_one_run else "statistic",
            labels=_OF_CANARIES if is_one_run else _OF_RECORD,
        )
        return display.plot(ax=ax, kind=kind)

    def plot(self, *, ax: Any = None, kind: str = "auto") -> AuditDisplay:
        """Draw the audit.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        kind : {"auto", "statistic", "capital"}, default="auto"
            "statistic" is a histogram of both sides; "auto" selects it if there is a statistic.
            "capital" is the capital of bets against the claim that start with one unit, by the
            number of fits.

        Returns
        -------
        AuditDisplay
            The display itself.
        """
        check_option(kind, name="kind", options=_KINDS)
        if kind == "capital" and not self.capital:
            raise ValueError('kind must be "statistic" if no bets were made; got "capital".')
        if not (self.capital or self.statistic_with.size + self.statistic_without.size):
            raise ValueError("statistic_with must hold numbers where no bets were made; got none.")
        ax = axes_for(self, ax)
        if kind == "capital" or not self.statistic_with.size:
            self._draw_capital(ax)
        else:
            self._draw_statistic(ax)
        if self.title:
            add_title(ax, self.title)
        tidy(ax, grid="y")
        return self

    def _draw_statistic(self, ax: Any) -> None:
        sides = self.statistic_with, self.statistic_without
        finite = [side[np.isfinite(side)] for side in sides]
        both = np.concatenate(finite)
        number = int(np.clip(math.sqrt(both.size), _FEWEST_BINS, _MOST_BINS))
        ends = np.histogram_bin_edges(both, bins=number)
        self.lines_ = []
        for side, kept, label, look in zip(sides, finite, self.labels, _LOOKS, strict=True):
            self.lines_.append(_draw_side(ax, kept, ends, _named(label, side, kept), look))
        ax.set_xlabel(self.statistic)
        ax.set_ylabel("density")
        # Leave room above the bars for the legend.
        ax.margins(y=0.15)
        add_legend(ax, loc="upper left", ncols=2)

    def _draw_capital(self, ax: Any) -> None:
        pairs, logs = np.array(self.capital, dtype=np.float64).T
        # Limit the capital to what double precision can represent.
        self.lines_ = ax.plot(2.0 * pairs, np.exp(np.minimum(logs, 700.0)), **line_look(0))
        if math.isfinite(self.goal):
            ax.axhline(math.exp(self.goal), color=ink(), lw=0.9, ls="--", label="claim refuted")
            add_legend(ax)
        ax.set_yscale("log")
        ax.set_xlabel("fits")
        ax.set_ylabel("capital of bets against the claim")


def _counted(values: FloatArray) -> FloatArray:
    """Return the numbers of a side, with NaN replaced by minus infinity."""
    return np.where(np.isnan(values), -np.inf, values)


def _checked_capital(capital: Any) -> tuple[tuple[int, float], ...]:
    """Return pairs of a number of fits and the logarithm of the capital, or raise."""
    wanted = "capital must be a sequence of pairs of a number of fits and a logarithm"
    if not isinstance(capital, list | tuple):
        raise TypeError(f"{wanted}; got {type(capital).__name__}.")
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in capital):
        raise TypeError(f"{wanted}; got others in it.")
    return tuple(
        (
            check_integer(pairs, name="fits of capital", lower=0, is_entry=True),
            check_real(log, name="logarithm of capital", is_entry=True),
        )
        for pairs, log in capital
    )


def _draw_side(ax: Any, numbers: FloatArray, ends: FloatArray, label: str, look: Any) -> Any:
    """Draw a histogram as a light area with an outline, and return the area."""
    place, outline = look
    colour = COLOURS[place]
    # An empty histogram has no density.
    has_density = bool(numbers.size)
    area = {"alpha": 0.3, "facecolor": colour, "edgecolor": colour, "hatch": HATCHES[place]}
    common = {"bins": ends, "density": has_density}
    _, _, drawn = ax.hist(numbers, **common, histtype="stepfilled", linewidth=0.0, **area)
    look = {"edgecolor": colour, "linestyle": outline, "linewidth": 1.5}
    ax.hist(numbers, **common, histtype="step", label=label, **look)
    return drawn


def _named(label: str, side: FloatArray, finite: FloatArray) -> str:
    """Return a label that states how many fits have no number, for example because they failed."""
    left_out = side.size - finite.size
    return f"{label} ({left_out} without a number)" if left_out else label
