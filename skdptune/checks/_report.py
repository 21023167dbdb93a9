"""The result of a check: codes, findings, and the report that lists them."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Self, overload

from skdptune._formatting import shown
from skdptune._html import BADGE, INSIDE, QUIET, RED, box, title

PAGE = "https://skdptune.readthedocs.io/en/latest/checks.html"


@dataclass(frozen=True)
class Code:
    """The text shared by all findings with the same code.

    Attributes
    ----------
    title : str
        Short name of the finding; also the heading of its section.
    severity : {"critical", "theoretical", "negligible"}
        Whether an attacker who sees the published objects can learn about a record easily, only if
        an assumption fails, or practically never.
    why : str
        Why the finding matters.
    """

    title: str
    severity: str
    why: str


# For each code its severity, its title, and why a finding matters.
_TEXT = """\
SKP001 critical: A step learns from the records and is not paid for
Means, deviations, directions or selected columns depend on every record, and are part of what is
published. No guarantee covers them.

SKP002 critical: Bounds, bins or quantiles come from the data
The largest value of a column is the value of one record. A bound or a bin that was taken from the
data shows that record.

SKP003 theoretical: The number of records is secret, but used
The number of records in a random part reveals whether a record is in it. Rates and noise must
follow from a public constant instead.

SKP004 critical: delta is not below one over the number of records
A mechanism that publishes one random record in full satisfies such a delta, so the guarantee is
worthless.

SKP005 critical: The noise is drawn from a seed
An attacker who knows or guesses the seed draws the same noise and subtracts it. Seeds such as 0
and 42 are guessed first, and code is often published.

SKP006 critical: Scores are exact, or choices are made by them
Each fit of a search and each exact score reads the records again. A private estimator covers one
fit, not that it was the best of many.

SKP007 critical: A model without privacy
What it learns from a record is published without noise, or with noise that nobody has accounted
for.

SKP008 theoretical: Labels are taken from the data
The label set is then taken to be public. A label that only one record has would reveal that
record.

SKP009 critical: Categories, columns or replacements are learnt from the data
A category that only one record has becomes a column, which reveals that record; a mean that
replaces missing values depends on every record.

SKP010 theoretical: Tuned by hand
If values were chosen by looking at fits on the same records, each of those fits costs its
epsilon, and so does the choice. The report of the last fit covers that fit only.

SKP011 critical: Values that no budget pays for are kept
diagnostics=True keeps all exact scores and the number of runs in the fitted search, and an
exception shows values of the data.

SKP012 theoretical: Guarantees about other neighbours
An epsilon for replacing a record, or for emptying its place, is not an epsilon for adding or
removing one. They must be neither added nor compared. Without a named person the guarantee is
about one row, and says little to a person with fifty.

SKP013 negligible: Few records for the budget
Noise has to hide one record among all. With few records, or a small epsilon, it also hides what
the model should learn. Privacy does not suffer.

SKP014 negligible: Little to choose from
A search costs privacy, or noise in the final fit. It gains nothing if there is one candidate, and
may lose accuracy if the estimator's own values are not among the candidates.

SKP015 critical: Caches, callbacks and messages of steps
A cache keeps transformed records on disk, a callback reads losses or scores that no budget pays
for, and times can depend on a record.

SKP016 theoretical: A large epsilon or delta
The guarantee holds, but says little: the odds that a record takes part may change by a factor of
exp(epsilon), whatever else is known.

SKP017 theoretical: Fits that add up
Each fit that continues from the last one reads the records again. The final model costs as much
as all fits together, and no report adds up these costs.

SKP018 theoretical: A function that must treat records one by one
The cost of later steps holds if a record changes only its own row. A function that subtracts a
mean, sorts or ranks breaks this, at no stated cost.

SKP019 negligible: Refused with these settings
The fit raises this error before it reads the data. Nothing leaks, but nothing is fitted.

