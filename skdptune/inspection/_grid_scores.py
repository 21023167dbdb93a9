"""Plots of the noisy scores of all candidates of a search."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdptune._formatting import shown, shown_names
from skdptune._validation import check_integer, check_kind, check_option, check_vector
from skdptune.inspection._plotting import (
    COLOURS,
    MARKERS,
    SIZE,
    add_legend,
    add_title,
    axes_for,
    ink,
    ink_on,
    line_look,
    quiet,
    shortened,
    tidy,
)
from skdptune.model_selection import DPAdaptiveSearchCV, DPGridSearchCV

# Structure of a list of candidates: which parameters vary, and whether they form a grid ---------

# Characters of a value that fit below an axis.
_LONGEST = 16
# Smallest ratio of the largest to the smallest value for a logarithmic axis.
_LOG_RANGE = 20.0
# Largest number of lines that are distinguishable in one plot.
_MOST_LINES = 7


class _Absent:
    """Placeholder for the value of a parameter that a candidate does not have."""

    def __repr__(self) -> str:
        return "not set"


ABSENT = _Absent()


@dataclass(frozen=True)
class ScoreTable:
    """Candidates, arranged by their varying parameters.

    Attributes
    ----------
    candidates : tuple of dict
    values : dict of str to list
        The values of each varying parameter: first numbers in increasing order, then others.
    outside : int or None
        Index of the candidate outside of the grid that all others form, if there is one. A
        search's first candidate may be: it has the estimator's own values.
    is_grid : bool
        Whether each combination of values occurs once, not counting the candidate in `outside`.
    """

    candidates: tuple[Mapping[str, Any], ...]
    values: dict[str, list[Any]]
    outside: int | None
    is_grid: bool

    @classmethod
    def of(cls, candidates: Sequence[Mapping[str, Any]]) -> ScoreTable:
        """Create the table from a list of candidates."""
        listed = tuple(candidates)
        whole = _values(listed)
        if len(listed) > 2 and (not _is_product(listed, whole) or _is_odd(listed, whole)):
            inner = _values(listed[1:])
            if inner and _is_product(listed[1:], inner):
                return cls(listed, inner, 0, True)
        return cls(listed, whole, None, bool(whole) and _is_product(listed, whole))

    @property
    def names(self) -> list[str]:
        """The varying parameters, sorted by decreasing number of values."""
        return sorted(self.values, key=lambda name: (-len(self.values[name]), name))

    def place(self, candidate: int, name: str) -> int | None:
        """Return the index of a candidate's value among the values of a parameter, or None."""
        found = key_of(self.candidates[candidate].get(name, ABSENT))
        keys = [key_of(value) for value in self.values[name]]
        return keys.index(found) if found in keys else None

    def beside(self, candidate: int, names: Sequence[str]) -> list[int]:
        """Return candidates of the grid that agree with one except in the given parameters."""
        fixed = [name for name in self.values if name not in names]
        return [
            other
            for other in range(len(self.candidates))
            if other != self.outside
            and all(self.place(other, name) == self.place(candidate, name) for name in fixed)
        ]


def key_of(value: Any) -> tuple[str, Any]:
    """Return a key that is equal for equal values of any type."""
    if _is_number(value):
        return "number", float(value)
    return type(value).__name__, repr(value)


def shown_value(value: Any) -> str:
    """Return a value as text for an axis."""
    if _is_number(value):
        return f"{float(value):.4g}" if not isinstance(value, numbers.Integral) else str(value)
    text = type(value).__name__ if hasattr(value, "get_params") else str(value)
    return shortened(text, _LONGEST)


