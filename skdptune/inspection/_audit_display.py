"""Plots of audits: what a record moves, and how bets against a claim went."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdptune._validation import check_option
from skdptune.inspection._plotting import load_pyplot

FloatArray = NDArray[np.float64]

# Okabe and Ito's colours, which can be told apart with any colour vision.
_WITH, _WITHOUT, _LINE = "#D55E00", "#0072B2", "#3C3C3C"
_KINDS = ("auto", "statistic", "capital")
_MOST_BINS, _FEWEST_BINS = 40, 8


class AuditDisplay:
    """Plot of an audit: the statistic with and without the record, or the bets.

    It is best made by `from_result`, or by the result's own ``plot``.

    Parameters
    ----------
    statistic_with, statistic_without : array-like
        The statistic of fits with and without the record.
    capital : sequence of (int, float), default=()
        Pairs of fits, and the logarithm of the capital of bets against the claim.
    goal : float, default=inf
        Logarithm of the capital at which the claim is refuted.
    title : str, default=""
        The verdict.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Drawn on.
    figure_ : matplotlib Figure
        Of these axes.
    lines_ : list of matplotlib artists
        Both histograms, or the line of the capital.

    See Also
    --------
    skdptune.audit.audit_epsilon : Audits an estimator.

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
    ) -> None:
        self.statistic_with = np.asarray(statistic_with, dtype=np.float64)
        self.statistic_without = np.asarray(statistic_without, dtype=np.float64)
        self.capital = tuple(capital)
        self.goal = goal
        self.title = title

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, kind: str = "auto") -> AuditDisplay:
        """Draw the result of an audit.

        Parameters
        ----------
        result : AuditResult
        ax : matplotlib Axes, optional
            To draw on; by default new ones.
        kind : {"auto", "statistic", "capital"}, default="auto"
            As for `plot`; "auto" is "capital" for sequential audits.

        Returns
        -------
        AuditDisplay
        """
        if not hasattr(result, "statistic_with"):
            raise TypeError(f"result must be an AuditResult; got {type(result).__name__}.")
        check_option(kind, name="kind", options=_KINDS)
        if kind == "auto":
            kind = "capital" if result.method == "sequential" else "statistic"
        display = cls(
            result.statistic_with,
            result.statistic_without,
            capital=result.capital,
            goal=result.goal,
            title=result.verdict,
        )
        return display.plot(ax=ax, kind=kind)

    def plot(self, *, ax: Any = None, kind: str = "auto") -> AuditDisplay:
        """Draw the audit.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            To draw on; by default new ones.
        kind : {"auto", "statistic", "capital"}, default="auto"
            "statistic" is a histogram of both sides, and what "auto" draws where there is one;
            "capital" is what bets against the claim made of one unit, by the number of fits.

        Returns
        -------
        AuditDisplay
            Itself.
        """
        check_option(kind, name="kind", options=_KINDS)
        if kind == "capital" and not self.capital:
            raise ValueError('kind must be "statistic" where no bets were made; got "capital".')
        if ax is None:
            pyplot = load_pyplot(type(self).__name__)
            _, ax = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        if kind == "capital" or not self.statistic_with.size:
            self._draw_capital(ax)
        else:
            self._draw_statistic(ax)
        ax.set_title(_wrapped(self.title), fontsize="small", loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def _draw_statistic(self, ax: Any) -> None:
        sides = self.statistic_with, self.statistic_without
        finite = [side[np.isfinite(side)] for side in sides]
        both = np.concatenate(finite)
        number = int(np.clip(math.sqrt(both.size), _FEWEST_BINS, _MOST_BINS))
        ends = np.histogram_bin_edges(both, bins=number)
        self.lines_ = []
        pairs = (("with the record", _WITH), ("without", _WITHOUT))
        for side, (label, colour) in zip(finite, pairs, strict=True):
            _, _, drawn = ax.hist(
                side, bins=ends, density=True, histtype="stepfilled", alpha=0.35, color=colour
            )
            ax.hist(side, bins=ends, density=True, histtype="step", color=colour, label=label)
            self.lines_.append(drawn)
        ax.set_xlabel("statistic")
        ax.set_ylabel("density")
        ax.legend(frameon=False, fontsize="small")

    def _draw_capital(self, ax: Any) -> None:
        pairs, logs = np.array(self.capital, dtype=np.float64).T
        # Capital beyond double precision is as good as any.
        self.lines_ = ax.plot(2.0 * pairs, np.exp(np.minimum(logs, 700.0)), color=_WITH)
        if math.isfinite(self.goal):
            ax.axhline(math.exp(self.goal), color=_LINE, lw=0.9, ls="--", label="claim refuted")
            ax.legend(frameon=False, fontsize="small")
        ax.set_yscale("log")
        ax.set_xlabel("fits")
        ax.set_ylabel("capital of bets against the claim")


def _wrapped(title: str) -> str:
    return "\n".join(textwrap.wrap(title, 80))
