"""Plots of scores against epsilon."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring

from skdptune._compat import number_of_samples
from skdptune._formatting import NOT_PRIVATE, shown, shown_delta, shown_epsilon
from skdptune._progress import Progress
from skdptune._validation import check_flag, check_integer, check_kind, check_real, check_vector
from skdptune.accounting import PrivacyReport
from skdptune.base import privacy_of
from skdptune.base._shared import expected_refits, set_seeds
from skdptune.inspection._plotting import (
    add_legend,
    add_title,
    axes_for,
    draw_band,
    dress_epsilons,
    epsilon_label,
    ink,
    line_look,
    tidy,
)
from skdptune.ledger import config_context
from skdptune.ledger._shared import common_relation

FloatArray = NDArray[np.float64]

_TEST_RECORDS = "the test records are public and were not used in a fit: their scores are exact"
# Space beyond the first and last epsilon, as factors.
_ROOM = 1.2
# Marks lines of this kind, so that they can be found again on given axes.
_MARK = "skdptune epsilon curve"


class EpsilonCurveDisplay:
    """Plot of scores against epsilon: the accuracy for each privacy budget.

    Create it from known scores, or by `from_estimator`, which fits at each epsilon. To compare
    several curves, draw them on the same ``ax``, each with a `name`.

    Parameters
    ----------
    epsilons : array-like of shape (n_epsilons,)
        Epsilons of the fits, in any order.
    scores : array-like of shape (n_epsilons,) or (n_epsilons, n_repetitions)
        Test scores of one or more fits at each epsilon.
    no_privacy : float, optional
        The score of a model without privacy, drawn as a line.
    delta : float, optional
        The delta at which the epsilons are stated, shown on the axis.
    privacy : PrivacyReport, optional
        The total privacy cost of everything that is drawn.
    score : str, default="score"
        Name of the score.
    name : str, optional
        Name in the legend.

    Attributes
    ----------
    privacy_ : PrivacyReport or None
        The report that was given, or computed by `from_estimator`.
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of these axes.
    line_ : matplotlib Line2D
        The mean scores.
    band_ : matplotlib artist or None
        The range from the lowest to the highest score at each epsilon.
    no_privacy_ : matplotlib Line2D or None
        The level without privacy.

    See Also
    --------
    skdptune.model_selection.DParetoSearchCV : Finds the trade-off by a single search, and pays for
        what it shows.
    ParetoFrontDisplay : Plots the result of such a search.

    Notes
    -----
    A curve of fits to private data is a release. It costs as much as all of its fits together,
    many times its largest epsilon. If you select an epsilon from the curve and fit a model with
    it, that fit needs its own additional budget. If possible, draw curves of public or made-up
    data. The total is computed by Theorem P4, for epsilons that were chosen beforehand.

    Examples
    --------
    >>> from skdptune.inspection import EpsilonCurveDisplay
    >>> display = EpsilonCurveDisplay([0.5, 2.0], [[0.6, 0.7], [0.8, 0.9]], no_privacy=0.92)
    >>> display.means.round(2).tolist()
    [0.65, 0.85]
    >>> display.plot().ax_.get_xlabel()  # doctest: +SKIP
    'ε'
    """

    def __init__(
        self,
        epsilons: ArrayLike,
        scores: ArrayLike,
        *,
        no_privacy: float | None = None,
        delta: float | None = None,
        privacy: PrivacyReport | None = None,
        score: str = "score",
        name: str | None = None,
    ) -> None:
        self.epsilons = _checked_epsilons(epsilons)
        self.scores = _checked_scores(scores, self.epsilons.size)
        self.no_privacy = None if no_privacy is None else check_real(no_privacy, name="no_privacy")
        if delta is not None:
            delta = check_real(delta, name="delta", lower=0.0, upper=1.0)
        self.delta = delta
        if privacy is not None:
            check_kind(privacy, name="privacy", kind=PrivacyReport, domain="a PrivacyReport")
        self.privacy_ = privacy
        self.score = score
        self.name = name

    # Creation ------------------------------------------------------------------------------

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        epsilons: ArrayLike,
        X_test: Any,
        y_test: Any,
        repetitions: int = 5,
        scoring: Any = None,
        param: str = "epsilon",
        no_privacy: Any = None,
        public: bool = False,
        random_state: int | None = None,
        verbose: int | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> EpsilonCurveDisplay:
        """Fit an estimator at several epsilons, and draw the scores of all fits.

        Each fit costs its epsilon. ``privacy_`` states the total cost, composed from the whole
        profiles of all fits. The active ledger records each fit. Scores on test data are exact, so
        private test records would not be protected. Therefore ``privacy_`` states the assumption
        that there are none.

        Parameters
        ----------
        estimator : estimator, pipeline or search
            A private estimator. It is not changed: copies are fitted, each with independent noise,
            whatever its ``random_state``.
        X, y : array-like
            Training data.
        epsilons : array-like
            Positive and finite numbers, chosen without looking at the data.
        X_test, y_test : array-like
            Public test records that are not in `X`.
        repetitions : int, default=5
            Number of fits at each epsilon. Each of them costs this epsilon.
        scoring : str or callable, optional
            See scikit-learn; the default is the estimator's ``score``.
        param : str, default="epsilon"
            The parameter that is set, such as "logistic__epsilon" for a pipeline. The curve shows
            the epsilon that the whole fit then states.
        no_privacy : float or estimator, optional
            The score without privacy. For public data, it may be a model to be fitted for this.
        public : bool, default=False
            Whether `X` and `y` are public or made up. Then fits are free: the ledger of a block of
            code does not record them, and ``privacy_`` is None.
        random_state : int, optional
            Seed of all fits, for reproducible results. Anyone who knows it can remove the noise.
            By default, each fit uses the operating system's entropy.
        verbose : int, optional
            None shows a line of progress on terminals and in notebooks, 0 never, larger values
            always.
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        name : str, optional
            Name in the legend; by default, the estimator's class.

        Returns
        -------
        EpsilonCurveDisplay
        """
        asked = np.sort(_checked_epsilons(epsilons))
        count = check_integer(repetitions, name="repetitions", lower=1)
        _check_estimator(estimator, param)
        is_public = check_flag(public, name="public")
        if random_state is not None:
            check_integer(random_state, name="random_state", lower=0)
        level = _checked_level(no_privacy, is_public)
        scorer = check_scoring(estimator, scoring=scoring)
        # Of private data, the active ledger records the fits. Their total cost is stated as well.
        unrecorded = config_context(ledger=False) if is_public else nullcontext()
        with expected_refits(), unrecorded, Progress(cls.__name__, verbose) as progress:
            every, n_samples = np.repeat(asked, count), number_of_samples(X)
            rows: list[list[float]] = [[] for _ in asked]
            reports: list[list[PrivacyReport]] = [[] for _ in asked]
            fits = _fits(estimator, X, y, param, every, random_state, progress)
            for place, fitted in enumerate(fits):
                # Check this before the next fit: without a report, a fit has no known cost.
                reports[place // count].append(privacy_of(fitted, n_samples=n_samples))
                _check_costs(reports, param)
                rows[place // count].append(float(scorer(fitted, X_test, y_test)))
            if level is not None and not isinstance(level, float):
                level = float(scorer(clone(level).fit(X, y), X_test, y_test))
        deltas = {report.delta for row in reports for report in row}
        display = cls(
            [max(report.epsilon for report in row) for row in reports],
            rows,
            no_privacy=level,
            delta=deltas.pop() if len(deltas) == 1 else None,
            privacy=None if is_public else _together(reports, type(estimator).__name__),
            score=_name_of(scoring, estimator),
            name=type(estimator).__name__ if name is None else name,
        )
        return display.plot(ax=ax)

    # Values --------------------------------------------------------------------------------

    @property
    def means(self) -> FloatArray:
        """The mean score at each epsilon."""
        return np.asarray(self.scores.mean(axis=1))

    @property
    def cost_in_words(self) -> str:
        """The total cost of everything that is drawn, as a sentence; "" if it is unknown."""
        if self.privacy_ is None:
            return ""
        report, count = self.privacy_, self.scores.size
        cost = f"{shown_epsilon(report.epsilon)} at δ = {shown_delta(report.delta)}"
        words = f"The {count} fits of {self._label()} cost {cost} together"
        if count == 1:
            words = f"The fit of {self._label()} costs {cost}"
        return f"{words}, if the test records are public."

    def _label(self) -> str:
        return self.name if self.name is not None else "private models"

    # Drawing --------------------------------------------------------------------------------

    def plot(self, *, ax: Any = None, band: bool = True) -> EpsilonCurveDisplay:
        """Draw the scores.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the plot; by default, new axes are created.
        band : bool, default=True
            Whether to show the range from the lowest to the highest score at each epsilon, if
            there are several scores.

        Returns
        -------
        EpsilonCurveDisplay
            The display itself.
        """
        check_flag(band, name="band")
        ax = axes_for(self, ax)
        drawn = [line for line in ax.lines if line.get_gid() == _MARK]
        order = np.argsort(self.epsilons, kind="stable")
        x, place = self.epsilons[order], len(drawn)
        look = line_look(place, markers=True)
        is_other = bool(drawn) and ax.get_xlabel() != epsilon_label(self.delta)
        label = f"{self._label()}, {epsilon_label(self.delta)}" if is_other else self._label()
        common = {"label": label, "gid": _MARK, "zorder": 4}
        (self.line_,) = ax.plot(x, self.means[order], **common, **look)
        count = self.scores.shape[1]
        self.band_ = None
        if band and count > 1:
            low, high = self.scores.min(axis=1)[order], self.scores.max(axis=1)[order]
            self.band_ = draw_band(ax, x, low, high, place, f"lowest to highest of {count} fits")
        self.no_privacy_ = None
        if self.no_privacy is not None:
            level = {"color": ink(), "linewidth": 1.2, "linestyle": (0, (1, 2))}
            self.no_privacy_ = ax.axhline(self.no_privacy, label="without privacy", **level)
        if not drawn:
            dress_epsilons(ax, (x[0] / _ROOM, x[-1] * _ROOM), self.delta)
            ax.set_ylabel(self.score)
            tidy(ax)
        else:
            low, high = ax.get_xlim()
            ax.set_xlim(min(low, x[0] / _ROOM), max(high, x[-1] * _ROOM))
        if self.cost_in_words:
            # Below the sentences of curves that are already drawn, which have their own costs.
            above = ax.get_title(loc="left") if drawn else ""
            add_title(ax, f"{above}\n{self.cost_in_words}" if above else self.cost_in_words)
        add_legend(ax)
        return self


# Fits -----------------------------------------------------------------------------------------


def _fits(
    estimator: Any,
    X: Any,
    y: Any,
    param: str,
    epsilons: FloatArray,
    random_state: int | None,
    progress: Progress,
) -> Iterator[Any]:
    """Yield a fit of a copy at each epsilon, with independent noise, counted as they are made."""
    seeds: Sequence[np.random.SeedSequence | None] = [None] * epsilons.size
    if random_state is not None:
        seeds = np.random.SeedSequence(random_state).spawn(epsilons.size)
    for done, (epsilon, seed) in enumerate(zip(epsilons.tolist(), seeds, strict=True)):
        progress.count(done, epsilons.size, "fits")
        copy = clone(estimator).set_params(**{param: epsilon})
        # A common seed would give several fits the same noise, which then protects nothing.
        set_seeds(copy, seed)
        yield copy.fit(X, y)


def _together(reports: Sequence[Sequence[PrivacyReport]], name: str) -> PrivacyReport:
    """Return the total cost of all fits, with one part for each epsilon.

    Notes
    -----
    Theorem P4.
    """
    every = [report for row in reports for report in row]
    relation = common_relation({report.neighbouring for report in every})
    if relation is None:
        raise ValueError(
            "estimator must have the same kind of neighbours in all fits; got several kinds."
        )
    delta = max(report.delta for report in every)
    parts = [_part(row, delta, name) for row in reports]
    total = sum((part.profile for part in parts[1:]), start=parts[0].profile)
    sentences = (sentence for report in every for sentence in report.assumptions)
    return PrivacyReport(
        total,
        delta,
        name=f"{EpsilonCurveDisplay.__name__} of {name}",
        note=f"{len(every)} fits and their test scores",
        parts=parts,
        assumptions=tuple(dict.fromkeys([*sentences, _TEST_RECORDS])),
        neighbouring=relation,
    )


def _part(row: Sequence[PrivacyReport], delta: float, name: str) -> PrivacyReport:
    """Return the total cost of the fits at one epsilon."""
    first = row[0].profile
    if all(report.profile == first for report in row):
        profile = len(row) * first
    else:
        profile = sum((report.profile for report in row[1:]), start=first)
    most = max(report.epsilon for report in row)
    note = f"{len(row)} fit{'s' if len(row) > 1 else ''} of {shown_epsilon(most)}"
    return PrivacyReport(profile, delta, name=name, note=note)


# Checks ---------------------------------------------------------------------------------------


def _checked_epsilons(epsilons: ArrayLike) -> FloatArray:
    found: FloatArray = np.asarray(
        check_vector(epsilons, name="epsilons", lower=0.0, lower_open=True), dtype=np.float64
    )
    if not found.size or not np.isfinite(found).all() or np.unique(found).size < found.size:
        raise ValueError(
            f"epsilons must be one or more different finite numbers; got {found.size}. The level "
            "without privacy is `no_privacy`."
        )
    return found


def _checked_scores(scores: ArrayLike, count: int) -> FloatArray:
    try:
        table = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            "scores must be an array of numbers with a row for each epsilon; got "
            f"{type(scores).__name__}."
        ) from None
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != count or not table.size:
        raise ValueError(
            f"scores must have a row for each of {count} epsilons; got shape {np.shape(scores)}."
        )
    if not np.isfinite(table).all():
        raise ValueError("scores must be finite numbers; got others.")
    return table


def _check_estimator(estimator: Any, param: Any) -> None:
    is_estimator = hasattr(estimator, "fit") and hasattr(estimator, "get_params")
    if isinstance(estimator, type) or not is_estimator:
        raise TypeError(f"estimator must be an estimator with fit; got {shown(estimator)}.")
    if not isinstance(param, str) or param not in estimator.get_params(deep=True):
        raise ValueError(
            f"param must be a parameter of {type(estimator).__name__}; got {shown(param)}. Of a "
            "pipeline it is that of a step, such as 'logistic__epsilon'."
        )


def _check_costs(reports: Sequence[Sequence[PrivacyReport]], param: str) -> None:
    """Raise early if the fits made so far cannot be drawn over their epsilons."""
    costs = [max(report.epsilon for report in row) for row in reports if row]
    if math.isinf(costs[-1]):
        raise ValueError(
            f"param must set what a fit costs; got {shown(param)}, with which a fit is "
            f"{NOT_PRIVATE}. Give the estimator a delta above 0, or noise."
        )
    if costs[-1] in costs[:-1]:
        raise ValueError(
            f"param must set what a fit costs; got {shown(param)}, of which two values cost "
            f"{shown_epsilon(costs[-1])} alike."
        )


def _checked_level(no_privacy: Any, is_public: bool) -> Any:
    """Return the level without privacy, or a model to be fitted for it."""
    if no_privacy is None or isinstance(no_privacy, numbers.Real):
        return None if no_privacy is None else check_real(no_privacy, name="no_privacy")
    if isinstance(no_privacy, type) or not hasattr(no_privacy, "fit"):
        raise TypeError(
            f"no_privacy must be a score or an estimator; got {type(no_privacy).__name__}."
        )
    if not is_public:
        raise ValueError(
            "no_privacy must be a score, or None, for private data; got an estimator, whose "
            "fit and score would not be private. With public or made-up data, use public=True."
        )
    return no_privacy


def _name_of(scoring: Any, estimator: Any) -> str:
    if isinstance(scoring, str):
        return scoring.replace("_", " ")
    if scoring is not None:
        return str(getattr(scoring, "__name__", "score"))
    if is_classifier(estimator):
        return "accuracy"
    return "R²" if is_regressor(estimator) else "score"
