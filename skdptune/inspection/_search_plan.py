"""Plots of what a search will do: who uses which records, and what other ways would take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdptune._formatting import shown, shown_delta, shown_number
from skdptune._validation import check_kind, check_option, check_real
from skdptune.inspection._plotting import (
    add_title,
    axes_for,
    bar_look,
    load_pyplot,
    name_rows,
    quiet,
    room_for,
    tidy,
    wrapped,
    write_beside,
)
from skdptune.inspection._sources import check_search
from skdptune.model_selection import PlanRow, SearchPlan

_MEASURES = {
    "noise": "noise of the final fit, beside the share of the records that it uses",
    "work": "expected work, in fits on all records",
    "fit_epsilon": "what each fit may cost (ε)",
}
_ATTRIBUTES = {"noise": "effective_noise", "work": "work", "fit_epsilon": "fit_epsilon"}
_BY = ("auto", *_MEASURES)
# In inches: the width, the height of a line of words, and of what is above and below the bars.
_WIDTH, _LINE, _REST = 7.6, 0.19, 0.95
# Of the column of names, and of their lines.
_NAMES, _LONGEST_NAME = 2.4, 2.1
_BETWEEN = 0.6


class SearchPlanDisplay:
    """Plot of a search's plan: the use of the records, and the other ways for the same budget.

    The upper axes show which part of the records, divided at random, is used for what; the lower
    ones how much noise the final fit takes, for the search and for each other way that was
    considered. It is best made by `from_search` or `from_plan`.

    Parameters
    ----------
    rows : sequence of PlanRow
        The search itself, and then the other ways.
    uses : dict of str to (float, float), default={}
        From each use of the records to its part of them, as two ends between 0 and 1.
    epsilon, delta : float
        What everything may cost.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Of the ways.
    uses_ax_ : matplotlib Axes or None
        Of the records.
    figure_ : matplotlib Figure
        Of these axes.
    bars_ : list of matplotlib artists
        Of the ways, in the order of `rows`.
    spans_ : list of matplotlib artists
        Of the uses.

    See Also
    --------
    TuningCostDisplay : What the same fits cost, by each bound.

    Examples
    --------
    >>> from skdptune.inspection import SearchPlanDisplay
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPGridSearchCV
    >>> search = DPGridSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}, epsilon=1.0)
    >>> plan = search.plan(n_samples=1000, n_features=3, compare=False)
    >>> display = SearchPlanDisplay([plan.row], plan.uses, epsilon=1.0, delta=plan.delta)
    >>> display.uses
    {'fits of candidates': (0.0, 0.8), 'scores': (0.8, 1.0), 'final fit': (0.0, 1.0)}
    """

    def __init__(
        self,
        rows: Sequence[PlanRow],
        uses: Mapping[str, tuple[float, float]] | None = None,
        *,
        epsilon: float,
        delta: float,
    ) -> None:
        check_kind(rows, name="rows", kind=Sequence, domain="a sequence of PlanRow")
        for place, row in enumerate(rows):
            check_kind(row, name=f"rows[{place}]", kind=PlanRow, domain="a PlanRow")
        if not rows:
            raise ValueError("rows must hold at least the search's own; got none.")
        self.rows = list(rows)
        self.uses = _checked_uses({} if uses is None else uses)
        self.epsilon = check_real(epsilon, name="epsilon", lower=0.0)
        self.delta = check_real(delta, name="delta", lower=0.0, upper=1.0)

    # Making ---------------------------------------------------------------------------------

    @classmethod
    def from_plan(cls, plan: SearchPlan, *, ax: Any = None, by: str = "auto") -> SearchPlanDisplay:
        """Draw a plan.

        Parameters
        ----------
        plan : SearchPlan
            As ``search.plan(...)`` returns it.
        ax, by
            As for `plot`.

        Returns
        -------
        SearchPlanDisplay
        """
        check_kind(plan, name="plan", kind=SearchPlan, domain="a SearchPlan")
        display = cls(
            [plan.row, *plan.alternatives],
            plan.uses,
            epsilon=plan.report.epsilon,
            delta=plan.delta,
        )
        return display.plot(ax=ax, by=by)

    @classmethod
    def from_search(
        cls,
        search: Any,
        n_samples: int,
        n_features: int | None = None,
        *,
        public_validation: bool = False,
        compare: bool = True,
        ax: Any = None,
        by: str = "auto",
    ) -> SearchPlanDisplay:
        """Draw the plan of a search of so many records.

        Parameters
        ----------
        search : search
            Fitted or not.
        n_samples, n_features : int
            Public sizes.
        public_validation : bool, default=False
            Whether public validation data will be given to `fit`.
        compare : bool, default=True
            Whether to solve for the other ways, too, which takes longer.
        ax, by
            As for `plot`.

        Returns
        -------
        SearchPlanDisplay
        """
        check_search(search)
        plan = search.plan(
            n_samples, n_features, public_validation=public_validation, compare=compare
        )
        return cls.from_plan(plan, ax=ax, by=by)

    # Drawing --------------------------------------------------------------------------------

    def plot(self, *, ax: Any = None, by: str = "auto") -> SearchPlanDisplay:
        """Draw the plan.

        Parameters
        ----------
        ax : matplotlib Axes, or pair of such, optional
            To draw on. A pair is for the uses of the records and for the ways; a single one for
            the ways alone. New ones for both by default.
        by : {"auto", "noise", "work", "fit_epsilon"}, default="auto"
            What the bars show: "noise" is that of the final fit divided by the share of the
            records that it uses, and the default where the estimator has a noise level; else
            "fit_epsilon", what each fit may cost, or "work".

        Returns
        -------
        SearchPlanDisplay
            Itself.
        """
        check_option(by, name="by", options=_BY)
        by = self._measure() if by == "auto" else by
        names = [wrapped(row.name, _LONGEST_NAME) for row in self.rows]
        lines = np.array([1 + name.count("\n") for name in names]) + _BETWEEN
        uses_ax, ax = self._axes(ax, float(lines.sum()))
        self.uses_ax_ = uses_ax
        self.spans_: list[Any] = []
        if uses_ax is not None:
            self._draw_uses(uses_ax)
        self._draw_ways(ax, names, np.cumsum(lines) - 0.5 * lines, by)
        add_title(uses_ax or ax, self.statement, None if ax is None else _WIDTH - _NAMES - 0.4)
        return self

    @property
    def statement(self) -> str:
        """What the search may cost, in words."""
        words = f"{self.rows[0].name}: ε = {shown_number(self.epsilon)}"
        return f"{words} at δ = {shown_delta(self.delta)} for everything."

    def _measure(self) -> str:
        own = self.rows[0]
        if own.effective_noise is not None:
            return "noise"
        return "work" if own.fit_epsilon is None else "fit_epsilon"

    def _axes(self, ax: Any, lines: float) -> tuple[Any, Any]:
        """Return the axes of the uses, if there are to be any, and of the ways."""
        if ax is None and self.uses:
            pyplot = load_pyplot(type(self).__name__)
            upper, lower = _REST + _LINE * 1.6 * len(self.uses), _REST + _LINE * lines
            figure, pair = pyplot.subplots(
                2,
                figsize=(_WIDTH, upper + lower),
                height_ratios=[upper, lower],
                layout="constrained",
            )
            ax = tuple(pair)
        if isinstance(ax, Sequence | np.ndarray):
            if len(ax) != 2:
                raise ValueError(f"ax must be matplotlib Axes or a pair of them; got {len(ax)}.")
            upper_ax = axes_for(self, ax[0])
            return upper_ax, axes_for(self, ax[1])
        return None, axes_for(self, ax, (_WIDTH, _REST + _LINE * lines))

    def _draw_uses(self, ax: Any) -> None:
        """Draw which part of the records is used for what."""
        for place, (start, end) in enumerate(self.uses.values()):
            (span,) = ax.barh(place, end - start, 0.75, left=start, **bar_look(place))
            self.spans_.append(span)
            words = f"{100.0 * (end - start):.3g} %"
            # On the other side of it where there is no room.
            is_left = start >= 0.1 and end >= 0.9
            write_beside(ax, words, start if is_left else end, place, left=is_left)
        names = [wrapped(use, _LONGEST_NAME) for use in self.uses]
        name_rows(ax, names, range(len(names)), _NAMES)
        ax.set_ylim(len(self.uses) - 0.4, -0.6)
        ax.set_xlim(0.0, 1.12)
        ax.set_xticks(np.linspace(0.0, 1.0, 6), [f"{share} %" for share in range(0, 101, 20)])
        ax.set_xlabel("records, divided at random", fontsize="small")
        tidy(ax, grid="x")

    def _draw_ways(self, ax: Any, names: list[str], heights: Any, by: str) -> None:
        """Draw what each way takes."""
        values = [self._value(row, by) for row in self.rows]
        end = max([value for value in values if math.isfinite(value)], default=0.0) or 1.0
        words = [self._words(row, value, by) for row, value in zip(self.rows, values, strict=True)]
        self.bars_ = []
        for place, (value, height) in enumerate(zip(values, heights, strict=True)):
            other = {"facecolor": quiet(ax, 0.3), "edgecolor": quiet(ax), "linewidth": 0.8}
            length = value if math.isfinite(value) else 0.0
            (bar,) = ax.barh(height, length, 1.0, **(bar_look(0) if place == 0 else other))
            self.bars_.append(bar)
            write_beside(ax, words[place], length, height)
        name_rows(ax, names, heights, _NAMES)
        ax.get_yticklabels()[0].set_fontweight("bold")
        ax.set_xlim(0.0, end * room_for(words, _WIDTH - _NAMES - 0.3))
        ax.set_ylim(heights[-1] + 1.0, heights[0] - 1.0)
        ax.set_xlabel(_MEASURES[by], fontsize="small")
        tidy(ax, grid="x")

    def _value(self, row: PlanRow, by: str) -> float:
        value = getattr(row, _ATTRIBUTES[by])
        return math.nan if value is None else float(value)

    def _words(self, row: PlanRow, value: float, by: str) -> str:
        """Return what is written beside a bar."""
        about = "" if row.expected_fits == row.worst_fits else "≈ "
        fits = "fit" if row.expected_fits == 1.0 else "fits"
        words = [
            _figure(value, by) if math.isfinite(value) else "unknown",
            f"{about}{row.expected_fits:.3g} {fits}",
        ]
        if by != "work":
            words.append(f"work {row.work:.2g}")
        return ", ".join(words)


def _figure(value: float, by: str) -> str:
    """Return a figure with three digits; a cost is never rounded down."""
    return shown_number(value) if by == "fit_epsilon" else f"{value:.3g}"


def _checked_uses(uses: Any) -> dict[str, tuple[float, float]]:
    check_kind(uses, name="uses", kind=Mapping, domain="a dict of uses to parts of the records")
    found = {}
    for use, ends in uses.items():
        try:
            start, end = ends
        except (TypeError, ValueError):
            got = type(ends).__name__
            raise ValueError(f"uses must hold two ends for {shown(use)}; got {got}.") from None
        name = f"uses[{shown(use)}]"
        start = check_real(start, name=name, lower=0.0, upper=1.0, is_entry=True)
        end = check_real(end, name=name, lower=start, upper=1.0, is_entry=True)
        found[str(use)] = (start, end)
    return found
