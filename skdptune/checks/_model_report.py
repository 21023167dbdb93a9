"""One page about a fitted model, to hand over: privacy, tuning, scores, checks and statement."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np

from skdptune._formatting import shown, shown_delta, shown_number
from skdptune._html import FONT, GREY_LINE
from skdptune._version import __version__
from skdptune.accounting import PrivacyReport
from skdptune.base import privacy_of
from skdptune.base._shared import nested_estimators
from skdptune.checks._check import check

_STYLE = f"""
:root {{ color-scheme: light dark; }}
body {{ {FONT}; max-width: 62em; margin: 2em auto; padding: 0 1em; }}
body > div {{ max-width: none !important; }}
h1 {{ font-size: 1.5em; margin-bottom: 0; }}
h2 {{ font-size: 1.15em; margin: 1.6em 0 .5em; break-after: avoid; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .2em .8em .2em 0; border-bottom: {GREY_LINE}; text-align: left; }}
th, td {{ vertical-align: top; overflow-wrap: anywhere; }}
tr, dd, li {{ break-inside: avoid; }}
pre {{ white-space: pre-wrap; }}
@media print {{ body {{ max-width: none; margin: 0; font-size: 12px; }} }}
"""
# Columns of cv_results_ that repeat others or have one value for each fold.
_LEFT_OUT = ("split", "rank_", "std_")


class ModelReport(str):
    """A self-contained HTML page, as made by `report`; a str with the page's source.

    Notebooks show it in a frame.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune import DPLogisticRegression, report
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> page = report(DPLogisticRegression(epsilon=1.0, delta=1e-6).fit(X, X[:, 0] > 0))
    >>> page
    <ModelReport: DPLogisticRegression>
    >>> page.startswith("<!DOCTYPE html>"), "ε = 1.000 at δ = 1e-06" in page
    (True, True)
    """

    __slots__ = ("name",)

    name: str

    def __new__(cls, page: str, name: str) -> Self:
        """Return the page of an object of a class."""
        made = super().__new__(cls, page)
        made.name = name
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what copies and pickles need."""
        return type(self), (str(self), self.name)

    def __repr__(self) -> str:
        """Return a short description; ``str`` returns the page."""
        return f"<ModelReport: {self.name}>"

    def _repr_html_(self) -> str:
        look = "width:100%;height:40em;border:0"
        return f'<iframe srcdoc="{escape(self, quote=True)}" style="{look}"></iframe>'

    def save(self, path: str | Path) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : str or Path
            Name of the file, such as ``"model.html"``.
        """
        Path(path).write_text(self, encoding="utf-8")


def report(model: Any, **about: Any) -> ModelReport:
    """Return a page about a fitted model, for the people who must approve or use it.

    Parameters
    ----------
    model : fitted estimator, search or pipeline
        Each step must be private, or learn nothing from data.
    **about
        Answers of the curator for the statement, such as ``unit="one patient"``; see
        ``PrivacyReport.statement``.

    Returns
    -------
    ModelReport
        A str with one HTML page that needs no other file; `ModelReport.save` writes it.

    Raises
    ------
    ValueError
        If the model has no finite epsilon.

    Notes
    -----
    The page contains public parameters, and the scores that a search publishes and pays for. It
    reads no records. So it costs no privacy, and has the guarantee of the model: see `privacy_`,
    which also names the neighbouring relation.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune import DPLogisticRegression, report
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = DPLogisticRegression(epsilon=1.0, delta=1e-6).fit(X, X[:, 0] > 0)
    >>> page = report(model, unit="one patient")
    >>> page.save("model.html")  # doctest: +SKIP
    """
    privacy = privacy_of(model)
    # A model without a finite epsilon is refused here.
    statement = privacy.statement(**about)
    name = escape(statement.about["name"] or type(model).__name__)
    today = datetime.now(UTC).date().isoformat()
    sections = {
        "Privacy in words": _paragraphs(_in_words(privacy)),
        "Model and tuning": _table(["", ""], _facts(model)),
        "Noisy scores": _scores(getattr(model, "cv_results_", None)),
        "Budget": privacy._repr_html_(),
        "Checks": check(model)._repr_html_(),
        "Statement": statement.to_html(tree=False),
        "Versions": _table(
            ["", ""],
            [
                ("skdptune", __version__),
                ("scikit-learn", version("scikit-learn")),
                ("Python", platform.python_version()),
            ],
        ),
    }
    body = "".join(f"<h2>{heading}</h2>{html}" for heading, html in sections.items() if html)
    return ModelReport(
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Model report: {name}</title><style>{_STYLE}</style></head>"
        f"<body><h1>Model report: {name}</h1>{_paragraphs([f'Written on {today}.'])}{body}"
        "</body></html>\n",
        type(model).__name__,
    )


def _in_words(privacy: PrivacyReport) -> list[str]:
    """Return the guarantee in plain sentences."""
    # The total variation distance bounds every test of one hypothesis against the other.
    right = 50.0 + 50.0 * privacy.profile.delta(0.0)
    of_fails = "" if privacy.delta == 0.0 else f" and δ = {shown_delta(privacy.delta)}"
    return [
        f"The model is differentially private with ε = {shown_number(privacy.epsilon)}{of_fails}."
        f" Neighbouring data sets: {privacy.neighbouring}.",
        "Suppose that an attacker guesses which of two neighbouring data sets was used, and that "
        "both are equally likely at first. After reading everything that was published, the guess "
        f"is right with a probability of at most {math.ceil(10.0 * right) / 10.0:.1f} %.",
        "The guarantee covers this model. Other releases from the same records add to its cost. "
        "Scores of the model on private records are exact, and are not covered.",
    ]


def _facts(model: Any) -> list[tuple[str, str]]:
    """Return what was fitted, and how it was tuned."""
    final = getattr(model, "best_estimator_", model)
    facts = [("Fitted object", type(model).__name__)]
    if final is not model:
        facts += [
            ("Tuned estimator", type(final).__name__),
            ("Strategy", _described(getattr(model, "strategy", None) or "default")),
            ("Scoring", _described(getattr(model, "scoring", None) or "default")),
        ]
    parts = [(prefix, part) for prefix, part in nested_estimators(final) if prefix]
    facts += [(f"Step {prefix.removesuffix('__')}", type(part).__name__) for prefix, part in parts]
    chosen = getattr(model, "best_params_", {})
    facts += [(f"Chosen {name}", _described(value)) for name, value in chosen.items()]
    score = getattr(model, "best_score_", math.nan)
    # A table's is a posterior mean, which differs from the noisy score in its row.
    kind = "Estimated" if hasattr(model, "best_score_std_") else "Noisy"
    return facts + ([] if math.isnan(score) else [(f"{kind} score of the choice", f"{score:.4g}")])


def _described(value: Any) -> str:
    """Return a short text for a public value."""
    if hasattr(value, "get_params"):
        return type(value).__name__
    return shown(value).strip("'")


def _scores(results: Mapping[str, Any] | None) -> str:
    """Return the table of the candidates that a search publishes; "" if it publishes no score."""
    results = results or {}
    names = [name for name in results if "_test_" in name or name.startswith("param_")]
    columns = [name for name in names if not name.startswith(_LEFT_OUT)]
    # A fit that replaces a search has no score.
    if not np.isfinite([results[name] for name in columns if "_test_" in name]).any():
        return ""
    columns.sort(key=lambda name: not name.startswith("param_"))
    places = range(len(results["params"]))
    rows = [[_cell(results[name][place]) for name in columns] for place in places]
    titles = [name.removeprefix("param_").replace("mean_test_", "") for name in columns]
    note = "Each score has noise, and its cost is part of the budget."
    return _table(titles, rows) + _paragraphs([note])


def _cell(value: Any) -> str:
    if value is np.ma.masked:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else _described(value)


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table; without titles if all are empty."""
    lines = [("th", titles)] * any(titles) + [("td", row) for row in rows]
    return "<table>{}</table>".format(
        "".join(
            "<tr>{}</tr>".format("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row))
            for tag, row in lines
        )
    )