SKP020 critical: A model whose guarantee fails or lacks a proof
Its library states an epsilon, but the noise is known to be too small for it, some published
values have no noise, or no proof covers the settings."""


def _codes() -> Iterator[tuple[str, Code]]:
    for entry in _TEXT.split("\n\n"):
        head, _, why = entry.partition("\n")
        code, severity, title = head.split(maxsplit=2)
        yield code, Code(title, severity.removesuffix(":"), " ".join(why.split()))


CODES = dict(_codes())


def check_codes(codes: Any, *, name: str = "mute") -> frozenset[str]:
    """Return a set of codes, or raise if one is unknown."""
    listed = [codes] if isinstance(codes, str) else codes
    if not isinstance(listed, Collection):
        raise TypeError(f"{name} must be a list of codes; got {type(codes).__name__}.")
    for code in listed:
        if not isinstance(code, str) or code not in CODES:
            looks_right = isinstance(code, str) and code.startswith("SKP")
            got = shown(code) if looks_right else type(code).__name__
            raise ValueError(
                f"{name} must hold codes from {min(CODES)} to {max(CODES)}; got {got}."
            )
    return frozenset(listed)


ISSUE, TIP = "issue", "tip"


@dataclass(frozen=True)
class Finding:
    """A problem or a tip found by a check.

    Attributes
    ----------
    code : str
        For example ``"SKP001"``; it is stable across versions.
    kind : {"issue", "tip"}
        An *issue* means that the guarantee is broken or misleading. A *tip* concerns utility or
        good practice.
    place : str
        The step or parameter, such as ``Pipeline.steps["scale"]``.
    found : str
        What was found there.
    fix : str
        What to do: usually a line of code.

    Examples
    --------
    >>> from sklearn.pipeline import Pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdptune import check
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> steps = [("scale", StandardScaler()), ("fit", DPLogisticRegression(classes=[0, 1]))]
    >>> finding = check(Pipeline(steps))[0]
    >>> finding.code, finding.place, finding.severity
    ('SKP001', 'Pipeline.steps["scale"]', 'critical')
    >>> finding.page
    'https://skdptune.readthedocs.io/en/latest/checks.html#skp001'
    """

    code: str
    kind: str
    place: str
    found: str
    fix: str

    @property
    def title(self) -> str:
        """The title of its code."""
        return CODES[self.code].title

    @property
    def severity(self) -> str:
        """Severity of its code: "critical", "theoretical" or "negligible"."""
        return CODES[self.code].severity

    @property
    def why(self) -> str:
        """Why the finding matters."""
        return CODES[self.code].why

    @property
    def page(self) -> str:
        """URL of the section about its code."""
        return f"{PAGE}#{self.code.lower()}"

    @property
    def line(self) -> str:
        """The finding in one line."""
        return f"{self.code} ({self.kind}) {self.place}: {self.found}"


def issue(code: str, place: str, found: str, fix: str) -> Finding:
    """Return a finding that the guarantee is broken or misleading."""
    return Finding(code, ISSUE, place, found, fix)


def tip(code: str, place: str, found: str, fix: str) -> Finding:
    """Return a finding about utility or good practice."""
    return Finding(code, TIP, place, found, fix)


_WIDTH = 99
_FOLD = "cursor:pointer"
_WHY = f"{INSIDE};margin-top:.2em;margin-bottom:.6em;font-size:.95em"
_MARK = f"display:inline-block;min-width:3.2em;margin-right:.5em;text-align:center;{BADGE}"
_ISSUE = f"{_MARK};{RED};border-color:currentColor"
_CODE = "font-family:ui-monospace,monospace;font-size:.92em;background:none;color:inherit"


class CheckReport(Sequence[Finding]):
    """All findings of a check: issues first, then sorted by code.

    A sequence of `Finding` that prints as a table, in notebooks as HTML.

    Parameters
    ----------
    findings : iterable of Finding
    name : str, default=""
        Name of the checked object.

    See Also
    --------
    skdptune.check : Creates the report.

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
        random_state is 0, which determines all noise
        -> random_state=None
        (critical; https://skdptune.readthedocs.io/en/latest/checks.html#skp005)
    """

    def __init__(self, findings: Iterable[Finding] = (), name: str = "") -> None:
        once = dict.fromkeys(findings)
        self._findings = tuple(sorted(once, key=lambda one: (one.kind != ISSUE, one.code)))
        self._name = name

    # List interface ---------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of findings."""
        return len(self._findings)

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...
    def __getitem__(self, index: Any) -> Any:
        """Return a finding by its index, or several by a slice."""
        return self._findings[index]

    def __eq__(self, other: object) -> bool:
        """Return whether another report has the same findings."""
        return isinstance(other, CheckReport) and self._findings == other._findings

    def __hash__(self) -> int:
        """Return a hash of the findings."""
        return hash(self._findings)

    @property
    def issues(self) -> tuple[Finding, ...]:
        """Findings that mean that the guarantee is broken or misleading."""
        return tuple(one for one in self._findings if one.kind == ISSUE)

    @property
    def tips(self) -> tuple[Finding, ...]:
        """Findings about utility and good practice."""
        return tuple(one for one in self._findings if one.kind != ISSUE)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the findings, sorted, without repetitions."""
        return tuple(sorted({one.code for one in self._findings}))

    def without(self, codes: Iterable[str]) -> CheckReport:
        """Return a report without the findings of the given codes.

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
            The message lists all issues, and what to do.
        """
        if not self.issues:
            return self
        name = self._name or "estimator"
        lines = "".join(f"\n- {one.line} -> {one.fix}" for one in self.issues)
        raise ValueError(f"{name} must have no issues; got {len(self.issues)}:{lines}")

    # Display ----------------------------------------------------------------------------------

    @property
    def brief(self) -> tuple[str, ...]:
        """One line for each finding, as shown at the end of a plan."""
        return tuple(one.line for one in self._findings)

    def _heading(self) -> str:
        of = f" of {self._name}" if self._name else ""
        if not self._findings:
            return f"No issues{of}"
        counts = (_counted(len(self.issues), "issue"), _counted(len(self.tips), "tip"))
        return " and ".join(counts) + of

    def __str__(self) -> str:
        """Return the findings as a table."""
        lines = [self._heading()]
        for one in self._findings:
            lines.append(f"{one.kind:<5}  {one.code}  {one.place}")
            lines += _indented(one.found)
            lines += _indented(f"-> {one.fix}")
            lines += _indented(f"({one.severity}; {one.page})")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Return the text that is printed, so that notebooks and terminals show the table."""
        return str(self)

    def _repr_html_(self) -> str:
        pieces = [title(escape(self._heading())), *map(_html_of, self._findings)]
        return box("".join(pieces), width="60em")

    def brief_html(self) -> str:
        """Return HTML with one line for each finding; "" if there are none."""
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
