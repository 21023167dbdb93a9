"""Plots of Pareto fronts of privacy and utility."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdptune._formatting import shown
from skdptune._validation import check_kind, check_option
from skdptune.inspection._plotting import (
    COLOURS,
    MARKERS,
    add_legend,
    add_title,
    axes_for,
    dress_epsilons,
    ink,
    line_look,
    quiet,
    tidy,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Front:
    """A Pareto front, and the evaluations from which it was chosen.

    Attributes
    ----------
    points : ndarray of shape (n_points, 2)
        Epsilon and error of the non-dominated points, by increasing epsilon.
    evaluated : ndarray of shape (n_evaluations, 2)
        All evaluations that have an epsilon and an error.
    band : tuple of ndarray or None
        The fronts of the best and of the worst of several repeats.
    """

    points: FloatArray
    evaluated: FloatArray
    band: tuple[FloatArray, FloatArray] | None = None


def _front_of(search: Any, label: str) -> Front:
    """Return the front of a fitted search, or raise for other objects."""
    missing = [n for n in ("pareto_front_", "evaluations_", "fronts_") if not hasattr(search, n)]
    if missing:
        raise TypeError(
            f"search must be a fitted DParetoSearchCV or a ParetoResult; got "
            f"{type(search).__name__} for {shown(label)}, without {missing[0]}."
        )
    points = _pairs_of(search.pareto_front_)
    evaluated = _pairs_of(search.evaluations_)
    band = None
    if {"best", "worst"} <= set(search.fronts_):
        # With a third objective, a front is a surface; its lower edge is drawn.
        best, worst = (_best_of(search.fronts_[side][:, :2]) for side in ("best", "worst"))
        band = None if best.shape == worst.shape and np.array_equal(best, worst) else (best, worst)
    return Front(_best_of(points), evaluated, band)


def _pairs_of(table: Any) -> FloatArray:
    """Return epsilon and error of the rows of a table that have both."""
    pairs = np.column_stack(
        [np.asarray(table[name], dtype=np.float64) for name in ("epsilon", "error")]
    )
    return pairs[np.isfinite(pairs).all(axis=1)]


def _best_of(pairs: FloatArray) -> FloatArray:
    """Return the non-dominated points, by increasing epsilon and decreasing error."""
    kept: list[tuple[float, float]] = []
    for epsilon, error in sorted(map(tuple, np.asarray(pairs, dtype=np.float64).tolist())):
        if math.isfinite(epsilon) and (not kept or error < kept[-1][1]):
            kept.append((epsilon, error))
    return np.array(kept, dtype=np.float64).reshape(-1, 2)


def _utility_of(searches: Any) -> str:
    """Return the common name of the searches' scores, if they are on the scale of utilities."""
    scorers = [getattr(search, "scorer_", None) for search in searches]
    names = {getattr(scorer, "name", None) for scorer in scorers}
    is_plain = all((s.lower, s.upper) == (0.0, 1.0) for s in scorers if s is not None)
    only = names.pop() if len(names) == 1 and is_plain else None
    return str(only or "utility")


_SIDES = ("error", "utility")
_LEAST_EPSILON = 1e-12
# Maximum of the axis, in units of the reference point's epsilon: without noise, it may be 1e9.
_BEYOND = 10.0
# Space beyond the first and last epsilon and the reference point, as factors.
_ROOM = 1.35


