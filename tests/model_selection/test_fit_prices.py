"""The worst price over all candidates."""

from __future__ import annotations

import pytest
from scipy.stats import uniform
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.model_selection._candidates import Candidates
from skdptune.model_selection._configuring import Budget
from skdptune.model_selection._fit_prices import FitPrices, FitSize
from tests.model_selection.learners import Scripted

SIZE = FitSize(100, 400, 3, False)
DELTA = 1e-5


def prices(values: object, estimator: object = None) -> FitPrices:
    candidates = Candidates(values, name="param_distributions", drawn=True)
    return FitPrices(estimator or Scripted(delta=DELTA), candidates, "auto")


def price(epsilon: float) -> object:
    return Scripted(epsilon=epsilon, delta=DELTA).privacy_profile(100)


def test_free_parameters_do_not_count() -> None:
    assert prices({"quality": uniform()}).profile(None, SIZE) == price(1.0)


def test_worst_of_listed_values() -> None:
    found = prices({"epsilon": [0.5, 2.0, 1.0]}).profile(None, SIZE)
    for delta in (1e-3, 1e-5, 1e-7):
        assert found.epsilon(delta) == pytest.approx(price(2.0).epsilon(delta), rel=1e-6)


def test_composition_counts_every_candidate() -> None:
    found = prices({"epsilon": [0.5, 2.0], "mark": [1, 2, 3]}).composed(None, SIZE)
    assert found == price(0.5) * 3 + price(2.0) * 3


def test_drawn_prices_need_a_budget() -> None:
    with pytest.raises(ValueError, match="must list few values of parameters that set the price"):
        prices({"epsilon": uniform()}).profile(None, SIZE)


def test_many_settings_are_held_to_the_budget() -> None:
    class Silent(Scripted):
        price_parameters = None

    values = {"quality": uniform(), "mark": uniform()}
    found = prices(values, Silent(delta=DELTA)).profile(Budget(0.7, DELTA), SIZE)
    assert found.epsilon(DELTA) == pytest.approx(0.7)


def test_configured_is_a_fresh_estimator() -> None:
    pipeline = make_pipeline(Normalizer(), Scripted())
    made = prices({"scripted__quality": [0.5]}, pipeline).configured(
        {"scripted__quality": 0.9}, Budget(3.0, 1e-4), FitSize(100, 400, 3, True)
    )
    assert (made[1].quality, made[1].epsilon, made[1].delta, made[1].n_public) == (
        0.9,
        3.0,
        1e-4,
        100,
    )
    assert (pipeline[1].quality, pipeline[1].n_public) == (0.5, None)
