"""One finding: what its code says of it, and its line."""

from __future__ import annotations

from skdptune.checks import CODES
from skdptune.checks._report import ISSUE, TIP, issue, tip


def test_finding_has_what_its_code_says() -> None:
    for code, about in CODES.items():
        one = issue(code, "Pipeline.memory", "records are kept", "memory=None")
        assert (one.title, one.severity, one.why) == (about.title, about.severity, about.why)
        assert one.page.endswith(f"#{code.lower()}")
        assert one.line == f"{code} (issue) Pipeline.memory: records are kept"


def test_tips_and_issues_differ_by_kind_alone() -> None:
    arguments = ("SKP008", "Some.classes", "found", "fix")
    one, other = issue(*arguments), tip(*arguments)
    assert (one.kind, other.kind) == (ISSUE, TIP) == ("issue", "tip")
    assert one != other
    assert len({one, other, issue(*arguments)}) == 2
