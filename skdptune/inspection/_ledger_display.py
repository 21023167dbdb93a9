"""Plots of ledgers: the used share of a lifetime budget over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import ROUND_CEILING
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune._formatting import shown_delta, shown_epsilon
from skdptune._validation import check_kind, check_option, check_real, check_vector
from skdptune.inspection._plotting import (
    add_legend,
    add_title,
    axes_for,
    bar_look,
    ink,
    percent,
    shortened,
    tidy,
)
from skdptune.ledger import PrivacyLedger
from skdptune.ledger._shared import shown_below

FloatArray = NDArray[np.float64]

_AXES = ("releases", "time")
_COLUMNS = ("time", "event", "name", "used", "confirmed")
_EVENTS = ("reserved", "read", "confirmed", "cancelled")
# Largest number of releases with names below the axis, and of characters in a name.
_MOST_NAMES, _LONGEST = 12, 26


class LedgerDisplay:
    """Plot of a ledger: the used share of the lifetime budget, step by step.

    Create it by `from_ledger`.

    Parameters
    ----------
    usage : dict of lists
        The result of `PrivacyLedger.usage`. For each event, it has its ``time``, its ``event``,
        the ``name`` of the release, and the shares of the budget that are ``used`` and
        ``confirmed`` after it.
    epsilon, delta : float
        The lifetime budget.
    remaining : float, optional
        Largest epsilon of one more release that fits into the budget.
    dataset : str, default=""
        Name of the data set.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.
    confirmed_, reserved_ : matplotlib artist
        The areas of confirmed releases, and of further releases that are reserved or read.
    budget_ : matplotlib Line2D
        The lifetime budget.

    See Also
    --------
    skdptune.ledger.PrivacyLedger : Records the releases from a data set within a lifetime budget.

    Notes
    -----
    Theorem H2. The used share is the ledger's own sum, of shares or of Gaussian shifts, by which
    it admits releases: epsilons are never added up. Reservations count as used unless they were
    cancelled, whether or not they were confirmed. If costs were chosen from values that were never
    released, everything that the ledger shows depends on these values, including this plot.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile
    >>> from skdptune.inspection import LedgerDisplay
    >>> from skdptune.ledger import PrivacyLedger
    >>> ledger = PrivacyLedger(":memory:", "patients", epsilon=1.0, delta=0.0)
    >>> with ledger.reserve(PrivacyProfile.pure(0.25), name="mean age"):
    ...     pass
    >>> display = LedgerDisplay(ledger.usage(), epsilon=1.0, delta=0.0, remaining=0.75)
    >>> display.in_words
    '25 % of ε = 1.000 at δ = 0 is used; a pure release of up to ε = 0.75 still fits.'
    >>> display.plot().ax_.get_ylabel()  # doctest: +SKIP
    'used part of the budget'
    """

    def __init__(
        self,
        usage: Mapping[str, Sequence[Any]],
        *,
        epsilon: float,
        delta: float,
        remaining: float | None = None,
        dataset: str = "",
    ) -> None:
        self.usage = _checked_usage(usage)
        self.epsilon = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True)
        self.delta = check_real(delta, name="delta", lower=0.0, upper=1.0, upper_open=True)
        if remaining is not None:
            remaining = check_real(remaining, name="remaining", lower=0.0)
        self.remaining = remaining
        check_kind(dataset, name="dataset", kind=str | None, domain="None or a str")
        self.dataset = dataset

    @classmethod
    def from_ledger(
        cls, ledger: PrivacyLedger, *, ax: Any = None, x: str = "releases"
    ) -> LedgerDisplay:
        """Draw a ledger.

        Parameters
        ----------
        ledger : PrivacyLedger
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        x : {"releases", "time"}, default="releases"
            See `plot`.

        Returns
        -------
        LedgerDisplay
        """
        check_kind(ledger, name="ledger", kind=PrivacyLedger, domain="a PrivacyLedger")
        display = cls(
            ledger.usage(),
            epsilon=ledger.epsilon,
            delta=ledger.delta,
            remaining=ledger.remaining(),
            dataset=ledger.dataset,
        )
        return display.plot(ax=ax, x=x)

    @property
    def in_words(self) -> str:
        """A sentence that states how much is used, and what still fits."""
        used = self.usage["used"][-1] if self.usage["used"] else 0.0
        budget = f"{shown_epsilon(self.epsilon)} at δ = {shown_delta(self.delta)}"
        words = f"{percent(used, ROUND_CEILING, digits=3)} of {budget} is used"
        if self.remaining is None:
            return f"{words}."
        kind = "Gaussian" if self.delta > 0.0 else "pure"
        return f"{words}; a {kind} release of up to ε = {shown_below(self.remaining)} still fits."

    # Drawing --------------------------------------------------------------------------------

    def plot(self, *, ax: Any = None, x: str = "releases") -> LedgerDisplay:
        """Draw the used part of the budget.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        x : {"releases", "time"}, default="releases"
            "releases" draws steps in the order of the ledger, each with the name of its release.
            "time" draws them at the recorded times; a clock that went back does not change their
            order.

        Returns
        -------
        LedgerDisplay
            The display itself.
        """
        check_option(x, name="x", options=_AXES)
        ax = axes_for(self, ax)
        # Events of kind "read" do not change the used share.
        kept = [p for p, event in enumerate(self.usage["event"]) if event != "read"]
        places = self._times(ax, kept) if x == "time" else self._order(ax, kept)
        used, confirmed = (
            np.array([0.0, *(self.usage[name][place] for place in kept)])
            for name in ("used", "confirmed")
        )
        self._draw(ax, places, used, confirmed)
        self._dress(ax)
        return self

    def _order(self, ax: Any, kept: Sequence[int]) -> FloatArray:
        """Return the positions of steps in order, from start to end, and label them."""
        begun = [
            (step, str(self.usage["name"][place]))
            for step, place in enumerate(kept, start=1)
            if self.usage["event"][place] == "reserved"
        ]
        if len(begun) <= _MOST_NAMES:
            names = [shortened(" ".join(name.split()), _LONGEST) for _, name in begun]
            ax.set_xticks(
                [step for step, _ in begun], names, rotation=30, ha="right", rotation_mode="anchor"
            )
        ax.set_xlabel("releases, as they were reserved")
        return np.arange(len(kept) + 2, dtype=np.float64)

    def _times(self, ax: Any, kept: Sequence[int]) -> Any:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

        ax.set_xlabel("time (UTC)")
        if not kept:
            return np.array([0.0, 1.0])
        locator = AutoDateLocator()
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        read = [datetime.fromisoformat(str(self.usage["time"][place])) for place in kept]
        found = np.maximum.accumulate(date2num(read))
        # Use a second if all events have the same time.
        room = 0.05 * (found[-1] - found[0]) or 1.0 / 86_400.0
        return np.array([found[0] - room, *found, found[-1] + room])

    def _draw(self, ax: Any, places: Any, used: FloatArray, confirmed: FloatArray) -> None:
        ends = [np.append(values, values[-1]) for values in (used, confirmed)]
        area = {"step": "post", "zorder": 2}
        nothing = np.zeros_like(ends[1])
        self.confirmed_ = ax.fill_between(
            places, nothing, ends[1], **area, label="confirmed", **_flat(0)
        )
        self.reserved_ = ax.fill_between(
            places, ends[1], ends[0], **area, label="reserved, not confirmed", **_flat(5, 1)
        )
        ax.step(places, ends[0], where="post", color=ink(), linewidth=1.3, zorder=3)
        words = f"lifetime budget, {shown_epsilon(self.epsilon)} at δ = {shown_delta(self.delta)}"
        self.budget_ = ax.axhline(1.0, color=ink(), linewidth=1.3, linestyle="--", label=words)
        ax.set_xlim(places[0], places[-1])

    def _dress(self, ax: Any) -> None:
        from matplotlib.ticker import PercentFormatter

        # Leave room above the budget for the legend.
        ax.set_ylim(0.0, 1.35)
        ax.set_yticks(np.linspace(0.0, 1.0, 6))
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
        ax.set_ylabel("used part of the budget")
        add_title(ax, f"{self.dataset}: {self.in_words}" if self.dataset else self.in_words)
        tidy(ax, grid="y")
        add_legend(ax, loc="upper left", ncols=2)


def _flat(place: int, hatch: int = 0) -> dict[str, Any]:
    """Return the look of an area, with the hatching of another index."""
    return {**bar_look(place), "hatch": bar_look(hatch)["hatch"], "linewidth": 0.0}


def _checked_usage(usage: Any) -> dict[str, list[Any]]:
    wanted = "usage must be what PrivacyLedger.usage returns"
    if not isinstance(usage, Mapping) or not set(_COLUMNS) <= set(usage):
        raise TypeError(f"{wanted}, with {', '.join(_COLUMNS)}; got {type(usage).__name__}.")
    table = {name: list(usage[name]) for name in _COLUMNS}
    if len({len(column) for column in table.values()}) > 1:
        raise ValueError(f"{wanted}; got columns of unequal length.")
    for event in table["event"]:
        check_option(event, name="event of usage", options=_EVENTS)
    for name in ("used", "confirmed"):
        if table[name]:
            found = check_vector(table[name], name=f"{name} of usage", lower=0.0, upper=1.0)
            table[name] = found.tolist()
    return table
