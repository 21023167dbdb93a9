"""Plots of doubling threshold searches: the thresholds of all rounds, and their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune._validation import check_flag, check_integer, check_real
from skdptune.inspection._plotting import COLOURS, add_legend, add_title, axes_for, quiet, tidy
from skdptune.mechanisms import ThresholdRound
from skdptune.model_selection import DoublingThresholdSearchCV

FloatArray = NDArray[np.float64]

_NOISY = "Thresholds and comparisons carry noise, so that what is reached is a noisy level."
_NONE = "The first candidate was taken, which depends on no data."


class DoublingRoundsDisplay:
    """Plot of a doubling threshold search: the threshold of each round, and whether it was passed.

    Create it by `from_search`.

    Parameters
    ----------
    rounds : sequence of ThresholdRound
        For each round: the utility reached before, the step in levels, and whether a candidate
        passed the threshold.
    granularity : float, default=0.01
        Height of one level.
    utility : str, default="utility"
        Name of the utility, which is on a scale from 0 to 1.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.
    line_ : matplotlib Line2D
        The utility reached before each round and after the last one.
    passed_, missed_ : matplotlib Line2D or None
        The thresholds of rounds in which a candidate passed, and of the other rounds.

    See Also
    --------
    skdptune.model_selection.DoublingThresholdSearchCV : Publishes these rounds.

    Notes
    -----
    Theorem D4: the search pays for the rounds, so they may be shown. The plot shows thresholds
    without their noise, which follow from public numbers and earlier outcomes. The utilities of
    candidates, and which candidates passed in a round, are never published.

    Examples
    --------
    >>> from skdptune.inspection import DoublingRoundsDisplay
    >>> rounds = [(0.0, 1, True), (0.25, 2, True), (0.75, 4, False)]
    >>> display = DoublingRoundsDisplay(rounds, granularity=0.25)
    >>> display.thresholds.tolist(), display.reached.tolist()
    ([0.25, 0.75, 1.75], [0.0, 0.25, 0.75, 0.75])
    >>> display.plot().ax_.get_xlabel()  # doctest: +SKIP
    'round'
    """

    def __init__(
        self, rounds: Sequence[Any], *, granularity: float = 0.01, utility: str = "utility"
    ) -> None:
        self.rounds = _checked_rounds(rounds)
        self.granularity = check_real(
            granularity, name="granularity", lower=0.0, lower_open=True, upper=1.0
        )
        self.utility = utility

    @classmethod
    def from_search(cls, search: Any, *, ax: Any = None) -> DoublingRoundsDisplay:
        """Draw the rounds of a fitted search.

        Parameters
        ----------
        search : DoublingThresholdSearchCV
            A search that was fitted, or run by a session.
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.

        Returns
        -------
        DoublingRoundsDisplay
        """
        wanted = "search must be a fitted DoublingThresholdSearchCV"
        if not isinstance(search, DoublingThresholdSearchCV):
            raise TypeError(f"{wanted}; got {type(search).__name__}.")
        if not hasattr(search, "best_params_"):
            raise ValueError(f"{wanted}; got one that is not fitted.")
        if not hasattr(search, "trace_"):
            raise ValueError(
                f"{wanted} with a search; got one that fitted the unchanged estimator, since a "
                "search was not expected to help."
            )
        display = cls(
            search.trace_,
            granularity=search.granularity_,
            utility=_name_of(search.scorer_),
        )
        return display.plot(ax=ax)

    # Values --------------------------------------------------------------------------------

    @property
    def thresholds(self) -> FloatArray:
        """The threshold of each round, without its noise."""
        return np.array([one.utility + one.step * self.granularity for one in self.rounds])

    @property
    def reached(self) -> FloatArray:
        """The utility before each round and after the last one."""
        last = self.rounds[-1]
        end = min(float(self.thresholds[-1]), 1.0) if last.hit else last.utility
        return np.array([*(one.utility for one in self.rounds), end])

    # Drawing --------------------------------------------------------------------------------

    def plot(self, *, ax: Any = None) -> DoublingRoundsDisplay:
        """Draw the rounds.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.

        Returns
        -------
        DoublingRoundsDisplay
            The display itself.
        """
        ax = axes_for(self, ax)
        number = np.arange(1, len(self.rounds) + 1)
        hits = np.array([one.hit for one in self.rounds])
        ax.vlines(number, self.reached[:-1], self.thresholds, color=quiet(ax), linewidth=1.0)
        ends = np.append(number - 0.5, number[-1] + 0.5)
        look = {"color": COLOURS[0], "linewidth": 1.7, "label": f"{self.utility} reached"}
        (self.line_,) = ax.plot(ends, self.reached, drawstyle="steps-post", **look)
        # Extend the line, since the last level is only visible after the last round.
        ax.plot([ends[-1], ends[-1] + 0.5], [self.reached[-1]] * 2, color=COLOURS[0], lw=1.7)
        self.passed_ = _draw(ax, number[hits], self.thresholds[hits], "threshold, passed", True)
        self.missed_ = _draw(ax, number[~hits], self.thresholds[~hits], "threshold, missed", False)
        self._dress(ax, int(hits.sum()))
        return self

    def _dress(self, ax: Any, n_hits: int) -> None:
        from matplotlib.ticker import MaxNLocator

        ticks = MaxNLocator(integer=True).tick_values(1, len(self.rounds))
        ax.set_xticks([tick for tick in ticks if 1 <= tick <= len(self.rounds)])
        ax.set_xlim(0.5, len(self.rounds) + 1.0)
        # A threshold may exceed 1, but is never reached then.
        ax.axhline(1.0, color=quiet(ax), linewidth=0.9, linestyle=":", zorder=1)
        ax.set_xlabel("round")
        ax.set_ylabel(self.utility)
        count = len(self.rounds)
        words = f"A candidate passed in {n_hits} of {count} round{'s' if count > 1 else ''}."
        add_title(ax, f"{words} {_NOISY if n_hits else _NONE}")
        tidy(ax, grid="y")
        add_legend(ax)


def _draw(ax: Any, x: Any, y: Any, label: str, passed: bool) -> Any:
    """Draw the thresholds of some rounds and return them, or None if there are none."""
    if not len(x):
        return None
    colour = COLOURS[2 if passed else 1]
    look: dict[str, Any] = {
        "markerfacecolor": colour if passed else "none",
        "markeredgecolor": colour,
    }
    look |= {"marker": "^" if passed else "v", "markersize": 8.0, "markeredgewidth": 1.5}
    (drawn,) = ax.plot(x, y, linestyle="none", label=label, zorder=4, **look)
    return drawn


def _name_of(scorer: Any) -> str:
    """Return the name of the utility, which is the score scaled to the range from 0 to 1."""
    name = str(getattr(scorer, "name", "score"))
    return name if (scorer.lower, scorer.upper) == (0.0, 1.0) else f"{name}, scaled to 0 to 1"


def _checked_rounds(rounds: Any) -> tuple[ThresholdRound, ...]:
    wanted = "rounds must be a sequence of ThresholdRound, (utility, step, hit)"
    if isinstance(rounds, str) or not isinstance(rounds, Sequence):
        raise TypeError(f"{wanted}; got {type(rounds).__name__}.")
    if not rounds:
        raise ValueError(f"{wanted}, and hold at least one; got none.")
    found = []
    for each in rounds:
        if not isinstance(each, Sequence) or isinstance(each, str) or len(each) != 3:
            raise TypeError(f"{wanted}; got one of {type(each).__name__}.")
        utility = check_real(
            each[0], name="utility of rounds", lower=0.0, upper=1.0, is_entry=True
        )
        step = check_integer(each[1], name="step of rounds", lower=1, is_entry=True)
        found.append(ThresholdRound(utility, step, check_flag(each[2], name="hit of rounds")))
    return tuple(found)
