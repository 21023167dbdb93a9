"""Privacy reports: the requested budget, the actual cost, and the parts that cause it."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from skdptune._formatting import (
    NOT_PRIVATE,
    shown,
    shown_delta,
    shown_epsilon,
    shown_names,
    shown_number,
)
from skdptune._html import BADGE, INSIDE, QUIET, RED, box, title
from skdptune._validation import check_kind, check_real
from skdptune.accounting._profile import PrivacyProfile
from skdptune.accounting._statement import PrivacyStatement, ReleaseFacts, includes_tuning

_FORMAT = 3
_KEYS = (
    "format",
    "name",
    "note",
    "bound",
    "neighbouring",
    "epsilon",
    "delta",
    "assumptions",
    "profile",
    "parts",
)
_SLACK = 1e-9
_COUNTER = "_counter"
_LONGEST_NAME_IN_REPR = 40


@dataclass(frozen=True, init=False, repr=False)
class PrivacyReport:
    """The guarantee of a fitted estimator or search, and the tree of its parts.

    A report contains only public numbers and texts; nothing in it depends on the data. It is
    immutable, hashable and picklable, and equals another report with the same content. Two data
    sets are neighbours if they differ as `neighbouring` states.

    Parameters
    ----------
    profile : PrivacyProfile
        The privacy cost of everything together.
    delta : float
        The requested delta, in [0, 1].
    epsilon : float, optional
        The requested budget. It may exceed the cost of `profile` at `delta`, but must not be below
        it. The default is that cost.
    name : str, default="release"
        What was released, such as the estimator's name.
    note : str, default=""
        Public constants to be shown after the name, such as "mean 20 runs, geometric".
    parts : sequence of PrivacyReport, default=()
        The parts of the release. Their profiles need not compose to `profile`: a selection costs
        more than the run that it repeats, but less than all runs together.
    assumptions : sequence of str, default=()
        Assumptions of the guarantee, as plain sentences.
    neighbouring : str, default="add or remove one record"
        The neighbouring relation.
    bound : str, optional
        Name of the bound by which `profile` was computed.

    Attributes
    ----------
    epsilon : float
        The requested budget; by default, the actual cost. The guarantee is (`epsilon`,
        `delta`)-differential privacy.

    Notes
    -----
    The first line of the printed tree shows the requested epsilon and delta, and the spent epsilon
    if it is smaller. Every other figure is the cost of **that part considered separately, at the
    delta of the printed report**: the epsilon of its own profile at this delta. The figures of the
    parts therefore need not add up to the total, which follows from composing whole profiles. If
    the parts use the same records, each part also shows what it adds to all later ones. The last
    part adds its own cost, so these figures sum to the total.

    Figures are rounded up, so that none is below the exact number.

    A pickle contains `epsilon` and `delta` as numbers, and how each profile was made (see
    `PrivacyProfile`). Other figures are computed by the version that shows them.

    Examples
    --------
    >>> from skdptune.accounting import Geometric, PrivacyProfile, PrivacyReport
    >>> scaling, run = PrivacyProfile.pure(0.125), PrivacyProfile.pure(0.25)
    >>> best = run.selected(Geometric(0.1))
    >>> report = PrivacyReport(
    ...     scaling + best,
    ...     delta=0.0,
    ...     epsilon=1.0,
    ...     name="DPRandomSearchCV",
    ...     assumptions=["the number of records is public"],
    ...     parts=[
    ...         PrivacyReport(scaling, 0.0, name="scaling"),
    ...         PrivacyReport(
    ...             best,
    ...             0.0,
    ...             name="selection",
    ...             note="mean 10 runs",
    ...             bound="envelope",
    ...             parts=[PrivacyReport(run, 0.0, name="one run")],
    ...         ),
    ...     ],
    ... )
    >>> print(report)
    DPRandomSearchCV: ε = 1.000 at δ = 0, spent 0.784 (add or remove one record)
    ├─ scaling                              ε = 0.125 alone, adds 0.125
    └─ selection (mean 10 runs) [envelope]  ε = 0.659 alone
       └─ one run                           ε = 0.250
    Each part's ε is its own cost at δ = 0; what is added, plus the last ε, sums to the total.
    Assumptions:
    - the number of records is public
    """

    profile: PrivacyProfile
    delta: float
    epsilon: float
    name: str
    note: str
    parts: tuple[PrivacyReport, ...]
    assumptions: tuple[str, ...]
    neighbouring: str
    bound: str | None

    def __init__(
        self,
        profile: PrivacyProfile,
        delta: float,
        *,
        epsilon: float | None = None,
        name: str = "release",
        note: str = "",
        parts: Sequence[PrivacyReport] = (),
        assumptions: Sequence[str] = (),
        neighbouring: str = "add or remove one record",
        bound: str | None = None,
    ) -> None:
        check_kind(profile, name="profile", kind=PrivacyProfile, domain="a PrivacyProfile")
        # Adding 0.0 turns -0.0, which would be shown with its sign, into 0.0.
        delta = check_real(delta, name="delta", lower=0.0, upper=1.0) + 0.0
        content = {
            "profile": profile,
            "delta": delta,
            "epsilon": _claimed_epsilon(epsilon, profile.epsilon(delta), delta),
            "name": _check_text(name, name="name"),
            "note": check_kind(note, name="note", kind=str, domain="a str"),
            "parts": _check_items(parts, name="parts", kind=PrivacyReport),
            "assumptions": _check_items(assumptions, name="assumptions", kind=str),
            "neighbouring": _check_text(neighbouring, name="neighbouring"),
            "bound": None if bound is None else _check_text(bound, name="bound"),
        }
        for key, value in content.items():
            object.__setattr__(self, key, value)

    @property
    def epsilon_spent(self) -> float:
        """The cost of `profile` at `delta`, which may be less than `epsilon`, the budget."""
        return self.epsilon_at(self.delta)

    def epsilon_at(self, delta: float) -> float:
        """Return the epsilon of the same release at another delta."""
        return self.profile.epsilon(delta)

    # Counting ------------------------------------------------------------------------------

    @property
    def fits_seen(self) -> int | None:
        """Number of fits of its class that this process has seen so far, including this one.

        It counts fits to tables with the same columns, whatever their records, but not those that
        were part of a search. None if it is unknown, as for a loaded report.
        """
        count = vars(self).get(_COUNTER)
        return None if count is None else count()

    def counted_by(self, counter: Callable[[], int]) -> None:
        """Set the function that returns `fits_seen`; it is neither compared nor pickled."""
        object.__setattr__(self, _COUNTER, counter)

    def __getstate__(self) -> dict[str, Any]:
        """Return the content for pickling. Other processes have other counts."""
        return {key: value for key, value in vars(self).items() if key != _COUNTER}

    # Display -------------------------------------------------------------------------------

    def __str__(self) -> str:
        """Return the tree of parts as text."""
        return to_text(view_of(self))

    def __repr__(self) -> str:
        """Return the guarantee as one line."""
        name = one_line(self.name)
        if len(name) > _LONGEST_NAME_IN_REPR:
            name = name[: _LONGEST_NAME_IN_REPR - 1] + "…"
        epsilon, delta = shown_number(self.epsilon), shown_delta(self.delta)
        return (
            f"PrivacyReport({name!r}, epsilon={epsilon}, delta={delta}, parts={len(self.parts)})"
        )

    def _repr_html_(self) -> str:
        """Return the tree of parts as HTML for notebooks."""
        return to_html(view_of(self))

    # Statements ----------------------------------------------------------------------------

    def statement(self, **about: Any) -> PrivacyStatement:
        """Return a page for an auditor, and for OpenDP's registry of deployments.

        Parameters
        ----------
        **about
            Facts that only the curator knows, all optional: `name`, `curators` (a list),
            `description`, `intended_use`, `region`, `unit` (whom a record represents), `domain`,
            `collection`, `actors`, `access`, `security`, `utility`, `post_processing`,
            `justification`, `publication_date`, `product_type`, `sector`, `data_source`, `authors`
            (a list, of the record), `sources`, `notes`.

        Returns
        -------
        PrivacyStatement
            It prints as a page; its `to_registry_yaml` writes a draft for the registry.
        """
        return PrivacyStatement(_facts_of(self), about)

    def to_registry_yaml(self, **about: Any) -> str:
        """Return ``statement(**about).to_registry_yaml()``."""
        return self.statement(**about).to_registry_yaml()

    # Storage -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for strict JSON, from which `from_dict` restores the report.

        Profiles are written as upper bounds of a few kilobytes (see `PrivacyProfile.to_dict`). Up
        to rounding, they cost the same at every delta at which this report and its parts show
        figures: at their own. At other deltas, they cost at most 0.1 % more. Pickles are exact.
        """
        return self._to_dict(())

    def _to_dict(self, deltas: tuple[float, ...]) -> dict[str, Any]:
        """Return `to_dict` of a part, which is also shown at the deltas of enclosing reports."""
        deltas = (*deltas, self.delta)
        return {
            "format": _FORMAT,
            "name": self.name,
            "note": self.note,
            "bound": self.bound,
            "neighbouring": self.neighbouring,
            "epsilon": "inf" if math.isinf(self.epsilon) else self.epsilon,
            "delta": self.delta,
            "assumptions": list(self.assumptions),
            "profile": self.profile.to_dict(deltas),
            "parts": [part._to_dict(deltas) for part in self.parts],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> PrivacyReport:
        """Restore a report from the result of `to_dict`.

        The content is validated like any other arguments: a stored epsilon below the cost of the
        stored profile is refused.
        """
        _check_keys(content)
        given = {key: content[key] for key in _KEYS if key != "format"}
        if given["epsilon"] == "inf":
            given["epsilon"] = math.inf
        # A missing epsilon must not silently become the cost.
        given["epsilon"] = check_real(given["epsilon"], name="epsilon", lower=0.0)
        given["profile"] = _read_profile(given["profile"])
        parts = check_kind(given["parts"], name="parts", kind=list, domain="a list of dicts")
        given["parts"] = [cls.from_dict(part) for part in parts]
        return cls(**given)

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as strict JSON: without NaN and infinities."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> PrivacyReport:
        """Restore a report from the result of `to_json`."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError("text must be JSON written by to_json; got something else.") from None
        return cls.from_dict(content)


# Display ---------------------------------------------------------------------------------


def view_of(report: PrivacyReport) -> ReportView:
    """Return the texts and figures that are shown of a report."""
    asked, spent = shown_epsilon(report.epsilon), shown_epsilon(report.epsilon_spent)
    relation = one_line(report.neighbouring)
    added = added_epsilons(report)[1]
    # A cost that exceeds the budget by rounding counts as equal to the budget.
    is_less = report.epsilon_spent < report.epsilon and spent != asked
    return ReportView(
        top=_row(report, asked, report.delta, relation, added),
        is_divided=any(map(math.isfinite, added)),
        delta=shown_delta(report.delta),
        spent=shown_number(report.epsilon_spent) if is_less else "",
        neighbouring=relation,
        assumptions=tuple(
            dict.fromkeys(one_line(one) for part in _parts_in(report) for one in part.assumptions)
        ),
    )


def _row(
    report: PrivacyReport, figure: str, delta: float, relation: str, added: Sequence[float] = ()
) -> Row:
    """Return one line of the tree and those below it, with their costs at ``delta``."""
    own_relation = one_line(report.neighbouring)
    remarks = [one_line(report.note), "" if own_relation == relation else own_relation]
    figures = figures_of_parts([part.epsilon_at(delta) for part in report.parts], added)
    rows = (
        _row(part, shown, delta, relation)
        for part, shown in zip(report.parts, figures, strict=True)
    )
    return Row(
        name=one_line(report.name),
        remark="; ".join(filter(None, remarks)),
        bound=one_line(report.bound or ""),
        figure=figure,
        rows=tuple(rows),
    )


# Parts whose total is below this share of their composition use different records.
_COMPOSED = 0.99


def added_epsilons(report: PrivacyReport) -> tuple[float | None, list[float]]:
    """Return the composed cost of a report's parts, and what each part adds to the later ones.

    The shares are NaN if the total is less than the composition, because then the parts use
    different records.
    """
    total, later = report.epsilon_spent, PrivacyProfile.pure(0.0)
    reached = [0.0]
    for part in reversed(report.parts):
        later = part.profile + later
        reached.append(later.epsilon(report.delta))
    composed = reached[-1] if report.parts else None
    if math.isinf(reached[-1]) or total < _COMPOSED * reached[-1]:
        return composed, [math.nan] * len(report.parts)
    # Composing on a grid rounds up by an invisible amount.
    rounded = [min(each, total) for each in reached]
    steps = [max(after - before, 0.0) for before, after in itertools.pairwise(rounded)]
    return composed, steps[::-1]


def figures_of_parts(alone: Sequence[float], added: Sequence[float]) -> list[str]:
    """Return the text on each part's cost: its own, and what it adds to the later parts.

    The latter is left out for the last part, and for parts that use different records.
    """
    figures = [shown_epsilon(each) for each in alone]
    if len(figures) < 2 or not len(added):
        return figures
    is_divided = all(map(math.isfinite, added))
    return [
        f"{figure} alone" + (f", {adds(more)}" if is_divided and index < len(alone) - 1 else "")
        for index, (figure, more) in enumerate(zip(figures, added, strict=True))
    ]


def adds(added: float) -> str:
    """Return the amount that a part adds, as text."""
    return f"adds {shown_number(added)}" if added > 0.0 else "adds nothing"


# Statements --------------------------------------------------------------------------------


def _facts_of(report: PrivacyReport) -> ReleaseFacts:
    view = view_of(report)
    bounds = ", ".join(dict.fromkeys(filter(None, (part.bound for part in _parts_in(report)))))
    by_bound = f" A private selection is bounded by: {bounds}." if bounds else ""
    return ReleaseFacts(
        name=one_line(report.name),
        epsilon=report.epsilon,
        delta=report.delta,
        neighbouring=view.neighbouring,
        unit="",
        assumptions=view.assumptions,
        composition=(
            "The privacy profiles of all parts, their epsilon at every delta, are composed "
            f"numerically, and rounded so that no error makes the total too small.{by_bound}"
        ),
        tuning=_tuning_in(report),
        other_releases=(
            "Not known from this release: costs of several releases from the same data add up. A "
            f"PrivacyLedger records them. {_fits_in(report)}"
        ),
        tree=to_text(view),
        is_continual=False,
    )


def _tuning_in(report: PrivacyReport) -> str:
    """Return whether tuning is part of a release, as a sentence, from the tree of its parts."""
    if includes_tuning(part.name for part in _parts_in(report)):
        parts = "; ".join(
            one_line(part.name) + (f" ({one_line(part.note)})" if part.note else "")
            for part in report.parts
        )
        return (
            "Yes. All fits of the search, their scores, the choice and the final fit are part of "
            f"the guarantee: {parts or one_line(report.name)}."
        )
    return (
        "No search is part of this release. Parameters that were chosen by trying them out on the "
        f"same data are not accounted for here. {_fits_in(report)} Preprocessing that learns from "
        "data is accounted for where it is among the parts below."
    )


def _fits_in(report: PrivacyReport) -> str:
    """Return sentences about the number of fits in this process, for each part that knows it."""
    counts = {
        one_line(part.name): count
        for part in _parts_in(report)
        if (count := part.fits_seen) is not None
    }
    if not counts:
        return "How many fits were made is not known here: this process has not seen them."
    shown = ", ".join(
        f"{count} fit{'' if count == 1 else 's'} of {name}" for name, count in counts.items()
    )
    return (
        f"This process has seen {shown} to tables with these columns, the released one among "
        "them. Fits in other processes, as in workers or before a restart, are not known."
    )


def _parts_in(report: PrivacyReport) -> Iterator[PrivacyReport]:
    yield report
    for part in report.parts:
        yield from _parts_in(part)


# Validation --------------------------------------------------------------------------------


def _claimed_epsilon(asked: float | None, cost: float, delta: float) -> float:
    """Return the requested epsilon if it covers the cost; raise if it does not."""
    if asked is None:
        return cost + 0.0
    epsilon = check_real(asked, name="epsilon", lower=0.0) + 0.0
    if cost > epsilon * (1.0 + _SLACK):
        raise ValueError(
            f"epsilon must be at least {shown(cost)}, the cost of the profile at "
            f"delta={shown(delta)}; got {shown(epsilon)}. Leave epsilon out to report the cost "
            "itself."
        )
    return epsilon


def _check_text(value: Any, *, name: str) -> str:
    """Return ``value`` if it is a str with visible characters, or raise."""
    text: str = check_kind(value, name=name, kind=str, domain="a str")
    if not one_line(text):
        raise ValueError(f"{name} must be a str with visible characters; got {shown(text)}.")
    return text


def _check_items(values: Any, *, name: str, kind: type) -> tuple[Any, ...]:
    """Return ``values`` as a tuple if it is a sequence of objects of the kind, or raise."""
    domain = f"a sequence of {kind.__name__}"
    if isinstance(values, kind):
        # In Python, a str is a sequence of str: its characters.
        raise TypeError(f"{name} must be {domain}; got one {kind.__name__}. Put it in a list.")
    check_kind(values, name=name, kind=Sequence, domain=domain)
    for index, value in enumerate(values):
        check_kind(value, name=f"{name}[{index}]", kind=kind, domain=f"a {kind.__name__}")
        if kind is str:
            _check_text(value, name=f"{name}[{index}]")
    return tuple(values)


def _check_keys(content: Any) -> None:
    """Raise unless ``content`` has the format and the keys that `to_dict` writes."""
    check_kind(content, name="content", kind=Mapping, domain="a dict written by to_dict")
    written = content.get("format")
    if isinstance(written, bool) or written != _FORMAT:
        raise ValueError(
            f"format must be {_FORMAT}; got {shown(written)}. Another version of skdptune may "
            "have written this report."
        )
    missing = [key for key in _KEYS if key not in content]
    unknown = [key for key in content if key not in _KEYS]
    if missing or unknown:
        raise ValueError(
            "content must be a dict written by to_dict; got one with missing keys "
            f"[{shown_names(missing)}] and unknown keys [{shown_names(unknown)}]."
        )


def _read_profile(content: Any) -> PrivacyProfile:
    """Return the stored profile; any damage raises the same kind of error."""
    try:
        return PrivacyProfile.from_dict(content)
    except Exception as error:
        # Damaged bytes may raise various errors: in the base64, the compression or the numbers.
        raise ValueError(
            "profile must be a dict written by PrivacyProfile.to_dict; got a damaged one "
            f"({shown(error)})."
        ) from None


# The shown content of a report, and its format as plain text -----------------------------

_WIDEST_COLUMN = 72


@dataclass(frozen=True)
class Row:
    """One line of a report's tree, and the lines below it."""

    name: str
    remark: str
    bound: str
    figure: str
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True)
class ReportView:
    """The shown content of a report: single lines of text, and rounded figures."""

    top: Row
    delta: str
    spent: str
    neighbouring: str
    assumptions: tuple[str, ...] = ()
    # Whether the total is divided into what parts add.
    is_divided: bool = False

    @property
    def caption(self) -> str:
        """Explanation of the figures of the parts."""
        sums = "the parts need not add up to the total"
        if self.is_divided and len(self.top.rows) > 1:
            sums = "what is added, plus the last ε, sums to the total"
        return f"Each part's ε is its own cost at δ = {self.delta}; {sums}."


