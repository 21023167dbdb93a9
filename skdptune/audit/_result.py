"""Results of audits, as text and as HTML."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdptune._formatting import shown_delta, shown_epsilon, shown_number
from skdptune._html import QUIET, RED, box, title
from skdptune.audit._bounds import AuditPower, Refutation

_WIDTH = 12
_CELL = "padding-right:1.5em;text-align:left"


def _shown_bound(value: float) -> str:
    """Format a lower bound with three decimals, rounded down."""
    return "inf" if math.isinf(value) else f"{math.floor(value * 1e3) / 1e3:.3f}"


def _bound_in_words(epsilon_lower: float, claimed_epsilon: float, delta: str = "") -> str:
    """Return the sentence that compares a lower bound with the claim.

    Parameters
    ----------
    epsilon_lower, claimed_epsilon : float
    delta : str, default=""
        Text of the delta at which they are compared; omitted if empty.
    """
    place = f"at δ = {delta}, " if delta else ""
    return (
        f"{place}ε is at least {_shown_bound(epsilon_lower)} where "
        f"{shown_number(claimed_epsilon)} is claimed"
    )


class _Printed:
    """A result that prints its verdict, and how it was found."""

    estimator: str
    neighbouring: str
    is_refuted: bool
    # What the title says after the estimator's name.
    _by = ""

    @property
    def verdict(self) -> str:
        """The result as a sentence."""
        raise NotImplementedError

    def _rows(self) -> Iterator[tuple[str, str]]:
        raise NotImplementedError

    def __str__(self) -> str:
        """Return the verdict and how it was found."""
        head = f"Audit of {self.estimator}{self._by} ({self.neighbouring})"
        lines = [f"  {name + ':':<{_WIDTH}}{text}" for name, text in self._rows()]
        return "\n".join([head, f"  {self.verdict}", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the same as HTML for notebooks, with colours for light and dark pages."""
        head = title(escape(f"Audit of {self.estimator}{self._by}"))
        look = f"margin:.3em 0;{RED}" if self.is_refuted else "margin:.3em 0"
        table = "".join(
            f'<tr><td style="{QUIET};{_CELL}">{escape(name)}</td>'
            f'<td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in self._rows()
        )
        verdict = f'<div style="{look}">{escape(self.verdict)}</div>'
        return box(f"{head}{verdict}<table>{table}</table>", width="46em")


FloatArray = NDArray[np.float64]

# Normal numbers give a smaller p-value in one of a hundred audits.
_LEAST_P_VALUE = 0.01


class GaussianBound(NamedTuple):
    """The findings if a statistic is normal with equal spread on both sides.

    For scores of canaries, only those of excluded canaries must be normal, and all independent.

    Attributes
    ----------
    epsilon_lower : float
        Lower bound on epsilon.
    shift : float
        Lower bound on the distance between the means, in standard deviations.
    p_value : float
        p-value of a test for this.
    is_refuted : bool
        Whether the claim is refuted under this assumption.
    """

    epsilon_lower: float
    shift: float
    p_value: float
    is_refuted: bool

    @property
    def is_plausible(self) -> bool:
        """Whether the numbers look normal."""
        return self.p_value >= _LEAST_P_VALUE

    @property
    def refutes(self) -> bool:
        """Whether the claim is refuted, and the numbers look normal."""
        return self.is_refuted and self.is_plausible

    def in_words(self, claimed_epsilon: float, numbers: str) -> str:
        """Return the sentence that compares the bound with the claim.

        Parameters
        ----------
        claimed_epsilon : float
        numbers : str
            The numbers that look normal, as text.
        """
        words = _bound_in_words(self.epsilon_lower, claimed_epsilon)
        return f"if {numbers} normal, which the fits do not contradict, {words}"

    def row(self) -> tuple[str, str]:
        """Return the row of the printed text."""
        looks = "" if self.is_plausible else ", which the fits contradict"
        bound = _shown_bound(self.epsilon_lower)
        return "if normal", f"ε ≥ {bound} (p = {self.p_value:.2g}{looks})"


_STATISTIC = "the statistic is"
_SCORES = "scores are independent, and those of excluded canaries are"


def _if_refuted(bound: GaussianBound | None, claimed_epsilon: float, numbers: str) -> str:
    """Return a sentence if only a bound for normal numbers refutes the claim."""
    if bound is None or not bound.refutes:
        return ""
    return f" But {bound.in_words(claimed_epsilon, numbers)}, and the claim is wrong."


