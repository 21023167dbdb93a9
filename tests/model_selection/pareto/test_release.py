"""The price of a released front: recomputed by other ways, kept to, and nothing else shown."""

from __future__ import annotations

import math
import pickle
import sys
from typing import Any

import cloudpickle
import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import FitFailedWarning

from skdptune.accounting import Geometric, PrivacyProfile, UnreachableBudgetError
from skdptune.accounting._losses._renyi import ORDERS
from skdptune.metrics import accuracy
from skdptune.model_selection import DParetoSearchCV
from skdptune.model_selection._cost._layout import Layout, make_layout
from skdptune.model_selection._pareto import _evaluation as evaluation
from skdptune.model_selection._pareto._release import plan_release
from tests.model_selection.learners import Private, Scripted, table
from tests.model_selection.test_release import numbers, visible

# Another package may be named tests where workers look for it.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytest.importorskip("optuna")

DELTA = 1e-5
X, Y = table(600)
LAYOUTS: dict[str, dict[str, Any]] = {
    "split": {"cv": 0.2, "public": False},
    "folds": {"cv": 4, "public": False},
    "public": {"cv": 0.2, "public": True},
}


def layout_of(name: str, n_samples: int = 600) -> Layout:
    return make_layout(
        n_samples,
        3,
        **LAYOUTS[name],
        tuning_fraction=None,
        variant=1,
        refit=True,
        is_random=False,
    )


def planned(name: str, epsilon: float = 10.0, mus: Any = (0.4,), **more: Any) -> Any:
    fits = [PrivacyProfile.gaussian(mu) for mu in mus]
    settings = {"n_initial": 1, "is_equal": False, "follows_scores": True, **more}
    return plan_release(layout_of(name), epsilon, DELTA, 30, 2, fits, **settings)


def gaussian(mu: float) -> PrivacyProfile:
    return PrivacyProfile.gaussian(float(mu))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return Balle and Wang's curve, by scipy alone."""
    tail = stats.norm.cdf
    return float(tail(mu / 2 - epsilon / mu) - math.exp(epsilon) * tail(-mu / 2 - epsilon / mu))


def gaussian_epsilon(mu: float, delta: float = DELTA) -> float:
    low, high = 0.0, 500.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(mu, middle) > delta else (low, middle)
    return high


def largest_mu(epsilon: float, delta: float = DELTA) -> float:
    low, high = 1e-6, 25.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_epsilon(middle, delta) > epsilon else (middle, high)
    return low


# Equal prices: closed forms ----------


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("mu", [0.05, 0.3, 0.6])
def test_equal_fits_are_as_many_as_their_exact_composition_allows(name: str, mu: float) -> None:
    plan = planned(name, mus=(mu,), is_equal=True)
    fits = {"split": 2, "folds": 2 * 3, "public": 2}[name]
    whole = largest_mu(10.0) ** 2
    # With folds a tenth of the budget is for the scores, which the same records pay for.
    most = (0.9 if name == "folds" else 1.0) * whole / (fits * mu * mu)
    assert plan.kind == "equal" and plan.n_fits == fits
    assert 0.995 * min(most, 30) - 1 <= plan.n_evaluations <= most
    trained = math.sqrt(plan.n_evaluations * fits) * mu
    scored = 0.0 if plan.layout.public else math.sqrt(plan.n_evaluations) / plan.noise.ratio
    if name == "folds":
        trained = math.hypot(trained, scored)
    for epsilon in (1.0, 3.0, 8.0):
        exact = gaussian_delta(trained, epsilon)
        if name == "split":
            exact = 0.8 * exact + 0.2 * gaussian_delta(scored, epsilon)
        found = plan.total.delta(epsilon)
        assert exact * (1 - 1e-9) <= found <= exact * 1.01 + 1e-12
    assert plan.total.epsilon(DELTA) <= 10.0


