"""The codes of findings: what each is about, how much it weighs, and why it matters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from skdptune._formatting import shown

PAGE = "https://skdptune.readthedocs.io/en/latest/checks.html"
CRITICAL, THEORETICAL, NEGLIGIBLE = "critical", "theoretical", "negligible"


@dataclass(frozen=True)
class Code:
    """What all findings of one code share.

    Attributes
    ----------
    title : str
        What is found, in a few words: the heading of its section.
    severity : {"critical", "theoretical", "negligible"}
        Whether somebody who sees what is published can learn of a record with little effort,
        only by assumptions that may fail, or hardly.
    why : str
        Why it matters.
    """

    title: str
    severity: str
    why: str


CODES: dict[str, Code] = {
    "SKP001": Code(
        "A step learns from the records and is not paid for",
        CRITICAL,
        "Means, deviations, directions or selected columns depend on every record, and are part "
        "of what is published. No guarantee covers them.",
    ),
    "SKP002": Code(
        "Bounds, bins or quantiles come from the data",
        CRITICAL,
        "The largest value of a column is the value of one record. Whoever sees a bound or a bin "
        "that was read off the data sees that record.",
    ),
    "SKP003": Code(
        "The number of records is secret, but used",
        THEORETICAL,
        "How many records a random part holds tells whether one of them is in it. Rates and "
        "noise must follow from a public constant instead.",
    ),
    "SKP004": Code(
        "delta is not below one over the number of records",
        CRITICAL,
        "A mechanism that publishes one random record in full satisfies such a delta, so that it "
        "promises nothing to anybody.",
    ),
    "SKP005": Code(
        "The noise is drawn from a seed",
        CRITICAL,
        "Whoever knows or guesses the seed draws the same noise and subtracts it. Seeds such as "
        "0 and 42 are guessed first, and code is often published.",
    ),
    "SKP006": Code(
        "Scores are exact, or choices are made by them",
        CRITICAL,
        "Each fit of a search and each exact score reads the records again. A private estimator "
        "covers one fit, not that it was the best of many.",
    ),
    "SKP007": Code(
        "A model without privacy",
        CRITICAL,
        "What it learns from a record is published without noise, or with noise that nobody has "
        "accounted for.",
    ),
    "SKP008": Code(
        "Labels are taken from the data",
        THEORETICAL,
        "The label set is then taken to be public. A label that one record alone has would show "
        "that record.",
    ),
    "SKP009": Code(
        "Categories, columns or fillings are learnt from the data",
        CRITICAL,
        "A category that one record alone has becomes a column, which shows that record; a mean "
        "that fills gaps depends on every record.",
    ),
    "SKP010": Code(
        "Tuned by hand",
        THEORETICAL,
        "If values were chosen by looking at fits on the same records, each of those fits costs "
        "its epsilon, and so does the choice. The report of the last fit is about itself alone.",
    ),
    "SKP011": Code(
        "What no budget pays for is kept",
        CRITICAL,
        "diagnostics=True keeps all exact scores and the number of runs in the fitted search, "
        "and an exception shows what the data hold.",
    ),
    "SKP012": Code(
        "Guarantees about other neighbours",
        THEORETICAL,
        "An epsilon for replacing a record, or for emptying its place, is not an epsilon for "
        "adding or removing one. They must be neither added nor compared.",
    ),
    "SKP013": Code(
        "Few records for the budget",
        NEGLIGIBLE,
        "Noise has to hide one record among all. With few records, or a small epsilon, it hides "
        "what is to be learnt as well. Privacy does not suffer.",
    ),
    "SKP014": Code(
        "Little to choose from",
        NEGLIGIBLE,
        "A search costs privacy, or noise in the final fit. It gains nothing where there is one "
        "candidate, and may lose where the estimator's own values are not among them.",
    ),
    "SKP015": Code(
        "Caches, callbacks and messages of steps",
        CRITICAL,
        "A cache keeps transformed records on disk, a callback reads losses or scores that no "
        "budget pays for, and times can depend on a record.",
    ),
    "SKP016": Code(
        "A large epsilon or delta",
        THEORETICAL,
        "The guarantee holds, but says little: the odds that a record takes part may change by a "
        "factor of exp(epsilon), whatever else is known.",
    ),
    "SKP017": Code(
        "Fits that add up",
        THEORETICAL,
        "Each further fit that goes on from the last one reads the records again. The model that "
        "comes out costs what all of them cost together, and no report adds them.",
    ),
    "SKP018": Code(
        "A function that must treat records one by one",
        THEORETICAL,
        "The cost of later steps holds if a record changes its own row and no other. A function "
        "that subtracts a mean, sorts or ranks breaks this, at no stated cost.",
    ),
    "SKP019": Code(
        "Refused as it is",
        NEGLIGIBLE,
        "The fit raises this before it reads the data. Nothing leaks; nothing is fitted either.",
    ),
    "SKP020": Code(
        "A model whose guarantee fails or lacks a proof",
        CRITICAL,
        "Its library states an epsilon, but the noise is known to be too small for it, some of "
        "what is published has none, or no proof covers the settings.",
    ),
}


def page_of(code: str) -> str:
    """Return the address of a code's section."""
    return f"{PAGE}#{code.lower()}"


def check_codes(codes: Any) -> frozenset[str]:
    """Return codes that are to be left out, or raise for what is none."""
    listed = [codes] if isinstance(codes, str) else codes
    if not isinstance(listed, Collection):
        raise TypeError(f"mute must be a list of codes; got {type(codes).__name__}.")
    for code in listed:
        if not isinstance(code, str) or code not in CODES:
            looks_right = isinstance(code, str) and code.startswith("SKP")
            got = shown(code) if looks_right else type(code).__name__
            raise ValueError(f"mute must hold codes from {min(CODES)} to {max(CODES)}; got {got}.")
    return frozenset(listed)
