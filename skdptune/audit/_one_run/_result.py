"""What an audit by one fit has found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune._formatting import shown_delta
from skdptune.audit._result_text import as_html, as_text, bound_in_words


@dataclass(frozen=True, repr=False, eq=False)
class OneRunResult:
    """Result of `one_run_audit`, which prints its verdict.

    Attributes
    ----------
    estimator : str
        Name of the estimator's class.
    epsilon_lower : float
        Lower bound on the true epsilon at `delta`, with probability `confidence`; with "fdp" for
        curves of the claim's kind.
    claimed_epsilon : float
        What is claimed there.
    delta, confidence : float
    is_refuted : bool
        Whether the fit contradicts the claim.
    form : {"fdp", "dp"}
        Whether the whole profile was tested, or one epsilon and delta.
    p_value : float
        Bound on the chance of such guesses if the claim is true.
    n_canaries, n_guesses, n_right : int
        Of the number of guesses that says most.
    canary, statistic, neighbouring : str
        What was included, the score, and how neighbours differ, in words.
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
    n_canaries: int
    n_guesses: int
    n_right: int
    canary: str
    statistic: str
    neighbouring: str
    statistic_with: NDArray[np.float64] = field(repr=False)
    statistic_without: NDArray[np.float64] = field(repr=False)

    @property
    def verdict(self) -> str:
        """What was found, in a sentence."""
        delta = shown_delta(self.delta)
        bound = bound_in_words(self.epsilon_lower, self.claimed_epsilon, delta)
        if self.form == "fdp":
            bound += ", for noise of the claimed kind"
        if not self.is_refuted:
            return f"Consistent with the claim: {bound}."
        chance = f"so many right guesses have a chance of at most {self.p_value:.2g} if it is true"
        return f"The claim is refuted: {chance}; {bound}."

    def to_dict(self) -> dict[str, Any]:
        """Return all but the scores, ready for JSON.

        Returns
        -------
        dict
        """
        return {each.name: getattr(self, each.name) for each in fields(self) if each.repr}

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the scores of canaries that were in the data, and of those that were not.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            To draw on; by default new ones.

        Returns
        -------
        AuditDisplay
        """
        from skdptune.inspection import AuditDisplay

        return AuditDisplay.from_result(self, ax=ax)

    def __str__(self) -> str:
        """Return the verdict and how it was found."""
        head = f"Audit of {self.estimator} by one fit ({self.neighbouring})"
        return as_text(head, self.verdict, self._rows())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the same for notebooks."""
        head = f"Audit of {self.estimator} by one fit"
        return as_html(head, self.verdict, self._rows(), is_refuted=self.is_refuted)

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "guesses", f"{self.n_right} of {self.n_guesses} right; {self.n_canaries} canaries"
        yield "p-value", f"{self.p_value:.2g}, if the claim is true"
        yield "confidence", f"{100.0 * self.confidence:g} %"
        yield "canaries", self.canary
        yield "score", self.statistic