class ParetoFrontDisplay:
    """Plot of one or more Pareto fronts of privacy and utility.

    Create it by `from_search`, or by `from_points` for other known fronts.

    Parameters
    ----------
    fronts : dict of str to Front
        Maps names in the legend to fronts.
    reference_point : tuple of float, optional
        Worst epsilon and error that count for the hypervolume.
    delta : float, optional
        The delta at which the epsilons are stated, shown on the axis.
    study_epsilon : float, optional
        The privacy cost of releasing the front.
    utility : str, default="utility"
        Name of 1 minus the error.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.
    lines_ : list of matplotlib artists
        The lines of the fronts, in the order of `fronts`.

    See Also
    --------
    skdptune.model_selection.DParetoSearchCV : Finds Pareto fronts.

    Notes
    -----
    The line has steps: between two points, a larger budget gives the same result as the point to
    the left. On the right, it continues to the end of the axes, which is at most ten times the
    epsilon of the reference point, because nothing beyond that counts.

    Examples
    --------
    >>> from skdptune.inspection import ParetoFrontDisplay
    >>> display = ParetoFrontDisplay.from_points({"grid": ([0.1, 1.0], [0.3, 0.1])})
    >>> display.fronts["grid"].points.tolist()
    [[0.1, 0.3], [1.0, 0.1]]
    >>> display.plot().ax_.get_xlabel()  # doctest: +SKIP
    'ε at δ = 1e-05'
    """

    def __init__(
        self,
        fronts: Mapping[str, Front],
        *,
        reference_point: tuple[float, float] | None = None,
        delta: float | None = None,
        study_epsilon: float | None = None,
        utility: str = "utility",
    ) -> None:
        check_kind(fronts, name="fronts", kind=Mapping, domain="a dict from labels to fronts")
        if not fronts:
            raise ValueError("fronts must hold at least one front; got none.")
        self.fronts = dict(fronts)
        self.reference_point = reference_point
        self.delta = delta
        self.study_epsilon = study_epsilon
        self.utility = utility

    # Making ---------------------------------------------------------------------------------

    @classmethod
    def from_search(
        cls,
        search: Any,
        *,
        ax: Any = None,
        name: str | None = None,
        y: str = "error",
        evaluations: bool = True,
        spread: bool = True,
        reference: bool = False,
        annotate: Sequence[float] = (),
        colors: Sequence[str] | None = None,
    ) -> ParetoFrontDisplay:
        """Draw the front of a search, or compare the fronts of several searches.

        Parameters
        ----------
        search : DParetoSearchCV, ParetoResult, or dict of str to such
            A fitted search. Several searches, with their names as keys, are drawn on the same
            axes.
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        name : str, optional
            Name of a single search in the legend.
        y, evaluations, spread, reference, annotate, colors
            See `plot`.

        Returns
        -------
        ParetoFrontDisplay
        """
        named = search if isinstance(search, Mapping) else {name or "Pareto front": search}
        fronts = {label: _front_of(one, label) for label, one in named.items()}
        first = next(iter(named.values()), None)
        report = getattr(first, "privacy_", None)
        worst = getattr(getattr(first, "result_", first), "reference_point", None)
        display = cls(
            fronts,
            reference_point=None if worst is None else (float(worst[0]), float(worst[1])),
            delta=getattr(report, "delta", None),
            # The cost of the release of a single search.
            study_epsilon=getattr(first, "release", None) if len(named) == 1 else None,
            utility=_utility_of(named.values()),
        )
        return display.plot(
            ax=ax,
            y=y,
            evaluations=evaluations,
            spread=spread,
            reference=reference,
            annotate=annotate,
            colors=colors,
        )

    @classmethod
    def from_points(
        cls,
        points: Mapping[str, tuple[ArrayLike, ArrayLike]],
        *,
        reference_point: tuple[float, float] | None = None,
        delta: float | None = None,
    ) -> ParetoFrontDisplay:
        """Return a display of fronts through given points, without plotting it.

        Parameters
        ----------
        points : dict of str to (epsilons, errors)
            Maps names to points; dominated points are not on the front.
        reference_point : tuple of float, optional
            See the class.
        delta : float, optional
            The delta at which the epsilons are stated, shown on the axis.

        Returns
        -------
        ParetoFrontDisplay
        """
        check_kind(points, name="points", kind=Mapping, domain="a dict of names to points")
        fronts = {}
        for label, (epsilons, errors) in points.items():
            pairs = np.column_stack([np.asarray(epsilons, float), np.asarray(errors, float)])
            pairs = pairs[np.isfinite(pairs).all(axis=1)]
            fronts[label] = Front(_best_of(pairs), pairs)
        return cls(fronts, reference_point=reference_point, delta=delta)

    # Drawing --------------------------------------------------------------------------------

    def plot(
        self,
        *,
        ax: Any = None,
        y: str = "error",
        evaluations: bool = True,
        spread: bool = True,
        reference: bool = False,
        annotate: Sequence[float] = (),
        colors: Sequence[str] | None = None,
    ) -> ParetoFrontDisplay:
        """Draw the fronts.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        y : {"error", "utility"}, default="error"
            The quantity that is drawn against epsilon.
        evaluations : bool, default=True
            Whether to show all evaluations behind the front.
        spread : bool, default=True
            Whether to show the fronts of the best and the worst repeats as a band.
        reference : bool, default=False
            Whether to show the reference point, and to shade the hypervolume of a single front.
        annotate : sequence of float, default=()
            Budgets at which the value of the first front is written.
        colors : sequence of str, optional
            One colour per front; by default, colours that are distinguishable with any colour
            vision.

        Returns
        -------
        ParetoFrontDisplay
            The display itself.
        """
        check_option(y, name="y", options=_SIDES)
        ax = axes_for(self, ax)
        palette = list(colors or COLOURS)
        is_empty = not (ax.lines or ax.collections)
        left, right = self._ends()
        if reference and self.reference_point is not None:
            worst = self.reference_point[0]
            left, right = min(left, worst / _ROOM), max(right, worst * _ROOM)
        self.lines_: list[Any] = []
        for place, (label, front) in enumerate(self.fronts.items()):
            colour = palette[place % len(palette)]
            self.lines_.append(_draw(ax, front, label, colour, place, right, y, evaluations))
            if spread and front.band is not None:
                _draw_band(ax, front.band, colour, right, y)
        if reference and self.reference_point is not None:
            self._draw_reference(ax, y, palette[0])
        if is_empty:
            level = self.utility if y == "utility" else f"error (1 − {self.utility})"
            _dress(ax, (left, right), self.delta, level)
        self._annotate(ax, annotate, y)
        self._legend(ax)
        return self

    def _ends(self) -> tuple[float, float]:
        """Return the range of the epsilons, with some space."""
        shown = [front.evaluated[:, 0] for front in self.fronts.values()]
        shown += [front.points[:, 0] for front in self.fronts.values()]
        found = np.concatenate(shown) if shown else np.empty(0)
        found = found[(found > _LEAST_EPSILON) & np.isfinite(found)]
        if self.reference_point is not None:
            counting = found[found <= _BEYOND * self.reference_point[0]]
            found = counting if counting.size else found
        if not found.size:
            return 0.1, 10.0
        return float(found.min()) / _ROOM, float(found.max()) * _ROOM

    def _draw_reference(self, ax: Any, y: str, colour: str) -> None:
        worst, error = (float(value) for value in self.reference_point or (0.0, 0.0))
        level = _shown(np.array([error]), y)[0]
        look = {"marker": "X", "markersize": 8, "linestyle": "none", "zorder": 5}
        look |= {"color": quiet(ax), "markeredgecolor": ax.get_facecolor()}
        ax.plot(worst, level, label="reference point", **look)
        points = next(iter(self.fronts.values())).points
        points = points[(points[:, 0] < worst) & (points[:, 1] < error)]
        if len(self.fronts) == 1 and len(points):
            x, heights = _steps(points, worst)
            ax.fill_between(
                x, _shown(heights, y), level, step="post", color=colour, alpha=0.07, linewidth=0
            )

    def _annotate(self, ax: Any, budgets: Sequence[float], y: str) -> None:
        """Write the value of the first front at the given budgets."""
        points = next(iter(self.fronts.values())).points
        bottom, top = ax.get_ylim()
        for budget in budgets:
            bought = points[points[:, 0] <= budget]
            if not len(bought):
                continue
            level = float(_shown(bought[-1:, 1], y)[0])
            ax.vlines(budget, bottom, level, color=quiet(ax), lw=0.8, ls=":", zorder=1)
            box = {"fc": ax.get_facecolor(), "ec": quiet(ax), "lw": 0.6}
            look = {"bbox": {"boxstyle": "round,pad=0.25"} | box, "color": ink(), "zorder": 6}
            look |= {"textcoords": "offset points", "fontsize": "small"}
            words, offset = f"ε = {budget:g}: {level:.3g}", (7, 9 if y == "error" else -14)
            ax.annotate(words, (budget, level), xytext=offset, **look)
        ax.set_ylim(bottom, top)

    def _legend(self, ax: Any) -> None:
        labels = ax.get_legend_handles_labels()[1]
        if len(labels) > 1 or (labels and labels != ["Pareto front"]):
            legend = add_legend(ax)
            if self.study_epsilon is not None:
                legend.set_title(f"released for ε = {self.study_epsilon:g}", {"size": "small"})
        elif self.study_epsilon is not None:
            add_title(ax, f"released for ε = {self.study_epsilon:g}")


