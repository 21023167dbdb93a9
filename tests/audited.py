"""Audited releases: estimators on their worst neighbouring data, with a statistic.

Each case has a record that moves one number as far as clipping allows, other records that do not
counteract this, and a claim. The record nearly reaches the claim, so noise that is 30 % too small
violates it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator

from skdptune.accounting import Binomial, PrivacyProfile, PrivacyReport
from skdptune.calibration import (
    PrivateConformalClassifier,
    PrivateConformalRegressor,
    PrivateScoreCurves,
    PrivateThreshold,
    _curves,
)
from skdptune.ensemble import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from skdptune.ensemble._pairs import Axis, Pair, released_grid
from skdptune.linear_model import (
    AdaOPSLinearRegression,
    AdaSSPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    OPSLinearRegression,
    OutputPerturbationLinearRegression,
    PTRLinearRegression,
    _preconditioned,
)
from skdptune.mechanisms import (
    DoublingThreshold,
    doubling_threshold_release,
    gaussian_profile,
    gaussian_release,
    laplace_release,
    noise_for_budget,
)
from skdptune.mechanisms._shared import UNIT
from skdptune.metrics import make_bounded_scorer
from skdptune.model_selection import (
    AdaptiveTrials,
    DoublingThresholdSearchCV,
    DPAdaptiveSearchCV,
    DParetoSearchCV,
    DPGridSearchCV,
    DPRandomSearchCV,
    HoldOut,
)
from skdptune.model_selection._choosing import margin
from skdptune.model_selection._running import _runs
from skdptune.preprocessing import DPPCA, DPMinMaxScaler, DPStandardScaler
from tests import auditing
from tests.flat import flat
from tests.model_selection.learners import QuickParameters
from tests.testing.public_estimators import HAS_NETS, HAS_OPTUNA, HAS_PARETO

# One column. The last record is the one that is added or removed, if the number of records is
# constant.
TOGETHER = np.array([[0.0], [0.0], [0.0], [1.0]])
WITHOUT = np.zeros((4, 1))
LABELS, TARGETS = np.array([0, 1, 0, 1]), np.array([0.0, 0.0, 0.0, 1.0])
DELTA = 1e-5


def seed_of(rng: np.random.Generator | int) -> int:
    """Return a seed; estimators refuse generators, which their clones would share."""
    return rng if isinstance(rng, int) else int(rng.integers(2**31))


@dataclass(frozen=True)
class Case:
    """A release to be audited.

    Attributes
    ----------
    draw : callable
        From whether the record is there and a generator to the statistic of one release.
    claim : callable
        Returns the profile that is claimed.
    bound : {"measured", "counted"}
        How epsilon is bounded.
    delta : float
        At which epsilons are compared.
    n_fits : int
        In a thorough audit.
    n_quick : int
        With every change, where outcomes are counted: fewer where one fit takes tens of
        milliseconds.
    """

    draw: Callable[[bool, np.random.Generator], float]
    claim: Callable[[], PrivacyProfile]
    bound: str = "measured"
    delta: float = DELTA
    n_fits: int = 4000
    n_quick: int = 200

    def bounds(self, n_fits: int, seed: int) -> float:
        """Return the bound on epsilon from this many fits, half of them without the record."""
        samples = []
        for present in (True, False):
            rng = np.random.default_rng([seed, present])
            samples.append(np.array([self.draw(present, rng) for _ in range(n_fits // 2)]))
        bound: float = getattr(auditing, self.bound)(*samples, self.delta)
        return bound

    def paired(self, n_pairs: int, seed: int) -> float:
        """Return an estimate of epsilon for a normal statistic, from far fewer fits.

        Both fits of a pair draw the same noise. The shift between them is caused by the record,
        and only the standard deviation is estimated.
        """
        pairs = np.array(
            [
                [
                    self.draw(present, np.random.default_rng([seed, pair]))
                    for pair in range(n_pairs)
                ]
                for present in (True, False)
            ]
        )
        shift, deviation = abs(np.mean(pairs[0] - pairs[1])), np.std(pairs[1], ddof=1)
        return PrivacyProfile.gaussian(shift / deviation).epsilon(self.delta)

    def claimed(self) -> float:
        """Return the claimed epsilon."""
        return self.claim().epsilon(self.delta)


def coefficient(model: Any) -> float:
    return float(np.ravel(model.coef_)[0])


def is_positive(model: Any) -> float:
    return float(coefficient(model) > 0.0)


def fit_case(
    model: Any,
    y: Any,
    statistic: Callable[[Any], float] = coefficient,
    X: tuple[Any, Any] = (TOGETHER, WITHOUT),
    share: float = 1.0,
    **more: Any,
) -> Case:
    """Return the audit of an estimator; the record attains a share of the sensitivity."""

    def draw(present: bool, rng: np.random.Generator) -> float:
        rows = X[0] if present else X[1]
        return statistic(model.set_params(random_state=seed_of(rng)).fit(rows, y))

    def claim() -> PrivacyProfile:
        profile = model.fit(X[0], y).privacy_.profile
        return profile if share == 1.0 else _of_share(profile, share, model.delta)

    return Case(draw, claim, **more)


def _of_share(profile: PrivacyProfile, share: float, delta: float) -> PrivacyProfile:
    """Return the cost of a Gaussian release for a share of its sensitivity."""
    low, high = 0.0, 20.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        is_less = PrivacyProfile.gaussian(middle).epsilon(delta) < profile.epsilon(delta)
        low, high = (middle, high) if is_less else (low, middle)
    return PrivacyProfile.gaussian(share * high)


# Linear classifiers ---------------------------------------------------------------------

CLASSIFIER = {"classes": [0, 1], "fit_intercept": False, "data_norm": 1.0, "C": 0.01}
NORMAL = CLASSIFIER | {"epsilon": 8.0, "n_public": 4}
PURE = NORMAL | {"epsilon": 2.0, "delta": 0.0}
COUNTED = {"bound": "counted", "delta": 0.0, "n_fits": 10_000}
ONE_STEP = {"epochs": 1, "batch_size": 4}
# At this delta, the sign is the best event, and epsilon is 8.
BY_SIGN = {"bound": "counted", "delta": 0.31, "n_fits": 8000}
# The record attains only a part of the sensitivity, so more fits are needed.
WEAK = {"n_quick": 500}
# One fit takes tens of milliseconds.
DEAR = {"n_quick": 120}


def classifiers() -> dict[str, Case]:
    cases = {}
    for kind in (DPLinearSVC, DPLogisticRegression):
        # The logistic loss has half of its slope at margin 0, where the weights are small.
        share = 1.0 if kind is DPLinearSVC else 0.5
        halved = {"share": share} | ({} if share == 1.0 else WEAK)
        name = kind.__name__
        for solver in ("objective", "output"):
            cases[f"{name}, {solver}"] = fit_case(kind(solver=solver, **NORMAL), LABELS, **halved)
        cases[f"{name}, psgd"] = fit_case(
            kind(solver="psgd", **ONE_STEP, **NORMAL | {"n_public": None}), LABELS, **halved
        )
        for solver in ("sgd", "adam"):
            # Clipped gradients have the largest allowed length for every loss.
            model = kind(solver=solver, **ONE_STEP, **NORMAL | {"data_norm": None})
            # A step of Adam shows only the sign of the gradient. Its length differs in
            # the last digits, which are noise.
            more = BY_SIGN | {"statistic": is_positive} if solver == "adam" else {}
            X = 10.0 * TOGETHER, WITHOUT
            cases[f"{name}, {solver}"] = fit_case(model, LABELS, X=X, **more)
        cases[f"{name}, preconditioned"] = descent_case(kind)
    for solver in ("objective", "output"):
        cases[f"DPLinearSVC, {solver}, delta 0"] = fit_case(
            DPLinearSVC(solver=solver, **PURE), LABELS, **COUNTED
        )
    return cases


def descent_case(kind: Any) -> Case:
    """Return the audit of one step in released coordinates, in units of its clipping norm."""
    model = kind(
        solver="preconditioned", **NORMAL | {"epochs": 1, "C": 1e12, "max_grad_norm": 0.05}
    )

    def draw(present: bool, rng: np.random.Generator) -> float:
        with _watched_descents() as seen:
            model.set_params(random_state=seed_of(rng)).fit(
                TOGETHER if present else WITHOUT, LABELS
            )
        (basis, unit, weights) = seen[0]
        return float((np.linalg.solve(basis, weights) / unit)[0, 0])

    def claim() -> PrivacyProfile:
        # Without the share for the second moments.
        profile = model.fit(TOGETHER, LABELS).privacy_.profile
        return _of_share(profile, math.sqrt(1.0 - _preconditioned._MOMENT_SHARE), model.delta)

    return Case(draw, claim)


@contextlib.contextmanager
def _watched_descents() -> Iterator[list[tuple[Any, float, Any]]]:
    """Collect coordinates, the length of a clipped step, and weights of all descents."""
    seen = []
    descend = _preconditioned.fit_noisy_gradient

    def watched(*args: Any, **kwargs: Any) -> Any:
        weights = descend(*args, **kwargs)
        step = kwargs["learning_rate"] * kwargs["max_grad_norm"]
        seen.append((np.atleast_2d(kwargs["basis"]), step, weights))
        return weights

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_preconditioned, "fit_noisy_gradient", watched)
        yield seen


# Regressions, scalers -------------------------------------------------------------------

REGRESSION = {"data_norm": 1.0, "target_bound": 1.0, "fit_intercept": False, "n_public": 4}


def released_case(
    model: Any, X: tuple[Any, Any], y: Any, pure: bool = False, whole: bool = True, **more: Any
) -> Case:
    """Return the audit of all sums that a fit releases, weighted according to their noise.

    The fitted model depends on the data only through these sums (`whole`), or partly.
    """

    def releases(present: bool, rng: Any) -> list[auditing.Release]:
        with auditing.watched_releases() as seen:
            model.set_params(random_state=seed_of(rng)).fit(X[0] if present else X[1], y)
        return list(seen)

    @functools.cache
    def pairs() -> list[tuple[auditing.Release, auditing.Release]]:
        return list(zip(releases(True, 0), releases(False, 0), strict=True))

    def draw(present: bool, rng: np.random.Generator) -> float:
        total = 0.0
        for (one, other), seen in zip(pairs(), releases(present, rng), strict=True):
            if pure:
                distances = np.abs(seen.noisy - other.value) - np.abs(seen.noisy - one.value)
                total += float(distances.sum()) / seen.scale
            else:
                total += float((one.value - other.value) @ seen.noisy) / seen.scale**2
        return total

    def claim() -> PrivacyProfile:
        one_of_each = pairs()
        if whole:
            return model.privacy_.profile
        shift = math.hypot(*(one.shift for one, _ in one_of_each))
        return PrivacyProfile.gaussian(shift)

    return Case(draw, claim, **more)


def regressions() -> dict[str, Case]:
    normal, pair = REGRESSION | {"epsilon": 8.0}, (TOGETHER, WITHOUT)
    strong = normal | {"alpha": 1e5}
    pure = strong | {"epsilon": 2.0, "delta": 0.0}
    return {
        # With an alpha: two sums are released once.
        "DPRidge": released_case(DPRidge(**strong), pair, TARGETS),
        "DPRidge, steps": steps_case(),
        "DPRidge, two targets": released_case(
            DPRidge(**normal), pair, np.column_stack([TARGETS, -TARGETS])
        ),
        "DPRidge, nine targets": released_case(
            DPRidge(**strong), pair, np.column_stack([TARGETS] * 9), **DEAR
        ),
        "AdaSSPLinearRegression": released_case(AdaSSPLinearRegression(**normal), pair, TARGETS),
        "OutputPerturbationLinearRegression": fit_case(
            OutputPerturbationLinearRegression(**strong), TARGETS
        ),
        "OutputPerturbationLinearRegression, delta 0": fit_case(
            OutputPerturbationLinearRegression(**pure), TARGETS, **COUNTED
        ),
        "OPSLinearRegression": fit_case(OPSLinearRegression(**strong), TARGETS),
        # Their last draw is the same as that of OPSLinearRegression.
        "PTRLinearRegression, bounds": released_case(
            PTRLinearRegression(**normal), pair, TARGETS, whole=False, **WEAK
        ),
        "AdaOPSLinearRegression, bounds": released_case(
            AdaOPSLinearRegression(**normal), pair, TARGETS, whole=False, **WEAK
        ),
    }


def steps_case() -> Case:
    """Return the audit of a regression whose steps are short, so that all residuals are cut.

    The ridge grows with the number of columns, most of which contain no information. The record's
    contribution to each step is then the same for all earlier releases.
    """
    pair = tuple(np.pad(rows, ((0, 0), (0, 24))) for rows in (TOGETHER, WITHOUT))
    model = DPRidge(**REGRESSION | {"epsilon": 8.0})
    case = released_case(model, pair, TARGETS)

    def claim() -> PrivacyProfile:
        assert model.set_params(random_state=0).fit(pair[0], TARGETS).n_iter_ > 0
        return case.claim()

    return dataclasses.replace(case, claim=claim)


def scalers() -> dict[str, Case]:
    pair = np.array([[0.0], [0.0], [1.0]]), np.zeros((2, 1))
    bounds = {"bounds": (-1.0, 1.0), "n_public": 3}
    return {
        "DPStandardScaler": released_case(DPStandardScaler(8.0, **bounds), pair, None),
        "DPStandardScaler, delta 0": released_case(
            DPStandardScaler(2.0, 0.0, **bounds), pair, None, pure=True, **COUNTED
        ),
        "DPMinMaxScaler": medians_case(),
        "DPPCA": released_case(DPPCA(epsilon=8.0, **bounds), pair, None),
    }


def medians_case() -> Case:
    """Return the audit of a scaler both of whose quantiles are medians.

    Three records are at the lower end. Without the fourth, in the middle, both halves of the range
    are as good; with it, the upper half is worse by one rank. A half is drawn with odds of e to
    the power of its budget: the record changes the chance of the upper half by this factor.
    """
    low = -np.ones((3, 1))
    X = np.vstack([low, [[0.0]]]), low
    share = 1.0
    scaler = DPMinMaxScaler(
        2.0 * share, quantile_range=(50.0 - 1e-9, 50.0), bounds=(-1.0, 1.0), n_public=3
    )

    def draw(present: bool, rng: np.random.Generator) -> float:
        scaler.set_params(random_state=seed_of(rng)).fit(X[0] if present else X[1])
        return float(scaler.data_min_[0] > 0.0)

    attained = 2.0 * math.log((1.0 + math.exp(share)) / 2.0)
    return Case(draw, lambda: PrivacyProfile.pure(attained), **COUNTED)


# Intervals and sets ---------------------------------------------------------------------


def conformal() -> dict[str, Case]:
    """Return the audits of the quantiles of intervals and sets.

    Nearly all records are held out. Models without an intercept predict 0, or even chances, of
    rows of zeros. Three records have one score; the fourth has a larger one, and changes the
    chance of a quantile above the middle of the grid.
    """
    return {
        f"{kind.__name__}{name}": quantile_case(*conformal_model(kind, epsilon), *scores)
        for kind, name, epsilon, scores in (
            # The budgets are those at which the fewest fits show too little noise.
            (PrivateConformalRegressor, "", 2.0, (0.0, 0.0, 0.0, 0.5)),
            (PrivateConformalClassifier, "", 6.0, (0.5, 0.5, 0.5, 1.0)),
        )
    } | {"PrivateConformalRegressor, fit and quantile": fit_and_quantile_case(3.0, 0.5)}


def conformal_model(kind: Any, epsilon: float) -> tuple[Any, dict[float, Any]]:
    """Return a model of intervals or sets, and targets by the scores that they have."""
    settings = {"coverage": 0.5, "calibration_fraction": 0.99, "n_public": 200}
    settings["epsilon"] = epsilon
    if kind is PrivateConformalRegressor:
        # A residual of 2^-5 of the range lies in the middle of the grid.
        ridge = AdaSSPLinearRegression(target_bound=1.0, fit_intercept=False)
        return kind(ridge, **settings), {0.0: 0.0, 0.5: 2.0**-4, 1.0: 1.0}
    logistic = DPLogisticRegression(solver="output", fit_intercept=False)
    # Both labels are as probable; 7 is no label.
    return kind(logistic, classes=[0, 1], **settings), {0.5: 1, 1.0: 7}


class SumAside(BaseEstimator):
    """Releases the sum of a feature in [0, 1], with Laplace noise at a delta of 0."""

    cost_parameters = frozenset({"epsilon", "delta"})

    def __init__(self, epsilon=1.0, delta=0.0, random_state=None, n_public=None):
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state
        self.n_public = n_public

    def privacy_profile(self, n_samples, n_features=None):
        if self.delta == 0.0:
            return PrivacyProfile.pure(self.epsilon)
        return noise_for_budget(self.epsilon, self.delta)[1]

    def fit(self, X, y):
        total = float(np.clip(X[:, 0], 0.0, 1.0).sum())
        if self.delta == 0.0:
            self.sum_ = laplace_release(total, 1.0, 1.0 / self.epsilon, self.random_state)
        else:
            noise = noise_for_budget(self.epsilon, self.delta)[0]
            self.sum_ = gaussian_release(total, 1.0, noise, self.random_state)
        self.classes_, self.n_features_in_ = np.array([0, 1]), 1
        self.privacy_ = PrivacyReport(self.privacy_profile(len(X)), self.delta)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class NumbersAside(RegressorMixin, SumAside):
    """Predicts 0."""


class LabelsAside(ClassifierMixin, SumAside):
    """Is undecided."""

    def decision_function(self, X):
        return np.zeros(len(X))


def fit_and_quantile_case(epsilon: float, fraction: float) -> Case:
    """Return the audit of a fit and a quantile: a large sum, and a quantile up to the middle.

    A record in the fit makes the first more probable, and a held-out record the second. The scores
    of the three other records are the lowest.
    """
    model = PrivateConformalRegressor(
        NumbersAside(), epsilon=epsilon, delta=0.0, target_bound=1.0, coverage=0.5,
        calibration_fraction=fraction, n_public=200,
    )  # fmt: skip
    plan, y = model._plan(200, 1), np.array([0.0, 0.0, 0.0, 2.0**-4])
    middle = np.rint(plan.steps / 2)

    def draw(present: bool, rng: np.random.Generator) -> float:
        size = 4 if present else 3
        fitted = model.set_params(random_state=seed_of(rng)).fit(TOGETHER[:size], y[:size])
        return float(fitted.estimator_.sum_ > 0.6 and fitted.quantile_ * plan.steps < middle + 1.0)

    def claim() -> PrivacyProfile:
        numbers = np.arange(4)
        chance = stats.binom(3, fraction).pmf(numbers)
        scores = [np.zeros(number) for number in numbers]
        low = chance @ [1.0 - chance_above(each, middle, plan) for each in scores]
        more = [np.append(each, middle) for each in scores]
        held = chance @ [1.0 - chance_above(each, middle, plan) for each in more]
        noise = stats.laplace(scale=1.0 / plan.estimator.epsilon)
        without = noise.sf(0.6) * low
        together = fraction * noise.sf(0.6) * held + (1.0 - fraction) * noise.sf(-0.4) * low
        return PrivacyProfile.pure(math.log(together / without))

    return Case(draw, claim, **COUNTED | DEAR | {"n_fits": 12_000})


def quantile_case(model: Any, targets: dict[float, Any], *scores: float) -> Case:
    """Return the audit of one quantile of four scores: shares of the grid, the record's last."""
    plan, y = model._plan(200, 1), np.array([targets[score] for score in scores])
    steps, middle = plan.steps, np.rint(plan.steps / 2)
    X = np.zeros((4, 1))

    def draw(present: bool, rng: np.random.Generator) -> float:
        size = 4 if present else 3
        fitted = model.set_params(random_state=seed_of(rng)).fit(X[:size], y[:size])
        return float(fitted.quantile_ * steps > middle + 1.0)

    grid = np.rint(np.array(scores) * steps)
    # Above the middle, without the fourth record and with it.
    chances = [chance_above(each, middle, plan) for each in (grid[:3], grid)]
    ratios = [math.log(chances[0] / chances[1]), math.log1p(-chances[0]) - math.log1p(-chances[1])]
    attained = max(map(abs, ratios))
    return Case(draw, lambda: PrivacyProfile.pure(attained), **COUNTED | DEAR | {"n_fits": 6000})


