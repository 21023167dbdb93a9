"""The storage of an adaptive search: what was begun is spent, whether or not it came to an end."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

_BEGUN, _SCORED, _FINAL = "begun:", "scored:", "final:"
_PLAN, _PROCESS = "plan", "process"
RUN = "run"


@dataclass(frozen=True)
class Begun:
    """A trial that was begun.

    Attributes
    ----------
    run : str
        Its name, another one in each process.
    number : int
    params : dict
        As optuna has them.
    shares : tuple of Fraction
        Of its fits that were begun.
    """

    run: str
    number: int
    params: dict[str, Any]
    shares: tuple[Fraction, ...]


class Journal:
    """Notes in an optuna study what a search begins, before data are read for it.

    Parameters
    ----------
    study : optuna.Study
        Of released values alone.

    Notes
    -----
    Theorem G6. A note is written first and the sum of all notes is looked at second, so that
    what was run was within the sum of what all processes had noted.
    """

    def __init__(self, study: Any) -> None:
        self._study = study
        self._process = uuid.uuid4().hex

    def open(self, plan: dict[str, str]) -> None:
        """Take over the study, or raise if it is one of another plan, or at its end."""
        known = self._study.user_attrs
        if _PLAN not in known:
            self._study.set_user_attr(_PLAN, plan)
        else:
            check_same_plan(known[_PLAN], plan, self._study.study_name)
        if any(name.startswith(_FINAL) for name in known):
            raise ValueError(
                f"study_name must be that of a search whose final fit has not begun; got "
                f"{self._study.study_name!r}. Its final fit is spent, whether or not it came to "
                "an end: take a new name, which costs as much again."
            )
        self._study.set_user_attr(_PROCESS, self._process)

    def begin(self, begun: Begun, most: int) -> None:
        """Note a trial's fit, or raise if it is no longer this process's to make."""
        self._study.set_user_attr(
            f"{_BEGUN}{begun.run}",
            {
                "number": begun.number,
                "params": begun.params,
                "shares": [str(share) for share in begun.shares],
            },
        )
        known = self._study.user_attrs
        if known.get(_PROCESS) != self._process:
            raise RuntimeError(
                f"storage must be used by one process at a time; another one has resumed "
                f"{self._study.study_name!r}. It counts what this one had begun."
            )
        if sum((share for one in begun_in(known) for share in one.shares), Fraction(0)) > most:
            raise RuntimeError(
                "storage must be used by one process at a time; got more than was paid for."
            )

    def begin_final(self) -> None:
        """Note the final fit, or raise if another process has begun it."""
        own = f"{_FINAL}{self._process}"
        self._study.set_user_attr(own, True)
        known = self._study.user_attrs
        others = [name for name in known if name.startswith(_FINAL) and name != own]
        if others or known.get(_PROCESS) != self._process:
            raise RuntimeError(
                "storage must be used by one process at a time; another one has begun the final "
                f"fit of {self._study.study_name!r}."
            )

    def note_score(self, run: str, place: int, splits: Sequence[float]) -> None:
        """Note a trial's noisy scores at a rung, after which it may go on."""
        known = self._study.user_attrs.get(f"{_SCORED}{run}", {})
        noted = {**known, str(place): list(map(float, splits))}
        self._study.set_user_attr(f"{_SCORED}{run}", noted)

    def scores(self, run: str) -> dict[int, tuple[float, ...]]:
        """Return what was noted of a trial's scores, by rung."""
        noted = self._study.user_attrs.get(f"{_SCORED}{run}", {})
        return {int(place): tuple(splits) for place, splits in noted.items()}

    def begun(self) -> list[Begun]:
        """Return all trials that were begun, by any process."""
        return begun_in(self._study.user_attrs)


def begun_in(attributes: dict[str, Any]) -> list[Begun]:
    """Return what the attributes of a study say was begun, in the order of trials."""
    # Storages return attributes in any order.
    found = [
        Begun(
            name[len(_BEGUN) :],
            kept["number"],
            kept["params"],
            tuple(map(Fraction, kept["shares"])),
        )
        for name, kept in attributes.items()
        if name.startswith(_BEGUN)
    ]
    return sorted(found, key=lambda begun: begun.number)


def check_same_plan(known: dict[str, str], plan: dict[str, str], name: str) -> None:
    """Raise if a stored plan is another one, saying what differs."""
    differing = sorted(
        key for key in known.keys() | plan.keys() if known.get(key) != plan.get(key)
    )
    if differing:
        key = differing[0]
        raise ValueError(
            f"study_name must be new, or that of a search with the same {', '.join(differing)}; "
            f"got {name!r}, whose {key} is {known.get(key)!s:.60} and not {plan.get(key)!s:.60}."
        )


def described(value: Any) -> str:
    """Return a text of a parameter that is the same in every process."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(described, value))}]"
    if not isinstance(value, type) and hasattr(value, "get_params"):
        # scikit-learn's own text leaves out what is long, in which two estimators may differ.
        own = sorted(
            (name, each) for name, each in value.get_params(deep=False).items() if name != "ledger"
        )
        listed = ", ".join(f"{name}={described(each)}" for name, each in own)
        return f"{type(value).__name__}({listed})"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
