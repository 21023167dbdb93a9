"""Checks for the reports of skore."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from skdptune.checks._check import check
from skdptune.checks._report import CODES, PAGE


def skore_checks(schema: Any = None) -> list[SkoreCheck]:
    """Return the checks of this package for a report of skore, one for each code.

    Parameters
    ----------
    schema : Schema, dict or str, optional
        Public description of the table, as for `check`.

    Returns
    -------
    list of SkoreCheck
        Pass them to ``report.checks.add``.

    See Also
    --------
    check : Checks an estimator without skore.

    Notes
    -----
    The checks read the parameters of the report's estimator, never its records. The report of
    skore itself shows exact scores of its test records: do not show it to others if these records
    are private.

    Examples
    --------
    >>> from skdptune.checks import skore_checks
    >>> one = skore_checks()[0]
    >>> one.code, one.title, one.severity
    ('SKP001', 'A step learns from the records and is not paid for', 'issue')
    """
    return [SkoreCheck(code, schema) for code in CODES]


@dataclass(frozen=True)
class SkoreCheck:
    """All findings of one code, in the form of a check of skore.

    Attributes
    ----------
    code : str
        For example ``"SKP001"``.
    schema : Schema, dict, str or None
        Public description of the table.

    Examples
    --------
    >>> from skdptune.checks import SkoreCheck
    >>> SkoreCheck("SKP013").severity
    'tip'
    """

    code: str
    schema: Any = None
    report_types: ClassVar[list[str]] = ["estimator", "cross-validation"]
    slow: ClassVar[bool] = False

    @property
    def title(self) -> str:
        """The title of the code."""
        return CODES[self.code].title

    @property
    def severity(self) -> str:
        """``"tip"`` if privacy does not suffer from what was found, otherwise ``"issue"``."""
        return "tip" if CODES[self.code].severity == "negligible" else "issue"

    @property
    def docs_url(self) -> str:
        """URL of the section about the code."""
        return f"{PAGE}#{self.code.lower()}"

    def check_function(self, report: Any) -> str | None:
        """Return what `check` finds in the estimator of a report, or None.

        Parameters
        ----------
        report : skore.EstimatorReport or skore.CrossValidationReport
            Only its estimator is used.
        """
        found = [each for each in check(report.estimator_, self.schema) if each.code == self.code]
        return "\n".join(f"{each.place}: {each.found}. {each.fix}" for each in found) or None
