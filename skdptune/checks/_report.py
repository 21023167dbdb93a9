"""All findings of a check: a list that prints as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Self, overload

from skdptune._html import BADGE, INSIDE, QUIET, RED, box, title
from skdptune.checks._finding import ISSUE, Finding

_WIDTH = 99
_FOLD = "cursor:pointer"
_WHY = f"{INSIDE};margin-top:.2em;margin-bottom:.6em;font-size:.95em"
_MARK = f"display:inline-block;min-width:3.2em;margin-right:.5em;text-align:center;{BADGE}"
_ISSUE = f"{_MARK};{RED};border-color:currentColor"
_CODE = "font-family:ui-monospace,monospace;font-size:.92em;background:none;color:inherit"


class CheckReport(Sequence[Finding]):
    """All findings of a check, in the order of their weight: issues first, then by code.

    A sequence of `Finding` that prints as a table, in notebooks as HTML.

    Parameters
    ----------
    findings : iterable of Finding
    name : str, default=""
        Of what was checked.

    See Also
    --------
    skdptune.check : Makes it.

    Examples
    --------
    >>> from skdptune import check
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> report = check(DPLogisticRegression(random_state=0, classes=[0, 1]))
    >>> report.codes, len(report.issues), len(report.tips)
    (('SKP005',), 1, 0)
    >>> print(report)
    1 issue and 0 tips of DPLogisticRegression
    issue  SKP005  DPLogisticRegression.random_state
        random_state is 0, from which all noise follows
        -> random_state=None
        (critical; https://skdptune.readthedocs.io/en/latest/checks.html#skp005)
    """

    def __init__(self, findings: Iterable[Finding] = (), name: str = "") -> None:
        once = dict.fromkeys(findings)
        self._findings = tuple(sorted(once, key=lambda one: (one.kind != ISSUE, one.code)))
        self._name = name

    # A list ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of findings."""
        return len(self._findings)

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...
    def __getitem__(self, index: Any) -> Any:
        """Return a finding by its place, or several."""
        return self._findings[index]

    def __eq__(self, other: object) -> bool:
        """Return whether another report has the same findings."""
        return isinstance(other, CheckReport) and self._findings == other._findings

    def __hash__(self) -> int:
        """Return a hash of the findings."""
        return hash(self._findings)

    @property
    def issues(self) -> tuple[Finding, ...]:
        """Findings by which the guarantee does not hold, or is not what it seems."""
        return tuple(one for one in self._findings if one.kind == ISSUE)

    @property
    def tips(self) -> tuple[Finding, ...]:
        """Findings about utility and practice."""
        return tuple(one for one in self._findings if one.kind != ISSUE)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes that were found, sorted, once each."""
        return tuple(sorted({one.code for one in self._findings}))

    def without(self, codes: Iterable[str]) -> CheckReport:
        """Return a report without the findings of some codes.

        Parameters
        ----------
        codes : iterable of str
        """
        left_out = frozenset(codes)
        kept = (one for one in self._findings if one.code not in left_out)
        return CheckReport(kept, self._name)

    def raise_on_issues(self) -> Self:
        """Raise if there are issues; return the report itself if there are none.

        Raises
        ------
        ValueError
            With all issues, and what to do.
        """
        if not self.issues:
            return self
        name = self._name or "estimator"
        lines = "".join(f"\n- {one.line} -> {one.fix}" for one in self.issues)
        raise ValueError(f"{name} must have no issues; got {len(self.issues)}:{lines}")

    # Shown ----------------------------------------------------------------------------------

    @property
    def brief(self) -> tuple[str, ...]:
        """One line for each finding, as a plan ends with."""
        return tuple(one.line for one in self._findings)

    def _heading(self) -> str:
        of = f" of {self._name}" if self._name else ""
        if not self._findings:
            return f"No issues{of}"
        counts = (_counted(len(self.issues), "issue"), _counted(len(self.tips), "tip"))
        return " and ".join(counts) + of

    def __str__(self) -> str:
        """Draw a table."""
        lines = [self._heading()]
        for one in self._findings:
            lines.append(f"{one.kind:<5}  {one.code}  {one.place}")
            lines += _indented(one.found)
            lines += _indented(f"-> {one.fix}")
            lines += _indented(f"({one.severity}; {one.page})")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Show what is printed, as notebooks and terminals do with a table."""
        return str(self)

    def _repr_html_(self) -> str:
        pieces = [title(escape(self._heading())), *map(_html_of, self._findings)]
        return box("".join(pieces), width="60em")

    def brief_html(self) -> str:
        """Return one line for each finding as HTML; nothing where there are none."""
        if not self._findings:
            return ""
        lines = "".join(f"<div>{_head_of(one)}</div>" for one in self._findings)
        return f'<div style="margin-top:.6em;font-size:.9em">{lines}</div>'


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _indented(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=" " * 4,
        subsequent_indent=" " * (7 if text.startswith("->") else 4),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _head_of(one: Finding) -> str:
    mark = _ISSUE if one.kind == ISSUE else _MARK
    return (
        f'<span style="{mark}">{escape(one.kind)}</span><b>{escape(one.code)}</b> '
        f'<code style="{_CODE}">{escape(one.place)}</code>: {escape(one.found)}'
    )


def _html_of(one: Finding) -> str:
    inside = (
        f'<div>Do: <code style="{_CODE}">{escape(one.fix)}</code></div>'
        f"<div>Why: {escape(one.why)}</div>"
        f'<div><span style="{QUIET}">{escape(one.severity)}</span>; '
        f'<a href="{escape(one.page)}">{escape(one.code)} in the documentation</a></div>'
    )
    state = ' open=""' if one.kind == ISSUE else ""
    return (
        f'<details{state} style="margin-top:.5em"><summary style="{_FOLD}">{_head_of(one)}'
        f'</summary><div style="{_WHY}">{inside}</div></details>'
    )
