"""Common properties of all distributions: arguments, shapes, plain values, pickles."""

import json
import pickle
from dataclasses import FrozenInstanceError, dataclass
from typing import ClassVar

import numpy as np
import pytest

from skdptune.accounting import (
    Binomial,
    Geometric,
    Logarithmic,
    Poisson,
    PrivacyProfile,
    RunCountDistribution,
    TruncatedNegativeBinomial,
    selection_lower_bound,
)

DISTRIBUTIONS = [
    TruncatedNegativeBinomial(0.5, 0.1),
    Geometric(1 / 3),
    Logarithmic(0.01),
    Poisson(15),
    Binomial(30, 0.1),
]
every_distribution = pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
FUNCTIONS = ["pgf", "pgf_derivative", "pgf_second_derivative"]


@every_distribution
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_take_numbers_and_arrays(distribution, function):
    evaluate = getattr(distribution, function)
    x = np.array([[0.0, 0.25, 0.5], [0.75, 0.9, 1.0]])
    values = evaluate(x)
    assert values.shape == x.shape and values.dtype == np.float64
    for index, number in np.ndenumerate(x):
        assert values[index] == pytest.approx(evaluate(float(number)), rel=1e-14)
    for scalar in [1, 0.5, np.float64(0.5), np.array(0.5)]:
        assert type(evaluate(scalar)) is float
    assert evaluate([0.5]).shape == (1,)
    assert evaluate(np.array([])).shape == (0,)


@every_distribution
def test_plain_values_survive_json(distribution):
    values = json.loads(json.dumps(distribution.to_dict()))
    for copy in (RunCountDistribution.from_dict(values), type(distribution).from_dict(values)):
        assert copy == distribution and type(copy) is type(distribution)
    assert TruncatedNegativeBinomial.from_dict(Geometric(0.5).to_dict()) == Geometric(0.5)


@every_distribution
def test_distributions_are_immutable_hashable_and_pickle(distribution):
    with pytest.raises(FrozenInstanceError):
        distribution.mean_of_everything = 3
    copy = pickle.loads(pickle.dumps(distribution))
    assert (
        copy == distribution
        and hash(copy) == hash(distribution)
        and type(copy) is type(distribution)
    )
    assert copy.mean == distribution.mean


def test_a_subclass_of_a_user_is_read_back(monkeypatch):
    monkeypatch.setattr(RunCountDistribution, "_known", dict(RunCountDistribution._known))

    @dataclass(frozen=True)
    class Lazy(Poisson):
        _name: ClassVar[str] = "lazy"

    assert RunCountDistribution.from_dict(Lazy(2.0).to_dict()) == Lazy(2.0)


@dataclass(frozen=True)
class Own(RunCountDistribution):
    """A Poisson number, written again, of which one part may be wrong."""

    rate: float
    wrong: str = ""

    @property
    def mean(self):
        return self.rate * (0.5 if self.wrong == "mean" else 1.0)

    def _pgf(self, x):
        scale = {"sum": 0.9, "nan": np.nan}.get(self.wrong, 1.0)
        return scale * np.exp(-self.rate * (1.0 - x))

    def _pgf_derivative(self, x):
        if self.wrong == "derivative":
            return np.full(x.shape, self.rate)
        sign = -1.0 if self.wrong == "sign" else 1.0
        return sign * self.rate * np.exp(-self.rate * (1.0 - x))

    def _pgf_second_derivative(self, x):
        power = 1 if self.wrong == "second" else 2
        return self.rate**power * np.exp(-self.rate * (1.0 - x))

    def _probability_at_most(self, count):
        return 0.5 if self.wrong == "chances" else Poisson(self.rate).probability_at_most(count)

    def _draw(self, rng, shape):
        return rng.poisson(self.rate * (3.0 if self.wrong == "draws" else 1.0), shape)


@dataclass(frozen=True)
class TwoOrNine(Own):
    """A valid distribution, except that the ratio of derivatives is not linear."""

    @property
    def mean(self):
        return 5.5

    def _pgf(self, x):
        return (x**2 + x**9) / 2

    def _pgf_derivative(self, x):
        return (2 * x + 9 * x**8) / 2

    def _pgf_second_derivative(self, x):
        return 1.0 + 36 * x**7

    def _probability_at_most(self, count):
        return 0.0 if count < 2 else 0.5 if count < 9 else 1.0

    def _draw(self, rng, shape):
        return np.where(rng.random(shape) < 0.5, 2, 9)


@pytest.mark.parametrize("rate", [0.3, 4.0, 300.0, 1e5])
def test_a_right_distribution_of_ones_own_costs_what_it_does(rate):
    run = PrivacyProfile.gaussian(0.1)
    found = run.selected(Own(rate)).epsilon(1e-6)
    assert found == pytest.approx(run.selected(Poisson(rate)).epsilon(1e-6), rel=1e-9)


WRONG = ["mean", "sum", "nan", "derivative", "sign", "second", "chances", "draws"]


@pytest.mark.parametrize("own", [*(Own(4.0, wrong) for wrong in WRONG), TwoOrNine(1.0)], ids=str)
def test_a_wrong_distribution_of_ones_own_is_refused(own):
    # Assumption S0, Theorem S2.
    run = PrivacyProfile.gaussian(0.1)
    for use in (run.selected, lambda d: selection_lower_bound(run, d, 1e-6)):
        with pytest.raises(ValueError, match="^distribution must be one whose"):
            use(own)
