"""Which differences a claim allows, value by value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skdptune.testing._replay._differences import (
    Difference,
    Mask,
    difference,
    least_shift,
    size_power,
    tables,
)
from skdptune.testing._replay._published import MISSING, Leaf, Leaves, Whole, same
from skdptune.testing._replay._result import (
    COVERED,
    IDENTICAL,
    NO_NOISE,
    NOT_COMPARED,
    PRIVATE_SIZE,
    PUBLIC_SIZE,
    TOO_FAR,
    Row,
)

ADDED = "record added"
REPLACED = "record replaced"
# Of seeds that agree in a choice, from which on messages state it.
_LARGEST_CHANCE = 0.01
_TOGETHER = "all numbers together"
_WHEN = {ADDED: "when a record is added", REPLACED: "when a record is replaced"}


@dataclass(frozen=True)
class Claim:
    """What is allowed to differ.

    Attributes
    ----------
    shift : float
        Most by which a mean may move from neighbour to neighbour, in standard deviations.
    chances : dict
        By neighbours, the chance with which values without noise may differ.
    adds : bool
        Whether data sets with and without a record are neighbours.
    replacing : int
        Number of steps from neighbour to neighbour that replacing a record takes.
    size_is_public : bool
        Whether values may follow from the number of records.
    compares_sizes : bool
        Whether noisy values are compared between numbers of records.
    n_samples : int
        Number of records without the added one.
    """

    shift: float
    chances: dict[str, float]
    adds: bool
    replacing: int
    size_is_public: bool
    compares_sizes: bool
    n_samples: int

    def allowed(self, neighbours: str) -> float:
        """Return the most by which a mean may move."""
        return self.shift * (self.replacing if neighbours == REPLACED else 1)


@dataclass(frozen=True)
class Replays:
    """What the same seeds have published on each data set, and once on other records."""

    without: Sequence[Leaves]
    added: Sequence[Leaves]
    replaced: Sequence[Leaves]
    constant: Leaves | None

    def places(self) -> list[str]:
        """Return the places of all values, in their order."""
        runs = (*self.without, *self.added, *self.replaced)
        return list(dict.fromkeys(place for leaves in runs for place in leaves))


@dataclass(frozen=True)
class _Value:
    """One value on all data sets."""

    place: str
    without: Sequence[Leaf]
    added: Sequence[Leaf]
    replaced: Sequence[Leaf]
    constant: Leaf | None

    @property
    def is_missing(self) -> bool:
        """Whether some fits do not have it."""
        sides = (*self.without, *self.added, *self.replaced)
        return any(leaf is MISSING for leaf in sides)


def judged(replays: Replays, claim: Claim) -> list[Row]:
    """Return one row per value, and one for all noisy numbers together."""
    values = [_value(replays, place) for place in replays.places()]
    known = _ways([value.place for value in values if not value.is_missing])
    rows = [_named(_row(value, claim), known) for value in values]
    together = _together(values, claim)
    return rows if together is None else [*rows, together]


def judged_sizes(replays: Replays, claim: Claim, fixed: Collection[str]) -> list[Row]:
    """Return rows of values that follow from the number of records, or are scaled by it.

    Parameters
    ----------
    replays : Replays
        Of few seeds.
    claim : Claim
    fixed : collection of str
        Places of values that many seeds have not changed.
    """
    rows: list[Row] = []
    for place in replays.places():
        value = _value(replays, place)
        row = _constant_row(value, claim) if place in fixed else None
        rows += [row] if row is not None else _scaled_rows(value, claim)
    known = _ways([place for place in replays.places() if not _value(replays, place).is_missing])
    return [_named(row, known) for row in rows]


def noiseless(replays: Replays) -> list[str]:
    """Return the places of values that no seed changes."""
    found = []
    for place in replays.places():
        value = _value(replays, place)
        sides = (value.without, value.added, value.replaced)
        if all(same(leaf, side[0]) for side in sides for leaf in side):
            found.append(place)
    return found


def _ways(places: Sequence[str]) -> set[str]:
    """Return places, and the ways to them."""
    return {place[:end] for place in places for end in (len(place), *_ends(place))}


def _ends(place: str) -> list[int]:
    return [end for end, character in enumerate(place) if character in ".[ "]


def _named(row: Row, known: set[str]) -> Row:
    """Return a row without names that some fits do not have, which may be somebody's data."""
    if row.attribute in known:
        return row
    ends = [end for end in _ends(row.attribute) if row.attribute[:end] in known]
    way = row.attribute[: max(ends, default=0)]
    return replace(row, attribute=f"{way} (not in all fits)".strip())


def _value(replays: Replays, place: str) -> _Value:
    def at(runs: Sequence[Leaves]) -> list[Leaf]:
        return [leaves.get(place, MISSING) for leaves in runs]

    constant = replays.constant.get(place, MISSING) if replays.constant is not None else None
    return _Value(place, at(replays.without), at(replays.added), at(replays.replaced), constant)


def _row(value: _Value, claim: Claim) -> Row:
    found = _constant_row(value, claim)
    if found is not None and found.is_finding:
        return found
    compared = list(_noisy_rows(value, claim))
    findings = [row for row in compared if row.is_finding]
    if findings:
        return findings[0]
    if found is not None:
        return found
    if not compared:
        return Row(value.place, ADDED, IDENTICAL)
    # The pair that says most: with the noise replayed, and the largest share of what is allowed.
    return max(compared, key=lambda row: (row.replayed is True, (row.moved or 0.0)))