def one_line(text: str) -> str:
    """Return text without line breaks and control characters, which would break the tree."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def to_text(view: ReportView) -> str:
    """Return a report as text with box characters, with its figures in one column."""
    spent = f", spent {view.spent}" if view.spent else ""
    lines = [
        f"{_label(view.top)}: {view.top.figure} at δ = {view.delta}{spent} ({view.neighbouring})"
    ]
    branches = list(_branches(view.top.rows))
    # A single very long label must not move all figures far to the right.
    widths = [len(label) for label, _ in branches if len(label) <= _WIDEST_COLUMN]
    width = max(widths, default=0)
    lines += [f"{label:<{width}}  {figure}" for label, figure in branches]
    if branches:
        lines.append(view.caption)
    if view.assumptions:
        lines += ["Assumptions:", *(f"- {sentence}" for sentence in view.assumptions)]
    return "\n".join(lines)


def _branches(rows: Sequence[Row], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the label of each row with its branch of the tree, and its figure."""
    for index, row in enumerate(rows):
        is_last = index == len(rows) - 1
        yield prefix + ("└─ " if is_last else "├─ ") + _label(row), row.figure
        yield from _branches(row.rows, prefix + ("   " if is_last else "│  "))


def _label(row: Row) -> str:
    remark = f" ({row.remark})" if row.remark else ""
    return row.name + remark + (f" [{row.bound}]" if row.bound else "")