def chance_above(scores: np.ndarray, point: float, plan: Any) -> float:
    """Return the chance of a quantile above a point of the grid, counted point by point."""
    points, target = np.arange(plan.steps + 1), plan.level * scores.size
    below = (scores[:, None] < points).sum(axis=0)
    up_to = (scores[:, None] <= points).sum(axis=0)
    utility = -np.maximum(np.maximum(below - target, target - up_to), 0.0)
    weights = np.exp(plan.epsilon / (2.0 * max(plan.level, 1.0 - plan.level)) * utility)
    return float(weights[points > point].sum() / weights.sum())


# Searches -------------------------------------------------------------------------------

N_PUBLIC = 64
RECORDS = np.zeros((N_PUBLIC, 1))
EVERYONE = np.vstack([RECORDS, [[1.0]]]), RECORDS
# Public rows on which a larger sum is a better score, on the finest scale.
MANY_ROWS = {"X_val": np.linspace(-7.0, 7.0, 201)[:, None], "y_val": np.zeros(201, dtype=int)}
# One row that is predicted correctly if the sum is above a half.
ONE_ROW = {"X_val": np.array([[-0.5]]), "y_val": np.array([0])}


class NoisySum(QuickParameters, ClassifierMixin, BaseEstimator):
    """Releases the sum of a feature in [0, 1] with Gaussian noise, and predicts 1 above `cut`."""

    cost_parameters = frozenset({"noise"})

    def __init__(self, noise=1.0, cut=10.0, true_noise=None, random_state=None, n_public=None):
        self.noise = noise
        self.cut = cut
        self.true_noise = true_noise
        self.random_state = random_state
        self.n_public = n_public

    def privacy_profile(self, n_samples, n_features=None):
        return gaussian_profile(1.0, self.noise)

    def fit(self, X, y):
        total = float(np.clip(X[:, 0], 0.0, 1.0).sum())
        scale = self.noise if self.true_noise is None else self.true_noise
        self.sum_ = gaussian_release(total, 1.0, scale, self.random_state)
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        """Predict 1 for rows above the cut, and for rows below the sum."""
        return ((X[:, 0] > self.cut) | (X[:, 0] < -self.sum_)).astype(int)