def _constant_row(value: _Value, claim: Claim) -> Row | None:
    """Return the row of a value with numbers that differ and carry no noise; None without."""
    replaced = difference(value.added, value.replaced).free
    added = difference(value.without, value.added).free
    if replaced.any() or (added.any() and not _follows_from_size(value, added)):
        # One step from neighbour to neighbour says more than two.
        is_one_step = claim.adds and added.any()
        return _without_noise(value.place, ADDED if is_one_step else REPLACED, claim)
    if not added.any():
        return None
    if claim.size_is_public:
        return Row(value.place, ADDED, PUBLIC_SIZE)
    return Row(value.place, ADDED, PRIVATE_SIZE, message=_OF_SIZE)


_OF_SIZE = (
    "follows from the real number of records, which no assumption of the estimator states to be "
    'public: use a public constant in its place, or state "the number of records is public"'
)


def _without_noise(place: str, neighbours: str, claim: Claim) -> Row:
    # Theorem V2.
    message = (
        f"differs {_WHEN[neighbours]}, and no seed changes it: it carries no noise (with noise as "
        f"claimed, such agreement of all seeds has chance at most {claim.chances[neighbours]:.1g})"
    )
    return Row(place, neighbours, NO_NOISE, message=message)


def _follows_from_size(value: _Value, differs: Mask) -> bool:
    """Return whether numbers that change with the number of records are the same for all data."""
    if value.constant is None:
        return True
    one, other = value.added[0], value.constant
    if isinstance(one, Whole) or isinstance(other, Whole):
        return same(one, other)
    if other.size < differs.size:
        return False
    return bool((one[: differs.size] == other[: differs.size])[differs].all())


def _noisy_rows(value: _Value, claim: Claim) -> Iterator[Row]:
    pairs = {REPLACED: (value.added, value.replaced)}
    if claim.compares_sizes:
        pairs = {ADDED: (value.without, value.added), **pairs}
    for neighbours, (first, second) in pairs.items():
        found = difference(first, second)
        if not found.is_comparable:
            yield Row(value.place, neighbours, NOT_COMPARED)
        elif found.noisy.any():
            one, other = tables(first, second)
            columns = one[:, found.noisy], other[:, found.noisy]
            yield _shifted(value.place, neighbours, *columns, found, claim)
    yield from _scaled_rows(value, claim)


def _shifted(
    place: str,
    neighbours: str,
    one: np.ndarray,
    other: np.ndarray,
    found: Difference,
    claim: Claim,
) -> Row:
    # Theorem V1.
    moved, allowed = least_shift(one, other), claim.allowed(neighbours)
    is_too_far = moved > allowed
    message = (
        f"moves by at least {moved:.3g} standard deviations of its noise {_WHEN[neighbours]}; the "
        f"claim allows {allowed:.3g}"
    )
    # Theorem V2.
    if claim.chances[neighbours] > _LARGEST_CHANCE:
        message += (
            f" (a choice between few values would look so with chance at most "
            f"{claim.chances[neighbours]:.1g}; more seeds would tell)"
        )
    return Row(
        place,
        neighbours,
        TOO_FAR if is_too_far else COVERED,
        moved=moved,
        allowed=allowed,
        replayed=found.replayed,
        message=message if is_too_far else "",
    )


def _scaled_rows(value: _Value, claim: Claim) -> Iterator[Row]:
    """Yield a finding if noisy numbers are scaled by the private number of records."""
    found = difference(value.without, value.added)
    if claim.size_is_public or not found.is_comparable or not found.noisy.any():
        return
    one, other = tables(value.without, value.added)
    power = size_power(one[:, found.noisy], other[:, found.noisy], claim.n_samples)
    if power is not None:
        message = f"is scaled with its noise by n ** {-power:g}, n the private number of records: "
        yield Row(value.place, ADDED, PRIVATE_SIZE, replayed=True, message=message + _OF_SCALE)


_OF_SCALE = "use a public constant in its place, or state that it is public"


def _together(values: Sequence[_Value], claim: Claim) -> Row | None:
    """Return the row of all noisy numbers that a fit stores, which one record may move at once."""
    stored = [value for value in values if not value.place.endswith("(X)")]
    compared = []
    for neighbours in (ADDED, REPLACED) if claim.compares_sizes else (REPLACED,):
        sides: list[tuple[np.ndarray, np.ndarray]] = []
        for value in stored:
            pair = (value.without, value.added)
            first, second = pair if neighbours == ADDED else (value.added, value.replaced)
            found = difference(first, second)
            if found.is_comparable and found.noisy.any():
                one, other = tables(first, second)
                sides.append((one[:, found.noisy], other[:, found.noisy]))
        if len(sides) > 1:
            one, other = (np.hstack(side) for side in zip(*sides, strict=True))
            same_noise = Difference(np.zeros(1, bool), True, np.ones(1, bool), None)
            compared.append(_shifted(_TOGETHER, neighbours, one, other, same_noise, claim))
    return max(compared, key=lambda row: (row.is_finding, row.moved or 0.0), default=None)
