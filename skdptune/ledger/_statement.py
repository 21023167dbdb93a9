"""What a ledger knows of all releases from a data set, for a statement about them."""

from __future__ import annotations

from collections.abc import Sequence

from skdptune.accounting import ReleaseFacts, includes_tuning, one_line
from skdptune.ledger._books import Terms
from skdptune.ledger._record import LedgerRecord
from skdptune.ledger._report import LedgerReport


def facts_of(terms: Terms, records: Sequence[LedgerRecord], report: LedgerReport) -> ReleaseFacts:
    """Return what is known of all releases: they stay within the budget, also those to come."""
    spent = [record for record in records if record.is_spent]
    sentences = (one_line(sentence) for record in spent for sentence in record.assumptions)
    return ReleaseFacts(
        name=one_line(terms.dataset),
        epsilon=terms.epsilon,
        delta=terms.delta,
        neighbouring=_neighbouring(spent),
        unit=one_line(terms.unit),
        assumptions=tuple(dict.fromkeys(sentences)),
        composition=(
            "Each release is admitted before it reads the data, and only if all releases together "
            "stay within the budget: by the sum of the shares that they take of it, or by the sum "
            "of the squared shifts of Gaussian mechanisms that cover them. Both hold also where "
            "costs are chosen in view of earlier results."
        ),
        tuning=_tuning(spent),
        other_releases=(
            f"Recorded since {terms.created[:10]}: {len(spent)}. All releases that draw "
            "from the ledger, past and future, are within the guarantee; none but these may "
            "be made from the data."
        ),
        tree=str(report),
        is_continual=True,
    )


def _neighbouring(records: Sequence[LedgerRecord]) -> str:
    found = dict.fromkeys(getattr(record, "neighbouring", None) for record in records)
    return "; ".join(filter(None, found)) or "as the releases state"


def _tuning(records: Sequence[LedgerRecord]) -> str:
    """Say which of the releases tune within their cost, by their names."""
    searches = sorted({one_line(r.name) for r in records if includes_tuning([r.name])})
    beyond = (
        "Every fit that the ledger records counts, also one that was made to try parameters out; "
        "one that it does not record is not accounted for."
    )
    if not searches:
        return f"No release is a search for hyperparameters. {beyond}"
    return f"Yes, in full by {', '.join(searches)}: fits, scores, choice and final fit. {beyond}"
