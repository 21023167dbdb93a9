"""Search by a doubling threshold: any number of candidates at one constant cost."""

from __future__ import annotations

from typing import Any

from skdptune._docstrings import with_shared_text
from skdptune._formatting import shown
from skdptune.base._shared import arguments_of
from skdptune.ledger import PrivacyLedger
from skdptune.model_selection._docstrings import SHARED_TEXT
from skdptune.model_selection._search import TuningSearch
from skdptune.model_selection._strategies import DoublingThresholdSession, ThresholdRounds


@with_shared_text(SHARED_TEXT)
class DoublingThresholdSearchCV(TuningSearch):
    """Search with a doubling threshold: any number of candidates for one constant privacy cost.

    Candidates are scored on disjoint partitions of the data, so that one record changes a score by
    little. In each round the search makes a noisy comparison: is a candidate better than the best
    so far by one step? It doubles the step after a hit and halves it after a miss. The last
    candidate that passed is trained privately on all records. The cost depends neither on the
    number of candidates nor on the number of rounds.

    Use it to reproduce the papers, or with `start` if another optimiser proposes the candidates.
    With a fixed list of candidates, `DPGridSearchCV` chooses with less noise. `plan` prints how
    far below the best candidate the winner may score; `fit` warns if noise hides which is better.

    Parameters
    ----------
    {estimator}
    param_grid : dict or list of dicts, optional
        From parameter names to lists of values: the candidates, in the order in which each round
        tries them.

        {no_space}

        With the default number of partitions this is always the case, since the noise of the
        choice is larger than the gain of suggested values. More partitions lessen the noise.
    param_distributions : dict or list of dicts, optional
        Alternative to `param_grid`: each round draws new candidates from lists or distributions.
    {budget}
    {scoring}
    cv : float or HoldOut, default=0.2
        The probability that a record is held out for validation, or a `HoldOut` with a public rule
        for each record. Folds are not needed: the partitions take their place.
    refit : {"winner", True, False}, default="winner"
        "winner" and True fit the winner on all records; False returns no model.
    strategy : ThresholdRounds, optional
        How rounds are made, with the less common options: their noise and steps, the partitions,
        the estimator that is trained on these, and what the choice may cost.
    {n_jobs}
    {parameters_but_n_jobs}

    Attributes
    ----------
    best_estimator_ : estimator
        The tuned private model.
    best_params_ : dict
        Its parameters: those of the last candidate that passed. If none did, they are those of the
        first candidate (of the grid, or drawn), which does not depend on the data.
    best_score_ : float
        A score that the winner exceeded on the partitions, with a probability of 95 %; the worst
        possible score if no candidate passed. The level reached, which noise makes look higher, is
        in `trace_`.
    granularity_ : float
        Height of a level, in units of the range of a score.
    trace_ : tuple of ThresholdRound
        Utility, step and outcome of every round. They are paid for, so they may be published. Not
        available if no search was made.
    cv_results_ : dict
        The only row that was paid for: the winner's.
    best_index_ : int
        The winner's row, 0.
    {common_attributes}

    See Also
    --------
    ThresholdRounds : Its strategy.
    DoublingThresholdSession : A search that your own loop drives; see `start`.
    skdptune.mechanisms.DoublingThreshold : The mechanism itself.
    DPGridSearchCV : Chooses from the same utilities by permute-and-flip, with less noise.

    Notes
    -----
    Theorem D0.

    Neighbours differ by adding or removing one record. One record changes a utility by at most
    ``1 / n_partitions`` if it is used for training, and by ``1 / n_score`` if it is used for
    scoring. The papers charge for the rounds that were made, whose number depends on the data.
    Here the cost is fixed in advance.

    References
    ----------
    Ding, Wu, Xu, Pan: Constant-overhead Differentially Private Hyperparameter Tuning.
    Ding, Wu: Revisiting Hyperparameter Tuning with Differential Privacy.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DoublingThresholdSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=2000) > 0
    >>> search = DoublingThresholdSearchCV(
    ...     DPLogisticRegression(), {"C": [1e-3, 1e-1, 10.0]}, epsilon=2.0, delta=1e-5,
    ...     random_state=0,
    ... ).fit(X, y)
    >>> search.privacy_.epsilon
    2.0
    >>> search.trace_[0].step
    1
    """

    param_grid: Any
    param_distributions: Any

    def __init__(
        self,
        estimator: Any,
        param_grid: Any = None,
        *,
        param_distributions: Any = None,
        epsilon: float | None = None,
        delta: float | None = None,
        scoring: Any = None,
        cv: Any = 0.2,
        refit: Any = "winner",
        strategy: ThresholdRounds | None = None,
        n_jobs: int | None = None,
        verbose: int | None = None,
        random_state: Any = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.__dict__.update(arguments_of(locals()))

    _searched, _default_strategy = ("param_grid", "grid"), ThresholdRounds

    def _space(self) -> tuple[Any, str, str]:
        if self.param_distributions is None:
            return super()._space()
        if self.param_grid is not None:
            raise ValueError(
                "param_grid or param_distributions must be given, and not both; got both."
            )
        return self.param_distributions, "param_distributions", "distribution"

    def _missing(self) -> tuple[str, str]:
        return "param_grid or param_distributions", "neither"

    def _check_parameters(self) -> None:
        if not isinstance(self._strategy(), ThresholdRounds):
            raise TypeError(f"strategy must be ThresholdRounds; got {shown(self.strategy)}.")
        super()._check_parameters()

    def start(
        self, X: Any, y: Any = None, *, X_val: Any = None, y_val: Any = None, **params: Any
    ) -> DoublingThresholdSession:
        """Return a session to which your own loop proposes the candidates, in place of `fit`.

        Parameters
        ----------
        X, y, X_val, y_val, **params
            See `fit`.

        Returns
        -------
        DoublingThresholdSession
            It costs as much as the search; its `finish` fits the search.
        """
        return DoublingThresholdSession(self._started(X, y, X_val, y_val, params, tries=False))