@pytest.mark.parametrize("name", ["split", "folds"])
def test_scores_of_a_study_cost_one_gaussian_release(name: str) -> None:
    # Theorem G3.
    for follows in (False, True):
        plan = planned(name, mus=(0.3, 0.6), follows_scores=follows)
        shift = math.sqrt(plan.n_evaluations) / plan.noise.ratio
        assert gaussian_epsilon(shift) == pytest.approx(plan.scores.epsilon(DELTA), rel=1e-3)
        assert plan.noise.profile == PrivacyProfile.gaussian(1.0 / plan.noise.ratio)
        if name == "split":
            assert gaussian_epsilon(shift) == pytest.approx(10.0, rel=2e-3)
        elif not follows:
            assert shift**2 == pytest.approx(0.1 * largest_mu(10.0) ** 2, rel=5e-3)
        else:
            budget = plan.budget()._filter.budget
            assert plan.order * shift**2 / 2 == pytest.approx(0.1 * budget, rel=1e-6)


def test_public_validation_has_no_noise() -> None:
    plan = planned("public")
    assert (plan.noise.kind, plan.noise.ratio) == ("none", 0.0)
    assert [part.name for part in plan.parts] == ["evaluations"]


# Unequal prices ----------


@pytest.mark.parametrize("name", LAYOUTS)
def test_filter_admits_what_fits_and_no_more(name: str) -> None:
    """The sum at the one order, recomputed; dear and cheap ones in an order that provokes."""
    # Theorem G3.
    plan = planned(name, mus=(0.1, 0.3, 0.9))
    order = plan.order
    budget = plan.epsilon + (
        math.log(plan.left * (order - 1)) - order * math.log(1 - 1 / order)
    ) / (order - 1)
    spent = 0.1 * budget if name == "folds" else 0.0
    kept = plan.budget()
    rng = np.random.default_rng(0)
    refused = 0
    for mu in [*rng.choice([0.1, 0.3, 0.9, 1.6], size=80), *[0.05] * 30]:
        cost = plan.n_fits * order * mu * mu / 2
        is_room = kept.n_charged < plan.n_evaluations
        fits = is_room and spent + cost <= budget * (1 - 1e-4)
        is_beyond = not is_room or spent + cost > budget
        charged = kept.charge(PrivacyProfile.gaussian(float(mu)))
        assert charged or not fits
        assert not (charged and is_beyond)
        refused += not charged
        spent += cost if charged else 0.0
    assert refused and kept.n_charged >= 5
    assert spent <= budget
    assert plan.total.epsilon(DELTA) <= 10.0


@pytest.mark.parametrize("name", LAYOUTS)
def test_known_costs_compose_exactly(name: str) -> None:
    # Theorem G3.
    plan = planned(name, mus=(0.1, 0.3, 0.9), follows_scores=False)
    assert plan.kind == "known"
    kept, squares = plan.budget(), 0.0
    scores = 0.1 * largest_mu(10.0) ** 2 if name == "folds" else 0.0
    for mu in np.random.default_rng(1).choice([0.1, 0.3, 0.9], size=60):
        cost = plan.n_fits * mu * mu
        is_full = kept.n_charged >= plan.n_evaluations
        exact = gaussian_epsilon(math.sqrt(squares + cost + scores))
        charged = kept.charge(PrivacyProfile.gaussian(float(mu)))
        if not is_full and abs(exact - 10.0) > 0.05:
            assert charged == (exact < 10.0)
        squares += cost if charged else 0.0
    # Everything that was done costs no more than was said beforehand.
    for epsilon in (10.0, 12.0):
        exact = gaussian_delta(math.sqrt(squares + scores), epsilon)
        assert exact <= plan.total.delta(epsilon) * (1 + 1e-9) + 1e-15
    assert squares > 0.8 * (largest_mu(10.0) ** 2 - scores)


def squares_left(kept: Any) -> float:
    """Return what the squares of the shifts of evaluations may still sum to."""
    plan = kept.plan
    if plan.kind == "filter":
        return 2.0 / plan.order * (kept._filter.budget - kept._filter.spent)
    return largest_mu(10.0) ** 2 * (0.9 if plan.layout.folds else 1.0)


