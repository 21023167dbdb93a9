"""Plots of a search's cost before it runs: its plan, and the available bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdptune._formatting import NOT_PRIVATE, shown, shown_delta, shown_number, shown_percent
from skdptune._validation import check_kind, check_option, check_real, check_share, check_vector
from skdptune.accounting import (
    BoundNotApplicableError,
    PrivacyProfile,
    PrivacyReport,
    RunCountDistribution,
    compare_bounds,
    tune_then_fit,
)
from skdptune.base._shared import ADD_OR_REMOVE, about_unit
from skdptune.inspection._plotting import (
    add_legend,
    add_title,
    axes_for,
    bar_look,
    check_search,
    ink,
    line_look,
    load_pyplot,
    name_rows,
    quiet,
    room_for,
    row_heights,
    tidy,
    wrapped,
    write_beside,
)
from skdptune.model_selection import PlanRow, SearchPlan

# The attribute of a row, and the label.
_MEASURES = {
    "noise": ("effective_noise", "noise of the final fit, divided by its share of the records"),
    "work": ("work", "expected work, in fits on all records"),
    "fit_epsilon": ("fit_epsilon", "largest cost of each fit (ε)"),
}
_BY = ("auto", *_MEASURES)
# In inches: the width, the height of a line of text, and the space above and below the bars.
_WIDTH, _LINE, _REST = 7.6, 0.19, 0.95
# Width of the column of names, and of their lines, in inches.
_NAMES, _LONGEST_NAME = 2.4, 2.1
_BETWEEN = 0.6


class SearchPlanDisplay:
    """Plot of a search's plan: how it uses the records, and alternatives for the same budget.

    The upper axes show which random parts of the records are used for what. The lower axes show
    how much noise the final fit needs, for the search and for each considered alternative. Create
    the display by `from_search` or `from_plan`.

    Parameters
    ----------
    rows : sequence of PlanRow
        The search itself, followed by the alternatives.
    uses : dict of str to (float, float), default={}
        Maps each use of the records to its part of them, as two ends between 0 and 1.
    epsilon, delta : float
        The total budget.
    neighbouring : str, default="add or remove one record"
        The neighbouring relation, as worded in `PrivacyReport`. Labels name persons if it does.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the alternatives.
    uses_ax_ : matplotlib Axes or None
        The axes of the uses of records.
    figure_ : matplotlib Figure
        The figure of these axes.
    bars_ : list of matplotlib artists
        The bars of the alternatives, in the order of `rows`.
    spans_ : list of matplotlib artists
        The bars of the uses.

    See Also
    --------
    TuningCostDisplay : Shows the cost of the same fits by each bound.

    Examples
    --------
    >>> from skdptune.inspection import SearchPlanDisplay
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPGridSearchCV
    >>> search = DPGridSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}, epsilon=1.0)
    >>> plan = search.plan(n_samples=50_000, n_features=3)
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
        neighbouring: str = ADD_OR_REMOVE,
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
        self.neighbouring: str = check_kind(
            neighbouring, name="neighbouring", kind=str, domain="a string"
        )

    # Creation ------------------------------------------------------------------------------

    @classmethod
    def from_plan(cls, plan: SearchPlan, *, ax: Any = None, by: str = "auto") -> SearchPlanDisplay:
        """Draw the plan of a search.

        Parameters
        ----------
        plan : SearchPlan
            The result of ``search.plan(..., compare=True)``; without `compare`, only the search
            itself is drawn.
        ax, by
            See `plot`.

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
            neighbouring=plan.report.neighbouring,
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
        """Draw the plan of a search on `n_samples` records.

        Parameters
        ----------
        search : search
            A search; it need not be fitted.
        n_samples, n_features : int
            Public numbers of records and columns.
        public_validation : bool, default=False
            Whether public validation data will be given to `fit`.
        compare : bool, default=True
            Whether to compute the alternatives, too, which takes longer.
        ax, by
            See `plot`.

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
            Axes for the plot. A pair is for the uses of the records and for the alternatives;
            single axes are only for the alternatives. By default, new axes are created for both.
        by : {"auto", "noise", "work", "fit_epsilon"}, default="auto"
            The quantity of the bars. "noise" is the noise of the final fit divided by its share of
            the records; it is the default if the estimator has a noise level. The default
            otherwise is "fit_epsilon", the limit on the cost of each fit, or "work".

        Returns
        -------
        SearchPlanDisplay
            The display itself.
        """
        check_option(by, name="by", options=_BY)
        if by == "auto":
            own = self.rows[0]
            by = "work" if own.fit_epsilon is None else "fit_epsilon"
            by = by if own.effective_noise is None else "noise"
        names = [wrapped(row.name, _LONGEST_NAME) for row in self.rows]
        heights, lines = row_heights(names, _BETWEEN)
        uses_ax, ax = self._axes(ax, lines)
        self.uses_ax_ = uses_ax
        self.spans_: list[Any] = []
        if uses_ax is not None:
            self._draw_uses(uses_ax)
        attribute, label = _MEASURES[by]
        values = [getattr(row, attribute) for row in self.rows]
        values = [math.nan if value is None else float(value) for value in values]
        words = [self._words(row, value, by) for row, value in zip(self.rows, values, strict=True)]
        self.bars_ = _draw_rows(ax, names, heights, values, words, 0, _WIDTH)
        ax.get_yticklabels()[0].set_fontweight("bold")
        ax.set_xlabel(about_unit(label, self.neighbouring), fontsize="small")
        add_title(uses_ax or ax, self.statement, None if ax is None else _WIDTH - _NAMES - 0.4)
        return self

    @property
    def statement(self) -> str:
        """A sentence that states the total budget of the search."""
        words = f"{self.rows[0].name}: ε = {shown_number(self.epsilon)}"
        return f"{words} at δ = {shown_delta(self.delta)} for everything."

    def _axes(self, ax: Any, lines: float) -> tuple[Any, Any]:
        """Return the axes of the uses, if they are drawn, and of the alternatives."""
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
            words = shown_percent(end - start)
            # Write the label on the other side of the bar if it does not fit here.
            is_left = start >= 0.1 and end >= 0.9
            write_beside(ax, words, start if is_left else end, place, left=is_left)
        names = [wrapped(use, _LONGEST_NAME) for use in self.uses]
        name_rows(ax, names, range(len(names)), _NAMES)
        ax.set_ylim(len(self.uses) - 0.4, -0.6)
        ax.set_xlim(0.0, 1.12)
        ax.set_xticks(np.linspace(0.0, 1.0, 6), [f"{share} %" for share in range(0, 101, 20)])
        words = about_unit("records, divided at random", self.neighbouring)
        ax.set_xlabel(words, fontsize="small")
        tidy(ax, grid="x")

    def _words(self, row: PlanRow, value: float, by: str) -> str:
        """Return the text next to a bar."""
        about = "" if row.expected_fits == row.worst_fits else "≈ "
        fits = "fit" if row.expected_fits == 1.0 else "fits"
        # A cost is never rounded down.
        figure = shown_number(value) if by == "fit_epsilon" else f"{value:.3g}"
        words = [
            figure if math.isfinite(value) else "unknown",
            f"{about}{row.expected_fits:.3g} {fits}",
        ]
        if by != "work":
            words.append(f"work {row.work:.2g}")
        return ", ".join(words)


def _draw_rows(
    ax: Any,
    names: Sequence[str],
    heights: Any,
    values: Sequence[float],
    words: Sequence[str],
    own: int,
    width: float,
) -> list[Any]:
    """Draw a labelled bar in each row, only one of them in colour, and return the bars."""
    grey = {"facecolor": quiet(ax, 0.3), "edgecolor": quiet(ax), "linewidth": 0.8}
    lengths = [value if math.isfinite(value) else 0.0 for value in values]
    bars = []
    for place, (length, height) in enumerate(zip(lengths, heights, strict=True)):
        bars += ax.barh(height, length, 1.0, **(bar_look(0) if place == own else grey))
        write_beside(ax, words[place], length, height)
    name_rows(ax, names, heights, _NAMES)
    ax.set_ylim(heights[-1] + 1.0, heights[0] - 1.0)
    end = max(lengths, default=0.0) or 1.0
    ax.set_xlim(0.0, end * room_for(words, width - _NAMES - 0.3))
    tidy(ax, grid="x")
    return bars


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


FloatArray = NDArray[np.float64]

# Maps the names in `compare_bounds`, in the same order, to text.
_UNTUNED = "no tuning: one fit"
_LOWER_BOUND = "no valid bound is smaller"
_WAYS = {
    "one run": _UNTUNED,
    "composition": "all runs published",
    "rdp": "best run, Rényi bound",
    "profile": "best run, profile bound",
    "envelope": "best run, envelope",
    "lower bound": _LOWER_BOUND,
}
# For a search on a part of the records with a final fit on the others, by the bound.
_ON_A_PART = {
    "rdp": "best run on {part} of records, then one fit: Rényi bound",
    "profile": "best run on {part} of records, then one fit: envelope",
}
# In inches: the width, the height of a line of text, and the space above and below the bars.
_COST_WIDTH, _COST_LINE, _COST_REST = 7.2, 0.2, 1.15
_COST_BETWEEN = 0.7
_SIZE_OF_LINES = (7.2, 5.0)


class TuningCostDisplay:
    """Plot of the cost of tuning: epsilon by each bound, for one or several numbers of runs.

    The noise of the fits is the same everywhere. One number of runs is shown as a bar for each
    bound, several numbers as a line for each bound. Create the display by `from_profile` or
    `from_search`.

    Parameters
    ----------
    epsilons : dict of str to array-like
        Maps names of bounds to epsilons, one for each number of runs; infinite if a bound does not
        apply.
    means : array-like
        Increasing mean numbers of runs.
    delta : float
        The delta at which the epsilons are stated.
    highlighted : str, optional
        The bound that the search itself uses.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.
    artists_ : dict of str to matplotlib artist
        Maps names of bounds to their bars or lines.

    See Also
    --------
    skdptune.accounting.compare_bounds : Returns the same numbers as a table.
    SearchPlanDisplay : Shows the noise that each alternative needs for one budget.

    Notes
    -----
    "lower bound" is the limit of Theorem S4, below which no bound is valid. "All runs published"
    is the composition of the mean number of runs, rounded up. The bounds on the best run are those
    of Papernot and Steinke 2022 (Rényi), of Koskela, Redberg and Wang 2024 (profile), and the
    envelope, which is the default here. A fit on some of the records costs less than one on all,
    but its noise has a larger effect.

    Examples
    --------
    >>> from skdptune.inspection import TuningCostDisplay
    >>> epsilons = {"no tuning": [1.0], "all runs published": [3.3], "envelope": [1.5]}
    >>> display = TuningCostDisplay(epsilons, [10.0], delta=1e-5)
    >>> display.epsilons["envelope"].tolist()
    [1.5]
    """

    def __init__(
        self,
        epsilons: Mapping[str, ArrayLike],
        means: ArrayLike,
        *,
        delta: float,
        highlighted: str | None = None,
    ) -> None:
        check_kind(epsilons, name="epsilons", kind=Mapping, domain="a dict of names to epsilons")
        self.means = check_vector(means, name="means", lower=0.0, lower_open=True)
        self.epsilons = {
            name: check_vector(values, name=f"epsilons[{shown(name)}]", lower=0.0)
            for name, values in epsilons.items()
        }
        if not self.means.size or np.any(np.diff(self.means) <= 0.0) or not self.epsilons:
            raise ValueError(
                "means must be increasing and epsilons not empty; got "
                f"{self.means.size} means and {len(self.epsilons)} epsilons."
            )
        for name, values in self.epsilons.items():
            if values.size != self.means.size:
                raise ValueError(
                    f"epsilons must be as many as means; got {values.size} of {shown(name)} for "
                    f"{self.means.size}."
                )
        self.delta = check_real(delta, name="delta", lower=0.0, upper=1.0)
        if highlighted is not None and highlighted not in self.epsilons:
            raise ValueError(f"highlighted must be one of epsilons; got {shown(highlighted)}.")
        self.highlighted = highlighted

    # Making ---------------------------------------------------------------------------------

    @classmethod
    def from_profile(
        cls,
        profile: PrivacyProfile,
        distribution: RunCountDistribution | Sequence[RunCountDistribution],
        *,
        delta: float = 1e-5,
        tuning_fraction: float | None = None,
        ax: Any = None,
    ) -> TuningCostDisplay:
        """Draw the cost of the best of a random number of runs.

        Parameters
        ----------
        profile : PrivacyProfile
            Profile of one run.
        distribution : RunCountDistribution, or sequence of such
            Distribution of the number of runs: one for bars, several for lines over their means.
        delta : float, default=1e-5
            The delta at which epsilons are stated, in (0, 1).
        tuning_fraction : float, optional
            Share of the records for a search on a part of them, whose winner is fitted to the
            others. This alternative is only drawn if the share is given.
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.

        Returns
        -------
        TuningCostDisplay
        """
        check_kind(profile, name="profile", kind=PrivacyProfile, domain="a PrivacyProfile")
        distributions = _checked_distributions(distribution)
        if tuning_fraction is not None:
            check_share(tuning_fraction, name="tuning_fraction")
        tables = [_ways(profile, each, delta, profile, tuning_fraction) for each in distributions]
        means = [each.mean for each in distributions]
        return cls(_by_name(tables), means, delta=delta).plot(ax=ax)

    @classmethod
    def from_search(
        cls,
        search: Any,
        n_samples: int,
        n_features: int | None = None,
        *,
        ax: Any = None,
    ) -> TuningCostDisplay:
        """Draw the cost of a search on `n_samples` records by each bound, at its planned noise.

        Parameters
        ----------
        search : search
            A search with a random number of runs; it need not be fitted.
        n_samples, n_features : int
            Public numbers of records and columns.
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.

        Returns
        -------
        TuningCostDisplay
        """
        check_search(search)
        plan = search.plan(n_samples, n_features)
        parts = {part.name: part for part in plan.report.parts}
        if plan.distribution is None or "selection" not in parts:
            raise ValueError(
                "search must make a random number of runs; got a "
                f"{type(search).__name__} with a fixed one. from_profile compares bounds of any "
                "run and any distribution."
            )
        run: PrivacyReport = parts["selection"].parts[0]
        final = parts.get("final fit", run.parts[0]).profile
        # How the search divides its records is only known to its plan.
        table = _ways(run.profile, plan.distribution, plan.delta, final, None)
        own = f"{type(search).__name__}, as planned"
        if plan.tuning_fraction is not None:
            own += f": on {shown_percent(plan.tuning_fraction)} of records, then one fit"
            own = about_unit(own, plan.report.neighbouring)
        epsilons = {own: [plan.epsilon]} | _by_name([table])
        mean = [plan.distribution.mean]
        return cls(epsilons, mean, delta=plan.delta, highlighted=own).plot(ax=ax)

    # Drawing --------------------------------------------------------------------------------

    def plot(self, *, ax: Any = None) -> TuningCostDisplay:
        """Draw bars for one number of runs, or lines over several.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.

        Returns
        -------
        TuningCostDisplay
            The display itself.
        """
        if self.means.size == 1:
            self._draw_bars(ax)
        else:
            self._draw_lines(ax)
        return self

    def _draw_bars(self, ax: Any) -> None:
        shown = {name: float(each[0]) for name, each in self.epsilons.items()}
        least = shown.pop(_LOWER_BOUND, None)
        names = [wrapped(name, _LONGEST_NAME) for name in shown]
        heights, lines = row_heights(names, _COST_BETWEEN)
        ax = axes_for(self, ax, (_COST_WIDTH, _COST_REST + _COST_LINE * lines))
        words = [self._figure(name, value) for name, value in shown.items()]
        own, values = self.highlighted or _UNTUNED, list(shown.values())
        place = list(shown).index(own) if own in shown else -1
        bars = _draw_rows(ax, names, heights, values, words, place, _COST_WIDTH)
        self.artists_ = dict(zip(shown, bars, strict=True))
        label = f"ε at δ = {shown_delta(self.delta)}"
        if least is not None:
            # Across the bars to which the limit of all bounds applies.
            about = [place for place, name in enumerate(shown) if name in _OF_THE_BEST]
            look = {"color": ink(), "linewidth": 1.4, "linestyle": "--", "zorder": 3}
            self.artists_[_LOWER_BOUND] = None
            if about:
                ends = heights[about[0]] - 0.7, heights[about[-1]] + 0.7
                self.artists_[_LOWER_BOUND] = ax.vlines(least, *ends, **look)
            label += "\ndashed: no valid bound of the best run is smaller"
        ax.set_xlabel(label, fontsize="small")
        runs = f"Best of about {self.means[0]:.3g} runs, all with the same noise."
        add_title(ax, runs, _COST_WIDTH - _NAMES - 0.3)

    def _figure(self, name: str, epsilon: float) -> str:
        """Return the text next to a bar: an infinite value means that a bound does not apply."""
        if math.isfinite(epsilon):
            return shown_number(epsilon)
        return NOT_PRIVATE if name in (_UNTUNED, self.highlighted) else "does not apply"

    def _draw_lines(self, ax: Any) -> None:
        from matplotlib.ticker import LogLocator

        ax = axes_for(self, ax, _SIZE_OF_LINES)
        self.artists_ = {}
        finite = np.concatenate(list(self.epsilons.values()))
        finite = finite[np.isfinite(finite) & (finite > 0.0)]
        for place, (name, values) in enumerate(self.epsilons.items()):
            look = line_look(place, markers=True) | {"label": name}
            if name == _LOWER_BOUND:
                look |= {"color": ink(), "linestyle": ":", "marker": "", "linewidth": 1.2}
            drawn = np.where(np.isfinite(values), values, np.nan)
            (self.artists_[name],) = ax.plot(self.means, drawn, **look)
        ax.set_xscale("log")
        if finite.size:
            ax.set_yscale("log")
        ticks = self.means if self.means.size <= 8 else self.means[:: self.means.size // 6]
        ax.set_xticks(ticks, [f"{mean:.3g}" for mean in ticks])
        ax.minorticks_off()
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        # Short logarithmic axes have ticks at 1, 2 and 5 times powers of ten.
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.set_xlabel("mean number of runs")
        ax.set_ylabel(f"ε at δ = {shown_delta(self.delta)}")
        tidy(ax)
        add_title(ax, "All runs with the same noise.")
        # Below the axes, where the many names do not cover a line.
        add_legend(ax, loc="upper left", bbox_to_anchor=(0.0, -0.13), ncols=2)


_OF_THE_BEST = {_WAYS[name] for name in ("rdp", "profile", "envelope")}


def _ways(
    run: PrivacyProfile,
    distribution: RunCountDistribution,
    delta: float,
    final: PrivacyProfile,
    tuning_fraction: float | None,
) -> dict[str, float]:
    """Return the cost of each way of tuning, by name."""
    table = {row.name: row.epsilon for row in compare_bounds(run, distribution, delta).rows}
    found = {words: table[name] for name, words in _WAYS.items()}
    found[_UNTUNED] = final.epsilon(delta)
    least = found.pop(_LOWER_BOUND)
    if tuning_fraction is not None:
        part = shown_percent(tuning_fraction)
        for bound, words in _ON_A_PART.items():
            try:
                # Each bound starts from the selection's bound of the same kind.
                best = run.selected(distribution, "rdp" if bound == "rdp" else "envelope")
                total = tune_then_fit(best, final, tuning_fraction, bound=bound).epsilon(delta)
            except BoundNotApplicableError:
                total = math.inf
            found[words.format(part=part)] = total
    return found | {_LOWER_BOUND: least}


def _by_name(tables: Sequence[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [table[name] for table in tables] for name in tables[0]}


def _checked_distributions(distributions: Any) -> list[RunCountDistribution]:
    """Return one or more distributions in the order of their means, or raise."""
    if isinstance(distributions, RunCountDistribution):
        return [distributions]
    domain = "a RunCountDistribution or a sequence of such"
    check_kind(distributions, name="distribution", kind=Sequence, domain=domain)
    for place, each in enumerate(distributions):
        check_kind(
            each,
            name=f"distribution[{place}]",
            kind=RunCountDistribution,
            domain="a RunCountDistribution",
        )
    if not distributions:
        raise ValueError(f"distribution must be {domain}; got none.")
    return sorted(distributions, key=lambda each: float(each.mean))