@dataclass(frozen=True, repr=False, eq=False)
class AuditResult(_Printed):
    """Result of `audit_epsilon`, which prints its verdict.

    Attributes
    ----------
    estimator : str
        Name of the estimator's class.
    epsilon_lower : float
        Lower bound on the true epsilon at `delta`, with probability `confidence`.
    claimed_epsilon : float
        The claimed epsilon at `delta`.
    delta, confidence : float
    is_refuted : bool
        Whether the fits contradict the claim, at this delta or at another one of its profile.
    refutation : Refutation or None
        The smallest ``delta`` at which an event contradicts the claim, the smallest possible
        ``epsilon`` there, and the ``claimed`` epsilon.
    gaussian : GaussianBound or None
        The findings if the statistic is normal: ``epsilon_lower``, ``shift``, ``p_value`` and
        ``is_refuted``. None if this was not requested or is impossible, as at a delta of 0.
    power : AuditPower
        The smallest violation that would have been found: ``noise_factor``, ``epsilon`` and
        ``probability``. It is estimated on first access, which takes some seconds.
    method, statistic, neighbouring, canary, event : str
        Descriptions of the audit's method.
    n_trials, n_failed : int
        Number of fits, and number of those that raised an error.
    stopped : str
        Why a sequential audit stopped.
    capital : tuple of tuple
        Pairs: a number of fits, and the logarithm of the capital of bets against the claim after
        them.
    goal : float
        Logarithm of the capital at which the claim is refuted.
    statistic_with, statistic_without : ndarray
        The statistic of fits that were not used to choose it.
    power_of : callable
        Function that estimates the power.

    Examples
    --------
    >>> from skdptune.audit import audit_epsilon
    >>> from skdptune.linear_model import DPLinearSVC
    >>> import numpy as np
    >>> svc = DPLinearSVC(solver="output", epsilon=2.0, classes=[0, 1], data_norm=1.0)
    >>> result = audit_epsilon(svc, np.zeros((50, 2)), n_trials=100, random_state=0)
    >>> result.is_refuted, round(result.claimed_epsilon, 3)
    (False, 2.0)
    """

    estimator: str
    epsilon_lower: float
    claimed_epsilon: float
    delta: float
    confidence: float
    is_refuted: bool
    refutation: Refutation | None
    gaussian: GaussianBound | None
    method: str
    statistic: str
    neighbouring: str
    canary: str
    event: str
    n_trials: int
    n_failed: int
    stopped: str
    capital: tuple[tuple[int, float], ...]
    goal: float
    statistic_with: FloatArray = field(repr=False)
    statistic_without: FloatArray = field(repr=False)
    power_of: Callable[[], AuditPower] = field(repr=False)

    @functools.cached_property
    def power(self) -> AuditPower:
        """The smallest violation that the audit would have found; estimated on first access."""
        return self.power_of()

    @property
    def verdict(self) -> str:
        """The result as a sentence."""
        if self.is_refuted:
            return f"The claim is refuted: {self._contradiction()}."
        words = f"Consistent with the claim: {self._bound()}."
        return words + _if_refuted(self.gaussian, self.claimed_epsilon, _STATISTIC)

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the fits, in a form that JSON can store.

        Returns
        -------
        dict
        """
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.repr}
        tuples = {"refutation": self.refutation, "gaussian": self.gaussian, "power": self.power}
        made = {name: None if t is None else t._asdict() for name, t in tuples.items()}
        return {**kept, **made, "capital": [list(pair) for pair in self.capital]}

    def plot(self, *, ax: Any = None, kind: str = "auto") -> Any:
        """Draw the statistic with and without the record, or the bets against the claim.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        kind : {"auto", "statistic", "capital"}, default="auto"
            "auto" is "capital" for sequential audits, and "statistic" for others.

        Returns
        -------
        AuditDisplay
        """
        from skdptune.inspection import AuditDisplay

        return AuditDisplay.from_result(self, ax=ax, kind=kind)

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "fits", self._fits()
        yield "confidence", f"{100.0 * self.confidence:g} %"
        if self.gaussian is not None:
            yield self.gaussian.row()
        yield "power", self._power()
        yield "canary", self.canary
        yield "statistic", f"{self.statistic}; {self.event}" if self.event else self.statistic
        if self.capital:
            best = max(log for _, log in self.capital)
            yield "bets", f"{math.exp(min(best, 700.0)):.3g} times the stake"

    def _fits(self) -> str:
        failed = f", {self.n_failed} of which raised an error" if self.n_failed else ""
        stopped = f"; stopped: {self.stopped}" if self.stopped else ""
        return f"{self.n_trials}, {self.method}{failed}{stopped}"

    def _bound(self) -> str:
        found, claimed = self.epsilon_lower, self.claimed_epsilon
        words = _bound_in_words(found, claimed, shown_delta(self.delta))
        return f"{words}, if the statistic is normal" if self.method == "gaussian" else words

    def _contradiction(self) -> str:
        if self.epsilon_lower > self.claimed_epsilon:
            return self._bound()
        if self.refutation is not None:
            delta, epsilon, claimed = self.refutation
            return _bound_in_words(epsilon, claimed, f"{delta:.2g}")
        chance = math.exp(-max(log for _, log in self.capital))
        words = (
            f"such fits have a probability below {max(chance, 1e-300):.2g} if the claim is true"
        )
        if self.gaussian is not None and self.gaussian.is_plausible:
            words += f"; {self.gaussian.in_words(self.claimed_epsilon, _STATISTIC)}"
        return words

    def _power(self) -> str:
        factor, epsilon, probability = self.power
        if factor is None or epsilon is None:
            return "too small to detect any smaller noise; use more fits or another canary"
        return (
            f"noise of at most {factor:.2f} times the actual noise, {shown_epsilon(epsilon)}, "
            f"would have been detected with probability {probability:g}"
        )


@dataclass(frozen=True, repr=False, eq=False)
class OneRunResult(_Printed):
    """Result of `one_run_audit`, which prints its verdict.

    Attributes
    ----------
    estimator : str
        Name of the estimator's class.
    epsilon_lower : float
        Lower bound on the true epsilon at `delta`, with probability `confidence`. With "fdp", it
        is valid for curves of the claim's kind.
    claimed_epsilon : float
        The claimed epsilon at `delta`.
    delta, confidence : float
    is_refuted : bool
        Whether the fit contradicts the claim.
    form : {"fdp", "dp"}
        Whether the whole profile was tested ("fdp"), or one epsilon and delta ("dp").
    p_value : float
        Bound on the probability of such guesses if the claim is true.
    gaussian : GaussianBound or None
        The findings if scores are independent, and those of excluded canaries normal:
        ``epsilon_lower``, ``shift``, ``p_value`` and ``is_refuted``. None for few canaries.
    n_canaries, n_guesses, n_right : int
        Numbers for the most informative number of guesses.
    canary, statistic, neighbouring : str
        Descriptions of the canaries, the score and the neighbouring relation.
    statistic_with, statistic_without : ndarray
        Scores of canaries that were in the data, and of those that were not.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.audit import one_run_audit
    >>> from skdptune.linear_model import DPLinearSVC
    >>> svc = DPLinearSVC(solver="sgd", epsilon=4.0, classes=[0, 1], epochs=1)
    >>> result = one_run_audit(svc, np.zeros((100, 200)), random_state=0)
    >>> result.n_canaries, result.is_refuted
    (200, False)
    """

    estimator: str
    epsilon_lower: float
    claimed_epsilon: float
    delta: float
    confidence: float
    is_refuted: bool
    form: str
    p_value: float
    gaussian: GaussianBound | None
    n_canaries: int
    n_guesses: int
    n_right: int
    canary: str
    statistic: str
    neighbouring: str
    statistic_with: NDArray[np.float64] = field(repr=False)
    statistic_without: NDArray[np.float64] = field(repr=False)
    _by = " by one fit"

    @property
    def verdict(self) -> str:
        """The result as a sentence."""
        delta = shown_delta(self.delta)
        bound = _bound_in_words(self.epsilon_lower, self.claimed_epsilon, delta)
        if self.form == "fdp":
            bound += ", for noise of the claimed kind"
        if not self.is_refuted:
            words = f"Consistent with the claim: {bound}."
            return words + _if_refuted(self.gaussian, self.claimed_epsilon, _SCORES)
        chance = (
            f"this many correct guesses have probability at most {self.p_value:.2g} if the "
            "claim is true"
        )
        return f"The claim is refuted: {chance}; {bound}."

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the scores, in a form that JSON can store.

        Returns
        -------
        dict
        """
        found = {each.name: getattr(self, each.name) for each in fields(self) if each.repr}
        return found | {"gaussian": None if self.gaussian is None else self.gaussian._asdict()}

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the scores of canaries that were in the data, and of those that were not.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.

        Returns
        -------
        AuditDisplay
        """
        from skdptune.inspection import AuditDisplay

        return AuditDisplay.from_result(self, ax=ax)

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "guesses", f"{self.n_right} of {self.n_guesses} right; {self.n_canaries} canaries"
        yield "p-value", f"{self.p_value:.2g}, if the claim is true"
        yield "confidence", f"{100.0 * self.confidence:g} %"
        if self.gaussian is not None:
            yield self.gaussian.row()
        yield "canaries", self.canary
        yield "score", self.statistic
