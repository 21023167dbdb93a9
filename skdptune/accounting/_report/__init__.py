"""What a fitted object guarantees, as a tree of parts that can be printed and stored."""

from skdptune.accounting._report._html import to_html
from skdptune.accounting._report._report import PrivacyReport
from skdptune.accounting._report._view import ReportView, Row, one_line, to_text

__all__ = ["PrivacyReport", "ReportView", "Row", "one_line", "to_html", "to_text"]