@pytest.mark.parametrize("follows", [True, False])
@pytest.mark.parametrize("name", LAYOUTS)
def test_first_evaluations_share_what_is_left(name: str, follows: bool) -> None:
    plan = planned(name, mus=(0.1, 2.0), n_initial=12, follows_scores=follows)
    assert plan.n_sure == 12
    kept = plan.budget()
    share = math.sqrt(squares_left(kept) / 12 / plan.n_fits)
    assert not kept.charge(gaussian(1.03 * share))
    assert all(kept.charge(gaussian(0.97 * share)) for _ in range(12))


def test_a_later_evaluation_takes_half_of_what_is_left() -> None:
    kept = planned("public", mus=(0.1, 2.0), n_initial=2).budget()
    assert all(kept.charge(gaussian(0.1)) for _ in range(2))
    half = math.sqrt(squares_left(kept) / 2 / kept.plan.n_fits)
    assert not kept.charge(gaussian(1.03 * half))
    assert kept.charge(gaussian(0.97 * half))
    assert not kept.charge(gaussian(0.97 * half))


def test_the_share_grows_where_all_points_are_dear() -> None:
    plan = planned("public", mus=(0.9, 1.1), n_initial=16)
    assert 1 <= plan.n_sure < 16
    kept = plan.budget()
    assert all(kept.charge(gaussian(0.9)) for _ in range(plan.n_sure))
    assert not kept.charge(gaussian(0.9))


@pytest.mark.parametrize("follows", [True, False])
def test_what_was_refused_bars_nothing_that_is_cheaper_together(follows: bool) -> None:
    """A pure guarantee costs less than a Gaussian by epsilon, and sixteen of it cost more."""
    pure, dearer, small = PrivacyProfile.pure(0.028), PrivacyProfile.pure(0.05), gaussian(0.02)
    settings: dict[str, Any] = {"n_initial": 16, "is_equal": False, "follows_scores": follows}
    plan = plan_release(layout_of("public"), 0.45, DELTA, 100, 1, [small, pure], **settings)
    kept = plan.budget()
    assert not kept.charge(dearer)
    assert sum(kept.charge(small) for _ in range(30)) == 30


def test_equal_prices_at_a_tiny_delta_are_paid_as_far_as_curves_show() -> None:
    settings: dict[str, Any] = {"n_initial": 1, "is_equal": True, "follows_scores": True}
    plan = plan_release(layout_of("public"), 1.0, 3e-15, 272, 1, [gaussian(0.05)], **settings)
    assert plan.n_evaluations >= 1
    assert plan.total.epsilon(3e-15) <= 1.0


def test_exact_composition_admits_more_than_the_filter() -> None:
    fit = PrivacyProfile.gaussian(0.5)
    counts = []
    for follows in (False, True):
        kept = planned("public", mus=(0.5, 0.4), follows_scores=follows).budget()
        while kept.charge(fit):
            pass
        counts.append(kept.n_charged)
    assert counts[0] > counts[1] >= 3


def test_estimators_of_one_delta_use_what_is_set_aside() -> None:
    fits = [PrivacyProfile.approximate(0.3, 1e-7), PrivacyProfile.approximate(0.2, 1e-7)]
    settings: dict[str, Any] = {"n_initial": 1, "is_equal": False, "follows_scores": True}
    plan = plan_release(layout_of("public"), 10.0, DELTA, 100, 2, fits, **settings)
    kept = plan.budget()
    while kept.charge(fits[1]):
        pass
    # Half of delta, two fits of 1e-7 each time.
    assert kept.n_charged == 24
    assert plan.total.epsilon(DELTA) <= 10.0
    assert plan.total.delta(400.0) == pytest.approx(plan.failure, rel=1e-5)
    with pytest.raises(UnreachableBudgetError, match="far smaller than that of the study"):
        wide = [PrivacyProfile.approximate(0.3, 6e-6 / 2)]
        plan_release(layout_of("public"), 10.0, DELTA, 100, 2, wide, **settings)