# Drawing of single fronts -----------------------------------------------------------------


def _draw(
    ax: Any,
    front: Front,
    label: str,
    colour: str,
    place: int,
    right: float,
    y: str,
    evaluations: bool,
) -> Any:
    """Draw one front and return its line."""
    if evaluations and len(front.evaluated):
        look = {"s": 13, "color": colour, "alpha": 0.28, "linewidths": 0, "zorder": 2}
        ax.scatter(front.evaluated[:, 0], _shown(front.evaluated[:, 1], y), **look)
    x, heights = _steps(front.points, right)
    look = line_look(place) | {"color": colour, "zorder": 4, "solid_joinstyle": "round"}
    (line,) = ax.step(x, _shown(heights, y), where="post", label=label, **look)
    look = {"marker": MARKERS[place % len(MARKERS)], "markersize": 5.5, "linestyle": "none"}
    look |= {"markeredgecolor": ax.get_facecolor(), "markeredgewidth": 0.9, "color": colour}
    ax.plot(front.points[:, 0], _shown(front.points[:, 1], y), zorder=5, **look)
    return line


def _draw_band(
    ax: Any, band: tuple[FloatArray, FloatArray], colour: str, right: float, y: str
) -> None:
    """Shade the area between the front of the best repeats and that of the worst."""
    best, worst = (_steps(points, right) for points in band)
    if not (len(best[0]) and len(worst[0])):
        return
    x = np.union1d(best[0], worst[0])
    # To the left of the first point of the worst repeats, their front is unknown.
    x = x[x >= max(best[0][0], worst[0][0])]
    look = {"step": "post", "color": colour, "alpha": 0.16, "linewidth": 0, "zorder": 1}
    ax.fill_between(x, _shown(_read(best, x), y), _shown(_read(worst, x), y), **look)


def _dress(ax: Any, ends: tuple[float, float], delta: float | None, level: str) -> None:
    """Set scale, labels and grid of new axes."""
    dress_epsilons(ax, ends, delta)
    ax.set_ylabel(level)
    tidy(ax)
    ax.margins(y=0.08)
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, 0.0), min(high, 1.02))


def _shown(errors: FloatArray, y: str) -> FloatArray:
    return errors if y == "error" else 1.0 - errors


def _steps(points: FloatArray, right: float) -> tuple[FloatArray, FloatArray]:
    """Return the corners of a front's steps; the last step extends to the right."""
    if not len(points):
        return np.empty(0), np.empty(0)
    x, errors = points.T
    if x[-1] < right:
        x, errors = np.append(x, right), np.append(errors, errors[-1])
    return x, errors


def _read(steps: tuple[FloatArray, FloatArray], x: FloatArray) -> FloatArray:
    """Return the errors of a step function at positions that are not left of its start."""
    return steps[1][np.searchsorted(steps[0], x, side="right") - 1]