class CutOnly(NoisySum):
    """Predicts only by the cut, so that the sum contains no information on the score."""

    def predict(self, X):
        return (X[:, 0] > self.cut).astype(int)


def half_or_whole(y: Any, prediction: Any) -> Any:
    """Return a half, the middle of the bounds, for all records except those above the cut."""
    return 0.5 + 0.5 * prediction


MIDDLE = make_bounded_scorer(half_or_whole, 0.0, 1.0, greater_is_better=True)


def six_times(y: Any, prediction: Any) -> Any:
    """Return six times the given value."""
    return 6.0 * half_or_whole(y, prediction)


SIX_TIMES = make_bounded_scorer(six_times, 0.0, 6.0, greater_is_better=True)


def search_case(
    search: Any,
    statistic: Callable[[Any], float],
    public: dict[str, Any],
    attained: PrivacyProfile | None = None,
    **more: Any,
) -> Case:
    """Return the audit of whole searches; `attained` is a smaller cost for the record."""

    def draw(present: bool, rng: np.random.Generator) -> float:
        X = EVERYONE[0] if present else EVERYONE[1]
        search.set_params(random_state=seed_of(rng)).fit(X, np.arange(len(X)) % 2, **public)
        return statistic(search)

    def claim() -> PrivacyProfile:
        draw(True, np.random.default_rng(0))
        return attained or search.privacy_.profile

    return Case(draw, claim, **{"n_fits": 2000} | DEAR | more)


