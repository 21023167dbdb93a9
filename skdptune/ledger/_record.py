"""What a ledger shows of one reservation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class LedgerRecord:
    """One reservation of a ledger: what was asked for, when, at which cost, and what became of it.

    Parameters
    ----------
    sequence : int
        Number of the reservation's event. Records are in this order, whatever clocks said.
    reservation : str
        Identifier.
    name : str
        What it is for, such as the estimator's name.
    status : {"reserved", "read", "confirmed", "cancelled"}
        All but "cancelled" count as spent.
    epsilon : float
        What the release costs by itself, at the delta of the ledger; may be infinite.
    delta : float
        Delta of the ledger.
    share : float
        Part of the budget that it takes if shares are added up (Theorem H1).
    profile : str
        Key of its profile, equal for equal profiles.
    time, changed : str
        When it was reserved, and when its status last changed, by the clock of the machine, in
        UTC.
    version : str
        Version of skdptune that reserved it.
    assumptions : tuple of str
        What must hold for its cost.
    details : dict
        Public facts, as given.
    who : str
        Who reserved it, as "ana@server"; empty in entries of older versions.
    note : str
        A text of the user's, maybe empty.
    reason : str
        Why it was cancelled.
    neighbouring : str
        How the neighbouring data sets differ that the cost is about.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile
    >>> from skdptune.ledger import PrivacyLedger
    >>> ledger = PrivacyLedger(":memory:", "patients", epsilon=3.0, delta=1e-5)
    >>> with ledger.reserve(PrivacyProfile.pure(0.5), name="mean age"):
    ...     pass
    >>> (record,) = ledger.history()
    >>> record.name, record.status, round(record.epsilon, 3)
    ('mean age', 'confirmed', 0.5)
    """

    sequence: int
    reservation: str
    name: str
    status: str
    epsilon: float
    delta: float
    share: float
    profile: str
    time: str
    changed: str
    version: str
    assumptions: tuple[str, ...]
    details: dict[str, Any]
    who: str
    note: str
    reason: str
    neighbouring: str

    @property
    def is_spent(self) -> bool:
        """Whether it counts towards the budget."""
        return self.status != "cancelled"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, fit for strict JSON: an infinite epsilon is "inf"."""
        content = asdict(self)
        content["assumptions"] = list(self.assumptions)
        content["epsilon"] = "inf" if self.epsilon == float("inf") else self.epsilon
        return content


def who_of(content: dict[str, Any]) -> str:
    """Return who recorded an event; of an older version the machine, if it was kept."""
    return str(content.get("who") or content.get("host") or "")


def add_records(
    records: dict[str, LedgerRecord],
    events: Iterable[tuple[int, str, dict[str, Any]]],
    delta: float,
) -> None:
    """Add what later events say to the records of reservations, in the order of these."""
    found: dict[str, dict[str, Any]] = {}
    for sequence, reservation, content in events:
        values = found.setdefault(reservation, {})
        if content["event"] == "reserved":
            kept = ("name", "profile", "time", "version", "details", "neighbouring")
            values.update({key: content[key] for key in kept})
            values.update(
                sequence=sequence,
                reservation=reservation,
                epsilon=float(content["epsilon"]),
                delta=delta,
                share=content["charges"]["share"],
                assumptions=tuple(content["assumptions"]),
                who=who_of(content),
                note=content.get("note", ""),
            )
        values["status"], values["changed"] = content["event"], content["time"]
        values["reason"] = content.get("reason", "")
    for reservation, values in found.items():
        known = records.get(reservation)
        records[reservation] = replace(known, **values) if known else LedgerRecord(**values)
