"""Common properties of all distributions: arguments, shapes, plain values, pickles."""

import itertools
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


@pytest.mark.parametrize("x", [-1e-9, 1.1, np.nan, [0.5, 1.5], [[0.5], [np.nan]]])
def test_functions_refuse_numbers_outside(x):
    for distribution, function in itertools.product(DISTRIBUTIONS, FUNCTIONS):
        with pytest.raises(ValueError, match=r"^x must be a number in \[0, 1\]"):
            getattr(distribution, function)(x)
    with pytest.raises(TypeError, match="^x must be a number"):
        Poisson(1).pgf([0.1, [0.2]])


@pytest.mark.parametrize(
    ("count", "error"), [(-1, ValueError), (1.0, TypeError), (True, TypeError)]
)
def test_probability_at_most_refuses(count, error):
    with pytest.raises(error, match="^count must be an integer"):
        Poisson(1).probability_at_most(count)


@every_distribution
def test_plain_values_survive_json(distribution):
    values = json.loads(json.dumps(distribution.to_dict()))
    for copy in (RunCountDistribution.from_dict(values), type(distribution).from_dict(values)):
        assert copy == distribution and type(copy) is type(distribution)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, r"distribution must be one of .*'geometric'.*; got None\."),
        (
            {"distribution": "uniform", "trials": 3},
            "distribution must be one of .*; got 'uniform'",
        ),
        ({"distribution": "poisson"}, r"parameters must be rate; got none\."),
        (
            {"distribution": "binomial", "trials": 3},
            r"parameters must be trials, probability; got trials",
        ),
        (
            {"distribution": "geometric", "gamma": 0.5, "eta": 1},
            "parameters must be gamma; got gamma, eta",
        ),
    ],
)
def test_from_dict_refuses_other_content(values, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        RunCountDistribution.from_dict(values)


def test_from_dict_of_a_class_refuses_other_distributions():
    assert TruncatedNegativeBinomial.from_dict(Geometric(0.5).to_dict()) == Geometric(0.5)
    with pytest.raises(
        ValueError, match="^distribution must be one of 'geometric'; got 'poisson'"
    ):
        Geometric.from_dict(Poisson(3).to_dict())
    with pytest.raises(TypeError, match="^values must be a mapping"):
        RunCountDistribution.from_dict("geometric")


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


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda value: TruncatedNegativeBinomial(value, 0.5), "eta"),
        (lambda value: TruncatedNegativeBinomial.from_mean(3, value), "eta"),
        (lambda value: TruncatedNegativeBinomial(1, value), "gamma"),
        (lambda value: Geometric(value), "gamma"),
        (lambda value: Logarithmic(value), "gamma"),
        (lambda value: TruncatedNegativeBinomial.from_mean(value, 1), "mean"),
        (lambda value: Geometric.from_mean(value), "mean"),
        (lambda value: Logarithmic.from_mean(value), "mean"),
        (lambda value: Poisson(value), "rate"),
        (lambda value: Poisson.from_mean(value), "mean"),
        (lambda value: Binomial(3, value), "probability"),
        (lambda value: Binomial.from_mean(value, 3), "mean"),
    ],
)
def test_real_parameters_are_checked(make, name):
    for value in [-1, np.nan, np.inf, -np.inf]:
        with pytest.raises(ValueError, match=f"^{name} must be a number"):
            make(value)
    for value in ["0.5", None, True, [0.5], 1j]:
        with pytest.raises(TypeError, match=f"^{name} must be a number"):
            make(value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Geometric(0.0), r"gamma must be a number in \[1e-140, 1\); got 0.0"),
        (lambda: Geometric(1.0), "gamma must be"),
        (lambda: Geometric.from_mean(1.0), r"mean must be a number in \(1, inf\); got 1.0"),
        (lambda: TruncatedNegativeBinomial(1e7, 0.5), "eta must be"),
        (lambda: TruncatedNegativeBinomial.from_mean(1e6, -0.99), "mean must be .* larger eta"),
        (lambda: Poisson(0.0), "rate must be"),
        (lambda: Binomial(3, 0.0), "probability must be"),
        (lambda: Binomial(3, 1.1), "probability must be"),
        (lambda: Binomial(0, 0.5), "trials must be an integer of at least 1"),
        (lambda: Binomial(2**60, 0.5), "trials must be at most"),
        (lambda: Binomial.from_mean(3.5, 3), r"mean must be a number in \(0, 3\]; got 3.5"),
        (lambda: Binomial.from_mean(3.5, 0), "trials must be"),
    ],
)
def test_ends_of_the_domains(make, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make()


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