# HTML for notebooks ----------------------------------------------------------------------

_LINE = "display:flex;gap:1.5em;justify-content:space-between"
# The folding marks are outside, so that names and figures of all lines are aligned.
_FOLD = "cursor:pointer;display:list-item;list-style-position:outside;margin-left:1.2em"
_LEAF = f"{_LINE};margin-left:1.2em"
_FIGURE = "white-space:nowrap;font-variant-numeric:tabular-nums"
_WARNING = f"white-space:nowrap;{RED}"
_SMALL = f"margin:.6em 0 0;font-size:.9em;{QUIET}"
_BOUND = f"margin-left:.4em;white-space:nowrap;{BADGE}"
_OPEN_LEVELS = 2


def to_html(view: ReportView) -> str:
    """Return a report as an HTML fragment in which all text is escaped."""
    pieces = [_heading(view)]
    if view.top.rows:
        tree = "".join(_branch(row, level=1) for row in view.top.rows)
        caption = f'<div style="{_SMALL}">{escape(view.caption)}</div>'
        pieces += [f'<div style="margin-top:.5em">{tree}</div>', caption]
    if view.assumptions:
        sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in view.assumptions)
        listed = f'<ul style="margin:.2em 0 0;padding-left:1.4em">{sentences}</ul>'
        pieces.append(f'<div style="margin-top:.6em;font-size:.9em">Assumptions:{listed}</div>')
    return box("".join(pieces), width="46em")