def likelihood_of_folds(search: Any) -> float:
    """Return the probability that the record is in one of two folds, from all noisy scores."""
    found, shift = search.cv_results_, 0.5 / (N_PUBLIC / 2)
    splits = [np.sum(found[f"split{place}_test_score"] - 0.5) for place in range(2)]
    deviation = search._strategy().deviation(search._make_plan(N_PUBLIC, 1))
    return float(np.logaddexp(*(shift * split / deviation**2 for split in splits)))


def searches() -> dict[str, Case]:
    common = {"n_public": N_PUBLIC, "delta": DELTA}
    one_run = Binomial(1, 1.0)
    cuts = {"cut": [9.0, 10.0, 11.0]}
    by_index = flat(
        DPGridSearchCV,
        NoisySum(noise=50.0),
        {"cut": [-10.0, 10.0]},
        strategy="noisy_max",
        selection_epsilon=2.0,
        n_partitions=2,
        tuning_estimator=NoisySum(true_noise=0.0),
        **common,
    )
    by_score = flat(
        DPRandomSearchCV,
        CutOnly(noise=50.0),
        {"cut": [0.5]},
        scoring=MIDDLE,
        cv=2,
        refit=True,
        n_iter_distribution=one_run,
        tuning_fraction=None,
        score_epsilon=8.0,
        try_own_values=False,
        **common,
    )
    by_folds = flat(
        DPGridSearchCV,
        CutOnly(noise=50.0),
        {"cut": [0.5, 0.6, 0.7]},
        scoring=MIDDLE,
        cv=2,
        score_epsilon=4.0,
        try_own_values=False,
        **common,
    )
    # One rule puts the record into validation, and the other into training.
    of_one = {"n_iter_distribution": one_run, "tuning_fraction": None} | common
    of_one["try_own_values"] = False
    held_out = flat(
        DPRandomSearchCV,
        CutOnly(noise=50.0),
        {"cut": [0.5]},
        scoring=MIDDLE,
        cv=HoldOut(0, ">=", 0.5, share=0.5),
        score_epsilon=8.0,
        **of_one,
    )
    kept = flat(
        DPRandomSearchCV,
        NoisySum(noise=0.6),
        {"cut": [10.0]},
        cv=HoldOut(0, "<", 0.5, share=0.5),
        score_epsilon=0.1,
        **of_one,
    )
    by_metrics = flat(
        DPGridSearchCV,
        CutOnly(noise=50.0),
        {"cut": [0.5]},
        scoring={"middle": MIDDLE, "six_times": SIX_TIMES},
        cv=2,
        refit="middle",
        strategy="compose",
        score_epsilon=8.0,
        **common,
    )
    return one_more_run() | {
        "DPRandomSearchCV, held out by a rule": search_case(
            held_out, lambda search: search.best_score_, {}
        ),
        "DPRandomSearchCV, kept by a rule": search_case(
            kept, lambda search: search.best_estimator_.sum_, {}, n_quick=300
        ),
        "DPGridSearchCV, two metrics": search_case(
            by_metrics,
            lambda search: float(
                search.cv_results_["mean_test_middle"][0]
                + search.cv_results_["mean_test_six_times"][0] / 6.0
            ),
            {},
        ),
        "DPGridSearchCV, compose": search_case(
            flat(DPGridSearchCV, NoisySum(), cuts, strategy="compose", **common),
            lambda search: float(np.sum(search.cv_results_["mean_test_score"])),
            MANY_ROWS,
        ),
        "DPGridSearchCV, table": search_case(
            flat(DPGridSearchCV, NoisySum(), cuts, strategy="table", **common),
            # With equal noise: three scores, and the score of the final fit on the same rows.
            lambda search: (
                float(np.sum(search.cv_results_["mean_test_score"]))
                + search.best_estimator_.score(MANY_ROWS["X_val"], MANY_ROWS["y_val"])
            ),
            MANY_ROWS,
        ),
        "DPGridSearchCV, table of folds": search_case(
            by_folds, likelihood_of_folds, {}, n_fits=6000, n_quick=300
        ),
        "DPGridSearchCV, noisy_max": search_case(
            by_index,
            lambda search: search.best_params_["cut"],
            ONE_ROW,
            # The noise is for records that may raise some utilities and lower others: twice that
            # for records that raise them, such as this one, which attains half of the budget.
            attained=PrivacyProfile.pure(1.0) + PrivacyProfile.gaussian(0.02),
            bound="counted",
            n_fits=6000,
        ),
        "DPRandomSearchCV, one run": search_case(
            flat(
                DPRandomSearchCV,
                NoisySum(noise=0.6),
                {"cut": [10.0]},
                n_iter_distribution=one_run,
                tuning_fraction=None,
                try_own_values=False,
                **common,
            ),
            lambda search: search.best_estimator_.sum_,
            MANY_ROWS,
            n_quick=300,
        ),
        "DPRandomSearchCV, scores": search_case(by_score, lambda search: search.best_score_, {}),
        "DoublingThresholdSearchCV, sparse": threshold_search_case("sparse"),
        "DoublingThresholdSearchCV, per-round": threshold_search_case("per-round"),
        "doubling_threshold_release, sparse": doubling_case("sparse"),
        "doubling_threshold_release, per-round": doubling_case("per-round"),
    }


