"""The cost of full tables: enumerated, and by its parts (Theorem T8)."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile, search_on_split
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV, FullTable
from skdptune.model_selection._cost import Cost, CostModel
from tests.flat import flat
from tests.model_selection.learners import Scripted

DELTA = 1e-5
VALUES = {"quality": [0.1, 0.5, 0.9]}


def model(**more: object) -> CostModel:
    settings = {"strategy": "table", "epsilon": 1.0, "delta": DELTA, **more}
    found: CostModel = (
        flat(DPGridSearchCV, Scripted(), VALUES, **settings)._make_plan(1000, 3).model
    )
    return found


def cost_of(**more: object) -> Cost:
    settings = {"strategy": "table", "epsilon": 1.0, "delta": DELTA, **more}
    return flat(DPGridSearchCV, Scripted(), VALUES, **settings)._make_plan(1000, 3).cost


def response(epsilon: float, delta: float, is_swapped: bool) -> tuple[list[float], list[float]]:
    """Return the probabilities of four outcomes with and without the record."""
    truth = (1.0 - delta) / (1.0 + math.exp(-epsilon))
    with_it, without = [delta, truth, 1.0 - delta - truth, 0.0], [0.0, 1.0 - delta - truth, truth]
    without.append(delta)
    return (without, with_it) if is_swapped else (with_it, without)


def enumerated(
    rounds: list[tuple[float, float]], unseen: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of all transcripts of releases, each turned by those before it.

    The first `unseen` releases do not see the record in either case.
    """
    p, q = [], []
    for outcomes in itertools.product(range(4), repeat=len(rounds)):
        masses = [1.0, 1.0]
        for place, (epsilon, delta) in enumerate(rounds):
            # Which mechanism comes next is a function of what was published.
            turned = sum(outcomes[:place]) % 2 == 1
            seen, absent = response(epsilon, delta, turned)
            pair = (absent if place < unseen else seen, absent)
            masses = [m * side[outcomes[place]] for m, side in zip(masses, pair, strict=True)]
        p.append(masses[0])
        q.append(masses[1])
    return np.array(p), np.array(q)


@pytest.mark.parametrize(
    ("fit", "score", "final"),
    [
        ((0.3, 0.0), (0.2, 0.0), (1.0, 0.0)),
        ((0.1, 1e-3), (0.4, 0.0), (0.5, 1e-2)),
        ((1.0, 0.0), (0.05, 1e-4), (0.2, 0.0)),
    ],
)
@pytest.mark.parametrize("part", [None, 0.3])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_an_enumerated_adaptive_table_lies_below_the_total(
    fit: tuple[float, float],
    score: tuple[float, float],
    final: tuple[float, float],
    part: float | None,
    direction: str,
) -> None:
    """Theorem T8: two candidates, the second chosen from the first's score, and a last fit."""
    validation = 0.25
    claim = search_on_split(
        PrivacyProfile.approximate(*fit) * 2,
        PrivacyProfile.approximate(*score) * 2,
        PrivacyProfile.approximate(*final),
        validation_fraction=validation,
        tuning_fraction=part,
        variant=2,
    )
    trained, absent = enumerated([fit, fit, final])
    scored, without = enumerated([score, score, final])
    # A record outside validation trains with this probability; nobody learns whether it does.
    share = 1.0 if part is None else part / (1.0 - validation)
    unseen, same = enumerated([fit, fit, final], unseen=2)
    np.testing.assert_allclose(same, absent)
    others = share * trained + (1.0 - share) * unseen
    for epsilon in (-1.0, -0.2, 0.0, 0.1, 0.5, 1.0, 1.4):
        truth = 0.0
        for weight, p, q in ((validation, scored, without), (1.0 - validation, others, absent)):
            first, second = (p, q) if direction == "remove" else (q, p)
            truth += weight * np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
        assert truth <= claim.delta(epsilon, direction) + 1e-12


def test_total_is_that_of_its_parts() -> None:
    """Theorem T8."""
    cost = cost_of()
    assert cost.scored is not None
    assert cost.final is not None
    fits, scores = cost.fit * 3, cost.score_noise.profile * 3
    total = search_on_split(fits, scores, cost.final, validation_fraction=0.2)
    assert cost.total.epsilon(DELTA) == pytest.approx(total.epsilon(DELTA), rel=1e-6)
    both = (fits + scores + cost.final).epsilon(DELTA)
    assert cost.final.epsilon(DELTA) < cost.total.epsilon(DELTA) <= min(1.0, both)


def test_folds_pay_for_all_fits_of_a_candidate() -> None:
    """Theorem T8."""
    cost = cost_of(cv=4)
    assert cost.scored is None
    assert cost.final is not None
    whole = cost.fit * 9 + cost.score_noise.profile * 3 + cost.final
    assert cost.total.epsilon(DELTA) == pytest.approx(whole.epsilon(DELTA), rel=1e-6)


def test_runs_have_as_many_times_the_noise() -> None:
    found = model()
    assert found.fit_noise > 5.0
    cost = cost_of()
    final, run = cost.final, cost.fit
    assert final is not None
    # Of Gaussian releases epsilon falls somewhat faster than noise grows.
    ratio = final.epsilon(DELTA) / run.epsilon(DELTA)
    assert 0.8 * found.fit_noise < ratio < 2.0 * found.fit_noise


def test_a_score_may_be_given_what_it_costs() -> None:
    noise = cost_of(score_epsilon=0.25).score_noise
    assert noise.profile.epsilon(DELTA) == pytest.approx(0.25, rel=1e-3)
    pure = DPGridSearchCV(Scripted(), VALUES, epsilon=1.0, delta=0.0, strategy="table")
    assert pure._make_plan(1000, 3).cost.score_noise.kind == "laplace"


def test_without_a_total_every_fit_keeps_its_own_budget() -> None:
    search = DPGridSearchCV(Scripted(epsilon=0.5, delta=DELTA), VALUES, strategy="table")
    cost = search._make_plan(1000, 3).cost
    assert cost.fit == cost.final
    assert 0.5 < cost.total.epsilon(DELTA) < 4 * 0.5


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("solver", ["preconditioned", "sgd"])
def test_the_final_fit_has_the_noise_that_was_allowed_and_all_is_spent(
    epsilon: float, solver: str
) -> None:
    """Theorem T8: by the fits' own profiles, whatever they are."""
    more = {} if solver == "preconditioned" else {"batch_size": 0.05, "epochs": 10}
    search = DPGridSearchCV(
        DPLogisticRegression(solver=solver, **more),
        {"learning_rate": [0.5, 1.0, 2.0]},
        epsilon=epsilon,
        delta=DELTA,
        strategy=FullTable(noise_limit=1.1),
    )
    plan = search.plan(20_000, 5)
    ratio = plan.row.effective_noise / plan.alternatives[0].effective_noise
    assert ratio == pytest.approx(1.1, rel=0.01)
    assert 0.99 * epsilon < plan.epsilon <= epsilon
    made = search._make_plan(20_000, 5)
    # Less noise in either would cost more than the total.
    for changes in ({"fit_noise": 0.9 * made.model.fit_noise}, {"score_noise": 0.5}):
        assert replace(made.model, **changes).at(made.cost.setting).total.epsilon(DELTA) > epsilon
