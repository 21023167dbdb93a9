"""Plots of the parts of a privacy cost: each part's own cost, and its share of the total."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skdptune._formatting import shown, shown_delta, shown_epsilon, shown_number
from skdptune._validation import (
    check_integer,
    check_kind,
    check_private_numbers,
    check_real,
    check_vector,
)
from skdptune.accounting import PrivacyReport
from skdptune.accounting._shared import added_epsilons, adds, figures_of_parts
from skdptune.inspection._plotting import (
    LETTER,
    DrawsReport,
    add_title,
    axes_for,
    bar_look,
    ink,
    name_rows,
    quiet,
    room_for,
    row_heights,
    tidy,
    wrapped,
    write_beside,
)

# In inches: the width, the height of a line of text, and the space above and below the bars.
_WIDTH, _LINE, _REST = 7.2, 0.19, 1.35
# Maximum width of the column of names.
_NAMES = 2.4
_THICK, _THIN = 0.72, 0.5
# A smaller share of the total is not visible.
_NOTHING = 5e-4


class BudgetDisplay(DrawsReport):
    """Plot of a report's tree: the cost of each part of a release, and its share of the total.

    The top bar is the whole release. If its parts use the same records, the bar is divided. It
    begins with the last part, which is the model; each earlier part adds the difference that it
    makes. Every other bar is the cost of one part considered separately, as in the printed report.
    Create the display by `from_report`, `from_estimator` or `from_search`.

    Parameters
    ----------
    names : sequence of str
        Names of the release and of all parts, in the order of the printed tree.
    levels : sequence of int
        Depth in the tree: 0 for the release, 1 for its parts.
    alone : array-like
        Epsilon of each part considered separately.
    added : array-like
        Epsilon that each part of level 1 adds to the total; NaN for other parts. It is NaN for all
        parts if they use different records, since then they do not add up to the total.
    delta : float
        The delta at which all these epsilons are stated.
    asked : float, optional
        The requested epsilon.
    composed : float, optional
        Epsilon of the parts of level 1 if they were composed on the same records.
    notes : sequence of str, optional
        Remarks on each part, such as the number of runs.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.
    bars_ : list of matplotlib artists
        Bars of the parts considered separately, in the order of `names` without the first.
    segments_ : list of matplotlib artists
        Segments of the parts of level 1, from the last to the first, or one for the whole release.
    asked_ : matplotlib Line2D or None
        The line at the requested epsilon.

    See Also
    --------
    skdptune.accounting.PrivacyReport : Prints the same tree.

    Notes
    -----
    Costs do not simply add up: two fits of epsilon 1 cost less than 2 together. A part adds the
    epsilon of the composition of itself and all later parts, minus the epsilon of the later ones.
    So the segments add up to the total, and depend on the order. A search on a random part of the
    records and a fit on the others cost less than their composition, since no record is in both.
    In this case, the total is not divided.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, PrivacyReport
    >>> from skdptune.inspection import BudgetDisplay
    >>> display = BudgetDisplay(
    ...     ["pipeline", "scaler", "model"], [0, 1, 1], [1.0, 0.5, 0.9], [float("nan"), 0.1, 0.9],
    ...     delta=1e-5,
    ... )
    >>> display.statement
    'Of ε = 1.000, model takes 0.900; scaler adds 0.100.'
    """

    def __init__(
        self,
        names: Sequence[str],
        levels: Sequence[int],
        alone: ArrayLike,
        added: ArrayLike,
        *,
        delta: float,
        asked: float | None = None,
        composed: float | None = None,
        notes: Sequence[str] | None = None,
    ) -> None:
        self.names, self.levels = _checked_tree(names, levels)
        self.alone = check_vector(alone, name="alone", lower=0.0)
        self.added = check_private_numbers(added, name="added")
        self.notes = [""] * len(self.names) if notes is None else list(notes)
        sizes = {len(self.names), self.alone.size, self.added.size, len(self.notes)}
        if len(sizes) != 1 or self.added.ndim != 1:
            raise ValueError(
                "alone, added and notes must have one entry for each name; got "
                f"{self.alone.size}, {self.added.size} and {len(self.notes)} for "
                f"{len(self.names)}."
            )
        self.delta = check_real(delta, name="delta", lower=0.0, upper=1.0)
        self.asked = None if asked is None else check_real(asked, name="asked", lower=0.0)
        self.composed = (
            None if composed is None else check_real(composed, name="composed", lower=0.0)
        )

    @property
    def statement(self) -> str:
        """A sentence that states how much each part costs."""
        total = float(self.alone[0])
        parts = [(self.names[row], float(self.added[row])) for row in reversed(self._parts())]
        if math.isinf(total) or not parts:
            return f"{self.names[0]}: {shown_epsilon(total)}."
        if not self._is_divided:
            together = f"Together the parts cost {shown_epsilon(total)}"
            if self.composed is None or math.isinf(self.composed):
                return f"{together}."
            return (
                f"{together}; on the same records they would cost at most "
                f"{shown_number(self.composed)}."
            )
        (last, own), *others = parts
        words = [f"Of {shown_epsilon(total)}, {last} takes {shown_number(own)}"]
        words += [f"{name} {adds(added)}" for name, added in others]
        return "; ".join(words) + "."

    @property
    def _is_divided(self) -> bool:
        """Whether the total is divided into the shares of the parts."""
        parts = self._parts()
        return bool(parts) and bool(np.isfinite(self.added[parts]).all())

    def _parts(self) -> list[int]:
        """Return the rows of level 1."""
        return [row for row, level in enumerate(self.levels) if level == 1]

    # Creation ------------------------------------------------------------------------------

    @classmethod
    def from_report(
        cls, report: PrivacyReport, *, ax: Any = None, depth: int | None = None
    ) -> Self:
        """Draw a report.

        Parameters
        ----------
        report : PrivacyReport
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        depth : int, optional
            See `plot`.

        Returns
        -------
        BudgetDisplay
        """
        check_kind(report, name="report", kind=PrivacyReport, domain="a PrivacyReport")
        rows = list(_rows(report, 0))
        delta = report.delta
        added = np.full(len(rows), np.nan)
        composed, parts = added_epsilons(report)
        added[[row for row, (_, level) in enumerate(rows) if level == 1]] = parts
        display = cls(
            [" ".join(part.name.split()) for part, _ in rows],
            [level for _, level in rows],
            [part.epsilon_at(delta) for part, _ in rows],
            added,
            delta=delta,
            asked=report.epsilon,
            composed=composed,
            notes=[" ".join(part.note.split()) for part, _ in rows],
        )
        return display.plot(ax=ax, depth=depth)

    # Drawing --------------------------------------------------------------------------------

    def plot(self, *, ax: Any = None, depth: int | None = None) -> Self:
        """Draw the tree.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        depth : int, optional
            The deepest level to draw; by default, all levels.

        Returns
        -------
        BudgetDisplay
            The display itself.
        """
        if depth is not None:
            depth = check_integer(depth, name="depth", lower=0)
        rows = [row for row, level in enumerate(self.levels) if depth is None or level <= depth]
        names = [self._name(row) for row in rows]
        # Center each bar on the lines of its name.
        heights, total = row_heights(names, 0.6)
        ax = axes_for(self, ax, (_WIDTH, _REST + _LINE * total))
        finite = self.alone[np.isfinite(self.alone)]
        end = max(float(finite.max(initial=0.0)), self._asked_length) or 1.0
        asked, spent = self._asked_length, float(self.alone[0])
        self.asked_ = None
        if asked and math.isfinite(spent) and shown_number(asked) != shown_number(spent):
            # Below everything else.
            self.asked_ = ax.axvline(asked, color=ink(), linewidth=1.0, linestyle="--", zorder=0.9)
        self.segments_ = self._draw_total(ax, heights[0], end)
        self.bars_ = [
            self._draw_part(ax, row, height, end)
            for row, height in zip(rows[1:], heights[1:], strict=True)
        ]
        self._dress(ax, rows, names, heights, end)
        return self

    @property
    def _asked_length(self) -> float:
        """The requested epsilon if it can be drawn; otherwise 0."""
        return self.asked if self.asked is not None and math.isfinite(self.asked) else 0.0

    def _name(self, row: int) -> str:
        note = f" ({self.notes[row]})" if self.notes[row] else ""
        indent = "    " * max(self.levels[row] - 1, 0)
        text = wrapped(f"{self.names[row]}{note}", _NAMES)
        return "\n".join(indent + line for line in text.splitlines())

    def _figure_of(self, row: int) -> str:
        """Return the text next to a bar."""
        parts = self._parts()
        if self.levels[row] != 1:
            return shown_epsilon(float(self.alone[row]))
        figures = figures_of_parts(self.alone[parts].tolist(), self.added[parts].tolist())
        return figures[parts.index(row)]

    def _draw_total(self, ax: Any, height: float, end: float) -> list[Any]:
        """Draw the shares of the parts one after the other."""
        total = float(self.alone[0])
        write_beside(ax, shown_epsilon(total), min(total, end), height)
        if math.isinf(total) or not self._is_divided:
            look = {"facecolor": quiet(ax, 0.35), "edgecolor": quiet(ax), "linewidth": 0.8}
            return list(ax.barh(height, min(total, end), _THICK * 1.4, **look))
        parts = list(reversed(self._parts()))
        starts = np.concatenate([[0.0], np.cumsum(self.added[parts])])
        drawn: list[Any] = []
        for row, start in zip(parts, starts, strict=False):
            look = bar_look(self._place(row))
            drawn += ax.barh(height, self.added[row], _THICK * 1.4, left=start, **look)
        rest = total - starts[-1]
        if rest > _NOTHING * total:
            missing = {"facecolor": "none", "edgecolor": quiet(ax), "linestyle": ":"}
            ax.barh(height, rest, _THICK * 1.4, left=starts[-1], **missing)
        return drawn

    def _draw_part(self, ax: Any, row: int, height: float, end: float) -> Any:
        """Draw the bar of one part considered separately."""
        length, is_first = min(float(self.alone[row]), end), self.levels[row] == 1
        look = bar_look(self._place(row)) | {"alpha": None if is_first else 0.55}
        (bar,) = ax.barh(height, length, _THICK if is_first else _THIN, **look)
        write_beside(ax, self._figure_of(row), length, height)
        return bar

    def _place(self, row: int) -> int:
        """Return the index, among the parts of level 1, of the part that contains a row."""
        return max(sum(1 for part in self._parts() if part <= row) - 1, 0)

    def _dress(self, ax: Any, rows: list[int], names: list[str], heights: Any, end: float) -> None:
        longest = max(len(line) for name in names for line in name.splitlines())
        column = LETTER * (longest + 1)
        name_rows(ax, names, heights, column)
        ax.get_yticklabels()[0].set_fontweight("bold")
        ax.set_ylim(heights[-1] + 1.2, heights[0] - 1.2)
        beside = [self._figure_of(row) for row in rows]
        ax.set_xlim(0.0, end * room_for(beside, _WIDTH - column - 0.3))
        label = f"ε at δ = {shown_delta(self.delta)}"
        if len(self._parts()) > 1:
            label += "; costs of single parts need not add up"
        if self.asked_ is not None:
            label += f"\ndashed: requested, ε = {shown_number(self._asked_length)}"
        ax.set_xlabel(label, fontsize="small")
        if not np.isfinite(self.alone).any():
            ax.set_xticks([])
        tidy(ax, grid="x")
        add_title(ax, self.statement, _WIDTH - column - 0.3)


def _rows(report: PrivacyReport, level: int) -> Iterator[tuple[PrivacyReport, int]]:
    """Iterate over a report and all its nested parts, with their depths."""
    yield report, level
    for part in report.parts:
        yield from _rows(part, level + 1)


def _checked_tree(names: Any, levels: Any) -> tuple[list[str], list[int]]:
    """Return names and levels of a tree, which must begin with its root, or raise."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"names must be a sequence of str; got {shown(names)}.")
    found = [check_integer(level, name="each of levels", is_entry=True) for level in levels]
    is_tree = bool(found) and found[0] == 0 and all(level >= 1 for level in found[1:])
    if not is_tree or len(found) != len(names):
        raise ValueError(
            "levels must have one entry for each name, 0 for the first and at least 1 for all "
            f"others; got {shown(found)}."
        )
    return list(names), found