def one_more_run() -> dict[str, Case]:
    """Return the audits of random searches that publish a run of the unchanged estimator."""
    common = {"n_public": N_PUBLIC, "delta": DELTA, "tuning_fraction": None}
    common |= {"n_iter_distribution": Binomial(1, 1.0), "refit": "winner"}
    by_rule = {"scoring": MIDDLE, "cv": HoldOut(0, ">=", 0.5, share=0.5)}
    public = flat(DPRandomSearchCV, NoisySum(noise=0.9), {"cut": [9.0]}, **common)
    held_out = flat(
        DPRandomSearchCV, CutOnly(noise=0.75), {"cut": [0.5]}, score_epsilon=6.0,
        **common, **by_rule,
    ).set_params(estimator__cut=0.5)  # fmt: skip
    return {
        "DPRandomSearchCV, one more run": search_case(
            public,
            lambda search: float(np.sum(search.cv_results_["mean_test_score"])),
            MANY_ROWS,
        ),
        "DPRandomSearchCV, one more run, held out": search_case(
            held_out, scores_and_sum, {}, n_fits=6000
        ),
        "DPRandomSearchCV, kept by a test": kept_case(),
    }


def scores_and_sum(search: Any) -> float:
    """Return two scores and the published sum of a model, weighted according to their noise."""
    deviation = search._make_plan(N_PUBLIC, 1).score_deviation()
    shift = 0.5 / (0.5 * N_PUBLIC)
    scores = float(np.sum(search.cv_results_["mean_test_score"]))
    return scores * shift / deviation**2 + search.best_estimator_.sum_ / 0.75**2


