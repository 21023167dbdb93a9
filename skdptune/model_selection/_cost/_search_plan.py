"""The plan that a search shows: what it will do and cost, before any data are seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from skdptune._formatting import shown_delta, shown_number
from skdptune._html import GREY_LINE, box, title
from skdptune.accounting import PrivacyReport, RunCountDistribution
from skdptune.base._shared import about_unit
from skdptune.checks import CheckReport

_TABLE = "font:inherit;margin:.5em 0;border-collapse:collapse;font-variant-numeric:tabular-nums"
_CELL = f"padding:.2em .7em;border-bottom:{GREY_LINE};background:none;color:inherit"
_WORDS, _NUMBER = "text-align:left", "text-align:right;white-space:nowrap"
_NOTE = "font-size:.9em;opacity:.8"


def _row(tag: str, cells: Sequence[str], weight: int) -> str:
    """Return a row of an HTML table: text in the first and last cell, numbers between."""
    last = len(cells) - 1
    pieces = [
        f'<{tag} style="{_CELL};font-weight:{weight};'
        f'{_WORDS if place in (0, last) else _NUMBER}">{escape(cell)}</{tag}>'
        for place, cell in enumerate(cells)
    ]
    return f'<tr style="background:none">{"".join(pieces)}</tr>'


@dataclass(frozen=True)
class PlanRow:
    """A row of the plan's table: one way of tuning.

    Attributes
    ----------
    name : str
        Name of the search or strategy.
    epsilon : float
        Its total cost at the plan's delta.
    fit_epsilon : float or None
        Epsilon of each fit; None if the estimator sets it.
    noise : float or None
        Noise of the returned model's fit in units of a record's influence, if the estimator has a
        `noise_level`.
    effective_noise : float or None
        That noise divided by the share of the records that the fit uses: the noise relative to the
        signal.
    expected_fits, worst_fits : float
        Mean number of fits of candidates, and the number that is not exceeded with 99 %
        probability.
    work : float
        Expected work in units of one fit on all records, including the final fit.
    shows : str
        What is published of the candidates, in addition to the returned model.

    Examples
    --------
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPGridSearchCV, RandomRuns
    >>> search = DPGridSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}, epsilon=1.0)
    >>> row = search.plan(n_samples=50_000, n_features=3).row
    >>> row.expected_fits, row.shows
    (3.0, 'all scores')
    >>> 0.99 < row.epsilon <= 1.0
    True
    """

    name: str
    epsilon: float
    fit_epsilon: float | None
    noise: float | None
    effective_noise: float | None
    expected_fits: float
    worst_fits: float
    work: float
    shows: str = ""


@dataclass(frozen=True, repr=False)
class SearchPlan:
    """What a search will do and cost, and alternatives if asked for.

    Attributes
    ----------
    report : PrivacyReport
        The value of `privacy_` after the fit.
    row : PlanRow
        The search itself.
    alternatives : tuple of PlanRow
        Alternatives with the same total; empty unless ``compare=True`` was given.
    tuning_fraction : float or None
        Share of the records that is used for tuning.
    n_iter_distribution : str
        Distribution of the number of runs; empty if it is fixed.
    score_noise : float
        Standard deviation (or scale) of the noise on a score, in units of the score. At most half
        of the public range, to which scores are clipped.
    calibration : str
        How the noise of the fits was found, and the loss this causes.
    suggestion : str
        Description of the space that the estimator suggests, if the user gives none.
    advice : str
        Explanation of why a search of that space cannot be expected to help, if so.
    keeps : str
        Description of when a candidate other than the unchanged estimator is returned.
    findings : CheckReport
        Findings of `skdptune.check`: issues and tips, each with a code.
    distribution : RunCountDistribution or None
        Distribution of the number of runs; None if it is fixed.
    uses : dict of str to (float, float)
        Each use of the records with its part of them, as two ends between 0 and 1: the records are
        divided at random. Parts overlap if records have several uses.
    validation : str
        Description of the records that a public rule holds out for validation.
    metrics : dict of str to (float, float)
        From each of several metrics to the noise on its score, and to the noise that it would have
        if the search had only this metric.
    target : str
        How much noise the predictions of a regression will have, in units of the target.
    more : str
        How to see the alternatives, if they were not computed.

    Examples
    --------
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DPRandomSearchCV, RandomRuns
    >>> search = DPRandomSearchCV(
    ...     DPLogisticRegression(epsilon=0.5, delta=1e-6), {"C": [0.1, 1.0]},
    ...     strategy=RandomRuns(tuning_fraction=None, n_iter_distribution="geometric"),
    ... )
    >>> plan = search.plan(n_samples=1000, n_features=3)
    >>> plan.n_iter_distribution
    'geometric distribution of mean 10'
    >>> 0.5 < plan.epsilon < 1.5
    True
    """

    report: PrivacyReport
    row: PlanRow
    alternatives: tuple[PlanRow, ...]
    tuning_fraction: float | None
    n_iter_distribution: str
    score_noise: float
    calibration: str = ""
    suggestion: str = ""
    advice: str = ""
    keeps: str = ""
    findings: CheckReport = field(default_factory=CheckReport)
    distribution: RunCountDistribution | None = None
    uses: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)
    validation: str = ""
    metrics: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)
    target: str = ""
    more: str = ""

    @property
    def epsilon(self) -> float:
        """The total epsilon at `delta`."""
        return self.report.epsilon_spent

    @property
    def delta(self) -> float:
        """The delta at which the total is stated."""
        return self.report.delta

    def _worded(self, text: str) -> str:
        """Return a sentence about records, or about persons if the plan protects persons."""
        return about_unit(text, self.report.neighbouring)

    def _head(self) -> str:
        head = f"ε = {shown_number(self.report.epsilon)} at δ = {shown_delta(self.delta)} in all"
        if self.n_iter_distribution:
            head += f"; runs: {self.n_iter_distribution}"
        if self.tuning_fraction is not None:
            head += f"; tuning on {self.tuning_fraction:.3g} of the records"
        if self.score_noise > 0.0:
            head += f"; noise of a score: {self.score_noise:.2g}"
        return self._worded(head)

    def _notes(self) -> list[str]:
        words = (
            self._worded(_LEGEND),
            self.validation,
            self._metrics_in_words,
            self._worded(self.calibration),
            self.suggestion,
            self._worded(self.target),
            self._worded(self.keeps),
            self._worded(self.advice),
            self.more,
        )
        return [each for each in words if each]

    @property
    def _metrics_in_words(self) -> str:
        """The additional noise of several metrics, since they share the cost of a score."""
        if not self.metrics:
            return ""
        each = ", ".join(
            f"{name} {noise:.2g} ({alone:.2g} as the only metric)"
            for name, (noise, alone) in self.metrics.items()
        )
        return f"{len(self.metrics)} metrics share the cost of a score; noise: {each}."

    def _cells(self) -> list[tuple[str, ...]]:
        """Return titles and rows, without the columns that are empty in every row."""
        rows = [_cells(row) for row in (self.row, *self.alternatives)]
        places = [i for i in range(len(_COLUMNS)) if any(row[i] != _NOTHING for row in rows)]
        return [tuple(row[i] for i in places) for row in (_COLUMNS, *rows)]

    def __str__(self) -> str:
        """Return the plan as a text table."""
        table = _table(self._cells())
        findings = map(self._worded, self.findings.brief)
        return "\n".join([self._head(), *table, *self._notes(), *findings])

    def __repr__(self) -> str:
        """Return the printed text."""
        return str(self)

    def _repr_html_(self) -> str:
        titles, *rows = self._cells()
        # The row of the search itself is highlighted.
        body = "".join(_row("td", row, 400 if place else 600) for place, row in enumerate(rows))
        head = f"<thead>{_row('th', titles, 600)}</thead>"
        table = f'<table style="{_TABLE}">{head}<tbody>{body}</tbody></table>'
        below = "".join(f'<div style="{_NOTE}">{escape(note)}</div>' for note in self._notes())
        findings = self._worded(self.findings.brief_html())
        content = f"{title(escape(self._head()))}{table}{below}{findings}"
        return box(content, width="75em", style="overflow-x:auto")


_COLUMNS = ("", "ε", "ε of a fit", "noise", "effective noise", "fits", "99 %", "work", "shows")
_NOTHING = "-"
_LEGEND = "99 %: 99 of 100 searches make at most this many fits; work: in fits on all records."


def _table(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: text in the first and last column, numbers between."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        aligned = [row[0].ljust(widths[0])]
        numbers = zip(row[1:-1], widths[1:-1], strict=True)
        aligned += [*(text.rjust(width) for text, width in numbers), row[-1]]
        lines.append("  ".join(aligned).rstrip())
    return lines


def _cells(row: PlanRow) -> tuple[str, ...]:
    return (
        row.name,
        shown_number(row.epsilon),
        _number(row.fit_epsilon),
        _number(row.noise),
        _number(row.effective_noise),
        f"{row.expected_fits:.4g}",
        f"{row.worst_fits:.4g}",
        f"{row.work:.3g}",
        row.shows,
    )


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return _NOTHING
    return f"{value:.3f}" if value < 100 else f"{value:.3g}"
