"""A statement about a release for those who must judge it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from html import escape
from types import MappingProxyType
from typing import Any

from skdptune._formatting import shown, shown_delta, shown_names, shown_number
from skdptune._html import box, title
from skdptune._validation import check_kind
from skdptune._version import __version__
from skdptune.accounting._statement._facts import ReleaseFacts
from skdptune.accounting._statement._registry import (
    DATA_SOURCES,
    PRODUCT_TYPES,
    SECTORS,
    registry_record,
)
from skdptune.accounting._statement._yaml import to_yaml

NOT_STATED = "Not stated by the curator."
# What only the curator knows, and what is asked about it.
_QUESTIONS = {
    "description": "What is released?",
    "intended_use": "What is it meant for?",
    "curators": "Who publishes it?",
    "region": "Which region do the data describe, or whose laws apply?",
    "unit": "Whom does one record stand for, and how many records may one person have?",
    "domain": "Which data sets are possible?",
    "collection": "What becomes of the data from their collection to this computation?",
    "actors": "Who may see what, and who is trusted with what?",
    "access": "Who may ask for releases, and who may read them?",
    "security": "How are the records kept, and who has access to them?",
    "utility": "How useful is the release, and for whom is it less accurate?",
    "post_processing": "What was done to the release afterwards?",
    "justification": "Why these parameters?",
}
_LISTS = ("curators", "authors")
_FREE = ("name", "authors", "sources", "notes", "sector")
_CHOICES = {"product_type": PRODUCT_TYPES, "sector": SECTORS, "data_source": DATA_SOURCES}


class PrivacyStatement:
    """What an auditor asks about a release, with the answers that are known.

    Made by `PrivacyReport.statement` and `PrivacyLedger.statement`. It prints as a page, in
    Markdown, of questions after the topics of NIST SP 800-226 ("Guidelines for Evaluating
    Differential Privacy Guarantees"), and is shown so in notebooks; `to_registry_yaml` writes
    it in the fields of OpenDP's registry of deployments. What the library knows is filled in;
    what only the curator knows is "Not stated" until it is given.

    Attributes
    ----------
    facts : ReleaseFacts
        What the library knows: the guarantee, its assumptions, the tree of its parts.
    about : mapping
        What the curator has stated.
    unstated : tuple of str
        Names of the arguments that were not given.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, PrivacyReport
    >>> report = PrivacyReport(PrivacyProfile.pure(0.5), delta=0.0, name="DPLogisticRegression")
    >>> statement = report.statement(curators=["A hospital"], unit="one patient")
    >>> print(str(statement).splitlines()[0])
    # Differential privacy statement: DPLogisticRegression
    >>> "epsilon: 0.5" in statement.to_registry_yaml()
    True
    """

    __slots__ = ("about", "facts")

    def __init__(self, facts: ReleaseFacts, about: Mapping[str, Any]) -> None:
        if math.isinf(facts.epsilon):
            raise ValueError(
                f"epsilon must be finite for a statement; {shown(facts.name)} was released "
                "without privacy."
            )
        self.facts = facts
        self.about = MappingProxyType(_checked(about))

    def answer(self, name: str) -> str:
        """Return what is known of a question, or that it was not stated."""
        if name == "unit" and not self.about["unit"]:
            return self.facts.unit or NOT_STATED
        value = self.about[name]
        text = ", ".join(value) if name in _LISTS else value
        return text or NOT_STATED

    @property
    def unstated(self) -> tuple[str, ...]:
        """Names of the arguments that would answer what is not stated."""
        return tuple(name for name in _QUESTIONS if self.answer(name) == NOT_STATED)

    @property
    def tuning(self) -> str:
        """Whether preprocessing and the choice of hyperparameters are part of the guarantee."""
        return self.facts.tuning

    @property
    def public_knowledge(self) -> str:
        """What is taken to be public, in sentences."""
        sentences = "; ".join(self.facts.assumptions) or "nothing beyond parameters"
        return f"Taken to be public or assumed: {sentences}."

    @property
    def mechanisms(self) -> str:
        """How releases are made."""
        return (
            f"skdptune {__version__}. Its noise is drawn from AES in counter mode, keyed "
            "by the operating system, unless a seed is among the assumptions. What it releases on "
            "a CPU are real noisy values rounded to grids that no data decide, which protects "
            "against errors of floating-point arithmetic. Models of other libraries draw noise of "
            "their own. Running times are not protected."
        )

    def questions(self) -> list[tuple[str, str, str]]:
        """Return topics, questions and answers, in their order on the page."""
        facts = self.facts
        guarantee = (
            f"ε = {shown_number(facts.epsilon)} at δ = {shown_delta(facts.delta)}: whatever is "
            "released is at most e^ε times as likely with one record as without it, but for a "
            "probability of δ."
        )
        parameters, unit, trust = "Privacy parameters", "Unit of privacy", "Trust and security"
        mechanism, use = "Algorithms and their implementation", "Use, utility and bias"
        return [
            (parameters, "Which guarantee is given?", guarantee),
            (parameters, "Why these parameters?", self.answer("justification")),
            (parameters, "How were costs added up?", facts.composition),
            (parameters, "What else was released from the same data?", facts.other_releases),
            (unit, _QUESTIONS["unit"], self.answer("unit")),
            (unit, "Which data sets are neighbours?", f"{facts.neighbouring}."),
            (unit, _QUESTIONS["domain"], self.answer("domain")),
            (mechanism, "How is the release made?", self.mechanisms),
            (mechanism, "What is not protected?", self.public_knowledge),
            (mechanism, "Was tuning accounted for?", self.tuning),
            (mechanism, _QUESTIONS["post_processing"], self.answer("post_processing")),
            *((use, _QUESTIONS[name], self.answer(name)) for name in _USE),
            *((trust, _QUESTIONS[name], self.answer(name)) for name in _TRUST),
        ]

    def to_markdown(self) -> str:
        """Return the page: questions, answers, and the tree of parts with their costs."""
        lines = [f"# Differential privacy statement: {self.about['name'] or self.facts.name}", ""]
        lines += [f"Of {self.about['publication_date']}. Topics after NIST SP 800-226."]
        topic = ""
        for of_question, question, answer in self.questions():
            if of_question != topic:
                topic = of_question
                lines += ["", f"## {topic}"]
            lines += ["", f"**{question}** {answer}"]
        lines += ["", "## Parts and their costs", "", "```text", self.facts.tree, "```", ""]
        return "\n".join(lines)

    def to_registry_yaml(self) -> str:
        """Return a draft of a record for OpenDP's registry of deployments.

        Fields that the registry requires and nobody stated say so; others are left out.
        """
        return to_yaml(registry_record(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the record of `to_registry_yaml` as plain values."""
        return registry_record(self)

    def __str__(self) -> str:
        """Return the page."""
        return self.to_markdown()

    def __repr__(self) -> str:
        """Show what it is about, and how much is not stated."""
        return f"PrivacyStatement({self.facts.name!r}, unstated={len(self.unstated)})"

    def _repr_html_(self) -> str:
        """Draw the page for a notebook."""
        rows = "".join(
            f'<dt style="font-weight:600;margin-top:.5em">{escape(question)}</dt>'
            f'<dd style="margin:0 0 0 1.2em">{escape(answer)}</dd>'
            for _, question, answer in self.questions()
        )
        name = escape(self.about["name"] or self.facts.name)
        return box(
            f"{title(f'Differential privacy statement: {name}')}"
            f'<dl style="margin:0">{rows}</dl>'
            f'<pre style="overflow-x:auto">{escape(self.facts.tree)}</pre>',
            width="46em",
        )


_USE = ("description", "intended_use", "curators", "region", "utility")
_TRUST = ("actors", "access", "security", "collection")


def _checked(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the curator states, complete and checked, or raise."""
    known = {*_QUESTIONS, *_FREE, *_CHOICES, "publication_date"}
    unknown = sorted(set(about) - known)
    if unknown:
        raise TypeError(
            f"about must have keys out of {sorted(known)}; got {shown_names(unknown)}."
        )
    found: dict[str, Any] = dict.fromkeys(known)
    for name, value in about.items():
        if name == "publication_date":
            continue
        found[name] = _checked_texts(name, value) if name in _LISTS else _checked_text(name, value)
    found |= {name: found[name] or () for name in _LISTS}
    found["product_type"] = found["product_type"] or "Machine learning model"
    found["publication_date"] = _checked_date(about.get("publication_date"))
    return found


def _checked_text(name: str, value: Any) -> str | None:
    if value is None:
        return None
    text: str = check_kind(value, name=name, kind=str, domain="a str")
    if not text.strip():
        raise ValueError(
            f"{name} must be a str with words; got {shown(text)}. Leave it out instead."
        )
    choices = _CHOICES.get(name)
    if choices and text not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}; got {shown(text)}.")
    return text.strip()


def _checked_texts(name: str, values: Any) -> tuple[str, ...]:
    domain = "a sequence of str"
    if isinstance(values, str):
        raise TypeError(f"{name} must be {domain}; got one str. Put it in a list.")
    if values is None:
        return ()
    check_kind(values, name=name, kind=Sequence, domain=domain)
    return tuple(str(_checked_text(name, value)) for value in values)


def _checked_date(value: Any) -> str:
    """Return a date as the registry writes it; today's where none is given."""
    if value is None:
        return datetime.now(UTC).date().isoformat()
    if isinstance(value, date):
        return date(value.year, value.month, value.day).isoformat()
    text = check_kind(value, name="publication_date", kind=str, domain="a date")
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError(
            f"publication_date must be a date as in 2026-05-31; got {shown(text)}."
        ) from None