def kept_case() -> Case:
    """Return the audit of whether a candidate is kept whose score is just above the margin.

    The record raises the score of the candidate, not that of the estimator as it is. Without it,
    the number of such records leaves the candidate just below the margin.
    """
    # Enough records for a margin within the range of scores.
    size = 4 * N_PUBLIC
    search = flat(
        DPRandomSearchCV, CutOnly(noise=50.0), {"cut": [0.5]}, scoring=MIDDLE, refit=False,
        cv=HoldOut(0, ">=", 0.25, share=0.5), score_epsilon=8.0, n_public=size, delta=DELTA,
        tuning_fraction=None, n_iter_distribution=Binomial(1, 1.0),
    )  # fmt: skip
    plan = search._make_plan(size, 1)
    outlook = search._strategy().outlook(plan, None)
    needed = margin(outlook.rivals) * math.sqrt(2.0) * outlook.deviation
    shift = 0.5 / (0.5 * size)
    above = math.ceil(needed / shift) - 1
    X = np.repeat([0.3, 1.0, 1.0], [size // 2, above, 1])[:, None]

    def draw(present: bool, rng: np.random.Generator) -> float:
        rows = X if present else X[:-1]
        search.set_params(random_state=seed_of(rng)).fit(rows, np.arange(len(rows)) % 2)
        return float(search.best_index_)

    def claim() -> PrivacyProfile:
        noise = stats.norm(scale=math.sqrt(2.0) * plan.score_deviation())
        chances = [noise.sf(needed - (above + more) * shift) for more in (1, 0)]
        ratios = (math.log(chances[0] / chances[1]), math.log1p(-chances[1]))
        return PrivacyProfile.pure(max(ratios[0], ratios[1] - math.log1p(-chances[0])))

    return Case(draw, claim, **COUNTED | DEAR | {"n_fits": 2000})


def pareto_case() -> Case:
    """Return the audit of one score, the only release of a search over models without signal."""
    search = flat(
        DParetoSearchCV,
        CutOnly(cut=0.5),
        {"noise": [50.0]},
        n_initial=1,
        n_iter=0,
        release=50.0,
        scoring=MIDDLE,
        cv=2,
        delta=DELTA,
        n_public=N_PUBLIC,
    )

    def draw(present: bool, rng: np.random.Generator) -> float:
        X = EVERYONE[0] if present else EVERYONE[1]
        search.set_params(random_state=seed_of(rng)).fit(X, np.arange(len(X)) % 2)
        return float(search.evaluations_["error"][0])

    def claim() -> PrivacyProfile:
        # Nine tenths of a release are reserved for fits, which need none of it here.
        draw(True, np.random.default_rng(0))
        (scores,) = (part for part in search.privacy_.parts if "scores" in part.name)
        return scores.profile

    return Case(draw, claim, n_fits=2000)


def adaptive_case() -> Case:
    """Return the audit of searches of two candidates, all scores and the final fit."""
    search = DPAdaptiveSearchCV(
        NoisySum(),
        {"cut": [9.0, 10.0, 11.0]},
        n_trials=2,
        n_public=N_PUBLIC,
        delta=DELTA,
        strategy=AdaptiveTrials(sampler="random", choose_by="max"),
    )
    # With equal noise.
    return search_case(
        search,
        lambda search: (
            float(np.sum(search.cv_results_["mean_test_score"]))
            + search.best_estimator_.score(MANY_ROWS["X_val"], MANY_ROWS["y_val"])
        ),
        MANY_ROWS,
    )


def threshold_search_case(noise: str) -> Case:
    """Return the audit of a search of one round on two partitions, one of them with the record."""
    limits = {"max_rounds": 1} | ({"max_hits": 1} if noise == "sparse" else {})
    search = flat(
        DoublingThresholdSearchCV,
        NoisySum(noise=50.0),
        {"cut": [9.0, 10.0, 11.0]},
        refit=False,
        delta=DELTA,
        n_public=N_PUBLIC,
        selection_epsilon=3.0,
        n_partitions=2,
        granularity=0.25,
        noise=noise,
        tuning_estimator=NoisySum(true_noise=0.0),
        **limits,
    )
    delta = 0.1 * DELTA if noise == "per-round" else 0.0
    rounds = DoublingThreshold(
        sensitivity=0.5, granularity=0.25, epsilon=3.0, delta=delta, noise=noise, **limits
    )
    return search_case(
        search,
        lambda search: float(search.trace_[0].hit),
        ONE_ROW,
        attained=_attained_by_hit(rounds),
        bound="counted",
        delta=0.0,
        n_fits=20_000,
    )


def doubling_case(noise: str) -> Case:
    """Return the audit of a search of one round: whether any of three candidates passes."""
    budget = {"sensitivity": 0.5, "granularity": 0.25, "epsilon": 3.0, "max_rounds": 1}
    settings = budget | ({"max_hits": 1} if noise == "sparse" else {}) | {"noise": noise}

    def draw(present: bool, rng: np.random.Generator) -> float:
        utilities = [0.5 if present else 0.0] * 3
        trace = doubling_threshold_release(utilities, random_state=rng, **settings)[1]
        return float(trace[0].hit)

    def claim() -> PrivacyProfile:
        return _attained_by_hit(DoublingThreshold(**settings))

    return Case(draw, claim, **COUNTED | {"n_fits": 40_000})


def _attained_by_hit(search: DoublingThreshold) -> PrivacyProfile:
    """Return what is shown by whether three utilities of a half, or of 0, pass the first round."""
    plan = search._plan
    misses = [
        _chance_of_miss(search.threshold, utility, plan.threshold_scale, plan.candidate_scale)
        for utility in (0.0, 0.5)
    ]
    attained = math.log(misses[0] / misses[1])
    assert attained < search.profile.epsilon(1e-9)
    return PrivacyProfile.pure(attained)


def _chance_of_miss(threshold: float, utility: float, scale: float, candidates: float) -> float:
    """Return the chance that three utilities with Laplace noise stay below a noisy threshold."""
    noise = stats.laplace(scale=scale)
    chance: float = integrate.quad(
        lambda x: noise.pdf(x) * stats.laplace.cdf(threshold + x - utility, scale=candidates) ** 3,
        *(-40.0 * scale, 40.0 * scale),
        points=[0.0],
        limit=200,
    )[0]
    return chance


# Boosting -------------------------------------------------------------------------------


def boosting() -> dict[str, Case]:
    settings = {
        "epsilon": 8.0,
        "bounds": (0.0, 1.0),
        "max_bins": 2,
        "max_rounds": 1,
        "learning_rate": 1.0,
        "bin_share": 0.01,
        "n_public": 4,
    }
    models = {
        # The first step starts from a probability of a half.
        DPExplainableBoostingClassifier: (0.5, LABELS, {"classes": [0, 1]}),
        DPExplainableBoostingRegressor: (1.0, TARGETS, {"target_bound": 1.0}),
    }
    # Without the hundredth of the squared shift that is for the counts.
    return {
        kind.__name__: _of_last_record(kind(**settings, **more), y, share * math.sqrt(0.99))
        for kind, (share, y, more) in models.items()
    } | {"DPExplainableBoostingRegressor, a grid of a pair": _grid_case(8.0)}


def _grid_case(epsilon: float) -> Case:
    """Return the audit of the sum of a grid's only cell, to which the last record adds 1."""
    noise, profile = noise_for_budget(epsilon, DELTA)

    def draw(present: bool, rng: np.random.Generator) -> float:
        n = 4 if present else 3
        axis = Axis(np.zeros(1, np.intp), np.array([4.0]))
        pair, units = Pair((0, 1), [axis, axis], 1), np.full((1, 1), n / UNIT)
        pair.counts[:] = n
        grid = released_grid(pair, np.zeros(1, np.intp), units, 1.0, noise, rng)
        return float(grid.sums[0, 0])

    # The statistic is the residual, and not the count.
    return Case(draw, lambda: _of_share(profile, 1.0 / math.hypot(1.0, 0.35), DELTA))


def _of_last_record(model: Any, y: Any, share: float) -> Case:
    """Return the audit of a sum over one bin, with and without the last record."""

    def draw(present: bool, rng: np.random.Generator) -> float:
        n = 4 if present else 3
        fitted = model.set_params(random_state=seed_of(rng)).fit(WITHOUT[:n], y[:n])
        (weights,) = fitted.bin_weights_
        return float(fitted.intercept_[0] * weights.sum())

    def claim() -> PrivacyProfile:
        return _of_share(model.fit(WITHOUT, y).privacy_.profile, share, model.delta)

    return Case(draw, claim, **WEAK if share < 0.9 else {})


# Histograms of scores ------------------------------------------------------------------


def curves() -> dict[str, Case]:
    # A model with zero weight, so that scores are 0, in the upper of two bins.
    frozen = FrozenEstimator(DPLogisticRegression(**NORMAL).fit(WITHOUT, LABELS))
    return {
        kind.__name__: _of_count(
            kind(frozen, epsilon=8.0, delta=DELTA, n_bins=2, insist=True, n_public=4, **more)
        )
        for kind, more in ((PrivateScoreCurves, {}), (PrivateThreshold, {"at_least": 0.5}))
    } | {"PrivateScoreCurves, fit and counts": fit_and_counts_case()}


def fit_and_counts_case() -> Case:
    """Return the audit of a model and the histogram of the records that it was fitted to.

    Scores are 0, so that the record is in the upper of two bins, whatever the sum.
    """
    settings = {"epsilon": 8.0, "delta": DELTA, "n_bins": 2, "insist": True, "n_public": 4}
    model = PrivateScoreCurves(LabelsAside(), share=0.5, **settings)
    plan = model._plan(4, 1)
    sum_noise = noise_for_budget(plan.estimator.epsilon, DELTA)[0]
    # Without the tenth of the histogram's share that is for the range.
    count_noise = plan.scale / math.sqrt(0.9)

    def draw(present: bool, rng: np.random.Generator) -> float:
        size = 4 if present else 3
        fitted = model.set_params(random_state=seed_of(rng)).fit(TOGETHER[:size], LABELS[:size])
        count = float(fitted.histogram_.counts[1, 1])
        return fitted.estimator_.sum_ / sum_noise**2 + count / count_noise**2

    def claim() -> PrivacyProfile:
        return PrivacyProfile.gaussian(math.hypot(1.0 / sum_noise, 1.0 / count_noise))

    return Case(draw, claim, n_fits=2000, **DEAR)


def _of_count(model: Any) -> Case:
    """Return the audit of the count that the last record is in, or is not."""

    def draw(present: bool, rng: np.random.Generator) -> float:
        n = 4 if present else 3
        fitted = model.set_params(random_state=seed_of(rng)).fit(WITHOUT[:n], LABELS[:n])
        return float(fitted.histogram_.counts[1, 1])

    def claim() -> PrivacyProfile:
        # Without the tenth of the squared shift that is for the range.
        profile = model.fit(WITHOUT, LABELS).privacy_.profile
        return _of_share(profile, math.sqrt(0.9), DELTA)

    return Case(draw, claim, n_fits=2000, **DEAR)


# Nets -----------------------------------------------------------------------------------


def nets() -> dict[str, Case]:
    import torch

    from skdptune.neural_network import (
        DPNeuralNetBinaryClassifier,
        DPNeuralNetClassifier,
        DPNeuralNetRegressor,
    )

    def module(outputs: int) -> Callable[[], torch.nn.Module]:
        def make() -> torch.nn.Module:
            layer = torch.nn.Linear(1, outputs, bias=False)
            torch.nn.init.zeros_(layer.weight)
            return layer

        return make

    def weight(net: Any) -> float:
        weights = net.module_.weight.detach().numpy().ravel()
        return float(weights[-1] - weights[0] if weights.size > 1 else weights[0])

    settings = {"epsilon": 8.0, "max_epochs": 1, "batch_size": 4, "n_public": 4}
    X = (10.0 * TOGETHER).astype(np.float32), WITHOUT.astype(np.float32)
    labels = {"classes": [0, 1]}
    # A step on all records; a step of Adam would only show the sign of the gradient.
    descent = {"optimizer": torch.optim.SGD}
    return {
        kind.__name__: fit_case(
            kind(module(outputs), **settings, **more), y, weight, X, n_fits=2000, n_quick=quick
        )
        for kind, outputs, more, y, quick in (
            (DPNeuralNetBinaryClassifier, 1, labels, LABELS, 120),
            (DPNeuralNetClassifier, 2, labels, LABELS, 300),
            (DPNeuralNetRegressor, 1, descent, TARGETS.astype(np.float32), 120),
        )
    }


def cases() -> dict[str, Case]:
    """Return all audits by name."""
    found = classifiers() | regressions() | boosting() | curves() | scalers() | conformal()
    found |= searches()
    if HAS_OPTUNA:
        found["DPAdaptiveSearchCV, table"] = adaptive_case()
    if HAS_PARETO:
        found["DParetoSearchCV, release"] = pareto_case()
    return found | nets() if HAS_NETS else found


# Faults ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A release that is broken on purpose.

    Attributes
    ----------
    case : str or Case
        Name of the audit that must refute it, or an audit of nothing else.
    broken : callable
        Returns the context in which it is broken.
    n_fits : int
        How many fits refute it.
    """

    case: str | Case
    broken: Callable[[], AbstractContextManager[Any]]
    n_fits: int = 100


def faults() -> dict[str, Fault]:
    """Return what audits must find, by names."""
    one_more = "DPRandomSearchCV, one more run"

    def counts() -> AbstractContextManager[None]:
        return auditing.noise_forgotten(_curves)

    def scores() -> AbstractContextManager[None]:
        return auditing.noise_forgotten(_runs)

    # The level is a little above a half: with the record, an upper score is the quantile.
    at_a_rank = {
        PrivateConformalRegressor: (0.0, 0.0, 1.0, 1.0),
        PrivateConformalClassifier: (0.5, 0.5, 1.0, 1.0),
    }
    return {
        f"{kind.__name__}, the quantile without noise": Fault(
            quantile_case(*conformal_model(kind, 2.0), *scores),
            auditing.quantile_without_noise,
            200,
        )
        for kind, scores in at_a_rank.items()
    } | {
        "curves, counts without noise": Fault("PrivateScoreCurves", counts),
        "a threshold, counts without noise": Fault("PrivateThreshold", counts),
        "a fit and curves, counts without noise": Fault(
            "PrivateScoreCurves, fit and counts", counts
        ),
        "intervals, the fit uses records that are held out": Fault(
            "PrivateConformalRegressor, fit and quantile", auditing.held_out_records_fitted, 6000
        ),
        "nine targets, the noise of one": Fault(
            "DPRidge, nine targets", auditing.noise_of_one_target, 2000
        ),
        "one more run that is not paid for": Fault(one_more, auditing.run_for_nothing, 3000),
        "one more run, scores without noise": Fault(f"{one_more}, held out", scores, 1000),
        "one more run, fitted to records that are held out": Fault(
            f"{one_more}, held out", auditing.all_records_tuned, 6000
        ),
        "a test on scores without noise": Fault("DPRandomSearchCV, kept by a test", scores, 200),
    }