def test_profiles_of_selections_can_be_charged() -> None:
    part = PrivacyProfile.gaussian(0.2).selected(Geometric(0.3))
    kept = planned("public").budget()
    assert kept.charge(part)


def test_last_fit_is_in_the_total() -> None:
    plan = planned("split", final=2.0)
    assert plan.delta == DELTA / 2
    assert plan.final.epsilon(DELTA / 2) == 2.0
    assert 11.5 < plan.total.epsilon(DELTA) <= 12.0
    # Basic composition is an upper bound on what is stated.
    without = planned("split")
    assert without.total.epsilon(DELTA) <= 10.0


def test_chance_of_an_empty_part_is_paid_for() -> None:
    # Theorem F7.
    fits = [PrivacyProfile.gaussian(0.4)]
    small = layout_of("split", 20)
    chance = 0.2**19
    settings: dict[str, Any] = {"n_initial": 1, "is_equal": True, "follows_scores": True}
    with pytest.raises(UnreachableBudgetError, match="chance that some fit has no record"):
        plan_release(small, 10.0, chance / 2, 5, 1, fits, **settings)
    plan = plan_release(small, 10.0, DELTA, 5, 1, fits, **settings)
    assert plan.total.delta(300.0) == pytest.approx(chance, rel=1e-6)


def test_unreachable_total_names_the_least() -> None:
    for equal in (True, False):
        with pytest.raises(
            UnreachableBudgetError, match=r"release must be above [\d.]+ at"
        ) as caught:
            planned("public", epsilon=0.5, mus=(1.0,), is_equal=equal)
        exact = gaussian_epsilon(math.sqrt(2.0))
        assert caught.value.least_epsilon == pytest.approx(exact, rel=1e-2)


# The search keeps to it ----------


