"""The result of comparing fits on neighbouring data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skdptune._formatting import shown_delta, shown_number

# The place at which it is stored how a fit ended.
FIT = "fit"
# Results that are correct or cannot be compared.
IDENTICAL = "identical"
COVERED = "covered by noise"
NOT_COMPARED = "not compared"
PUBLIC_SIZE = "follows from the public size"
_ALL_RIGHT = (IDENTICAL, COVERED, NOT_COMPARED, PUBLIC_SIZE)
# Results that are findings.
NO_NOISE = "differs without noise"
TOO_FAR = "moves too far"
PRIVATE_SIZE = "follows from the private size"

_MOST_NAMES = 12
_PARTS = re.compile(r"[ .\[]")


@dataclass(frozen=True)
class Row:
    """The comparison of one published value.

    Attributes
    ----------
    attribute : str
    neighbours : str
        The pair of data sets for which the value differs most.
    result : str
        A kind of finding, or "identical", "covered by noise", "not compared" or "follows from the
        public size".
    moved : float or None
        Lower bound on the shift of its mean, in standard deviations of its noise.
    allowed : float or None
        Largest shift that the claim allows.
    replayed : bool or None
        Whether its noise was the same on both sides; None if it has no noise.
    message : str
        Description of the fault in a finding. It contains no values of the data.
    """

    attribute: str
    neighbours: str
    result: str
    moved: float | None = None
    allowed: float | None = None
    replayed: bool | None = None
    message: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether the claim does not allow this result."""
        return self.result not in _ALL_RIGHT

    @property
    def kind(self) -> str:
        """The result, as the kind of a finding."""
        return self.result


@dataclass(frozen=True, repr=False)
class NeighbourReplay:
    """Result of `replay_neighbours`, which prints as a table.

    Attributes
    ----------
    estimator : str
        Name of the estimator's class.
    n_repeats : int
        Number of seeds.
    epsilon, delta : float
        The privacy that the estimator claims.
    neighbouring : str
        The neighbouring relation of the claim.
    rows : tuple
        One comparison per published value, with `attribute`, `neighbours`, `result`, `moved`,
        `allowed`, `replayed` and `message`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.preprocessing import DPStandardScaler
    >>> from skdptune.testing import replay_neighbours
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(100, 2))
    >>> scaler = DPStandardScaler(epsilon=1.0, delta=0.0, bounds=(-1, 1), with_std=False)
    >>> result = replay_neighbours(scaler, X, None, [50.0, 50.0], n_repeats=10)
    >>> result.assert_passes()
    >>> for line in str(result).splitlines()[2:5]:
    ...     print(line)
    value         neighbours       noise     moved  allowed  result
    mean_         record replaced  replayed  0.256  2.08     covered by noise
    transform(X)  record replaced  replayed  0.256  2.08     covered by noise
    """

    estimator: str
    n_repeats: int
    epsilon: float
    delta: float
    neighbouring: str
    rows: tuple[Row, ...]

    @property
    def findings(self) -> list[Row]:
        """Differences that the claim does not allow; empty if nothing was found.

        Each has an `attribute`, such as ``"coef_"`` or ``"predict(X)"``, a `kind`, `neighbours`
        and a `message`.
        """
        return [row for row in self.rows if row.is_finding]

    @property
    def not_replayed(self) -> list[str]:
        """Values whose noise could not be repeated, so that only averages were compared."""
        return [row.attribute for row in self.rows if row.replayed is False]

    @property
    def not_compared(self) -> list[str]:
        """Values that depend on the seed and are not numbers: they cannot be compared."""
        return [row.attribute for row in self.rows if row.result == NOT_COMPARED]

    def assert_passes(self, *, needs_replay: bool = True) -> None:
        """Raise if there are findings, or if nothing could have been found.

        Parameters
        ----------
        needs_replay : bool, default=True
            Whether to raise also if there is noise and none of it could be repeated, for example
            if an estimator has no ``random_state``. Averages over fits then show much less.

        Raises
        ------
        AssertionError
            The message lists all findings.
        """
        found = [f"{finding.attribute} {finding.message}" for finding in self.findings]
        noisy = [row.replayed for row in self.rows if row.replayed is not None]
        if self._is_empty:
            found.append(_TOO_FEW)
        if needs_replay and noisy and not any(noisy):
            found.append(
                "no seed repeats the noise, so few faults can be detected; needs_replay=False "
                "accepts that"
            )
        if found:
            raise AssertionError(
                f"{self.estimator} publishes more than it claims:\n- " + "\n- ".join(found)
            )

    def __repr__(self) -> str:
        """Return the result as one line."""
        return (
            f"NeighbourReplay({self.estimator}, findings={len(self.findings)}, "
            f"values={len(self.rows)}, n_repeats={self.n_repeats})"
        )

    def __str__(self) -> str:
        """Return the result as a table."""
        return "\n".join(self._lines())

    @property
    def _is_empty(self) -> bool:
        """Whether nothing was compared except how fits ended."""
        return all(row.attribute == FIT for row in self.rows)

    def _lines(self) -> Iterator[str]:
        claim = f"epsilon = {shown_number(self.epsilon)}"
        if self.delta > 0.0:
            claim += f" at delta = {shown_delta(self.delta)}"
        yield f"{self.estimator}: {claim}, {self.neighbouring}; {self.n_repeats} seeds"
        shown = [row for row in self.rows if row.result not in (IDENTICAL, PUBLIC_SIZE)]
        # Findings come first.
        shown.sort(key=lambda row: not row.is_finding)
        if shown:
            yield ""
            yield from _table([_HEADINGS, *map(_cells, shown)])
        yield ""
        for result in (IDENTICAL, PUBLIC_SIZE):
            yield from _listed(result, [row for row in self.rows if row.result == result], shown)
        yield from _listed("noise not replayed", [r for r in self.rows if r.replayed is False])
        if self._is_empty:
            yield _TOO_FEW
        count = len(self.findings)
        yield f"{count} finding{'' if count == 1 else 's'}" + (":" if count else "")
        yield from (f"- {finding.attribute} {finding.message}" for finding in self.findings)


_TOO_FEW = "nothing else was compared, since fits to all data sets returned for too few seeds"
_HEADINGS = ("value", "neighbours", "noise", "moved", "allowed", "result")


def _cells(row: Row) -> tuple[str, ...]:
    noise = {None: "-", True: "replayed", False: "not replayed"}[row.replayed]
    figures = ["-" if each is None else f"{each:.3g}" for each in (row.moved, row.allowed)]
    return (row.attribute, row.neighbours, noise, *figures, row.result)


def _table(lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()


def _listed(heading: str, rows: Sequence[Row], shown: Sequence[Row] = ()) -> Iterator[str]:
    """Yield a line with the names of attributes that are not in a table, if there are any."""
    if not rows:
        return
    known = {_attribute(row) for row in shown}
    names = [name for name in dict.fromkeys(map(_attribute, rows)) if name and name not in known]
    rest = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    listed = f": {', '.join(names[:_MOST_NAMES])}{rest}" if names else ""
    yield f"{heading} ({len(rows)}){listed}"


def _attribute(row: Row) -> str:
    """Return the name of the attribute that contains a value; "" for the object's own type."""
    return _PARTS.split(row.attribute)[0].partition("(type)")[0]
