"""A statement about a release, for the people who must assess it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from html import escape
from types import MappingProxyType
from typing import Any

from skdptune._formatting import shown, shown_delta, shown_names, shown_number
from skdptune._html import box, title
from skdptune._validation import check_kind
from skdptune._version import __version__

# Terms of OpenDP's registry of deployments, as in its schema of 2026.
PRODUCT_TYPES = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
DATA_SOURCES = ("Static", "Dynamic")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")

NOT_STATED = "Not stated by the curator."
# Questions that only the curator can answer.
_QUESTIONS = {
    "description": "What is released?",
    "intended_use": "What is it meant for?",
    "curators": "Who publishes it?",
    "region": "Which region do the data describe, or whose laws apply?",
    "unit": "Whom does one record stand for, and how many records may one person have?",
    "domain": "Which data sets are possible?",
    "collection": "How are the data processed between their collection and this computation?",
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
    """Questions of an auditor about a release, with the known answers.

    It is created by `PrivacyReport.statement` and `PrivacyLedger.statement`. It prints as a page
    in Markdown, also in notebooks. The questions follow the topics of NIST SP 800-226 ("Guidelines
    for Evaluating Differential Privacy Guarantees"). `to_registry_yaml` writes it with the fields
    of OpenDP's registry of deployments. The library fills in everything that it knows. Facts that
    only the curator knows are "Not stated" until they are given.

    Attributes
    ----------
    facts : ReleaseFacts
        Facts that the library knows: the guarantee, its assumptions, the tree of its parts.
    about : mapping
        Facts stated by the curator.
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
        """Return the answer to a question, or "Not stated"."""
        if name == "unit" and not self.about["unit"]:
            is_vague = self.facts.unit in ("", "one record")
            known = _ONE_PERSON if is_vague and self._is_about_persons else self.facts.unit
            return known or NOT_STATED
        value = self.about[name]
        text = ", ".join(value) if name in _LISTS else value
        return text or NOT_STATED

    @property
    def _is_about_persons(self) -> bool:
        return "one person" in self.facts.neighbouring

    @property
    def unstated(self) -> tuple[str, ...]:
        """Names of the arguments for questions that are not answered."""
        return tuple(name for name in _QUESTIONS if self.answer(name) == NOT_STATED)

    @property
    def tuning(self) -> str:
        """Whether preprocessing and the choice of hyperparameters are part of the guarantee."""
        return self.facts.tuning

    @property
    def public_knowledge(self) -> str:
        """The facts that are assumed to be public, as sentences."""
        sentences = "; ".join(self.facts.assumptions) or "nothing beyond parameters"
        return f"Taken to be public or assumed: {sentences}."

    @property
    def mechanisms(self) -> str:
        """Description of the mechanisms that make the releases."""
        return (
            f"skdptune {__version__}. Its noise is drawn from AES in counter mode, keyed by the "
            "operating system, unless a seed is among the assumptions. On a CPU, noisy values "
            "are rounded to grids that do not depend on the data, which protects against "
            "errors of floating-point arithmetic. Models of other libraries draw their own "
            "noise. Running times are not protected."
        )

    def questions(self) -> list[tuple[str, str, str]]:
        """Return topics, questions and answers, in the order of the page."""
        facts = self.facts
        one = "one person" if self._is_about_persons else "one record"
        guarantee = (
            f"ε = {shown_number(facts.epsilon)} at δ = {shown_delta(facts.delta)}: every "
            f"possible result is at most e^ε times as likely with {one} as without it, "
            "apart from a probability of δ."
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

        Required fields without an answer say so; optional ones are left out.
        """
        return "\n".join(_lines(self.to_dict())) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the record of `to_registry_yaml` as plain values."""
        # Optional fields that are not stated are left out.
        about, facts, basic = self.about, self.facts, _basic(self)
        delta = {"delta": facts.delta} if facts.delta > 0.0 else {}
        authors = list(about["authors"]) or list(about["curators"]) or [self.answer("authors")]
        return {
            "url_slug": _slug(basic),
            "status": "Draft",
            "tier": 1 if self.unstated else 3,
            "deployment": {
                "basic": basic,
                "dp_variant": {
                    "variant_name": "Pure DP" if facts.delta == 0.0 else "Approximate DP",
                    **_stated(data_domain=about["domain"]),
                    "unprotected_quantities": self.public_knowledge,
                },
                "privacy_loss": {
                    "privacy_unit": self.answer("unit"),
                    "privacy_unit_details": f"Neighbouring data sets: {facts.neighbouring}.",
                    "privacy_parameters": {"epsilon": facts.epsilon} | delta,
                    "privacy_parameters_details": facts.tree,
                },
                "deployment_model": _model(self),
                "accounting": _stated(
                    post_processing=about["post_processing"], composition=facts.composition
                ),
                "implementation": {
                    "preprocessing_and_hyperparameter_tuning": self.tuning,
                    "mechanisms": self.mechanisms,
                    **_stated(justification=about["justification"]),
                },
                "administrative": {
                    **_stated(sources=about["sources"], notes=about["notes"]),
                    "registry_authors": authors,
                },
            },
        }

    def __str__(self) -> str:
        """Return the page as text."""
        return self.to_markdown()

    def __repr__(self) -> str:
        """Return a short description with the number of unanswered questions."""
        return f"PrivacyStatement({self.facts.name!r}, unstated={len(self.unstated)})"

    def _repr_html_(self) -> str:
        """Return the page as HTML for notebooks."""
        return self.to_html()

    def to_html(self, *, tree: bool = True) -> str:
        """Return the page as an HTML fragment.

        Parameters
        ----------
        tree : bool, default=True
            Whether the tree of parts follows the answers.
        """
        rows = "".join(
            f'<dt style="font-weight:600;margin-top:.5em">{escape(question)}</dt>'
            f'<dd style="margin:0 0 0 1.2em">{escape(answer)}</dd>'
            for _, question, answer in self.questions()
        )
        name = escape(self.about["name"] or self.facts.name)
        parts = f'<pre style="overflow-x:auto">{escape(self.facts.tree)}</pre>' if tree else ""
        return box(
            f"{title(f'Differential privacy statement: {name}')}"
            f'<dl style="margin:0">{rows}</dl>{parts}',
            width="46em",
        )


_ONE_PERSON = "One person, with all of their rows."
_USE = ("description", "intended_use", "curators", "region", "utility")
_TRUST = ("actors", "access", "security", "collection")


def _checked(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the curator's statements, completed and validated, or raise."""
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
            f"{name} must be a str with visible characters; got {shown(text)}. Leave it out "
            "instead."
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
    """Return a date in the format of the registry; by default, today's date."""
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


# Facts about a release that the library knows --------------------------------------------

# Matches a fitted search, and the part of its report that contains the candidates.
_OF_SEARCHES = re.compile(r"(^|\W)(\w*SearchCV|selection)\b")


@dataclass(frozen=True)
class ReleaseFacts:
    """The known facts about a release, or about all releases from a data set.

    Parameters
    ----------
    name : str
        Name of the release.
    epsilon, delta : float
        The guarantee.
    neighbouring : str
        The neighbouring relation.
    unit : str
        Meaning of one record if known, or "".
    assumptions : tuple of str
        Assumptions of the guarantee, and facts that are assumed to be public.
    composition : str
        How costs were added up.
    tuning : str
        Whether the cost of choosing hyperparameters is part of the guarantee.
    other_releases : str
        Known facts about other releases from the same data.
    tree : str
        All parts with their costs, as text.
    is_continual : bool
        Whether more releases may follow within the same guarantee.
    """

    name: str
    epsilon: float
    delta: float
    neighbouring: str
    unit: str
    assumptions: tuple[str, ...]
    composition: str
    tuning: str
    other_releases: str
    tree: str
    is_continual: bool


def includes_tuning(names: Iterable[str]) -> bool:
    """Return whether the names of a release and of its parts include a search."""
    return any(_OF_SEARCHES.search(name) for name in names)


# The fields of OpenDP's registry of deployments ------------------------------------------

# Names of fields and their allowed values are those of the registry, in its schema of 2026.


def _basic(statement: PrivacyStatement) -> dict[str, Any]:
    about = statement.about
    return {
        "name": about["name"] or statement.facts.name,
        "data_curators": list(about["curators"]) or [statement.answer("curators")],
        "intended_use": statement.answer("intended_use"),
        "data_product_type": about["product_type"],
        "data_product_region": statement.answer("region"),
        "description": statement.answer("description"),
        "publication_date": about["publication_date"],
        **({"data_product_sector": about["sector"]} if about["sector"] else {}),
    }


def _model(statement: PrivacyStatement) -> dict[str, Any]:
    is_continual = statement.facts.is_continual
    return {
        "model_name": "Central",
        "model_name_details": (
            "Those who run the computation see the records; the published results are private."
        ),
        **_stated(actors=statement.about["actors"]),
        "release_type": "Many releases" if is_continual else "One release",
        "release_type_details": statement.facts.other_releases,
        **_stated(data_source_type=statement.about["data_source"]),
        "access_type": "Non-interactive",
        **_stated(access_type_details=statement.about["access"]),
    }


def _stated(**fields: str | None) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}


def _slug(basic: dict[str, Any]) -> str:
    """Return the address of a record: its name, its curators and its year."""
    year = basic["publication_date"].split("-")[0]
    parts = basic["name"], "-".join(basic["data_curators"]), year
    return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")


# Plain values as YAML --------------------------------------------------------------------

# Strings that every version of YAML reads unchanged; others are quoted.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*( [A-Za-z0-9_-]+)*")
_NOT_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n"}
_INDENT = "  "


def _lines(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a mapping of strings, numbers, lists of strings and mappings."""
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield f"{key}:"
            yield from (_INDENT + line if line else line for line in _lines(value))
        elif isinstance(value, list):
            yield f"{key}:"
            yield from (f"{_INDENT}- {_scalar(item)}" for item in value)
        elif isinstance(value, str) and _is_block(value):
            yield f"{key}: |-"
            yield from (_INDENT + line if line else line for line in value.split("\n"))
        else:
            yield f"{key}: {_scalar(value)}"


def _is_block(text: str) -> bool:
    """Return whether a text of several lines can be written without quotes."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and not text.endswith("\n")
        and not lines[0].startswith(" ")
        and bool(lines[0])
        and all(line.isprintable() for line in lines)
    )


def _scalar(value: str | int | float) -> str:
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _NOT_WORDS
        if is_plain:
            return value
        # In double quotes, with unprintable characters as numbers.
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        shown = "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped)
        return f'"{shown}"'
    # YAML 1.1 reads 1e-05 as a string.
    text = repr(value)
    return re.sub(r"^(-?\d+)e", r"\1.0e", text)