def shown_candidate(candidate: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return some parameters of a candidate as text."""
    return ", ".join(f"{name} = {shown_value(candidate.get(name, ABSENT))}" for name in names)


def checked_params(params: Any, table: ScoreTable) -> list[str]:
    """Return the parameters to draw as a list, empty if none are given, or raise."""
    if params is None:
        return []
    check_kind(params, name="params", kind=(str, list, tuple), domain="a name or a list of names")
    given = [params] if isinstance(params, str) else list(params)
    for place, name in enumerate(given):
        if name not in table.values:
            varying = shown_names(table.values) or "none"
            got = shown(params) if isinstance(params, str) else f"another in place {place}"
            raise ValueError(f"params must be among those that vary, {varying}; got {got}.")
    if not 1 <= len(given) <= 2 or len(set(given)) < len(given):
        raise ValueError(f"params must be one or two different parameters; got {shown(given)}.")
    return given


def kind_of(table: ScoreTable, names: Sequence[str]) -> str:
    """Return the kind of plot that suits a table, for given or for all parameters."""
    if table.is_grid:
        return "heatmap" if len(names or table.values) == 2 else "slices"
    wanted = list(names)
    for name in [] if names else table.names:
        values = table.values[name]
        real = list(filter(_is_number, values))
        # More than half of the candidates have different numbers.
        if len(real) > len(table.candidates) / 2 and len(values) - len(real) <= 1:
            wanted.append(name)
    return "slices" if len(wanted) == 1 else "candidates"


def shown_params(kind: str, names: list[str], table: ScoreTable) -> list[str]:
    """Return the parameters shown by a kind of plot, or raise if they do not suit it."""
    if kind == "candidates":
        return names
    if kind == "heatmap":
        names = names or table.names[:2]
        if len(names) != 2 or not table.is_grid:
            raise ValueError(
                "kind must be 'slices' or 'candidates' if the candidates are not a grid of two "
                "or more parameters; got 'heatmap'."
            )
        return names
    if not table.values:
        raise ValueError("kind must be 'candidates' if no parameter varies; got 'slices'.")
    if names:
        return names
    fitting = [n for n in table.names[1:] if len(table.values[n]) <= _MOST_LINES]
    return [table.names[0], *(fitting[:1] if table.is_grid else [])]


def _is_number(value: Any) -> bool:
    # True and False are categories.
    is_real = isinstance(value, numbers.Real) and type(value).__name__ not in ("bool", "bool_")
    return is_real and math.isfinite(value)


def _values(candidates: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the distinct values of all parameters that vary."""
    names = dict.fromkeys(name for each in candidates for name in each)
    found = {}
    for name in names:
        values = {key_of(value): value for value in (c.get(name, ABSENT) for c in candidates)}
        if len(values) > 1:
            real = sorted(key for key in values if key[0] == "number")
            other = [key for key in values if key[0] != "number"]
            found[name] = [values[key] for key in [*real, *other]]
    return found


def _is_product(candidates: Sequence[Mapping[str, Any]], values: dict[str, list[Any]]) -> bool:
    combinations = {
        tuple(key_of(each.get(name, ABSENT)) for name in values) for each in candidates
    }
    size = math.prod(len(found) for found in values.values())
    return len(combinations) == len(candidates) == size


def _is_odd(candidates: Sequence[Mapping[str, Any]], values: dict[str, list[Any]]) -> bool:
    """Return whether there is one varying parameter, and only its first value is not a number."""
    if len(values) != 1:
        return False
    ((name, _),) = values.items()
    first, *others = (each.get(name, ABSENT) for each in candidates)
    return not _is_number(first) and all(map(_is_number, others))


# Largest number of columns or rows with scores written into cells, and of names along an axis.
_MOST_WRITTEN = 12
# Sizes of the ring around a marker, in the plot and in legends.
_RING, _LEGEND_RING = 15.0, 9.0


def _name_values(axis: Any, table: ScoreTable, name: str) -> None:
    """Write the values of a parameter along an axis, at 0, 1, 2, ..."""
    labels = [shown_value(value) for value in table.values[name]]
    step = math.ceil(len(labels) / _MOST_WRITTEN)
    axis.set_ticks(range(0, len(labels), step), labels[::step])
    axis.set_label_text(name)


def _held_in_words(table: ScoreTable, middle: int, names: Sequence[str]) -> str:
    """Return a sentence about the parameters that the plot does not vary; "" if there are none."""
    others = [name for name in table.values if name not in names]
    return f"At {shown_candidate(table.candidates[middle], others)}." if others else ""


def _draw_frame(ax: Any, column: int | None, row: int | None) -> Any:
    """Draw a black and white frame around a cell, visible on all colours; return it."""
    from matplotlib.patches import Rectangle

    corner, frame = ((column or 0) - 0.5, (row or 0) - 0.5), None
    for colour, width in (("white", 5.0), ("black", 2.2)):
        frame = Rectangle(corner, 1.0, 1.0, fill=False, edgecolor=colour, linewidth=width)
        frame.set_clip_on(False)
        ax.add_patch(frame)
    return frame


def _draw_scores(
    ax: Any,
    x: Any,
    y: Any,
    noise: Any,
    label: str | None,
    *,
    across: bool = False,
    **look: Any,
) -> Any:
    """Draw scores with error bars of one standard deviation of their noise; return the artists.

    Parameters
    ----------
    ax : matplotlib Axes
    x, y : array-like
        Positions of the markers.
    noise : array-like or None
        Standard deviations of the noise.
    label : str or None
    across : bool, default=False
        Whether scores are on the horizontal axis.
    **look
        Arguments of ``ax.plot``.
    """
    bars = {"elinewidth": 1.0, "capsize": 2.5, "capthick": 1.0}
    drawn = ax.errorbar(x, y, **{"xerr" if across else "yerr": noise}, **bars, **look)
    if label is not None:
        # Label only the line, so that legends list everything in the order in which it was drawn.
        drawn.lines[0].set_label(label)
    return drawn


FloatArray = NDArray[np.float64]

_KINDS = ("auto", "heatmap", "slices", "candidates")
_TABLES = (
    "a fitted DPGridSearchCV with strategy='table' or 'compose', or a fitted DPAdaptiveSearchCV"
)
_MOST_LABELS, _MOST_WRAPPED = 20, 8
_CHOSEN = "chosen"
# Minimum range of the colours of a heat map, in standard deviations of the noise.
_LEAST_SPAN = 6.0
# Characters of a candidate's name on one line, and the height of a line in inches.
_LONGEST_LINE, _INCHES_OF_ONE = 28, 0.25
# A colour map that is monotone in grey.
_SCALE = "cividis"
# The look of candidates that no line connects.
_POINTS = {"color": COLOURS[0], "linestyle": "none", "markersize": 5.5, "marker": MARKERS[0]}


class GridScoresDisplay:
    """Plot of a search's table: the noisy scores of all candidates, and the chosen candidate.

    Create it by `from_search`.

    Parameters
    ----------
    candidates : sequence of dict
        The parameters of each candidate.
    scores : array-like
        The published noisy scores of the candidates.
    noise : array-like, optional
        Standard deviation of the noise of each score. With `n_folds` above 1, the standard error
        of the mean over the folds' noisy scores.
    chosen : int, optional
        Index of the candidate that the search chose.
    n_folds : int, default=1
        Number of noisy scores in each mean.
    score : str, default="score"
        Name of the score.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.
    image_ : matplotlib AxesImage or None
        The cells of a heat map.
    lines_ : list of matplotlib artists
        The scores of slices and candidates, with their error bars.
    chosen_ : matplotlib artist or None
        The mark of the chosen candidate.

    See Also
    --------
    skdptune.model_selection.DPGridSearchCV : Publishes such a table.
    skdptune.model_selection.DPAdaptiveSearchCV : Publishes a table of candidates that it proposes.

    Notes
    -----
    The search paid for everything that is drawn: parameters, noisy scores, and the standard
    deviation of the noise added to them. The fits behind the scores have additional noise, which
    error bars do not show. The colours of a heat map span at least six standard deviations of the
    noise, so that noise does not look like structure. The chosen candidate need not have the
    highest score: by default, a search chooses by a posterior mean that takes the noise into
    account.

    Examples
    --------
    >>> from skdptune.inspection import GridScoresDisplay
    >>> candidates = [{"C": 0.1}, {"C": 1.0}, {"C": 10.0}]
    >>> display = GridScoresDisplay(candidates, [0.80, 0.85, 0.83], noise=[0.01] * 3, chosen=1)
    >>> display.noise_in_words
    'Scores carry noise of ±0.01 (standard deviation), in addition to that of the fits.'
    >>> display.plot().ax_.get_xlabel()  # doctest: +SKIP
    'C'
    """

    def __init__(
        self,
        candidates: Sequence[Mapping[str, Any]],
        scores: ArrayLike,
        *,
        noise: ArrayLike | None = None,
        chosen: int | None = None,
        n_folds: int = 1,
        score: str = "score",
    ) -> None:
        self.candidates = _checked_candidates(candidates)
        count = len(self.candidates)
        self.scores = _of_all(scores, "scores", count, -math.inf)
        self.noise = None if noise is None else _of_all(noise, "noise", count, 0.0)
        if chosen is not None:
            chosen = check_integer(chosen, name="chosen", lower=0, upper=count - 1)
        self.chosen = chosen
        self.n_folds = check_integer(n_folds, name="n_folds", lower=1)
        self.score = score

    # Creation ------------------------------------------------------------------------------

    @classmethod
    def from_search(
        cls,
        search: Any,
        *,
        ax: Any = None,
        kind: str = "auto",
        params: Any = None,
        metric: str | None = None,
    ) -> GridScoresDisplay:
        """Draw the table of a fitted search.

        Parameters
        ----------
        search : DPGridSearchCV or DPAdaptiveSearchCV
            A fitted search with a table. Searches by a noisy maximum, a random number of
            candidates or a threshold have none: they publish at most the winner's score.
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        kind, params
            See `plot`.
        metric : str, optional
            The metric to draw, if there are several; by default the one that `refit` names.

        Returns
        -------
        GridScoresDisplay
        """
        name = _metric_of(search, metric)
        results = _table_of(search, name)
        folds = [
            each for each in results if re.fullmatch(rf"split\d+_test_{re.escape(name)}", each)
        ]
        noise = np.asarray(results[f"std_test_{name}"], dtype=np.float64)
        if len(folds) > 1:
            noise = noise / math.sqrt(len(folds) - 1)
        display = cls(
            results["params"],
            results[f"mean_test_{name}"],
            noise=noise,
            chosen=getattr(search, "best_index_", None),
            n_folds=max(len(folds), 1),
            score=name if search.multimetric_ else str(search.scorer_.name),
        )
        return display.plot(ax=ax, kind=kind, params=params)

    # Text ----------------------------------------------------------------------------------

    @property
    def noise_in_words(self) -> str:
        """A sentence about the noise of the scores; "" if it is unknown."""
        if self.noise is None:
            return ""
        low, high = (f"{value:.2g}" for value in (self.noise.min(), self.noise.max()))
        size = f"±{low}" if low == high else f"±{low} to ±{high}"
        if self.n_folds > 1:
            return f"Standard error over {self.n_folds} folds, noise included: {size}."
        if not self.noise.any():
            return "Scores carry no noise in addition to that of the fits."
        return (
            f"Scores carry noise of {size} (standard deviation), in addition to that of the fits."
        )

    # Drawing --------------------------------------------------------------------------------

    def plot(
        self, *, ax: Any = None, kind: str = "auto", params: str | Sequence[str] | None = None
    ) -> GridScoresDisplay:
        """Draw the scores.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        kind : {"auto", "heatmap", "slices", "candidates"}, default="auto"
            "heatmap" has a cell for each pair of values of two parameters. "slices" shows the
            scores over one parameter with error bars, with a line for each value of a second
            parameter. If candidates do not form a grid, it shows all of them over one parameter,
            without lines. All other parameters have the values of the chosen candidate, or of the
            best candidate of the grid if the chosen one is not in the grid. "candidates" has a
            line for each candidate. "auto" is "heatmap" for a grid of two parameters, "slices" for
            other grids and for a numeric parameter, and "candidates" otherwise.
        params : str or sequence of str, optional
            The parameters to draw: one or two for slices, two for a heat map, where the first is
            on the horizontal axis. By default, those with the most values.

        Returns
        -------
        GridScoresDisplay
            The display itself.
        """
        check_option(kind, name="kind", options=_KINDS)
        table = ScoreTable.of(self.candidates)
        names = checked_params(params, table)
        kind = kind_of(table, names) if kind == "auto" else kind
        names = shown_params(kind, names, table)
        count = len(self.candidates) if kind == "candidates" else 0
        height = max(SIZE[1], _INCHES_OF_ONE * min(count, _MOST_LABELS))
        ax = axes_for(self, ax, (SIZE[0], height))
        self.image_: Any = None
        self.chosen_: Any = None
        self.lines_: list[Any] = []
        self._ring_at: tuple[float, float] | None = None
        if kind == "heatmap":
            words = self._draw_heatmap(ax, table, names)
        elif kind == "slices":
            words = self._draw_slices(ax, table, names)
        else:
            words = self._draw_candidates(ax, table)
        add_title(ax, " ".join(filter(None, (self.noise_in_words, *words))))
        return self

    # Heat map -------------------------------------------------------------------------------

    def _draw_heatmap(self, ax: Any, table: ScoreTable, names: Sequence[str]) -> list[str]:
        x, y = names
        middle = self._middle(table)
        cells = np.full((len(table.values[y]), len(table.values[x])), np.nan)
        for place in table.beside(middle, names):
            cells[table.place(place, y), table.place(place, x)] = self.scores[place]
        low, high = float(np.nanmin(cells)), float(np.nanmax(cells))
        noise = 0.0 if self.noise is None else float(self.noise.max())
        # Noise must not fill the range of colours.
        lacking = max(_LEAST_SPAN * noise - (high - low), 0.0)
        look = {"cmap": _SCALE, "vmin": low - lacking / 2.0, "vmax": high + lacking / 2.0}
        self.image_ = ax.imshow(cells, origin="lower", aspect="auto", **look)
        if max(cells.shape) <= _MOST_WRITTEN:
            self._write_cells(ax, cells)
        else:
            ax.figure.colorbar(self.image_, ax=ax, label=self.score)
        _name_values(ax.xaxis, table, x)
        _name_values(ax.yaxis, table, y)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        words = []
        if self.chosen is not None and self.chosen != table.outside:
            cell = table.place(self.chosen, x), table.place(self.chosen, y)
            self.chosen_ = _draw_frame(ax, *cell)
            words = ["Framed: the chosen candidate."]
        return [*words, self._beside_grid(table), _held_in_words(table, middle, names)]

    def _write_cells(self, ax: Any, cells: FloatArray) -> None:
        """Write scores into the cells of the heat map, in black or white."""
        digits, look = self._digits(), {"ha": "center", "va": "center", "fontsize": "small"}
        for (row, column), score in np.ndenumerate(cells):
            if math.isfinite(score):
                colour = self.image_.cmap(self.image_.norm(score))[:3]
                ax.text(column, row, f"{score:.{digits}f}", color=ink_on(colour), **look)

    def _beside_grid(self, table: ScoreTable) -> str:
        """Return a sentence about the candidate outside of the grid, or ""."""
        if table.outside is None:
            return ""
        words = shown_candidate(self.candidates[table.outside], list(table.values))
        score = f"{self.scores[table.outside]:.{self._digits()}f}"
        where = "Chosen, off the grid" if self.chosen == table.outside else "Off the grid"
        return f"{where}: {words} ({score})."

    def _digits(self) -> int:
        """Return the number of meaningful digits of a score, given the noise."""
        if self.noise is None or not self.noise.any():
            return 3
        return int(np.clip(-math.floor(math.log10(self.noise.max() / 2.0)), 1, 4))

    # Slices ---------------------------------------------------------------------------------

    def _draw_slices(self, ax: Any, table: ScoreTable, names: Sequence[str]) -> list[str]:
        is_range = len(table.values) == 1 and len(table.values[names[0]]) > _MOST_WRITTEN
        if not table.is_grid or is_range:
            return self._draw_points(ax, table, names[0])
        middle, x = self._middle(table), names[0]
        shown = table.beside(middle, names)
        lines = table.values[names[1]] if len(names) > 1 else [None]
        for number, value in enumerate(lines):
            on_line = [p for p in shown if len(names) < 2 or table.place(p, names[1]) == number]
            on_line.sort(key=lambda place: table.place(place, x) or 0)
            offset = min(0.1, 0.6 / len(lines)) * (number - (len(lines) - 1) / 2.0)
            places = [(table.place(place, x) or 0) + offset for place in on_line]
            label = None if len(names) < 2 else f"{names[1]} = {shown_value(value)}"
            self._draw_line(ax, places, on_line, label, **line_look(number, markers=True))
        _name_values(ax.xaxis, table, x)
        if table.outside is not None:
            self._draw_level(ax, table.outside, table)
        self._dress_scores(ax)
        return [_held_in_words(table, middle, names)]

    def _draw_points(self, ax: Any, table: ScoreTable, x: str) -> list[str]:
        """Draw all candidates over one parameter, with any values of the others."""
        values: list[Any] = [each.get(x) for each in self.candidates]
        numbers = {p: float(one) for p, one in enumerate(values) if _is_number(one)}
        known = list(numbers)
        if len(known) < len(values) - 1:
            places = [float(table.place(place, x) or 0) for place in range(len(values))]
            known = list(range(len(values)))
            _name_values(ax.xaxis, table, x)
        else:
            # Leave out candidates without a number, such as the estimator's own values.
            places = [numbers.get(place, math.nan) for place in range(len(values))]
            low, high = min(numbers.values()), max(numbers.values())
            ax.set_xscale("log" if low > 0.0 and high >= _LOG_RANGE * low else "linear")
            ax.set_xlabel(x)
        self._draw_line(ax, [places[place] for place in known], known, None, **_POINTS)
        for place in sorted(set(range(len(values))) - set(known)):
            self._draw_level(ax, place, table)
        self._dress_scores(ax)
        return []

    def _draw_line(
        self, ax: Any, at: Sequence[float], places: Sequence[int], label: str | None, **look: Any
    ) -> None:
        """Draw scores above positions on the axis, and remember where the chosen one is."""
        listed = list(places)
        noise = None if self.noise is None else self.noise[listed]
        self.lines_.append(_draw_scores(ax, at, self.scores[listed], noise, label, **look))
        if self.chosen in listed:
            self._ring_at = at[listed.index(self.chosen)], float(self.scores[self.chosen])

    def _draw_level(self, ax: Any, place: int, table: ScoreTable) -> None:
        """Draw a candidate without a position on the axis as a line, with its noise as a band."""
        score, is_chosen = float(self.scores[place]), place == self.chosen
        words = shown_candidate(self.candidates[place], list(table.values))
        label = f"{words} ({_CHOSEN})" if is_chosen else words
        if self.noise is not None and self.noise[place]:
            spread = float(self.noise[place])
            band = {"color": quiet(ax), "alpha": 0.15, "linewidth": 0.0}
            ax.axhspan(score - spread, score + spread, zorder=0, **band)
        look = {"color": ink(), "linewidth": 1.8} if is_chosen else {"color": quiet(ax)}
        line = ax.axhline(score, linestyle="--", label=label, zorder=1, **look)
        if is_chosen:
            self.chosen_ = line

    # Candidates -----------------------------------------------------------------------------

    def _draw_candidates(self, ax: Any, table: ScoreTable) -> list[str]:
        order = np.argsort(self.scores, kind="stable")
        names = list(table.values) or list(self.candidates[0])
        levels, level_of = np.arange(order.size), order.argsort()
        noise = None if self.noise is None else self.noise[order]
        pair = self.scores[order], level_of[order]
        self.lines_.append(_draw_scores(ax, *pair, noise, None, across=True, **_POINTS))
        if self.chosen is not None:
            self._ring_at = float(self.scores[self.chosen]), float(level_of[self.chosen])
        labels = [shown_candidate(self.candidates[place], names) for place in order]
        if max(map(len, labels)) > _LONGEST_LINE and len(labels) <= _MOST_WRAPPED:
            labels = [label.replace(", ", ",\n") for label in labels]
        if len(labels) <= _MOST_LABELS:
            ax.set_yticks(levels, labels, fontsize="small")
        else:
            ax.set_yticks([])
            ax.set_ylabel("candidates")
        ax.set_ylim(-0.7, order.size - 0.3)
        ax.set_xlabel(self.score)
        tidy(ax, grid="x")
        self._draw_chosen(ax)
        # Labels take much of the width, which decides where the lines of text above the axes
        # break.
        ax.figure.draw_without_rendering()
        return []

    # Dress ----------------------------------------------------------------------------------

    def _dress_scores(self, ax: Any) -> None:
        ax.set_ylabel(self.score)
        tidy(ax, grid="y")
        self._draw_chosen(ax)

    def _draw_chosen(self, ax: Any) -> None:
        """Draw a ring around the chosen candidate, and the legend."""
        if self._ring_at is not None:
            look = {"marker": "o", "markersize": _RING, "linestyle": "none", "zorder": 5}
            look |= {"markerfacecolor": "none", "markeredgecolor": ink(), "markeredgewidth": 1.6}
            (self.chosen_,) = ax.plot(*self._ring_at, label=_CHOSEN, **look)
        legend = add_legend(ax)
        if legend is not None and self._ring_at is not None:
            legend.legend_handles[-1].set_markersize(_LEGEND_RING)

    def _middle(self, table: ScoreTable) -> int:
        """Return the candidate whose values all other parameters of the plot have."""
        if self.chosen is not None and self.chosen != table.outside:
            return self.chosen
        order = np.argsort(-self.scores, kind="stable")
        return next(int(place) for place in order if place != table.outside)


# Checks ---------------------------------------------------------------------------------------


def _metric_of(search: Any, metric: str | None) -> str:
    """Return the name of the metric to draw: by default the one that decides."""
    if not getattr(search, "multimetric_", False):
        if metric is not None:
            raise ValueError(
                f"metric must be None for a search with one metric; got {shown(metric)}."
            )
        return "score"
    wanted = search.refit if metric is None else metric
    if not isinstance(wanted, str) or wanted not in search.scorer_:
        raise ValueError(
            f"metric must be one of {shown_names(search.scorer_)}; got {shown(metric)}."
        )
    return wanted


def _table_of(search: Any, metric: str) -> Mapping[str, Any]:
    """Return the table of a fitted search, or raise an error that lists searches with a table."""
    got = type(search).__name__
    if not isinstance(search, DPGridSearchCV | DPAdaptiveSearchCV):
        reason = ", which publishes no table of scores" if hasattr(search, "cv_results_") else ""
        raise TypeError(f"search must be {_TABLES}; got {got}{reason}.")
    results: Mapping[str, Any] | None = getattr(search, "cv_results_", None)
    if results is None:
        raise ValueError(f"search must be {_TABLES}; got a {got} that is not fitted.")
    if f"std_test_{metric}" not in results:
        raise ValueError(
            f"search must be {_TABLES}; got a {got} that has only published its choice. Its "
            "parameter `strategy`, and public numbers, decide that: see its `plan`."
        )
    return results


def _checked_candidates(candidates: Any) -> list[dict[str, Any]]:
    if not isinstance(candidates, Sequence) or not all(
        isinstance(each, Mapping) and all(isinstance(name, str) for name in each)
        for each in candidates
    ):
        raise TypeError(
            "candidates must be a list of dicts from parameter names to values; got "
            f"{type(candidates).__name__}."
        )
    if not candidates:
        raise ValueError("candidates must hold at least one candidate; got none.")
    return [dict(each) for each in candidates]


def _of_all(values: ArrayLike, name: str, count: int, lower: float) -> FloatArray:
    """Return one number for each candidate, or raise."""
    checked: FloatArray = np.asarray(check_vector(values, name=name, lower=lower), np.float64)
    if checked.size != count or not np.isfinite(checked).all():
        raise ValueError(
            f"{name} must hold a finite number for each of {count} candidates; got {checked.size}."
        )
    return checked
