"""Plans made before the data: costs of parameters, the report, and the filter of proposals."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.accounting import PrivacyProfile
from skdptune.linear_model import DPLogisticRegression
from skdptune.mechanisms import noise_for_budget
from skdptune.model_selection import DParetoSearchCV
from skdptune.model_selection._cost import make_layout
from skdptune.model_selection._pareto._families import FAMILY, Families
from skdptune.model_selection._pareto._run import ParameterCosts, ProposalFilter, moments_epsilon
from tests.flat import flat
from tests.model_selection.learners import Centroids, Scripted

DELTA = 1e-5
SPACE = {"quality": (0.0, 1.0), "epsilon": (0.1, 5.0)}
RELEASED = {"epsilon": (0.1, 4.0, "log"), "quality": (0.5, 0.9)}


def layout(**more: Any) -> Any:
    settings = {"cv": 0.25, "public": False, "is_random": False, **more}
    return make_layout(400, 3, tuning_fraction=None, variant=1, refit=True, **settings)


def costs(estimator: Any = None, space: Any = None, **more: Any) -> ParameterCosts:
    families = Families(estimator or Scripted(), space or SPACE)
    return ParameterCosts(families, more.pop("layout", None) or layout(), DELTA, **more)


def test_moments_bound_against_the_moments() -> None:
    mu = 0.8
    found = moments_epsilon(PrivacyProfile.gaussian(mu), DELTA)
    # alpha(m) = log E exp(m * loss) of a Gaussian, integrated numerically for some moments.
    bounds = []
    for m in range(1, 16):
        log_moment = mpmath.log(
            mpmath.quad(
                lambda x, m=m: mpmath.npdf(x, mu, 1) * mpmath.exp(m * (mu * x - mu * mu / 2)),
                [-10, 0, 10, 60],
            )
        )
        bounds.append((log_moment - math.log(DELTA)) / m)
    assert found == pytest.approx(float(min(bounds)), rel=1e-6)
    assert found > PrivacyProfile.gaussian(mu).epsilon(DELTA)


def test_moments_bound_is_refused_where_unknown() -> None:
    with pytest.raises(ValueError, match="privacy must be 'profile' for an estimator whose"):
        moments_epsilon(PrivacyProfile.approximate(1.0, 1e-6), DELTA)
    assert math.isinf(moments_epsilon(PrivacyProfile.gaussian(1.0), 0.0))


def test_costs_of_evaluations_and_of_final_fits() -> None:
    model = DPLogisticRegression(
        solver="sgd", epsilon=None, noise_multiplier=1.0, batch_size=40, epochs=2
    )
    fit_costs = costs(model, {"noise_multiplier": (0.5, 5.0)})
    params = {"noise_multiplier": 2.0}
    final = model.set_params(**params).privacy_profile(400, 3)
    assert fit_costs.of_final_fit(params) == final
    assert fit_costs.epsilon(params) == final.epsilon(DELTA)
    # On three quarters of the records, the batch is the same share of them.
    assert fit_costs.of_evaluation(params).epsilon(DELTA) == pytest.approx(
        fit_costs.epsilon(params), rel=1e-6
    )
    made = fit_costs.configured(params, fit_costs.train_size)
    assert (made.n_public, made.batch_size) == (300, 0.1)
    assert fit_costs.configured(params, fit_costs.final_size).n_public is None


def test_cost_that_depends_on_a_secret_size_is_refused() -> None:
    class Sized(Scripted):
        def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
            return PrivacyProfile.pure(100.0 / n_samples)

    params = {"quality": 0.5, "epsilon": 1.0}
    with pytest.raises(TypeError, match="estimator must have a parameter n_public"):
        costs(Sized()).of_evaluation(params)
    public = costs(Sized(), layout=layout(public=True))
    assert public.of_evaluation(params).epsilon(0.0) == 0.25


class NoisyAtItsDelta(Scripted):
    """Costs a Gaussian release at its own delta, and is pure where that is 0."""

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> Any:
        if self.delta == 0.0:
            return PrivacyProfile.pure(self.epsilon)
        return PrivacyProfile.gaussian(1.0 / noise_for_budget(self.epsilon, self.delta)[0])


def test_at_delta_0_fits_cost_what_they_are_made_with() -> None:
    # Theorem F2: evaluations and final fits are costed as they are configured, delta included.
    params = {"quality": 0.5, "epsilon": 2.0}
    for own in (0.0, 1e-6):
        families = Families(NoisyAtItsDelta(delta=own), SPACE)
        found = ParameterCosts(families, layout(), 0.0)
        for size in (found.train_size, found.final_size):
            made = found.configured(params, size)
            assert (made.epsilon, made.delta) == (2.0, own)
        profile = NoisyAtItsDelta(epsilon=2.0, delta=own).privacy_profile(400)
        assert found.of_final_fit(params) == profile == found.of_evaluation(params)
        # An estimator whose own delta is above 0 has no epsilon at 0, and none is claimed.
        assert found.epsilon(params) == (2.0 if own == 0.0 else math.inf)


def test_the_selected_family_is_configured() -> None:
    two = [("first", Scripted(mark="kept")), ("second", Centroids())]
    spaces = {"first": {"quality": (0.1, 0.9)}, "second": {"shrink": [0.0, 0.5]}}
    both = costs(two, spaces)
    params = {FAMILY: "second", "first__quality": 0.3, "second__shrink": 0.5}
    second = both.configured(params, both.final_size)
    assert isinstance(second, Centroids) and second.shrink == 0.5
    first = both.configured({**params, FAMILY: "first"}, both.final_size)
    assert isinstance(first, Scripted) and (first.mark, first.quality) == ("kept", 0.3)
    assert first is not two[0][1]


def test_steps_may_be_categories_and_are_copied() -> None:
    pipeline, inner = make_pipeline(Normalizer(), Scripted()), Centroids()
    space = {"scripted": [Scripted(), inner], "scripted__epsilon": [2]}
    found = costs(pipeline, space)
    params = {"scripted": inner, "scripted__epsilon": 2}
    made = found.configured(params, found.final_size)
    assert isinstance(made[-1], Centroids) and made[-1].epsilon == 2
    assert made[-1] is not inner


def test_exact_evaluations_may_use_batches_of_fixed_size() -> None:
    """Their cost depends on the number of records, which is no secret to whoever sees all."""
    for needed in ("optuna", "moocore"):
        pytest.importorskip(needed)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    model = DPLogisticRegression(solver="sgd", sampling="fixed", epochs=1, classes=[0, 1])
    space = {"epsilon": (0.5, 5.0, "log")}
    search = flat(DParetoSearchCV, model, space, n_initial=3, n_iter=1, random_state=0)
    search.fit(X, (X[:, 0] > 0.0).astype(int))
    assert len(search.pareto_front_) > 0
    assert search.evaluations_["failure"].isna().all()
    with pytest.raises(ValueError, match="n_public must be None with sampling='fixed'"):
        search.set_params(release=4.0).privacy_profile(400, 3)


def within(**more: Any) -> tuple[Any, Any]:
    search = flat(DParetoSearchCV, Scripted(delta=1e-7), RELEASED, n_initial=4, n_iter=4, **more)
    return search, search._make_plan(500, 3)


def test_search_without_a_release_protects_nothing() -> None:
    search, plan = within()
    assert plan.release is None
    assert math.isinf(plan.total.epsilon(0.9))
    report = search._report(plan)
    assert math.isinf(report.epsilon) and "NOT PRIVATE" in str(report)
    with pytest.raises(ValueError, match="plan must be of a release"):
        ProposalFilter(plan)


def test_report_of_a_release_is_a_tree() -> None:
    search, plan = within(release=8.0, refit=1.0)
    report = search._report(plan)
    assert [part.name for part in report.parts] == ["evaluations", "scores", "final fit"]
    assert (report.epsilon, report.delta) == (9.0, 1e-5)
    assert report.epsilon_spent <= 9.0
    assert report.parts[2].profile == PrivacyProfile.approximate(1.0, 5e-6)
    assert "NOT PRIVATE" not in str(report)
    assert "Gaussian filter" in str(report)


def test_proposals_are_charged_and_refused() -> None:
    _, plan = within(release=8.0)
    ask = ProposalFilter(plan)
    cheap, expensive = {"epsilon": 0.2, "quality": 0.5}, {"epsilon": 4.0, "quality": 0.5}
    answers = [ask(expensive) for _ in range(6)]
    # Yes at first, and never again after the first no.
    assert answers[0] and not answers[-1]
    assert answers == sorted(answers, reverse=True)
    left = sum(answers)
    assert [ask(cheap) for _ in range(8 - left)] == [True] * (8 - left)
    # Eight were wanted.
    assert not ask(cheap)


def test_bad_parameters_are_refused_without_a_charge() -> None:
    _, plan = within(release=8.0)
    ask = ProposalFilter(plan)
    assert not ask({"epsilon": -1.0, "quality": 0.5})
    assert not ask({"epsilon": "much", "quality": 0.5})
    assert ask.budget.n_charged == 0