def _heading(view: ReportView) -> str:
    spent = f", spent {escape(view.spent)}" if view.spent else ""
    return (
        f"{title(_html_label(view.top))}<div>"
        f"{_figure(view.top.figure)} at δ = {escape(view.delta)}{spent} "
        f'<span style="{QUIET}">({escape(view.neighbouring)})</span></div>'
    )


def _branch(row: Row, level: int) -> str:
    """Return a line of the tree, which can be folded if there are lines below it."""
    content = f"<span>{_html_label(row)}</span>{_figure(row.figure)}"
    if not row.rows:
        return f'<div style="{_LEAF}">{content}</div>'
    below = "".join(_branch(child, level + 1) for child in row.rows)
    state = ' open=""' if level <= _OPEN_LEVELS else ""
    return (
        f'<details{state}><summary style="{_FOLD}">'
        f'<span style="{_LINE}">{content}</span></summary>'
        f'<div style="{INSIDE}">{below}</div></details>'
    )


def _html_label(row: Row) -> str:
    remark = f' <span style="{QUIET}">({escape(row.remark)})</span>' if row.remark else ""
    bound = f'<span style="{_BOUND}">{escape(row.bound)}</span>' if row.bound else ""
    return escape(row.name) + remark + bound


def _figure(figure: str) -> str:
    style = _WARNING if figure == NOT_PRIVATE else _FIGURE
    return f'<span style="{style}">{escape(figure)}</span>'
