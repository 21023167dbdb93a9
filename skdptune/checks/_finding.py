"""One thing that a check has found."""

from __future__ import annotations

from dataclasses import dataclass

from skdptune.checks._codes import CODES, page_of

ISSUE, TIP = "issue", "tip"


@dataclass(frozen=True)
class Finding:
    """One thing that a check has found.

    Attributes
    ----------
    code : str
        Such as ``"SKP001"``; it stays the same over versions.
    kind : {"issue", "tip"}
        Of an *issue* the guarantee does not hold, or is not what it seems. A *tip* is about
        utility or practice.
    place : str
        The step or parameter, such as ``Pipeline.steps["scale"]``.
    found : str
        What was found there.
    fix : str
        What to do: mostly a line of code.

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
        """What findings of this code are about."""
        return CODES[self.code].title

    @property
    def severity(self) -> str:
        """How much findings of this code weigh: "critical", "theoretical" or "negligible"."""
        return CODES[self.code].severity

    @property
    def why(self) -> str:
        """Why it matters."""
        return CODES[self.code].why

    @property
    def page(self) -> str:
        """Address of the section about its code."""
        return page_of(self.code)

    @property
    def line(self) -> str:
        """The finding in one line."""
        return f"{self.code} ({self.kind}) {self.place}: {self.found}"


def issue(code: str, place: str, found: str, fix: str) -> Finding:
    """Return a finding by which the guarantee does not hold, or is not what it seems."""
    return Finding(code, ISSUE, place, found, fix)


def tip(code: str, place: str, found: str, fix: str) -> Finding:
    """Return a finding about utility or practice."""
    return Finding(code, TIP, place, found, fix)