class Priced(Scripted):
    """Says its mark whenever it fails, which it does on the data below a quality of 0.6."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Priced:
        if self.quality < 0.6:
            raise ValueError(f"secret exception about {X[0, 1]}")
        return super().fit(X, y)


def search(sampler: Any = "random", **more: Any) -> DParetoSearchCV:
    settings: dict[str, Any] = {
        "n_initial": 6,
        "n_iter": 6,
        "release": 12.0,
        "random_state": 0,
        "sampler": sampler,
        **more,
    }
    space = {"epsilon": (0.2, 6.0, "log"), "quality": (0.4, 0.9417)}
    return DParetoSearchCV(Priced(delta=1e-7), space, **settings)


def squares_of(fitted: Any) -> np.ndarray:
    """Return the squared shifts of the evaluated fits, from their parameters alone."""
    return np.array(
        [
            fitted.estimator.set_params(**row).privacy_profile(600).rdp(2.0)
            for row in fitted.evaluations_.params
        ]
    )


@pytest.mark.parametrize("cv", [0.2, 3])
def test_everything_that_was_done_fits_the_total(cv: Any) -> None:
    # Theorem G3.
    fitted = search(cv=cv, n_repeats=2).fit(X, Y)
    fits = 2 * (2 if cv == 3 else 1)
    trained = fits * squares_of(fitted).sum()
    plan = fitted._make_plan(600, 3, classes=[0, 1]).plan
    scored = len(fitted.hypervolume_history_) and plan.n_evaluations / plan.noise.ratio**2
    exact = gaussian_epsilon(math.sqrt(trained + (scored if cv == 3 else 0.0)))
    assert exact <= 12.0
    assert fitted.privacy_.epsilon == 12.0
    assert fitted.privacy_.epsilon_spent <= 12.0
    assert fitted.privacy_.profile == fitted.privacy_profile(600, 3)
    assert not any("NOT PRIVATE" in words for words in fitted.privacy_.assumptions)


def test_adaptive_search_in_a_space_of_many_prices_keeps_to_its_order() -> None:
    """Proposals run after the good scores, which here are the dear ones."""
    fitted = search("auto", n_iter=12, release=8.0)
    fitted.fit(X, Y)
    plan = fitted._make_plan(600, 3, classes=[0, 1]).plan
    order, left = plan.order, DELTA * (1 - 1e-6)
    assert plan.kind == "filter" and order in ORDERS
    budget = 8.0 + (math.log(left * (order - 1)) - order * math.log(1 - 1 / order)) / (order - 1)
    spent = order / 2 * squares_of(fitted).sum()
    assert 0.4 * budget < spent <= budget
    assert fitted.privacy_.epsilon_spent <= 8.0


@pytest.mark.filterwarnings("ignore:All evaluations cost")
def test_equal_prices_are_composed() -> None:
    fitted = DParetoSearchCV(
        Priced(epsilon=0.5, delta=1e-7),
        {"quality": (0.6, 0.9)},
        n_initial=4,
        n_iter=100,
        sampler="random",
        release=3.0,
        random_state=0,
    ).fit(X, Y)
    mu = squares_of(fitted)[0] ** 0.5
    count = len(fitted.evaluations_)
    assert gaussian_epsilon(mu * math.sqrt(count)) <= 3.0
    assert gaussian_epsilon(mu * math.sqrt(count + 1)) > 3.0 * 0.998
    assert f"{count} evaluations of one price" in str(fitted.privacy_)


@pytest.mark.filterwarnings("ignore:All evaluations cost")
def test_estimator_that_hides_what_sets_its_price_is_not_believed() -> None:
    class Lying(Scripted):
        cost_parameters = frozenset({"delta"})

    fitted = DParetoSearchCV(
        Lying(delta=1e-7),
        {"epsilon": [0.5, 4.0], "quality": (0.6, 0.9)},
        n_initial=4,
        n_iter=20,
        sampler="random",
        release=12.0,
        random_state=0,
    ).fit(X, Y)
    # The one price of which the plan knows is the only one that is paid.
    assert len({row["epsilon"] for row in fitted.evaluations_.params}) == 1
    assert gaussian_epsilon(math.sqrt(squares_of(fitted).sum())) <= 12.0


def test_rows_carry_their_own_price_and_the_studys() -> None:
    fitted = search().fit(X, Y)
    front = fitted.pareto_front_
    assert (front.study_epsilon == 12.0).all()
    for _, row in front.iterrows():
        own = Priced(**row.params, delta=1e-7).privacy_profile(600).epsilon(DELTA)
        assert row.epsilon == own < 12.0


def test_last_model_keeps_to_its_half_of_delta() -> None:
    fitted = search(refit=2.0, n_initial=12).fit(X, Y)
    model = fitted.best_estimator_
    assert model.privacy_.epsilon_at(DELTA / 2) <= 2.0
    assert fitted.privacy_.epsilon == 14.0
    assert fitted.privacy_.parts[-1].name == "final fit"
    costs = [
        Priced(**row, delta=1e-7).privacy_profile(600).epsilon(DELTA / 2)
        for row in fitted.evaluations_.params
    ]
    errors = np.where(np.array(costs) <= 2.0, fitted.evaluations_.error, np.inf)
    assert fitted.best_index_ == int(np.argmin(errors))


def test_plan_tells_the_noise_and_the_price() -> None:
    made = search(n_repeats=2)
    plan = made.plan(600, 3)
    made.fit(X, Y)
    assert plan.report == made.privacy_
    assert plan.epsilon == made.privacy_.epsilon_spent <= 12.0
    assert plan.row.expected_fits == 24.0
    ratio = math.sqrt(12) / largest_mu(12.0)
    assert plan.score_noise == pytest.approx(ratio * accuracy().sensitivity(120), rel=1e-2)
    assert "DParetoSearchCV" in str(plan)


# What is not charged is not shown ----------


def test_scores_have_the_noise_that_was_planned() -> None:
    scale = search(release=9.0, n_iter=8).plan(600, 3).score_noise
    found = []
    for seed in range(6):
        fitted = search(release=9.0, n_iter=8, random_state=seed).fit(X, Y)
        table_ = fitted.evaluations_
        good = table_[table_.param_quality.between(0.7, 0.9)]
        # The split is the search's secret: the exact score on all records is near enough.
        exact = [np.mean(X[:, 1] >= quality) for quality in good.param_quality]
        found += (good.error - np.array(exact)).tolist()
    spread = math.hypot(scale, math.sqrt(0.2 * 0.8 / 120))
    assert len(found) > 12
    assert 0.6 * spread < np.std(found) < 1.6 * spread


def test_failing_looks_like_scoring_the_worst() -> None:
    fitted = search(release=5.0, n_iter=20).fit(X, Y)
    failed = fitted.evaluations_[fitted.evaluations_.param_quality < 0.6]
    assert len(failed) >= 3
    # Noised around the worst, and clipped there: the half below 0 utility is at error 1.
    assert (failed.error > 0.5).all()
    assert (failed.error < 1.0).any()
    assert not fitted.evaluations_.error.isna().any()
    assert "failure" not in fitted.evaluations_.columns


@pytest.mark.parametrize("sampler", ["random", "auto"])
def test_nothing_else_is_found(
    sampler: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    exact: list[float] = []
    times = iter(range(10**9))
    released = evaluation.Scoring.released

    def noting(scoring: Any, values: Any, random: Any) -> float:
        exact.append(scoring.scorer.score(values, scoring.n_public))
        return released(scoring, values, random)

    monkeypatch.setattr(evaluation.Scoring, "released", noting)
    monkeypatch.setattr(
        "skdptune.model_selection._pareto._workers.time.perf_counter",
        lambda: next(times) * 98765.25,
    )
    fitted = search(sampler, n_repeats=2, verbose=0, refit=3.0).fit(X, Y)
    assert len(exact) == len(fitted.evaluations_) and len(set(exact)) > 3
    captured = capfd.readouterr()
    everything = visible(fitted) + captured.out + captured.err
    for word in ("secret exception", "Traceback", "datetime", "TrialState"):
        assert word not in everything
    secret = {*exact, *(1.0 - np.array(exact)).tolist(), 98765.25}
    # A utility of 0 or 1 is what the noise is clipped to as well.
    shown = numbers(fitted) - {0.0, 1.0}
    assert secret & shown == set()
    content = pickle.dumps(fitted)
    for value in {*exact, 98765.25} - {0.0, 1.0}:
        # Numbers are pickled big end first, arrays as they are.
        stored = np.float64(value).tobytes()
        assert stored not in content and stored[::-1] not in content
    assert not hasattr(fitted, "study_") and fitted.result_.study_ is None
    assert set(fitted.fronts_) == {"mean"}
    hidden = {"seconds", "spread", "utilities", "failure"}
    assert not hidden & set(fitted.evaluations_.columns)


def test_the_guard_finds_what_the_curator_sees() -> None:
    with pytest.warns(FitFailedWarning, match="secret exception"):
        fitted = search(release=None).fit(X, Y)
    assert "secret exception" in visible(fitted)
    assert {"seconds", "spread", "utilities", "failure"} <= set(fitted.evaluations_.columns)


class Slow(Private):
    """Takes the longer, the better it is: what finishes first would tell."""

    def __init__(self, wait: float = 0.0, epsilon: float = 1.0, delta: float = 1e-7) -> None:
        self.wait = wait
        self.epsilon = epsilon
        self.delta = delta
        self.n_public = None

    random_state = None

    def fit(self, X: Any, y: Any) -> Slow:
        import time

        self._start(X, y)
        time.sleep(self.wait)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[(self._table(X)[:, 0] > 0).astype(int)]


def test_what_finishes_first_changes_nothing() -> None:
    found = []
    for wait in (0.0, 0.05):
        fitted = DParetoSearchCV(
            Slow(wait),
            {"epsilon": (0.2, 6.0, "log")},
            n_initial=3,
            n_iter=3,
            batch_size=2,
            n_jobs=2,
            release=12.0,
            random_state=0,
            sampler="hvpoi",
        ).fit(X, Y)
        found.append(fitted.evaluations_)
    np.testing.assert_array_equal(found[0].error, found[1].error)
    np.testing.assert_array_equal(found[0].epsilon, found[1].epsilon)
